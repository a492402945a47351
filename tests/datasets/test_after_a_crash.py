"""Between the crash of a write to a folder and its recovery: what others do stays, and nothing stale comes back."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import pyparq
from pyparq.datasets import staging
from pyparq.datasets.kept_files import local_state
from pyparq.datasets.write import folder_commit
from pyparq.io import file_lock

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

ROWS = 20


def table(generation: int) -> dict[str, list[int]]:
    return {"id": list(range(ROWS)), "generation": [generation] * ROWS}


def generations(path: Path) -> dict[int, int]:
    """Rows by generation."""
    found = pyparq.read_table(path, columns=["generation"]).to_pydict()["generation"]
    return {generation: found.count(generation) for generation in sorted(set(found))}


def crash_at(step: str, nth: int, work: Callable[[], Any]) -> None:
    """Do ``work`` in a process that ends when a commit has reached the step for the ``nth`` time."""
    seen = [0]

    def reached(name: str) -> None:
        seen[0] += name == step
        if seen[0] == nth:
            os._exit(7)

    pid = os.fork()
    if pid == 0:
        try:
            folder_commit.reached = reached
            work()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "lake"
    folder.mkdir()
    for name in ("a", "b"):
        pyparq.write_table(table(1), folder / f"{name}.parquet")
    return folder


def overwrite(folder: Path, generation: int) -> None:
    pyparq.write_dataset(table(generation), folder, mode="overwrite")


@pytest.mark.parametrize(("step", "nth"), [("recorded", 1), ("moved aside", 1), ("moved aside", 2), ("placed", 1)])
def test_a_file_that_was_written_after_the_crash_stays(lake: Path, step: str, nth: int) -> None:
    crash_at(step, nth, lambda: overwrite(lake, 2))
    pyparq.write_table(table(3), lake / "b.parquet")
    pyparq.recover_dataset(lake)
    assert generations(lake) == {2: ROWS, 3: ROWS}
    assert not list(lake.glob("_pyparq*"))


def test_the_file_that_stays_is_named(lake: Path) -> None:
    crash_at("recorded", 1, lambda: overwrite(lake, 2))
    pyparq.write_table(table(3), lake / "b.parquet")
    with pytest.warns(UserWarning, match=r"b\.parquet was written after .* stays"):
        pyparq.recover_dataset(lake)


def test_a_file_of_the_same_size_and_time_stays(lake: Path) -> None:
    crash_at("recorded", 1, lambda: overwrite(lake, 2))
    before = (lake / "b.parquet").stat()
    pyparq.write_table(table(3), lake / "b.parquet")
    os.utime(lake / "b.parquet", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (lake / "b.parquet").stat().st_size == before.st_size
    pyparq.recover_dataset(lake)
    assert generations(lake) == {2: ROWS, 3: ROWS}


def test_a_record_of_an_older_version(lake: Path) -> None:
    """Records used to name files by their paths alone."""
    crash_at("recorded", 1, lambda: overwrite(lake, 2))
    (path,) = lake.glob("_pyparq*/commit.json")
    record = json.loads(path.read_text())
    path.write_text(json.dumps({"old": [entry[:2] for entry in record["old"]], "new": record["new"]}))
    pyparq.recover_dataset(lake)
    assert generations(lake) == {2: ROWS}


IN_PLACE: dict[str, Callable[[Path], Any]] = {
    "edit_metadata": lambda path: pyparq.edit_metadata(path, update={"ours": "1"}),
    "add_indexes": lambda path: pyparq.add_indexes(path, bloom_filters=["generation"]),
    "rewrite": lambda path: pyparq.rewrite(path, path, compression="none"),
    "merge": lambda path: pyparq.merge([path], path),
}


@pytest.mark.sweep(3)
@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("name", IN_PLACE)
def test_a_change_in_place_of_what_a_crashed_overwrite_replaces(tmp_path: Path, name: str, partitioned: bool) -> None:
    """The changed file holds the old rows: recovery would have to know that it is not another program's new file."""
    folder = tmp_path / "lake"
    options: dict[str, Any] = {"partition_cols": ["id"]} if partitioned else {}
    data = {"id": [1] * ROWS, "generation": [1] * ROWS, "x": list(range(ROWS))}
    pyparq.write_dataset(data, folder, **options)
    (old,) = folder.rglob("*.parquet")
    later = {**data, "generation": [2] * ROWS}
    crash_at("recorded", 1, lambda: pyparq.write_dataset(later, folder, mode="overwrite", **options))
    with suppress(FileNotFoundError, pyparq.ChangedFileError):
        IN_PLACE[name](old)
    pyparq.recover_dataset(folder)
    assert generations(folder) == {2: ROWS}


