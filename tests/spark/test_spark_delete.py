"""``pyparq.spark.delete`` and ``update``: which rows and files change, and what stays.

The session has Spark's own defaults and a zone with daylight saving.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyparq
from pyparq import col
from pyparq.errors import ChangedFileError, ColumnNotFoundError, DataError, FilterError, OptionError, UnsupportedError
from pyparq.read.footers.open_file import OpenFile
from pyparq.spark import row_change_tasks, row_changing, staged_rows

pytest_plugins = ("spark_session",)
pytestmark = pytest.mark.spark

ROWS = 4_000


@pytest.fixture
def lake(usual: Any, tmp_path: Path) -> Path:
    """As Spark writes it: partitions of two files each, timestamps as INT96."""
    df = usual.range(ROWS).selectExpr(
        "id", "if(id < 0, null, concat('user ', id)) as name",
        "timestamp'2024-03-09 12:00:00' + make_interval(0,0,0,0,0,id) as t", "id * 2 as v", "id % 2 as g",
    )  # fmt: skip
    df.repartition(2, "id").write.partitionBy("g").parquet(str(tmp_path / "lake"))
    return tmp_path / "lake"


def state(lake: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path.relative_to(lake)): (path.stat().st_ino, path.stat().st_mtime_ns) for path in lake.rglob("*.parquet")
    }


def of_spark(spark: Any, lake: Path) -> list[Any]:
    return spark.read.parquet(str(lake)).orderBy("id").collect()


def test_rows_are_deleted(usual: Any, ps: Any, lake: Path) -> None:
    before, old = of_spark(usual, lake), state(lake)
    text = "t >= '2024-03-10 01:00:00' and t < '2024-03-10 03:30:00' and g = 1"
    goes = {row.id for row in usual.read.parquet(str(lake)).where(text).collect()}
    assert 10 < len(goes) < 200  # the session's zone skips an hour there
    dry = ps.delete(usual, lake, text, dry_run=True).collect()
    assert state(lake) == old
    assert not list(lake.rglob("_pyparq*"))
    report = ps.delete(usual, lake, text).collect()
    assert sum(row.rows_deleted for row in dry) == sum(row.rows_deleted for row in report) == len(goes)
    assert of_spark(usual, lake) == [row for row in before if row.id not in goes]
    new = state(lake)
    changed = {row.path for row in report}
    assert {name for name in old if new.get(name) != old[name]} == changed
    assert all(name.startswith("g=1/") for name in changed)
    assert not list(lake.rglob("_pyparq*"))
    assert pyparq.verify(lake).ok
    assert ps.delete(usual, lake, text).collect() == []
    assert state(lake) == new


def test_a_file_without_rows_goes(usual: Any, ps: Any, lake: Path) -> None:
    before = of_spark(usual, lake)
    report = ps.delete(usual, lake, col("g") == 0).collect()
    assert all(row.removed for row in report)
    assert not list((lake / "g=0").glob("*.parquet"))
    files = len(list((lake / "g=1").glob("*.parquet")))
    kept = ps.delete(usual, lake / "g=1", "id < 3000 and v > 0", keep_empty=True).collect()
    assert [row.removed for row in kept] == [False] * files
    before = [row for row in before if row.id >= 3000]
    assert [(r.id, r.t) for r in of_spark(usual, lake)] == [(r.id, r.t) for r in before if r.id % 2]


@pytest.mark.slow
def test_keys_of_a_frame(usual: Any, ps: Any, lake: Path) -> None:
    before = of_spark(usual, lake)
    keys = usual.range(5_000).where("id % 3 = 0").selectExpr("if(id = 9, null, concat('user ', id)) as name")
    goes = {k for k in range(0, ROWS, 3) if k != 9}
    report = ps.delete(usual, lake, keys=keys.union(keys)).collect()
    assert sum(row.rows_deleted for row in report) == len(goes)
    assert of_spark(usual, lake) == [row for row in before if row.id not in goes]
    assert not list(lake.rglob("_pyparq*"))
    assert ps.delete(usual, lake, keys=keys).count() == 0
    (row,) = ps.delete(usual, lake, keys=usual.createDataFrame([(1,)], "id long")).collect()
    assert (row.rows_deleted, len(of_spark(usual, lake))) == (1, ROWS - len(goes) - 1)
    assert ps.delete(usual, lake, keys=usual.createDataFrame([], "id long")).count() == 0


def test_keys_of_several_columns(usual: Any, ps: Any, lake: Path) -> None:
    """All columns of a row of keys, partition columns among them. A null matches nothing."""
    before = of_spark(usual, lake)
    usual.createDataFrame(
        [(k, k * 2 if k % 5 else k, None if k % 7 == 0 else k % 2) for k in range(0, 600, 3)], "ID long, v int, g int"
    ).createOrReplaceTempView("some_keys")
    keys = usual.table("some_keys")
    stay = usual.read.parquet(str(lake)).join(keys, ["id", "v", "g"], "left_anti").orderBy("id").collect()
    report = ps.delete(usual, lake, keys=keys).collect()
    assert 100 < sum(row.rows_deleted for row in report) == len(before) - len(stay) < 200
    columns = ("id", "v", "g", "name", "t")
    assert [[r[c] for c in columns] for r in of_spark(usual, lake)] == [[r[c] for c in columns] for r in stay]
    assert pyparq.verify(lake).ok


def test_keys_come_in_parts(lake: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """More keys than are held at once are asked for one part after another."""
    some = pa.table({"id": range(0, ROWS, 2), "v": range(0, 2 * ROWS, 4)})
    pyparq.write_table(some, tmp_path / "keys.parquet", row_group_size=100)
    monkeypatch.setattr(staged_rows, "AT_ONCE", 100)
    monkeypatch.setattr(staged_rows, "TUPLES_AT_ONCE", 100)
    part = next(part for part in pyparq.dataset(lake).plan().split() if part.num_rows)
    with pyparq.ParquetFile(part.files[0].where) as file:
        expected = {k for k in file.read(["id"])["id"].to_pylist() if k % 2 == 0}
    opened = row_change_tasks.MatchingFiles(part.scan()).open(0)
    staged = staged_rows.StagedFile(str(tmp_path / "keys.parquet"), 0, ROWS // 2, 1)
    for key in (("id",), ("id", "v")):
        keys = staged_rows.StagedReader(staged_rows.StagedRows(key, (staged,)), None)
        assert len(list(keys.keys_within(opened, {}))) >= 3
        by_keys = row_change_tasks.ByKeys(part, keys, {}, None, None)
        found = by_keys.rows_go(row_change_tasks.Scan(opened.fork(), [], row_groups=[]))
        assert sum(c.gone.count for c in found.values() if c.gone is not None) == len(expected)


def test_rows_are_updated(usual: Any, ps: Any, lake: Path) -> None:
    before = of_spark(usual, lake)
    report = ps.update(usual, lake, "id < 10", {"name": None, "v": col("v") + 1}).collect()
    assert sum(row.rows_updated for row in report) == 10
    wanted = [(r.id, None if r.id < 10 else r.name, r.v + (r.id < 10), r.t) for r in before]
    assert [(r.id, r.name, r.v, r.t) for r in of_spark(usual, lake)] == wanted
    now = state(lake)
    with pytest.raises(DataError, match="not nullable"):  # Spark declares it so
        ps.update(usual, lake, "id < 20", {"id": None})
    assert state(lake) == now
    with pytest.raises(OptionError, match="names of folders"):
        ps.update(usual, lake, "id < 10", {"g": 7})
    with pytest.raises(ColumnNotFoundError):
        ps.update(usual, lake, "id < 10", {"nothing": 7})


@pytest.mark.slow
def test_values_of_spark(usual: Any, ps: Any, lake: Path) -> None:
    """SQL and Columns give what Spark's own expressions give."""
    from pyspark.sql import functions as F

    where = "id between 10 and 20"
    cases: list[tuple[dict[str, Any], dict[str, str], dict[str, str]]] = [
        ({}, {"V": "v * 2 + id", "name": "upper(NAME)"}, {"v": "v * 2 + id", "name": "upper(name)"}),
        ({"v": F.col("id") - F.lit(3), "name": "id"}, {}, {"v": "id - 3", "name": "'id'"}),
        ({}, {"name": "'7'", "v": "length(name)"}, {"name": "'7'", "v": "length(name)"}),
        ({"name": F.lit(None)}, {"v": "-v"}, {"v": "-v", "name": "null"}),
    ]
    for values, expressions, same in cases:
        frame = usual.read.parquet(str(lake))
        for name in ("name", "v"):
            new = f"if({where}, {same.get(name, name)}, {name}) as `new {name}`"
            frame = frame.selectExpr("*", new)
        wanted = [(r.id, r["new name"], r["new v"]) for r in frame.orderBy("id").collect()]
        report = ps.update(usual, lake, where, values or None, expressions=expressions).collect()
        assert sum(row.rows_updated for row in report) == 11
        assert [(r.id, r.name, r.v) for r in of_spark(usual, lake)] == wanted
    now = state(lake)
    for text in ("rand()", "v + unknown_function(v)", "(select 1)", "case when v > 1 then 2 end"):
        with pytest.raises(FilterError):
            ps.update(usual, lake, where, expressions={"v": text})
    with pytest.raises(ColumnNotFoundError):
        ps.update(usual, lake, where, expressions={"v": "w + 1"})
    with pytest.raises(OptionError, match="each column once"):
        ps.update(usual, lake, where, {"v": 1}, expressions={"v": "2"})
    with pytest.raises((DataError, OptionError)):
        ps.update(usual, lake, where, expressions={"v": "v / 7"})
    assert state(lake) == now


