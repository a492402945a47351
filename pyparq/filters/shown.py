"""Tests mean the values that a result shows. A file may hold something else: integers for durations, numbers for truth
values, text for categories with an order of their own, or, in a dataset, another type than the dataset's.

Literals then mean what they mean to the type that is shown. For example, a uuid as text is 36 bytes to a binary column,
and a time with a zone is refused by a column of local times.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from pyparq.arrow.schema.extensions import BOOL8, EXTENSION_NAME
from pyparq.errors import FilterError
from pyparq.filters import expression
from pyparq.filters.expression import OPERATORS, AnyOf, Compare, Contains, Expression, IsIn, Known, ValueTest, joined
from pyparq.filters.literal import FLOAT_TYPES, Interpreted, describe, interpreted, locate
from pyparq.filters.times import UNIT_NS, duration_ns, timestamp_ns
from pyparq.filters.value_array import BYTES_KINDS, ValueArray, is_null_literal, plain
from pyparq.format.int96 import IS_INT96
from pyparq.format.schema_node import Node, values_of
from pyparq.format.types import Field, LeafType

Shown = Callable[[Node], Field | None]
"""The field that a leaf is shown as. ``None`` if it adds nothing to the leaf's own type."""


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
    means = meaning(field)
    if not means or not isinstance(test, (Compare, Contains, IsIn)):
        return test
    if means == "duration":
        assert field is not None
        unit = values_of(field.type).unit
        return test.with_literals(lambda value: ticks(value, leaf, unit))
    if means == "int96":
        return test.with_literals(_instant)
    if means == "bool8":
        return _truth(test, leaf)
    if isinstance(test, Compare) and test.op not in ("==", "!=") and not isinstance(test.other, Interpreted):
        raise FilterError(
            "its categories have an order of their own, which is not that of their text, and which a file does not "
            f"keep: {test.op} cannot be answered. Give the wanted ones, as in col({leaf.dotted!r}).isin([...])",
            column=leaf.dotted,
        )
    return test


def ticks(value: Any, leaf: Node, unit: str) -> Any:
    """A duration counted in ``unit``, that of the integers in the file. A null stays as it is. The result is a fraction
    if the literal is finer than the unit: it then lies between two values of the column.

    A timedelta means the same time in every file. Raises :class:`FilterError` for a literal that is no duration: a bare
    number would mean different times in different files.
    """
    if is_null_literal(value):
        return value
    try:
        found = duration_ns(value)
        problem = "" if found is not None else f"{type(value).__name__} {value!r} has no unit"
    except ValueError as error:
        found, problem = None, str(error)
    if found is None:
        raise FilterError(
            f"cannot compare a column of type duration[{unit}] with {problem[:100]}: "
            "give a datetime.timedelta or a numpy.timedelta64 (in SQL: INTERVAL '6 seconds')",
            column=leaf.dotted,
        )
    ticks = Fraction(found) / UNIT_NS[unit]
    return ticks.numerator if ticks.denominator == 1 else ticks


def _instant(value: Any) -> Any:
    """Points in time with a zone are compared as well, as they are with INT96 in a single file."""
    try:
        found = None if isinstance(value, Interpreted) else timestamp_ns(plain(value))
    except ValueError:
        return value  # the comparison raises the error
    return Interpreted(found[0]) if found is not None and found[1] else value


# ---- bool8: one byte, false only if it is 0


def _truth(test: Compare | Contains | IsIn, leaf: Node) -> Expression:
    """Tests of truth values become tests of bytes. Numbers mean the bytes themselves."""
    if isinstance(test, Compare) and isinstance(value := plain(test.other), bool):
        return _by_outcomes(test, [OPERATORS[test.op].holds(truth, value) for truth in (False, True)])
    if isinstance(test, Contains) and isinstance(value := plain(test.item), bool):
        if value:
            raise FilterError(
                "contains(True) cannot be answered where truth values are bytes: every number but 0 is true. "
                "Give the number, usually contains(1)",
                column=leaf.dotted,
            )
        return Contains(test.value, 0)
    if not isinstance(test, IsIn) or isinstance(test.values, ValueArray):
        return test
    values = [plain(value) for value in test.values]
    truths = {value for value in values if isinstance(value, bool)}
    if not truths:
        return test
    others = [value for value in values if not isinstance(value, bool) and not is_null_literal(value)]
    parts = [_by_outcomes(test, [False in truths, True in truths])]
    parts += [IsIn(test.value, others)] if others else []
    parts += [Known(None)] if any(is_null_literal(value) for value in values) else []
    return joined(parts, AnyOf)


def _by_outcomes(test: ValueTest, outcomes: list[bool]) -> Expression:
    """A test with a given result for false bytes and for true bytes. It is unknown for null."""
    of_false, of_true = outcomes
    if of_false is of_true:
        return Compare(test.value, ">=" if of_true else "<", -128)  # a test that all bytes pass, or none
    return Compare(test.value, "!=" if of_true else "==", 0)


# ---- a dataset's tests of a file that has other types


