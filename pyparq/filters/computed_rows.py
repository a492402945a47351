"""Evaluates tests of computed values on decoded columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from pyparq.filters import exact_numbers
from pyparq.filters.column_values import Floats, Texts, Vector, both, values_of_column
from pyparq.filters.computed import BINARY, BoundValue, Comparison, Computed, Fixed, Leaf, Match, Operation
from pyparq.filters.date_parts import part_of
from pyparq.filters.exact_numbers import Exact
from pyparq.filters.patterns import text_test
from pyparq.index.row_mask import RowMask

if TYPE_CHECKING:
    from pyparq.arrow.column import Column

Flags = npt.NDArray[np.bool_]


def evaluate_computed(predicate: Computed, columns: Mapping[int, Column]) -> RowMask:
    """The rows where the test is true, or false if it is negated. Rows where it is unknown are neither."""
    count = columns[predicate.nodes[0].column].length
    found, valid = _tested(predicate.test, columns)
    passed = ~found if predicate.negated else found
    return RowMask.of_bools(np.ascontiguousarray(np.broadcast_to(passed if valid is None else passed & valid, count)))


def _tested(test: Any, columns: Mapping[int, Column]) -> tuple[Flags, Flags | None]:
    """Where it is true, and where it is known (``None``: everywhere)."""
    if isinstance(test, Comparison):
        left, right = _value(test.left, columns), _value(test.right, columns)
        less, same = _order(left, right)
        return outcome(test.op, less, same), both(left.valid, right.valid)
    value = _value(test.value, columns)
    if isinstance(test, Match):
        assert isinstance(value.data, Texts)
        ask = text_test(test.kind, test.pattern, test.escape, test.value.family != BINARY)
        return value.data.looked_up([ask(entry) for entry in value.data.entries], bool), value.valid
    return np.array(False) if value.valid is None else ~value.valid, None


def outcome(op: str, less: Any, same: Any) -> Any:
    """The result of a comparison, for values that have an order."""
    if op in ("==", "!="):
        return same if op == "==" else ~same
    if op in ("<", ">="):
        return less if op == "<" else ~less
    return less | same if op == "<=" else ~(less | same)


def _order(left: Vector, right: Vector) -> tuple[Flags, Flags]:
    """Where left is less, and where both are equal."""
    a, b = left.data, right.data
    if isinstance(a, Texts) and isinstance(b, Texts):
        one, other = a.objects(), b.objects()
        return np.asarray(one < other, bool), np.asarray(one == other, bool)
    if isinstance(a, Exact):
        return exact_numbers.order(a, b) if isinstance(b, Exact) else exact_numbers.order_with_floats(a, b)  # type: ignore[arg-type]
    if isinstance(b, Exact):
        more, same = exact_numbers.order_with_floats(b, a)  # type: ignore[arg-type]
        return ~more & ~same, same
    return _order_of_floats(a, b)  # type: ignore[arg-type]


def _order_of_floats(a: Floats, b: Floats) -> tuple[Flags, Flags]:
    """NaN equals itself and lies above every number."""
    nan_a, nan_b = np.isnan(a), np.isnan(b)
    return (a < b) | (~nan_a & nan_b), (a == b) | (nan_a & nan_b)


def _value(value: BoundValue, columns: Mapping[int, Column]) -> Vector:
    if isinstance(value, Leaf):
        return values_of_column(columns[value.node.column], value)
    if isinstance(value, Fixed):
        return Vector(_fixed(value), None)
    operands = [_value(operand, columns) for operand in value.operands]
    if value.op in _ARITHMETIC:
        return _computed(value, *operands)
    (of,) = operands
    if isinstance(of.data, Texts):
        return Vector(_text_function(value, of.data), of.valid)
    assert isinstance(of.data, Exact)
    return Vector(Exact(part_of(value.op, of.data), exact_numbers.whole(1)), of.valid)


def _fixed(value: Fixed) -> Exact | Floats | Texts:
    if isinstance(value.value, bytes):
        return Texts([value.value], np.array(0))
    return np.array(value.value) if isinstance(value.value, float) else exact_numbers.exact(value.value)


def _text_function(value: Operation, texts: Texts) -> Exact | Texts:
    is_text = value.operands[0].family != BINARY
    if value.op == "length":
        lengths = [len(entry.decode("utf-8", "surrogateescape")) if is_text else len(entry) for entry in texts.entries]
        return Exact(texts.looked_up(lengths, np.int64), exact_numbers.whole(1))
    change: Callable[[str], str] = str.lower if value.op == "lower" else str.upper
    made = [change(e.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape") for e in texts.entries]
    return Texts(made, texts.codes)


class _Op(NamedTuple):
    exact: Callable[[Exact, Exact], Exact]
    floats: Callable[[Any, Any], Any]


_ARITHMETIC: dict[str, _Op] = {
    "+": _Op(exact_numbers.add, np.add),
    "-": _Op(exact_numbers.subtract, np.subtract),
    "*": _Op(exact_numbers.multiply, np.multiply),
    "/": _Op(lambda a, b: exact_numbers.divide(a, b)[0], np.divide),
}
Number: TypeAlias = Exact | Floats


def _computed(value: Operation, left: Vector, right: Vector) -> Vector:
    op, valid = _ARITHMETIC[value.op], both(left.valid, right.valid)
    if not value.floats:
        assert isinstance(left.data, Exact)
        assert isinstance(right.data, Exact)
        if value.op != "/":
            return Vector(op.exact(left.data, right.data), valid)
        quotient, there = exact_numbers.divide(left.data, right.data)
        return Vector(quotient, valid if there.all() else both(valid, there))
    a, b = _as_floats(left.data), _as_floats(right.data)
    with np.errstate(all="ignore"):
        found = op.floats(a, b)
    return Vector(np.asarray(found), both(valid, b != 0) if value.op == "/" else valid)


def _as_floats(data: Any) -> Floats:
    return exact_numbers.as_floats(data) if isinstance(data, Exact) else data
