"""Converts polars' expressions to filters of pyparq: as much as means the same, or lets through more rows.

The types in polars' expressions are resolved: a literal has the type of its column, or a cast stands around the column.
The expression is read from its serialized form. Unknown parts are left out where polars filters again anyway.
"""

from __future__ import annotations

import io
import math
import struct
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pyparq.arrow.table import Table
from pyparq.arrow.to_polars import unknown_to_polars
from pyparq.errors import FilterError
from pyparq.filters import expression
from pyparq.filters.conditions import Attribute, Builder, Call, Condition, Literal, NoEqual, Other
from pyparq.filters.expression import OPERATORS, AllOf, AnyOf, ColumnRef, Compare, Expression, IsNull, Known, Not
from pyparq.filters.times import UNIT_NS, Instant

if TYPE_CHECKING:
    import polars

LARGEST = 4 << 20
"""Serialized expressions above this size in bytes are not read. They hold a long list of values."""
_MOST_SHOWN = 300


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
        return _Builder(schema, exact=False).condition(_tree(read_nodes(data))) if len(data) <= LARGEST else None
    except (Exception, pl.exceptions.PanicException):  # polars cannot serialize it (a Python function, say)
        return None


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
    try:
        found = _Builder(empty.schema, exact=True).condition(_tree(whole))
    except RecursionError:
        raise FilterError("the polars expression nests more levels deep than can be read") from None
    assert found is not None
    return found


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


def _shown(part: Any) -> str:
    text = str(part.expression() if isinstance(part, Node) else part)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


# ---- nodes as a tree. Constants stay nodes: they are read beside their column.

