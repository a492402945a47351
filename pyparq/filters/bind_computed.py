"""Binds computed values to the leaves of a file, and their tests to predicates."""

from __future__ import annotations

import datetime as dt
import math
import numbers
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from pyparq.errors import FilterError
from pyparq.filters.computed import (
    BINARY,
    BOOL,
    DURATION,
    INSTANT,
    LOCAL,
    MOMENT,
    NUMBER,
    TEXT,
    TIME,
    UUID,
    BoundValue,
    Comparison,
    Computed,
    Fixed,
    Leaf,
    Match,
    Missing,
    Operation,
    leaves_of,
)
from pyparq.filters.exact_numbers import as_double
from pyparq.filters.expression import ColumnRef
from pyparq.filters.hybrid_calendar import in_calendar
from pyparq.filters.inversion import as_range
from pyparq.filters.literal import WrittenNumber, as_ratio, describe, plain
from pyparq.filters.logic import Path
from pyparq.filters.predicate import FALSE, TRUE, Predicate, conjunction, disjunction, null_test
from pyparq.filters.shown_values import Shown, meaning
from pyparq.filters.temporal import UNIT_NS, time_ns, timestamp_ns
from pyparq.filters.value_expressions import (
    PARTS,
    Arithmetic,
    Call,
    CompareValues,
    Literal,
    Matches,
    NullValue,
    Value,
)
from pyparq.format.order import FLOAT_KINDS
from pyparq.format.schema_node import Node
from pyparq.format.shown_types import values_of

_DAY_NS = 86_400_000_000_000
_NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_FLIPPED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_TEXTS = (TEXT, BINARY)
_CLOCKS = ("hour", "minute", "second")
_UTC = (None, "", "UTC", "Etc/UTC", "GMT", "Z", "+00:00")


class Columns(NamedTuple):
    """How names become leaves. ``leaf`` raises an error for a name that is no single value per row."""

    leaf: Callable[[Path], Node]
    shown: Shown | None


def bind_comparison(test: CompareValues, columns: Columns, negate: bool) -> Predicate:
    """A comparison of computed values. Where only one column is looked at, a range of it if that is the same."""
    if _has_nulls_alone(columns, test.left, test.right):
        return FALSE
    op = _NEGATED[test.op] if negate else test.op
    left, right = _side(test.left, test.right, columns), _side(test.right, test.left, columns)
    _check_comparable(left, right)
    if isinstance(left, Fixed):
        left, right, op = right, left, _FLIPPED[op]
    if isinstance(right, Fixed) and not isinstance(right.value, bytes):
        found = as_range(left, op, right.value)
        if found is not None:
            return in_calendar(found)
    return _computed(Comparison(left, op, right), False)


def bind_match(test: Matches, columns: Columns, negate: bool) -> Predicate:
    if _has_nulls_alone(columns, test.value):
        return FALSE
    value = _value(test.value, columns, False)
    if value.family not in _TEXTS:
        name = _name(value)
        raise FilterError(f"{test.kind}() needs a string or binary column, not {_described(value)}", column=name)
    return _computed(Match(value, test.kind, test.pattern, test.escape), negate)


def bind_null(test: NullValue, columns: Columns, negate: bool) -> Predicate:
    if _has_nulls_alone(columns, test.value):
        return FALSE if negate else TRUE
    value = _value(test.value, columns, _has_decimal(test.value, columns))
    if _may_divide_by_zero(value):
        return _computed(Missing(value), negate)
    each = [null_test(leaf.node, not negate) for leaf in leaves_of(value)]
    return conjunction(each) if negate else disjunction(each)


def _has_nulls_alone(columns: Columns, *values: Value) -> bool:
    """Whether a column that has no type but null is looked at. What is computed from it is null, whatever it is."""
    return any(columns.leaf(path).type.kind == "null" for value in values for path in value._columns())


def _may_divide_by_zero(value: BoundValue) -> bool:
    if not isinstance(value, Operation):
        return False
    divisor = value.operands[-1]
    divides = value.op == "/" and not (isinstance(divisor, Fixed) and divisor.value)
    return divides or any(map(_may_divide_by_zero, value.operands))


def _computed(test: Comparison | Match | Missing, negate: bool) -> Predicate:
    found = Computed(test, negate)
    for node in found.nodes:
        if node.type.hybrid:
            raise FilterError(
                "its dates are in the calendar of old Spark: compare it with a literal, or take its year()",
                column=node.dotted,
            )
    return found