def for_leaf(test: Expression, wanted: Node, shown: Field | None, leaf: Node, own: Field | None) -> Expression:
    """``test`` on the dataset's leaf ``wanted``, as a test on a file's ``leaf``.

    Results show ``wanted`` as ``shown``. The file alone would show ``leaf`` as ``own``. The path of ``test`` is the
    file's. Raises :class:`FilterError` if the two types cannot be compared.
    """
    if not (wanted.is_leaf and leaf.is_leaf):
        return test
    if isinstance(test, expression.IsNan) and wanted.type.kind in FLOAT_TYPES and leaf.type.kind in ("int", "uint"):
        return Compare(test.value, "<", -(1 << 64))  # no whole number equals it
    if not isinstance(test, (Compare, Contains, IsIn)):
        return test
    means, has = meaning(shown), meaning(own)
    if means != has and means:
        made = as_shown(test, leaf, shown)  # only the dataset's schema hints at it
        return (
            made
            if _alike(wanted.type, leaf.type)
            else expression.simplified(made, lambda part: _interpreted(part, wanted))
        )
    if _rounds(wanted.type, leaf.type):
        return _rounded(test, wanted, leaf)
    if (means != has and has == "ordered") or not _alike(wanted.type, leaf.type):
        many = test.values if isinstance(test, IsIn) else None
        if isinstance(many, ValueArray) and many.numbers.dtype.kind != "f" and wanted.type.kind == "decimal":
            return test  # whole numbers mean the same in both
        return _interpreted(test, wanted)
    return test


def check_computed(wanted: Node, shown: Field | None, leaf: Node, own: Field | None) -> None:
    """Raise :class:`FilterError` for a column that the file stores as another type than the dataset shows, so that
    values computed from it may differ."""
    if not (wanted.is_leaf and leaf.is_leaf):
        return  # binding raises the error
    same = meaning(shown) == meaning(own) and _alike(wanted.type, leaf.type) and not _rounds(wanted.type, leaf.type)
    if not same or (meaning(shown) == "duration" and shown != own):
        raise FilterError(
            f"the dataset shows {describe(wanted.type)}, and a file stores {describe(leaf.type)}: such a column can be "
            "compared with literals, but not computed with",
            column=wanted.dotted,
        )


def _alike(wanted: LeafType, leaf: LeafType) -> bool:
    """Whether a literal means the same to both types."""
    return wanted == leaf or leaf.kind == "null" or _family(wanted) == _family(leaf)


def _family(leaf: LeafType) -> str:
    if leaf.kind in ("int", "uint", *FLOAT_TYPES):
        return "number"
    if leaf.kind in BYTES_KINDS:
        return "bytes"
    return "instant" if leaf.kind == "timestamp" and leaf.utc else leaf.kind


def _interpreted(test: Expression, wanted: Node) -> Expression:
    def change(value: Any) -> Any:
        return value if is_null_literal(value) else interpreted(wanted.type, value, wanted.dotted)

    return test.with_literals(change) if isinstance(test, (Compare, Contains, IsIn)) else test


# ---- floats that a dataset shows in a narrower type than the file's


def _rounds(wanted: LeafType, leaf: LeafType) -> bool:
    return wanted.kind in FLOAT_TYPES and leaf.kind in FLOAT_TYPES and wanted.width < leaf.width


def _rounded(test: Compare | Contains | IsIn, wanted: Node, leaf: Node) -> Expression:
    """A test of rounded values, as a test of the stored values that are rounded to them."""
    if isinstance(test, Compare):
        return _rounded_compare(test.value, test.op, test.other, wanted, leaf)
    if isinstance(test, IsIn):
        nulls = [value for value in test.values if is_null_literal(value)]
        known = [value for value in test.values if not is_null_literal(value)]
        parts = [_rounded_compare(test.value, "==", value, wanted, leaf) for value in known]
        return AnyOf((IsIn(test.value, nulls), *parts)) if parts else test
    if is_null_literal(test.item):
        return test
    raise FilterError(
        f"schema= makes {describe(wanted.type)} of {describe(leaf.type)}, and contains() cannot be asked of rounded "
        f"values: give {describe(leaf.type)} in schema=",
        column=wanted.dotted,
    )


def _rounded_compare(column: Any, op: str, value: Any, wanted: Node, leaf: Node) -> Expression:
    below, above = place = locate(wanted.type, value, wanted.dotted)
    if below != below:  # NaN stays NaN
        return Compare(column, op, below)
    low, high = _rounded_to(above, -1, wanted, leaf), _rounded_to(below, 1, wanted, leaf)
    if op in ("<=", ">") or (op == "<" and not place.exact):
        return Compare(column, ">" if op == ">" else "<=", high)
    if op in (">=", "<"):
        return Compare(column, op, low)
    # A literal between two narrow values: no value is rounded to it, and ``low`` is above ``high``.
    same = expression.AllOf((Compare(column, ">=", low), Compare(column, "<=", high)))
    return same if op == "==" else expression.Not(same)


def _rounded_to(value: Any, side: int, wanted: Node, leaf: Node) -> float:
    """The largest (``side`` 1) or smallest (``side`` -1) value of the leaf that is rounded to ``value``."""
    narrow, wide = FLOAT_TYPES[wanted.type.kind], FLOAT_TYPES[leaf.type.kind]
    near = narrow(value)
    if not np.isfinite(near):
        return float(value)
    with np.errstate(over="ignore"):
        beyond = np.nextafter(near, narrow(side * math.inf))
        if np.isfinite(beyond):
            middle = (wide(near) + wide(beyond)) / 2
        else:
            middle = wide(near) + (wide(near) - wide(np.nextafter(near, narrow(0)))) / 2
        if narrow(middle) != near:
            middle = np.nextafter(middle, wide(near))
        return float(middle)
