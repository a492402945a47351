"""Renames that ``os`` does not have: one that replaces nothing, and one that exchanges two names.

Both are Linux's ``renameat2``, called in the C library of Python itself.
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
