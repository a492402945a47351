"""Writers that nobody closes: the data are lost, and it is said."""

from __future__ import annotations

import gc
import io
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any

import fsspec
import pytest

import pyparq
from pyparq.errors import DataError, OptionError

ROWS = {"a": list(range(1000))}


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_a_writer_that_is_dropped_says_so(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(b"old")
    writer = pyparq.ParquetWriter(path)
    writer.write(ROWS)
    with pytest.warns(ResourceWarning, match=r"the writer of '.*t\.parquet' was not closed") as caught:
        del writer
    assert caught[0].filename == __file__
    assert (names(tmp_path), path.read_bytes()) == (["t.parquet"], b"old")


@pytest.mark.parametrize("where", ["memory://unclosed/t.parquet", io.BytesIO()])
def test_so_do_writers_to_other_targets(where: Any) -> None:
    name = where if isinstance(where, str) else "<BytesIO>"
    writer = pyparq.ParquetWriter(where)
    writer.write(ROWS)
    with pytest.warns(ResourceWarning, match=f"'{name}'"):
        del writer
    assert not fsspec.filesystem("memory").exists("/unclosed/t.parquet")


def test_so_does_one_that_the_garbage_collector_finds(tmp_path: Path) -> None:
    cycle: list[Any] = [pyparq.ParquetWriter(tmp_path / "t.parquet")]
    cycle.append(cycle)
    del cycle
    with pytest.warns(ResourceWarning, match="was not closed"):
        gc.collect()
    assert names(tmp_path) == []


def test_the_warning_has_the_writer_for_tracemalloc(tmp_path: Path) -> None:
    writer = pyparq.ParquetWriter(tmp_path / "t.parquet")
    with pytest.warns(ResourceWarning, match="was not closed") as caught:
        del writer
    assert type(caught[0].source) is pyparq.ParquetWriter


def test_a_warning_that_is_an_error_discards_the_file_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    writer = pyparq.ParquetWriter(tmp_path / "t.parquet")
    writer.write(ROWS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del writer
    assert [caught.exc_type for caught in told] == [ResourceWarning]
    assert names(tmp_path) == []


@pytest.mark.filterwarnings("error")
def test_nobody_is_told_of_what_he_knows(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    for end in ("close", "abort"):
        writer = pyparq.ParquetWriter(path)
        writer.write(ROWS)
        getattr(writer, end)()
        del writer
    with pytest.raises(OptionError):
        pyparq.ParquetWriter(path, compression="sappy")
    with pytest.raises(IsADirectoryError):
        pyparq.ParquetWriter(tmp_path)
    with pytest.raises(DataError, match="nothing was written"):
        pyparq.ParquetWriter(path).close()


@pytest.mark.filterwarnings("error")
def test_a_writer_that_failed_is_not_told_of_again(tmp_path: Path) -> None:
    class Full(io.RawIOBase):
        def write(self, data: Any) -> int:
            raise OSError("the disk is full")

    writer = pyparq.ParquetWriter(Full())
    with pytest.raises(OSError, match="the disk is full"):
        writer.write(ROWS)
    with pytest.raises(DataError, match="an earlier write failed"):
        writer.write(ROWS)  # not once more, behind what may have been written of it
    del writer
    with pytest.raises(OSError, match="the disk is full"):
        pyparq.ParquetWriter(Full(), pyparq.schema({"a": "int64"}))
    gc.collect()


# ---- at exit -----------------------------------------------------------------------------------------------------


def run(script: str, *args: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "always::ResourceWarning", "-c", textwrap.dedent(script), *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


BEGIN = """
import atexit, os, sys, threading, pyparq
writer = pyparq.ParquetWriter(sys.argv[1])
writer.write({"a": [1]})
"""


@pytest.mark.parametrize(
    "end", ["", "sys.exit(0)", "raise SystemExit(0)", "cycle = [writer]; cycle.append(cycle); sys.writer = writer"]
)
@pytest.mark.parametrize("how", ["unnamed", "named"])
def test_a_writer_that_is_open_at_exit_is_named_on_stderr(tmp_path: Path, end: str, how: str) -> None:
    path = tmp_path / "t.parquet"
    unnamed = "from pyparq.io import atomic_write\natomic_write.open_unnamed = lambda *given: -1\n"
    begin = unnamed if how == "named" else ""
    done = run(begin + BEGIN + end, path)
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"pyparq: the writer of {str(path)!r} was still open at exit")
    assert done.returncode == 0
    assert names(tmp_path) == []


def test_each_open_writer_is_named_and_no_other(tmp_path: Path) -> None:
    script = """
        import sys, pyparq
        writers = [pyparq.ParquetWriter(f"{sys.argv[1]}/{k}.parquet") for k in range(4)]
        for writer in writers:
            writer.write({"a": [1]})
        writers[0].close()
        writers[1].abort()
    """
    done = run(script, tmp_path)
    assert len(done.stderr.splitlines()) == 2
    assert "2.parquet" in done.stderr
    assert "3.parquet" in done.stderr
    assert names(tmp_path) == ["0.parquet"]


@pytest.mark.parametrize("thread", [True, False])
def test_who_closes_at_exit_is_in_time(tmp_path: Path, thread: bool) -> None:
    """Handlers of the user's, and threads that go on when the main thread is done."""
    late = "threading.Thread(target=lambda: (time.sleep(0.3), writer.close())).start()"
    script = "import time" + BEGIN + (late if thread else "atexit.register(writer.close)")
    done = run(script, tmp_path / "t.parquet")
    assert (done.returncode, done.stderr) == (0, "")
    assert pyparq.read_table(tmp_path / "t.parquet").num_rows == 1


def test_an_exit_without_stderr(tmp_path: Path) -> None:
    done = run(BEGIN + "sys.stderr = None", tmp_path / "t.parquet")
    assert (done.returncode, done.stderr) == (0, "")
    assert names(tmp_path) == []


def test_an_exception_that_ends_the_program(tmp_path: Path) -> None:
    done = run(BEGIN + "raise KeyError('mine')", tmp_path / "t.parquet")
    assert done.returncode == 1
    assert "KeyError: 'mine'" in done.stderr
    assert "still open at exit" in done.stderr


def test_the_writers_that_are_watched_are_not_kept(tmp_path: Path) -> None:
    from pyparq.runtime import fork_safety
    from pyparq.write import file

    gc.collect()
    before = len(file._watched), len(fork_safety._watched), len(fork_safety._prepared)
    for _ in range(5):
        pyparq.write_table(ROWS, tmp_path / "t.parquet")
        pyparq.write_table(ROWS, io.BytesIO())
        pyparq.read_table(tmp_path / "t.parquet")
    gc.collect()
    assert (len(file._watched), len(fork_safety._watched), len(fork_safety._prepared)) == before


def test_a_daemon_thread_that_writes_at_exit(tmp_path: Path) -> None:
    script = """
        import sys, threading, time, pyparq
        begun = threading.Event()
        def write():
            with pyparq.ParquetWriter(sys.argv[1]) as writer:
                while True:
                    writer.write({"a": list(range(100))}, row_group_size=50)
                    begun.set()
        threading.Thread(target=write, daemon=True).start()
        begun.wait(100)
    """
    done = run(script, tmp_path / "t.parquet")
    assert done.returncode == 0
    assert "still open at exit" in done.stderr
    assert names(tmp_path) == []
