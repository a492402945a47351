"""One file read: ``footers/``, ``plan/`` (which pages can match), ``decode/``, and the scans above them."""

DOOR = (
    "arrow_stream",
    "decode.chunk_ends",
    "decode.chunk_pages",
    "decode.memory_account",
    "decode.page_values",
    "decode.physical_values",
    "explain",
    "file",
    "footers.arrow_fields",
    "footers.chunk_table",
    "footers.column_chunk",
    "footers.footer_read",
    "footers.known_schemas",
    "footers.leaf_set",
    "footers.metadata",
    "footers.open_file",
    "hinted_types",
    "plan.bloom_probe",
    "plan.page_indexes",
    "plan.scan_plan",
    "plan.stage_report",
    "projection",
    "scan",
    "variants",
)
"""Modules of this package that other packages may use."""
