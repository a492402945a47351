"""Parquet from scratch: page indexes, Bloom filters and encryption, without pyarrow.

Importing ``pyparq`` loads only the reader. The writer and the encryption properties are loaded when they are first
used. ``docs/api.md`` lists every public name.
"""

from typing import TYPE_CHECKING, Any

from pyparq._version import __version__
from pyparq.api import read_metadata, read_schema, read_table, schema
from pyparq.buffers import release_unused
from pyparq.chunked import ChunkedArray
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
    UnsupportedError,
    UnverifiedFooterWarning,
    WriteConflictError,
)
from pyparq.filters.expression import Expression, col
from pyparq.later import load
from pyparq.limits import Limits
from pyparq.options import BloomOptions, ReadOptions, SortKey, WriteOptions
from pyparq.read.explain import Explanation
from pyparq.read.file import ParquetFile
from pyparq.read.metadata import FileMetaData
from pyparq.read.plan import ScanPlan
from pyparq.read.scan import Scan
from pyparq.schemas.types import DataType, Field, Schema
from pyparq.table import Batch, Table

if TYPE_CHECKING:
    from pyparq.datasets.commit import recover_dataset
    from pyparq.datasets.dataset import Dataset, dataset, scan
    from pyparq.datasets.explain import DatasetExplanation
    from pyparq.datasets.plan import DatasetPlan
    from pyparq.datasets.report import WriteReport, WrittenFile
    from pyparq.datasets.scan import DatasetScan
    from pyparq.datasets.write import write_dataset
    from pyparq.encryption.properties import DecryptionProperties, EncryptionKey, EncryptionProperties
    from pyparq.io.objects import ObjectFile
    from pyparq.rewriting.again import rewrite
    from pyparq.rewriting.editing import edit_metadata
    from pyparq.rewriting.indexing import add_indexes
    from pyparq.rewriting.joining import MergeReport, merge
    from pyparq.rewriting.report import IndexedColumn, IndexedFile, IndexReport
    from pyparq.verification.findings import Finding
    from pyparq.verification.report import VerificationReport
    from pyparq.verification.run import verify
    from pyparq.write.file import ParquetWriter, write_table

_LATER = {
    "Dataset": "pyparq.datasets.dataset",
    "DatasetExplanation": "pyparq.datasets.explain",
    "DatasetPlan": "pyparq.datasets.plan",
    "DatasetScan": "pyparq.datasets.scan",
    "dataset": "pyparq.datasets.dataset",
    "scan": "pyparq.datasets.dataset",
    "DecryptionProperties": "pyparq.encryption.properties",
    "EncryptionKey": "pyparq.encryption.properties",
    "EncryptionProperties": "pyparq.encryption.properties",
    "Finding": "pyparq.verification.findings",
    "ObjectFile": "pyparq.io.objects",
    "VerificationReport": "pyparq.verification.report",
    "verify": "pyparq.verification.run",
    "IndexReport": "pyparq.rewriting.report",
    "IndexedColumn": "pyparq.rewriting.report",
    "IndexedFile": "pyparq.rewriting.report",
    "ParquetWriter": "pyparq.write.file",
    "add_indexes": "pyparq.rewriting.indexing",
    "edit_metadata": "pyparq.rewriting.editing",
    "MergeReport": "pyparq.rewriting.joining",
    "merge": "pyparq.rewriting.joining",
    "rewrite": "pyparq.rewriting.again",
    "WriteReport": "pyparq.datasets.report",
    "WrittenFile": "pyparq.datasets.report",
    "recover_dataset": "pyparq.datasets.commit",
    "write_dataset": "pyparq.datasets.write",
    "write_table": "pyparq.write.file",
}

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
        if name == "polars":
            return load("pyparq.polars")
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
