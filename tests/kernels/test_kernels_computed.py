"""Comparisons of computed numbers, against Python's own integers, fractions and floats."""

from __future__ import annotations

import datetime as dt
import math
import random
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

from pyparq import kernels
from pyparq.kernels import KernelError

DAY = 86_400_000_000
SIZES = (0, 1, 63, 64, 65, 511, 512, 513, 1300)
OPS = ("==", "!=", "<", "<=", ">", ">=")
NUMBERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)


class Made(NamedTuple):
    """The steps of a number, and what it is in each row (``None``: null)."""

    steps: list[tuple[Any, ...]]
    floats: bool
    rows: list[Any]


def some_integer(draw: random.Random, low: int, high: int) -> int:
    if draw.random() < 0.7:
        return min(max(draw.randrange(-9, 10), low), high)
    return draw.choice([low, high, low + 1, high - 1, draw.randrange(low, high + 1)])


def some_float(draw: random.Random) -> float:
    some = [0.0, -0.0, 1.5, -2.0, math.nan, math.inf, -math.inf, 2.0**53, 2.0**63, -(2.0**63), 1e300, 5e-324]
    return draw.choice(some) if draw.random() < 0.5 else draw.uniform(-9, 9)


def column(draw: random.Random, count: int) -> Made:
    kind = draw.choice(["int", "int", "wide", "float", "float"])
    entries = draw.choice([0, 1, 7]) if draw.random() < 0.3 else count
    bits = draw.random() < 0.5
    valid = [not bits or draw.random() < 0.8 for _ in range(entries)]
    offset = draw.randrange(9) if bits else 0
    den = draw.choice([1, 1, 100, 7])
    values: Any
    if kind == "int":
        dtype = draw.choice(NUMBERS)
        info = np.iinfo(dtype)
        numbers: list[Any] = [some_integer(draw, info.min, info.max) for _ in range(entries)]
        values = np.array(numbers, dtype)
    elif kind == "wide":
        size = draw.choice([16, 32])
        most = 2 ** (draw.choice([60, 64, 8 * size - 1])) - 1
        numbers = [some_integer(draw, -most - 1, most) for _ in range(entries)]
        raw = b"".join(number.to_bytes(size, "little", signed=True) for number in numbers)
        values = np.frombuffer(raw, np.int64)
    else:
        den = 1
        with np.errstate(over="ignore"):
            values = np.array([some_float(draw) for _ in range(entries)]).astype(draw.choice(["f8", "f4", "f2"]))
        numbers = values.tolist()
    floats = kind == "float"
    known = [(x if floats else Fraction(x, den)) if ok else None for x, ok in zip(numbers, valid, strict=True)]
    validity = np.packbits(np.array([True] * offset + valid, bool), bitorder="little") if bits else None
    given = (values, entries, validity, offset)
    if entries == count and draw.random() < 0.8:
        return Made([("column", den, floats, given, None)], floats, known)
    codes = [draw.randrange(max(entries, 1)) for _ in range(count)]
    there = [entries > 0 and draw.random() < 0.9 for _ in range(count)]
    stored = np.array([code if ok else 99 for code, ok in zip(codes, there, strict=True)], np.int32)
    places = (stored, count, np.packbits(np.array(there, bool), bitorder="little"), 0)
    rows = [known[code] if ok else None for code, ok in zip(codes, there, strict=True)]
    return Made([("column", den, floats, given, places)], floats, rows)


def literal(draw: random.Random, count: int) -> Made:
    if draw.random() < 0.3:
        value: Any = some_float(draw)
        return Made([("literal", value, 1)], True, [value] * count)
    value = Fraction(some_integer(draw, -(2**66), 2**66), draw.choice([1, 1, 10, 3]))
    return Made([("literal", value.numerator, value.denominator)], False, [value] * count)


def as_double(value: Any) -> float:
    return value.numerator / value.denominator if isinstance(value, Fraction) else value


def joined(op: str, a: Any, b: Any) -> Any:
    """Doubles by numpy, which divides by zero without an error."""
    if a is None or b is None or (op in ("/", "%", "rem") and b == 0):
        return None
    if isinstance(a, Fraction):
        rest = a - b * int(a / b) if op == "rem" else None
        return {"+": a + b, "-": a - b, "*": a * b, "/": b and a / b, "%": b and a % b, "rem": rest}[op]
    by = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "%": np.mod, "rem": np.fmod}[op]
    with np.errstate(all="ignore"):
        return float(by(np.float64(a), np.float64(b)))


def number(draw: random.Random, count: int, depth: int = 2) -> Made:
    if depth == 0 or draw.random() < 0.3:
        return literal(draw, count) if draw.random() < 0.3 else column(draw, count)
    a, b = number(draw, count, depth - 1), number(draw, count, depth - 1)
    op, floats = draw.choice(["+", "-", "*", "+", "-", "*", "/", "%", "rem"]), a.floats or b.floats
    make = (lambda x: None if x is None else as_double(x)) if floats else (lambda x: x)
    rows = [joined(op, make(x), make(y)) for x, y in zip(a.rows, b.rows, strict=True)]
    return Made([*a.steps, *b.steps, (op, floats)], floats, rows)


