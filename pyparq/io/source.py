"""Sources of bytes: local paths, bytes, seekable file objects and fsspec URLs behind one interface.

A source reads ranges and nothing else. Reads are exact: a range that the file cannot fill raises
:class:`CorruptFileError`. Local files use positioned reads, so threads share one descriptor without a lock. Files are
not memory-mapped: a file truncated under a mapping would kill the process.
"""

from __future__ import annotations

import errno
import io
import os
import re
import stat
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import numpy as np

from pyparq import kernels
from pyparq.errors import CorruptFileError, OptionError
from pyparq.io.byte_ranges import Range, Source, read_at, read_into
from pyparq.io.file_objects import check_opened
from pyparq.io.file_versions import Stated, Unchanged
from pyparq.io.folders import MAGIC
from pyparq.io.http import is_s3
from pyparq.io.kept_files import kept_file
from pyparq.io.locations import file_system
from pyparq.io.object_file import ObjectFile
from pyparq.io.remote_file import RemoteFile
from pyparq.io.retry import Retry
from pyparq.io.table_formats import format_of
from pyparq.io.url import (
    check_storage_options,
    is_chain,
    is_local_system,
    is_url,
    local_path,
    name_on,
    open_file_parts,
    plain_errors,
    shown,
)
from pyparq.kernels.buffers import SMALLEST
from pyparq.options import ReadOptions
from pyparq.runtime import fork_safety
from pyparq.runtime.threads import check_stopped, cpu_count

_OPEN_FLAGS = sum(getattr(os, name, 0) for name in ("O_BINARY", "O_CLOEXEC", "O_NONBLOCK"))
"""Non-blocking mode matters for pipes only. They are refused, and opening one must not wait."""

TOGETHER = 8 << 20
"""Maximum number of bytes of separate ranges that are read into one buffer. The buffer lives as long as any of them."""
LARGEST_CALL = 16 << 20
"""Maximum number of bytes per system call. Between two calls, Ctrl-C is noticed."""
REMOTE_TAIL = 128 << 10
"""Bytes of the end of a remote file that are read with its footer."""
SHARED = 4 << 20
"""From this many bytes of one range on, several threads read it: data in the page cache is copied as fast as they
can."""


class LocalFile:
    """A file on a local file system, by positioned reads."""

    is_local = True
    use_threads = False
    """Whether several share a read of much."""

    def __init__(self, path: str) -> None:
        self.name = path
        # A running read holds this object: the number of a closed descriptor may be another file's at once.
        self._open: kernels.HeldFile | None = kernels.HeldFile(os.open(path, os.O_RDONLY | _OPEN_FLAGS))
        try:
            status = os.fstat(self._open.number)
            if stat.S_ISDIR(status.st_mode):
                reason = f"{os.strerror(errno.EISDIR)} (use pyparq.dataset or read_table to read the files of a folder)"
                raise IsADirectoryError(errno.EISDIR, reason, path)
            if not (stat.S_ISREG(status.st_mode) or stat.S_ISBLK(status.st_mode)):
                raise OptionError("cannot read from a pipe, socket or terminal: the file must be seekable", file=path)
            self.size = status.st_size
        except BaseException:
            self.close()
            raise

    def read_ranges(self, ranges: Sequence[Range]) -> list[memoryview]:
        file = self._open  # stays open for this call, even if another thread closes it
        if file is None:
            raise _closed(self.name)
        found: list[memoryview] = []
        while len(found) < len(ranges):
            first, last, size = len(found), len(found), 0
            while last < len(ranges) and size + ranges[last][1] <= TOGETHER:
                size += ranges[last][1]
                last += 1
            if last - first > 1 and kernels.pread_ranges is not None:
                found += self._read_many(file.number, ranges[first:last], size)
            else:
                found.append(self._read(file.number, *ranges[first]))
        return found

    def fileno(self) -> int:
        """The number of the descriptor, for as long as this is open."""
        if self._open is None:
            raise _closed(self.name)
        return self._open.number

    def _read_many(self, fd: int, ranges: Sequence[Range], size: int) -> list[memoryview]:
        """Ranges of ``size`` bytes in all, by one call: threads that read page by page often wait for each other."""
        assert kernels.pread_ranges is not None
        buffer = memoryview(kernels.take_memory(size).data)
        offsets, lengths = np.array(ranges, np.int64).T.copy()
        if kernels.pread_ranges(fd, offsets, lengths, buffer, cpu_count() if self.use_threads else 1) < size:
            return [self._read(fd, offset, length) for offset, length in ranges]  # one of them raises the error
        ends = np.cumsum(lengths).tolist()
        return [buffer[end - length : end] for end, (_, length) in zip(ends, ranges, strict=True)]

    def _read(self, fd: int, offset: int, length: int) -> memoryview:
        if length < SMALLEST or not hasattr(os, "preadv"):
            data = os.pread(fd, length, offset) if hasattr(os, "pread") else read_at(fd, length, offset)
            if len(data) == length:
                return memoryview(data)
        buffer, got = memoryview(kernels.take_memory(length).data), 0
        threads = cpu_count() if self.use_threads and length >= SHARED else 1
        if threads > 1 and kernels.pread_ranges is not None:
            place, size = np.array([offset], np.int64), np.array([length], np.int64)
            if kernels.pread_ranges(fd, place, size, buffer, threads) == length:
                return buffer
        while got < length:
            check_stopped()
            count = read_into(fd, buffer[got : got + LARGEST_CALL], offset + got)
            if count == 0:
                break
            got += count
        return _exactly(buffer[:got], offset, length, self.name)

    def close(self) -> None:
        self._open = None


