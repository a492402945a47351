"""Forked children: they inherit readers that go on working, and writers that are dead; nothing of them ever hangs."""

from __future__ import annotations

import gc
import importlib
import io
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq.cli.output import Busy
from pyparq.encryption import CryptoFactory, KmsConnectionConfig, cipher
from pyparq.errors import DataError
from pyparq.format import thrift_codec
from pyparq.io import atomic_write, file_systems
from pyparq.io.remote_sinks import FsspecSink
from pyparq.kernels import buffers
from pyparq.read.footers import schemas
from pyparq.runtime import lazy_import, threads

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]

TABLE = pa.table({"a": list(range(1000)), "s": [f"text {k}" for k in range(1000)]})
LARGE = pa.table({"a": list(range(100_000)), "s": [f"text {k}" for k in range(100_000)]})
OLD = b"what was there before"
SOURCE = Path(pyparq.__file__).parent


def forked(task: Callable[[], Any]) -> int:
    """The number of a child that runs ``task`` and ends, with 0 where it raised nothing."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        task()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def joined(child: int, seconds: float = 60) -> None:
    """Wait for the child. Fails where it hangs, or failed itself."""
    end = time.monotonic() + seconds
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.fail("the child hangs")
        time.sleep(0.01)


def same(table: Any) -> None:
    assert table.to_arrow().equals(LARGE)


@contextmanager
def held(lock: Any) -> Iterator[None]:
    """Another thread holds the lock."""
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            taken.set()
            done.wait(120)

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait(60)
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of several row groups, and larger than what is read with the footer."""
    pq.write_table(LARGE, tmp_path / "in.parquet", row_group_size=30_000, compression="none", use_dictionary=False)
    return tmp_path / "in.parquet"


# ---- locks, pools, caches ----------------------------------------------------------------------------------------

MODULES = {
    "pool of threads": (lambda: threads._lock, threads.pool),
    "pool of request threads": (lambda: threads._lock, threads.request_pool),
    "file systems with one reader": (lambda: file_systems._one_at_a_time, lambda: None),
    "schemas": (lambda: schemas._lock, lambda: None),
    "garbage collector": (lambda: thrift_codec._gc_lock, lambda: None),
    "nonces": (lambda: cipher._nonces_lock, lambda: cipher.DataKey(bytes(16)).wrap(b"secret", b"")),
}


@pytest.mark.parametrize("name", MODULES)
def test_a_lock_that_a_thread_held_is_free_in_the_child(path: Path, name: str) -> None:
    lock, use = MODULES[name]

    def task() -> None:
        use()
        same(pyparq.read_table(path))

    with held(lock()):
        joined(forked(task))


def test_locks_of_open_readers_are_free_in_the_child(path: Path) -> None:
    with open(path, "rb") as file, pyparq.ParquetFile(file) as reader:
        scan = reader.scan()
        for lock in (
            reader._file.fetcher._lock,
            reader._file.fetcher.source._lock,  # type: ignore[attr-defined]
            scan.reader.account.lock,
        ):
            with held(lock):
                joined(forked(lambda: same(scan.to_table())))


def test_locks_of_keys_are_free_in_the_child(tmp_path: Path) -> None:
    path, key = tmp_path / "t.parquet", bytes(16)
    pyparq.write_table(TABLE, path, encryption=pyparq.EncryptionProperties(key))
    with pyparq.ParquetFile(path, decryption=pyparq.DecryptionProperties(key)) as reader:
        lock = reader._file.decryption._lock  # type: ignore[attr-defined]
        with held(lock):
            joined(forked(reader.read))


class Kms:
    """Counts its makers' processes."""

    def wrap_key(self, key: bytes, master: str) -> str:
        return key.hex()

    def unwrap_key(self, wrapped: str, master: str) -> bytes:
        return bytes.fromhex(wrapped)


