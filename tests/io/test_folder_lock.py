"""The lock of a folder: a name of its own in it, which is waited for with a limit, and which a crash sets free."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq.errors import WriteConflictError
from pyparq.io import file_lock
from pyparq.io.file_lock import FOLDER_LOCK, locked_folder

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, locks and signals as Linux has them")

HOLDER = """
import sys, time
from pyparq.io.file_lock import locked_folder
with locked_folder(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.readline()
"""


@contextmanager
def holding(folder: Path, script: str = HOLDER) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock."""
    command = [sys.executable, "-c", textwrap.dedent(script), str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        try:
            yield other
        finally:
            other.kill()


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "lake"
    pyparq.write_dataset({"id": [1, 2], "p": [1, 2]}, folder, partition_cols="p")
    return folder


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


JOB = """
import sys, pyparq
folder, part = sys.argv[1:]
pyparq.write_dataset({"id": [3], "p": [1]}, folder, mode="append", partition_cols="p")
pyparq.add_indexes(part, bloom_filters=["id"])
pyparq.recover_dataset(folder)
pyparq.rewrite(folder, folder, mode="overwrite")
pyparq.write_dataset({"id": [4], "p": [1]}, folder, mode="overwrite", partition_cols="p")
print(pyparq.dataset(folder).count())
"""


@pytest.mark.skipif(shutil.which("flock") is None, reason="needs flock of util-linux")
def test_a_job_that_holds_a_lock_of_its_own_on_the_folder(lake: Path) -> None:
    """As cron jobs do: ``flock FOLDER job``."""
    (part,) = lake.glob("p=1/*")
    command = ["flock", str(lake), sys.executable, "-c", JOB, str(lake), str(part)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
    assert len(files(lake)) == 2


STOPPED = """
import os, signal, sys, pyparq
from pyparq.datasets.write import commit, folder_commit
def stop(step):
    if step == "recorded":
        print("held", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
commit.reached = folder_commit.reached = stop
pyparq.write_dataset({"id": [5], "p": [1]}, sys.argv[1], mode="append", partition_cols="p")
"""


def test_a_writer_that_was_stopped(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others are told who holds the lock. A kill sets it free, and the write is completed."""
    monkeypatch.setattr(file_lock, "FOLDER_PATIENCE", 0.2)
    with holding(lake, STOPPED) as other:
        for call in (
            lambda: pyparq.write_dataset({"id": [6], "p": [1]}, lake, mode="append", partition_cols="p"),
            lambda: pyparq.recover_dataset(lake),
        ):
            with pytest.raises(WriteConflictError) as told:
                call()
            who = f"lock of the folder ({FOLDER_LOCK}): process {other.pid} on {os.uname().nodename}, since "
            assert re.search(
                re.escape(who) + r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\. It was waited for, 0\.2 seconds long",
                str(told.value),
            )
        with pytest.warns(pyparq.UnfinishedWriteWarning):
            assert pyparq.dataset(lake).count() == 2
        other.send_signal(signal.SIGKILL)
        other.wait()
    assert pyparq.recover_dataset(lake) == 1
    assert pyparq.dataset(lake).count() == 3
    assert not list(lake.glob(".*"))
    assert not list(lake.glob("_*"))


def test_threads_take_turns(tmp_path: Path) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work() -> None:
        for _ in range(30):
            with locked_folder(str(tmp_path)), locked_folder(str(tmp_path)):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(most) == {1}
    assert len(most) == 180
    assert files(tmp_path) == []


TURNS = """
import os, sys
from pyparq.io.file_lock import locked_folder
for _ in range(60):
    with locked_folder(sys.argv[1]):
        with open(sys.argv[2]) as file:
            count = int(file.read())
        with open(sys.argv[2], "w") as file:
            file.write(str(count + 1))
"""


def test_processes_take_turns(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "count").write_text("0")
    command = [sys.executable, "-c", TURNS, str(tmp_path / "lake"), str(tmp_path / "count")]
    for one in [subprocess.Popen(command) for _ in range(4)]:
        assert one.wait(120) == 0
    assert (tmp_path / "count").read_text() == "240"
    assert files(tmp_path / "lake") == []


def test_a_crash_sets_it_free(tmp_path: Path) -> None:
    with holding(tmp_path) as other:
        other.kill()
        other.wait()
        (sign,) = (tmp_path / FOLDER_LOCK).iterdir()
        assert sign.name.startswith(f"{other.pid}@")
    with locked_folder(str(tmp_path)) as has_lock:
        assert has_lock
        (sign,) = (tmp_path / FOLDER_LOCK).iterdir()
        assert sign.name.startswith(f"{os.getpid()}@")
    assert files(tmp_path) == []


def test_a_recovery_removes_what_a_crash_has_left(tmp_path: Path) -> None:
    with holding(tmp_path) as other:
        other.kill()
        other.wait()
    assert pyparq.recover_dataset(tmp_path) == 0
    assert files(tmp_path) == []


def test_a_forked_child_leaves_the_lock_alone(tmp_path: Path) -> None:
    mine = os.getpid()
    try:
        with locked_folder(str(tmp_path)):
            child = os.fork()
            if not child:
                raise KeyError  # through the parent's frames
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert (tmp_path / FOLDER_LOCK).is_dir()
            with holding(tmp_path, HOLDER.replace("argv[1])", "argv[1], patient=False) as has")) as other:
                other.communicate("\n")
    except KeyError:
        assert os.getpid() != mine
    finally:
        if os.getpid() != mine:
            os._exit(0)
    assert files(tmp_path) == []


def test_other_readers_pass_it_over(lake: Path) -> None:
    """While it is held, and after a crash."""
    part = lake / "p=1"
    for where in (lake, part):
        with holding(where) as other:
            other.kill()
            other.wait()
        assert (where / FOLDER_LOCK).is_dir()
    readers: dict[str, Any] = {
        "pyarrow": lambda: pq.read_table(lake).num_rows,
        "pyarrow.dataset": lambda: pyarrow.dataset.dataset(lake, format="parquet").to_table().num_rows,
        "polars": lambda: pl.read_parquet(lake).height,
        "polars, pattern": lambda: pl.read_parquet(f"{lake}/**/*").height,
        "polars, partition": lambda: pl.read_parquet(part).height + 1,
        "duckdb": lambda: len(duckdb.sql(f"from '{lake}/**/*.parquet'").fetchall()),
        "duckdb, all": lambda: len(duckdb.sql(f"from read_parquet('{lake}/**')").fetchall()),
        "duckdb, partition": lambda: len(duckdb.sql(f"from read_parquet('{part}/*')").fetchall()) + 1,
        "pyparq": lambda: pyparq.dataset(lake).count(),
        "pyparq, pattern": lambda: pyparq.dataset(f"{lake}/**/*").count(),
    }
    assert {name: read() for name, read in readers.items()} == dict.fromkeys(readers, 2)
    pyparq.write_dataset({"id": [7], "p": [1]}, lake, mode="overwrite", partition_cols="p")
    assert not (lake / FOLDER_LOCK).exists()


def test_a_folder_with_the_lock_alone_is_empty(tmp_path: Path) -> None:
    with holding(tmp_path) as other:
        other.kill()
        other.wait()
    pyparq.write_dataset({"id": [1]}, tmp_path)
    assert pyparq.dataset(tmp_path).count() == 1


@pytest.mark.skipif(os.geteuid() == 0 and shutil.which("setpriv") is None, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_to(lake: Path) -> None:
    """It is read, and nothing is there to recover."""
    script = """
        import sys, pyparq
        print(pyparq.dataset(sys.argv[1]).count(), pyparq.recover_dataset(sys.argv[1]))
        try:
            pyparq.write_dataset({"id": [1], "p": [1]}, sys.argv[1], mode="append", partition_cols="p")
        except PermissionError as error:
            print(error.filename == sys.argv[1])
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(lake)]
    if os.geteuid() == 0:
        command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", *command]
    lake.chmod(0o555)
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    finally:
        lake.chmod(0o755)
    assert (done.stdout, done.stderr) == ("2 0\nTrue\n", "")
