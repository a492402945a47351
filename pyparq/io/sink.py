"""Where bytes go: local paths, writable file objects, fsspec URLs; one interface, append only.

A local target is written under a hidden name beside itself and renamed into place by :meth:`Sink.commit`, so that an
exception or a kill leaves whatever was there before.
"""

from __future__ import annotations

import io
import os
import secrets
import stat
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol

from pyparq.errors import OptionError
from pyparq.io.url import file_system, local_path

_MAX_PARTS = 512
"""Buffers per ``writev``; the system's own limit is 1024 nearly everywhere."""
_SMALL = 32 << 10
"""Writes below this many bytes are gathered: a wide table's chunks and indexes would each cost a system call."""


class Sink(Protocol):
    """An append-only target. After :meth:`commit` or :meth:`abort` it is closed; both may be called again."""

    name: str
    position: int
    """Bytes written so far."""

    def write(self, parts: Sequence[Any]) -> None:
        """Append all the buffers (bytes-like objects)."""

    def commit(self) -> None:
        """Make the file visible under its name, complete."""

    def abort(self) -> None:
        """Leave nothing behind, as far as the target allows; never raises for what cannot be undone."""


class LocalSink:
    """A file on a local file system. An existing target keeps its permissions; a symbolic link stays a link."""

    def __init__(self, path: str, fsync: bool = False) -> None:
        self.name = path
        self.position = 0
        self._gathered = bytearray()
        self._fsync = fsync
        self._target = os.path.realpath(path)
        existing = _stat(self._target)
        if existing is not None and stat.S_ISDIR(existing.st_mode):
            raise IsADirectoryError(f"{path!r} is a directory")
        # Pipes and devices cannot be replaced by a rename: these are written to directly.
        self._temporary = self._target if existing and not stat.S_ISREG(existing.st_mode) else _beside(self._target)
        flags = os.O_WRONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
        if self._renames:
            flags |= os.O_CREAT | os.O_EXCL
        try:
            self._fd = os.open(self._temporary, flags, 0o666)
        except OSError as error:
            error.filename = path  # the user's name, not the one for the time being
            raise
        self._process = os.getpid()
        if self._renames and existing is not None and hasattr(os, "fchmod"):
            os.fchmod(self._fd, stat.S_IMODE(existing.st_mode))

    @property
    def _renames(self) -> bool:
        return self._temporary != self._target

    def write(self, parts: Sequence[Any]) -> None:
        views = [v for v in (memoryview(p).cast("B") for p in parts) if len(v)]
        size = sum(map(len, views))
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

    def _flush(self) -> None:
        if self._gathered:
            gathered, self._gathered = self._gathered, bytearray()
            self._write_all([memoryview(gathered)])

    def _write_all(self, views: list[memoryview]) -> None:
        while views:
            done = os.writev(self._fd, views) if hasattr(os, "writev") else os.write(self._fd, views[0])
            while views and done >= len(views[0]):
                done -= len(views.pop(0))
            if done:
                views[0] = views[0][done:]

    def commit(self) -> None:
        if self._fd < 0:
            return
        self._flush()
        if self._fsync:
            os.fsync(self._fd)
        self._close()
        if self._renames:
            try:
                os.replace(self._temporary, self._target)
            except OSError:
                self._unlink()
                raise
            if self._fsync:
                _sync_folder(os.path.dirname(self._target))

    def abort(self) -> None:
        if self._fd < 0:
            return
        self._close()
        # A forked child that ends while its parent writes must leave the parent's file alone.
        if self._renames and os.getpid() == self._process:
            self._unlink()

    def _unlink(self) -> None:
        with suppress(OSError):
            os.unlink(self._temporary)

    def _close(self) -> None:
        fd, self._fd = self._fd, -1
        os.close(fd)


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _beside(target: str) -> str:
    """A name of its own in the target's folder, hidden from readers that list folders."""
    folder, name = os.path.split(target)
    return os.path.join(folder, f".{name[:120]}.{secrets.token_hex(8)}.tmp")


