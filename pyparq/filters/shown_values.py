"""Filters mean the values that a result shows. The file may hold something else: integers for durations, numbers for
truth values, or text for categories with an order of their own."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from pyparq.arrow.schema.extensions import BOOL8, EXTENSION_NAME
from pyparq.errors import FilterError
from pyparq.filters.durations import counted
from pyparq.filters.expression import (
    AnyOf,
    Compare,
    Contains,
    Expression,
    IsIn,
    Known,
    is_null_literal,
    with_literals,
)
from pyparq.filters.literal import Settled, plain
from pyparq.filters.temporal import timestamp_ns
from pyparq.filters.value_array import ValueArray
from pyparq.format.int96 import IS_INT96
from pyparq.format.schema_node import Node
from pyparq.format.shown_types import values_of
from pyparq.format.types import Field

Shown = Callable[[Node], Field | None]
"""The field that a leaf is shown as. ``None`` if it adds nothing to the leaf's own type."""

_RANGES = ("<", "<=", ">", ">=")
_OPS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def meaning(field: Field | None) -> str:
    """The kind of a shown value that differs from its leaf: ``duration``, ``bool8``, ``ordered`` (categories),
    ``int96``, or ``""``.

    ``int96`` means local times of a dataset that are stored as INT96, which are instants.
    """
    if field is None:
        return ""
    if values_of(field.type).kind == "duration":
        return "duration"
    if field.type.dictionary is not None and field.type.ordered:
        return "ordered"
    if IS_INT96 in field.metadata and not field.type.timezone:
        return "int96"
    return "bool8" if field.metadata.get(EXTENSION_NAME) == BOOL8 else ""


def as_shown(test: Expression, leaf: Node, field: Field | None) -> Expression:
    """``test`` on the shown values of ``leaf``, as a test on the stored values. Raises :class:`FilterError` if the
    shown values cannot be compared this way."""
    if field is None or not (means := meaning(field)):
        return test
    if means == "duration":
        return counted(test, leaf, values_of(field.type).unit)
    if means == "int96":
        return _instants(test)
    return _ordered(test, leaf) if means == "ordered" else _truth(test, leaf)


def _instants(test: Expression) -> Expression:
    """Points in time with a zone are compared as well, as they are with INT96 in a single file."""
    if isinstance(test, (Compare, Contains)):
        return with_literals(test, _instant(test.value))
    return with_literals(test, [_instant(value) for value in test.values]) if isinstance(test, IsIn) else test


def _instant(value: Any) -> Any:
    try:
        found = None if isinstance(value, Settled) else timestamp_ns(plain(value))
    except ValueError:
        return value  # the comparison raises the error
    return Settled(found[0]) if found is not None and found[1] else value


def _ordered(test: Expression, leaf: Node) -> Expression:
    if isinstance(test, Compare) and test.op in _RANGES and not isinstance(test.value, Settled):
        raise FilterError(
            "its categories have an order of their own, which is not that of their text, and which a file does not "
            f"keep: {test.op} cannot be answered. Give the wanted ones, as in col({leaf.dotted!r}).isin([...])",
            column=leaf.dotted,
        )
    return test


# ---- bool8: one byte, false only if it is 0


def _truth(test: Expression, leaf: Node) -> Expression:
    """Tests of truth values become tests of bytes. Numbers mean the bytes themselves."""
    if isinstance(test, Compare) and isinstance(value := plain(test.value), bool):
        return _by_outcomes(test, [_OPS[test.op](truth, value) for truth in (False, True)])
    if isinstance(test, Contains) and plain(test.value) is True:
        raise FilterError(
            "contains(True) cannot be answered where truth values are bytes: every number but 0 is true. "
            "Give the number, usually contains(1)",
            column=leaf.dotted,
        )
    if isinstance(test, Contains) and plain(test.value) is False:
        return with_literals(test, 0)
    if isinstance(test, IsIn) and not isinstance(test.values, ValueArray):
        return _among(test)
    return test


def _among(test: IsIn) -> Expression:
    values = [plain(value) for value in test.values]
    truths = {value for value in values if isinstance(value, bool)}
    if not truths:
        return test
    others = [value for value in values if not isinstance(value, bool) and not is_null_literal(value)]
    parts = [_by_outcomes(test, [False in truths, True in truths])]
    parts += [with_literals(test, others)] if others else []
    parts += [Known(None)] if any(is_null_literal(value) for value in values) else []
    return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))


def _by_outcomes(test: Compare | IsIn, outcomes: list[bool]) -> Expression:
    """A test with a given result for false bytes and for true bytes. It is unknown for null."""
    of_false, of_true = outcomes
    if of_false is of_true:
        return Compare(test.path, ">=" if of_true else "<", -128)  # a test that all bytes pass, or none
    return Compare(test.path, "!=" if of_true else "==", 0)
