"""DataFusion and DuckDB skip by what we write: by their own metrics, and by losing a row where an index is falsified.

Spark's part is in test_spark_uses_our_indexes.py. pyarrow and polars use neither Bloom filters nor page indexes.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datafusion
import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mutation import clear_bloom_filter, move_page_bounds
from written import Written

import pyparq

ROWS, GROUP, PAGE = 40_000, 10_000, 1_000
RNG = np.random.default_rng(42)
EVEN = RNG.permutation(ROWS) * 2
PRESENT, ABSENT = 1234, 20_001
"""Both within the bounds of every row group; odd numbers are not there."""


def table() -> pa.Table:
    def decimals(precision: int) -> pa.Array:
        return pa.array(EVEN).cast(pa.decimal128(30, 0)).cast(pa.decimal128(precision, 0))

    return pa.table(
        {
            "k": np.arange(ROWS),
            "id": EVEN,
            "i32": pa.array(EVEN, pa.int32()),
            "u32": pa.array(EVEN, pa.uint32()),
            "u64": pa.array(EVEN, pa.uint64()),
            "text": [f"{v:08x}" for v in EVEN],
            "raw": pa.array([b"%08x" % v for v in EVEN], pa.binary()),
            "fixed": pa.array([b"%08x" % v for v in EVEN], pa.binary(8)),
            "day": pa.array(EVEN, pa.int32()).cast(pa.date32()),
            "ms": pa.array(EVEN * 10**6, pa.timestamp("ms")),
            "ns": pa.array(EVEN * 10**9, pa.timestamp("ns")),
            "time": pa.array(EVEN * 1000, pa.time64("us")),
            "d9": decimals(9),
            "d18": decimals(18),
            "d30": decimals(30),
            "f32": EVEN.astype("f4"),
            "f64": EVEN.astype("f8"),
        }
    )


BLOOMS = [name for name in table().column_names if name != "k"]


@pytest.fixture(scope="module", params=["footer", "row_group"])
def ours(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp(request.param) / "ours.parquet"
    pyparq.write_table(
        table(), path, row_group_size=GROUP, max_rows_per_page=PAGE, use_dictionary=False, bloom_filters=BLOOMS,
        bloom_filter_layout=request.param,
    )  # fmt: skip
    return path


@pytest.fixture(scope="module")
def emptied(ours: Path) -> Path:
    """A copy whose filters all say that nothing is there."""
    copy = ours.with_name("emptied.parquet")
    clear_bloom_filter(ours, copy, BLOOMS[0])
    for column in BLOOMS[1:]:
        clear_bloom_filter(copy, copy, column)
    return copy


OWNER = int(np.flatnonzero(EVEN == PRESENT)[0]) // GROUP
"""The row group that holds ``PRESENT``."""


# ---------------------------------------------------------------- DataFusion


@dataclass(frozen=True)
class Metrics:
    """What DataFusion's scan says it kept: row groups after statistics and Bloom filters, rows after the page index."""

    statistics: int
    bloom: int
    page_rows: int


def context(path: Path, **settings: str) -> datafusion.SessionContext:
    config = datafusion.SessionConfig().with_target_partitions(1)
    for key, value in settings.items():
        config = config.set(f"datafusion.execution.parquet.{key}", value)
    found = datafusion.SessionContext(config)
    found.register_parquet("t", str(path))
    return found


def datafusion_keys(path: Path, where: str, **settings: str) -> list[int]:
    found = context(path, **settings).sql(f"select k from t where {where} order by k")
    return [int(k) for k in found.to_pydict()["k"]]


def metrics(path: Path, where: str) -> Metrics:
    plan = context(path).sql(f"explain analyze select k from t where {where}").to_pydict()["plan"][-1]

    def matched(name: str) -> int:
        number, unit = re.search(rf"{name}=[^,]* total → ([\d.]+) ?([KM]?) matched", plan).groups()  # type: ignore[union-attr]
        return round(float(number) * {"": 1, "K": 1_000, "M": 1_000_000}[unit])

    return Metrics(
        matched("row_groups_pruned_statistics"),
        matched("row_groups_pruned_bloom_filter"),
        matched("page_index_rows_pruned"),
    )


DATAFUSION = {
    "id": "{}",
    "i32": "{}",
    "u32": "{}",
    "u64": "{}",
    "text": "'{:08x}'",
    "raw": "arrow_cast('{:08x}', 'Binary')",
    "fixed": "arrow_cast(arrow_cast('{:08x}', 'Binary'), 'FixedSizeBinary(8)')",
    "d9": "arrow_cast({}, 'Decimal128(9, 0)')",
    "d18": "arrow_cast({}, 'Decimal128(18, 0)')",
    "d30": "arrow_cast({}, 'Decimal128(30, 0)')",
    "f32": "arrow_cast({}, 'Float32')",
    "f64": "arrow_cast({}, 'Float64')",
}
"""The types that DataFusion 55 asks a Bloom filter about (not dates, times and timestamps)."""