def test_a_child_makes_its_own_kms_clients() -> None:
    made: list[int] = []

    def make(config: KmsConnectionConfig) -> Any:
        made.append(os.getpid())
        return Kms()

    factory, config = CryptoFactory(make), KmsConnectionConfig()
    assert factory.client(config) is factory.client(config)

    def task() -> None:
        factory.client(config)
        assert made[1:] == [os.getpid()]

    with held(factory._clients._lock):
        joined(forked(task))
    assert made == [os.getpid()]


def test_progress_of_the_parent_ends_quietly_in_the_child() -> None:
    with Busy("reading") as busy, held(busy._lock):
        joined(forked(lambda: busy.__exit__(None, None, None)))


def test_the_garbage_collector_goes_on_in_the_child() -> None:
    inside, done = threading.Event(), threading.Event()

    def hold() -> None:
        with thrift_codec._gc_paused():
            inside.set()
            done.wait(120)

    def still_paused() -> None:
        assert not gc.isenabled()

    def task() -> None:
        assert gc.isenabled()
        with thrift_codec._gc_paused():
            assert not gc.isenabled()
        assert gc.isenabled()

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait(60)
    assert not gc.isenabled()
    try:
        joined(forked(task))
        with thrift_codec._gc_paused():
            joined(forked(still_paused))  # it is this thread that pauses it, and will let it go on
    finally:
        done.set()
        thread.join()
    assert gc.isenabled()


def test_a_child_has_memory_to_use_again() -> None:
    """Its own copy of what was idle, whatever other threads did when it was made."""
    buffers.empty_results((1 << 20,), "u1")[:] = 1
    ended = threading.Event()

    def work() -> None:
        while not ended.is_set():
            buffers.empty_results((1 << 16,), "u1")

    def task() -> None:
        for _ in range(100):
            buffers.empty_results((1 << 16,), "u1")[:] = 2
        found = buffers.empty_results((1 << 20,), "u1")
        found[:] = 3
        assert (found == 3).all()
        buffers.release_unused()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(10):
            joined(forked(task))
    finally:
        ended.set()
        thread.join()


def test_every_lock_knows_of_forks() -> None:
    """Who makes a lock also says what becomes of it in a child."""
    makes = re.compile(r"\b(?:threading\.)?(?:R?Lock|Condition|Semaphore|BoundedSemaphore|Barrier)\(\)|cached_property")
    for file in SOURCE.rglob("*.py"):
        text = file.read_text()
        if makes.search(text):
            assert re.search(r"fork_safety\.watch\(self\)|^@(fork_safety\.)?in_child", text, re.MULTILINE), file
            assert not re.search(r"cached_property", text), f"{file}: it has a lock until Python 3.12"


CROWD = """
import os, signal, sys, threading, time
import pyarrow as pa, pyparq
from pyparq.runtime import threads
threads.cpu_count = lambda: 4
path, out = sys.argv[1:3]
stop = threading.Event()
pyparq.write_table({"a": list(range(20_000)), "s": [str(k) for k in range(20_000)]}, path, row_group_size=2_000)
want = pyparq.read_table(path).to_arrow()
shared = pyparq.ParquetFile(path)
file = open(path, "rb")
shared_file = pyparq.ParquetFile(file)

def read():
    while not stop.is_set():
        pyparq.read_table(path, columns=["a"])
        shared.read()
        shared_file.read()
        pyparq.release_unused()

readers = [threading.Thread(target=read) for _ in range(4)]
for reader in readers:
    reader.start()
children = []
for k in range(int(sys.argv[3])):
    child = os.fork()
    if not child:
        code = 1
        try:
            ok = pyparq.read_table(path).to_arrow().equals(want)
            ok = ok and shared.read().to_arrow().equals(want) and shared_file.read().to_arrow().equals(want)
            pyparq.write_table(want.slice(k), f"{out}/{k}.parquet")
            ok = ok and pyparq.read_table(f"{out}/{k}.parquet").to_arrow().equals(want.slice(k))
            code = 0 if ok else 2
        finally:
            os._exit(code)
    children.append(child)
    if len(children) % 8 == 0:
        time.sleep(0.05)
bad, end = 0, time.monotonic() + 120
for child in children:
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            bad += status != 0
            break
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            bad += 1
            break
        time.sleep(0.01)
stop.set()
for reader in readers:
    reader.join()
print(bad, "of", len(children), "hung or failed")
"""


