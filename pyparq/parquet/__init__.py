"""``pyarrow.parquet``'s names on pyparq's engine: ``import pyparq.parquet as pq``.

Scripts that were written for :mod:`pyarrow.parquet` change this import and nothing else. Where pyarrow is installed,
results are pyarrow's tables and schemas; otherwise they are pyparq's own. Arguments that only tune pyarrow
(``memory_map``, ``pre_buffer``, ``buffer_size`` and others) are taken and change nothing.
"""

from pyparq.encryption.properties import DecryptionProperties as FileDecryptionProperties
from pyparq.encryption.properties import EncryptionProperties as FileEncryptionProperties
from pyparq.parquet.arguments import filters_to_expression
from pyparq.parquet.dataset import ParquetDataset, read_pandas, read_table
from pyparq.parquet.file import ParquetFile, read_metadata, read_schema
from pyparq.parquet.metadata import ColumnChunkMetaData, FileMetaData, RowGroupMetaData, SortingColumn, Statistics
from pyparq.parquet.schema import ColumnSchema, ParquetLogicalType, ParquetSchema
from pyparq.parquet.write import ParquetWriter, write_metadata, write_table, write_to_dataset

_filters_to_expression = filters_to_expression  # pyarrow's name of it before version 10


def __dir__() -> list[str]:
    return list(__all__)


DOOR = ()
"""Modules of this package that other packages may use."""

__all__ = (
    "ColumnChunkMetaData",
    "ColumnSchema",
    "FileDecryptionProperties",
    "FileEncryptionProperties",
    "FileMetaData",
    "ParquetDataset",
    "ParquetFile",
    "ParquetLogicalType",
    "ParquetSchema",
    "ParquetWriter",
    "RowGroupMetaData",
    "SortingColumn",
    "Statistics",
    "filters_to_expression",
    "read_metadata",
    "read_pandas",
    "read_schema",
    "read_table",
    "write_metadata",
    "write_table",
    "write_to_dataset",
)
