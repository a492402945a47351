"""Files made from files: indexes added, rewritten, merged, metadata edited; ``verify/``: files checked."""

DOOR = (
    "add_indexes",
    "advise",
    "edit_metadata",
    "index_request",
    "kept_storage",
    "merge",
    "report",
    "rewrite",
    "spark_metadata",
    "verify.verify",
)
"""Modules of this package that other packages may use."""
