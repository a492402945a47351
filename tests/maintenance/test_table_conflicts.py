"""Tables of Delta Lake and Iceberg that two programs change at once, and programs that are killed on the way."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import require

import pyparq
from pyparq import col
from pyparq.errors import WriteConflictError

deltalake = require("deltalake")
require("pyiceberg")
pa = require("pyarrow")

PAIRS = 20
ROWS = 60


def numbers(values: Any, v: int = 0) -> Any:
    values = list(values)
    return pa.table({"id": pa.array(values, pa.int64()), "v": pa.array([v] * len(values), pa.int64())})


class Delta:
    """A table of Delta Lake, opened anew in each process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self, *parts: Any) -> None:
        for part in parts:
            deltalake.write_deltalake(self.folder, part, mode="append")

    def open(self) -> Any:
        return deltalake.DeltaTable(self.folder)

    def read(self) -> dict[int, int]:
        table = self.open().to_pyarrow_table()
        assert len(set(table["id"].to_pylist())) == table.num_rows, "a row is there twice"
        return dict(zip(table["id"].to_pylist(), table["v"].to_pylist(), strict=True))

    def append(self, data: Any) -> None:
        deltalake.write_deltalake(self.folder, data, mode="append")

    def named_files(self) -> set[str]:
        return {uri.removeprefix("file://") for uri in self.open().file_uris()}


