"""One file written: ``plan/`` (what is decided first), ``encode/``, and the writer above them."""

DOOR = (
    "encode.bloom_filters",
    "encode.shred",
    "external_sort",
    "file",
    "file_layout",
    "plan.column_plans",
    "plan.encoding_choice",
    "plan.key_values",
    "plan.shredding",
    "row_buffer",
    "sort",
)
"""Modules of this package that other packages may use."""
