"""Rows as a table: all of it to a pipe; to a terminal, as many columns as fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyparq.cli.table import GAP, NULL, Cell, Grid, Heading, emit, on_terminal, show, terminal_width
from pyparq.cli.text import count, cut, visible, width
from pyparq.cli.values import cell_format

INDENT = 0
CELL = 40
"""Cells of the terminal that one column may take before others get their share."""
LONGEST = 2000
"""Cells of a table are cut to this even in a pipe; JSON and CSV are whole."""
_NUMBERS = ("int", "uint", "float", "decimal")


def show_rows(schema: Any, batches: Sequence[Any]) -> None:
    """Print batches of ``schema``."""
    if not schema.fields:
        emit("(no columns)")
        return
    columns = [_cells(schema.fields[k], [b.columns[k] for b in batches]) for k in range(len(schema.fields))]
    heads = [Heading(f.name, right=f.type.kind in _NUMBERS) for f in schema.fields]
    shown = len(heads)
    if on_terminal():
        columns = [[None if c is None else cut(visible(c), CELL) for c in column] for column in columns]
        shown = _fitting(heads, columns)
    grid = Grid(heads[:shown], [list(row) for row in zip(*columns[:shown], strict=True)])
    show(grid, INDENT)
    if shown < len(heads):
        names = ", ".join(visible(h.title) for h in heads[shown:])
        text = f"… {count(len(heads) - shown, 'more column')} (choose with --columns): {names}"
        emit(cut(text, terminal_width()))


def _cells(field: Any, chunks: Sequence[Any]) -> list[Cell]:
    from pyparq.arrow.to_python import field_to_pylist

    form = cell_format(field)
    values = (v for chunk in chunks for v in field_to_pylist(field, chunk))
    return [None if v is None else cut(form(v), LONGEST) for v in values]


def _fitting(heads: Sequence[Heading], columns: Sequence[Sequence[Cell]]) -> int:
    """How many of the first columns a terminal holds (at least one)."""
    room, fitting = terminal_width() - INDENT, 0
    for head, column in zip(heads, columns, strict=True):
        room -= max([width(visible(head.title)), *(len(NULL) if c is None else width(c) for c in column)])
        if room < 0:
            break
        room -= GAP
        fitting += 1
    return max(fitting, 1)
