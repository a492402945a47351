"""Durations as text: ``1 day 02:30:00``, ``90 seconds``, ``-00:00:01.5``, to the nanosecond.

Months and years have no fixed length and are refused.
"""

from __future__ import annotations

import datetime as dt
import re
from fractions import Fraction

import numpy as np

_SECOND = 1_000_000_000
_UNITS = {
    "week": 604_800 * _SECOND, "day": 86_400 * _SECOND, "hour": 3600 * _SECOND, "minute": 60 * _SECOND,
    "second": _SECOND, "millisecond": 1_000_000, "microsecond": 1000, "nanosecond": 1,
}  # fmt: skip
_SHORT = {
    "w": "week", "d": "day", "h": "hour", "hr": "hour", "min": "minute", "s": "second", "sec": "second",
    "ms": "millisecond", "msec": "millisecond", "us": "microsecond", "usec": "microsecond", "ns": "nanosecond",
}  # fmt: skip
_UNFIXED = re.compile(r"(mon|month|quarter|year|yr|y|decade|century|centurie|millennium)s?")
NUMBER = r"[+-]?\d{1,18}(?:\.\d{0,9}\d*)?"
_PART = re.compile(
    rf"\s*(?:(?P<clock>[+-]?\d{{1,9}}:\d\d(?::\d\d(?:\.\d+)?)?)(?=\s|$)|(?P<count>{NUMBER})\s*(?P<unit>[a-z]+))"
)
_SPANS = {
    ("DAY", "HOUR"): r"(?P<d>\d+) (?P<h>\d+)", ("DAY", "MINUTE"): r"(?P<d>\d+) (?P<h>\d+):(?P<m>\d+)",
    ("DAY", "SECOND"): r"(?P<d>\d+) (?P<h>\d+):(?P<m>\d+):(?P<s>\d+(?:\.\d+)?)",
    ("HOUR", "MINUTE"): r"(?P<h>\d+):(?P<m>\d+)", ("HOUR", "SECOND"): r"(?P<h>\d+):(?P<m>\d+):(?P<s>\d+(?:\.\d+)?)",
    ("MINUTE", "SECOND"): r"(?P<m>\d+):(?P<s>\d+(?:\.\d+)?)",
}  # fmt: skip
_LETTERS = {"d": "day", "h": "hour", "m": "minute", "s": "second"}


def duration_of(text: str) -> dt.timedelta | np.timedelta64:
    """The duration that ``text`` means. Raises :class:`ValueError` with the reason."""
    return exact(_of_text(text))


def of_span(text: str, first: str, last: str) -> dt.timedelta | np.timedelta64:
    """``1 02:03:04.5`` of SQL's ``DAY TO SECOND``. Raises :class:`ValueError`."""
    return exact(_of_span(text, first, last))


def of_unit(text: str, unit: str) -> dt.timedelta | np.timedelta64:
    """``90`` of a unit. Raises :class:`ValueError`."""
    return exact(Fraction(text) * _nanoseconds(unit.lower()))


def _nanoseconds(unit: str) -> int:
    if _UNFIXED.fullmatch(unit):
        raise ValueError("months and years have no fixed length: give days")
    name = _SHORT.get(unit, _SHORT.get(unit.removesuffix("s"), unit.removesuffix("s")))
    if name not in _UNITS:
        raise ValueError(f"{unit!r} is no unit of a duration: use {', '.join(_UNITS)}")
    return _UNITS[name]


def _of_text(text: str) -> Fraction:
    """``1 day 2 hours``, ``1 day -02:00:00.5``, ``02:00``: each part has its own sign."""
    rest, total, any_part = text.strip().lower(), Fraction(0), False
    while rest:
        part = _PART.match(rest)
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
    found = (int(hours) * 3600 + int(minutes) * 60 + second) * _SECOND
    return -found if text.startswith("-") else found


def _check_clock(minutes: int, seconds: Fraction) -> None:
    if minutes > 59 or seconds >= 60:
        raise ValueError("minutes and seconds of a clock are below 60")


def _of_span(text: str, first: str, last: str) -> Fraction:
    if _UNFIXED.fullmatch(first.lower()):
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
    return sum((Fraction(parts[key]) * _UNITS[_LETTERS[key]] for key in parts), Fraction(0))


def exact(ns: Fraction) -> dt.timedelta | np.timedelta64:
    if ns.denominator != 1:
        raise ValueError("it is finer than a nanosecond")
    if abs(ns) < 1 << 63:
        return np.timedelta64(ns.numerator, "ns")
    try:
        return dt.timedelta(microseconds=ns.numerator // 1000)
    except OverflowError:
        raise ValueError("it is longer than any duration") from None
