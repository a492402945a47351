"""Memory that is used for one read after another.

The operating system gives out fresh memory page by page. That takes a microsecond or more per 4 KiB, longer than
decompressing into it. So some memory is kept when it is freed (``kernels/src/base/memory.hpp``),
as the memory pools of other Arrow libraries do.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.kernels import keep_idle_memory, release_idle_memory, take_memory

Bytes = npt.NDArray[np.uint8]

SMALLEST = 32 << 10
"""Below this many bytes the allocator is quick enough."""
LEAST_KEPT = 64 << 20
MOST_KEPT = 512 << 20
"""Maximum number of idle bytes that are kept; fewer if memory is small."""
SHARE_OF_MEMORY = 32
"""One part in so many of the memory there is may be kept."""

CGROUPS = "/sys/fs/cgroup"
"""The folder of the control groups and their limits."""
OWN_GROUPS = "/proc/self/cgroup"
"""Names the groups that the process is in."""
_OUTERMOST = f"{CGROUPS}/memory.max", f"{CGROUPS}/memory/memory.limit_in_bytes"


def memory_size(quickly: bool = False) -> int:
    """Bytes of memory that this process may use: the machine's, or its container's; 0 if it is not known.

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
    with suppress(OSError), open(OWN_GROUPS, "rb") as file:
        for line in file.read().decode("utf-8", "replace").splitlines():
            _, controllers, group = (*line.split(":", 2), "", "")[:3]
            folder = CGROUPS if not controllers else f"{CGROUPS}/memory"
            name = "memory.max" if not controllers else "memory.limit_in_bytes"
            if controllers and "memory" not in controllers.split(","):
                continue
            parts = [part for part in group.split("/") if part not in ("", "..")]
            found += [f"{folder}/{'/'.join(parts[:k])}/{name}" for k in range(len(parts), 0, -1)]
    return found


def kept_most() -> int:
    """Bytes that are kept at most."""
    return max(LEAST_KEPT, min(MOST_KEPT, memory_size(quickly=True) // SHARE_OF_MEMORY))


keep_idle_memory(kept_most())


def empty_results(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """As ``np.empty``, for what a read leaves behind."""
    wanted = np.dtype(dtype)
    size = prod(shape) * wanted.itemsize
    if size < SMALLEST:
        return np.empty(shape, wanted)
    return take_memory(size).view(wanted).reshape(shape)


def release_unused() -> None:
    """Return unused memory that pyparq keeps for later reads to the system.

    pyparq keeps up to 1/32 of the memory that the machine or container has, at least 64 MiB and at most 512 MiB.

    Example::

        table = pyparq.read_table("flights.parquet")
        del table
        pyparq.release_unused()
    """
    release_idle_memory()
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
            self._buffer = take_memory(max(size, 1 << 16))
        return self._buffer
