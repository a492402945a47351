"""``delete`` on tables of Delta Lake and Iceberg: one commit, after which other readers have the rows that are left."""

from __future__ import annotations

import datetime as dt
import json
import time
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from conftest import require

import pyparq
from pyparq import col
from pyparq.errors import CommitUnknownError, OptionError, UnsupportedError, WriteConflictError

deltalake = require("deltalake")
require("pyiceberg")
pa = require("pyarrow")

COUNT = 600


def people(count: int = COUNT) -> Any:
    days = [dt.date(2020, 1, 1) + dt.timedelta(days=k) for k in range(count)]
    return pa.table({
        "id": pa.array(range(count), pa.int64()), "p": pa.array([k % 3 for k in range(count)], pa.int32()),
        "s": [None if k % 7 == 0 else f"person-{k:04d}-" + "é" * (k % 50) for k in range(count)],
        "f": [float("nan") if k == 5 else k / 2 for k in range(count)], "d": days,
        "t": pa.array([dt.datetime.combine(day, dt.time(1, 2, 3, 4005)) for day in days], pa.timestamp("us", "UTC")),
        "m": pa.array([Decimal(k) / 4 for k in range(count)], pa.decimal128(9, 2)),
        "st": [{"a": k, "l": [k]} for k in range(count)],
    })  # fmt: skip


GOES = (col("id") < 100) | (col("p") == 2)


def left(table: Any) -> list[dict[str, Any]]:
    return [row for row in table.to_pylist() if not (row["id"] < 100 or row["p"] == 2)]


def delta(folder: Path, data: Any, **options: Any) -> Any:
    deltalake.write_deltalake(folder, data, **options)
    return deltalake.DeltaTable(folder)


def ids(folder: Path) -> list[int]:
    """As deltalake reads them."""
    return sorted(deltalake.DeltaTable(folder).to_pyarrow_table()["id"].to_pylist())


def actions(folder: Path, kind: str) -> list[dict[str, Any]]:
    """Of the newest version."""
    lines = max((folder / "_delta_log").glob("*.json")).read_text().splitlines()
    return [line[kind] for line in map(json.loads, lines) if kind in line]


def parquet_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.parquet"))


# ---- Delta Lake ----------------------------------------------------------------------------------------------------


def test_delta_reads_the_other_rows(tmp_path: Path) -> None:
    table = delta(tmp_path, people(), partition_by=["p"])
    before, files = deltalake.DeltaTable(tmp_path).version(), parquet_files(tmp_path)
    dry = pyparq.delete(table, GOES, dry_run=True)
    assert parquet_files(tmp_path) == files
    assert deltalake.DeltaTable(tmp_path).version() == before
    report = pyparq.delete(table, GOES)
    assert (dry.rows_deleted, report.rows_deleted, len(report.files)) == (267, 267, 3)
    assert any("VACUUM" in note for note in report.notes)
    assert any("VACUUM" in note for note in dry.notes)
    after = deltalake.DeltaTable(tmp_path)
    assert after.version() == before + 1
    got = after.to_pyarrow_table().sort_by("id").select(people().column_names)
    assert repr(got.to_pylist()) == repr(left(people()))
    assert repr(pyparq.read_table(after).to_arrow().sort_by("id").to_pylist()) == repr(left(people()))
    assert all(action["dataChange"] for kind in ("add", "remove") for action in actions(tmp_path, kind))
    assert len(actions(tmp_path, "add")) == 2
    assert len(actions(tmp_path, "remove")) == 3
    older = deltalake.DeltaTable(tmp_path, version=before).to_pyarrow_table()
    assert older.num_rows == COUNT
    again = pyparq.delete(after, GOES)
    assert again.files == ()
    assert deltalake.DeltaTable(tmp_path).version() == before + 1


