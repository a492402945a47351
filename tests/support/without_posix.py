"""Makes this process like one on a system without POSIX calls, as far as pyparq can tell, before pyparq is imported.

What Windows' Python does not have is removed from ``os`` and ``select``, and the modules for it cannot be imported.
Open files cannot be replaced, renamed or removed, and a rename replaces nothing. The paths stay those of this system.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import select
import sys
import tempfile
from typing import Any

import numpy  # noqa: F401  # as built for this system, it needs uname when it loads

CALLS = (
    "chown", "copy_file_range", "fchmod", "fchown", "fdatasync", "fork", "forkpty", "get_blocking", "getgid", "getpgid",
    "getuid", "geteuid", "getegid", "getxattr", "lchown", "listxattr", "mkfifo", "nice", "posix_fadvise",
    "posix_fallocate", "pread", "preadv", "pwrite", "pwritev", "register_at_fork", "removexattr", "sched_getaffinity",
    "sendfile", "set_blocking", "setxattr", "splice", "statvfs", "sync", "sysconf", "uname", "wait", "wait4",
)  # fmt: skip
FLAGS = ("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_TMPFILE", "O_SYNC", "O_DSYNC", "O_PATH")
MODULES = ("fcntl", "grp", "pwd", "resource", "termios", "tty")
KERNELS = ("begin_writeback", "footer_kinds", "pread_ranges", "read_footers", "read_many_ranges")
"""Functions of the kernels that are ``None`` where the system has no positioned reads."""


def hide() -> Any:
    """Hide all of it. Returns pyparq, imported after that."""
    for name in (*CALLS, *FLAGS):
        if hasattr(os, name):
            delattr(os, name)
    if hasattr(select, "poll"):
        del select.poll
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]  # an import of it fails
    tempfile.TemporaryFile = tempfile.NamedTemporaryFile  # its file has a name there
    _guard_open_files()
    _guard_ctypes()
    kernels = importlib.import_module("pyparq.kernels")
    for name in KERNELS:
        assert hasattr(kernels, name), name
        setattr(kernels, name, None)
    return importlib.import_module("pyparq")


def _guard_ctypes() -> None:
    """``CDLL(None)`` is the C library of the process, which Windows does not have."""
    real = ctypes.CDLL

    def cdll(name: Any, *args: Any, **options: Any) -> Any:
        if name is None:
            raise TypeError("bad argument type for built-in operation")
        return real(name, *args, **options)

    ctypes.CDLL = cdll  # type: ignore[assignment,misc]


def _guard_open_files() -> None:
    replace, rename, unlink, rmdir, open_file = os.replace, os.rename, os.unlink, os.rmdir, os.open

    def checked_replace(source: Any, target: Any, **options: Any) -> None:
        _refuse_open(source)
        _refuse_open(target)
        replace(source, target, **options)

    def checked_rename(source: Any, target: Any, **options: Any) -> None:
        if os.path.lexists(target):
            raise FileExistsError(17, "File exists", source, None, target)
        _refuse_open(source)
        rename(source, target, **options)

    def checked_unlink(path: Any, **options: Any) -> None:
        _refuse_open(path)
        unlink(path, **options)

    def checked_rmdir(path: Any, **options: Any) -> None:
        _refuse_open(path)
        rmdir(path, **options)

    def checked_open(path: Any, flags: int, *args: Any, **options: Any) -> int:
        if os.path.isdir(path):
            raise PermissionError(13, "Permission denied", path)
        return open_file(path, flags, *args, **options)

    os.replace, os.rename, os.unlink, os.remove = checked_replace, checked_rename, checked_unlink, checked_unlink
    os.rmdir, os.open = checked_rmdir, checked_open
    os.supports_dir_fd = os.supports_fd = os.supports_follow_symlinks = set()  # type: ignore[assignment]


def _refuse_open(path: Any) -> None:
    """Raise the error of a system that lets no file go that is open, if this process has opened it or what is in it."""
    wanted = os.path.realpath(path)
    for number in os.listdir("/proc/self/fd"):
        try:
            found = os.readlink(f"/proc/self/fd/{number}")
        except FileNotFoundError:  # the listing's own
            continue
        if found == wanted or found.startswith(wanted + os.sep):
            raise PermissionError(13, "The process cannot access the file because it is being used", path)
