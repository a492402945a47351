"""``add_indexes`` on tables of Delta Lake and Iceberg: the table that deltalake and pyiceberg read afterwards is the
one that they read before, whatever others do meanwhile."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import multiprocessing
import random
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from conftest import require

import pyparq
from pyparq import col
from pyparq.errors import ColumnNotFoundError, CommitUnknownError, UnsupportedError, WriteConflictError

deltalake = require("deltalake")
require("pyiceberg")
pa = require("pyarrow")

ODD_NAMES = ["plain", "a b", "x/y", "ü", "100%", "a:b", "a=b", "a+b", "a#b", "a?b", "%20", "𠮷", "'\"", None]


def delta(folder: Path, data: Any, **options: Any) -> Any:
    deltalake.write_deltalake(folder, data, **options)
    return deltalake.DeltaTable(folder)


def ids(folder: Path) -> list[int]:
    """As deltalake reads them."""
    return sorted(deltalake.DeltaTable(folder).to_pyarrow_table()["id"].to_pylist())


def actions(folder: Path, kind: str) -> list[dict[str, Any]]:
    log = sorted((folder / "_delta_log").glob("*.json"))
    lines = [json.loads(line) for path in log for line in path.read_text().splitlines()]
    return [line[kind] for line in lines if kind in line]


def parquet_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.parquet"))


# ---- Delta Lake: names and statistics ------------------------------------------------------------------------------


def test_odd_partition_values(tmp_path: Path) -> None:
    table = delta(tmp_path, pa.table({"id": range(len(ODD_NAMES)), "s": ODD_NAMES}), partition_by=["s"])
    before = table.to_pyarrow_table().sort_by("id").to_pylist()
    assert all(file.written for file in pyparq.add_indexes(table, bloom_filters=["id"]).files)
    after = deltalake.DeltaTable(tmp_path)
    assert after.to_pyarrow_table().sort_by("id").to_pylist() == before
    assert sorted(pyparq.dataset(after).read().to_pylist(), key=lambda row: row["id"]) == before
    added = [action["path"] for action in actions(tmp_path, "add")]
    assert {action["path"] for action in actions(tmp_path, "remove")} == set(added[: len(ODD_NAMES)])
    assert all((tmp_path / unquote(path)).exists() for path in added)
    for value in ODD_NAMES[:-1]:
        assert pyparq.dataset(after).count(col("s") == value) == 1


@pytest.mark.parametrize("root", ["my table", "ü", "a+b", "100%", "x#y", "q?z", "a=b", "(x) y"])
def test_odd_folders(tmp_path: Path, root: str) -> None:
    from support.lake_tables import delete_by_vector

    folder = tmp_path / root
    folder.mkdir()
    table = delta(folder, pa.table({"id": [1, 2, 3], "p": ["x y", "ü%", "x y"]}), partition_by=["p"])
    assert pyparq.dataset(table).count() == 3
    assert all(file.written for file in pyparq.add_indexes(table, bloom_filters=["id"]).files)
    assert ids(folder) == [1, 2, 3] == sorted(pyparq.read_table(deltalake.DeltaTable(folder))["id"].to_pylist())
    path = next(action["path"] for action in actions(folder, "add")[2:] if "x" in action["path"].partition("/")[0])
    delete_by_vector(folder, {path: [0]})
    assert sorted(pyparq.read_table(deltalake.DeltaTable(folder))["id"].to_pylist()) == [2, 3]


def test_text_beyond_the_basic_plane(tmp_path: Path) -> None:
    table = delta(tmp_path, pa.table({"id": [1, 2], "name": ["𠮷野", "𠮷田"]}))
    pyparq.add_indexes(table, bloom_filters=["id"])
    after = deltalake.DeltaTable(tmp_path)
    assert after.to_pyarrow_table(filters=[("name", "=", "𠮷田")]).num_rows == 1
    assert pyparq.dataset(after).count(col("name") == "𠮷田") == 1


def test_statistics_stay_as_deltalake_reads_them(tmp_path: Path) -> None:
    """What is exact. A log may miss the others."""
    at, draw = dt.datetime(2024, 1, 1, 0, 0, 0, 987654), random.Random(3)
    texts = ["", "a", "𠮷" * 40, "é\u0000\\\"'\n", "\U0010ffff", "\ue000\uffff", "x" * 300]
    for k in range(6):
        data = pa.table({
            "id": [k, k + 100], "s": draw.sample(texts, 2), "t": pa.array([at, at], pa.timestamp("us", "UTC")),
            "n": pa.array([at, None], pa.timestamp("us")), "d": [dt.date(2020, 1, 1 + k), None], "f": [-0.0, 1e300],
            "g": pa.array([0.1, float("inf")], pa.float32()), "o": [True, False],
            "c": [decimal.Decimal("1.12"), decimal.Decimal("-5.00")], "big": [2**62 + k, -(2**62)],
            "st": [{"x": k, "s": texts[k], "at": at}, None], "none": pa.array([None, None], pa.int32()),
        })  # fmt: skip
        deltalake.write_deltalake(tmp_path, data, mode="append")
    table = deltalake.DeltaTable(tmp_path)

    def stated(table: Any) -> Any:
        found = pa.table(table.get_add_actions()).to_pylist()
        kinds = ("num_records", "min", "max", "null_count")
        return sorted(([action[kind] for kind in kinds] for action in found), key=lambda row: row[1]["id"])

    before = stated(table)
    pyparq.add_indexes(table, bloom_filters=["id"])
    assert stated(deltalake.DeltaTable(tmp_path)) == before


# ---- Delta Lake: other writers -------------------------------------------------------------------------------------

OTHERS: dict[str, Callable[[Any], Any]] = {
    "compact": lambda table: table.optimize.compact(),
    "z_order": lambda table: table.optimize.z_order(["id"]),
    "delete": lambda table: table.delete("id = 1"),
    "update": lambda table: table.update(updates={"id": "id + 100"}),
    "overwrite": lambda table: deltalake.write_deltalake(table, pa.table({"id": [9]}), mode="overwrite"),
    "add_indexes": lambda table: pyparq.add_indexes(table, bloom_filters=["id"], page_index=False),
}


@pytest.fixture
def two(tmp_path: Path) -> Any:
    """A table of two files."""
    delta(tmp_path / "t", pa.table({"id": [1, 2]}))
    return delta(tmp_path / "t", pa.table({"id": [3]}), mode="append")


@pytest.mark.parametrize("other", OTHERS)
def test_a_commit_refuses_what_others_have_replaced(two: Any, tmp_path: Path, other: str) -> None:
    folder = tmp_path / "t"
    stale = deltalake.DeltaTable(folder)
    OTHERS[other](deltalake.DeltaTable(folder))
    wanted, files = ids(folder), parquet_files(folder)
    with pytest.raises(WriteConflictError, match="another writer"):
        pyparq.add_indexes(stale, bloom_filters=["id"])
    assert (ids(folder), parquet_files(folder)) == (wanted, files)


def test_a_commit_gets_through_beside_appends(two: Any, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    for k in (4, 5):
        deltalake.write_deltalake(folder, pa.table({"id": [k]}), mode="append")
    report = pyparq.add_indexes(two, bloom_filters=["id"])
    assert [file.written for file in report.files] == [True, True]
    assert ids(folder) == [1, 2, 3, 4, 5]
    again = pyparq.add_indexes(deltalake.DeltaTable(folder), bloom_filters=["id"])
    assert [file.written for file in again.files].count(True) == 2


@pytest.mark.parametrize("other", [name for name in OTHERS if name not in ("add_indexes", "overwrite")])
def test_stale_writers_of_deltalake_refuse_after_a_commit(two: Any, tmp_path: Path, other: str) -> None:
    """An unchanged compaction of deltalake beside another one doubles every row. It does not beside ours."""
    stale = deltalake.DeltaTable(tmp_path / "t")
    pyparq.add_indexes(two, bloom_filters=["id"])
    with pytest.raises(deltalake.exceptions.CommitFailedError):
        OTHERS[other](stale)
    assert ids(tmp_path / "t") == [1, 2, 3]


@pytest.mark.parametrize("name", ["delta.enableChangeDataFeed", "delta.appendOnly"])
def test_removals_that_must_not_change_data(tmp_path: Path, name: str) -> None:
    table = delta(tmp_path, pa.table({"id": [1, 2]}), configuration={name: "true"})
    pyparq.add_indexes(table, bloom_filters=["id"])
    assert [action["dataChange"] for action in actions(tmp_path, "remove")] == [False]
    assert ids(tmp_path) == [1, 2]
    if "Feed" in name:
        changes = pa.table(deltalake.DeltaTable(tmp_path).load_cdf(starting_version=1))
        assert changes.num_rows == 0


class Unlucky(deltalake.DeltaTable):  # type: ignore[misc,name-defined]
    """A table whose store loses the answer to a commit, or the commit itself."""

    takes_place = True

    def create_write_transaction(self, *args: Any, **options: Any) -> None:
        if self.takes_place:
            super().create_write_transaction(*args, **options)
        raise deltalake.exceptions.CommitFailedError("the connection was lost")


def test_a_lost_answer(two: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = pyparq.add_indexes(Unlucky(tmp_path / "t"), bloom_filters=["id"])
    assert [file.written for file in report.files] == [True, True]
    assert ids(tmp_path / "t") == [1, 2, 3]
    monkeypatch.setattr(Unlucky, "takes_place", False)
    before = len(parquet_files(tmp_path / "t"))
    with pytest.raises(CommitUnknownError, match="may have taken place"):
        pyparq.add_indexes(Unlucky(tmp_path / "t"), remove=["bloom_filters"])
    assert len(parquet_files(tmp_path / "t")) == before + 2  # the commit may name them
    assert ids(tmp_path / "t") == [1, 2, 3]


def test_many_writers_at_once(tmp_path: Path) -> None:
    """Nothing is lost and nothing doubled: threads that index, one that compacts, and one that appends."""
    delta(tmp_path, pa.table({"id": [0]}))
    unexpected: list[BaseException] = []
    allowed = (WriteConflictError, deltalake.exceptions.CommitFailedError)

    def repeat(do: Callable[[int], Any]) -> Callable[[], None]:
        def run() -> None:
            for k in range(6):
                try:
                    do(k)
                except CommitUnknownError as error:
                    unexpected.append(error)
                except allowed:
                    continue
                except BaseException as error:
                    unexpected.append(error)

        return run

    def append(k: int) -> None:
        data = pa.table({"id": range(10 * k + 1, 10 * k + 11)})
        while True:
            try:
                return deltalake.write_deltalake(tmp_path, data, mode="append")
            except deltalake.exceptions.CommitFailedError:
                continue

    def index(k: int) -> None:
        pyparq.add_indexes(deltalake.DeltaTable(tmp_path), bloom_filters={"id": 0.1 / (k + 1)}, replace=k % 2 == 0)

    works = [append, index, index, lambda k: deltalake.DeltaTable(tmp_path).optimize.compact()]
    threads = [threading.Thread(target=repeat(work)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert unexpected == []
    assert ids(tmp_path) == list(range(61))
    assert sorted(pyparq.read_table(deltalake.DeltaTable(tmp_path))["id"].to_pylist()) == list(range(61))


def _index_in_child(folder: str, start: Any) -> None:
    table = deltalake.DeltaTable(folder)
    start.wait()
    try:
        pyparq.add_indexes(table, bloom_filters=["id"])
    except WriteConflictError:
        return


def test_two_processes_at_once(two: Any, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(2)
    processes = [context.Process(target=_index_in_child, args=(str(tmp_path / "t"), start)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        assert process.exitcode == 0
    assert ids(tmp_path / "t") == [1, 2, 3]
    assert len(deltalake.DeltaTable(tmp_path / "t").history()) == 3


# ---- Delta Lake: features ------------------------------------------------------------------------------------------


def with_feature(folder: Path, features: list[str], types: dict[str, Any]) -> Any:
    """The table after a commit that adds features, and changes types of columns."""
    metadata = actions(folder, "metaData")[-1]
    schema = json.loads(metadata["schemaString"])
    for field in schema["fields"]:
        field["type"] = types.get(field["name"], field["type"])
    metadata["schemaString"] = json.dumps(schema)
    named = {"readerFeatures": features, "writerFeatures": features}
    lines = [{"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **named}}, {"metaData": metadata}]
    number = len(list((folder / "_delta_log").glob("*.json")))
    (folder / "_delta_log" / f"{number:020}.json").write_text("\n".join(map(json.dumps, lines)))
    return deltalake.DeltaTable(folder)


def test_a_feature_that_nothing_in_the_table_needs(tmp_path: Path) -> None:
    delta(tmp_path, pa.table({"id": [1], "v": [5]}))
    table = with_feature(tmp_path, ["variantType"], {})
    assert pyparq.dataset(table).read().to_pylist() == table.to_pyarrow_table().to_pylist()
    assert pyparq.add_indexes(table, bloom_filters=["id"]).files[0].written
    for type_ in ("variant", {"type": "array", "elementType": "variant", "containsNull": True}):
        with pytest.raises(UnsupportedError, match="variantType"):
            pyparq.dataset(with_feature(tmp_path, ["variantType"], {"v": type_}))


D, DAY = decimal.Decimal, dt.datetime
WIDENED: dict[str, tuple[Any, str, list[Any], Any]] = {
    "long": (pa.int32(), "long", [5, -7], 2**40),
    "double": (pa.float32(), "double", [0.5, -7.25], 0.1),
    "int to double": (pa.int32(), "double", [5, -7], 2.5),
    "decimal": (pa.decimal128(5, 2), "decimal(12,4)", [D("1.25"), D("-3.00")], D("1.2501")),
    "int to decimal": (pa.int32(), "decimal(20,2)", [5, -7], D("4.99")),
    "timestamp": (pa.date32(), "timestamp_ntz", [dt.date(2020, 1, 1), dt.date(1960, 5, 5)], DAY(2019, 12, 31, 23)),
}


def check_widened(ds: Any, name: str, values: list[Any], other: Any) -> None:
    wide = [DAY(value.year, value.month, value.day) if type(value) is dt.date else value for value in values]
    assert sorted(ds.read()[name].to_pylist()) == sorted(wide)
    for asked in [*wide, other]:
        assert ds.count(col(name) == asked) == wide.count(asked)
        assert ds.count(col(name).isin([asked])) == wide.count(asked)
        assert ds.count(col(name) > asked) == sum(value > asked for value in wide)
        assert ds.count(~(col(name) < asked)) == sum(value >= asked for value in wide)
    assert ds.count(col(name).is_null()) == 0


@pytest.mark.parametrize("case", WIDENED)
def test_types_that_delta_has_widened(tmp_path: Path, case: str) -> None:
    """deltalake lists the files, and does not read such a table itself."""
    narrow, wide, values, other = WIDENED[case]
    for value in values:
        delta(tmp_path, pa.table({"id": [1], "d": pa.array([value], narrow)}), mode="append")
    features = ["typeWidening", "timestampNtz"] if wide == "timestamp_ntz" else ["typeWidening"]
    table = with_feature(tmp_path, features, {"d": wide})
    check_widened(pyparq.dataset(table), "d", values, other)
    files = parquet_files(tmp_path)
    with pytest.raises(UnsupportedError, match="deltalake cannot commit"):
        pyparq.add_indexes(table, bloom_filters=["id"])
    assert parquet_files(tmp_path) == files


# ---- Iceberg -------------------------------------------------------------------------------------------------------


def catalog_at(folder: Path) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    folder.mkdir(exist_ok=True)
    catalog = SqlCatalog("c", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("n")
    return catalog


def numbers(start: int) -> Any:
    return pa.table({
        "id": pa.array(range(start, start + 12), pa.int64()), "a": pa.array([1 + k % 2 for k in range(12)], pa.int32()),
        "b": pa.array([10 + k % 3 for k in range(12)], pa.int32()),
        "s": ["xyz"[k % 3] + "12"[k % 2] for k in range(12)],
    })  # fmt: skip


QUESTIONS = ["a == 1", "b == 11", "s == 'x1'", "a == 2 and b > 10", "id >= 104", "s is null", "a == 11", "b == 1"]


def answers(table: Any) -> list[Any]:
    """The rows that pyiceberg's own scans give."""
    return [sorted(table.scan(row_filter=q).to_arrow()["id"].to_pylist()) for q in ("id >= 0", *QUESTIONS)]


