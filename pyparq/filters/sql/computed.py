"""Computed values in SQL: arithmetic, ``lower``, ``upper``, ``length`` and parts of dates, as values of a filter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import expressions as sql

from pyparq.filters.expression import PARTS, Arithmetic, Call, Literal, Value
from pyparq.filters.sql.literals import number
from pyparq.filters.sql.parts import bare, is_column, only, special_float, unsupported

_OPERATORS: dict[type, str] = {sql.Add: "+", sql.Sub: "-", sql.Mul: "*", sql.Div: "/"}
_FUNCTIONS: dict[type, str] = {
    sql.Lower: "lower", sql.Upper: "upper", sql.Length: "length", sql.Year: "year", sql.Quarter: "quarter",
    sql.Month: "month", sql.Day: "day", sql.DayOfMonth: "day", sql.Hour: "hour", sql.Minute: "minute",
    sql.Second: "second",
}  # fmt: skip


def is_computed(node: Any) -> bool:
    """Whether a node computes something from a column."""
    node = bare(node)
    kinds = (*_OPERATORS, *_FUNCTIONS, sql.Extract, sql.Neg)
    return type(node) in kinds and any(special_float(found) is None for found in node.find_all(sql.Column))


def computed(node: Any, column: Callable[[Any], Value]) -> Value:
    """The value of a node. ``column`` gives the column of a node that is one. Raises :class:`FilterError` for
    everything else."""
    node = bare(node)
    if is_column(node) and special_float(node) is None:
        return column(node)
    kind = type(node)
    if kind in _OPERATORS:
        only(node, "this", "expression", "typed", "safe")
        return Arithmetic(_OPERATORS[kind], computed(node.this, column), computed(node.expression, column))
    if kind in _FUNCTIONS:
        only(node, "this", "encoding")
        return Call(_FUNCTIONS[kind], computed(node.this, column))
    if kind is sql.Extract:
        return _part(node, column)
    if kind is sql.Neg and is_computed(node):
        return -computed(node.this, column)
    return Literal(literal(node))


def _part(node: Any, column: Callable[[Any], Value]) -> Value:
    only(node, "this", "expression")
    name = str(node.this.name).lower()
    if name not in PARTS:
        raise unsupported(node, f"the parts are {', '.join(PARTS)}")
    return Call(name, computed(node.expression, column))


def literal(node: Any) -> Any:
    """A number (exact) or a text beside a computed value."""
    node = bare(node)
    if isinstance(node, sql.Neg):
        found = literal(node.this)
        if not isinstance(found, str):
            return -found
    if isinstance(node, sql.Literal):
        return str(node.this) if node.is_string else number(str(node.this))
    special = special_float(node)
    if special is not None:
        return float(special)
    raise unsupported(node, "beside a computed value, a number or a 'text' is needed")
