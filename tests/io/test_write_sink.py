"""Targets: a local file is replaced only by a complete one, whatever happens; file objects and URLs too."""

from __future__ import annotations

import io
import os
import stat
import threading
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq.errors import DataError, OptionError
from pyparq.io import sink as sink_module
from pyparq.io.atomic_write import rename_new
from pyparq.io.remote_sinks import FsspecSink
from pyparq.io.sink import LocalSink, open_sink

TABLE = pa.table({"a": list(range(1000)), "s": [f"text {k}" for k in range(1000)]})
OLD = b"what was there before"


def write_and_fail(where: Any, error: type[BaseException]) -> None:
    """Write a row group, then fail within the writer's block."""
    with pyparq.ParquetWriter(where) as writer:
        writer.write(TABLE, row_group_size=100)
        raise error


def assert_only(folder: Path, *names: str) -> None:
    assert sorted(p.name for p in folder.iterdir()) == sorted(names)


def test_a_new_file_and_a_replaced_one(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    for table in (TABLE, TABLE.slice(10, 5)):
        pyparq.write_table(table, path)
        assert pq.read_table(path).equals(table)
        assert_only(tmp_path, "t.parquet")


def test_the_target_does_not_change_before_close(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(OLD)
    with pyparq.ParquetWriter(path) as writer:
        writer.write(TABLE, row_group_size=100)
        assert path.read_bytes() == OLD
    assert pq.read_table(path).equals(TABLE)
    assert_only(tmp_path, "t.parquet")


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_an_exception_leaves_what_was_there(tmp_path: Path, kind: type[BaseException]) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(OLD)
    with pytest.raises(kind):
        write_and_fail(path, kind)
    assert path.read_bytes() == OLD
    assert_only(tmp_path, "t.parquet")


def test_a_failing_stream_leaves_what_was_there(tmp_path: Path) -> None:
    def batches() -> Any:
        yield TABLE.to_batches()[0]
        raise OSError("the producer failed")

    path = tmp_path / "t.parquet"
    path.write_bytes(OLD)
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, batches())
    with pytest.raises(DataError, match="the producer failed"):
        pyparq.write_table(reader, path, row_group_size=100)
    assert path.read_bytes() == OLD
    assert_only(tmp_path, "t.parquet")


def test_a_failed_write_makes_close_refuse(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    schema = pyparq.schema({"a": "int64", "s": "string"})
    writer = pyparq.ParquetWriter(path, schema, row_group_size=10)
    with pytest.raises(DataError, match=r"row 5 is null.*column a"):
        writer.write({"a": [0, 1, 2, 3, 4, None, 6, 7, 8, 9], "s": ["x"] * 10})
    with pytest.raises(DataError, match="an earlier write failed"):
        writer.write({"a": [1], "s": ["x"]})
    with pytest.raises(DataError, match="an earlier write failed"):
        writer.close()
    assert_only(tmp_path)


def test_data_of_the_wrong_schema_leave_the_writer_usable(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    with pyparq.ParquetWriter(path) as writer:
        writer.write(TABLE)
        with pytest.raises(DataError, match="'b'"):
            writer.write({"a": [1], "b": ["x"]})
        writer.write({"a": [1], "s": ["x"]})
    assert pq.read_table(path).num_rows == 1001


def test_closing_and_aborting_twice(tmp_path: Path) -> None:
    writer = pyparq.ParquetWriter(tmp_path / "t.parquet")
    writer.write(TABLE)
    writer.close()
    writer.close()
    writer.abort()
    assert pq.read_table(tmp_path / "t.parquet").equals(TABLE)
    with pytest.raises(DataError, match="closed"):
        writer.write(TABLE)
    with pytest.raises(DataError, match="closed"):
        writer.add_key_value_metadata({"a": "b"})


def test_wrong_options_create_nothing(tmp_path: Path) -> None:
    with pytest.raises(OptionError):
        pyparq.write_table(TABLE, tmp_path / "t.parquet", compression="sappy")
    with pytest.raises(pyparq.errors.ColumnNotFoundError, match=r"did you mean 's'|the columns are"):
        pyparq.write_table(TABLE, tmp_path / "t.parquet", bloom_filters=["ss"])
    assert_only(tmp_path)


def test_a_folder_or_a_missing_one(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        pyparq.write_table(TABLE, tmp_path)
    with pytest.raises(FileNotFoundError):
        pyparq.write_table(TABLE, tmp_path / "nowhere" / "t.parquet")


@pytest.mark.parametrize("name", ["new/", "new//", "new/.", "old/..", "old/", "."])
def test_a_name_that_can_only_be_a_folders(tmp_path: Path, name: str) -> None:
    (tmp_path / "old").mkdir()
    with pytest.raises(IsADirectoryError):
        pyparq.write_table(TABLE, f"{tmp_path}/{name}")
    assert_only(tmp_path, "old")


def test_names_that_no_file_has(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(OLD)
    with pytest.raises(NotADirectoryError):
        pyparq.write_table(TABLE, f"{tmp_path}/t.parquet/")
    for name in ("", "file://"):
        with pytest.raises(FileNotFoundError):
            pyparq.write_table(TABLE, name)
    assert (tmp_path / "t.parquet").read_bytes() == OLD
    assert_only(tmp_path, "t.parquet")


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="needs /dev/null")
def test_a_device_is_written_to_directly() -> None:
    pyparq.write_table(TABLE, "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_fsync_comes_before_the_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(sink_module.os, "fsync", lambda fd: (calls.append("fsync"), fsync(fd)))
    monkeypatch.setattr(sink_module.os, "replace", lambda a, b: (calls.append("replace"), replace(a, b)))
    monkeypatch.setattr("pyparq.io.atomic_write.rename_new", lambda a, b: (calls.append("new"), rename_new(a, b))[1])
    pyparq.write_table(TABLE, tmp_path / "t.parquet")
    assert calls == ["new"]
    calls.clear()
    pyparq.write_table(TABLE, tmp_path / "u.parquet", fsync=True)
    assert calls[:2] == ["fsync", "new"]
    calls.clear()
    pyparq.write_table(TABLE, tmp_path / "t.parquet", fsync=True)
    assert calls[:2] == ["fsync", "replace"]


def test_partial_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink_module.os, "writev", lambda fd, views: os.write(fd, bytes(views[0])[:70_001]))
    target = LocalSink(str(tmp_path / "x"))
    parts = [np.random.default_rng(1).bytes(n) for n in (10, 40_000, 300_000, 0, 5, 200_000)]
    for start in range(0, 6, 2):
        target.write(parts[start : start + 2])
        assert target.position == sum(map(len, parts[: start + 2]))
    target.commit()
    assert (tmp_path / "x").read_bytes() == b"".join(parts)


class Dribble(io.RawIOBase):
    """A raw file that takes at most 1000 bytes at a time."""

    def __init__(self) -> None:
        self.taken = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.taken += bytes(data[:1000])
        return min(len(data), 1000)


def test_file_objects(tmp_path: Path) -> None:
    memory = io.BytesIO()
    pyparq.write_table(TABLE, memory)
    assert not memory.closed
    assert pq.read_table(memory).equals(TABLE)
    with open(tmp_path / "t.parquet", "wb") as file:
        pyparq.write_table(TABLE, file)
    assert (tmp_path / "t.parquet").read_bytes() == memory.getvalue()
    raw = Dribble()
    pyparq.write_table(TABLE, raw)
    assert bytes(raw.taken) == memory.getvalue()


class Takes:
    """A file object that takes what ``takes`` says of so many bytes, and returns what ``returns`` says of it."""

    def __init__(self, takes: Any, returns: Any) -> None:
        self.taken = bytearray()
        self._takes, self._returns = takes, returns

    def write(self, data: Any) -> Any:
        taken = self._takes(len(data))
        self.taken += bytes(data[:taken])
        return self._returns(taken)


class Tells(Takes):
    """One that also says where it stands."""

    def tell(self) -> int:
        return len(self.taken)


class Buffers(Tells):
    """One whose position is that of what has left its buffer."""

    left = 0

    def flush(self) -> None:
        self.left = len(self.taken)

    def tell(self) -> int:
        return self.left


class RawTakes(Takes, io.RawIOBase):
    """A raw file, which returns ``None`` where it would have to wait."""


def all_of(size: int) -> int:
    return size


def some_of(size: int) -> int:
    return min(size, 7)


def none_of(size: int) -> int:
    return 0


def nothing(taken: int) -> None:
    return None


@pytest.mark.parametrize(
    "file",
    [
        Takes(all_of, all_of),
        Takes(some_of, all_of),
        Takes(all_of, np.int64),
        Takes(all_of, nothing),
        Tells(all_of, nothing),
        Tells(some_of, nothing),
        Tells(some_of, none_of),
        Buffers(all_of, nothing),
        Buffers(some_of, nothing),
    ],
)
def test_what_a_file_object_takes_is_written_once(file: Any) -> None:
    """Short writes go on; who returns nothing is asked where it stands."""
    want = io.BytesIO()
    pyparq.write_table(TABLE, want)
    pyparq.write_table(TABLE, file)
    assert bytes(file.taken) == want.getvalue()


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (Takes(none_of, all_of), "accepted none of"),
        (Takes(all_of, none_of), "accepted none of"),
        (Tells(none_of, nothing), "accepted none of"),
        (Tells(none_of, all_of), "accepted none of"),
        (Buffers(none_of, nothing), "accepted none of"),
        (RawTakes(none_of, nothing), "non-blocking"),
        (Takes(all_of, lambda taken: taken + 1), r"write\(\) returned \d+ for \d+ bytes"),
        (Takes(all_of, lambda taken: -1), r"returned -1 for"),
        (Takes(all_of, lambda taken: "4"), "returned '4' instead of a number"),
        (Takes(all_of, float), r"returned \d+.0 instead of a number"),
    ],
)
def test_a_file_object_that_takes_nothing_or_says_what_cannot_be(file: Any, message: str) -> None:
    with pytest.raises(OSError, match=message):
        pyparq.write_table(TABLE, file)
    writer = None
    with pytest.raises(OSError, match=message):
        writer = pyparq.ParquetWriter(file, pyparq.schema({"a": "int64"}))
    assert writer is None


@pytest.mark.skipif(not hasattr(os, "set_blocking"), reason="needs pipes that do not block")
@pytest.mark.parametrize("kind", ["raw", "buffered", "wrapped"])
def test_a_pipe_that_does_not_block(kind: str) -> None:
    """It is full before the file is complete, and nothing waits for it."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with open(writing, "wb", -1 if kind == "buffered" else 0) as file:

        class Wrapper:
            def write(self, data: Any) -> None:
                file.write(data)

            def fileno(self) -> int:
                return file.fileno()

        with pytest.raises(BlockingIOError):
            pyparq.write_table({"a": np.random.default_rng(1).random(50_000)}, Wrapper() if kind == "wrapped" else file)
        os.close(reading)
        if kind == "buffered":
            with pytest.raises(BrokenPipeError):
                file.close()


def test_a_pipe_that_blocks_takes_everything(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    table, found = pa.table({"a": np.random.default_rng(1).integers(0, 1 << 60, 100_000)}), io.BytesIO()

    def read() -> None:
        with open(reading, "rb") as file:
            found.write(file.read())

    thread = threading.Thread(target=read)
    thread.start()
    with open(writing, "wb", 0) as file:
        pyparq.write_table(table, file)
    thread.join(60)
    assert pq.read_table(found).equals(table)


@pytest.mark.parametrize(("takes", "returns"), [(some_of, all_of), (some_of, nothing), (all_of, nothing)])
def test_files_of_fsspec_that_take_a_part(monkeypatch: pytest.MonkeyPatch, takes: Any, returns: Any) -> None:
    from fsspec.implementations.memory import MemoryFile

    write = MemoryFile.write
    monkeypatch.setattr(MemoryFile, "write", lambda self, d: returns(write(self, d[: takes(len(d))])), raising=False)
    pyparq.write_table(TABLE, "memory://takes/t.parquet")
    assert pq.read_table(io.BytesIO(fsspec.filesystem("memory").cat("/takes/t.parquet"))).equals(TABLE)


@pytest.mark.parametrize("returns", [none_of, nothing, lambda taken: taken + 1])
def test_files_of_fsspec_that_take_nothing(monkeypatch: pytest.MonkeyPatch, returns: Any) -> None:
    from fsspec.implementations.memory import MemoryFile

    monkeypatch.setattr(MemoryFile, "write", lambda self, data: returns(len(data)), raising=False)
    with pytest.raises(OSError, match=r"returned|accepted none"):
        pyparq.write_table(TABLE, "memory://refuses/t.parquet")
    assert not fsspec.filesystem("memory").exists("/refuses/t.parquet")


def test_file_objects_that_will_not_do(tmp_path: Path) -> None:
    with open(tmp_path / "t.txt", "w") as file, pytest.raises(OptionError, match="text mode"):
        pyparq.write_table(TABLE, file)
    with pytest.raises(OptionError, match="text mode"):
        pyparq.write_table(TABLE, io.StringIO())
    with pytest.raises(OptionError, match="cannot write to int"):
        open_sink(7)


def test_urls(tmp_path: Path) -> None:
    pyparq.write_table(TABLE, f"file://{tmp_path}/a%20b.parquet")
    assert pq.read_table(tmp_path / "a b.parquet").equals(TABLE)
    fs = fsspec.filesystem("memory")
    pyparq.write_table(TABLE, "memory://sink/t.parquet")
    assert pq.read_table(io.BytesIO(fs.cat("/sink/t.parquet"))).equals(TABLE)
    with pytest.raises(ZeroDivisionError):
        write_and_fail("memory://sink/t.parquet", ZeroDivisionError)
    assert pq.read_table(io.BytesIO(fs.cat("/sink/t.parquet"))).equals(TABLE)
    assert [p.split("/")[-1] for p in fs.ls("/sink", detail=False)] == ["t.parquet"]


def test_an_upload_is_discarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Object stores, played by a file system that counts: written under the final name, completed only by close."""
    from fsspec.implementations.memory import MemoryFileSystem
    from fsspec.spec import AbstractBufferedFile

    class Upload(AbstractBufferedFile):
        done: ClassVar[list[bytes]] = []
        discarded = 0

        def _initiate_upload(self) -> None:
            self.sent = b""

        def _upload_chunk(self, final: bool = False) -> bool:
            self.sent += self.buffer.getvalue()
            if final:
                Upload.done.append(self.sent)
            return True

        def discard(self) -> None:
            Upload.discarded += 1

    class Store(MemoryFileSystem):
        protocol = "s3"

        def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
            return Upload(self, path, mode)

    sink = FsspecSink(Store(), "/bucket/t.parquet", "s3://bucket/t.parquet")
    with pytest.raises(ZeroDivisionError):
        write_and_fail(sink, ZeroDivisionError)
    assert (Upload.done, Upload.discarded) == ([], 1)
    pyparq.write_table(TABLE, FsspecSink(Store(), "/bucket/t.parquet", "s3://bucket/t.parquet"))
    assert pq.read_table(io.BytesIO(Upload.done[0])).equals(TABLE)


@pytest.mark.parametrize("write", [pq.write_table, pyparq.write_table], ids=["pyarrow", "pyparq"])
def test_file_objects_are_written_where_they_stand(write: Any) -> None:
    """Offsets count from there, as pyarrow's do: a file within a file."""
    outer = io.BytesIO()
    outer.write(b"before")
    write(TABLE, outer)
    data = outer.getvalue()
    assert data.startswith(b"beforePAR1")
    for read in (lambda d: pq.read_table(io.BytesIO(d)), lambda d: pyparq.read_table(d).to_arrow()):
        assert read(data[6:]).equals(TABLE)
