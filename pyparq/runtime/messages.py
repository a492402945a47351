"""Debug lines, under the name ``pyparq`` and a child for each package: ``pyparq.io``, ``pyparq.read`` and so on.

A program that has not imported ``logging`` has not asked for any. So pyparq does not import it, and code that is on the
path of each read looks for it itself before it calls anything here.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import Logger

DEBUG = 10
"""``logging.DEBUG``."""

_loggers: dict[str, Logger] = {}


def debug_logger(package: str) -> Logger | None:
    """The logger ``pyparq.<package>`` where it takes debug lines, else ``None``."""
    logger = _loggers.get(package)
    if logger is None:
        get = getattr(sys.modules.get("logging"), "getLogger", None)
        if get is None:
            return None
        logger = _loggers[package] = get(f"pyparq.{package}")
    return logger if logger.isEnabledFor(DEBUG) else None


_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARY = os.path.dirname(os.__file__) + os.sep
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


def called() -> tuple[str, Sequence[str]]:
    """The function of pyparq that the user called, and the names of its arguments."""
    frame: FrameType | None = sys._getframe(1)
    last = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_OWN):
        last = last if frame.f_code.co_name in ("call", "<lambda>") else frame  # that is around the function
        frame = frame.f_back
    code = last.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    name = code.co_qualname.removesuffix(".__init__").lstrip("_")
    if "." in name and "self" in names:  # a method, of the class that the user knows
        name = f"{type(last.f_locals['self']).__name__}.{code.co_name}"
    return f"{name}()", names


def _outside(frame: FrameType | None) -> FrameType | None:
    while frame is not None and _is_passed_over(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _is_passed_over(path: str) -> bool:
    if path.startswith((_OWN, "<frozen")):
        return True
    return path.startswith(_LIBRARY) and not any(name in path for name in _PACKAGES)


def requirement(extra: str, packages: str = "") -> str:
    """What to give to ``pip install``. ``packages``: what the extra brings, for a pyparq that was never installed."""
    import json
    import shlex
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlparse
    from urllib.request import url2pathname

    try:
        source = json.loads(distribution("pyparq").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):  # imported from a folder without being installed
        return packages or extra
    url = str(source.get("url", ""))
    if url.startswith("file:") and "dir_info" in source:
        editable = "-e " if source["dir_info"].get("editable") else ""
        return editable + shlex.quote(url2pathname(urlparse(url).path) + f"[{extra}]")
    if "vcs_info" in source:
        return f"'pyparq[{extra}] @ {source['vcs_info'].get('vcs', 'git')}+{url}'"
    return f"'pyparq[{extra}]'"
