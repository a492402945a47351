"""Filters: the expressions that users write (``col``), their binding to a file (``bind``), and their evaluation."""

from __future__ import annotations

from pyparq.filters.bind import bind
from pyparq.filters.expression import ColumnRef, Expression, col
from pyparq.filters.given import parse_filters
from pyparq.filters.leaf_tests import Test
from pyparq.filters.predicate import And, Constant, Or, Predicate

__all__ = [
    "And",
    "ColumnRef",
    "Constant",
    "Expression",
    "Or",
    "Predicate",
    "Test",
    "bind",
    "col",
    "parse_filters",
]

DOOR = (
    "bind", "computed", "conditions", "coverings", "exact_numbers", "expression", "given", "leaf_binding",
    "leaf_tests", "literal", "polars_expressions", "predicate", "shown", "sql_text", "times", "value_array",
    "variants",
)  # fmt: skip
"""Modules of this package that other packages may use."""
