"""Commits of ``write_dataset`` that are killed, fail, run out of space or meet another: no reader ever sees a mixture
that stays, and nothing is lost."""

from __future__ import annotations

import errno
import glob
import os
import pickle
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

import pyparq
import pyparq.parquet
from pyparq.datasets.staging import PREFIX, Staging, StagingLock
from pyparq.datasets.write import commit, folder_commit
from pyparq.datasets.write.commit import Committer
from pyparq.datasets.write.targets import StagedFile
from pyparq.errors import CorruptFileError, DataError, TargetExistsError, WriteConflictError
from pyparq.io.file_lock import FOLDER_LOCK, locked_folder

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, locks and kills as Linux has them")

OLD, NEW = range(12), range(100, 108)


def rows(numbers: Any) -> dict[str, Any]:
    return {"id": np.array(numbers), "p": np.array(numbers) % 4}


def write(folder: Path, numbers: Any, mode: str = "error", **options: Any) -> pyparq.WriteReport:
    return pyparq.write_dataset(rows(numbers), folder, partition_cols="p", mode=mode, **options)


def ids(folder: Path) -> list[int]:
    return sorted(pyparq.dataset(folder).read(["id"]).to_pydict()["id"])


def staging_in(folder: Path) -> list[Path]:
    return sorted(folder.glob(PREFIX + "*"))


def in_child(work: Callable[[], Any]) -> int:
    """Run it in a forked process; its exit status: 0, 1 for an error, or minus the signal that killed it."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def killed_at(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """End this process at the step of that number."""
    steps = iter(range(number + 1))
    monkeypatch.setattr(
        folder_commit, "reached", lambda step: next(steps) == number and os.kill(os.getpid(), signal.SIGKILL)
    )


def steps_of(folder: Path, mode: str, monkeypatch: pytest.MonkeyPatch, **options: Any) -> list[str]:
    """The steps of a write that nothing interrupts."""
    seen: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(folder_commit, "reached", seen.append)
        write(folder, NEW, mode, **options)
    return seen


def expected_after(mode: str) -> list[int]:
    return sorted(NEW) if mode == "error" else [*OLD, *NEW] if mode == "append" else sorted(NEW)


# ---- kill -9 -------------------------------------------------------------------------------------------------------


@pytest.mark.sweep(3)
@pytest.mark.parametrize("mode", ["error", "append", "overwrite", "overwrite_partitions"])
def test_a_kill_at_every_step(tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the record the old data are there, and stay; after it the next write completes the commit."""
    old = [] if mode == "error" else list(OLD)
    template = tmp_path / "template"
    if old:
        write(template, OLD, write_metadata=True)
    else:
        template.mkdir()
    shutil.copytree(template, tmp_path / "seen")
    steps = steps_of(tmp_path / "seen", mode, monkeypatch)
    assert {"staged", "record written", "recorded", "placed", "record removed", "ended"} <= set(steps)
    for number, step in enumerate(steps):
        folder = tmp_path / f"{number}"
        shutil.copytree(template, folder)

        def child(folder: Path = folder, number: int = number) -> None:
            killed_at(number, monkeypatch)
            write(folder, NEW, mode)

        assert in_child(child) == -signal.SIGKILL
        decided = number >= steps.index("recorded")
        if not decided:
            assert ids(folder) == old if old else not list(folder.glob("p=*"))
        if step != "ended":
            assert len(staging_in(folder)) == 1
        again = tmp_path / f"{number}-again"
        shutil.copytree(folder, again)
        assert pyparq.recover_dataset(folder) == (0 if step == "ended" else 1)
        assert staging_in(folder) == []
        assert ids(folder) == (expected_after(mode) if decided else old) if old or decided else True
        assert pyparq.recover_dataset(folder) == 0
        # The next write does the same.
        write(again, [1000], "append")
        assert ids(again) == [*(expected_after(mode) if decided else old), 1000]
        assert staging_in(again) == []


