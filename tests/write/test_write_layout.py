"""Where things stand in a file, and what the footer says of them, asserted to the byte."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from written import Written, crc_of, write

import pyparq
from pyparq.errors import DataError, OptionError
from pyparq.format import ttypes as tt

N = 5_000
RNG = np.random.default_rng(7)
TABLE = pa.table(
    {
        "id": RNG.permutation(N),
        "text": [None if k % 9 == 0 else f"value {k % 40}" for k in range(N)],
        "flag": pa.array(RNG.random(N) < 0.5),
        "x": pa.array([float("nan")] * N),  # no ColumnIndex can be written for it
        "items": pa.array([list(range(k % 4)) if k % 5 else None for k in range(N)], pa.list_(pa.int32())),
    }
)
GROUP = 1_500
COLUMNS = 5


def runs(file: Written) -> list[tuple[int, int, str, int, int]]:
    """(start, end, what, row group, column) of everything but magic and footer, in file order."""
    found = []
    for g, group in enumerate(file.meta.row_groups):
        for c, chunk in enumerate(group.columns):
            meta = chunk.meta_data
            start = meta.data_page_offset if meta.dictionary_page_offset is None else meta.dictionary_page_offset
            found.append((start, start + meta.total_compressed_size, "chunk", g, c))
            if meta.bloom_filter_offset is not None:
                end = meta.bloom_filter_offset + meta.bloom_filter_length
                found.append((meta.bloom_filter_offset, end, "bloom", g, c))
            for name in ("column_index", "offset_index"):
                start = getattr(chunk, f"{name}_offset")
                if start is not None:
                    found.append((start, start + getattr(chunk, f"{name}_length"), name, g, c))
    return sorted(found)


def assert_no_gaps(file: Written) -> None:
    at = 4
    for start, end, *_ in runs(file):
        assert start == at
        at = end
    assert at == file.footer_start


def places(file: Written, what: str) -> list[tuple[int, int]]:
    return [(g, c) for _, _, kind, g, c in runs(file) if kind == what]


ALL = [(g, c) for g in range(4) for c in range(COLUMNS)]
BLOOMS = ["text", "id", "items"]


def test_footer_layout() -> None:
    file = write(TABLE, row_group_size=GROUP, bloom_filters=BLOOMS)
    assert_no_gaps(file)
    order = [what for _, _, what, _, _ in runs(file)]
    assert order == ["chunk"] * 20 + ["bloom"] * 12 + ["column_index"] * 16 + ["offset_index"] * 20
    assert places(file, "chunk") == ALL
    # By row group, then in the order of the schema, whatever the order of the names was.
    assert places(file, "bloom") == [(g, c) for g in range(4) for c in (0, 1, 4)]
    assert places(file, "column_index") == [(g, c) for g, c in ALL if c != 3]
    assert places(file, "offset_index") == ALL


def test_row_group_layout() -> None:
    file = write(TABLE, row_group_size=GROUP, bloom_filters=BLOOMS, bloom_filter_layout="row_group")
    assert_no_gaps(file)
    order = [what for _, _, what, _, _ in runs(file)]
    assert order == (["chunk"] * 5 + ["bloom"] * 3) * 4 + ["column_index"] * 16 + ["offset_index"] * 20
    assert places(file, "bloom") == [(g, c) for g in range(4) for c in (0, 1, 4)]


def test_layouts_differ_only_in_place() -> None:
    footer = write(TABLE, row_group_size=GROUP, bloom_filters=BLOOMS)
    group = write(TABLE, row_group_size=GROUP, bloom_filters=BLOOMS, bloom_filter_layout="row_group")
    for g, c in ALL:
        assert footer.bitset(g, c) == group.bitset(g, c)
        assert [p.body for p in footer.pages(g, c)] == [p.body for p in group.pages(g, c)]
        assert footer.column_index(g, c) == group.column_index(g, c)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy"])
def test_footer_says_what_the_pages_are(version: str, codec: str) -> None:
    file = write(
        TABLE, row_group_size=GROUP, max_rows_per_page=400, data_page_version=version, compression=codec,
        dictionary_pagesize_limit=4000,
    )  # fmt: skip
    start = 4
    for g, group in enumerate(file.meta.row_groups):
        assert group.file_offset == start
        assert group.ordinal == g
        assert group.num_rows == (GROUP if g < 3 else N - 3 * GROUP)
        for c, chunk in enumerate(group.columns):
            meta = chunk.meta_data
            assert chunk.file_offset == 0
            assert chunk.file_path is None
            check_chunk(file, g, c, meta, version, group.num_rows)
        assert group.total_byte_size == sum(c.meta_data.total_uncompressed_size for c in group.columns)
        assert group.total_compressed_size == sum(c.meta_data.total_compressed_size for c in group.columns)
        start += group.total_compressed_size


def check_chunk(file: Written, g: int, c: int, meta: Any, version: str, rows: int) -> None:
    pages = file.pages(g, c)
    data_type = tt.PageType.DATA_PAGE if version == "1.0" else tt.PageType.DATA_PAGE_V2
    has_dictionary = pages[0].header.type == tt.PageType.DICTIONARY_PAGE
    assert (meta.dictionary_page_offset is not None) == has_dictionary
    data_pages = pages[1:] if has_dictionary else pages
    assert meta.data_page_offset == data_pages[0].offset
    assert all(p.header.type == data_type for p in data_pages)
    assert sum(p.detail.num_values for p in data_pages) == meta.num_values
    counted: dict[tuple[int, int], int] = {}
    for p in pages:
        key = (p.header.type, p.detail.encoding)
        counted[key] = counted.get(key, 0) + 1
        assert p.header.crc == crc_of(p.body)
        assert getattr(p.detail, "statistics", None) is None
    assert counted == {(s.page_type, s.encoding): s.count for s in meta.encoding_stats}
    assert set(meta.encodings) >= {p.detail.encoding for p in pages}
    assert meta.total_compressed_size == sum(p.size for p in pages)
    assert meta.total_uncompressed_size == sum(p.header_size + p.header.uncompressed_page_size for p in pages)
    places = file.offset_index(g, c).page_locations
    assert [(x.offset, x.compressed_page_size) for x in places] == [(p.offset, p.size) for p in data_pages]
    assert [x.first_row_index for x in places] == list(range(0, rows, 400))
    if version == "2.0":
        assert sum(p.detail.num_rows for p in data_pages) == rows


def test_values_that_do_not_shrink_are_stored_as_they_are() -> None:
    noise = pa.table({"x": RNG.integers(0, 1 << 62, 4000), "zeros": np.zeros(4000, np.int64)})
    file = write(noise, data_page_version="2.0", use_dictionary=False, compression="snappy")
    assert [file.pages(0, c)[0].detail.is_compressed for c in (0, 1)] == [False, True]
    assert file.pages(0, 0)[0].header.compressed_page_size == 32_003  # levels of 3 bytes


def test_checksums_can_be_left_out() -> None:
    file = write(TABLE, write_page_checksum=False)
    assert {p.header.crc for c in range(COLUMNS) for p in file.pages(0, c)} == {None}


def test_page_index_and_statistics_can_be_left_out() -> None:
    bare = write(TABLE, write_page_index=False, write_size_statistics=False, write_statistics=False)
    for c in range(COLUMNS):
        chunk = bare.chunk(0, c)
        assert (chunk.offset_index_offset, chunk.column_index_offset) == (None, None)
        assert (chunk.meta_data.statistics, chunk.meta_data.size_statistics) == (None, None)
    some = write(TABLE, write_statistics=["id"])
    assert [some.chunk(0, c).meta_data.statistics is not None for c in range(COLUMNS)] == [True] + [False] * 4
    assert [some.column_index(0, c) is not None for c in range(COLUMNS)] == [True] + [False] * 4
    assert all(some.chunk(0, c).offset_index_offset for c in range(COLUMNS))


def test_file_metadata() -> None:
    file = write(TABLE)
    assert file.meta.version == 1
    assert file.meta.num_rows == N
    assert file.meta.created_by.startswith("pyparq version 0.")
    assert " (build " in file.meta.created_by
    assert all(o.TYPE_ORDER is not None for o in file.meta.column_orders)
    assert len(file.meta.column_orders) == COLUMNS
    assert pq.ParquetFile(io.BytesIO(file.data)).metadata.created_by == file.meta.created_by


def test_key_value_metadata_until_close() -> None:
    sink = io.BytesIO()
    schema = TABLE.schema.with_metadata({"from": "schema", "both": "schema", "raw": b"\xff\x00"})
    with pyparq.ParquetWriter(sink, key_value_metadata={"both": "options", b"bytes": b"ok"}) as writer:
        writer.write(TABLE.cast(schema))
        writer.add_key_value_metadata({"rows": str(N), "none": None, "bytes": "changed"})
    stored = {pair.key: pair.value for pair in Written(sink.getvalue()).meta.key_value_metadata}
    assert stored == {
        "both": "options", "bytes": "changed", "from": "schema", "raw": b"\xff\x00", "rows": str(N), "none": None,
    }  # fmt: skip
    assert pq.read_metadata(sink).metadata[b"both"] == b"options"
    with pytest.raises(DataError, match="not text"):
        pyparq.ParquetWriter(io.BytesIO(), key_value_metadata={7: "x"})
    with pytest.raises(DataError, match="'x' has a value of int"):
        pyparq.ParquetWriter(io.BytesIO(), key_value_metadata={"x": 7})


def test_arrow_schema_is_not_copied_into_the_footer() -> None:
    assert write(TABLE.cast(TABLE.schema.with_metadata({"ARROW:schema": "x"}))).meta.key_value_metadata is None


def same_rows(sink: io.BytesIO) -> bool:
    """Did pyarrow read the rows of TABLE? (Without the column of NaN, which equals nothing.)"""
    return pq.read_table(sink).drop_columns("x").to_pydict() == TABLE.drop_columns("x").to_pydict()


def row_counts(data: bytes) -> list[int]:
    return [g.num_rows for g in Written(data).meta.row_groups]


def test_row_groups_gather_over_calls() -> None:
    sink = io.BytesIO()
    with pyparq.ParquetWriter(sink, row_group_size=1000) as writer:
        for start in range(0, N, 300):
            writer.write(TABLE.slice(start, 300))
    assert row_counts(sink.getvalue()) == [1000] * 5
    assert same_rows(sink)


def test_row_group_boundaries_by_hand() -> None:
    sink = io.BytesIO()
    with pyparq.ParquetWriter(sink, row_group_size=1000) as writer:
        writer.write(TABLE.slice(0, 700))
        writer.flush()
        writer.flush()
        writer.write(TABLE.slice(700, 1300), row_group_size=600)
        writer.write_table(TABLE.slice(2000, 100))
        writer.write(TABLE.slice(2100, 50), row_group_size=5000)
        for batch in TABLE.slice(2150).to_batches():
            writer.write_batch(batch)
    assert row_counts(sink.getvalue()) == [700, 600, 600, 100, 100, 50, 1000, 1000, 850]
    assert same_rows(sink)


def test_arrays_may_be_reused_after_write() -> None:
    sink = io.BytesIO()
    buffer = np.empty(700, np.int64)
    with pyparq.ParquetWriter(sink, row_group_size=1000, compression=None) as writer:
        for k in range(10):
            buffer[:] = np.arange(700) + 700 * k
            writer.write({"a": buffer})
            buffer[:] = -1
    assert pq.read_table(sink)["a"].to_pylist() == list(range(7000))
    assert row_counts(sink.getvalue()) == [1000] * 7


def test_row_groups_by_bytes() -> None:
    texts = ["x" * (k % 500) for k in range(4000)]
    table = pa.table({"s": texts, "n": list(range(4000))})
    sink = io.BytesIO()
    pyparq.write_table(table, sink, row_group_bytes=100_000)
    counts = row_counts(sink.getvalue())
    sizes, at = [], 0
    for count in counts:
        sizes.append(sum(len(t) + 12 for t in texts[at : at + count]))
        assert sum(len(t) + 12 for t in texts[at : at + count + 1]) > 100_000 or at + count == 4000
        at += count
    assert max(sizes) <= 100_000
    assert pq.read_table(sink).equals(table)
    pyparq.write_table(table.slice(0, 20), sink := io.BytesIO(), row_group_bytes=1)
    assert row_counts(sink.getvalue()) == [1] * 20


def test_no_rows() -> None:
    for data in (TABLE.slice(0, 0), TABLE.schema.empty_table()):
        file = write(data)
        assert (file.meta.num_rows, file.meta.row_groups) == (0, [])
        assert pq.read_table(io.BytesIO(file.data)).schema.names == TABLE.schema.names
    sink = io.BytesIO()
    pyparq.ParquetWriter(sink, pyparq.schema({"a": "int64"})).close()
    assert pq.read_table(sink).to_pydict() == {"a": []}
    with pytest.raises(DataError, match="nothing was written and no schema"):
        pyparq.ParquetWriter(io.BytesIO()).close()


def test_schema_decides_what_is_written() -> None:
    sink = io.BytesIO()
    schema = pyparq.schema({"id": "int32", "s": "string?", "p": "decimal(9,2)"})
    from decimal import Decimal

    with pyparq.ParquetWriter(sink, schema) as writer:
        writer.write({"s": ["a", None], "id": [1, 2], "p": [Decimal("1.50"), Decimal(-7)]})
        assert writer.schema is not None
        assert writer.schema.names == ["id", "s", "p"]
    read = pq.read_table(sink)
    assert read.to_pylist() == [
        {"id": 1, "s": "a", "p": Decimal("1.50")}, {"id": 2, "s": None, "p": Decimal("-7.00")},
    ]  # fmt: skip
    assert [read.schema.field(n).nullable for n in ("id", "s", "p")] == [False, True, False]
    for given in (read.schema, {"id": "int32", "s": "string?", "p": "decimal(9,2)"}):
        pyparq.write_table(read, again := io.BytesIO(), schema=given)
        assert pq.read_schema(again).names == ["id", "s", "p"]
    with pytest.raises(OptionError, match="schema must be"):
        pyparq.ParquetWriter(io.BytesIO(), 7)


def test_threads_change_nothing() -> None:
    big = pa.table({"a": RNG.integers(0, 100, 400_000), "s": RNG.integers(0, 1 << 60, 400_000).astype(str)})
    one, many = io.BytesIO(), io.BytesIO()
    pyparq.write_table(big, one, row_group_size=150_000, use_threads=False, bloom_filters=True)
    pyparq.write_table(big, many, row_group_size=150_000, bloom_filters=True)
    assert one.getvalue() == many.getvalue()
