"""The lazy footer against the full decode, against pyarrow's reading of the same files, and under damage."""

from __future__ import annotations

import io
import pickle
import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import corpus_path

from pyparq.format import lazy_footer as footer_module
from pyparq.format.generated.ttypes import (
    ColumnChunk,
    ColumnMetaData,
    FileMetaData,
    PageHeader,
    PageType,
    RowGroup,
    SchemaElement,
    Type,
)
from pyparq.format.lazy_footer import LazyFileMetaData
from pyparq.format.thrift_codec import ThriftDecodeError, ThriftTruncatedError, deserialize, serialize
from pyparq.kernels._native import thrift_index_footer

CORPUS = corpus_path()
# Its list of encodings has elements of a type that no encoding has.
REFUSED = {"ARROW-GH-41317.parquet"}


def footer_of(data: bytes) -> bytes:
    size = int.from_bytes(data[-8:-4], "little")
    return data[-8 - size : -8]


def written(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def small_file() -> bytes:
    table = pa.table(
        {
            "i": pa.array([1, None, 3, 4, 5, 6], pa.int32()),
            "s": ["a", "b", "grüße", None, "e", "f"],
            "d": [1.5, float("nan"), -0.0, 0.0, None, 2.0],
            "l": [[1], [], None, [2, 3], [4], [5]],
        },
        metadata={"k": "v", "raw": b"\xff\x00"},
    )
    return written(table, row_group_size=2, write_page_index=True, compression="zstd", store_schema=True)


def wide_file() -> bytes:
    columns = {f"column_{i:04d}": pa.array(range(5), pa.int64()) for i in range(400)}
    return written(pa.table(columns), row_group_size=1)


@pytest.fixture(scope="module", params=["small", "wide", "no rows"])
def file(request: pytest.FixtureRequest) -> bytes:
    if request.param == "no rows":
        return written(pa.table({"a": pa.array([], pa.int64())}))
    return small_file() if request.param == "small" else wide_file()


def assembled(lazy: LazyFileMetaData) -> FileMetaData:
    """What the lazy pieces add up to."""
    groups = []
    for i in range(lazy.num_row_groups):
        group, _ = deserialize(RowGroup, serialize(lazy.row_group(i)))
        group.columns = [lazy.column_chunk(i, j) for j in range(lazy.num_columns(i))]
        groups.append(group)
    meta, _ = deserialize(FileMetaData, serialize(lazy.meta))
    meta.row_groups, meta.schema = groups, lazy.schema()
    return meta


def test_pieces_add_up_to_the_whole(file: bytes) -> None:
    data = footer_of(file)
    lazy = LazyFileMetaData(data)
    whole, end = deserialize(FileMetaData, data)
    assert end == lazy.end == len(data)
    assert lazy.full() == whole
    assert serialize(whole) == data
    assert lazy.meta.row_groups == lazy.meta.schema == []
    assert all(lazy.row_group(i).columns == [] for i in range(lazy.num_row_groups))
    assert assembled(lazy) == whole
    assert serialize(assembled(lazy)) == data


def test_same_as_pyarrow_reads(file: bytes) -> None:
    theirs = pq.read_metadata(io.BytesIO(file))
    lazy = LazyFileMetaData(footer_of(file))
    assert lazy.meta.num_rows == theirs.num_rows
    assert lazy.meta.created_by == theirs.created_by
    assert lazy.num_row_groups == theirs.num_row_groups
    for i in range(theirs.num_row_groups):
        group = theirs.row_group(i)
        assert lazy.row_group(i).num_rows == group.num_rows
        assert lazy.row_group(i).total_byte_size == group.total_byte_size
        assert lazy.num_columns(i) == group.num_columns
        for j in range(group.num_columns):
            mine, column = lazy.column_chunk(i, j).meta_data, group.column(j)
            assert mine is not None
            assert ".".join(mine.path_in_schema) == column.path_in_schema
            assert mine.data_page_offset == column.data_page_offset
            assert mine.dictionary_page_offset == column.dictionary_page_offset
            assert mine.total_compressed_size == column.total_compressed_size
            assert mine.num_values == column.num_values
            assert Type._VALUES_TO_NAMES[mine.type] == column.physical_type
            nulls = None if mine.statistics is None else mine.statistics.null_count
            assert nulls == (column.statistics.null_count if column.is_stats_set else None)


def test_raw_metadata_value_survives() -> None:
    pairs = LazyFileMetaData(footer_of(small_file())).meta.key_value_metadata
    assert pairs is not None
    assert {pair.key: pair.value for pair in pairs}.items() >= {"k": "v", "raw": b"\xff\x00"}.items()


def test_only_what_is_asked_for_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[tuple[str, int]] = []

    def watched(cls: type, data: bytes, offset: int = 0) -> Any:
        decoded.append((cls.__name__, len(data)))
        return deserialize(cls, data, offset)

    monkeypatch.setattr(footer_module, "deserialize", watched)
    data = footer_of(wide_file())
    lazy = LazyFileMetaData(data)
    for _ in range(2):
        for i in range(lazy.num_row_groups):
            assert lazy.column_chunk(i, 123).meta_data.path_in_schema == ["column_0123"]  # type: ignore[union-attr]
    assert lazy.row_group(2) is lazy.row_group(2)
    assert [name for name, _ in decoded] == ["FileMetaData", *["ColumnChunk"] * 5, "RowGroup"]
    assert max(size for name, size in decoded if name != "FileMetaData") < 300
    assert sum(size for _, size in decoded) < len(data) / 3


def test_outside_is_an_index_error() -> None:
    lazy = LazyFileMetaData(footer_of(small_file()))
    for row_group, column in ((-1, 0), (3, 0), (0, -1), (0, 4), (2, 4)):
        with pytest.raises(IndexError):
            lazy.column_chunk(row_group, column)
    for row_group in (-1, 3):
        with pytest.raises(IndexError):
            lazy.row_group(row_group)
        with pytest.raises(IndexError):
            lazy.num_columns(row_group)


def test_bytes_behind_the_struct_are_left_alone() -> None:
    data = footer_of(small_file())
    lazy = LazyFileMetaData(memoryview(b"x" + data + b"signature")[1:])
    assert lazy.end == len(data)
    assert lazy.full() == LazyFileMetaData(bytearray(data)).full()


def test_pickles() -> None:
    lazy = LazyFileMetaData(footer_of(small_file()) + b"rest")
    again = pickle.loads(pickle.dumps(lazy))
    assert again.end == lazy.end
    assert assembled(again) == assembled(lazy)


def test_many_threads_see_one_object() -> None:
    lazy = LazyFileMetaData(footer_of(wide_file()))
    seen: list[list[ColumnChunk]] = []

    def read() -> None:
        seen.append([lazy.column_chunk(i, j) for i in range(5) for j in range(400)])

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 4
    assert all(a is b for other in seen[1:] for a, b in zip(seen[0], other, strict=True))


def test_row_groups_may_list_different_columns_or_none() -> None:
    def chunk(name: str) -> ColumnChunk:
        meta = ColumnMetaData(
            type=Type.INT32, encodings=[], path_in_schema=[name], codec=0, num_values=0,
            total_uncompressed_size=0, total_compressed_size=0, data_page_offset=4,
        )  # fmt: skip
        return ColumnChunk(file_offset=0, meta_data=meta)

    groups = [
        RowGroup(columns=[chunk(f"{g}{c}") for c in range(n)], total_byte_size=g, num_rows=g)
        for g, n in enumerate([2, 0, 17, 1])
    ]
    meta = FileMetaData(version=1, schema=[SchemaElement(name="root")], num_rows=6, row_groups=groups)
    lazy = LazyFileMetaData(serialize(meta))
    assert [lazy.num_columns(i) for i in range(4)] == [2, 0, 17, 1]
    assert assembled(lazy) == meta
    assert lazy.column_chunk(2, 16).meta_data.path_in_schema == ["216"]  # type: ignore[union-attr]
    with pytest.raises(IndexError):
        lazy.column_chunk(1, 0)


def test_index_by_hand() -> None:
    # version 1; schema of one element named "r"; 0 rows; one row group without columns
    data = bytes.fromhex("1502 191c 48017200 1600 191c 190c1600160000 00")
    end, schema, row_groups, groups, first, chunks = thrift_index_footer(data)
    assert (end, schema, row_groups) == (20, (3, 8), (11, 19))
    assert groups.tolist() == [12, 19, 13, 14, 0]
    assert first.tolist() == [0, 1]
    assert chunks.tolist() == [14]
    assert {array.dtype for array in (groups, first, chunks)} == {np.dtype(np.int64)}


BAD = {
    "empty": "",
    "nothing in it": "00",
    "no row groups": "1502 191c 48017200 1600 00",
    "no schema": "1502 2600 190c 00",
    "row groups twice": "1502 191c 48017200 1600 190c 0908 0c 00",
    "columns twice": "1502 191c 48017200 1600 191c 190c1600160009020c00 00",
    "row group without columns": "1502 191c 48017200 1600 191c 2600160000 00",
    "row group without rows": "1502 191c 48017200 1600 191c 190c160000 00",
    "rows twice": "1502 191c 48017200 1600 191c 190c16001600060600 00 00",
    "row groups that are numbers": "1502 191c 48017200 1600 1915 02 00",
    "columns that are numbers": "1502 191c 48017200 1600 191c 1915021600160000 00",
    "more row groups than bytes": "1502 191c 48017200 1600 19fcffffffff07 00",
    "more columns than bytes": "1502 191c 48017200 1600 191c 19fcffffffff0f 00",
}


@pytest.mark.parametrize("what", BAD)
def test_bad_footers_are_refused(what: str) -> None:
    with pytest.raises(ThriftDecodeError, match="FileMetaData"):
        LazyFileMetaData(bytes.fromhex(BAD[what]))


def test_truncation_at_every_byte() -> None:
    data = footer_of(small_file())
    for n in range(len(data)):
        with pytest.raises(ThriftTruncatedError):
            LazyFileMetaData(data[:n])


@pytest.mark.fuzz
def test_damage_gives_errors_and_lazy_agrees_with_full() -> None:
    rng = random.Random(42)
    originals = [footer_of(small_file()), footer_of(written(pa.table({"x": [1, 2], "y": ["a", "b"]})))]
    outcomes = {True: 0, False: 0}
    for _ in range(3000):
        data = bytearray(rng.choice(originals))
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        try:
            whole = repr(deserialize(FileMetaData, bytes(data))[0])
        except ThriftDecodeError:
            whole = ""
        try:
            pieces = repr(assembled(LazyFileMetaData(bytes(data))))
        except ThriftDecodeError:
            pieces = ""
        assert pieces == whole
        outcomes[bool(whole)] += 1
    assert min(outcomes.values()) > 300


def corpus_files() -> list[Any]:
    if CORPUS is None:
        return [pytest.param(None, id="absent")]  # one test all the same: its fixture says what is missing
    found = sorted(CORPUS.glob("**/*.parquet")) + sorted(CORPUS.glob("**/*plaintext_footer.parquet.encrypted"))
    return [pytest.param(path, id=str(path.relative_to(CORPUS))) for path in found]


@pytest.mark.parametrize("path", corpus_files())
@pytest.mark.usefixtures("corpus")
def test_corpus(path: Path) -> None:
    data = footer_of(path.read_bytes())
    lazy = LazyFileMetaData(data)
    if path.name in REFUSED:
        with pytest.raises(ThriftDecodeError, match="encodings"):
            lazy.full()
        return
    whole, end = deserialize(FileMetaData, data)
    assert len(data) - end == (28 if path.suffix == ".encrypted" else 0)  # the footer's signature
    assert lazy.end == end
    assert assembled(lazy) == lazy.full() == whole
    # pyarrow builds an Arrow schema with the metadata, and refuses one that this file's maps contradict.
    foreign = path.suffix != ".encrypted" and path.parent.name == "data"
    if foreign and path.name != "incorrect_map_schema.parquet":
        theirs = pq.read_metadata(path)
        assert (whole.num_rows, len(whole.row_groups)) == (theirs.num_rows, theirs.num_row_groups)
        assert lazy.meta.created_by == (theirs.created_by or None)


def page_headers(data: bytes, meta: ColumnMetaData) -> list[PageHeader]:
    offsets = [meta.data_page_offset, meta.dictionary_page_offset or meta.data_page_offset]
    position, values, headers = min(offsets), 0, []
    while values < meta.num_values:
        header, body = deserialize(PageHeader, data, position)
        headers.append(header)
        position = body + header.compressed_page_size
        inner = header.data_page_header or header.data_page_header_v2
        values += inner.num_values if inner else 0
    assert values == meta.num_values
    assert position <= min(offsets) + meta.total_compressed_size
    return headers


def test_page_headers_of_foreign_files() -> None:
    table = pa.table({"a": list(range(5000)), "b": [str(i % 7) for i in range(5000)]})
    data = written(table, data_page_size=1000, write_batch_size=100, data_page_version="2.0")
    lazy = LazyFileMetaData(footer_of(data))
    kinds = set()
    for j in range(2):
        meta = lazy.column_chunk(0, j).meta_data
        assert meta is not None
        headers = page_headers(data, meta)
        kinds |= {header.type for header in headers}
        assert {stats.count for stats in meta.encoding_stats or []} <= set(range(1, len(headers) + 1))
        assert sum(stats.count for stats in meta.encoding_stats or []) == len(headers)
    assert kinds == {PageType.DICTIONARY_PAGE, PageType.DATA_PAGE_V2}