def test_a_kill_while_rows_are_written(tmp_path: Path) -> None:
    write(tmp_path, OLD)

    def killed() -> Iterator[Any]:
        yield rows(range(100, 200))
        os.kill(os.getpid(), signal.SIGKILL)

    def child() -> None:
        pyparq.write_dataset(killed(), tmp_path, partition_cols="p", mode="overwrite", max_rows_per_file=5)

    assert in_child(child) == -signal.SIGKILL
    (staging,) = staging_in(tmp_path)
    assert len(list((staging / "new").iterdir())) > 0
    pattern = str(tmp_path / "**" / "*.parquet")
    assert ids(tmp_path) == list(OLD)
    assert sorted(pa.dataset.dataset(tmp_path).to_table()["id"].to_pylist()) == list(OLD)
    assert [r[0] for r in duckdb.sql(f"select id from '{pattern}' order by id").fetchall()] == list(OLD)
    assert pl.scan_parquet(pattern).sort("id").collect()["id"].to_list() == list(OLD)
    assert sorted(pl.read_parquet(glob.glob(pattern, recursive=True))["id"]) == list(OLD)
    assert pyparq.read_table(pattern).num_rows == len(OLD)
    write(tmp_path, NEW, "append")
    assert ids(tmp_path) == [*OLD, *NEW]
    assert staging_in(tmp_path) == []


def test_a_kill_while_an_error_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record is still there then, so the next write completes what was being undone."""
    for number in range(3):
        folder = tmp_path / str(number)
        write(folder, OLD)

        def child(folder: Path = folder, number: int = number) -> None:
            undone = iter(range(9))

            def reached(step: str) -> None:
                if step == "placed":
                    raise OSError(errno.EIO, "a disk error")
                if step == "moved back" and next(undone) == number:
                    os.kill(os.getpid(), signal.SIGKILL)

            monkeypatch.setattr(folder_commit, "reached", reached)
            write(folder, NEW, "overwrite")

        assert in_child(child) == -signal.SIGKILL
        assert pyparq.recover_dataset(folder) == 1
        assert ids(folder) == sorted(NEW)


def test_a_kill_while_a_commit_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Completing it again goes on where that stopped."""
    template = tmp_path / "template"
    write(template, OLD)

    def killed_commit() -> None:
        killed_at(2, monkeypatch)
        write(template, NEW, "overwrite")

    assert in_child(killed_commit) == -signal.SIGKILL
    for number in range(30):
        folder = tmp_path / str(number)
        shutil.copytree(template, folder)

        def killed_recovery(folder: Path = folder, number: int = number) -> None:
            killed_at(number, monkeypatch)
            pyparq.recover_dataset(folder)

        status = in_child(killed_recovery)
        pyparq.recover_dataset(folder)
        assert ids(folder) == sorted(NEW)
        assert staging_in(folder) == []
        if status != -signal.SIGKILL:
            break
    assert 5 < number < 29


