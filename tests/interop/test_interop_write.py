"""Files that pyparq writes mean the same to pyarrow, DuckDB, polars and DataFusion: values of every type, nested ones,
edge cases, and the statistics and metadata that peers show."""

from __future__ import annotations

import math
import sys
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from interop_peers import READERS, check_readers, compare, readers_of, with_pyparq
from interop_tables import FLAT, WIDE_DECIMALS, decimals, encodings, is_read_as, nested_tables, spread, tables

import pyparq

OPTIONS = st.fixed_dictionaries(
    {
        "compression": st.sampled_from(["none", "snappy", "zstd", "gzip", "brotli", "lz4_raw"]),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "use_dictionary": st.booleans(),
        "dictionary_pagesize_limit": st.sampled_from([1 << 20, 30]),
        "max_rows_per_page": st.sampled_from([1, 7, 20_000]),
        "data_page_size": st.sampled_from([16, 1 << 20]),
        "row_group_size": st.sampled_from([1 << 20, 10]),
        "bloom_filters": st.booleans(),
        "bloom_filter_layout": st.sampled_from(["footer", "row_group"]),
        "write_page_index": st.booleans(),
        "write_statistics": st.booleans(),
        "write_page_checksum": st.booleans(),
    }
)
FEW: dict[str, Any] = {
    "deadline": None, "derandomize": True, "database": None, "phases": [Phase.explicit, Phase.generate, Phase.shrink],
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}  # fmt: skip


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One name for all examples of a test."""
    return tmp_path_factory.mktemp("interop") / "ours.parquet"


def write_and_check(table: pa.Table, path: Path, options: dict[str, Any], readers: Any = READERS) -> None:
    pyparq.write_table(table, path, **options)
    check_readers(path, table, readers)
    ours = with_pyparq(path)
    compare(ours, table, "pyparq")
    for field, given_ in zip(ours.schema, table.schema, strict=True):
        assert is_read_as(field.type, given_.type), field.name
    assert [f.nullable for f in ours.schema] == [f.nullable for f in table.schema]


@settings(max_examples=60, **FEW)
@given(table=tables(FLAT), options=OPTIONS)
def test_flat_columns(path: Path, table: pa.Table, options: dict[str, Any]) -> None:
    write_and_check(table, path, options)


@settings(max_examples=60, **FEW)
@given(data=st.data(), options=OPTIONS)
def test_every_encoding(path: Path, data: st.DataObject, options: dict[str, Any]) -> None:
    table = data.draw(tables(FLAT))
    chosen = data.draw(encodings(table))
    write_and_check(table, path, {**options, "column_encoding": chosen}, readers_of(chosen))


@pytest.mark.parametrize("encoding", ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
def test_encodings_that_pyarrow_does_not_know_for_categories(path: Path, encoding: str) -> None:
    """Not in its own files either. The others read them; pyarrow does without the hint."""
    table = pa.table({"categorical": pa.array(["", "b", ""]).dictionary_encode()})
    options: dict[str, Any] = {"use_dictionary": False, "column_encoding": {"categorical": encoding}}
    pq.write_table(table, path, **options)
    with pytest.raises(OSError, match="Not yet implemented"):
        pq.read_table(path)
    write_and_check(table, path, options, readers_of(options["column_encoding"]))
    pyparq.write_table(table, path, store_schema=False, **options)
    assert pq.read_table(path).column(0).to_pylist() == ["", "b", ""]


@settings(max_examples=60, **FEW)
@given(table=nested_tables(), options=OPTIONS)
def test_nested_columns(path: Path, table: pa.Table, options: dict[str, Any]) -> None:
    write_and_check(table, path, options)


@pytest.mark.slow
@settings(max_examples=1_500, **{**FEW, "derandomize": False})
@given(table=st.one_of(tables(FLAT), nested_tables()), options=OPTIONS, data=st.data())
@pytest.mark.timeout(1_800)
def test_many_columns(path: Path, table: pa.Table, options: dict[str, Any], data: st.DataObject) -> None:
    chosen = data.draw(encodings(table)) if set(table.column_names) <= set(FLAT) and data.draw(st.booleans()) else {}
    write_and_check(table, path, {**options, "column_encoding": chosen}, readers_of(chosen))


@settings(max_examples=25, **FEW)
@given(table=st.one_of(tables(FLAT), nested_tables()), options=OPTIONS, batch=st.integers(1, 9))
def test_streamed_batches(path: Path, table: pa.Table, options: dict[str, Any], batch: int) -> None:
    """Row groups that end inside of batches, and gather several."""
    with pyparq.ParquetWriter(path, table.schema, **options) as writer:
        for part in table.to_batches(batch):
            writer.write(part)
    check_readers(path, table)
    compare(with_pyparq(path), table, "pyparq")


@settings(max_examples=8, **FEW)
@given(table=tables(FLAT), options=OPTIONS, rows=st.integers(1_000, 4_000))
def test_many_rows(path: Path, table: pa.Table, options: dict[str, Any], rows: int) -> None:
    table = spread(table, rows)
    write_and_check(table, path, {**options, "max_rows_per_page": 300, "row_group_size": 1_300})


# ---- edge cases ------------------------------------------------------------------------------------------------------

NAMES = ["a.b", "a", "a b", "ü", "日本", "\U0001f600", "a`b", 'q"q', "a'b", "x" * 300, "line\nbreak", "a.b.c", "select"]
LONG = "é" * 500_000
PREFIX = "https://example.org/" + "path/" * 30


def ends(unit: str) -> pa.Table:
    """The first and last instants of int64, with and without a zone."""
    values = [-(2**63), -(2**63) + 1, 2**63 - 1, 0, None]
    return pa.table({zone or "local": pa.array(values, pa.timestamp(unit, zone)) for zone in (None, "UTC")})


def precisions() -> pa.Table:
    """Every precision of 128 bits, all digits before and all behind the point: first, last and smallest values."""
    kinds = {f"{p}_{s}": decimals(p, s) for p in range(1, 39) for s in (0, p)}
    return pa.table({name: kind.array([*kind.edges, None]) for name, kind in kinds.items()})


EDGES: dict[str, pa.Table] = {
    "no rows": pa.table({name: kind.array([]) for name, kind in FLAT.items()}),
    "one row": pa.table({name: kind.array((kind.edges or [None])[:1]) for name, kind in FLAT.items()}),
    "all null": pa.table({name: kind.array([None] * 9) for name, kind in FLAT.items()}),
    "long values": pa.table({"s": [LONG, None, LONG + "x", ""], "b": [b"\xff" * 2_000_000, b"", None, b"x"]}),
    "names": pa.table({name: [k, None] for k, name in enumerate(NAMES)}),
    "nested names": pa.table({"a.b": [{"c.d": [1]}], "a": [{"b": {"c": 1}}], "a.b.c": [2]}),
    "prefixes": pa.table({"url": [PREFIX + f"{k % 97}" for k in range(500)], "bytes": [PREFIX.encode()] * 500}),
    "days": pa.table({"d": pa.array([-(2**31), 2**31 - 1, None, 0], pa.int32()).cast(pa.date32())}),
    "precisions": precisions(),
    "microseconds": ends("us"),
    "nanoseconds": ends("ns"),
}  # fmt: skip


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("name", EDGES)
def test_edges(path: Path, name: str, version: str) -> None:
    write_and_check(EDGES[name], path, {"data_page_version": version, "bloom_filters": True})
    write_and_check(EDGES[name], path, {"use_dictionary": False, "compression": "none", "row_group_size": 3})


def without(*engines: str) -> dict[str, Any]:
    return {name: read for name, read in READERS.items() if name not in engines}


def test_milliseconds_to_the_ends(path: Path) -> None:
    pyparq.write_table(ends("ms"), path)
    check_readers(path, ends("ms"), without("duckdb"))  # it works in microseconds
    compare(with_pyparq(path), ends("ms"), "pyparq")


def test_more_than_38_digits(path: Path) -> None:
    table = pa.table({name: kind.array([*kind.edges, None]) for name, kind in WIDE_DECIMALS.items()})
    pyparq.write_table(table, path, bloom_filters=True)
    check_readers(path, table, without("duckdb", "polars"))
    compare(with_pyparq(path), table, "pyparq")


@pytest.mark.parametrize("rows", [0, 5])
def test_no_columns(path: Path, rows: int) -> None:
    """Rows without columns keep their number. (DuckDB wants one column at least.)"""
    table = pa.table({"a": range(rows)}).select([])
    pyparq.write_table(table, path)
    check_readers(path, table, without("duckdb"))
    assert pyparq.read_table(path).shape == (rows, 0)


def test_names_that_duckdb_changes(path: Path) -> None:
    """No name, and names that differ in case only."""
    table = pa.table({"": [1, None], "a": [2, 3], "A": [4, 5]})
    pyparq.write_table(table, path)
    check_readers(path, table, without("duckdb"))
    compare(with_pyparq(path), table, "pyparq")


def test_many_row_groups(path: Path) -> None:
    table = pa.table({"a": range(300), "b": [None if k % 7 == 0 else str(k) for k in range(300)]})
    write_and_check(table, path, {"row_group_size": 1})
    assert pq.read_metadata(path).num_row_groups == 300
    assert pyparq.read_metadata(path).num_row_groups == 300


def test_many_columns_side_by_side(path: Path) -> None:
    table = pa.table({f"c{k}": [k, None, -k] for k in range(1_000)})
    write_and_check(table, path, {})


@pytest.mark.parametrize(
    "values", [[1.0, math.nan], [math.nan, -math.inf], [math.inf, math.nan, math.inf], [0.0, math.nan], [math.nan] * 2]
)
@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
@pytest.mark.parametrize("order", ["TYPE_ORDER", "IEEE_754_TOTAL_ORDER"])
def test_one_number_beside_nan(path: Path, kind: pa.DataType, values: list[float], order: str) -> None:
    """DataFusion takes a column whose statistics show one value for constant, NaN or not."""
    table = pa.table({"x": pa.array(values, kind)})
    write_and_check(table, path, {"float_order": order})
    compare(
        READERS["datafusion"](path), table, "datafusion"
    )  # also where pyarrow, which is asked first, sees no bounds


def test_the_least_number_beside_nan(path: Path) -> None:
    """A bound that is one step below it is minus infinity, and that is no reason for a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = pa.table({"x": [-sys.float_info.max, math.nan]})
        pyparq.write_table(table, path)
    check_readers(path, table)
