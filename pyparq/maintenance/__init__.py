"""Files made from files: indexes added, rewritten, merged, metadata edited; ``verify/``: files checked."""

DOOR = (
    "add_indexes", "advise", "edit_metadata", "in_place", "index_building", "kept_storage", "merge",
    "report", "rewrite", "row_changes.changed_file", "row_changes.copied_groups", "row_changes.delete_update",
    "row_changes.file_change", "row_changes.old_catalogs", "row_changes.places", "row_changes.report",
    "row_changes.upsert", "table_change", "verify.verify",
)  # fmt: skip
"""Modules of this package that other packages may use."""
