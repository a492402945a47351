"""pyarrow's list-of-tuples filters: ``[("a", "=", 1), ("b", ">", 2)]``, or lists of such lists for OR."""

from __future__ import annotations

from typing import Any

from pyparq.errors import FilterError
from pyparq.filters.expression import (
    AllOf,
    AnyOf,
    Compare,
    Expression,
    IsIn,
    Not,
    as_condition,
)

_OPS = {"=": "==", "==": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
OPERATORS = (*_OPS, "in", "not in")
_FORM = 'filters are an expression over col(...), or tuples [("column", "op", value), ...]'


def parse_filters(filters: Any) -> Expression | None:
    """Any value of a parameter ``filters`` as an expression. ``None`` stays ``None``.

    A flat list of tuples is their AND. A list of lists is the OR of each inner list's AND (pyarrow's disjunctive normal
    form). Operators: ``= == != < <= > >= in`` and ``not in``. The meaning is that of expressions: a null never passes
    ``not in``, ``!=`` or any other comparison. Raises :class:`FilterError` for anything else.
    """
    if filters is None:
        return None
    if isinstance(filters, Expression):
        return as_condition(filters)
    if isinstance(filters, tuple) and len(filters) == 3 and isinstance(filters[1], str):
        return _single(filters)
    if not isinstance(filters, (list, tuple)):
        raise FilterError(f"{_FORM}; not {_shown(filters)}")
    if not filters:
        raise FilterError(f"the list of filters is empty: leave filters out, or give None; {_FORM}")
    if all(isinstance(item, list) for item in filters):
        return _joined([_conjunction(item) for item in filters], AnyOf)
    return _conjunction(filters)


def _conjunction(items: Any) -> Expression:
    if not items:
        raise FilterError(f"filters contains an empty list; {_FORM}")
    return _joined([_single(item) for item in items], AllOf)


def _joined(children: list[Expression], join: type[AllOf] | type[AnyOf]) -> Expression:
    return children[0] if len(children) == 1 else join(tuple(children))


def _single(item: Any) -> Expression:
    if isinstance(item, Expression):
        return as_condition(item)
    if not isinstance(item, (tuple, list)) or len(item) != 3:
        raise FilterError(f"{_shown(item)} is not a (column, op, value) tuple; {_FORM}")
    name, op, value = item
    path = tuple(name) if isinstance(name, (tuple, list)) else name
    names = path if isinstance(path, tuple) else (path,)
    if not names or not all(isinstance(n, str) for n in names):
        raise FilterError(f"{_shown(name)} is not a column name; {_FORM}")
    if op in _OPS:
        return Compare(path, _OPS[op], value)
    if op == "in":
        return IsIn(path, value)
    if op == "not in":
        return Not(IsIn(path, value))
    raise FilterError(f"unknown filter operator {op!r}: use one of {' '.join(_OPS)} in, not in", column=str(name))


def _shown(value: object) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 80 else text[:77] + '...'}"
