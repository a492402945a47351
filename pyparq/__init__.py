"""Parquet from scratch: page indexes, Bloom filters and encryption, without pyarrow.

Importing ``pyparq`` loads the compiled kernels, numpy and the errors. Everything else is loaded when it is first used.
``docs/api.md`` lists every public name.
"""

from typing import TYPE_CHECKING, Any

from pyparq import kernels as _kernels  # noqa: F401  a build without kernels says so here, not at the first read
from pyparq._version import __version__
from pyparq.errors import (
    CatalogWarning,
    ChangedFileError,
    ChecksumError,
    ColumnNotFoundError,
    CorruptFileError,
    CorruptIndexWarning,
    DataError,
    DroppedMetadataWarning,
    EncryptionError,
    FilterError,
    LeftOutColumnsWarning,
    LimitError,
    ManagedTableWarning,
    MissingKeyError,
    OptionError,
    ParquetError,
    PlanError,
    SchemaError,
    SkippedFileWarning,
    TargetExistsError,
    UnfinishedWriteWarning,
    UnsupportedError,
    UnverifiedFooterWarning,
    WriteConflictError,
)
from pyparq.runtime.lazy_import import load

if TYPE_CHECKING:
    from pyparq.api import read_metadata, read_schema, read_table, read_table_async
    from pyparq.arrow.chunked_array import ChunkedArray
    from pyparq.arrow.schema.from_text import schema
    from pyparq.arrow.table import Batch, Table
    from pyparq.datasets.read.dataset import Dataset, dataset, scan
    from pyparq.datasets.read.explain import DatasetExplanation
    from pyparq.datasets.read.scan import DatasetPlan, DatasetScan
    from pyparq.datasets.write.commit import recover_dataset
    from pyparq.datasets.write.report import WriteReport, WrittenFile
    from pyparq.datasets.write.write_dataset import write_dataset
    from pyparq.encryption.properties import DecryptionProperties, EncryptionKey, EncryptionProperties
    from pyparq.filters.expression import Expression, col
    from pyparq.format.types import DataType, Field, Schema
    from pyparq.io.kept_files import remote_cache_size, set_remote_cache_size
    from pyparq.io.object_file import ObjectFile
    from pyparq.io.retry import io_thread_count, set_io_thread_count
    from pyparq.kernels.buffers import release_unused
    from pyparq.limits import Limits
    from pyparq.maintenance.add_indexes import add_indexes
    from pyparq.maintenance.catalog.index_dataset import index_dataset
    from pyparq.maintenance.catalog.report import CatalogReport
    from pyparq.maintenance.edit_metadata import edit_metadata
    from pyparq.maintenance.merge import MergeReport, merge
    from pyparq.maintenance.report import IndexedColumn, IndexedFile, IndexReport
    from pyparq.maintenance.rewrite import rewrite
    from pyparq.maintenance.verify.report import Finding, VerificationReport
    from pyparq.maintenance.verify.verify import verify
    from pyparq.option_values import BloomOptions, SortKey
    from pyparq.options import ReadOptions, WriteOptions
    from pyparq.read.async_reads import run_async
    from pyparq.read.explain import Explanation
    from pyparq.read.file import ParquetFile
    from pyparq.read.footers.metadata import FileMetaData
    from pyparq.read.picture.file_map import FileMap
    from pyparq.read.plan.scan_plan import ScanPlan
    from pyparq.read.scan import Scan
    from pyparq.versions import show_versions
    from pyparq.write.file import ParquetWriter, write_table

_LATER = {
    "read_metadata": "pyparq.api",
    "read_schema": "pyparq.api",
    "read_table": "pyparq.api",
    "read_table_async": "pyparq.api",
    "run_async": "pyparq.read.async_reads",
    "release_unused": "pyparq.kernels.buffers",
    "ChunkedArray": "pyparq.arrow.chunked_array",
    "recover_dataset": "pyparq.datasets.write.commit",
    "Dataset": "pyparq.datasets.read.dataset",
    "dataset": "pyparq.datasets.read.dataset",
    "scan": "pyparq.datasets.read.dataset",
    "DatasetExplanation": "pyparq.datasets.read.explain",
    "DatasetPlan": "pyparq.datasets.read.scan",
    "WriteReport": "pyparq.datasets.write.report",
    "WrittenFile": "pyparq.datasets.write.report",
    "DatasetScan": "pyparq.datasets.read.scan",
    "write_dataset": "pyparq.datasets.write.write_dataset",
    "DecryptionProperties": "pyparq.encryption.properties",
    "EncryptionKey": "pyparq.encryption.properties",
    "EncryptionProperties": "pyparq.encryption.properties",
    "Expression": "pyparq.filters.expression",
    "col": "pyparq.filters.expression",
    "ObjectFile": "pyparq.io.object_file",
    "Limits": "pyparq.limits",
    "BloomOptions": "pyparq.option_values",
    "ReadOptions": "pyparq.options",
    "SortKey": "pyparq.option_values",
    "WriteOptions": "pyparq.options",
    "Explanation": "pyparq.read.explain",
    "ParquetFile": "pyparq.read.file",
    "FileMap": "pyparq.read.picture.file_map",
    "FileMetaData": "pyparq.read.footers.metadata",
    "ScanPlan": "pyparq.read.plan.scan_plan",
    "Scan": "pyparq.read.scan",
    "io_thread_count": "pyparq.io.retry",
    "set_io_thread_count": "pyparq.io.retry",
    "remote_cache_size": "pyparq.io.kept_files",
    "set_remote_cache_size": "pyparq.io.kept_files",
    "show_versions": "pyparq.versions",
    "rewrite": "pyparq.maintenance.rewrite",
    "edit_metadata": "pyparq.maintenance.edit_metadata",
    "add_indexes": "pyparq.maintenance.add_indexes",
    "index_dataset": "pyparq.maintenance.catalog.index_dataset",
    "CatalogReport": "pyparq.maintenance.catalog.report",
    "MergeReport": "pyparq.maintenance.merge",
    "merge": "pyparq.maintenance.merge",
    "IndexReport": "pyparq.maintenance.report",
    "IndexedColumn": "pyparq.maintenance.report",
    "IndexedFile": "pyparq.maintenance.report",
    "schema": "pyparq.arrow.schema.from_text",
    "DataType": "pyparq.format.types",
    "Field": "pyparq.format.types",
    "Schema": "pyparq.format.types",
    "Batch": "pyparq.arrow.table",
    "Table": "pyparq.arrow.table",
    "Finding": "pyparq.maintenance.verify.report",
    "VerificationReport": "pyparq.maintenance.verify.report",
    "verify": "pyparq.maintenance.verify.verify",
    "ParquetWriter": "pyparq.write.file",
    "write_table": "pyparq.write.file",
}

