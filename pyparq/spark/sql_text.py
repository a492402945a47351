"""A condition in the SQL of Spark as a tree of :mod:`pyparq.spark.conditions`. sqlglot parses it, by Spark's rules."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

import sqlglot
from sqlglot import expressions as sql

from pyparq.errors import FilterError
from pyparq.filters.sql_text.intervals import duration, is_interval, kept_whole
from pyparq.spark.conditions import Attribute, Call, Condition, Literal, Other

DIALECT = "spark"

_BINARY: dict[type, str] = {
    sql.EQ: "=", sql.LT: "<", sql.LTE: "<=", sql.GT: ">", sql.GTE: ">=", sql.NullSafeEQ: "<=>",
    sql.StartsWith: "startswith", sql.ArrayContains: "array_contains", sql.RegexpLike: "rlike",
    sql.Contains: "contains",
}  # fmt: skip
_NEGATED: dict[type, str] = {sql.NEQ: "=", sql.NullSafeNEQ: "<=>"}
_WHOLE = ("BIGINT", "INT", "SMALLINT", "TINYINT")
_TIMES = {"TIMESTAMP": "timestamp", "TIMESTAMPTZ": "timestamp", "TIMESTAMPLTZ": "timestamp",
          "TIMESTAMPNTZ": "timestamp_ntz"}  # fmt: skip


def parsed(text: str, names: Sequence[str] = ()) -> Condition:
    """The condition. ``names``: of columns, which need no backticks where they are words of SQL.

    Raises :class:`FilterError` for what is no SQL, or needs sqlglot where there is none.
    """
    if not text.strip():
        raise FilterError("the condition is empty")
    try:
        return _condition(_tree(kept_whole(text, DIALECT), names))
    except sqlglot.errors.SqlglotError as error:
        raise FilterError(f"the condition is no SQL of Spark: {_reason(error)}") from None
    except RecursionError:
        raise FilterError("the condition is nested too deeply") from None


def _tree(text: str, names: Sequence[str]) -> Any:
    try:
        return sqlglot.parse_one(text, read=DIALECT)
    except sqlglot.errors.ParseError:
        known = {name.lower() for name in names}
        quoted = text
        for word in reversed(sqlglot.tokenize(text, read=DIALECT)):
            if text[word.start : word.end + 1].lower() in known:
                quoted = f"{quoted[: word.start]}`{word.text}`{quoted[word.end + 1 :]}"
        if quoted != text:
            with suppress(sqlglot.errors.SqlglotError):
                return sqlglot.parse_one(quoted, read=DIALECT)
        raise


def _reason(error: Exception) -> str:
    details = getattr(error, "errors", None)
    if not details:
        return str(error)
    said = str(details[0].get("description", "syntax error")).split(" for <class")[0].split(" but got <")[0].rstrip(".")
    near = details[0].get("highlight")
    return f"{said} at {near!r}" if near else said


def _condition(node: Any) -> Condition:
    """Any part of the condition; what carries more than is looked at here has no equal."""
    found = _found(node)
    return _other(node) if found is None else found


def _other(node: Any) -> Other:
    inside = [_attribute(column) for column in node.find_all(sql.Column)]
    known = tuple(column for column in inside if column is not None)
    text = node.sql(dialect=DIALECT)
    whole = len(known) == len(inside) and not node.find(sql.Lambda, sql.Star)
    return Other(text if len(text) <= 120 else text[:119] + "…", known if whole else None)


def _found(node: Any) -> Condition | None:
    kind = type(node)
    if kind in (sql.And, sql.Or):
        return _chain(node)
    if is_interval(node):
        with suppress(ValueError):
            return Literal(duration(node))
        return None
    if kind in _BINARY or kind in _NEGATED:
        if not _only(node, "this", "expression"):
            return None
        call = Call((_BINARY | _NEGATED)[kind], (_condition(node.this), _condition(node.expression)))
        return Call("!", (call,)) if kind in _NEGATED else call
    return _KINDS[kind](node) if kind in _KINDS else None


def _only(node: Any, *names: str) -> bool:
    """Whether the node has no other parts."""
    return all(name in names or value in (None, False, []) for name, value in node.args.items())


def _chain(node: Any) -> Condition | None:
    """A chain of ANDs or ORs leans left, as deep as it is long: walked in a loop."""
    kind, parts = type(node), []
    while type(node) is kind:
        parts.append(_condition(node.expression))
        node = node.this
    parts.append(_condition(node))
    return Call("and" if kind is sql.And else "or", tuple(reversed(parts)))


def _inner(node: Any) -> Condition | None:
    return _condition(node.this) if _only(node, "this") else None


def _not(node: Any) -> Condition | None:
    return Call("!", (_condition(node.this),)) if _only(node, "this") else None


def _attribute(node: Any) -> Attribute | None:
    if isinstance(node, sql.Dot):
        outer = _attribute(node.this) if isinstance(node.this, (sql.Column, sql.Dot)) else None
        if outer is None or not isinstance(node.expression, sql.Identifier):
            return None
        return Attribute((*outer.path, str(node.expression.this)))
    if not isinstance(node.this, sql.Identifier) or not _only(node, "this", "table", "db", "catalog"):
        return None
    parts = [node.args.get(name) for name in ("catalog", "db", "table", "this")]
    return Attribute(tuple(str(part.this) for part in parts if part is not None))


def _in(node: Any) -> Condition | None:
    if not _only(node, "this", "expressions") or not node.expressions:
        return None
    return Call("in", (_condition(node.this), *map(_condition, node.expressions)))


def _between(node: Any) -> Condition | None:
    if not _only(node, "this", "low", "high"):
        return None
    value = _condition(node.this)
    low, high = (_condition(node.args[name]) for name in ("low", "high"))
    return Call("and", (Call(">=", (value, low)), Call("<=", (value, high))))


def _is(node: Any) -> Condition | None:
    if isinstance(node.expression, sql.Null):
        return Call("isnull", (_condition(node.this),))
    if isinstance(node.expression, sql.Boolean):
        return Call("<=>", (_condition(node.this), Literal(bool(node.expression.this))))
    return None


def _like(node: Any) -> Condition | None:
    """``LIKE`` with its escape character, by default the backslash."""
    escape = "\\"
    if isinstance(node, sql.Escape):
        if not isinstance(node.expression, sql.Literal) or not isinstance(node.this, sql.Like):
            return None
        escape, node = str(node.expression.this), node.this
    if not _only(node, "this", "expression"):
        return None
    return Call("like", (_condition(node.this), _condition(node.expression), Literal(escape)))


def _bracket(node: Any) -> Condition | None:
    if len(node.expressions) != 1:
        return None
    return Call("[]", (_condition(node.this), _condition(node.expressions[0])))


def _coalesce(node: Any) -> Condition | None:
    return Call("coalesce", tuple(map(_condition, (node.this, *node.expressions))))


def _function(node: Any) -> Condition | None:
    return Call(str(node.this).lower(), tuple(map(_condition, node.expressions)))


def _year(node: Any) -> Condition | None:
    inner = node.this.this if isinstance(node.this, sql.TsOrDsToDate) else node.this
    return Call("year", (_condition(inner),))


def _to_date(node: Any) -> Condition | None:
    return Call("to_date", (_condition(node.this),)) if _only(node, "this", "safe") else None


def _literal(node: Any) -> Condition | None:
    text = str(node.this)
    if node.is_string:
        return Literal(text)
    if text.isdigit():
        return Literal(int(text))
    return Literal(float(text) if "e" in text.lower() else Decimal(text))


def _negative(node: Any) -> Condition | None:
    inner = _condition(node.this)
    if isinstance(inner, Literal) and isinstance(inner.value, (int, float, Decimal)) and inner.value is not True:
        return Literal(-inner.value)
    return None


def _hex(node: Any) -> Condition | None:
    digits = str(node.this)
    return Literal(bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits))


def _cast(node: Any) -> Condition | None:
    """Literals with a type, and columns as dates."""
    if not _only(node, "this", "to", "safe"):
        return None
    inner, target = _condition(node.this), str(node.to.this.name)
    if not isinstance(inner, Literal):
        return Call("to_date", (inner,)) if target == "DATE" else None
    value, is_text = inner.value, isinstance(inner.value, str)
    with suppress(ValueError, ArithmeticError):
        if target == "DATE" and is_text:
            return Literal(dt.date.fromisoformat(value.strip()))
        if target in _TIMES and is_text:
            return Literal(value.strip(), _TIMES[target])
        if target in _WHOLE and isinstance(value, int):
            return inner
        if target == "DOUBLE" and (is_text or isinstance(value, (int, Decimal))):
            return Literal(float(value))
        if target == "DECIMAL" and is_text:
            return Literal(Decimal(value))
    return None


_KINDS: dict[type, Callable[[Any], Condition | None]] = {
    sql.Paren: _inner, sql.Not: _not, sql.Column: _attribute, sql.Dot: _attribute, sql.In: _in, sql.Between: _between,
    sql.Is: _is, sql.Like: _like, sql.Escape: _like, sql.Bracket: _bracket, sql.Coalesce: _coalesce,
    sql.Anonymous: _function, sql.Year: _year, sql.TsOrDsToDate: _to_date, sql.Literal: _literal, sql.Neg: _negative,
    sql.Cast: _cast, sql.TryCast: _cast, sql.HexString: _hex, sql.RawString: lambda node: Literal(str(node.this)),
    sql.Boolean: lambda node: Literal(bool(node.this)), sql.Null: lambda node: Literal(None),
    sql.IsNan: lambda node: Call("isnan", (_condition(node.this),)),
}  # fmt: skip
