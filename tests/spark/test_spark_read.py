"""pyparq.spark.read, count and the data source: beside Spark's own reader, rows, types and what is read."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from relabelled import relabel

import pyparq
from pyparq import col
from pyparq.errors import DataError, OptionError, SkippedFileWarning, UnsupportedError

pytest_plugins = ("spark_session",)
pytestmark = pytest.mark.spark
KEY = b"0123456789abcdef"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three partitions, a file each with two row groups."""
    path = tmp_path_factory.mktemp("read") / "table"
    rng = np.random.default_rng(1)
    table = pa.table(
        {
            "id": np.arange(3_000),
            "Price": rng.normal(size=3_000).round(3),
            "name": [f"n{k % 97}" for k in range(3_000)],
            "items": [list(range(k % 4)) for k in range(3_000)],
            "year": pa.array(np.repeat([2022, 2023, 2024], 1_000), pa.int32()),
        }
    )
    parts = pads.partitioning(pa.schema([("year", pa.int32())]), flavor="hive")
    pads.write_dataset(table, path, format="parquet", partitioning=parts, max_rows_per_group=500)
    return path


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


QUESTIONS = [
    ("id >= 1990 AND id < 2010", None),
    ("year = 2023 AND name = 'n5'", ["name", "id"]),
    ("price > 3 OR name = 'n1'", ["id"]),
    ("id = 1700", ["items", "year"]),
    ("id < 0", None),
]


@pytest.mark.parametrize("small", [0, 1 << 30])
@pytest.mark.parametrize(("where", "columns"), QUESTIONS)
def test_rows_and_types_are_those_of_sparks_reader(
    spark: Any, ps: Any, folder: Path, where: str, columns: list[str] | None, small: int
) -> None:
    ours = ps.read(spark, folder, columns=columns, filters=where.replace("price", "Price"), small=small)
    theirs = spark.read.parquet(str(folder)).where(where)
    theirs = theirs if columns is None else theirs.select(*columns)
    assert ours.schema == theirs.schema
    assert rows(ours) == rows(theirs)


def test_the_dataframe_has_at_most_so_many_partitions(spark: Any, ps: Any, folder: Path) -> None:
    from pyspark.sql import functions

    for asked, expected in ((1, 1), (3, 3), (50, 6), (None, 2)):
        frame = ps.read(spark, folder, small=0, partitions=asked)
        used = frame.select(functions.spark_partition_id().alias("k")).distinct().count()
        assert used == expected
        assert frame.count() == 3_000


def test_only_pages_that_can_match_are_planned(folder: Path) -> None:
    from pyparq.spark.question import Question, planned

    asked = Question(str(folder), ["id"], col("id") == 2_700, None, 2, 0, None, "raise", False, None, False)
    plan, _ = planned(asked)
    assert [Path(file.where).parent.name for file in plan.files] == ["year=2024"]
    assert [group.row_group for group in plan.files[0].row_groups] == [1]
    whole = sum(path.stat().st_size for path in folder.glob("*/*.parquet"))
    assert plan.num_bytes < whole / 15


def test_only_few_rows_are_answered_without_a_job(ps: Any, tmp_path: Path) -> None:
    """However few bytes they are: Spark cuts what it is handed into partitions of 10,000 rows."""
    from pyparq.spark.question import Question, replied

    pyparq.write_table({"id": np.arange(150_000)}, tmp_path / "t.parquet")
    path = str(tmp_path / "t.parquet")
    for filters, few in ((None, False), (col("id") < 1_000, True), (col("id") >= 0, False)):
        asked = Question(path, None, filters, None, None, 8 << 20, None, "raise", False, None, False)
        reply = replied(asked, lambda: 2)
        assert (reply.answer is not None) == few
        assert bool(reply.parts) != few


def test_count(spark: Any, ps: Any, folder: Path) -> None:
    assert ps.count(spark, folder) == 3_000
    assert ps.count(spark, folder, col("year") == 2024) == 1_000
    expected = spark.read.parquet(str(folder)).where("price > 0").count()
    assert ps.count(spark, folder, col("price") > 0, small=0) == expected
    assert ps.count(spark, folder, col("price") > 0) == expected


