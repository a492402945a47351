"""What a change of rows would not keep in a table of Delta Lake or Iceberg is refused by name, with nothing written."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import require
from lake_tables import delete_by_vector, with_deletes

import pyparq
from pyparq import col
from pyparq.errors import DataError, OptionError, ParquetError, UnsupportedError

deltalake = require("deltalake")
require("pyiceberg")
pa = require("pyarrow")

DATA = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "v": ["a", "b", "c"]})
NEW = pa.table({"id": pa.array([2, 9], pa.int64()), "v": ["B", "I"]})

DELETE: Callable[..., Any] = lambda table, **o: pyparq.delete(table, col("id") == 2, **o)  # noqa: E731
UPDATE: Callable[..., Any] = lambda table, **o: pyparq.update(table, col("id") == 2, {"v": "x"}, **o)  # noqa: E731
UPSERT: Callable[..., Any] = lambda table, **o: pyparq.upsert(table, NEW, "id", **o)  # noqa: E731
ALL = {"delete": DELETE, "update": UPDATE, "upsert": UPSERT}
WANTED = {"delete": ["a", "c"], "update": ["a", "x", "c"], "upsert": ["a", "B", "c", "I"]}


def everything(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in sorted(folder.rglob("*")) if path.is_file()}


def refused(open_table: Callable[[], Any], folder: Path, match: str, how: str, dry_run: bool = False) -> None:
    before = everything(folder)
    with pytest.raises((UnsupportedError, OptionError), match=match):
        ALL[how](open_table(), dry_run=dry_run)
    assert everything(folder) == before


def changed_log(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the actions of version 0 of a table that ``deltalake`` has made."""
    deltalake.write_deltalake(folder, DATA)
    log = folder / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        change(line)
    log.write_text("\n".join(map(json.dumps, lines)))


# ---- Delta Lake ----------------------------------------------------------------------------------------------------

READER_TOO = {"deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "columnMapping",
              "variantType", "variantShredding", "typeWidening", "typeWidening-preview"}  # fmt: skip


def with_feature(folder: Path, *features: str) -> None:
    def change(line: dict[str, Any]) -> None:
        if "protocol" in line:
            reader = [feature for feature in features if feature in READER_TOO]
            protocol: dict[str, Any] = {"minReaderVersion": 3 if reader else 1, "minWriterVersion": 7}
            line["protocol"] = (
                protocol | {"writerFeatures": list(features)} | ({"readerFeatures": reader} if reader else {})
            )

    changed_log(folder, change)


@pytest.mark.parametrize("how", ALL)
@pytest.mark.parametrize(
    "feature",
    ["identityColumns", "rowTracking", "typeWidening", "typeWidening-preview", "domainMetadata", "vacuumProtocolCheck",
     "icebergCompatV1", "icebergCompatV2", "clustering", "inCommitTimestamp", "inCommitTimestamp-preview",
     "allowColumnDefaults", "collations", "collations-preview", "variantType", "variantShredding",
     "checkpointProtection", "materializePartitionColumns", "catalogOwned", "somethingNew"],
)  # fmt: skip
def test_features_that_are_not_kept(tmp_path: Path, feature: str, how: str) -> None:
    with_feature(tmp_path, feature)
    for dry_run in (True, False):
        refused(lambda: deltalake.DeltaTable(tmp_path), tmp_path, f"feature {feature},", how, dry_run)


@pytest.mark.parametrize("how", ALL)
@pytest.mark.parametrize(
    "feature",
    ["appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "columnMapping",
     "deletionVectors", "timestampNtz", "v2Checkpoint"],
)  # fmt: skip
def test_features_that_are_not_in_use(tmp_path: Path, feature: str, how: str) -> None:
    with_feature(tmp_path, feature)
    ALL[how](deltalake.DeltaTable(tmp_path))
    after = deltalake.DeltaTable(tmp_path)
    assert after.protocol().writer_features == [feature]
    found = pa.table(deltalake.QueryBuilder().register("t", after).execute("select v from t"))
    assert sorted(found["v"].to_pylist()) == sorted(WANTED[how])


