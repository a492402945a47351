"""Converts expressions of ``pyarrow.compute`` to filters that mean the same.

pyarrow serializes an expression as an Arrow file: its structure stands in the metadata of the schema, its literals and
options are columns. NaN is not above any number in pyarrow, and a null is not in any list: both differ from
:func:`pyparq.col`, and the filters made here say so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from pyparq.arrow.schema.ipc_read import HintError, HintSchema
from pyparq.errors import FilterError
from pyparq.filters.expression import AllOf, AnyOf, Compare, Expression, IsIn, IsNan, IsNull, Known, Not, StartsWith
from pyparq.format.order import FLOAT_KINDS
from pyparq.format.schema_tree import SchemaTree

_COMPARISONS = {
    "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
}  # fmt: skip
_FLIPPED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_DEEPEST = 200


class _Call:
    """A call of one of pyarrow's functions."""

    def __init__(self, name: str, arguments: list[Any], options: dict[str, Any]) -> None:
        self.name, self.arguments, self.options = name, arguments, options


class _Field:
    def __init__(self, path: tuple[str, ...]) -> None:
        self.path = path


class _Literal:
    def __init__(self, value: Any) -> None:
        self.value = value


def as_expression(given: Any, tree: SchemaTree) -> Expression:
    """The filter that means what an expression of pyarrow's means on the columns of ``tree``.

    Raises :class:`FilterError`, which names the part that cannot be translated.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not isinstance(given, pc.Expression):
        raise FilterError(f"filters cannot be a {type(given).__name__} of pyarrow: give an expression, or tuples")
    try:
        buffer = given.__reduce__()[1][0]
        reader = pa.ipc.open_file(buffer)
        pairs = HintSchema(reader.schema.serialize().to_pybytes()).pairs()
        literals = [column[0] for column in reader.get_batch(0).columns]
    except (HintError, IndexError, TypeError, pa.ArrowException) as error:
        raise FilterError(f"the expression of pyarrow cannot be read: {error}") from None
    node = _parsed(deque(pairs), literals, 0)
    return _Translation(tree).condition(node)


def _parsed(pairs: deque[tuple[str, str]], literals: list[Any], depth: int) -> Any:
    kind, value = pairs.popleft()
    if depth > _DEEPEST:
        raise FilterError("the expression of pyarrow is nested too deeply")
    if kind == "field_ref":
        return _Field((value,))
    if kind == "nested_field_ref":
        return _Field(tuple(pairs.popleft()[1] for _ in range(int(value))))
    if kind == "literal":
        return _Literal(literals[int(value)].as_py())
    if kind != "call":
        raise FilterError(f"the expression of pyarrow has a part {kind!r} that is not known")
    arguments, options = list[Any](), dict[str, Any]()
    while pairs[0][0] != "end":
        if pairs[0][0] == "options":
            options = literals[int(pairs.popleft()[1])].as_py()
        else:
            arguments.append(_parsed(pairs, literals, depth + 1))
    pairs.popleft()
    return _Call(value, arguments, options)


class _Translation:
    """Translates conditions on the columns of a tree."""

    def __init__(self, tree: SchemaTree) -> None:
        self._tree = tree

    def condition(self, node: Any) -> Expression:
        if isinstance(node, _Literal) and isinstance(node.value, (bool, type(None))):
            return Known(node.value)
        if isinstance(node, _Field):
            return Compare(node.path, "==", True)
        if not isinstance(node, _Call):
            raise FilterError("the expression of pyarrow is no condition")
        if node.name in _COMPARISONS:
            return self._comparison(node)
        translate = _CALLS.get(node.name)
        if translate is None:
            raise FilterError(f"pyarrow's function {node.name!r} cannot be translated to a filter")
        return translate(self, node)

    def _comparison(self, node: _Call) -> Expression:
        left, right = node.arguments
        operator = _COMPARISONS[node.name]
        if isinstance(left, _Literal):
            left, right, operator = right, left, _FLIPPED[operator]
        if not isinstance(left, _Field) or not isinstance(right, _Literal):
            raise FilterError(f"pyarrow's {node.name!r} is translated for a column beside a value only")
        if right.value is None:
            return Known(None)
        if isinstance(right.value, float) and right.value != right.value:
            # In pyarrow nothing equals NaN, and nothing is above or below it: true or false, and unknown for a null.
            both = Compare(left.path, "==", 0.0), Compare(left.path, "!=", 0.0)
            return AnyOf(both) if operator == "!=" else AllOf(both)
        test = Compare(left.path, operator, right.value)
        return AllOf((test, Not(IsNan(left.path)))) if operator in (">", ">=") and self._is_float(left) else test

    def _is_float(self, field: _Field) -> bool:
        node = self._tree.find(field.path)
        return node.is_leaf and node.type.kind in FLOAT_KINDS

    def _all(self, node: _Call) -> Expression:
        return AllOf(tuple(self.condition(part) for part in node.arguments))

    def _any(self, node: _Call) -> Expression:
        return AnyOf(tuple(self.condition(part) for part in node.arguments))

    def _not(self, node: _Call) -> Expression:
        return Not(self.condition(node.arguments[0]))

    def _path(self, node: _Call) -> tuple[str, ...]:
        (field,) = node.arguments
        if not isinstance(field, _Field):
            raise FilterError(f"pyarrow's {node.name!r} is translated for a column only")
        return field.path

    def _is_in(self, node: _Call) -> Expression:
        path, values = self._path(node), node.options.get("value_set")
        if not isinstance(values, list) or any(value is None or value != value for value in values):
            raise FilterError("pyarrow's 'is_in' is translated for lists without nulls and NaN only")
        return AllOf((IsIn(path, values), Not(IsNull(path))))  # false, not unknown, for a null

    def _is_null(self, node: _Call) -> Expression:
        path = self._path(node)
        if node.options.get("nan_is_null") and self._is_float(node.arguments[0]):
            return AnyOf((IsNull(path), AllOf((IsNan(path), Not(IsNull(path))))))
        return IsNull(path)

    def _is_valid(self, node: _Call) -> Expression:
        return Not(IsNull(self._path(node)))

    def _is_nan(self, node: _Call) -> Expression:
        return IsNan(self._path(node))

    def _starts_with(self, node: _Call) -> Expression:
        if node.options.get("ignore_case"):
            raise FilterError("pyarrow's 'starts_with' is translated with the case of letters only")
        return StartsWith(self._path(node), node.options["pattern"])


_CALLS: dict[str, Callable[[_Translation, _Call], Expression]] = {
    "and_kleene": _Translation._all, "and": _Translation._all, "or_kleene": _Translation._any,
    "or": _Translation._any, "invert": _Translation._not, "is_in": _Translation._is_in,
    "is_null": _Translation._is_null, "is_valid": _Translation._is_valid, "is_nan": _Translation._is_nan,
    "starts_with": _Translation._starts_with,
}  # fmt: skip
