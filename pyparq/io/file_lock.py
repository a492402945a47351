"""The locks that every replacement and removal of a local file takes.

It is an exclusive ``flock`` on the file that has the name just then. Whoever gives the name to another file, or takes
it away, holds the lock for that one step: :mod:`pyparq.io.atomic_write`, changes in place, and commits of datasets. So
what is replaced is always the file that was looked at. Reading takes no lock.

What takes several steps holds the lock of the folder as well, which comes first: commits of datasets, files with key
material beside them, and the last step of changes in place.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyparq.errors import ChangedMeanwhile
from pyparq.runtime import fork_safety

try:
    import fcntl
except ImportError:  # Windows: no locks
    fcntl = None  # type: ignore[assignment]

_NO_LOCKS = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS, errno.EBADF, errno.EINVAL)
"""What file systems without ``flock`` say, or those that want a file opened for writing."""
_PATIENCE = 2.0
"""Seconds to wait for a lock. Ours are held for less than a millisecond. So whoever holds a file's lock for longer has
taken it for a reason of its own, and is not waited for."""
_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)


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

    @classmethod
    def at(cls, path: str) -> Identity | None:
        """Of the file that has the name ``path``; ``None`` where there is none."""
        try:
            return cls.of(os.stat(path))
        except FileNotFoundError:
            return None

    def check(self, path: str) -> None:
        """Raise :class:`ChangedMeanwhile` unless ``path`` names this file, unchanged."""
        now = Identity.at(path)
        if now != self:
            done = "is gone" if now is None else "was replaced, or written to,"
            raise ChangedMeanwhile(f"the file {done} since it was read. Nothing was written: try again", file=path)


class Held:
    """A descriptor with a lock, which is free when it is released or the process ends, however it ends."""

    _fd = -1

    def __init__(self, fd: int) -> None:
        self._fd = fd
        fork_safety.watch(self)

    def release(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.release()

    def _after_fork(self) -> None:
        """A child that kept its copy would hold the lock when its parent is long gone."""
        self.release()


@contextmanager
def locked_name(path: str) -> Iterator[bool]:
    """Hold the lock of the file that has the name ``path`` (an absolute path without links).

    Gives ``False`` where no file has the name. Nothing is held where the file cannot be opened, where its file system
    has no locks, and where another program keeps the lock for itself.
    """
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            held = Held(os.open(path, _FLAGS))
        except FileNotFoundError:
            yield False
            return
        except OSError:  # not ours to read, but perhaps to replace
            yield True
            return
        try:
            _wait_for_lock(held._fd, until)
            if _is_named(held._fd, path):  # else another file got the name while this waited
                yield True
                return
        finally:
            held.release()


@contextmanager
def locked_folder(path: str, patient: bool = True) -> Iterator[bool]:
    """Hold the lock of the folder ``path``. A thread that has it already goes on at once.

    ``patient``: wait for as long as another process takes. Otherwise go on without the lock after two seconds. Gives
    ``False`` where that is so, and where the folder has been removed, or replaced, in that time. Raises ``OSError`` as
    the operating system does.
    """
    if os.name == "nt":  # no locks, and no descriptors of folders
        yield os.path.isdir(path)
        return
    held = Held(os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)))
    try:
        status = os.fstat(held._fd)
        folder = status.st_dev, status.st_ino
        if folder in _mine.folders:
            yield True
            return
        if patient:
            lock(held._fd, wait=True)
        elif not _wait_for_lock(held._fd, time.monotonic() + _PATIENCE):
            yield False
            return
        _mine.folders.add(folder)
        try:
            yield _is_named(held._fd, path)
        finally:
            _mine.folders.discard(folder)
    finally:
        held.release()


class _Mine(threading.local):
    """What this thread holds."""

    def __init__(self) -> None:
        self.folders: set[tuple[int, int]] = set()
        """Device and inode."""


_mine = _Mine()


@fork_safety.in_child
def _holds_nothing() -> None:
    _mine.folders.clear()


def lock(fd: int, wait: bool) -> bool:
    """Take a lock; ``False`` where there are none. Raises ``BlockingIOError`` where another process has it."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        raise
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return False
    return True


def _wait_for_lock(fd: int, until: float) -> bool:
    """Whether no other process has the lock."""
    pause = 0.0005
    while True:
        try:
            lock(fd, wait=False)
            return True
        except BlockingIOError:
            if time.monotonic() > until:
                return False
        time.sleep(pause)
        pause = min(pause * 2, 0.05)


def _is_named(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(fd))
    except FileNotFoundError:
        return False
