"""Memory that one read after another goes into, and memory that the kernel gives out quickly.

Fresh memory is given out by the kernel page by page, at a microsecond and more for each 4 KiB when it is first touched:
more than it costs to decompress into it. What is fetched and inflated here lives only until it is decoded, so a few
buffers serve all reads of the process, and stay in the processor's caches.
"""

from __future__ import annotations

import sys
import threading
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

SMALLEST = 32 << 10
"""Below this many bytes the allocator is quick enough."""
LARGEST = 32 << 20
MOST = 64 << 20
"""Bytes kept in all. Whatever does not fit is allocated and freed as usual."""


HUGE = 2 << 20
"""Bytes of a large page: numpy asks the kernel for those in arrays of 4 MiB and more, as far as they are aligned."""


def empty_results(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """``np.empty`` for what a read leaves behind, which cannot be used again.

    From some size on it starts at a large page's edge: then it is there after a few faults instead of thousands. The
    rest of its last page is a third of it at most.
    """
    wanted = np.dtype(dtype)
    size = prod(shape) * wanted.itemsize
    if size < 3 * HUGE // 2:
        return np.empty(shape, wanted)
    raw = np.empty(max(size + HUGE, 2 * HUGE), np.uint8)
    start = -raw.ctypes.data % HUGE
    return raw[start : start + size].view(wanted).reshape(shape)


class BufferPool:
    """Buffers of a few sizes. One is free again when the last view into it is gone, which its reference count tells:
    nobody has to give anything back, and nothing that is still in use can be handed out twice."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._kept: dict[int, list[Bytes]] = {}
        self._total = 0
        self._lock = threading.Lock()

    def take(self, size: int) -> Bytes:
        """``size`` bytes of anything."""
        if not SMALLEST <= size <= LARGEST:
            return np.empty(size, np.uint8)
        room = 1 << (size - 1).bit_length()
        with self._lock:
            kept = self._kept.setdefault(room, [])
            for buffer in kept:
                if sys.getrefcount(buffer) == _IDLE:
                    return buffer[:size]
            if self._total + room > self._most and not self._drop_idle(room):
                return np.empty(size, np.uint8)
            buffer = np.empty(room, np.uint8)
            kept.append(buffer)
            self._total += room
            return buffer[:size]

    def _drop_idle(self, room: int) -> bool:
        """Give up buffers of other sizes until ``room`` bytes fit; whether they do."""
        for kept in self._kept.values():
            for k in range(len(kept) - 1, -1, -1):
                if sys.getrefcount(kept[k]) == _IDLE - 1:
                    self._total -= len(kept.pop(k))
                    if self._total + room <= self._most:
                        return True
        return False

    @property
    def total(self) -> int:
        """Bytes kept, in use or not."""
        return self._total


_IDLE = 3
"""References to a buffer that only the pool knows: its list, the loop's name, and the argument of the question."""

pool = BufferPool()
"""The one that all reads share."""


class Scratch:
    """Memory that one page after another goes into; views into it die with the next page."""

    def __init__(self) -> None:
        self._buffer = np.empty(0, np.uint8)

    def take(self, size: int) -> Bytes:
        """At least ``size`` bytes."""
        if size > len(self._buffer):
            self._buffer = pool.take(max(size, 1 << 16))
        return self._buffer
