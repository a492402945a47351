"""The top-level functions for reading."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from pyparq.datasets import dataset as datasets
from pyparq.errors import OptionError, ParquetError, located
from pyparq.filters import expression
from pyparq.io.locations import located as on_system
from pyparq.io.source import has_folders, names_many, opened_early
from pyparq.io.url import is_url
from pyparq.option_checks import NOT_FOR_WRITING, keywords
from pyparq.options import ReadOptions, with_options
from pyparq.read import file as reader
from pyparq.read.async_reads import run_async
from pyparq.runtime.lazy_import import load

if TYPE_CHECKING:
    from typing import Unpack

    from pyparq.arguments import Filters, ReadArguments
    from pyparq.arrow.table import Table
    from pyparq.column_names import Names
    from pyparq.format.types import Schema
    from pyparq.read.footers.metadata import FileMetaData
    from pyparq.read.scan import Scan

T = TypeVar("T")

__all__ = ["read_metadata", "read_schema", "read_table", "read_table_async"]


@keywords
def read_table(
    source: Any,
    columns: Names | None = None,
    filters: Filters | None = None,
    row_groups: Sequence[int] | None = None,
    *,
    rows: Any = None,
    limit: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    **options: Unpack[ReadArguments],
) -> Table:
    """Read a file, or a part of it, into a table. Or many files: a folder, a glob or a list, as in
    :func:`pyparq.dataset`.

    ``columns``: the columns to read, by name or number (from 0); ``None`` reads all. A path into a nested column is
    dotted or a tuple of names. ``filters``: an expression over :func:`pyparq.col`, SQL text, a list of tuples as in
    pyarrow, or an expression of ``pyarrow.compute`` or polars. Exactly the rows for which it is true are returned;
    indexes in the file are used where they help. ``row_groups``: numbers of the row groups to read, counted from 0;
    ``None`` reads all. ``rows``: a slice of the file's rows, or row numbers; every row is returned once, in file order.
    ``limit``: return at most this many rows, the first that match. ``storage_options``: options for the file system of
    a URL, as in pandas. ``filesystem``: a file system of fsspec or pyarrow or a store of obstore, where ``source`` is a
    path; or ``"obstore"`` or ``"fsspec"``, the library for a URL (docs/urls.md). ``options``: the fields of
    :class:`pyparq.ReadOptions`, listed below.

    Raises :class:`pyparq.ParquetError`, which names the file, row group, column and page as far as they are known.

    Example::

        table = pyparq.read_table("flights.parquet", ["flight", "dest"], filters=pyparq.col("tailnum") == "N14228")
        frame = table.to_pandas()
    """
    if filesystem is not None:
        source, storage_options = on_system(source, filesystem, storage_options)
    # A list in the place of an iterator: a file that has changed is asked a second time.
    parts: list[Any] = [columns, filters, row_groups, rows]
    columns, filters, row_groups, rows = [list(part) if hasattr(part, "__next__") else part for part in parts]

    def many(source: Any) -> Table:
        for name, given in (("row_groups", row_groups), ("rows", rows)):
            if given is not None:
                raise OptionError(f"{name} counts within one file, but there may be several. Use filters or limit")
        dataset = datasets.Dataset(source, storage_options=storage_options, **options)
        return dataset.scan(columns, filters, limit=limit).to_table()

    def one() -> Table:
        given = ReadOptions.make(options)
        opened = opened_early(source, storage_options, given, "pyparq.read.file")
        asked = columns, filters, row_groups, rows, limit
        return reader.read_once(opened, given, storage_options, reader.first_table, *asked)

    return _answer(source, one, many)


async def read_table_async(
    source: Any,
    columns: Names | None = None,
    filters: Filters | None = None,
    row_groups: Sequence[int] | None = None,
    *,
    rows: Any = None,
    limit: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    **options: Unpack[ReadArguments],
) -> Table:
    """:func:`pyparq.read_table` for a program with an event loop. See :func:`pyparq.run_async`, which does the same
    for all other reads.

    Example::

        async def answer(tailnum):
            return await pyparq.read_table_async("flights.parquet", filters=pyparq.col("tailnum") == tailnum)
    """
    source, storage_options = on_system(source, filesystem, storage_options)
    given = {"row_groups": row_groups, "rows": rows, "limit": limit, "storage_options": storage_options}
    return await run_async(read_table, source, columns, filters, **given, **options)


def _answer(source: Any, one: Callable[[], T], many: Callable[[Any], T]) -> T:
    """The answer of one file, or of many. A URL that looks like a file may be a folder: that is asked last."""
    if names_many(source):
        return many(source)
    try:
        return one()
    except FileNotFoundError:
        if isinstance(source, str) and is_url(source) and has_folders(source):
            with suppress(FileNotFoundError):
                return many(source)
        raise


@keywords
def count(
    source: Any,
    filters: Filters | None = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    **options: Unpack[ReadArguments],
) -> int:
    """The number of rows of a file, or of many; with ``filters``, of those that match. Values are read only where
    footers and indexes do not know the number. ``source``, ``filters`` and the others are as in
    :func:`pyparq.read_table`.

    Example::

        print(pyparq.count("flights.parquet", pyparq.col("dest") == "LAX"))
    """
    source, storage_options = on_system(source, filesystem, storage_options)

    def one() -> int:
        if filters is None:
            from pyparq.read.footers.open_file import open_file

            file = open_file(source, ReadOptions.make(options), storage_options)
            with closing(file), located(file=file.name):
                return sum(map(file.num_rows_of, range(file.num_row_groups)))
        with reader.ParquetFile(source, storage_options=storage_options, **options) as opened:
            return opened.scan(filters=filters).count()

    return _answer(
        source, one, lambda many: datasets.Dataset(many, storage_options=storage_options, **options).count(filters)
    )


def rows_that_pass(table: Table, filters: Any) -> Any:
    """The numbers of the rows of a table that pass, found in a file in memory of the tested columns."""
    from pyparq.filters.expression import top_names
    from pyparq.write.file import write_table

    def scan(given: Table, filters: Any) -> Scan:
        stored = io.BytesIO()
        write_table(given, stored, compression="none", use_dictionary=False, write_statistics=False, store_schema=True)
        return reader.ParquetFile(stored.getvalue()).scan(filters=filters)

    try:
        asked = scan(table.slice(0, 0), filters).filters
        if asked is None:
            return np.arange(table.num_rows)
        tested = top_names(asked)
        found = scan(table.select([k for k, name in enumerate(table.column_names) if name in tested]), asked)
        starts = np.cumsum([0, *(found.file.num_rows_of(k) for k in range(found.file.num_row_groups))])
        passing = [rows.rows() + starts[row_group] for row_group, rows in found.matching_rows()]
    except ParquetError as error:
        error.file = None
        raise
    return np.concatenate([np.empty(0, np.int64), *passing])


def write(
    path: Any, data: Any, row_group_offsets: Any = None, *, file_scheme: str = "simple", append: bool = False,
    times: str = "int64", object_encoding: Any = "infer", **options: Any,
) -> None:  # fmt: skip
    """fastparquet's name of :func:`pyparq.write_table` and, for a folder, of :func:`pyparq.write_dataset`.

    ``row_group_offsets``: rows of a row group, or the first row of each. ``file_scheme``: ``"hive"`` for a folder, as
    ``partition_on`` is.
    ``append``: add files to the folder. ``times``: ``"int96"`` for timestamps of that type. ``object_encoding``: types
    are those of the values in any case. ``options``: those of the other two functions.
    """
    from pyparq.datasets.write.write_dataset import write_dataset
    from pyparq.write.file import ParquetWriter, write_table

    if isinstance(data, (str, os.PathLike)):
        path, data = data, path
    if options.pop("write_index", None) is False:
        data = data.reset_index(drop=True)
    if times == "int96":
        options["int96_timestamps"] = True
    if isinstance(object_encoding, Mapping) and {*object_encoding.values()} - {"utf8", "bytes", "infer"}:
        raise OptionError(f"object_encoding={object_encoding!r}: {NOT_FOR_WRITING['object_encoding']}")
    if isinstance(row_group_offsets, int):
        options["row_group_size"] = row_group_offsets
    named = ("partition_on", "partition_by", "partition_cols")
    options |= (parts := {name: found for name in named if (found := options.pop(name, None))})
    if file_scheme != "simple" or parts:
        write_dataset(data, path, **({**options, "mode": "append"} if append else options))
    elif append:
        raise OptionError(f"append=True: {NOT_FOR_WRITING['append']}")
    elif isinstance(row_group_offsets, (list, tuple)):
        with ParquetWriter(path, **options) as writer:
            for start, stop in pairwise([*row_group_offsets, len(data)]):
                writer.write(data[start:stop], max(stop - start, 1))
    else:
        write_table(data, path, **options)


def field(name: Any, *of: Any, **given: Any) -> Any:
    """pyarrow's two functions of this name: :func:`pyparq.col`, and a field of a schema where a type is given."""
    return load("pyarrow").field(name, *of, **given) if of or given else expression.col(name)


def read_schema(
    source: Any,
    *,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    **options: Unpack[ReadArguments],
) -> Schema:
    """Read the Arrow schema of a file; of a folder, a glob or a list, that of the table of all files.

    Example::

        print(pyparq.read_schema("flights.parquet").names)
    """
    source, storage_options = on_system(source, filesystem, storage_options)

    def one() -> Schema:
        with reader.ParquetFile(source, storage_options=storage_options, **options) as file:
            return file.schema_arrow

    return _answer(source, one, lambda many: datasets.Dataset(many, storage_options=storage_options, **options).schema)


def read_metadata(
    source: Any,
    *,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    **options: Unpack[ReadArguments],
) -> FileMetaData:
    """Read the footer of a file.

    Example::

        footer = pyparq.read_metadata("flights.parquet")
        print(footer.num_rows, footer.row_group(0).column("flight").compression)
    """
    with reader.ParquetFile(source, storage_options=storage_options, filesystem=filesystem, **options) as file:
        return file.metadata


for _function in (read_table, read_table_async, count, read_schema, read_metadata):
    _function.__doc__ = with_options(_function.__doc__, ReadOptions)
