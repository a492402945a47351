"""The error message for an installation without compiled kernels."""

from __future__ import annotations

import sys
from pathlib import Path


def why_missing(error: ImportError) -> str:
    """The message of the import error, with what to do: the import system said ``error``."""
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