def test_the_log_tells_of_the_new_file(tmp_path: Path) -> None:
    """Counts and bounds are those of the rows that are left: values of others are not in the newest version."""
    pyparq.delete(delta(tmp_path, people()), (col("id") < 100) | (col("id") >= 590))
    (add,) = actions(tmp_path, "add")
    stats = json.loads(add["stats"])
    assert stats["numRecords"] == 490
    assert (stats["minValues"]["id"], stats["maxValues"]["id"]) == (100, 589)
    assert stats["minValues"]["d"] == "2020-04-10"
    assert stats["maxValues"]["d"] == "2021-08-12"
    assert stats["nullCount"]["s"] == sum(k % 7 == 0 for k in range(100, 590))
    assert (stats["minValues"]["st"], stats["maxValues"]["st"]) == ({"a": 100}, {"a": 589})
    assert stats["minValues"]["m"] == 25.0
    assert stats["maxValues"]["m"] == 147.25
    whole = people()
    for k in (99, 100, 250, 589, 590):
        row = whole.slice(k, 1)
        for name in ("id", "s", "d", "t", "m"):
            value = row[name][0]
            if value.is_valid:
                dataset = deltalake.DeltaTable(tmp_path).to_pyarrow_dataset()
                found = dataset.to_table(filter=pa.compute.field(name) == value).num_rows
                assert found == (100 <= k < 590), (k, name)


def test_bounds_of_nan_are_left_out(tmp_path: Path) -> None:
    """NaN is the largest number for Spark, and footers do not count it."""
    pyparq.delete(delta(tmp_path, people()), col("id") == 7)
    stats = json.loads(actions(tmp_path, "add")[0]["stats"])
    assert "f" not in stats["maxValues"]
    assert "f" not in stats["minValues"]


OTHERS = {
    "compact": lambda table: table.optimize.compact(),
    "delete": lambda table: table.delete("id = 1"),
    "overwrite": lambda table: deltalake.write_deltalake(table, pa.table({"id": [9]}), mode="overwrite"),
    "pyparq": lambda table: pyparq.delete(table, col("id") == 1),
}


@pytest.fixture
def two(tmp_path: Path) -> Any:
    """A table of two files."""
    delta(tmp_path / "t", pa.table({"id": [1, 2]}))
    return delta(tmp_path / "t", pa.table({"id": [3]}), mode="append")


@pytest.mark.parametrize("other", OTHERS)
def test_conflicts_are_refused(two: Any, tmp_path: Path, other: str) -> None:
    folder = tmp_path / "t"
    stale = deltalake.DeltaTable(folder)
    OTHERS[other](deltalake.DeltaTable(folder))
    wanted, files = ids(folder), parquet_files(folder)
    with pytest.raises(WriteConflictError, match="another writer"):
        pyparq.delete(stale, col("id") == 2)
    assert (ids(folder), parquet_files(folder)) == (wanted, files)


def test_a_conflict_where_a_whole_file_goes(two: Any, tmp_path: Path) -> None:
    stale = deltalake.DeltaTable(tmp_path / "t")
    OTHERS["compact"](deltalake.DeltaTable(tmp_path / "t"))
    with pytest.raises(WriteConflictError, match="another writer"):
        pyparq.delete(stale, col("id") == 3)
    assert ids(tmp_path / "t") == [1, 2, 3]


