"""The C++ kernels behind every per-value loop, with their types.

Kernels take buffers (anything C-contiguous: numpy arrays, bytes, memoryviews) and give numpy arrays or
bytes. They do no I/O, release the GIL while they work, and check every read, write and count. Bytes or
arguments that do not fit raise `KernelError`, a `ValueError`.
"""

from __future__ import annotations

try:
    from pyparq.kernels._native import KernelError
except ImportError as exc:  # never a silent slow path
    raise ImportError(
        "pyparq's compiled kernels (pyparq.kernels._native) are missing or do not fit this Python. "
        "Install a wheel, or build them from the source tree with `pip install .` (needs a C++20 compiler). "
        f"The loader said: {exc}"
    ) from exc

__all__ = ["KernelError"]
