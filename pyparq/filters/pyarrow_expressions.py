"""Converts expressions of ``pyarrow.compute`` to filters of pyparq: what means the same, and nothing else.

pyarrow shows no structure of its expressions. ``str()`` of one is ambiguous, and its Substrait form needs the schema
and leaves functions out. So they are read from the form in which pyarrow pickles them: an Arrow file. The metadata of
its schema lists calls, columns and literals in order, and its columns hold the literals with their types. A form that
is not understood is refused, so a new version of pyarrow cannot change what a filter means.

NaN is not above any number in pyarrow, and a null is not in any list: both differ from :func:`pyparq.col`, and the
filters made here say so.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from pyparq.arrow.schema.ipc_read import HintError, HintSchema
from pyparq.errors import FilterError, ParquetError
from pyparq.filters.expression import (
    AllOf,
    AnyOf,
    Arithmetic,
    Call,
    ColumnRef,
    Compare,
    Expression,
    IsIn,
    IsNan,
    IsNull,
    Known,
    Literal,
    Matches,
    Not,
    Value,
    as_condition,
)
from pyparq.filters.literal import FLOAT_TYPES
from pyparq.filters.value_array import is_null_literal
from pyparq.format.order import FLOAT_KINDS
from pyparq.format.schema_tree import SchemaTree

_COMPARE = {
    "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
}  # fmt: skip
_ARITHMETIC = {"add_checked": "+", "subtract_checked": "-", "multiply_checked": "*"}
"""The checked ones, which pyarrow's operators are: the others wrap."""
_PARTS = ("year", "quarter", "month", "day", "hour", "minute", "second")
_TEXT = {"starts_with": "starts_with", "ends_with": "ends_with", "match_substring": "contains", "match_like": "like"}
_INSTEAD = {
    "match_substring_regex": "RE2 and Python differ: write col(…).matches(…)",
    "utf8_lower": "pyarrow and Python differ in some letters: write col(…).lower()",
    "utf8_upper": "pyarrow and Python differ in some letters: write col(…).upper()",
    "divide_checked": "pyarrow cuts quotients of integers off: write col(…) / …, which keeps the remainder",
    "divide": "pyarrow cuts quotients of integers off: write col(…) / …, which keeps the remainder",
    "cast": "columns are compared as they are: leave the cast out",
}


def as_expression(expression: Any, tree: SchemaTree) -> Expression:
    """The filter that is true, false and unknown where ``expression`` is. Raises :class:`FilterError` with the part
    that has no such filter."""
    try:
        reader = _Reader(*_stored(expression), tree)
        found = reader.read()
    except ParquetError:
        raise
    except (HintError, ValueError, IndexError, KeyError, AttributeError) as error:
        raise FilterError(f"the expression of pyarrow cannot be read: {error}; write it with col()") from None
    if not isinstance(found, ColumnRef) and isinstance(found, Value):
        raise FilterError(f"the expression {expression} of pyarrow is no condition: compare it with a value")
    return as_condition(found)


