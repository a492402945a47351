"""Two programs at work on the same local files: what one has finished is there, or was overwritten by a later one.

The other program runs at each rename of the first (an audit hook), as if the scheduler had stopped the first one just
there. It runs in another process, so that it meets the locks of the first.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq.datasets.write import folder_commit
from pyparq.errors import ChangedMeanwhile
from pyparq.io import atomic_write
from pyparq.io.file_lock import Identity

ROWS = 20


def table(generation: int, rows: int = ROWS) -> dict[str, list[int]]:
    return {"id": list(range(rows)), "generation": [generation] * rows}


def generations(path: Path) -> set[int]:
    return set(pyparq.read_table(path, columns=["generation"]).to_pydict()["generation"])


OTHER = """
    import os, sys
    import pyparq
    what, path, generation = sys.argv[1], sys.argv[2], int(sys.argv[3])
    rows = 20
    data = {"id": list(range(rows)), "generation": [generation] * rows}
    folder = os.path.dirname(path)
    if what == "write_table":
        pyparq.write_table(data, path)
    elif what == "plain replace":
        pyparq.write_table(data, path + ".other")
        os.replace(path + ".other", path)
    elif what == "edit_metadata":
        pyparq.edit_metadata(path, update={"other": str(generation)})
    elif what == "add_indexes":
        pyparq.add_indexes(path, bloom_filters=["id"])
    elif what == "rewrite":
        pyparq.rewrite(path, path, compression="none")
    elif what == "overwrite":
        pyparq.write_dataset(data, folder, mode="overwrite")
    elif what == "append":
        pyparq.write_dataset(data, folder, mode="append")
    elif what == "remove":
        os.unlink(path)
