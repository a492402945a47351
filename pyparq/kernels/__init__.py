"""The C++ kernels behind every per-value loop, with their types.

Kernels take buffers (anything C-contiguous: numpy arrays, bytes, memoryviews) and give numpy arrays or
bytes. They do no I/O, release the GIL while they work, and check every read, write and count. Bytes or
arguments that do not fit raise `KernelError`, a `ValueError`. `_native.pyi` has the type and docstring of each.
It is made from the bindings in `src/*/bindings.cpp`.
"""

from __future__ import annotations


def _why_missing(error: ImportError) -> str:
    """The message of the import error, with what to do: the import system said ``error``."""
    import sys
    from pathlib import Path

    package = Path(__file__).resolve().parents[1]
    for entry in sys.path:
        other = (Path(entry or ".") / "pyparq").resolve()
        if other != package and any((other / "kernels").glob("_native*")):
            return (
                f"Python found the source folder {package} before the installed pyparq in {other}, and the source "
                "folder has no compiled kernels. Run Python from another folder, use the command `pyparq` instead of "
                "`python -m pyparq`, or install the source folder with `pip install -e .`"
            )
    return (
        "pyparq's compiled kernels (pyparq.kernels._native) are missing or do not fit this Python. Install pyparq "
        f"again: `pip install .` in the source folder builds them. The loader said: {error}"
    )


try:
    from pyparq.kernels._native import *  # noqa: F403  each of them is for the modules above
except ImportError as exc:  # never a silent slow path
    raise ImportError(_why_missing(exc)) from exc

DOOR = ("buffers",)
"""Modules of this package that other packages may use."""
