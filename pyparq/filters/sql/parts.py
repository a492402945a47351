"""Parts of a parsed SQL condition: columns and literals. Anything else that a node carries is refused."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
from sqlglot import expressions as sql

from pyparq.errors import FilterError
from pyparq.filters.sql.intervals import duration, is_interval
from pyparq.filters.sql.literals import number, temporal
from pyparq.format.schema_node import Node

DIALECT = "postgres"
"""The dialect whose literals and quoting are the standard's, X'00ff' included."""
LISTED = "'pyparq query --help' lists what it supports"


def shown(node: sql.Expression) -> str:
    text = node.sql(dialect=DIALECT)
    return text if len(text) <= 80 else text[:79] + "…"


def unsupported(node: sql.Expression, why: str = "") -> FilterError:
    return FilterError(f"the condition does not support {shown(node)}: {why or LISTED}")


def only(node: sql.Expression, *names: str) -> None:
    """Refuse a node with any part that is not called ``names``. Otherwise that part would be ignored."""
    for name, value in node.args.items():
        if name not in names and value not in (None, False, []):
            raise unsupported(node)


def bare(node: Any) -> Any:
    while isinstance(node, sql.Paren):
        node = node.this
    return node


def is_column(node: Any) -> bool:
    if isinstance(node, sql.Dot):
        return is_column(node.this) and isinstance(node.expression, sql.Identifier)
    if isinstance(node, sql.Bracket):
        return is_column(node.this) and all(isinstance(e, sql.Literal) and e.is_string for e in node.expressions)
    return isinstance(node, sql.Column) and isinstance(node.this, sql.Identifier)


def parts_of(node: Any) -> list[Any]:
    """The identifiers of a column, outermost first (sqlglot takes them for catalog, database and table)."""
    if isinstance(node, sql.Dot):
        return [*parts_of(node.this), node.expression]
    if isinstance(node, sql.Bracket):  # v['user'] is v."user"
        names = [sql.Identifier(this=str(name.this), quoted=True) for name in node.expressions]
        return [*parts_of(node.this), *names]
    only(node, "this", "table", "db", "catalog")
    return [part for name in ("catalog", "db", "table", "this") if (part := node.args.get(name)) is not None]


def special_float(node: Any) -> str | None:
    """``nan`` or ``inf`` written as a bare word."""
    if isinstance(node, sql.Column) and len(parts_of(node)) == 1 and not node.this.args.get("quoted"):
        name = str(node.this.this).lower()
        return {"nan": "nan", "inf": "inf", "infinity": "inf"}.get(name)
    return None


def text_of(node: Any, whole: Any) -> str:
    node = bare(node)
    if not isinstance(node, sql.Literal) or not node.is_string:
        raise unsupported(whole, "a 'text' in single quotes is needed")
    return str(node.this)


def value_of(node: Any, column: Node) -> Any:
    """The Python value of a literal, in the type of the column. ``None`` for NULL."""
    kind = column.type.kind if column.is_leaf else ""
    if isinstance(node, sql.Null):
        return None
    if isinstance(node, sql.Boolean):
        return bool(node.this)
    if isinstance(node, sql.Neg):
        return _negative(node, column)
    special = special_float(node)
    if special is not None:
        return float(special)
    if isinstance(node, sql.Literal):
        return str(node.this) if node.is_string else number(str(node.this))
    if is_interval(node):
        return _interval(node)
    if isinstance(node, sql.HexString):
        return _hex(node, kind)
    if isinstance(node, sql.Cast):
        return _typed(node, kind)
    if is_column(node):
        raise unsupported(
            node, f"a value is needed here, not another column. Write text as '{parts_of(node)[-1].this}'"
        )
    raise unsupported(
        node, "a value is needed here: a number, 'text', TRUE, DATE '…', TIMESTAMP '…', INTERVAL '…', X'00ff'"
    )


def _negative(node: Any, column: Node) -> Any:
    only(node, "this")
    inner = bare(node.this)
    signed = isinstance(inner, (sql.Literal, sql.Neg, sql.Column)) or is_interval(inner)
    value = value_of(inner, column) if signed else None
    if isinstance(value, bool) or value is None or isinstance(value, (str, bytes)):
        raise unsupported(node, "only numbers and intervals can have a sign")
    return -value


def _interval(node: Any) -> Any:
    only(node, "this", "unit", "to", "fraction_in_string")
    try:
        return duration(node)
    except ValueError as error:
        raise unsupported(node, str(error)) from None


def _hex(node: Any, kind: str) -> Any:
    digits = str(node.this)
    if kind in ("int", "uint"):
        return int(digits, 16)
    try:
        return bytes.fromhex(digits)
    except ValueError:
        raise unsupported(node, "X'…' needs pairs of hexadecimal digits") from None


_TEMPORAL = {
    "DATE": "date", "TIME": "time", "TIMESTAMP": "timestamp", "TIMESTAMPNTZ": "timestamp", "TIMESTAMPTZ": "timestamp",
    "DATETIME": "timestamp",
}  # fmt: skip
_TEXTS = {"TEXT", "VARCHAR", "CHAR", "UUID"}


def _typed(node: Any, kind: str) -> Any:
    """``DATE '…'``, ``CAST('…' AS DATE)``, ``'…'::date`` and the like."""
    only(node, "this", "to")
    inner, target = bare(node.this), str(node.to.this.name)
    if not isinstance(inner, sql.Literal):
        raise unsupported(node, "only literals can be cast")
    text = str(inner.this)
    try:
        if target in _TEMPORAL and inner.is_string:
            return temporal(text, _TEMPORAL[target], kind)
        if target in _TEXTS and inner.is_string:
            return text
        if target in ("DOUBLE", "FLOAT"):
            return float(text) if target == "DOUBLE" else np.float32(text)
        if target == "DECIMAL" and not node.to.expressions:
            return Decimal(text)
        if target in ("INT", "BIGINT", "SMALLINT", "TINYINT"):
            return int(text)
    except (ValueError, ArithmeticError) as error:
        raise unsupported(node, str(error)) from None
    raise unsupported(node, "this type is not supported in a cast")
