"""Dates and times of Python, numpy and pandas, and ISO 8601 strings, as exact nanoseconds.

Nanoseconds are :class:`fractions.Fraction` or int, because numpy has units down to attoseconds. A pandas Timestamp is a
``datetime`` with numpy's value in ``asm8``. It is recognised by that, so pandas is never imported.
"""

from __future__ import annotations

import datetime as dt
import re
from fractions import Fraction
from typing import Any

import numpy as np

from pyparq.runtime.text import printable

_EPOCH_ORDINAL = 719_163  # date(1970, 1, 1).toordinal()
_DAY_NS = 86_400_000_000_000

_STEPS: dict[str, int | Fraction] = {
    "W": 7 * _DAY_NS, "D": _DAY_NS, "h": 3_600_000_000_000, "m": 60_000_000_000, "s": 1_000_000_000,
    "ms": 1_000_000, "us": 1000, "ns": 1, "ps": Fraction(1, 10**3), "fs": Fraction(1, 10**6),
    "as": Fraction(1, 10**9),
}  # fmt: skip

UNIT_NS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}
"""Nanoseconds of the units that columns have."""

_ARROW = {f"duration[{unit}]": unit for unit in UNIT_NS}

_ISO = (
    r"(?P<date>\d{4}-\d\d-\d\d)?(?:(?P<gap>[T ])?(?P<time>\d\d:\d\d(?::\d\d(?:[.,](?P<fraction>\d+))?)?)"
    r" ?(?P<zone>Z|[+-]\d\d(?::?\d\d)?)?)?"
)


def _match(text: str) -> re.Match[str] | None:
    # Compiled (and cached by re) at first use: it would be a millisecond of every import.
    return re.fullmatch(_ISO, text.strip(), re.IGNORECASE | re.ASCII)


class Instant:
    """A point in time: nanoseconds since 1970, and whether its zone was given."""

    __slots__ = ("aware", "ns")

    def __init__(self, ns: int, aware: bool) -> None:
        self.ns, self.aware = ns, aware

    def __reduce__(self) -> tuple[Any, ...]:
        return Instant, (self.ns, self.aware)

    @printable
    def __repr__(self) -> str:
        fits = abs(self.ns) < 1 << 63
        shown = str(np.datetime64(self.ns, "ns")) if fits else str(np.datetime64(self.ns // 1000, "us"))
        return f"{shown}Z" if self.aware else shown


def timestamp_ns(value: Any) -> tuple[int | Fraction, bool] | None:
    """(nanoseconds since 1970, whether the value has a zone). ``None`` if it is no point in time.

    Without a zone, nanoseconds are counted as in UTC. Strings that are not ISO 8601 raise ValueError.
    """
    if isinstance(value, Instant):
        return value.ns, value.aware
    if isinstance(value, dt.datetime):
        own = getattr(value, "asm8", None)
        if own is not None:  # a pandas Timestamp, which also reaches beyond Python's years
            return _numpy_ns(own), value.tzinfo is not None
        clock = (value.hour * 3600 + value.minute * 60 + value.second) * 1_000_000 + value.microsecond
        ns = (value.toordinal() - _EPOCH_ORDINAL) * _DAY_NS + clock * 1000
        offset = value.utcoffset()
        return (ns, False) if offset is None else (ns - _timedelta_ns(offset), True)
    if isinstance(value, dt.date):
        return (value.toordinal() - _EPOCH_ORDINAL) * _DAY_NS, False
    if isinstance(value, np.datetime64):
        return _numpy_ns(value), False
    if isinstance(value, str):
        return _parse(value)
    return None


def date_ns(value: Any) -> int | Fraction | None:
    """The same for a column of dates, which have no zone. A value with a zone raises ValueError."""
    found = timestamp_ns(value)
    if found is None:
        return None
    if found[1]:
        raise ValueError("dates have no time zone")
    return found[0]


def time_ns(value: Any) -> int | Fraction | None:
    """Nanoseconds since midnight of a ``datetime.time`` or an ISO 8601 string (``None`` for other kinds)."""
    if isinstance(value, dt.time):
        if value.tzinfo is not None:
            raise ValueError("the time has a zone")
        return ((value.hour * 3600 + value.minute * 60 + value.second) * 1_000_000 + value.microsecond) * 1000
    if isinstance(value, str):
        match = _match(value)
        if match is None or match["date"] or not match["time"] or match["zone"]:
            raise ValueError("this is not a time like '12:34:56.789'")
        return _clock_ns(match)
    return None


def duration_ns(value: Any) -> int | Fraction | None:
    """Nanoseconds of a timedelta of Python, pandas, numpy or pyarrow (``None`` for other kinds)."""
    if isinstance(value, dt.timedelta):
        own = getattr(value, "asm8", None)  # pandas'
        return _timedelta_ns(value) if own is None else _numpy_ns(own)
    unit = _ARROW.get(str(getattr(value, "type", "")))
    if unit is not None and hasattr(value, "as_py"):
        return int(value.value) * UNIT_NS[unit]
    if isinstance(value, np.timedelta64):
        return _numpy_ns(value)
    return None


def _timedelta_ns(value: dt.timedelta) -> int:
    micros = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
    return micros * 1000 + int(getattr(value, "nanoseconds", 0))


def _numpy_ns(value: np.datetime64 | np.timedelta64) -> int | Fraction:
    unit, step = np.datetime_data(value.dtype)
    if unit in ("Y", "M") and isinstance(value, np.datetime64):
        days = value.astype("datetime64[D]")
        if days.astype(value.dtype) != value:
            raise ValueError(f"{value.dtype} {int(value.astype(np.int64))} does not fit datetime64[D]")
        value, unit, step = days, "D", 1
    if unit not in _STEPS:
        raise ValueError(f"numpy's unit {unit!r} has no fixed length")
    return int(value.astype(np.int64)) * step * _STEPS[unit]


def _parse(text: str) -> tuple[int | Fraction, bool]:
    match = _match(text)
    if match is None or not match["date"] or (match["time"] and not match["gap"]):
        raise ValueError("this is not a date or timestamp like '2024-01-31' or '2024-01-31T12:34:56.789Z'")
    ns: int | Fraction = (dt.date.fromisoformat(match["date"]).toordinal() - _EPOCH_ORDINAL) * _DAY_NS
    if match["time"]:
        ns += _clock_ns(match)
    zone = match["zone"]
    if not zone:
        return ns, False
    if zone in "zZ":
        return ns, True
    hours, minutes = int(zone[1:3]), int(zone[-2:]) if len(zone) > 3 else 0
    offset = (hours * 3600 + minutes * 60) * 1_000_000_000
    return ns - (-offset if zone[0] == "-" else offset), True


def _clock_ns(match: re.Match[str]) -> int | Fraction:
    clock = dt.time.fromisoformat(match["time"][:8])
    ns: int | Fraction = (clock.hour * 3600 + clock.minute * 60 + clock.second) * 1_000_000_000
    digits = match["fraction"]
    if digits:
        fraction = Fraction(int(digits) * 1_000_000_000, 10 ** len(digits))
        ns += fraction.numerator if fraction.denominator == 1 else fraction
    return ns
