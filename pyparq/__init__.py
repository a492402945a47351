"""Parquet from scratch: page indexes, Bloom filters and encryption, without pyarrow."""

from pyparq._version import __version__
from pyparq.api import ParquetWriter, read_metadata, read_schema, read_table, schema, write_table
from pyparq.encryption.properties import DecryptionProperties, EncryptionKey, EncryptionProperties
from pyparq.errors import ParquetError
from pyparq.filters.expression import col
from pyparq.read.file import ParquetFile
from pyparq.schema.types import Schema
from pyparq.table import Batch, Table

__all__ = [
    "Batch",
    "DecryptionProperties",
    "EncryptionKey",
    "EncryptionProperties",
    "ParquetError",
    "ParquetFile",
    "ParquetWriter",
    "Schema",
    "Table",
    "__version__",
    "col",
    "read_metadata",
    "read_schema",
    "read_table",
    "schema",
    "write_table",
]
