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
SECOND_NS = 1_000_000_000
DAY_NS = 86_400 * SECOND_NS

_STEPS: dict[str, int | Fraction] = {
    "W": 7 * DAY_NS, "D": DAY_NS, "h": 3600 * SECOND_NS, "m": 60 * SECOND_NS, "s": SECOND_NS,
    "ms": 1_000_000, "us": 1000, "ns": 1, "ps": Fraction(1, 10**3), "fs": Fraction(1, 10**6),
    "as": Fraction(1, 10**9),
}  # fmt: skip

UNIT_NS = {unit: int(_STEPS[unit]) for unit in ("s", "ms", "us", "ns")}
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
        ns = (value.toordinal() - _EPOCH_ORDINAL) * DAY_NS + clock * 1000
        offset = value.utcoffset()
        return (ns, False) if offset is None else (ns - _timedelta_ns(offset), True)
    if isinstance(value, dt.date):
        return (value.toordinal() - _EPOCH_ORDINAL) * DAY_NS, False
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
    ns: int | Fraction = (dt.date.fromisoformat(match["date"]).toordinal() - _EPOCH_ORDINAL) * DAY_NS
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


def shown_clock(ns: int) -> str:
    """A time of day as text."""
    seconds, fraction = divmod(abs(ns), 1_000_000_000)
    shown = f"{'-' if ns < 0 else ''}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{shown}.{fraction:09d}".rstrip("0") if fraction else shown


# ---- durations as text: ``1 day 02:30:00``, ``90 seconds``, ``-00:00:01.5``, to the nanosecond

_LONG = {
    "week": "W", "day": "D", "hour": "h", "minute": "m", "second": "s", "millisecond": "ms", "microsecond": "us",
    "nanosecond": "ns",
}  # fmt: skip
_SHORT = {
    "w": "week", "d": "day", "h": "hour", "hr": "hour", "min": "minute", "s": "second", "sec": "second",
    "ms": "millisecond", "msec": "millisecond", "us": "microsecond", "usec": "microsecond", "ns": "nanosecond",
}  # fmt: skip
_UNFIXED = r"(mon|month|quarter|year|yr|y|decade|century|centurie|millennium)s?"
NUMBER = r"[+-]?\d{1,18}(?:\.\d{0,9}\d*)?"
_PART = rf"\s*(?:(?P<clock>[+-]?\d{{1,9}}:\d\d(?::\d\d(?:\.\d+)?)?)(?=\s|$)|(?P<count>{NUMBER})\s*(?P<unit>[a-z]+))"
_SPANS = {
    ("DAY", "HOUR"): r"(?P<d>\d+) (?P<h>\d+)", ("DAY", "MINUTE"): r"(?P<d>\d+) (?P<h>\d+):(?P<m>\d+)",
    ("DAY", "SECOND"): r"(?P<d>\d+) (?P<h>\d+):(?P<m>\d+):(?P<s>\d+(?:\.\d+)?)",
    ("HOUR", "MINUTE"): r"(?P<h>\d+):(?P<m>\d+)", ("HOUR", "SECOND"): r"(?P<h>\d+):(?P<m>\d+):(?P<s>\d+(?:\.\d+)?)",
    ("MINUTE", "SECOND"): r"(?P<m>\d+):(?P<s>\d+(?:\.\d+)?)",
}  # fmt: skip
_LETTERS = {"d": "D", "h": "h", "m": "m", "s": "s"}


def duration_of(text: str) -> dt.timedelta | np.timedelta64:
    """The duration that ``text`` means. Raises :class:`ValueError` with the reason."""
    return _as_duration(_of_text(text))


def of_span(text: str, first: str, last: str) -> dt.timedelta | np.timedelta64:
    """``1 02:03:04.5`` of SQL's ``DAY TO SECOND``. Raises :class:`ValueError`."""
    return _as_duration(_of_span(text, first, last))


def of_unit(text: str, unit: str) -> dt.timedelta | np.timedelta64:
    """``90`` of a unit. Raises :class:`ValueError`."""
    return _as_duration(Fraction(text) * _nanoseconds(unit.lower()))


def _nanoseconds(unit: str) -> int:
    if re.fullmatch(_UNFIXED, unit):
        raise ValueError("months and years have no fixed length: give days")
    name = _SHORT.get(unit, _SHORT.get(unit.removesuffix("s"), unit.removesuffix("s")))
    if name not in _LONG:
        raise ValueError(f"{unit!r} is no unit of a duration: use {', '.join(_LONG)}")
    return int(_STEPS[_LONG[name]])


def _of_text(text: str) -> Fraction:
    """``1 day 2 hours``, ``1 day -02:00:00.5``, ``02:00``: each part has its own sign."""
    rest, total, any_part = text.strip().lower(), Fraction(0), False
    while rest:
        part = re.match(_PART, rest)
        if part is None:
            raise ValueError(f"{text[:40]!r} is no duration like '1 day 02:00:00' or '90 seconds'")
        total += _clock(part["clock"]) if part["clock"] else Fraction(part["count"]) * _nanoseconds(part["unit"])
        rest, any_part = rest[part.end() :].lstrip(), True
    if not any_part:
        raise ValueError("the text is empty")
    return total


def _clock(text: str) -> Fraction:
    hours, minutes, *seconds = text.lstrip("+-").split(":")
    second = Fraction(seconds[0]) if seconds else Fraction(0)
    _check_clock(int(minutes), second)
    found = (int(hours) * 3600 + int(minutes) * 60 + second) * SECOND_NS
    return -found if text.startswith("-") else found


def _check_clock(minutes: int, seconds: Fraction) -> None:
    if minutes > 59 or seconds >= 60:
        raise ValueError("minutes and seconds of a clock are below 60")


def _of_span(text: str, first: str, last: str) -> Fraction:
    if re.fullmatch(_UNFIXED, first.lower()):
        _nanoseconds(first.lower())
    if text.startswith(("+", "-")):
        raise ValueError("put the sign before the word INTERVAL")
    form = _SPANS.get((first, last))
    found = None if form is None else re.fullmatch(form, text, re.ASCII)
    if found is None:
        raise ValueError(f"{text[:40]!r} is not of the form {first} TO {last}")
    parts = found.groupdict()
    if "h" in parts or "d" in parts:
        _check_clock(int(parts.get("m") or 0), Fraction(parts.get("s") or 0))
    return sum((Fraction(parts[key]) * int(_STEPS[_LETTERS[key]]) for key in parts), Fraction(0))


def _as_duration(ns: Fraction) -> dt.timedelta | np.timedelta64:
    if ns.denominator != 1:
        raise ValueError("it is finer than a nanosecond")
    if abs(ns) < 1 << 63:
        return np.timedelta64(ns.numerator, "ns")
    try:
        return dt.timedelta(microseconds=ns.numerator // 1000)
    except OverflowError:
        raise ValueError("it is longer than any duration") from None
