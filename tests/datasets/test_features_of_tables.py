"""Each feature of tables of Delta Lake and Iceberg in the table of docs/delta-and-iceberg.md: what the page says of it
holds. Tables are written by hand where no library writes them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import require
from support.lake_tables import (
    checkpoint_of,
    commit_of,
    field_of,
    file_of,
    metadata_of,
    protocol_of,
    vector_in_file,
    vector_in_log,
    with_deletes,
)

import pyparq
from pyparq import col
from pyparq.errors import OptionError, UnsupportedError, WriteConflictError

deltalake = require("deltalake")
require("pyiceberg")
pa = require("pyarrow")
pq = require("pyarrow.parquet")

PAGE = Path(__file__).parents[2] / "docs" / "delta-and-iceberg.md"
Rows = list[dict[str, Any]]
ROWS: Rows = [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}, {"id": 3, "v": "c"}]


def said(format_: str) -> dict[str, tuple[str, str, str]]:
    """What the page says of each feature: of reading, of rows deleted, of indexes added."""
    lines = PAGE.read_text("utf-8").split(f"| {format_} | read |")[1].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: (row[1], row[2], row[3]) for row in cells[: next(k for k, c in enumerate(cells) if len(c) != 4)]}


def table(rows: Rows = ROWS) -> Any:
    return pa.table({"id": pa.array([row["id"] for row in rows], pa.int64()), "v": [row["v"] for row in rows]})


def found(source: Any) -> Rows:
    got = pyparq.dataset(source).read().to_arrow().sort_by("id").to_pylist()
    assert pyparq.dataset(source).count() == len(got)
    for row in got:
        assert pyparq.dataset(source).count(col("id") == row["id"]) == 1
    assert pyparq.dataset(source).count(col("id") > 100) == 0
    return got  # type: ignore[no-any-return]


def index(source: Any) -> None:
    pyparq.add_indexes(source, bloom_filters=["id"])


def delete(source: Any) -> None:
    pyparq.delete(source, col("id") == 1)


def check(cell: str, do: Callable[[Any], Any], open_: Callable[[], Any], wanted: Rows) -> None:
    """``cell``: what the page says, ``yes…`` or ``refused…``."""
    if cell.startswith("refused"):
        before = pyparq_or_none(open_)
        with pytest.raises((UnsupportedError, OptionError, WriteConflictError)):
            do(open_())
        assert pyparq_or_none(open_) == before
        return
    assert cell.startswith("yes"), cell
    do(open_())
    assert found(open_()) == wanted


def pyparq_or_none(open_: Callable[[], Any]) -> Rows | None:
    try:
        return found(open_())
    except UnsupportedError:
        return None


# ---- Delta Lake ----------------------------------------------------------------------------------------------------

PLAIN = [field_of("id", "long"), field_of("v", "string")]
OF_TWO = {"id": 1, "v": "a"}, {"id": 3, "v": "c"}


def plain(folder: Path, *writer: str, fields: list[dict[str, Any]] = PLAIN, reader: Any = 1, **settings: str) -> Rows:
    """A table with features that do not change what its files say."""
    protocol = protocol_of(reader, list(writer) if writer else 2)
    commit_of(folder, 0, protocol, metadata_of(fields, **settings), file_of(folder, "1.parquet", table()))
    return ROWS


def vectors(folder: Path, vector: Callable[[Path], dict[str, Any]]) -> Rows:
    folder.mkdir()
    both = ["deletionVectors"]
    first, second = (file_of(folder, f"{k}.parquet", table(ROWS[k : k + 2]), **how) for k, how in (
        (0, {"deletionVector": vector(folder)}), (2, {}),
    ))  # fmt: skip
    commit_of(folder, 0, protocol_of(both, both), metadata_of(PLAIN, enableDeletionVectors="true"), first, second)
    return [ROWS[0], ROWS[2]]


def mapped(folder: Path, mode: str) -> Rows:
    """Names that were exchanged: files store each column under the name that the other one has now."""
    named = {"id": ("v", 1), "v": ("id", 2)}
    fields = [
        field_of(name, type_, delta__columnMapping_id=named[name][1], delta__columnMapping_physicalName=named[name][0])
        for name, type_ in (("id", "long"), ("v", "string"))
    ]
    for field in fields:
        field["metadata"] = {key.replace("_", "."): value for key, value in field["metadata"].items()}
    stored = pa.schema([
        pa.field("v" if mode == "name" else "x", pa.int64(), metadata={"PARQUET:field_id": "1"}),
        pa.field("id" if mode == "name" else "y", pa.string(), metadata={"PARQUET:field_id": "2"}),
    ])  # fmt: skip
    data = pa.Table.from_arrays([table()["id"], table()["v"]], schema=stored)
    file = file_of(folder, "1.parquet", data)
    commit_of(folder, 0, protocol_of(2, 5), metadata_of(fields, columnMapping__mode=mode), file)
    return ROWS


def row_tracking(folder: Path) -> Rows:
    protocol = protocol_of(1, ["rowTracking", "domainMetadata"])
    mark = {"domainMetadata": {"domain": "delta.rowTracking", "configuration": '{"rowIdHighWaterMark":2}',
                               "removed": False}}  # fmt: skip
    file = file_of(folder, "1.parquet", table(), baseRowId=0, defaultRowCommitVersion=0)
    commit_of(folder, 0, protocol, metadata_of(PLAIN, enableRowTracking="true"), mark, file)
    return ROWS


def checkpoint(folder: Path) -> Rows:
    plain(folder)
    commit_of(folder, 1, file_of(folder, "2.parquet", table([{"id": 4, "v": "d"}])))
    deltalake.DeltaTable(folder).create_checkpoint()
    for version in (0, 1):
        (folder / "_delta_log" / f"{version:020}.json").unlink()
    commit_of(folder, 2, {"remove": {"path": "2.parquet", "deletionTimestamp": 0, "dataChange": True}})
    return ROWS


def second_checkpoint(folder: Path) -> Rows:
    protocol, both = protocol_of(["v2Checkpoint"], ["v2Checkpoint"]), metadata_of(PLAIN, checkpointPolicy="v2")
    files = [file_of(folder, f"{k}.parquet", table(ROWS[k : k + 1])) for k in range(3)]
    commit_of(folder, 0, protocol, both, *files[:2])
    commit_of(folder, 1, {"add": files[2]["add"]})
    checkpoint_of(folder, 1, [protocol, both], files)
    return ROWS


def widened(folder: Path) -> Rows:
    """A file is older than the type of its column."""
    changes = [{"toType": "long", "fromType": "integer"}]
    fields = [field_of("id", "long", delta__typeChanges=changes), PLAIN[1]]
    narrow = table(ROWS[:2]).set_column(0, "id", pa.array([1, 2], pa.int32()))
    both = ["typeWidening"]
    files = [file_of(folder, "1.parquet", narrow), file_of(folder, "2.parquet", table(ROWS[2:]))]
    commit_of(folder, 0, protocol_of(both, both), metadata_of(fields, enableTypeWidening="true"), *files)
    return ROWS


def a_variant(folder: Path) -> Rows:
    fields = [PLAIN[0], field_of("v", "variant")]
    stored = pa.table({"id": [1], "v": [{"metadata": b"\1\0\0", "value": b"\0"}]})
    both = ["variantType"]
    commit_of(folder, 0, protocol_of(both, both), metadata_of(fields), file_of(folder, "1.parquet", stored))
    return []


def older_version(folder: Path) -> Rows:
    plain(folder)
    commit_of(folder, 1, {"remove": {"path": "1.parquet", "deletionTimestamp": 0, "dataChange": True}})
    return []


def changes(folder: Path) -> Rows:
    """What a feed of changes has beside the table is none of its rows."""
    protocol = protocol_of(1, 4)
    (folder / "_change_data").mkdir(parents=True)
    cdc = file_of(folder / "_change_data", "c.parquet", table())["add"]
    commit_of(folder, 0, protocol, metadata_of(PLAIN), file_of(folder, "1.parquet", table()),
              {"cdc": {"path": "_change_data/c.parquet", "partitionValues": {}, "size": cdc["size"],
                       "dataChange": False}})  # fmt: skip
    return ROWS


def cloned(folder: Path) -> Rows:
    """Its log names files of another table, by their whole paths."""
    other = folder.with_name("other")
    file = file_of(other, "1.parquet", table())
    file["add"]["path"] = (other / "1.parquet").as_uri()
    commit_of(folder, 0, protocol_of(1, 2), metadata_of(PLAIN), file)
    return ROWS


NUMBERED = field_of("id", "long")
NUMBERED["metadata"] = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.highWaterMark": 3}
COLLATED = field_of("v", "string", __COLLATIONS={"v": "spark.UTF8_LCASE"})
COLLATED["metadata"] = {"__COLLATIONS": {"v": "spark.UTF8_LCASE"}}
CLUSTERED = {"domainMetadata": {"domain": "delta.clustering", "configuration": '{"clusteringColumns":[["id"]]}',
                                "removed": False}}  # fmt: skip

DELTA: dict[str, Callable[[Path], Rows]] = {
    "deletion vectors in files": lambda folder: vectors(folder, lambda at: vector_in_file(at, [1])),
    "deletion vectors in the log": lambda folder: vectors(folder, lambda at: vector_in_log([1])),
    "column mapping by name": lambda folder: mapped(folder, "name"),
    "column mapping by id": lambda folder: mapped(folder, "id"),
    "row tracking": row_tracking,
    "checkpoints of version 1": checkpoint,
    "checkpoints of version 2": second_checkpoint,
    "type widening": widened,
    "generated columns": lambda folder: plain(
        folder, "generatedColumns", fields=[PLAIN[0], field_of("v", "string", delta__generationExpression="'a'")]
    ),
    "identity columns": lambda folder: plain(folder, "identityColumns", fields=[NUMBERED, PLAIN[1]]),
    "default values": lambda folder: plain(
        folder, "allowColumnDefaults", fields=[PLAIN[0], field_of("v", "string", CURRENT_DEFAULT="'x'")]
    ),
    "collations": lambda folder: plain(folder, "collations", "domainMetadata", fields=[PLAIN[0], COLLATED]),
    "variants": a_variant,
    "clustering": lambda folder: plain(folder, "clustering", "domainMetadata"),
    "in-commit timestamps": lambda folder: plain(folder, "inCommitTimestamp"),
    "change data feed": changes,
    "Iceberg compatibility": lambda folder: plain(folder, "icebergCompatV2"),
    "shallow clones": cloned,
    "a feature of readers that is not known": lambda folder: plain(
        folder, "timeTravelByMoonlight", reader=["timeTravelByMoonlight"]
    ),
}


def opened_delta(folder: Path) -> Any:
    try:
        return deltalake.DeltaTable(folder)
    except Exception as error:
        raise UnsupportedError(f"deltalake refuses it: {error}") from error


@pytest.mark.parametrize("feature", DELTA)
def test_delta_lake(tmp_path: Path, feature: str) -> None:
    folder = tmp_path / "t"
    rows = DELTA[feature](folder)
    read, deleted, indexed = said("Delta Lake")[feature]
    open_ = lambda: opened_delta(folder)  # noqa: E731
    check(read, found, open_, rows)
    if read.startswith("yes"):
        try:  # the table's own library, where it reads such a table
            theirs = pa.table(deltalake.QueryBuilder().register("t", open_()).execute("select * from t")).to_pylist()
        except Exception:
            theirs = rows
        if feature != "column mapping by id":  # it finds no columns there: nulls only
            assert sorted(theirs, key=lambda row: row["id"]) == rows
    check(indexed, index, open_, rows)
    check(deleted, delete, open_, [row for row in rows if row["id"] != 1])


def test_time_travel_of_delta_lake(tmp_path: Path) -> None:
    assert found(older(tmp_path, 1)) == []
    assert found(older(tmp_path, 0)) == ROWS
    _, deleted, indexed = said("Delta Lake")["time travel"]
    check(deleted, delete, lambda: older(tmp_path, 0), [])
    check(indexed, index, lambda: older(tmp_path, 0), [])


def older(folder: Path, version: int) -> Any:
    if not (folder / "_delta_log").exists():
        older_version(folder)
    return deltalake.DeltaTable(folder, version=version)


def test_what_is_compared_where_texts_have_a_collation(tmp_path: Path) -> None:
    """Filters compare texts by their letters, whatever the collation: the page says so."""
    DELTA["collations"](tmp_path)
    assert pyparq.dataset(deltalake.DeltaTable(tmp_path)).count(col("v") == "A") == 0


# ---- Apache Iceberg ------------------------------------------------------------------------------------------------


class Lake:
    """A catalog with one table, and what changes its metadata by hand."""

    def __init__(self, folder: Path) -> None:
        from pyiceberg.catalog.sql import SqlCatalog

        self.folder = folder
        self.catalog = SqlCatalog("c", uri="sqlite:///:memory:", warehouse=f"file://{folder}")
        self.catalog.create_namespace("n")
        self.static: Any = None

    def make(self, rows: Rows = ROWS, **options: Any) -> Any:
        made = self.catalog.create_table("n.t", schema=table().schema, **options)
        if rows:
            made.append(table(rows))
        return self.catalog.load_table("n.t")

    def open(self) -> Any:
        return self.catalog.load_table("n.t") if self.static is None else self.static

    def rewrite(self, change: Callable[[dict[str, Any]], None]) -> None:
        """The table with other metadata, which no catalog knows."""
        from pyiceberg.table import StaticTable

        metadata = json.loads(self.open().metadata.model_dump_json())
        change(metadata)
        path = self.folder / "changed.metadata.json"
        path.write_text(json.dumps(metadata))
        self.static = StaticTable.from_metadata(str(path))


def with_form(form: str) -> Callable[[Lake], Rows]:
    def make(lake: Lake) -> Rows:
        made = lake.make()
        path = next(iter(made.scan().plan_files())).file.file_path
        lake.static = with_deletes(made, {path: [1]}, form)
        return [ROWS[0], ROWS[2]]

    return make


def with_update(change: Callable[[Any], Any], rows: Rows) -> Callable[[Lake], Rows]:
    def make(lake: Lake) -> Rows:
        with lake.make().update_schema() as update:
            change(update)
        return rows

    return make


def types() -> Any:
    return require("pyiceberg.types")


def promoted(lake: Lake) -> Rows:
    narrow = pa.schema([("id", pa.int32()), ("v", pa.string())])
    made = lake.catalog.create_table("n.t", schema=narrow)
    made.append(table(ROWS[:2]).cast(narrow))
    with made.update_schema() as update:
        update.update_column("id", types().LongType())
    lake.catalog.load_table("n.t").append(table(ROWS[2:]))
    return ROWS


def exchanged(lake: Lake) -> Rows:
    """Each column gets the name that the other one had."""
    schema = pa.schema([("v", pa.int64()), ("id", pa.string())])
    made = lake.catalog.create_table("n.t", schema=schema)
    made.append(pa.Table.from_arrays([table()["id"], table()["v"]], schema=schema))
    for before, after in (("v", "x"), ("id", "v"), ("x", "id")):
        with made.update_schema() as update:
            update.rename_column(before, after)
    return ROWS


def made_anew(lake: Lake) -> Rows:
    """A column of a name that another one had: older files do not have it."""
    made = lake.make()
    with made.update_schema() as update:
        update.delete_column("v")
    with made.update_schema() as update:
        update.add_column("v", types().StringType())
    return [row | {"v": None} for row in ROWS]


def nested(lake: Lake) -> Rows:
    inner = pa.list_(pa.struct([("a", pa.int64()), ("b", pa.string())]))
    schema = pa.schema([("id", pa.int64()), ("v", inner)])
    made = lake.catalog.create_table("n.t", schema=schema)
    made.append(pa.table({"id": [1, 2], "v": [[{"a": 5, "b": "x"}], []]}, schema=schema))
    with made.update_schema() as update:
        update.rename_column("v.element.a", "c")
        update.delete_column("v.element.b")
        update.add_column(("v", "element", "b"), types().LongType())
    return [{"id": 1, "v": [{"c": 5, "b": None}]}, {"id": 2, "v": []}]


def with_defaults(lake: Lake) -> Rows:
    lake.make()

    def change(metadata: dict[str, Any]) -> None:
        metadata["format-version"], metadata["next-row-id"] = 3, 3
        for schema in metadata["schemas"]:
            schema["fields"].append({"id": 9, "name": "n", "type": "int", "required": False, "initial-default": 5})

    lake.rewrite(change)
    return [row | {"n": 5} for row in ROWS]


def append_file(table: Any, path: Path, form: str = "PARQUET") -> None:
    """A snapshot with a file of three rows more, which is there."""
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    entry = DataFile.from_args(
        content=DataFileContent.DATA, file_path=f"file://{path}", file_format=FileFormat[form], partition=Record(),
        record_count=3, file_size_in_bytes=path.stat().st_size,
    )  # fmt: skip
    entry.spec_id = 0
    with table.transaction() as change, change.update_snapshot().fast_append() as append:
        append.append_data_file(entry)


def with_name_mapping(lake: Lake) -> Rows:
    """A file without ids: the mapping says under which names it has the columns."""
    made, path = lake.make([]), lake.folder / "n" / "t" / "plain.parquet"
    pyparq.write_table({"ident": [1, 2, 3], "v": ["a", "b", "c"]}, path, force=True)
    names = [{"field-id": 1, "names": ["id", "ident"]}, {"field-id": 2, "names": ["v"]}]
    with made.transaction() as change:
        change.set_properties({"schema.name-mapping.default": json.dumps(names)})
    append_file(made, path)
    return ROWS


def with_lineage(lake: Lake) -> Rows:
    """Version 3 numbers the rows, and a file that was made anew stores the numbers."""
    made = lake.make([])
    reserved = [
        pa.field("_row_id", pa.int64(), metadata={"PARQUET:field_id": "2147483540"}),
        pa.field("_last_updated_sequence_number", pa.int64(), metadata={"PARQUET:field_id": "2147483539"}),
    ]
    numbered = [field.with_metadata({"PARQUET:field_id": str(k)}) for k, field in enumerate(table().schema, 1)]
    data = pa.Table.from_arrays([*table().columns, pa.array([7, 8, 9]), pa.array([1, 1, 1])],
                                schema=pa.schema([*numbered, *reserved]))  # fmt: skip
    pq.write_table(data, lake.folder / "lineage.parquet")
    append_file(made, lake.folder / "lineage.parquet")

    def third(metadata: dict[str, Any]) -> None:
        metadata |= {"format-version": 3, "next-row-id": 3}
        for snapshot in metadata["snapshots"]:
            snapshot |= {"first-row-id": 0, "added-rows": 3}

    lake.rewrite(third)
    return ROWS


def of_another_format(lake: Lake) -> Rows:
    made = lake.make()
    (lake.folder / "a.orc").write_bytes(b"ORC")
    append_file(made, lake.folder / "a.orc", "ORC")
    return ROWS


def partitioned_anew(lake: Lake) -> Rows:
    made = lake.make(ROWS[:2])
    with made.update_spec() as update:
        update.add_identity("v")
    lake.catalog.load_table("n.t").append(table(ROWS[2:]))
    return ROWS


def branched(lake: Lake) -> Rows:
    made = lake.make()
    first = made.current_snapshot().snapshot_id
    made.manage_snapshots().create_tag(first, "audit").create_branch(first, "trial").commit()
    made.append(table([{"id": 4, "v": "d"}]))
    return [*ROWS, {"id": 4, "v": "d"}]


def of_version_1(lake: Lake) -> Rows:
    lake.make(properties={"format-version": "1"})
    return ROWS


def in_nanoseconds(lake: Lake) -> Rows:
    """A type of version 3."""
    lake.make()

    def change(metadata: dict[str, Any]) -> None:
        metadata["format-version"], metadata["next-row-id"] = 3, 3
        for schema in metadata["schemas"]:
            schema["fields"].append({"id": 9, "name": "t", "type": "timestamp_ns", "required": False})

    lake.rewrite(change)
    return [row | {"t": None} for row in ROWS]


ICEBERG: dict[str, Callable[[Lake], Rows]] = {
    "version 1": of_version_1,
    "position deletes": with_form("parquet"),
    "deletion vectors": with_form("puffin"),
    "equality deletes": with_form("equality"),
    "columns that were renamed": exchanged,
    "columns in another order": with_update(lambda update: update.move_first("v"), ROWS),
    "columns of a wider type": promoted,
    "columns that were dropped and added": made_anew,
    "default values": with_defaults,
    "ids of nested fields": nested,
    "name mapping": with_name_mapping,
    "row lineage": with_lineage,
    "types of version 3": in_nanoseconds,
    "partitions that were changed": partitioned_anew,
    "branches and tags": branched,
    "data files of Avro or ORC": of_another_format,
}


@pytest.mark.sweep(4)
@pytest.mark.parametrize("feature", ICEBERG)
def test_iceberg(tmp_path: Path, feature: str) -> None:
    lake = Lake(tmp_path)
    rows = ICEBERG[feature](lake)
    read, deleted, indexed = said("Apache Iceberg")[feature]
    check(read, found, lake.open, rows)
    if read.startswith("yes"):
        theirs = lake.open().scan().to_arrow().sort_by("id").to_pylist()
        assert theirs == rows
        assert list(pyparq.dataset(lake.open()).read().to_arrow().column_names) == list(theirs[0])
    check(indexed, index, lake.open, rows)
    check(deleted, delete, lake.open, [row for row in rows if row["id"] != 1])


def test_time_travel_of_iceberg(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    branched(lake)
    opened = lake.open()
    first = opened.snapshots()[0].snapshot_id
    _, deleted, indexed = said("Apache Iceberg")["time travel"]
    for scan in (opened.scan(snapshot_id=first), opened.scan().use_ref("audit"), opened.scan().use_ref("trial")):
        assert found(scan) == ROWS
        check(deleted, delete, lambda scan=scan: scan, [])  # type: ignore[misc]
        check(indexed, index, lambda scan=scan: scan, [])  # type: ignore[misc]


def test_the_page_has_these_features() -> None:
    """Each row of the page has a table here, and each table a row."""
    assert list(said("Delta Lake")) == [*DELTA, "time travel"]
    assert list(said("Apache Iceberg")) == [*ICEBERG, "time travel"]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield
