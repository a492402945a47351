"""We read what Spark writes, value for value, and skip by its Bloom filters and page indexes."""

from __future__ import annotations

import datetime as dt
import decimal
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from mutation import clear_bloom_filter, move_page_bounds
from spark_tools import load, put
from written import Written

import pyparq
from pyparq import col
from pyparq.read.explain import Explanation

pytestmark = pytest.mark.spark
pytest_plugins = ("spark_session",)

ROWS, PAGE = 30_000, 1_000
RNG = np.random.default_rng(11)
EVEN = RNG.permutation(ROWS) * 2
ABSENT = 20_001
START = 1_600_000_000_000_000


def sparse(values: pa.Array) -> pa.Array:
    return values.take(pa.array(np.arange(ROWS), mask=RNG.random(ROWS) < 0.2))


def source() -> pa.Table:
    days = pa.array(RNG.integers(-30_000, 30_000, ROWS), pa.int32()).cast(pa.date32())
    # Whole milliseconds, so that every timestamp type of Spark's holds them.
    times = pa.array(START + np.arange(ROWS) * 1_003_000, pa.timestamp("us", "UTC"))
    return pa.table(
        {
            "k": np.arange(ROWS),
            "id": EVEN,
            "text": [f"{v:08x}" for v in EVEN],
            "few": sparse(pa.array([f"c{k % 7}" for k in range(ROWS)])),
            "flag": sparse(pa.array(RNG.random(ROWS) < 0.5)),
            "i8": sparse(pa.array(RNG.integers(-128, 128, ROWS, dtype="i1"))),
            "i16": pa.array(RNG.integers(-(2**15), 2**15, ROWS, dtype="i2")),
            "i32": sparse(pa.array(RNG.integers(-(2**31), 2**31, ROWS, dtype="i4"))),
            "f32": sparse(pa.array(RNG.normal(size=ROWS).astype("f4"))),
            "f64": sparse(pa.array(RNG.permutation(ROWS) - ROWS / 2)),
            "raw": sparse(pa.array([RNG.bytes(k % 9) for k in range(ROWS)], pa.binary())),
            "day": sparse(days),
            "at": sparse(times),
            "d9": sparse(pa.array(EVEN).cast(pa.decimal128(19, 0)).cast(pa.decimal128(9, 2))),
            "d18": sparse(pa.array(-EVEN).cast(pa.decimal128(19, 0)).cast(pa.decimal128(18, 4))),
            "d30": pa.array(EVEN).cast(pa.decimal128(30, 5)),
        }
    )


BLOOMS = ("id", "text", "flag", "i8", "i16", "i32", "f32", "f64", "raw", "day", "at", "d9", "d18", "d30")
INDEXED = {
    **{f"parquet.bloom.filter.enabled#{name}": "true" for name in BLOOMS},
    **{f"parquet.bloom.filter.expected.ndv#{name}": "8000" for name in BLOOMS},
    "parquet.page.row.count.limit": str(PAGE),
    "parquet.block.row.count.limit": str(ROWS // 4),
}
MICROS = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return source()


@pytest.fixture(scope="module")
def frame(spark: Any, table: pa.Table) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return spark.createDataFrame(table).cache()


def written(spark: Any, frame: Any, folder: Path, settings: dict[str, str], options: dict[str, str]) -> Path:
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        return put(frame, folder, options)
    finally:
        for key in settings:
            spark.conf.unset(key)


CASES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "default": ({}, {}),
    "micros": (MICROS, {"compression": "zstd"}),
    "millis": ({"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS"}, {"compression": "gzip"}),
    "legacy": ({"spark.sql.parquet.writeLegacyFormat": "true"}, {"compression": "none"}),
    "plain": (MICROS, {"parquet.enable.dictionary": "false"}),
    "v2": (MICROS, {"parquet.writer.version": "v2"}),
    "v2 plain": (MICROS, {"parquet.writer.version": "v2", "parquet.enable.dictionary": "false"}),
    "lz4": ({}, {"compression": "lz4"}),
    "lz4_raw": ({}, {"compression": "lz4_raw"}),
    "no checksums": ({}, {"parquet.page.write-checksum.enabled": "false"}),
    "indexed": (MICROS, INDEXED),
}