def test_names_follow_the_sessions_case_sensitivity(spark: Any, ps: Any, folder: Path) -> None:
    frame = ps.read(spark, folder, columns=["PRICE", "ID"], filters=col("Id") < 3)
    assert frame.columns == ["Price", "id"]
    assert frame.count() == 3
    text = "ID < 3 AND Items IS NOT NULL"
    assert rows(ps.read(spark, folder, columns="iD", filters=text)) == [(0,), (1,), (2,)]
    assert ps.count(spark, folder, text) == 3
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(pyparq.ColumnNotFoundError):
            ps.read(spark, folder, columns=["PRICE"])
        with pytest.raises(pyparq.ColumnNotFoundError):
            ps.read(spark, folder, columns=["id"], filters=text)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_names_that_differ_by_case_alone_are_ambiguous(spark: Any, ps: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "A": [2]}), tmp_path / "t.parquet")
    assert ps.read(spark, tmp_path / "t.parquet", columns=["A"]).collect()[0][0] == 2
    pq.write_table(pa.table({"aa": [1], "aA": [2]}), tmp_path / "u.parquet")
    with pytest.raises(OptionError, match="ambiguous"):
        ps.read(spark, tmp_path / "u.parquet", columns=["AA"])
    with pytest.raises(OptionError, match="ambiguous"):
        ps.read(spark, tmp_path / "u.parquet", filters="AA = 1")
    assert ps.count(spark, tmp_path / "u.parquet", "aA = 2") == 1


# ---- types ---------------------------------------------------------------------------------------------------------

TYPES: dict[str, pa.Array] = {
    "u8": pa.array([1, 255, None], pa.uint8()),
    "u16": pa.array([1, 65_535, None], pa.uint16()),
    "u32": pa.array([1, 2**32 - 1, None], pa.uint32()),
    "u64": pa.array([1, 2**64 - 1, None], pa.uint64()),
    "i8": pa.array([-128, 127, None], pa.int8()),
    "f16": pa.array(np.array([1.5, -2, 0], np.float16)),
    "f64": pa.array([float("nan"), -0.0, None]),
    "flag": pa.array([True, None, False]),
    "large": pa.array(["a", None, "ü"], pa.large_string()),
    "view": pa.array(["a", None, "a longer text than twelve"], pa.string_view()),
    "bytes": pa.array([b"a", None, b""], pa.large_binary()),
    "fixed": pa.array([b"ab", None, b"cd"], pa.binary(2)),
    "word": pa.array(["x", None, "x"]).dictionary_encode(),
    "dec": pa.array([decimal.Decimal("1.10"), None, decimal.Decimal("-7.25")], pa.decimal256(30, 2)),
    "day": pa.array([dt.date(1500, 1, 1), None, dt.date(2024, 2, 29)], pa.date32()),
    "naive": pa.array([1_000, None, -1], pa.timestamp("ms")),
    "exact": pa.array([1_000, None, -1_000], pa.timestamp("ns")),
    "zoned": pa.array([1_000, None, -1], pa.timestamp("us", "Europe/Berlin")),
    "list": pa.array([["a"], None, [None]], pa.large_list(pa.large_string())),
    "pair": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.uint8(), 2)),
    "map": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.uint16())),
    "struct": pa.array([{"a": 1, "b": [None]}, None, {"a": None, "b": None}],
                       pa.struct([("a", pa.uint32()), ("b", pa.list_(pa.date32()))])),
}  # fmt: skip


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("types") / "t.parquet"
    pq.write_table(pa.table(TYPES), path)
    return path


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Only what Spark's own reader opens."""
    names = ["i8", "f64", "flag", "large", "view", "bytes", "word", "dec", "day", "zoned", "naive", "list"]
    path = tmp_path_factory.mktemp("types") / "t.parquet"
    pq.write_table(pa.table({name: TYPES[name] for name in names}), path)
    return path


@pytest.mark.sweep(3)
@pytest.mark.parametrize("small", [0, 1 << 20])
@pytest.mark.parametrize("name", TYPES)
def test_values_of_every_type(spark: Any, ps: Any, typed: Path, name: str, small: int) -> None:
    """The same values as pyarrow's, in the type that Spark has for them; distributed and from the driver."""
    frame = ps.read(spark, typed, columns=[name], small=small)
    table = frame.toArrow()
    expected = TYPES[name]
    if pa.types.is_timestamp(expected.type):
        expected = expected.cast(pa.timestamp("us", expected.type.tz and "UTC"))
    want = expected.to_pylist()
    have = table[name].to_pylist()
    assert repr(have) == repr(want) if name == "f64" else have == want
    assert frame.schema == ps.read(spark, typed, columns=[name], small=1 << 20).schema


