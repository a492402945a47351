"""What a table is at one version: its files, its schema, its partition values, and how columns are found in files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pyparq.datasets.data_files import DataFile
from pyparq.datasets.partitions import Partitions
from pyparq.datasets.read.column_matching import Matching
from pyparq.datasets.tables.table_files import TableFiles
from pyparq.format.types import Schema
from pyparq.io.url import is_url, shown


class OpenedTable(NamedTuple):
    """A table at one version."""

    root: str
    """What messages call the table."""
    files: tuple[DataFile, ...]
    schema: Schema
    """Of the table, with its own names and the partition columns, in the table's order."""
    partitions: Partitions
    """The columns whose values the log holds."""
    matching: Matching
    known: TableFiles
    storage_options: Mapping[str, Any] | None = None
    """How its own library reaches the store."""


def data_file(path: str, size: int | None) -> DataFile:
    """The file at an absolute path or URL of a log."""
    where = plain_place(path)
    return DataFile(shown(where) if is_url(where) else where, where, (), size)


def plain_place(uri: str) -> str:
    """A local file's or folder's path. Names in logs of Iceberg are not URL-encoded. Other URLs stay as they are."""
    if not uri.startswith("file:/"):
        return uri
    return "/" + uri.removeprefix("file:").lstrip("/")
