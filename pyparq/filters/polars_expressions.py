"""Converts polars' expressions to filters of pyparq: as much as means the same, or lets through more rows.

The types in polars' expressions are resolved: a literal has the type of its column, or a cast stands around the column.
The expression is read from its serialized form. Unknown parts are left out where polars filters again anyway.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pyparq.arrow.table import Table
from pyparq.arrow.to_polars import unknown_to_polars
from pyparq.errors import FilterError
from pyparq.filters.expression import AllOf, AnyOf, ColumnRef, Expression, IsNull, Known, Not
from pyparq.filters.polars_nodes import Node, read_nodes
from pyparq.filters.times import UNIT_NS, Instant

if TYPE_CHECKING:
    import polars

_Join: TypeAlias = type[AllOf] | type[AnyOf]

LARGEST = 4 << 20
"""Serialized expressions above this size in bytes are not read. They hold a long list of values."""
_MOST_SHOWN = 300


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
    exact_below: float = math.inf
    """Finite numbers from here on are compared after rounding."""

    def takes(self, value: Any) -> bool:
        return self.exact_below == math.inf or not self.exact_below <= abs(value) < math.inf


def as_filters(predicate: polars.Expr, schema: polars.Schema) -> Expression | None:
    """A filter that is true for every row for which ``predicate`` is true. ``None`` if only all rows would do."""
    import polars as pl

    try:
        data = predicate.meta.serialize()
        found = _Reader(schema).read(read_nodes(data)) if len(data) <= LARGEST else None
    except (Exception, pl.exceptions.PanicException):  # polars cannot serialize it (a Python function, say)
        return None
    return None if found is None else found.expression


def exact_filter(predicate: polars.Expr, table: Table) -> Expression:
    """The filter that is true exactly where ``predicate`` is. ``table``: the types of the columns.

    Raises :class:`FilterError` with the part that has no such filter.
    """
    import polars as pl

    if not isinstance(predicate, pl.Expr):
        raise FilterError(f"filters cannot be a {type(predicate).__name__} of polars: give an expression")
    empty = _known_columns(predicate, table)
    try:
        resolved = _resolved(predicate, empty)
        whole = None if resolved is None else _whole(read_nodes(resolved.meta.serialize()))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError) as error:
        raise FilterError(f"polars refuses the filter {_shown(predicate)}: {error}") from None
    if whole is None:
        raise FilterError(f"{_shown(predicate)} does not look at each row alone, or is never true: no filter of a file")
    found = _Reader(empty.schema).read(whole)
    if found is None or not found.exact:
        raise FilterError(
            f"the polars expression cannot be translated: {_shown(_unknown_part(whole, empty.schema))}; write the "
            "filter with pyparq.col()"
        )
    return found.expression


def _known_columns(predicate: polars.Expr, table: Table) -> polars.DataFrame:
    """No rows of the columns that the expression may name and polars has types for."""
    named, schema = set(predicate.meta.root_names()), table.schema
    unknown = unknown_to_polars(schema)
    for name in sorted(named & set(unknown)):
        raise FilterError(f"polars has no type for {unknown[name]}: write the filter with pyparq.col()", column=name)
    fields = {field.name: field for field in schema.fields if field.name not in unknown}
    if named <= set(fields) and named and not predicate.meta.has_multiple_outputs():
        fields = {name: field for name, field in fields.items() if name in named}
    return Table(replace(schema, fields=tuple(fields.values())), []).to_polars()


def _resolved(predicate: polars.Expr, empty: polars.DataFrame) -> polars.Expr | None:
    """The expression with its types resolved, which polars does when a query runs: so a query on no rows is run.

    polars splits a condition, and hands over what cannot fail. The rest would be lost. Inside of ``fill_null`` nothing
    is split.
    """
    from polars.io.plugins import register_io_source

    handed: list[polars.Expr | None] = []

    def source(columns: Any, resolved: polars.Expr | None, limit: Any, size: Any) -> Any:
        handed.append(resolved)
        yield empty if columns is None else empty.select(columns)

    register_io_source(source, schema=empty.schema).filter(predicate.fill_null(False)).collect()
    return handed[0] if len(handed) == 1 else None


def _whole(node: Any) -> Any:
    """What stands in the ``fill_null`` of :func:`_resolved`. ``None`` if that is not the whole condition."""
    kind, inner = _named(node)
    if kind != "Function" or inner["function"] != "FillNull":
        return None
    whole, instead = inner["input"]
    return whole if _truth(instead).value is False else None


def _unknown_part(node: Any, schema: polars.Schema) -> Any:
    """The innermost condition that is not understood."""
    for part in _operands(node)[1]:
        found = _Reader(schema).read(part)
        if found is None or not found.exact:
            return _unknown_part(part, schema)
    return node


def _operands(node: Any) -> tuple[_Join, list[Any]]:
    """The conditions that a chain of ``&`` or ``|`` joins, however polars nests them. Of another node: none."""
    join: _Join = _JOINS.get(_operator(node), AllOf)
    waiting, found = [node], list[Any]()
    while waiting:
        part = waiting.pop()
        if _JOINS.get(_operator(part)) is join:
            inner = part["BinaryExpr"]
            waiting += [inner["right"], inner["left"]]
        elif part is not node:
            found.append(part)
    return join, found


_JOINS: dict[str, _Join] = {"And": AllOf, "LogicalAnd": AllOf, "Or": AnyOf, "LogicalOr": AnyOf}


def _operator(node: Any) -> str:
    kind, inner = _named(node)
    return str(inner["op"]) if kind == "BinaryExpr" else ""


def _shown(part: Any) -> str:
    text = str(part.expression() if isinstance(part, Node) else part)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


class _Reader:
    def __init__(self, schema: polars.Schema) -> None:
        self._schema = schema

    def read(self, node: Any) -> _Filter | None:
        """The filter of a node. ``None`` for nodes that are not understood."""
        kind, inner = _named(node)
        try:
            if kind == "BinaryExpr":
                return self._binary(node, inner)
            if kind == "Function":
                return self._function(inner)
            if kind == "Ternary":
                return self._ternary(inner)
            if kind == "Alias":
                return self.read(inner[0])
            if kind == "Column":
                leaf = self._leaf(node)
                return None if leaf is None or str(leaf.dtype) != "Boolean" else _Filter(leaf.column == True)  # noqa: E712
            if _is_constant(node):
                return _Filter(_truth(node))
        except (FilterError, KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
            return None
        return None

    # ---- logic

    def _binary(self, node: Any, inner: Any) -> _Filter | None:
        op = inner["op"]
        if op in _JOINS:
            return self._junction(*_operands(node))
        missing = op.endswith("Validity")
        op = op.removesuffix("Validity")
        if op not in _COMPARE:
            return None
        leaf, value = self._operand(inner["left"]), inner["right"]
        if leaf is None:
            leaf, value, op = self._operand(inner["right"]), inner["left"], _TURNED[op]
        literal = None if leaf is None else self._literal(value, leaf, op in ("Eq", "NotEq"))
        if leaf is None or literal is None:
            return None
        if not missing:
            return _Filter(_COMPARE[op](leaf.column, literal))
        same = AllOf((leaf.column == literal, Not(IsNull(leaf.column.path))))  # eq_missing is never unknown
        return _Filter(same if op == "Eq" else Not(same))

    def _junction(self, join: _Join, operands: list[Any]) -> _Filter | None:
        parts = [self.read(part) for part in operands]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts) and (join is AnyOf or not known):
            return None
        expression = join(tuple(part.expression for part in known))
        return _Filter(expression, len(known) == len(parts) and all(part.exact for part in known))

    def _ternary(self, inner: Any) -> _Filter | None:
        """``when(x.is_not_null()).then(…).otherwise(…)`` of truth values, which polars makes of some comparisons."""
        test = self.read(inner["predicate"])
        if test is None or not isinstance(getattr(test.expression, "child", test.expression), IsNull):
            return None  # other tests may be unknown
        then, otherwise = _truth(inner["truthy"]), _truth(inner["falsy"])
        return _Filter(AnyOf((AllOf((test.expression, then)), AllOf((Not(test.expression), otherwise)))))

    def _function(self, inner: Any) -> _Filter | None:
        inputs, (family, function) = inner["input"], _named(inner["function"])
        if family == "StringExpr" and function == "StartsWith":
            leaf = self._leaf(inputs[0])
            prefix = None if leaf is None else self._literal(inputs[1], leaf, True)
            if leaf is None or str(leaf.dtype) != "String" or not isinstance(prefix, str):
                return None
            return _Filter(leaf.column.starts_with(prefix))
        if family != "Boolean":
            return None
        name, options = _named(function)
        if name == "Not":
            found = self.read(inputs[0])
            return _Filter(Not(found.expression)) if found is not None and found.exact else None
        leaf = self._operand(inputs[0])
        if leaf is None:
            return None
        if name in ("IsNull", "IsNotNull") and not _is_nested(leaf.dtype):
            return _Filter(leaf.column.is_null() if name == "IsNull" else leaf.column.is_not_null())
        if name in ("IsNan", "IsNotNan") and str(leaf.dtype).startswith("Float"):
            return _Filter(leaf.column.is_nan() if name == "IsNan" else Not(leaf.column.is_nan()))
        if name == "IsBetween":
            return self._between(leaf, inputs, options["closed"])
        return self._is_in(leaf, inputs[1], options["nulls_equal"]) if name == "IsIn" else None

    def _between(self, leaf: _Leaf, inputs: Any, closed: str) -> _Filter | None:
        low, high = (self._literal(node, leaf, False) for node in inputs[1:3])
        if low is None or high is None:
            return None
        above = leaf.column >= low if closed in ("Both", "Left") else leaf.column > low
        below = leaf.column <= high if closed in ("Both", "Right") else leaf.column < high
        return _Filter(AllOf((above, below)))

    def _is_in(self, leaf: _Leaf, node: Any, nulls_equal: bool) -> _Filter | None:
        lists = _evaluated(node)
        if len(lists) != 1 or not str(lists.dtype).startswith(("List", "Array")):
            return None
        has_null, series = lists[0].null_count() > 0, lists[0].drop_nulls()
        if len(series) and not _comparable(leaf.dtype, series.dtype, True):
            return None
        values = [_python(value, series.dtype) for value in _physical(series)]
        if not all(map(leaf.takes, values)):
            return None
        is_null = IsNull(leaf.column.path)
        # A null in the list changes nothing, unless nulls are equal.
        found = leaf.column.isin(values) if values else AllOf((Known(None), is_null))
        if nulls_equal:
            found = AnyOf((found, is_null)) if has_null else AllOf((found, Not(is_null)))
        return _Filter(found)

    # ---- columns and literals

    def _operand(self, node: Any) -> _Leaf | None:
        """A column that is compared directly, or cast to a type that holds all its values."""
        kind, inner = _named(node)
        if kind != "Cast":
            return self._leaf(node)
        leaf = self._leaf(inner["expr"])
        return None if leaf is None else _widened(leaf, _named(inner["dtype"])[1])

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
    def _literal(node: Any, leaf: _Leaf, equality: bool) -> Any:
        """The value that ``leaf`` is compared with. ``None`` where pyparq might compare otherwise than polars."""
        if not _is_constant(node):
            return None
        series = _evaluated(node)
        if len(series) != 1 or series.null_count() or not _comparable(leaf.dtype, series.dtype, equality):
            return None
        value = _python(_physical(series)[0], series.dtype)
        return value if leaf.takes(value) else None


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
    """The value of a literal in polars."""
    import polars as pl

    return pl.select(node.expression()).to_series()


def _truth(node: Any) -> Known:
    """A literal that is true, false or null. Raises :class:`ValueError` for every other node."""
    found = _evaluated(node).to_list() if _is_constant(node) else []
    if len(found) != 1 or not (found[0] is None or isinstance(found[0], bool)):
        raise ValueError("this is no truth value")
    return Known(found[0])


def _widened(leaf: _Leaf, target: Any) -> _Leaf | None:
    """The column, compared as another type that holds all its values. ``None`` where it may not hold one."""
    import polars as pl

    if leaf.dtype == pl.Date and target == {"Datetime": ["Microseconds", None]}:
        return _Leaf(leaf.column, pl.Datetime("us"))
    narrow = str(leaf.dtype)
    if target == "String" and narrow.startswith(("Categorical", "Enum")):
        return _Leaf(leaf.column, pl.String())
    if narrow not in _DIGITS or target not in _DIGITS:
        return None
    fits, floats = _DIGITS[narrow] <= _DIGITS[target], (narrow.startswith("F"), target.startswith("F"))
    if floats == (False, True):
        return _Leaf(leaf.column, getattr(pl, target)(), math.inf if fits else float(1 << _DIGITS[target]))
    loses_sign = target.startswith("U") and not narrow.startswith("U")
    return _Leaf(leaf.column, getattr(pl, target)()) if fits and floats[0] == floats[1] and not loses_sign else None


_DIGITS = {
    **{f"Int{bits}": bits - 1 for bits in (8, 16, 32, 64)}, **{f"UInt{bits}": bits for bits in (8, 16, 32, 64)},
    "Float16": 11, "Float32": 24, "Float64": 53,
}  # fmt: skip
"""How many binary digits of an integer the types hold."""


def _is_nested(dtype: Any) -> bool:
    return str(dtype).startswith(("List", "Array", "Struct"))


_ALIKE = ("Int", "UInt", "String", "Binary", "Boolean", "Float", "Date", "Time", "Duration")


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
    import polars as pl

    if str(series.dtype).startswith(("Datetime", "Time", "Duration")):
        return list(series.to_physical().to_list())
    if str(series.dtype).startswith(("Categorical", "Enum")):
        return list(series.cast(pl.String).to_list())
    return list(series.to_list())


def _python(value: Any, dtype: Any) -> Any:
    """A value of :func:`_physical` in the form that pyparq takes."""
    kind = str(dtype)
    if kind == "Float32":
        return np.float32(value)
    if kind.startswith("Datetime"):
        return Instant(value * UNIT_NS[dtype.time_unit], dtype.time_zone is not None)
    if kind == "Time":
        return np.timedelta64(value, "ns")
    return np.timedelta64(value, dtype.time_unit) if kind.startswith("Duration") else value