"""


def run_other(what: str, path: Path, generation: int) -> None:
    """The other program, from its start to its end."""
    command = [sys.executable, "-c", textwrap.dedent(OTHER), what, str(path), str(generation)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


class _Hook:
    """Audit hooks stay for ever, so there is one, which does what the test of the moment asks for."""

    def __init__(self) -> None:
        self.work: Callable[[str, str], None] | None = None
        sys.addaudithook(self._called)

    def _called(self, event: str, args: Any) -> None:
        if event != "os.rename" or self.work is None or threading.current_thread() is not threading.main_thread():
            return
        work, self.work = self.work, None  # what it does itself is not looked at
        try:
            work(os.fsdecode(args[0]), os.fsdecode(args[1]))
        finally:
            self.work = work


_hook: _Hook | None = None


@contextmanager
def at_renames(work: Callable[[str, str], None]) -> Iterator[None]:
    """Call ``work`` with both names just before each rename of this process."""
    global _hook
    if _hook is None:
        _hook = _Hook()
    _hook.work = work
    try:
        yield
    finally:
        _hook.work = None


@contextmanager
def other_at_rename(what: str, path: Path, generation: int, seconds: float = 1.5) -> Iterator[list[bool]]:
    """Start the other program at the first rename. It is given some time, and goes on afterwards if it waits for a
    lock. Gives whether it ended before the rename."""
    ended: list[bool] = []
    threads = []

    def work(old: str, new: str) -> None:
        if threads:
            return
        threads.append(threading.Thread(target=run_other, args=(what, path, generation)))
        threads[0].start()
        threads[0].join(seconds)
        ended.append(not threads[0].is_alive())

    with at_renames(work):
        yield ended
    for thread in threads:
        thread.join()


IN_PLACE: dict[str, Callable[[Path], Any]] = {
    "edit_metadata": lambda path: pyparq.edit_metadata(path, update={"ours": "1"}),
    "add_indexes": lambda path: pyparq.add_indexes(path, bloom_filters=["id"]),
    "rewrite": lambda path: pyparq.rewrite(path, path, compression="none"),
    "merge": lambda path: pyparq.merge([path], path),
}


def ours(name: str, path: Path) -> None:
    with suppress(pyparq.ChangedFileError, FileNotFoundError):
        IN_PLACE[name](path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "lake").mkdir()
    found = tmp_path / "lake" / "a.parquet"
    pyparq.write_table(table(1), found)
    return found


@pytest.mark.sweep(4)
@pytest.mark.parametrize("other", ["write_table", "plain replace"])
@pytest.mark.parametrize("name", IN_PLACE)
def test_a_finished_write_stays(path: Path, name: str, other: str) -> None:
    with other_at_rename(other, path, 2) as ended:
        ours(name, path)
    assert ended
    assert generations(path) == {2}
    assert sorted(os.listdir(path.parent)) == ["a.parquet"]


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", IN_PLACE)
def test_rows_of_before_an_overwrite_stay_away(path: Path, name: str) -> None:
    with other_at_rename("overwrite", path, 2) as ended:
        ours(name, path)
    assert ended
    assert generations(path.parent) == {2}
    assert pyparq.dataset(path.parent).count() == ROWS


@pytest.mark.parametrize("name", IN_PLACE)
def test_a_file_that_was_removed_stays_removed(path: Path, name: str) -> None:
    with other_at_rename("remove", path, 2, seconds=60) as ended:  # it waits for no lock
        ours(name, path)
    assert ended == [True]
    assert os.listdir(path.parent) == []


@pytest.mark.sweep(12)
@pytest.mark.parametrize("other", ["edit_metadata", "add_indexes", "rewrite", "write_table", "append"])
@pytest.mark.parametrize("mode", ["overwrite", "append"])
def test_at_each_rename_of_a_commit(path: Path, mode: str, other: str) -> None:
    """Another program changes a file in place, replaces it or adds one, while a commit moves files."""
    count = []
    copy = path.parent.with_name("copy")
    shutil.copytree(path.parent, copy)
    with at_renames(lambda old, new: count.append(new)):
        pyparq.write_dataset(table(9), copy, mode=mode)
    for number in range(len(count)):
        shutil.rmtree(path.parent)
        path.parent.mkdir()
        pyparq.write_table(table(1), path)
        seen = iter(range(len(count)))
        threads = []

        def work(old: str, new: str, seen: Iterator[int] = seen, number: int = number, threads: Any = threads) -> None:
            if next(seen, None) == number:
                threads.append(threading.Thread(target=other_without_complaint, args=(other, path, 2)))
                threads[0].start()
                threads[0].join(1)

        with at_renames(work):
            pyparq.write_dataset(table(9), path.parent, mode=mode)
        for thread in threads:
            thread.join()
        found = generations(path.parent)
        rows = pyparq.dataset(path.parent).count()
        assert rows == ROWS * len(found)  # nothing twice
        assert 9 in found
        if mode == "overwrite" and other not in ("write_table", "append"):
            assert found == {9}
        elif mode == "append":
            assert found == ({2, 9} if other == "write_table" else {1, 2, 9} if other == "append" else {1, 9})


def other_without_complaint(what: str, path: Path, generation: int) -> None:
    command = [sys.executable, "-c", textwrap.dedent(OTHER), what, str(path), str(generation)]
    subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)


def test_what_is_stale_goes_after_the_rename(path: Path) -> None:
    """Until the new file is in its place, the checksums and summaries of the old one are there."""
    crc = path.with_name(".a.parquet.crc")
    crc.write_bytes(b"crc")
    seen = []
    with at_renames(lambda old, new: seen.append(crc.exists())):
        pyparq.edit_metadata(path, update={"a": "1"})
    assert seen == [True]
    assert not crc.exists()


def test_what_is_stale_stays_when_the_rename_is_refused(path: Path) -> None:
    crc = path.with_name(".a.parquet.crc")
    crc.write_bytes(b"crc")

    def work(old: str, new: str) -> None:
        raise PermissionError("not now")

    with at_renames(work), pytest.raises(PermissionError):
        pyparq.edit_metadata(path, update={"a": "1"})
    assert crc.exists()
    assert sorted(os.listdir(path.parent)) == [".a.parquet.crc", "a.parquet"]


def test_a_dataset_of_an_older_file(path: Path) -> None:
    dataset = pyparq.dataset(path)
    assert dataset.count() == ROWS
    pyparq.write_table(table(2), path)
    with pytest.raises(pyparq.ChangedFileError):
        pyparq.rewrite(dataset, path)
    assert generations(path) == {2}


@pytest.mark.parametrize("name", IN_PLACE)
def test_a_checksum_that_cannot_be_removed(path: Path, name: str) -> None:
    """The file is written all the same, once."""
    crc = path.with_name(".a.parquet.crc")
    crc.mkdir()
    inode = path.stat().st_ino
    IN_PLACE[name](path)
    assert path.stat().st_ino != inode
    assert generations(path) == {1}
    if name == "edit_metadata":
        assert pq.read_metadata(path).metadata[b"ours"] == b"1"


@pytest.mark.parametrize("name", ["rewrite", "merge"])
def test_checksums_of_rewritten_files_go(path: Path, name: str) -> None:
    crc = path.with_name(".a.parquet.crc")
    crc.write_bytes(b"crc")
    IN_PLACE[name](path)
    assert not crc.exists()


def test_ctrl_c_after_the_exchange_keeps_the_other_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exchange = atomic_write.exchange

    def interrupted(name: str, target: str) -> bool:
        if generations(Path(target)) == {1}:
            run_other("plain replace", path, 2)
            exchange(name, target)
            raise KeyboardInterrupt
        return exchange(name, target)

    monkeypatch.setattr(atomic_write, "exchange", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pyparq.edit_metadata(path, update={"a": "1"})
    assert generations(path) == {2}
    assert os.listdir(path.parent) == ["a.parquet"]


@pytest.mark.skipif(os.name == "nt", reason="no flock")
def test_locks_of_others_do_not_stop_a_write(path: Path) -> None:
    import fcntl

    with open(path, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        pyparq.write_table(table(2), path)
    assert generations(path) == {2}


def test_a_new_file_that_was_edited_before_the_commit_failed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The edited file is not undone, so neither is the write that it belongs to."""

    def reached(step: str) -> None:
        if step == "placed":
            (new,) = [p for p in path.parent.glob("*.parquet") if p != path]
            pyparq.edit_metadata(new, update={"a": "1"})
            monkeypatch.undo()
            raise OSError("just now")

    monkeypatch.setattr(folder_commit, "reached", reached)
    with pytest.raises(OSError, match="just now") as caught:
        pyparq.write_dataset(table(2), path.parent, mode="append")
    assert "is committed" in "".join(caught.value.__notes__)
    assert generations(path.parent) == {1, 2}
    assert not list(path.parent.glob("_pyparq*"))


