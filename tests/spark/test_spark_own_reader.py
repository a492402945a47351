"""A read by Spark's own reader gives the same rows and types as one by pyparq, or it is refused and says why."""

from __future__ import annotations

import datetime as dt
import os
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import spark_frames

import pyparq
from pyparq import EncryptionProperties, col
from pyparq.errors import OptionError, UnsupportedError

pytest_plugins = ("spark_session",)
pytestmark = pytest.mark.spark


def text(value: Any) -> str:
    """A value as text in which NaN equals itself."""
    if isinstance(value, dict):
        return str({name: text(item) for name, item in value.items()})
    return str([text(item) for item in value]) if isinstance(value, (list, tuple)) else repr(value)


def rows_of(frame: Any) -> list[str]:
    """The rows as text. Points in time are numbers."""
    table = frame.toArrow()
    columns = []
    for column in table.columns:
        kind = column.type
        if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
            column = column.cast(pa.int64())
        elif pa.types.is_date(kind):
            column = column.cast(pa.int32())
        columns.append([text(value) for value in column.to_pylist()])
    return sorted(map(str, zip(*columns, strict=True)))


def is_own(frame: Any) -> bool:
    """Whether Spark's own reader reads it: only this one knows its files."""
    return bool(frame.inputFiles())


def same(ps: Any, session: Any, source: Any, **asked: Any) -> str | None:
    """Compare both readers. Returns why Spark's own is not used, ``None`` where it is."""
    ours = ps.read(session, source, engine="pyparq", small=0, **asked)
    try:
        own = ps.read(session, source, engine="spark", small=0, **asked)
    except UnsupportedError as error:
        return str(error)
    assert is_own(own)
    assert not is_own(ours)
    assert own.schema == ours.schema
    assert rows_of(own) == rows_of(ours)
    return None


# ---- types -----------------------------------------------------------------------------------------------------------

MOMENTS = [0, 1_710_054_000_000_000, 1_730_610_000_123_456, -62_000_000_000_000_000, None]
"""With hours that New York skips and shows twice."""
COMMON: dict[str, pa.Array] = {
    "i8": pa.array([1, -128, 127, 0, None], pa.int8()),
    "i16": pa.array([1, -32768, 32767, 0, None], pa.int16()),
    "i32": pa.array([1, -(1 << 31), 7, 0, None], pa.int32()),
    "i64": pa.array([1, -(1 << 63), 7, 0, None], pa.int64()),
    "f32": pa.array([1.5, float("nan"), float("-inf"), -0.0, None], pa.float32()),
    "f64": pa.array([1.5, float("nan"), float("inf"), 0.0, None], pa.float64()),
    "bool": pa.array([True, False, True, False, None]),
    "text": pa.array(["a", "", "é\U0001f600", "a'b\\", None]),
    "bytes": pa.array([b"a", b"", b"\xff", b"\0", None]),
    "date": pa.array([0, 19_000, -700_000, 100, None], pa.int32()).cast(pa.date32()),
    "instant": pa.array(MOMENTS, pa.int64()).cast(pa.timestamp("us", "UTC")),
    "clock": pa.array(MOMENTS, pa.int64()).cast(pa.timestamp("us")),
    "millis": pa.array([0, 1_710_054_000_000, 1_730_610_000_123, -1, None], pa.int64()).cast(pa.timestamp("ms", "UTC")),
    "d5": pa.array([Decimal("1.23"), Decimal("-999.99"), None, Decimal("0.00"), None], pa.decimal128(5, 2)),
    "d18": pa.array([10**17, -(10**17), None, 0, None], pa.decimal128(18, 0)),
    "d38": pa.array([Decimal(10**30), Decimal(-1), None, Decimal(0), None], pa.decimal128(38, 5)),
    "list": pa.array([[1, None], [], None, [3], [4]], pa.list_(pa.int32())),
    "struct": pa.array([{"a": 1, "b": "x"}, {"a": None, "b": None}, None, {"a": 2, "b": ""}, None],
                       pa.struct([("a", pa.int64()), ("b", pa.string())])),
    "map": pa.array([[("a", 1)], [], None, [("b", None)], None], pa.map_(pa.string(), pa.int64())),
    "deep": pa.array([[{"x": [1.5]}], [None], None, [], [{"x": None}]],
                     pa.list_(pa.struct([("x", pa.list_(pa.float64()))]))),
}  # fmt: skip
OURS: dict[str, pa.Array] = {
    "u8": pa.array([1, 255, 0, 2, None], pa.uint8()),
    "u32": pa.array([1, (1 << 32) - 1, 0, 2, None], pa.uint32()),
    "u64": pa.array([1, (1 << 64) - 1, 0, 2, None], pa.uint64()),
    "f16": pa.array(np.array([1.5, 2, 3, 4, 5], np.float16)),
    "time": pa.array([1, 2, 3, 86_399_000_000, None], pa.time64("us")),
    "duration": pa.array([1, -2, 3, 0, None], pa.duration("us")),
    "fixed": pa.array([b"ab", b"cd", b"ef", b"gh", None], pa.binary(2)),
    "nanos": pa.array([0, 1000, 2000, -1000, None], pa.timestamp("ns", "UTC")),
    "in_struct": pa.array([{"t": 1}, None, {"t": None}, {"t": 2}, {"t": 3}], pa.struct([("t", pa.uint16())])),
}


