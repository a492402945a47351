"""Files made from files: indexes added, rewritten, merged, metadata edited; ``verify/``: files checked."""

DOOR = (
    "add_indexes",
    "advise",
    "catalog.index_dataset",
    "catalog.key_segments",
    "catalog.report",
    "catalog.share_reads",
    "edit_metadata",
    "in_place",
    "index_building",
    "kept_storage",
    "merge",
    "report",
    "rewrite",
    "verify.verify",
)
"""Modules of this package that other packages may use."""
