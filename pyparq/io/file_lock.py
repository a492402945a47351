"""The locks that every replacement and removal of a local file takes.

The lock is an exclusive ``flock`` on the file that has the name at that moment. A program that gives the name to
another file, or removes it, holds the lock for that one step: :mod:`pyparq.io.atomic_write`, changes in place, and
commits of datasets. So the file that is replaced is always the file that was checked. Reading takes no lock.

Operations of several steps also hold the lock of the folder, which is taken first: commits of datasets, files with key
material beside them, and the last step of changes in place. It is a name of its own in the folder, because other
programs lock folders for their own reasons (``flock FOLDER job``).
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from pyparq.errors import ChangedMeanwhile, WriteConflictError
from pyparq.runtime import fork_safety
from pyparq.runtime.text import visible

try:
    import fcntl
except ImportError:  # Windows: no locks. Nothing is opened for them: it lets no file go that is open.
    fcntl = None  # type: ignore[assignment]

_NO_LOCKS = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS, errno.EBADF, errno.EINVAL)
"""Errors of file systems that have no ``flock``, or have it only for files opened for writing."""
PATIENCE = 2.0
"""Seconds to wait for a lock. pyparq holds locks for less than a millisecond. A program that holds a file's lock for
longer has other reasons, so its lock is ignored."""
FOLDER_LOCK = ".pyparq_lock"
"""Name of the lock in its folder. Readers pass it over."""
FOLDER_PATIENCE = 10.0
"""Seconds that one program may hold the lock of a folder before others that wait for it give up. A commit takes some
milliseconds, and longer where it has many files or writes ``_metadata``."""
_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
_FOLDER_FLAGS = _FLAGS | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)


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

    Another program may hold it for :data:`FOLDER_PATIENCE` at a time: :class:`WriteConflictError` after that. Unless
    ``patient``, it is waited for two seconds, and then ``False`` is given. Raises ``OSError`` as the operating system
    does, for a folder that cannot be written to, too.
    """
    status = os.stat(path)
    folder = status.st_dev, status.st_ino
    if fcntl is None or folder in _mine.folders:
        yield True
        return
    held = _FolderLock(path)
    try:
        if not held.take(patient):
            yield False
            return
        _mine.folders.add(folder)
        try:
            yield True
        finally:
            _mine.folders.discard(folder)
            held.remove()
    finally:
        held.release()


class _FolderLock(HeldLock):
    """The lock of a folder: a ``flock`` on the folder :data:`FOLDER_LOCK` in it.

    That one is there while the lock is held, and after a crash. It holds an empty folder whose name says who has the
    lock. Nothing here is a file: some readers of folders take each file for data.
    """

    def __init__(self, path: str) -> None:
        self._folder = path
        self._path = os.path.join(path, FOLDER_LOCK)
        self._holder = ""
        super().__init__(-1)

    def take(self, patient: bool) -> bool:
        """Wait for it. ``False`` where another program keeps it for too long, unless ``patient``."""
        until = time.monotonic() + PATIENCE
        while True:
            self.release()
            try:
                os.mkdir(self._path)
            except FileExistsError:
                pass
            except PermissionError as error:
                error.filename = self._folder
                raise
            try:
                self._fd = os.open(self._path, _FOLDER_FLAGS)
            except FileNotFoundError:  # another program has just removed it
                continue
            if patient:
                self._wait()
            elif not _wait_for_lock(self._fd, until):
                return False
            if _is_named(self._fd, self._path):
                self._sign()
                return True

    def _wait(self) -> None:
        """Wait for one holder: the next one has a lock of its own."""
        if not _wait_for_lock(self._fd, time.monotonic() + FOLDER_PATIENCE):
            raise WriteConflictError(
                f"another program holds the lock of the folder ({FOLDER_LOCK}){self._held_by()}. It was waited for, "
                f"{FOLDER_PATIENCE:g} seconds long. Try again when that program has ended its write, or end it",
                file=self._folder,
            )

    def _held_by(self) -> str:
        with suppress(OSError, ValueError):
            pid, host, since = min(os.listdir(self._fd)).split("@")
            return ": " + visible(f"process {pid} on {host}, since {since}")
        return ""

    def _sign(self) -> None:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._holder = f"{os.getpid()}@{os.uname().nodename}@{now}"
        with suppress(OSError):  # the lock counts without its sign
            for name in os.listdir(self._fd):  # what a crash has left
                os.rmdir(name, dir_fd=self._fd)
            os.mkdir(self._holder, dir_fd=self._fd)

    def remove(self) -> None:
        """Remove the folder, while the lock is held: who waits for it then takes another one."""
        if self._fd >= 0:  # not in a forked child
            with suppress(OSError):
                os.rmdir(self._holder, dir_fd=self._fd)
                os.rmdir(self._path)


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
