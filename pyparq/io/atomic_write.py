"""Local files that take their place only when they are complete.

Until then a file has no name at all where the system can make such files (Linux, ``O_TMPFILE``): it is gone when the
process is, however that ends. No call puts it in the place of another file, though: it is linked under a hidden name,
which then replaces the target. A kill between these two leaves that hidden file, complete. Elsewhere the file has the
hidden name from the beginning, and a kill leaves it there.

The last step is taken under the lock of the file that has the name (:mod:`pyparq.io.file_lock`). A file that was made
from the one that it replaces takes the place of that one only. Programs without locks may be quicker. So the two files
exchange their names, and a look at what came out tells whether it is the expected file. Any other one goes back.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, Protocol

from pyparq.errors import ChangedMeanwhile
from pyparq.io.file_lock import Identity, locked_name
from pyparq.io.renames import exchange, rename_new

_FLAGS = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS
_NAME_BYTES = 100
"""Of the target's name in a hidden one: file systems take 255 bytes in all, some 143."""
_ACL = "system.posix_acl_access"


@dataclass(frozen=True, slots=True)
class Expected:
    """The only file that a new one may replace: the one that it was made from."""

    identity: Identity
    hold: Callable[[], AbstractContextManager[Any]] = nullcontext
    """What to hold while the new file takes its place."""


class Target(Protocol):
    """A local file that is being written."""

    fd: int
    """-1 once it is closed."""
    replaces: bool
    """Whether it takes the place of another file."""

    def finish(self, fsync: bool, expected: Expected | None = None) -> None:
        """Close it, and put it into its place. Whatever this raises, nothing is left behind.

        ``expected``: the only file that may be replaced. Raises :class:`ChangedMeanwhile` where the name is not its
        own any more, or it was written to.
        """

    def discard(self) -> None:
        """Close it, and leave nothing behind."""

    def forget(self) -> None:
        """Close it in a forked child; it stays what it is for the parent."""


def open_target(path: str) -> Target:
    """What writing to ``path`` writes to. A symbolic link stays a link; pipes and devices are written to as they are.

    Raises ``OSError`` as the operating system does for what cannot be a file.
    """
    old = _stat(path)
    last = os.path.basename(path)
    if (old is not None and stat.S_ISDIR(old.st_mode)) or (path and last in ("", ".", "..")):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not path:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    try:
        if old is not None and not stat.S_ISREG(old.st_mode):
            return _InPlace(path)
        return _Replacement(os.path.realpath(path), old)
    except OSError as error:
        error.filename = path  # the user's name, not the one for the time being
        raise


class _InPlace:
    """A pipe or a device: a rename cannot replace it."""

    def __init__(self, path: str) -> None:
        self.fd = os.open(path, os.O_WRONLY | _FLAGS)
        self.replaces = False

    def finish(self, fsync: bool, expected: Expected | None = None) -> None:
        try:
            if fsync:
                os.fsync(self.fd)
        finally:
            self.discard()

    def discard(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def forget(self) -> None:
        self.discard()


class _Replacement:
    """A new file for ``target``, in place of the one that had the status ``old``, if there was one."""

    def __init__(self, target: str, old: os.stat_result | None) -> None:
        self._target = target
        self._old = old
        self.replaces = old is not None
        self._name = ""
        # A new file gets the permissions that the system gives to new files: by the umask, or by the folder's default
        # ACL. One that replaces another is its owner's alone until it is complete.
        mode = 0o666 if old is None else 0o600
        self.fd = _open_unnamed(os.path.dirname(target), mode)
        if self.fd < 0:
            name = _beside(target)
            self.fd = os.open(name, _CREATE, mode)
            self._name = name

    def finish(self, fsync: bool, expected: Expected | None = None) -> None:
        try:
            now = _stat(self._target)
            old = now or self._old
            if old is not None:
                _take_over(self.fd, old, self._target)
            if not self._name:
                self._give_name()
            if fsync:
                os.fsync(self.fd)
            self._close()  # network file systems say only here that the disk is full
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
        with suppress(OSError):
            self._close()
        if self._name:
            with suppress(OSError):
                os.unlink(self._name)

    def forget(self) -> None:
        self._name = ""
        self._close()

    def _close(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def _give_name(self) -> None:
        self._name = _beside(self._target)  # known before it is there: then nothing leaves it behind
        try:
            # Python follows the link under /proc only when a folder's descriptor is given. The path is absolute, so
            # any will do.
            os.link(_proc_name(self.fd), self._name, src_dir_fd=self.fd, follow_symlinks=True)
        except OSError:
            self._copy()

    def _copy(self) -> None:
        """Under its name by copying: some sandboxes and file systems have no links. Where the folder cannot take the
        file at all, this raises what there is to say."""
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
    """The file ``name`` gets the name ``target``, whatever has it now. ``is_new``: nothing had it a moment ago."""
    while not (is_new and rename_new(name, target)):
        with locked_name(target) as is_there:
            if is_there:
                os.replace(name, target)
                return
        is_new = True  # or it is made just now: then its lock comes first


def _put_for(name: str, target: str, expected: Identity) -> None:
    """The file ``name`` takes the place of the file ``expected``, which has the name ``target``."""
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
        finally:  # also when Ctrl-C came: another program's file must not go with the hidden name
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

    Each exchange may bring out a file that yet another program has put there meanwhile: the newest one stays.
    """
    placed, found = ours, Identity.at(name)
    with suppress(FileNotFoundError):  # the name has been taken away: what was wanted last is that there is no file
        while exchange(name, target):
            out = Identity.at(name)
            if out == placed:
                return
            placed, found = found, out


def _open_unnamed(folder: str, mode: int) -> int:
    """A descriptor of a new file in ``folder`` that has no name; -1 where there are none, or none that could get one.

    What else is wrong, the attempt to create a file with a name will say.
    """
    flag = getattr(os, "O_TMPFILE", 0)
    if not flag:
        return -1
    try:
        fd = os.open(folder, flag | os.O_RDWR | _FLAGS, mode)
    except OSError:
        return -1
    if _has_proc or _is_named_in_proc(fd):
        return fd
    os.close(fd)
    return -1


_has_proc = False
"""Descriptors have been found under ``/proc``. Should they vanish from there, files get their names by copying."""


def _is_named_in_proc(fd: int) -> bool:
    global _has_proc
    with suppress(OSError):  # no /proc
        _has_proc = os.path.samestat(os.stat(_proc_name(fd)), os.fstat(fd))
    return _has_proc


def _proc_name(fd: int) -> str:
    return f"/proc/self/fd/{fd}"


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _take_over(fd: int, old: os.stat_result, where: str | int) -> None:
    """Owner, group and permissions of the file at ``where``, of status ``old``, for the one behind ``fd``.

    Only root may keep another's file another's. No permission goes to anybody who did not have it: where the group
    cannot be kept, the new group and all others get what both the old group and others had. Set-user-ID and
    set-group-ID bits stay behind; so do other extended attributes than the access ACL.
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
        os.removexattr(fd, _ACL)  # what the folder's default made of it
    with suppress(OSError):  # file systems without permissions; else it remains its owner's alone
        os.fchmod(fd, mode)
        if acl is not None and same_owner and same_group:
            os.setxattr(fd, _ACL, acl)


def _chown(fd: int, owner: int, group: int) -> tuple[bool, bool]:
    """Whether owner and group are these now."""
    now = os.fstat(fd)
    for wanted in (owner, -1):
        if (now.st_uid, now.st_gid) != (owner, group):
            with suppress(OSError):
                os.fchown(fd, wanted, group)
                now = os.fstat(fd)
    return now.st_uid == owner, now.st_gid == group


def _acl(where: str | int) -> bytes | None:
    try:
        return os.getxattr(where, _ACL)
    except (OSError, AttributeError):  # it has none, or there is no such thing here
        return None


def hidden_name(name: str) -> str:
    """A name of its own for a file that will be called ``name``, hidden from readers that list folders."""
    start = name.encode("utf-8", "surrogateescape")[:_NAME_BYTES].decode("utf-8", "ignore")
    return f".{start}.{secrets.token_hex(8)}.tmp"


def _beside(target: str) -> str:
    folder, name = os.path.split(target)
    return os.path.join(folder, hidden_name(name))


def sync_folder(path: str) -> None:
    """Flush the names in a folder to disk."""
    if os.name != "posix":
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
