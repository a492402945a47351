"""What peers learn from the footers that pyparq writes: statistics, sizes, sort orders, metadata; and the answers that
they give from statistics alone."""

from __future__ import annotations

import io
import math
import struct
from pathlib import Path
from typing import Any

import datafusion
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interop_tables import FLAT, NS, canonical, reads_as, tables
from test_interop_write import FEW
from written import footer

import pyparq

ORDERED = sorted(set(FLAT) - {"null"})
CUT = 64
"""Longest bound of strings and binaries that is written by default."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("metadata") / "ours.parquet"


def plain(kind: pa.DataType) -> pa.DataType:
    """What a statistic of the type is made of."""
    if isinstance(kind, pa.BaseExtensionType):
        return kind.storage_type
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def ordered(column: pa.ChunkedArray) -> list[Any]:
    """The values that bounds cover, in a form that Python orders as the format does."""
    if pa.types.is_floating(column.type):
        return [float(v) for v in column.to_pylist() if v is not None and not math.isnan(v)]
    values = [v for v in canonical(column) if v is not None]
    return [v.encode() if isinstance(v, str) else v for v in values]


def one(value: Any, kind: pa.DataType) -> Any:
    """A bound that pyarrow shows, in the same form."""
    if isinstance(value, pa.Scalar):
        value = value.as_py()
    if isinstance(value, str):
        return value.encode()
    if pa.types.is_float16(kind):
        return struct.unpack("<e", value)[0]  # pyarrow shows the stored bytes
    if pa.types.is_date64(kind):
        kind = pa.date32()
    return ordered(pa.chunked_array([pa.array([value], kind)]))[0]


@pytest.mark.slow
@settings(max_examples=60, **FEW)
@given(table=tables(ORDERED), size=st.sampled_from([1, 7, 100]))
def test_statistics_of_chunks(path: Path, table: pa.Table, size: int) -> None:
    """pyarrow's view of each chunk: least and greatest value, nulls, values."""
    pyparq.write_table(table, path, row_group_size=size)
    metadata = pq.read_metadata(path)
    assert metadata.num_rows == table.num_rows
    assert metadata.num_row_groups == -(-table.num_rows // size)
    for k in range(metadata.num_row_groups):
        group, rows = metadata.row_group(k), table.slice(k * size, size)
        assert group.num_rows == rows.num_rows
        for c, name in enumerate(table.column_names):
            chunk, column = group.column(c), rows[name]
            stats = chunk.statistics
            assert chunk.num_values == len(column)
            assert stats.null_count == column.null_count
            assert stats.num_values == len(column) - column.null_count
            values = ordered(column)
            assert stats.has_min_max == bool(values), name
            if values:
                check_bounds(stats, plain(table.schema.field(name).type), values, column)


def check_bounds(stats: Any, kind: pa.DataType, values: list[Any], column: pa.ChunkedArray) -> None:
    low, high = one(stats.min, kind), one(stats.max, kind)
    if pa.types.is_time(kind) or pa.types.is_timestamp(kind):
        # Python's times end at microseconds, its datetimes at the year 9999: the stored numbers then.
        factor = NS[reads_as(kind).unit]
        low, high = stats.min_raw * factor, stats.max_raw * factor
    least, greatest = min(values), max(values)
    if isinstance(least, bytes):
        assert low == least[: len(low)]
        assert len(low) == len(least) or len(low) > CUT - 4  # characters stay whole
        assert high == greatest if len(greatest) <= CUT else high >= greatest
    elif pa.types.is_floating(kind) and len(values) < len(column) - column.null_count:
        assert low <= least <= greatest <= high  # beside NaN: see the test of one number beside NaN
    else:
        assert (low, high) == (least, greatest)


@pytest.mark.slow
@settings(max_examples=40, **FEW)
@given(table=tables(ORDERED), size=st.sampled_from([7, 100]))
def test_questions_answered_from_statistics(path: Path, table: pa.Table, size: int) -> None:
    """min, max and count over whole columns: DataFusion and DuckDB take them from footers where they can."""
    names = [n for n in table.column_names if not n.startswith("float") and n not in ("uuid", "json")]
    pyparq.write_table(table.select(names), path, row_group_size=size)
    if not names:
        return
    asked = [f'{f}("{n}") as "{f} {n}"' for n in names for f in ("min", "max", "count")]
    context = datafusion.SessionContext()
    context.register_parquet("t", str(path))
    answers = [context.sql(f"select {', '.join(asked)} from t").to_arrow_table()]
    with duckdb.connect() as connection:
        answers.append(connection.sql(f"select {', '.join(asked)} from '{path}'").to_arrow_table())
    for answer in answers:
        for name in names:
            values = ordered(table[name])
            found = [ordered(answer[f"{f} {name}"]) for f in ("min", "max")]
            assert found == ([[min(values)], [max(values)]] if values else [[], []]), name
            assert answer[f"count {name}"].to_pylist() == [len(values)]


def test_duckdb_sees_what_is_exact(path: Path) -> None:
    long = "y" * 100
    table = pa.table({"t": ["x", long, None], "f": [1.0, math.nan, -2.0], "z": [0.0, 0.0, 0.0], "i": [3, 1, 2]})
    pyparq.write_table(table, path, key_value_metadata={"who": "wir"})
    with duckdb.connect() as connection:
        rows = connection.execute("select * from parquet_metadata(?)", [str(path)])
        names = [d[0] for d in rows.description or ()]
        found = [dict(zip(names, row, strict=True)) for row in rows.fetchall()]
        about = connection.execute("select * from parquet_file_metadata(?)", [str(path)]).fetchone()
        pairs = connection.execute("select key, value from parquet_kv_metadata(?)", [str(path)]).fetchall()
    seen = [(f["min_is_exact"], f["max_is_exact"], f["stats_null_count"], f["stats_nan_count"]) for f in found]
    assert seen == [(True, False, 1, None), (True, True, 0, 1), (False, False, 0, 0), (True, True, 0, None)]
    assert (found[0]["stats_min_value"], found[0]["stats_max_value"]) == ("x", "y" * 63 + "z")
    assert (found[1]["stats_min_value"], found[1]["stats_max_value"]) == ("-2.0", "1.0")
    assert [f["encoding_stats"] for f in found] == [
        [{"page_type": "DATA_PAGE", "encoding": "PLAIN", "count": 1}] if f["dictionary_page_offset"] is None
        else [{"page_type": "DICTIONARY_PAGE", "encoding": "PLAIN", "count": 1},
              {"page_type": "DATA_PAGE", "encoding": "RLE_DICTIONARY", "count": 1}]
        for f in found
    ]  # fmt: skip
    assert about is not None
    assert "pyparq" in about[1]
    assert about[-1] == ["ColumnOrder(TYPE_ORDER=TypeDefinedOrder())"] * 4
    assert pairs == [(b"who", b"wir")]


@pytest.mark.parametrize("layout", ["footer", "row_group"])
def test_duckdb_probes_filters(path: Path, layout: str) -> None:
    table = pa.table({"id": range(0, 60_000, 3), "url": [f"/{k}" for k in range(20_000)]})
    pyparq.write_table(table, path, row_group_size=8_000, bloom_filters={"id": 0.001, "url": 0.001},
                       bloom_filter_layout=layout)  # fmt: skip
    with duckdb.connect() as connection:

        def excludes(column: str, value: Any) -> list[bool]:
            sql = "select bloom_filter_excludes from parquet_bloom_probe(?, ?, ?) order by row_group_id"
            return [row[0] for row in connection.execute(sql, [str(path), column, value]).fetchall()]

        assert excludes("id", 24_000)[1] is False
        assert excludes("url", "/16000")[2] is False
        assert sum(sum(excludes("id", k)) for k in range(1, 600, 3)) > 590  # of 600
        assert sum(sum(excludes("url", f"{k}")) for k in range(200)) > 590
        sql = "select bloom_filter_length from parquet_metadata(?) order by row_group_id, column_id"
        lengths = [length for (length,) in connection.execute(sql, [str(path)]).fetchall()]
    theirs = pq.read_metadata(path)
    assert lengths == [theirs.row_group(g).column(c).bloom_filter_length for g in range(3) for c in range(2)]
    assert min(lengths[:4]) > 8_000


def size_statistics(data: bytes) -> list[tuple[Any, ...]]:
    """Of all column chunks: bytes of values, and how often each level occurs."""
    found = [c.meta_data.size_statistics for g in footer(data).row_groups for c in g.columns]
    return [(s.unencoded_byte_array_data_bytes, s.repetition_level_histogram or [], s.definition_level_histogram or [])
            for s in found]  # fmt: skip


def test_size_statistics_are_those_of_pyarrow() -> None:
    table = pa.table(
        {
            "text": [None if k % 7 == 0 else f"é{k % 50}" * (k % 4) for k in range(3000)],
            "lists": [None if k % 5 == 0 else [None if j == 1 else "x" * j for j in range(k % 4)] for k in range(3000)],
            "deep": pa.array([[{"a": [k] * (k % 3)}, None] if k % 2 else [] for k in range(3000)]),
            "flat": pa.array([None if k % 3 == 0 else k for k in range(3000)], pa.int32()),
        }
    )
    theirs, ours = io.BytesIO(), io.BytesIO()
    pq.write_table(table, theirs, row_group_size=1100)
    pyparq.write_table(table, ours, row_group_size=1100)
    assert size_statistics(ours.getvalue()) == size_statistics(theirs.getvalue())


def test_sorting_columns(path: Path) -> None:
    table = pa.table({"a": [3, None, 1], "s": pa.array([{"b": 1}, {"b": 2}, None]), "c": ["x", "y", "z"]})
    pyparq.write_table(table, path, sort_by=[("s.b", "descending", True), "a"])
    metadata = pq.read_metadata(path)
    wanted = (pq.SortingColumn(1, descending=True, nulls_first=True), pq.SortingColumn(0))
    assert metadata.row_group(0).sorting_columns == wanted
    assert metadata.row_group(0).column(1).path_in_schema == "s.b"
    assert pq.read_table(path)["c"].to_pylist() == ["z", "y", "x"]


def test_sizes_and_encodings(path: Path) -> None:
    """The sizes that pyarrow shows add up to the file."""
    table = pa.table({"few": [k % 7 for k in range(5_000)], "many": [f"{k} text" for k in range(5_000)]})
    pyparq.write_table(table, path, row_group_size=2_000, compression={"few": "zstd", "many": "none"})
    metadata = pq.read_metadata(path)
    chunks = [metadata.row_group(k).column(c) for k in range(3) for c in range(2)]
    assert [c.compression for c in chunks] == ["ZSTD", "UNCOMPRESSED"] * 3
    assert ["RLE_DICTIONARY" in c.encodings for c in chunks] == [True, False] * 3
    assert [c.has_dictionary_page for c in chunks] == [True, False] * 3
    assert all(c.has_column_index and c.has_offset_index for c in chunks)
    at = 4
    for chunk in chunks:
        assert at == (chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset)
        at += chunk.total_compressed_size
    assert all(c.total_compressed_size == c.total_uncompressed_size for c in chunks[1::2])
    for k in range(3):
        group = metadata.row_group(k)
        assert group.total_byte_size == sum(group.column(c).total_uncompressed_size for c in range(2))


def test_metadata_of_a_schema_comes_back(path: Path) -> None:
    """Metadata of the input's schema, and field ids, as pyarrow reads them."""
    field = pa.field("a", pa.int32(), metadata={"PARQUET:field_id": "17"})
    table = pa.table([pa.array([1], pa.int32())], schema=pa.schema([field], metadata={"owner": "é"}))
    pyparq.write_table(table, path, key_value_metadata={b"raw": "value"})
    found = pq.read_schema(path)
    assert found.metadata == {b"owner": "é".encode(), b"raw": b"value"}
    assert found.field("a").metadata == {b"PARQUET:field_id": b"17"}
