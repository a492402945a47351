"""Spark jobs on folders that others use too: tables of other formats, rows that are added while a job runs.

The session has Spark's own defaults and a zone with daylight saving.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_managed_tables import MARKERS, files_of, make_table

import pyparq
from pyparq.errors import ManagedTableWarning, OptionError

pytest_plugins = ("spark_session",)
pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def lake(spark: Any) -> Any:
    """A session in New York, with its own settings."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    return session


def stream_to(session: Any, tmp_path: Path, target: Path, **options: str) -> None:
    (tmp_path / "in").mkdir(exist_ok=True)
    pyparq.write_table({"x": [7]}, tmp_path / "in" / "a.parquet")
    rows = session.readStream.schema("x long").parquet(str(tmp_path / "in"))
    writer = rows.writeStream.format("pyparq").trigger(availableNow=True).options(**options)
    writer.option("checkpointLocation", str(tmp_path / f"check{len(options)}")).start(str(target)).awaitTermination()


@pytest.mark.parametrize("marker", [MARKERS[0], MARKERS[1]])
def test_no_writer_touches_a_table_of_another_format(lake: Any, ps: Any, tmp_path: Path, marker: str) -> None:
    table = make_table(tmp_path / "t", marker)
    before, inner = files_of(table), table / "data"
    ps.register(lake)
    frame = lake.createDataFrame([(3,)], "x long")
    for mode in ("append", "overwrite"):
        with pytest.raises(OptionError, match="force=True"):
            ps.write(frame, inner, mode=mode)
        with pytest.raises(Exception, match="force=True"):
            frame.write.format("pyparq").mode(mode).save(str(inner))
    with pytest.warns(ManagedTableWarning), pytest.raises(OptionError, match="force=True"):
        ps.rewrite(lake, str(inner))
    with pytest.raises(Exception, match="force=True"):
        stream_to(lake, tmp_path, inner)
    assert files_of(table) == before


def test_force_writes_all_the_same(lake: Any, ps: Any, tmp_path: Path) -> None:
    table = make_table(tmp_path / "t")
    ps.register(lake)
    frame = lake.createDataFrame([(3,)], "x long")
    ps.write(frame, table / "a", mode="append", force=True)
    frame.write.format("pyparq").mode("append").option("force", "true").save(str(table / "b"))
    stream_to(lake, tmp_path, table / "c", force="true")
    with pytest.warns(ManagedTableWarning):
        ps.rewrite(lake, str(table / "a"), force=True)
    assert [pyparq.read_table(f).num_rows for name in "abc" for f in (table / name).glob("*.parquet")] == [1, 1, 1]


def test_reading_a_table_of_another_format_warns(lake: Any, ps: Any, tmp_path: Path) -> None:
    table = str(make_table(tmp_path / "t"))
    with pytest.warns(ManagedTableWarning, match="Delta Lake"):
        assert ps.read(lake, table).count() == 2
    with pytest.warns(ManagedTableWarning, match="Delta Lake"):
        assert ps.count(lake, table) == 2
