"""One file written: ``plan/`` (what is decided first), ``encode/``, and the writer above them."""

from pyparq.runtime.lazy_import import called, provided

called(__name__, lambda *args, **given: provided("top-level functions").write(*args, **given))

DOOR = (
    "column_chunks", "column_plans", "encoding_choice", "external_sort", "file", "file_layout", "physical_values",
    "row_groups", "schema_hint", "shred", "shredding", "sort",
)  # fmt: skip
"""Modules of this package that other packages may use."""
