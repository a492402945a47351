"""Filters: the expressions that users write (``col``), their binding to a file (``bind``), and their evaluation."""

DOOR = (
    "bind", "computed", "conditions", "exact_numbers", "expression", "given", "leaf_binding",
    "leaf_tests", "literal", "polars_expressions", "predicate", "shown", "sql_text", "times", "value_array",
    "variants",
)  # fmt: skip
"""Modules of this package that other packages may use."""
