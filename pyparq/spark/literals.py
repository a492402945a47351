"""Literals of Spark: the values that a column is compared with, by Spark's rules for types that differ, and clocks.

Time zones go by Spark's names, and clock times in them are the instants that ``java.time`` computes: a clock time that
is skipped (when daylight saving begins) is moved later by the skipped time. A clock time that occurs twice is the first
of the two. Old times have the zone's local mean time.

In filters of pyparq's own, literals without a zone get one. Text, dates, numpy's ``datetime64`` and Arrow's values are
clock times in the session's zone (``spark.sql.session.timeZone``). A ``datetime`` without a zone is in the zone of this
Python process, as everywhere in PySpark.
"""

from __future__ import annotations

import datetime as dt
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from pyparq.errors import FilterError, OptionError
from pyparq.filters.conditions import Literal, NoEqual
from pyparq.filters.expression import Expression, ValueTest
from pyparq.filters.times import Instant, timestamp_ns
from pyparq.filters.value_array import plain
from pyparq.format.hybrid_calendar import java_zone
from pyparq.format.schema_node import Node
from pyparq.format.types import LeafType

_EXACT = 1 << 53
"""Integers up to here are all doubles."""
_DIGITS = 15
"""So many decimal digits tell doubles apart."""

_MOST_DIGITS = 38
"""Of Spark's decimals."""

_CLOCK = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2})(:\d{2}(?:\.\d{1,6})?)?\d*)?(Z|[+-]\d{2}:\d{2})?", re.ASCII
)


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


# ---- points in time in filters of our own

_MOMENTS = (str, dt.date, np.datetime64, Instant)


def in_zone(expression: Expression, leaf: LeafType, zone: str) -> Expression:
    """The test with its literals as UTC where the column, a ``leaf`` of this type, holds instants, and as clocks of the
    session's ``zone`` where it holds dates or times without a zone. ``zone`` is ``""`` where it is not known.

    Raises :class:`FilterError` for a literal that needs a zone that is not known.
    """
    if leaf.kind not in ("timestamp", "int96", "date"):
        return expression
    change = _to_instant if leaf.kind == "int96" or leaf.utc else _to_wall
    if not isinstance(expression, ValueTest):
        return expression
    return expression.with_literals(lambda value: _changed(value, change, zone))


def _changed(value: Any, change: Callable[[Any, str], Any], zone: str) -> Any:
    if hasattr(value, "as_py") and hasattr(value, "type"):  # pyarrow's scalars
        value = plain(value)
    return change(value, zone) if isinstance(value, _MOMENTS) and value == value else value


def _to_instant(value: Any, zone: str) -> Any:
    """A point in time as UTC."""
    if isinstance(value, dt.datetime) and not hasattr(value, "asm8") and value.tzinfo is None:
        # A clock of this process's zone, as PySpark reads it.
        return as_datetime64(int(time.mktime(value.timetuple())) * 1_000_000 + value.microsecond)
    try:
        found = timestamp_ns(value)
    except ValueError:
        return value  # the comparison raises the error
    if found is None or found[1]:
        return value
    us, rest = divmod(found[0], 1000)
    instant = instant_us(int(us), zone_of(_known(zone, value)))
    exact = isinstance(rest, int) and rest and abs(instant) < 9_000_000_000_000_000
    return np.datetime64(1000 * instant + int(rest), "ns") if exact else as_datetime64(instant)


def _to_wall(value: Any, zone: str) -> Any:
    """An instant as the session's clocks show it; what has no zone stays as it is."""
    if not isinstance(value, (dt.datetime, Instant)):
        return value
    found = timestamp_ns(value)
    if found is None or not found[1]:
        return value
    return as_datetime64(wall_us(int(found[0] // 1000), zone_of(_known(zone, value))))


def _known(zone: str, value: Any) -> str:
    if not zone:
        raise FilterError(
            f"{value!s} has no time zone, and a data source is not told that of the session: give the option "
            "time_zone, such as 'Europe/Berlin', or write the zone, as in '2024-01-31 12:00:00+01:00'"
        )
    return zone


# ---- zones and clocks

_CYCLE_SECONDS = 146_097 * 86_400
"""The Gregorian calendar repeats after so long."""
_FIRST, _LAST = -62_135_596_800, 253_402_300_799
"""Seconds of the years 1 to 9999, which are all that Python's dates have."""


def zone_of(name: str) -> dt.tzinfo:
    """The zone with Java's name: a region, an offset or a short name.

    Raises :class:`OptionError` for a name that this machine has no zone for.
    """
    found = java_zone(name)
    if found is None:
        raise OptionError(
            f"the time zone {name!r} is not known to this machine's Python: give spark.sql.session.timeZone a region "
            "like 'Europe/Berlin' or an offset like '+02:00' (pip install tzdata brings the regions)"
        )
    return found


def offset_at(wall: int, zone: dt.tzinfo) -> int:
    """Seconds by which a clock of the zone is ahead of UTC while it shows ``wall`` (seconds since 1970)."""
    cycles = 0
    if not _FIRST <= wall <= _LAST:  # as in the first and in the last four centuries that Python knows
        year_one = wall < _FIRST
        start = _FIRST if year_one else _LAST + 1 - _CYCLE_SECONDS
        cycles = (wall - start) // _CYCLE_SECONDS
    shown = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=wall - cycles * _CYCLE_SECONDS)
    offset = zone.utcoffset(shown) if isinstance(zone, dt.timezone) else shown.replace(tzinfo=zone).utcoffset()
    assert offset is not None  # zones have offsets at all times
    return offset.days * 86_400 + offset.seconds


def instant_us(wall: int, zone: dt.tzinfo) -> int:
    """Microseconds since 1970 in UTC when a clock of the zone shows ``wall``, microseconds since 1970."""
    return wall - 1_000_000 * offset_at(wall // 1_000_000, zone)


def wall_us(instant: int, zone: dt.tzinfo) -> int:
    """What a clock of the zone shows at ``instant``; both microseconds since 1970."""
    seconds = instant // 1_000_000
    cycles = 0
    if not _FIRST + 86_400 <= seconds <= _LAST - 86_400:
        start = _FIRST + 86_400 if seconds < 0 else _LAST - 86_400 - _CYCLE_SECONDS
        cycles = (seconds - start) // _CYCLE_SECONDS
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=seconds - cycles * _CYCLE_SECONDS)
    offset = moment.astimezone(zone).utcoffset()
    assert offset is not None
    return instant + 1_000_000 * (offset.days * 86_400 + offset.seconds)


def as_datetime64(us: int) -> Any:
    """Microseconds since 1970 as numpy's ``datetime64``."""
    return np.datetime64(us, "us")
