"""Targets of bytes: local paths, writable file objects and fsspec URLs behind one interface that can only append.

A sink belongs to the process that opened it (:class:`pyparq.io.file_objects.ProcessOwned`).
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from pyparq import kernels
from pyparq.errors import CorruptFileError, OptionError
from pyparq.io.atomic_write import Expected, Target
from pyparq.io.byte_ranges import Source, copy_between
from pyparq.io.fetch import Fetcher
from pyparq.io.file_objects import Appender, ProcessOwned, check_opened
from pyparq.io.locations import file_system
from pyparq.io.object_file import ObjectFile
from pyparq.io.remote_file import RemoteFile
from pyparq.io.remote_sinks import FsspecSink, ObjectSink, sink_on
from pyparq.io.s3_copying import S3CopySink, copying_system
from pyparq.io.source import LocalFile
from pyparq.io.url import (
    check_storage_options,
    expanded,
    is_local_system,
    is_url,
    local_path,
    name_on,
    open_file_parts,
    shown,
)
from pyparq.runtime import fork_safety
from pyparq.runtime.threads import check_stopped

_MAX_PARTS = 512
"""Buffers per ``writev``; the system's own limit is 1024 nearly everywhere."""
_SMALL = 32 << 10
"""Writes below this many bytes are gathered: a wide table's chunks and indexes would each cost a system call."""
_WRITEBACK = 4 << 20
"""Bytes that are written before the system is asked to begin storing them."""


class Sink(Protocol):
    """An append-only target. After :meth:`commit` or :meth:`abort` it is closed; both may be called again.

    In a forked child that inherits it, writing and committing raise :class:`DataError` and nothing has any effect.
    """

    name: str

    @property
    def position(self) -> int:
        """Bytes written so far."""

    def write(self, parts: Sequence[Any]) -> None:
        """Append all the buffers (bytes-like objects)."""

    def commit(self) -> None:
        """Make the file visible under its name, complete."""

    def abort(self) -> None:
        """Leave nothing behind, as far as the target allows. Raises no error for what cannot be undone."""


_PIECE, _REMOTE_PIECE = 8 << 20, 32 << 20
"""Bytes that are in memory at a time, if the system cannot copy them itself. Each request to a store takes long, so its
pieces are larger."""


def copy_range(sink: Sink, fetcher: Fetcher, start: int, stop: int) -> None:
    """Append bytes ``[start, stop)`` of the source of ``fetcher`` to ``sink``. Raises :class:`CorruptFileError` if the
    source ends before."""
    source = fetcher.source
    if isinstance(sink, LocalSink) and isinstance(source, LocalFile):
        sink.take_range(source.fileno(), start, stop)
        return
    if isinstance(sink, S3CopySink) and sink.copies_from(source):
        sink.take_range(start, stop)
        return
    there = fetcher.in_tail(start, stop)
    if there is not None:
        sink.write([there])
        return
    piece = _PIECE if source.is_local else _REMOTE_PIECE
    for at in range(start, stop, piece):
        check_stopped()
        sink.write(source.read_ranges([(at, min(piece, stop - at))]))