class BytesSource:
    """Bytes in memory; ranges are views, not copies."""

    is_local = True

    def __init__(self, data: Any, name: str = "<bytes>") -> None:
        self.name = name
        self._view: memoryview | None = memoryview(data).cast("B")
        self.size = len(self._view)

    def read_ranges(self, ranges: Sequence[Range]) -> list[memoryview]:
        view = self._view
        if view is None:
            raise _closed(self.name)
        return [_exactly(view[o : o + n], o, n, self.name) for o, n in ranges]

    def close(self) -> None:
        self._view = None


class FileObject:
    """Any seekable binary file object, one read at a time. It stays open: it is the caller's."""

    is_local = True

    def __init__(self, file: Any) -> None:
        self._file = file
        self._closed = False
        self._shares_position = False
        self._lock = threading.Lock()
        fork_safety.watch(self)
        name = getattr(file, "name", None)
        self.name = name if isinstance(name, str) else f"<{type(file).__name__}>"
        check_opened(file, self.name, to_read=True)
        with self._lock:
            try:
                file.seek(0, io.SEEK_END)
                self.size = int(file.tell())
            except (OSError, ValueError) as error:  # a pipe, or a closed file
                raise OptionError(f"the file object cannot seek: {error}", file=self.name) from error
        self._unchanged = _watched(file)

    def _after_fork(self) -> None:
        """Parent and child share one position of an open file, so each would read at the other's place. The child reads
        plain files without using the position. For other file objects this is not known."""
        self._lock = threading.Lock()
        self._shares_position = _is_plain(self._file)

    def read_ranges(self, ranges: Sequence[Range]) -> list[memoryview]:
        with self._lock, self._plain_errors():
            if self._closed:
                raise _closed(self.name)
            found = [self._read(offset, length) for offset, length in ranges]
        if self._unchanged is not None:
            self._unchanged.check(self._file.fs, self.name, Retry())
        return found

    def begin(self) -> None:
        """Begin a new question: the file behind the object may have been replaced since the last one."""
        if self._unchanged is not None:
            self._unchanged.begin()

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        fs, path = getattr(self._file, "fs", None), getattr(self._file, "path", "")
        try:
            if fs is None:
                yield
                return
            with plain_errors(self.name, str(path), getattr(fs, "storage_options", None)):
                yield
        except Exception as error:
            if getattr(self._file, "closed", False) is True:
                raise OptionError("the file object is closed", file=self.name) from error
            raise

    def _read(self, offset: int, length: int) -> memoryview:
        if self._shares_position:
            return self._read_in_place(offset, length)
        self._file.seek(offset)
        data = self._file.read(length)
        if isinstance(data, str):
            raise OptionError("the file object returns text: open it with open(path, 'rb')", file=self.name)
        while data is not None and 0 < len(data) < length:  # raw files may return less than asked
            more = self._file.read(length - len(data))
            if not more:
                break
            data = bytes(data) + bytes(more)
        return _exactly(data or b"", offset, length, self.name)

    def _read_in_place(self, offset: int, length: int) -> memoryview:
        fd, data = self._file.fileno(), b""
        while len(data) < length:
            more = read_at(fd, length - len(data), offset + len(data))
            if not more:
                break
            data += more
        return _exactly(data, offset, length, self.name)

    def close(self) -> None:
        self._closed = True


