"""Parquet from scratch: page indexes, Bloom filters and encryption, without pyarrow.

Importing ``pyparq`` loads the compiled kernels, numpy and the errors. Everything else is loaded when it is first used.
``docs/api.md`` lists every public name.
"""

from typing import TYPE_CHECKING, Any

from pyparq import kernels as _kernels  # noqa: F401  a build without kernels says so here, not at the first read
from pyparq._version import __version__
from pyparq.errors import (
    ChangedFileError,
    ChecksumError,
    ColumnNotFoundError,
    CorruptFileError,
    CorruptIndexWarning,
    DataError,
    EncryptionError,
    FilterError,
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
from pyparq.later import load

if TYPE_CHECKING:
    from pyparq.api import read_metadata, read_schema, read_table, schema
    from pyparq.buffers import release_unused
    from pyparq.datasets.commit import recover_dataset
    from pyparq.datasets.dataset import Dataset, dataset, scan
    from pyparq.datasets.explain import DatasetExplanation
    from pyparq.datasets.plan import DatasetPlan
    from pyparq.datasets.report import WriteReport, WrittenFile
    from pyparq.datasets.scan import DatasetScan
    from pyparq.datasets.write import write_dataset
    from pyparq.encryption.properties import DecryptionProperties, EncryptionKey, EncryptionProperties
    from pyparq.filters.expression import Expression, col
    from pyparq.footers.metadata import FileMetaData
    from pyparq.io.objects import ObjectFile
    from pyparq.limits import Limits
    from pyparq.options import BloomOptions, ReadOptions, SortKey, WriteOptions
    from pyparq.pruning.scan_plan import ScanPlan
    from pyparq.read.explain import Explanation
    from pyparq.read.file import ParquetFile
    from pyparq.read.scan import Scan
    from pyparq.rewriting.again import rewrite
    from pyparq.rewriting.editing import edit_metadata
    from pyparq.rewriting.indexing import add_indexes
    from pyparq.rewriting.joining import MergeReport, merge
    from pyparq.rewriting.report import IndexedColumn, IndexedFile, IndexReport
    from pyparq.schemas.types import DataType, Field, Schema
    from pyparq.tables.chunked_array import ChunkedArray
    from pyparq.tables.table import Batch, Table
    from pyparq.verification.findings import Finding
    from pyparq.verification.report import VerificationReport
    from pyparq.verification.run import verify
    from pyparq.write.file import ParquetWriter, write_table

_LATER = {
    "read_metadata": "pyparq.api",
    "read_schema": "pyparq.api",
    "read_table": "pyparq.api",
    "release_unused": "pyparq.buffers",
    "ChunkedArray": "pyparq.tables.chunked_array",
    "recover_dataset": "pyparq.datasets.commit",
    "Dataset": "pyparq.datasets.dataset",
    "dataset": "pyparq.datasets.dataset",
    "scan": "pyparq.datasets.dataset",
    "DatasetExplanation": "pyparq.datasets.explain",
    "DatasetPlan": "pyparq.datasets.plan",
    "WriteReport": "pyparq.datasets.report",
    "WrittenFile": "pyparq.datasets.report",
    "DatasetScan": "pyparq.datasets.scan",
    "write_dataset": "pyparq.datasets.write",
    "DecryptionProperties": "pyparq.encryption.properties",
    "EncryptionKey": "pyparq.encryption.properties",
    "EncryptionProperties": "pyparq.encryption.properties",
    "Expression": "pyparq.filters.expression",
    "col": "pyparq.filters.expression",
    "ObjectFile": "pyparq.io.objects",
    "Limits": "pyparq.limits",
    "BloomOptions": "pyparq.options",
    "ReadOptions": "pyparq.options",
    "SortKey": "pyparq.options",
    "WriteOptions": "pyparq.options",
    "Explanation": "pyparq.read.explain",
    "ParquetFile": "pyparq.read.file",
    "FileMetaData": "pyparq.footers.metadata",
    "ScanPlan": "pyparq.pruning.scan_plan",
    "Scan": "pyparq.read.scan",
    "rewrite": "pyparq.rewriting.again",
    "edit_metadata": "pyparq.rewriting.editing",
    "add_indexes": "pyparq.rewriting.indexing",
    "MergeReport": "pyparq.rewriting.joining",
    "merge": "pyparq.rewriting.joining",
    "IndexReport": "pyparq.rewriting.report",
    "IndexedColumn": "pyparq.rewriting.report",
    "IndexedFile": "pyparq.rewriting.report",
    "schema": "pyparq.schemas.parse",
    "DataType": "pyparq.schemas.types",
    "Field": "pyparq.schemas.types",
    "Schema": "pyparq.schemas.types",
    "Batch": "pyparq.tables.table",
    "Table": "pyparq.tables.table",
    "Finding": "pyparq.verification.findings",
    "VerificationReport": "pyparq.verification.report",
    "verify": "pyparq.verification.run",
    "ParquetWriter": "pyparq.write.file",
    "write_table": "pyparq.write.file",
}

#: Modules that can be named without an import of their own.
_MODULES = (
    "buffers", "chunked", "columns", "compression", "datasets", "encodings", "encryption", "filters", "format", "index",
    "io", "limits", "options", "polars", "read", "schemas", "table", "threads",
)  # fmt: skip

__all__ = [
    "Batch",
    "BloomOptions",
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
    "EncryptionError",
    "EncryptionKey",
    "EncryptionProperties",
    "Explanation",
    "Expression",
    "Field",
    "FileMetaData",
    "FilterError",
    "Finding",
    "IndexReport",
    "IndexedColumn",
    "IndexedFile",
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
    "merge",
    "read_metadata",
    "read_schema",
    "read_table",
    "recover_dataset",
    "release_unused",
    "rewrite",
    "scan",
    "schema",
    "verify",
    "write_dataset",
    "write_table",
]

if not TYPE_CHECKING:  # a type checker that sees it takes every misspelt name for one that loads later

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return load(f"pyparq.{name}")
        if name not in _LATER:
            from pyparq.errors import near

            found = near(name, __all__)
            hint = f"; did you mean {found[0]!r}?" if found else ""
            raise AttributeError(f"module 'pyparq' has no attribute {name!r}{hint}")
        value = getattr(load(_LATER[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
