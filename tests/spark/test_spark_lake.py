"""Spark jobs on folders that others use too: tables of other formats, rows that are added while a job runs.

The session has Spark's own defaults and a zone with daylight saving.
"""

from __future__ import annotations

import shutil
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


@pytest.mark.slow
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


@pytest.mark.slow
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
    from pyparq.spark import rewriting, writing

    done: list[None] = []

    def first(call: Any) -> Any:
        def both(*args: Any, **kwargs: Any) -> Any:
            if not done:
                done.append(None)
                do()
            return call(*args, **kwargs)

        return both

    places: dict[str, tuple[Any, str]] = {
        "planning": (rewriting, "planned"), "tasks": (rewriting, "in_tasks"), "commit": (writing, "commit")
    }  # fmt: skip
    module, name = places[when]
    monkeypatch.setattr(module, name, first(getattr(module, name)))


def numbers(folder: Path) -> list[int]:
    return sorted(pyparq.read_table(folder)["x"].to_pylist())


@pytest.mark.sweep(3)
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


@pytest.mark.slow
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


# ---- folders that Spark itself manages -------------------------------------------------------------------------------


def spark_stream(session: Any, tmp_path: Path) -> Path:
    """A folder that a stream of Spark has written: 3 files of 10 rows, and one of a batch that did not end."""
    for k in range(3):
        pyparq.write_table({"id": list(range(10 * k, 10 * k + 10))}, tmp_path / "in" / f"{k}.parquet")
    rows = session.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    sink = rows.writeStream.format("parquet").trigger(availableNow=True)
    sink.option("checkpointLocation", str(tmp_path / "check")).start(str(tmp_path / "out")).awaitTermination()
    stray = next((tmp_path / "out").glob("part-*.parquet"))
    shutil.copy(stray, stray.with_name(f"part-00000-{'1' * 8}-c000.snappy.parquet"))
    return tmp_path / "out"


def test_a_folder_of_a_stream_is_what_its_log_says(lake: Any, ps: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    folder = spark_stream(lake, tmp_path)
    wanted = sorted(row.id for row in lake.read.parquet(str(folder)).collect())
    assert wanted == list(range(30))
    assert len(list(folder.glob("*.parquet"))) == 4
    assert sorted(pyparq.read_table(folder)["id"].to_pylist()) == wanted
    assert ps.count(lake, folder) == 30
    assert sorted(row.id for row in ps.read(lake, folder, small=0).collect()) == wanted
    before, more = files_of(folder), lake.range(3)
    for change in (
        lambda: ps.write(more, folder, mode="append"),
        lambda: ps.write(more, folder, mode="overwrite"),
        lambda: ps.compact(lake, folder),
        lambda: ps.rewrite(lake, folder, sort_by=["id"]),
        lambda: ps.add_indexes(lake, folder, bloom_filters=["id"]),
        lambda: pyparq.add_indexes(folder, bloom_filters=["id"]),
    ):
        with pytest.raises(OptionError, match="structured streaming"):
            change()
    assert files_of(folder) == before
    assert sorted(row.id for row in lake.read.parquet(str(folder)).collect()) == wanted


def test_a_bucketed_table_keeps_its_buckets(lake: Any, ps: Any, tmp_path: Path) -> None:
    rows, where = lake.range(300).selectExpr("id", "id % 7 g"), str(tmp_path / "t")
    lake.sql("drop table if exists buckets")
    rows.write.option("path", where).bucketBy(4, "g").saveAsTable("buckets")
    joined = "select count(*) n from buckets a join buckets b on a.g = b.g"
    grouped = "select g, count(*) n from buckets group by g order by g"
    try:
        before = [lake.sql(text).collect() for text in (joined, grouped)]
        for change in (
            lambda: ps.write(rows, where, mode="append"),
            lambda: ps.write(rows, where, mode="overwrite"),
            lambda: ps.compact(lake, where),
            lambda: ps.rewrite(lake, where, sort_by=["id"]),
            lambda: pyparq.write_dataset({"id": [1], "g": [1]}, where, mode="append"),
        ):
            with pytest.raises(OptionError, match="bucketed table"):
                change()
        assert all(row.ok for row in ps.add_indexes(lake, where, bloom_filters=["id"]).collect())  # in their places
        lake.sql("refresh table buckets")
        assert [lake.sql(text).collect() for text in (joined, grouped)] == before
    finally:
        lake.sql("drop table if exists buckets")
