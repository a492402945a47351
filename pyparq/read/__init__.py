"""One file read: ``footers/``, ``plan/`` (which pages can match), ``decode/``, and the scans above them."""

from pyparq.runtime.lazy_import import called, load_later, provided

called(__name__, lambda *args, **given: provided("top-level functions").read_table(*args, **given))

load_later(__name__, "explain", "file", "file_map", "variants")

DOOR = (
    "async_reads", "column_reads", "decode.chunk_pages", "decode.leaves", "decode.memory_account", "explain",
    "file", "file_map", "footers.chunks", "footers.footer_read", "footers.metadata", "footers.open_file",
    "footers.schemas", "hinted_types", "page_fates", "page_headers", "page_statistics", "plan.bloom_probe",
    "plan.candidates", "plan.page_indexes", "plan.scan_plan", "projection", "scan", "streams",
)  # fmt: skip
"""Modules of this package that other packages may use."""
