"""Single values as short text, for a preview: no more of a value is looked at than is shown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import list_items, slice_column, struct_child
from pyparq.arrow.plain_layouts import normalize
from pyparq.arrow.to_python import column_to_pylist, variants_to_pylist
from pyparq.format.types import DataType
from pyparq.runtime.terminal_text import cut, visible, width

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