@pytest.fixture(params=["true", "false"])
def session(usual: Any, request: pytest.FixtureRequest) -> Any:
    """In New York, with ANSI and without."""
    usual.conf.set("spark.sql.ansi.enabled", request.param)
    return usual


@pytest.mark.sweep(2)
def test_types(session: Any, ps: Any, tmp_path: Path) -> None:
    table = pa.table({**COMMON, **OURS})
    pq.write_table(table, tmp_path / "pyarrow.parquet")
    pyparq.write_table(table, tmp_path / "pyparq.parquet")
    for name in ("pyarrow", "pyparq"):
        file = tmp_path / f"{name}.parquet"
        assert same(ps, session, file, columns=list(COMMON)) is None
        for column in OURS:
            assert f"would not read the column '{column}'" in (same(ps, session, file, columns=[column]) or "")
            if column != "time":  # Spark has no type for it unless a setting is set
                assert ps.read(session, file, columns=[column]).count() == 5
    pq.write_table(pa.table(COMMON), tmp_path / "int96.parquet", use_deprecated_int96_timestamps=True)
    assert same(ps, session, tmp_path / "int96.parquet", columns=["instant", "millis", "i8"]) is None


@pytest.mark.sweep(2)
def test_files_of_spark(session: Any, ps: Any, tmp_path: Path) -> None:
    names = [name for name in COMMON if name != "millis"]
    frame = session.createDataFrame(pa.table({name: COMMON[name] for name in names}))
    frame.write.parquet(str(tmp_path / "plain"))
    frame.selectExpr("*", "interval '3' day as span", "parse_json('{\"a\": 1}') as v").write.parquet(
        str(tmp_path / "more")
    )
    assert same(ps, session, tmp_path / "plain") is None
    assert same(ps, session, tmp_path / "more", columns=["span"]) is None  # bigint by both
    assert "would not read the column 'v'" in (same(ps, session, tmp_path / "more", columns=["v"]) or "")
    session.conf.set("spark.sql.parquet.datetimeRebaseModeInWrite", "LEGACY")
    session.conf.set("spark.sql.parquet.int96RebaseModeInWrite", "LEGACY")
    frame.select("date", "instant", "i8").write.parquet(str(tmp_path / "old"))
    assert same(ps, session, tmp_path / "old", columns=["i8"]) is None
    for column in ("date", "instant"):
        assert f"would not read the column '{column}'" in (same(ps, session, tmp_path / "old", columns=[column]) or "")
    session.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY")
    assert "datetimeRebaseModeInRead is LEGACY" in (same(ps, session, tmp_path / "plain") or "")


