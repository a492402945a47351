"""Tables: fitted and coloured on a terminal (rich), plain and whole everywhere else."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import IO

from pyparq.cli.text import cut, visible, width

Cell = str | None
"""``None`` is a null: shown as NULL, set apart by colour on a terminal."""

NULL = "NULL"
GAP = 2
LEAST = 10
"""A flexible column is not cut below so many cells."""
FOLDED = (20, 14, 8)
"""Nor a column that folds made narrower than these: the first while others can be left out."""
MANY = 2000
"""Rows from which on even a terminal gets the plain form (styling costs about 0.1 ms a cell)."""


@dataclass(slots=True)
class Heading:
    """A column of a table. ``right``: align numbers. To fit a terminal it may be cut (``flexible``), folded into
    several lines (``folds``: names and types, which are never cut), or left out (``optional``: the highest first)."""

    title: str
    right: bool = False
    flexible: bool = False
    optional: int = 0
    folds: bool = False


@dataclass(slots=True)
class Grid:
    """Headings and rows of cells."""

    headings: list[Heading]
    rows: list[list[Cell]] = field(default_factory=list)

    def add(self, *cells: Cell) -> None:
        self.rows.append(list(cells))

    def without_empty(self, *titles: str) -> Grid:
        """The same without those columns of which every cell is empty or ``-``."""
        drop = {
            k
            for k, h in enumerate(self.headings)
            if h.title in titles and all(row[k] in ("", "-") for row in self.rows)
        }
        keep = [k for k in range(len(self.headings)) if k not in drop]
        return Grid([self.headings[k] for k in keep], [[row[k] for k in keep] for row in self.rows])


def headings(spec: str) -> list[Heading]:
    """Headings from a short form: titles between ``|``; before a title ``>`` aligns right, ``~`` is flexible, ``=``
    folds, ``?`` is optional (``??`` is left out before ``?``)."""
    found = []
    for part in spec.split("|"):
        title = part.lstrip(">~?=")
        marks = part[: len(part) - len(title)]
        found.append(Heading(title, ">" in marks, "~" in marks, marks.count("?"), "=" in marks))
    return found


def on_terminal(out: IO[str] | None = None) -> bool:
    """Whether ``out`` (stdout) is a terminal."""
    stream = out or sys.stdout
    return bool(stream.isatty()) and os.environ.get("TERM") != "dumb"


def terminal_width() -> int:
    return max(shutil.get_terminal_size().columns, 40)


def emit(text: str = "") -> None:
    """A line of plain text."""
    sys.stdout.write(text + "\n")


def title(text: str) -> None:
    """A line that heads what follows; bold on a terminal."""
    if on_terminal():
        from rich.console import Console
        from rich.text import Text

        for line in folded(visible(text), terminal_width()):
            Console(highlight=False).print(Text(line, style="bold"), soft_wrap=True)
    else:
        emit(visible(text))


def say(text: str) -> None:
    """A line of text, in several where a terminal is narrower."""
    for line in folded(text, terminal_width()) if on_terminal() else [text]:
        emit(line)


def show(grid: Grid, indent: int = 2) -> None:
    """Print a table."""
    if not on_terminal() or len(grid.rows) > MANY:
        lay = _layout(grid)
        sys.stdout.writelines(" " * indent + "".join(line).rstrip() + "\n" for _, line in _lines(lay))
        return
    from rich.console import Console
    from rich.text import Text

    lay, left_out = _fitted(grid, terminal_width() - indent)
    console = Console(highlight=False)
    for row, line in _lines(lay):
        text = Text(" " * indent, style="bold" if row == TITLES else "dim" if row == RULE else "")
        for k, cell in enumerate(line):
            null = row >= 0 and k % 2 == 0 and lay.nulls[row][k // 2]
            text.append(cell, style="dim italic" if null else "")
        text.rstrip()
        console.print(text, soft_wrap=True)
    if left_out:
        console.print(Text(f"{' ' * indent}(no room for: {', '.join(left_out)})", style="dim"), soft_wrap=True)


@dataclass(slots=True)
class _Layout:
    """Cells as they will be printed, and the width of each column."""

    heads: list[Heading]
    cells: list[list[str]]
    nulls: list[list[bool]]
    widths: list[int]


def _layout(grid: Grid) -> _Layout:
    cells = [[NULL if c is None else visible(c) for c in row] for row in grid.rows]
    heads = [replace(h, title=visible(h.title)) for h in grid.headings]
    widths = [max([width(h.title), *(width(row[k]) for row in cells)]) for k, h in enumerate(heads)]
    return _Layout(heads, cells, [[c is None for c in row] for row in grid.rows], widths)


def _fitted(grid: Grid, room: int) -> tuple[_Layout, list[str]]:
    """A layout that fits into ``room`` cells if it can: columns cut or folded, then optional ones left out (named)."""
    lay = _layout(grid)
    left_out: list[str] = []
    while True:
        space = room - GAP * (len(lay.widths) - 1)
        for least in FOLDED:
            widths = fit(lay.widths, [LEAST if h.flexible else least if h.folds else 0 for h in lay.heads], space)
            if sum(widths) <= space or any(h.optional for h in lay.heads):
                break
        rank = max(h.optional for h in lay.heads)
        if sum(widths) <= space or not rank:
            break
        k = max(k for k, h in enumerate(lay.heads) if h.optional == rank)
        left_out.insert(0, lay.heads[k].title)
        for row in (lay.heads, lay.widths, *lay.cells, *lay.nulls):
            del row[k]  # type: ignore[attr-defined]
    lay.heads = [replace(h, title=cut(h.title, w)) for h, w in zip(lay.heads, widths, strict=True)]
    lay.cells = [
        [c if h.folds else cut(c, w) for h, c, w in zip(lay.heads, row, widths, strict=True)] for row in lay.cells
    ]
    lay.widths = widths
    return lay, left_out


def fit(widths: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Widths that fit into ``room`` cells as far as columns allow it: the widest of them give first, each down to its
    ``least`` (0: nothing)."""
    found = list(widths)
    while (excess := sum(found) - room) > 0:
        wide = [k for k, lowest in enumerate(least) if lowest and found[k] > lowest]
        if not wide:
            break
        widest = max(found[k] for k in wide)
        group = [k for k in wide if found[k] == widest]
        below = max((found[k] for k in wide if found[k] < widest), default=0)
        step = max(1, min(widest - max(below, *(least[k] for k in group)), excess // len(group)))
        for k in group[: max(1, excess)]:
            found[k] -= step
    return found


TITLES, RULE = -2, -1


def _lines(lay: _Layout) -> Iterator[tuple[int, list[str]]]:
    """Titles, a rule, the rows (with their numbers); each as cells padded to their widths with gaps between."""
    gap = " " * GAP
    for number, row in enumerate(([h.title for h in lay.heads], ["-" * w for w in lay.widths], *lay.cells), TITLES):
        parts = [folded(c, w) if h.folds else [c] for h, c, w in zip(lay.heads, row, lay.widths, strict=True)]
        for n in range(max(map(len, parts), default=1)):
            line: list[str] = []
            for head, part, w in zip(lay.heads, parts, lay.widths, strict=True):
                cell = part[n] if n < len(part) else ""
                pad = " " * (w - width(cell))
                line += [pad + cell if head.right else cell + pad, gap]
            yield number, line[:-1]


_BREAKS = " ,._<"


def folded(text: str, room: int) -> list[str]:
    """``text`` in lines of at most ``room`` cells, broken behind a space or a sign where there is one. Lines after the
    first are indented as it is."""
    if len(text) * 2 <= room or width(text) <= room:  # (no letter takes more than two cells)
        return [text]
    indent = text[: len(text) - len(text.lstrip(" "))]
    if len(indent) > room // 2:
        indent = ""
    lines, rest = [], text
    while width(rest) > room:
        kept = cut(rest, room + 1)[:-1] or rest[0]  # as much as fits; the last sign is the ellipsis
        at = max(kept.rfind(sign) for sign in _BREAKS) + 1
        if at <= max(room // 3, len(indent)):
            at = len(kept)
        lines.append(rest[:at].rstrip())
        rest = indent + rest[at:].lstrip(" ")
    return [*lines, rest]