def test_a_file_that_another_program_changes(usual: Any, ps: Any, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other program's write stays, and none of the files is replaced."""
    before, commit = state(lake), row_changing.commit_changes
    path = sorted(lake.rglob("*.parquet"))[0]

    def later(job: Any, replies: Any) -> Any:
        data = path.read_bytes()
        os.unlink(path)
        path.write_bytes(data)
        return commit(job, replies)

    monkeypatch.setattr(row_changing, "commit_changes", later)
    with pytest.raises(ChangedFileError):
        ps.delete(usual, lake, "id < 1000")
    after = state(lake)
    assert {name for name in after if after[name] != before[name]} == {str(path.relative_to(lake))}
    assert len(of_spark(usual, lake)) == ROWS
    assert not list(lake.rglob("_pyparq*"))


def test_defaults_are_not_passed_over(usual: Any, ps: Any, tmp_path: Path) -> None:
    """Spark gives the DEFAULT of a column for files that are older than it, and the filter would see a null."""
    usual.sql(f"create table with_default (id int) using parquet location '{tmp_path}/t'")
    try:
        usual.sql("insert into with_default values (1)")
        usual.sql("alter table with_default add column c int default 42")
        usual.sql("insert into with_default values (2, 7)")
        with pytest.raises(UnsupportedError, match="DEFAULT"):
            ps.delete(usual, tmp_path / "t", "c = 42")
        with pytest.raises(UnsupportedError, match="DEFAULT"):
            ps.update(usual, tmp_path / "t", "id = 1", {"c": 3})
        assert ps.delete(usual, tmp_path / "t", "id = 2").collect()[0].rows_deleted == 1
        usual.catalog.refreshTable("with_default")
        assert [tuple(row) for row in usual.table("with_default").collect()] == [(1, 42)]
    finally:
        usual.sql("drop table with_default")


def test_the_catalog_goes(usual: Any, ps: Any, lake: Path) -> None:
    pyparq.index_dataset(lake, ["id"])
    assert ps.delete(usual, lake, "id = 77").collect()[0].rows_deleted == 1
    assert not list(lake.glob("_pyparq*"))
    assert pyparq.dataset(lake).lookup("id", 77).num_rows == 0
    assert pyparq.dataset(lake).lookup("id", 78).num_rows == 1


def test_what_is_refused(usual: Any, ps: Any, lake: Path) -> None:
    keys = usual.createDataFrame([(1, 2)], "id long, v long")
    for wrong in ({}, {"filters": "id = 1", "keys": keys}, {"keys": keys.selectExpr("array(id) id")}):
        with pytest.raises(OptionError, match="keys"):
            ps.delete(usual, lake, **wrong)
    with pytest.raises(ColumnNotFoundError, match="w"):
        ps.delete(usual, lake, keys=keys.toDF("id", "w"))
    (lake / "_delta_log").mkdir()
    (lake / "_delta_log" / f"{0:020}.json").write_text("{}")
    with pytest.raises(OptionError, match="Delta Lake"):
        ps.delete(usual, lake, "id = 1")


@pytest.mark.slow
@pytest.mark.parametrize("cataloged", [True, False])
def test_the_driver_does_not_open_many_files(
    usual: Any, ps: Any, tmp_path: Path, cataloged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalog rules out files there. Without one, tasks plan above the threshold."""
    lake, files = tmp_path / "many", 2_000
    for k in range(files):
        folder = lake / f"g={k % 4}"
        folder.mkdir(parents=True, exist_ok=True)
        pyparq.write_table({"id": [k, k + files], "v": [0, 1]}, folder / f"{k:04}.parquet")
    if cataloged:
        pyparq.index_dataset(lake, ["id"])
    else:
        usual.conf.set("spark.pyparq.planInTasksAbove", "1000")
    opened, make = list[str](), OpenFile.__init__

    def counted(self: Any, *arguments: Any, **named: Any) -> None:
        opened.append("")
        make(self, *arguments, **named)

    monkeypatch.setattr(OpenFile, "__init__", counted)
    keys = usual.createDataFrame([(k,) for k in (7, 1207, 2500)], "id long")
    news = usual.createDataFrame([(9, 5, 1), (9_000, 5, 3)], "id long, v long, g int")
    assert ps.delete(usual, lake, "id = 31", dry_run=True).count() == 1
    assert ps.upsert(usual, lake, news, "id", dry_run=True).count() == 2
    assert ps.update(usual, lake, "id in (3, 2003)", {"v": 8}, dry_run=True).count() == 1
    report = ps.delete(usual, lake, keys=keys).collect()
    assert sorted(row.path for row in report) == ["g=0/0500.parquet", "g=3/0007.parquet", "g=3/1207.parquet"]
    assert len(opened) < 60, len(opened)
    monkeypatch.undo()
    assert ps.count(usual, lake) == 2 * files - 3


@pytest.mark.slow
def test_keys_that_are_text_or_days(usual: Any, ps: Any, tmp_path: Path) -> None:
    """Keys of which each is an object: those that a file does not have are left out before."""
    frame = usual.range(3_000).selectExpr(
        "concat('u', id) u", "date_add(date'1890-01-01', cast(id as int)) d", "cast(id as decimal(20, 3)) n", "id"
    )
    frame.repartition(3).write.parquet(str(tmp_path / "t"))
    gone = set[int]()
    for name, first in (("u", 0), ("d", 500), ("n", 1_000)):
        ps.delete(usual, tmp_path / "t", keys=frame.where(f"id between {first} and {first + 299}").select(name))
        gone |= set(range(first, first + 300))
    both = frame.where("id between 2000 and 2299").selectExpr("u", "if(id % 2 = 0, d, date'1800-01-01') d")
    assert sum(row.rows_deleted for row in ps.delete(usual, tmp_path / "t", keys=both).collect()) == 150
    gone |= set(range(2_000, 2_300, 2))
    assert [row.id for row in of_spark(usual, tmp_path / "t")] == [k for k in range(3_000) if k not in gone]
