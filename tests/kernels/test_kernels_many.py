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
from pyparq.format.chunk_numbers import ODD, BoundPlaces, ChunkNumbers, stored_path
from pyparq.format.lazy_footer import LazyFileMetaData
from pyparq.format.thrift_codec import column_chunks_of_footers, serialize
from pyparq.index.bloom_filter import BloomFilter, serialize_filter
from pyparq.kernels import KernelError
from pyparq.read.footers.chunks import numbers_of
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


def asked(footers: list[bytes], leaf: Any) -> Any:
    column, path, _ = leaf
    first, rows, stack = column_chunks_of_footers(footers, np.array([column], np.int64), [stored_path(path)], 5)
    return first.tolist(), rows.tolist(), [ChunkNumbers(*chunk) for chunk in stack[:, :, 0].T.tolist()]


def decoded(footer: bytes, column: int) -> list[ChunkNumbers]:
    lazy, found = LazyFileMetaData(footer), []
    for group in range(lazy.num_row_groups):
        raw = lazy.column_chunk(group, column)
        found.append(numbers_of(raw, raw.meta_data))
    return found


def bounds_stored(footer: bytes, column: int) -> list[list[bytes | None]]:
    lazy, found = LazyFileMetaData(footer), []
    for group in range(lazy.num_row_groups):
        st = lazy.column_chunk(group, column).meta_data.statistics
        found.append([None] * 4 if st is None else [st.min_value, st.max_value, st.min, st.max])
    return found


def bounds_at(footer: bytes, chunk: ChunkNumbers) -> list[bytes | None]:
    starts = np.array([chunk.min_value, chunk.max_value, chunk.min, chunk.max])
    sizes = np.array([chunk.min_value_size, chunk.max_value_size, chunk.min_size, chunk.max_size])
    return BoundPlaces([b"", footer], np.ones(4, np.int64)).bytes_at(starts, sizes)


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: ".".join(leaf[1]))
def test_chunks_of_a_leaf(leaf: Any) -> None:
    footers = [footer for footer, _ in FILES]
    first, rows, chunks = asked(footers, leaf)
    assert [chunk[:19] for chunk in chunks] == [c[:19] for footer in footers for c in decoded(footer, leaf[0])]
    groups = [LazyFileMetaData(footer) for footer in footers]
    assert first == [0, *np.cumsum([lazy.num_row_groups for lazy in groups])]
    assert rows == [lazy.num_rows(k) for lazy in groups for k in range(lazy.num_row_groups)]
    for k, footer in enumerate(footers):
        found = [bounds_at(footer, chunk) for chunk in chunks[first[k] : first[k + 1]]]
        assert found == bounds_stored(footer, leaf[0])


def test_chunks_that_are_not_what_the_schema_says() -> None:
    footer = FILES[0][0]
    for leaf in ((0, ["other"], 1), (0, ["id", "id"], 1), (1, ["id"], 1), (99, ["id"], 1)):
        assert [chunk.flags & ODD for chunk in asked([footer], leaf)[2]] == [ODD, ODD]
    first, rows, chunks = asked([b"\x15"], LEAVES[0])
    assert (first, rows, [chunk.flags for chunk in chunks]) == ([0, 1], [-1], [ODD])
    assert asked([], LEAVES[0]) == ([0], [], [])
    with pytest.raises(KernelError):
        column_chunks_of_footers([footer], np.array([1, 0]), [b"", b""], 5)
    with pytest.raises(KernelError):
        column_chunks_of_footers([footer], np.array([0]), [], 5)
    with pytest.raises(KernelError):
        BoundPlaces([b"abc"]).bytes_at(np.array([2]), np.array([2]))
    with pytest.raises(KernelError):
        BoundPlaces([b"abc"], np.ones(1, np.int64)).bytes_at(np.array([0]), np.array([1]))


@pytest.mark.parametrize("k", range(len(FILES)))
def test_damaged_footers(k: int) -> None:
    """Whatever byte is wrong: what is not odd reads as the decoder reads it."""
    footer, _ = FILES[k]
    sound = 0
    for at in range(len(footer)):
        for value in (0, footer[at] ^ 1, footer[at] ^ 0x80, 0xFF, 0x19):
            bad = footer[:at] + bytes([value]) + footer[at + 1 :]
            first, rows, chunks = asked([footer, bad], LEAVES[at % 5])
            part = chunks[first[1] :]
            odd = any(chunk.flags & ODD for chunk in part) or min(rows[first[1] :], default=0) < 0
            if odd or kernels.footer_frames([bad])[0][0] < 0:
                continue
            try:
                expected = [chunk[:19] for chunk in decoded(bad, LEAVES[at % 5][0])]
            except CorruptFileError:
                continue  # one whose other parts the dataset's model refuses
            sound += 1
            assert [chunk[:19] for chunk in part] == expected
            assert [bounds_at(bad, chunk) for chunk in part] == bounds_stored(bad, LEAVES[at % 5][0])
        asked([footer[:at]], LEAVES[0])
    assert sound > len(footer) // 4


# ---- filters -------------------------------------------------------------------------------------------------------


def probe(
    path: Path, filters: list[tuple[int, int]], hashes: Any, most: int = 1 << 20, status: Any = None
) -> list[int]:
    if kernels.probe_filters is None:
        pytest.skip("no positioned reads here")
    now = os.stat(path) if path.exists() else os.stat(path.parent)
    status = [now.st_size, now.st_mtime_ns, now.st_ino, now.st_ctime_ns] if status is None else status
    offsets, lengths = np.array(filters, np.int64).reshape(-1, 2).T
    return list(
        kernels.probe_filters(
            [os.fsencode(path)], np.array(status, np.int64), np.zeros(len(filters), np.int64),
            np.ascontiguousarray(offsets), np.ascontiguousarray(lengths), np.array(hashes, np.uint64), most,
        )[0]
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
    listed = [now.st_size, now.st_mtime_ns, now.st_ino, now.st_ctime_ns]
    for k in range(4):
        other = [number + (at == k) for at, number in enumerate(listed)]
        assert probe(path, [(4, length)], one, status=other) == [2]
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
    assert list(kernels.probe_filters([], none, none, none, none, hashes, 1)[0]) == []
    for files in (one - 1, one + 1, np.array([1, 0])):
        with pytest.raises(KernelError):
            kernels.probe_filters([b"x"], np.zeros(4, np.int64), files, files, files, hashes, 1)
    with pytest.raises(KernelError):
        kernels.probe_filters([b"x"], one, one, one, one, hashes, 1)
    with pytest.raises(KernelError):
        kernels.probe_filters(["x"], np.zeros(4, np.int64), one, one, one, hashes, 1)  # type: ignore[list-item]
