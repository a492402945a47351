"""Reading: tables, schemas and metadata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyparq.parquet.arrow import with_arrow_errors
from pyparq.parquet.dataset import ParquetDataset
from pyparq.parquet.file import ParquetFile
from pyparq.parquet.metadata import FileMetaData


@with_arrow_errors
def read_table(
    source: Any,
    *,
    columns: Sequence[str] | None = None,
    use_threads: bool = True,
    schema: Any = None,
    use_pandas_metadata: bool = False,
    **options: Any,
) -> Any:
    """A file, a folder or a list of files as a table.

    ``source``: a path, a folder, a list of paths, a file object or a buffer. ``columns``: names, or paths such as
    ``"a.b"``. ``schema``: pyarrow's, which all files are read in. ``use_pandas_metadata``: read the columns of pandas'
    index too. ``options``: those of :class:`ParquetDataset`, with ``filters``, ``partitioning`` and ``filesystem``.

    Example::

        import pyparq.parquet as pq

        table = pq.read_table("flights.parquet", columns=["flight"], filters=[("dest", "==", "LAX")])
    """
    return ParquetDataset(source, schema=schema, **options).read(columns, use_threads, use_pandas_metadata)


def read_pandas(source: Any, columns: Sequence[str] | None = None, **options: Any) -> Any:
    """:func:`read_table` with the columns of pandas' index.

    Example::

        import pyparq.parquet as pq

        frame = pq.read_pandas("flights.parquet", columns=["flight"]).to_pandas()
    """
    return read_table(source, columns=columns, use_pandas_metadata=True, **options)


@with_arrow_errors
def read_metadata(
    where: Any, memory_map: bool = False, decryption_properties: Any = None, filesystem: Any = None, **tuning: Any
) -> FileMetaData:
    """The metadata of one file.

    Example::

        import pyparq.parquet as pq

        print(pq.read_metadata("flights.parquet").row_group(0).column(0).statistics)
    """
    with ParquetFile(where, decryption_properties=decryption_properties, filesystem=filesystem, **tuning) as file:
        return file.metadata


@with_arrow_errors
def read_schema(
    where: Any, memory_map: bool = False, decryption_properties: Any = None, filesystem: Any = None, **tuning: Any
) -> Any:
    """The schema of one file as pyarrow's.

    Example::

        import pyparq.parquet as pq

        print(pq.read_schema("flights.parquet").names)
    """
    with ParquetFile(where, decryption_properties=decryption_properties, filesystem=filesystem, **tuning) as file:
        return file.schema_arrow