def run_random(session: Any, ps: Any, folder: Path, seed: int) -> tuple[int, int]:
    """Random frames that Spark writes by random settings, column by column: how many columns both readers read, and
    how many pyparq alone."""
    chance, both, alone = random.Random(seed), 0, 0
    settings = spark_frames.settings(chance)
    settings["spark.sql.parquet.int96RebaseModeInWrite"] = settings["spark.sql.parquet.datetimeRebaseModeInWrite"]
    is_refused = settings["spark.sql.parquet.int96RebaseModeInWrite"] == "EXCEPTION"
    oldest = -2_208_988_800_000_000 if is_refused else spark_frames.YEAR_1
    frame = session.createDataFrame(spark_frames.table(chance, 60, 12, oldest))
    for name, value in settings.items():
        session.conf.set(name, value) if name.startswith("spark.") else None
    hadoop = {name: value for name, value in settings.items() if not name.startswith("spark.")}
    frame.repartition(2).write.options(**hadoop).parquet(str(folder / str(seed)))
    for name in frame.columns:
        why = same(ps, session, folder / str(seed), columns=[(name,)])
        both, alone = both + (why is None), alone + (why is not None)
    return both, alone


def test_random_frames(usual: Any, ps: Any, tmp_path: Path) -> None:
    both, alone = run_random(usual, ps, tmp_path, 1)
    assert both >= 3, (both, alone)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_random_frames(usual: Any, ps: Any, tmp_path: Path) -> None:
    first, _, last = os.environ.get("PYPARQ_SPARK_SEEDS", "100-123").partition("-")
    found = [run_random(usual, ps, tmp_path, seed) for seed in range(int(first), int(last or first) + 1)]
    print(
        f"{sum(both for both, _ in found)} columns by both readers, {sum(alone for _, alone in found)} by pyparq alone"
    )


# ---- what is pyparq's ------------------------------------------------------------------------------------------------

NUMBERS = pa.table(
    {"id": pa.array(range(100), pa.int64()), "x": np.arange(100) / 4, "s": [f"s{k}" for k in range(100)]}
)


def test_encodings_and_codecs(usual: Any, ps: Any, tmp_path: Path) -> None:
    cases: dict[str, tuple[dict[str, Any], str | None]] = {
        "v2": ({"data_page_version": "2.0", "compression": "zstd"}, None),
        "v2 plain": ({"data_page_version": "2.0", "compression": "none"}, None),
        "v1 plain": ({"compression": "none"}, None),
        "gzip": ({"compression": "gzip"}, None),
        "lz4": ({"compression": "lz4"}, None),
        "brotli": ({"compression": "brotli"}, "codec BROTLI"),
        "split": ({"use_dictionary": False, "column_encoding": {"x": "BYTE_STREAM_SPLIT"}},
                  "encoding BYTE_STREAM_SPLIT"),
        "delta": ({"use_dictionary": False, "column_encoding": {"s": "DELTA_BYTE_ARRAY"}}, "encoding DELTA_BYTE_ARRAY"),
        "packed": ({"use_dictionary": False, "column_encoding": {"id": "DELTA_BINARY_PACKED"}}, None),
    }  # fmt: skip
    for name, (options, wanted) in cases.items():
        pq.write_table(NUMBERS, tmp_path / f"{name}.parquet", **options)
        why = same(ps, usual, tmp_path / f"{name}.parquet")
        assert why is None if wanted is None else wanted in (why or ""), name
    text = pa.table(
        {"s": [f"{k // 3:07}" for k in range(50_000)], "t": [f"{k}{'y' * (k % 40)}" for k in range(50_000)]}
    )
    by = {"s": "DELTA_BYTE_ARRAY", "t": "DELTA_LENGTH_BYTE_ARRAY"}
    for options, wanted in (
        ({}, None), ({"compression": "none"}, "encoding DELTA"), ({"data_page_version": "2.0"}, "encoding DELTA"),
    ):  # fmt: skip
        pyparq.write_table(text, tmp_path / "text.parquet", use_dictionary=False, column_encoding=by, **options)
        why = same(ps, usual, tmp_path / "text.parquet")
        assert why is None if wanted is None else wanted in (why or ""), options


