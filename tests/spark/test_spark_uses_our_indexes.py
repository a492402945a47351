"""Spark skips by what we write: its scan metric counts fewer rows, and where an index is falsified it loses the row."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash
from mutation import clear_bloom_filter, column_number, move_page_bounds
from spark_tools import BLOOM, COLUMN_INDEX, STATISTICS, ask, java_finds, java_left
from written import Written

import pyparq

pytestmark = pytest.mark.spark
pytest_plugins = ("spark_session",)

ROWS, GROUP, PAGE = 40_000, 10_000, 1_000
RNG = np.random.default_rng(42)
EVEN = RNG.permutation(ROWS) * 2
ABSENT = 20_001
"""Odd, so not there, but within the bounds of every row group and of many pages."""


def table() -> pa.Table:
    return pa.table(
        {
            "k": np.arange(ROWS),
            "id": EVEN,
            "i32": pa.array(EVEN, pa.int32()),
            "text": [f"{v:08x}" for v in EVEN],
            "raw": pa.array([struct.pack(">Q", int(v)) for v in EVEN], pa.binary()),
            "day": pa.array(EVEN, pa.int32()).cast(pa.date32()),
            "at": pa.array(EVEN * 10**9, pa.timestamp("us", "UTC")),
            "d9": pa.array(EVEN).cast(pa.decimal128(19, 0)).cast(pa.decimal128(9, 0)),
            "d18": pa.array(EVEN).cast(pa.decimal128(19, 0)).cast(pa.decimal128(18, 0)),
            "d30": pa.array(EVEN).cast(pa.decimal128(30, 0)),
            "f32": EVEN.astype("f4"),
            "f64": EVEN.astype("f8"),
        }
    )


FILTERED = ["id", "i32", "text", "raw", "day", "at", "d9", "d18", "d30", "f32", "f64"]


@pytest.fixture(scope="module", params=["footer", "row_group"])
def ours(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp(request.param) / "ours.parquet"
    pyparq.write_table(
        table(), path, row_group_size=GROUP, max_rows_per_page=PAGE, use_dictionary=False, bloom_filters=FILTERED,
        bloom_filter_layout=request.param,
    )  # fmt: skip
    return path


def group_of(value: int) -> int:
    return int(np.flatnonzero(value == EVEN)[0]) // GROUP


# ---------------------------------------------------------------- Bloom filters


def test_an_absent_value_costs_no_row(spark: Any, ours: Path) -> None:
    assert ask(spark, ours, f"id = {ABSENT}", "id").scanned == 0
    without = ask(spark, ours, f"id = {ABSENT}", "id", off=(BLOOM,))
    assert without.rows == []
    assert without.scanned > GROUP


def test_a_present_value_is_looked_for_in_its_row_group_alone(spark: Any, ours: Path) -> None:
    """No false positive is due at a rate of 1 % for the three others (the file is always the same)."""
    answer = ask(spark, ours, "id = 1234", "id", off=(COLUMN_INDEX,))
    assert [row[0] for row in answer.rows] == [1234]
    assert answer.scanned == GROUP


def test_in_lists_use_it_too(spark: Any, ours: Path) -> None:
    assert ask(spark, ours, f"id in ({ABSENT}, {ABSENT + 2})", "id").scanned == 0
    answer = ask(spark, ours, f"id in ({ABSENT}, 1234)", "id", off=(COLUMN_INDEX,))
    assert (len(answer.rows), answer.scanned) == (1, GROUP)


LITERALS = {
    "id": "{}",
    "i32": "{}",
    "text": "'{:08x}'",
    "f32": "float({})",
    "f64": "double({})",
    "day": "date_from_unix_date({})",
    "at": "timestamp_seconds({}000)",
    "d9": "cast({} as decimal(9,0))",
    "d18": "cast({} as decimal(18,0))",
    "d30": "cast({} as decimal(30,0))",
}


@pytest.fixture(scope="module")
def emptied(ours: Path) -> Path:
    """A copy whose filters all say that nothing is there."""
    copy = ours.with_name("emptied.parquet")
    clear_bloom_filter(ours, copy, FILTERED[0])
    for column in FILTERED[1:]:
        clear_bloom_filter(copy, copy, column)
    return copy


@pytest.mark.sweep(3)
@pytest.mark.parametrize("column", LITERALS)
def test_types_that_spark_asks_a_filter_about(spark: Any, ours: Path, emptied: Path, column: str) -> None:
    """Absent: no row is scanned. Present: found, but no longer where the filter has been emptied."""
    there, absent = (f"{column} = {LITERALS[column].format(v)}" for v in (1234, ABSENT))
    columns = f"id {column}"
    assert ask(spark, ours, absent, columns).scanned == 0
    assert [row[0] for row in ask(spark, ours, there, columns).rows] == [1234]
    assert ask(spark, emptied, there, columns).rows == []
    assert [row[0] for row in ask(spark, emptied, there, columns, off=(BLOOM,)).rows] == [1234]


def test_only_the_emptied_row_group_is_lost(spark: Any, ours: Path, tmp_path: Path) -> None:
    """Filters belong to their own row groups: the others still find their values."""
    gone = group_of(1234)
    copy = clear_bloom_filter(ours, tmp_path / "emptied.parquet", "id", [gone])
    firsts = [int(EVEN[g * GROUP]) for g in range(ROWS // GROUP)]
    found = [len(ask(spark, copy, f"id = {v}", "id").rows) for v in firsts]
    assert found == [int(g != gone) for g in range(len(firsts))]


def test_parquet_java_finds_every_hash(spark: Any, ours: Path) -> None:
    """Asked chunk by chunk: what a row group holds is in its filter, and hardly anything else."""
    number = column_number(Written(ours.read_bytes()), "id")
    false = 0
    for group in range(ROWS // GROUP):
        mine = EVEN[group * GROUP : (group + 1) * GROUP][:40]
        found = java_finds(spark, ours, group, number, [_hash(int(v)) for v in (*mine, *range(1, 81, 2))])
        assert found is not None
        assert all(found[:40])
        false += sum(found[40:])
    assert false <= 10  # of 160, at a rate of 1 %
    assert java_finds(spark, ours, 0, 0, [0]) is None  # column k has none


def _hash(value: int) -> int:
    return xxhash.xxh64_intdigest(struct.pack("<q", value))


def test_parquet_java_drops_row_groups_and_rows(spark: Any, ours: Path) -> None:
    """Its file reader, without Spark: row groups by Bloom filter, rows by column index."""
    groups = ROWS // GROUP
    assert java_left(spark, ours, "id", 1234).row_groups == groups
    assert java_left(spark, ours, "id", ABSENT, stats=True).row_groups == groups
    assert java_left(spark, ours, "id", ABSENT, bloom=True).row_groups == 0
    left = java_left(spark, ours, "id", 1234, bloom=True)
    assert (left.row_groups, left.rows) == (1, GROUP)
    left = java_left(spark, ours, "k", 12_345, stats=True, column_index=True)
    assert (left.row_groups, left.rows, left.filtered_rows) == (1, GROUP, PAGE)


# ---------------------------------------------------------------- page index


def test_a_range_costs_the_rows_of_its_pages(spark: Any, ours: Path) -> None:
    answer = ask(spark, ours, "k between 12500 and 13499", "k")
    assert [row[0] for row in answer.rows] == list(range(12_500, 13_500))
    assert answer.scanned == 2 * PAGE
    assert ask(spark, ours, "k between 12500 and 13499", "k", off=(COLUMN_INDEX,)).scanned == GROUP
    assert ask(spark, ours, "k between 12500 and 13499", "k", off=(COLUMN_INDEX, STATISTICS)).scanned == ROWS


def test_pages_are_cut_out_of_every_column(spark: Any, ours: Path) -> None:
    """The values of the other columns stand beside the right keys, so the OffsetIndexes are right too."""
    rows = ask(spark, ours, "k in (7, 4999, 5000, 25500, 39999)").rows
    assert [row[0] for row in rows] == [7, 4999, 5000, 25500, 39999]
    assert [row[1] for row in rows] == [int(EVEN[row[0]]) for row in rows]
    assert [row[3] for row in rows] == [f"{EVEN[row[0]]:08x}" for row in rows]


@pytest.mark.parametrize("end", ["low", "high"])
def test_falsified_page_bounds_hide_the_row(spark: Any, ours: Path, tmp_path: Path, end: str) -> None:
    """One page of one column claims less than it holds: who trusts the column index no longer sees the rest."""
    first, last = 12_000, 12_999
    low, high = (first, 12_400) if end == "high" else (12_600, last)
    copy = move_page_bounds(
        ours, tmp_path / "narrow.parquet", "k", 1, 2, struct.pack("<q", low), struct.pack("<q", high)
    )
    hidden = 12_500
    assert ask(spark, ours, f"k = {hidden}", "k id").scanned == PAGE
    assert ask(spark, copy, f"k = {hidden}", "k id").rows == []
    assert len(ask(spark, copy, f"k = {hidden}", "k id", off=(COLUMN_INDEX,)).rows) == 1
    assert len(ask(spark, copy, f"k = {first if end == 'high' else last}", "k id").rows) == 1


def test_falsified_bounds_of_text(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "text.parquet"
    words = [f"{k:012d}-{'x' * 90}" for k in range(5_000)]  # longer than the bounds in the index
    pyparq.write_table(pa.table({"word": words}), path, max_rows_per_page=PAGE)
    there = f"word = '{words[2_500]}'"
    assert ask(spark, path, there).scanned == PAGE
    index = Written(path.read_bytes()).column_index(0, 0)
    low = index.min_values[2]
    narrow = low[:-1] + b"y"
    copy = move_page_bounds(path, tmp_path / "narrow.parquet", "word", 0, 2, low, narrow)
    assert ask(spark, copy, there).rows == []
    assert len(ask(spark, copy, there, off=(COLUMN_INDEX,)).rows) == 1


def test_null_pages(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "nulls.parquet"
    values = pa.array([None if PAGE <= k < 3 * PAGE else k for k in range(5 * PAGE)], pa.int64())
    pyparq.write_table(pa.table({"v": values}), path, max_rows_per_page=PAGE)
    gone = ask(spark, path, "v is null")
    assert (len(gone.rows), gone.scanned) == (2 * PAGE, 2 * PAGE)
    assert ask(spark, path, "v is not null").scanned == 3 * PAGE
    assert ask(spark, path, f"v >= {4 * PAGE}").scanned == PAGE
    assert ask(spark, path, "v <=> null").scanned == 2 * PAGE


# ---------------------------------------------------------------- zeros and NaN


def one_odd(value: float, dtype: str, sign: int = 0) -> np.ndarray[Any, Any]:
    """Distinct numbers of both signs (or of one), one of them replaced."""
    numbers = RNG.permutation(4 * PAGE).astype(dtype) + 1
    numbers = numbers * (RNG.choice([-1, 1], 4 * PAGE) if sign == 0 else sign)
    numbers = numbers.astype(dtype)
    numbers[1_234] = value
    return numbers


@pytest.mark.parametrize("sign", [0, 1, -1], ids=["inside", "least", "greatest"])
@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize(("dtype", "kind"), [("f4", "float"), ("f8", "double")])
def test_zeros_are_found_by_either_sign(
    spark: Any, tmp_path: Path, zero: float, sign: int, dtype: str, kind: str
) -> None:
    """With a Bloom filter and both indexes, also where the zero is the smallest or largest value."""
    path = tmp_path / "zeros.parquet"
    data = pa.table({"x": one_odd(zero, dtype, sign)})
    pyparq.write_table(data, path, bloom_filters=True, max_rows_per_page=PAGE, use_dictionary=False)
    for literal in ("0.0", "-0.0"):
        found = ask(spark, path, f"x = {kind}('{literal}')").rows
        assert [struct.pack("<d", row[0]) for row in found] == [struct.pack("<d", zero)]


NANS = {"usual": 0x7FF8000000000000, "negative": 0xFFF8000000000000, "payload": 0x7FF8000000000123}


@pytest.mark.parametrize("nan", NANS)
def test_any_nan_is_in_the_filter_that_spark_asks(spark: Any, tmp_path: Path, nan: str) -> None:
    """All NaNs are equal to Spark, and it hashes the usual bits. Without bounds the filter alone decides."""
    numbers = one_odd(0.5, "f8")
    numbers.view("u8")[1_234] = NANS[nan]
    path = tmp_path / "nan.parquet"
    pyparq.write_table(
        pa.table({"x": numbers}), path, bloom_filters=True, row_group_size=2 * PAGE, use_dictionary=False,
        write_statistics=False,
    )  # fmt: skip
    answer = ask(spark, path, "x = double('NaN')")
    assert (len(answer.rows), answer.scanned) == (1, 2 * PAGE)
    assert ask(spark, clear_bloom_filter(path, tmp_path / "emptied.parquet", "x"), "x = double('NaN')").rows == []


def test_spark_takes_bounds_for_bounds_of_nan_too(spark: Any, tmp_path: Path) -> None:
    """parquet.thrift: "When looking for NaN values, min and max should be ignored". Spark 4.3 does not, on anybody's
    file with bounds, and loses the rows; this tells when it does. Our reader finds them."""
    data = pa.table({"x": one_odd(float("nan"), "f8")})
    ours, theirs = tmp_path / "ours.parquet", tmp_path / "theirs.parquet"
    pyparq.write_table(data, ours)
    pq.write_table(data, theirs)
    questions = {"x = double('NaN')": pyparq.col("x") == float("nan"), "x > 1e300": pyparq.col("x") > 1e300}
    for path in (ours, theirs):
        for where, mine in questions.items():
            assert ask(spark, path, where).rows == []
            assert len(ask(spark, path, where, off=(STATISTICS, COLUMN_INDEX)).rows) == 1
            assert pyparq.read_table(path, filters=mine).num_rows == 1
        assert len(ask(spark, path, "isnan(x)").rows) == 1


def test_nothing_but_nan_has_no_bounds_to_be_misled_by(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "nan.parquet"
    pyparq.write_table(pa.table({"x": np.full(100, np.nan)}), path, bloom_filters=True)
    assert len(ask(spark, path, "x = double('NaN')").rows) == 100
    assert len(ask(spark, path, "x > 5").rows) == 100
