"""Metadata of tables comes from others: damaged logs, checkpoints and manifests give the rows that the table's own
library gives, or one typed error. No file outside of the table is read, and little memory is taken."""

from __future__ import annotations

import io
import json
import os
import random
import resource
import shutil
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
from pyparq.errors import CorruptFileError, ParquetError

deltalake = require("deltalake")
require("pyiceberg")
fastavro = require("fastavro")
pa = require("pyarrow")
pq = require("pyarrow.parquet")

IN_THE_GATE, ALL = 60, 4000
"""Mutants of each of five tables."""
OUTSIDE = 900
"""Ids from here on are in a file that belongs to no table."""
MOST_MEMORY = 1 << 30


def table(ids: range) -> Any:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [f"row {k}" for k in ids]})


# ---- tables --------------------------------------------------------------------------------------------------------

FIELDS = [field_of("id", "long"), field_of("v", "string")]


def delta_by_commits(folder: Path) -> Callable[[], Any]:
    both = ["deletionVectors"]
    files = [file_of(folder, f"{k}.parquet", table(range(10 * k, 10 * k + 10))) for k in range(3)]
    files[0]["add"]["deletionVector"] = vector_in_log([1, 2])
    files[1]["add"]["deletionVector"] = vector_in_file(folder, [3])
    stats = {"numRecords": 10, "minValues": {"id": 20}, "maxValues": {"id": 29}, "nullCount": {"id": 0}}
    files[2]["add"]["stats"] = json.dumps(stats)
    commit_of(folder, 0, protocol_of(both, both), metadata_of(FIELDS, enableDeletionVectors="true"), *files[:2])
    commit_of(folder, 1, files[2], file_of(folder, "gone.parquet", table(range(800, 810))))
    commit_of(folder, 2, {"remove": {"path": "gone.parquet", "deletionTimestamp": 0, "dataChange": True}})
    return lambda: deltalake.DeltaTable(folder)


def delta_by_checkpoint(folder: Path) -> Callable[[], Any]:
    files = [file_of(folder, f"{k}.parquet", table(range(10 * k, 10 * k + 10))) for k in range(3)]
    commit_of(folder, 0, protocol_of(1, 2), metadata_of(FIELDS), *files)
    commit_of(folder, 1, {"remove": {"path": "2.parquet", "deletionTimestamp": 0, "dataChange": True}})
    deltalake.DeltaTable(folder).create_checkpoint()
    for version in (0, 1):
        (folder / "_delta_log" / f"{version:020}.json").unlink()
    return lambda: deltalake.DeltaTable(folder)


def delta_by_sidecars(folder: Path) -> Callable[[], Any]:
    protocol, metadata = protocol_of(["v2Checkpoint"], ["v2Checkpoint"]), metadata_of(FIELDS)
    files = [file_of(folder, f"{k}.parquet", table(range(10 * k, 10 * k + 10))) for k in range(3)]
    commit_of(folder, 0, protocol, metadata, *files[:2])
    commit_of(folder, 1, files[2])
    checkpoint_of(folder, 1, [protocol, metadata], files)
    return lambda: deltalake.DeltaTable(folder)


def iceberg(folder: Path, form: str) -> Callable[[], Any]:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.manifest import clear_manifest_cache
    from pyiceberg.table import StaticTable

    catalog = SqlCatalog("c", uri="sqlite:///:memory:", warehouse=f"file://{folder}")
    catalog.create_namespace("n")
    made = catalog.create_table("n.t", schema=table(range(1)).schema)
    for k in range(3):
        made.append(table(range(10 * k, 10 * k + 10)))
    paths = [task.file.file_path for task in made.scan().plan_files()]
    with_deletes(made, {paths[0]: [1, 2], paths[2]: [5]}, form)
    metadata = next(folder.rglob("deletes.metadata.json"))

    def opened() -> Any:
        clear_manifest_cache()  # it goes by names
        return StaticTable.from_metadata(str(metadata))

    return opened


TABLES: dict[str, Callable[[Path], Callable[[], Any]]] = {
    "commits": delta_by_commits,
    "checkpoint": delta_by_checkpoint,
    "sidecars": delta_by_sidecars,
    "position deletes": lambda folder: iceberg(folder, "parquet"),
    "deletion vectors": lambda folder: iceberg(folder, "puffin"),
}


