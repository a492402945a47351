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
MANY = 2000
"""Rows from which on even a terminal gets the plain form (styling costs about 0.1 ms a cell)."""


@dataclass(slots=True)
class Heading:
    """A column of a table. ``right``: align numbers. ``flexible``: may be cut to fit a terminal. ``optional``: may be
    left out where even that does not help."""

    title: str
    right: bool = False
    flexible: bool = False
    optional: bool = False


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
    """Headings from a short form: titles between ``|``; before a title ``>`` aligns right, ``~`` is flexible, ``?``
    optional."""
    found = []
    for part in spec.split("|"):
        title = part.lstrip(">~?")
        marks = part[: len(part) - len(title)]
        found.append(Heading(title, ">" in marks, "~" in marks, "?" in marks))
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

        Console(highlight=False).print(Text(visible(text), style="bold"), soft_wrap=True)
    else:
        emit(visible(text))


def show(grid: Grid, indent: int = 2) -> None:
    """Print a table."""
    if not on_terminal() or len(grid.rows) > MANY:
        lay = _layout(grid)
        sys.stdout.writelines(" " * indent + "".join(line).rstrip() + "\n" for line in _lines(lay))
        return
    from rich.console import Console
    from rich.text import Text

    lay, left_out = _fitted(grid, terminal_width() - indent)
    console = Console(highlight=False)
    for n, line in enumerate(_lines(lay)):
        style = "bold" if n == 0 else "dim" if n == 1 else ""
        text = Text(" " * indent, style=style)
        for k, cell in enumerate(line):
            null = n > 1 and k % 2 == 0 and lay.nulls[n - 2][k // 2]
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
    """A layout that fits into ``room`` cells if it can: flexible columns cut, then optional ones left out (named)."""
    lay = _layout(grid)
    left_out: list[str] = []
    while True:
        space = room - GAP * (len(lay.widths) - 1)
        widths = fit(lay.widths, [h.flexible for h in lay.heads], space)
        optional = [k for k, h in enumerate(lay.heads) if h.optional]
        if sum(widths) <= space or not optional:
            break
        left_out.insert(0, lay.heads[optional[-1]].title)
        for row in (lay.heads, lay.widths, *lay.cells, *lay.nulls):
            del row[optional[-1]]  # type: ignore[attr-defined]
    lay.heads = [replace(h, title=cut(h.title, w)) for h, w in zip(lay.heads, widths, strict=True)]
    lay.cells = [[cut(c, w) for c, w in zip(row, widths, strict=True)] for row in lay.cells]
    lay.widths = widths
    return lay, left_out


def fit(widths: Sequence[int], flexible: Sequence[bool], room: int) -> list[int]:
    """Widths that fit into ``room`` cells as far as flexible columns allow it: the widest of them give first."""
    found = list(widths)
    while (excess := sum(found) - room) > 0:
        wide = [k for k, flex in enumerate(flexible) if flex and found[k] > LEAST]
        if not wide:
            break
        widest = max(found[k] for k in wide)
        group = [k for k in wide if found[k] == widest]
        below = max((found[k] for k in wide if found[k] < widest), default=LEAST)
        step = max(1, min(widest - max(below, LEAST), excess // len(group)))
        for k in group[: max(1, excess)]:
            found[k] -= step
    return found


def _lines(lay: _Layout) -> Iterator[list[str]]:
    """Titles, a rule, the rows; each as cells padded to their widths with gaps between."""
    gap = " " * GAP
    for row in ([h.title for h in lay.heads], ["-" * w for w in lay.widths], *lay.cells):
        line: list[str] = []
        for head, cell, w in zip(lay.heads, row, lay.widths, strict=True):
            pad = " " * (w - width(cell))
            line += [pad + cell if head.right else cell + pad, gap]
        yield line[:-1]
