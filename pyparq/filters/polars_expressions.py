"""Converts polars' expressions to filters of pyparq: as much as means the same, or lets through more rows.

The types in polars' expressions are resolved: a literal has the type of its column, or a cast stands around the column.
The expression is read from its serialized form. Unknown parts are left out, and polars filters again anyway.
"""

from __future__ import annotations

import datetime as dt
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyparq.errors import FilterError
from pyparq.filters.expression import AllOf, AnyOf, ColumnRef, Expression, Not

if TYPE_CHECKING:
    import polars

LARGEST = 4 << 20
"""Serialized expressions above this size in bytes are not read. They hold a long list of values."""

EXACT = float(1 << 53)
"""Integers below this are floats without rounding."""


@dataclass(frozen=True, slots=True)
class _Filter:
    """A filter that is true wherever the expression is. ``exact``: it is also false and unknown where the expression
    is."""

    expression: Expression
    exact: bool = True


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A column, or a field of a struct."""

    column: ColumnRef
    dtype: Any
    """The type that it is compared as."""
    rounds: bool = False
    """Large integers are compared as the nearest float."""


def as_filters(predicate: polars.Expr, schema: polars.Schema) -> Expression | None:
    """A filter that is true for every row for which ``predicate`` is true. ``None`` if only all rows would do."""
    try:
        if len(predicate.meta.serialize()) > LARGEST:
            return None
        node = json.loads(predicate.meta.serialize(format="json"))
    except Exception:  # an expression that polars cannot serialize (a Python function, say)
        return None
    found = _Reader(schema).read(node)
    return None if found is None else found.expression


def exact_filter(predicate: polars.Expr, table: Any) -> Expression:
    """The filter that is true exactly where ``predicate`` is. ``table``: an Arrow object with the types of the columns.

    polars resolves the types in the expression when a query runs, so a query on no rows is run. Raises
    :class:`FilterError` with the part that has no such filter.
    """
    import polars as pl
    from polars.io.plugins import register_io_source

    if not isinstance(predicate, pl.Expr):
        raise FilterError(f"filters cannot be a {type(predicate).__name__} of polars: give an expression")
    empty = pl.DataFrame(table)
    handed: list[polars.Expr] = []

    def source(columns: Any, resolved: polars.Expr | None, limit: Any, size: Any) -> Any:
        handed.extend([] if resolved is None else [resolved])
        yield empty if columns is None else empty.select(columns)

    try:
        register_io_source(source, schema=empty.schema).filter(predicate).collect()
    except pl.exceptions.PolarsError as error:
        raise FilterError(f"polars refuses the filter {predicate}: {error}") from None
    if len(handed) != 1:
        raise FilterError(f"{predicate} does not look at each row alone, so it is no filter of a file")
    return _exact(handed[0], empty.schema)


def _exact(predicate: polars.Expr, schema: polars.Schema) -> Expression:
    node = json.loads(predicate.meta.serialize(format="json"))
    found = _Reader(schema).read(node)
    if found is None or not found.exact:
        raise FilterError(
            f"the polars expression cannot be translated: {_shown(_unknown_part(node, schema))}; write the filter with "
            "pyparq.col()"
        )
    return found.expression


def _unknown_part(node: Any, schema: polars.Schema) -> Any:
    """The innermost condition that is not understood."""
    kind, inner = _named(node)
    logical = kind == "BinaryExpr" and inner["op"] in ("And", "LogicalAnd", "Or", "LogicalOr")
    for part in (inner["left"], inner["right"]) if logical else ():
        found = _Reader(schema).read(part)
        if found is None or not found.exact:
            return _unknown_part(part, schema)
    return node


def _shown(node: Any) -> str:
    import polars as pl

    return str(pl.Expr.deserialize(io.StringIO(json.dumps(node)), format="json"))


class _Reader:
    def __init__(self, schema: polars.Schema) -> None:
        self._schema = schema

    def read(self, node: Any) -> _Filter | None:
        """The filter of a node. ``None`` for nodes that are not understood."""
        kind, inner = _named(node)
        try:
            if kind == "BinaryExpr":
                return self._binary(inner)
            if kind == "Function":
                return self._function(inner)
            if kind == "Column":
                leaf = self._leaf(node)
                return None if leaf is None or str(leaf.dtype) != "Boolean" else _Filter(leaf.column == True)  # noqa: E712
        except (FilterError, KeyError, TypeError, ValueError, AttributeError, OverflowError):
            return None
        return None

    # ---- logic

    def _binary(self, inner: Any) -> _Filter | None:
        op = inner["op"]
        if op in ("And", "LogicalAnd", "Or", "LogicalOr"):
            left, right = self.read(inner["left"]), self.read(inner["right"])
            if left is not None and right is not None:
                make = AllOf if op.endswith("And") else AnyOf
                return _Filter(make((left.expression, right.expression)), left.exact and right.exact)
            known = left or right
            return None if known is None or op.endswith("Or") else _Filter(known.expression, False)
        if op not in _COMPARE:
            return None
        leaf, value = self._operand(inner["left"]), inner["right"]
        if leaf is None:
            leaf, value, op = self._operand(inner["right"]), inner["left"], _TURNED[op]
        if leaf is None:
            return None
        literal = self._literal(value, leaf.dtype, op in ("Eq", "NotEq", "EqValidity"))
        if literal is None or (leaf.rounds and not abs(literal) < EXACT):
            return None
        # eq_missing says false where == is unknown: as true as that, but not as false.
        return _Filter(_COMPARE[op](leaf.column, literal), op != "EqValidity")

    def _function(self, inner: Any) -> _Filter | None:
        inputs, (family, function) = inner["input"], _named(inner["function"])
        if family == "StringExpr" and function == "StartsWith":
            leaf = self._leaf(inputs[0])
            prefix = None if leaf is None else self._literal(inputs[1], leaf.dtype, True)
            is_text = leaf is not None and str(leaf.dtype) == "String" and isinstance(prefix, str)
            return _Filter(leaf.column.starts_with(prefix)) if is_text and leaf is not None and prefix else None
        if family != "Boolean":
            return None
        name, options = _named(function)
        if name == "Not":
            found = self.read(inputs[0])
            return _Filter(Not(found.expression)) if found is not None and found.exact else None
        leaf = self._leaf(inputs[0])
        if leaf is None:
            return None
        if name in ("IsNull", "IsNotNull") and not _is_nested(leaf.dtype):
            return _Filter(leaf.column.is_null() if name == "IsNull" else leaf.column.is_not_null())
        if name in ("IsNan", "IsNotNan") and str(leaf.dtype).startswith("Float"):
            return _Filter(leaf.column.is_nan() if name == "IsNan" else Not(leaf.column.is_nan()))
        if name == "IsBetween":
            return self._between(leaf, inputs, options["closed"])
        if name == "IsIn" and not options["nulls_equal"]:
            return self._is_in(leaf, inputs[1])
        return None

    def _between(self, leaf: _Leaf, inputs: Any, closed: str) -> _Filter | None:
        low, high = (self._literal(node, leaf.dtype, False) for node in inputs[1:3])
        if low is None or high is None:
            return None
        above = leaf.column >= low if closed in ("Both", "Left") else leaf.column > low
        below = leaf.column <= high if closed in ("Both", "Right") else leaf.column < high
        return _Filter(AllOf((above, below)))

    def _is_in(self, leaf: _Leaf, node: Any) -> _Filter | None:
        series = _evaluated(node)
        if str(series.dtype).startswith(("List", "Array")):
            series = series.explode()
        if not _comparable(leaf.dtype, series.dtype, True):
            return None
        values = [_python(value, series.dtype) for value in _physical(series.drop_nulls())]
        if any(value is None for value in values):
            return None
        return _Filter(leaf.column.isin(values), exact=series.null_count() == 0)

    # ---- columns and literals

    def _operand(self, node: Any) -> _Leaf | None:
        """A column that is compared directly, or cast to a type that holds all its values."""
        kind, inner = _named(node)
        if kind != "Cast":
            return self._leaf(node)
        leaf, target = self._leaf(inner["expr"]), _named(inner["dtype"])[1]
        if leaf is None or not isinstance(target, str):
            return None
        import polars as pl

        wide, narrow = getattr(pl, target, None), leaf.dtype
        if wide == pl.Float64 and (narrow == pl.Float32 or narrow.is_integer()):
            return _Leaf(leaf.column, pl.Float64(), rounds=narrow.is_integer())
        if wide == pl.Int64 and narrow.is_integer() and narrow != pl.UInt64:
            return _Leaf(leaf.column, pl.Int64())
        return None

    def _leaf(self, node: Any) -> _Leaf | None:
        path: list[str] = []
        while True:
            kind, inner = _named(node)
            if kind == "Column":
                path.append(inner)
                break
            family, function = _named(inner.get("function")) if kind == "Function" else ("", None)
            if family != "StructExpr" or _named(function)[0] != "FieldByName":
                return None
            path.append(_named(function)[1])
            node = inner["input"][0]
        path.reverse()
        dtype = self._schema[path[0]]
        for name in path[1:]:
            dtype = next(field.dtype for field in dtype.fields if field.name == name)
        return _Leaf(ColumnRef(tuple(path)), dtype)

    @staticmethod
    def _literal(node: Any, dtype: Any, equality: bool) -> Any:
        """The value that a column of ``dtype`` is compared with. ``None`` where pyparq might compare otherwise than
        polars."""
        if not _is_constant(node):
            return None
        series = _evaluated(node)
        if len(series) != 1 or series.null_count() or not _comparable(dtype, series.dtype, equality):
            return None
        return _python(_physical(series)[0], series.dtype)


_COMPARE: dict[str, Callable[[ColumnRef, Any], Expression]] = {
    "Eq": lambda c, v: c == v, "NotEq": lambda c, v: c != v, "Lt": lambda c, v: c < v, "LtEq": lambda c, v: c <= v,
    "Gt": lambda c, v: c > v, "GtEq": lambda c, v: c >= v, "EqValidity": lambda c, v: c == v,
}  # fmt: skip
_TURNED = {"Eq": "Eq", "NotEq": "NotEq", "EqValidity": "EqValidity", "Lt": "Gt", "LtEq": "GtEq", "Gt": "Lt",
           "GtEq": "LtEq"}  # fmt: skip


def _named(node: Any) -> tuple[str, Any]:
    """An enum of the serialized form: a name alone, or a name and its content."""
    if isinstance(node, dict) and len(node) == 1:
        return next(iter(node.items()))
    return (node, None) if isinstance(node, str) else ("", None)


def _is_constant(node: Any) -> bool:
    kind, inner = _named(node)
    if kind == "Cast":
        return _is_constant(inner["expr"])
    return kind == "Literal"


def _evaluated(node: Any) -> polars.Series:
    """The value of a literal in polars. Raises :class:`ValueError` for one that polars does not read back (JSON has no
    NaN)."""
    import polars as pl

    try:
        expression = pl.Expr.deserialize(io.StringIO(json.dumps(node)), format="json")
    except pl.exceptions.PolarsError as error:
        raise ValueError(str(error)) from None
    return pl.select(expression).to_series()


def _is_nested(dtype: Any) -> bool:
    return str(dtype).startswith(("List", "Array", "Struct"))


_ALIKE = ("Int", "UInt", "String", "Binary", "Boolean", "Float", "Date", "Time")


def _comparable(column: Any, literal: Any, equality: bool) -> bool:
    """Whether pyparq and polars compare values of the column with such a literal alike."""
    kind = str(column)
    if kind.startswith("Decimal"):
        return str(literal).startswith("Decimal")
    if kind.startswith(("Categorical", "Enum")):  # polars may order these by another key than their text
        return equality and str(literal) in ("String", kind)
    if kind.startswith("Datetime"):
        return bool(column == literal)
    return bool(column == literal) and kind.startswith(_ALIKE)


def _physical(series: polars.Series) -> list[Any]:
    """Lossless values: Python's own values, and numbers for times."""
    if str(series.dtype).startswith(("Datetime", "Time")):
        return list(series.to_physical().to_list())
    if str(series.dtype).startswith(("Categorical", "Enum")):
        return list(series.cast(_string()).to_list())
    return list(series.to_list())


def _string() -> Any:
    import polars as pl

    return pl.String


def _python(value: Any, dtype: Any) -> Any:
    """A value of :func:`_physical` in the form that pyparq takes. ``None`` if there is none."""
    kind = str(dtype)
    if kind == "Float32":
        return np.float32(value)
    if kind == "Time":
        if value % 1000:
            return None
        return (dt.datetime.min + dt.timedelta(microseconds=value // 1000)).time()
    if not kind.startswith("Datetime"):
        return value
    if dtype.time_zone is None:
        return np.datetime64(value, dtype.time_unit)
    if dtype.time_unit == "ns" and value % 1000:
        return None
    micros = value // 1000 if dtype.time_unit == "ns" else value * 1000 if dtype.time_unit == "ms" else value
    try:
        return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=micros)
    except OverflowError:
        return None
