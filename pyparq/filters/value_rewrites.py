"""Tests of values that are the same as plain tests of a column, which indexes can answer."""

from __future__ import annotations

from pyparq.filters.expression import ColumnRef, Compare, StartsWith
from pyparq.filters.logic import Expression
from pyparq.filters.patterns import parts_of
from pyparq.filters.value_expressions import CompareValues, Literal, Matches

_FLIPPED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def compared_with_literal(test: CompareValues) -> Compare | None:
    """A comparison of a column alone with a literal (a dataset puts literals in the place of partition columns)."""
    if isinstance(test.left, ColumnRef) and isinstance(test.right, Literal):
        return Compare(test.left.path, test.op, test.right.value)
    if isinstance(test.right, ColumnRef) and isinstance(test.left, Literal):
        return Compare(test.right.path, _FLIPPED[test.op], test.left.value)
    return None


def as_plain_test(test: Matches) -> tuple[Expression, bool] | None:
    """A test of the column that is true wherever ``test`` is, and whether it is the same. ``None`` if there is none."""
    if not isinstance(test.value, ColumnRef):
        return None
    path = test.value.path
    if test.kind == "starts_with":
        return StartsWith(path, test.pattern), True
    if test.kind != "like":
        return None
    parts = parts_of(test.pattern, test.escape)
    if not parts:
        return Compare(path, "==", ""), True
    first = parts[0]
    if not first:
        return None
    if len(parts) == 1:
        return Compare(path, "==", first), True
    return StartsWith(path, first), parts[1:] == [None] * (len(parts) - 1)