def test_types_that_sparks_reader_has_are_the_same(spark: Any, ps: Any, plain: Path) -> None:
    ours, theirs = ps.read(spark, plain), spark.read.parquet(str(plain))
    assert ours.schema == theirs.schema
    assert repr(rows(ours)) == repr(rows(theirs))  # NaN differs from itself


def test_times_of_day_and_durations(spark: Any, ps: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    times = pa.table({"at": pa.array([1, None], pa.time32("ms")), "us": pa.array([5, None], pa.time64("us"))})
    pq.write_table(times.append_column("gap", pa.array([1, None], pa.duration("ms"))), path)
    frame = ps.read(spark, path, small=0)
    assert [field.dataType.simpleString() for field in frame.schema] == ["time(6)", "time(6)", "interval day to second"]
    found = frame.toArrow().to_pydict()
    assert found["at"] == [dt.time(0, 0, 0, 1_000), None]
    assert found["us"] == [dt.time(0, 0, 0, 5), None]
    assert found["gap"] == [dt.timedelta(milliseconds=1), None]


def test_what_spark_has_no_type_for_names_its_column(spark: Any, ps: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pyparq.write_table({"a": [1], "wide": pa.array([decimal.Decimal(1)], pa.decimal256(60, 2))}, path)
    with pytest.raises(UnsupportedError, match=r"at most 38 digits.*wide"):
        ps.read(spark, path)
    assert ps.read(spark, path, columns=["a"]).count() == 1


def test_nanoseconds_are_not_lost_silently(spark: Any, ps: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"at": pa.array([1_001], pa.timestamp("ns"))}), path)
    with pytest.raises(DataError, match=r"truncate=True.*at"):
        ps.read(spark, path)
    assert ps.read(spark, path, truncate=True).collect()[0][0] == dt.datetime(1970, 1, 1, 0, 0, 0, 1)
    from pyspark.errors import PythonException

    with pytest.raises(PythonException, match="truncate=True"):
        ps.read(spark, path, small=0).collect()


def test_decimals_beyond_their_precision(spark: Any, ps: Any, tmp_path: Path) -> None:
    """Spark 4.3 reads them as they are."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": pa.array([125, None, 10**6], pa.int32())}), path, store_schema=False)
    relabel(path, {"x": pa.decimal128(5, 2)})
    theirs = [row[0] for row in spark.read.parquet(str(path)).collect()]
    assert theirs == [decimal.Decimal("1.25"), None, decimal.Decimal("10000.00")]
    with pytest.raises(Exception, match=r"a decimal has more digits.*row group 0, column x"):  # pyarrow words it again
        ps.read(spark, path).collect()
    assert [row[0] for row in ps.read(spark, path, out_of_range="null").collect()] == [
        decimal.Decimal("1.25"),
        None,
        None,
    ]
    assert ps.count(spark, path, filters=col("x").is_null(), out_of_range="null") == 2


def test_uuids_are_bytes(spark: Any, ps: Any, tmp_path: Path) -> None:
    one = uuid.UUID(int=5)
    pq.write_table(pa.table({"u": pa.array([one.bytes], pa.uuid())}), tmp_path / "t.parquet")
    assert bytes(ps.read(spark, tmp_path / "t.parquet").collect()[0][0]) == one.bytes


# ---- semantics: our filters beside Spark's -------------------------------------------------------------------------

CONDITIONS = [
    "x = 0.0", "x = -0.0", "x > 1.5", "x >= 0", "NOT x > 1.5", "x <> 0", "x IN (0.0, 2.5)", "isnan(x)", "NOT isnan(x)",
    "x IS NULL", "x IS NOT NULL AND x < 0", "d = 1.10", "d > 1.1 AND d < 100", "d IN (1.10, 7)",
    "day < DATE '1582-10-15'",
    "day = DATE '1500-01-01'", "t >= TIMESTAMP '2024-03-31 02:30:00'", "t < TIMESTAMP '1900-01-01 00:00:00'",
    "s = ''", "s >= 'b'", "s LIKE 'a%'", "st.a > 3", "st.b IS NULL", "NOT (st.a > 3)", "x > 0 OR s = 'ab'",
    "(x < 0 OR x IS NULL) AND d IS NOT NULL", "k IN (1, 2, 3, 250)", "k BETWEEN 10 AND 12", "NOT k BETWEEN 3 AND 290",
]  # fmt: skip


@pytest.fixture(scope="module")
def odd_values(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Written by Spark: NaN, both zeros, nulls, old dates, times in the gap of a time zone."""
    rng = np.random.default_rng(3)
    xs = [float("nan"), 0.0, -0.0, None, 1.5, 2.5, -3.0, float("inf"), float("-inf")]
    days = [dt.date(1500, 1, 1), dt.date(1582, 10, 4), dt.date(2024, 1, 1), None]
    times = [dt.datetime(2024, 3, 31, 1, 30), dt.datetime(2024, 3, 31, 2, 30), dt.datetime(1899, 1, 1), None]
    decimals = [decimal.Decimal("1.10"), decimal.Decimal("7.00"), None, decimal.Decimal("-5.05")]
    texts = ["", "a", "ab", "b", None, "ü"]
    data = [
        (
            k, xs[rng.integers(len(xs))], decimals[rng.integers(4)], days[rng.integers(4)], times[rng.integers(4)],
            texts[rng.integers(6)],
            None if k % 7 == 0 else (None if k % 5 == 0 else k % 10, None if k % 3 == 0 else "q"),
        )
        for k in range(300)
    ]  # fmt: skip
    schema = "k int, x double, d decimal(10,2), day date, t timestamp, s string, st struct<a: int, b: string>"
    path = tmp_path_factory.mktemp("odd") / "table"
    frame = spark.createDataFrame(data, schema).coalesce(2)
    frame.sortWithinPartitions("x").write.option("parquet.bloom.filter.enabled", "true").parquet(str(path))
    return path


