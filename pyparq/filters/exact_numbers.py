"""Exact arithmetic on arrays of Python's integers, which never wrap, and parts of dates: for numbers that the kernel
does not compute (``kernels.compare_computed``), and for values that are stored."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyparq import kernels

Ints = npt.NDArray[np.object_]
Flags = npt.NDArray[np.bool_]


class Exact(NamedTuple):
    """``num / den``, with ``den > 0``. Both are arrays, or 0-d where all rows have the same."""

    num: Ints
    den: Ints


def integers(values: Any) -> Ints:
    """Python's integers: an array, or one as a 0-d array."""
    return np.asarray(values, object)


def exact(value: Fraction | int) -> Exact:
    return Exact(integers(int(value.numerator)), integers(int(value.denominator)))


def add(a: Exact, b: Exact) -> Exact:
    left, right, den = _aligned(a, b)
    return Exact(integers(left + right), den)


def subtract(a: Exact, b: Exact) -> Exact:
    left, right, den = _aligned(a, b)
    return Exact(integers(left - right), den)


def multiply(a: Exact, b: Exact) -> Exact:
    return Exact(integers(a.num * b.num), integers(a.den * b.den))


def divide(a: Exact, b: Exact) -> Exact:
    """A divisor of zero is taken as 1, as there is no answer for it."""
    divisor = _divisor(b)
    sign = _sign(divisor)
    return Exact(integers(a.num * b.den * sign), integers(a.den * divisor * sign))


def remainder(a: Exact, b: Exact, *, floor: bool) -> Exact:
    """What a division leaves whose quotient is rounded down (``floor``), or towards zero."""
    left, right, den = _aligned(a, Exact(_divisor(b), b.den))
    return Exact(integers(left % right if floor else _sign(left) * (abs(left) % abs(right))), den)


def _divisor(b: Exact) -> Ints:
    return np.where(np.asarray(b.num != 0, bool), b.num, integers(1))


def _sign(numbers: Ints) -> Ints:
    return np.where(np.asarray(numbers < 0, bool), integers(-1), integers(1))


def order(a: Exact, b: Exact) -> tuple[Flags, Flags]:
    """Where ``a < b``, and where they are equal."""
    left, right, _ = _aligned(a, b)
    return np.asarray(left < right, bool), np.asarray(left == right, bool)


def order_with_floats(a: Exact, b: npt.NDArray[np.float64]) -> tuple[Flags, Flags]:
    """As :func:`order`, for doubles on the right: compared without rounding. NaN lies above every number."""
    nan = np.isnan(b)
    left = a.num if _same(a.den, integers(1)) else _FRACTIONS(a.num, a.den)
    right = b.astype(object)
    with np.errstate(invalid="ignore"):
        return np.asarray(left < right, bool) | nan, np.asarray(left == right, bool) & ~nan


def as_floats(a: Exact) -> npt.NDArray[np.float64]:
    """The nearest doubles."""
    return np.asarray(_QUOTIENTS(a.num, a.den), np.float64)


def as_double(value: Fraction | float) -> float:
    """The nearest double. Beyond the largest it is infinite."""
    return value if isinstance(value, float) else _quotient(value.numerator, value.denominator)


def _quotient(numerator: int, denominator: int) -> float:
    try:
        return numerator / denominator  # rounds once, whatever the size
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf


_QUOTIENTS = np.frompyfunc(_quotient, 2, 1)

_FRACTIONS = np.frompyfunc(Fraction, 2, 1)


def _aligned(a: Exact, b: Exact) -> tuple[Any, Any, Ints]:
    """The numerators over one denominator."""
    if _same(a.den, b.den):
        return a.num, b.num, a.den
    return a.num * b.den, b.num * a.den, integers(a.den * b.den)


def _same(a: Ints, b: Ints) -> bool:
    return a.ndim == b.ndim == 0 and a.item() == b.item()


# ---- parts of points in time and times of day, which come as exact numbers of days


def part_of(name: str, moments: Exact) -> npt.NDArray[Any]:
    """``year``, ``month`` and so on, in UTC, as int64."""
    return kernels.part_of_dates(np.atleast_1d(moments.num.astype(np.int64)), moments.den.item(), name)


def year_of(ticks: int, per_day: int) -> int:
    """The year of one point in time of any size, in the proleptic Gregorian calendar."""
    days = ticks // per_day + 719_468  # since 0000-03-01
    era, day = divmod(days, 146_097)
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    in_year = day - (365 * year + year // 4 - year // 100)
    return 400 * era + year + (in_year >= 306)
