"""Converts a Spark condition to a filter that keeps exactly what Spark would keep, or, if that is not possible, those
rows and more.

Literals get Spark's meaning: beside integers a text is a number, beside floats a decimal is a double. Where Spark's
type rules differ otherwise, there is no equal filter. The condition is then refused, or left to Spark.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pyparq.errors import ColumnNotFoundError, FilterError, UnsupportedError
from pyparq.filters import expression, sql_text
from pyparq.filters.conditions import (
    Attribute,
    Call,
    Condition,
    Literal,
    NoEqual,
    SqlBuilder,
    columns_of,
    shown,
    within,
)
from pyparq.filters.expression import OPERATORS, AllOf, AnyOf, Compare, Contains, Expression, IsNull, Known, Not, Path
from pyparq.filters.leaf_binding import items_leaf
from pyparq.filters.literal import FLOAT_TYPES, describe, locate
from pyparq.format.schema_node import Node, shape_of
from pyparq.format.schema_tree import SchemaTree
from pyparq.spark.literals import Session, literal_for, literals_in

_TRUE = Known(True)


def parsed(text: str, names: Sequence[str] = ()) -> Condition:
    """The condition that SQL text is. ``names``: of columns, which need no backticks where they are words of SQL."""
    try:
        return sql_text.spark_condition(text, names)
    except ModuleNotFoundError as error:
        raise UnsupportedError('conditions in SQL need sqlglot: pip install "pyparq[cli]"') from error


def filter_of(condition: Condition, tree: SchemaTree, session: Session, residual: bool = False) -> Expression | None:
    """The filter on the columns of ``tree``. ``residual``: Spark applies the condition too, so parts that have no equal
    are left to it; ``None`` where nothing is left then.

    Raises :class:`FilterError`, in Spark's words, for what has no equal, :class:`ColumnNotFoundError` for an unknown
    column.
    """
    for column in columns_of(condition):
        if column is not None:
            tree.find(_path(column, tree))
    return _Builder(tree, session, residual).condition(condition)


def new_value(condition: Condition, tree: SchemaTree, session: Session, column: Node) -> Any:
    """What an expression of Spark gives a column of ``tree``: a constant, or a value that is computed of the row.

    Raises :class:`FilterError` for what has no equal, :class:`ColumnNotFoundError` for an unknown column.
    """
    for named in columns_of(condition):
        if named is not None:
            tree.find(_path(named, tree))
    try:
        if isinstance(condition, Literal):
            return None if condition.value is None else literal_for(condition, column, session)
        return _Builder(tree, session, False).value(condition)
    except NoEqual as error:
        raise FilterError(
            f"the value {shown(condition)} has no equal in pyparq: {error or 'it is not known here'}. Compute it in a "
            "DataFrame, and use upsert"
        ) from None


def columns_needed(condition: Condition, tree: SchemaTree) -> list[str] | None:
    """The top-level columns of the condition; ``None`` if they are not known."""
    found = dict[str, None]()
    for column in columns_of(condition):
        if column is None:
            return None
        found[tree.find(_path(column, tree)).path[0]] = None
    return list(found)


def _path(column: Attribute, tree: SchemaTree) -> Path:
    """The name as the tree finds it. Dots between names may also be part of one."""
    try:
        tree.find(column.path)
    except ColumnNotFoundError:
        return ".".join(column.path)
    return column.path


class _Builder(SqlBuilder):
    """Spark's meaning of conditions."""

    def __init__(self, tree: SchemaTree, session: Session, residual: bool) -> None:
        super().__init__(tree)
        self._session = session
        self._residual = residual
        self.tests = {
            **{op: partial(self.comparison, op) for op in OPERATORS},
            "in": self.is_in, "like": partial(self.like, "like"), "starts_with": self.starts_with,
            "is_null": self.is_null, "is_nan": self.is_nan,
            "<=>": self.null_safe, "array_contains": self.array_contains, "isnull": self.is_null, "isnan": self.is_nan,
            "isnotnull": lambda tested: Not(self.is_null(tested)), "startswith": self.starts_with,
        }  # fmt: skip

    def condition(self, node: Condition, negate: bool = False) -> Expression | None:
        if isinstance(node, Call) and node.name in ("is_true", "is_false"):
            node = Call("<=>", (node.arguments[0], Literal(node.name == "is_true")))
        elif isinstance(node, Call) and node.name == "!=":
            node, negate = Call("==", node.arguments), not negate
        return super().condition(node, negate)

    def without_equal(self, node: Condition, error: NoEqual, negate: bool) -> Expression | None:
        if self._residual:
            return None if negate else self._implied(node)
        raise FilterError(
            f"the condition {shown(node)} has no equal in pyparq: {error or 'it is not known here'}. Give "
            "residual=True to leave it to Spark (of read and count), or write it otherwise"
        ) from None

    def unknown(self, name: str) -> str:
        return f"the function {name} is not known here"

    def constant(self, value: Any) -> Expression:
        if value is None or isinstance(value, bool):
            return Known(value)
        raise NoEqual("it is not known here")

    def of_null(self, what: str) -> Expression:
        return Known(None)

    # ---- columns and literals

    def is_column(self, node: Condition) -> bool:
        """Whether it is a column, or a field of a struct."""
        try:
            self._named(node)
        except NoEqual:
            return False
        return True

    def _named(self, node: Condition) -> Attribute:
        if isinstance(node, Attribute):
            return node
        if isinstance(node, Call) and node.name == "[]" and isinstance(node.arguments[1], Literal):
            inner, key = self._named(node.arguments[0]), node.arguments[1].value
            place = self.tree.find(_path(inner, self.tree))
            is_struct = not place.is_leaf and place.max_rep == 0 and not _is_list_or_map(place)
            if is_struct and any(child.name == key for child in place.children):
                return Attribute((*inner.path, key))
            raise NoEqual("a value of a map or an item of a list is no column")
        raise NoEqual("a column is needed on one side, and a value on the other")

    def place(self, node: Condition) -> tuple[Path, Node]:
        path = _path(self._named(node), self.tree)
        return path, self.tree.find(path)

    def column(self, node: Condition) -> tuple[Path, Node]:
        """A column that holds values."""
        path, place = self.place(node)
        if not place.is_leaf or place.max_rep:
            raise NoEqual("the column is nested")
        return path, place

    def literal(self, node: Condition, column: Node) -> Any:
        """A literal as the column is compared with it; ``None`` for NULL."""
        if not isinstance(node, Literal):
            raise NoEqual("a column is needed on one side, and a value on the other")
        return self._checked(literal_for(node, column, self._session), column)

    def _checked(self, value: Any, column: Node) -> Any:
        is_checked_later = isinstance(value, (dt.timedelta, np.timedelta64))  # an integer may be shown as a duration
        if value is not None and not is_checked_later:
            try:
                locate(column.type, value, column.dotted)
            except FilterError:
                raise NoEqual(f"the column is of type {describe(column.type)}") from None
        return value

    # ---- tests

    def truth(self, node: Condition) -> Expression:
        path, leaf = self.column(node)
        if leaf.type.kind != "bool":
            raise NoEqual("it is neither true nor false")
        return Compare(path, "==", True)

    def comparison(self, op: str, left: Condition, right: Condition) -> Expression:
        if isinstance(left, Literal) and not isinstance(right, Literal):
            left, right, op = right, left, OPERATORS[op].flipped
        if isinstance(left, Call) and left.name in ("to_date", "date") and len(left.arguments) == 1:
            return self.days_compared(left.arguments[0], op, right)
        if isinstance(left, Call) and left.name == "year" and len(left.arguments) == 1:
            return self._of_year(left.arguments[0], op, right)
        if isinstance(left, Call) and left.name in ("coalesce", "nvl", "ifnull"):
            return self._coalesced(left, op, right)
        path, column = self.column(left)
        value = self.literal(right, column)
        return Known(None) if value is None else Compare(path, op, value)

    def _coalesced(self, call: Call, op: str, right: Condition) -> Expression:
        """``coalesce(column, a) < b``: what a is beside b decides where the column is null."""
        if len(call.arguments) != 2 or not all(isinstance(part, Literal) for part in (call.arguments[1], right)):
            raise NoEqual("it must be coalesce(column, value), compared with a value")
        path, column = self.column(call.arguments[0])
        instead, value = self.literal(call.arguments[1], column), self.literal(right, column)
        if value is None:
            return Known(None)
        test = Compare(path, op, value)
        if instead is None:
            return test
        if type(instead) is not type(value) or (isinstance(instead, (str, float)) and column.type.kind != "string"):
            raise NoEqual("its values are of different types")
        is_kept = OPERATORS[op].holds(instead, value)
        return AnyOf((test, IsNull(path))) if is_kept else AllOf((test, Not(IsNull(path))))

    def is_in(self, tested: Condition, *items: Condition) -> Expression:
        path, column = self.column(tested)
        known = [item for item in items if isinstance(item, Literal)]
        if len(known) < len(items):
            raise NoEqual("a column is needed on one side, and values on the other")
        found = literals_in(known, column, self._session)
        return expression.IsIn(path, [self._checked(value, column) for value in found])

    def is_null(self, tested: Condition) -> Expression:
        path, place = self.place(tested)
        if place.max_rep and not _is_list_or_map(place):
            raise NoEqual("the column is inside of lists")
        return IsNull(path)

    def is_nan(self, tested: Condition) -> Expression:
        path, column = self.column(tested)
        if column.type.kind not in FLOAT_TYPES:
            raise NoEqual("the column has no floating-point numbers")
        return expression.IsNan(path)

    def starts_with(self, tested: Condition, prefix: Condition) -> Expression:
        path, column = self.column(tested)
        value = self.literal(prefix, column)
        if value is None:
            return Known(None)
        if column.type.kind not in ("string", "enum", "json"):
            raise NoEqual("the column has no text")
        return expression.Matches(path, "starts_with", value)

    def like(self, kind: str, tested: Condition, pattern: Condition, escape: Condition) -> Expression:
        prefix, rest = _prefix(pattern, escape)
        if rest not in ("", "%"):
            raise NoEqual("only patterns with one % at the end are known here")
        return self.starts_with(tested, Literal(prefix)) if rest else self.comparison("==", tested, Literal(prefix))

    def array_contains(self, tested: Condition, item: Condition) -> Expression:
        """Unknown, and not false, where nothing is found but a null."""
        path, _ = self.place(tested)
        try:
            leaf = items_leaf(self.tree, path)
        except FilterError as error:
            raise NoEqual(error.message) from None
        value = self.literal(item, leaf)
        if value is None:
            raise NoEqual("NULL is in no list")
        return AnyOf((Contains(path, value), AllOf((Contains(path, None), Known(None)))))

    # ---- functions of points in time

    def _of_year(self, tested: Condition, op: str, right: Condition) -> Expression:
        path, column = self.column(tested)
        if column.type.kind not in ("date", "timestamp", "int96"):
            raise NoEqual("years are those of dates and timestamps only")
        year = right.value if isinstance(right, Literal) else ""
        if year is None:
            return Known(None)
        if type(year) is not int or not 1 <= year <= 9998:
            raise NoEqual("years are numbers from 1 to 9998")
        return within(path, op, dt.date(year, 1, 1), dt.date(year + 1, 1, 1))

    # ---- what follows from a condition without an equal

    def _implied(self, node: Condition) -> Expression | None:
        """Something that is true wherever the condition is."""
        if not isinstance(node, Call):
            return None
        try:
            if node.name == "like":
                prefix, _ = _prefix(*node.arguments[1:])
                return self.starts_with(node.arguments[0], Literal(prefix)) if prefix else None
            if node.name in ("<=>", "==") and node.arguments[1] == Literal(True):
                return self.condition(node.arguments[0])
            if node.name in ("<=>", *OPERATORS):
                return self._of_entry(node)
        except NoEqual:
            pass
        return None

    def _of_entry(self, node: Call) -> Expression | None:
        """``m['k'] = 1``: there is such a key, and such a value. ``l[0] = 1``: the list has the item."""
        left, right = node.arguments
        if not isinstance(right, Literal):
            left, right = right, left
        if not (isinstance(left, Call) and left.name == "[]" and isinstance(right, Literal)) or right.value is None:
            return None
        path = tuple(self._named(left.arguments[0]).path)
        place = self.tree.find(path)
        is_map = len(place.children) == 1 and shape_of(place).kind == "map"
        found: list[Expression] = []
        if is_map:
            found.append(self._any_item((*path, "key"), left.arguments[1]))
        if node.name in ("==", "<=>"):
            found.append(self._any_item((*path, "value") if is_map else path, right))
        return expression.joined(found, AllOf) if found else None

    def _any_item(self, path: tuple[str, ...], value: Condition) -> Expression:
        try:
            item = items_leaf(self.tree, path)
        except (FilterError, ColumnNotFoundError):
            return _TRUE
        try:
            return Contains(path, self.literal(value, item))
        except NoEqual:
            return _TRUE


def _is_list_or_map(place: Node) -> bool:
    return shape_of(place).kind in ("list", "map")


def _prefix(pattern: Condition, escape: Condition) -> tuple[str, str]:
    """The text at the beginning of a LIKE pattern, and the pattern behind it."""
    if not (isinstance(pattern, Literal) and isinstance(escape, Literal) and isinstance(pattern.value, str)):
        raise NoEqual("the pattern is no text")
    text, at, whole = "", 0, pattern.value
    while at < len(whole) and whole[at] not in "%_":
        if whole[at] == escape.value:
            at += 1
            if at == len(whole) or whole[at] not in ("%", "_", escape.value):
                raise NoEqual("the pattern has an escape character that escapes nothing")
        text, at = text + whole[at], at + 1
    rest = whole[at:]
    return text, "%" if rest and not rest.strip("%") else rest