def check_same(catalog: Any, table: Any, before: list[Any]) -> None:
    fresh = catalog.load_table(table.name())
    assert answers(fresh) == before
    ds = pyparq.dataset(fresh)
    asked = ["id >= 0", *(q.replace("==", "=") for q in QUESTIONS)]
    assert [sorted(ds.read(["id"], q)["id"].to_pylist()) for q in asked] == before
    assert ds.read().num_rows == len(before[0])


def specs() -> dict[str, tuple[list[str], Callable[[Any], Any]]]:
    """The columns of the older spec, and how it changes."""
    from pyiceberg.transforms import IdentityTransform, VoidTransform

    return {
        "none": ([], lambda update: update.add_field("a", IdentityTransform(), "pa")),
        "other": (["a"], lambda update: update.remove_field("a").add_field("b", IdentityTransform(), "pb")),
        "second": (["a"], lambda update: update.add_field("b", IdentityTransform(), "pb")),
        "removed": (["a"], lambda update: update.remove_field("a")),
        "first of two": (["a", "b"], lambda update: update.remove_field("a")),
        "void": (["a"], lambda update: update.remove_field("a").add_field("b", VoidTransform(), "pv")),
        "renamed": (["a"], lambda update: update.rename_field("a", "pz")),
    }


@pytest.mark.sweep(3)
@pytest.mark.parametrize("case", ["none", "other", "second", "removed", "first of two", "void", "renamed"])
def test_partition_specs_that_have_changed(tmp_path: Path, case: str) -> None:
    columns, change = specs()[case]
    catalog = catalog_at(tmp_path)
    table = catalog.create_table("n.t", schema=numbers(0).schema)
    with table.update_spec() as update:
        for column in columns:
            update.add_identity(column)
    table.append(numbers(0))
    with table.update_spec() as update:
        change(update)
    table = catalog.load_table("n.t")
    if case != "void":  # pyiceberg does not write those
        table.append(numbers(100))
    before, spec_ids = answers(table), sorted(task.file.spec_id for task in table.scan().plan_files())
    summary = table.current_snapshot().summary
    assert all(file.written for file in pyparq.add_indexes(table, bloom_filters=["id"]).files)
    check_same(catalog, table, before)
    fresh = catalog.load_table("n.t")
    assert sorted(task.file.spec_id for task in fresh.scan().plan_files()) == spec_ids
    for name in ("total-records", "total-data-files"):
        assert fresh.current_snapshot().summary[name] == summary[name]
    told = pyparq.dataset(fresh).explain(filters=col("id") == 5)
    assert "bloom filter" in [stage.name for stage in told.stages]
    fresh.delete("a == 1")  # manifests of every spec can be written on
    rest = sorted(fresh.scan().to_arrow()["id"].to_pylist())
    assert rest == [k for k in before[0] if k not in before[1]] == sorted(pyparq.read_table(fresh)["id"].to_pylist())


