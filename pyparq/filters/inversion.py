"""Turns ``f(x) op literal`` into a range of ``x``, for an ``f`` of one column that only rises or only falls.

So arithmetic with literals and ``year()`` are asked of every index like plain comparisons. The ends of the range are
found by bisection over all values that the column can hold. Each step computes ``f`` as a row would be computed, with
the same rounding, so the range is exact.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from pyparq.filters.computed import BoundValue, Fixed, Leaf, Operation, leaves_of
from pyparq.filters.date_parts import year_of
from pyparq.filters.exact_numbers import as_double
from pyparq.filters.literal import int_range
from pyparq.filters.predicate import Predicate, Test, conjunction, disjunction, null_test
from pyparq.format.order import FLOAT_KINDS
from pyparq.format.types import LeafType

_OPS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip


def as_range(value: BoundValue, op: str, literal: Fraction | float) -> Predicate | None:
    """``value op literal`` as tests of the only column in ``value``. ``None`` where that is not possible."""
    if literal != literal or not isinstance(value, Operation):
        return None
    leaves = leaves_of(value)
    direction = _direction(value)
    if len(leaves) != 1 or not direction or leaves[0].node.type.kind == "null":
        return None
    return _range(leaves[0], value, op, literal, direction)


def _direction(value: BoundValue) -> int:
    """1 where it only rises with the column, -1 where it only falls, 0 for everything else."""
    if isinstance(value, Leaf):
        return 1
    if not isinstance(value, Operation):
        return 0
    if value.op == "year":
        return 1 if isinstance(value.operands[0], Leaf) else 0
    if value.op not in _OPS:
        return 0
    left, right = value.operands
    if isinstance(right, Fixed):
        return _direction(left) * _sign(value.op, right)
    if not isinstance(left, Fixed) or value.op == "/":
        return 0
    return _direction(right) * (-1 if value.op == "-" else _sign(value.op, left))


def _sign(op: str, literal: Fixed) -> int:
    if op in ("+", "-"):
        return 1
    factor: Any = literal.value
    return int(factor > 0) - int(factor < 0)


def _at(value: BoundValue, x: Any) -> Any:
    """The value where the column is ``x``."""
    if isinstance(value, Leaf):
        return x if value.floats else Fraction(x, value.den)
    if isinstance(value, Fixed):
        return value.value
    if value.op == "year":
        leaf = value.operands[0]
        assert isinstance(leaf, Leaf)
        return year_of(x, leaf.den)
    left, right = (_at(operand, x) for operand in value.operands)
    return _OPS[value.op](as_double(left), as_double(right)) if value.floats else _OPS[value.op](left, right)


class _Domain(NamedTuple):
    """All values of a column in order, NaN aside, by whole numbers from ``first`` to ``last``."""

    first: int
    last: int
    value: Callable[[int], Any]


_FORMATS = {"float16": ("<e", "<H", 0x7C00), "float": ("<f", "<I", 0x7F800000), "double": ("<d", "<Q", 0x7FF << 52)}
"""Of each type: its format, that of its bits, and the bits of infinity."""


def _domain(leaf: LeafType) -> _Domain:
    if leaf.kind not in FLOAT_KINDS:
        return _Domain(*int_range(leaf), int)
    own, bits, infinity = _FORMATS[leaf.kind]

    def value(k: int) -> float:
        (found,) = struct.unpack(own, struct.pack(bits, abs(k)))
        return float(-found if k < 0 else found)

    return _Domain(-infinity, infinity, value)


def _range(leaf: Leaf, value: Operation, op: str, literal: Any, direction: int) -> Predicate:
    domain = _domain(leaf.node.type)

    def first(passes: Callable[[Any], bool]) -> int:
        """The lowest number that passes, ``domain.last + 1`` if none does. Numbers count from the lowest ``f``."""
        low, high = domain.first, domain.last + 1
        while low < high:
            middle = (low + high) // 2
            at = middle if direction > 0 else domain.first + domain.last - middle
            low, high = (low, middle) if passes(_at(value, domain.value(at))) else (middle + 1, high)
        return low

    at_least, more = first(lambda found: found >= literal), first(lambda found: found > literal)
    start, end = domain.first, domain.last + 1
    parts = {
        "<": [(start, at_least)], "<=": [(start, more)], ">": [(more, end)], ">=": [(at_least, end)],
        "==": [(at_least, more)], "!=": [(start, at_least), (more, end)],
    }[op]  # fmt: skip
    nan = leaf.node.type.kind in FLOAT_KINDS and op in (">", ">=", "!=")
    spans = [_turned(part, domain, direction) for part in parts if part[0] < part[1]]
    found = [_within(leaf, domain, *span, nan) for span in spans]
    if nan and not any(last == domain.last for _, last in spans):
        found.append(Test(leaf.node, "is_nan"))
    return disjunction(found)


def _turned(part: tuple[int, int], domain: _Domain, direction: int) -> tuple[int, int]:
    """The first and the last number of a part, counted from the lowest value of the column."""
    start, end = part[0], part[1] - 1
    return (start, end) if direction > 0 else (domain.first + domain.last - end, domain.first + domain.last - start)


def _within(leaf: Leaf, domain: _Domain, first: int, last: int, nan: bool) -> Predicate:
    """``nan``: NaN passes, so a range up to the largest value has no upper end."""
    node, floats = leaf.node, leaf.node.type.kind in FLOAT_KINDS
    if first == last and not (nan and last == domain.last):
        return Test(node, "==", (domain.value(first),))
    tests: list[Predicate] = []
    if first > domain.first:
        tests.append(Test(node, ">=", (domain.value(first),)))
    if last < domain.last or (floats and not nan):
        tests.append(Test(node, "<=", (domain.value(last),)))
    return conjunction(tests) if tests else null_test(node, False)
