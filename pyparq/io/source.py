"""Where bytes come from: local paths, bytes, seekable file objects, fsspec URLs; one interface.

A source reads ranges and nothing else. Reads are exact: a range that the file cannot fill raises
:class:`CorruptFileError`. Local files use positioned reads, so threads share one descriptor without a lock. Files are
not memory-mapped: a file truncated under a mapping would kill the process.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import threading
from collections.abc import Sequence
from copy import copy
from typing import Any, Protocol, cast

import numpy as np

from pyparq import forks, kernels
from pyparq.buffers import SMALLEST, pool
from pyparq.errors import CorruptFileError, OptionError
from pyparq.io.url import file_system, local_path

Range = tuple[int, int]
"""(offset, length) in bytes."""


class Source(Protocol):
    """Random access to the bytes of one file."""

    name: str
    size: int
    is_local: bool
    """Requests cost microseconds, not milliseconds."""

    def read_ranges(self, ranges: Sequence[Range]) -> list[memoryview]:
        """The bytes of each range; :class:`CorruptFileError` where the file ends before a range does."""

    def close(self) -> None: ...


_OPEN_FLAGS = sum(getattr(os, name, 0) for name in ("O_BINARY", "O_CLOEXEC", "O_NONBLOCK"))
"""Not to block matters for pipes alone, which are refused rather than waited for."""


TOGETHER = 8 << 20
"""Bytes of separate ranges that are read into one buffer, which lives as long as any of them."""


class LocalFile:
    """A file on a local file system, by positioned reads."""

    is_local = True

    def __init__(self, path: str) -> None:
        self.name = path
        self._fd = os.open(path, os.O_RDONLY | _OPEN_FLAGS)
        try:
            status = os.fstat(self._fd)
            if stat.S_ISDIR(status.st_mode):
                reason = f"{os.strerror(errno.EISDIR)} (a source is one file: read those of a folder one by one)"
                raise IsADirectoryError(errno.EISDIR, reason, path)
            if not (stat.S_ISREG(status.st_mode) or stat.S_ISBLK(status.st_mode)):
                raise OptionError("cannot read from a pipe, socket or terminal: the file must be seekable", file=path)
            self.size = status.st_size
        except BaseException:
            self.close()
            raise

    def read_ranges(self, ranges: Sequence[Range]) -> list[memoryview]:
        found: list[memoryview] = []
        while len(found) < len(ranges):
            first, last, size = len(found), len(found), 0
            while last < len(ranges) and size + ranges[last][1] <= TOGETHER:
                size += ranges[last][1]
                last += 1
            if last - first > 1 and self._fd >= 0 and kernels.pread_ranges is not None:
                found += self._read_many(ranges[first:last], size)
            else:
                found.append(self._read(*ranges[first]))
        return found

    def _read_many(self, ranges: Sequence[Range], size: int) -> list[memoryview]:
        """Ranges of ``size`` bytes in all, by one call: threads that read page by page often wait for each other."""
        assert kernels.pread_ranges is not None
        buffer = memoryview(pool.take(size).data)
        offsets, lengths = np.array(ranges, np.int64).T.copy()
        if kernels.pread_ranges(self._fd, offsets, lengths, buffer) < size:
            return [self._read(offset, length) for offset, length in ranges]  # one of them says what is missing
        ends = np.cumsum(lengths).tolist()
        return [buffer[end - length : end] for end, (_, length) in zip(ends, ranges, strict=True)]

    def _read(self, offset: int, length: int) -> memoryview:
        if self._fd < 0:
            raise OptionError("the file is closed", file=self.name)
        if length < SMALLEST or not hasattr(os, "preadv"):
            data = os.pread(self._fd, length, offset)
            if len(data) == length:
                return memoryview(data)
        buffer, got = memoryview(pool.take(length).data), 0
        while got < length:  # one call returns at most 2 GiB on Linux, and may return less
            count = self._read_into(buffer[got:], offset + got)
            if count == 0:
                break
            got += count
        return _exactly(buffer[:got], offset, length, self.name)

    def _read_into(self, buffer: memoryview, offset: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._fd, [buffer], offset)
        data = os.pread(self._fd, len(buffer), offset)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        if getattr(self, "_fd", -1) >= 0:
            self.close()


class BytesSource:
    """Bytes in memory; ranges are views, not copies."""

    is_local = True

    def __init__(self, data: Any, name: str = "<bytes>") -> None:
        self.name = name
        self._view = memoryview(data).cast("B")
        self.size = len(self._view)

    def read_ranges(self, ranges: Sequence[Range]) -> list[memoryview]:
        return [_exactly(self._view[o : o + n], o, n, self.name) for o, n in ranges]

    def close(self) -> None:
        return None


class FileObject:
    """Any seekable binary file object, one read at a time. It stays open: it is the caller's."""

    is_local = True

    def __init__(self, file: Any) -> None:
        self._file = file
        self._shares_position = False
        self._lock = threading.Lock()
        forks.watch(self)
        name = getattr(file, "name", None)
        self.name = name if isinstance(name, str) else f"<{type(file).__name__}>"
        if isinstance(file, io.TextIOBase):
            raise OptionError("the file object is in text mode: open it with open(path, 'rb')", file=self.name)
        if not getattr(file, "closed", False) and hasattr(file, "readable") and not file.readable():
            raise OptionError(
                "the file object is open for writing alone: open it with open(path, 'rb')", file=self.name
            )
        with self._lock:
            try:
                file.seek(0, io.SEEK_END)
                self.size = int(file.tell())
            except (OSError, ValueError) as error:  # a pipe, or a closed file
                raise OptionError(f"the file object cannot seek: {error}", file=self.name) from error

    def _after_fork(self) -> None:
        """An open file has one position for parent and child, who would each read where the other has gone: the child
        reads plain files without it. Of other file objects nothing is known."""
        self._lock = threading.Lock()
        self._shares_position = _is_plain(self._file)

    def read_ranges(self, ranges: Sequence[Range]) -> list[memoryview]:
        with self._lock:
            return [self._read(offset, length) for offset, length in ranges]

    def _read(self, offset: int, length: int) -> memoryview:
        if self._shares_position:
            return self._read_in_place(offset, length)
        self._file.seek(offset)
        data = self._file.read(length)
        if isinstance(data, str):
            raise OptionError("the file object gives text: open it with open(path, 'rb')", file=self.name)
        while data is not None and 0 < len(data) < length:  # raw files may return less than asked
            more = self._file.read(length - len(data))
            if not more:
                break
            data = bytes(data) + bytes(more)
        return _exactly(data or b"", offset, length, self.name)

    def _read_in_place(self, offset: int, length: int) -> memoryview:
        fd, data = self._file.fileno(), b""
        while len(data) < length:
            more = os.pread(fd, length - len(data), offset + len(data))
            if not more:
                break
            data += more
        return _exactly(data, offset, length, self.name)

    def close(self) -> None:
        return None