@pytest.mark.sweep(3)
@pytest.mark.parametrize("where", CONDITIONS)
def test_filters_keep_the_rows_that_spark_keeps(spark: Any, ps: Any, odd_values: Path, where: str) -> None:
    theirs = spark.read.parquet(str(odd_values)).where(where).select("k")
    ours = ps.read(spark, odd_values, columns=["k"], filters=where)
    assert rows(ours) == rows(theirs)


# ---- what goes wrong -----------------------------------------------------------------------------------------------


def test_a_file_that_changes_after_loading(spark: Any, ps: Any, tmp_path: Path) -> None:
    from pyspark.errors import PythonException

    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "t.parquet")
    frame = ps.read(spark, tmp_path, small=0)
    pq.write_table(pa.table({"a": [1, 2, 3]}), tmp_path / "t.parquet")
    with pytest.raises(PythonException, match="make the plan again"):
        frame.collect()


def test_a_damaged_file_is_an_error_or_left_out(spark: Any, ps: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "1.parquet")
    (tmp_path / "2.parquet").write_bytes(b"PAR1 no Parquet at all PAR1")
    with pytest.raises(pyparq.CorruptFileError, match=r"2\.parquet"):
        ps.read(spark, tmp_path)
    with pytest.warns(SkippedFileWarning, match=r"2\.parquet"):
        frame = ps.read(spark, tmp_path, on_error="skip", small=0)
    assert rows(frame) == [(1,), (2,)]


def test_notes_of_files_that_workers_leave_out(spark: Any, ps: Any, source: Any, tmp_path: Path) -> None:
    """Their footers are good: only who reads their pages finds out."""
    (tmp_path / "t").mkdir()
    for k in range(4):
        pq.write_table(pa.table({"a": [f"{k} {n}" for n in range(100)]}), tmp_path / "t" / f"{k}.parquet")
    for k in (1, 3):
        data = bytearray((tmp_path / "t" / f"{k}.parquet").read_bytes())
        data[4:60] = b"\xff" * 56
        (tmp_path / "t" / f"{k}.parquet").write_bytes(data)
    (tmp_path / "t" / "4.parquet").write_bytes(b"PAR1 no Parquet at all PAR1")

    def noted(name: str) -> list[tuple[str, bool]]:
        notes = spark.read.schema("path string, error string").json(str(tmp_path / name)).collect()
        return sorted((Path(note.path).name, "left out" in note.error and note.path in note.error) for note in notes)

    with pytest.warns(SkippedFileWarning, match=r"4\.parquet"):
        frame = ps.read(spark, tmp_path / "t", on_error="skip", small=0, skipped_to=tmp_path / "lazy")
    assert noted("lazy") == [("4.parquet", True)]
    for _ in range(2):
        assert {row.a[0] for row in frame.collect()} == {"0", "2"}
        assert noted("lazy") == [("1.parquet", True), ("3.parquet", True), ("4.parquet", True)]
    with pytest.warns(SkippedFileWarning, match=r"[134]\.parquet") as said:
        ps.read(spark, tmp_path / "t", on_error="skip", skipped_to=tmp_path / "now")
    assert len([w for w in said if isinstance(w.message, SkippedFileWarning)]) == 3
    assert noted("now") == noted("lazy")
    where = col("a").isin([f"{k} 50" for k in range(4)])
    for small in (0, 1 << 20):
        with pytest.warns(SkippedFileWarning, match=r"[134]\.parquet") as said:
            assert ps.count(spark, tmp_path / "t", where, on_error="skip", small=small) == 2
        assert {Path(w.message.file).name for w in said if isinstance(w.message, SkippedFileWarning)} == {
            "1.parquet", "3.parquet", "4.parquet",
        }  # fmt: skip
    options = {"on_error": "skip", "skipped_to": str(tmp_path / "source")}
    assert source(**options).load(str(tmp_path / "t")).count() == 200
    assert noted("source") == noted("lazy")
    with pytest.raises(OptionError, match="skipped_to needs"):
        ps.read(spark, tmp_path / "t", skipped_to=tmp_path / "u")