def test_packed_integers_of_every_kind(usual: Any, ps: Any, tmp_path: Path) -> None:
    """With nulls, and over many pages."""
    count, made = 30_000, {}
    for name in ("i8", "i16", "i32", "i64", "date", "instant", "clock", "millis"):
        kind = COMMON[name].type
        storage = pa.int32() if pa.types.is_date(kind) else pa.int64()
        numbers = [None if k % 11 == 0 else k % 100 * (k % 3 - 1) for k in range(count)]
        made[name] = pa.array(numbers, kind if pa.types.is_integer(kind) else storage).cast(kind)
    by = dict.fromkeys(made, "DELTA_BINARY_PACKED")
    for codec in ("none", "snappy"):
        pyparq.write_table(pa.table(made), tmp_path / "a.parquet", use_dictionary=False, column_encoding=by,
                           compression=codec, data_page_size=2000)  # fmt: skip
        assert same(ps, usual, tmp_path / "a.parquet") is None


def test_files_that_differ(usual: Any, ps: Any, tmp_path: Path) -> None:
    def two(name: str, one: Any, other: Any) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        pyparq.write_table(one, folder / "1.parquet")
        pyparq.write_table(other, folder / "2.parquet")
        return folder

    i32, i64 = pa.array([1], pa.int32()), pa.array([2], pa.int64())
    assert same(ps, usual, two("missing", {"a": [1], "b": ["x"]}, {"a": [2]})) is None
    assert "would not read the column 'a'" in (same(ps, usual, two("wider", {"a": i32}, {"a": i64})) or "")
    assert "spelled otherwise" in (same(ps, usual, two("case", {"a": i64}, {"A": i64})) or "")
    inner = [pa.array([row]) for row in ({"x": 1}, {"x": 1, "y": 2})]
    assert "would not read the column 's'" in (same(ps, usual, two("deep", {"s": inner[0]}, {"s": inner[1]})) or "")
    usual.conf.set("spark.sql.caseSensitive", "true")
    both = two("cases", {"a": [1], "A": [2]}, {"a": [3], "A": [4]})
    assert "differ by case alone" in (same(ps, usual, both) or "")


def test_partitions(usual: Any, ps: Any, tmp_path: Path) -> None:
    def parted(name: str, folders: list[str]) -> Path:
        for k, folder in enumerate(folders):
            (tmp_path / name / folder).mkdir(parents=True)
            pyparq.write_table({"id": [k, k + 10]}, tmp_path / name / folder / "a.parquet")
        return tmp_path / name

    null = "__HIVE_DEFAULT_PARTITION__"
    known = parted("known", [f"i={n}/s={s}/d={d}" for n, s, d in (
        ("1", "01", "2024-03-10"), ("-7", "a b", "2024-11-03"), (null, null, null), ("7000000000", "é", "1900-01-01"),
    )])  # fmt: skip
    assert same(ps, usual, known) is None
    assert same(ps, usual, known, columns=["s", "id", "i"]) is None
    assert same(ps, usual, known, columns=["id"]) is None
    assert same(ps, usual, known, filters="i = 1 or d > date'2000-01-01'") is None
    assert same(ps, usual, known, filters=(col("i") == 1) | col("s").is_null()) is None
    for name, folders in {
        "double": ["x=1.5", "x=2.5"],
        "time": ["x=2024-03-10 02:30:00", "x=2024-11-03 01:30:00"],
        "decimal": ["x=12345678901234567890", "x=1"],
    }.items():
        why = same(ps, usual, parted(name, folders))
        assert "partition values" in (why or "") or "reads a path" in (why or ""), name
    assert same(ps, usual, parted("other", ["x=1/sub", "x=2/sub"])) is not None
    (tmp_path / "inside" / "id=5").mkdir(parents=True)
    pyparq.write_table({"id": [1], "x": [2]}, tmp_path / "inside" / "id=5" / "a.parquet")
    assert "a partition column is in the files too" in (same(ps, usual, tmp_path / "inside") or "")


