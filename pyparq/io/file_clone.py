"""Copies bytes from one local file to the end of another without reading them into this process.

``copy_file_range`` lets the file system share blocks where it can (btrfs, XFS, bcachefs), or copy them itself.
"""

from __future__ import annotations

import errno
import os

from pyparq.io.positioned_reads import read_at
from pyparq.runtime.threads import check_stopped

_PIECE = 64 << 20
"""Bytes of one call: between two, Ctrl-C is noticed."""
_CANNOT = {
    getattr(errno, name, -1) for name in ("EXDEV", "EINVAL", "ENOSYS", "EOPNOTSUPP", "ENOTSUP", "EPERM", "EBADF")
}


def copy_range(source: int, target: int, start: int, stop: int) -> int:
    """Append bytes ``[start, stop)`` of the file ``source`` to ``target`` (both descriptors). Returns the number of
    bytes."""
    at = start
    while at < stop:
        check_stopped()
        size = min(stop - at, _PIECE)
        copied = _in_kernel(source, target, size, at)
        if copied < 0:
            copied = _through_memory(source, target, size, at)
        if copied == 0:
            break
        at += copied
    return at - start


def _in_kernel(source: int, target: int, size: int, at: int) -> int:
    """Number of bytes copied. -1 if the system cannot do it."""
    if not hasattr(os, "copy_file_range"):
        return -1
    try:
        return os.copy_file_range(source, target, size, at)
    except OSError as error:
        if error.errno in _CANNOT:
            return -1
        raise


def _through_memory(source: int, target: int, size: int, at: int) -> int:
    data = memoryview(read_at(source, min(size, 8 << 20), at))
    done = 0
    while done < len(data):
        done += os.write(target, data[done:])
    return done