def test_a_kill_in_the_commit_of_a_detached_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has decided: nobody waits for a day."""
    write(tmp_path, OLD)
    staging = Committer.start(str(tmp_path), "overwrite", detached=True).staging
    files = [task(staging, "t0", [1])]

    def child() -> None:
        killed_at(3, monkeypatch)
        Committer.resume(staging).commit(files)

    assert in_child(child) == -signal.SIGKILL
    assert pyparq.recover_dataset(tmp_path) == 1
    assert ids(tmp_path) == [1]


# ---- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["append", "overwrite", "overwrite_partitions"])
@pytest.mark.parametrize("kind", [OSError, KeyboardInterrupt])
def test_an_error_at_every_step_undoes_the_commit(
    tmp_path: Path, mode: str, kind: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, OLD, write_metadata=True)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    shutil.copytree(tmp_path, tmp_path.parent / "copy")
    steps = steps_of(tmp_path.parent / "copy", mode, monkeypatch)
    shutil.rmtree(tmp_path.parent / "copy")
    for number in range(steps.index("record removed")):
        count = iter(range(1000))

        def reached(step: str, number: int = number, count: Iterator[int] = count) -> None:
            if next(count) == number:
                raise kind("now")

        monkeypatch.setattr(folder_commit, "reached", reached)
        with pytest.raises(kind, match="now"):
            write(tmp_path, NEW, mode)
        assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before
        assert staging_in(tmp_path) == []


def test_an_error_in_the_data_leaves_everything_as_it_was(tmp_path: Path) -> None:
    def bad() -> Iterator[Any]:
        yield rows(NEW)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pyparq.write_dataset(bad(), tmp_path / "a" / "b", partition_cols="p")
    assert list(tmp_path.iterdir()) == []
    write(tmp_path / "c", OLD)
    for mode in ("append", "overwrite"):
        with pytest.raises(DataError):
            pyparq.write_dataset(
                [rows(NEW), {"id": np.array(["x"]), "p": np.array([1])}], tmp_path / "c", partition_cols="p", mode=mode
            )
        assert ids(tmp_path / "c") == list(OLD)
        assert staging_in(tmp_path / "c") == []


def test_a_full_disk(tmp_path: Path) -> None:
    write(tmp_path, OLD)
    before = sorted(tmp_path.rglob("*"))

    def child() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
        data = {"id": np.random.default_rng(1).integers(0, 1 << 60, 100_000), "p": np.zeros(100_000, np.int64)}
        with pytest.raises(OSError, match="File too large"):
            pyparq.write_dataset(data, tmp_path, partition_cols="p", mode="overwrite")

    assert in_child(child) == 0
    assert sorted(tmp_path.rglob("*")) == before
    assert ids(tmp_path) == list(OLD)


def test_a_folder_that_may_not_be_written_to() -> None:
    """In a child that is nobody: root may write everywhere."""
    folder = Path(tempfile.mkdtemp())
    try:
        write(folder, OLD)
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o555)

        def child() -> None:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setuid(65534)
            for mode in ("append", "overwrite"):
                with pytest.raises(PermissionError) as caught:
                    write(folder, NEW, mode)
                assert caught.value.filename == str(folder)
            assert ids(folder) == list(OLD)

        assert in_child(child) == 0
        assert ids(folder) == list(OLD)
        assert staging_in(folder) == []
    finally:
        folder.chmod(0o755)
        for path in folder.rglob("*"):
            path.chmod(0o755)
        shutil.rmtree(folder)


# ---- two writers ---------------------------------------------------------------------------------------------------


def test_two_writers(tmp_path: Path) -> None:
    write(tmp_path, OLD)
    first = Committer.start(str(tmp_path), "overwrite")
    for mode in ("overwrite", "overwrite_partitions"):
        with pytest.raises(WriteConflictError, match=f'mode="overwrite" is under way in {tmp_path}'):
            write(tmp_path, NEW, mode)
    write(tmp_path, NEW, "append")
    assert ids(tmp_path) == [*OLD, *NEW]
    assert staging_in(tmp_path) == [Path(first.staging.folder)]
    first.abort()
    first.abort()
    write(tmp_path, [5], "overwrite")
    assert ids(tmp_path) == [5]


def test_appends_at_the_same_time(tmp_path: Path) -> None:
    pids = []
    for k in range(4):
        pid = os.fork()
        if pid == 0:
            try:
                for n in range(5):
                    write(tmp_path, range(100 * k + 10 * n, 100 * k + 10 * n + 4), "append")
                os._exit(0)
            except BaseException as error:
                print(repr(error), file=sys.stderr)
                os._exit(1)
        pids.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0, 0, 0, 0]
    assert ids(tmp_path) == sorted(100 * k + 10 * n + m for k in range(4) for n in range(5) for m in range(4))
    assert staging_in(tmp_path) == []


def test_only_the_first_of_two_writes_gets_a_new_folder(tmp_path: Path) -> None:
    first = Committer.start(str(tmp_path / "new"), "error")
    write(tmp_path / "new", NEW)
    with pytest.raises(TargetExistsError, match="has written to the folder meanwhile"):
        first.commit([])
    first.abort()
    assert ids(tmp_path / "new") == list(NEW)


def test_giving_up_removes_all_under_the_lock_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another write that looks whether this one still lives makes a lock file in its staging folder."""
    import fcntl

    removed = []

    def remove(folder: str) -> None:
        fd = os.open(tmp_path / FOLDER_LOCK, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(fd)
        removed.append(folder)
        shutil.rmtree(folder)

    committer = Committer.start(str(tmp_path), "append")
    monkeypatch.setattr(commit, "remove_staging", remove)
    committer.abort()
    assert removed == [committer.staging.folder]
    assert list(tmp_path.iterdir()) == []


def test_a_lock_does_not_outlive_its_process_in_a_child(tmp_path: Path) -> None:
    """A child that was forked while a write was under way does not keep the dead write alive."""
    write(tmp_path, OLD)
    reader, writer = os.pipe()

    def child() -> None:
        Committer.start(str(tmp_path), "overwrite")
        if os.fork() == 0:
            os.close(writer)
            os.read(reader, 1)  # lives on, until the test ends
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)

    try:
        assert in_child(child) == -signal.SIGKILL
        assert pyparq.recover_dataset(tmp_path) == 1
    finally:
        os.close(writer)
        os.close(reader)