def _is_plain(file: Any) -> bool:
    """Is it a file on disk as ``open(path, "rb")`` gives it, so that its bytes are those of its descriptor?"""
    raw = file.raw if type(file) is io.BufferedReader else file
    try:
        return type(raw) is io.FileIO and stat.S_ISREG(os.fstat(raw.fileno()).st_mode)
    except (OSError, ValueError):  # closed
        return False


class FsspecFile:
    """A file on an fsspec file system: ranges of one step go out as one ``cat_ranges``."""

    is_local = False

    def __init__(self, fs: Any, path: str, name: str) -> None:
        self._fs = fs
        self._path = path
        self.name = name
        self.size = int(fs.size(path))
        self._inherited = False
        forks.watch(self)

    def _after_fork(self) -> None:
        self._inherited = True

    def read_ranges(self, ranges: Sequence[Range]) -> list[memoryview]:
        if self._inherited:  # its connections, and the thread that serves them, are the parent's
            self._fs, self._inherited = copy(self._fs), False
        if len(ranges) == 1:
            (offset, length) = ranges[0]
            parts = [self._fs.cat_file(self._path, start=offset, end=offset + length)]
        else:
            starts = [offset for offset, _ in ranges]
            ends = [offset + length for offset, length in ranges]
            parts = self._fs.cat_ranges([self._path] * len(ranges), starts, ends, on_error="raise")
        return [_exactly(p, o, n, self.name) for p, (o, n) in zip(parts, ranges, strict=True)]

    def close(self) -> None:
        return None


def _exactly(data: Any, offset: int, length: int, name: str) -> memoryview:
    if len(data) != length:
        raise CorruptFileError(f"the file ends within the range of {length} bytes at offset {offset}", file=name)
    return memoryview(data)


def open_source(where: Any) -> Source:
    """A source for a path, ``os.PathLike``, URL, bytes-like object, seekable binary file object, or a source.

    Raises ``FileNotFoundError`` and its kin as the operating system does, :class:`OptionError` for anything else.
    """
    if isinstance(where, (str, os.PathLike)):
        path = os.fspath(where)
        if not isinstance(path, str):
            path = os.fsdecode(path)
        return _open_url(path) if "://" in path else LocalFile(path)
    if isinstance(where, (bytes, bytearray, memoryview)):
        return BytesSource(where)
    if hasattr(where, "read_ranges"):
        return cast(Source, where)
    if hasattr(where, "read") and hasattr(where, "seek"):
        return FileObject(where)
    try:
        return BytesSource(where)
    except TypeError:
        one = " (one source at a time)" if isinstance(where, (list, tuple, set)) else ""
        raise OptionError(
            f"cannot read from {type(where).__name__}{one}: give a path, URL, bytes or a seekable binary file object"
        ) from None


def _open_url(url: str) -> Source:
    path = local_path(url)
    if path is not None:
        return LocalFile(path)
    return FsspecFile(*file_system(url, "reading", "read from"), url)
