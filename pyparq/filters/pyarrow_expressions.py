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
from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np

from pyparq.arrow.schema.ipc_read import HintError, HintSchema
from pyparq.errors import FilterError, ParquetError
from pyparq.filters import expression
from pyparq.filters.conditions import Attribute, Builder, Call, Condition, Literal, NoEqual
from pyparq.filters.expression import AllOf, AnyOf, ColumnRef, Compare, Expression, IsNan, IsNull, Known, Not, Value
from pyparq.filters.expression import Call as Function
from pyparq.filters.literal import FLOAT_TYPES
from pyparq.filters.value_array import is_null_literal
from pyparq.format.schema_tree import SchemaTree

_NAMES = {
    "and_kleene": "and", "or_kleene": "or", "invert": "not", "equal": "==", "not_equal": "!=", "less": "<",
    "less_equal": "<=", "greater": ">", "greater_equal": ">=", "add_checked": "+", "subtract_checked": "-",
    "multiply_checked": "*", "utf8_length": "length",
}  # fmt: skip
"""Of arithmetic the checked functions, which pyarrow's operators are: the others wrap."""
_TEXT = {"starts_with": "starts_with", "ends_with": "ends_with", "match_substring": "contains", "match_like": "like"}
_CUT_OFF = "pyarrow cuts quotients of integers off: write col(…) / …, which keeps the remainder"
_INSTEAD = {
    "match_substring_regex": "RE2 and Python differ: write col(…).matches(…)",
    "utf8_lower": "pyarrow and Python differ in some letters: write col(…).lower()",
    "utf8_upper": "pyarrow and Python differ in some letters: write col(…).upper()",
    "divide_checked": _CUT_OFF,
    "divide": _CUT_OFF,
    "cast": "columns are compared as they are: leave the cast out",
}


def as_expression(expression: Any, tree: SchemaTree) -> Expression:
    """The filter that is true, false and unknown where ``expression`` is. Raises :class:`FilterError` with the part
    that has no such filter."""
    try:
        condition = _tree(*_stored(expression))
        computes = isinstance(condition, Call) and condition.name in (*_ARITHMETIC, *_FUNCTIONS)
        if computes or (isinstance(condition, Literal) and not isinstance(condition.value, bool | None)):
            raise FilterError(f"the expression {expression} of pyarrow is no condition: compare it with a value")
        found = _Builder(tree).condition(condition)
    except ParquetError:
        raise
    except RecursionError:
        raise FilterError("the expression of pyarrow nests more than 200 computations or conditions") from None
    except (HintError, ValueError, IndexError, KeyError, AttributeError) as error:
        raise FilterError(f"the expression of pyarrow cannot be read: {error}; write it with col()") from None
    assert found is not None
    return found


def of_tuples(groups: Sequence[Sequence[tuple[Any, str, Any]]], tree: SchemaTree) -> Expression:
    """The filter that pyarrow makes of lists of tuples. pyarrow itself is not needed.

    Raises :class:`FilterError` for lists that only pyarrow can test: they hold NaN, values of
    several types, or a zero for a column of floats.
    """
    condition = _joined("or", tuple(_joined("and", tuple(_test(*test) for test in group)) for group in groups))
    found = _TupleBuilder(tree).condition(condition)
    assert found is not None
    return found


def _test(name: Any, operator: str, value: Any) -> Condition:
    column = Attribute(tuple(name) if isinstance(name, (list, tuple)) else name)
    if operator not in ("in", "not in"):
        return Call("==" if operator == "=" else operator, (column, Literal(value)))
    found = Call("is_in", (column, Literal({"value_set": value, "null_matching_behavior": _NULLS_MATCH})))
    return found if operator == "in" else Call("not", (found,))


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


def _tree(tokens: list[tuple[str, str]], literals: list[Any]) -> Condition:
    """The tokens as a tree. Options are the last argument of a call. Not recursive: a chain of conditions is as deep as
    it is long."""
    rest, calls = tokens[::-1], list[tuple[str, list[Condition], list[Condition]]]()
    while True:
        kind, name = rest.pop()
        found: Condition
        if kind == "call":
            calls.append((_NAMES.get(name, name), [], []))
            continue
        if kind == "options":
            calls[-1][2].append(Literal(literals[int(name)].as_py()))
            continue
        if kind == "field_ref":
            found = Attribute((name,))
        elif kind == "nested_field_ref":
            found = Attribute(tuple(rest.pop()[1] for _ in range(int(name))))
        elif kind == "literal":
            scalar = literals[int(name)]
            found = Literal(scalar.as_py() if str(scalar.type) in ("bool", "null") else scalar)
        elif kind == "end":
            function, arguments, options = calls.pop()
            found = _joined(function, (*arguments, *options))
        else:
            raise ValueError(f"{kind} is not known")
        if not calls:
            return found
        calls[-1][1].append(found)