class LocalSink(ProcessOwned):
    """A file on a local file system. It replaces an existing file only when it is complete."""

    expected: Expected | None = None
    """The only file that it may replace: the one it was made from. ``None``: any file."""

    def __init__(self, path: str, fsync: bool = False, in_staging: bool = False) -> None:
        self.position = 0
        self.in_staging = in_staging
        self._gathered = bytearray()
        self._fsync = fsync
        self._target = Target(path, in_staging)
        # ext4 and others store a file before it may replace another one. That takes less time if most of it is stored
        # by then.
        self._stores_early = kernels.begin_writeback is not None and (fsync or self._target.replaces)
        self._stored = 0
        super().__init__(path)

    def write(self, parts: Sequence[Any]) -> None:
        if self._inherited:
            self._check_process()
        views, size = [], 0
        for part in parts:
            view = memoryview(part).cast("B")
            if len(view):
                views.append(view)
                size += len(view)
        if size < _SMALL:
            for view in views:
                self._gathered += view
            if len(self._gathered) >= _SMALL:
                self._flush()
        else:
            self._flush()
            for at in range(0, len(views), _MAX_PARTS):
                self._write_all(views[at : at + _MAX_PARTS])
        self.position += size
        written = self.position - len(self._gathered)
        if self._stores_early and written - self._stored >= _WRITEBACK and kernels.begin_writeback is not None:
            kernels.begin_writeback(self._target.fd, self._stored, written - self._stored)
            self._stored = written

    def _flush(self) -> None:
        if self._gathered:
            gathered, self._gathered = self._gathered, bytearray()
            self._write_all([memoryview(gathered)])

    def _write_all(self, views: list[memoryview]) -> None:
        fd = self._target.fd
        while views:
            done = os.writev(fd, views) if hasattr(os, "writev") else os.write(fd, views[0])
            if not done:
                raise OSError(f"{self.name!r} accepted none of the {sum(map(len, views))} bytes to write")
            while views and done >= len(views[0]):
                done -= len(views.pop(0))
            if done:
                views[0] = views[0][done:]

    def take_range(self, source: int, start: int, stop: int) -> None:
        """Append bytes ``[start, stop)`` of the file behind the descriptor ``source``, without reading them where the
        system can do that. Raises :class:`CorruptFileError` where that file ends before."""
        self._check_process()
        self._flush()
        copied = copy_between(source, self._target.fd, start, stop)
        self.position += copied
        if copied < stop - start:
            raise CorruptFileError(f"the file ends within the range of {stop - start} bytes at offset {start}")

    def commit(self) -> None:
        """As :meth:`Sink.commit`. Raises :class:`ChangedMeanwhile` where another file than :attr:`expected` would be
        replaced."""
        if self._inherited:
            self._check_process()
        if self._target.fd < 0:
            return
        try:
            self._flush()
            self._target.finish(self._fsync, self.expected)
        except OSError as error:
            self.abort()
            error.filename = self.name  # the user does not know the hidden name
            del error.filename2
            raise

    def abort(self) -> None:
        if self._target.fd >= 0:
            self._target.discard()

    def _let_go(self) -> None:
        self._target.forget()


class FileObjectSink(ProcessOwned):
    """A binary file object of the caller's. It stays open; what was written to it cannot be taken back.

    Offsets in the file count from where writing begins.
    """

    def __init__(self, file: Any) -> None:
        name = getattr(file, "name", None)
        super().__init__(name if isinstance(name, str) else f"<{type(file).__name__}>")
        check_opened(file, self.name, to_read=False)
        self._file = file
        self._appender = Appender(file, self.name)
        fork_safety.prepare(self)

    @property
    def position(self) -> int:
        return self._appender.position

    def write(self, parts: Sequence[Any]) -> None:
        self._check_process()
        for part in parts:
            try:
                self._appender.write(memoryview(part).cast("B"))
            except TypeError as error:
                if "str" in str(error):
                    raise OptionError(
                        "the file object takes text: open it with open(path, 'wb')", file=self.name
                    ) from None
                raise

    def commit(self) -> None:
        self._check_process()
        if hasattr(self._file, "flush"):
            self._file.flush()

    def abort(self) -> None:
        return None

    def _before_fork(self) -> None:
        """Flush the file's buffer, so that the child does not get a copy of it and write it twice. A pipe is not
        flushed: its reader may be the child."""
        with suppress(Exception):  # closed, or full: later calls raise the error
            if isinstance(self._file, io.BufferedWriter | io.BufferedRandom) and stat.S_ISREG(
                os.fstat(self._file.fileno()).st_mode
            ):
                self._file.flush()


def replace_only_read(sink: Sink, source: Source) -> None:
    """Let ``sink`` replace only the object that ``source`` has read: it is asked for before the commit, and the store
    is told, where it can be."""
    if isinstance(sink, (FsspecSink, ObjectSink, S3CopySink)) and isinstance(source, RemoteFile):
        sink.before_commit = source.check_now
    if isinstance(sink, FsspecSink) and isinstance(source, RemoteFile) and source.etag is not None:
        sink.replace_only(source.etag)
    if isinstance(sink, ObjectSink) and isinstance(source, RemoteFile) and source.stated_version:
        sink.replace_only(source.stated_version)


