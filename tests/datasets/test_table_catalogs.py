"""The catalog of keys of a table of Delta Lake or Iceberg: results never depend on it, whatever others do."""

from __future__ import annotations

import json
import random
import warnings
from pathlib import Path
from typing import Any

import pytest
from conftest import require
from support.lake_tables import (
    commit_of,
    delete_by_vector,
    field_of,
    file_of,
    metadata_of,
    protocol_of,
    with_deletes,
)

import pyparq
from pyparq import col
from pyparq.errors import (
    CatalogWarning,
    ColumnNotFoundError,
    CommitUnknownError,
    CorruptFileError,
    OptionError,
    UnsupportedError,
    WriteConflictError,
)

deltalake = require("deltalake")
require("pyiceberg")
pa = require("pyarrow")

ROWS = 40
QUESTIONS: list[Any] = [
    None, col("id") == 7, col("id") == -5, col("name") == "n3", col("id").isin([3, 14, 150, 9, 900]),
    (col("id") == 7) | (col("name") == "n12"), (col("id") == 7) & (col("x") > 0.5), col("x") < 0.1, ~(col("id") == 7),
    (col("id") == 7) | (col("p") == "b"), (col("name") == "n3") & (col("p") == "a"), col("id").is_null(),
    col("name").is_in([f"n{k}" for k in range(0, 40, 5)]),
]  # fmt: skip


def rows(draw: random.Random, count: int = ROWS) -> Any:
    return pa.table({
        "id": pa.array([draw.choice([None, draw.randrange(20), draw.randrange(999)]) for _ in range(count)], "int64"),
        "name": pa.array([f"n{draw.randrange(40)}" for _ in range(count)]),
        "x": pa.array([draw.random() for _ in range(count)]),
        "p": pa.array([draw.choice("abc") for _ in range(count)]),
    })  # fmt: skip


def loaded(table: Any, folder: Any = None) -> Any:
    """The table as others have left it."""
    return (
        deltalake.DeltaTable(table.table_uri) if hasattr(table, "table_uri") else table.catalog.load_table(table.name())
    )


def plain(table: Any) -> Any:
    """All rows, by the table's own library."""
    return pa.table(table.to_pyarrow_table() if hasattr(table, "table_uri") else table.scan().to_arrow())


def ordered(table: Any) -> list[dict[str, Any]]:
    return sorted(pa.table(table).to_pylist(), key=repr)


def check(table: Any, questions: Any = QUESTIONS, theirs: Any = None) -> None:
    """With a catalog and without one the rows are the same, in the same order, and those of the table's own library."""
    plainly, asked = pyparq.dataset(table, catalog="off"), pyparq.dataset(table)
    if theirs is not False:
        assert ordered(asked.read()) == ordered(plain(table) if theirs is None else theirs)
    for question in questions:
        wanted = plainly.read(filters=question).to_pydict()
        assert asked.read(filters=question).to_pydict() == wanted
        assert asked.count(question) == len(next(iter(wanted.values())))
        parts = asked.plan(None, question).split()
        assert (
            ordered(pa.concat_tables([pa.table(part.scan().to_table()) for part in parts]))
            == ordered(plainly.read(filters=question))
            if parts
            else not next(iter(wanted.values()))
        )
    keys = [random.Random(1).randrange(1000) for _ in range(5)] + [None]
    for key in keys:
        assert asked.lookup("id", key).to_pydict() == plainly.lookup("id", key).to_pydict()


def delta_at(folder: Path, draw: random.Random, **options: Any) -> Any:
    for _ in range(5):
        deltalake.write_deltalake(folder, rows(draw), mode="append", **options)
    return deltalake.DeltaTable(folder)


def catalog_at(folder: Path) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("c", uri="sqlite:///:memory:", warehouse=f"file://{folder}")
    catalog.create_namespace("n")
    return catalog


