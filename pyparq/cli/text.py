"""Text for a terminal: that of :mod:`pyparq.runtime.text`, measured by rich, and counts."""

from __future__ import annotations

from pyparq.runtime import text as terminal_text
from pyparq.runtime.text import visible

__all__ = ["count", "cut", "one_line", "visible", "width"]


def one_line(message: str) -> str:
    """A message on one line."""
    return visible(" ".join(message.split()))


def width(line: str) -> int:
    """Cells that ``line`` takes on a terminal."""
    if line.isascii():
        return len(line)
    from rich.cells import cell_len

    return cell_len(line)


def cut(line: str, limit: int) -> str:
    """``line`` in at most ``limit`` cells, an ellipsis at its end when something was left out."""
    return terminal_text.cut(line, limit, width)


def count(number: int, noun: str) -> str:
    """``1 row``, ``2,000 rows``, ``2 dictionaries``."""
    if number == 1:
        return f"1 {noun}"
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + ("es" if noun.endswith("x") else "s")
    return f"{number:,} {plural}"