# ---- tasks in other processes --------------------------------------------------------------------------------------


def task(staging: Staging, attempt: str, numbers: list[int]) -> StagedFile:
    place = staging.place(attempt, 0)
    pyparq.write_table({"id": numbers}, place)
    return StagedFile(place, os.path.join(f"p={numbers[0]}", f"{attempt}.parquet"))


def in_other_process(work: Callable[[], Any]) -> Any:
    reader, writer = os.pipe()

    def child() -> None:
        os.write(writer, pickle.dumps(work()))

    assert in_child(child) == 0
    os.close(writer)
    with open(reader, "rb") as file:
        return pickle.loads(file.read())


def test_start_tasks_and_commit_in_different_processes(tmp_path: Path) -> None:
    write(tmp_path, OLD)
    staging = in_other_process(lambda: Committer.start(str(tmp_path), "overwrite", detached=True).staging)
    results = [in_other_process(lambda k=k: task(staging, f"t{k}-a0", [k])) for k in range(3)]
    in_other_process(lambda: task(staging, "t1-a1", [77]))  # a second attempt, whose file nobody commits
    assert pyparq.recover_dataset(tmp_path) == 0  # nobody holds its lock, but it is not old
    with pytest.raises(WriteConflictError):
        write(tmp_path, NEW, "overwrite")
    assert ids(tmp_path) == list(OLD)
    committer = Committer.resume(pickle.loads(pickle.dumps(staging)))
    assert len(committer.commit(results)) == 4
    committer.abort()
    assert ids(tmp_path) == [0, 1, 2]
    with pytest.raises(WriteConflictError, match="was given up"):
        Committer.resume(staging)


def test_a_look_at_a_write_does_not_stop_its_commit(tmp_path: Path) -> None:
    """Another write that asks whether this one is abandoned has its lock for a moment."""
    staging = Committer.start(str(tmp_path), "append", detached=True).staging
    results = [task(staging, "t0-a0", [1])]
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        with locked_folder(staging.target):
            held = StagingLock(staging.folder)
            os.write(writer, b"x")
            time.sleep(0.3)
            held.release()
        os._exit(0)
    os.read(reader, 1)
    Committer.resume(staging).commit(results)
    os.waitpid(pid, 0)
    os.close(reader)
    os.close(writer)
    assert ids(tmp_path) == [1]


def test_tasks_fail_when_the_write_has_been_given_up(tmp_path: Path) -> None:
    write(tmp_path, OLD)
    committer = Committer.start(str(tmp_path), "append")
    place = committer.staging.place("late", 0)
    writer = pyparq.ParquetWriter(place, {"id": "int64"})
    committer.abort()
    with pytest.raises(WriteConflictError, match="the staging folder of this write is gone"):
        committer.staging.place("later", 0)
    writer.write({"id": [1]})
    with pytest.raises(FileNotFoundError):
        writer.close()
    assert staging_in(tmp_path) == []
    with pytest.raises(WriteConflictError):
        committer.commit([])


def test_a_detached_write_is_abandoned_after_a_day(tmp_path: Path) -> None:
    staging = Committer.start(str(tmp_path), "overwrite", detached=True).staging
    yesterday = os.stat(staging.folder).st_mtime - 25 * 3600
    for path in Path(staging.folder).rglob("*"):
        os.utime(path, (yesterday, yesterday))
    assert pyparq.recover_dataset(tmp_path) == 1


