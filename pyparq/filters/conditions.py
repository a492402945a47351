"""Conditions of SQL and of Spark as one small tree, and the builder that makes filters of it.

:mod:`pyparq.filters.sql_text` makes the tree from text, :mod:`pyparq.spark.columns` from a ``Column`` of Spark.
Literals are read in the type of the column they are compared with. What a dialect means otherwise is a method of its
builder.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import partial
from inspect import signature
from typing import Any, ClassVar

import numpy as np

from pyparq.errors import ColumnNotFoundError, FilterError
from pyparq.filters import expression
from pyparq.filters.expression import ARITHMETIC, OPERATORS, AllOf, ColumnRef, Compare, Expression, Item, Not, Path
from pyparq.filters.expression import Call as Function
from pyparq.filters.expression import Literal as Fixed
from pyparq.filters.leaf_binding import items_leaf
from pyparq.filters.literal import FLOAT_TYPES, WrittenNumber, describe
from pyparq.filters.shown import meaning
from pyparq.filters.times import duration_of, time_ns, timestamp_ns
from pyparq.filters.variants import named_node
from pyparq.format.schema_node import Node, shape_of
from pyparq.format.schema_tree import SchemaTree
from pyparq.format.types import Field


@dataclass(frozen=True)
class Attribute:
    """A column, by the names from the top down, or by one name that dots may separate."""

    path: Path


@dataclass(frozen=True)
class Literal:
    """A value: ``None``, a bool, a number, text, bytes, a date or a duration. ``kind``: what text was written as, such
    as ``timestamp``, or ``hex``."""

    value: Any
    kind: str = ""


@dataclass(frozen=True)
class Call:
    """A function or an operator, by its name in small letters. ``source``: the other library's own expression."""

    name: str
    arguments: tuple[Condition, ...]
    source: Any = field(default=None, compare=False)


@dataclass(frozen=True)
class Other:
    """An expression without an equal in pyparq. ``columns``: those in it; ``None`` if they are not known. ``why``: what
    is wrong with it, if that can be said."""

    text: str
    columns: tuple[Attribute, ...] | None = None
    why: str = ""
    source: Any = field(default=None, compare=False)


Condition = Attribute | Literal | Call | Other

_VALUES = (str, int, float, WrittenNumber, Decimal, dt.timedelta, np.timedelta64)
"""Literals that stand beside computed values."""
_FUNCTIONS = (*expression.PARTS, "lower", "upper", "length")
_OPERATORS = (*OPERATORS, "<=>", "and", "or", *ARITHMETIC, "like", "ilike")


def columns_of(condition: Condition) -> Iterator[Attribute | None]:
    """All columns that the condition looks at; ``None`` among them where there may be others."""
    if isinstance(condition, Attribute):
        yield condition
    elif isinstance(condition, Call):
        for argument in condition.arguments:
            yield from columns_of(argument)
    elif isinstance(condition, Other):
        yield from (None,) if condition.columns is None else condition.columns


def shown(condition: Condition) -> str:
    """The condition as SQL, for errors."""
    if isinstance(condition, Attribute):
        names = condition.path if isinstance(condition.path, tuple) else condition.path.split(".")
        return ".".join(name if name.isidentifier() else f"`{name}`" for name in names)
    if isinstance(condition, Literal):
        return _shown_literal(condition)
    if isinstance(condition, Other):
        return condition.text
    parts = [shown(argument) for argument in condition.arguments]
    if condition.name in _OPERATORS and len(parts) > 1:
        sign = {"==": "=", "!=": "<>", "rem": "%"}.get(condition.name, condition.name.upper())
        return "(" + f" {sign} ".join(parts) + ")"
    if condition.name == "[]":
        return f"{parts[0]}[{parts[1]}]"
    if condition.name == "cast":
        sizes = f"({', '.join(parts[2:])})" if parts[2:] else ""
        return f"CAST({parts[0]} AS {condition.arguments[1].value}{sizes})"  # type: ignore[union-attr]
    if condition.name == "in":
        return f"{parts[0]} IN ({', '.join(parts[1:6])}{', …' if len(parts) > 6 else ''})"
    return f"{condition.name}({', '.join(parts)})"


def _shown_literal(literal: Literal) -> str:
    value = literal.value
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, (dt.timedelta, np.timedelta64)):
        return f"INTERVAL '{value}'"
    if not isinstance(value, str):
        return str(value)
    text = "'" + value.replace("'", "\\'") + "'"
    return f"{literal.kind.upper()} {text}" if literal.kind else text


class NoEqual(Exception):
    """Part of a condition that pyparq has nothing for; the text says why. ``node``: the part, if it is not the whole
    test."""

    def __init__(self, why: str, node: Condition | None = None) -> None:
        super().__init__(why)
        self.node = node


class Builder:
    """Makes filters of conditions: ``tests`` does so for a call of each name. What a test means is for each dialect to
    say."""

    def __init__(self, tests: dict[str, Callable[..., Expression]]) -> None:
        self.tests = tests

    def condition(self, node: Condition, negate: bool = False) -> Expression | None:
        """The condition, or its negation. ``None`` where the dialect can do without it."""
        if isinstance(node, Call) and node.name == "not" and len(node.arguments) == 1:
            return self.condition(node.arguments[0], not negate)
        if isinstance(node, Call) and node.name in ("and", "or"):
            parts = [self.condition(argument, negate) for argument in node.arguments]
            known = [part for part in parts if part is not None]
            if (node.name == "and") is not negate:
                return expression.joined(known, AllOf) if known else None
            return expression.joined(known, expression.AnyOf) if len(known) == len(parts) else None
        try:
            found = self.test(node)
        except NoEqual as error:
            return self.without_equal(node, error, negate)
        return Not(found) if negate else found

    def without_equal(self, node: Condition, error: NoEqual, negate: bool) -> Expression | None:
        """What is done about a test that has no equal filter."""
        raise NotImplementedError

    def test(self, node: Condition) -> Expression:
        """A condition without AND, OR and NOT. Raises :class:`NoEqual`."""
        if isinstance(node, Literal):
            return self.constant(node.value)
        if isinstance(node, Other):
            raise NoEqual(node.why)
        if self.is_column(node):
            return self.truth(node)
        assert isinstance(node, Call)
        for argument in node.arguments:
            if isinstance(argument, Other) and argument.why:
                raise NoEqual(argument.why, argument)
        try:
            test = self.tests[node.name]
            signature(test).bind(*node.arguments)
        except (KeyError, TypeError):  # TypeError: for another number of arguments
            raise NoEqual(self.unknown(node.name)) from None
        return test(*node.arguments)

    def unknown(self, name: str) -> str:
        """What is said of a function that is not known."""
        return ""

    def constant(self, value: Any) -> Expression:
        """A condition that looks at no column."""
        raise NoEqual("")

    def is_column(self, node: Condition) -> bool:
        return isinstance(node, Attribute)

    def truth(self, node: Condition) -> Expression:
        """A column alone."""
        raise NoEqual("")


