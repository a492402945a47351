"""Filters: the expressions that users write (``col``), their binding to a file (``bind``), and their evaluation."""

from pyparq.runtime.lazy_import import load_later

load_later(
    __name__, "bind", "computed", "expression", "given", "leaf_tests", "polars_expressions", "predicate",
    "pyarrow_expressions", "sql_text", "variants",
)  # fmt: skip

DOOR = (
    "bind", "bound", "computed", "conditions", "exact_numbers", "expression", "given", "leaf_binding",
    "leaf_tests", "literal", "polars_expressions", "predicate", "shown", "sql_text", "times", "value_array",
    "variants",
)  # fmt: skip
"""Modules of this package that other packages may use."""
