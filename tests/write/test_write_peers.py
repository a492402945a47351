"""Files that pyparq writes, read by pyarrow, DuckDB, polars and DataFusion: the same values, over types x nulls x
encodings x codecs x page versions x layouts."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datafusion
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyparq

DAY = 86_400


def ints(bits: int, signed: bool) -> st.SearchStrategy[int]:
    low = -(1 << bits - 1) if signed else 0
    return st.integers(low, low + (1 << bits) - 1)


def decimals(precision: int, scale: int) -> st.SearchStrategy[decimal.Decimal]:
    top = 10**precision - 1
    # By string: contexts of a fixed precision would round the wide ones.
    return st.integers(-top, top).map(lambda n: decimal.Decimal(f"{n}e-{scale}"))


def timestamps(unit: str, zone: str | None) -> tuple[pa.DataType, st.SearchStrategy[int]]:
    # Within the years that every engine can show.
    per_second = {"ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    return pa.timestamp(unit, zone), st.integers(-2 * 10**9 * per_second, 4 * 10**9 * per_second)


TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "bool": (pa.bool_(), st.booleans()),
    **{f"int{b}": (getattr(pa, f"int{b}")(), ints(b, True)) for b in (8, 16, 32, 64)},
    **{f"uint{b}": (getattr(pa, f"uint{b}")(), ints(b, False)) for b in (8, 16, 32, 64)},
    "float": (pa.float32(), st.floats(width=32)),
    "double": (pa.float64(), st.floats()),
    "string": (pa.string(), st.text(max_size=20)),
    "binary": (pa.binary(), st.binary(max_size=20)),
    "fixed": (pa.binary(5), st.binary(min_size=5, max_size=5)),
    "date": (pa.date32(), st.dates(dt.date(1600, 1, 1), dt.date(2500, 1, 1))),
    "time_ms": (pa.time32("ms"), st.integers(0, DAY * 10**3 - 1)),
    "time_us": (pa.time64("us"), st.integers(0, DAY * 10**6 - 1)),
    "ts_ms": timestamps("ms", None),
    "ts_us": timestamps("us", "UTC"),
    "ts_ns": timestamps("ns", None),
    "decimal9": (pa.decimal128(9, 2), decimals(9, 2)),
    "decimal18": (pa.decimal128(18, 6), decimals(18, 6)),
    "decimal38": (pa.decimal128(38, 10), decimals(38, 10)),
}


def with_pyarrow(path: Path) -> pa.Table:
    return pq.read_table(path, page_checksum_verification=True)


def with_duckdb(path: Path) -> pa.Table:
    return duckdb.sql(f"select * from '{path}'").to_arrow_table()


def with_polars(path: Path) -> pa.Table:
    return pl.read_parquet(path).to_arrow()


def with_datafusion(path: Path) -> pa.Table:
    context = datafusion.SessionContext()
    context.register_parquet("t", str(path))
    return context.sql("select * from t").to_arrow_table()


READERS: dict[str, Callable[[Path], pa.Table]] = {
    "pyarrow": with_pyarrow, "duckdb": with_duckdb, "polars": with_polars, "datafusion": with_datafusion,
}  # fmt: skip


def comparable(column: pa.ChunkedArray, kind: pa.DataType) -> list[Any]:
    """Python values that compare by bits where floats are concerned; time zones' names left aside."""
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp(column.type.unit)).cast(pa.timestamp(kind.unit)).cast(pa.int64()).to_pylist()
    if pa.types.is_floating(kind):
        code = "<f" if kind == pa.float32() else "<d"
        return [None if v is None else "nan" if math.isnan(v) else struct.pack(code, v) for v in column.to_pylist()]
    if pa.types.is_decimal(kind):
        return column.cast(kind).to_pylist()
    if pa.types.is_time(kind):
        return column.cast(pa.time64("us")).to_pylist()
    return column.to_pylist()


def check(path: Path, expected: pa.Table, engines: dict[str, Callable[[Path], pa.Table]]) -> None:
    for engine, read in engines.items():
        found = read(path)
        assert found.column_names == expected.column_names, engine
        for name in expected.column_names:
            kind = expected.schema.field(name).type
            assert comparable(found[name], kind) == comparable(expected[name], kind), (engine, name)


OPTIONS = st.fixed_dictionaries(
    {
        "compression": st.sampled_from(["none", "snappy", "zstd", "gzip"]),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "use_dictionary": st.booleans(),
        "dictionary_pagesize_limit": st.sampled_from([1 << 20, 60]),
        "max_rows_per_page": st.sampled_from([1, 7, 20_000]),
        "row_group_size": st.sampled_from([1 << 20, 10]),
        "bloom_filters": st.booleans(),
        "bloom_filter_layout": st.sampled_from(["footer", "row_group"]),
        "write_page_index": st.booleans(),
    }
)


