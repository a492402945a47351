"""Literals of Spark as the values that a column is compared with, by Spark's rules for types that differ."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from pyparq.filters.times import timestamp_ns
from pyparq.format.schema_node import Node
from pyparq.format.types import LeafType
from pyparq.spark.conditions import Literal
from pyparq.spark.zones import as_datetime64, instant_us, wall_us, zone_of

_EXACT = 1 << 53
"""Integers up to here are all doubles."""
_DIGITS = 15
"""So many decimal digits tell doubles apart."""

_MOST_DIGITS = 38
"""Of Spark's decimals."""

_CLOCK = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2})(:\d{2}(?:\.\d{1,6})?)?\d*)?(Z|[+-]\d{2}:\d{2})?", re.ASCII
)


class NoEqual(Exception):
    """Part of a condition that pyparq has nothing for; the text says why."""


@dataclass(frozen=True)
class Session:
    """What the meaning of literals depends on."""

    zone: str | None = None
    """``spark.sql.session.timeZone``; ``""``: it is not known. ``None``: no literal needs it."""
    ansi: bool = True
    """``spark.sql.ansi.enabled``."""


def literal_for(literal: Literal, column: Node, session: Session) -> Any:
    """The value as the column is compared with it; ``None`` for NULL.

    Raises :class:`NoEqual` where Spark would not compare the two as they are.
    """
    if literal.value is None:
        return None
    if isinstance(literal.value, (dt.timedelta, np.timedelta64)):
        return literal.value  # whether the column shows durations is seen where the filter is bound
    leaf = column.type
    if _kind(literal) == "instant" and leaf.kind == "date":
        _check_clock(literal, session.zone)
    if _kind(literal) == "instant" and leaf.kind == "timestamp" and not leaf.utc:
        return _as_clock(literal, session.zone)
    maker = _MAKERS.get(column.type.kind)
    if maker is None:
        return literal.value
    made = None if not _fits(literal, column.type.kind) else maker(literal.value, column.type)
    if column.type.kind == "date" and isinstance(made, str) and not literal.kind:
        made = made[:10]  # Spark makes dates of text, whatever follows
    if made is None:
        raise NoEqual("Spark converts the column, or both sides, to another type")
    return made


def literals_in(items: Sequence[Literal], column: Node, session: Session) -> list[Any]:
    """The values of an ``IN`` list, which Spark brings to one type with the column before it compares.

    Raises :class:`NoEqual` where that makes values equal, or different, that are not so as they are.
    """
    kinds = {_kind(item) for item in items if item.value is not None}
    leaf = column.type
    is_time = leaf.kind in ("date", "timestamp", "int96")
    if "text" in kinds and leaf.kind not in _TEXTS and not session.ansi:
        canonical = _CANONICAL.get(leaf.kind)
        if not kinds <= {"text", "whole"} or canonical is None:
            raise NoEqual("Spark compares texts here (spark.sql.ansi.enabled is false)")
        if not all(re.fullmatch(canonical, str(item.value), re.ASCII) for item in items if item.value is not None):
            raise NoEqual("Spark compares texts here (spark.sql.ansi.enabled is false)")
    if leaf.kind == "date" and len(kinds) > 1 and any(len(str(i.value)) > 10 for i in items if _kind(i) == "text"):
        raise NoEqual("Spark compares points in time here")
    if "double" in kinds and not is_time:
        items = [_as_double(item, leaf) for item in items]
    if "instant" in kinds and (leaf.kind == "date" or (leaf.kind == "timestamp" and not leaf.utc)):
        for item in items:
            _check_clock(item, session.zone)
    return [literal_for(item, column, session) for item in items]


_CANONICAL = {"int": "0|-?[1-9][0-9]*", "uint": "0|[1-9][0-9]*", "date": r"\d{4}-\d\d-\d\d"}
"""Texts that Spark makes of values, and no others."""
_TEXTS = ("string", "enum", "json", "binary", "fixed", "bson", "uuid")