def replacing_sink(
    where: Any, source: Source, fsync: bool = False, storage_options: Mapping[str, Any] | None = None
) -> Sink:
    """A sink for the file ``where``, which ``source`` has read: it replaces no other. Ranges that stay are copied
    within the store, where that can be done."""
    fs = copying_system(source) if isinstance(source, RemoteFile) else None
    if fs is not None and isinstance(source, RemoteFile):
        sink: Sink = S3CopySink(fs, source)
    else:
        sink = open_sink(where, fsync, storage_options if is_url(where) else None)
    replace_only_read(sink, source)
    return sink


def copied_in_store(sink: Sink) -> int:
    """Bytes of the file that its store has copied by itself."""
    return sink.num_copied if isinstance(sink, S3CopySink) else 0


def kept_version(source: Source, sink: Sink | None) -> str:
    """The name of the version of an object that was read, if its store has it still after ``sink`` has replaced it;
    ``None``: after it was removed. Empty where there is none."""
    old = (source.version_id or "") if isinstance(source, RemoteFile) else ""
    if not isinstance(sink, ProcessOwned) or old not in ("", "null"):
        return old
    # "null" is the version of objects from times without versions. While versions are suspended, it is replaced.
    return "null" if sink.new_version not in (None, "null") else ""


def replace_only(sink: Sink, expected: Expected | None) -> None:
    """Let ``sink`` replace the file ``expected`` only (``None``: any), where it is a local file.

    For a file that is made from the one that it replaces: a newer one must not be lost.
    """
    if isinstance(sink, LocalSink):
        sink.expected = expected


def open_sink(where: Any, fsync: bool = False, storage_options: Mapping[str, Any] | None = None) -> Sink:
    """A sink for a path, ``os.PathLike``, URL, object of obstore, writable binary file object, what ``fsspec.open``
    gives, or a sink.
    ``storage_options`` are for the file system of a URL.

    Raises ``OSError`` as the operating system does, :class:`OptionError` for anything else.
    """
    check_storage_options(storage_options)
    parts = open_file_parts(where)
    if parts is not None:
        return _open_parts(*parts, fsync)
    # Open files of fsspec's local file system are both path and file object. They are written as file objects: the path
    # must not be replaced while it is open.
    if isinstance(where, str) or (isinstance(where, os.PathLike) and not hasattr(where, "write")):
        path = os.fsdecode(where)
        return _open_url(path, fsync, storage_options) if "://" in path else LocalSink(expanded(path), fsync)
    if type(where) is ObjectFile:
        return ObjectSink(ObjectFile(where.store, where.path))
    if hasattr(where, "commit") and hasattr(where, "abort") and hasattr(where, "position"):
        sink: Sink = where
        return sink
    if hasattr(where, "write"):
        return FileObjectSink(where)
    raise OptionError(f"cannot write to {type(where).__name__}: give a path, a URL or a writable binary file object")


def own_sink(path: str, fsync: bool = False) -> LocalSink:
    """A sink for a local file that pyparq has named, not the user. A link that has the name goes: it may come from
    elsewhere, as the folder may, and lead anywhere."""
    if os.path.islink(path):
        os.unlink(path)
    return LocalSink(path, fsync)


def _open_parts(fs: Any, path: str, mode: str, fsync: bool) -> Sink:
    if "w" not in mode:
        raise OptionError(f"an fsspec.open(...) object of mode {mode!r} cannot be written to: open it with mode 'wb'")
    return LocalSink(path, fsync) if is_local_system(fs) else FsspecSink(fs, path, name_on(fs, path))


def _open_url(url: str, fsync: bool, storage_options: Mapping[str, Any] | None) -> Sink:
    path = local_path(url)
    if path is not None:
        return LocalSink(path, fsync)
    return sink_on(*file_system(url, "writing", "write to", storage_options), shown(url))
