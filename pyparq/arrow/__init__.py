"""Columns and tables in memory as Arrow has them; ``schema/``: Arrow's schemas; ``ingest/``: tables from other data."""

DOOR = (
    "c_export",
    "c_import",
    "column",
    "column_operations",
    "decimals",
    "dictionary_column",
    "exchange",
    "ingest",
    "ingest.cast",
    "ingest.from_python",
    "plain_layouts",
    "schema.extensions",
    "schema.from_text",
    "schema.hints",
    "schema.ipc_write",
    "schema.loss",
    "schema.polars_categories",
    "schema.to_parquet",
    "table",
    "to_python",
)
"""Modules of this package that other packages may use."""