def test_a_summary_on_a_store_that_cannot_be_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    import fsspec

    url = "memory://two_writers"
    pyparq.write_dataset(table(1), url, write_metadata=True)
    fs = fsspec.filesystem("memory")

    remove = type(fs).rm_file

    def refuse(self: Any, path: str) -> None:
        if "_metadata" in path:
            raise PermissionError(1, "not permitted", path)
        remove(self, path)

    monkeypatch.setattr(type(fs), "rm_file", refuse)
    with pytest.warns(UserWarning, match="is committed"):
        pyparq.write_dataset(table(2), url, mode="append")
    monkeypatch.undo()
    assert pyparq.dataset(url).count() == 2 * ROWS
    fs.rm("/two_writers", recursive=True)


# ---- a commit that is done -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["record removed", "ended"])
def test_an_error_after_the_commit_is_a_warning(path: Path, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def reached(name: str) -> None:
        if name == step:
            raise OSError("no more of this")

    monkeypatch.setattr(folder_commit, "reached", reached)
    with pytest.warns(UserWarning, match="is committed"):
        pyparq.write_dataset(table(2), path.parent, mode="append")
    monkeypatch.undo()
    assert pyparq.dataset(path.parent).count() == 2 * ROWS
    pyparq.write_dataset(table(3), path.parent, mode="append")
    assert pyparq.dataset(path.parent).count() == 3 * ROWS


def test_a_record_that_cannot_be_removed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unlink = os.unlink

    def refuse(name: Any, **more: Any) -> None:
        if str(name).endswith("commit.json"):
            raise PermissionError(1, "not permitted", name)
        unlink(name, **more)

    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.warns(UserWarning, match="is committed"):
        pyparq.write_dataset(table(2), path.parent, mode="append")
    monkeypatch.undo()
    assert pyparq.dataset(path.parent).count() == 2 * ROWS
    assert pyparq.recover_dataset(path.parent) == 1
    assert pyparq.dataset(path.parent).count() == 2 * ROWS


def test_ctrl_c_after_the_commit_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def reached(name: str) -> None:
        if name == "record removed":
            raise KeyboardInterrupt

    monkeypatch.setattr(folder_commit, "reached", reached)
    with pytest.raises(KeyboardInterrupt) as caught:
        pyparq.write_dataset(table(2), path.parent, mode="append")
    assert "is committed" in "".join(caught.value.__notes__)
    assert pyparq.dataset(path.parent).count() == 2 * ROWS


def test_a_placed_file_that_somebody_deleted(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash after the last rename; then a user deletes one of the new files."""

    def child() -> None:
        monkeypatch.setattr(folder_commit, "reached", lambda step: step == "placed" and os._exit(7))
        pyparq.write_dataset(table(2), path.parent, mode="append")

    pid = os.fork()
    if pid == 0:
        try:
            child()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    (new,) = [p for p in path.parent.glob("*.parquet") if p != path]
    new.unlink()
    with pytest.warns(UserWarning, match="removed after it was written"):
        assert pyparq.recover_dataset(path.parent) == 1
    assert generations(path.parent) == {1}
    pyparq.write_dataset(table(3), path.parent, mode="append")
    assert generations(path.parent) == {1, 3}


@pytest.mark.parametrize("read", [True, False], ids=["read", "append"])
def test_a_partition_that_goes_while_a_folder_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: bool
) -> None:
    """An overwrite removes the folders that it empties."""
    data = {"p": [0, 1], "id": [0, 1]}
    pyparq.write_dataset(data, tmp_path, partition_cols=["p"])
    scandir = os.scandir

    def gone(folder: Any) -> Any:
        if str(folder).endswith("p=1"):
            shutil.rmtree(folder, ignore_errors=True)
        return scandir(folder)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", gone)
        if read:
            assert pyparq.read_table(tmp_path).to_pydict() == {"id": [0], "p": [0]}
        else:
            pyparq.write_dataset(data, tmp_path, partition_cols=["p"], mode="append")
    assert pyparq.dataset(tmp_path).count() == (1 if read else 3)


# ---- many processes ------------------------------------------------------------------------------------------------

WORKER = """
    import os, random, sys, time
    import pyparq
    folder, seed, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    draw = random.Random(seed)
    until = time.monotonic() + seconds
    number = 0
    done = []
    while time.monotonic() < until:
        path = os.path.join(folder, f"f{draw.randrange(3)}.parquet")
        number += 1
        generation = seed * 1_000_000 + number
        data = {"id": list(range(20)), "generation": [generation] * 20}
        what = draw.choice(sys.argv[4].split(","))
        begun = time.monotonic_ns()
        try:
            if what == "write":
                pyparq.write_table(data, path)
            elif what == "edit":
                pyparq.edit_metadata(path, update={"k": str(generation)})
            elif what == "index":
                pyparq.add_indexes(path, bloom_filters=["id"])
            elif what == "rewrite":
                pyparq.rewrite(path, path, compression=draw.choice(["none", "zstd"]))
            elif what == "overwrite":
                pyparq.write_dataset(data, folder, mode="overwrite")
            ended = time.monotonic_ns()
        except (FileNotFoundError, pyparq.ChangedFileError, pyparq.WriteConflictError, pyparq.TargetExistsError):
            continue
        if what in ("write", "overwrite"):
            print(what, os.path.basename(path), generation, begun, ended)
"""


def stress(folder: Path, processes: int, seconds: float, kinds: str, seed: int = 0) -> list[list[str]]:
    """Let processes work on the files; what they wrote, in the order of its end."""
    for k in range(3):
        pyparq.write_table(table(k), folder / f"f{k}.parquet")
    command = [sys.executable, "-c", textwrap.dedent(WORKER), str(folder)]
    running = [
        subprocess.Popen([*command, str(seed + k + 1), str(seconds), kinds], stdout=subprocess.PIPE, text=True)
        for k in range(processes)
    ]
    lines = [line.split() for process in running for line in process.communicate(timeout=seconds + 120)[0].splitlines()]
    assert all(process.returncode == 0 for process in running)
    return sorted(lines, key=lambda line: int(line[4]))


def check_last_writes(folder: Path, lines: list[list[str]]) -> None:
    """Each file holds a write that no other one came after: none that began when this one had ended."""
    for k in range(3):
        name = f"f{k}.parquet"
        mine = [line for line in lines if line[0] == "write" and line[1] == name]
        if not mine:
            continue
        (found,) = generations(folder / name)
        written = {int(line[2]): line for line in mine}
        assert found in written, (name, found)
        later = [line for line in mine if int(line[3]) > int(written[found][4])]
        assert not later, (name, found, later)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("processes", [2, 4])
def test_writes_and_changes_in_place_for_a_moment(tmp_path: Path, processes: int) -> None:
    check_last_writes(tmp_path, stress(tmp_path, processes, 2.0, "write,edit,index,rewrite"))


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("processes", [2, 4])
def test_writes_and_changes_in_place_for_minutes(tmp_path: Path, processes: int) -> None:
    seconds = float(os.environ.get("PYPARQ_STRESS_SECONDS", "120"))
    check_last_writes(tmp_path, stress(tmp_path, processes, seconds, "write,edit,index,rewrite", time.time_ns() % 1000))


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("processes", [2, 4])
def test_overwrites_of_a_folder_for_minutes(tmp_path: Path, processes: int) -> None:
    """Changes in place bring no row back that an overwrite has taken away."""
    seconds = float(os.environ.get("PYPARQ_STRESS_SECONDS", "120"))
    until = time.monotonic() + seconds
    seed = time.time_ns() % 1000
    while time.monotonic() < until:
        folder = tmp_path / f"{seed}"
        folder.mkdir()
        lines = stress(folder, processes, 3.0, "overwrite,edit,index,rewrite", seed)
        seed += processes
        dataset = pyparq.dataset(folder)
        found = generations(folder)
        assert dataset.count() == ROWS * len(found)
        written = {int(line[2]): line for line in lines}
        if lines:
            assert len(found) == 1
            (last,) = found
            assert not [line for line in lines if int(line[3]) > int(written[last][4])]


def test_a_file_that_was_overwritten_in_place_with_its_size_and_time(tmp_path: Path) -> None:
    """Its ctime tells, until a rename has changed that."""
    path = tmp_path / "a"
    path.write_bytes(b"before")
    before = Identity.at(str(path))
    assert before is not None
    before.check(str(path))
    status = path.stat()
    with open(path, "r+b") as file:
        file.write(b"behind")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(ChangedMeanwhile, match="was replaced, or written to"):
        before.check(str(path))
    now = Identity.at(str(path))
    path.rename(tmp_path / "b")
    assert Identity.at(str(tmp_path / "b")) == now
