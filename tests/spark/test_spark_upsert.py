"""``pyparq.spark.upsert``: the rows afterwards are those of Spark's own anti-join and union.

The session has Spark's own defaults and a zone with daylight saving.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import pyparq
from pyparq.errors import ColumnNotFoundError, DataError, OptionError, UnsupportedError

pytest_plugins = ("spark_session",)
pytestmark = pytest.mark.spark

COLUMNS = ("id", "day", "name", "price", "t", "tags", "g")
ROWS = """
select id, date_add(date'2024-03-01', cast({day} as int)) as day,
       if(id % 7 = 0, null, concat('user ', {seed} + id)) name,
       cast(id * 1.5 + {seed} as decimal(12, 2)) price,
       timestamp'2024-03-09 20:00:00' + make_interval(0,0,0,0,0, cast(id % 600 as int)) t,
       array(id, {seed}) tags, cast({g} as int) g
from range({first}, {end}, {step}, 3)
"""


def rows(spark: Any, first: int, end: int, step: int = 1, seed: int = 0, g: str = "id % 3", day: str = "id % 5") -> Any:
    return spark.sql(ROWS.format(first=first, end=end, step=step, seed=seed, g=g, day=day))


def lake_of(spark: Any, path: Path, partitions: tuple[str, ...], count: int = 900) -> Path:
    """As Spark writes it: several files in each partition, timestamps as INT96."""
    rows(spark, 0, count).repartition(2, "id").write.partitionBy(*partitions).parquet(str(path))
    return path


def of(frame: Any) -> list[tuple[Any, ...]]:
    found = sorted((tuple(row) for row in frame.select(*COLUMNS).collect()), key=repr)
    return found


def spark_would(spark: Any, lake: Path, df: Any, key: list[str]) -> list[tuple[Any, ...]]:
    stay = spark.read.parquet(str(lake)).join(df, key, "left_anti")
    return of(stay.select(*COLUMNS).unionByName(df.select(*COLUMNS)))


def state(lake: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path.relative_to(lake)): (path.stat().st_ino, path.stat().st_mtime_ns) for path in lake.rglob("*.parquet")
    }


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("partitions", "key", "zone", "ansi"),
    [
        ((), ["id"], "America/New_York", "true"),
        (("g",), ["id"], "Europe/Berlin", "false"),
        (("g",), ["g", "id"], "America/New_York", "false"),
        (("g", "day"), ["id", "day"], "Europe/Berlin", "true"),
    ],
)
def test_as_spark_joins(
    usual: Any, ps: Any, tmp_path: Path, partitions: tuple[str, ...], key: list[str], zone: str, ansi: str
) -> None:
    """Rows that are there, rows that move to another partition, and rows of new keys, in new partitions too."""
    usual.conf.set("spark.sql.session.timeZone", zone)
    usual.conf.set("spark.sql.ansi.enabled", ansi)
    lake = lake_of(usual, tmp_path / "lake", partitions)
    news = rows(usual, 300, 1200, 2, seed=10_000, g="if(id % 4 = 0, 7, id % 3)")
    news = news.select(*reversed(news.columns))
    expected, old = spark_would(usual, lake, news, key), state(lake)
    dry = ps.upsert(usual, lake, news, key, dry_run=True).collect()
    assert state(lake) == old
    report = ps.upsert(usual, lake, news, key).collect()
    assert of(usual.read.parquet(str(lake))) == expected
    assert pyparq.read_table(lake).num_rows == len(expected)
    for name in ("rows_updated", "rows_deleted", "rows_added"):
        assert sum(row[name] for row in report) == sum(row[name] for row in dry)
    assert sum(row.rows_updated + row.rows_added for row in report) == 450
    assert pyparq.verify(lake).ok
    assert not list(lake.rglob("_pyparq*"))
    again = ps.upsert(usual, lake, news, key).collect()
    assert of(usual.read.parquet(str(lake))) == expected
    assert sum(row.rows_added for row in again) == 0


def test_files_without_such_rows_stay(usual: Any, ps: Any, tmp_path: Path) -> None:
    lake = lake_of(usual, tmp_path / "lake", ("g",))
    old = state(lake)
    (row,) = ps.upsert(usual, lake, rows(usual, 4, 5, seed=1), ["id"]).collect()
    assert (row.rows_updated, row.rows_deleted, row.rows_added) == (1, 0, 0)
    new = state(lake)
    assert (
        {name for name in old if new.get(name) != old[name]}
        == {row.path}
        == {n for n in new if n not in old or old[n] != new[n]}
    )
    report = ps.upsert(usual, lake, rows(usual, 5000, 5010, g="9"), "id").collect()
    assert {os.path.dirname(row.path) for row in report} == {"g=9"}
    assert sum(row.rows_added for row in report) == 10
    added = pyparq.ParquetFile(next((lake / "g=9").glob("*.parquet")))
    first = pyparq.ParquetFile(next((lake / "g=0").glob("*.parquet")))
    assert [str(leaf) for leaf in added.tree.leaves] == [str(leaf) for leaf in first.tree.leaves]


def test_a_frame_that_reads_the_folder(usual: Any, ps: Any, tmp_path: Path) -> None:
    """Its rows are those from before."""
    lake = lake_of(usual, tmp_path / "lake", ("g",))
    usual.read.parquet(str(lake)).createOrReplaceTempView("before")
    news = usual.sql("select id, day, upper(name) name, price + 1 as price, t, tags, g from before where id < 50")
    news = news.withColumn("price", news.price.cast("decimal(12,2)"))
    expected = spark_would(usual, lake, news, ["id"])
    ps.upsert(usual, lake, news, ["ID"])
    usual.catalog.refreshByPath(str(lake))
    assert of(usual.read.parquet(str(lake))) == expected


def test_wrong_keys_are_named(usual: Any, ps: Any, tmp_path: Path) -> None:
    lake = lake_of(usual, tmp_path / "lake", ("g",))
    old, plain = state(lake), rows(usual, 0, 40)
    for wrong, said in (
        (plain.union(rows(usual, 17, 18, seed=9)), "two rows have the same key: id=17"),
        (plain.selectExpr("if(id = 3, null, id) id", *COLUMNS[1:]), "null"),
        (plain.selectExpr("if(id = 3, double('nan'), id) id", *COLUMNS[1:]), "NaN"),
    ):
        with pytest.raises(DataError, match=said):
            ps.upsert(usual, lake, wrong, "id")
    for wrong, key in (
        (plain.drop("name"), "id"),
        (plain.selectExpr("*", "1 as more"), "id"),
        (plain, []),
        (plain, "tags"),
    ):
        with pytest.raises((OptionError, UnsupportedError)):
            ps.upsert(usual, lake, wrong, key)
    with pytest.raises(ColumnNotFoundError):
        ps.upsert(usual, lake, plain, "nothing")
    with pytest.raises(DataError, match="fit"):
        ps.upsert(
            usual, lake, plain.selectExpr("id", "day", "name", "price * 1000000000 price", "t", "tags", "g"), "id"
        )
    assert state(lake) == old
    assert not list(lake.rglob("_pyparq*"))


def test_a_line_in_the_log(usual: Any, ps: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    lake = lake_of(usual, tmp_path / "lake", ("g",))
    with caplog.at_level("INFO", "pyparq.spark"):
        ps.upsert(usual, lake, rows(usual, 890, 910, g="0"), "id", dry_run=True)
        ps.delete(usual, lake, "id < 3")
    lines = [text for text in caplog.messages if text.startswith(("upsert", "delete"))]
    assert lines[0].startswith(f"upsert (dry run) {lake}: ")
    assert lines[-1].startswith(f"delete {lake}: 3 files, 3 rows, ")