class Iceberg:
    """A table of Iceberg in a catalog of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def catalog(self) -> Any:
        from pyiceberg.catalog.sql import SqlCatalog

        return SqlCatalog("c", uri=f"sqlite:///{self.folder}.db", warehouse=f"file://{self.folder}")

    def make(self, *parts: Any) -> None:
        catalog = self.catalog()
        catalog.create_namespace("n")
        table = catalog.create_table("n.t", schema=parts[0].schema)
        for part in parts:
            table.append(part)

    def open(self) -> Any:
        return self.catalog().load_table("n.t")

    def read(self) -> dict[int, int]:
        table = self.open().scan().to_arrow()
        assert len(set(table["id"].to_pylist())) == table.num_rows, "a row is there twice"
        return dict(zip(table["id"].to_pylist(), table["v"].to_pylist(), strict=True))

    def append(self, data: Any) -> None:
        self.open().append(data)

    def named_files(self) -> set[str]:
        return {task.file.file_path.removeprefix("file://") for task in self.open().scan().plan_files()}


KINDS: dict[str, Any] = {"delta": Delta, "iceberg": Iceberg}


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    made = KINDS[request.param](tmp_path / "t")
    made.make(numbers(range(4)), numbers(range(4, 8)))
    return made


def parquet_files(folder: Path) -> set[str]:
    return set(map(str, folder.rglob("*.parquet")))


# ---- one after the other -------------------------------------------------------------------------------------------

CHANGES: dict[str, Callable[[Any], Any]] = {
    "delete": lambda table: pyparq.delete(table, col("id") == 1),
    "update": lambda table: pyparq.update(table, col("id") == 1, {"v": 5}),
    "upsert": lambda table: pyparq.upsert(table, numbers([1, 100], 5), "id"),
}
AFTER = {
    "delete": {k: 0 for k in range(8) if k != 1},
    "update": {k: 5 * (k == 1) for k in range(8)},
    "upsert": {k: 5 * (k == 1) for k in range(8)} | {100: 5},
}


@pytest.mark.parametrize("other", ["delete", "update", "upsert"])
@pytest.mark.parametrize("how", CHANGES)
def test_two_changes_of_one_file(store: Any, how: str, other: str) -> None:
    stale = store.open()
    CHANGES[other](store.open())
    files = parquet_files(store.folder)
    with pytest.raises(WriteConflictError, match="another writer"):
        CHANGES[how](stale)
    assert store.read() == AFTER[other]
    assert parquet_files(store.folder) == files


@pytest.mark.parametrize("how", CHANGES)
def test_changes_of_different_files(store: Any, how: str) -> None:
    stale = store.open()
    pyparq.delete(store.open(), col("id") == 6)
    CHANGES[how](stale)
    assert store.read() == {k: v for k, v in AFTER[how].items() if k != 6}


@pytest.mark.parametrize("how", CHANGES)
def test_appends(store: Any, how: str) -> None:
    stale = store.open()
    store.append(numbers([50, 51]))
    CHANGES[how](stale)
    assert store.read() == AFTER[how] | {50: 0, 51: 0}


@pytest.mark.parametrize("how", CHANGES)
def test_appends_of_such_rows(store: Any, how: str) -> None:
    stale = store.open()
    store.append(pa.concat_tables([numbers([60]), numbers([1], 9)]))
    files = parquet_files(store.folder)
    with pytest.raises(WriteConflictError, match="added rows meanwhile"):
        CHANGES[how](stale)
    assert parquet_files(store.folder) == files


@pytest.mark.parametrize("how", CHANGES)
def test_overwrites(store: Any, how: str) -> None:
    stale = store.open()
    if isinstance(store, Delta):
        deltalake.write_deltalake(store.folder, numbers([7, 70]), mode="overwrite")
    else:
        store.open().overwrite(numbers([7, 70]))
    files = parquet_files(store.folder)
    with pytest.raises(WriteConflictError, match="another writer"):
        CHANGES[how](stale)
    assert store.read() == {7: 0, 70: 0}
    assert parquet_files(store.folder) == files


@pytest.mark.parametrize("how", CHANGES)
def test_another_schema(store: Any, how: str) -> None:
    """Delta Lake refuses every commit beside a change of the schema. Files of Iceberg may be older than it."""
    stale = store.open()
    if isinstance(store, Delta):
        store.open().alter.add_columns([deltalake.Field("w", deltalake.schema.PrimitiveType("string"))])
    else:
        from pyiceberg.types import StringType

        with store.open().update_schema() as update:
            update.add_column("w", StringType())
        with store.open().update_spec() as spec:
            spec.add_identity("v")
        CHANGES[how](stale)
        assert store.read() == AFTER[how]
        store.append(numbers([500], 5).append_column("w", [["x"]]))
        assert store.read() == AFTER[how] | {500: 5}
        found = sorted(store.open().scan(row_filter="v == 5").to_arrow()["id"].to_pylist())
        assert found == [*sorted(k for k, v in AFTER[how].items() if v == 5), 500]
        return
    files = parquet_files(store.folder)
    with pytest.raises(WriteConflictError, match="changed the schema"):
        CHANGES[how](stale)
    assert parquet_files(store.folder) == files
    assert store.read() == dict.fromkeys(range(8), 0)


# ---- at once -------------------------------------------------------------------------------------------------------


def _again(work: Callable[[], Any]) -> None:
    """Until no other program is in the way."""
    for _ in range(60):
        try:
            work()
        except WriteConflictError:
            continue
        except Exception as error:
            if type(error).__name__ not in ("CommitFailedError", "CommitFailedException", "ValidationException"):
                raise
            continue
        return
    raise AssertionError("the other program was always faster")


def _work(kind: str, folders: list[str], own: int, start: Any, plain: bool) -> None:
    """Delete, change and add rows of one's own, which lie in the same files as those of the other program."""
    warnings.simplefilter("ignore")
    for folder in folders:
        store = KINDS[kind](Path(folder))
        start.wait()
        mine = [k for k in range(ROWS) if k % 2 == own]
        if plain:  # by the table's own library
            _again(lambda: store.append(numbers([1000 + own], own)))  # noqa: B023
            _again(lambda: store.open().delete(f"id = {mine[0]}" if kind == "delta" else f"id == {mine[0]}"))  # noqa: B023
            continue
        _again(lambda: pyparq.delete(store.open(), col("id") == mine[0]))  # noqa: B023
        _again(lambda: pyparq.update(store.open(), col("id") == mine[1], {"v": 7}))  # noqa: B023
        _again(lambda: pyparq.upsert(store.open(), numbers([mine[2], 1000 + own], 8), "id"))  # noqa: B023


