"""Spark jobs on folders that others use too: tables of other formats, rows that are added while a job runs.

The session has Spark's own defaults and a zone with daylight saving.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import require
from support.lake_tables import delete_by_vector
from test_after_a_crash import crash_at
from test_managed_tables import MARKERS, files_of, make_table

import pyparq
from pyparq.errors import ManagedTableWarning, OptionError, UnfinishedWriteWarning

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


# ---- a rewrite replaces the files that it read, and no others --------------------------------------------------------


@pytest.fixture
def busy(tmp_path: Path) -> Path:
    """Two files of 50 rows."""
    for first in (0, 50):
        pyparq.write_dataset({"x": list(range(first, first + 50))}, tmp_path / "lake", mode="append")
    return tmp_path / "lake"


def meanwhile(monkeypatch: pytest.MonkeyPatch, when: str, do: Any) -> None:
    """Another program at work: before the planning, before the tasks, or before the commit."""
    import pyparq.spark.rewriting as module

    done: list[None] = []

    def first(call: Any) -> Any:
        def both(*args: Any, **kwargs: Any) -> Any:
            if not done:
                done.append(None)
                do()
            return call(*args, **kwargs)

        return both

    if when == "commit":
        real = module.committer_of

        def watched(spark: Any) -> Any:
            commits = real(spark)
            commits.commit = first(commits.commit)  # type: ignore[method-assign]
            return commits

        monkeypatch.setattr(module, "committer_of", watched)
    else:
        name = {"planning": "planned", "tasks": "replies"}[when]
        monkeypatch.setattr(module, name, first(getattr(module, name)))


def numbers(folder: Path) -> list[int]:
    return sorted(pyparq.read_table(folder)["x"].to_pylist())


@pytest.mark.parametrize("when", ["planning", "tasks", "commit"])
@pytest.mark.parametrize("target", [False, True])
def test_rows_that_are_added_while_a_rewrite_runs_stay(
    lake: Any, ps: Any, busy: Path, monkeypatch: pytest.MonkeyPatch, when: str, target: bool
) -> None:
    meanwhile(monkeypatch, when, lambda: pyparq.write_dataset({"x": [1000, 1001]}, busy, mode="append"))
    places = {"target": str(busy), "mode": "overwrite"} if target else {}
    ps.rewrite(lake, str(busy), filters="x >= 10", **places)
    assert numbers(busy) == [*range(10, 100), 1000, 1001]
    assert len(list(busy.glob("*.parquet"))) == 2


@pytest.mark.parametrize("how", ["index", "rows", "gone"])
def test_a_file_that_changes_while_a_rewrite_runs(
    lake: Any, ps: Any, busy: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    first = sorted(busy.glob("*.parquet"))[0]
    change = {
        "index": lambda: pyparq.add_indexes(first, bloom_filters=["x"]),
        "rows": lambda: pyparq.write_table({"x": [7]}, first),
        "gone": first.unlink,
    }[how]
    meanwhile(monkeypatch, "commit", change)
    with pytest.raises(pyparq.ChangedFileError, match="run the job again"):
        ps.rewrite(lake, str(busy))
    wanted = {"index": 100, "rows": 51, "gone": 50}[how]
    assert len(numbers(busy)) == wanted
    assert not [p for p in busy.iterdir() if p.name.startswith("_pyparq_staging")]
    ps.rewrite(lake, str(busy))
    assert len(numbers(busy)) == wanted


# ---- a write whose commit has begun and not ended --------------------------------------------------------------------


def test_a_half_committed_write_is_not_read(lake: Any, ps: Any, busy: Path) -> None:
    crash_at("moved aside", 1, lambda: pyparq.write_dataset({"x": list(range(200))}, busy, mode="overwrite"))
    ps.register(lake)
    with pytest.warns(UnfinishedWriteWarning):
        assert ps.count(lake, busy) == 100
    with pytest.warns(UnfinishedWriteWarning):
        assert ps.read(lake, busy, small=0).count() == 100
    assert lake.read.format("pyparq").load(str(busy)).count() == 100
    ps.rewrite(lake, busy)
    assert numbers(busy) == list(range(200))


def test_a_table_of_delta_lake(lake: Any, ps: Any, tmp_path: Path) -> None:
    """The log is read here, and Spark's workers read the files that it leaves, without the deleted rows."""
    deltalake, pa = require("deltalake"), require("pyarrow")
    data = pa.table({"id": range(100), "p": ["a", "b"] * 50})
    deltalake.write_deltalake(tmp_path / "t", data, partition_by=["p"])
    paths = pa.table(deltalake.DeltaTable(tmp_path / "t").get_add_actions()).column("path").to_pylist()
    delete_by_vector(tmp_path / "t", {next(path for path in paths if "p=a" in path): [0, 1]})
    table = deltalake.DeltaTable(tmp_path / "t")
    for small in (0, 1 << 20):
        frame = ps.read(lake, table, filters="p = 'a' and id < 10", small=small)
        assert sorted(row.id for row in frame.collect()) == [4, 6, 8]
    assert ps.count(lake, table) == 98