def iceberg_at(folder: Path, draw: random.Random, partitioned: bool = False) -> Any:
    table = catalog_at(folder).create_table("n.t", schema=rows(draw).schema)
    if partitioned:
        with table.update_spec() as update:
            update.add_identity("p")
    for _ in range(5):
        table.append(rows(draw))
    return table


@pytest.fixture(params=["delta", "delta by p", "iceberg", "iceberg by p"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    draw, by_p = random.Random(3), "by p" in request.param
    if "delta" in request.param:
        return delta_at(tmp_path / "t", draw, **({"partition_by": ["p"]} if by_p else {}))
    return iceberg_at(tmp_path, draw, by_p)


def changed(table: Any, draw: random.Random) -> Any:
    """Another writer changes the table."""
    what = draw.choice(["append", "append", "delete", "compact", "overwrite", "ours"])
    is_delta = hasattr(table, "table_uri")
    key = draw.randrange(20)
    if what == "append":
        deltalake.write_deltalake(table.table_uri, rows(draw), mode="append") if is_delta else table.append(rows(draw))
    elif what == "delete":
        table.delete(f"id = {key}")
    elif what == "overwrite":
        if is_delta:
            deltalake.write_deltalake(table.table_uri, rows(draw, 3 * ROWS), mode="overwrite")
        else:
            table.overwrite(rows(draw, 3 * ROWS))
    elif what == "compact" and is_delta:
        table.optimize.compact()
    elif what == "ours":
        pyparq.delete(table, col("id") == key)
    return loaded(table)


def version_of(table: Any) -> Any:
    return table.version() if hasattr(table, "table_uri") else table.current_snapshot().snapshot_id


def at_version(table: Any, version: Any) -> Any:
    if hasattr(table, "table_uri"):
        return deltalake.DeltaTable(table.table_uri, version=version)
    return table.scan(snapshot_id=version)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_others_do(table: Any, seed: int) -> None:
    draw, versions = random.Random(seed), []
    pyparq.index_dataset(table, ["id", "name"])
    check(table)
    for _ in range(8):
        table = changed(table, draw)
        versions.append(version_of(table))
        check(table, draw.sample(QUESTIONS, 4))
        if draw.random() < 0.4:
            report = pyparq.index_dataset(table)
            files = len(pyparq.dataset(table).files)
            assert (report.columns, report.files, report.left_out) == (("id", "name"), files, ())
            told = pyparq.dataset(table).explain(filters=(col("id") == 7) | (col("name") == "n0"))
            assert files < 2 or told.catalog_knows == told.files_opened + told.catalog_rules_out
            assert pyparq.verify(table).ok
            table = loaded(table)
    for version in versions:
        old = at_version(table, version)
        for question in draw.sample(QUESTIONS, 3):
            wanted = pyparq.dataset(old, catalog="off").read(filters=question).to_pydict()
            assert pyparq.dataset(old).read(filters=question).to_pydict() == wanted


def test_files_are_ruled_out(table: Any) -> None:
    before = pyparq.index_dataset(table, "id")
    absent = next(k for k in range(1000) if not pyparq.dataset(table, catalog="off").count(col("id") == k))
    ds = pyparq.dataset(table)
    told = ds.explain(filters=col("id") == absent)
    assert (told.files_opened, told.requests) == (0, 0)
    assert told.catalog_knows == told.catalog_rules_out >= 5  # the log has ruled out others
    assert "and the catalog" in str(told)
    assert pyparq.dataset(table, catalog="off").explain(filters=col("id") == absent).files_opened > 0
    assert pyparq.dataset(table, catalog="trust").explain(filters=col("id") == absent).files_opened == 0
    assert before.entries > 0
    assert pyparq.index_dataset(loaded(table)).changed is False


def test_deleted_rows_stay_deleted(tmp_path: Path) -> None:
    delta = delta_at(tmp_path / "d", random.Random(5))
    pyparq.index_dataset(delta, ["id", "name"])
    paths = pa.table(delta.get_add_actions()).column("path").to_pylist()
    delete_by_vector(tmp_path / "d", {paths[0]: [0, 1, 5, 39], paths[2]: list(range(ROWS))})
    newer = deltalake.DeltaTable(delta.table_uri)
    check(newer, theirs=False)
    assert pyparq.dataset(newer).explain(filters=col("id") == 7).catalog_knows == 5
    pyparq.index_dataset(newer)
    check(newer, theirs=False)
    assert pyparq.verify(newer).ok

    iceberg = iceberg_at(tmp_path, random.Random(5))
    pyparq.index_dataset(iceberg, ["id", "name"])
    path = next(iter(iceberg.scan().plan_files())).file.file_path
    newer = with_deletes(iceberg, {path: [0, 1, 5, 39]}, "parquet")
    check(newer)
    assert pyparq.dataset(newer).explain(filters=col("id") == 7).catalog_knows == 5
    with pytest.raises(OptionError, match="as a catalog of pyiceberg loads"):
        pyparq.index_dataset(newer)


# ---- names ----------------------------------------------------------------------------------------------------------


def test_columns_that_were_renamed_in_iceberg(tmp_path: Path) -> None:
    table = iceberg_at(tmp_path, random.Random(1))
    pyparq.index_dataset(table, ["id", "name"])
    with table.update_schema() as update:
        update.rename_column("id", "key")
        update.rename_column("name", "id")  # the names change hands
    data = rows(random.Random(2)).rename_columns(["key", "id", "x", "p"])
    table.append(data)
    questions = [col("key") == 7, col("id") == "n3", (col("key") == 3) | (col("id") == "n12")]
    for _ in range(2):
        asked, plainly = pyparq.dataset(table), pyparq.dataset(table, catalog="off")
        for question in questions:
            assert asked.read(filters=question).to_pydict() == plainly.read(filters=question).to_pydict()
        report = pyparq.index_dataset(table)
        assert (report.columns, report.files) == (("key", "id"), 6)
    assert pyparq.dataset(table).explain(filters=col("key") == 7).catalog_knows == 6
    assert pyparq.dataset(table).explain(filters=col("key") == 5000).files_opened == 0
    assert pyparq.index_dataset(table, ["key", "id"]).changed is False


def test_columns_that_were_dropped_and_added_again(tmp_path: Path) -> None:
    table = iceberg_at(tmp_path, random.Random(1))
    pyparq.index_dataset(table, "id")
    with table.update_schema() as update:
        update.delete_column("id")
    with table.update_schema() as update:
        update.add_column("id", require("pyiceberg.types").LongType())
    assert pyparq.dataset(table).count(col("id") == 7) == 0
    table.append(pa.table({"name": ["a"], "x": [0.5], "p": ["a"], "id": [7]}))
    assert pyparq.dataset(table).lookup("id", 7, columns=["id", "name"]).to_pydict() == {"id": [7], "name": ["a"]}
    assert pyparq.index_dataset(table, "id").entries == 1


def test_mapped_columns_of_delta(tmp_path: Path) -> None:
    mapped = {"delta.columnMapping.mode": "name", "delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}
    deltalake.write_deltalake(tmp_path / "t", rows(random.Random(1)), configuration=mapped, partition_by=["p"])
    table = deltalake.DeltaTable(tmp_path / "t")
    report = pyparq.index_dataset(table, ["id", "name"])
    assert report.columns == ("id", "name")
    assert report.entries > ROWS
    check(table, theirs=rows(random.Random(1)))
    assert pyparq.dataset(table).explain(filters=col("id") == 5000).files_opened == 0
    assert pyparq.index_dataset(table).changed is False


def test_columns_of_delta_by_id_that_were_renamed(tmp_path: Path) -> None:
    def described(name: str) -> dict[str, Any]:
        mapping = {"delta__columnMapping__id": 1, "delta__columnMapping__physicalName": "col-1"}
        field = field_of(name, "long", **mapping)
        return field | {"metadata": {key.replace("__", "."): value for key, value in field["metadata"].items()}}

    folder, number = tmp_path / "t", pa.field("col-1", pa.int64(), metadata={"PARQUET:field_id": "1"})
    adds = [file_of(folder, f"f{k}.parquet", pa.table([[k, k + 10]], pa.schema([number]))) for k in range(3)]
    settings = {"columnMapping__mode": "id", "columnMapping__maxColumnId": "1"}
    commit_of(folder, 0, protocol_of(2, 5), metadata_of([described("id")], **settings), *adds)
    table = deltalake.DeltaTable(folder)
    assert pyparq.index_dataset(table, "id").entries == 6
    commit_of(folder, 1, metadata_of([described("key")], **settings))
    renamed = deltalake.DeltaTable(folder)
    assert pyparq.dataset(renamed).lookup("key", 11).to_pydict() == {"key": [11]}
    told = pyparq.dataset(renamed).explain(filters=col("key") == 11)
    assert (told.catalog_knows, told.catalog_rules_out) == (3, 2)
    report = pyparq.index_dataset(renamed)
    assert (report.columns, report.changed) == (("key",), False)


def test_files_without_field_ids_take_the_ordinary_road(tmp_path: Path) -> None:
    table = iceberg_at(tmp_path, random.Random(1))
    pq: Any = require("pyarrow.parquet")
    pq.write_table(rows(random.Random(5)), tmp_path / "added.parquet")
    table.add_files([f"file://{tmp_path}/added.parquet"])
    report = pyparq.index_dataset(table, "id")
    assert (report.files, report.left_out) == (6, ())
    check(table)
    told = pyparq.dataset(table).explain(filters=col("id").isin([5, 500]))
    assert told.catalog_knows == 6
    assert told.catalog_rules_out < 6  # nothing is known of the keys of that file, which is asked


def test_keys_that_cannot_be(table: Any) -> None:
    with pytest.raises(ColumnNotFoundError):
        pyparq.index_dataset(table, "nothing")
    with pytest.raises(OptionError, match="there is no catalog to update"):
        pyparq.index_dataset(table)
    if pyparq.dataset(table).partitions.names:
        with pytest.raises(OptionError, match="partitioned by the column 'p'"):
            pyparq.index_dataset(table, "p")


# ---- Delta Lake -----------------------------------------------------------------------------------------------------


def test_vacuum_leaves_the_catalog(tmp_path: Path) -> None:
    table = delta_at(tmp_path / "t", random.Random(1))
    pyparq.index_dataset(table, "id")
    table.optimize.compact()
    gone = table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert len(gone) == 5
    gone = table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True)
    assert not [name for name in gone if "_pyparq_catalog" in name]
    assert (tmp_path / "t/_pyparq_catalog/catalog.json").exists()
    check(loaded(table))
    stated = json.loads((tmp_path / "t/_pyparq_catalog/catalog.json").read_text())["catalog"]
    assert stated["table"] == [table.metadata().id, 4]
    pyparq.index_dataset(loaded(table))
    assert pyparq.dataset(loaded(table)).count(col("id") == 7) == pyparq.dataset(loaded(table), catalog="off").count(
        col("id") == 7
    )


def test_a_table_that_was_moved_keeps_its_catalog(tmp_path: Path) -> None:
    table = delta_at(tmp_path / "t", random.Random(1), partition_by=["p"])
    pyparq.index_dataset(table, "id")
    (tmp_path / "t").rename(tmp_path / "elsewhere")
    moved = deltalake.DeltaTable(tmp_path / "elsewhere")
    assert pyparq.dataset(moved).explain(filters=col("id") == 5000).files_opened == 0
    check(moved)


def test_another_table_at_the_same_place(tmp_path: Path) -> None:
    """With files of the same names and sizes."""
    folder = tmp_path / "t"

    def made(key: int) -> Any:
        files = [file_of(folder, f"part-{k}.parquet", pa.table({"id": [key + k]})) for k in range(3)]
        about = metadata_of([field_of("id", "long")])
        about["metaData"]["id"] = f"table-{key}"
        commit_of(folder, 0, protocol_of(1, 2), about, *files)
        return deltalake.DeltaTable(folder)

    first = made(10)
    pyparq.index_dataset(first, "id")
    assert pyparq.dataset(first).explain(filters=col("id") == 10).catalog_knows == 3
    second = made(20)
    assert pyparq.dataset(second).lookup("id", [20, 10]).to_pydict() == {"id": [20]}
    assert pyparq.index_dataset(second, "id").files_read == 3
    with pytest.raises(ColumnNotFoundError):
        pyparq.index_dataset(second, "name")


def test_the_catalog_of_the_folder_is_another(tmp_path: Path) -> None:
    table = delta_at(tmp_path / "t", random.Random(1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pyparq.index_dataset(tmp_path / "t", "id")
        assert pyparq.dataset(table).explain(filters=col("id") == 5000).catalog_knows == 0
        check(table)
        with pytest.raises(OptionError, match="no catalog to update"):
            pyparq.index_dataset(table)
        pyparq.index_dataset(table, "id")
        table.delete("id = 7")
        for mode in ("check", "trust"):  # the folder has the deleted rows too, and the catalog does not know it
            assert pyparq.dataset(tmp_path / "t", catalog=mode).count() > pyparq.dataset(loaded(table)).count()


# ---- Iceberg --------------------------------------------------------------------------------------------------------


def puffins(table: Any) -> list[Path]:
    return sorted(Path(table.location().removeprefix("file://"), "metadata").glob("pyparq-catalog-*.stats"))


def test_the_file_is_a_puffin_file_that_pyiceberg_reads(tmp_path: Path) -> None:
    from pyiceberg.table.puffin import PuffinFile

    table = iceberg_at(tmp_path, random.Random(1))
    report = pyparq.index_dataset(table, ["id", "name"])
    (path,) = puffins(table)
    (named,) = table.metadata.statistics
    footer = PuffinFile(path.read_bytes()).footer
    assert named.statistics_path == f"file://{path}"
    assert named.file_size_in_bytes == path.stat().st_size >= report.bytes
    assert (named.snapshot_id, named.blob_metadata) == (table.current_snapshot().snapshot_id, [])
    assert {blob.type for blob in footer.blobs} == {"pyparq-catalog-v1"}
    assert footer.blobs[0].fields == [1, 2]
    assert footer.blobs[0].sequence_number == 5
    end = 4
    for blob in footer.blobs:
        assert blob.offset == end
        end += blob.length
    assert end + named.file_footer_size_in_bytes == named.file_size_in_bytes
    data = json.loads(PuffinFile(path.read_bytes()).get_blob_payload(footer.blobs[-1]))
    assert data["catalog"]["table"] == [str(table.metadata.table_uuid), named.snapshot_id]


def test_pyiceberg_keeps_the_entry(tmp_path: Path) -> None:
    table = iceberg_at(tmp_path, random.Random(1))
    pyparq.index_dataset(table, "id")
    table.append(rows(random.Random(9)))
    table.delete("id = 7")
    assert [one.statistics_path for one in loaded(table).metadata.statistics] == [f"file://{puffins(table)[0]}"]
    check(loaded(table))
    pyparq.index_dataset(loaded(table))
    assert len(loaded(table).metadata.statistics) == 1  # a table has one catalog
    table = loaded(table)
    for _ in range(3):
        table.append(rows(random.Random(8)))
        pyparq.index_dataset(table)
        check(table, QUESTIONS[:4])
    assert len(puffins(table)) == 2  # and the one before it, for readers that have begun


def test_statistics_of_others_stay(tmp_path: Path) -> None:
    from pyiceberg.table.puffin import PuffinFile
    from pyiceberg.table.statistics import StatisticsFile

    table = iceberg_at(tmp_path, random.Random(1))
    snapshot = table.current_snapshot()
    blob = {"type": "apache-datasketches-theta-v1", "fields": [1], "snapshot-id": snapshot.snapshot_id,
            "sequence-number": 1, "properties": {"ndv": "7"}}  # fmt: skip
    footer = json.dumps({"blobs": [blob | {"offset": 4, "length": 6}]}).encode()
    data = b"PFA1sketch" + b"PFA1" + footer + len(footer).to_bytes(4, "little") + bytes(4) + b"PFA1"
    path = Path(table.location().removeprefix("file://"), "metadata", "other.stats")
    path.write_bytes(data)
    said = {"snapshot-id": snapshot.snapshot_id, "statistics-path": f"file://{path}", "file-size-in-bytes": len(data),
            "file-footer-size-in-bytes": len(footer) + 16, "blob-metadata": [blob]}  # fmt: skip
    with table.update_statistics() as update:
        update.set_statistics(StatisticsFile(**said))
    for columns in (["id"], ["name"]):
        pyparq.index_dataset(table, columns)
        (named,) = loaded(table).metadata.statistics
        assert [one.model_dump(by_alias=True) for one in named.blob_metadata] == [blob]
        made = PuffinFile(Path(named.statistics_path.removeprefix("file://")).read_bytes())
        first, *own = made.footer.blobs
        assert made.get_blob_payload(first) == b"sketch"
        assert {one.type for one in own} == {"pyparq-catalog-v1"}
        check(loaded(table), QUESTIONS[:4])
    path.write_bytes(data[:-3])
    table.append(rows(random.Random(1)))
    with table.update_statistics() as update:
        update.set_statistics(StatisticsFile(**said | {"snapshot-id": table.current_snapshot().snapshot_id}))
    with pytest.raises(CorruptFileError, match="Puffin"):
        pyparq.index_dataset(table)


def test_another_writer_at_the_same_time(tmp_path: Path) -> None:
    table = iceberg_at(tmp_path, random.Random(1))
    other = loaded(table)
    other.append(rows(random.Random(2)))
    pyparq.index_dataset(table, "id")  # an append does not matter
    assert len(loaded(table).metadata.statistics) == 1
    check(loaded(table))

    exceptions: Any = require("pyiceberg.exceptions")

    class Refusing(type(table.catalog)):  # type: ignore[misc]
        error: Exception = exceptions.CommitFailedException("requirement failed")

        def commit_table(self, *args: Any) -> Any:
            raise self.error

    table = loaded(table)
    table.catalog.__class__ = Refusing
    before = puffins(table)
    with pytest.raises(WriteConflictError, match="Load the table and try again"):
        pyparq.index_dataset(table, "name")
    assert puffins(table) == before
    Refusing.error = ConnectionError("lost")
    with pytest.raises(CommitUnknownError, match="may have taken place"):
        pyparq.index_dataset(table, "name")
    assert len(puffins(table)) == len(before) + 1


def test_an_empty_table(tmp_path: Path) -> None:
    table = catalog_at(tmp_path).create_table("n.t", schema=rows(random.Random(1)).schema)
    with pytest.raises(OptionError, match="no snapshot yet"):
        pyparq.index_dataset(table, "id")


def test_tables_of_version_3_are_refused(tmp_path: Path) -> None:
    table = catalog_at(tmp_path).create_table("n.t", schema=rows(random.Random(1)).schema)
    table.append(rows(random.Random(1)))
    stated = json.loads(table.metadata.model_dump_json()) | {"format-version": 3, "next-row-id": 0}
    table.metadata = require("pyiceberg.table.metadata").TableMetadataV3(**stated)
    with pytest.raises(UnsupportedError, match="version 3"):
        pyparq.index_dataset(table, "id")


# ---- damage ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_catalog_is_passed_over(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    table = iceberg_at(tmp_path, draw) if seed % 2 else delta_at(tmp_path / "t", draw)
    pyparq.index_dataset(table, ["id", "name"])
    plainly = pyparq.dataset(table, catalog="off")
    parts = puffins(table) if seed % 2 else [p for p in (tmp_path / "t/_pyparq_catalog").iterdir() if p.is_file()]
    path = draw.choice(sorted(parts))
    data = bytearray(path.read_bytes())
    if draw.random() < 0.3:
        del data[draw.randrange(len(data)) :]
    else:
        for _ in range(draw.choice([1, 20])):
            near_end = draw.random() < 0.5 and seed % 2
            data[draw.randrange(max(len(data) - 1200, 0), len(data)) if near_end else draw.randrange(len(data))] ^= (
                1 << draw.randrange(8)
            )
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CatalogWarning)
        for question in QUESTIONS:
            wanted = plainly.read(filters=question).to_pydict()
            assert pyparq.dataset(table).read(filters=question).to_pydict() == wanted
        pyparq.index_dataset(table, ["id", "name"], rebuild=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(loaded(table), QUESTIONS[:5])


@pytest.mark.parametrize("what", ["offset", "length", "part", "magic", "compressed", "footer size", "no head", "gone"])
def test_lies_in_a_puffin_file(tmp_path: Path, what: str) -> None:
    table = iceberg_at(tmp_path, random.Random(1))
    pyparq.index_dataset(table, "id")
    (path,) = puffins(table)
    data = path.read_bytes()
    size = int.from_bytes(data[-12:-8], "little")
    footer = json.loads(data[-12 - size : -12])
    head = footer["blobs"][-1]
    if what in ("offset", "length"):
        head[what] = -1 if what == "offset" else 1 << 62
    elif what == "part":
        head["properties"] = {"part": ["catalog.json"]}
    elif what == "no head":
        footer["blobs"].pop()
    text = json.dumps(footer).encode()
    flags = b"\1\0\0\0" if what == "compressed" else bytes(4)
    said = (1 << 31) - 1 if what == "footer size" else len(text)
    path.write_bytes(
        data[: -12 - size] + text + said.to_bytes(4, "little") + flags + (b"PFA2" if what == "magic" else b"PFA1")
    )
    if what == "gone":
        path.unlink()
    stated = table.metadata.statistics[0].model_copy(
        update={"file_size_in_bytes": path.stat().st_size if path.exists() else 9}
    )
    table.metadata = table.metadata.model_copy(update={"statistics": [stated]})
    wanted = pyparq.dataset(table, catalog="off").lookup("id", 7).to_pydict()
    with pytest.warns(CatalogWarning, match="is not used"):
        assert pyparq.dataset(table).lookup("id", 7).to_pydict() == wanted
    if what != "gone":
        table.metadata = table.metadata.model_copy(
            update={"statistics": [stated.model_copy(update={"file_size_in_bytes": 9})]}
        )
        with pytest.warns(CatalogWarning, match="and not 9"):
            assert pyparq.dataset(table).lookup("id", 7).to_pydict() == wanted
    assert not pyparq.verify(table).ok


def test_a_catalog_that_lies_elsewhere(tmp_path: Path) -> None:
    table = iceberg_at(tmp_path, random.Random(1))
    pyparq.index_dataset(table, "id")
    stated = table.metadata.statistics[0].model_copy(update={"statistics_path": "s3://other/pyparq-catalog-1.stats"})
    table.metadata = table.metadata.model_copy(update={"statistics": [stated]})
    with pytest.warns(CatalogWarning, match="not where the table is"):
        assert pyparq.dataset(table).count(col("id") == 7) == pyparq.dataset(table, catalog="off").count(col("id") == 7)
