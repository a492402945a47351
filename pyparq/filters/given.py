"""Filters in any form that a caller may give: expressions, tuples, SQL text, and expressions of pyarrow and polars."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyparq.errors import FilterError
from pyparq.filters.expression import Expression
from pyparq.filters.tuple_filters import parse_filters
from pyparq.format.schema_tree import SchemaTree
from pyparq.runtime.lazy_import import Later
from pyparq.runtime.messages import requirement

if TYPE_CHECKING:
    from pyparq.arrow.table import Table
    from pyparq.filters import polars_expressions, pyarrow_expressions
    from pyparq.filters.sql import where
else:  # few filters need them
    polars_expressions = Later("pyparq.filters.polars_expressions")
    pyarrow_expressions = Later("pyparq.filters.pyarrow_expressions")
    where = Later("pyparq.filters.sql.where")


def as_expression(
    filters: Any, tree: Callable[[], SchemaTree], table: Callable[[], Table] | None = None
) -> Expression | None:
    """Any value of a parameter ``filters`` as an expression. ``None`` stays ``None``.

    ``tree``: the columns, which SQL text and pyarrow's expressions are read for. ``table``: no rows of them, with the
    types that expressions of polars are read for. Raises :class:`FilterError` for what is no filter, or has a part that
    cannot be translated, and :class:`ColumnNotFoundError` for an unknown column of the first two.
    """
    if filters is None or isinstance(filters, (Expression, list, tuple)):
        return parse_filters(filters)
    if isinstance(filters, str):
        return _of_sql(filters, tree())
    library = type(filters).__module__.split(".")[0]
    if library == "pyarrow":
        return pyarrow_expressions.as_expression(filters, tree())
    if library == "polars" and table is not None:
        return polars_expressions.exact_filter(filters, table())
    return parse_filters(filters)


def _of_sql(text: str, tree: SchemaTree) -> Expression:
    try:
        return where.parse_where(text, tree)
    except ModuleNotFoundError as error:
        raise FilterError(
            f"filters as SQL text need {error.name}: pip install {requirement('cli', 'sqlglot')}"
        ) from None