@pytest.mark.sweep(6)
@pytest.mark.parametrize("column", DATAFUSION)
def test_datafusion_asks_our_bloom_filters(ours: Path, emptied: Path, column: str) -> None:
    there, absent = (f"{column} = {DATAFUSION[column].format(v)}" for v in (PRESENT, ABSENT))
    found = metrics(ours, absent)
    assert (found.statistics, found.bloom) == (ROWS // GROUP, 0)
    assert metrics(ours, there).bloom == 1
    (key,) = datafusion_keys(ours, there)
    assert EVEN[key] == PRESENT
    assert datafusion_keys(emptied, there) == []
    assert datafusion_keys(emptied, there, bloom_filter_on_read="false") == [key]


def test_datafusion_uses_our_statistics_and_page_index(ours: Path) -> None:
    found = metrics(ours, "k between 12500 and 13499")
    assert (found.statistics, found.page_rows) == (1, 2 * PAGE)
    assert datafusion_keys(ours, "k between 12500 and 13499") == list(range(12_500, 13_500))


@pytest.mark.parametrize("end", ["low", "high"])
def test_datafusion_believes_our_page_bounds(ours: Path, tmp_path: Path, end: str) -> None:
    low, high = (12_000, 12_400) if end == "high" else (12_600, 12_999)
    copy = move_page_bounds(
        ours, tmp_path / "narrow.parquet", "k", 1, 2, struct.pack("<q", low), struct.pack("<q", high)
    )
    assert datafusion_keys(ours, "k = 12500") == [12_500]
    assert datafusion_keys(copy, "k = 12500") == []
    assert datafusion_keys(copy, "k = 12500", enable_page_index="false") == [12_500]
    assert datafusion_keys(copy, f"k = {low}") == [low]


def test_datafusion_cuts_pages_out_of_every_column(ours: Path) -> None:
    """The values of the other columns stand beside the right keys, so the OffsetIndexes are right too."""
    rows = context(ours).sql("select k, id, text from t where k in (7, 4999, 5000, 25500, 39999) order by k")
    assert rows.to_pydict() == {
        "k": (keys := [7, 4999, 5000, 25500, 39999]),
        "id": [int(EVEN[k]) for k in keys],
        "text": [f"{EVEN[k]:08x}" for k in keys],
    }


def test_datafusion_skips_null_pages(tmp_path: Path) -> None:
    path = tmp_path / "nulls.parquet"
    values = pa.array([None if PAGE <= k < 3 * PAGE else k for k in range(5 * PAGE)], pa.int64())
    pyparq.write_table(pa.table({"k": np.arange(5 * PAGE), "v": values}), path, max_rows_per_page=PAGE)
    assert metrics(path, f"v >= {3 * PAGE}").page_rows == 2 * PAGE
    assert metrics(path, "v is not null").page_rows == 3 * PAGE
    assert metrics(path, "v is null").page_rows == 2 * PAGE
    assert len(datafusion_keys(path, "v is null")) == 2 * PAGE


# ---------------------------------------------------------------- DuckDB


def ask_duckdb(sql: str) -> list[tuple[Any, ...]]:
    return duckdb.connect().execute(sql).fetchall()


def duckdb_keys(path: Path, where: str) -> list[int]:
    return [k for (k,) in ask_duckdb(f"select k from '{path}' where {where} order by k")]


def duckdb_scanned(path: Path, where: str) -> int:
    """Row groups that a scan did not skip."""
    plan = ask_duckdb(f"explain analyze select k from '{path}' where {where}")[0][1]
    return int(re.search(r"Row Groups Scanned: (\d+) / ", plan).group(1))  # type: ignore[union-attr]


DUCKDB = {
    "id": "{}",
    "i32": "{}",
    "u32": "{}",
    "u64": "{}",
    "text": "'{:08x}'",
    "raw": "'{:08x}'::blob",
    "fixed": "'{:08x}'::blob",
    "day": "(date '1970-01-01' + {})",
    "ms": "make_timestamp({}000000000)",
    "ns": "make_timestamp_ns({}000000000)",
    "time": "make_time(0, 0, {} / 1000.0)",
    "d9": "{}::decimal(9, 0)",
    "d18": "{}::decimal(18, 0)",
    "f32": "{}::float",
    "f64": "{}::double",
}
"""The types that DuckDB 2.0 asks a Bloom filter about (not wide decimals)."""


@pytest.mark.sweep(30)
@pytest.mark.parametrize("column", DUCKDB)
def test_duckdb_asks_our_bloom_filters(ours: Path, emptied: Path, column: str) -> None:
    there, absent = (DUCKDB[column].format(v) for v in (PRESENT, ABSENT))

    def excluded(path: Path, literal: str) -> list[bool]:
        """By DuckDB's own probe, for each row group."""
        return [e for _, _, e in ask_duckdb(f"select * from parquet_bloom_probe('{path}', '{column}', {literal})")]

    groups = ROWS // GROUP
    assert excluded(ours, absent) == [True] * groups
    assert not excluded(ours, there)[OWNER]
    assert sum(excluded(ours, there)) >= groups - 2  # one false positive is possible: the file never changes
    assert excluded(emptied, there) == [True] * groups

    assert duckdb_scanned(ours, f"{column} = {absent}") == 0
    assert duckdb_scanned(ours, f"{column} = {there}") == groups - sum(excluded(ours, there))
    (key,) = duckdb_keys(ours, f"{column} = {there}")
    assert EVEN[key] == PRESENT
    assert duckdb_keys(emptied, f"{column} = {there}") == []
    above = DUCKDB[column].format(PRESENT + 1)
    assert duckdb_keys(emptied, f"{column} >= {there} and {column} < {above}") == [key]  # no filter is asked


def test_duckdb_asks_them_about_lists_too(ours: Path, emptied: Path) -> None:
    assert duckdb_scanned(ours, f"id in ({ABSENT}, {ABSENT + 2})") == 0
    assert duckdb_scanned(ours, f"id in ({ABSENT}, {PRESENT})") == 1
    assert len(duckdb_keys(ours, f"id in ({ABSENT}, {PRESENT})")) == 1
    assert duckdb_keys(emptied, f"id in ({ABSENT}, {PRESENT})") == []


def test_duckdb_reads_a_missing_filter_as_none(ours: Path) -> None:
    answers = ask_duckdb(f"select * from parquet_bloom_probe('{ours}', 'k', 5)")
    assert [excluded for _, _, excluded in answers] == [False] * (ROWS // GROUP)


def test_duckdb_uses_our_statistics(ours: Path) -> None:
    assert duckdb_scanned(ours, "k between 12500 and 13499") == 1
    assert duckdb_keys(ours, "k between 12500 and 13499") == list(range(12_500, 13_500))


# ---------------------------------------------------------------- what others make of the rest


def test_pyarrow_sees_where_the_filters_are(ours: Path) -> None:
    """pyarrow 26 reads no Bloom filter, but its metadata says where ours are, exactly."""
    file, mine = pq.ParquetFile(ours), Written(ours.read_bytes())
    for group in range(ROWS // GROUP):
        for number, name in enumerate(table().column_names):
            theirs, meta = file.metadata.row_group(group).column(number), mine.chunk(group, number).meta_data
            assert (theirs.bloom_filter_offset is None) == (name == "k")
            assert theirs.bloom_filter_offset == meta.bloom_filter_offset
            assert theirs.bloom_filter_length == meta.bloom_filter_length
            assert theirs.has_column_index
            assert theirs.has_offset_index


ZEROS = {"datafusion": datafusion_keys, "duckdb": duckdb_keys}


@pytest.mark.parametrize("engine", ZEROS)
@pytest.mark.parametrize("sign", [0, 1, -1], ids=["inside", "least", "greatest"])
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_zeros_are_found_by_either_sign(tmp_path: Path, zero: float, sign: int, engine: str) -> None:
    """With a Bloom filter and both indexes, also where the zero is the smallest or largest value."""
    numbers = (RNG.permutation(4 * PAGE) + 1.0) * (RNG.choice([-1, 1], 4 * PAGE) if sign == 0 else sign)
    numbers[1_234] = zero
    path = tmp_path / "zeros.parquet"
    data = pa.table({"k": np.arange(4 * PAGE), "x": numbers, "y": numbers.astype("f4")})
    pyparq.write_table(data, path, bloom_filters=["x", "y"], max_rows_per_page=PAGE, use_dictionary=False)
    for column, literal in ((c, v) for c in "xy" for v in ("0.0", "-0.0")):
        kind = "double" if column == "x" else "real"
        where = f"{column} = cast('{literal}' as {kind})"
        assert ZEROS[engine](path, where) == [1_234]


def test_who_takes_bounds_for_bounds_of_nan_too(tmp_path: Path) -> None:
    """parquet.thrift: "When looking for NaN values, min and max should be ignored". DataFusion 55 loses the rows on
    anybody's file with bounds, DuckDB 2.0 only where no nan_count (ours has it) warns it; this tells when they stop.
    Our reader finds them everywhere."""
    numbers = RNG.normal(size=4 * PAGE)
    numbers[1_234] = np.nan
    data = pa.table({"k": np.arange(4 * PAGE), "x": numbers})
    ours, theirs, bare = (tmp_path / f"{name}.parquet" for name in ("ours", "theirs", "bare"))
    pyparq.write_table(data, ours)
    pq.write_table(data, theirs)
    pyparq.write_table(data, bare, write_statistics=False)
    for where in ("x = cast('NaN' as double)", "x > cast('1e300' as double)"):
        assert [datafusion_keys(path, where) for path in (ours, theirs, bare)] == [[], [], [1_234]]
        assert [duckdb_keys(path, where) for path in (ours, theirs, bare)] == [[1_234], [], [1_234]]
    for path in (ours, theirs, bare):
        for mine in (pyparq.col("x") == float("nan"), pyparq.col("x") > 1e300):
            assert pyparq.read_table(path, ["k"], mine).to_pydict() == {"k": [1_234]}
