"""Where bytes come from and go to: files, URLs, stores; locks and replacement of files."""

from pyparq.runtime.lazy_import import load_later

load_later(__name__, "companion_files", "store_options")

DOOR = (
    "atomic_write", "byte_ranges", "companion_files", "fetch", "file_lock", "file_objects", "file_systems",
    "file_versions", "folders", "kept_files", "locations", "object_file", "remote_file", "remote_sinks", "retry",
    "siblings", "sink", "source", "table_formats", "url",
)  # fmt: skip
"""Modules of this package that other packages may use."""
