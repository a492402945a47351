"""Converts a Spark condition to a filter that keeps exactly what Spark would keep, or, if that is not possible, those
rows and more.

Literals get Spark's meaning: beside integers a text is a number, beside floats a decimal is a double. Where Spark's
type rules differ otherwise, there is no equal filter. The condition is then refused, or left to Spark.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pyparq.errors import ColumnNotFoundError, FilterError
from pyparq.filters.bind import items_leaf
from pyparq.filters.expression import (
    AllOf,
    AnyOf,
    Compare,
    Contains,
    Expression,
    IsIn,
    IsNan,
    IsNull,
    Known,
    Matches,
    Not,
    Path,
)
from pyparq.filters.literal import describe, locate
from pyparq.format.nesting import shape_of
from pyparq.format.schema_node import Node
from pyparq.format.schema_tree import SchemaTree
from pyparq.spark.conditions import Attribute, Call, Condition, Literal, columns_of, shown
from pyparq.spark.literals import NoEqual, Session, literal_for, literals_in

_COMPARISONS = {"=": "==", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_FLIPPED = {"=": "=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_TRUE = Known(True)


def filter_of(condition: Condition, tree: SchemaTree, session: Session, residual: bool = False) -> Expression | None:
    """The filter on the columns of ``tree``. ``residual``: Spark applies the condition too, so parts that have no equal
    are left to it; ``None`` where nothing is left then.

    Raises :class:`FilterError`, in Spark's words, for what has no equal, :class:`ColumnNotFoundError` for an unknown
    column.
    """
    for column in columns_of(condition):
        if column is not None:
            tree.find(_path(column, tree))
    return _Translator(tree, session, residual).condition(condition, False)


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


class _Translator:
    def __init__(self, tree: SchemaTree, session: Session, residual: bool) -> None:
        self._tree = tree
        self._session = session
        self._residual = residual
        self._functions: dict[str, Callable[[tuple[Condition, ...]], Expression]] = {
            "in": self._in, "like": self._like, "startswith": self._starts_with, "isnull": self._is_null,
            "isnotnull": lambda given: Not(self._is_null(given)), "isnan": self._is_nan, "<=>": self._null_safe,
            "array_contains": self._array_contains, **{name: partial(self._comparison, name) for name in _COMPARISONS},
        }  # fmt: skip

    def condition(self, node: Condition, negate: bool) -> Expression | None:
        """The condition, or its negation; ``None`` where it has no translation."""
        if isinstance(node, Call) and node.name == "!" and len(node.arguments) == 1:
            return self.condition(node.arguments[0], not negate)
        if isinstance(node, Call) and node.name in ("and", "or"):
            parts = [self.condition(argument, negate) for argument in node.arguments]
            known = [part for part in parts if part is not None]
            if (node.name == "and") is not negate:
                return None if not known else known[0] if len(known) == 1 else AllOf(tuple(known))
            return AnyOf(tuple(known)) if len(known) == len(parts) else None
        try:
            found = self._leaf(node)
        except NoEqual as why:
            if not self._residual:
                raise FilterError(
                    f"the condition {shown(node)} has no equal in pyparq: {why}. Give residual=True to leave it to "
                    "Spark (of read and count), or write it otherwise"
                ) from None
            return None if negate else self._implied(node)
        return Not(found) if negate else found

    def _leaf(self, node: Condition) -> Expression:
        if isinstance(node, Literal) and (node.value is None or isinstance(node.value, bool)):
            return Known(node.value)
        if isinstance(node, (Attribute, Call)) and self._is_field(node):
            path, leaf = self._column(node)
            if leaf.type.kind != "bool":
                raise NoEqual("it is neither true nor false")
            return Compare(path, "==", True)
        if isinstance(node, Call) and node.name in self._functions:
            return self._functions[node.name](node.arguments)
        raise NoEqual(
            f"the function {node.name} is not known here" if isinstance(node, Call) else "it is not known here"
        )

    # ---- columns

    def _is_field(self, node: Condition) -> bool:
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
            place = self._tree.find(_path(inner, self._tree))
            is_struct = not place.is_leaf and place.max_rep == 0 and not _is_list_or_map(place)
            if is_struct and any(child.name == key for child in place.children):
                return Attribute((*inner.path, key))
            raise NoEqual("a value of a map or an item of a list is no column")
        raise NoEqual("a column is needed on one side, and a value on the other")

    def _column(self, node: Condition) -> tuple[Path, Node]:
        """A column that holds values."""
        path = _path(self._named(node), self._tree)
        place = self._tree.find(path)
        if not place.is_leaf or place.max_rep:
            raise NoEqual("the column is nested")
        return path, place

    def _value(self, node: Condition, column: Node) -> Any:
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

    def _comparison(self, name: str, given: tuple[Condition, ...]) -> Expression:
        left, right = given
        if isinstance(left, Literal) and not isinstance(right, Literal):
            left, right, name = right, left, _FLIPPED[name]
        if isinstance(left, Call) and left.name in _DERIVED and len(left.arguments) == 1:
            return _DERIVED[left.name](self, left.arguments[0], name, right)
        if isinstance(left, Call) and left.name in ("coalesce", "nvl", "ifnull"):
            return self._coalesced(left, name, right)
        path, column = self._column(left)
        value = self._value(right, column)
        return Known(None) if value is None else Compare(path, _COMPARISONS[name], value)

    def _null_safe(self, given: tuple[Condition, ...]) -> Expression:
        left, right = given
        if isinstance(left, Literal):
            left, right = right, left
        if isinstance(right, Literal) and right.value is None:
            return self._is_null((left,))
        path, column = self._column(left)
        return AllOf((Compare(path, "==", self._value(right, column)), Not(IsNull(path))))

    def _coalesced(self, call: Call, name: str, right: Condition) -> Expression:
        """``coalesce(column, a) < b``: what a is beside b decides where the column is null."""
        if len(call.arguments) != 2 or not all(isinstance(part, Literal) for part in (call.arguments[1], right)):
            raise NoEqual("it must be coalesce(column, value), compared with a value")
        path, column = self._column(call.arguments[0])
        instead, value = self._value(call.arguments[1], column), self._value(right, column)
        if value is None:
            return Known(None)
        test = Compare(path, _COMPARISONS[name], value)
        if instead is None:
            return test
        if type(instead) is not type(value) or (isinstance(instead, (str, float)) and column.type.kind != "string"):
            raise NoEqual("its values are of different types")
        outcome = {"=": instead == value, "<": instead < value, "<=": instead <= value, ">": instead > value,
                   ">=": instead >= value}[name]  # fmt: skip
        return AnyOf((test, IsNull(path))) if outcome else AllOf((test, Not(IsNull(path))))

    def _in(self, given: tuple[Condition, ...]) -> Expression:
        path, column = self._column(given[0])
        items = [item for item in given[1:] if isinstance(item, Literal)]
        if len(items) < len(given) - 1:
            raise NoEqual("a column is needed on one side, and values on the other")
        found = literals_in(items, column, self._session)
        return IsIn(path, [self._checked(value, column) for value in found])

    def _is_null(self, given: tuple[Condition, ...]) -> Expression:
        place = self._named(given[0])
        path = _path(place, self._tree)
        if self._tree.find(path).max_rep and not _is_list_or_map(self._tree.find(path)):
            raise NoEqual("the column is inside of lists")
        return IsNull(path)

    def _is_nan(self, given: tuple[Condition, ...]) -> Expression:
        path, column = self._column(given[0])
        if column.type.kind not in ("float", "double", "float16"):
            raise NoEqual("the column has no floating-point numbers")
        return IsNan(path)

    def _starts_with(self, given: tuple[Condition, ...]) -> Expression:
        path, column = self._column(given[0])
        value = self._value(given[1], column)
        if value is None:
            return Known(None)
        if column.type.kind not in ("string", "enum", "json"):
            raise NoEqual("the column has no text")
        return Matches(path, "starts_with", value)

    def _like(self, given: tuple[Condition, ...]) -> Expression:
        prefix, rest = _pattern(given)
        if rest not in ("", "%"):
            raise NoEqual("only patterns with one % at the end are known here")
        return (
            self._starts_with((given[0], Literal(prefix)))
            if rest
            else self._comparison("=", (given[0], Literal(prefix)))
        )

    def _array_contains(self, given: tuple[Condition, ...]) -> Expression:
        """Unknown, and not false, where nothing is found but a null."""
        path = _path(self._named(given[0]), self._tree)
        try:
            item = items_leaf(self._tree, path)
        except FilterError as error:
            raise NoEqual(error.message) from None
        value = self._value(given[1], item)
        if value is None:
            raise NoEqual("NULL is in no list")
        return AnyOf((Contains(path, value), AllOf((Contains(path, None), Known(None)))))

    # ---- what follows from a condition without an equal

    def _implied(self, node: Condition) -> Expression | None:
        """Something that is true wherever the condition is."""
        if not isinstance(node, Call):
            return None
        try:
            if node.name == "like":
                prefix, _ = _pattern(node.arguments)
                return self._starts_with((node.arguments[0], Literal(prefix))) if prefix else None
            if node.name in ("<=>", "=") and node.arguments[1] == Literal(True):
                return self.condition(node.arguments[0], False)
            if node.name in _FLIPPED:
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
        path = self._named(left.arguments[0]).path
        is_map = len(self._tree.find(path).children) == 1 and _is_map(self._tree.find(path))
        found: list[Expression] = []
        if is_map:
            found.append(self._any_item((*path, "key"), left.arguments[1]))
        if node.name in ("=", "<=>"):
            found.append(self._any_item((*path, "value") if is_map else path, right))
        return None if not found else found[0] if len(found) == 1 else AllOf(tuple(found))

    def _any_item(self, path: tuple[str, ...], value: Condition) -> Expression:
        try:
            item = items_leaf(self._tree, path)
        except (FilterError, ColumnNotFoundError):
            return _TRUE
        try:
            return Contains(path, self._value(value, item))
        except NoEqual:
            return _TRUE


def _is_map(place: Node) -> bool:
    return shape_of(place).kind == "map"


def _is_list_or_map(place: Node) -> bool:
    return shape_of(place).kind in ("list", "map")


def _pattern(given: tuple[Condition, ...]) -> tuple[str, str]:
    """The text at the beginning of a LIKE pattern, and the pattern behind it."""
    if not all(isinstance(part, Literal) and isinstance(part.value, str) for part in given[1:]):
        raise NoEqual("the pattern is no text")
    pattern, escape = (part.value for part in given[1:] if isinstance(part, Literal))
    text, at = "", 0
    while at < len(pattern) and pattern[at] not in "%_":
        if pattern[at] == escape:
            at += 1
            if at == len(pattern) or pattern[at] not in ("%", "_", escape):
                raise NoEqual("the pattern has an escape character that escapes nothing")
        text, at = text + pattern[at], at + 1
    rest = pattern[at:]
    return text, "%" if rest and not rest.strip("%") else rest


# ---- functions of points in time -------------------------------------------------------------------------------------


def _between(path: Path, name: str, first: Any, after: Any) -> Expression:
    """A test of what all points in time from ``first`` up to ``after`` have in common."""
    if name == "=":
        return AllOf((Compare(path, ">=", first), Compare(path, "<", after)))
    if name in ("<", ">="):
        return Compare(path, name, first)
    return Compare(path, {"<=": "<", ">": ">="}[name], after)


def _of_date(self: _Translator, inner: Condition, name: str, right: Condition) -> Expression:
    path, column = self._column(inner)
    if column.type.kind == "date":
        return self._comparison(name, (inner, right))
    if column.type.kind not in ("timestamp", "int96") or not isinstance(right, Literal):
        raise NoEqual("dates are made of dates and timestamps only")
    day = right.value
    if isinstance(day, str) and not right.kind:
        try:
            day = dt.date.fromisoformat(day)
        except ValueError:
            raise NoEqual(f"{day!r} is no date") from None
    if day is None:
        return Known(None)
    if type(day) is not dt.date or day == dt.date.max:
        raise NoEqual("dates are compared with dates only")
    return _between(path, name, day, day + dt.timedelta(days=1))


def _of_year(self: _Translator, inner: Condition, name: str, right: Condition) -> Expression:
    path, column = self._column(inner)
    if column.type.kind not in ("date", "timestamp", "int96"):
        raise NoEqual("years are those of dates and timestamps only")
    year = right.value if isinstance(right, Literal) else ""
    if year is None:
        return Known(None)
    if type(year) is not int or not 1 <= year <= 9998:
        raise NoEqual("years are numbers from 1 to 9998")
    return _between(path, name, dt.date(year, 1, 1), dt.date(year + 1, 1, 1))


_DERIVED: dict[str, Callable[[_Translator, Condition, str, Condition], Expression]] = {
    "to_date": _of_date, "date": _of_date, "year": _of_year,
}  # fmt: skip
