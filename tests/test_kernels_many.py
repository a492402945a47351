"""Kernels that look into many files at once, held against what reads one file, on sound bytes and on damaged ones."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyparq import kernels
from pyparq.errors import CorruptFileError
from pyparq.format.codec import serialize
from pyparq.format.footer import LazyFileMetaData
from pyparq.index.bloom import BloomFilter, serialize_filter
from pyparq.kernels import KernelError
from pyparq.write.file import write_table

SCHEMA = {"id": "int32?", "x": "double?", "s": "string?", "st": "struct<k: int64?, v: list<string>?>?"}
TABLE = {
    "id": [5, 9, None, 7],
    "x": [1.5, float("nan"), -2.0, None],
    "s": ["b", "a" * 100, "", None],
    "st": [{"k": 1, "v": ["a"]}, {"k": 2, "v": []}, None, {"k": None, "v": None}],
}


def file_of(**options: Any) -> tuple[bytes, int]:
    """Footer and size of a file."""
    sink = io.BytesIO()
    write_table(TABLE, sink, schema=SCHEMA, **options)
    data = sink.getvalue()
    return data[-8 - int.from_bytes(data[-8:-4], "little") : -8], len(data)


def with_old_bounds(footer: bytes, size: int) -> tuple[bytes, int]:
    """The bounds where writers before 2017 put them."""
    meta = LazyFileMetaData(footer).full()
    for group in meta.row_groups:
        for chunk in group.columns:
            found = chunk.meta_data.statistics
            found.min, found.max, found.min_value, found.max_value = found.min_value, found.max_value, None, None
    return serialize(meta), size


FILES = [
    file_of(row_group_size=3, bloom_filters=["id"]),
    file_of(use_dictionary=False, write_statistics=False),
    file_of(bloom_filters=["id", "s"], row_group_size=2),
    file_of(),
    with_old_bounds(*file_of(row_group_size=3)),
]
LEAVES = [(0, ["id"], 1), (1, ["x"], 5), (2, ["s"], 6), (3, ["st", "k"], 2), (4, ["st", "v", "list", "element"], 6)]


def asked(footers: list[bytes], sizes: list[int], leaf: Any, modern: bool = True, old: bool = False) -> Any:
    column, path, type_ = leaf
    found = kernels.leaf_chunks(
        footers, np.array(sizes, np.int64), column, [p.encode() for p in path], type_, modern, old
    )
    first, numbers, good, mins, maxs = found
    return first.tolist(), numbers.reshape(6, -1).T.tolist(), good.tolist(), mins, maxs


def decoded(footer: bytes, column: int, old: bool) -> list[Any]:
    lazy, found = LazyFileMetaData(footer), []
    for group in range(lazy.num_row_groups):
        meta = lazy.column_chunk(group, column).meta_data
        st = meta.statistics
        low, high = (None, None) if st is None else (st.min_value, st.max_value)
        if old and st is not None and low is None and high is None:
            low, high = st.min, st.max
        counts = [-1 if st is None or n is None else n for n in (st and st.null_count, st and st.nan_count)]
        filter_ = [meta.bloom_filter_offset or 0, meta.bloom_filter_length or 0]
        found.append(([lazy.num_rows(group), meta.num_values, *counts, *filter_], low, high))
    return found


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: ".".join(leaf[1]))
def test_chunks_of_a_leaf(leaf: Any) -> None:
    footers, sizes = [footer for footer, _ in FILES], [size for _, size in FILES]
    for old in (False, True):
        first, numbers, good, mins, maxs = asked(footers, sizes, leaf, old=old)
        expected = [chunk for footer in footers for chunk in decoded(footer, leaf[0], old)]
        assert list(zip(numbers, mins, maxs, strict=True)) == expected
        assert first == [0, *np.cumsum([LazyFileMetaData(footer).num_row_groups for footer in footers])]
        assert all(good)
    assert asked(footers, sizes, leaf, modern=False)[3] == [None] * first[-1]


def test_chunks_that_are_not_what_the_schema_says() -> None:
    footer, size = FILES[0]
    for leaf in ((0, ["id"], 2), (0, ["other"], 1), (0, ["id", "id"], 1), (1, ["id"], 1), (99, ["id"], 1)):
        assert asked([footer], [size], leaf)[2] == [False, False]
    assert asked([footer], [50], LEAVES[0])[2] == [False, False]  # pages beyond the end of the file
    assert asked([b"\x15"], [50], LEAVES[0])[:3:2] == ([0, 1], [False])
    assert asked([], [], LEAVES[0])[0] == [0]
    with pytest.raises(KernelError):
        asked([footer], [], LEAVES[0])


@pytest.mark.parametrize("k", range(len(FILES)))
def test_damaged_footers(k: int) -> None:
    """Whatever byte is wrong: what is taken for good reads as the decoder reads it."""
    footer, size = FILES[k]
    sound = 0
    for at in range(len(footer)):
        for value in (0, footer[at] ^ 1, footer[at] ^ 0x80, 0xFF, 0x19):
            bad = footer[:at] + bytes([value]) + footer[at + 1 :]
            first, numbers, good, mins, maxs = asked([footer, bad], [size, size], LEAVES[at % 5], old=True)
            if not all(good[first[1] :]) or kernels.footer_frames([bad])[0][0] < 0:
                continue
            try:
                expected = decoded(bad, LEAVES[at % 5][0], old=True)
            except CorruptFileError:
                continue  # one that the dataset does not believe either: it decodes the first of each kind
            sound += 1
            assert list(zip(numbers, mins, maxs, strict=True))[first[1] :] == expected
        asked([footer[:at]], [size], LEAVES[0])
    assert sound > len(footer) // 4


# ---- filters -------------------------------------------------------------------------------------------------------


def probe(
    path: Path, filters: list[tuple[int, int]], hashes: Any, most: int = 1 << 20, status: Any = None
) -> list[int]:
    if kernels.probe_filters is None:
        pytest.skip("no positioned reads here")
    now = os.stat(path) if path.exists() else os.stat(path.parent)
    status = [now.st_size, now.st_mtime_ns, now.st_ino] if status is None else status
    offsets, lengths = np.array(filters, np.int64).reshape(-1, 2).T
    return list(
        kernels.probe_filters(
            [os.fsencode(path)], np.array(status, np.int64), np.zeros(len(filters), np.int64),
            np.ascontiguousarray(offsets), np.ascontiguousarray(lengths), np.array(hashes, np.uint64), most,
        )
    )  # fmt: skip


@pytest.mark.parametrize("num_bytes", [32, 1024, 4096, 64 << 10, 512 << 10])
def test_answers_of_filters(num_bytes: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(num_bytes)
    inside = rng.integers(0, 2**64, num_bytes // 4, np.uint64)
    filter_ = BloomFilter.empty(num_bytes)
    filter_.insert_hashes(inside)
    header, bitset = serialize_filter(filter_.bitset)
    path = tmp_path / "f"
    path.write_bytes(b"PAR1" + header + bitset.tobytes() + bytes(8))
    length = len(header) + num_bytes
    for count in (0, 1, 3, 64, 1000):
        for _ in range(20):
            hashes = rng.integers(0, 2**64, count, np.uint64)
            if rng.random() < 0.3 and count:
                hashes[rng.integers(count)] = rng.choice(inside)
            expected = int(filter_.check_hash(hashes).any())
            assert probe(path, [(4, length), (4, 0)], hashes) == [expected, expected]
    one = inside[:1]
    unusable = [(0, 0), (-1, 0), (3, 0), (5, length), (4, length + 1), (4, length - 1), (4, -1), (10**9, 0), (4, 20)]
    assert probe(path, unusable, one) == [2] * len(unusable)
    assert probe(path, [(4, length)], one, most=num_bytes - 1) == [2]
    now = os.stat(path)
    for status in (
        [now.st_size + 1, now.st_mtime_ns, now.st_ino],
        [now.st_size, 0, now.st_ino],
        [now.st_size, now.st_mtime_ns, 0],
    ):
        assert probe(path, [(4, length)], one, status=status) == [2]
    assert probe(tmp_path / "missing", [(4, length)], one) == [2]


def test_headers_of_filters(tmp_path: Path) -> None:
    """A header of any other kind is not used: whoever reads the file by itself says why."""
    filter_ = BloomFilter.empty(64)
    header, bitset = serialize_filter(filter_.bitset)
    path = tmp_path / "f"
    for at in range(len(header)):
        for value in range(0, 256, 3):
            changed = header[:at] + bytes([value]) + header[at + 1 :]
            path.write_bytes(b"PAR1" + changed + bitset.tobytes() + bytes(8))
            (answer,) = probe(path, [(4, len(header) + 64)], [1, 2])
            assert answer == (0 if changed == header else 2)
            assert probe(path, [(4, 0)], [1, 2])[0] in (0, 2)


def test_arguments_of_probes(tmp_path: Path) -> None:
    if kernels.probe_filters is None:
        pytest.skip("no positioned reads here")
    one, none = np.zeros(1, np.int64), np.zeros(0, np.int64)
    hashes = np.zeros(1, np.uint64)
    assert list(kernels.probe_filters([], none, none, none, none, hashes, 1)) == []
    for files in (one - 1, one + 1, np.array([1, 0])):
        with pytest.raises(KernelError):
            kernels.probe_filters([b"x"], np.zeros(3, np.int64), files, files, files, hashes, 1)
    with pytest.raises(KernelError):
        kernels.probe_filters([b"x"], one, one, one, one, hashes, 1)
    with pytest.raises(KernelError):
        kernels.probe_filters(["x"], np.zeros(3, np.int64), one, one, one, hashes, 1)  # type: ignore[list-item]
