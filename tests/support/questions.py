"""Random questions about rows, which many dialects can say: ``col``, SQL text, tuples, pyarrow, polars.

A question is a tree of tuples that belongs to no library. A :class:`Dialect` says it in its own words, or ``None`` if
it has none, and knows the right answer from its own library. ``tests/filters/test_dialects.py`` compares.
``DIFFERENCES`` names where dialects may answer otherwise than the others, and where pyparq may answer otherwise than
the library of a dialect.

Conditions: ``("cmp", op, value, value)``, ``("in", value, literals)``, ``("between", value, low, high)``,
``("null", value)``, ``("nan", value)``, ``("prefix", value, text)``, ``("flag", value)``, ``("not", condition)``, and
``("and", …)``, ``("or", …)`` of conditions. Values: ``("col", name)``, ``("lit", value)``, ``("+", a, b)`` (also
``- *``), ``("neg", a)``, ``("year", a)``, ``("length", a)``.
"""

from __future__ import annotations

import datetime as dt
import io
import math
import random
import struct
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa

import pyparq

Question = tuple[Any, ...]
ROWS, GROUP, PAGE = 96, 24, 8
DAY = dt.date(2024, 2, 28)
NOON = dt.datetime(2024, 2, 28, 12)
TYPES = {
    "i": pa.int64(), "k": pa.int32(), "u": pa.uint8(), "w": pa.uint64(), "f": pa.float64(), "g": pa.float32(),
    "p": pa.decimal128(9, 2), "s": pa.string(), "b": pa.bool_(), "d": pa.date32(), "t": pa.timestamp("us"),
    "m": pa.timestamp("ms"), "z": pa.timestamp("us", "UTC"), "x": pa.duration("us"), "y": pa.binary(),
    "e": pa.dictionary(pa.int32(), pa.string()), "c": pa.time64("us"),
}  # fmt: skip
FLOATS, INTEGERS, TEXTS = ("f", "g"), ("i", "k", "u", "w"), ("s", "e")
NUMBERS = (*INTEGERS, *FLOATS, "p")
OPS = ("==", "!=", "<", "<=", ">", ">=")


def _double(rng: random.Random) -> float:
    """A double of any bits, NaN and infinities among them."""
    return float(struct.unpack("<d", rng.randbytes(8))[0]) if rng.random() < 0.3 else rng.gauss(0, 1000)


