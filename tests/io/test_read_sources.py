"""Where bytes may come from, threads, forks, and plans that run in another process."""

from __future__ import annotations

import io
import mmap
import os
import pathlib
import pickle
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import require
from hostile_files import sample_table

import pyparq
from pyparq import col
from pyparq.errors import CorruptFileError, OptionError, UnsupportedError
from pyparq.runtime.messages import requirement

FILTER = (col("sorted") > 300) & (col("small") < 3)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return sample_table(2000)


@pytest.fixture(scope="module")
def path(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("sources") / "a file.parquet"
    pq.write_table(
        table, target, row_group_size=500, data_page_size=1000, write_batch_size=50, write_page_index=True,
        write_page_checksum=True, bloom_filter_options={"id": {"ndv": 500}}, store_schema=False,
    )  # fmt: skip
    return target


@pytest.fixture(scope="module")
def expected(path: Path) -> pa.Table:
    whole = pq.read_table(path)
    keep = [(s > 300) and n is not None and n < 3 for s, n in zip(*(whole[c].to_pylist() for c in ("sorted", "small")))]
    return whole.filter(pa.array(keep))


def same(ours: pyparq.Table, theirs: pa.Table) -> bool:
    """Equal with NaN equal to itself."""
    return str(ours.to_arrow().to_pylist()) == str(theirs.to_pylist()) and ours.to_arrow().schema.equals(theirs.schema)


# ---- kinds of sources


class OwnPath(os.PathLike[str]):
    def __init__(self, path: Path) -> None:
        self.path = path

    def __fspath__(self) -> str:
        return str(self.path)


class OwnBytesPath:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __fspath__(self) -> bytes:
        return os.fsencode(self.path)


class Trickle(io.RawIOBase):
    """A raw file that gives at most 100 bytes per read, and returns nothing from ``seek``."""

    def __init__(self, data: bytes) -> None:
        self.inner = io.BytesIO(data)

    def read(self, size: int = -1) -> bytes:
        return self.inner.read(min(size, 100) if size >= 0 else 100)

    def seek(self, offset: int, whence: int = 0) -> None:  # type: ignore[override]
        self.inner.seek(offset, whence)

    def tell(self) -> int:
        return self.inner.tell()


def mapped(path: Path) -> mmap.mmap:
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


SOURCES: dict[str, Callable[[Path], Any]] = {
    "str": str,
    "Path": Path,
    "PurePath": pathlib.PurePosixPath,
    "PathLike": OwnPath,
    "PathLike of bytes": OwnBytesPath,
    "file URL": lambda p: p.as_uri(),
    "bytes": lambda p: p.read_bytes(),
    "bytearray": lambda p: bytearray(p.read_bytes()),
    "memoryview": lambda p: memoryview(b"x" + p.read_bytes())[1:],
    "numpy": lambda p: np.frombuffer(p.read_bytes(), np.uint8),
    "pyarrow buffer": lambda p: pa.py_buffer(p.read_bytes()),
    "mmap": mapped,
    "BytesIO": lambda p: io.BytesIO(p.read_bytes()),
    "open file": lambda p: open(p, "rb"),  # noqa: SIM115
    "raw file": lambda p: open(p, "rb", buffering=0),  # noqa: SIM115
    "trickle": lambda p: Trickle(p.read_bytes()),
    "pyarrow file": lambda p: pa.OSFile(str(p)),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_source(kind: str, path: Path, expected: pa.Table) -> None:
    source = SOURCES[kind](path)
    assert same(pyparq.read_table(source, filters=FILTER), expected)
    if hasattr(source, "read"):
        assert not source.closed, "the file object is the caller's"
        assert same(pyparq.read_table(source, filters=FILTER), expected)
        source.close()


def test_fsspec(path: Path, expected: pa.Table) -> None:
    """URLs of any file system: ranges go out together, and only those that are needed."""
    fsspec: Any = require("fsspec")
    memory = fsspec.filesystem("memory")
    with memory.open("/folder/a.parquet", "wb") as target:
        target.write(path.read_bytes())
    assert same(pyparq.read_table("memory://folder/a.parquet", filters=FILTER), expected)
    assert same(pyparq.read_table(memory.open("/folder/a.parquet"), filters=FILTER), expected)
    assert same(pyparq.read_table(f"local://{path}", filters=FILTER), expected)
    with pyparq.ParquetFile("memory://folder/a.parquet", coalesce_gap=0) as file:
        explained = file.scan(["id"], col("sorted") == 600).explain()
        assert explained.source == "memory://folder/a.parquet"
        assert explained.rows == 1
    with pytest.raises(FileNotFoundError):
        pyparq.read_table("memory://folder/b.parquet")
    with memory.open("/folder/cut.parquet", "wb") as target:
        target.write(path.read_bytes()[:-100])
    with pytest.raises(CorruptFileError, match="memory://folder/cut"):
        pyparq.read_table("memory://folder/cut.parquet")


def test_what_fsspec_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A protocol whose package is not there: fsspec knows which."""
    require("fsspec")
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    for use in (pyparq.read_table, lambda url: pyparq.write_table({"a": [1]}, url)):
        with pytest.raises(UnsupportedError, match=r"gs://bucket/x.*needs one more package: .*gcsfs"):
            use("gs://bucket/x.parquet")


@pytest.mark.sweep(2)
@pytest.mark.parametrize("missing", [["s3fs", "gcsfs", "adlfs"], ["fsspec"]])
def test_a_store_needs_obstore(missing: list[str]) -> None:
    """Where nothing is installed that opens it, the message names the extra to install. So does that of fsspec alone,
    which knows a package of its own. In a process of its own: fsspec keeps what it has loaded."""
    script = f"""
import sys
sys.modules.update(dict.fromkeys(["obstore", *{missing!r}]))
import pyparq
for protocol in ("s3", "gs", "abfss", "S3"):
    url = protocol + "://bucket/x.parquet"
    for use in (pyparq.read_table, lambda url: pyparq.write_table({{"a": [1]}}, url), pyparq.dataset):
        try:
            use(url)
        except pyparq.UnsupportedError as error:
            assert "needs obstore: pip install" in str(error) and "[obstore]" in str(error), error
        else:
            raise SystemExit(url)
if "fsspec" in {missing!r}:
    try:
        pyparq.read_table("sftp://host/x.parquet")
    except pyparq.UnsupportedError as error:
        assert "needs fsspec: pip install" in str(error) and "[fsspec]" in str(error), error
    else:
        raise SystemExit("sftp")
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_fsspec_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without fsspec, the error says what to install."""
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(UnsupportedError, match=re.escape(f"pip install {requirement('fsspec')}")):
        pyparq.read_table("memory://nowhere/a.parquet")


def test_bytes_path(path: Path, expected: pa.Table) -> None:
    """bytes are content, not a name; a file name as bytes goes through PathLike or os.fsdecode."""
    with pytest.raises(CorruptFileError, match="not a Parquet file"):
        pyparq.read_table(os.fsencode(path))


# ---- threads, forks, other processes


def test_many_threads_one_file(path: Path, table: pa.Table, expected: pa.Table) -> None:
    """One open file and one open file object, read from by eight threads at once."""
    for source in (path, io.BytesIO(path.read_bytes())):
        with pyparq.ParquetFile(source) as file, ThreadPoolExecutor(8) as pool:
            whole = [pool.submit(file.read, ["id", "word", "small"]) for _ in range(12)]
            parts = [pool.submit(file.read, None, FILTER) for _ in range(12)]
            assert all(same(f.result(), expected) for f in parts)
            wanted = table.select(["id", "word", "small"])
            assert all(f.result().to_arrow().equals(wanted) for f in whole)


def test_threads_or_none(path: Path) -> None:
    """Large enough for the pool to be used, and without it."""
    big = pa.table({c: np.random.default_rng(k).random(300_000) for k, c in enumerate("abcd")})
    data = pa.BufferOutputStream()
    pq.write_table(big, data, row_group_size=100_000)
    raw = data.getvalue().to_pybytes()
    assert len(raw) > 8 << 20
    for use in (True, False):
        assert pyparq.read_table(raw, use_threads=use).to_arrow().equals(big)


def test_a_plan_in_another_process(path: Path, expected: pa.Table, tmp_path: Path) -> None:
    """Plans are values: pickled, split, run elsewhere, put together again."""
    with pyparq.ParquetFile(path) as file:
        plan = file.scan(["sorted", "word", "id"], FILTER).plan()
    again = pickle.loads(pickle.dumps(plan))
    assert again.row_groups == plan.row_groups
    assert repr((again.header, again.row_groups)) == repr((plan.header, plan.row_groups))
    parts = plan.split()
    assert [p.row_groups[0].row_group for p in parts] == [g.row_group for g in plan.row_groups]
    code = (
        "import pickle, sys, pyparq\n"
        "plan = pickle.load(open(sys.argv[1], 'rb'))\n"
        "with pyparq.ParquetFile(plan.source) as file:\n"
        "    pickle.dump(file.execute(plan).to_pylist(), sys.stdout.buffer)\n"
    )
    rows: list[Any] = []
    for k, part in enumerate(parts[:2]):
        plan_file = tmp_path / f"{k}.plan"
        plan_file.write_bytes(pickle.dumps(part))
        done = subprocess.run([sys.executable, "-c", code, str(plan_file)], capture_output=True, check=True)
        rows += pickle.loads(done.stdout)
    with pyparq.ParquetFile(path) as file:
        for part in parts[2:]:
            rows += file.execute(part).to_pylist()
        assert rows == file.execute(plan).to_pylist()
    assert rows == expected.select(["sorted", "word", "id"]).to_pylist()


def test_a_plan_for_another_file(path: Path) -> None:
    with pyparq.ParquetFile(path) as file:
        plan = file.scan(filters=FILTER).plan()
    sink = io.BytesIO()
    pq.write_table(sample_table(300), sink)
    with pyparq.ParquetFile(sink.getvalue()) as other, pytest.raises(OptionError, match="another file"):
        other.execute(plan)


def test_errors_travel(path: Path) -> None:
    """Errors come out of another process as they are."""
    with pytest.raises(CorruptFileError) as caught:
        pyparq.read_table(path.read_bytes()[:-1])
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again), again.file) == (CorruptFileError, str(caught.value), "<bytes>")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork(path: Path) -> None:
    """A child of a process whose pool runs has no threads of its parent's: it makes its own."""
    big = pa.table({c: np.random.default_rng(k).random(300_000) for k, c in enumerate("abcd")})
    sink = io.BytesIO()
    pq.write_table(big, sink)
    with pyparq.ParquetFile(sink.getvalue()) as file, pyparq.ParquetFile(path) as local:
        assert file.read().num_rows == 300_000  # the pool has started
        child = os.fork()
        if child == 0:
            threading.Timer(30, os._exit, (3,)).start()
            try:
                right = file.read().num_rows == 300_000 and local.read(filters=FILTER).num_rows > 0
                os._exit(0 if right else 1)
            except BaseException:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert local.read().num_rows == 2000


def test_closed_files(path: Path) -> None:
    """Descriptors are let go of, also when opening fails."""
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        pyparq.read_table(path, columns=["id"])
        with pytest.raises(CorruptFileError):
            pyparq.read_table(__file__)
    assert len(os.listdir("/proc/self/fd")) <= before + 1
    with pyparq.ParquetFile(path) as file:
        pass
    with pytest.raises((OSError, ValueError)):
        file.read()


CLOSABLE: dict[str, Callable[[Path], Any]] = {
    "path": str, "bytes": lambda p: p.read_bytes(), "file object": lambda p: io.BytesIO(p.read_bytes()),
    "URL": lambda p: f"local://{p}",
}  # fmt: skip


@pytest.mark.parametrize("kind", CLOSABLE)
def test_reading_from_a_closed_file(kind: str, path: Path) -> None:
    """It says so, and of which file, wherever the bytes come from."""
    with pyparq.ParquetFile(CLOSABLE[kind](path), tail_size=8) as file:
        scan = file.scan(["id"])
    file.close()
    for read in (file.read, scan.to_table, lambda: file.read(filters=FILTER), lambda: list(file.iter_batches())):
        with pytest.raises(OptionError, match="the file is closed") as caught:
            read()
        assert caught.value.file == file._file.name


def test_a_file_object_that_its_owner_closed(path: Path) -> None:
    for source in (open(path, "rb"), io.BytesIO(path.read_bytes())):  # noqa: SIM115
        file = pyparq.ParquetFile(source, tail_size=8)
        source.close()
        with pytest.raises(OptionError, match="the file object is closed") as caught:
            file.read()
        assert caught.value.file == file._file.name


class HeldReads:
    """Reads that wait, once they have begun, for another thread."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()

    def wait(self) -> None:
        self.begun.set()
        assert self.go_on.wait(30)


@pytest.mark.parametrize("ranges", [[(0, 4)], [(4, 300_000)], [(0, 4), (100, 50)], [(4, 5 << 20), (0, 7 << 20)]])
def test_a_file_closed_while_it_is_read(
    ranges: list[tuple[int, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is being read is read to its end, from this file: its descriptor's number is not free for another one
    before. Afterwards nothing is left open."""
    from pyparq import kernels
    from pyparq.io.source import LocalFile

    (tmp_path / "right").write_bytes(b"right" * (3 << 20))
    (tmp_path / "wrong").write_bytes(b"wrong" * (3 << 20))
    held = HeldReads()

    def holding(real: Any) -> Any:
        def call(*args: Any) -> Any:
            held.wait()
            return real(*args)

        return call

    for module, name in ((os, "pread"), (os, "preadv"), (kernels, "pread_ranges")):
        monkeypatch.setattr(module, name, holding(getattr(module, name)))
    before = len(os.listdir("/proc/self/fd"))
    source = LocalFile(str(tmp_path / "right"))
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(source.read_ranges, ranges)
        assert held.begun.wait(30)
        source.close()
        others = [os.open(tmp_path / "wrong", os.O_RDONLY) for _ in range(4)]
        held.go_on.set()
        found = reading.result()
    for (offset, length), got in zip(ranges, found, strict=True):
        assert bytes(got) == (b"right" * (length // 5 + 2))[offset % 5 :][:length]
    with pytest.raises(OptionError, match="the file is closed"):
        source.read_ranges(ranges)
    for fd in others:
        os.close(fd)
    assert len(os.listdir("/proc/self/fd")) == before


def test_files_closed_while_threads_read(path: Path, table: pa.Table) -> None:
    """Right data, or the error that says why not; never another file's bytes, nor a bare OSError."""
    decoy = path.parent / "decoy"
    decoy.write_bytes(bytes(path.stat().st_size))
    outcomes = set()
    for _ in range(60):
        file = pyparq.ParquetFile(path)
        with ThreadPoolExecutor(3) as pool:
            reads = [pool.submit(file.read, ["id", "word"]) for _ in range(3)]
            file.close()
            others = [os.open(decoy, os.O_RDONLY) for _ in range(8)]
            for read in reads:
                error = read.exception()
                outcomes.add(type(error))
                if error is None:
                    assert read.result().to_arrow().equals(table.select(["id", "word"]))
                else:
                    assert "the file is closed" in str(error)
        for fd in others:
            os.close(fd)
    assert outcomes <= {type(None), OptionError}
    assert OptionError in outcomes
