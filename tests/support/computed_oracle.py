"""Brute force for computed values: the user's expression is walked over Python's values, row by row.

Shares no code with binding or evaluation. Numbers are fractions, or doubles where the rules say doubles; texts are str.
"""

from __future__ import annotations

import datetime as dt
import fnmatch
import io
import math
import random
import re
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import pyparq
from pyparq import col
from pyparq.filters import expression as ex

ROWS, GROUP, PAGE = 240, 60, 10
NUMBERS = ("i", "k", "u", "p", "f", "g", "big")
TEXTS = ("s", "w", "c")
TIMES = ("t", "z", "d")


@lru_cache
def rows() -> list[dict[str, Any]]:
    rng = random.Random(3)

    def some(value: Any) -> Any:
        return None if rng.random() < 0.12 else value

    found = []
    for n in range(ROWS):
        base = n // 6 - 20
        moment = dt.datetime(2019, 12, 30) + dt.timedelta(
            days=3 * n, hours=rng.randrange(24), seconds=rng.randrange(99)
        )
        found.append(
            {
                "i": some(base + rng.randrange(-3, 4)),
                "k": some(rng.choice((-2, 0, 1, 3, base))),
                "u": rng.choice((0, 1, 2**64 - 1, n)),
                "p": some(Decimal(rng.randrange(-400, 400)) / 100),
                "f": some(rng.choice((base / 4, math.nan, -0.0, math.inf, 0.1 * n, 3.0))),
                "g": some(float(rng.randrange(-8, 8)) / 4),
                "big": some(rng.choice((2**62, -(2**63), 2**63 - 1, base))),
                "s": some(rng.choice(("", "abc", "Abc", "abd", "a_c", "éa", "b\nc", f"x{base}"))),
                "w": some(rng.choice(("abc", "abd", "ÉA", "zzz", "a%c"))),
                "c": rng.choice(("red", "Red", "blue")),
                "t": some(moment),
                "z": some(moment.replace(tzinfo=dt.UTC)),
                "d": some(moment.date()),
            }
        )
    return found


@lru_cache
def table() -> pa.Table:
    types = {
        "i": pa.int32(), "k": pa.int64(), "u": pa.uint64(), "p": pa.decimal128(9, 2), "f": pa.float64(),
        "g": pa.float32(), "big": pa.int64(), "s": pa.string(), "w": pa.string(), "c": pa.string(),
        "t": pa.timestamp("us"), "z": pa.timestamp("ms", "UTC"), "d": pa.date32(),
    }  # fmt: skip
    columns = {name: pa.array([row[name] for row in rows()], type_) for name, type_ in types.items()}
    return pa.table({"row": pa.array(range(ROWS)), **columns})


def _by_pyarrow(**options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table(), sink, row_group_size=GROUP, max_rows_per_page=PAGE, write_batch_size=PAGE, **options)
    return sink.getvalue()


def _by_us(**options: Any) -> bytes:
    sink = io.BytesIO()
    pyparq.write_table(table(), sink, row_group_size=GROUP, max_rows_per_page=PAGE, **options)
    return sink.getvalue()


@lru_cache
def files() -> dict[str, bytes]:
    return {
        "pyarrow": _by_pyarrow(write_page_index=True), "pyarrow-plain": _by_pyarrow(use_dictionary=False),
        "ours": _by_us(bloom_filters=["s", "i"]), "ours-plain": _by_us(use_dictionary=False, data_page_version="2.0"),
    }  # fmt: skip


# ---- random filters


def number(rng: random.Random, depth: int = 2) -> Any:
    kind = rng.randrange(6 if depth else 1)
    if kind < 2:
        return col(rng.choice(NUMBERS))
    if kind == 2:
        return getattr(col(rng.choice(TIMES)), rng.choice(("year", "month", "day", "quarter")))()
    if kind == 3:
        return col(rng.choice(TEXTS)).length()
    left, literal = number(rng, depth - 1), rng.choice((-2, 0, 1, 3, 10, Decimal("0.5"), 0.25, -1.5, 2**40))
    right = literal if kind == 4 else number(rng, depth - 1)
    left, right = (left, right) if rng.random() < 0.8 else (right, left)
    if not isinstance(left, ex.Value) and not isinstance(right, ex.Value):
        right = col("i")
    return {"+": lambda: left + right, "-": lambda: left - right, "*": lambda: left * right, "/": lambda: left / right}[
        rng.choice("+-*/")
    ]()


def text(rng: random.Random) -> Any:
    value = col(rng.choice(TEXTS))
    return rng.choice((value, value.lower(), value.upper()))