class OpenedFile(RemoteFile):
    """A file that a file system of fsspec has opened. It is read through the file system: the file object itself
    reads megabytes ahead for each small read. It stays open: it is the caller's."""

    def __init__(self, file: Any) -> None:
        details = getattr(file, "details", None)
        listed = Stated.of(details) if isinstance(details, Mapping) else None
        super().__init__(file.fs, file.path, name_on(file.fs, file.path), listed)
        check_opened(file, self.name, to_read=True)
        self._file = file

    def _check_usable(self) -> None:
        if self._file.closed:
            raise OptionError("the file object is closed", file=self.name)
        super()._check_usable()


def _is_buffered(file: Any) -> bool:
    """Whether it is an open file of a remote file system that reads its ranges as they are stored."""
    spec = sys.modules.get("fsspec.spec")
    if spec is None or not isinstance(file, spec.AbstractBufferedFile) or not isinstance(file.path, str):
        return False
    return file.mode == "rb" and not is_local_system(file.fs) and not getattr(file, "version_id", None)


def _watched(file: Any) -> Unchanged | None:
    """Watches an open fsspec file for changes. Files of s3fs state their version with each request by themselves."""
    fs, path = getattr(file, "fs", None), getattr(file, "path", None)
    if fs is None or not isinstance(path, str) or is_local_system(fs) or is_s3(fs):
        return None
    details = getattr(file, "details", None)
    return Unchanged(fs, path, Stated.of(details)) if isinstance(details, Mapping) else None


def _is_plain(file: Any) -> bool:
    """Whether it is a file on disk as ``open(path, "rb")`` returns it, so that its bytes are those of its
    descriptor."""
    raw = file.raw if type(file) is io.BufferedReader else file
    try:
        return type(raw) is io.FileIO and stat.S_ISREG(os.fstat(raw.fileno()).st_mode)
    except (OSError, ValueError):  # closed
        return False


def _exactly(data: Any, offset: int, length: int, name: str) -> memoryview:
    if len(data) != length:
        raise CorruptFileError(f"the file ends within the range of {length} bytes at offset {offset}", file=name)
    return memoryview(data)


def _closed(name: str) -> OptionError:
    return OptionError("the file is closed", file=name)


def open_source(where: Any, storage_options: Mapping[str, Any] | None = None) -> Source:
    """A source for a path, ``os.PathLike``, URL, bytes-like object, seekable binary file object, what ``fsspec.open``
    gives, or a source. ``storage_options`` are for the file system of a URL.

    Raises ``FileNotFoundError`` and its kin as the operating system does, :class:`OptionError` for anything else.
    """
    if storage_options is not None:
        check_storage_options(storage_options)
    parts = open_file_parts(where) if hasattr(where, "full_name") else None
    if parts is not None:
        fs, path, _ = parts
        return LocalFile(path) if is_local_system(fs) else RemoteFile(fs, path, name_on(fs, path))
    if isinstance(where, (str, os.PathLike)):
        path = os.fspath(where)
        if not isinstance(path, str):
            path = os.fsdecode(path)
        return _open_url(path, storage_options) if "://" in path or path.startswith("~") else LocalFile(path)
    if isinstance(where, (bytes, bytearray, memoryview)):
        return BytesSource(where)
    if type(where) is ObjectFile:
        return ObjectFile(where.store, where.path)  # each reader gets the current object
    if hasattr(where, "read_ranges"):
        return cast(Source, where)
    if hasattr(where, "read") and hasattr(where, "seek"):
        return OpenedFile(where) if _is_buffered(where) else FileObject(where)
    try:
        return BytesSource(where)
    except TypeError:
        one = " (use pyparq.dataset or read_table for several files)" if isinstance(where, (list, tuple, set)) else ""
        raise OptionError(
            f"cannot read from {type(where).__name__}{one}: give a path, URL, bytes or a seekable binary file object"
        ) from None


def set_requests(source: Source, times: int, wait: float, at_a_time: int | None) -> None:
    """Set how often a source repeats a request that failed for the moment, the seconds before the first repetition, and
    how many requests of one step are made at a time (``None``: as many as suit the store)."""
    if isinstance(source, RemoteFile):
        source.retry = Retry(times, wait)
        source.at_a_time = at_a_time or source.at_a_time


def versioned(source: Source) -> RemoteFile | None:
    """The source, if requests to it can be bound to a version of the file."""
    return source if isinstance(source, RemoteFile) else None


