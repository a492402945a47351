"""Literals of Spark as the values that a column is compared with, by Spark's rules for types that differ."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from pyparq.format.schema_node import Node
from pyparq.format.types import LeafType
from pyparq.spark.conditions import Literal

_EXACT = 1 << 53
"""Integers up to here are all doubles."""
_DIGITS = 15
"""So many decimal digits tell doubles apart."""

_CLOCK = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2})(:\d{2}(?:\.\d{1,6})?)?\d*)?(Z|[+-]\d{2}:\d{2})?", re.ASCII
)


class NoEqual(Exception):
    """Part of a condition that pyparq has nothing for; the text says why."""


def literal_for(literal: Literal, column: Node) -> Any:
    """The value as the column is compared with it; ``None`` for NULL.

    Raises :class:`NoEqual` where Spark would not compare the two as they are.
    """
    if literal.value is None:
        return None
    if isinstance(literal.value, (dt.timedelta, np.timedelta64)):
        return literal.value  # whether the column shows durations is seen where the filter is bound
    maker = _MAKERS.get(column.type.kind)
    if maker is None:
        return literal.value
    made = None if not _fits(literal, column.type.kind) else maker(literal.value, column.type)
    if column.type.kind == "date" and isinstance(made, str) and not literal.kind:
        made = made[:10]  # Spark makes dates of text, whatever follows
    if made is None:
        raise NoEqual("Spark converts the column, or both sides, to another type")
    return made


def _fits(literal: Literal, kind: str) -> bool:
    """Whether a literal can be of this kind. One that is written as a point in time can only be that."""
    is_time = bool(literal.kind) or isinstance(literal.value, dt.date)
    return not is_time or kind in ("date", "timestamp", "int96")


def _whole(value: Any, leaf: LeafType) -> Any:
    if isinstance(value, str):
        return int(value) if re.fullmatch(r"[+-]?\d{1,18}", value, re.ASCII) else None
    if isinstance(value, float) and not (leaf.bits < 64 or abs(value) < _EXACT or value != value):
        return None  # both become doubles
    return value if isinstance(value, (int, Decimal, float)) and not isinstance(value, bool) else None


def _double(value: Any, leaf: LeafType) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, Decimal, float)):
        return None
    if isinstance(value, int) and abs(value) > 1 << (24 if leaf.kind != "double" else 53):
        return None
    return float(value)


def _decimal(value: Any, leaf: LeafType) -> Any:
    if isinstance(value, float):
        return value if leaf.precision <= _DIGITS else None
    return value if isinstance(value, (int, Decimal)) and not isinstance(value, bool) else None


def _text(value: Any, leaf: LeafType) -> Any:
    return value if isinstance(value, str) else None


def _flag(value: Any, leaf: LeafType) -> Any:
    return value if isinstance(value, bool) else None


def _bytes(value: Any, leaf: LeafType) -> Any:
    return value if isinstance(value, (bytes, str)) else None


def _date(value: Any, leaf: LeafType) -> Any:
    if isinstance(value, str):
        found = _CLOCK.fullmatch(value)
        return value if found is not None and not found[4] else None
    return value if isinstance(value, dt.date) else None


def _moment(value: Any, leaf: LeafType) -> Any:
    """Spark reads microseconds, and passes over further digits."""
    if isinstance(value, dt.date):
        return value
    found = _CLOCK.fullmatch(value) if isinstance(value, str) else None
    if found is None or (found[4] and not leaf.utc and leaf.kind != "int96"):
        return None
    day, minute, second, zone = found.groups()
    return f"{day} {minute or '00:00'}{second or ':00'}{zone or ''}"


_MAKERS: dict[str, Callable[[Any, LeafType], Any]] = {
    **dict.fromkeys(("int", "uint"), _whole), **dict.fromkeys(("float", "double", "float16"), _double),
    "decimal": _decimal, **dict.fromkeys(("string", "enum", "json"), _text), "bool": _flag,
    **dict.fromkeys(("binary", "fixed", "bson", "uuid"), _bytes), "date": _date,
    "timestamp": _moment, "int96": _moment,
}  # fmt: skip