@pytest.mark.slow
@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_pairs_of_programs(tmp_path: Path, kind: str, plain: bool) -> None:
    """``plain``: the second program is the table's own library."""
    stores = [KINDS[kind](tmp_path / f"t{k}") for k in range(PAIRS // 2)]
    for store in stores:
        store.make(numbers(range(ROWS // 2)), numbers(range(ROWS // 2, ROWS)))
    context = multiprocessing.get_context("spawn")
    start, folders = context.Barrier(2, timeout=300), [str(store.folder) for store in stores]
    processes = [context.Process(target=_work, args=(kind, folders, k, start, plain and k == 1)) for k in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(500)
        assert process.exitcode == 0
    wanted = dict.fromkeys(range(ROWS), 0)
    for own in range(2):
        mine = [k for k in range(ROWS) if k % 2 == own]
        del wanted[mine[0]]
        wanted |= {1000 + own: own} if plain and own else {mine[1]: 7, mine[2]: 8, 1000 + own: 8}
    for store in stores:
        assert store.read() == wanted


# ---- indexes beside busy writers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [2, pytest.param(25, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("kind", "pause"), [("delta", 0.0), ("iceberg", 0.1)])
def test_indexes_get_through_beside_appends(tmp_path: Path, kind: str, pause: float, rounds: int) -> None:
    """Appends are no conflict: every call gets through while another thread appends again and again."""
    for k in range(rounds):
        store, stop, appended = KINDS[kind](tmp_path / f"t{k}"), threading.Event(), [100]
        store.make(numbers(range(4)), numbers(range(4, 8)))

        def append(store: Any = store, stop: Any = stop, appended: list[int] = appended) -> None:
            while not stop.is_set():
                _again(lambda: store.append(numbers([appended[-1]])))
                appended.append(appended[-1] + 1)
                time.sleep(pause)

        thread = threading.Thread(target=append)
        thread.start()
        try:
            while len(appended) < 2:
                time.sleep(0.001)
            report = pyparq.add_indexes(store.open(), bloom_filters=["id"])
        finally:
            stop.set()
            thread.join()
        assert all(file.written for file in report.files)
        assert sorted(store.read()) == [*range(8), *appended[:-1]]
        assert {file.target for file in report.files} <= store.named_files()


class BusyTable(deltalake.DeltaTable):  # type: ignore[misc]
    """Somebody else makes each version first."""

    def create_write_transaction(self, *args: Any, **options: Any) -> None:
        deltalake.write_deltalake(self.table_uri, numbers([100 + self.version()]), mode="append")
        super().create_write_transaction(*args, **options)


def test_a_writer_that_is_always_faster(tmp_path: Path) -> None:
    """The number of tries has a bound, and the new files are removed."""
    store = Delta(tmp_path / "t")
    store.make(numbers(range(4)), numbers(range(4, 8)))
    with pytest.raises(WriteConflictError, match="20 times in a row"):
        pyparq.add_indexes(BusyTable(store.folder), bloom_filters=["id"])
    assert parquet_files(store.folder) == store.named_files()
    assert len(store.read()) == 28


def test_a_catalog_that_is_always_ahead(tmp_path: Path) -> None:
    from pyiceberg.exceptions import CommitFailedException

    store = Iceberg(tmp_path / "t")
    store.make(numbers(range(4)))
    table, tries = store.open(), []

    def commit_table(*args: Any) -> None:
        tries.append(1)
        raise CommitFailedException("somebody else was faster")

    table.catalog.commit_table = commit_table
    with pytest.raises(WriteConflictError, match="20 times in a row"):
        pyparq.add_indexes(table, bloom_filters=["id"])
    assert len(tries) >= 20
    assert parquet_files(store.folder) == store.named_files()
    assert len(list(store.folder.rglob("*.avro"))) == 2, "the manifest and the list of the table, and none of the tries"
    assert sorted(store.read()) == [0, 1, 2, 3]


# ---- killed --------------------------------------------------------------------------------------------------------


def _killed(kind: str, folder: str, how: str, at: str) -> None:
    from pyparq.maintenance.row_changes import table_place

    def die(*args: Any) -> None:
        if at == "after":
            committed(*args)
        os.kill(os.getpid(), signal.SIGKILL)

    committed = table_place.commit
    table_place.commit = die
    CHANGES[how](KINDS[kind](Path(folder)).open())


@pytest.mark.sweep(12)
@pytest.mark.parametrize("at", ["before", "after"])
@pytest.mark.parametrize("how", CHANGES)
def test_a_program_that_is_killed(store: Any, how: str, at: str) -> None:
    """The table is as it was, or changed. Files that no commit names are left to the table's own clean-up."""
    kind = "delta" if isinstance(store, Delta) else "iceberg"
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_killed, args=(kind, str(store.folder), how, at))
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL
    assert store.read() == (dict.fromkeys(range(8), 0) if at == "before" else AFTER[how])
    CHANGES[how](store.open())
    assert store.read() == AFTER[how]
    if kind == "delta":
        store.open().vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True)
        assert parquet_files(store.folder) == store.named_files()
        assert store.read() == AFTER[how]


@pytest.fixture(autouse=True)
def quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield
