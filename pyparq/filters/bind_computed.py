"""Binds computed values to the leaves of a file, and their tests to predicates.

``f(x) op literal`` becomes a range of ``x``, for an ``f`` of one column that only rises or only falls. So arithmetic
with literals and ``year()`` are asked of every index like plain comparisons. The ends of the range are found by
bisection over all values that the column can hold. Each step computes ``f`` as a row would be computed, with the same
rounding, so the range is exact.
"""

from __future__ import annotations

import datetime as dt
import math
import numbers
import struct
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from pyparq.errors import FilterError
from pyparq.filters import computed
from pyparq.filters.bound import FALSE, TRUE
from pyparq.filters.computed import BINARY, DURATION, INSTANT, LOCAL, MOMENT, NUMBER, BoundValue, Fixed, Leaf
from pyparq.filters.exact_numbers import as_double
from pyparq.filters.expression import (
    OPERATORS,
    PARTS,
    Arithmetic,
    Call,
    ColumnRef,
    Compare,
    IsNull,
    Literal,
    Matches,
    Path,
    Value,
    as_value,
)
from pyparq.filters.leaf_binding import in_calendar
from pyparq.filters.leaf_tests import Test
from pyparq.filters.literal import WrittenNumber, as_ratio, describe, int_range
from pyparq.filters.predicate import Predicate, conjunction, disjunction, interval, null_test
from pyparq.filters.shown import Shown, meaning
from pyparq.filters.times import DAY_NS, UNIT_NS, duration_ns, time_ns, timestamp_ns
from pyparq.filters.value_array import plain
from pyparq.format.order import FLOAT_KINDS
from pyparq.format.schema_node import Node, values_of
from pyparq.format.types import LeafType

_TEXTS = (computed.TEXT, BINARY)
_POINTS = (LOCAL, INSTANT, MOMENT)
_CLOCKS = ("hour", "minute", "second")
_UTC = (None, "", "UTC", "Etc/UTC", "GMT", "Z", "+00:00")


class Columns(NamedTuple):
    """How names become leaves. ``leaf`` raises an error for a name that is no single value per row."""

    leaf: Callable[[Path], Node]
    shown: Shown | None

    def kinds(self, value: Value) -> set[str]:
        """The kinds of the columns that a value is computed from."""
        return {self.leaf(path).type.kind for path in value._columns()}

    def has_decimal(self, value: Value) -> bool:
        """Whether there is a column of decimals, and none of floats."""
        kinds = self.kinds(value)
        return "decimal" in kinds and not kinds & FLOAT_KINDS


def bind_comparison(test: Compare, columns: Columns, negate: bool) -> Predicate:
    """A comparison of computed values. Where only one column is looked at, a range of it if that is the same."""
    other = as_value(test.other)
    # What is computed from a column that has no type but null is null, whatever it is.
    if "null" in columns.kinds(test.value) | columns.kinds(other):
        return FALSE
    op = OPERATORS[test.op].negated if negate else test.op
    left, right = _side(test.value, other, columns), _side(other, test.value, columns)
    _check_comparable(left, right)
    if isinstance(left, Fixed):
        left, right, op = right, left, OPERATORS[op].flipped
    if isinstance(right, Fixed) and not isinstance(right.value, bytes):
        found = _as_range(left, op, right.value)
        if found is not None:
            return in_calendar(found)
    return _without_hybrid(computed.Comparison(left, op, right))


def bind_match(test: Matches, columns: Columns, negate: bool) -> Predicate:
    if "null" in columns.kinds(test.value):
        return FALSE
    value = _value(test.value, columns, False)
    if value.family not in _TEXTS:
        name = _name(value)
        raise FilterError(f"{test.kind}() needs a string or binary column, not {_described(value)}", column=name)
    return _without_hybrid(computed.Match(value, test.kind, test.pattern, test.escape, negate))


def bind_null(test: IsNull, columns: Columns, negate: bool) -> Predicate:
    if "null" in columns.kinds(test.value):
        return FALSE if negate else TRUE
    value = _value(test.value, columns, columns.has_decimal(test.value))
    if _may_divide_by_zero(value):
        return _without_hybrid(computed.Missing(value, negate))
    each = [null_test(leaf.node, not negate) for leaf in value.leaves()]
    return conjunction(each) if negate else disjunction(each)


def _may_divide_by_zero(value: BoundValue) -> bool:
    if isinstance(value, computed.Operation) and value.op in computed.DIVISIONS:
        divisor = value.operands[-1]
        if not (isinstance(divisor, Fixed) and divisor.value):
            return True
    return any(map(_may_divide_by_zero, value.operands))


def _without_hybrid(test: computed.Computed) -> Predicate:
    for node in test.nodes:
        if node.type.hybrid:
            raise FilterError(
                "its dates are in the calendar of old Spark: compare it with a literal, or take its year()",
                column=node.dotted,
            )
    return test


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
    leaves = value.leaves()
    return leaves[0].node.dotted if leaves else None


# ---- values


def bind_value(value: Value, columns: Columns) -> BoundValue:
    """A value that is not compared with anything."""
    return _value(value, columns, columns.has_decimal(value))


def _value(value: Value, columns: Columns, decimal: bool) -> BoundValue:
    """``decimal``: float literals stand for the decimals that they print as."""
    if isinstance(value, ColumnRef):
        return _leaf(columns.leaf(value.path), columns)
    if isinstance(value, Literal):
        return _fixed(value.value, decimal)
    if isinstance(value, Arithmetic):
        return _arithmetic(value, columns, decimal)
    assert isinstance(value, Call)
    return _call(value, columns)


_MEANS = {"ordered": "the column has categories with an order of their own", "bool8": "the column has truth values"}
_FAMILIES = {
    **dict.fromkeys(("int", "uint", "decimal", *FLOAT_KINDS), NUMBER), "uuid": computed.UUID, "bool": computed.BOOL,
    **dict.fromkeys(("string", "enum", "json"), computed.TEXT), **dict.fromkeys(("binary", "bson", "fixed"), BINARY),
    "date": LOCAL, "time": computed.TIME, "int96": MOMENT, "timestamp": LOCAL,
}  # fmt: skip