@pytest.mark.sweep(5)
@pytest.mark.parametrize("seed", range(5))
def test_transforms_at_random(tmp_path: Path, seed: int) -> None:
    """Files of several specs, with identities, truncations and parts of dates."""
    from pyiceberg import transforms as t

    draw = random.Random(seed)
    begin = dt.datetime(2024, 1, 1)
    possible = {
        "a": [t.IdentityTransform(), t.TruncateTransform(2)],
        "b": [t.IdentityTransform(), t.TruncateTransform(10)],
        "s": [t.IdentityTransform(), t.TruncateTransform(1)],
        "at": [t.YearTransform(), t.MonthTransform(), t.DayTransform(), t.HourTransform()],
    }
    kinds = {"id": pa.int64(), "a": pa.int32(), "b": pa.int32(), "s": pa.string(), "at": pa.timestamp("us")}
    catalog = catalog_at(tmp_path)
    table = catalog.create_table("n.t", schema=pa.schema(kinds))
    folder = Path(table.location().removeprefix("file://")) / "data"
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for number in range(5):
        column = draw.choice(sorted(possible))
        with table.update_spec() as update:
            for field in table.spec().fields:
                if field.name.startswith(column) or draw.random() < 0.4:
                    update.remove_field(field.name)
            update.add_field(column, draw.choice(possible[column]), f"{column}{number}")
        table = catalog.load_table("n.t")
        for _ in range(draw.randint(1, 3)):  # each file has one value of each partition field
            row = {"a": draw.randint(0, 3), "b": draw.randint(0, 25), "s": draw.choice(["", "é1", "x", "x2", "𠮷"])}
            row |= {"at": begin + dt.timedelta(hours=draw.randint(-20000, 20000))}
            rows = [{"id": count + k, **row} for k in range(3)]
            path = folder / f"{count}.parquet"
            pyparq.write_table(pa.Table.from_pylist(rows, pa.schema(kinds)), path, force=True)
            table.add_files([f"file://{path}"])
            count += 3
    asked = ["id >= 0", "a == 2", "b > 12", "s == 'x2'", "at < '2024-01-01T00:00:00'", "s like 'x%' and b < 20"]

    def found(table: Any) -> list[list[int]]:
        return [sorted(table.scan(row_filter=q).to_arrow()["id"].to_pylist()) for q in asked]

    before = found(table)
    everything = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    assert len({task.file.spec_id for task in table.scan().plan_files()}) > 1
    pyparq.add_indexes(table, bloom_filters=["id"])
    fresh = catalog.load_table("n.t")
    assert found(fresh) == before
    assert sorted(pyparq.read_table(fresh).to_pylist(), key=lambda row: row["id"]) == everything
    assert pyparq.dataset(fresh).count(col("a") == 2) == len(before[1])
    assert pyparq.dataset(fresh).count(col("at") < begin) == len(before[4])


