"""Files as Spark writes them without settings, in a session zone with daylight saving: values, types and filters."""

from __future__ import annotations

import datetime as dt
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
import pyparq.parquet
from pyparq import col

pytest_plugins = ("spark_session",)
pytestmark = pytest.mark.spark

ROWS = """
    (1, timestamp '2024-07-01 12:00:00', timestamp_ntz '2024-07-01 12:00:00'),
    (2, timestamp '2024-03-10 02:30:00', timestamp_ntz '2024-03-10 02:30:00'),
    (3, timestamp '2024-11-03 01:30:00', timestamp_ntz '2024-11-03 01:30:00'),
    (4, timestamp '9999-12-31 00:00:00', timestamp_ntz '9999-12-31 00:00:00'),
    (5, timestamp '1600-02-29 23:59:59.123456', timestamp_ntz '1600-02-29 23:59:59.123456'),
    (6, timestamp '0001-01-01 00:00:00', timestamp_ntz '0001-01-01 00:00:00'),
    (7, null, null)
"""


@pytest.fixture
def berlin() -> Iterator[None]:
    """The zone of this process: none of the session's."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "Europe/Berlin"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


@pytest.fixture(params=["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"])
def events(request: Any, usual: Any, tmp_path: Path) -> Path:
    usual.conf.set("spark.sql.parquet.outputTimestampType", request.param)
    usual.sql(f"select * from values {ROWS} as t(id, ts, ntz)").coalesce(1).write.parquet(str(tmp_path / "events"))
    usual.conf.unset("spark.sql.parquet.outputTimestampType")
    return tmp_path / "events"


def shown(frame: Any) -> list[Any]:
    """Rows with points in time as Spark prints them: PySpark's own datetimes end at the year 9999."""
    return sorted(tuple(row) for row in frame.selectExpr("id", "string(ts)", "string(ntz)").collect())


@pytest.mark.parametrize("small", [0, 1 << 20])
def test_a_timestamp_is_an_instant(usual: Any, ps: Any, events: Path, small: int) -> None:
    own, ours = usual.read.parquet(str(events)), ps.read(usual, events, small=small)
    assert ours.schema.simpleString() == own.schema.simpleString()
    assert shown(ours) == shown(own)


def test_what_was_read_is_written(usual: Any, ps: Any, events: Path, tmp_path: Path) -> None:
    own = usual.read.parquet(str(events))
    ps.write(ps.read(usual, events), tmp_path / "copy")
    assert shown(usual.read.parquet(str(tmp_path / "copy"))) == shown(own)


def test_the_data_source_too(usual: Any, ps: Any, events: Path) -> None:
    ps.register(usual)
    own, ours = usual.read.parquet(str(events)), usual.read.format("pyparq").load(str(events))
    assert ours.schema.simpleString() == own.schema.simpleString()
    assert shown(ours) == shown(own)


CONDITIONS = [
    "ts = '2024-07-01 12:00:00'",
    "ts = timestamp '2024-07-01 12:00:00'",
    "ts = timestamp '2024-07-01 16:00:00Z'",
    "ts >= '2024-07-01' and ts < '2024-07-02'",
    "ts = date '9999-12-31'",
    "ts > '5000-01-01'",
    "ts < '1700-01-01'",
    "ts <= '0001-01-01'",
    "ts in ('2024-03-10 02:30:00', '1600-02-29 23:59:59.123456')",
    "ts = '2024-03-10 03:30:00'",  # what the gap's 02:30 is
    "ts = '2024-11-03 05:30:00Z'",  # the first of two half past one
    "ts = '2024-11-03 06:30:00Z'",
    "ts between '2024-01-01' and '2024-12-31'",
    "not ts = '2024-07-01 12:00:00'",
    "ntz = '2024-07-01 12:00:00'",
    "ntz > '5000-01-01'",
]


@pytest.mark.sweep(3)
def test_filters_are_in_the_session_zone(usual: Any, ps: Any, events: Path, berlin: None) -> None:
    own = usual.read.parquet(str(events)).cache()
    for where in CONDITIONS:
        assert shown(ps.read(usual, events, filters=where)) == shown(own.where(where)), where
    for where in CONDITIONS[:3]:
        assert shown(ps.read(usual, events, filters=where, small=0)) == shown(own.where(where)), where
    assert ps.count(usual, events, "ts > '5000-01-01'") == 1


