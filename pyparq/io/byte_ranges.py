"""What every source of bytes offers: ranges of one file. And reads and copies at a place of an open local file.

They leave the position of the file alone, so that threads can share it. Windows has no such call in Python. There one
thread after another moves to the place and reads.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Sequence
from typing import Protocol

from pyparq.runtime import fork_safety
from pyparq.runtime.threads import check_stopped

Range = tuple[int, int]
"""(offset, length) in bytes."""


class Source(Protocol):
    """Random access to the bytes of one file."""

    name: str
    is_local: bool
    """Requests cost microseconds, not milliseconds."""

    @property
    def size(self) -> int:
        """Bytes of the file. A remote file may have to ask for it."""

    def read_ranges(self, ranges: Sequence[Range]) -> list[memoryview]:
        """The bytes of each range; :class:`CorruptFileError` where the file ends before a range does."""

    def close(self) -> None: ...


_turn = threading.Lock()


@fork_safety.in_child
def _nobody_reads() -> None:
    global _turn
    _turn = threading.Lock()


def read_at(fd: int, length: int, offset: int) -> bytes:
    """Up to ``length`` bytes from ``offset`` on: fewer at the end of the file. Raises ``OSError``."""
    if hasattr(os, "pread"):
        return os.pread(fd, length, offset)
    with _turn:
        os.lseek(fd, offset, os.SEEK_SET)
        return os.read(fd, length)


def read_into(fd: int, buffer: memoryview, offset: int) -> int:
    """Fill ``buffer`` from ``offset`` on, as far as the file goes and one call reads. Returns the number of bytes."""
    if hasattr(os, "preadv"):
        return os.preadv(fd, [buffer], offset)
    data = read_at(fd, len(buffer), offset)
    buffer[: len(data)] = data
    return len(data)


# ---- copies --------------------------------------------------------------------------------------------------------

_PIECE = 64 << 20
"""Bytes of one call: between two, Ctrl-C is noticed."""
_CANNOT = {
    getattr(errno, name, -1) for name in ("EXDEV", "EINVAL", "ENOSYS", "EOPNOTSUPP", "ENOTSUP", "EPERM", "EBADF")
}


def copy_between(source: int, target: int, start: int, stop: int) -> int:
    """Append bytes ``[start, stop)`` of the file ``source`` to ``target`` (both descriptors). Returns the number of
    bytes.

    They are not read into this process where the file system can share blocks (btrfs, XFS, bcachefs) or copy them
    itself (``copy_file_range``)."""
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