def test_options_and_places(usual: Any, ps: Any, tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(NUMBERS, file)
    for asked, why in (
        ({"partitions": 3}, "partitions="), ({"truncate": True}, "truncate="), ({"filename": True}, "an option"),
        ({"on_error": "skip"}, "left out"), ({"filters": col("id") > 1000}, "no row is left"),
        ({"filters": col("s").like("%7")}, "no equal"),
    ):  # fmt: skip
        assert why in (same(ps, usual, file, **asked) or ""), asked
    with pytest.raises(OptionError, match='must be "auto", "pyparq" or "spark"'):
        ps.read(usual, file, engine="duckdb")
    os.link(file, tmp_path / "a[1].parquet")
    assert "otherwise" in (same(ps, usual, [tmp_path / "a[1].parquet"]) or "")
    (tmp_path / "b c=é.parquet").write_bytes(file.read_bytes())
    assert same(ps, usual, tmp_path / "b c=é.parquet") is None
    usual.range(10).coalesce(1).write.parquet(str(tmp_path / "t"))
    assert same(ps, usual, tmp_path / "t") is None
    (made,) = (tmp_path / "t").glob("*.parquet")
    made.write_bytes(file.read_bytes())
    assert "checksum file" in (same(ps, usual, tmp_path / "t") or "")
    assert ps.read(usual, tmp_path / "t").count() == 100


def test_tables_are_read_by_pyparq(usual: Any, ps: Any, tmp_path: Path) -> None:
    """And so are files in a store, and more files of several folders than Spark lists without a job."""
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(str(tmp_path / "t"), NUMBERS)
    table = deltalake.DeltaTable(str(tmp_path / "t"))
    assert "the log of a table" in (same(ps, usual, table) or "")
    pyparq.write_table(NUMBERS, "memory://own_reader/a.parquet")
    assert "in a store" in (same(ps, usual, "memory://own_reader/a.parquet") or "")
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        for k in range(17):
            pyparq.write_table({"id": [k]}, folder / f"{k}.parquet")
    assert "not in one folder" in (same(ps, usual, folders) or "")
    assert same(ps, usual, [*map(str, sorted(folders[0].iterdir())), str(folders[1] / "3.parquet")]) is None


def test_encrypted_files(usual: Any, ps: Any, tmp_path: Path) -> None:
    """Also one with a plain footer, of which no encrypted column is read."""
    keys = EncryptionProperties(b"k" * 16, column_keys={"x": b"x" * 16}, plaintext_footer=True)
    pyparq.write_table(NUMBERS, tmp_path / "a.parquet", encryption=keys)
    assert "a file is encrypted" in (same(ps, usual, tmp_path / "a.parquet", columns=["id"]) or "")


def test_damaged_pages_are_errors(usual: Any, ps: Any, tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    plain = {"id": "PLAIN"}
    pyparq.write_table({"id": np.arange(1000)}, file, compression="none", use_dictionary=False, column_encoding=plain)
    assert same(ps, usual, file) is None
    data = bytearray(file.read_bytes())
    place = data.find(np.arange(500, 510).tobytes())
    assert place > 0
    data[place] ^= 4
    file.write_bytes(data)
    for engine in ("pyparq", "spark"):
        with pytest.raises(Exception, match=r"(?i)crc|checksum"):
            ps.read(usual, file, engine=engine, small=0).collect()


# ---- filters ---------------------------------------------------------------------------------------------------------

FILTERS = [
    col("i64") > 0, col("i32") == 7, col("i8").isin([1, 127, 300]), ~(col("i64") > 0), col("i64").is_null(),
    col("f64") > 1.0, col("f64") >= float("1.5"), ~(col("f64") > 1.0), col("f64").is_nan(), col("f32") < 0,
    col("bool"), ~col("bool"), col("text") >= "a", col("text") == "a'b\\", col("text").starts_with("a"),
    col("text").isin(["", "é\U0001f600"]),
    col("bytes") == b"\xff", col("date") > dt.date(2000, 1, 1), col("date") == dt.date(2022, 1, 8),
    col("instant") > dt.datetime(2024, 3, 10, 3, tzinfo=dt.UTC), col("instant") <= np.datetime64("2024-03-10T03:00"),
    col("clock") == np.datetime64("2024-03-10T07:00"), col("millis") < dt.datetime(2024, 11, 3, tzinfo=dt.UTC),
    col("d5") > Decimal("1.2"), col("d18") != 0, (col("i64") > 0) & (col("text") == "a") | col("bool").is_null(),
    "f64 > 1.0", "instant >= '2024-03-10'", "clock >= timestamp_ntz'2024-03-10 02:30:00'", "text like 'a%'",
    "i32 in (7, null)", "not (i32 in (7, 1))", "date(instant) = date'2024-03-10'", "i64 <=> null",
    "f64 = double('nan')",
]  # fmt: skip


@pytest.mark.slow
def test_filters(session: Any, ps: Any, tmp_path: Path) -> None:
    table = pa.table(COMMON)
    for k in range(3):
        pq.write_table(table.slice(k), tmp_path / f"{k}.parquet")
    for k, given in enumerate(FILTERS):
        why = same(ps, session, tmp_path, filters=given, columns=["i8", "text"] if k % 2 else None)
        assert why is None or "no row is left" in why, (given, why)


def test_a_column_as_filter_and_what_is_left_to_spark(usual: Any, ps: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    pq.write_table(NUMBERS, tmp_path / "a.parquet")
    assert same(ps, usual, tmp_path, filters=(F.col("id") > 7) & F.col("S").like("s1%")) is None
    assert same(ps, usual, tmp_path, filters="id > 7 and upper(s) = 'S9'", residual=True, columns=["x"]) is None


def test_statistics_do_not_hide_nan(usual: Any, ps: Any, tmp_path: Path) -> None:
    """pyarrow leaves NaN out of statistics. In Spark NaN is above all numbers."""
    pq.write_table(pa.table({"x": [1.0, float("nan")], "id": [1, 2]}), tmp_path / "a.parquet")
    assert same(ps, usual, tmp_path, filters=col("x") > 5) is None
    assert [row.id for row in ps.read(usual, tmp_path, engine="spark", filters="x > 5").collect()] == [2]


# ---- which reader ----------------------------------------------------------------------------------------------------


@pytest.fixture
def nothing_is_little(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyparq.spark import own_reader

    monkeypatch.setattr(own_reader, "LITTLE_BYTES", 0)
    monkeypatch.setattr(own_reader, "LITTLE_ROWS", 0)


@pytest.mark.usefixtures("nothing_is_little")
def test_auto(usual: Any, ps: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for k in range(4):
        pq.write_table(NUMBERS, tmp_path / f"{k}.parquet", row_group_size=10)

    def own(**asked: Any) -> bool:
        return is_own(ps.read(usual, tmp_path, small=0, **asked))

    caplog.set_level("DEBUG", logger="pyparq.spark")
    assert own()
    assert "read by Spark's own reader" in caplog.text
    assert own(filters=col("id") > 50)
    assert own(filters="x > 1 and s > 'a'") == own(filters=(col("x") > 1) & (col("s") > "a"))
    caplog.clear()
    assert not own(filters=col("id") == 50)
    assert "of the rows of the files are left" in caplog.text
    assert not own(filters=col("id") < 12)
    assert not own(engine="pyparq")
    assert ps.read(usual, tmp_path, small=0).limit(10).count() == 10


def test_the_plan_of_spark_shows_who_reads(usual: Any, ps: Any, tmp_path: Path, capsys: Any) -> None:
    pq.write_table(NUMBERS, tmp_path / "a.parquet")
    ps.read(usual, tmp_path, engine="spark", filters=col("id") > 3).explain()
    shown = capsys.readouterr().out
    assert "FileScan parquet" in shown
    assert "MapInArrow" not in shown
    ps.read(usual, tmp_path, engine="pyparq", small=0).explain()
    shown = capsys.readouterr().out
    assert "MapInArrow" in shown
    assert "FileScan" not in shown


def test_a_file_that_is_replaced_is_read_as_spark_does(usual: Any, ps: Any, tmp_path: Path) -> None:
    pq.write_table(NUMBERS, tmp_path / "a.parquet")
    frames = [ps.read(usual, tmp_path, engine="spark"), usual.read.parquet(str(tmp_path))]
    (tmp_path / "a.parquet").unlink()
    said = []
    for frame in frames:
        with pytest.raises(Exception, match=r"a\.parquet") as error:
            frame.collect()
        said.append(type(error.value))
    assert said[0] is said[1]


def test_shares_that_are_expected() -> None:
    from pyparq.spark.own_reader import expected_share

    a, b = col("a"), col("b")
    shares = [expected_share(each) for each in (None, a == 1, ~(a == 1), a > 1, (a > 1) & (b < 2), (a == 1) | (b == 2))]
    assert shares == pytest.approx([1, 0.1, 0.9, 1 / 3, 1 / 9, 0.19])
    assert expected_share(a.isin([1, 2])) == pytest.approx(0.2)
    assert expected_share(a.isin(range(100))) == 0.5
    assert expected_share(a != 1) == pytest.approx(0.9)
    shares = [expected_share(each, {"a"}) for each in (a == 1, (a == 1) & (b > 2), ~(a == 1), (a == 1) | (b == 2))]
    assert shares == pytest.approx([1, 1 / 3, 1, 0.19])


def test_little_is_read_by_pyparq(usual: Any, ps: Any, tmp_path: Path) -> None:
    pq.write_table(NUMBERS, tmp_path / "a.parquet")
    assert not is_own(ps.read(usual, tmp_path, small=0))
    assert is_own(ps.read(usual, tmp_path, engine="spark"))


@pytest.mark.sweep(2)
@pytest.mark.parametrize("above", ["2000", "0"])
@pytest.mark.usefixtures("nothing_is_little")
def test_many_files(usual: Any, ps: Any, tmp_path: Path, above: str) -> None:
    """Spark is given the folder, and its listing is compared."""
    usual.conf.set("spark.pyparq.planInTasksAbove", above)
    for k in range(40):
        (tmp_path / f"g={k % 3}").mkdir(exist_ok=True)
        pyparq.write_table({"id": [k, k + 100]}, tmp_path / f"g={k % 3}" / f"{k}.parquet")
    assert same(ps, usual, tmp_path) is None
    assert same(ps, usual, tmp_path, filters=col("id") != 7) is None
    assert is_own(ps.read(usual, tmp_path, small=0))
    assert is_own(ps.read(usual, tmp_path, small=0, filters=col("g") == 0))  # 14 files, one by one
    assert same(ps, usual, tmp_path, filters=col("g") == 0) is None
    assert not is_own(ps.read(usual, tmp_path, small=0, filters=col("id") == 7))


def differing(folder: Path, chance: random.Random) -> None:
    """Files in two partitions whose columns, encodings, row groups and numbers of rows differ; one has no rows."""
    encodings: list[dict[str, Any]] = [{}, {"use_dictionary": False}, {"compression": "zstd"}, {"row_group_size": 3}]
    by_pyarrow = [{}, {"data_page_version": "2.0"}, {"use_dictionary": False, "compression": "gzip"}]
    (folder / "g=1").mkdir(parents=True)
    (folder / "g=2").mkdir()
    for k in range(60):
        count = 0 if k == 41 else chance.randrange(1, 9)
        columns = {
            "id": pa.array([k * 10 + i for i in range(count)], pa.int64()),
            "x": pa.array([chance.choice([None, float("nan"), k / 7]) for _ in range(count)], pa.float64()),
            "s": pa.array([chance.choice([None, "a", f"s{k}"]) for _ in range(count)], pa.string()),
            "l": pa.array([chance.choice([None, [], [k, None]]) for _ in range(count)], pa.list_(pa.int32())),
        }
        names = chance.sample(list(columns), len(columns) - (k % 5 == 0))
        names = names if "id" in names else ["id", *names]
        table = pa.table({name: columns[name] for name in names})
        file = folder / f"g={1 + k % 2}" / f"{k:02}.parquet"
        if k % 2:
            pyparq.write_table(table, file, **chance.choice(encodings))
        else:
            pq.write_table(table, file, **chance.choice(by_pyarrow))


@pytest.mark.sweep(2)
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.usefixtures("nothing_is_little")
def test_many_files_that_differ(usual: Any, ps: Any, tmp_path: Path, seed: int) -> None:
    """Columns that some files do not have, also where no file is planned before Spark's reader reads."""
    differing(tmp_path / "t", random.Random(seed))
    rows = set[int]()
    for asked in ({}, {"columns": ["s", "g"]}, {"filters": col("id") > 200}, {"filters": "g = 1 and x is not null"},
                  {"filters": ~(col("x") < 3), "columns": ["id", "l"]}):  # fmt: skip
        assert same(ps, usual, tmp_path / "t", **asked) is None, asked
        frame = ps.read(usual, tmp_path / "t", small=0, **asked)
        assert is_own(frame), asked
        rows.add(frame.count())
    assert len(rows) > 3
    assert ps.read(usual, tmp_path / "t", small=0, filters="id = 300").count() == 1
    # One file with a wider type, or with another encoding, among many: pyparq's, whichever it is.
    pyparq.write_table({"id": np.arange(3, dtype=np.int32), "x": [1.0, 2, 3]}, tmp_path / "t" / "g=1" / "50x.parquet")
    assert "would not read the column 'id'" in (same(ps, usual, tmp_path / "t", columns=["id", "s"]) or "")
    assert same(ps, usual, tmp_path / "t", columns=["s"]) is None
    split = {"use_dictionary": False, "column_encoding": {"x": "BYTE_STREAM_SPLIT"}}
    pyparq.write_table({"id": [1], "x": [1.0]}, tmp_path / "t" / "g=2" / "51x.parquet", **split)
    assert "encoding BYTE_STREAM_SPLIT" in (same(ps, usual, tmp_path / "t", columns=["x"]) or "")


@pytest.mark.usefixtures("nothing_is_little")
def test_no_plan_of_each_file(usual: Any, ps: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many files, Spark's reader is chosen by their footers, and by the plans of some where there is a filter."""
    from pyparq.datasets import reader

    planned = list[str]()
    made = reader.FilePlan.of

    def counted(file: Any, combination: int, plan: Any) -> Any:
        planned.append(file.name)
        return made(file, combination, plan)

    for k in range(200):
        pyparq.write_table({"id": [k, k + 1000], "s": ["a", "b"]}, tmp_path / f"{k:03}.parquet")
    monkeypatch.setattr(reader.FilePlan, "of", counted)
    for asked, plans in (({}, 0), ({"filters": col("id") > 100}, 32), ({"filters": "s != 'c'"}, 32)):
        planned.clear()
        assert is_own(ps.read(usual, tmp_path, **asked))
        assert len(planned) == plans, asked
    planned.clear()
    assert not is_own(ps.read(usual, tmp_path, small=0, filters="id = 7"))
    assert len(planned) == 8  # whose ids go from k to k + 1000


@pytest.mark.usefixtures("nothing_is_little")
def test_a_file_that_comes_after_the_plan_is_not_read(
    usual: Any, ps: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by Spark's reader either, which is given the folder and lists it a moment later: pyparq plans again then."""
    from pyparq.spark import reading

    def later(*arguments: Any) -> Any:
        pyparq.write_table({"id": [7]}, tmp_path / "new.parquet")
        return made(*arguments)

    for k in range(40):
        pyparq.write_table({"id": [k]}, tmp_path / f"{k}.parquet")
    made = reading.own_frame
    monkeypatch.setattr(reading, "own_frame", later)
    frame = ps.read(usual, tmp_path, small=0)
    assert not is_own(frame)
    pyparq.write_table({"id": [8]}, tmp_path / "newer.parquet")
    assert sorted(row.id for row in frame.collect()) == [*range(7), 7, *range(7, 40)]
    (tmp_path / "newer.parquet").unlink()
    (tmp_path / "new.parquet").unlink()
    with pytest.raises(UnsupportedError, match=r"Spark lists other files: .*new\.parquet"):
        ps.read(usual, tmp_path, engine="spark")
