"""Exact arithmetic on arrays of numbers, and parts of dates. Integers that may not fit 64 bits become
Python's, so nothing ever wraps."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyparq import kernels

Ints = npt.NDArray[Any]
"""int64, or Python's integers as objects."""
Flags = npt.NDArray[np.bool_]

_LIMIT = 1 << 63
_WHOLE = 1 << 53
"""Up to this, every integer is a double."""


class Exact(NamedTuple):
    """``num / den``, with ``den > 0``. Both are arrays, or 0-d where all rows have the same."""

    num: Ints
    den: Ints


def whole(value: int) -> Ints:
    """One integer as a 0-d array."""
    return np.array(value, np.int64 if -_LIMIT <= value < _LIMIT else object)


def exact(value: Fraction | int) -> Exact:
    return Exact(whole(int(value.numerator)), whole(int(value.denominator)))


def add(a: Exact, b: Exact) -> Exact:
    if _same(a.den, b.den):
        return Exact(plus(a.num, b.num), a.den)
    return Exact(plus(times(a.num, b.den), times(b.num, a.den)), times(a.den, b.den))


def subtract(a: Exact, b: Exact) -> Exact:
    return add(a, Exact(times(b.num, whole(-1)), b.den))


def multiply(a: Exact, b: Exact) -> Exact:
    return Exact(times(a.num, b.num), times(a.den, b.den))


def divide(a: Exact, b: Exact) -> tuple[Exact, Flags]:
    """The quotient, and where it exists."""
    exists = np.asarray(b.num != 0, bool)
    divisor = _array(np.where(exists, b.num, 1))
    sign = np.where(np.asarray(divisor < 0, bool), -1, 1)
    return Exact(times(times(a.num, b.den), sign), times(a.den, times(divisor, sign))), exists


def remainder(a: Exact, b: Exact, *, floor: bool) -> tuple[Exact, Flags]:
    """What a division leaves whose quotient is rounded down (``floor``), or towards zero; and where it exists."""
    exists = np.asarray(b.num != 0, bool)
    left, right, den = a.num, _array(np.where(exists, b.num, 1)), a.den
    if not _same(a.den, b.den):
        left, right, den = times(left, b.den), times(right, a.den), times(a.den, b.den)
    if max(size(left), size(right)) >= _LIMIT or object in (left.dtype, right.dtype):
        left, right = _objects(left), _objects(right)
    found = left % right if floor else np.where(np.asarray(left < 0, bool), -1, 1) * (abs(left) % abs(right))
    return Exact(_array(found), den), exists


def order(a: Exact, b: Exact) -> tuple[Flags, Flags]:
    """Where ``a < b``, and where they are equal."""
    left, right = a.num, b.num
    if not _same(a.den, b.den):
        left, right = times(a.num, b.den), times(b.num, a.den)
    return np.asarray(left < right, bool), np.asarray(left == right, bool)


def order_with_floats(a: Exact, b: npt.NDArray[np.float64]) -> tuple[Flags, Flags]:
    """As :func:`order`, for doubles on the right: compared without rounding. NaN lies above every number."""
    nan = np.isnan(b)
    if _same(a.den, whole(1)) and size(a.num) <= _WHOLE:
        left: Any = a.num.astype(np.float64)
        right: Any = b
    else:
        left, right = np.broadcast_arrays(_fractions(a), b.astype(object))
    with np.errstate(invalid="ignore"):
        return np.asarray(left < right, bool) | nan, np.asarray(left == right, bool) & ~nan


def as_floats(a: Exact) -> npt.NDArray[np.float64]:
    """The nearest doubles."""
    if _same(a.den, whole(1)) and a.num.dtype != object:
        return np.asarray(a.num.astype(np.float64))
    if size(a.num) <= _WHOLE and size(a.den) <= _WHOLE:
        return np.asarray(a.num.astype(np.float64) / a.den.astype(np.float64))
    return np.asarray(_QUOTIENTS(_objects(a.num), _objects(a.den)), np.float64)


def as_double(value: Fraction | float) -> float:
    """The nearest double. Beyond the largest it is infinite."""
    return value if isinstance(value, float) else _quotient(value.numerator, value.denominator)


def _quotient(numerator: int, denominator: int) -> float:
    try:
        return numerator / denominator  # rounds once, whatever the size
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf


_QUOTIENTS = np.frompyfunc(_quotient, 2, 1)


def plus(a: Ints, b: Ints) -> Ints:
    if size(a) + size(b) < _LIMIT:
        return np.asarray(a.astype(np.int64) + b.astype(np.int64))
    return np.asarray(_objects(a) + _objects(b), object)


def times(a: Ints, b: Ints) -> Ints:
    if max(size(a), 1) * max(size(b), 1) < _LIMIT:
        return np.asarray(a.astype(np.int64) * b.astype(np.int64))
    return np.asarray(_objects(a) * _objects(b), object)


def size(a: Ints) -> int:
    """The largest absolute value."""
    return max(abs(int(a.min())), abs(int(a.max()))) if a.size else 0


def _same(a: Ints, b: Ints) -> bool:
    return a.ndim == b.ndim == 0 and int(a) == int(b)


def _objects(a: Ints) -> Any:
    return a.astype(object)


def _array(a: Any) -> Ints:
    return np.asarray(a)


def _fractions(a: Exact) -> Any:
    if _same(a.den, whole(1)):
        return _objects(a.num)
    nums, dens = np.broadcast_arrays(_objects(a.num), _objects(a.den))
    made = np.empty(nums.shape, object)
    made.reshape(-1)[:] = [Fraction(int(n), int(d)) for n, d in zip(nums.reshape(-1), dens.reshape(-1), strict=True)]
    return made


# ---- parts of points in time and times of day, which come as exact numbers of days


def part_of(name: str, moments: Exact) -> npt.NDArray[Any]:
    """``year``, ``month`` and so on, in UTC, as int64."""
    return kernels.part_of_dates(np.atleast_1d(moments.num.astype(np.int64)), int(moments.den), name)


def year_of(ticks: int, per_day: int) -> int:
    """The year of one point in time of any size, in the proleptic Gregorian calendar."""
    days = ticks // per_day + 719_468  # since 0000-03-01
    era, day = divmod(days, 146_097)
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    in_year = day - (365 * year + year // 4 - year // 100)
    return 400 * era + year + (in_year >= 306)