def test_appends_of_others_stay(two: Any, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    for k in (4, 5):
        deltalake.write_deltalake(folder, pa.table({"id": [k]}), mode="append")
    pyparq.delete(two, col("id").isin([2, 3]))
    assert ids(folder) == [1, 4, 5]


def test_appended_rows_that_are_meant_are_a_conflict(two: Any, tmp_path: Path) -> None:
    """As for ``delete`` of deltalake, which refuses them: the loaded version does not have them."""
    folder = tmp_path / "t"
    deltalake.write_deltalake(folder, pa.table({"id": [4, 2]}), mode="append")
    with pytest.raises(deltalake.exceptions.CommitFailedError, match="added new data"):
        deltalake.DeltaTable(folder, version=1).delete("id = 2")
    files = parquet_files(folder)
    with pytest.raises(WriteConflictError, match="added rows meanwhile"):
        pyparq.delete(two, col("id") == 2)
    assert (ids(folder), parquet_files(folder)) == ([1, 2, 2, 3, 4], files)
    pyparq.delete(deltalake.DeltaTable(folder), col("id") == 2)
    assert ids(folder) == [1, 3, 4]


@pytest.mark.parametrize("other", ["compact", "delete"])
def test_stale_writers_of_deltalake_refuse(two: Any, tmp_path: Path, other: str) -> None:
    stale = deltalake.DeltaTable(tmp_path / "t")
    pyparq.delete(two, col("id") == 2)
    with pytest.raises(deltalake.exceptions.CommitFailedError):
        OTHERS[other](stale)
    assert ids(tmp_path / "t") == [1, 3]


class Unlucky(deltalake.DeltaTable):  # type: ignore[misc,name-defined]
    """A table whose store loses the answer to a commit, or the commit itself."""

    takes_place = True

    def create_write_transaction(self, *args: Any, **options: Any) -> None:
        if self.takes_place:
            super().create_write_transaction(*args, **options)
        raise deltalake.exceptions.CommitFailedError("the connection was lost")


@pytest.mark.parametrize("number", [2, 3])
def test_a_lost_answer(two: Any, tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a file goes and no other comes."""
    report = pyparq.delete(Unlucky(tmp_path / "t"), col("id") == number)
    assert report.rows_deleted == 1
    assert ids(tmp_path / "t") == [k for k in (1, 2, 3) if k != number]
    monkeypatch.setattr(Unlucky, "takes_place", False)
    with pytest.raises(CommitUnknownError, match="may have taken place"):
        pyparq.delete(Unlucky(tmp_path / "t"), col("id") == 1)
    assert 1 in ids(tmp_path / "t")


def test_bare_folders_and_datasets_of_tables_are_refused(two: Any, tmp_path: Path) -> None:
    files = parquet_files(tmp_path)
    for number in (1, -1):  # also where no row would go
        with pytest.raises(OptionError, match="Delta Lake"):
            pyparq.delete(tmp_path / "t", col("id") == number)
    with pytest.raises(UnsupportedError, match="give the table itself"):
        pyparq.delete(pyparq.dataset(two), col("id") == 1)
    assert parquet_files(tmp_path) == files
    assert ids(tmp_path / "t") == [1, 2, 3]


SECRETS = [f"secret-{k:05d}-xyz" for k in range(3000)]
GONE = [word.encode() for word in SECRETS[:1000]]


def holders(folder: Path) -> list[str]:
    """Files below a folder whose bytes have any of the deleted words. No page of these tables is compressed."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            found += [path.name] * any(word in content for word in GONE)
    return found


def test_nothing_is_left_after_vacuum(tmp_path: Path) -> None:
    """With the commands of the report and of the documentation."""
    properties = deltalake.WriterProperties(compression="UNCOMPRESSED")
    data = pa.table({"id": range(3000), "s": SECRETS})
    delta(tmp_path, data, writer_properties=properties)
    (old,) = parquet_files(tmp_path)
    report = pyparq.delete(deltalake.DeltaTable(tmp_path), col("id") < 1000)
    assert old.name in holders(tmp_path)
    command = "vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)"
    assert any(command in note for note in report.notes)
    deltalake.DeltaTable(tmp_path).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert not old.exists()
    assert holders(tmp_path) == [f"{0:020}.json"]  # the smallest word is a bound
    table = deltalake.DeltaTable(tmp_path)
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 0 seconds"})
    table.create_checkpoint()
    table.cleanup_metadata()
    assert holders(tmp_path) == []
    after = deltalake.DeltaTable(tmp_path)
    assert after.to_pyarrow_table().sort_by("id").to_pylist() == data.slice(1000).to_pylist()
    assert pyparq.verify(parquet_files(tmp_path)).ok


# ---- Iceberg -------------------------------------------------------------------------------------------------------


@pytest.fixture
def catalog(tmp_path: Path) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    found = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}")
    found.create_namespace("n")
    return found


def iceberg(catalog: Any, data: Any) -> Any:
    table = catalog.create_table("n.t", schema=data.schema)
    table.append(data)
    return table


def of_iceberg(catalog: Any) -> list[int]:
    return sorted(catalog.load_table("n.t").scan().to_arrow()["id"].to_pylist())


def test_iceberg_reads_the_other_rows(catalog: Any, tmp_path: Path) -> None:
    table = catalog.create_table("n.t", schema=people().schema)
    with table.update_spec() as update:
        update.add_identity("p")
    table = catalog.load_table("n.t")
    table.append(people())
    files = parquet_files(tmp_path)
    dry = pyparq.delete(table, GOES, dry_run=True)
    assert parquet_files(tmp_path) == files
    report = pyparq.delete(table, GOES)
    assert (dry.rows_deleted, report.rows_deleted, len(report.files)) == (267, 267, 3)
    assert any("expire_snapshots" in note for note in report.notes)
    fresh = catalog.load_table("n.t")
    assert repr(fresh.scan().to_arrow().sort_by("id").to_pylist()) == repr(left(people()))
    assert repr(pyparq.read_table(fresh).to_arrow().sort_by("id").to_pylist()) == repr(left(people()))
    first = fresh.history()[0].snapshot_id
    assert fresh.scan(snapshot_id=first).to_arrow().num_rows == COUNT
    summary = fresh.current_snapshot().summary
    assert summary.operation.value == "overwrite"
    assert summary["total-records"] == "333"
    assert summary["pyparq.operation"] == "DELETE"
    assert pyparq.delete(fresh, GOES).files == ()


def test_manifests_tell_of_the_new_file(catalog: Any) -> None:
    pyparq.delete(iceberg(catalog, people()), (col("id") < 100) | (col("id") >= 590))
    table = catalog.load_table("n.t")
    (entry,) = table.inspect.files().to_pylist()
    assert entry["record_count"] == 490
    assert entry["split_offsets"] is None
    bounds = {name: (m["lower_bound"], m["upper_bound"]) for name, m in entry["readable_metrics"].items()}
    assert bounds["id"] == (100, 589)
    assert bounds["d"] == (dt.date(2020, 4, 10), dt.date(2021, 8, 12))
    assert bounds["m"] == (Decimal("25.00"), Decimal("147.25"))
    assert entry["readable_metrics"]["s"]["null_value_count"] == sum(k % 7 == 0 for k in range(100, 590))
    for k in (99, 100, 250, 589, 590):
        text = people()["s"][k].as_py()
        for question in (f"id == {k}", f"d == '{people()['d'][k]}'", *([f"s == '{text}'"] if text else [])):
            assert table.scan(row_filter=question).to_arrow().num_rows == (100 <= k < 590), question


def test_conflicts_of_iceberg(catalog: Any, tmp_path: Path) -> None:
    table = iceberg(catalog, pa.table({"id": [1, 2, 3]}))
    stale, earlier, other = (catalog.load_table("n.t") for _ in range(3))
    table.append(pa.table({"id": [4]}))
    with pytest.raises(WriteConflictError, match="added rows meanwhile"):
        pyparq.delete(stale, col("id").isin([2, 4]))
    assert of_iceberg(catalog) == [1, 2, 3, 4]
    pyparq.delete(earlier, col("id") == 2)  # 4 has come since
    assert of_iceberg(catalog) == [1, 3, 4]
    files = parquet_files(tmp_path)
    with pytest.raises(WriteConflictError, match="another writer"):
        pyparq.delete(other, col("id") == 1)
    assert of_iceberg(catalog) == [1, 3, 4]
    assert parquet_files(tmp_path) == files


def test_the_last_row_of_iceberg(catalog: Any) -> None:
    pyparq.delete(iceberg(catalog, pa.table({"id": [1, 2]})), col("id") > 0)
    assert of_iceberg(catalog) == []
    catalog.load_table("n.t").append(pa.table({"id": [5]}))
    assert of_iceberg(catalog) == [5]


def test_nothing_is_left_after_expiry(catalog: Any, tmp_path: Path) -> None:
    """Expiry of pyiceberg removes no files: what no snapshot names is removed here, as the documentation does it."""
    data = pa.table({"id": pa.array(range(3000), pa.int64()), "s": SECRETS})
    table = catalog.create_table(
        "n.t", schema=data.schema, properties={"write.parquet.compression-codec": "uncompressed"}
    )
    table.append(data)
    (old,) = parquet_files(tmp_path)
    pyparq.delete(catalog.load_table("n.t"), col("id") < 1000)
    assert holders(tmp_path) == [old.name]  # manifests are compressed
    time.sleep(0.01)
    table = catalog.load_table("n.t")
    table.maintenance.expire_snapshots().older_than(dt.datetime.now(dt.UTC)).commit()
    table = catalog.load_table("n.t")
    assert len(table.snapshots()) == 1
    kept = {path.removeprefix("file://") for path in table.inspect.all_files()["file_path"].to_pylist()}
    for path in parquet_files(tmp_path):
        if str(path) not in kept:
            path.unlink()
    assert holders(tmp_path) == []
    assert not old.exists()
    after = catalog.load_table("n.t").scan().to_arrow().sort_by("id")
    assert after.to_pylist() == data.slice(1000).to_pylist()


def test_scans_of_iceberg_are_refused(catalog: Any) -> None:
    table = iceberg(catalog, pa.table({"id": [1, 2]}))
    with pytest.raises(OptionError, match="the Iceberg table itself"):
        pyparq.delete(table.scan(), col("id") == 1)


@pytest.fixture(autouse=True)
def quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield
