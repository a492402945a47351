"""``pyparq.delete``, ``update`` and ``upsert`` in folders that Spark manages: kept right, or refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import OptionError, UnsupportedError, col

pytest_plugins = ("spark_session",)
pytestmark = pytest.mark.spark


def stored(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def buckets(usual: Any, tmp_path: Path) -> Iterator[Path]:
    usual.sql("drop table if exists bucketed")
    rows = usual.range(400).selectExpr("id", "id % 7 as g", "concat('n', id) as name", "id % 2 as p")
    write = rows.repartition(2).write.option("path", str(tmp_path / "t")).partitionBy("p")
    write.bucketBy(4, "g").sortBy("id").saveAsTable("bucketed")
    yield tmp_path / "t"
    usual.sql("drop table if exists bucketed")


def test_a_bucketed_table(usual: Any, buckets: Path) -> None:
    before = stored(buckets)
    changes: list[Any] = [
        lambda **more: pyparq.update(buckets, "id = 5", {"g": 6}, **more),
        lambda **more: pyparq.update(next(buckets.rglob("*.parquet")), col("id") >= 0, {"g": 6}, **more),
        lambda **more: pyparq.upsert(buckets, {"id": [5], "g": [1], "name": ["x"], "p": [1]}, "id", **more),
    ]
    for change in changes:
        for dry_run in (True, False):
            with pytest.raises(OptionError, match="bucketed table"):
                change(dry_run=dry_run)
    assert stored(buckets) == before
    report = pyparq.delete(buckets, "g = 3 or id in (8, 9) or id > 390")
    assert report.rows_deleted == len({k for k in range(400) if k % 7 == 3 or k in (8, 9) or k > 390})
    usual.sql("refresh table bucketed")
    kept = [k for k in range(400) if not (k % 7 == 3 or k in (8, 9) or k > 390)]
    assert [row.id for row in usual.table("bucketed").orderBy("id").collect()] == kept
    joined = "select a.g, count(*) n from bucketed a join bucketed b on a.g = b.g group by a.g"
    counts = {g: sum(k % 7 == g for k in kept) for g in range(7) if g != 3}
    assert {row.g: row.n for row in usual.sql(joined).collect()} == {g: n * n for g, n in counts.items()}
    assert {Path(name).name for name in stored(buckets)} <= {Path(name).name for name in before}
    assert pyparq.update(buckets, "id = 5", {"name": "new"}, force=True).rows_updated == 1
    usual.sql("refresh table bucketed")
    assert usual.table("bucketed").where("id = 5").first().name == "new"


def test_a_folder_of_a_stream(usual: Any, tmp_path: Path) -> None:
    usual.range(30).write.parquet(str(tmp_path / "in"))
    rows = usual.readStream.schema("id long").parquet(str(tmp_path / "in"))
    sink = rows.writeStream.format("parquet").trigger(availableNow=True)
    sink.option("checkpointLocation", str(tmp_path / "check")).start(str(tmp_path / "out")).awaitTermination()
    folder = tmp_path / "out"
    before = stored(folder)
    for source in (folder, f"{folder}/*.parquet", next(folder.glob("*.parquet"))):
        for change in (
            lambda source: pyparq.delete(source, "id >= 0"),
            lambda source: pyparq.update(source, "id >= 0", {"id": 5}),
            lambda source: pyparq.upsert(source, {"id": [5]}, "id"),
        ):
            with pytest.raises((OptionError, UnsupportedError), match=r"stream|no place"):
                change(source)
    assert stored(folder) == before
    assert sorted(row.id for row in usual.read.parquet(str(folder)).collect()) == list(range(30))


def test_columns_with_a_default(usual: Any, tmp_path: Path) -> None:
    usual.sql("drop table if exists with_default")
    usual.sql(f"create table with_default (id bigint, x string) using parquet location '{tmp_path / 't'}'")
    folder = tmp_path / "t"
    try:
        usual.sql("insert into with_default values (1, 'a'), (2, 'b'), (3, 'c')")
        usual.sql("alter table with_default add columns (d int default 42)")
        usual.sql("insert into with_default values (4, 'a', null), (5, 'b', 7)")
        before = stored(folder)
        for change in (
            lambda: pyparq.delete(folder, "d = 42"),
            lambda: pyparq.delete(folder, "id = 1 or d is null"),
            lambda: pyparq.update(folder, "id = 1", {"d": 5}),
            lambda: pyparq.upsert(folder, {"id": [1], "x": ["y"], "d": [3]}, ["id", "d"]),
        ):
            with pytest.raises(UnsupportedError, match=r"DEFAULT.*column d"):
                change()
        assert stored(folder) == before
        pyparq.delete(folder, "id in (1, 4)")
        pyparq.update(folder, "x = 'b'", {"x": "new"})
        pyparq.upsert(folder, {"id": [3, 9], "x": ["up", "up"], "d": [None, 1]}, "id")
        usual.sql("refresh table with_default")
        found = [tuple(row) for row in usual.table("with_default").orderBy("id").collect()]
        assert found == [(2, "new", 42), (3, "up", None), (5, "new", 7), (9, "up", 1)]
        assert any(pq.read_schema(path).names == ["id", "x"] for path in folder.glob("*.parquet"))
    finally:
        usual.sql("drop table if exists with_default")


def test_a_new_day_in_a_file_of_the_old_calendar(usual: Any, tmp_path: Path) -> None:
    """Spark reads what was written there as it was meant."""
    usual.conf.set("spark.sql.parquet.datetimeRebaseModeInWrite", "LEGACY")
    usual.conf.set("spark.sql.parquet.int96RebaseModeInWrite", "LEGACY")
    folder = tmp_path / "t"
    try:
        made = "id", "if(id < 0, null, date'1400-01-01' + int(id)) as day", "timestamp'1500-01-01 00:00:00' as at"
        usual.range(3).selectExpr(*made).coalesce(1).write.parquet(str(folder))
    finally:
        usual.conf.unset("spark.sql.parquet.datetimeRebaseModeInWrite")
        usual.conf.unset("spark.sql.parquet.int96RebaseModeInWrite")
    text = "cast(id as string)", "cast(day as string)", "cast(at as string)"
    before = [tuple(row) for row in usual.read.parquet(str(folder)).orderBy("id").selectExpr(*text).collect()]
    assert before[0][1:] == ("1400-01-01", "1500-01-01 00:00:00")
    pyparq.update(folder, "id = 1", {"day": "1999-12-31", "at": "2024-10-27 12:30:00"})
    pyparq.update(folder, "id = 2", {"day": None})
    found = [tuple(row) for row in usual.read.parquet(str(folder)).orderBy("id").selectExpr(*text).collect()]
    assert found == [before[0], ("1", "1999-12-31", found[1][2]), ("2", None, before[2][2])]
    assert found[1][2] in ("2024-10-27 12:30:00", "2024-10-27 08:30:00", "2024-10-27 13:30:00")
    for wrong in ({"day": "1500-01-01"}, {"at": "1700-01-01 00:00:00"}):
        with pytest.raises(UnsupportedError, match="calendar of old Spark"):
            pyparq.update(folder, "id = 1", wrong)