#: Modules that can be named without an import of their own.
_MODULES = (
    "arrow", "datasets", "encryption", "filters", "format", "index", "io", "limits", "maintenance", "options", "polars",
    "read", "runtime", "write",
)  # fmt: skip

__all__ = [
    "Batch",
    "BloomOptions",
    "CatalogReport",
    "CatalogWarning",
    "ChangedFileError",
    "ChecksumError",
    "ChunkedArray",
    "ColumnNotFoundError",
    "CorruptFileError",
    "CorruptIndexWarning",
    "DataError",
    "DataType",
    "Dataset",
    "DatasetExplanation",
    "DatasetPlan",
    "DatasetScan",
    "DecryptionProperties",
    "DroppedMetadataWarning",
    "EncryptionError",
    "EncryptionKey",
    "EncryptionProperties",
    "Explanation",
    "Expression",
    "Field",
    "FileMap",
    "FileMetaData",
    "FilterError",
    "Finding",
    "IndexReport",
    "IndexedColumn",
    "IndexedFile",
    "LeftOutColumnsWarning",
    "LimitError",
    "Limits",
    "ManagedTableWarning",
    "MergeReport",
    "MissingKeyError",
    "ObjectFile",
    "OptionError",
    "ParquetError",
    "ParquetFile",
    "ParquetWriter",
    "PlanError",
    "ReadOptions",
    "Scan",
    "ScanPlan",
    "Schema",
    "SchemaError",
    "SkippedFileWarning",
    "SortKey",
    "Table",
    "TargetExistsError",
    "UnsupportedError",
    "UnfinishedWriteWarning",
    "UnverifiedFooterWarning",
    "VerificationReport",
    "WriteConflictError",
    "WriteOptions",
    "WriteReport",
    "WrittenFile",
    "__version__",
    "add_indexes",
    "col",
    "dataset",
    "edit_metadata",
    "index_dataset",
    "io_thread_count",
    "merge",
    "read_metadata",
    "read_schema",
    "read_table",
    "read_table_async",
    "recover_dataset",
    "release_unused",
    "remote_cache_size",
    "rewrite",
    "run_async",
    "scan",
    "schema",
    "set_io_thread_count",
    "set_remote_cache_size",
    "show_versions",
    "verify",
    "write_dataset",
    "write_table",
]

_ELSEWHERE = {
    "concat_tables": "pyparq.read_table([path, path]) for files, and pyarrow.concat_tables for tables in memory",
    "from_pandas": "pyparq.Table.from_pandas",
    "open": "pyparq.ParquetFile",
    "read_pandas": "pyparq.read_table(...).to_pandas()",
    "read_parquet": "pyparq.read_table(...), and .to_pandas() or .to_polars() of the table",
    "scan_parquet": "pyparq.dataset(...).scan(...), or pyparq.polars.scan(...) for a LazyFrame",
    "sink_parquet": "pyparq.write_table, which also takes a LazyFrame",
    "write_parquet": "pyparq.write_table",
    "write_to_dataset": "pyparq.write_dataset",
}
"""Names of other libraries, and what they are called here."""

if not TYPE_CHECKING:  # a type checker that sees it takes every misspelt name for one that loads later

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return load(f"pyparq.{name}")
        if name not in _LATER:
            from pyparq.errors import near

            if name in _ELSEWHERE:
                raise AttributeError(f"module 'pyparq' has no attribute {name!r}; use {_ELSEWHERE[name]}")
            found = near(name, __all__)
            hint = f"; did you mean {found[0]!r}?" if found else ""
            raise AttributeError(f"module 'pyparq' has no attribute {name!r}{hint}")
        value = getattr(load(_LATER[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