def test_a_crashed_append_comes_before_the_overwrite_that_finds_it(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The append crashes while the overwrite prepares its files. What it had placed is overwritten; so is the rest."""
    data = {"id": [1, 2], "generation": [2, 2]}

    def reached(step: str) -> None:
        if step == "staged":
            monkeypatch.undo()
            crash_at("placed", 1, lambda: pyparq.write_dataset(data, lake, mode="append", max_rows_per_file=1))

    monkeypatch.setattr(folder_commit, "reached", reached)
    overwrite(lake, 3)
    pyparq.recover_dataset(lake)
    assert generations(lake) == {3: ROWS}


@pytest.mark.parametrize("step", ["recorded", "moved aside"])
def test_a_rewrite_of_a_folder_takes_away_only_what_it_read(
    lake: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reached(name: str) -> None:
        if name == step:
            monkeypatch.undo()
            pyparq.write_table(table(5), lake / "b.parquet")

    monkeypatch.setattr(folder_commit, "reached", reached)
    with pytest.raises(pyparq.ChangedFileError):
        pyparq.rewrite(lake, lake, mode="overwrite")
    assert generations(lake) == {1: ROWS, 5: ROWS}
    assert not list(lake.glob("_pyparq*"))


@pytest.mark.parametrize("crashed", [True, False])
def test_links_to_files_elsewhere(lake: Path, crashed: bool) -> None:
    """A relative link leads nowhere from the staging folder."""
    (lake.parent / "data").mkdir()
    (lake / "b.parquet").rename(lake.parent / "data" / "b.parquet")
    (lake / "b.parquet").symlink_to("../data/b.parquet")
    if crashed:
        crash_at("recorded", 1, lambda: overwrite(lake, 2))
        pyparq.recover_dataset(lake)
        assert generations(lake) == {2: ROWS}
    else:
        pyparq.rewrite(lake, lake, mode="overwrite")
        assert generations(lake) == {1: 2 * ROWS}
    assert not (lake / "b.parquet").is_symlink()
    assert generations(lake.parent / "data") == {1: ROWS}


@pytest.mark.parametrize("crashed", [True, False])
def test_file_systems_where_a_rename_changes_the_inode(
    lake: Path, crashed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def state(path: str) -> Any:
        found = local_state(path)
        return found and (*found[:2], int(found[2] or 0) + ("_pyparq" in path))

    monkeypatch.setattr(staging, "local_state", state)
    if crashed:
        crash_at("recorded", 1, lambda: overwrite(lake, 2))
        pyparq.recover_dataset(lake)
        assert generations(lake) == {2: ROWS}
    else:
        pyparq.rewrite(lake, lake, mode="overwrite")
        assert generations(lake) == {1: 2 * ROWS}


def test_who_has_no_lock_of_the_folder_completes_nothing(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program that has it may be completing the same write."""
    crash_at("recorded", 1, lambda: overwrite(lake, 2))
    monkeypatch.setattr(file_lock, "PATIENCE", 0.01)

    def now() -> list[Path]:
        return sorted(path for path in lake.rglob("*") if file_lock.FOLDER_LOCK not in path.parts)

    before = now()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        with file_lock.locked_folder(str(lake)):
            os.write(writer, b"x")
            signal.pause()  # until the end of the test
        os._exit(0)
    try:
        os.read(reader, 1)
        with pytest.raises(pyparq.ChangedFileError):
            pyparq.edit_metadata(lake / "a.parquet", update={"a": "b"})
        assert now() == before
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(reader)
        os.close(writer)
    pyparq.recover_dataset(lake)
    assert generations(lake) == {2: ROWS}


@pytest.mark.parametrize("way", ["recovery", "job"])
def test_a_file_that_a_program_without_locks_puts_there_at_the_last_moment(
    lake: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at an old file and its rename. What came out is another file, and goes back."""
    if way == "recovery":
        crash_at("recorded", 1, lambda: overwrite(lake, 2))
    real, put = os.rename, []

    def rename(source: Any, place: Any, **options: Any) -> None:
        if os.path.basename(source) == "b.parquet" and not put:
            pyparq.write_table(table(3), lake / "other")
            real(lake / "other", source)
            put.append(source)
        real(source, place, **options)

    monkeypatch.setattr(os, "rename", rename)
    if way == "recovery":
        with pytest.warns(UserWarning, match=r"b\.parquet was written after .* stays"):
            pyparq.recover_dataset(lake)
        assert generations(lake) == {2: ROWS, 3: ROWS}
    else:
        with pytest.raises(pyparq.ChangedFileError):
            pyparq.rewrite(lake, lake, mode="overwrite")
        assert generations(lake) == {1: ROWS, 3: ROWS}
    assert put
    assert generations(lake / "b.parquet") == {3: ROWS}
    assert not list(lake.glob("_pyparq*"))


def test_an_undone_commit_leaves_alone_what_another_program_has_put_for_its_new_file(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Put there after the look whether the new files are as they were placed."""
    real = folder_commit.locked_name

    def locked(path: str) -> Any:
        if os.path.basename(path) not in ("a.parquet", "b.parquet"):
            pyparq.write_table(table(3), lake / "other")
            os.rename(lake / "other", path)
        return real(path)

    def fail(step: str) -> None:
        if step == "placed":
            raise KeyboardInterrupt

    monkeypatch.setattr(folder_commit, "reached", fail)
    monkeypatch.setattr(folder_commit, "locked_name", locked)
    with pytest.raises(KeyboardInterrupt):
        overwrite(lake, 2)
    assert generations(lake) == {1: 2 * ROWS, 3: ROWS}