@pytest.mark.parametrize("how", ALL)
@pytest.mark.parametrize(("reader", "writer", "match"), [(1, 6, "version 6"), (1, 8, "version 8"), (9, 2, "version 9")])
def test_versions_that_are_not_known(tmp_path: Path, reader: int, writer: int, match: str, how: str) -> None:
    def change(line: dict[str, Any]) -> None:
        if "protocol" in line:
            line["protocol"] = {"minReaderVersion": reader, "minWriterVersion": writer}

    changed_log(tmp_path, change)
    if reader == 9:
        with pytest.raises(Exception, match=r"(?i)unsupported|version|invalid protocol"):
            deltalake.DeltaTable(tmp_path)
        return
    refused(lambda: deltalake.DeltaTable(tmp_path), tmp_path, match, how)


SETTINGS = {
    "delta.appendOnly": "true", "delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true",
    "delta.columnMapping.mode": "name",
}  # fmt: skip


@pytest.mark.parametrize("how", ALL)
@pytest.mark.parametrize("name", [*SETTINGS, "delta.columnMapping.mode by id"])
def test_settings_that_are_not_kept(tmp_path: Path, name: str, how: str) -> None:
    setting, value = (name.split()[0], "id") if name not in SETTINGS else (name, SETTINGS[name])

    def change(line: dict[str, Any]) -> None:
        if "metaData" in line:
            line["metaData"]["configuration"][setting] = value
            if "columnMapping" in setting:
                schema = json.loads(line["metaData"]["schemaString"])
                for k, field in enumerate(schema["fields"], 1):
                    field["metadata"] = {"delta.columnMapping.id": k, "delta.columnMapping.physicalName": field["name"]}
                line["metaData"]["schemaString"] = json.dumps(schema)
        if "protocol" in line and "columnMapping" in setting:
            line["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5}

    changed_log(tmp_path, change)
    match = "column mapping" if "columnMapping" in setting else setting
    for dry_run in (True, False):
        refused(lambda: deltalake.DeltaTable(tmp_path), tmp_path, match, how, dry_run)


DEMANDS = {
    "delta.invariants": ('{"expression": {"expression": "v != \'x\'"}}', "has an invariant"),
    "delta.generationExpression": ("upper(v)", "computed from others"),
    "delta.identity.start": (1, "numbers the rows"),
    "__CHAR_VARCHAR_TYPE_STRING": ("varchar(1)", "limits its length"),
}


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("demand", DEMANDS)
def test_what_columns_demand_of_new_values(tmp_path: Path, demand: str, nested: bool) -> None:
    value, match = DEMANDS[demand]

    def change(line: dict[str, Any]) -> None:
        if "metaData" in line:
            schema = json.loads(line["metaData"]["schemaString"])
            said = {"name": "n", "type": "string", "nullable": True, "metadata": {demand: value}}
            inner = {"type": "array", "elementType": {"type": "struct", "fields": [said]}, "containsNull": True}
            schema["fields"].append(
                {"name": "w", "type": inner, "nullable": True, "metadata": {}} if nested else said
            )  # fmt: skip
            line["metaData"]["schemaString"] = json.dumps(schema)

    changed_log(tmp_path, change)
    refused(lambda: deltalake.DeltaTable(tmp_path), tmp_path, match, "update")
    before = everything(tmp_path)
    with pytest.raises(ParquetError):  # the data lack the column
        UPSERT(deltalake.DeltaTable(tmp_path))
    more = pyparq.read_table(deltalake.DeltaTable(tmp_path)).to_arrow().slice(0, 1)
    with pytest.raises(UnsupportedError, match=match):
        pyparq.upsert(deltalake.DeltaTable(tmp_path), more, "id")
    assert everything(tmp_path) == before
    DELETE(deltalake.DeltaTable(tmp_path))
    assert len(pyparq.read_table(deltalake.DeltaTable(tmp_path))) == 2


def test_constraints(tmp_path: Path) -> None:
    """Rows that are left out break none."""
    deltalake.write_deltalake(tmp_path, DATA)
    deltalake.DeltaTable(tmp_path).alter.add_constraint({"small": "id < 5"})
    for how in ("update", "upsert"):
        refused(lambda: deltalake.DeltaTable(tmp_path), tmp_path, "constraint small: id < 5", how)
    DELETE(deltalake.DeltaTable(tmp_path))
    assert deltalake.DeltaTable(tmp_path).to_pyarrow_table()["id"].to_pylist() == [1, 3]


@pytest.mark.parametrize("how", ALL)
def test_deletion_vectors(tmp_path: Path, how: str) -> None:
    """A file with deleted rows is refused if it has such rows, and other files change."""
    deltalake.write_deltalake(tmp_path, DATA)
    deltalake.write_deltalake(tmp_path, pa.table({"id": [5, 6], "v": ["e", "f"]}), mode="append")
    known = pa.table(deltalake.DeltaTable(tmp_path).get_add_actions()).to_pylist()
    path = next(row["path"] for row in known if row["num_records"] == 3)
    delete_by_vector(tmp_path, {path: [0]})
    refused(lambda: deltalake.DeltaTable(tmp_path), tmp_path, "deleted rows: compact", how)
    pyparq.delete(deltalake.DeltaTable(tmp_path), col("id") == 5)
    pyparq.delete(deltalake.DeltaTable(tmp_path), col("id") == 1)  # it is deleted already
    assert sorted(pyparq.read_table(deltalake.DeltaTable(tmp_path))["id"].to_pylist()) == [2, 3, 6]


# ---- Iceberg -------------------------------------------------------------------------------------------------------


@pytest.fixture
def catalog(tmp_path: Path) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    found = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}")
    found.create_namespace("n")
    return found


def iceberg(catalog: Any, **options: Any) -> Any:
    table = catalog.create_table("n.t", schema=DATA.schema, **options)
    table.append(DATA)
    return catalog.load_table("n.t")


def changed_metadata(table: Any, folder: Path, change: Callable[[dict[str, Any]], None]) -> Any:
    from pyiceberg.table import StaticTable

    metadata = json.loads(table.metadata.model_dump_json())
    change(metadata)
    path = folder / "changed.metadata.json"
    path.write_text(json.dumps(metadata))
    return StaticTable.from_metadata(str(path))


@pytest.mark.parametrize("how", ALL)
def test_version_1(catalog: Any, how: str) -> None:
    table = iceberg(catalog, properties={"format-version": "1"})
    assert table.metadata.format_version == 1
    ALL[how](table)
    after = catalog.load_table("n.t")
    assert after.scan().to_arrow().sort_by("id")["v"].to_pylist() == WANTED[how]
    assert after.metadata.format_version == 1
    assert any(file.written for file in pyparq.add_indexes(after, bloom_filters=["id"]).files)
    after = catalog.load_table("n.t")
    assert after.scan().to_arrow().sort_by("id")["v"].to_pylist() == WANTED[how]
    after.append(DATA.slice(0, 1))
    assert len(catalog.load_table("n.t").scan().to_arrow()) == len(WANTED[how]) + 1


@pytest.mark.parametrize("how", ALL)
def test_version_3(catalog: Any, tmp_path: Path, how: str) -> None:
    """Its rows are numbered, and its deletions are vectors."""

    def change(metadata: dict[str, Any]) -> None:
        metadata |= {"format-version": 3, "next-row-id": 3}
        for snapshot in metadata["snapshots"]:
            snapshot |= {"first-row-id": 0, "added-rows": 3}

    table = changed_metadata(iceberg(catalog), tmp_path, change)
    refused(lambda: table, tmp_path, "version 3 of the format", how)


@pytest.mark.parametrize("how", ALL)
@pytest.mark.parametrize("form", ["parquet", "puffin", "equality"])
def test_delete_files(catalog: Any, tmp_path: Path, form: str, how: str) -> None:
    table = iceberg(catalog)
    path = next(iter(table.scan().plan_files())).file.file_path
    table = with_deletes(table, {path: [0]}, form)
    match = "equality deletes" if form == "equality" else "deleted rows: compact"
    refused(lambda: table, tmp_path, match, how)


@pytest.mark.parametrize("how", ALL)
def test_initial_defaults(catalog: Any, tmp_path: Path, how: str) -> None:
    def change(metadata: dict[str, Any]) -> None:
        for schema in metadata["schemas"]:
            schema["fields"].append({"id": 9, "name": "n", "type": "int", "required": False, "initial-default": 5})

    table = changed_metadata(iceberg(catalog), tmp_path, change)
    if table.schema().find_field("n").initial_default is None:
        pytest.skip("this pyiceberg does not read initial defaults")
    refused(lambda: table, tmp_path, "initial default", how)