@settings(max_examples=25)
@given(data=st.data(), options=OPTIONS, rows=st.integers(0, 40), nullable=st.booleans())
def test_every_type_in_every_shape(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, options: dict[str, Any], rows: int, nullable: bool
) -> None:
    """All types side by side; a few distinct values, so that dictionaries are used, and repeated ones."""
    path = tmp_path_factory.getbasetemp() / "peers.parquet"
    arrays, fields = [], []
    for name, (kind, values) in TYPES.items():
        pool = data.draw(st.lists(values, min_size=1, max_size=6), label=name)
        picks = data.draw(st.lists(st.integers(0, len(pool) - (0 if nullable else 1)), min_size=rows, max_size=rows))
        arrays.append(pa.array([pool[k] if k < len(pool) else None for k in picks], kind))
        fields.append(pa.field(name, kind, nullable=nullable))
    table = pa.table(arrays, schema=pa.schema(fields))
    pyparq.write_table(table, path, **options)
    check(path, table, READERS)
    check(path, table, {"pyparq": lambda p: pyparq.read_table(p).to_arrow()})


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "zstd", "gzip", "brotli", "lz4_raw"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_pages_of_many_values(tmp_path: Path, version: str, codec: str, dictionary: bool) -> None:
    rows = 30_000
    table = pa.table(
        {
            "few": pa.array([None if k % 11 == 0 else k % 90 for k in range(rows)]),
            "many": pa.array([k * 7919 % 1_000_003 for k in range(rows)]),
            "text": pa.array([None if k % 3 else f"{k % 700} text" for k in range(rows)]),
            "runs": pa.array([k // 5000 for k in range(rows)], pa.int32()),
            "flag": pa.array([k % 1000 < 10 for k in range(rows)]),
        }
    )
    path = tmp_path / "t.parquet"
    pyparq.write_table(
        table, path, data_page_version=version, compression=codec, use_dictionary=dictionary, row_group_size=13_000,
        max_rows_per_page=3_000, column_encoding={"flag": "RLE"},
    )  # fmt: skip
    check(path, table, READERS)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize(
    ("encoding", "names"),
    [
        ("DELTA_BINARY_PACKED", ["few", "many", "runs"]),
        ("DELTA_LENGTH_BYTE_ARRAY", ["text"]),
        ("DELTA_BYTE_ARRAY", ["text"]),
        ("DELTA_BYTE_ARRAY", ["fixed"]),
        ("BYTE_STREAM_SPLIT", ["many", "runs", "x", "y"]),
        ("BYTE_STREAM_SPLIT", ["fixed"]),
    ],
)
def test_encodings_by_name(tmp_path: Path, version: str, encoding: str, names: list[str]) -> None:
    rows = 5_000
    table = pa.table(
        {
            "few": pa.array([None if k % 11 == 0 else k % 90 for k in range(rows)]),
            "many": pa.array([(k * 0x9E3779B97F4A7C15) % (1 << 63) * (-1) ** k for k in range(rows)]),
            "text": pa.array([None if k % 3 else f"https://example.org/{k % 700}/" * (k % 4) for k in range(rows)]),
            "runs": pa.array([k // 500 - 3 for k in range(rows)], pa.int32()),
            "x": pa.array([k / 7 for k in range(rows)]),
            "y": pa.array([None if k % 2 else k / 7 for k in range(rows)], pa.float32()),
            "fixed": pa.array([b"%05d" % (k % 50_000) for k in range(rows)], pa.binary(5)),
        }
    )
    path = tmp_path / "t.parquet"
    pyparq.write_table(
        table, path, column_encoding=dict.fromkeys(names, encoding), data_page_version=version, max_rows_per_page=900
    )
    metadata = pq.ParquetFile(path).metadata.row_group(0)
    for k, name in enumerate(table.column_names):
        assert name not in names or encoding in metadata.column(k).encodings
    # polars and DuckDB have one of these encodings each for fixed-length byte arrays.
    readers = ("pyarrow", "datafusion") if "fixed" in names else tuple(READERS)
    check(path, table, {engine: READERS[engine] for engine in readers})


def test_nested_columns(tmp_path: Path) -> None:
    rows = 2_000
    table = pa.table(
        {
            "list": pa.array(
                [None if k % 7 == 0 else [None if j == 1 else j for j in range(k % 5)] for k in range(rows)]
            ),
            "struct": pa.array([None if k % 5 == 0 else {"a": k, "b": [str(k)] * (k % 3)} for k in range(rows)]),
            "map": pa.array(
                [[(f"k{j}", j) for j in range(k % 4)] for k in range(rows)], pa.map_(pa.string(), pa.int64())
            ),
        }
    )
    path = tmp_path / "t.parquet"
    for version in ("1.0", "2.0"):
        pyparq.write_table(table, path, data_page_version=version, max_rows_per_page=100, row_group_size=900)
        assert pq.read_table(path).to_pydict() == table.to_pydict()
        for read in (with_duckdb, with_datafusion):
            assert read(path).to_pydict() == table.to_pydict()
        plain = table.drop_columns("map")  # polars has no maps
        assert with_polars(path).drop_columns("map").to_pydict() == plain.to_pydict()


def test_what_was_written_is_marked(tmp_path: Path) -> None:
    """pyarrow sees nullability, types and statistics as they were meant."""
    schema = pa.schema([pa.field("a", pa.uint8(), nullable=False), pa.field("t", pa.timestamp("ns", "UTC"))])
    table = pa.table({"a": pa.array([3, 250], pa.uint8()), "t": pa.array([1, None], pa.timestamp("ns", "UTC"))}, schema)
    path = tmp_path / "t.parquet"
    pyparq.write_table(table, path)
    file = pq.ParquetFile(path)
    assert file.schema_arrow.equals(schema)
    stats = file.metadata.row_group(0).column(0).statistics
    assert (stats.min, stats.max, stats.null_count) == (3, 250, 0)
    assert file.metadata.row_group(0).column(1).statistics.null_count == 1
    assert pc.max(file.read()["a"]).as_py() == 250