def condition(rng: random.Random) -> Any:
    op = rng.choice(("==", "!=", "<", "<=", ">", ">="))
    kind = rng.randrange(8)
    if kind < 3:
        left = number(rng)
        right = rng.choice((-3, 0, 1, 2020, 0.75, Decimal("1.25"), 2**63, math.inf)) if kind else number(rng, 1)
        return ex.Compare(left, op, right)
    if kind == 3:
        return ex.Compare(text(rng), op, rng.choice((text(rng), "abc", "red")))
    if kind == 4:
        family = rng.choice((("t", "d"), ("z",)))
        return ex.Compare(col(rng.choice(family)), op, col(rng.choice(family)))
    if kind == 5:
        return number(rng).is_null()
    if kind == 6:
        return number(rng).isin([0, 1, 7, rng.choice((None, 2021))])
    value = text(rng)
    return rng.choice(
        (
            lambda: value.like(rng.choice(("a%", "a_c", "%b%", "abc", "", "%c", "x-%", "a!_c")), escape="!"),
            lambda: value.ilike(rng.choice(("A%", "éa", "R_D", "%B%"))),
            lambda: value.matches(rng.choice(("^a.c$", "[0-9]+", "b|z", "(?i)RED"))),
            lambda: value.starts_with(rng.choice(("a", "x", "é", "re"))),
            lambda: value.ends_with(rng.choice(("c", "d", "", "é"))),
            lambda: value.contains(rng.choice(("b", "", "e"))),
        )
    )()  # fmt: skip


def expression(rng: random.Random, depth: int = 2) -> Any:
    if depth and rng.random() < 0.5:
        left, right = expression(rng, depth - 1), expression(rng, depth - 1)
        found = left & right if rng.random() < 0.5 else left | right
    else:
        found = condition(rng)
    return ~found if rng.random() < 0.3 else found


# ---- what they mean


def evaluate(node: Any, row: dict[str, Any]) -> bool | None:
    if isinstance(node, ex.Known):
        return node.value
    if isinstance(node, ex.Not):
        inner = evaluate(node.child, row)
        return None if inner is None else not inner
    if isinstance(node, (ex.AllOf, ex.AnyOf)):
        decisive = isinstance(node, ex.AnyOf)
        found = [evaluate(child, row) for child in node.children]
        return decisive if decisive in found else None if None in found else not decisive
    if isinstance(node, ex.IsNull):
        return value_of(node.value, row, is_decimal(node.value)) is None
    if isinstance(node, ex.IsIn):
        tests = [ex.Known(None) if v is None else ex.Compare(node.value, "==", v) for v in node.values]
        return evaluate(ex.AnyOf(tuple(tests)), row)
    if isinstance(node, ex.Matches):
        return matches(node.kind, value_of(node.value, row, False), node.pattern, node.escape)
    if isinstance(node, ex.Contains):
        return matches("contains", row[node.path], node.item, "")
    left, right = node.value, ex.as_value(node.other)
    sides = [
        literal(side.value, is_decimal(other))
        if isinstance(side, ex.Literal)
        else value_of(side, row, is_decimal(side))
        for side, other in ((left, right), (right, left))
    ]
    return compare(node.op, *sides)


def is_decimal(value: Any) -> bool:
    names = set(value._columns())
    return "p" in names and not names & {"f", "g"}


def literal(value: Any, decimal: bool) -> Any:
    if isinstance(value, float):
        return Fraction(Decimal(repr(value))) if decimal and math.isfinite(value) else value
    return Fraction(value) if isinstance(value, (int, Decimal)) else value


def value_of(value: Any, row: dict[str, Any], decimal: bool) -> Any:
    if isinstance(value, ex.Literal):
        return literal(value.value, decimal)
    if isinstance(value, ex.ColumnRef):
        found = row[value.path]
        return Fraction(found) if isinstance(found, (int, Decimal)) else found
    if isinstance(value, ex.Call):
        found = value_of(value.value, row, False)
        if found is None:
            return None
        if value.name == "quarter":
            return Fraction((found.month + 2) // 3)
        if value.name in ("lower", "upper"):
            return getattr(found, value.name)()
        return Fraction(len(found) if value.name == "length" else getattr(found, value.name))
    left, right = value_of(value.left, row, decimal), value_of(value.right, row, decimal)
    if left is None or right is None or (value.op == "/" and right == 0):
        return None
    if has_floats(value, decimal):
        left, right = float(left), float(right)
    if value.op == "*":
        return left * right
    return left + right if value.op == "+" else left - right if value.op == "-" else left / right


def has_floats(value: Any, decimal: bool) -> bool:
    """Whether arithmetic is that of doubles: a column or a literal is a float (beside decimals, literals are exact)."""
    if isinstance(value, ex.Arithmetic):
        return has_floats(value.left, decimal) or has_floats(value.right, decimal)
    if isinstance(value, ex.Literal):
        return isinstance(value.value, float) and not decimal
    return isinstance(value, ex.ColumnRef) and value.path in ("f", "g")


def compare(op: str, left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    a, b = place(left), place(right)
    return {"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]


def place(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day)
    if isinstance(value, dt.datetime):
        return value
    return (1, 0) if value != value else (0, value)


def matches(kind: str, value: Any, pattern: str, escape: str) -> bool | None:
    if value is None:
        return None
    if kind == "matches":
        return re.search(pattern, value) is not None
    if kind in ("starts_with", "ends_with"):
        return bool(value.startswith(pattern) if kind == "starts_with" else value.endswith(pattern))
    if kind == "contains":
        return pattern in value
    if kind == "ilike":
        value, pattern = value.casefold(), pattern.casefold()
    wild = {"%": "*", "_": "?"}
    shell, at = "", 0
    while at < len(pattern):
        escaped = bool(escape) and pattern[at] == escape
        at += escaped
        shell += wild[pattern[at]] if pattern[at] in wild and not escaped else f"[{pattern[at]}]"
        at += 1
    return fnmatch.fnmatchcase(value, shell)