def test_python_datetimes_are_in_the_zone_of_python(usual: Any, ps: Any, events: Path, berlin: None) -> None:
    from pyspark.sql import functions as F

    noon = dt.datetime(2024, 7, 1, 18)  # in Berlin: noon in New York
    assert ps.count(usual, events, col("ts") == noon) == 1
    assert usual.read.parquet(str(events)).where(F.col("ts") == F.lit(noon)).count() == 1
    aware = dt.datetime(2024, 7, 1, 16, tzinfo=dt.UTC)
    assert ps.count(usual, events, col("ts").isin([aware])) == 1
    day = dt.date(2024, 7, 1)
    own = usual.read.parquet(str(events)).where(F.col("ts") >= F.lit(day)).count()
    assert ps.count(usual, events, col("ts") >= day) == own


def test_many_files_are_planned_in_the_session_zone(usual: Any, ps: Any, events: Path) -> None:
    usual.conf.set("spark.pyparq.planInTasksAbove", "0")
    assert ps.count(usual, events, "ts = '2024-07-01 12:00:00'") == 1
    assert shown(ps.read(usual, events)) == shown(usual.read.parquet(str(events)))


@pytest.mark.sweep(3)
def test_the_data_source_is_told_the_zone(usual: Any, ps: Any, events: Path) -> None:
    ps.register(usual)
    where = "ts = '2024-07-01 12:00:00'"
    reader = usual.read.format("pyparq").option("filters", where)
    assert reader.option("time_zone", "America/New_York").load(str(events)).count() == 1
    with pytest.raises(Exception, match="time_zone"):
        usual.read.format("pyparq").option("filters", where).load(str(events)).count()


def test_indexes_are_added(usual: Any, ps: Any, events: Path) -> None:
    own = shown(usual.read.parquet(str(events)))
    assert ps.add_indexes(usual, events, bloom_filters=["id"]).where("not ok").count() == 0
    assert shown(usual.read.parquet(str(events))) == own
    assert ps.count(usual, events, "ts > '5000-01-01'") == 1


def stored(folder: Path) -> set[tuple[Any, ...]]:
    """The stored types of the columns, of each kind of file."""
    found = set()
    for path in folder.glob("*.parquet"):
        schema = pq.ParquetFile(path).schema
        leaves = [schema.column(k) for k in range(len(schema))]
        found.add(tuple((c.name, c.physical_type, c.length, str(c.logical_type), c.converted_type) for c in leaves))
    return found


@pytest.mark.sweep(3)
@pytest.mark.parametrize("in_place", [True, False])
def test_a_rewrite_keeps_the_stored_types(usual: Any, ps: Any, events: Path, tmp_path: Path, in_place: bool) -> None:
    own, types = shown(usual.read.parquet(str(events))), stored(events)
    target = None if in_place else tmp_path / "sorted"
    ps.rewrite(usual, events, target, sort_by=["ts"])
    there = events if in_place else tmp_path / "sorted"
    assert shown(usual.read.parquet(str(there))) == own
    assert stored(there) == types


def test_python_reads_the_microseconds_that_spark_wrote(usual: Any, ps: Any, events: Path) -> None:
    """Also 9999-12-31, which stands for "never": nanoseconds in 64 bits end in 2262. The drop-in is as pyarrow is."""
    own = usual.read.parquet(str(events)).selectExpr("id", "unix_micros(ts) us").orderBy("id")
    expected = [row.us for row in own.collect()]
    found = pyparq.read_table(events).to_arrow().sort_by("id")["ts"]
    assert found.type.unit in ("us", "ms")
    ticks = found.cast(pa.int64()).to_pylist()
    factor = 1 if found.type.unit == "us" else 1_000
    assert [None if us is None else us // factor for us in expected] == ticks
    assert pyparq.dataset(events).count(col("ts") > np.datetime64("5000-01-01")) == 1
    assert ps.write(usual.read.parquet(str(events)), events.parent / "copy").files
    assert pyparq.read_table(events.parent / "copy").num_rows == 7
    if pq.read_schema(next(events.glob("*.parquet"))).field("ts").type.unit == "ns":  # INT96
        with pytest.raises(pyparq.DataError, match="nanoseconds"):
            pyparq.parquet.read_table(events)
