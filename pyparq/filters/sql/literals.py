"""Literals of the command line: numbers, points in time and values to look up, read in the type of their column."""

from __future__ import annotations

import datetime
import re
from typing import Any

from pyparq.errors import FilterError
from pyparq.filters.literal import WrittenNumber, describe
from pyparq.filters.shown import meaning
from pyparq.filters.times import duration_of, time_ns, timestamp_ns
from pyparq.format.schema_node import Node
from pyparq.format.types import Field

_TEMPORAL_KINDS = ("date", "time", "timestamp", "int96", "null")


def number(text: str) -> int | WrittenNumber:
    """A number as text. Raises ``ValueError``."""
    if re.fullmatch(r"[+-]?\d+", text, re.ASCII):
        return int(text)
    try:
        return WrittenNumber(text)
    except ArithmeticError:
        raise ValueError(f"{text!r} is not a number") from None


def temporal(text: str, type_: str, kind: str) -> str:
    """DATE, TIME or TIMESTAMP ``text`` for a column of ``kind``, checked. It stays text, which keeps nanoseconds and
    the zone. Raises ``ValueError``."""
    if type_ == "date":
        datetime.date.fromisoformat(text.strip())
    elif type_ == "time":
        time_ns(text)
    else:
        timestamp_ns(text)
    if kind and kind not in _TEMPORAL_KINDS:
        raise ValueError(f"the column is of type {kind}")  # beside a string column it must not be compared as a string
    return text


def probe_value(text: str, node: Node, shown: Field | None = None) -> Any:
    """A value from the command line, for a column that is shown as ``shown``.

    Durations are given as text. On binary columns, ``0x00ff`` and ``X'00ff'`` are bytes. Raises :class:`FilterError` if
    the column cannot hold the value.
    """
    kind = node.type.kind
    if meaning(shown) == "duration":
        return _duration(text, node)
    try:
        if kind in ("int", "uint", "decimal", "float16", "float", "double"):
            return float(text) if text.lower().lstrip("+-") in ("nan", "inf", "infinity") else number(text)
        if kind == "bool":
            return {"true": True, "false": False}[text.lower()]
        if kind in ("binary", "fixed", "bson"):
            found = re.fullmatch(r"(?:0x([0-9a-f]*)|x'([0-9a-f]*)')", text, re.IGNORECASE)
            return bytes.fromhex(found[1] or found[2] or "") if found else text.encode()
    except (ValueError, KeyError):
        raise FilterError(f"{text!r} is not a value of type {describe(node.type)}", column=node.dotted) from None
    return text


def _duration(text: str, node: Node) -> Any:
    """A duration, also in the form in which it is printed: ``1 day, 2:30:00``."""
    try:
        return duration_of(text.replace(",", " "))
    except ValueError as error:
        raise FilterError(f"the column is shown as durations: {error}", column=node.dotted) from None
