"""Reads at a place of an open file that leave its position alone, so that threads can share it.

Windows has no such call in Python. There one thread after another moves to the place and reads.
"""

from __future__ import annotations

import os
import threading

from pyparq.runtime import fork_safety

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