class SqlBuilder(Builder):
    """Makes a filter of a condition on the columns of ``tree``: as SQL on the command line means it."""

    names: ClassVar[dict[str, str]] = {
        "starts_with": "starts_with", "ends_with": "ends_with", "contains": "contains", "rlike": "matches",
        "regexp_matches": "matches", "suffix": "ends_with", "prefix": "starts_with",
    }  # fmt: skip
    """Tests of a text by a pattern, by the names of their functions."""

    def __init__(self, tree: SchemaTree) -> None:
        self.tree = tree
        super().__init__({
            **{op: partial(self.comparison, op) for op in OPERATORS},
            **{name: partial(self.matches, kind) for name, kind in self.names.items()},
            "<=>": self.null_safe, "in": self.is_in, "is_null": self.is_null, "is_nan": self.is_nan,
            "is_true": partial(self.is_truth, True), "is_false": partial(self.is_truth, False),
            "like": partial(self.like, "like"), "ilike": partial(self.like, "ilike"),
            "array_contains": self.array_contains, "list_contains": self.array_contains,
            "st_intersects_extent": self.intersects_box,
        })  # fmt: skip

    def condition(self, node: Condition, negate: bool = False) -> Expression | None:
        if isinstance(node, Call) and node.name == "between":
            value, low, high = node.arguments
            node = Call("and", (Call(">=", (value, low)), Call("<=", (value, high))))
        return super().condition(node, negate)

    def without_equal(self, node: Condition, error: NoEqual, negate: bool) -> Expression | None:
        part = node if error.node is None else error.node
        text = shown(part)
        text = text[1:-1] if isinstance(part, Call) and text.startswith("(") else text
        why = str(error) or "'pyparq query --help' lists what it supports"
        raise FilterError(
            f"the condition does not support {text if len(text) <= 80 else text[:79] + '…'}: {why}"
        ) from None

    def constant(self, value: Any) -> Expression:
        if isinstance(value, str):
            raise NoEqual("the whole condition is in quotes: remove them")
        raise NoEqual("a condition must compare a column with a value")

    # ---- columns and values

    def is_column(self, node: Condition) -> bool:
        return isinstance(node, Attribute) or (isinstance(node, Call) and node.name == "[]")

    def place(self, node: Condition) -> tuple[Path, Node]:
        """A column or group, by its path, and what it is. A Variant, for a path into it."""
        if isinstance(node, Call) and node.name == "[]":
            return self.item(*node.arguments)
        if not isinstance(node, Attribute):
            raise NoEqual("a column is needed here. Functions, casts and arithmetic are not supported", node)
        return node.path, named_node(self.tree, node.path)

    def item(self, of: Condition, key: Condition) -> tuple[Any, Node]:
        """An item of a list (the first is 1, the last -1) or of a map, or a field of a struct or Variant."""
        base, column = self.place(of)
        shape = shape_of(column)
        if not isinstance(key, Literal) or key.value is None:
            raise NoEqual("in brackets stands a number or a 'text'", key)
        if shape.kind == "map":
            return Item(as_reference(base), self.literal(key, shape.children[0].node)), shape.children[1].node
        if shape.kind == "list" and type(key.value) is int:
            number = key.value - (key.value > 0) if key.value else None
            return Item(as_reference(base), number), shape.children[0].node
        if not isinstance(key.value, str) or shape.kind == "list":
            raise NoEqual(f"{shown(of)} is no {'map' if shape.kind == 'list' else 'list'}", Call("[]", (of, key)))
        if isinstance(base, Item):
            field = next((child.node for child in shape.children if child.name == key.value), None)
            if field is None:
                raise NoEqual(f"{shown(of)} has no field {key.value!r}", Call("[]", (of, key)))
            return Item(base, key.value), field
        names = column.path if not column.is_variant and isinstance(base, str) else base
        return self.place(Attribute((*(names.split(".") if isinstance(names, str) else names), key.value)))

    def column(self, node: Condition) -> tuple[Path, Node]:
        """A column that is compared with literals."""
        return self.place(node)

    def computes(self, node: Condition) -> bool:
        """Whether a node computes something from a column."""
        known = isinstance(node, Call) and (node.name in ARITHMETIC or node.name in _FUNCTIONS)
        return known and any(column is not None for column in columns_of(node))

    def value(self, node: Condition) -> expression.Value:
        """A column, what is computed from columns, or a number (exact) or text beside it."""
        if self.is_column(node):
            return as_reference(self.place(node)[0])
        if isinstance(node, Call) and node.name in ARITHMETIC and len(node.arguments) == 2:
            left, right = map(self.value, node.arguments)
            of_days = node.name in ("+", "-") and self._is_date(left)
            if of_days and isinstance(right, Fixed) and type(right.value) is int:
                right = Fixed(dt.timedelta(days=right.value))
            return expression.Arithmetic(node.name, left, right)
        if isinstance(node, Call) and node.name in ARITHMETIC:
            return -self.value(node.arguments[0])
        if isinstance(node, Call) and node.name in _FUNCTIONS and len(node.arguments) == 1:
            return Function(node.name, self.value(node.arguments[0]))
        known = isinstance(node, Literal) and isinstance(node.value, _VALUES) and node.kind in ("", "date", "timestamp")
        if not known or isinstance(node.value, bool):  # type: ignore[union-attr]
            why = node.why if isinstance(node, Other) else ""
            raise NoEqual(why or "beside a computed value, a number, a 'text', a DATE or an INTERVAL is needed", node)
        try:
            found = typed(node, "")  # type: ignore[arg-type]
            return Fixed(dt.date.fromisoformat(found.strip()) if node.kind == "date" else found)  # type: ignore[union-attr]
        except ValueError as error:
            raise NoEqual(str(error), node) from None

    def _is_date(self, value: expression.Value) -> bool:
        """Whether a value is a column of dates. A number beside it is one of days."""
        if not isinstance(value, ColumnRef):
            return False
        node = named_node(self.tree, value.path)
        return node.is_leaf and node.type.kind == "date"

    def literal(self, node: Condition, column: Node) -> Any:
        """The value of a literal, in the type of the column. ``None`` for NULL."""
        if isinstance(node, Attribute):
            name = node.path[-1] if isinstance(node.path, tuple) else node.path.split(".")[-1]
            raise NoEqual(f"a value is needed here, not another column. Write text as '{name}'", node)
        if not isinstance(node, Literal):
            raise NoEqual(
                "a value is needed here: a number, 'text', TRUE, DATE '…', TIMESTAMP '…', INTERVAL '…', X'00ff'", node
            )
        kind = column.type.kind if column.is_leaf else ""
        try:
            return _as_column_has_it(typed(node, kind), kind) if not node.kind else typed(node, kind)
        except ValueError as error:
            raise NoEqual(str(error), node) from None

    def assignment(self, node: Condition) -> tuple[Path, Any]:
        """A column and its new value, of ``column = value``."""
        if not isinstance(node, Call) or node.name != "==" or not isinstance(node.arguments[0], Attribute):
            raise NoEqual("write COLUMN = VALUE")
        path, column = self.place(node.arguments[0])
        value = node.arguments[1]
        if isinstance(value, Attribute) and not self._has(value):
            name = expression.dotted(value.path)
            raise NoEqual(f"no column is called {name}. Write text as '{name}'")
        if self.is_column(value) or self.computes(value):
            return path, self.value(value)
        return path, self.literal(value, column)

    def of_null(self, what: str) -> Expression:
        """A test of a value that is NULL."""
        raise NoEqual(what)

    # ---- tests

    def truth(self, node: Condition) -> Expression:
        """A column alone."""
        return Compare(self.column(node)[0], "==", True)

    def comparison(self, op: str, left: Condition, right: Condition) -> Expression:
        if not self.is_column(left) and not self.computes(left) and not isinstance(right, Literal):
            left, right, op = right, left, OPERATORS[op].flipped
        left, right = self._uncast(left), self._uncast(right)
        if isinstance(left, Call) and left.name == "rounded":
            return self.rounded_compared(left, op, right)
        if isinstance(left, Call) and left.name == "to_date":
            return self.days_compared(left.arguments[0], op, right)
        never = "a comparison with NULL is never true; write IS NULL or IS NOT NULL"
        if self.computes(left) or self.computes(right):
            if Literal(None) in (left, right):
                return self.of_null(never)
            return Compare(self.value(left), op, self.value(right))
        if not self.is_column(left):
            other = next((side for side in (left, right) if isinstance(side, Other) and side.why), None)
            raise NoEqual(other.why if other else "one side must be a column and the other a value", other)
        if self.is_column(right):
            return self.columns_compared(op, left, right)
        path, column = self.column(left)
        value = self.literal(right, column)
        return self.of_null(never) if value is None else Compare(path, op, value)

    def _uncast(self, node: Condition) -> Condition:
        """A column without a cast to a type that holds all of its values as they are. Floats, and integers that may
        have too many digits, stay casts to DECIMAL."""
        if not isinstance(node, Call) or node.name != "cast":
            return node
        inner, target = node.arguments[0], str(node.arguments[1].value)  # type: ignore[union-attr]
        column = self.column(inner)[1]
        if not column.is_leaf:
            raise NoEqual(f"a cast of a list, struct or map to {target}", node)
        leaf = column.type
        sizes = [size.value for size in node.arguments[2:]]  # type: ignore[union-attr]
        precision, scale = (*sizes, 0)[:2] if sizes else (18, 3)
        bits = [name for name, bits in _BITS.items() if leaf.kind == "int" and leaf.bits <= bits]
        holds = {
            "int": bits,
            "date": _TIMES,
            "timestamp": ("TIMESTAMP",),
            "string": ("VARCHAR",),
            "double": ("DOUBLE",),
        }
        is_integer = leaf.kind in ("int", "uint")
        digits = len(str(1 << leaf.bits - (leaf.kind == "int"))) if is_integer else leaf.precision - leaf.scale
        is_wider = scale >= leaf.scale and precision - scale >= digits
        is_exact = is_integer or leaf.kind == "decimal"
        if target in holds.get(leaf.kind, ()) or (is_exact and target == "DECIMAL" and is_wider):
            return inner
        if (is_integer or leaf.kind in FLOAT_TYPES) and target == "DECIMAL" and scale <= precision <= 38:
            return Call("rounded", (inner, Literal(precision), Literal(scale)))
        raise NoEqual(f"a cast of {describe(leaf)} to {target} may change values", node)

    def rounded_compared(self, rounded: Call, op: str, right: Condition) -> Expression:
        """A float or an integer as a decimal, compared with a number. NaN and what does not fit are null."""
        path, column = self.column(rounded.arguments[0])
        precision, scale = (size.value for size in rounded.arguments[1:])  # type: ignore[union-attr]
        number: Any = right.value if isinstance(right, Literal) else None
        if type(number) not in (int, Decimal, WrittenNumber) or abs(Decimal(number).adjusted()) > 400:
            raise NoEqual("a cast to DECIMAL is compared with numbers", right)
        is_integer = column.type.kind in ("int", "uint")
        limit, exact = 10**precision if is_integer else int(float(10**precision)), Fraction(number) * 10**scale
        ends = (max(-limit, min(e, limit)) for e in (math.ceil(exact), math.floor(exact) + 1, 1 - limit, limit))
        edges: Any = (-(-end // 10**scale) if is_integer else _first_rounded(end, scale) for end in ends)
        first, after, lowest, beyond = edges
        fits = AllOf((Compare(path, ">=", lowest), Compare(path, "<", beyond)))
        unknown = AllOf((Not(fits), expression.Known(None)))
        return expression.AnyOf((AllOf((within(path, op, first, after), fits)), unknown))

    def days_compared(self, tested: Condition, op: str, right: Condition) -> Expression:
        """The day of a point in time, compared with a date."""
        path, column = self.column(tested)
        if column.type.kind == "date":
            return self.comparison(op, tested, right)
        if column.type.kind not in ("timestamp", "int96") or not isinstance(right, Literal):
            raise NoEqual("dates are made of dates and timestamps only")
        day = right.value
        if day is None:
            return self.of_null("a comparison with NULL is never true; write IS NULL or IS NOT NULL")
        if isinstance(day, str) and right.kind in ("", "date"):
            try:
                day = dt.date.fromisoformat(day.strip())
            except ValueError:
                raise NoEqual(f"{day!r} is no date") from None
        if type(day) is not dt.date or day == dt.date.max:
            raise NoEqual("dates are compared with dates only")
        return within(path, op, day, day + dt.timedelta(days=1))

    def null_safe(self, left: Condition, right: Condition) -> Expression:
        """``IS NOT DISTINCT FROM``, and ``<=>`` in Spark: never unknown, and true for two nulls."""
        if isinstance(left, Literal):
            left, right = right, left
        if right == Literal(None):
            return self.is_null(left)
        same = self.comparison("==", left, right)
        if isinstance(right, Literal):
            return AllOf((same, Not(self.is_null(left))))
        nulls = self.is_null(left), self.is_null(right)
        return expression.AnyOf((AllOf((same, Not(nulls[0]), Not(nulls[1]))), AllOf(nulls)))

    def columns_compared(self, op: str, left: Condition, right: Condition) -> Expression:
        """Raises an error for ``city = "Lima"``: double quotes mean a column name, and there is none with this name."""
        for value, other in ((right, left), (left, right)):
            if isinstance(value, Attribute) and not self._has(value) and self._has(other):
                name = expression.dotted(value.path)
                text = name.replace("'", "''")
                raise NoEqual(f"no column is called {name}. Write the text as '{text}'")
        return Compare(self.value(left), op, self.value(right))

    def _has(self, node: Condition) -> bool:
        try:
            self.place(node)
        except ColumnNotFoundError:
            return False
        return True

    def is_in(self, tested: Condition, *items: Condition) -> Expression:
        null = Literal(None)
        if isinstance(tested, Call) and tested.name in ("cast", "to_date"):
            unknown = expression.Known(None)
            each = [unknown if item == null else self.comparison("==", tested, item) for item in items]
            return expression.joined(each, expression.AnyOf)
        if self.computes(tested):
            known: list[Any] = [None if item == null else self.value(item) for item in items]
            return expression.IsIn(self.value(tested), [None if one is None else one.value for one in known])
        path, column = self.column(tested)
        return expression.IsIn(path, [self.literal(item, column) for item in items])

    def is_null(self, tested: Condition) -> Expression:
        return expression.IsNull(self.value(tested) if self.computes(tested) else self.place(tested)[0])

    def is_truth(self, truth: bool, tested: Condition) -> Expression:
        """``IS TRUE`` is never unknown."""
        path, _ = self.column(tested)
        return AllOf((Compare(path, "==", truth), Not(expression.IsNull(path))))

    def is_nan(self, tested: Condition) -> Expression:
        return expression.IsNan(self.column(tested)[0])

    def matches(self, kind: str, tested: Condition, pattern: Condition) -> Expression:
        return expression.Matches(self.value(tested), kind, self.text(pattern))

    def like(self, kind: str, tested: Condition, pattern: Condition, escape: Condition) -> Expression:
        text, sign = self.text(pattern), self.text(escape)
        if not sign and ("\\%" in text or "\\_" in text):
            raise NoEqual("the backslash needs an ESCAPE clause: LIKE '…' ESCAPE '\\'")
        return expression.Matches(self.value(tested), kind, text, sign)

    def text(self, node: Condition) -> str:
        if isinstance(node, Literal) and isinstance(node.value, str) and not node.kind:
            return node.value
        raise NoEqual("a 'text' in single quotes is needed")

    def array_contains(self, tested: Condition, item: Condition) -> Expression:
        """Whether an item of a list equals a value, or a field of the structs in a list (``'a' = ANY(ls.y)``)."""
        path, _ = self.place(tested)
        value = self.literal(item, items_leaf(self.tree, path))
        return (
            self.of_null("NULL equals nothing, so no list contains it")
            if value is None
            else expression.Contains(path, value)
        )

    def intersects_box(self, tested: Condition, envelope: Condition) -> Expression:
        numbers = envelope.arguments if isinstance(envelope, Call) and envelope.name == "st_makeenvelope" else ()
        box = [float(number.value) for number in numbers if isinstance(number, Literal)]
        if len(box) != 4:
            raise NoEqual("write ST_Intersects_Extent(column, ST_MakeEnvelope(xmin, ymin, xmax, ymax))")
        return ColumnRef(self.place(tested)[0]).intersects_box(*box)


def as_reference(place: Any) -> ColumnRef | Item:
    """A column by its path, or an item."""
    return place if isinstance(place, Item) else ColumnRef(place)


def _first_rounded(number: int, scale: int) -> float:
    """The lowest double that is at least ``number / 10**scale`` as a decimal of this scale. As in DuckDB, it is
    multiplied as a double and rounded, halves away from zero."""
    unit = float(10**scale)

    def is_less(value: float) -> bool:
        return Decimal(value * unit).to_integral_value(ROUND_HALF_UP) < number

    found = (number - 0.5) / unit
    while not is_less(found):
        found = math.nextafter(found, -math.inf)
    while is_less(found):
        found = math.nextafter(found, math.inf)
    return found


def within(path: Path, op: str, first: Any, after: Any) -> Expression:
    """A test of what all values from ``first`` up to ``after`` have in common."""
    if op == "==":
        return AllOf((Compare(path, ">=", first), Compare(path, "<", after)))
    if op in ("<", ">="):
        return Compare(path, op, first)
    if op == "!=":
        return expression.AnyOf((Compare(path, "<", first), Compare(path, ">=", after)))
    return Compare(path, {"<=": "<", ">": ">="}[op], after)


# ---- literals

_TIMES = ("TIMESTAMP", "TIMESTAMPNTZ", "DATETIME")
_TRUTHS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
_BITS = {"SMALLINT": 16, "INT": 32, "BIGINT": 64}
"""Types of SQL, in sqlglot's words."""


def _as_column_has_it(value: Any, kind: str) -> Any:
    """A number in quotes as a number, and 0, 1 and text as truth values, where the column has these. Raises
    ``ValueError``."""
    if kind == "bool" and not isinstance(value, bool) and value is not None:
        text = str(value).lower()
        if text not in _TRUTHS:
            raise ValueError("the column has TRUE and FALSE")
        return _TRUTHS[text]
    if kind in ("int", "uint", "decimal", "float16", "float", "double") and isinstance(value, str):
        text = value.strip()
        if kind in FLOAT_TYPES and text.lower().lstrip("+-") in ("nan", "inf", "infinity"):
            return float(text)
        found = number(text)
        if kind in ("int", "uint") and not isinstance(found, int):
            raise ValueError(f"the column has whole numbers: write {text} without quotes")
        return found
    return value


def number(text: str) -> int | WrittenNumber:
    """A number as text. Raises ``ValueError``."""
    if re.fullmatch(r"[+-]?\d+", text, re.ASCII):
        return int(text)
    try:
        return WrittenNumber(text)
    except ArithmeticError:
        raise ValueError(f"{text!r} is not a number") from None


def typed(literal: Literal, kind: str) -> Any:
    """A literal that was written with a type, for a column of ``kind``. DATE, TIME and TIMESTAMP are checked and stay
    text, which keeps nanoseconds and the zone. Raises ``ValueError``."""
    value = literal.value
    if literal.kind == "hex":
        if kind in ("int", "uint"):
            return int(value, 16)
        try:
            return bytes.fromhex(value)
        except ValueError:
            raise ValueError("X'…' needs pairs of hexadecimal digits") from None
    if literal.kind == "date":
        dt.date.fromisoformat(value.strip())
    elif literal.kind == "time":
        time_ns(value)
    elif literal.kind:
        timestamp_ns(value)
    if literal.kind and kind not in ("", "date", "time", "timestamp", "int96", "null"):
        raise ValueError(f"the column is of type {kind}")  # beside a string column it must not be compared as a string
    return value


def probe_value(text: str, node: Node, shown: Field | None = None) -> Any:
    """A value from the command line, for a column that is shown as ``shown``.

    Durations are given as text, also in the form in which they are printed: ``1 day, 2:30:00``. On binary columns,
    ``0x00ff`` and ``X'00ff'`` are bytes. Raises :class:`FilterError` if the column cannot hold the value.
    """
    kind = node.type.kind
    if meaning(shown) == "duration":
        try:
            return duration_of(text.replace(",", " "))
        except ValueError as error:
            raise FilterError(f"the column is shown as durations: {error}", column=node.dotted) from None
    try:
        if kind in ("int", "uint", "decimal", "float16", "float", "double"):
            return float(text) if text.lower().lstrip("+-") in ("nan", "inf", "infinity") else number(text)
        if kind == "bool":
            return {"true": True, "false": False}[text.lower()]
        if kind in ("binary", "fixed", "bson"):
            found = re.fullmatch(r"(?:0x([0-9a-f]*)|x'([0-9a-f]*)')", text, re.IGNORECASE)
            return bytes.fromhex(found[1] or found[2] or "") if found else text.encode()
    except (ValueError, KeyError):
        raise FilterError(f"{text!r} is not a value of type {describe(node.type)}", column=node.dotted) from None
    return text
