"""A file that takes the place of the one it was made from.

Nothing holds other programs back while a file is worked on. So just before the new file gets the name, under a lock on
the old one, it is checked that the name still stands for the file that was read. Of two runs at once, the later one
finds the change, and starts again with the new file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from pyparq.datasets.discovery import managed_by
from pyparq.errors import OptionError
from pyparq.io.objects import ObjectFile
from pyparq.io.remote import FsspecFile
from pyparq.io.sink import LocalSink
from pyparq.io.source import LocalFile, Source
from pyparq.rewriting.stale import remove_checksums, remove_summaries

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class ChangedMeanwhile(Exception):
    """The name stands for another file now, or the file was written to."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells a file from another of the same name, and from itself after a change."""

    device: int
    inode: int
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> Identity:
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


class InPlace:
    """The local file at ``path``, opened to be replaced. ``path`` may be a symbolic link, which stays one."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.real = os.path.realpath(path)
        self.source = LocalFile(path)
        status = os.fstat(self.source.fileno())
        if not stat.S_ISREG(status.st_mode):
            self.close()
            raise OptionError("only a regular file can be replaced in place: give a target", file=path)
        self.identity = Identity.of(status)
        self.other_names = status.st_nlink - 1
        """Hard links beside this name: they keep the old file."""

    def commit(self, sink: LocalSink) -> list[str]:
        """Put what was written to ``sink`` in the place of the file; what else was removed, to be told.

        Raises :class:`ChangedMeanwhile` where the file is not the one that was read any more.
        """
        notes: list[str] = []

        def last_check() -> None:
            self.check()
            notes.extend(remove_checksums(self.path, self.real))
            notes.extend(remove_summaries(self.real))

        with _locked(self.source.fileno()):
            sink.commit(last_check)
        if self.other_names:
            names = "1 other name" if self.other_names == 1 else f"{self.other_names} other names"
            notes.append(f"the old file has {names} (hard links), which keep it as it was")
        return notes

    def check(self) -> None:
        """Raise :class:`ChangedMeanwhile` unless the name stands for the file that was opened, unchanged."""
        try:
            now = Identity.of(os.stat(self.real))
            held = Identity.of(os.fstat(self.source.fileno()))
        except FileNotFoundError:
            raise ChangedMeanwhile from None
        if not now == held == self.identity:
            raise ChangedMeanwhile

    def close(self) -> None:
        self.source.close()


@contextmanager
def _locked(fd: int) -> Iterator[None]:
    """Hold the lock that others who replace the same file take. Where there are no locks, the check alone is left."""
    if fcntl is None:
        yield
        return
    with suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_UN)


def check_not_managed(path: str, force: bool) -> None:
    """Raise :class:`OptionError` for a file that a table format keeps books of, unless ``force``."""
    if force:
        return
    managed = managed_by(os.path.dirname(os.path.realpath(path)) or ".")
    if managed is not None:
        raise _refusal(path, *managed)


def check_not_managed_remotely(file: FsspecFile, force: bool) -> None:
    """The same for a file on another file system."""
    if force:
        return
    folder = file.path.rpartition("/")[0]
    while folder:
        for format_, name in (("Delta Lake", "_delta_log"), ("Apache Hudi", ".hoodie"), ("Apache Iceberg", "metadata")):
            if not file.fs.isdir(f"{folder}/{name}"):
                continue
            if name != "metadata" or file.fs.glob(f"{folder}/{name}/*.metadata.json"):
                raise _refusal(file.name, format_, folder)
        folder = folder.rpartition("/")[0]


def _refusal(path: str, format_: str, table: str) -> OptionError:
    return OptionError(
        f"the file belongs to a table of {format_} ({table}), whose log records the sizes of its files. Give a "
        "target to write a copy, or force=True to replace it all the same",
        file=path,
    )


_STATE = ("size", "mtime", "ETag", "etag", "LastModified", "last_modified", "updated", "generation", "created")
"""What file systems of fsspec say of the state of a file, each in its own words."""


def state_of(source: Source) -> tuple[Any, ...]:
    """What tells a source from itself after a change, as far as that can be known."""
    if isinstance(source, LocalFile):
        status = os.fstat(source.fileno())
        return status.st_size, status.st_mtime_ns
    if isinstance(source, FsspecFile):
        source.fs.invalidate_cache()
        found = source.fs.info(source.path)
        return tuple(found.get(name) for name in _STATE)
    if isinstance(source, ObjectFile):
        return source.state()
    return ()