_JOINS = {"And": "and", "LogicalAnd": "and", "Or": "or", "LogicalOr": "or"}
_REMAINDER = "Modulus"
_COMPARE = {"Eq": "==", "NotEq": "!=", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_BOOLEAN = {"Not": "not", "IsNull": "is_null", "IsNan": "is_nan", "IsBetween": "between", "IsIn": "in"}


def _tree(node: Any) -> Condition:
    kind, inner = _named(node)
    try:
        if kind == "BinaryExpr":
            return _binary(node, inner)
        if kind == "Function":
            return _function(node, inner)
        if kind == "Ternary":
            parts = (_tree(inner["predicate"]), Literal(inner["truthy"]), Literal(inner["falsy"]))
            return Call("when", parts, node)
        if kind == "Alias":
            return _tree(inner[0])
        if kind == "Column":
            return Attribute((inner,))
        if _is_constant(node):
            return Literal(node)
        if kind == "Cast":
            return Call("cast", (_tree(inner["expr"]), Literal(_named(inner["dtype"])[1])), node)
    except (KeyError, TypeError, ValueError, AttributeError):
        pass
    return Other("", source=node)


def _binary(node: Any, inner: Any) -> Condition:
    op = inner["op"]
    if op in _JOINS:
        return Call(_JOINS[op], tuple(map(_tree, _operands(node, _JOINS[op]))), node)
    sides = _tree(inner["left"]), _tree(inner["right"])
    if op == _REMAINDER:
        return Call("%", sides, node)
    if not op.endswith("Validity"):
        return Call(_COMPARE[op], sides, node)
    same = Call("<=>", sides, node)
    return {"Eq": same, "NotEq": Call("not", (same,), node)}[op.removesuffix("Validity")]


def _operands(node: Any, join: str) -> list[Any]:
    """The conditions that a chain of ``&`` or ``|`` joins, however polars nests them."""
    waiting, found = [node], list[Any]()
    while waiting:
        part = waiting.pop()
        kind, inner = _named(part)
        if kind == "BinaryExpr" and _JOINS.get(inner["op"]) == join:
            waiting += [inner["right"], inner["left"]]
        else:
            found.append(part)
    return found


def _function(node: Any, inner: Any) -> Condition:
    inputs, (family, function) = inner["input"], _named(inner["function"])
    if family == "StringExpr" and function == "StartsWith":
        return Call("starts_with", (_tree(inputs[0]), _tree(inputs[1])), node)
    name, options = _named(function)
    if family == "StructExpr" and name == "FieldByName":
        outer = _tree(inputs[0])
        return Attribute((*outer.path, options)) if isinstance(outer, Attribute) else Other("", source=node)
    if family != "Boolean":
        return Other("", source=node)
    if name in ("IsNotNull", "IsNotNan"):
        return Call("not", (Call(_BOOLEAN[name.replace("Not", "")], (_tree(inputs[0]),), node),), node)
    given = [_tree(part) for part in inputs]
    if name == "IsIn":
        given = [given[0], Literal(inputs[1]), Literal(options["nulls_equal"])]
    elif name == "IsBetween":
        given.append(Literal(options["closed"]))
    return Call(_BOOLEAN[name], tuple(given), node)


class _Builder(Builder):
    """What polars means. ``exact``: every part has to have an equal."""

    def __init__(self, schema: polars.Schema, exact: bool) -> None:
        super().__init__({
            **{op: partial(self._comparison, op) for op in OPERATORS}, "<=>": self._same, "when": self._when,
            "starts_with": self._starts_with, "is_null": self._is_null, "is_nan": self._is_nan,
            "between": self._between, "in": self._is_in,
        })  # fmt: skip
        self._schema = schema
        self._exact = exact

    def without_equal(self, node: Condition, error: NoEqual, negate: bool) -> Expression | None:
        if not self._exact:
            return None
        source = getattr(node, "source", None)
        raise FilterError(
            f"the polars expression cannot be translated: {_shown(node if source is None else source)}; write the "
            "filter with pyparq.col()"
        ) from None

    def test(self, node: Condition) -> Expression:
        try:
            return super().test(node)
        except (FilterError, KeyError, TypeError, ValueError, AttributeError, OverflowError, StopIteration):
            raise NoEqual("") from None

    def constant(self, value: Any) -> Expression:
        return _truth(value)

    def truth(self, node: Condition) -> Expression:
        leaf = self._leaf(node)
        if str(leaf.dtype) != "Boolean":
            raise NoEqual("")
        return Compare(leaf.column, "==", True)

    # ---- tests

    def _comparison(self, op: str, left: Condition, right: Condition) -> Expression:
        if isinstance(left, Literal):
            left, right, op = right, left, OPERATORS[op].flipped
        if isinstance(left, Call) and left.name == "%":
            return self._of_remainder(op, left.arguments, right)
        leaf = self._leaf(left)
        return Compare(leaf.column, op, _literal(right, leaf, op in ("==", "!=")))

    def _of_remainder(self, op: str, operands: tuple[Condition, ...], right: Condition) -> Expression:
        """``column % literal``, of integers. polars gives it the sign of the divisor, too."""
        leaf = self._leaf(operands[0])
        divisor, value = (_literal(part, leaf, True) for part in (operands[1], right))
        if type(divisor) is not int or type(value) is not int or not divisor:
            raise NoEqual("")
        return Compare(expression.Arithmetic("%", leaf.column, divisor), op, value)

    def _same(self, left: Condition, right: Condition) -> Expression:
        """``eq_missing``, which is never unknown."""
        test = self._comparison("==", left, right)
        assert isinstance(test, Compare)
        return AllOf((test, Not(IsNull(test.value))))

    def _when(self, test: Condition, then: Condition, otherwise: Condition) -> Expression:
        """``when(x.is_not_null()).then(…).otherwise(…)`` of truth values, which polars makes of some comparisons."""
        found = self.condition(test)
        if not isinstance(getattr(found, "child", found), IsNull):
            raise NoEqual("")  # other tests may be unknown
        assert found is not None
        first, second = (_truth(part.value) for part in (then, otherwise))  # type: ignore[union-attr]
        return AnyOf((AllOf((found, first)), AllOf((Not(found), second))))

    def _starts_with(self, tested: Condition, prefix: Condition) -> Expression:
        leaf = self._leaf(tested)
        if str(leaf.dtype) != "String":
            raise NoEqual("")
        return leaf.column.starts_with(_literal(prefix, leaf, True))

    def _is_null(self, tested: Condition) -> Expression:
        leaf = self._leaf(tested)
        if str(leaf.dtype).startswith(("List", "Array", "Struct")):
            raise NoEqual("")
        return leaf.column.is_null()

    def _is_nan(self, tested: Condition) -> Expression:
        leaf = self._leaf(tested)
        if not str(leaf.dtype).startswith("Float"):
            raise NoEqual("")
        return leaf.column.is_nan()

    def _between(self, tested: Condition, low: Condition, high: Condition, closed: Condition) -> Expression:
        ends, leaf = closed.value, self._leaf(tested)  # type: ignore[union-attr]
        above = ">=" if ends in ("Both", "Left") else ">"
        below = "<=" if ends in ("Both", "Right") else "<"
        return AllOf((Compare(leaf.column, above, _literal(low, leaf, False)),
                      Compare(leaf.column, below, _literal(high, leaf, False))))  # fmt: skip

    def _is_in(self, tested: Condition, given: Condition, equal: Condition) -> Expression:
        leaf, nulls_equal = self._leaf(tested), equal.value  # type: ignore[union-attr]
        lists = _evaluated(given.value)  # type: ignore[union-attr]
        if len(lists) != 1 or not str(lists.dtype).startswith(("List", "Array")):
            raise NoEqual("")
        has_null, series = lists[0].null_count() > 0, lists[0].drop_nulls()
        if len(series) and not _comparable(leaf.dtype, series.dtype, True):
            raise NoEqual("")
        values = [_python(value, series.dtype) for value in _physical(series)]
        if not all(map(leaf.takes, values)):
            raise NoEqual("")
        is_null = IsNull(leaf.column)
        # A null in the list changes nothing, unless nulls are equal.
        found = leaf.column.isin(values) if values else AllOf((Known(None), is_null))
        if nulls_equal:
            found = AnyOf((found, is_null)) if has_null else AllOf((found, Not(is_null)))
        return found

    def _leaf(self, node: Condition) -> _Leaf:
        """A column that is compared directly, or cast to a type that holds all its values."""
        if isinstance(node, Call) and node.name == "cast":
            inner, target = node.arguments
            return _widened(self._leaf(inner), target.value)  # type: ignore[union-attr]
        if not isinstance(node, Attribute):
            raise NoEqual("")
        dtype = self._schema[node.path[0]]
        for name in node.path[1:]:
            dtype = next(field.dtype for field in dtype.fields if field.name == name)
        return _Leaf(ColumnRef(node.path), dtype)


# ---- literals


def _literal(node: Condition, leaf: _Leaf, equality: bool) -> Any:
    """The value that ``leaf`` is compared with. Raises :class:`NoEqual` where pyparq might compare otherwise than
    polars."""
    series = _evaluated(node.value) if isinstance(node, Literal) else []
    if len(series) != 1 or series.null_count() or not _comparable(leaf.dtype, series.dtype, equality):  # type: ignore[union-attr]
        raise NoEqual("")
    value = _python(_physical(series)[0], series.dtype)  # type: ignore[union-attr]
    if not leaf.takes(value):
        raise NoEqual("")
    return value


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


def _widened(leaf: _Leaf, target: Any) -> _Leaf:
    """The column, compared as another type that holds all its values."""
    import polars as pl

    if leaf.dtype == pl.Date and target == {"Datetime": ["Microseconds", None]}:
        return _Leaf(leaf.column, pl.Datetime("us"))
    narrow = str(leaf.dtype)
    if target == "String" and narrow.startswith(("Categorical", "Enum")):
        return _Leaf(leaf.column, pl.String())
    fits, floats = _DIGITS[narrow] <= _DIGITS[target], (narrow.startswith("F"), target.startswith("F"))
    if floats == (False, True):
        return _Leaf(leaf.column, getattr(pl, target)(), math.inf if fits else float(1 << _DIGITS[target]))
    loses_sign = target.startswith("U") and not narrow.startswith("U")
    if not fits or floats[0] != floats[1] or loses_sign:
        raise NoEqual("")
    return _Leaf(leaf.column, getattr(pl, target)())


_DIGITS = {
    **{f"Int{bits}": bits - 1 for bits in (8, 16, 32, 64)}, **{f"UInt{bits}": bits for bits in (8, 16, 32, 64)},
    "Float16": 11, "Float32": 24, "Float64": 53,
}  # fmt: skip
"""How many binary digits of an integer the types hold."""

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


# ---- the form in which polars (from 1.31 on) serializes an expression: MessagePack. Its numbers are exact. In JSON,
# polars writes no NaN, and reads its own floats up to one digit off.

_NUMBERS = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i",
    0xD3: ">q",
}  # fmt: skip
_BYTES, _TEXT, _ARRAY, _MAP = "bytes", "text", "array", "map"
_SIZED = {
    0xC4: (_BYTES, 1), 0xC5: (_BYTES, 2), 0xC6: (_BYTES, 4), 0xD9: (_TEXT, 1), 0xDA: (_TEXT, 2), 0xDB: (_TEXT, 4),
    0xDC: (_ARRAY, 2), 0xDD: (_ARRAY, 4), 0xDE: (_MAP, 2), 0xDF: (_MAP, 4),
}  # fmt: skip
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


