"""Parquet from scratch: page indexes, Bloom filters and encryption, without pyarrow."""

from pyparq._version import __version__
from pyparq.api import read_metadata, read_schema, read_table
from pyparq.errors import ParquetError
from pyparq.filters.expression import col
from pyparq.read.file import ParquetFile
from pyparq.table import Table

__all__ = ["ParquetError", "ParquetFile", "Table", "__version__", "col", "read_metadata", "read_schema", "read_table"]
