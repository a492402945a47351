"""Checks how a caller's file object was opened. Errors say how to open it instead."""

from __future__ import annotations

import io
from typing import Any

from pyparq.errors import OptionError


def check_opened(file: Any, name: str, *, to_read: bool) -> None:
    """Raise :class:`OptionError` for a file object in text mode, or opened for the other direction only.

    An object that does not tell how it was opened is tried. A user's own class often inherits ``readable()`` and
    ``writable()`` from :class:`io.RawIOBase`, which answer no.
    """
    advice = "open it with open(path, 'rb')" if to_read else "open it with open(path, 'wb')"
    if isinstance(file, io.TextIOBase):
        raise OptionError(f"the file object is in text mode: {advice}", file=name)
    mode = getattr(file, "mode", None)
    if isinstance(mode, str) and "+" not in mode and (mode[:1] in ("w", "a", "x") if to_read else mode[:1] == "r"):
        raise OptionError(
            f"the file object is open for {'writing' if to_read else 'reading'} only: {advice}", file=name
        )