def _sync_folder(path: str) -> None:
    if os.name != "posix":
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class FileObjectSink:
    """A binary file object of the caller's. It stays open; what was written to it cannot be taken back.

    Offsets in the file count from where writing begins.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        name = getattr(file, "name", None)
        self.name = name if isinstance(name, str) else f"<{type(file).__name__}>"
        if isinstance(file, io.TextIOBase):
            raise OptionError("the file object is in text mode: open it with open(path, 'wb')", file=self.name)
        if not getattr(file, "closed", False) and hasattr(file, "writable") and not file.writable():
            raise OptionError(
                "the file object is open for reading alone: open it with open(path, 'wb')", file=self.name
            )
        self.position = 0

    def write(self, parts: Sequence[Any]) -> None:
        for part in parts:
            view = memoryview(part).cast("B")
            while len(view):
                done = self._write(view)
                self.position += done
                view = view[done:]

    def _write(self, view: memoryview) -> int:
        try:
            done = self._file.write(view)
        except TypeError as error:
            if "str" in str(error):
                raise OptionError("the file object takes text: open it with open(path, 'wb')", file=self.name) from None
            raise
        # Raw files may take a part only; some file objects return nothing.
        return len(view) if done is None else int(done)

    def commit(self) -> None:
        if hasattr(self._file, "flush"):
            self._file.flush()

    def abort(self) -> None:
        return None


class FsspecSink:
    """A file on an fsspec file system.

    Object stores show an upload only when it is complete: they are written to directly, and an abort discards the
    upload. Other file systems get a temporary name and a rename.
    """

    def __init__(self, fs: Any, path: str, name: str) -> None:
        from fsspec.spec import AbstractBufferedFile

        self.name = name
        self.position = 0
        self._fs = fs
        self._path = path
        self._temporary = path
        self._file: Any = None
        if not _uploads(fs, AbstractBufferedFile):
            folder, _, last = path.rpartition("/")
            self._temporary = f"{folder}/.{last[:120]}.{secrets.token_hex(8)}.tmp" if folder else f".{last}.tmp"
        self._file = fs.open(self._temporary, "wb")

    def write(self, parts: Sequence[Any]) -> None:
        for part in parts:
            view = memoryview(part).cast("B")
            if len(view):
                self._file.write(view)
                self.position += len(view)

    def commit(self) -> None:
        if self._file is None:
            return
        file, self._file = self._file, None
        try:
            file.close()
            if self._temporary != self._path:
                self._fs.mv(self._temporary, self._path)
        except BaseException:
            if self._temporary != self._path:
                with suppress(Exception):
                    self._fs.rm_file(self._temporary)
            raise

    def abort(self) -> None:
        if self._file is None:
            return
        file, self._file = self._file, None
        try:
            if self._temporary != self._path:
                file.close()
                self._fs.rm_file(self._temporary)
            else:
                file.discard()
                file.closed = True  # closing would complete the upload
        except Exception:
            return


def _uploads(fs: Any, buffered: type) -> bool:
    """Do files of this file system appear only when they are closed? So it is where writing means uploading."""
    protocols = {fs.protocol} if isinstance(fs.protocol, str) else set(fs.protocol)
    return bool(protocols & {"s3", "s3a", "gs", "gcs", "abfs", "az", "abfss", "adl", "oss", "oci"}) and hasattr(
        buffered, "discard"
    )


def open_sink(where: Any, fsync: bool = False) -> Sink:
    """A sink for a path, ``os.PathLike``, URL, writable binary file object, or a sink.

    Raises ``OSError`` as the operating system does, :class:`OptionError` for anything else.
    """
    if isinstance(where, (str, os.PathLike)):
        path = os.fsdecode(where)
        return _open_url(path, fsync) if "://" in path else LocalSink(path, fsync)
    if hasattr(where, "commit") and hasattr(where, "abort") and hasattr(where, "position"):
        sink: Sink = where
        return sink
    if hasattr(where, "write"):
        return FileObjectSink(where)
    raise OptionError(f"cannot write to {type(where).__name__}: give a path, a URL or a writable binary file object")


def _open_url(url: str, fsync: bool) -> Sink:
    path = local_path(url)
    if path is not None:
        return LocalSink(path, fsync)
    return FsspecSink(*file_system(url, "writing", "write to"), url)