def test_what_is_not_there(spark: Any, ps: Any, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ps.read(spark, tmp_path / "nowhere")
    with pytest.raises(pyparq.ColumnNotFoundError, match="prise"):
        ps.read(spark, folder, columns=["prise"])
    with pytest.raises(OptionError, match="paths or URLs"):
        ps.read(spark, b"PAR1")
    with pytest.raises(OptionError, match="SparkSession"):
        ps.read(folder, spark)
    with pytest.raises(OptionError, match=r"use pyparq\.spark\.count"):
        ps.read(spark, folder, columns=[])
    with pytest.raises(OptionError, match="read_dictionary"):
        ps.read(spark, folder, read_dictionaries=["name"])


def test_files_without_a_common_type(spark: Any, ps: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "2.parquet")
    with pytest.raises(pyparq.SchemaError, match=r"1\.parquet.*2\.parquet"):
        ps.read(spark, tmp_path)


def test_schemas_that_grew(spark: Any, ps: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([1], pa.int32())}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"b": ["x"], "a": pa.array([1 << 40], pa.int64())}), tmp_path / "2.parquet")
    frame = ps.read(spark, tmp_path, small=0)
    assert frame.schema.simpleString() == "struct<a:bigint,b:string>"
    assert rows(frame) == [(1, None), (1 << 40, "x")]
    assert rows(ps.read(spark, tmp_path, schema="b string, c date, a bigint")) == [
        ("x", None, 1 << 40),
        (None, None, 1),
    ]


def test_encrypted_files_with_keys_made_on_the_workers(
    spark: Any, ps: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties = pyparq.EncryptionProperties(footer_key=KEY)
    pyparq.write_table({"a": list(range(50))}, tmp_path / "sealed.parquet", encryption=properties)
    module = tmp_path / "keys_of_this_test.py"
    module.write_text(f"import pyparq\n\ndef make():\n    return pyparq.DecryptionProperties(footer_key={KEY!r})\n")
    spark.sparkContext.addPyFile(str(module))
    for small in (0, 1 << 20):
        frame = ps.read(spark, tmp_path / "sealed.parquet", decryption="keys_of_this_test:make", small=small)
        assert frame.count() == 50
        shown = frame._jdf.queryExecution().toString()
        assert "keys_of_this_test" not in shown
        assert KEY.decode() not in shown
    with pytest.raises(OptionError, match="module:function"):
        ps.read(spark, tmp_path / "sealed.parquet", decryption=pyparq.DecryptionProperties(footer_key=KEY))
    with pytest.raises(OptionError, match="cannot be imported"):
        ps.read(spark, tmp_path / "sealed.parquet", decryption="no_such_module:make")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "keys_of_the_driver.py").write_text(module.read_text())
    monkeypatch.syspath_prepend(str(tmp_path / "here"))
    frame = ps.read(spark, tmp_path / "sealed.parquet", decryption="keys_of_the_driver:make", small=0)
    with pytest.raises(Exception, match="keys_of_the_driver:make' cannot be imported here"):
        frame.collect()
    with pytest.raises(pyparq.EncryptionError):
        ps.read(spark, tmp_path / "sealed.parquet")


