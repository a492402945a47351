"""Parquet from scratch: page indexes, Bloom filters and encryption, without pyarrow.

Importing this loads what reading needs. The writer and the encryption properties load when they are first named: a
process that only reads does not pay for them.
"""

from typing import TYPE_CHECKING, Any

from pyparq._version import __version__
from pyparq.api import read_metadata, read_schema, read_table, schema
from pyparq.buffers import release_unused
from pyparq.chunked import ChunkedArray
from pyparq.errors import ParquetError
from pyparq.filters.expression import col
from pyparq.later import load
from pyparq.read.file import ParquetFile
from pyparq.schemas.types import Schema
from pyparq.table import Batch, Table

if TYPE_CHECKING:
    from pyparq.encryption.properties import DecryptionProperties, EncryptionKey, EncryptionProperties
    from pyparq.write.file import ParquetWriter, write_table

_LATER = {
    "DecryptionProperties": "pyparq.encryption.properties",
    "EncryptionKey": "pyparq.encryption.properties",
    "EncryptionProperties": "pyparq.encryption.properties",
    "ParquetWriter": "pyparq.write.file",
    "write_table": "pyparq.write.file",
}

__all__ = [
    "Batch",
    "ChunkedArray",
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
    "release_unused",
    "schema",
    "write_table",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'pyparq' has no attribute {name!r}")
    value = getattr(load(_LATER[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