def _kind(literal: Literal) -> str:
    value = literal.value
    if literal.kind == "timestamp" or (isinstance(value, dt.datetime) and value.tzinfo is not None):
        return "instant"
    if literal.kind or isinstance(value, dt.datetime):
        return "clock"
    names: tuple[tuple[type, str], ...] = ((bool, "flag"), (int, "whole"), (float, "double"), (str, "text"))
    return next((name for kind, name in names if isinstance(value, kind)), type(value).__name__)


def _as_double(literal: Literal, leaf: LeafType) -> Literal:
    """A number beside doubles, which becomes one. Raises :class:`NoEqual` where other values would be equal then."""
    value = literal.value
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return literal
    found = float(value)
    exact = found != found or abs(found) < _EXACT if leaf.kind in ("int", "uint") and leaf.bits == 64 else True
    if leaf.kind == "decimal":
        exact = isinstance(value, float) or len(Decimal(value).as_tuple().digits) <= _DIGITS
        return literal if exact else _refused()
    if leaf.kind in ("int", "uint"):
        return Literal(found) if exact else _refused()
    return literal


def _refused() -> Literal:
    raise NoEqual("Spark makes doubles of all these numbers, which are not exact")


def _instant(literal: Literal, zone: str | None) -> tuple[int, int, int, dt.tzinfo] | None:
    """The literal as it is written, the instant, and what the session's clocks show then, in microseconds since 1970,
    and the zone; ``None`` for what is no point in time, or where the zone is not known."""
    try:
        found = timestamp_ns(literal.value)
    except ValueError:
        return None  # the comparison raises the error
    if found is None or not zone:
        return None  # an unknown zone is an error where it is needed
    us, rules = int(found[0] // 1000), zone_of(zone)
    instant = us if found[1] else instant_us(us, rules)
    wall = wall_us(instant, rules)
    return (wall if found[1] else us), instant, wall, rules


def _as_clock(literal: Literal, zone: str | None) -> Any:
    """An instant that a column of clocks is compared with: Spark compares the clock that the session's zone shows then.

    Raises :class:`NoEqual` for an instant that no clock means, the second one of an hour that comes twice."""
    found = _instant(literal, zone)
    if found is None:
        return literal.value
    _, instant, wall, rules = found
    if instant_us(wall, rules) != instant:
        raise NoEqual("the clocks show this time twice, and mean the first by it")
    return as_datetime64(wall)


def _check_clock(literal: Literal, zone: str | None) -> None:
    """Check that one clock of the session's zone, and no other, means a point in time. Spark makes instants of the
    column's values here, and around a change of the clocks two of them may be one instant. Raises :class:`NoEqual`
    there."""
    found = _instant(literal, zone)
    if found is None:
        return
    written, instant, wall, rules = found
    jump = (wall - instant) - (wall_us(instant - _DAY_US, rules) - (instant - _DAY_US))
    is_twice = jump > 0 and instant_us(wall - jump, rules) == instant
    if is_twice or instant_us(wall, rules) != instant or wall != written:
        raise NoEqual("the clocks change at this point in time, so that clocks and instants do not fit one to one")


_DAY_US = 86_400_000_000


def _fits(literal: Literal, kind: str) -> bool:
    """Whether a literal can be of this kind. One that is written as a point in time can only be that."""
    is_time = bool(literal.kind) or isinstance(literal.value, dt.date)
    return not is_time or kind in ("date", "timestamp", "int96")


def _whole(value: Any, leaf: LeafType) -> Any:
    if isinstance(value, str):  # out of ANSI mode a text that is no value of the column's type is null
        made = int(value) if re.fullmatch(r"[+-]?\d{1,18}", value, re.ASCII) else None
        return made if made is not None and -(1 << (leaf.bits - 1)) <= made < 1 << (leaf.bits - 1) else None
    if isinstance(value, Decimal) and _digits(value) + 20 > _MOST_DIGITS:
        return None  # the common type of both loses decimal places
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


def _digits(value: Decimal) -> int:
    """Decimal places."""
    exponent = value.as_tuple().exponent
    return max(-exponent, 0) if isinstance(exponent, int) else 0


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