def test_buckets_of_older_files(tmp_path: Path) -> None:
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.transforms import BucketTransform
    from pyiceberg.typedef import Record
    from pyiceberg.types import IntegerType

    catalog, bucket = catalog_at(tmp_path), BucketTransform(4)
    table = catalog.create_table("n.t", schema=numbers(0).schema)
    with table.update_spec() as update:
        update.add_field("a", bucket, "p")
    folder = Path(table.location().removeprefix("file://")) / "data"
    folder.mkdir(parents=True, exist_ok=True)
    field_ids = {field.name: str(field.field_id) for field in table.schema().fields}
    fields = [field.with_metadata({"PARQUET:field_id": field_ids[field.name]}) for field in numbers(0).schema]

    def put(name: str, column: str, start: int) -> None:
        with table.transaction() as transaction, transaction.update_snapshot().fast_append() as snapshot:
            for value in sorted(set(numbers(start)[column].to_pylist())):
                part = numbers(start).filter(pa.compute.equal(numbers(start)[column], value)).cast(pa.schema(fields))
                path = folder / f"{name}{value}.parquet"
                pyparq.write_table(part, path, force=True)
                file = DataFile.from_args(
                    content=DataFileContent.DATA, file_format=FileFormat.PARQUET, file_path=f"file://{path}",
                    partition=Record(bucket.transform(IntegerType())(value)), record_count=part.num_rows,
                    file_size_in_bytes=path.stat().st_size,
                )  # fmt: skip
                file.spec_id = table.spec().spec_id
                snapshot.append_data_file(file)

    put("a", "a", 0)
    with table.update_spec() as update:
        update.remove_field("p").add_field("b", bucket, "q")
    table = catalog.load_table("n.t")
    put("b", "b", 100)
    table = catalog.load_table("n.t")
    before = answers(table)
    assert [len(found) for found in before[:3]] == [24, 12, 8]
    assert all(file.written for file in pyparq.add_indexes(table, bloom_filters=["id"]).files)
    check_same(catalog, table, before)