def begin(source: Source) -> None:
    """Begin a new question to an open file: a remote file may have been replaced since the last one."""
    if isinstance(source, (RemoteFile, FileObject)):
        source.begin()


def _open_url(url: str, storage_options: Mapping[str, Any] | None) -> Source:
    path = local_path(url)
    if path is not None:
        return LocalFile(path)
    return source_on(*file_system(url, "reading", "read from", storage_options), shown(url))


def source_on(fs: Any, path: str, name: str, listed: Stated | None = None) -> RemoteFile:
    """A file on a file system of fsspec's, or in a store. ``listed``: what a listing of the folder says of it."""
    return RemoteFile(fs, path, name, listed)


def opened_early(source: Any, storage_options: Mapping[str, Any] | None, options: ReadOptions, reader: str) -> Any:
    """The open source, if it is a URL of a store and the module ``reader`` is not loaded yet: its end is requested
    while the modules load that will read it. Else ``source`` as it is."""
    if reader in sys.modules or not is_url(source):
        return source
    file = open_source(source, storage_options)
    identity = getattr(file, "identity", None)
    if identity is not None and kept_file(identity) is not None:  # the end of the file is not needed
        file.close()
        return source
    if isinstance(file, RemoteFile):
        set_requests(file, options.retries, options.retry_wait, options.max_requests)
        file.begin_end(options.tail_size or REMOTE_TAIL)
    return file


# ---- sources that stand for several files: folders, lists, and patterns of paths (``*``, ``?``, ``[...]``, and
# ``{a,b}`` as in Hadoop and shells)

MOST_PATTERNS = 10_000
"""Maximum number of patterns from one: several braces multiply."""

_INNERMOST = re.compile(r"\{([^{}]*,[^{}]*)\}")


def is_pattern(path: str) -> bool:
    return MAGIC.search(path) is not None or has_braces(path)


def fixed_part(pattern: str) -> str:
    """The folders of a pattern in front of the first name with a wildcard or braces."""
    parts, braces = pattern.split("/"), has_braces(pattern)
    first = next(k for k, part in enumerate(parts) if MAGIC.search(part) or (braces and "{" in part))
    return "/".join(parts[:first])


def has_braces(pattern: str) -> bool:
    """Whether the pattern has alternatives. Braces without a comma are ordinary letters."""
    return _INNERMOST.search(pattern) is not None


def alternatives(pattern: str) -> list[str]:
    """The patterns without alternatives, each once, in order. Raises :class:`pyparq.OptionError` for more than
    :data:`MOST_PATTERNS`."""
    found = [pattern]
    while any(map(has_braces, found)):
        found = list(dict.fromkeys(spelled for one in found for spelled in _first_of(one)))
        if len(found) > MOST_PATTERNS:
            raise OptionError(f"the pattern {pattern[:100]!r} stands for more than {MOST_PATTERNS:,} paths")
    return found


def _first_of(pattern: str) -> list[str]:
    """The patterns for its first innermost braces."""
    braces = _INNERMOST.search(pattern)
    if braces is None:
        return [pattern]
    return [pattern[: braces.start()] + one + pattern[braces.end() :] for one in braces[1].split(",")]


CACHES = ("simplecache::", "filecache::", "blockcache::")
"""Protocols in front of another one, whose folders they show."""


def has_folders(url: str) -> bool:
    """Whether the file system of a URL can list folders. HTTP servers and archives are read file by file."""
    while url.lower().startswith(CACHES):
        url = url.partition("::")[2]
    return not is_chain(url) and not url.lower().startswith(("http://", "https://"))


def shows_file(url: str) -> bool:
    """Whether the name of a URL shows that it is a file. A folder may have such a name, too: Spark's often do."""
    return url.lower().endswith((".parquet", ".parq", ".pq"))


def names_many(source: Any) -> bool:
    """Whether a source can stand for several files: a list, a folder, a glob. Costs one look at the file system."""
    if not isinstance(source, (str, os.PathLike)):
        return isinstance(source, (list, tuple)) or format_of(source) is not None
    path = os.fspath(source)
    path = os.fsdecode(path) if isinstance(path, bytes) else path
    if "://" in path or path.startswith("~"):
        if is_url(path):
            return has_folders(path) and (is_pattern(path) or not shows_file(path))
        path = local_path(path) or path
    return os.path.isdir(path) or (not os.path.lexists(path) and is_pattern(path))
