"""The C++ kernels behind every per-value loop, with their types.

Kernels take buffers (anything C-contiguous: numpy arrays, bytes, memoryviews) and give numpy arrays or
bytes. They do no I/O, release the GIL while they work, and check every read, write and count. Bytes or
arguments that do not fit raise `KernelError`, a `ValueError`. `_native.pyi` has the type and docstring of each.
It is made from the bindings in `src/*/bindings.cpp`.
"""

from __future__ import annotations

try:
    from pyparq.kernels._native import *  # noqa: F403  each of them is for the modules above
except ImportError as exc:  # never a silent slow path
    from pyparq.kernels.missing import why_missing

    raise ImportError(why_missing(exc)) from exc

DOOR = ("buffers",)
"""Modules of this package that other packages may use."""
