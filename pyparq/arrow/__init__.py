"""Columns and tables in memory as Arrow has them; ``schema/``: Arrow's schemas; ``ingest/``: tables from other data."""

from pyparq.runtime.lazy_import import load_later, provide

load_later(__name__, "equality", "from_any", "pandas_key", "preview", "to_pandas", "to_polars", "to_python")

DOOR = (
    "column", "column_operations", "decimals", "exchange", "ingest", "ingest.cast", "ingest.from_python", "layouts",
    "pandas_key", "record_batch", "schema.extensions", "schema.from_text", "schema.hints", "schema.ipc_read",
    "schema.ipc_write", "schema.keys", "schema.to_parquet", "table", "tabular", "to_pandas", "to_polars", "to_python",
    "variant_columns",
)  # fmt: skip
"""Modules of this package that other packages may use."""

# A column converts itself (Column.to_pylist) by a module that stands on columns. The package names that module here,
# so that a column has it in any process: one that unpickles a column may load nothing else of this package.
provide("conversions of columns", "pyparq.arrow.to_python")
