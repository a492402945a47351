"""Text that is safe and clear on a terminal, whatever a file calls its columns or holds."""

from __future__ import annotations

import unicodedata


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


def one_line(message: str) -> str:
    """A message on one line."""
    return visible(" ".join(message.split()))


def width(text: str) -> int:
    """Cells that ``text`` takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cut(text: str, limit: int) -> str:
    """``text`` in at most ``limit`` cells, an ellipsis at its end when something was left out."""
    if limit < 1 or len(text) * 2 <= limit or width(text) <= limit:
        return text if limit > 0 else ""
    kept, used = [], 0
    for char in text[:limit]:
        used += width(char)
        if used > limit - 1:
            break
        kept.append(char)
    return "".join(kept) + "…"


def count(number: int, noun: str) -> str:
    """``1 row``, ``2,000 rows``, ``2 dictionaries``."""
    if number == 1:
        return f"1 {noun}"
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + ("es" if noun.endswith("x") else "s")
    return f"{number:,} {plural}"
