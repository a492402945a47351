"""Files made from files: indexes added, rewritten, merged, metadata edited; ``verify/``: files checked."""

DOOR = (
    "add_indexes",
    "advise",
    "catalog.index_dataset",
    "catalog.key_segments",
    "catalog.report",
    "catalog.share_reads",
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
