"""ParquetFile: one open file, to look into and to read from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from pyparq.encodings import encoding_name
from pyparq.errors import UnsupportedError, located
from pyparq.index.bloom import BloomFilter
from pyparq.index.bounds import Bounds
from pyparq.index.page_index import PageLocations
from pyparq.option_help import READ, with_options
from pyparq.options import ColumnName, ReadOptions
from pyparq.printing import printable
from pyparq.read.bloom_probe import read_filter
from pyparq.read.indexes import read_locations, read_page_indexes
from pyparq.read.metadata import FileMetaData, find_leaf
from pyparq.read.open import OpenFile, open_file
from pyparq.read.pages import DATA_PAGE_V2, DICTIONARY_PAGE, walk_pages
from pyparq.read.plan import ScanPlan
from pyparq.read.rows import row_numbers
from pyparq.read.scan import BATCH_ROWS, Scan
from pyparq.schemas.tree import SchemaTree
from pyparq.schemas.types import Schema
from pyparq.table import Batch, Table

if TYPE_CHECKING:
    from typing import Unpack

    from pyparq.arguments import Filters, Names, ReadArguments

Column = int | ColumnName


@dataclass(frozen=True, slots=True)
class PageInfo:
    """One page as its header describes it. Sizes are bytes without the header; ``num_values`` counts nulls too."""

    ordinal: int | str
    type: str
    encoding: str
    num_values: int
    compressed_size: int
    uncompressed_size: int
    has_crc: bool


class ParquetFile:
    """An open Parquet file.

    ``source`` is a path, ``os.PathLike``, URL (needs fsspec), what ``fsspec.open`` gives, bytes-like object or seekable
    binary file object. ``storage_options`` go to the file system of a URL (docs/urls.md). ``options``: as
    below, the fields of :class:`pyparq.ReadOptions`. Opening reads the footer and nothing else.

    Raises :class:`pyparq.CorruptFileError` when ``source`` is not a whole Parquet file.
    """

    def __init__(
        self, source: Any, *, storage_options: Mapping[str, Any] | None = None, **options: Unpack[ReadArguments]
    ) -> None:
        self._file: OpenFile = open_file(source, ReadOptions.make(options), storage_options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file (a file object that was given stays open). What other threads are reading at that moment
        they get; then, as for any later read, :class:`OptionError` says that the file is closed."""
        self._file.close()

    @printable
    def __repr__(self) -> str:
        return f"<ParquetFile {self._file.name}: {self.metadata.num_rows} rows, {self.num_row_groups} row groups>"

    def __arrow_c_schema__(self) -> object:
        return self.scan().__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """All rows as a stream of Arrow batches: see :meth:`Scan.__arrow_c_stream__`."""
        return self.scan().__arrow_c_stream__(requested_schema)

    def __pyparq_stream__(self) -> tuple[Schema, Iterator[Batch]]:
        return self.scan().__pyparq_stream__()

    # ---- what the file says of itself

    @property
    def schema(self) -> SchemaTree:
        """The Parquet schema: a tree of nodes with levels and physical types."""
        return self._file.tree

    @property
    def schema_arrow(self) -> Schema:
        """The Arrow schema that tables of this file have."""
        return self._file.fields.schema

    @property
    def metadata(self) -> FileMetaData:
        """The footer: row groups, column chunks, their sizes and statistics."""
        return FileMetaData(self._file)

    @property
    def num_row_groups(self) -> int:
        """How many row groups the file has."""
        return self._file.num_row_groups

    @property
    def key_value_metadata(self) -> dict[bytes, bytes]:
        """Key-value metadata of the file."""
        return self._file.key_values

    def page_locations(self, row_group: int, column: Column) -> PageLocations | None:
        """Offsets, sizes and first rows of a chunk's data pages (OffsetIndex); ``None`` where it has none."""
        chunk = self._file.chunk(row_group, find_leaf(self._file, column))
        return read_locations(self._file, [chunk]).get((row_group, chunk.node.column))

    def column_index(self, row_group: int, column: Column) -> Bounds | None:
        """Bounds and null counts of a chunk's data pages (ColumnIndex); ``None`` where it has none."""
        chunk = self._file.chunk(row_group, find_leaf(self._file, column))
        found = read_page_indexes(self._file, [chunk]).get((row_group, chunk.node.column))
        return None if found is None else found[0]

    def bloom_filter(self, row_group: int, column: Column) -> BloomFilter | None:
        """The whole Bloom filter of a chunk; ``None`` where it has none.

        Raises :class:`CorruptFileError`, :class:`UnsupportedError` or :class:`EncryptionError` for one that cannot be
        read.
        """
        chunk = self._file.chunk(row_group, find_leaf(self._file, column))
        with located(file=self._file.name, row_group=row_group, column=chunk.name):
            return read_filter(chunk, self._file.fetcher, self._file.options.limits)

    def pages(self, row_group: int, column: Column) -> list[PageInfo]:
        """Every page of a chunk from its headers, dictionary page included (reads the whole chunk)."""
        chunk = self._file.chunk(row_group, find_leaf(self._file, column))
        with located(file=self._file.name, row_group=row_group, column=chunk.name):
            (data,) = self._file.fetcher.fetch([(chunk.start, chunk.size)])
            return [_page_info(page) for page in walk_pages(data, chunk, self._file.options)]

    # ---- reading

    def scan(
        self,
        columns: Names | None = None,
        filters: Filters | None = None,
        row_groups: Sequence[int] | None = None,
        *,
        rows: Any = None,
        limit: int | None = None,
    ) -> Scan:
        """A lazy question: ``columns`` (all when ``None``) of the rows where ``filters`` is true.

        ``filters`` is an expression over :func:`pyparq.col` or pyarrow's list of tuples. ``rows`` restricts the scan to
        a slice of the file's rows, or to row numbers (each once, in file order: see :meth:`take`); ``limit`` to the
        first rows that match. Pages that hold none of these are not read, where the file has an OffsetIndex.

        Raises :class:`ColumnNotFoundError` for unknown columns, :class:`FilterError` for literals that do not fit and
        :class:`OptionError` for rows that do not exist.
        """
        with located(file=self._file.name):
            return Scan(self._file.fork(), columns, filters, row_groups, rows=rows, limit=limit)

    def read(self, columns: Names | None = None, filters: Filters | None = None) -> Table:
        """All (matching) rows as a table."""
        return self.scan(columns, filters).to_table()

    def head(self, num_rows: int = 10, columns: Names | None = None, filters: Filters | None = None) -> Table:
        """The first (matching) rows."""
        return self.scan(columns, filters, limit=num_rows).to_table()

    def read_rows(self, start: int, stop: int | None = None, columns: Names | None = None) -> Table:
        """Rows ``start`` to ``stop`` of the file (to its end when ``None``), with a slice's meaning of both."""
        return self.scan(columns, rows=slice(start, stop)).to_table()

    def take(self, indices: Any, columns: Names | None = None) -> Table:
        """The rows with these numbers, counted from 0 over the whole file, in the order given; repeats are repeated.

        Reads the pages that hold them, dictionaries and OffsetIndexes; whole column chunks where these are missing.
        Raises :class:`OptionError` for a row that does not exist.
        """
        with located(file=self._file.name):
            numbers = row_numbers(indices, self.metadata.num_rows)
            if isinstance(numbers, slice):
                return self.scan(columns, rows=numbers).to_table()
            rows, places = np.unique(numbers, return_inverse=True)
            return self.scan(columns, rows=rows).rows_at(places.reshape(-1))

    def read_row_group(self, k: int, columns: Names | None = None) -> Table:
        """The rows of row group ``k``, counted from 0."""
        return self.scan(columns, None, [k]).to_table()

    def read_row_groups(self, row_groups: Sequence[int], columns: Names | None = None) -> Table:
        """The rows of these row groups, in the order given."""
        return self.scan(columns, None, row_groups).to_table()

    def iter_batches(
        self,
        batch_size: int | None = BATCH_ROWS,
        row_groups: Sequence[int] | None = None,
        columns: Names | None = None,
        filters: Filters | None = None,
    ) -> Iterator[Batch]:
        """Matching rows in batches of at most ``batch_size``; see :meth:`Scan.batches`."""
        return self.scan(columns, filters, row_groups).batches(batch_size)

    def execute(self, plan: ScanPlan) -> Table:
        """Run a plan that :meth:`Scan.plan` made, here or in another process, on the same file: :meth:`scan_of`, at
        once and as a table."""
        return self.scan_of(plan).to_table()

    def scan_of(self, plan: ScanPlan) -> Scan:
        """The scan that a plan stands for, as a table, in batches or as a stream.

        Reads the pages that were planned, less what filtering proves unneeded, and asks no index again; opening this
        file took the one request for its footer that opening always takes. Keys, limits and threads are this file's,
        all other options the plan's. Where a page is not what the plan says of it, the row group is read again
        without page locations, with a :class:`CorruptIndexWarning`.

        Raises :class:`PlanError` when this is another file or it changed since it was planned, and when the plan does
        not read what its question takes: it was altered then.
        """
        with located(file=self._file.name):
            return Scan.of_plan(self._file, plan)


ParquetFile.__doc__ = with_options(ParquetFile.__doc__, READ)


def _page_info(page: Any) -> PageInfo:
    header = page.header
    kind, inner = "data v1", header.data_page_header
    if header.type == DATA_PAGE_V2:
        kind, inner = "data v2", header.data_page_header_v2
    elif header.type == DICTIONARY_PAGE:
        kind, inner = "dictionary", header.dictionary_page_header
    if inner is None:
        raise UnsupportedError(f"a {kind} page without its header")
    return PageInfo(
        page.ordinal, kind, encoding_name(inner.encoding), inner.num_values, header.compressed_page_size,
        header.uncompressed_page_size, header.crc is not None,
    )  # fmt: skip
