"""Filters: the expressions that users write (``col``), their binding to a file (``bind``), and their evaluation."""

from __future__ import annotations

from pyparq.filters.bind import bind
from pyparq.filters.expression import ColumnRef, Expression, col
from pyparq.filters.predicate import And, Constant, Or, Predicate, Test
from pyparq.filters.tuple_filters import parse_filters

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
    "bind",
    "bloom_hashes",
    "bounds_tests",
    "computed",
    "computed_bounds",
    "constant_folding",
    "coverings",
    "dataset_types",
    "dictionary_tests",
    "durations",
    "expression",
    "geospatial_tests",
    "given",
    "literal",
    "polars_expressions",
    "predicate",
    "row_tests",
    "shown_values",
    "sql.intervals",
    "sql.literals",
    "sql.where",
    "temporal",
    "tuple_filters",
    "value_array",
    "value_expressions",
    "variant_paths",
)
"""Modules of this package that other packages may use."""