@pytest.mark.sweep(9)
@pytest.mark.parametrize("case", CASES)
def test_every_column(spark: Any, frame: Any, table: pa.Table, tmp_path: Path, case: str) -> None:
    path = written(spark, frame, tmp_path / "theirs", *CASES[case])
    with pyparq.ParquetFile(path) as file:
        assert file.metadata.num_rows == ROWS
        for name in table.column_names:
            found = file.read(columns=[name]).to_arrow()[name].combine_chunks()
            expected = table[name].combine_chunks()
            if name == "at":
                # INT96 says neither unit nor zone: microseconds, as Spark has them. In Spark they are instants.
                assert found.type == (pa.timestamp("us") if "at" in int96(file) else found.type)
                assert found.type.unit == {"millis": "ms"}.get(case, "us")
                found, expected = found.cast(pa.timestamp("us")), expected.cast(pa.timestamp("us"))
            assert found.equals(expected), name
    report = pyparq.verify(path)
    assert report.ok, str(report)
    # And Spark itself reads it as what we hold it to be.
    assert load(spark, path).select("k", "id").toArrow().equals(table.select(["k", "id"]))


def int96(file: pyparq.ParquetFile) -> set[str]:
    return {c.path_in_schema for c in file.metadata.row_group(0).columns if c.physical_type == "INT96"}


def test_the_cases_differ(spark: Any, frame: Any, tmp_path: Path) -> None:
    """INT96, legacy decimals, v2 pages, delta encodings and codecs do occur in what is read above."""
    seen: dict[str, Any] = {}
    for case in ("default", "legacy", "v2 plain", "no checksums"):
        with pyparq.ParquetFile(written(spark, frame, tmp_path / case, *CASES[case])) as file:
            chunks = file.metadata.row_group(0).columns
            seen[case] = {c.path_in_schema: (c.physical_type, set(c.encodings), c.compression) for c in chunks}
            pages = file.pages(0, "id")
            assert {p.type for p in pages} == {"data v2" if case == "v2 plain" else "data v1"}
            assert {p.has_crc for p in pages} == {case != "no checksums"}
    assert seen["default"]["at"][0] == "INT96"
    assert (seen["default"]["d9"][0], seen["default"]["d18"][0]) == ("INT32", "INT64")
    assert {seen["legacy"][n][0] for n in ("d9", "d18", "d30")} == {"FIXED_LEN_BYTE_ARRAY"}
    assert "DELTA_BINARY_PACKED" in seen["v2 plain"]["id"][1]
    assert "DELTA_BYTE_ARRAY" in seen["v2 plain"]["text"][1]
    assert seen["default"]["id"][2] == "SNAPPY"
    assert seen["legacy"]["id"][2] == "UNCOMPRESSED"


FAR = [
    0, 1_704_141_296_123_456, -(1 << 63), -210_866_803_200_000_001, 9_012_505_173_254_775_807,
    9_012_505_173_254_775_808, 9_089_380_393_200_000_000, (1 << 63) - 1,
]  # fmt: skip
"""Microseconds since 1970. Spark counts them from Julian day 0 in the same 64 bits: the last three wrap around."""