def test_a_partition_column_that_is_gone(tmp_path: Path) -> None:
    catalog = catalog_at(tmp_path)
    table = catalog.create_table("n.t", schema=numbers(0).schema)
    with table.update_spec() as update:
        update.add_identity("a")
    table.append(numbers(0))
    with table.update_spec() as update:
        update.remove_field("a")
    with table.update_schema() as change:
        change.delete_column("a")
    table = catalog.load_table("n.t")
    files = parquet_files(tmp_path)
    with pytest.raises(UnsupportedError, match="'a' of older files"):
        pyparq.add_indexes(table, bloom_filters=["id"])
    assert parquet_files(tmp_path) == files
    assert catalog.load_table("n.t").scan().to_arrow().num_rows == 12


def test_an_append_beside_iceberg(tmp_path: Path) -> None:
    catalog = catalog_at(tmp_path)
    table = catalog.create_table("n.t", schema=numbers(0).schema)
    table.append(numbers(0))
    stale = catalog.load_table("n.t")
    table.append(numbers(100))
    assert [file.written for file in pyparq.add_indexes(stale, bloom_filters=["id"]).files] == [True]
    check_same(catalog, table, answers(table))
    assert len(answers(catalog.load_table("n.t"))[0]) == 24


def test_indexing_iceberg_twice_at_once(tmp_path: Path) -> None:
    catalog = catalog_at(tmp_path)
    table = catalog.create_table("n.t", schema=numbers(0).schema)
    table.append(numbers(0))
    before, stale = answers(table), catalog.load_table("n.t")
    pyparq.add_indexes(table, bloom_filters=["id"])
    files = parquet_files(tmp_path)
    with pytest.raises(WriteConflictError, match="another writer"):
        pyparq.add_indexes(stale, bloom_filters=["id"])
    assert parquet_files(tmp_path) == files
    check_same(catalog, table, before)