def test_columns_that_were_widened(catalog: Any) -> None:
    """New rows go to new files with the wider type. A file keeps its own, and says which value it cannot hold."""
    from pyiceberg.types import LongType

    data = pa.table({"id": pa.array([1, 2], pa.int64()), "n": pa.array([1, 2], pa.int32())})
    table = catalog.create_table("n.t", schema=data.schema)
    table.append(data)
    with table.update_schema() as update:
        update.update_column("n", LongType())
    with pytest.raises(DataError, match="4294967296"):
        pyparq.update(catalog.load_table("n.t"), col("id") == 1, {"n": 1 << 32})
    pyparq.update(catalog.load_table("n.t"), col("id") == 1, {"n": 77})
    pyparq.upsert(catalog.load_table("n.t"), pa.table({"id": [3], "n": [1 << 40]}), "id")
    got = catalog.load_table("n.t").scan().to_arrow().sort_by("id")
    assert got["n"].to_pylist() == [77, 2, 1 << 40]


@pytest.mark.parametrize("how", ALL)
def test_sort_orders(catalog: Any, how: str) -> None:
    """Rows that are left stay in their order. New values may not be in it, so the file does not claim it."""
    from pyiceberg.schema import Schema
    from pyiceberg.table.sorting import SortField, SortOrder
    from pyiceberg.transforms import IdentityTransform
    from pyiceberg.types import LongType, NestedField, StringType

    order = SortOrder(SortField(source_id=1, transform=IdentityTransform()))
    fields = NestedField(1, "id", LongType()), NestedField(2, "v", StringType())
    table = catalog.create_table("n.t", schema=Schema(*fields), sort_order=order)
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        from pyiceberg.io.pyarrow import _dataframe_to_data_files

        for file in _dataframe_to_data_files(table.metadata, DATA, table.io):
            file[15] = 1
            append.append_data_file(file)
    table = catalog.load_table("n.t")
    assert [task.file.sort_order_id for task in table.scan().plan_files()] == [1]
    ALL[how](table)
    after = catalog.load_table("n.t")
    orders = {task.file.sort_order_id for task in after.scan().plan_files()}
    assert orders == ({1} if how == "delete" else {None})
    assert after.scan().to_arrow().sort_by("id")["v"].to_pylist() == WANTED[how]
    assert after.metadata.default_sort_order_id == 1


def test_branches_and_tags(catalog: Any) -> None:
    """They keep their snapshots, and the report says so."""
    table = iceberg(catalog)
    first = table.current_snapshot().snapshot_id
    table.manage_snapshots().create_tag(first, "audit").create_branch(first, "trial").commit()
    report = DELETE(catalog.load_table("n.t"))
    assert any("the branch 'trial', the tag 'audit'" in note for note in report.notes)
    after = catalog.load_table("n.t")
    assert after.scan().to_arrow()["v"].to_pylist() == ["a", "c"]
    assert after.scan().use_ref("audit").to_arrow()["v"].to_pylist() == ["a", "b", "c"]
    assert after.scan().use_ref("trial").to_arrow()["v"].to_pylist() == ["a", "b", "c"]


@pytest.mark.parametrize("how", ALL)
def test_keys_of_the_table(catalog: Any, tmp_path: Path, how: str) -> None:
    """Manifests may hold the key of a data file."""
    table = iceberg(catalog)
    with table.transaction() as transaction, transaction.update_snapshot().overwrite() as snapshot:
        for task in table.scan().plan_files():
            snapshot.delete_data_file(task.file)
            values = {name: getattr(task.file, name) for name in (
                "content", "file_path", "file_format", "partition", "record_count", "file_size_in_bytes"
            )}  # fmt: skip
            entry = type(task.file).from_args(_table_format_version=2, **values, key_metadata=b"wrapped")
            entry.spec_id = task.file.spec_id
            snapshot.append_data_file(entry)
    refused(lambda: catalog.load_table("n.t"), tmp_path, "encrypted with keys of the table", how)


@pytest.fixture(autouse=True)
def quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield
