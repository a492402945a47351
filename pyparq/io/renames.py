"""Renames that ``os`` has no call for: one that replaces nothing, and one that exchanges two names.

Both are ``renameat2`` of Linux. They go through the C library that Python itself runs on.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from functools import cache
from typing import Any

_AT_FDCWD = -100
_NOREPLACE, _EXCHANGE = 1, 2
_NOT_HERE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM)
"""What kernels, sandboxes and file systems say that do not have the call, or not with this flag."""


def exchange(first: str, second: str) -> bool:
    """Let two files have each other's name, in one step. ``False`` where the system cannot; then nothing has changed.

    Raises ``FileNotFoundError`` where one of them is not there, and ``OSError`` as the operating system does.
    """
    return _renameat2(first, second, _EXCHANGE)


def rename_new(old: str, new: str) -> bool:
    """Rename ``old`` to ``new`` unless something has that name. Gives whether it was renamed.

    Where the system has no such call, a hard link does it. Where there are no links either, a look comes first and a
    rename after it: a file that appears in between is replaced.
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
    if not sys.platform.startswith("linux"):
        return None
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)  # absent before glibc 2.28
    if call is not None:
        call.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
        call.restype = ctypes.c_int
    return call
