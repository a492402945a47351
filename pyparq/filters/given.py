"""Filters in any form that a caller may give: expressions, tuples, SQL text, and expressions of pyarrow and polars.

pyarrow's tuples are ``[("a", "=", 1), ("b", ">", 2)]``, or lists of such lists for OR.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyparq.errors import FilterError, near
from pyparq.filters import polars_expressions, pyarrow_expressions, sql_text
from pyparq.filters.expression import OPERATORS, AllOf, AnyOf, ColumnRef, Compare, Expression, IsIn, Not, joined
from pyparq.format.schema_tree import SchemaTree
from pyparq.runtime.messages import requirement

if TYPE_CHECKING:
    from pyparq.arrow.table import Table

TUPLE_OPERATORS = ("=", *OPERATORS, "in", "not in")
_FORM = 'filters are an expression over col(...), or tuples [("column", "op", value), ...]'


@dataclass(frozen=True, slots=True)
class ArrowTuples:
    """Lists of tuples with the meaning that they have in ``pyarrow.parquet``: the OR of each list's AND. In
    :func:`pyparq.read_table` a bare list has pyparq's meaning."""

    groups: Sequence[Sequence[tuple[Any, str, Any]]]


def as_expression(
    filters: Any, tree: Callable[[], SchemaTree], table: Callable[[], Table] | None = None
) -> Expression | None:
    """Any value of a parameter ``filters`` as an expression. ``None`` stays ``None``.

    ``tree``: the columns, which SQL text and pyarrow's expressions are read for. ``table``: no rows of them, with the
    types that expressions of polars are read for. Raises :class:`FilterError` for what is no filter, or has a part that
    cannot be translated, and :class:`ColumnNotFoundError` for an unknown column of the first two.
    """
    if isinstance(filters, Expression):
        return filters._condition()
    if isinstance(filters, ArrowTuples):
        return pyarrow_expressions.of_tuples(filters.groups, tree())
    if isinstance(filters, str):
        try:
            return sql_text.parse_where(filters, tree())
        except ModuleNotFoundError as error:
            raise FilterError(
                f"filters as SQL text need {error.name}: pip install {requirement('cli', 'sqlglot')}"
            ) from None
    library = type(filters).__module__.split(".")[0]
    if library == "pyarrow":
        return pyarrow_expressions.as_expression(filters, tree())
    if library == "polars" and table is not None:
        return polars_expressions.exact_filter(filters, table())
    return parse_filters(filters)


def parse_filters(filters: Any) -> Expression | None:
    """An expression, or tuples, as an expression. ``None`` stays ``None``.

    A flat list of tuples is their AND. A list of lists is the OR of each inner list's AND (pyarrow's disjunctive normal
    form). Operators: ``= == != < <= > >= in`` and ``not in``. The meaning is that of expressions: a null never passes
    ``not in``, ``!=`` or any other comparison. Raises :class:`FilterError` for anything else.
    """
    if filters is None:
        return None
    if isinstance(filters, Expression):
        return filters._condition()
    if isinstance(filters, tuple) and len(filters) == 3 and isinstance(filters[1], str):
        return _single(filters)
    if not isinstance(filters, (list, tuple)):
        raise FilterError(f"{_FORM}; not {_shown(filters)}")
    if not filters:
        raise FilterError(f"the list of filters is empty: leave filters out, or give None; {_FORM}")
    if all(isinstance(item, list) for item in filters):
        return joined([_conjunction(item) for item in filters], AnyOf)
    return _conjunction(filters)


def _conjunction(items: Any) -> Expression:
    if not items:
        raise FilterError(f"filters contains an empty list; {_FORM}")
    return joined([_single(item) for item in items], AllOf)


def _single(item: Any) -> Expression:
    if isinstance(item, Expression):
        return item._condition()
    if not isinstance(item, (tuple, list)) or len(item) != 3:
        raise FilterError(f"{_shown(item)} is not a (column, op, value) tuple; {_FORM}")
    name, op, value = item
    path = tuple(name) if isinstance(name, (tuple, list)) else name
    names = path if isinstance(path, tuple) else (path,)
    if not names or not all(isinstance(n, str) for n in names):
        raise FilterError(f"{_shown(name)} is not a column name; {_FORM}")
    if op not in TUPLE_OPERATORS:
        own = near(str(op).replace(" ", "_"), [n for n in dir(ColumnRef) if n[0] != "_"], 0.8)
        more = f"; or pyparq.col({names[0]!r}).{own[0]}()" if own else ""
        raise FilterError(f"unknown operator {op!r}: use one of {', '.join(TUPLE_OPERATORS)}{more}", column=str(name))
    if op in ("in", "not in"):
        return IsIn(path, value) if op == "in" else Not(IsIn(path, value))
    return Compare(path, "==" if op == "=" else op, value)


def _shown(value: object) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 80 else text[:77] + '...'}"