def _stored(expression: Any) -> tuple[list[tuple[str, str]], list[Any]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not isinstance(expression, pc.Expression):
        raise FilterError(f"filters cannot be a {type(expression).__name__} of pyarrow: give an expression, or tuples")
    _, (data,) = expression.__reduce__()[:2]
    file = pa.ipc.open_file(data)
    # pyarrow's own dict of the metadata drops repeated keys.
    pairs = HintSchema(file.schema.serialize().to_pybytes()).pairs()
    tokens = [(kind.decode(), name.decode()) for kind, name in pairs]
    return tokens, [column[0] for column in file.get_batch(0).columns]


class _Call(NamedTuple):
    """A call, and its arguments as far as they are read."""

    name: str
    arguments: list[Expression]
    options: dict[str, Any]


class _Reader:
    """Reads the tokens from the front."""

    def __init__(self, tokens: list[tuple[str, str]], literals: list[Any], tree: SchemaTree) -> None:
        self.rest = tokens[::-1]
        self._literals = literals
        self._tree = tree

    def read(self) -> Expression:
        # Not recursive: a chain of conditions is as deep as it is long.
        calls: list[_Call] = []
        while True:
            found = self._next(calls)
            if found is None:
                continue
            if not calls:
                return found
            calls[-1].arguments.append(found)

    def _next(self, calls: list[_Call]) -> Expression | None:
        """The value of the next token. ``None`` if there is more to read of the innermost call."""
        kind, name = self.rest.pop()
        if kind == "field_ref":
            return ColumnRef((name,))
        if kind == "nested_field_ref":
            return ColumnRef(tuple(self.rest.pop()[1] for _ in range(int(name))))
        if kind == "literal":
            return _literal(self._literals[int(name)])
        if kind == "end":
            return self._call(*calls.pop())
        if kind == "call":
            calls.append(_Call(name, [], {}))
        elif kind == "options":
            calls[-1].options.update(self._literals[int(name)].as_py())
        else:
            raise ValueError(f"{kind} is not known")
        return None

    def _call(self, name: str, arguments: list[Any], options: dict[str, Any]) -> Expression:
        if name in ("and_kleene", "or_kleene"):
            left, right = map(as_condition, arguments)
            return left & right if name == "and_kleene" else left | right
        if name == "invert":
            return Not(as_condition(arguments[0]))
        if name in _COMPARE:
            return self._comparison(_COMPARE[name], *arguments)
        if name in _ARITHMETIC or name == "negate_checked":
            left, right = arguments if name in _ARITHMETIC else (arguments[0], Literal(-1))
            self._refuse_floats(name, left, right)
            if any(isinstance(side, Literal) and _is_decimal(side.value) for side in (left, right)):
                raise FilterError(f"{name} of decimals may be rounded in pyarrow: write it with col()")
            return Arithmetic(_ARITHMETIC.get(name, "*"), left, right, strict=True)
        if name in _PARTS:
            return Call(name, arguments[0], strict=True)
        if name == "utf8_length":
            return Call("length", arguments[0])
        if name in _TEXT:
            return _text_test(name, arguments[0], options)
        maker = _OF_COLUMN.get(name)
        if maker is not None and isinstance(arguments[0], ColumnRef):
            return maker(arguments[0], options, self._kind(arguments[0].path))
        why = _INSTEAD.get(name, "write it with col()")
        raise FilterError(f"{name}({', '.join(map(repr, arguments))}) of pyarrow cannot be translated: {why}")

    def _comparison(self, op: str, left: Any, right: Any) -> Expression:
        """In pyarrow NaN is neither equal to anything nor above it, and a comparison with null is null."""
        if isinstance(left, Known) or isinstance(right, Known):
            return self._with_truth(op, left, right)
        for side in (left, right):
            if isinstance(side, Literal) and is_null_literal(side.value):
                return Known(None)
        if isinstance(left, Literal) and not isinstance(right, Literal):
            left, right, op = right, left, _FLIPPED[op]
        if not isinstance(right, Literal):
            self._refuse_floats(op, left, right)
            return Compare(left, op, right)
        if _is_nan(right.value):  # nothing equals NaN, and nothing is above or below it
            both = left == 0.0, left != 0.0
            return AnyOf(both) if op == "!=" else AllOf(both)
        if not isinstance(left, ColumnRef):
            return Compare(left, op, right.value)
        if self._has_floats(left) and _is_decimal(right.value):
            right = Literal(float(right.value.as_py()))
        found: Expression = Compare(left.path, op, right.value)
        if self._has_floats(left) and op in (">", ">="):
            return AllOf((found, Not(IsNan(left.path))))
        return found

    def _with_truth(self, op: str, left: Any, right: Any) -> Expression:
        """``flag == true``: literals that are conditions are read as such."""
        column, literal = (left, right) if isinstance(right, Known) else (right, left)
        if literal.value is None:
            return Known(None)
        if isinstance(column, ColumnRef) and op in ("==", "!="):
            return Compare(column.path, op, literal.value)
        raise FilterError(f"{column!r} {op} {literal!r} of pyarrow cannot be translated: write it with col()")

    def _refuse_floats(self, what: str, *sides: Any) -> None:
        for side in sides:
            if isinstance(side, Value) and self._has_floats(side):
                raise FilterError(
                    f"{what} of {side!r} means something else for NaN in pyarrow: write it with col()",
                )

    def _has_floats(self, value: Value) -> bool:
        return any(self._kind(path) in FLOAT_KINDS for path in value._columns())

    def _kind(self, path: Any) -> str:
        node = self._tree.find(path)
        return node.type.kind if node.is_leaf else ""


_FLIPPED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _literal(scalar: Any) -> Expression:
    value = scalar.as_py() if str(scalar.type) in ("bool", "null") else scalar
    if value is None or isinstance(value, bool):
        return Known(value)
    return Literal(value)


def _is_nan(value: Any) -> bool:
    if hasattr(value, "as_py"):  # a scalar, whose other types may not have all their values in Python
        value = value.as_py() if str(value.type) in ("double", "float", "halffloat") else None
    return bool(value != value)


def _text_test(name: str, value: Any, options: dict[str, Any]) -> Expression:
    if options.get("ignore_case"):
        raise FilterError(f"{name} with ignore_case of pyarrow cannot be translated: write col(…).ilike(…)")
    pattern = options["pattern"]
    return Matches(value, _TEXT[name], pattern, "\\" if name == "match_like" else "")


def _is_decimal(value: Any) -> bool:
    return hasattr(value, "as_py") and str(value.type).startswith("decimal")


def _is_in(column: ColumnRef, options: dict[str, Any], kind: str) -> Expression:
    """``null_matching_behavior``: a null is found among nulls, or it is nowhere, or the answer is null."""
    values, nulls = list(options["value_set"]), options["null_matching_behavior"]
    if kind in FLOAT_TYPES:  # pyarrow rounds floats and decimals to the type of the column
        with np.errstate(over="ignore"):
            values = [FLOAT_TYPES[kind](v) if isinstance(v, (float, Decimal)) else v for v in values]
    known = [value for value in values if value is not None]
    if kind == "date" and any(isinstance(v, dt.datetime) and v.time() != dt.time() for v in known):
        raise FilterError("is_in of pyarrow cuts points in time to dates: give dates")
    if any(map(_is_nan, known)):
        raise FilterError("is_in of pyarrow with NaN cannot be translated: write col(…).is_nan()")
    if nulls == 3:
        return IsIn(column.path, values)
    found = IsIn(column.path, known)
    if nulls == 2:
        return AllOf((found, AnyOf((Known(None), Not(IsNull(column.path)))))) if not known else found
    there: Expression = AllOf((found, Not(IsNull(column.path))))
    return AnyOf((there, IsNull(column.path))) if nulls == 0 and None in values else there


def _is_null(column: ColumnRef, options: dict[str, Any], kind: str) -> Expression:
    if options.get("nan_is_null") and kind in FLOAT_KINDS:
        return AnyOf((IsNull(column.path), AllOf((Not(IsNull(column.path)), IsNan(column.path)))))
    return IsNull(column.path)


_OF_COLUMN: dict[str, Callable[[ColumnRef, dict[str, Any], str], Expression]] = {
    "is_in": _is_in, "is_null": _is_null, "is_valid": lambda column, *_: Not(IsNull(column.path)),
    "is_nan": lambda column, *_: IsNan(column.path),
}  # fmt: skip
