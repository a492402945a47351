"""Filters of pyparq as conditions in Spark's SQL."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from pyparq.errors import ParquetError
from pyparq.filters.expression import AllOf, AnyOf, Compare, Expression, IsIn, IsNan, IsNull, Matches, Not, ValueTest
from pyparq.filters.literal import interpreted
from pyparq.filters.times import DAY_NS
from pyparq.format.schema_node import Node
from pyparq.format.schema_tree import SchemaTree
from pyparq.format.types import LeafType

MOST_VALUES = 1000
"""Of an ``isin`` that becomes text."""


def sql_of(expression: Expression, tree: SchemaTree) -> str | None:
    """The condition that is true for the same rows in Spark; ``None`` where there is none here. ``tree``: the columns,
    as the filter names them."""
    if isinstance(expression, (AllOf, AnyOf)):
        parts = [sql_of(child, tree) for child in expression.children]
        word = " AND " if isinstance(expression, AllOf) else " OR "
        return None if None in parts or not parts else word.join(f"({part})" for part in parts)
    if isinstance(expression, Not):
        inner = sql_of(expression.child, tree)
        return None if inner is None else f"NOT ({inner})"
    if not isinstance(expression, ValueTest) or expression.path is None:
        return None
    try:
        node = tree.find(expression.path)
        return _test(expression, node, _name(node))
    except (ParquetError, ValueError, OverflowError):
        return None


def _name(node: Node) -> str:
    if len(node.path) > 1:
        raise ValueError("inside of a column")  # a struct, or a list: the names say nothing of it
    return "`" + node.name.replace("`", "``") + "`"


def _test(test: ValueTest, node: Node, name: str) -> str | None:
    if isinstance(test, IsNull):
        return f"{name} IS NULL"
    if not node.is_leaf:
        return None
    if isinstance(test, IsNan):
        return f"isnan({name})" if node.type.kind in ("float", "double") else None
    if isinstance(test, Compare) and test.op in _OPERATORS:
        return f"{name} {_OPERATORS[test.op]} {_literal(test.other, node.type)}"
    if isinstance(test, IsIn) and 0 < len(test.values) <= MOST_VALUES:
        return f"{name} IN ({', '.join(_literal(value, node.type) for value in test.values)})"
    if isinstance(test, Matches) and test.kind == "starts_with" and node.type.kind == "string":
        return f"startswith({name}, {_literal(test.pattern, node.type)})"
    return None


_OPERATORS = {"==": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def _literal(value: Any, leaf: LeafType) -> str:
    """A value as SQL, in the type of the column. Raises :class:`ValueError` for one that has not this type."""
    make = _LITERALS.get(leaf.kind)
    if make is None:
        raise ValueError(leaf.kind)
    return make(interpreted(leaf, value, "").value, leaf)


def _int(value: Any, leaf: LeafType) -> str:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise ValueError(value)
    if not -(1 << 63) < int(value) < 1 << 63:
        raise ValueError(value)
    return f"{int(value)}L"


def _double(value: Any, leaf: LeafType) -> str:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ValueError(value)
    number = float(value)
    if number != value or not np.isfinite(number):
        raise ValueError(value)
    return f"{number!r}D"


def _decimal(value: Any, leaf: LeafType) -> str:
    number = Decimal(int(value)) if isinstance(value, (int, np.integer)) else value
    if not isinstance(number, Decimal) or isinstance(value, bool) or not number.is_finite():
        raise ValueError(value)
    _, digits, exponent = number.as_tuple()
    if len(digits) > _DIGITS or leaf.precision > _DIGITS or not -_DIGITS <= int(exponent) <= 0:
        raise ValueError(value)
    return f"{number:f}BD"


_DIGITS = 18
"""Of decimals that Spark compares exactly with each other, whatever their scales are."""


def _bool(value: Any, leaf: LeafType) -> str:
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(value)
    return "TRUE" if value else "FALSE"


def _text(value: Any, leaf: LeafType) -> str:
    stored = value.encode() if isinstance(value, str) else bytes(value)
    text = stored.decode()
    return f"'{text}'" if re.fullmatch(r"[A-Za-z0-9 _.,:/@-]*", text) else f"CAST(X'{stored.hex()}' AS STRING)"


def _bytes(value: Any, leaf: LeafType) -> str:
    return f"X'{bytes(value).hex()}'"


def _moment(ns: Any, leaf: LeafType) -> str:
    """``ns``: nanoseconds since 1970."""
    us, rest = divmod(ns, 1000)
    if rest or us != int(us) or not -_YEAR_1 < us < _YEAR_9999:
        raise ValueError(ns)
    if leaf.kind == "int96" or leaf.utc:
        return f"timestamp_micros({int(us)}L)"
    return f"TIMESTAMP_NTZ'{str(np.datetime64(int(us), 'us')).replace('T', ' ')}'"


def _date(ns: Any, leaf: LeafType) -> str:
    days, rest = divmod(ns, DAY_NS)
    if rest:
        raise ValueError(ns)
    return f"DATE'{(dt.date(1970, 1, 1) + dt.timedelta(days=int(days))).isoformat()}'"


_YEAR_1, _YEAR_9999 = 62_000_000_000_000_000, 253_000_000_000_000_000
"""Microseconds between these years and 1970, about."""

_LITERALS: dict[str, Callable[[Any, LeafType], str]] = {
    "int": _int, "float": _double, "double": _double, "decimal": _decimal, "bool": _bool, "string": _text,
    "binary": _bytes, "timestamp": _moment, "int96": _moment, "date": _date,
}  # fmt: skip
