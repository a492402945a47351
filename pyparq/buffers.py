"""Memory that one read after another goes into.

Fresh memory is given out by the kernel page by page, at a microsecond and more for each 4 KiB when it is first touched:
more than it costs to decompress into it. So some of it is kept: a little for what lives only until it is decoded, more
for results, which come back when the user lets go of them (as the memory pools of other Arrow libraries do).
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from contextlib import suppress
from functools import cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq import forks
from pyparq.kernels import Arena

Bytes = npt.NDArray[np.uint8]

SMALLEST = 32 << 10
"""Below this many bytes the allocator is quick enough."""
LARGEST = 64 << 20
"""A buffer larger than this is never kept."""
MOST = 64 << 20
"""Bytes kept for passing use in all. Whatever does not fit is allocated and freed as usual."""
MOST_RESULTS = 512 << 20
"""Bytes kept for results, those that are in use included; less where memory is small."""
SHARE_OF_MEMORY = 32
"""Results may keep one part in so many of the memory there is."""
HUGE = 2 << 20
"""Bytes of a large page: numpy asks the kernel for those in arrays of 4 MiB and more, as far as they are aligned."""


class BufferPool:
    """Buffers of a few sizes. One is free again when the last view into it is gone, which its reference count tells:
    nobody has to give anything back, and nothing that is still in use can be handed out twice."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._after_fork()
        forks.watch(self)

    def _after_fork(self) -> None:
        """Begin with nothing: another thread may have been about to change what was here."""
        self._kept: dict[int, deque[Bytes]] = {}
        self._total = 0
        self._lock = threading.Lock()

    def take(self, size: int) -> Bytes:
        """``size`` bytes of anything."""
        if not SMALLEST <= size <= LARGEST:
            return _part(_fresh(size), size)
        step = 1 << (size - 1).bit_length() - 3  # an eighth or less is unused
        room = (size + step - 1) // step * step
        with self._lock:
            kept = self._kept.setdefault(room, deque())
            buffer = _idle(kept, _TRIES)
            if buffer is not None:
                return _part(buffer, size)
            if self._total + room > self._most and not self._drop_idle(room, _TRIES):
                return _part(_fresh(size), size)
            try:
                buffer = _fresh(room)
            except MemoryError:
                self._drop_all()
                buffer = _fresh(room)
            kept.append(buffer)
            self._total += room
            return _part(buffer, size)

    def release(self) -> None:
        """Give up all that is idle."""
        with self._lock:
            self._drop_all()

    def _drop_all(self) -> None:
        self._drop_idle(self._most + 1, self._most // SMALLEST)

    def _drop_idle(self, room: int, tries: int) -> bool:
        """Give up idle buffers until ``room`` bytes fit; whether they do. Looks at ``tries`` buffers of each size."""
        for size, kept in self._kept.items():
            while _idle(kept, tries) is not None:
                kept.pop()
                self._total -= size
                if self._total + room <= self._most:
                    return True
        return False

    @property
    def total(self) -> int:
        """Bytes kept, in use or not."""
        return self._total


_TRIES = 8
"""Buffers to look at for one that is idle. There may be thousands in use: a wide table has as many columns."""


def _turn(kept: deque[Bytes]) -> tuple[int, Bytes]:
    """The first buffer, moved to the end so that the next search goes on behind it, and its reference count."""
    buffer = kept.popleft()
    kept.append(buffer)
    return sys.getrefcount(buffer), buffer


def _count_alone() -> int:
    """What :func:`_turn` counts for a buffer that nobody else refers to. Interpreters differ in what they count of a
    running function; -1, so that nothing is ever used again, for one that does not count each view."""
    kept = deque([np.empty(1, np.uint8)])
    alone = _turn(kept)[0]
    view = kept[0][:1]
    seen = _turn(kept)[0]
    del view
    return alone if seen == alone + 1 and _turn(kept)[0] == alone else -1


_ALONE = _count_alone()


def _idle(kept: deque[Bytes], tries: int) -> Bytes | None:
    """A buffer that nobody else refers to, now the last; ``None`` where the first ``tries`` are all in use."""
    for _ in range(min(tries, len(kept))):
        count, buffer = _turn(kept)
        if count == _ALONE:
            return buffer
    return None


def _fresh(size: int) -> Bytes:
    """New memory for ``size`` bytes; with room to align it to large pages from where the unused rest of the last one
    is a third at most."""
    return np.empty(size if size < 3 * HUGE // 2 else size + HUGE, np.uint8)


def _part(buffer: Bytes, size: int) -> Bytes:
    """``size`` bytes of a fresh buffer, from a large page's edge on in large ones: then they are there after a few
    faults instead of thousands."""
    start = 0 if len(buffer) < 2 * HUGE else -buffer.ctypes.data % HUGE
    return buffer[start : start + size]


CGROUPS = "/sys/fs/cgroup"
_OUTERMOST = f"{CGROUPS}/memory.max", f"{CGROUPS}/memory/memory.limit_in_bytes"


def memory_size(quickly: bool = False) -> int:
    """Bytes of memory that this process may use: the machine's, or its container's; 0 where nobody tells.

    ``quickly``: of control groups the outermost alone is asked, which in a container is its own.
    """
    sizes = []
    with suppress(AttributeError, ValueError, OSError):  # not on every platform
        sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for path in _OUTERMOST if quickly else (*_OUTERMOST, *_limit_files()):
        # Not by pathlib, which takes longer to import than all else here. No such group, or "max":
        with suppress(OSError, ValueError), open(path, "rb") as file:
            sizes.append(int(file.read()))
    return min(sizes, default=0)


def _limit_files() -> list[str]:
    """Where the limits of the process's control groups stand: its own and those around it, of both versions."""
    found = []
    with suppress(OSError), open("/proc/self/cgroup", "rb") as file:
        for line in file.read().decode("utf-8", "replace").splitlines():
            _, controllers, group = (*line.split(":", 2), "", "")[:3]
            folder = CGROUPS if not controllers else f"{CGROUPS}/memory"
            name = "memory.max" if not controllers else "memory.limit_in_bytes"
            if controllers and "memory" not in controllers.split(","):
                continue
            parts = [part for part in group.split("/") if part not in ("", "..")]
            found += [f"{folder}/{'/'.join(parts[:k])}/{name}" for k in range(len(parts), 0, -1)]
    return found


pool = BufferPool(MOST)
"""For what is fetched and inflated."""
_results = BufferPool(max(MOST, min(MOST_RESULTS, memory_size(quickly=True) // SHARE_OF_MEMORY)))


def empty_results(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """As ``np.empty``, for what a read leaves behind."""
    wanted = np.dtype(dtype)
    size = prod(shape) * wanted.itemsize
    if size < SMALLEST:
        return np.empty(shape, wanted)
    return _results.take(size).view(wanted).reshape(shape)


def release_unused() -> None:
    """Return unused memory that pyparq keeps for later reads to the system.

    pyparq keeps up to 64 MiB for reading and decompressing. For results it keeps up to 1/32 of the memory that
    the machine or container has, at most 512 MiB.
    """
    pool.release()
    _results.release()
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@cache
def _malloc_trim() -> Any:
    """The C library's call that gives freed memory back to the system; ``None`` where it has none (glibc has)."""
    import ctypes

    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None


class Scratch:
    """Memory that one page after another goes into; views into it die with the next page."""

    def __init__(self) -> None:
        self._buffer = np.empty(0, np.uint8)

    def take(self, size: int) -> Bytes:
        """At least ``size`` bytes."""
        if size > len(self._buffer):
            self._buffer = pool.take(max(size, 1 << 16))
        return self._buffer


def new_arena() -> Arena:
    """Memory for several pages at a time, from what is kept: what is taken of it stays until it is cleared."""
    return Arena(pool.take)
