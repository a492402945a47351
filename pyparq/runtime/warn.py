"""Warnings that point at the line of the program that called pyparq."""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
import warnings
from types import FrameType

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARY = sysconfig.get_path("stdlib") + os.sep
_PACKAGES = ("site-packages", "dist-packages")


def warn_caller(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Issue a warning for the nearest line outside of pyparq and Python's own library.

    Threads of ours have no such line. The main thread, which mostly waits for them, has it.
    """
    frame = _outside(sys._getframe(1))
    if frame is None:
        waiting = sys._current_frames().get(threading.main_thread().ident or 0)
        frame = None if waiting is None else _outside(waiting)
    if frame is None:
        warnings.warn(message, category, stacklevel=2)
        return
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    name = frame.f_globals.get("__name__") or "<string>"
    warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno, name, registry)


def _outside(frame: FrameType | None) -> FrameType | None:
    while frame is not None and _is_passed_over(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _is_passed_over(path: str) -> bool:
    if path.startswith((_OWN, "<frozen")):
        return True
    return path.startswith(_LIBRARY) and not any(name in path for name in _PACKAGES)