def metadata_files(folder: Path, open_: Callable[[], Any]) -> list[Path]:
    """Files of the current state: of older ones nothing is read."""
    found = [path for path in folder.rglob("*") if path.is_file()]
    logs = [path for path in found if "_delta_log" in path.parts]
    if logs:
        return sorted([*logs, *folder.glob("*.bin")])
    scan = open_().scan()
    manifests = scan.snapshot().manifests(scan.io)
    names = [scan.snapshot().manifest_list, *(one.manifest_path for one in manifests)]
    wanted = [Path(name.removeprefix("file://")) for name in names]
    return [*wanted, *sorted(folder.rglob("*.puffin")), *folder.rglob("deletes.metadata.json")]


def test_a_deletion_vector_by_another_name_is_not_passed_over(tmp_path: Path) -> None:
    """Its rows would come back."""
    home = tmp_path / "t"
    open_ = TABLES["deletion vectors"](home)
    path = next(path for path in metadata_files(home, open_) if path.name == "delete-1.puffin")
    stored = path.read_bytes()
    assert pyparq.dataset(open_()).read().num_rows > 0
    for wrong in (b"deletion-vector-v7", b"deletion-vector%v1"):
        path.write_bytes(stored.replace(b"deletion-vector-v1", wrong))
        with pytest.raises(CorruptFileError, match="a delete file has a blob of the type"):
            pyparq.dataset(open_()).read()


# ---- mutants -------------------------------------------------------------------------------------------------------

HOSTILE: list[Any] = [
    -1, 0, 1, 7, 1 << 31, 1 << 53, (1 << 63) - 1, -(1 << 63), 1 << 70, 0.5, 1e308, True, None, "", "x" * 5000, "\0",
    "../outside.parquet", "..%2Foutside.parquet", "%2e%2e/outside.parquet", "a/../../outside.parquet", "/etc/passwd",
    "s3://bucket/outside.parquet", "0.parquet", "1.parquet", [], {}, [[]], {"a": 1}, "variant", "9" * 30,
]  # fmt: skip


