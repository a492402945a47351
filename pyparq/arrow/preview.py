"""A table, batch or column as a person sees it first: its size, its names and types, its first rows."""

from __future__ import annotations

import html
import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import list_items, slice_column, struct_child
from pyparq.arrow.layouts import normalize
from pyparq.arrow.to_python import column_to_pylist, is_variant, variants_to_pylist
from pyparq.format.types import DataType, Field, Schema
from pyparq.runtime.text import cut, visible, width

NULL = "null"
_BRACKETS = {"list": "[]", "list_view": "[]", "struct": "{}", "map": "{}"}
_NARROW: dict[str, Any] = {"e": np.float16, "f": np.float32}
_UNREADABLE = "?"


def cell_text(column: Column, row: int, room: int, quoted: bool = False) -> str:
    """The value at ``row`` in about ``room`` cells of a terminal, on one line. Text is in quotes if ``quoted``. Never
    raises: a value that cannot be shown becomes ``?``."""
    try:
        return cut(visible(_text(column, row, room, quoted)), room)
    except Exception:  # bytes that came from outside may be anything
        return _UNREADABLE


def variant_text(column: Column, row: int, room: int) -> str:
    """What the Variant at ``row`` holds, as JSON has it, in about ``room`` cells. Never raises."""
    try:
        (value,) = variants_to_pylist(slice_column(column, row, row + 1))
        return cut(visible(json.dumps(value, default=str, ensure_ascii=False)), room)
    except Exception:
        return _UNREADABLE


def _text(column: Column, row: int, room: int, quoted: bool) -> str:
    here = slice_column(column, row, row + 1)
    mask = here.valid_mask()
    kind = column.type.kind
    if (mask is not None and not mask[0]) or (kind == "null" and column.type.dictionary is None):
        return NULL
    if column.type.dictionary is not None and column.dictionary is not None:
        keys = Column(DataType(column.type.format), 1, None, here.buffers, 0, offset=here.offset)
        return _text(column.dictionary, int(keys.values()[0]), room, quoted)
    if kind in _BRACKETS:
        brackets = _BRACKETS[kind]
        return brackets[0] + _listed(_inner(here, room - 2), room - 2) + brackets[1]
    if column.type.format in ("vu", "vz") or kind == "run_end":
        return _text(normalize(here, ""), 0, room, quoted)
    if kind in ("string", "binary"):
        return _bytes(here, kind, room, quoted)
    if kind == "interval":
        return _interval(here)
    return _plain(column_to_pylist(here)[0], column.type)


def _listed(items: Iterable[str], room: int) -> str:
    """Items behind each other, as many as there is room for."""
    shown: list[str] = []
    left = room - 1  # for the ellipsis
    for item in items:
        left -= width(item) + 2
        if left < 0 and shown:
            shown.append("…")
            break
        shown.append(item)
    return ", ".join(shown)


def _inner(here: Column, room: int) -> Iterator[str]:
    """The values within one nested value."""
    if here.type.kind == "struct":
        for k, field in enumerate(here.type.children):
            yield f"{field.name}: {_text(struct_child(here, k), 0, room, True)}"
        return
    items, rows = _items_of(here)
    if here.type.kind != "map":
        for row in rows:
            yield _text(items, row, room, True)
        return
    keys, values = (struct_child(items, k) for k in range(2))
    for row in rows:
        yield f"{_text(keys, row, room, True)}: {_text(values, row, room, True)}"


def _items_of(here: Column) -> tuple[Column, range]:
    if here.type.kind == "list_view":
        dtype = np.int64 if here.type.format == "+vL" else np.int32
        start, size = (int(buffer.view(dtype)[here.offset]) for buffer in here.buffers[:2])
        return here.children[0], range(start, start + size)
    offsets, items = list_items(here)
    return items, range(int(offsets[0]), int(offsets[1]))


def _bytes(here: Column, kind: str, room: int, quoted: bool) -> str:
    first, last = (int(edge) for edge in here.offsets())
    most = 4 * room + 4  # a letter has four bytes at most
    raw = here.buffers[1].view(np.uint8)[first : min(last, first + most)].tobytes()
    if kind == "binary":
        return _hex(raw)
    text = raw.decode(errors="backslashreplace")
    return json.dumps(text, ensure_ascii=False) if quoted else text


def _hex(raw: bytes) -> str:
    return "0x" + raw.hex()


_INTERVALS = {
    "tiM": [("months", "<i4")],
    "tiD": [("days", "<i4"), ("ms", "<i4")],
    "tin": [("months", "<i4"), ("days", "<i4"), ("ns", "<i8")],
}


def _interval(here: Column) -> str:
    parts = np.dtype(_INTERVALS[here.type.format])
    numbers = np.ascontiguousarray(here.values()).view(parts).reshape(-1)[0]
    return " ".join(f"{numbers[name]} {name}" for name in parts.names or ())


def _plain(value: Any, type_: DataType) -> str:
    if isinstance(value, bytes):
        return _hex(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(_NARROW.get(type_.format, float)(value))
    if isinstance(value, np.datetime64) and type_.kind == "timestamp" and type_.timezone and not np.isnat(value):
        return f"{value}Z"  # beyond Python's years, numpy's are in UTC
    return str(value)


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
    kind = "variant" if is_variant(field) else _type_text(field.type)
    titles = [cut(visible(field.name[: 4 * _CELL]), _CELL), cut(visible(kind), _CELL)]
    return _Shown([*titles, *values], field.type.kind in _NUMBERS and field.type.dictionary is None)


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
