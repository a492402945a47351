"""What a question of :mod:`questions` means in pyparq, row by row, over Python's values. Shares no code with pyparq.

A condition is true, false or unknown (``None``). NaN equals itself and is above every number, zeros are equal. Numbers
are compared without rounding. Integers and decimals are computed exactly, and doubles where a float is among them.
"""

from __future__ import annotations

import datetime as dt
import math
import operator
from decimal import Decimal
from fractions import Fraction
from typing import Any

from questions import FLOATS, Question, columns, rows

_OPS: dict[str, Any] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_ARITHMETIC: dict[str, Any] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_INFINITE = Fraction(10) ** 1000
_EPOCH = dt.datetime(1970, 1, 1)


def right_rows(question: Question) -> list[int]:
    return [n for n, row in enumerate(rows()) if answer(question, row) is True]


def answer(question: Question, row: dict[str, Any]) -> bool | None:
    kind = question[0]
    if kind == "not":
        found = answer(question[1], row)
        return None if found is None else not found
    if kind in ("and", "or"):
        return _joined([answer(part, row) for part in question[1:]], kind == "or")
    if kind == "cmp":
        return _compared(*question[1:], row)
    if kind == "in":
        tests = [None if v is None else _compared("==", question[1], ("lit", v), row) for v in question[2]]
        return _joined(tests, True)
    if kind == "between":
        _, value, low, high = question
        ends = _compared(">=", value, ("lit", low), row), _compared("<=", value, ("lit", high), row)
        return _joined(list(ends), False)
    found = _value(question[1], row, _decimal(question[1]))
    if kind == "null":
        return found is None
    if found is None:
        return None
    if kind == "nan":
        return bool(found != found)
    return bool(found) if kind == "flag" else str(found).startswith(question[2])


def _joined(parts: list[bool | None], decisive: bool) -> bool | None:
    return decisive if decisive in parts else None if None in parts else not decisive


def _compared(op: str, left: Question, right: Question, row: dict[str, Any]) -> bool | None:
    a, b = (
        _value(side, row, _decimal(other if side[0] == "lit" else side))
        for side, other in ((left, right), (right, left))
    )
    return None if a is None or b is None else bool(_OPS[op](_place(a), _place(b)))


def _decimal(value: Question) -> bool:
    """Whether floats beside it stand for the decimals that they print as."""
    named = columns(value)
    return "p" in named and not named & set(FLOATS)


def _value(value: Question, row: dict[str, Any], decimal: bool) -> Any:
    kind = value[0]
    if kind == "col":
        return row[value[1]]
    if kind == "lit":
        found = value[1]
        return Decimal(repr(found)) if decimal and isinstance(found, float) and math.isfinite(found) else found
    parts = [_value(part, row, decimal) for part in value[1:]]
    if None in parts:
        return None
    if kind == "year":
        return parts[0].year
    if kind == "length":
        return len(parts[0])
    left, right = parts if kind != "neg" else (parts[0], -1)
    if isinstance(left, float) or isinstance(right, float):
        return _ARITHMETIC.get(kind, operator.mul)(_double(left), _double(right))
    return _ARITHMETIC.get(kind, operator.mul)(Fraction(left), Fraction(right))


def _double(value: Any) -> float:
    if isinstance(value, float):
        return value
    exact = Fraction(value)
    return exact.numerator / exact.denominator


def _place(value: Any) -> Any:
    """Where a value stands among those of its kind."""
    if isinstance(value, (str, bytes)):
        return value.encode() if isinstance(value, str) else value
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None) - _EPOCH
    if isinstance(value, dt.date):
        return dt.datetime(value.year, value.month, value.day) - _EPOCH
    if isinstance(value, (bool, dt.time, dt.timedelta)):
        return value
    if value != value:
        return (1, Fraction(0))
    if isinstance(value, float) and math.isinf(value):
        return (0, _INFINITE if value > 0 else -_INFINITE)
    return (0, Fraction(value))
