"""Dictionaries: the padded copy of short strings gives what the plain gather gives, and nothing outside; gathering
straight from the runs of a page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import reference
from kernel_data import OFFSET_TYPES, binary, values_of

from pyparq import kernels
from pyparq.kernels import KernelError

LONGEST = kernels.SHORT_DICTIONARY_LONGEST


@pytest.mark.parametrize("dtype", OFFSET_TYPES)
@pytest.mark.parametrize("longest", [0, 1, 15, 16, 17, 32, 33, LONGEST])
@pytest.mark.parametrize("n", [0, 1, 5000])
def test_short_dictionary(dtype: Any, longest: int, n: int) -> None:
    rng = np.random.default_rng(n + longest)
    entries = [rng.bytes(k) for k in {0, longest // 2, longest}] + [b"e" * longest]
    short = kernels.ShortDictionary(*binary(entries, dtype, b"lead"))
    indices = rng.integers(0, len(entries), n).astype(np.int32)
    expect = [entries[i] for i in indices]
    room = short.room(n)
    whole = np.full(room + 64, 0x5A, np.uint8)
    offsets = np.empty(n + 1, dtype)
    total = short.gather(indices, offsets, 1000, whole[:room])
    assert total == sum(map(len, expect))
    assert values_of(offsets - dtype(1000), whole) == expect
    assert (whole[room:] == 0x5A).all()
    with pytest.raises(KernelError, match="too small"):
        short.gather(indices, offsets, 0, whole[: room - 1])


def test_short_dictionary_refuses() -> None:
    with pytest.raises(KernelError, match=str(LONGEST)):
        kernels.ShortDictionary(*binary([b"x" * (LONGEST + 1)]))
    for offsets in ([], [0, 5], [2, 1], [-1, 0]):
        with pytest.raises(KernelError):
            kernels.ShortDictionary(np.array(offsets, np.int64), b"four")
    short = kernels.ShortDictionary(*binary([b"ab", b"c"]))
    out = np.empty(1000, np.uint8)
    for bad in (-1, 2, 2**31 - 1):
        with pytest.raises(KernelError, match=str(bad)):
            short.gather(np.array([0, bad], np.int32), np.empty(3, np.int64), 0, out)
    one = np.zeros(1, np.int32)
    with pytest.raises(KernelError, match="out_offsets"):
        short.gather(one, np.empty(1, np.int64), 0, out)
    with pytest.raises(KernelError, match="fit"):
        short.gather(one, np.empty(2, np.int32), 2**31 - 2, out)
    with pytest.raises(KernelError, match="base"):
        short.gather(one, np.empty(2, np.int64), -1, out)
    empty = kernels.ShortDictionary(*binary([]))
    with pytest.raises(KernelError):
        empty.gather(one, np.empty(2, np.int64), 0, out)


# --- dictionary indices as a page has them, gathered as they are decoded


def page_of(rng: np.random.Generator, indices: list[int], width: int) -> bytes:
    """Bit width, then runs and packed groups of any length; packed ones end where their groups do."""
    at, parts = 0, [bytes([width])]
    while at < len(indices):
        step = int(rng.choice([1, 3, 8, 16, 500, 1024, 2000]))
        if indices[at : at + step].count(indices[at]) == step:
            parts.append(reference.rle_run(indices[at], step, width))
        else:
            step = min(-(-step // 8) * 8, len(indices) - at)
            parts.append(reference.rle_literal(indices[at : at + step], width))
        at += step
    return b"".join(parts)


def some_indices(rng: np.random.Generator, entries: int, count: int) -> list[int]:
    """Stretches of one index between others."""
    found = rng.integers(0, entries, count)
    for start in range(0, count, 700):
        found[start : start + int(rng.integers(0, 600))] = found[start]
    return [int(v) for v in found]


@pytest.mark.parametrize("nulls", [None, 0.0, 0.3, 1.0])
@pytest.mark.parametrize("count", [0, 1, 7, 1023, 1024, 1025, 5003])
@pytest.mark.parametrize("entries", [1, 2, 5, 300])
def test_gather_pages(entries: int, count: int, nulls: float | None) -> None:
    rng = np.random.default_rng(count * 7 + entries)
    valid = None if nulls is None else (rng.random(count) >= nulls).astype(np.uint8)
    present = count if valid is None else int(valid.sum())
    indices = some_indices(rng, entries, present)
    data = page_of(rng, indices, max(entries - 1, 0).bit_length())
    picked = iter(indices)
    places = [next(picked) if valid is None or valid[i] else None for i in range(count)]
    for width in (1, 3, 4, 8, 12, 16):
        dictionary = rng.integers(0, 256, entries * width, dtype=np.uint8)
        out = np.full(count * width + 8, 0x5A, np.uint8)
        kernels.gather_pages(dictionary, width, [(data, present, valid)], out[: count * width])
        rows = dictionary.reshape(entries, width)
        expect = b"".join(bytes(width) if k is None else rows[k].tobytes() for k in places)
        assert out.tobytes() == expect + b"\x5a" * 8
    for lengths in (np.full(entries, 5), rng.integers(0, LONGEST + 1, entries)):
        strings = [rng.bytes(int(n)) for n in lengths]
        short = kernels.ShortDictionary(*binary(strings))
        room = short.room(present)
        whole = np.full(room + 64, 0x5A, np.uint8)
        offsets = np.empty(count + 1, np.int32)
        total = short.gather_pages([(data, present, valid)], offsets, 1000, whole[:room])
        assert values_of(offsets - 1000, whole) == [b"" if k is None else strings[k] for k in places]
        assert total == offsets[-1] - 1000
        assert (whole[room:] == 0x5A).all()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x02",
        b"\x21" + reference.rle_run(1, 20, 33),
        b"\x02" + reference.rle_run(3, 20, 2),
        b"\x02" + reference.rle_literal([0, 1, 2, 0, 1, 2, 3] + [0] * 13, 2),
        b"\x02" + reference.rle_literal([0, 1, 2, 0, 1, 2, 2] + [0] * 12 + [3], 2),
        b"\x02" + reference.rle_run(1, 19, 2),
        b"\x02" + reference.rle_literal([1] * 24, 2)[:5],
        b"\x02" + b"\xff" * 6,
        b"\x02" + reference.rle_run(1, 20, 2)[:1],
    ],
)
def test_gather_pages_refuses(data: bytes) -> None:
    fixed, short = np.arange(3, dtype=np.uint8), kernels.ShortDictionary(*binary([b"a", b"bc", b""]))
    valid = np.ones(30, np.uint8)
    valid[20:] = 0
    for present in (None, valid):
        slots = 20 if present is None else 30
        with pytest.raises(KernelError):
            kernels.gather_pages(fixed, 1, [(data, 20, present)], np.empty(slots, np.uint8))
        with pytest.raises(KernelError):
            short.gather_pages([(data, 20, present)], np.empty(slots + 1, np.int32), 0, np.empty(1000, np.uint8))


def test_gather_pages_needs_what_fits() -> None:
    data = b"\x01" + reference.rle_run(1, 20, 1)
    fixed, short = np.arange(2, dtype=np.uint8), kernels.ShortDictionary(*binary([b"a", b"bc"]))
    offsets, out = np.empty(21, np.int32), np.empty(1000, np.uint8)
    with pytest.raises(KernelError, match="needed"):
        kernels.gather_pages(fixed, 1, [(data, 20, None)], out[:19])
    for ones, says in ((19, "more values than slots"), (21, "21 slots are present")):
        with pytest.raises(KernelError, match=says):
            kernels.gather_pages(fixed, 1, [(data, 20, np.ones(ones, np.uint8))], out[:ones])
        with pytest.raises(KernelError, match=says):
            short.gather_pages([(data, 20, np.ones(ones, np.uint8))], np.empty(ones + 1, np.int32), 0, out)
    with pytest.raises(KernelError, match="out_offsets"):
        short.gather_pages([(data, 20, None)], offsets[:20], 0, out)
    with pytest.raises(KernelError, match="too small"):
        short.gather_pages([(data, 20, None)], offsets, 0, out[: short.room(20) - 1])
    for count in (-1, 2**62):
        with pytest.raises(KernelError):
            kernels.gather_pages(fixed, 8, [(data, count, None)], out)
        with pytest.raises(KernelError):
            short.gather_pages([(data, count, None)], offsets, 0, out)
    # Without values there need be no index, and no entry.
    empty = kernels.ShortDictionary(*binary([]))
    kernels.gather_pages(b"", 1, [(b"", 0, np.zeros(5, np.uint8))], out[:5])
    assert not out[:5].any()
    assert empty.gather_pages([(b"", 0, np.zeros(20, np.uint8))], offsets, 7, out) == 0
    assert offsets.tolist() == [7] * 21


def test_gather_pages_of_several_pages() -> None:
    rng = np.random.default_rng(5)
    strings = [b"a", b"", b"the third", b"4"]
    fixed, short = np.arange(4, dtype=np.uint16), kernels.ShortDictionary(*binary(strings))
    pages, expect = [], []
    for count, nulls in ((0, False), (1, False), (3000, True), (0, True), (20, False), (1500, True)):
        slots = count + 500 * nulls
        valid = rng.permutation(np.repeat([1, 0], [count, slots - count])).astype(np.uint8) if nulls else None
        indices = some_indices(rng, 4, count)
        pages.append((page_of(rng, indices, 2) if count else b"", count, valid))
        picked = iter(indices)
        expect += [next(picked) if valid is None or valid[i] else None for i in range(slots)]
    out = np.empty(len(expect), np.uint16)
    kernels.gather_pages(fixed.view(np.uint8), 2, pages, out.view(np.uint8))
    assert out.tolist() == [k or 0 for k in expect]
    offsets, data = np.empty(len(expect) + 1, np.int32), np.empty(short.room(len(expect)), np.uint8)
    short.gather_pages(pages, offsets, 0, data)
    assert values_of(offsets, data) == [b"" if k is None else strings[k] for k in expect]
    kernels.gather_pages(fixed.view(np.uint8), 2, [], np.empty(0, np.uint8))
    for bad in ([b""], [(b"", 0)], [(b"", 0, None, 0)], [(1, 0, None)], [(b"", 0, np.zeros(5))], [(b"", -1, None)]):
        with pytest.raises(KernelError):
            kernels.gather_pages(fixed.view(np.uint8), 2, bad, np.empty(0, np.uint8))


def test_gather_pages_takes_a_last_group_without_its_padding() -> None:
    data = b"\x03" + reference.rle_literal([0, 1, 2, 3, 4, 5, 4, 3, 2, 1], 3)[: 1 + 3 + 1]
    out = np.empty(10, np.uint8)
    kernels.gather_pages(np.arange(6, dtype=np.uint8), 1, [(data, 10, None)], out)
    assert out.tolist() == [0, 1, 2, 3, 4, 5, 4, 3, 2, 1]
    with pytest.raises(KernelError):
        kernels.gather_pages(np.arange(6, dtype=np.uint8), 1, [(data, 11, None)], np.empty(11, np.uint8))
