"""Tables of Delta Lake and Apache Iceberg as sources: their files, names, partitions, statistics and deleted rows."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import require
from s3_server import BUCKET, S3, serve
from support.lake_tables import delete_by_vector, with_deletes

import pyparq
from pyparq import col
from pyparq.errors import ManagedTableWarning, OptionError, UnsupportedError, WriteConflictError

deltalake = require("deltalake")
require("pyiceberg")
pa = require("pyarrow")
UTC = dt.UTC


def rows(count: int = 400, start: int = 0) -> Any:
    numbers = range(start, start + count)
    begin = dt.datetime(2024, 3, 1, tzinfo=UTC)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "p": pa.array([None if n % 10 == 9 else "ab"[n % 2] for n in numbers]),
            "day": pa.array([dt.date(2024, 1, 1 + n % 3) for n in numbers]),
            "x": pa.array([None if n % 7 == 0 else n / 4 for n in numbers]),
            "at": pa.array(
                [begin + dt.timedelta(minutes=n, microseconds=n) for n in numbers], pa.timestamp("us", "UTC")
            ),
            "price": pa.array([decimal.Decimal(n) / 100 for n in numbers], pa.decimal128(10, 2)),
            "s": pa.array([{"a": n, "b": str(n)} for n in numbers]),
            "tags": pa.array([[n, n + 1] for n in numbers], pa.list_(pa.int64())),
        }
    )


def by_id(table: Any) -> list[dict[str, Any]]:
    table = pa.table(table)
    return table.sort_by("id").to_pylist()  # type: ignore[no-any-return]


@pytest.fixture
def delta(tmp_path: Path) -> Any:
    folder = tmp_path / "delta"
    deltalake.write_deltalake(folder, rows(), partition_by=["p", "day"])
    deltalake.write_deltalake(folder, rows(200, 400), mode="append", partition_by=["p", "day"])
    return deltalake.DeltaTable(folder)


def catalog_at(folder: Path) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("c", uri="sqlite:///:memory:", warehouse=f"file://{folder}")
    catalog.create_namespace("n")
    return catalog


@pytest.fixture
def iceberg(tmp_path: Path) -> Any:
    table = catalog_at(tmp_path).create_table("n.t", schema=rows().schema)
    with table.update_spec() as update:
        update.add_identity("p")
    table.append(rows())
    table.append(rows(200, 400))
    return table


QUESTIONS = [
    None,
    col("id") < 5,
    (col("id") > 590) | (col("p") == "a") & (col("day") == dt.date(2024, 1, 2)),
    col("p").is_null(),
    col("p").is_not_null() & col("x").is_null(),
    col("s", "a") == 399,
    col("at") >= dt.datetime(2024, 3, 1, 9, 0, tzinfo=UTC),
    col("price") == decimal.Decimal("5.99"),
    col("id").isin([3, 300, 3000]),
    ~col("p").isin(["a"]) & (col("x") > 100),
    col("id") > 10_000,
]


def check_questions(source: Any, expected: list[dict[str, Any]]) -> None:
    """All roads give the rows of the model."""
    ds = pyparq.dataset(source)
    plain = io.BytesIO()
    pyparq.write_table(expected, plain, schema=ds.schema)
    for question in QUESTIONS:
        wanted = sorted(pyparq.read_table(plain, ["id"], question).column("id").to_pylist())
        found = ds.read(filters=question)
        assert by_id(found) == [row for row in expected if row["id"] in set(wanted)]
        assert ds.count(question) == len(wanted)
        assert sorted(r["id"] for b in ds.iter_batches(7, ["id"], question) for r in b.to_pylist()) == wanted
        plan = ds.plan(["id"], question)
        assert sorted(row["id"] for part in plan.split() for row in part.scan().to_table().to_pylist()) == wanted
    everything = ds.read(["id"]).column("id").to_pylist()
    places = random.Random(1).sample(range(len(everything)), 9)
    assert ds.take(places, ["id"]).column("id").to_pylist() == [everything[k] for k in places]
    assert ds.read_rows(3, 50, ["id"]).column("id").to_pylist() == everything[3:50]
    assert ds.head(5, ["id"]).column("id").to_pylist() == everything[:5]
    assert set(ds.sample(4, ["id"], seed=1).column("id").to_pylist()) <= set(everything)
    assert ds.lookup("id", [expected[0]["id"], -1], columns=["id"]).num_rows == 1


def test_delta(delta: Any) -> None:
    check_questions(delta, by_id(delta.to_pyarrow_table()))
    assert pyparq.dataset(delta).schema.names == rows().column_names
    assert pyparq.read_table(delta, ["id"], col("id") == 7).to_pydict() == {"id": [7]}
    assert pyparq.read_schema(delta).names == rows().column_names


def test_delta_at_a_version(delta: Any) -> None:
    old = deltalake.DeltaTable(delta.table_uri, version=0)
    assert pyparq.dataset(old).count() == 400
    delta.delete("id < 100")
    assert pyparq.dataset(delta).count() == 500
    assert pyparq.dataset(old).count() == 400


def test_delta_deletion_vectors(delta: Any, tmp_path: Path) -> None:
    before = {row["id"] for row in by_id(delta.to_pyarrow_table())}
    paths = pa.table(delta.get_add_actions()).column("path").to_pylist()
    gone = {
        paths[0]: [0, 1, 5],
        paths[3]: list(range(pyparq.read_metadata(delta.file_uris()[3]).num_rows)),
        paths[5]: [2],
    }
    lost = set()
    for path, numbers in gone.items():
        stored = pyparq.read_table(tmp_path / "delta" / path, ["id"]).column("id").to_pylist()
        lost |= {stored[k] for k in numbers}
    delete_by_vector(tmp_path / "delta", gone)
    table = deltalake.DeltaTable(delta.table_uri)
    check_questions(table, [row for row in by_id(delta.to_pyarrow_table()) if row["id"] in before - lost])


def test_delta_column_mapping(tmp_path: Path) -> None:
    folder = tmp_path / "mapped"
    mapped = {"delta.columnMapping.mode": "name", "delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}
    deltalake.write_deltalake(folder, rows(), partition_by=["p"], configuration=mapped)
    table = deltalake.DeltaTable(folder)
    check_questions(table, by_id(rows()))
    assert pyparq.dataset(table).explain(filters=col("s", "a") > 1000).files_opened == 0


def test_delta_odd_partition_values(tmp_path: Path) -> None:
    data = pa.table({"id": range(4), "p": ["a b/c%", "é=ü", "", "a b/c%"], "n": pa.array([1, None, 2, 1], pa.int32())})
    deltalake.write_deltalake(tmp_path / "t", data, partition_by=["p", "n"])
    table = deltalake.DeltaTable(tmp_path / "t")
    assert by_id(pyparq.read_table(table)) == by_id(table.to_pyarrow_table())
    assert pyparq.read_table(table, ["id"], (col("p") == "a b/c%") & (col("n") == 1)).num_rows == 2


def test_the_log_rules_out_files(delta: Any, iceberg: Any) -> None:
    for table in (delta, iceberg):
        ds = pyparq.dataset(table)
        told = ds.explain(filters=col("id") < 100)
        assert 0 < told.files_opened < told.files
        assert "the log rule out" in str(told)
        none = ds.explain(filters=(col("id") > 10**6) & (col("p") == "a"))
        assert (none.files_opened, none.requests) == (0, 0)
        assert ds.explain(filters=col("p").is_null() & col("x").is_nan()).files_opened < told.files


def test_iceberg(iceberg: Any) -> None:
    check_questions(iceberg, by_id(iceberg.scan().to_arrow()))
    first = iceberg.snapshots()[0].snapshot_id
    assert pyparq.dataset(iceberg.scan(snapshot_id=first)).count() == 400


def test_iceberg_partitions_of_all_types(tmp_path: Path) -> None:
    table = catalog_at(tmp_path).create_table("n.v", schema=rows().schema)
    data = rows(12)
    with table.update_spec() as update:
        for name in ("id", "p", "day", "at", "price"):
            update.add_identity(name)
    table.append(data)
    assert pyparq.dataset(table).partitions.names == ["id", "p", "day", "at", "price"]
    check_questions(table, by_id(data))
    with table.update_spec() as update:  # files of an older spec keep their columns
        update.remove_field("p")
    table.append(rows(5, 20))
    assert "p" not in pyparq.dataset(table).partitions.names
    check_questions(table, by_id(table.scan().to_arrow()))


def test_iceberg_renamed_and_widened(iceberg: Any) -> None:
    types = require("pyiceberg.types")
    with iceberg.update_schema() as update:
        update.rename_column("x", "y").rename_column("s.a", "c").delete_column("tags")
        update.add_column("new", types.LongType())
    iceberg.append(pa.table({"id": [7000], "p": ["a"], "y": [1.5], "new": pa.array([3], pa.int64())}))
    expected = by_id(iceberg.scan().to_arrow())
    assert by_id(pyparq.dataset(iceberg).read()) == expected
    assert pyparq.dataset(iceberg).count(col("y") > 10) == sum((row["y"] or 0) > 10 for row in expected)
    assert pyparq.dataset(iceberg).read(["id"], col("s", "c") == 9).to_pydict() == {"id": [9]}


@pytest.mark.parametrize("form", ["parquet", "puffin"])
def test_iceberg_deleted_rows(iceberg: Any, form: str) -> None:
    paths = sorted(task.file.file_path for task in iceberg.scan().plan_files())
    table = with_deletes(iceberg, {paths[0]: [0, 7, 8], paths[2]: [1]}, form)
    expected = by_id(table.scan().to_arrow())
    assert len(expected) == 596
    check_questions(table, expected)


def test_iceberg_equality_deletes_are_refused(iceberg: Any) -> None:
    path = next(task.file.file_path for task in iceberg.scan().plan_files())
    with pytest.raises(UnsupportedError, match="equality deletes"):
        pyparq.dataset(with_deletes(iceberg, {path: [1]}, "equality"))


def test_iceberg_files_without_field_ids(tmp_path: Path) -> None:
    """Files that were added as they are have no ids: the name mapping finds their columns."""
    table = catalog_at(tmp_path).create_table("n.u", schema=rows().schema)
    pyparq.write_table(rows(), tmp_path / "plain.parquet")
    table.add_files([f"file://{tmp_path}/plain.parquet"])
    assert by_id(pyparq.dataset(table).read()) == by_id(rows())
    with table.transaction() as change:
        change.remove_properties("schema.name-mapping.default")
    with pytest.raises(pyparq.SchemaError, match="field ids"):
        pyparq.dataset(table).read()


def test_iceberg_files_without_rows(tmp_path: Path) -> None:
    """pyiceberg leaves them out. So fewer files are read than the manifests name, and none is missing."""
    table = catalog_at(tmp_path).create_table("n.u", schema=rows().schema)
    table.append(rows())
    pyparq.write_table(rows().slice(0, 0), tmp_path / "empty.parquet")
    table.add_files([f"file://{tmp_path}/empty.parquet"])
    assert len(list(table.scan().plan_files())) == 1
    assert by_id(pyparq.dataset(table).read()) == by_id(rows())


def test_choices_that_the_log_makes(delta: Any, iceberg: Any) -> None:
    for options in ({"schema": {"id": "int64"}}, {"partitioning": None}, {"by": "field_id"}):
        with pytest.raises(OptionError, match="its log says it"):
            pyparq.dataset(delta, **options)
    with pytest.raises(OptionError, match="snapshot alone"):
        pyparq.dataset(iceberg.scan(row_filter="id > 3"))


def test_unknown_reader_feature(delta: Any) -> None:
    class Strange:
        reader_features = ("columnMapping", "timeTravelByMoonlight")
        min_reader_version = 3

    delta.protocol = Strange
    with pytest.raises(UnsupportedError, match="timeTravelByMoonlight"):
        pyparq.dataset(delta)


def test_a_plain_folder_says_how(delta: Any, tmp_path: Path) -> None:
    with pytest.warns(ManagedTableWarning, match=r"pyparq\.dataset\(DeltaTable"):
        pyparq.dataset(tmp_path / "delta")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pyparq.dataset(delta).count()


def test_a_file_that_the_log_does_not_fit(delta: Any) -> None:
    victim = Path(delta.file_uris()[0])
    pyparq.write_table({"id": [1]}, victim, force=True)
    with pytest.raises(pyparq.ChangedFileError):
        pyparq.dataset(delta).read()
    victim.unlink()
    with pytest.raises(FileNotFoundError):
        pyparq.dataset(delta).read()


# ---- add_indexes ---------------------------------------------------------------------------------------------------


def test_add_indexes_to_delta(delta: Any) -> None:
    before = by_id(delta.to_pyarrow_table())
    report = pyparq.add_indexes(delta, bloom_filters=["id"])
    assert all(file.written for file in report.files)
    table = deltalake.DeltaTable(delta.table_uri)
    assert table.version() == delta.version() + 1
    assert (
        by_id(table.to_pyarrow_table())
        == before
        == by_id(deltalake.DeltaTable(delta.table_uri, version=1).to_pyarrow_table())
    )
    check_questions(table, before)
    told = pyparq.dataset(table).explain(filters=col("id") == 100)
    assert "bloom filter" in [stage.name for stage in told.stages]
    assert pyparq.dataset(table).explain(filters=col("id") > 10**6).files_opened == 0  # the statistics are there still
    again = pyparq.add_indexes(table, bloom_filters=["id"])
    assert not any(file.written for file in again.files)
    assert deltalake.DeltaTable(delta.table_uri).version() == table.version()


def test_add_indexes_to_iceberg(iceberg: Any) -> None:
    before = by_id(iceberg.scan().to_arrow())
    old = iceberg.current_snapshot().snapshot_id
    pyparq.add_indexes(iceberg, bloom_filters=["id"])
    assert by_id(iceberg.scan().to_arrow()) == before == by_id(iceberg.scan(snapshot_id=old).to_arrow())
    check_questions(iceberg, before)
    told = pyparq.dataset(iceberg).explain(filters=col("id") == 100)
    assert "bloom filter" in [stage.name for stage in told.stages]


def test_add_indexes_leaves_files_with_deleted_rows(delta: Any, tmp_path: Path) -> None:
    path = pa.table(delta.get_add_actions()).column("path").to_pylist()[0]
    delete_by_vector(tmp_path / "delta", {path: [0]})
    table = deltalake.DeltaTable(delta.table_uri)
    before = by_id(pyparq.read_table(table))
    report = pyparq.add_indexes(table, bloom_filters=["id"])
    assert [file.written for file in report.files].count(False) == 1
    assert by_id(pyparq.read_table(deltalake.DeltaTable(delta.table_uri))) == before


def test_add_indexes_loses_to_another_writer(delta: Any, tmp_path: Path) -> None:
    stale = deltalake.DeltaTable(delta.table_uri)
    delta.delete("id = 3")
    files = sorted((tmp_path / "delta").rglob("*.parquet"))
    with pytest.raises(WriteConflictError, match="another writer"):
        pyparq.add_indexes(stale, bloom_filters=["id"])
    assert sorted((tmp_path / "delta").rglob("*.parquet")) == files
    assert pyparq.dataset(deltalake.DeltaTable(delta.table_uri)).count() == 599


@pytest.mark.parametrize("meanwhile", ["delete", "overwrite"])
def test_add_indexes_to_iceberg_loses_to_another_writer(meanwhile: str, tmp_path: Path) -> None:
    catalog = catalog_at(tmp_path)
    table = catalog.create_table("n.c", schema=rows().schema)
    table.append(rows())
    stale = catalog.load_table("n.c")
    given = {"delete": "id = 3", "overwrite": rows(5)}[meanwhile]
    getattr(table, meanwhile)(given)
    files = sorted(tmp_path.rglob("*.parquet"))
    with pytest.raises(WriteConflictError, match="another writer"):
        pyparq.add_indexes(stale, bloom_filters=["id"])
    assert sorted(tmp_path.rglob("*.parquet")) == files
    now = catalog.load_table("n.c")
    assert pyparq.dataset(now).count() == {"delete": 399, "overwrite": 5}[meanwhile]
    assert all(file.written for file in pyparq.add_indexes(now, bloom_filters=["id"]).files)


def test_add_indexes_leaves_files_of_other_folders(tmp_path: Path) -> None:
    table = catalog_at(tmp_path / "lake").create_table("n.o", schema=rows().schema)
    (tmp_path / "plain").mkdir()
    pyparq.write_table(rows(), tmp_path / "plain" / "a.parquet")
    table.add_files([f"file://{tmp_path}/plain/a.parquet"])
    report = pyparq.add_indexes(table, bloom_filters=["id"])
    assert [(file.written, "outside the table's folder" in file.notes[0]) for file in report.files] == [(False, True)]
    assert [path.name for path in (tmp_path / "plain").iterdir()] == ["a.parquet"]


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with serve() as running:
        yield running


def test_add_indexes_to_delta_on_a_store(s3: S3) -> None:
    given = {"aws_endpoint_url": s3.url, "aws_allow_http": "true", "aws_region": "us-east-1",
             "aws_access_key_id": "some-key", "aws_secret_access_key": "some-secret"}  # fmt: skip
    uri = f"s3://{BUCKET}/delta"
    deltalake.write_deltalake(uri, rows(), partition_by=["p"], storage_options=given)
    old = deltalake.DeltaTable(uri, storage_options=given)
    before = by_id(old.to_pyarrow_table())
    report = pyparq.add_indexes(old, bloom_filters=["id"])  # as the table reaches its store
    assert all(file.written for file in report.files)
    table = deltalake.DeltaTable(uri, storage_options=given)
    assert (table.version(), by_id(table.to_pyarrow_table())) == (old.version() + 1, before)
    for source in (pyparq.dataset(table), pyparq.dataset(table, storage_options=s3.options)):
        assert "bloom filter" in [stage.name for stage in source.explain(filters=col("id") == 100).stages]
    again = pyparq.add_indexes(table, bloom_filters=["id"], storage_options=s3.options)
    assert not any(file.written for file in again.files)
    table.delete("id = 3")
    stored = sorted(s3.fs().find(f"{BUCKET}/delta"))
    with pytest.raises(WriteConflictError, match="another writer"):
        pyparq.add_indexes(deltalake.DeltaTable(uri, old.version() + 1, given), bloom_filters=["x"],
                           storage_options=s3.options)  # fmt: skip
    assert sorted(s3.fs().find(f"{BUCKET}/delta")) == stored


@pytest.mark.sweep(3)
@pytest.mark.parametrize("root", ["my table", "ü", "100%", "a+b"])
def test_odd_folders_of_a_store(s3: S3, root: str) -> None:
    given = {"aws_endpoint_url": s3.url, "aws_allow_http": "true", "aws_region": "us-east-1",
             "aws_access_key_id": "some-key", "aws_secret_access_key": "some-secret"}  # fmt: skip
    uri = f"s3://{BUCKET}/{root}"
    data = pa.table({"id": [1, 2], "p": ["x y", "ü%"]})
    deltalake.write_deltalake(uri, data, partition_by=["p"], storage_options=given)
    table = deltalake.DeltaTable(uri, storage_options=given)
    assert all(file.written for file in pyparq.add_indexes(table, bloom_filters=["id"]).files)
    after = deltalake.DeltaTable(uri, storage_options=given)
    assert by_id(after.to_pyarrow_table()) == by_id(pyparq.dataset(after).read()) == data.to_pylist()


def test_add_indexes_to_iceberg_on_a_store(s3: S3) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    given = {"s3.endpoint": s3.url, "s3.region": "us-east-1", "s3.access-key-id": "some-key",
             "s3.secret-access-key": "some-secret"}  # fmt: skip
    catalog = SqlCatalog("c", uri="sqlite:///:memory:", warehouse=f"s3://{BUCKET}/ice", **given)
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", schema=rows().schema)
    table.append(rows())
    before = by_id(table.scan().to_arrow())
    assert all(file.written for file in pyparq.add_indexes(table, bloom_filters=["id"]).files)
    assert by_id(table.scan().to_arrow()) == before
    for source in (table, table.scan()):
        told = pyparq.dataset(source).explain(filters=col("id") == 100)
        assert "bloom filter" in [stage.name for stage in told.stages]


def test_copies_of_files_do_not_bring_deleted_rows_back(delta: Any, tmp_path: Path) -> None:
    path = pa.table(delta.get_add_actions()).column("path").to_pylist()[0]
    delete_by_vector(tmp_path / "delta", {path: [0, 1]})
    table = deltalake.DeltaTable(delta.table_uri)
    for source in (table, pyparq.dataset(table)):
        with pytest.raises(OptionError, match=r"pyparq\.rewrite"):
            pyparq.merge(source, tmp_path / "merged.parquet")
        with pytest.raises(OptionError, match=r"pyparq\.rewrite"):
            pyparq.add_indexes(source, tmp_path / "copies", bloom_filters=["id"])
        pyparq.rewrite(source, tmp_path / "rows.parquet")
        assert by_id(pyparq.read_table(tmp_path / "rows.parquet")) == by_id(pyparq.dataset(table).read())
    assert not (tmp_path / "merged.parquet").exists()
    assert not (tmp_path / "copies").exists()
    assert pyparq.verify(table).ok
    with pytest.raises(OptionError, match="cannot be one of a list"):
        pyparq.dataset([table])
