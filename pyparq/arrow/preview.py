"""A table, batch or column as a person sees it first: its size, its names and types, its first rows."""

from __future__ import annotations

import html
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pyparq.arrow.cell_text import cell_text, variant_text
from pyparq.arrow.column import Column
from pyparq.arrow.to_python import is_variant
from pyparq.format.types import DataType, Field, Schema
from pyparq.runtime.terminal_text import cut, visible, width


class _Values(Protocol):
    """The text of a ChunkedArray."""

    chunks: list[Column]

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> DataType: ...
    def __len__(self) -> int: ...


class _Rows(Protocol):
    """The text of a Table or a Batch."""

    @property
    def schema(self) -> Schema: ...
    @property
    def num_rows(self) -> int: ...
    @property
    def num_columns(self) -> int: ...
    def _parts(self) -> list[tuple[list[Column], int]]: ...


ROWS = 10
"""Rows shown."""
_CELL = 40
"""Cells of a terminal that a column takes at most."""
_GAP = "  "
_HTML_COLUMNS = 50
_NUMBERS = ("int", "uint", "float", "decimal")


@dataclass(slots=True)
class _Shown:
    """A column as text: name, type, first values."""

    cells: list[str]
    right: bool

    @property
    def width(self) -> int:
        return max(map(width, self.cells))


def table_text(table: _Rows) -> str:
    """Counts, then the first rows under names and types, in as many columns as the terminal has room for (80 cells
    where there is none)."""
    name = type(table).__name__
    try:
        if not getattr(table, "has_schema", True):
            return f"<pyparq.{name}: {_count(table.num_rows, 'row')}, no schema>"
        head = f"pyparq.{name} ({_count(table.num_rows, 'row')}, {_count(table.num_columns, 'column')})"
        return "\n".join([head, *_grid(table, shutil.get_terminal_size((80, 24)).columns)])
    except Exception:  # a repr must not raise, not even of an object that was never finished
        return f"<pyparq.{name}>"


def _grid(table: _Rows, room: int) -> list[str]:
    fields, places = table.schema.fields, _first_places(table)
    columns: list[_Shown] = []
    used = 0
    for k in range(len(fields)):
        column = _column(fields[k], k, places)
        used += column.width + (len(_GAP) if columns else 0)
        if columns and used > room:
            break
        columns.append(column)
    lines = [
        _GAP.join(_padded(column, row) for column in columns).rstrip()
        for row in range(len(places) + 2)
        if columns
    ]  # fmt: skip
    if columns:
        lines.insert(2, _GAP.join("-" * column.width for column in columns))
    more = table.num_rows - len(places)
    if more and columns:
        lines.append(f"… {_count(more, 'more row')}")
    if len(columns) < len(fields):
        names = ", ".join(visible(field.name[:room]) for field in fields[len(columns) : len(columns) + room])
        lines.append(cut(f"… {_count(len(fields) - len(columns), 'more column')}: {names}", room))
    return lines


def _first_places(table: _Rows) -> list[tuple[Sequence[Column], int]]:
    """The first rows, each as the columns of its part and its number there."""
    places: list[tuple[Sequence[Column], int]] = []
    for columns, rows in table._parts():
        places += [(columns, row) for row in range(min(rows, ROWS - len(places)))]
        if len(places) == ROWS:
            break
    return places


def _column(field: Field, k: int, places: Sequence[tuple[Sequence[Column], int]]) -> _Shown:
    shown = variant_text if is_variant(field) else cell_text
    values = [shown(columns[k], row, _CELL) for columns, row in places]
    return _Shown([*_titles(field, _CELL), *values], field.type.kind in _NUMBERS and field.type.dictionary is None)


def _titles(field: Field, room: int) -> list[str]:
    return [
        cut(visible(field.name[: 4 * room]), room),
        cut(visible("variant" if is_variant(field) else _type_text(field.type)), room),
    ]


def _type_text(type_: DataType) -> str:
    try:
        return str(type_)
    except Exception:  # a format that is not Arrow's
        return type_.format


def _padded(column: _Shown, row: int) -> str:
    cell = column.cells[row]
    pad = " " * (column.width - width(cell))
    return pad + cell if column.right else cell + pad


def table_html(table: _Rows) -> str:
    """The same as an HTML table, for notebooks. All text from the data is escaped."""
    try:
        fields, places = table.schema.fields, _first_places(table)
        shown = [_column(field, k, places) for k, field in enumerate(fields[:_HTML_COLUMNS])]
        counts = f"{_count(table.num_rows, 'row')}, {_count(table.num_columns, 'column')}"
        counts += f" (the first {len(shown)} shown)" if len(shown) < len(fields) else ""
    except Exception:
        return f"<pre>{html.escape(repr(table))}</pre>"
    lines = ['<table border="1" class="dataframe">', "<thead>", _html_row("th", [c.cells[0] for c in shown])]
    lines += [_html_row("td", [c.cells[1] for c in shown]), "</thead>", "<tbody>"]
    lines += [_html_row("td", [c.cells[row + 2] for c in shown]) for row in range(len(places))]
    lines += ["</tbody>", "</table>", f"<p>{type(table).__name__}: {counts}</p>"]
    return "\n".join(lines)


def _html_row(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def column_text(column: _Values) -> str:
    """Name, type, count and the first values, as many as a line holds."""
    try:
        room = shutil.get_terminal_size((80, 24)).columns - 3
        title = f"pyparq.ChunkedArray {visible(column.name)!r}: {_type_text(column.type)} "
        return f"{title}({_count(len(column), 'value')})\n[{', '.join(_first_values(column.chunks, room))}]"
    except Exception:
        return "<pyparq.ChunkedArray>"


def _first_values(chunks: Sequence[Column], room: int) -> list[str]:
    shown: list[str] = []
    for chunk in chunks:
        for row in range(len(chunk)):
            cell = cell_text(chunk, row, _CELL, quoted=True)
            room -= width(cell) + 2
            if room < 0 and shown:
                return [*shown, "…"]
            shown.append(cell)
    return shown


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
