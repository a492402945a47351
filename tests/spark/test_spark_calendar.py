"""Files that Spark writes in legacy mode, with its other defaults, in a zone with daylight saving: the JVM is the
oracle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pyparq
from pyparq.format.hybrid_calendar import to_gregorian
from pyparq.format.types import LeafType, Physical

pytest_plugins = ("spark_session",)
pytestmark = pytest.mark.spark

DATES = [
    "0001-01-01", "0100-02-28", "0100-03-01", "1000-02-28", "1000-03-01", "1500-01-01", "1500-03-01", "1582-10-04",
    "1582-10-15", "1883-11-18", "1900-01-01", "2024-07-01", "9999-12-31",
]  # fmt: skip
TIMES = ["00:00:00", "12:01:30.123456", "23:59:59"]


@pytest.fixture(params=["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"])
def legacy(request: Any, usual: Any, tmp_path: Path) -> Path:
    rows = ", ".join(
        f"({100 * k + j}, date '{date}', timestamp '{date} {time}', timestamp_ntz '{date} {time}')"
        for k, date in enumerate(DATES)
        for j, time in enumerate(TIMES)
    )
    usual.conf.set("spark.sql.parquet.outputTimestampType", request.param)
    usual.conf.set("spark.sql.parquet.datetimeRebaseModeInWrite", "LEGACY")
    usual.conf.set("spark.sql.parquet.int96RebaseModeInWrite", "LEGACY")
    frame = usual.sql(
        f"select *, named_struct('day', d, 'at', array(ts)) s, map(d, ts) m from values {rows} as t(id, d, ts, ntz)"
    )
    frame.coalesce(1).write.parquet(str(tmp_path / "old"))
    return tmp_path / "old"


def shown(frame: Any) -> list[Any]:
    return sorted(tuple(row) for row in frame.selectExpr("id", *(f"string({c})" for c in SHOWN)).collect())


SHOWN = ["d", "ts", "ntz", "s.day", "s.at", "map_keys(m)", "map_values(m)"]


@pytest.mark.slow
def test_values_filters_and_rewrites(usual: Any, ps: Any, legacy: Path, tmp_path: Path) -> None:
    own = usual.read.parquet(str(legacy)).cache()
    rows = shown(own)
    assert "1500-01-01" in {row[1] for row in rows}
    for small in (0, 1 << 20):
        assert shown(ps.read(usual, legacy, small=small)) == rows
    wanted = own.selectExpr(*(f"count_if({where})" for where in CONDITIONS)).first()
    assert [ps.count(usual, legacy, where) for where in CONDITIONS] == list(wanted)
    where = CONDITIONS[0]
    assert shown(ps.read(usual, legacy, filters=where, small=0)) == shown(own.where(where))
    ps.register(usual)
    assert shown(usual.read.format("pyparq").load(str(legacy))) == rows

    ps.write(ps.read(usual, legacy), tmp_path / "copy")
    ps.rewrite(usual, legacy, tmp_path / "sorted", sort_by=["ts"])
    for there in ("copy", "sorted"):
        assert shown(usual.read.parquet(str(tmp_path / there))) == rows

    assert ps.add_indexes(usual, legacy, bloom_filters=["d", "s.day"]).where("not ok").count() == 0
    assert ps.verify(usual, legacy).where("not ok").count() == 0
    assert shown(usual.read.parquet(str(legacy))) == rows
    assert [ps.count(usual, legacy, where) for where in CONDITIONS] == list(wanted)
    ps.rewrite(usual, legacy, sort_by=["d"])
    assert shown(usual.read.parquet(str(legacy))) == rows
    own.unpersist()


CONDITIONS = [
    "d = date '1500-01-01'",
    "d < '1582-10-15' and d > '1000-02-28'",
    "d >= '1582-10-10'",
    "d in ('0001-01-01', '1000-03-01', '1582-10-12')",
    "not d = date '1000-03-01'",
    "ts = timestamp '1500-01-01 12:01:30.123456'",
    "ts = timestamp '1500-01-01 12:01:30.123'",
    "ts < timestamp '1883-11-18 12:01:30'",
    "ts >= timestamp '1582-10-15 00:00:00'",
    "ts <= timestamp '0001-01-01 00:00:00'",
    "ts > '2000-01-01'",
    "ntz = timestamp_ntz '1500-01-01 00:00:00'",
    "s.day = date '1500-01-01'",
    "array_contains(s.at, timestamp '1500-01-01 00:00:00')",
]


def test_files_of_both_calendars(usual: Any, ps: Any, tmp_path: Path) -> None:
    for mode in ("LEGACY", "CORRECTED", "LEGACY"):
        usual.conf.set("spark.sql.parquet.datetimeRebaseModeInWrite", mode)
        frame = usual.sql("select date '1500-01-01' d, timestamp '1600-01-01 00:00:00' ts")
        frame.coalesce(1).write.mode("append").parquet(str(tmp_path / "both"))
    own = usual.read.parquet(str(tmp_path / "both"))
    assert own.where("d = '1500-01-01' and ts = '1600-01-01'").count() == 3
    assert ps.count(usual, tmp_path / "both", "d = '1500-01-01' and ts = '1600-01-01'") == 3
    assert pyparq.dataset(tmp_path / "both").read(["d"])["d"].to_pylist() == [row.d for row in own.collect()]
    files = sorted((tmp_path / "both").glob("*.parquet"))
    with pytest.raises(pyparq.UnsupportedError, match=r"calendars.*column d"):
        pyparq.merge(files, tmp_path / "one")
    ps.rewrite(usual, tmp_path / "both", partitions=1)
    assert usual.read.parquet(str(tmp_path / "both")).where("d = '1500-01-01' and ts = '1600-01-01'").count() == 3


ZONES = [
    "America/New_York", "America/Los_Angeles", "Europe/Berlin", "Europe/London", "Europe/Paris", "Asia/Kolkata",
    "Asia/Tokyo", "Asia/Shanghai", "Australia/Sydney", "America/Sao_Paulo", "America/Juneau", "Pacific/Auckland",
    "Africa/Johannesburg", "UTC", "+05:30", "GMT+05:30", "PST",
]  # fmt: skip


def test_instants_as_the_jvm_moves_them(spark: Any) -> None:
    """Instants at random and around all switches, of many zones: years before the first too."""
    moves = spark.sparkContext._jvm.org.apache.spark.sql.catalyst.util.RebaseDateTime
    chosen = np.random.default_rng(5)
    days = np.concatenate((chosen.integers(-900_000, 0, 60), [-719164, -354221, -354220, -141428, -141427]))
    leaf = LeafType(Physical.INT32, "date", hybrid="UTC")
    want = [moves.rebaseJulianToGregorianDays(int(day)) for day in days]
    assert to_gregorian(days.astype(np.int32), leaf).tolist() == want
    for zone in ZONES:
        leaf = LeafType(Physical.INT64, "timestamp", unit="us", utc=True, hybrid=zone)
        seconds = [*chosen.integers(-80_000_000_000, 0, 60), *(days[-5:] * 86_400), -2_717_650_800, -2_208_988_800]
        instants = np.array([1_000_000 * s + k for s in seconds for k in (-1, 0, 123_456)], np.int64)
        want = [moves.rebaseJulianToGregorianMicros(zone, int(us)) for us in instants]
        assert to_gregorian(instants, leaf).tolist() == want, zone


@pytest.mark.slow
def test_a_stream_of_old_files(spark: Any, usual: Any, ps: Any, tmp_path: Path) -> None:
    usual.conf.set("spark.sql.parquet.datetimeRebaseModeInWrite", "LEGACY")
    usual.sql("select 1 id, date '1500-01-01' d").coalesce(1).write.parquet(str(tmp_path / "in"))
    ps.register(spark)
    stream = spark.readStream.schema("id int, d date").parquet(str(tmp_path / "in"))
    query = stream.writeStream.format("pyparq").option("checkpointLocation", str(tmp_path / "check"))
    query.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()
    assert pyparq.read_table(tmp_path / "out")["d"].to_pylist() == [np.datetime64("1500-01-01").item()]
    assert [str(row.d) for row in usual.read.parquet(str(tmp_path / "out")).collect()] == ["1500-01-01"]
    assert pa.table(pyparq.dataset(tmp_path / "out").read(["d"])).num_rows == 1