# ---- the data source -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def source(spark: Any, ps: Any) -> Any:
    """A reader of the registered data source."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ps.register(spark)
    return lambda **options: spark.read.format("pyparq").options(**options)


def test_the_data_source_gives_sparks_rows(spark: Any, source: Any, folder: Path) -> None:
    theirs = spark.read.parquet(str(folder))
    ours = source().load(str(folder))
    assert ours.schema == theirs.schema
    for where in ("id < 100", "year = 2023 and name = 'n5'", "price > 2"):
        assert rows(ours.where(where)) == rows(theirs.where(where))
    assert ours.count() == 3_000


@pytest.mark.parametrize("filters", ['[["id", ">=", 2995]]', '["id", ">=", 2995]', "id >= 2995"])
def test_options_of_the_data_source(source: Any, folder: Path, filters: str) -> None:
    frame = source(columns='["name", "id"]', filters=filters, partitions="2").load(str(folder))
    assert frame.columns == ["name", "id"]
    assert [row.id for row in frame.orderBy("id").collect()] == [2995, 2996, 2997, 2998, 2999]


def test_little_is_read_in_one_partition_of_the_data_source(source: Any, folder: Path) -> None:
    from pyspark.sql.functions import spark_partition_id

    def partitions(**options: str) -> int:
        frame = source(filters="id < 2000", **options).load(str(folder))
        found: int = frame.select(spark_partition_id()).distinct().count()
        return found

    assert partitions() == 1
    assert partitions(small="0") == 2
    assert partitions(partitions="2") == 2


def test_the_data_source_tells_names_apart_as_its_option_says(source: Any, folder: Path) -> None:
    """It does not see the session's settings."""
    from pyspark.errors import PySparkException

    assert source(columns="ID", filters="ID < 3").load(str(folder)).count() == 3
    with pytest.raises(PySparkException, match="no column 'ID'"):
        source(columns="id", filters="ID < 3", case_sensitive="true").load(str(folder)).count()


def test_a_declared_schema_chooses_the_columns(source: Any, folder: Path) -> None:
    frame = source().schema("year int, id bigint").load(str(folder))
    assert frame.columns == ["year", "id"]
    assert frame.where("id = 2500").collect()[0].year == 2024


def test_what_the_plan_does_not_support_is_an_error(source: Any, folder: Path) -> None:
    """Spark takes a NotImplementedError of a plan for a source with one partition: it must not give no rows."""
    loaded = source(decryption="failing_tasks:no_keys").schema("id bigint").load(str(folder))
    with pytest.raises(Exception, match="there are no keys here"):
        loaded.count()


def test_tables_of_sparks_catalog(spark: Any, source: Any, folder: Path) -> None:
    spark.sql(f"CREATE TABLE seen USING pyparq OPTIONS (path '{folder}', filters 'id < 1500')")
    try:
        assert spark.sql("SELECT year, count(*) n FROM seen GROUP BY year ORDER BY year").collect() == [
            (2022, 1000), (2023, 500),
        ]  # fmt: skip
    finally:
        spark.sql("DROP TABLE seen")


def test_wrong_options_of_the_data_source(source: Any, folder: Path) -> None:
    from pyspark.errors import AnalysisException

    for options, said in (
        ({"filter": "id < 3"}, "the format pyparq has no option 'filter'; did you mean 'filters'"),
        ({"truncate": "maybe"}, "true or false"),
        ({"partitions": "many"}, "whole number"),
    ):
        with pytest.raises(AnalysisException, match=said):
            source(**options).load(str(folder))


def test_the_report_about_pushed_filters_is_true(spark: Any) -> None:
    """The program in docs/spark-pushdown.md gives what the page says. Should it fail, Spark may have mended it."""
    page = (Path(__file__).parents[2] / "docs" / "spark-pushdown.md").read_text()
    program = page.split("```python\n")[1].split("```")[0]
    names: dict[str, Any] = {"__name__": "__main__"}
    try:
        exec(program, names)
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    assert f"**Seen** with Spark {spark.version}: `{names['found']}`" in page


def test_filters_that_spark_pushes_down_still_spoil_later_queries(spark: Any, source: Any, folder: Path) -> None:
    """Spark 4.3 remembers pushed filters on the DataFrame. Should this fail, Spark has mended it: use the pushdown."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = source(pushdown="true").load(str(folder))
        assert frame.where("id = 7").count() == 1
        assert frame.count() < 3_000
        fresh = source(pushdown="true").load(str(folder))
        assert rows(fresh.where("id = 2500").select("id")) == [(2500,)]
        plain = source().load(str(folder))
        assert (plain.where("id = 7").count(), plain.count()) == (1, 3_000)
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