@pytest.mark.parametrize("root", ["my table", "ü", "a+b", "100%", "a=b"])
def test_odd_folders_of_iceberg(tmp_path: Path, root: str) -> None:
    catalog = catalog_at(tmp_path / root)
    table = catalog.create_table("n.t", schema=numbers(0).schema)
    with table.update_spec() as update:
        update.add_identity("s")
    odd = numbers(0).set_column(3, "s", pa.array([*ODD_NAMES[:11], None]))
    table.append(odd)
    before = answers(table)
    assert all(file.written for file in pyparq.add_indexes(table, bloom_filters=["id"]).files)
    check_same(catalog, table, before)


def test_names_of_renamed_columns(tmp_path: Path) -> None:
    from pyiceberg.types import LongType

    data = pa.table({"id": [1, 2], "s": [{"a": 1}, {"a": 2}], "l": [[{"x": 1}], [{"x": 2}]]})
    catalog = catalog_at(tmp_path)
    table = catalog.create_table("n.t", schema=data.schema)
    table.append(data)
    with table.update_schema() as update:
        update.rename_column("id", "key").rename_column("s.a", "b").rename_column("l.element.x", "y")
        update.add_column("new", LongType())
    table.append(pa.table({"key": [5], "s": [{"b": 1}], "l": [[{"y": 1}]], "new": [3]}))
    before = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["key"])
    wanted = {"key": 0.01, "s.b": True, "new": True, ("l", "y"): True}
    report = pyparq.add_indexes(table, bloom_filters=wanted, page_index=["key", "new"])
    blooms = {tuple(column.name for column in file.columns if column.bloom_filter) for file in report.files}
    assert blooms == {("id", "s.a", "l.list.element.x"), ("key", "s.b", "l.list.element.y", "new")}
    fresh = catalog.load_table("n.t")
    assert sorted(fresh.scan().to_arrow().to_pylist(), key=lambda row: row["key"]) == before
    for name, value in (("key", 2), ("new", 4)):
        told = pyparq.dataset(fresh).explain(filters=col(name) == value)
        assert told.rows == int(name == "key")
    with pytest.raises(ColumnNotFoundError, match="no column 'id'"):
        pyparq.add_indexes(fresh, bloom_filters=["id"])