class Node(dict[str, Any]):
    """A part of an expression by the names of its parts."""

    __slots__ = ("_data", "_end", "_start")

    def __init__(self, items: list[Any], data: bytes, start: int, end: int) -> None:
        super().__init__(zip(items[::2], items[1::2], strict=True))
        self._data, self._start, self._end = data, start, end

    def expression(self) -> polars.Expr:
        """The part as an expression of polars. Raises polars' error for a part that is none."""
        import polars as pl

        return pl.Expr.deserialize(io.BytesIO(self._data[self._start : self._end]))


def read_nodes(data: bytes) -> Any:
    """The expression as nodes, lists and values. Raises :class:`ValueError` for another form (that of an older polars,
    say)."""
    try:
        return _read(data)
    except (IndexError, struct.error, UnicodeDecodeError, TypeError) as error:
        raise ValueError(f"its form is not that of polars 1.31 and later: {error}") from None


def _read(data: bytes) -> Any:
    # Not recursive: a chain of conditions is as deep as it is long.
    at = 0
    unfinished: list[tuple[list[Any], int, int]] = [([], 1, -1)]  # items, how many, where a map starts
    while True:
        items, count, start = unfinished[-1]
        if len(items) == count:
            unfinished.pop()
            if not unfinished:
                return items[0]
            unfinished[-1][0].append(items if start < 0 else Node(items, data, start, at))
            continue
        tag, start = data[at], at
        kind, size, at = _header(data, tag, at + 1)
        if kind in (_ARRAY, _MAP):
            unfinished.append(([], size, -1) if kind == _ARRAY else ([], 2 * size, start))
        elif kind in (_TEXT, _BYTES):
            raw = data[at : at + size]
            items.append(raw.decode() if kind == _TEXT else raw)
            at += size
        else:
            items.append(_number(data, tag, at))
            at += size


def _header(data: bytes, tag: int, at: int) -> tuple[str, int, int]:
    """What stands there, of which size, and where it begins."""
    if tag in _SIZED:
        kind, width = _SIZED[tag]
        return kind, int.from_bytes(data[at : at + width], "big"), at + width
    if 0x80 <= tag < 0xC0:
        if tag < 0xA0:
            return _MAP if tag < 0x90 else _ARRAY, tag & 15, at
        return _TEXT, tag & 31, at
    return "", struct.calcsize(_NUMBERS[tag]) if tag in _NUMBERS else 0, at


def _number(data: bytes, tag: int, at: int) -> Any:
    if tag in _NUMBERS:
        return struct.unpack_from(_NUMBERS[tag], data, at)[0]
    if tag in _CONSTANTS:
        return _CONSTANTS[tag]
    if 0x80 <= tag < 0xE0:
        raise ValueError(f"its form is not that of polars 1.31 and later: byte {tag:#x}")
    return tag if tag < 0x80 else tag - 256
