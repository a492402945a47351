"""Small HTML tables for notebooks. All text is escaped. The colours follow the page around them, light or dark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from operator import attrgetter
from typing import Any, TypeVar, cast

from pyparq.runtime.text import cut, visible

T = TypeVar("T")

MOST_ROWS = 60
"""Rows that a table shows. The line below it says how many there are."""
LONGEST = 80
"""Cells of a terminal that a text takes at most."""

_BOX = "font-family:system-ui,sans-serif;font-size:13px;line-height:1.45;color:inherit;max-width:100%;overflow-x:auto"
_CELL = "padding:2px 10px 2px 0;border:0;border-bottom:1px solid rgba(128,128,128,.25);background:none;color:inherit"
_BAR = "display:inline-block;height:8px;background:#D55E00;vertical-align:middle;border-radius:1px"
_RAIL = "display:inline-block;width:120px;height:8px;background:rgba(128,128,128,.25);line-height:0;border-radius:1px"


@dataclass(frozen=True, slots=True)
class Bar:
    """A cell with a bar: ``share`` from 0 to 1."""

    share: float


Cell = str | int | Bar | None


def html_view(
    title: str, facts: Iterable[tuple[str, str]] = (), headings: Sequence[str] = (), rows: Sequence[Sequence[Cell]] = ()
) -> str:
    """A title, lines of facts, and a table. Whole numbers and headings over them are set to the right."""
    lines = [f'<div class="pyparq-view" style="{_BOX}"><div><b>{_text(title, 200)}</b></div>']
    lines += [f'<div><span style="opacity:.7">{_text(name)}</span> {_text(value, 400)}</div>' for name, value in facts]
    if headings:
        lines.append(_table(headings, rows[:MOST_ROWS]))
    if len(rows) > MOST_ROWS:
        lines.append(f'<div style="opacity:.7">… {len(rows) - MOST_ROWS:,} more</div>')
    return "".join([*lines, "</div>"])


def _table(headings: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    right = [any(isinstance(row[k], int) for row in rows) for k in range(len(headings))]
    head = "".join(_cell("th", name, right[k]) for k, name in enumerate(headings))
    body = "".join(
        "<tr>" + "".join(_cell("td", value, right[k]) for k, value in enumerate(row)) + "</tr>" for row in rows
    )
    style = "border-collapse:collapse;border:0;margin:6px 0;color:inherit;background:none"
    return f'<table style="{style}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _cell(tag: str, value: Cell, right: bool) -> str:
    align = "right" if right else "left"
    weight = "font-weight:600;opacity:.75;" if tag == "th" else ""
    return f'<{tag} style="{_CELL};{weight}text-align:{align}">{_content(value)}</{tag}>'


def _content(value: Cell) -> str:
    if isinstance(value, Bar):
        width = round(120 * min(max(value.share, 0.0), 1.0))
        return f'<span style="{_RAIL}"><span style="{_BAR};width:{width}px"></span></span>'
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else _text(value)


def _text(text: str, limit: int = LONGEST) -> str:
    return _escaped(cut(visible(text[: 4 * limit]), limit))


def _escaped(text: str) -> str:
    import html  # with a table of all entities

    return html.escape(text)


def viewable(method: Callable[[Any], str]) -> Callable[[Any], str]:
    """A ``_repr_html_`` that never raises: an object that cannot be shown is shown as its ``repr``."""

    @wraps(method)
    def show_it(self: Any) -> str:
        try:
            return method(self)
        except Exception:
            return f"<pre>{_escaped(repr(self))}</pre>"

    return show_it


def size_text(size: int) -> str:
    """``12.3 MB``: bytes with three digits."""
    if size < 1000:
        return f"{size} B"
    value, units = float(size), iter(("kB", "MB", "GB", "TB", "PB", "EB"))
    unit = "B"
    while value >= 999.5 and (larger := next(units, None)):
        value, unit = value / 1000, larger
    return f"{value:.3g} {unit}"


def aligned(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table as lines of text. Columns with ``>`` in front of the heading stand to the right."""
    titles = [heading.lstrip(">") for heading in headings]
    widths = [max([len(title), *(len(row[k]) for row in rows)]) for k, title in enumerate(titles)]
    right = [heading.startswith(">") for heading in headings]
    lines = []
    for row in (titles, ["-" * width for width in widths], *rows):
        cells = zip(row, widths, right, strict=True)
        lines.append("  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in cells).rstrip())
    return lines


def summed(name: str, doc: str | None = None, of: str = "files") -> int:
    """A property: the sum of this number of all ``of`` an object."""
    return cast(int, property(lambda whole: sum(getattr(part, name) for part in getattr(whole, of)), doc=doc))


def of_header(name: str, kind: type[T]) -> T:
    """A property: an attribute of the object's header, of this ``kind``."""
    return cast(T, property(attrgetter(f"header.{name}"), doc="As in the header."))