def widened(catalog: Any, folder: Path, old: Any, new: Any, narrow: Any, values: list[Any]) -> Any:
    """A table of version 3 whose column ``d``, and the elements of ``l``, got another type."""
    from pyiceberg.schema import Schema
    from pyiceberg.table import StaticTable
    from pyiceberg.types import ListType, LongType, NestedField

    fields = NestedField(1, "id", LongType()), NestedField(2, "d", old)
    listed = NestedField(3, "l", ListType(4, old, element_required=False))
    table = catalog.create_table("n.t", schema=Schema(*fields, listed))
    for value in values:
        arrays = {"d": pa.array([value], narrow), "l": pa.array([[value, None]], pa.list_(narrow))}
        table.append(pa.table({"id": [1], **arrays}))
    metadata = json.loads(table.metadata.model_dump_json())
    for schema in metadata["schemas"]:
        for field in schema["fields"]:
            field["type"] = {"d": str(new)}.get(field["name"], field["type"])
            if field["name"] == "l":
                field["type"]["element"] = str(new)
    metadata |= {"format-version": 3, "next-row-id": len(values)}
    for snapshot in metadata["snapshots"]:
        snapshot |= {"first-row-id": 0, "added-rows": 1}
    path = folder / "v3.metadata.json"
    path.write_text(json.dumps(metadata))
    return StaticTable.from_metadata(str(path))


