"""What bounds of columns prove about a test of computed values: can some row of a part pass?"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyparq.filters.computed import BoundValue, Comparison, Computed, Fixed, Leaf, Missing
from pyparq.filters.date_parts import year_of
from pyparq.filters.exact_numbers import as_double
from pyparq.format.schema_node import Node
from pyparq.index.bounds import Bounds

_NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


class Interval(NamedTuple):
    """The values lie within. ``None``: it is not known. NaN lies above every number, so it has no upper end."""

    low: Any
    high: Any


UNKNOWN = Interval(None, None)


def can_pass(predicate: Computed, bounds: Mapping[Node, Bounds]) -> npt.NDArray[np.bool_]:
    """For each part that all the ``bounds`` describe, whether a row can pass."""
    count, test = len(bounds[predicate.nodes[0]]), predicate.test
    some = np.ones(count, np.bool_)
    if isinstance(test, Missing):
        return some
    for node in predicate.nodes:
        if node.max_def:
            some &= ~bounds[node].all_null
    if isinstance(test, Comparison):
        op = _NEGATED[test.op] if predicate.negated else test.op
        for k in np.flatnonzero(some).tolist():
            some[k] = _possible(op, _interval(test.left, bounds, k), _interval(test.right, bounds, k))
    return some


def _possible(op: str, left: Interval, right: Interval) -> bool:
    if op in (">", ">="):
        return _possible("<" if op == ">" else "<=", right, left)
    if op == "!=":
        return None in left or None in right or not left.low == left.high == right.low == right.high
    if op == "==":
        return _possible("<=", left, right) and _possible("<=", right, left)
    if left.low is None or right.high is None:
        return True
    return bool(left.low < right.high if op == "<" else left.low <= right.high)


def _interval(value: BoundValue, bounds: Mapping[Node, Bounds], k: int) -> Interval:
    if isinstance(value, Leaf):
        return _of_leaf(value, bounds[value.node], k)
    if isinstance(value, Fixed):
        known = value.value == value.value
        return Interval(value.value, value.value) if known else UNKNOWN
    operands = [_interval(operand, bounds, k) for operand in value.operands]
    if value.op in _ARITHMETIC:
        if value.floats:
            operands = [_in_floats(operand) for operand in operands]
        return _ARITHMETIC[value.op](*operands)
    of = value.operands[0]
    if value.op == "year" and isinstance(of, Leaf):
        return Interval(*(None if end is None else year_of(int(end * of.den), of.den) for end in operands[0]))
    return Interval(Fraction(0), None) if value.op == "length" else UNKNOWN


def _of_leaf(leaf: Leaf, bounds: Bounds, k: int) -> Interval:
    if not bounds.has_bounds[k]:
        return UNKNOWN
    low, high = bounds.mins[k], bounds.maxs[k]
    if isinstance(low, bytes):
        return Interval(low, high)
    if leaf.floats:
        return Interval(float(low), float(high) if bounds.nan_counts[k] == 0 else None)
    return Interval(Fraction(int(low), leaf.den), Fraction(int(high), leaf.den))


def _in_floats(ends: Interval) -> Interval:
    """The same as doubles. Infinite ends are unknown, because arithmetic with them makes NaN."""
    found = [None if end is None else as_double(end) for end in ends]
    return Interval(*(end if end is not None and isfinite(end) else None for end in found))


def _sum(a: Interval, b: Interval) -> Interval:
    return Interval(_plus(a.low, b.low), _plus(a.high, b.high))


def _difference(a: Interval, b: Interval) -> Interval:
    return Interval(
        None if a.low is None or b.high is None else a.low - b.high,
        # Where the upper end of b is unknown it may be NaN, and so may be the difference.
        None if None in (a.high, b.low, b.high) else a.high - b.low,
    )


def _plus(a: Any, b: Any) -> Any:
    return None if a is None or b is None else a + b


def _product(a: Interval, b: Interval) -> Interval:
    if None in a or None in b:
        return UNKNOWN
    ends = [x * y for x in a for y in b]
    return Interval(min(ends), max(ends))


def _quotient(a: Interval, b: Interval) -> Interval:
    if None in a or None in b or b.low <= 0 <= b.high:
        return UNKNOWN
    ends = [x / y for x in a for y in b]
    return Interval(min(ends), max(ends))


_ARITHMETIC = {"+": _sum, "-": _difference, "*": _product, "/": _quotient}
