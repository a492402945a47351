"""The locks that every replacement and removal of a local file takes.

The lock is an exclusive ``flock`` on the file that has the name at that moment. A program that gives the name to
another file, or removes it, holds the lock for that one step: :mod:`pyparq.io.atomic_write`, changes in place, and
commits of datasets. So the file that is replaced is always the file that was checked. Reading takes no lock.

Operations of several steps also hold the lock of the folder, which is taken first: commits of datasets, files with key
material beside them, and the last step of changes in place.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyparq.errors import ChangedMeanwhile
from pyparq.runtime import fork_safety

try:
    import fcntl
except ImportError:  # Windows: no locks. Nothing is opened for them: it lets no file go that is open.
    fcntl = None  # type: ignore[assignment]

_NO_LOCKS = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS, errno.EBADF, errno.EINVAL)
"""Errors of file systems that have no ``flock``, or have it only for files opened for writing."""
PATIENCE = 2.0
"""Seconds to wait for a lock. pyparq holds locks for less than a millisecond. A program that holds a file's lock for
longer has other reasons, so its lock is ignored."""
_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)


@dataclass(frozen=True, slots=True)
class Identity:
    """Tells a file from another one of the same name, and from itself after a change."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int = field(compare=False)
    """It tells of writes that have left size and time as they were. A rename changes it: it means nothing after one."""

    @classmethod
    def of(cls, status: os.stat_result) -> Identity:
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

    @classmethod
    def at(cls, path: str) -> Identity | None:
        """The identity of the file at ``path``. ``None`` if there is none."""
        try:
            return cls.of(os.stat(path))
        except FileNotFoundError:
            return None

    def check(self, path: str) -> None:
        """Raise :class:`ChangedMeanwhile` unless ``path`` is this file, unchanged."""
        now = Identity.at(path)
        if now is None or (now, now.ctime_ns) != (self, self.ctime_ns):
            done = "is gone" if now is None else "was replaced, or written to,"
            raise ChangedMeanwhile(f"the file {done} since it was read. Nothing was written: try again", file=path)


class HeldLock:
    """A descriptor with a lock. The lock is released with it, or when the process ends in any way."""

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
        """A child must close its copy: it would hold the lock after its parent has ended."""
        self.release()


@contextmanager
def locked_name(path: str) -> Iterator[bool]:
    """Hold the lock of the file at ``path`` (an absolute path without links). Gives ``False`` if there is no file.

    No lock is held if the file cannot be opened, if its file system has no locks, or if another program keeps the lock.
    """
    if fcntl is None:
        yield os.path.exists(path)
        return
    until = time.monotonic() + PATIENCE
    while True:
        try:
            held = HeldLock(os.open(path, _FLAGS))
        except FileNotFoundError:
            yield False
            return
        except OSError:  # not readable for us, but perhaps replaceable
            yield True
            return
        try:
            _wait_for_lock(held._fd, until)
            if _is_named(held._fd, path):  # another file got the name during the wait: try again
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
    if fcntl is None:
        yield os.path.isdir(path)
        return
    held = HeldLock(os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)))
    try:
        status = os.fstat(held._fd)
        folder = status.st_dev, status.st_ino
        if folder in _mine.folders:
            yield True
            return
        if patient:
            lock(held._fd, wait=True)
        elif not _wait_for_lock(held._fd, time.monotonic() + PATIENCE):
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
    """The locks that this thread holds."""

    def __init__(self) -> None:
        self.folders: set[tuple[int, int]] = set()
        """Device and inode."""


_mine = _Mine()


@fork_safety.in_child
def _holds_nothing() -> None:
    _mine.folders.clear()


def has_locks() -> bool:
    """Whether the system has the locks of this module."""
    return fcntl is not None


def lock(fd: int, wait: bool) -> bool:
    """Take a lock. ``False`` if there are no locks. Raises ``BlockingIOError`` if another process has it."""
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
    """Wait for the lock. Returns whether no other process has it."""
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
