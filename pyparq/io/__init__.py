"""Where bytes come from and go to: files, URLs, stores; locks and replacement of files."""

DOOR = (
    "atomic_write",
    "byte_ranges",
    "companion_files",
    "early_requests",
    "external_files",
    "fetch",
    "file_lock",
    "file_systems",
    "file_versions",
    "first_request",
    "folders",
    "given_systems",
    "kept_files",
    "object_stores",
    "process_ownership",
    "remote",
    "remote_changes",
    "renames",
    "retry",
    "roads",
    "sink",
    "source",
    "table_formats",
    "url",
)
"""Modules of this package that other packages may use."""