def spots(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each container in a value, with each of its keys."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from spots(value[key])


def damaged(rng: random.Random, value: Any) -> Any:
    """The value with one part replaced, removed or doubled."""
    # pyiceberg takes a deletion vector for every file that it names, whatever the sequence numbers say.
    where, key = rng.choice([spot for spot in spots(value) if "sequence" not in str(spot[1])])
    inner = where[key]
    if isinstance(inner, str) and inner[:1] == "{" and rng.random() < 0.7:  # JSON in JSON: schemas and statistics
        where[key] = json.dumps(damaged(rng, json.loads(inner)))
    elif rng.random() < 0.2:
        del where[key]
    elif isinstance(where, list) and rng.random() < 0.3:
        where.insert(rng.randrange(len(where) + 1), inner)
    elif type(inner) is int and rng.random() < 0.5:
        where[key] = inner + rng.choice([-1, 1, 1 << 33])
    else:
        where[key] = rng.choice(HOSTILE)
    return value


def damaged_bytes(rng: random.Random, data: bytes) -> bytes:
    changed, how = bytearray(data), rng.randrange(4)
    at = rng.randrange(len(changed))
    if how == 0:
        return bytes(changed[:at])
    if how == 1:
        changed[at : at + rng.randrange(1, 40)] = b""
    elif how == 2:
        changed[at:at] = rng.randbytes(rng.randrange(1, 9))
    else:
        for _ in range(rng.randrange(1, 4)):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def mutant(rng: random.Random, path: Path, data: bytes) -> bytes:
    """Avro files stay whole as such: of damaged bytes, pyiceberg's decoder reads beyond the end, and the process may
    end."""
    if path.suffix != ".avro" and rng.random() < 0.4:
        return damaged_bytes(rng, data)
    try:
        if path.suffix == ".avro":
            reader = fastavro.reader(io.BytesIO(data))
            rows, sink = damaged(rng, list(reader)), io.BytesIO()
            known = {name: value for name, value in reader.metadata.items() if not name.startswith("avro.")}
            fastavro.writer(sink, reader.writer_schema, rows, metadata=known)
            return sink.getvalue()
        if path.suffix == ".parquet":
            read, sink = pq.read_table(io.BytesIO(data)), io.BytesIO()
            pq.write_table(pa.Table.from_pylist(damaged(rng, read.to_pylist()), read.schema), sink)
            return sink.getvalue()
        lines = data.decode().splitlines() if path.name != "deletes.metadata.json" else [data.decode()]
        return "\n".join(map(json.dumps, damaged(rng, list(map(json.loads, lines))))).encode()
    except Exception:  # the format has no place for such a value
        return data if path.suffix == ".avro" else damaged_bytes(rng, data)


# ---- what becomes of them ------------------------------------------------------------------------------------------


def rows_of(source: Any) -> list[str]:
    return sorted(map(repr, pa.table(source).to_pylist()))


def own_rows(opened: Any) -> list[str] | None:
    """The rows that the table's own library reads. ``None`` if it does not."""
    try:
        if not isinstance(opened, deltalake.DeltaTable):
            return rows_of(opened.scan().to_arrow())
        return rows_of(deltalake.QueryBuilder().register("t", opened).execute("select * from t"))
    except BaseException as error:  # Rust's panics are no Exceptions
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return None


def judge(open_: Callable[[], Any], known: set[str], before: list[str] | None = None) -> str:
    """What pyparq makes of a mutant. Raises ``AssertionError`` for what it must not make of one.

    ``before``: the rows of the table. Where these come back, its own library is not asked."""
    try:
        opened = open_()
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return "not opened"  # by its own library
    try:
        rows = rows_of(pyparq.dataset(opened).read())
    except (ParquetError, OSError):
        return "refused"
    assert not [row for row in rows if f"'row {OUTSIDE}" in row], "a file outside of the table"
    if rows == before:
        return "as before"
    if set(rows) == {"{}"}:  # without columns, pyarrow has no rows
        return "no columns"
    wanted = own_rows(opened)
    if wanted is None:
        strange = [row for row in rows if row not in known]
        assert len(rows) <= len(known), rows
        assert not strange or "'v': None" in strange[0] or "'id': None" in strange[0] or "row" not in strange[0], rows
        return "only by pyparq"
    assert rows == wanted
    return "the same"


def run(name: str, folder: Path, count: int, seed: int) -> dict[str, int]:
    home = folder / "t"
    open_ = TABLES[name](home)
    pq.write_table(table(range(OUTSIDE, OUTSIDE + 10)), folder / "outside.parquet")
    shutil.copy(folder / "outside.parquet", home.parent / "outside2.parquet")
    files = {path: path.read_bytes() for path in metadata_files(home, open_)}
    rows = rows_of(pyparq.dataset(open_()).read())
    assert rows == own_rows(open_())
    known = (
        set(rows) | set(map(repr, table(range(30)).to_pylist())) | set(map(repr, table(range(800, 810)).to_pylist()))
    )
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    tally: dict[str, int] = {}
    for k in range(count):
        rng = random.Random(f"{name} {seed} {k}")
        path = rng.choice(list(files))
        path.write_bytes(mutant(rng, path, files[path]))
        try:
            found = judge(open_, known, rows if count > IN_THE_GATE else None)
        except BaseException as error:
            error.add_note(f"{name}, mutant {k} of seed {seed}: {path.name}")
            if kept := os.environ.get("PYPARQ_KEPT_MUTANTS"):
                (Path(kept) / f"{name.replace(' ', '-')}-{seed}-{k}").write_text(repr(error) + "\n" + str(path))
                tally["WRONG"] = tally.get("WRONG", 0) + 1
                continue
            raise
        finally:
            path.write_bytes(files[path])
        tally[found] = tally.get(found, 0) + 1
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) - memory < MOST_MEMORY
    return tally


@pytest.mark.sweep(5)
@pytest.mark.parametrize("name", TABLES)
def test_mutants(tmp_path: Path, name: str) -> None:
    tally = run(name, tmp_path, IN_THE_GATE, 0)
    assert sum(tally.values()) == IN_THE_GATE
    assert tally.get("refused", 0) + tally.get("not opened", 0) > 5
    assert tally.get("the same", 0) > 5


@pytest.mark.fuzz
@pytest.mark.parametrize("name", TABLES)
def test_many_mutants(tmp_path: Path, name: str) -> None:
    run(name, tmp_path, int(os.environ.get("PYPARQ_MUTANTS", ALL)), int(os.environ.get("PYPARQ_SEED", 1)))


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