def test_many_children_while_threads_read(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    args = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", CROWD, str(tmp_path / "t.parquet")]
    done = subprocess.run(
        [*args, str(tmp_path / "out"), "40"], capture_output=True, text=True, timeout=280, check=False
    )
    assert done.stdout == "0 of 40 hung or failed\n", done.stderr


# ---- readers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("buffering", [-1, 0])
def test_parent_and_child_read_one_file_object_at_the_same_time(path: Path, buffering: int) -> None:
    """They share its position."""
    with open(path, "rb", buffering) as file, pyparq.ParquetFile(file) as reader:

        def task() -> None:
            for _ in range(20):
                same(reader.read())

        child = forked(task)
        task()
        joined(child)


def test_a_file_object_that_the_child_has_closed(path: Path) -> None:
    with open(path, "rb") as file, pyparq.ParquetFile(file) as reader:

        def task() -> None:
            file.close()
            with pytest.raises(pyparq.OptionError, match="closed"):
                reader.read()

        joined(forked(task))
        same(reader.read())


def test_inherited_readers_of_other_sources(path: Path) -> None:
    data = path.read_bytes()
    fsspec.filesystem("memory").pipe_file("/fork/t.parquet", data)
    for source in (path, data, io.BytesIO(data), "memory://fork/t.parquet", path.as_uri()):
        with pyparq.ParquetFile(source) as reader:
            batches = reader.iter_batches(1000)
            first = next(batches)

            def task(reader: Any = reader, batches: Any = batches, first: Any = first) -> None:
                same(reader.read())
                assert first.num_rows + sum(batch.num_rows for batch in batches) == LARGE.num_rows

            joined(forked(task))


def test_a_child_has_a_file_system_of_its_own(path: Path) -> None:
    """Connections are the parent's, and the threads that serve them are not there."""
    fsspec.filesystem("memory").pipe_file("/fork/t.parquet", path.read_bytes())
    with pyparq.ParquetFile("memory://fork/t.parquet") as reader:
        before = reader._file.fetcher.source.fs  # type: ignore[attr-defined]

        def task() -> None:
            same(reader.read())
            assert reader._file.fetcher.source.fs is not before  # type: ignore[attr-defined]

        joined(forked(task))
        reader.read()
        assert reader._file.fetcher.source.fs is before  # type: ignore[attr-defined]


# ---- writers -----------------------------------------------------------------------------------------------------

CALLS: dict[str, Callable[[Any], Any]] = {
    "close": lambda writer: writer.close(),
    "abort": lambda writer: writer.abort(),
    "write": lambda writer: writer.write(TABLE),
    "write_table": lambda writer: writer.write_table(TABLE),
    "write_batch": lambda writer: writer.write_batch(TABLE, row_group_size=10),
    "flush": lambda writer: writer.flush(),
    "metadata": lambda writer: writer.add_key_value_metadata({"a": "b"}),
    "leaving the block": lambda writer: writer.__exit__(None, None, None),
}


def target(folder: Path, name: str) -> Any:
    """What to write to."""
    if name == "memory":
        return "memory://fork/w.parquet"
    if name == "fsspec":  # a local file, but not by our means
        return FsspecSink(fsspec.filesystem("file"), f"{folder}/fsspec.parquet", "fsspec.parquet")
    if name == "old":
        (folder / "old.parquet").write_bytes(OLD)
    return folder / f"{name}.parquet"


def arrived(folder: Path, name: str) -> pa.Table:
    if name == "memory":
        return pq.read_table(io.BytesIO(fsspec.filesystem("memory").cat("/fork/w.parquet")))
    return pq.read_table(folder / f"{name}.parquet")


@pytest.fixture(params=["unnamed", "named"])
def _temporary(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With files that have no name until they are complete, and without."""
    if request.param == "named":
        monkeypatch.setattr(atomic_write, "open_unnamed", lambda folder, mode: -1)


@pytest.mark.sweep(3)
@pytest.mark.usefixtures("_temporary")
@pytest.mark.parametrize("name", ["new", "old", "memory", "fsspec"])
def test_an_inherited_writer_is_dead(tmp_path: Path, name: str) -> None:
    writer = pyparq.ParquetWriter(target(tmp_path, name), row_group_size=100)
    writer.write(TABLE)
    before = sorted(file.name for file in tmp_path.iterdir())

    def task() -> None:
        for call in CALLS.values():
            with pytest.raises(DataError, match=r"belongs to the process that opened it.*parquet"):
                call(writer)
        assert writer.__exit__(KeyError, KeyError(), None) is None  # type: ignore[func-returns-value]
        assert sorted(file.name for file in tmp_path.iterdir()) == before

    joined(forked(task))
    writer.write(TABLE)
    joined(forked(task))
    writer.close()
    assert arrived(tmp_path, name).equals(pa.concat_tables([TABLE, TABLE]))
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".")]


@pytest.mark.slow
@pytest.mark.usefixtures("_temporary")
@pytest.mark.parametrize("name", ["new", "old", "memory", "fsspec"])
def test_an_inherited_writer_ends_without_a_trace(tmp_path: Path, name: str, recwarn: Any) -> None:
    held_by = [pyparq.ParquetWriter(target(tmp_path, name), row_group_size=100)]
    held_by[0].write(TABLE)
    gc.collect()  # what other tests have left, so that the child does not wait for it

    def task() -> None:
        recwarn.clear()
        held_by.clear()
        gc.collect()
        assert not list(recwarn)

    joined(forked(task))
    held_by[0].close()
    assert arrived(tmp_path, name).equals(TABLE)


def test_a_writer_that_was_closed_before_stays_so(tmp_path: Path) -> None:
    writer = pyparq.ParquetWriter(tmp_path / "t.parquet")
    writer.write(TABLE)
    writer.close()

    def task() -> None:
        writer.close()
        writer.abort()
        with pytest.raises(DataError, match="the writer is closed"):
            writer.write(TABLE)

    joined(forked(task))
    assert pq.read_table(tmp_path / "t.parquet").equals(TABLE)


@pytest.mark.slow
@pytest.mark.parametrize("buffering", [-1, 0])
def test_a_file_object_gets_nothing_from_a_child(tmp_path: Path, buffering: int) -> None:
    """Nor twice what waited in its buffer, which the child has a copy of."""
    held_by = [pyparq.ParquetWriter(open(tmp_path / "t.parquet", "wb", buffering), row_group_size=100)]  # noqa: SIM115
    held_by[0].write(TABLE)

    def task() -> None:
        with pytest.raises(DataError, match="belongs to the process"):
            held_by[0].close()
        held_by.clear()
        gc.collect()

    joined(forked(task))
    held_by[0].write(TABLE)
    held_by[0].close()
    assert pq.read_table(tmp_path / "t.parquet").num_rows == 2000


def test_a_fork_does_not_wait_for_a_pipe_that_the_child_reads(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with open(writing, "wb") as file:
        thread = threading.Thread(target=pyparq.write_table, args=(LARGE, file), kwargs={"compression": None})
        thread.start()
        time.sleep(0.2)  # the pipe is full by then, or else the test tests less

        def task() -> None:
            os.close(writing)
            with open(reading, "rb") as data:
                same(pyparq.read_table(data.read()))

        child = forked(task)
        os.close(reading)
        thread.join(60)
    joined(child)


def test_a_child_completes_no_upload() -> None:
    """Object stores, played by a file system that counts."""
    from fsspec.implementations.memory import MemoryFileSystem
    from fsspec.spec import AbstractBufferedFile

    class Upload(AbstractBufferedFile):
        calls: ClassVar[list[str]] = []

        def _initiate_upload(self) -> None:
            self.calls.append("begin")

        def _upload_chunk(self, final: bool = False) -> bool:
            self.calls.append("end" if final else "part")
            return True

        def discard(self) -> None:
            self.calls.append("discard")

    class Store(MemoryFileSystem):
        protocol = "s3"

        def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
            return Upload(self, path, mode)

    held_by = [pyparq.ParquetWriter(FsspecSink(Store(), "/bucket/t.parquet", "s3://bucket/t.parquet"))]
    held_by[0].write(TABLE)

    def task() -> None:
        held_by.clear()
        gc.collect()
        assert Upload.calls == []

    joined(forked(task))
    held_by[0].close()
    assert Upload.calls == ["begin", "end"]


def test_a_child_that_is_forked_while_rows_are_made(tmp_path: Path) -> None:
    """By what the writer reads from: the child's error passes through the parent's frames."""
    path = tmp_path / "t.parquet"
    path.write_bytes(OLD)
    children = []
    rows = pa.table({"a": list(range(300_000))})

    def batches() -> Iterator[Any]:
        yield rows.to_batches()[0]
        children.append(os.fork())
        yield rows.to_batches()[0]

    data = pa.RecordBatchReader.from_batches(rows.schema, batches())
    mine, code = os.getpid(), 1
    try:
        pyparq.write_table(data, path, row_group_size=300_000)
    except DataError as error:
        code = 0 if "belongs to the process" in str(error) else 2  # the parent may have replaced the file by now
    finally:
        if os.getpid() != mine:
            os._exit(code)
    joined(children[0])
    assert pq.read_table(path).num_rows == 600_000


SCRIPT = """
import os, sys, time, pyparq
path, how, who = sys.argv[1:4]
rows = {"a": list(range(1000))}
def end():
    if how == "os._exit":
        sys.stderr.flush()
        os._exit(0)
    if how == "sys.exit":
        sys.exit(0)
    if how == "raise":
        raise RuntimeError("the child's own")
with pyparq.ParquetWriter(path, row_group_size=100) as writer:
    writer.write(rows)
    if who == "os.fork":
        child = os.fork()
        if not child:
            if how != "return":
                end()
        else:
            os.waitpid(child, 0)
    else:
        import multiprocessing
        process = multiprocessing.get_context("fork").Process(target=end)
        process.start()
        process.join()
    if who != "os.fork" or child:
        with open(path, "rb") as file:
            assert file.read() == b"what was there before"
        writer.write(rows)
"""


@pytest.mark.sweep(4)
@pytest.mark.parametrize("who", ["os.fork", "multiprocessing"])
@pytest.mark.parametrize("how", ["os._exit", "sys.exit", "raise", "return"])
def test_however_a_child_ends_the_file_is_the_parents(tmp_path: Path, how: str, who: str) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(OLD)
    args = [sys.executable, "-W", "always::ResourceWarning", "-c", textwrap.dedent(SCRIPT), str(path), how, who]
    done = subprocess.run(args, capture_output=True, text=True, timeout=120, check=True)
    assert pq.read_table(path).num_rows == 2000
    assert [file.name for file in tmp_path.iterdir()] == ["t.parquet"]
    # A child that leaves the block as if all were well is told otherwise. Nothing warns of the parent's writer.
    told = {"raise": "the child's own", "return": "belongs to the process" if who == "os.fork" else ""}.get(how, "")
    assert told in done.stderr
    assert "ResourceWarning" not in done.stderr
    assert "still open" not in done.stderr
    assert bool(told) == bool(done.stderr)


def test_a_pool_of_processes_reads_and_writes(tmp_path: Path) -> None:
    script = """
        import multiprocessing, os, sys, threading, pyparq
        folder = sys.argv[1]
        def work(k):
            path = f"{folder}/{k}.parquet"
            pyparq.write_table({"a": list(range(k, k + 5000))}, path)
            return pyparq.read_table(path).num_rows + shared.read().num_rows
        pyparq.write_table({"a": list(range(100_000))}, f"{folder}/shared.parquet", row_group_size=10_000)
        shared = pyparq.ParquetFile(f"{folder}/shared.parquet")
        stop = threading.Event()
        def read():
            while not stop.is_set():
                shared.read()
        reader = threading.Thread(target=read)
        reader.start()
        try:
            with multiprocessing.get_context("fork").Pool(3) as pool:
                assert pool.map_async(work, range(12)).get(100) == [105_000] * 12
        finally:
            stop.set()
            reader.join()
    """
    args = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(script), str(tmp_path)]
    done = subprocess.run(args, capture_output=True, text=True, timeout=200, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(list(tmp_path.iterdir())) == 13


FIRST_CALL = """
import os, signal, sys, threading, time
import pyparq

path, wait = sys.argv[1], float(sys.argv[2])
begun = threading.Event()

def read():
    begun.set()
    assert pyparq.read_table(path).num_rows == 1000

thread = threading.Thread(target=read)
thread.start()
begun.wait()
time.sleep(wait)
child = os.fork()
if child == 0:
    code = 1
    try:
        read()
        code = 0
    finally:
        os._exit(code)
signal.alarm(60)  # a child that hangs is left behind by a parent that dies
done, status = os.waitpid(child, os.WNOHANG)
end = time.monotonic() + 30
while not done and time.monotonic() < end:
    time.sleep(0.01)
    done, status = os.waitpid(child, os.WNOHANG)
if not done:
    os.kill(child, signal.SIGKILL)
    sys.exit("the child hangs")
thread.join()
sys.exit(os.waitstatus_to_exitcode(status))
"""


def first_calls(path: Path, count: int, at_a_time: int) -> None:
    """Fork in fresh processes while another thread makes the first call, a little later in each."""
    for first in range(0, count, at_a_time):
        waits = [k % 20 * 0.005 for k in range(first, min(first + at_a_time, count))]
        command = [sys.executable, "-W", "ignore", "-c", FIRST_CALL, str(path)]
        started = [subprocess.Popen([*command, str(wait)], stderr=subprocess.PIPE, text=True) for wait in waits]
        for process in started:
            said = process.communicate(timeout=120)[1]
            assert process.returncode == 0, said


@pytest.mark.slow
def test_a_fork_during_the_first_call_of_another_thread(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "a.parquet")
    first_calls(tmp_path / "a.parquet", 10, 5)


@pytest.mark.slow
def test_many_forks_during_the_first_call_of_another_thread(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "a.parquet")
    first_calls(tmp_path / "a.parquet", 200, 4)


SLOW_IMPORT = """
import threading
begun, done, seen = threading.Event(), threading.Event(), []
def wait():
    begun.set()
    seen.append(done.wait(15))
"""


@pytest.mark.parametrize("how", ["import", "load"])
def test_a_fork_does_not_wait_for_imports_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """Nor starts a thread. The import ends after the fork."""
    (tmp_path / "rich_waits.py").write_text(SLOW_IMPORT)
    (tmp_path / "rich").mkdir()
    (tmp_path / "rich" / "__init__.py").write_text("import rich_waits; rich_waits.wait()")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "rich"]:
        monkeypatch.delitem(sys.modules, name)
    waits = importlib.import_module("rich_waits")
    work = {"import": importlib.import_module, "load": lazy_import.load}[how]
    thread = threading.Thread(target=work, args=("rich",))
    thread.start()
    waits.begun.wait(60)
    started: list[threading.Thread] = []
    try:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", lambda thread: started.append(thread))
            child = forked(lambda: None)
    finally:
        waits.done.set()
        thread.join()
        for name in ("rich", "rich_waits"):
            sys.modules.pop(name, None)
        lazy_import.load.cache_clear()
    joined(child)
    assert waits.seen == [True]
    assert started == []


def test_a_fork_waits_for_a_part_of_pyparq_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    kept = SimpleNamespace(acquire=lambda timeout: waited.append(timeout))
    monkeypatch.setattr(lazy_import, "loading", kept)
    joined(forked(lambda: None))
    assert waited == [lazy_import.PATIENCE]