def compared(op: str, a: Any, b: Any) -> bool:
    if a is None or b is None:
        return False
    if a != a or b != b:
        order = (a != a) - (b != b)
    else:
        order = (a > b) - (a < b)
    return {"==": order == 0, "!=": order != 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[op]


def bools(words: Any, count: int) -> list[bool]:
    return np.unpackbits(words.view(np.uint8), bitorder="little")[:count].astype(bool).tolist()


@pytest.mark.parametrize("seed", range(6))
def test_random_comparisons(seed: int) -> None:
    draw, computed = random.Random(seed), 0
    for _ in range(60):
        count, op = draw.choice(SIZES), draw.choice(OPS)
        left, right = number(draw, count), number(draw, count)
        wanted = np.array([draw.random() < 0.6 for _ in range(count)], bool)
        if count > 1000:
            wanted[:700] = False  # a block that nobody asks for
        packed = np.packbits(wanted, bitorder="little").tobytes()
        words = np.frombuffer(packed + bytes(-len(packed) % 8), np.uint64)
        found = kernels.compare_computed([*left.steps, *right.steps], op, count)
        within = kernels.compare_computed([*left.steps, *right.steps], op, count, words)
        if found is None:
            continue
        computed += 1
        expected = [compared(op, a, b) for a, b in zip(left.rows, right.rows, strict=True)]
        assert bools(found, count) == expected, (left.steps, op, right.steps)
        assert within is not None
        assert bools(within, count) == (wanted & np.array(expected, bool)).tolist()
    assert computed >= 15, "nearly all are left to Python"


def test_whole_numbers_up_to_128_bits_are_not_left_to_python() -> None:
    edges = np.array([2**63 - 1, -(2**63), 0, -1, 2**53 + 1], np.int64)
    big = np.array([2**64 - 1, 2**63, 1, 0, 2**53], np.uint64)
    a = ("column", 1, False, (edges, 5, None, 0), None)
    b = ("column", 1, False, (big, 5, None, 0), None)
    products = [x * y for x, y in zip(edges.tolist(), big.tolist(), strict=True)]
    for steps, wide in (
        ([a, b, ("*", False), ("literal", -(2**126), 1)], [x < -(2**126) for x in products]),
        ([a, a, ("-", False), b], [y > 0 for y in big.tolist()]),
        ([a, ("literal", 2.0**53, 1)], [x < 2.0**53 for x in edges.tolist()]),
        ([b, ("literal", 2.0**64, 1)], [True] * 5),
    ):  # fmt: skip
        found = kernels.compare_computed(steps, "<", 5)
        assert found is not None
        assert bools(found, 5) == wide
    assert kernels.compare_computed([a, b, ("*", False), b, ("*", False), ("literal", 0, 1)], "<", 5) is None


@pytest.mark.parametrize("per_day", [1, 86_400, DAY // 1000, DAY, DAY * 1000, 24, 7])
def test_parts_of_dates(per_day: int) -> None:
    """Also of days that 32 bits do not reach, and of units that Python does not have."""
    draw = np.random.default_rng(per_day % 97)
    near = draw.integers(-100_000 * per_day, 100_000 * per_day, 600)
    parts = ("year", "quarter", "month", "day", *(("hour", "minute", "second") if per_day > 1 else ()))
    for part in parts:
        for ticks in (near, draw.integers(-(2**62), 2**62, 600), np.arange(-600, 600)):
            found = kernels.part_of_dates(ticks, per_day, part).tolist()
            assert found == [part_by_python(int(t), per_day, part) for t in ticks.tolist()], part
            steps = [
                ("column", per_day, False, (ticks, len(ticks), None, 0), None),
                ("part", part),
                ("literal", found[7], 1),
            ]
            same = kernels.compare_computed(steps, "==", len(ticks))
            assert same is not None
            assert bools(same, len(ticks)) == [x == found[7] for x in found]


def part_by_python(ticks: int, per_day: int, part: str) -> int:
    days, within = divmod(ticks, per_day)
    if part in ("hour", "minute", "second"):
        size, around = {"hour": (24, 24), "minute": (1440, 60), "second": (86_400, 60)}[part]
        return within * size // per_day % around
    eras, days = divmod(days + 719_162, 146_097)  # since 0001-01-01
    date = dt.date.fromordinal(days + 1)
    return {"year": date.year + 400 * eras, "quarter": (date.month + 2) // 3, "month": date.month, "day": date.day}[
        part
    ]


GOOD = ("column", 1, False, (np.arange(3), 3, None, 0), None)


@pytest.mark.parametrize(
    "steps",
    [
        [], [GOOD], [GOOD] * 3, [GOOD, ("+", False)], [()], [("sum", 1)], [GOOD, ("literal", 1)],
        [GOOD, ("literal", 1, 0)], [GOOD, GOOD, ("**", False), GOOD], [GOOD, ("part", "century"), GOOD],
        [("column", 0, False, (np.arange(3), 3, None, 0), None), GOOD],
        [("column", 1, False, (np.arange(2), 3, None, 0), None), GOOD],
        [("column", 1, False, (np.arange(2), 2, None, 0), None), GOOD],
        [("column", 1, False, (np.arange(3), 3, b"", 0), None), GOOD],
        [("column", 1, False, (np.arange(3), 3, b"\1", 6), None), GOOD],
        [("column", 1, False, (np.arange(3.0), 3, None, 0), None), GOOD],
        [("column", 1, False, (np.arange(3), 3, None, 0), (np.arange(3.0), 3, None, 0)), GOOD],
        [("column", 1, True, (np.arange(6), 3, None, 0), None), GOOD],
        [("literal", 1.0, 1), ("part", "year"), GOOD], [("literal", 1.0, 1), GOOD, ("+", False), GOOD],
    ],
    ids=str,
)  # fmt: skip
def test_steps_that_make_no_sense_are_refused(steps: Any) -> None:
    with pytest.raises(KernelError):
        kernels.compare_computed(steps, "<", 3)
