"""The functions of the top level: each a few calls, no algorithms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyparq.option_help import READ, with_options
from pyparq.options import ReadOptions
from pyparq.read.file import ParquetFile
from pyparq.read.metadata import FileMetaData
from pyparq.schemas.parse import schema
from pyparq.schemas.types import Schema
from pyparq.table import Table

if TYPE_CHECKING:
    from typing import Unpack

    from pyparq.arguments import Filters, Names, ReadArguments

__all__ = ["ParquetFile", "read_metadata", "read_schema", "read_table", "schema"]


def read_table(
    source: Any,
    columns: Names | None = None,
    filters: Filters | None = None,
    row_groups: Sequence[int] | None = None,
    *,
    rows: Any = None,
    limit: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **options: Unpack[ReadArguments],
) -> Table:
    """Read a file, or the part of it that was asked for.

    ``columns``: names, all when ``None``; paths into nested columns are dotted or tuples of names. ``filters``: an
    expression over :func:`pyparq.col`, or pyarrow's list of tuples; rows where it is true are returned, exactly those.
    Indexes are used wherever they help. ``rows``: a slice of the file's rows or row numbers (each once, in file order);
    ``limit``: at most so many rows, the first that match. ``storage_options`` go to the file system of a URL, as
    pandas' do (docs/urls.md). ``options``: as below, the fields of :class:`pyparq.ReadOptions`.

    Raises a :class:`pyparq.ParquetError` that names file, row group, column and page.
    """
    ReadOptions.check_known(options, ("columns", "filters", "row_groups", "rows", "limit", "storage_options"))
    with ParquetFile(source, storage_options=storage_options, **options) as file:
        return file.scan(columns, filters, row_groups, rows=rows, limit=limit).to_table()


def read_schema(
    source: Any, *, storage_options: Mapping[str, Any] | None = None, **options: Unpack[ReadArguments]
) -> Schema:
    """The Arrow schema that tables of a file have."""
    with ParquetFile(source, storage_options=storage_options, **options) as file:
        return file.schema_arrow


def read_metadata(
    source: Any, *, storage_options: Mapping[str, Any] | None = None, **options: Unpack[ReadArguments]
) -> FileMetaData:
    """The footer of a file."""
    with ParquetFile(source, storage_options=storage_options, **options) as file:
        return file.metadata


for _function in (read_table, read_schema, read_metadata):
    _function.__doc__ = with_options(_function.__doc__, READ)