def _leaf(node: Node, columns: Columns) -> Leaf:
    leaf, field = node.type, None if columns.shown is None else columns.shown(node)
    means = meaning(field)
    if means == "duration":
        assert field is not None
        return Leaf(node, DURATION, DAY_NS // UNIT_NS[values_of(field.type).unit])
    if means in _MEANS:
        raise FilterError(f"{_MEANS[means]} and cannot be computed with: compare it with a literal", column=node.dotted)
    kind = leaf.kind
    family = INSTANT if kind == "timestamp" and leaf.utc else _FAMILIES.get(kind)
    if family is None:
        raise FilterError(f"values of type {describe(leaf)} cannot be compared or computed with", column=node.dotted)
    den = 10**leaf.scale if kind == "decimal" else 1
    if kind in ("timestamp", "int96", "time"):
        den = DAY_NS // UNIT_NS[leaf.unit or "ns"]
    return Leaf(node, family, den, kind in FLOAT_KINDS)


def _arithmetic(value: Arithmetic, columns: Columns, decimal: bool) -> BoundValue:
    operands = tuple(_value(operand, columns, decimal) for operand in (value.left, value.right))
    family = _result(value.op, *(operand.family for operand in operands))
    if family is None or (value.strict and family != NUMBER):
        other = next((operand for operand in operands if operand.family != NUMBER), operands[0])
        raise FilterError(f"{value!r} needs numbers, not {_described(other)}", column=_name(other))
    # Other libraries compute some of these in float32, or in doubles for decimals.
    for leaf in (leaf for operand in operands if value.strict for leaf in operand.leaves()):
        if leaf.node.type.kind in ("float", "float16", "decimal"):
            raise FilterError(
                f"{value!r} may be rounded in another way where it was written: write it with pyparq.col()",
                column=leaf.node.dotted,
            )
    floats = any(operand.floats for operand in operands)
    if floats and family != NUMBER:
        raise FilterError(f"{value!r} needs whole numbers beside durations", column=_name(operands[0]))
    for operand in operands if floats else ():
        if isinstance(operand, Fixed) and math.isinf(as_double(operand.value)):  # type: ignore[arg-type]
            raise FilterError(f"{repr(operand)[:60]} is beyond doubles, in which {repr(value)[:60]}… is computed")
    return computed.Operation(value.op, operands, floats, family)


def _result(op: str, left: str, right: str) -> str | None:
    """What an operation makes of values of two families. ``None``: it does not exist."""
    if left == right == NUMBER:
        return NUMBER
    if op in ("+", "-") and left in (*_POINTS, DURATION) and right == DURATION:
        return left
    if op == "+" and left == DURATION and right in _POINTS:
        return right
    if op == "-" and left == right and left in _POINTS:
        return DURATION
    if (op == "*" and {left, right} == {DURATION, NUMBER}) or (op == "/" and (left, right) == (DURATION, NUMBER)):
        return DURATION
    return None


def _call(value: Call, columns: Columns) -> BoundValue:
    of = _value(value.value, columns, False)
    name = value.name
    if name not in PARTS:
        if of.family not in _TEXTS or (name != "length" and of.family == BINARY):
            raise FilterError(f"{name}() needs a string column, not {_described(of)}", column=_name(of))
        return computed.Function(name, of, NUMBER if name == "length" else of.family)
    is_date = isinstance(of, Leaf) and of.node.type.kind == "date"
    fits = of.family in (INSTANT, LOCAL, MOMENT) and not (is_date and name in _CLOCKS)
    if not fits and not (of.family == computed.TIME and name in _CLOCKS):
        raise FilterError(f"{name}() needs a date or a point in time, not {_described(of)}", column=_name(of))
    if value.strict and isinstance(of, Leaf):
        _check_zone(of.node, name, columns.shown)
    return computed.Function(name, of, NUMBER)


def _check_zone(node: Node, name: str, shown: Shown | None) -> None:
    field = None if shown is None else shown(node)
    zone = None if field is None else values_of(field.type).timezone
    if zone not in _UTC:
        raise FilterError(
            f"{name} means the time in {zone} where it was written, and UTC in pyparq: write col({node.dotted!r})"
            f".{name}() for the time in UTC",
            column=node.dotted,
        )


# ---- literals


def _side(value: Value, other: Value, columns: Columns) -> BoundValue:
    """A side of a comparison. A literal is read as what the other side is."""
    if not isinstance(value, Literal):
        return _value(value, columns, columns.has_decimal(value))
    decimal = columns.has_decimal(other)
    beside = _value(other, columns, decimal)
    if beside.family in _TEXTS:
        return Fixed(_bytes(value.value, _name(beside)), beside.family)
    if beside.family in (*_POINTS, DURATION):
        return _time(value.value, beside)
    if beside.family != NUMBER:
        raise FilterError(f"{other!r} cannot be compared with {value!r}", column=_name(beside))
    given = value.value
    if isinstance(given, WrittenNumber) and beside.floats:
        kinds = columns.kinds(other)
        given = given.beside(next((kind for kind in ("double", "float", "float16") if kind in kinds), "double"))
    return Fixed(_number(given, decimal, side=True), NUMBER)


def _time(value: Any, beside: BoundValue) -> Fixed:
    """A literal beside a computed date, point in time or duration."""
    found: tuple[Any, bool] | None = None
    with suppress(ValueError):
        if beside.family == DURATION:
            found = None if (ns := duration_ns(plain(value))) is None else (ns, False)
        else:
            found = timestamp_ns(plain(value))
    if found is None or (found[1] and beside.family == LOCAL):
        kind = "a duration" if beside.family == DURATION else f"a {beside.family}"
        raise FilterError(f"{beside!r} is {kind} and cannot be compared with {value!r}", column=_name(beside))
    return Fixed(Fraction(found[0]) / DAY_NS, beside.family)


def _fixed(value: Any, decimal: bool) -> Fixed:
    """A literal by its own type. A dataset puts the values of partition columns in their place."""
    if isinstance(value, (str, bytes)):
        return Fixed(_bytes(value), computed.TEXT if isinstance(value, str) else BINARY)
    if isinstance(value, dt.time):
        return Fixed(Fraction(time_ns(value) or 0) / DAY_NS, computed.TIME)
    if isinstance(value, (dt.timedelta, np.timedelta64)):
        return Fixed(Fraction(duration_ns(value) or 0) / DAY_NS, DURATION)
    found = timestamp_ns(value) if isinstance(value, (dt.date, np.datetime64)) else None
    if found is not None:
        return Fixed(Fraction(found[0]) / DAY_NS, INSTANT if found[1] else LOCAL)
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
        return Fraction(*(as_ratio(found) or (0, 1)))  # one that compares alike
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


# ---- ranges of the only column


def _as_range(value: BoundValue, op: str, literal: Fraction | float) -> Predicate | None:
    """``value op literal`` as tests of the only column in ``value``. ``None`` where that is not possible."""
    if literal != literal or isinstance(value, Leaf):
        return None
    leaves, direction = value.leaves(), value.direction()
    if len(leaves) != 1 or not direction:
        return None
    return _range(leaves[0], value, op, literal, direction)


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


def _range(leaf: Leaf, value: BoundValue, op: str, literal: Any, direction: int) -> Predicate:
    domain = _domain(leaf.node.type)

    def first(passes: Callable[[Any], bool]) -> int:
        """The lowest number that passes, ``domain.last + 1`` if none does. Numbers count from the lowest ``f``."""
        low, high = domain.first, domain.last + 1
        while low < high:
            middle = (low + high) // 2
            at = middle if direction > 0 else domain.first + domain.last - middle
            low, high = (low, middle) if passes(value.at(domain.value(at))) else (middle + 1, high)
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
    is_closed = last < domain.last or (floats and not nan)
    return interval(
        node, domain.value(first) if first > domain.first else None, domain.value(last) if is_closed else None
    )
