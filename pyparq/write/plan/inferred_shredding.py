"""What a Variant is shredded to where its first rows decide: ``shredding="auto"``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import struct_child
from pyparq.arrow.plain_layouts import normalize
from pyparq.arrow.variant_values import outline
from pyparq.errors import DataError

_ROWS = 1000
"""Rows that are looked at."""
_OFTEN = 0.1
"""A field gets a column if so many of the objects have it."""
_MOSTLY = 0.5
"""A column gets a type if so many of its values, nulls aside, fit it."""
_MOST_COLUMNS = 200
_DEEPEST = 10

_NULL, _TRUE, _FALSE = 0, 1, 2
_NAMES = {
    1: "bool", 7: "float64", 11: "date", 12: "timestamp[us, UTC]", 13: "timestamp[us]", 14: "float32", 15: "binary",
    16: "string", 17: "time[us]", 18: "timestamp[ns, UTC]", 19: "timestamp[ns]", 20: "uuid",
}  # fmt: skip
_INTEGERS, _EXACT, _OBJECT, _ARRAY = range(3, 7), "exact", "object", "array"


@dataclass(slots=True)
class _Seen:
    """What the values at one place of the Variants were."""

    kinds: Counter[Any] = field(default_factory=Counter)
    digits: int = 0
    """Most digits before the point of exact numbers."""
    scale: int = 0
    decimals: int = 0
    fields: dict[str, _Seen] = field(default_factory=dict)
    elements: _Seen | None = None

    def add(self, given: Any, depth: int = 0) -> None:
        if isinstance(given, dict):
            self.kinds[_OBJECT] += 1
            for name, inner in given.items() if depth < _DEEPEST else ():
                self.fields.setdefault(name, _Seen()).add(inner, depth + 1)
        elif isinstance(given, list):
            self.kinds[_ARRAY] += 1
            for inner in given if depth < _DEEPEST else ():
                self.elements = self.elements or _Seen()
                self.elements.add(inner, depth + 1)
        elif isinstance(given, tuple):
            _, digits, scale = given
            self.decimals += 1
            self._add_number(digits - scale, scale)
        elif given in _INTEGERS:
            self._add_number(19 if given == 6 else 10, 0)
        else:
            self.kinds[_TRUE if given == _FALSE else given] += 1

    def _add_number(self, digits: int, scale: int) -> None:
        self.kinds[_EXACT] += 1
        self.digits, self.scale = max(self.digits, digits), max(self.scale, scale)


def inferred(columns: Sequence[Column]) -> Any:
    """What the Variants of these columns are shredded to, as users give it. ``None``: nothing."""
    seen = _Seen()
    for metadata, value in _values(columns):
        try:
            seen.add(outline(metadata, value))
        except DataError:  # it is refused with its row when it is shredded
            continue
    return _choice(seen, [_MOST_COLUMNS])


def _values(columns: Sequence[Column]) -> Iterator[tuple[bytes, bytes]]:
    left = _ROWS
    for column in columns:
        mask = column.valid_mask()
        parts = [normalize(struct_child(column, k), "variant") for k in (0, 1)]
        (names, texts), (edges, data) = ((part.offsets(), part.buffers[1]) for part in parts)
        for k in range(min(column.length, left)):
            if mask is None or mask[k]:
                yield texts[names[k] : names[k + 1]].tobytes(), data[edges[k] : edges[k + 1]].tobytes()
        left -= min(column.length, left)


def _choice(seen: _Seen, room: list[int]) -> Any:
    """The type of one place. ``room``: columns that may still be made."""
    there = sum(seen.kinds.values()) - seen.kinds[_NULL]
    if not there or room[0] <= 0:
        return None
    kind, count = max(
        ((kind, count) for kind, count in seen.kinds.items() if kind != _NULL), key=lambda pair: (pair[1], str(pair[0]))
    )
    if count < _MOSTLY * there:
        return None
    if kind == _OBJECT:
        return _object(seen, count, room)
    room[0] -= 1
    if kind == _ARRAY:
        return None if seen.elements is None else [_choice(seen.elements, room)]
    return _number(seen) if kind == _EXACT else _NAMES[kind]


def _object(seen: _Seen, objects: int, room: list[int]) -> Any:
    often = [(name, inner) for name, inner in seen.fields.items() if sum(inner.kinds.values()) >= _OFTEN * objects]
    made = {}
    for name, inner in sorted(often, key=lambda pair: -sum(pair[1].kinds.values())):
        if room[0] > 0:
            made[name] = _choice(inner, room)
    return made or None


def _number(seen: _Seen) -> str | None:
    """Room for larger numbers of later rows: 64 bits, or 18 or 38 digits."""
    if not seen.decimals:
        return "int64"
    digits = seen.digits + seen.scale
    return None if digits > 38 else f"decimal({18 if digits <= 18 else 38}, {seen.scale})"