def _narrow(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _value(name: str, rng: random.Random) -> Any:
    """A value that a column may hold."""
    tenths = rng.choice((0.1, 0.2, 0.3, 0.30000000000000004, 1.5, -0.0, 0.0, math.nan, math.inf, -math.inf, 2.0))
    small = rng.randrange(-3, 8)
    if name == "i":
        return rng.choice((small, small, small, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), rng.randrange(10**6)))
    if name == "k":
        return rng.choice((small, small, 2**31 - 1, -(2**31)))
    if name in ("u", "w"):
        return rng.choice((abs(small), 255, 0, *((2**64 - 1, 2**63, 2**53 + 1) if name == "w" else ())))
    if name in FLOATS:
        found = rng.choice((tenths, tenths, _double(rng)))
        return found if name == "f" else _narrow(found)
    if name == "p":
        return Decimal(rng.choice((10, 20, 30, small * 25, rng.randrange(-(10**9) + 1, 10**9)))) / 100
    if name in TEXTS:
        return rng.choice(("", "a", "ab", "abc", "b", "B", "é", "日本", "a%b", "a'b", "zz", "%"))
    if name == "b":
        return rng.random() < 0.5
    if name == "y":
        return rng.choice((b"", b"a", b"ab", b"\0", b"\xff", b"\x80"))
    if name == "d":
        return DAY + dt.timedelta(days=rng.randrange(-3, 6))
    if name == "c":
        return dt.time(rng.randrange(24), rng.choice((0, 30)), 0, rng.choice((0, 1, 999_999)))
    step = rng.choice((0, 12 * 3_600_000_000, 86_400_000_000, 1_000, 1)) * rng.randrange(-3, 4)
    if name == "x":
        return dt.timedelta(microseconds=step)
    found = NOON + dt.timedelta(microseconds=step)
    if name == "m":
        found = found.replace(microsecond=found.microsecond // 1000 * 1000)
    return found.replace(tzinfo=dt.UTC) if name == "z" else found


@lru_cache
def rows() -> list[dict[str, Any]]:
    rng = random.Random(11)
    return [{name: None if rng.random() < 0.12 else _value(name, rng) for name in TYPES} for _ in range(ROWS)]


@lru_cache
def table() -> pa.Table:
    columns = {name: pa.array([row[name] for row in rows()], type_) for name, type_ in TYPES.items()}
    return pa.table({"n": pa.array(range(ROWS)), **columns})


@lru_cache
def stored() -> bytes:
    """The table as a file with everything that rules out rows."""
    sink = io.BytesIO()
    blooms = ["i", "k", "s", "f", "t"]
    pyparq.write_table(table(), sink, row_group_size=GROUP, max_rows_per_page=PAGE, bloom_filters=blooms)
    return sink.getvalue()


# ---- questions


def questions(seed: int) -> Iterator[Question]:
    """Questions without end, the same for the same seed."""
    rng = random.Random(seed)
    while True:
        yield _condition(rng, rng.randrange(3))


def _condition(rng: random.Random, depth: int) -> Question:
    if depth:
        kind = rng.choice(("and", "or", "not"))
        count = 1 if kind == "not" else rng.choice((2, 2, 3))
        return (kind, *(_condition(rng, depth - 1) for _ in range(count)))
    return rng.choice((_comparison, _comparison, _comparison, _column_test, _computed_test, _two_columns))(rng)


def _comparison(rng: random.Random) -> Question:
    name = rng.choice([*TYPES])
    sides = ("col", name), ("lit", literal(name, rng))
    return ("cmp", rng.choice(OPS), *(sides if rng.random() < 0.9 else sides[::-1]))


def _column_test(rng: random.Random) -> Question:
    name = rng.choice([*TYPES])
    value = ("col", name)
    kind = rng.choice(("null", "in", "in", "between", "nan", "prefix", "flag"))
    if kind == "nan":
        return (kind, ("col", rng.choice(FLOATS)))
    if kind == "prefix":
        return (kind, ("col", "s"), rng.choice(("", "a", "ab", "é", "%", "a'")))
    if kind == "flag":
        return (kind, ("col", "b"))
    if kind == "in":
        values = [literal(name, rng) for _ in range(rng.randrange(4))]
        return (kind, value, (*values, None) if rng.random() < 0.2 else tuple(values))
    return ("between", value, literal(name, rng), literal(name, rng)) if kind == "between" else (kind, value)


def _computed_test(rng: random.Random) -> Question:
    kind = rng.randrange(4)
    if kind == 0:
        number = rng.choice((2023, 2024, 2024.5, 2025))
        return ("cmp", rng.choice(OPS), ("year", ("col", rng.choice(("d", "t", "m")))), ("lit", number))
    if kind == 1:
        return ("cmp", rng.choice(OPS), ("length", ("col", "s")), ("lit", rng.choice((0, 1, 2, 1.5))))
    value = _arithmetic(rng, rng.choice((1, 1, 2)))
    numbers = [rng.choice((0, 1, 3, 0.1, 0.2, 0.3, -0.1, 1.5, 2.5, Decimal("0.1"), Decimal("2.50"))) for _ in "ab"]
    if kind == 2:
        return ("cmp", rng.choice(OPS), value, ("lit", numbers[0]))
    return rng.choice((("in", value, tuple(numbers)), ("between", value, *numbers), ("null", value)))


def _arithmetic(rng: random.Random, depth: int) -> Question:
    value: Question = ("col", rng.choice(("i", "k", "u", "f", "f", "p", "g")))
    for _ in range(depth):
        other = ("lit", rng.choice((0, 1, 2, -1, 3, 0.5, 0.1, Decimal("0.1"))))
        pair = (value, other if rng.random() < 0.7 else ("col", rng.choice(("k", "f", "u"))))
        value = ("neg", value) if rng.random() < 0.15 else (rng.choice("+-*"), *rng.sample(pair, 2))
    return value


def _two_columns(rng: random.Random) -> Question:
    pairs = ("i", "k"), ("k", "u"), ("i", "f"), ("s", "s"), ("d", "t"), ("f", "g"), ("p", "k"), ("p", "f"), ("t", "m")
    return ("cmp", rng.choice(OPS), *(("col", name) for name in rng.sample(rng.choice(pairs), 2)))


def literal(name: str, rng: random.Random) -> Any:
    """A literal to compare with a column: mostly one of its values, at times one that it cannot hold."""
    found = _value(name, rng)
    if rng.random() < 0.75:
        known = [row[name] for row in rows() if row[name] is not None]
        return rng.choice(known) if rng.random() < 0.7 else found
    if name in NUMBERS:
        return rng.choice((-1, 0, 2**31, 2**64, 10**30, 0.5, 2.5, math.nan, math.inf, Decimal("0.1"), 2**53 + 1, 300,
                           Decimal("1.255"), 0.1, 1e300, _double(rng), True))  # fmt: skip
    if name in ("d", "t", "m"):
        return rng.choice((DAY, NOON, NOON + dt.timedelta(microseconds=1), dt.datetime.combine(DAY, dt.time())))
    return found


# ---- what a question is made of


def parts(question: Any) -> Iterator[Question]:
    """The question and all tuples in it."""
    if isinstance(question, tuple) and question and isinstance(question[0], str):
        yield question
        for part in question[1:]:
            yield from parts(part)


def columns(question: Question) -> set[str]:
    return {part[1] for part in parts(question) if part[0] == "col"}


def literals(question: Question) -> list[Any]:
    found: list[Any] = []
    for part in parts(question):
        if part[0] == "lit":
            found.append(part[1])
        elif part[0] in ("in", "between"):
            found += part[2] if part[0] == "in" else part[2:]
    return found


def computes(question: Question) -> bool:
    return any(part[0] in ("+", "-", "*", "neg") for part in parts(question))


class Unsaid(Exception):
    """A dialect has no words for a question."""


class Dialect:
    """A way to write filters. ``say`` raises :class:`Unsaid` where it has no words for a question."""

    name = ""

    def say(self, question: Question) -> Any:
        raise NotImplementedError

    def right(self, question: Question, said: Any) -> list[int]:
        """The rows that the dialect's own library finds. Raises whatever that library raises."""
        raise NotImplementedError

    def found(self, said: Any) -> list[int]:
        """The rows that pyparq finds."""
        answer: list[int] = pyparq.read_table(stored(), columns=["n"], filters=said)["n"].to_pylist()
        return answer


class Difference(NamedTuple):
    """``from_others``: the dialect may answer otherwise than other dialects do. Otherwise pyparq may answer otherwise
    than the library of the dialect."""

    name: str
    dialects: tuple[str, ...]
    applies: Callable[[Question], bool]
    from_others: bool