def test_int96_at_the_ends_of_spark(usual: Any, tmp_path: Path) -> None:
    """Spark reads back what it wrote. So do we, in each unit that holds it. What we rewrite is the same to Spark."""
    usual.conf.set("spark.sql.parquet.int96RebaseModeInWrite", "CORRECTED")
    frame = usual.createDataFrame([(us,) for us in FAR], "us long").selectExpr("us", "timestamp_micros(us) as at")
    frame.coalesce(1).write.parquet(str(tmp_path / "far"))
    pyparq.rewrite(tmp_path / "far", tmp_path / "new.parquet")
    for name in ("far", "new.parquet"):
        theirs = usual.read.parquet(str(tmp_path / name)).selectExpr("unix_micros(at)", "us").collect()
        assert sorted(row[0] for row in theirs) == sorted(row[1] for row in theirs) == sorted(FAR)
        for unit, step in (("us", 1), ("ms", 1000), ("s", 1_000_000)):
            ours = pyparq.read_table(tmp_path / name, coerce_int96_timestamp_unit=unit).to_arrow()
            shown = ours["at"].cast(pa.int64()).to_pylist()
            assert shown == [us // step for us in ours["us"].to_pylist()], unit
        last = np.datetime64((1 << 63) - 1, "us")
        for unit in ("us", "auto"):
            found = pyparq.read_table(tmp_path / name, filters=col("at") == last, coerce_int96_timestamp_unit=unit)
            assert found["us"].to_pylist() == FAR[-1:]


def test_int96_is_filtered_by_rows(spark: Any, frame: Any, table: pa.Table, tmp_path: Path) -> None:
    """No index says anything of INT96; the rows do."""
    path = written(spark, frame, tmp_path / "theirs", {}, INDEXED)
    noon = dt.datetime(2020, 9, 13, 18, 0)
    expected = [at is not None and at.replace(tzinfo=None) < noon for at in table["at"].to_pylist()]
    found = pyparq.read_table(path, columns=["k"], filters=col("at") < noon)
    assert 0 < sum(expected) < ROWS
    assert found.to_arrow()["k"].to_pylist() == [k for k, e in enumerate(expected) if e]


# ---------------------------------------------------------------- its indexes


@pytest.fixture(scope="module")
def indexed(spark: Any, frame: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(spark, frame, tmp_path_factory.mktemp("indexed") / "theirs", *CASES["indexed"])


def explained(path: Path, filters: Any, **options: Any) -> Explanation:
    with pyparq.ParquetFile(path, **options) as file:
        return file.scan(filters=filters).explain()


LITERALS = {
    "id": int,
    "text": lambda v: f"{v:08x}",
    "d9": decimal.Decimal,
    "d18": lambda v: decimal.Decimal(-v),
    "d30": decimal.Decimal,
}


@pytest.mark.parametrize("column", LITERALS)
def test_its_bloom_filters_prove_absence(indexed: Path, column: str) -> None:
    test = col(column) == LITERALS[column](ABSENT)
    report = explained(indexed, test)
    assert "bloom filter" in [s.name for s in report.stages]
    assert (report.row_groups, report.pages_decoded, report.rows) == (0, 0, 0)
    assert explained(indexed, test, use_bloom_filters=False, use_page_index=False).row_groups > 1


@pytest.mark.parametrize("column", BLOOMS)
def test_its_bloom_filters_lose_nothing(indexed: Path, table: pa.Table, column: str) -> None:
    """Every type, BOOLEAN included, whose filters parquet-java leaves empty."""
    stored = table[column].to_pylist()
    for value in dict.fromkeys(v for v in stored[:20] if v is not None):
        found = pyparq.read_table(indexed, columns=["k"], filters=col(column) == value)
        assert found.to_arrow()["k"].to_pylist() == [k for k, v in enumerate(stored) if v == value]


def test_its_filters_by_hand(indexed: Path, table: pa.Table) -> None:
    with pyparq.ParquetFile(indexed) as file:
        start = 0
        for group in range(file.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            bloom = file.bloom_filter(group, "id")
            assert bloom is not None
            there = table["id"].slice(start, rows).to_pylist()
            assert bloom.check(there).all()
            absent = [v + 1 for v in there]
            assert bloom.check(absent).mean() < 0.03
            start += rows


def test_who_empties_its_filter_hides_the_row_from_us(indexed: Path, tmp_path: Path) -> None:
    copy = clear_bloom_filter(indexed, tmp_path / "emptied.parquet", "id")
    assert pyparq.read_table(indexed, filters=col("id") == 1234).num_rows == 1
    assert pyparq.read_table(copy, filters=col("id") == 1234).num_rows == 0
    assert pyparq.read_table(copy, filters=col("id") == 1234, use_bloom_filters=False).num_rows == 1


def test_its_page_index_narrows_a_range(indexed: Path, table: pa.Table) -> None:
    test = col("k").between(12_500, 13_499)
    report = explained(indexed, test)
    (stage,) = [s for s in report.stages if s.name == "column index"]
    assert stage.rows_after <= 3 * PAGE
    assert report.rows == 1_000
    assert report.bytes_fetched < report.file_bytes / 8
    found = pyparq.read_table(indexed, filters=test).to_arrow()
    expected = table.slice(12_500, 1_000)
    for name in ("k", "id", "text", "few", "flag", "i8", "f64", "raw", "day", "d9", "d18", "d30"):
        assert found[name].combine_chunks().equals(expected[name].combine_chunks()), name


def test_who_falsifies_its_page_index_hides_the_row_from_us(indexed: Path, tmp_path: Path) -> None:
    index = Written(indexed.read_bytes()).column_index(0, 0)
    low = index.min_values[1]
    hidden = int.from_bytes(low, "little") + 500
    copy = move_page_bounds(indexed, tmp_path / "narrow.parquet", "k", 0, 1, low, low)
    assert pyparq.read_table(indexed, filters=col("k") == hidden).num_rows == 1
    assert pyparq.read_table(copy, filters=col("k") == hidden).num_rows == 0
    assert pyparq.read_table(copy, filters=col("k") == hidden, use_page_index=False).num_rows == 1


def test_zeros_and_nan_under_its_filters(spark: Any, tmp_path: Path) -> None:
    """Spark hashes the zero it has; its own reader misses -0.0 then. Ours asks for both."""
    values = [5.0, -0.0, 7.5, float("nan"), 1e9, -3.0, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = spark.createDataFrame(pa.table({"x": values, "y": pa.array(values, pa.float32())}))
    options = {"parquet.enable.dictionary": "false"}
    options |= {f"parquet.bloom.filter.enabled#{name}": "true" for name in "xy"}
    path = put(frame, tmp_path / "theirs", options)
    with pyparq.ParquetFile(path) as file:
        assert all(file.metadata.row_group(0).column(name).bloom_filter_offset for name in "xy")
        for name in "xy":
            for zero in (0.0, -0.0):
                assert file.scan(filters=col(name) == zero).count() == 1
            assert file.scan(filters=col(name) == float("nan")).count() == 1
            assert file.scan(filters=col(name) > 1e8).count() == 2
            assert file.scan(filters=col(name) == 5.5).count() == 0


def test_adaptive_filters(spark: Any, frame: Any, tmp_path: Path) -> None:
    """parquet-java chooses the size at the end of a row group: other sizes, the same reading."""
    options = {"parquet.bloom.filter.enabled#id": "true", "parquet.bloom.filter.adaptive.enabled": "true"}
    path = put(frame.select("id"), tmp_path / "theirs", options)
    with pyparq.ParquetFile(path) as file:
        bloom = file.bloom_filter(0, "id")
        assert bloom is not None
        assert bloom.check(EVEN).all()
        assert bloom.check(EVEN + 1).mean() < 0.03
    assert explained(path, col("id") == ABSENT).row_groups == 0


@pytest.mark.parametrize("case", ["default", "indexed", "v2 plain"])
def test_bounds_tell_where_no_nan_is(spark: Any, tmp_path: Path, case: str) -> None:
    """To parquet-mr NaN is the largest number, so bounds that are numbers prune above as well."""
    settings, options = CASES[case]
    rng, pruned = np.random.default_rng(3), 0
    for trial in range(4):
        values = np.sort(rng.normal(size=ROWS))
        values[rng.choice(ROWS, [0, 1, 2, 40][trial])] = np.nan
        table = pa.table({"f64": values, "f32": values.astype("f4"), "k": np.arange(ROWS)})
        split = {**options, "parquet.block.row.count.limit": "4000", "parquet.page.row.count.limit": "500"}
        path = written(spark, spark.createDataFrame(table).coalesce(1), tmp_path / f"{trial}", settings, split)
        for name in ("f64", "f32"):
            question = col(name) > float(rng.uniform(-1, 2))
            right = pyparq.ParquetFile(path, use_statistics=False, use_page_index=False).read(filters=question)["k"]
            file = pyparq.ParquetFile(path)
            assert file.read(filters=question)["k"].to_pylist() == right.to_pylist()
            assert file.count(filters=question) == len(right)
            left = file.explain(filters=question)
            pruned += file.num_row_groups - left.row_groups
    assert pruned > 0
