"""Where bytes come from and go to: files, URLs, stores; locks and replacement of files."""

DOOR = (
    "atomic_write", "byte_ranges", "companion_files", "fetch", "file_lock", "file_objects", "file_systems",
    "file_versions", "folders", "kept_files", "locations", "object_file", "remote_file", "remote_sinks", "retry",
    "sink", "source", "table_formats", "url",
)  # fmt: skip
"""Modules of this package that other packages may use."""
