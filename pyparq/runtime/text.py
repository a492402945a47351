"""Text that is safe and readable on a terminal, whatever a file contains."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import wraps
from typing import Any


def visible(text: str) -> str:
    """``text`` on one line: control characters (terminal escapes among them), line breaks, direction overrides and
    lone surrogates as escapes. Everything printable stays as it is."""
    if text.isprintable():
        return text
    return "".join(c if c == " " or c.isprintable() else _escape(c) for c in text)


def _escape(char: str) -> str:
    # Other spaces (a no-break space, say) are not "printable" in Python's sense, but do no harm; joiners belong to
    # the scripts and emoji that use them.
    if unicodedata.category(char) == "Zs" or char in "\u200c\u200d":
        return char
    return char.encode("unicode_escape").decode("ascii")


def width(text: str) -> int:
    """Cells that ``text`` takes on a terminal: none for combining marks and joiners, two for wide letters."""
    if text.isascii():
        return len(text)
    return sum(map(_cells, text))


def _cells(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cut(text: str, limit: int, measure: Callable[[str], int] = width) -> str:
    """``text`` in at most ``limit`` cells, an ellipsis at its end when something was left out."""
    if limit < 1 or len(text) * 2 <= limit or measure(text) <= limit:
        return text if limit > 0 else ""
    kept, used = [], 0
    for char in text[:limit]:
        used += measure(char)
        if used > limit - 1:
            break
        kept.append(char)
    return "".join(kept) + "…"


def printable(method: Callable[[Any], str]) -> Callable[[Any], str]:
    """The result of ``method``, or a shorter text for an object that is only half built."""

    @wraps(method)
    def print_it(self: Any) -> str:
        try:
            return method(self)
        except AttributeError:
            return f"<{type(self).__name__}, not complete>"
        except Exception as error:
            return f"<{type(self).__name__}, unreadable: {type(error).__name__}>"

    return print_it