@pytest.mark.parametrize("case", ["long", "double", "decimal", "timestamp", "timestamp_ns"])
def test_types_that_iceberg_has_widened(tmp_path: Path, case: str) -> None:
    from pyiceberg import types as t

    old, new = {
        "long": (t.IntegerType(), t.LongType()), "double": (t.FloatType(), t.DoubleType()),
        "decimal": (t.DecimalType(5, 2), t.DecimalType(30, 2)), "timestamp": (t.DateType(), t.TimestampType()),
        "timestamp_ns": (t.DateType(), t.TimestampNanoType()),
    }[case]  # fmt: skip
    narrow, _, values, other = WIDENED[case.removesuffix("_ns")]
    table = widened(catalog_at(tmp_path), tmp_path, old, new, narrow, values)
    ds = pyparq.dataset(table)
    check_widened(ds, "d", values, other)
    assert sorted(row[0] for row in ds.read()["l"].to_pylist()) == sorted(ds.read()["d"].to_pylist())
    told = ds.explain(filters=col("d") == ds.read()["d"].to_pylist()[0])
    assert (told.files, told.files_opened) == (2, 1)  # the log still rules out
    with pytest.raises(UnsupportedError, match="version 3 of the format"):
        pyparq.add_indexes(table, bloom_filters=["id"])
    if "timestamp" not in case:  # pyiceberg reads the others
        assert sorted(table.scan().to_arrow()["d"].to_pylist()) == sorted(ds.read()["d"].to_pylist())


@pytest.fixture(autouse=True)
def quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield
