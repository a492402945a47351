"""Parquet from scratch: page indexes, Bloom filters and encryption, without pyarrow.

Importing ``pyparq`` loads the compiled kernels, numpy and the errors. Everything else is loaded when it is first used.
``docs/api.md`` lists every public name.
"""

from importlib.util import find_spec
from typing import Any

from pyparq import kernels as _kernels  # noqa: F401  a build without kernels says so here, not at the first read
from pyparq._version import __version__
from pyparq.errors import by_each, near
from pyparq.runtime.lazy_import import load as _load
from pyparq.runtime.lazy_import import provide as _provide

_provide("top-level functions", "pyparq.api")
_provide("types of others", "pyparq.arrow.exchange")

_PUBLIC = {
    "api": "count read_metadata read_schema read_table read_table_async",
    "arrow.chunked_array": "ChunkedArray",
    "arrow.schema.from_text": "schema",
    "arrow.table": "Batch Table table",
    "datasets.dataset": "Dataset dataset scan",
    "datasets.explain": "DatasetExplanation",
    "datasets.scan": "DatasetPlan DatasetScan",
    "datasets.write.commit": "recover_dataset",
    "datasets.write.write_dataset": "write_dataset",
    "encryption.properties": "DecryptionProperties EncryptionKey EncryptionProperties",
    "errors": (
        "CatalogWarning ChangedFileError ChecksumError ColumnNotFoundError CorruptFileError "
        "CorruptIndexWarning DataError DroppedMetadataWarning EncryptionError FilterError "
        "LeftOutColumnsWarning LimitError ManagedTableWarning MissingKeyError OptionError ParquetError "
        "PlanError SchemaError SkippedFileWarning TargetExistsError UnfinishedWriteWarning UnsupportedError "
        "UnverifiedFooterWarning WriteConflictError"
    ),
    "filters.expression": "Expression col",
    "format.types": "DataType Field Schema",
    "io.kept_files": "remote_cache_size set_remote_cache_size",
    "io.object_file": "ObjectFile",
    "io.retry": "io_thread_count set_io_thread_count",
    "kernels.buffers": "release_unused",
    "limits": "Limits",
    "maintenance.add_indexes": "add_indexes",
    "datasets.catalog.index_dataset": "CatalogReport index_dataset",
    "maintenance.edit_metadata": "edit_metadata",
    "maintenance.merge": "MergeReport merge",
    "maintenance.report": "IndexReport IndexedColumn IndexedFile",
    "maintenance.rewrite": "rewrite",
    "maintenance.row_changes.delete_update": "delete update",
    "maintenance.row_changes.upsert": "upsert",
    "maintenance.row_changes.report": "ChangeReport ChangedFileReport IndexHelp",
    "maintenance.verify.report": "Finding VerificationReport",
    "maintenance.verify.verify": "verify",
    "option_values": "BloomOptions SortKey",
    "options": "ReadOptions WriteOptions",
    "read.async_reads": "run_async",
    "read.explain": "Explanation",
    "read.file": "ParquetFile",
    "read.footers.metadata": "FileMetaData",
    "read.file_map": "FileMap",
    "read.plan.scan_plan": "ScanPlan",
    "read.scan": "Scan",
    "versions": "show_versions",
    "write.file": "ParquetWriter write_table",
    "write.file_layout": "WriteReport WrittenFile",
}
"""The public names by the modules they are in. ``python tests/support/api_page.py`` makes ``__init__.pyi`` of it, which
is what type checkers and editors read."""

_MODULE_OF = {name: f"pyparq.{module}" for module, names in _PUBLIC.items() for name in names.split()}
__all__ = ["__version__", *_MODULE_OF]

#: Modules that can be named without an import of their own.
_MODULES = (
    "api", "arrow", "datasets", "encryption", "filters", "format", "index", "io", "limits", "maintenance", "options",
    "pandas", "parquet", "polars", "read", "runtime", "write",
)  # fmt: skip

_PYARROW = (
    "null bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 string utf8 large_string "
    "binary large_binary date32 date64 time32 time64 timestamp duration decimal128 decimal256 list_ large_list struct "
    "map_ dictionary array scalar chunked_array"
)
_BUFFERS = "BufferOutputStream BufferReader py_buffer"
"""What makes types, values and buffers in pyarrow: its own, where it is installed."""
_ELSEWHERE = by_each({
    "append": 'pyparq.write_dataset(data, folder, mode="append"): a Parquet file cannot grow (docs/append.md)',
    "ParquetDataset open_dataset read_dataset": "pyparq.dataset(path)", "concat": "pyparq.Table.concat(tables)",
    _BUFFERS: "io.BytesIO()", "to_bytes dumps": "pyparq.write_table(data, file), where file is an io.BytesIO()",
    _PYARROW + " String Utf8 Int64 Float64":
        'its name: pyparq.schema({"id": "int64", "name": "string?", "at": "timestamp[us, UTC]"})',
    "DataFrame from_dict": "pyparq.table(data)", "lit": "a Python value as it is: pyparq.col('price') > 2.5",
    "when": "polars.when, with pyparq.polars.scan(path)", "open File Reader ParquetReader": "pyparq.ParquetFile",
    "read_csv scan_csv from_csv": "pyparq.table(pandas.read_csv(path)), or the command pyparq import",
    "read_json from_json": "pyparq.table(pandas.read_json(path, lines=True)), or the command pyparq import",
    "write_csv to_csv": "pyparq.read_table(path).to_pandas().to_csv(...), or the command pyparq convert",
    "write_json to_json write_ndjson convert": "pandas or polars (docs/csv-and-json.md), or the command pyparq convert",
    "read_pandas": "pyparq.read_table(...).to_pandas()", "record_batch": "pyparq.Batch.from_pydict",
    "sink_parquet": "pyparq.write_table, which also takes a LazyFrame", "load loads": "pyparq.read_table",
    "update_file_custom_metadata": "pyparq.edit_metadata(path, update={...})", "compress Codec": "compression=",
    "sql query connect": "pyparq.read_table(path, filters=...), or DuckDB over pyparq.scan(path) (docs/tools.md)",
    "ParquetSchema infer_schema": "pyparq.read_schema(path)", "expr": "pyparq.col", "decrypt": "decryption=",
    "concat_batches": "pyparq.Table.from_batches(batches)", "info describe": "pyparq.read_metadata(path)",
    "list_files glob": "pyparq.dataset(path).files", "stream read_batches LazyFrame": "pyparq.scan(path)",
    "validate check": "pyparq.verify(path)", "split repartition compact optimize copy": "pyparq.rewrite",
    "concat_files merge_files join": "pyparq.merge", "add_bloom_filter": "pyparq.add_indexes",
    "repair": "pyparq.add_indexes(path), which builds damaged page indexes again. Nothing mends damaged pages",
    "read_feather read_ipc": "the command pyparq convert", "HivePartitioning": "pyparq.dataset(partitioning=)",
    "read_delta scan_delta read_iceberg scan_iceberg": "pyparq.dataset(table), a table of deltalake or pyiceberg",
    "S3FileSystem fs memory_map": "a path or a URL (docs/urls.md)", "partition_by": "pyparq.write_dataset",
})  # fmt: skip
"""Names of other libraries, and what they are called here."""
_SAME = {
    "field": "api.field", "write_to_dataset": "write_dataset", "concat_tables": "Table.concat",
    "SortingColumn": "SortKey", "read_parquet": "read_table", "scan_parquet": "polars.scan",
    "to_parquet": "pandas.to_parquet", "write_parquet": "write_table", "write_pandas": "write_table",
}  # fmt: skip
"""Names of other libraries for the same functions."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return _load(f"pyparq.{name}")
    if name in _SAME:
        first, *rest = _SAME[name].split(".")
        return getattr(__getattr__(first), *rest) if rest else __getattr__(first)
    if name not in _MODULE_OF:
        if name in (_PYARROW + " " + _BUFFERS).split() and find_spec("pyarrow") is not None:
            return getattr(_load("pyarrow"), name)
        if name in _ELSEWHERE:
            raise AttributeError(f"module 'pyparq' has no attribute {name!r}; use {_ELSEWHERE[name]}")
        found = near(name, __all__, 0.7)
        hint = f"; did you mean {found[0]!r}?" if found else ""
        if name.isidentifier() and name[0] != "_" and find_spec(f"pyparq.{name}") is None:  # else it is a module
            having = [c for c in ("ParquetFile", "Table") if hasattr(__getattr__(c), name)]
            hint = f"; pyparq.{having[0]} has it" if having else hint
        raise AttributeError(f"module 'pyparq' has no attribute {name!r}{hint}")
    value = getattr(_load(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


_FROM_CALLS = ("errors", ".report", "explain", "file_layout", "metadata", "plan", "file_map", "object_file")
"""Ends of modules whose names are raised, or come from calls."""


def __dir__() -> list[str]:
    """What people call. Errors are in ``pyparq.errors``, and what calls return in the modules of the calls."""
    given = ("Report", "Scan", "Plan", "Expression", "Batch", "ChunkedArray")
    names = [n for n in _MODULE_OF if not n.endswith(given) and not _MODULE_OF[n].endswith(_FROM_CALLS)]
    return sorted([*names, "__version__", "errors", "limits", "pandas", "parquet", "polars"])