DAMAGED = [
    "{", "[]", '{"old": [["../../x", "0"]], "new": []}', '{"old": [], "new": [["a", 1]]}',
    '{"old": [], "new": [["../a", "b"]]}', '{"old": [], "new": [["a", "/etc/x"]]}',
]  # fmt: skip


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_record_moves_nothing(tmp_path: Path, text: str) -> None:
    write(tmp_path, OLD)
    staging = tmp_path / f"{PREFIX}x"
    (staging / "new").mkdir(parents=True)
    (staging / "commit.json").write_text(text)
    before = sorted(tmp_path.rglob("*"))
    for call in (lambda: pyparq.recover_dataset(tmp_path), lambda: write(tmp_path, NEW, "append")):
        with pytest.raises(CorruptFileError, match=r"the commit record .*commit\.json"):
            call()
    assert [p for p in sorted(tmp_path.rglob("*")) if p.name != "lock"] == before


@pytest.mark.parametrize("source", ["", "/*", "/p=*/*.parquet", "/**/*.parquet"])
def test_a_write_that_begins_and_ends_while_the_folder_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    folder, real, paused = tmp_path / "d", os.scandir, []
    write(folder, [0, 4])  # one partition

    class Entries(list[Any]):
        def __enter__(self) -> Entries:
            return self

        def __exit__(self, *_: object) -> None:
            return None

    def scandir(path: Any = ".") -> Any:
        with real(path) as found:
            entries = Entries(found)
        if not paused and os.path.realpath(path) == os.path.realpath(folder):
            paused.append(path)
            assert in_child(lambda: (monkeypatch.undo(), write(folder, NEW, "overwrite"))) == 0
        return entries

    monkeypatch.setattr(os, "scandir", scandir)
    found = pyparq.read_table(f"{folder}{source}", columns=["id"])
    assert paused
    assert sorted(found["id"].to_pylist()) == [*NEW]


def test_a_forked_child_that_fails_leaves_the_write_to_its_parent(tmp_path: Path) -> None:
    parent = os.getpid()

    def pieces() -> Iterator[dict[str, Any]]:
        yield rows(OLD)
        pid = os.fork()
        if pid == 0:
            raise RuntimeError("in the child")
        os.waitpid(pid, 0)
        yield rows(NEW)

    try:
        pyparq.write_dataset(pieces(), tmp_path / "d", partition_cols="p")
    except RuntimeError:
        assert os.getpid() != parent
        os._exit(0)
    assert ids(tmp_path / "d") == [*OLD, *NEW]


@pytest.mark.parametrize("change", ["update", "delete", "write over"])
def test_a_file_that_replaces_a_private_one_is_private(tmp_path: Path, change: str) -> None:
    folder = tmp_path / "d"
    pyparq.parquet.write_to_dataset(pa.table(rows(OLD)), folder, partition_cols=["p"], basename_template="{i}.parquet")
    files = sorted(folder.rglob("*.parquet"))
    for file, mode in zip(files, (0o600, 0o640, 0o604, 0o666), strict=True):
        file.chmod(mode)
    if change == "update":
        pyparq.update(folder, values={"id": 1}, filters=pyparq.col("id") < 9)
    elif change == "delete":
        pyparq.delete(folder, pyparq.col("id") < 4)
    else:
        pyparq.parquet.write_to_dataset(
            pa.table(rows(NEW)), folder, partition_cols=["p"], basename_template="{i}.parquet"
        )
    assert [file.stat().st_mode & 0o777 for file in files] == [0o600, 0o640, 0o604, 0o666]


def test_the_names_of_new_files_are_flushed_before_the_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that outlives a power cut needs the files that it names."""
    steps: list[str] = []
    fsync = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda fd: (steps.append(os.path.basename(os.readlink(f"/proc/self/fd/{fd}"))), fsync(fd))
    )
    for wanted in (True, False):
        steps.clear()
        pyparq.write_dataset({"v": [1]}, tmp_path, mode="append", fsync=wanted)
        assert "commit.json.new" in steps
        assert ("new" in steps[: steps.index("commit.json.new")]) == wanted