# ---- values


def _side(value: Value, other: Value, columns: Columns) -> BoundValue:
    """A side of a comparison. A literal is read as what the other side is."""
    if not isinstance(value, Literal):
        return _value(value, columns, _has_decimal(value, columns))
    decimal = _has_decimal(other, columns)
    beside = _value(other, columns, decimal)
    if beside.family in _TEXTS:
        return Fixed(_bytes(value.value, _name(beside)), beside.family)
    if beside.family != NUMBER:
        raise FilterError(f"{other!r} cannot be compared with {value!r}", column=_name(beside))
    given = value.value
    if isinstance(given, WrittenNumber) and beside.floats:
        kinds = {leaf.node.type.kind for leaf in leaves_of(beside)}
        given = given.beside(next((kind for kind in ("double", "float", "float16") if kind in kinds), "double"))
    return Fixed(_number(given, decimal, side=True), NUMBER)


def _value(value: Value, columns: Columns, decimal: bool) -> BoundValue:
    """``decimal``: float literals stand for the decimals that they print as."""
    if isinstance(value, ColumnRef):
        return _leaf(value, columns)
    if isinstance(value, Literal):
        return _fixed(value.value, decimal)
    if isinstance(value, Arithmetic):
        return _arithmetic(value, columns, decimal)
    assert isinstance(value, Call)
    return _call(value, columns)