def _joined(name: str, arguments: tuple[Condition, ...]) -> Call:
    """A call. Chains of AND and OR are kept flat."""
    if name in ("and", "or"):
        inner = (a.arguments if isinstance(a, Call) and a.name == name else (a,) for a in arguments)
        arguments = tuple(part for parts in inner for part in parts)
    return Call(name, arguments)


_ARITHMETIC = ("+", "-", "*", "negate_checked")
_FUNCTIONS = (*expression.PARTS, "length")
_NULLS_MATCH = 0
"""Of ``null_matching_behavior``: a null is found among nulls. What ``isin`` does unless it is told otherwise."""


class _Builder(Builder):
    """What pyarrow means."""

    def __init__(self, tree: SchemaTree) -> None:
        super().__init__({
            **{op: partial(self._comparison, op) for op in expression.OPERATORS},
            **{name: partial(self._text, name) for name in _TEXT}, "is_in": self._is_in, "is_null": self._is_null,
            "is_valid": lambda tested: Not(IsNull(self._column(tested))),
            "is_nan": lambda tested: IsNan(self._column(tested)),
        })  # fmt: skip
        self._tree = tree

    def without_equal(self, node: Condition, error: NoEqual, negate: bool) -> Expression | None:
        part = node if error.node is None else error.node
        name = part.name if isinstance(part, Call) else str(part)
        why = str(error) or _INSTEAD.get(name, "write it with col()")
        raise FilterError(f"{_shown(part)} of pyarrow cannot be translated: {why}") from None

    def constant(self, value: Any) -> Expression:
        if value is None or isinstance(value, bool):
            return Known(value)
        raise NoEqual("a condition must compare a column with a value")

    def truth(self, node: Condition) -> Expression:
        return Compare(self.value(node), "==", True)

    # ---- values

    def value(self, node: Condition) -> Any:
        """A column or what is computed from some; the value of a literal."""
        if isinstance(node, Literal):
            return node.value
        if isinstance(node, Attribute):
            return ColumnRef(node.path)
        if isinstance(node, Call) and node.name in _ARITHMETIC:
            left, right = (self.value(argument) for argument in (*node.arguments[:2], Literal(-1))[:2])
            self._refuse_floats(node.name, left, right)
            if _is_decimal(left) or _is_decimal(right):
                raise FilterError(f"{node.name} of decimals may be rounded in pyarrow: write it with col()")
            return expression.Arithmetic("*" if node.name == "negate_checked" else node.name, left, right, strict=True)
        if isinstance(node, Call) and node.name in _FUNCTIONS:
            return Function(node.name, self.value(node.arguments[0]), strict=node.name != "length")
        raise NoEqual("", node)

    def _column(self, node: Condition) -> ColumnRef:
        if not isinstance(node, Attribute):
            raise NoEqual("write it with col()")
        return ColumnRef(node.path)

    def _refuse_floats(self, what: str, *sides: Any) -> None:
        for side in sides:
            if isinstance(side, Value) and self._has_floats(side):
                raise FilterError(
                    f"{what} of {side!r} means something else for NaN in pyarrow: write it with col()",
                )

    def _has_floats(self, value: Value) -> bool:
        return any(self._kind(path) in FLOAT_TYPES for path in value._columns())

    def _kind(self, path: Any) -> str:
        node = self._tree.find(path)
        return node.type.kind if node.is_leaf else ""

    # ---- tests

    def _comparison(self, op: str, first: Condition, second: Condition) -> Expression:
        """In pyarrow NaN is neither equal to anything nor above it, and a comparison with null is null."""
        left, right = self.value(first), self.value(second)
        if not isinstance(left, Value):
            left, right, op = right, left, expression.OPERATORS[op].flipped
        if is_null_literal(left) or is_null_literal(right):
            return Known(None)
        if isinstance(right, bool) and (not isinstance(left, ColumnRef) or op not in ("==", "!=")):
            raise NoEqual("write it with col()")
        if isinstance(right, Value) or not isinstance(left, Value):
            self._refuse_floats(op, left, right)
            return Compare(left, op, right)
        if _is_nan(right):  # nothing equals NaN, and nothing is above or below it
            both = left == 0.0, left != 0.0
            return AnyOf(both) if op == "!=" else AllOf(both)
        if not isinstance(left, ColumnRef):
            return Compare(left, op, right)
        if self._has_floats(left) and _is_decimal(right):
            right = float(right if isinstance(right, Decimal) else right.as_py())
        found: Expression = Compare(left, op, right)
        if self._has_floats(left) and op in (">", ">="):
            return AllOf((found, Not(IsNan(left))))
        return found

    def _text(self, name: str, tested: Condition, given: Condition) -> Expression:
        options = given.value  # type: ignore[union-attr]
        if options.get("ignore_case"):
            raise FilterError(f"{name} with ignore_case of pyarrow cannot be translated: write col(…).ilike(…)")
        return expression.Matches(
            self.value(tested), _TEXT[name], options["pattern"], "\\" if name == "match_like" else ""
        )

    def _is_in(self, tested: Condition, given: Condition) -> Expression:
        """``null_matching_behavior``: a null is found among nulls, or it is nowhere, or the answer is null."""
        column, options = self._column(tested), given.value  # type: ignore[union-attr]
        values, nulls, kind = list(options["value_set"]), options["null_matching_behavior"], self._kind(column.path)
        if kind in FLOAT_TYPES:  # pyarrow rounds floats and decimals to the type of the column
            with np.errstate(over="ignore"):
                values = [FLOAT_TYPES[kind](v) if isinstance(v, (float, Decimal)) else v for v in values]
        known = [value for value in values if value is not None]
        if kind == "date" and any(isinstance(v, dt.datetime) and v.time() != dt.time() for v in known):
            raise FilterError("is_in of pyarrow cuts points in time to dates: give dates")
        if any(map(_is_nan, known)):
            raise FilterError("is_in of pyarrow with NaN cannot be translated: write col(…).is_nan()")
        if nulls == 3:
            return expression.IsIn(column, values)
        found = expression.IsIn(column, known)
        if nulls == 2:
            return AllOf((found, AnyOf((Known(None), Not(IsNull(column)))))) if not known else found
        present: Expression = AllOf((found, Not(IsNull(column))))
        return AnyOf((present, IsNull(column))) if nulls == 0 and None in values else present

    def _is_null(self, tested: Condition, given: Condition) -> Expression:
        column, options = self._column(tested), given.value  # type: ignore[union-attr]
        if options.get("nan_is_null") and self._kind(column.path) in FLOAT_TYPES:
            return AnyOf((IsNull(column), AllOf((Not(IsNull(column)), IsNan(column)))))
        return IsNull(column)


class _TupleBuilder(_Builder):
    """What pyarrow means by a list of tuples."""

    def _is_in(self, tested: Condition, given: Condition) -> Expression:
        values = given.value["value_set"]  # type: ignore[union-attr]
        if self._kind(self._column(tested).path) in FLOAT_TYPES and 0 in values:
            raise FilterError("a zero in a list is not equal to -0.0 in pyarrow, and equal to it elsewhere")
        if len({type(value) for value in values if value is not None}) > 1:
            raise FilterError("pyarrow makes one type of the values in a list: give values of one type")
        return super()._is_in(tested, given)


def _shown(node: Condition) -> str:
    if isinstance(node, Call):
        return f"{node.name}({', '.join(map(_shown, node.arguments))})"
    return repr(ColumnRef(node.path)) if isinstance(node, Attribute) else repr(getattr(node, "value", node))


def _is_nan(value: Any) -> bool:
    if hasattr(value, "as_py"):  # a scalar, whose other types may not have all their values in Python
        value = value.as_py() if str(value.type) in ("double", "float", "halffloat") else None
    return bool(value != value)


def _is_decimal(value: Any) -> bool:
    return isinstance(value, Decimal) or (hasattr(value, "as_py") and str(value.type).startswith("decimal"))
