"""Local files that get their name only when they are complete.

Until then a file has no name at all, if the system can make such files (Linux, ``O_TMPFILE``): it vanishes with the
process, however that ends. No system call can give such a file the name of an existing one. So it is first linked under
a hidden name, and then renamed over the target. A kill between these two steps leaves the complete file under the
hidden name. On other systems the file has the hidden name from the beginning, and a kill leaves it there.

The last step holds the lock of the file that has the name (:mod:`pyparq.io.file_lock`). A file that was made from the
one it replaces may replace only that one. Programs without locks may be faster. So the two files exchange their names,
and a check afterwards tells whether the expected file was replaced. Any other file gets its name back.
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import stat
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from pyparq.errors import ChangedMeanwhile
from pyparq.io.file_lock import Identity, locked_name

_FLAGS = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS
_NAME_BYTES = 100
"""Bytes of the target's name that a hidden name keeps: file systems allow 255 bytes in all, some 143."""
_ACL = "system.posix_acl_access"


@dataclass(frozen=True, slots=True)
class Expected:
    """The only file that a new one may replace: the one it was made from."""

    identity: Identity
    hold: Callable[[], AbstractContextManager[Any]] = nullcontext
    """What to hold while the new file takes its place."""


class Target:
    """A local file that is being written. A symbolic link stays a link. Pipes and devices are written to directly: a
    rename cannot replace them. So are files in staging, whose names nobody looks for."""

    def __init__(self, path: str, in_staging: bool = False) -> None:
        """Raises ``OSError`` as the operating system does, for a path that cannot be a file."""
        old, last = _stat(path), os.path.basename(path)
        if (old is not None and stat.S_ISDIR(old.st_mode)) or (path and last in ("", ".", "..")):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not path:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        self._is_written_to = in_staging or (old is not None and not stat.S_ISREG(old.st_mode))
        """It has its name from the beginning."""
        self.replaces = old is not None and not self._is_written_to
        """Whether it takes the place of another file."""
        self._old = old
        self._name = ""
        self.fd = -1
        """-1 once it is closed."""
        try:
            self._target = path if self._is_written_to else os.path.realpath(path)
            self._open(in_staging)
        except OSError as error:
            error.filename = path  # the name that the user gave, not the hidden one
            raise

    def _open(self, in_staging: bool) -> None:
        if self._is_written_to:
            self.fd = os.open(self._target, _CREATE if in_staging else os.O_WRONLY | _FLAGS, 0o666)
            self._name = self._target if in_staging else ""
            return
        # A new file gets the permissions that the system gives to new files, by the umask or by the folder's default
        # ACL. A file that replaces another one is readable only for its owner until it is complete.
        mode = 0o600 if self.replaces else 0o666
        self.fd = open_unnamed(os.path.dirname(self._target), mode)
        if self.fd < 0:
            name = _beside(self._target)
            self.fd = os.open(name, _CREATE, mode)
            self._name = name

    def finish(self, fsync: bool, expected: Expected | None = None) -> None:
        """Close it, and put it in its place. An error leaves nothing behind.

        ``expected``: the only file that may be replaced. Raises :class:`ChangedMeanwhile` if the name belongs to
        another file by now, or if the file was written to.
        """
        try:
            if self._is_written_to:
                if fsync:
                    os.fsync(self.fd)
                self._close()
                return
            now = _stat(self._target)
            old = now or self._old
            if old is not None:
                _take_over(self.fd, old, self._target)
            # Only now does the file get a name: a process that dies before leaves nothing behind.
            if not self._name:
                self._give_name()
            if fsync:
                os.fsync(self.fd)
            self._close()  # network file systems report a full disk only here
            if expected is None:
                _put(self._name, self._target, is_new=now is None)
            else:
                with expected.hold():
                    _put_for(self._name, self._target, expected.identity)
        except BaseException:
            self.discard()
            raise
        if fsync:
            sync_folder(os.path.dirname(self._target))

    def discard(self) -> None:
        """Close it, and leave nothing behind."""
        with suppress(OSError):
            self._close()
        if self._name:
            with suppress(OSError):
                os.unlink(self._name)

    def forget(self) -> None:
        """Close it in a forked child. The parent's file is not affected."""
        self._name = ""
        self._close()

    def _close(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def _give_name(self) -> None:
        # the name is noted before the file exists, so that an error leaves nothing behind
        self._name = _beside(self._target)
        try:
            # Python follows the link under /proc only with a folder's descriptor. The path is absolute, so
            # any descriptor will do.
            os.link(_proc_name(self.fd), self._name, src_dir_fd=self.fd, follow_symlinks=True)
        except OSError:
            self._copy()

    def _copy(self) -> None:
        """Give the file its name by copying it: some sandboxes and file systems have no links. Raises the error if the
        folder cannot take the file at all."""
        unnamed, self.fd = self.fd, -1
        try:
            self.fd = os.open(self._name, _CREATE, 0o600)
            at = 0
            while done := os.sendfile(self.fd, unnamed, at, 1 << 30):
                at += done
            _take_over(self.fd, os.fstat(unnamed), unnamed)
        finally:
            os.close(unnamed)


def _put(name: str, target: str, is_new: bool) -> None:
    """Give the file ``name`` the name ``target``, which another file may have. ``is_new``: no file had it a moment
    ago."""
    while not (is_new and rename_new(name, target)):
        with locked_name(target) as is_there:
            if is_there:
                os.replace(name, target)
                return
        is_new = True  # or it was made just now: then its lock is needed first


def _put_for(name: str, target: str, expected: Identity) -> None:
    """Replace the file ``expected``, which has the name ``target``, by the file ``name``."""
    with locked_name(target):
        expected.check(target)
        ours = Identity.at(name)
        try:
            if not exchange(name, target):
                os.replace(name, target)
                return
        except FileNotFoundError:
            expected.check(target)
            raise
        finally:  # also after Ctrl-C: another program's file must not be removed under the hidden name
            found = Identity.at(name)
            if found not in (ours, expected, None):
                _put_back(name, target, ours)
        if found != expected:
            raise ChangedMeanwhile(
                "another program replaced the file, or wrote to it, at the last moment. Its file is there, and nothing "
                "was written: try again",
                file=target,
            )
    os.unlink(name)


def _put_back(name: str, target: str, ours: Identity | None) -> None:
    """Give ``target`` back to the file of another program, which now has the name ``name``.

    Each exchange may reveal a file that yet another program has put there in the meantime. The newest file stays.
    """
    placed, found = ours, Identity.at(name)
    with suppress(FileNotFoundError):  # the name was removed: the last change is that there is no file
        while exchange(name, target):
            out = Identity.at(name)
            if out == placed:
                return
            placed, found = found, out


def open_unnamed(folder: str, mode: int) -> int:
    """A descriptor of a new file without a name in ``folder``. -1 if the system has no such files, or cannot name them
    later. Other errors show when a named file is created instead."""
    flag = getattr(os, "O_TMPFILE", 0)
    if not flag:
        return -1
    try:
        fd = os.open(folder, flag | os.O_RDWR | _FLAGS, mode)
    except OSError:
        return -1
    if _seen_under == DESCRIPTORS or _is_named_in_proc(fd):
        return fd
    os.close(fd)
    return -1


DESCRIPTORS = "/proc/self/fd"
"""The folder of the open files of this process."""
_seen_under = ""
"""The folder that has been seen to show them. If they vanish, files get their names by copying."""


def _is_named_in_proc(fd: int) -> bool:
    global _seen_under
    with suppress(OSError):  # no /proc
        _seen_under = DESCRIPTORS if os.path.samestat(os.stat(_proc_name(fd)), os.fstat(fd)) else ""
    return _seen_under == DESCRIPTORS


def _proc_name(fd: int) -> str:
    return f"{DESCRIPTORS}/{fd}"


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def take_over(path: str, old: str) -> None:
    """Give a file that may be read the owner, group and permissions of the file ``old`` that it replaces."""
    with suppress(FileNotFoundError, PermissionError):
        status = os.lstat(old)
        fd = os.open(path, os.O_RDONLY | _FLAGS)
        if stat.S_ISREG(status.st_mode):
            _take_over(fd, status, old)
        os.close(fd)


def _take_over(fd: int, old: os.stat_result, where: str | int) -> None:
    """Copy owner, group and permissions of the file at ``where``, of status ``old``, to the file behind ``fd``.

    Only root can keep another user as the owner. No user gains a permission: if the group cannot be kept, the new group
    and all others get what both the old group and others had. Set-user-ID and set-group-ID bits are dropped, and so are
    extended attributes other than the access ACL.
    """
    if not hasattr(os, "fchown"):
        return
    mode = old.st_mode & 0o777
    same_owner, same_group = _chown(fd, old.st_uid, old.st_gid)
    if not same_group:
        both = mode >> 3 & mode & 0o7
        mode = mode & 0o700 | both << 3 | both
    acl = _acl(where)
    with suppress(OSError, AttributeError):
        os.removexattr(fd, _ACL)  # the result of the folder's default
    with suppress(OSError):  # a file system without permissions; otherwise only the owner may read it
        os.fchmod(fd, mode)
        if acl is not None and same_owner and same_group:
            os.setxattr(fd, _ACL, acl)


def _chown(fd: int, owner: int, group: int) -> tuple[bool, bool]:
    """Whether owner and group could be set."""
    now = os.fstat(fd)
    # Without the right to give files away, at least the group can often be kept (-1 leaves the owner as it is).
    for wanted in (owner, -1):
        if (now.st_uid, now.st_gid) != (owner, group):
            with suppress(OSError):
                os.fchown(fd, wanted, group)
                now = os.fstat(fd)
    return now.st_uid == owner, now.st_gid == group


def _acl(where: str | int) -> bytes | None:
    try:
        return os.getxattr(where, _ACL)
    except (OSError, AttributeError):  # the file has none, or the system has no such thing
        return None


def hidden_name(name: str) -> str:
    """A unique name for a file that will be called ``name``. Readers that list folders ignore it."""
    start = name.encode("utf-8", "surrogateescape")[:_NAME_BYTES].decode("utf-8", "ignore")
    return f".{start}.{secrets.token_hex(8)}.tmp"


def _beside(target: str) -> str:
    folder, name = os.path.split(target)
    return os.path.join(folder, hidden_name(name))


def sync_folder(path: str) -> None:
    """Flush the names in a folder to disk, where the system opens folders."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


# ---- renames that os does not have: Linux's renameat2, in the C library of Python itself ---------------------------

_AT_FDCWD = -100
_NOREPLACE, _EXCHANGE = 1, 2
_NOT_HERE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM)
"""Errors of kernels, sandboxes and file systems that do not have the call, or not with this flag."""


def exchange(first: str, second: str) -> bool:
    """Exchange the names of two files in one step. ``False`` if the system cannot; nothing has changed then.

    Raises ``FileNotFoundError`` if one of them does not exist, and ``OSError`` as the operating system does.
    """
    return _renameat2(first, second, _EXCHANGE)


def rename_new(old: str, new: str) -> bool:
    """Rename ``old`` to ``new`` unless that name is taken. Returns whether it was renamed.

    Without this system call, a hard link does it. Without links, a check comes before a rename: a file that appears in
    between is replaced.
    """
    try:
        if _renameat2(old, new, _NOREPLACE):
            return True
    except FileExistsError:
        return False
    try:
        os.link(old, new)
    except FileExistsError:
        return False
    except OSError:
        if os.path.lexists(new):
            return False
        os.rename(old, new)
        return True
    os.unlink(old)
    return True


def _renameat2(old: str, new: str, flags: int) -> bool:
    call = _function()
    if call is None:
        return False
    sys.audit("os.rename", old, new, -1, -1)
    if call(_AT_FDCWD, os.fsencode(old), _AT_FDCWD, os.fsencode(new), flags) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NOT_HERE:
        return False
    raise OSError(code, os.strerror(code), old, None, new)


@cache
def _function() -> Any:
    try:
        own = ctypes.CDLL(None, use_errno=True)
    except (OSError, TypeError):  # Windows has no C library of the process
        return None
    call = getattr(own, "renameat2", None)  # absent before glibc 2.28, and on other systems than Linux
    if call is not None:
        call.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
        call.restype = ctypes.c_int
    return call