def _leaf(ref: ColumnRef, columns: Columns) -> Leaf:
    node = columns.leaf(ref.path)
    leaf, field = node.type, None if columns.shown is None else columns.shown(node)
    means = meaning(field)
    if means == "duration":
        assert field is not None
        return Leaf(node, DURATION, _DAY_NS // UNIT_NS[values_of(field.type).unit])
    if means in ("ordered", "bool8"):
        raise FilterError(f"{_MEANS[means]} and cannot be computed with: compare it with a literal", column=node.dotted)
    kind = leaf.kind
    if kind in ("int", "uint", "decimal", *FLOAT_KINDS):
        return Leaf(node, NUMBER, 10**leaf.scale if kind == "decimal" else 1, kind in FLOAT_KINDS)
    if kind in ("timestamp", "int96", "time", "date"):
        per_day = 1 if kind == "date" else _DAY_NS // UNIT_NS[leaf.unit or "ns"]
        family = {"date": LOCAL, "time": TIME, "int96": MOMENT}.get(kind, INSTANT if leaf.utc else LOCAL)
        return Leaf(node, family, per_day)
    family = _FAMILIES.get(kind, "")
    if not family:
        raise FilterError(f"values of type {describe(leaf)} cannot be compared or computed with", column=node.dotted)
    return Leaf(node, family)


_MEANS = {"ordered": "the column has categories with an order of their own", "bool8": "the column has truth values"}
_FAMILIES = {
    **dict.fromkeys(("string", "enum", "json"), TEXT), **dict.fromkeys(("binary", "bson", "fixed"), BINARY),
    "uuid": UUID, "bool": BOOL,
}  # fmt: skip


def _arithmetic(value: Arithmetic, columns: Columns, decimal: bool) -> BoundValue:
    operands = tuple(_value(operand, columns, decimal) for operand in (value.left, value.right))
    for operand in operands:
        if operand.family != NUMBER:
            raise FilterError(f"{value!r} needs numbers, not {_described(operand)}", column=_name(operand))
    if value.strict:
        _check_strict(value, operands)
    floats = any(operand.floats for operand in operands)
    for operand in operands if floats else ():
        if isinstance(operand, Fixed) and math.isinf(as_double(operand.value)):  # type: ignore[arg-type]
            raise FilterError(f"{repr(operand)[:60]} is beyond doubles, in which {repr(value)[:60]}… is computed")
    return Operation(value.op, operands, NUMBER, floats)


def _check_strict(value: Arithmetic, operands: tuple[BoundValue, ...]) -> None:
    """Raise :class:`FilterError` for arithmetic that other libraries do in float32, or in doubles for decimals."""
    for leaf in (leaf for operand in operands for leaf in leaves_of(operand)):
        kind = leaf.node.type.kind
        if kind in ("float", "float16") or kind == "decimal":
            raise FilterError(
                f"{value!r} may be rounded in another way where it was written: write it with pyparq.col()",
                column=leaf.node.dotted,
            )


def _call(value: Call, columns: Columns) -> BoundValue:
    of = _value(value.value, columns, False)
    name = value.name
    if name not in PARTS:
        if of.family not in _TEXTS or (name != "length" and of.family == BINARY):
            raise FilterError(f"{name}() needs a string column, not {_described(of)}", column=_name(of))
        return Operation(name, (of,), NUMBER if name == "length" else of.family, False)
    times = (INSTANT, LOCAL, MOMENT)
    is_date = isinstance(of, Leaf) and of.node.type.kind == "date"
    fits = (of.family in times and not (is_date and name in _CLOCKS)) or (of.family == TIME and name in _CLOCKS)
    if not fits:
        raise FilterError(f"{name}() needs a date or a point in time, not {_described(of)}", column=_name(of))
    if value.strict and isinstance(of, Leaf):
        _check_zone(of.node, name, columns.shown)
    return Operation(name, (of,), NUMBER, False)


def _check_zone(node: Node, name: str, shown: Shown | None) -> None:
    field = None if shown is None else shown(node)
    zone = None if field is None else values_of(field.type).timezone
    if zone not in _UTC:
        raise FilterError(
            f"{name} means the time in {zone} where it was written, and UTC in pyparq: write col({node.dotted!r})"
            f".{name}() for the time in UTC",
            column=node.dotted,
        )


def _has_decimal(value: Value, columns: Columns) -> bool:
    """Whether there is a column of decimals, and none of floats."""
    kinds = {columns.leaf(path).type.kind for path in value._columns()}
    return "decimal" in kinds and not kinds & FLOAT_KINDS


# ---- literals


def _fixed(value: Any, decimal: bool) -> Fixed:
    """A literal by its own type. A dataset puts the values of partition columns in their place."""
    if isinstance(value, (str, bytes)):
        return Fixed(_bytes(value), TEXT if isinstance(value, str) else BINARY)
    if isinstance(value, dt.time):
        return Fixed(Fraction(time_ns(value) or 0) / _DAY_NS, TIME)
    found = timestamp_ns(value) if isinstance(value, (dt.date, np.datetime64)) else None
    if found is not None:
        return Fixed(Fraction(found[0]) / _DAY_NS, INSTANT if found[1] else LOCAL)
    return Fixed(_number(value, decimal), NUMBER)


_MOST_DIGITS = 400


def _number(value: Any, decimal: bool, side: bool = False) -> Fraction | float:
    """``side``: it stands alone on a side of a comparison, so that it may be infinite or NaN."""
    found = plain(value)
    if isinstance(found, bool) or not isinstance(found, (int, float, Decimal, numbers.Rational)):
        raise FilterError(f"a number is needed here, not {type(value).__name__} {value!r}")
    if isinstance(found, float):
        if math.isfinite(found):
            return Fraction(Decimal(repr(found))) if decimal else float(found)
    elif not isinstance(found, Decimal):
        return Fraction(int(found.numerator), int(found.denominator))
    elif found.is_snan():
        raise FilterError(f"a number is needed here, not {found!r}")
    elif found.is_finite() and (side or not found or abs(found.adjusted()) <= _MOST_DIGITS):
        numerator, denominator = as_ratio(found) or (0, 1)  # one that compares alike
        return Fraction(numerator, denominator)
    if not side:
        raise FilterError(f"{value!r} is no finite number of up to {_MOST_DIGITS} digits, which arithmetic takes")
    return math.nan if found != found else float(found)


def _bytes(value: Any, column: str | None = None) -> bytes:
    found = plain(value)
    if isinstance(found, (bytes, str)):
        try:
            return found if isinstance(found, bytes) else found.encode()
        except UnicodeEncodeError:
            pass
    raise FilterError(f"a text is needed here, not {type(value).__name__} {value!r}", column=column)


def _check_comparable(left: BoundValue, right: BoundValue) -> None:
    a, b = left.family, right.family
    same = a == b or {a, b} <= set(_TEXTS) or (MOMENT in (a, b) and {a, b} <= {MOMENT, INSTANT, LOCAL})
    if not same:
        raise FilterError(
            f"{left!r} ({_described(left)}) cannot be compared with {right!r} ({_described(right)})",
            column=_name(left),
        )


def _described(value: BoundValue) -> str:
    if not isinstance(value, Leaf):
        return f"a {value.family}"
    return value.family if value.family == DURATION else describe(value.node.type)


def _name(value: BoundValue) -> str | None:
    leaves = leaves_of(value)
    return leaves[0].node.dotted if leaves else None
