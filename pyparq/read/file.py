"""ParquetFile: one open file, to look into and to read from."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar

import numpy as np

from pyparq.arrow.table import Batch, Table
from pyparq.column_names import ColumnName
from pyparq.errors import ChangedFileError, DataError, ParquetError, by_each, located
from pyparq.filters import bind as binding
from pyparq.filters import expression as expressions
from pyparq.format.compression import encoding_name
from pyparq.format.int96 import UNIT_NS
from pyparq.format.schema_node import Node
from pyparq.format.schema_tree import SchemaTree
from pyparq.format.types import Schema, schema_view
from pyparq.index.bloom_filter import BloomFilter
from pyparq.index.page_index import PageLocations
from pyparq.index.statistics import Bounds, gregorian
from pyparq.io.locations import located as on_system
from pyparq.io.retry import may_pass
from pyparq.io.source import begin
from pyparq.option_checks import methods_told
from pyparq.option_values import Int96Unit
from pyparq.options import ReadOptions, with_options
from pyparq.read import file_map
from pyparq.read.decode import chunk_pages
from pyparq.read.decode.memory_account import Account
from pyparq.read.footers import metadata as footers
from pyparq.read.footers.open_file import OpenFile, open_file
from pyparq.read.plan import bloom_probe, page_indexes
from pyparq.read.projection import random_rows, row_numbers
from pyparq.read.scan import BATCH_ROWS, Scan
from pyparq.read.streams import Asked, Convertible
from pyparq.runtime.tables import html_view, size_text, viewable
from pyparq.runtime.text import printable

if TYPE_CHECKING:
    from typing import Unpack

    from pyparq.arguments import Filters, ReadArguments
    from pyparq.column_names import Names
    from pyparq.read.explain import Explanation  # noqa: F401  (below, in a text)
    from pyparq.read.file_map import FileMap
    from pyparq.read.footers.metadata import FileMetaData, RowGroupMetaData
    from pyparq.read.plan.scan_plan import ScanPlan

_LAST, _FIRST = (
    np.datetime64(nanoseconds // UNIT_NS["us"], "us") for nanoseconds in ((1 << 63) - 1, -(1 << 63))
)  # fmt: skip
"""The microseconds in which 64 bits of nanoseconds end and begin."""


def with_int96_unit(file: OpenFile) -> OpenFile:
    """The file with a unit in place of ``"auto"``."""
    if file.options.coerce_int96_timestamp_unit != "auto":
        return file
    unit: Int96Unit = "us" if needs_microseconds(file) else "ns"
    return file.with_options(replace(file.options, coerce_int96_timestamp_unit=unit))


def needs_microseconds(file: OpenFile) -> bool:
    """Whether nanoseconds do not hold every INT96 timestamp of the file.

    Statistics and page indexes answer if the file has them in INT96's own order. Otherwise the values are read.
    """
    return any(leaf.type.kind == "int96" and _is_beyond(file, leaf) for leaf in file.tree.leaves)


def _is_beyond(file: OpenFile, leaf: Node) -> bool:
    try:
        time = expressions.col(leaf.path)
        far = (time >= _LAST) | (time <= _FIRST)  # what nanoseconds do not hold
        if leaf.max_rep == 0 and not Scan(_read_in(file, "us"), [], far).count():
            return False
        for _ in Scan(_read_in(file, "ns"), [leaf.path]).iter_batches():
            pass
    except DataError:
        return True
    return False


def _read_in(file: OpenFile, unit: Int96Unit) -> OpenFile:
    options: ReadOptions = replace(file.options, coerce_int96_timestamp_unit=unit, out_of_range="raise")
    return file.with_options(options)


T = TypeVar("T")

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


@methods_told
class ParquetFile(Asked[Scan, "ScanPlan", "Explanation", "FileMap"]):
    """An open Parquet file.

    ``source`` is a path, an ``os.PathLike``, a URL (needs obstore or fsspec), the result of ``fsspec.open``, a
    bytes-like object or a seekable binary file object. ``storage_options`` are passed to the file system of a URL.
    ``filesystem`` is one of fsspec or pyarrow, or a store of obstore, where ``source`` is a path; or ``"obstore"`` or
    ``"fsspec"``, the library for a URL (docs/urls.md). ``options`` are the fields of :class:`pyparq.ReadOptions`,
    listed below. Opening reads only the footer.

    Raises :class:`pyparq.CorruptFileError` when ``source`` is not a complete Parquet file.

    Example::

        with pyparq.ParquetFile("flights.parquet") as file:
            print(file.num_row_groups, file.schema_arrow.names)
            few = file.read(["dest"], pyparq.col("flight") == 7)
    """

    _elsewhere = Convertible._elsewhere | by_each({
        "shape": "num_rows and len(columns)", "names column_names": "=columns",
        "read_all collect read_pandas": "=read", "query": "read(filters=)", "to_batches": "=iter_batches",
        "row_group": "metadata.row_group(k)", "path name fn paths": "what you opened it with",
        "closed": "a with block, at whose end it is closed", "len": "=count",
        "info describe": "print(file), or file.metadata", "nrows": "=num_rows",
        "created_by": "metadata.created_by", "num_columns": "len(columns)",
        "slice": "read_rows(start, stop)", "write": "pyparq.write_table(data, path)",
        "append write_row_groups": 'pyparq.write_dataset(data, folder, mode="append")',
        "delete remove_row_groups": "pyparq.delete(path, filters)", "cats": "pyparq.dataset(path).partitions",
    })  # fmt: skip

    def __init__(
        self,
        source: Any,
        *,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
        **options: Unpack[ReadArguments],
    ) -> None:
        source, storage_options = on_system(source, filesystem, storage_options)
        self._take(open_file(source, ReadOptions.make(options), storage_options))

    def _take(self, opened: OpenFile) -> None:
        try:
            self._file: OpenFile = with_int96_unit(opened)
        except BaseException:
            opened.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. A file object that was passed in stays open. A request that another thread has under way
        still succeeds; every later request raises :class:`OptionError`, because the file is closed."""
        self._file.close()

    def __len__(self) -> NoReturn:
        raise TypeError("a ParquetFile has no length; use num_rows or num_row_groups")

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, key: int | slice) -> Scan:
        """A scan of a row group, by its number, or of a slice of them, as in fastparquet."""
        if not isinstance(key, (int, slice)):
            raise TypeError("the items of a ParquetFile are its row groups; use read(['name']) for columns")
        found = range(self.num_row_groups)[key]
        return self.scan(row_groups=[found] if isinstance(found, int) else found)

    @printable
    def __repr__(self) -> str:
        return f"<ParquetFile {self._file.name}: {self.metadata.num_rows} rows, {self.num_row_groups} row groups>"

    @viewable
    def _repr_html_(self) -> str:
        size = size_text(self._file.fetcher.source.size)
        facts = [("file", f"{self.metadata.num_rows:,} rows, {self.num_row_groups:,} row groups, {size}")]
        return html_view(f"ParquetFile {self._file.name}", facts, *schema_view(self.schema_arrow))

    # ---- the contents of the footer and the indexes

    @property
    def tree(self) -> SchemaTree:
        """The Parquet schema: a tree of nodes with levels and physical types."""
        return self._file.tree

    @property
    def schema(self) -> Schema:
        """The Arrow schema that tables of this file have."""
        return self._file.fields.schema

    schema_arrow = schema

    @property
    def metadata(self) -> FileMetaData:
        """The footer: row groups, column chunks, their sizes and statistics."""
        return footers.FileMetaData(self._file)

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return self.metadata.num_rows

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self.schema_arrow.names

    @property
    def num_row_groups(self) -> int:
        """Number of row groups in the file."""
        return self._file.num_row_groups

    @property
    def key_value_metadata(self) -> dict[bytes, bytes]:
        """Key-value metadata of the file."""
        return self._file.key_values

    @property
    def row_groups(self) -> list[RowGroupMetaData]:
        """What the footer says of each row group."""
        return [self.metadata.row_group(k) for k in range(self.num_row_groups)]

    @property
    def statistics(self) -> dict[str, dict[str, list[Any]]]:
        """``["min"][column]``, as in fastparquet: one value per row group; also ``max`` and ``null_count``."""
        chunks = {leaf.name: [group.column(leaf.column).statistics for group in self.row_groups]
                  for leaf in self.tree.leaves}  # fmt: skip
        return {of: {name: [getattr(one, of, None) for one in found] for name, found in chunks.items()}
                for of in ("min", "max", "null_count", "distinct_count")}  # fmt: skip

    def page_locations(self, row_group: int, column: Column) -> PageLocations | None:
        """Offsets, sizes and first rows of a column chunk's data pages; ``None`` if it has no OffsetIndex."""
        chunk = self._asked().chunk(row_group, footers.find_leaf(self._file, column))
        return page_indexes.read_locations(self._file, [chunk]).get((row_group, chunk.node.column))

    def column_index(self, row_group: int, column: Column) -> Bounds | None:
        """Bounds and null counts of a column chunk's data pages; ``None`` if it has no ColumnIndex."""
        chunk = self._asked().chunk(row_group, footers.find_leaf(self._file, column))
        found = page_indexes.read_page_indexes(self._file, [chunk]).get((row_group, chunk.node.column))
        return None if found is None else gregorian(found[0])

    def bloom_filter(self, row_group: int, column: Column) -> BloomFilter | None:
        """The Bloom filter of a column chunk; ``None`` if it has none.

        Raises :class:`CorruptFileError`, :class:`UnsupportedError` or :class:`EncryptionError` if it cannot be
        read.
        """
        chunk = self._asked().chunk(row_group, footers.find_leaf(self._file, column))
        with located(file=self._file.name, row_group=row_group, column=chunk.name):
            found = bloom_probe.read_filter(chunk, self._file.fetcher, self._file.options.limits)
        if found is not None:
            shown = self._file.fields.shown(chunk.node)
            found.of_literal = partial(binding.value_of_literal, node=chunk.node, field=shown)
        return found

    def pages(self, row_group: int, column: Column) -> list[PageInfo]:
        """All pages of a column chunk, from their headers, including the dictionary page. Reads the whole chunk."""
        chunk = self._asked().chunk(row_group, footers.find_leaf(self._file, column))
        with located(file=self._file.name, row_group=row_group, column=chunk.name):
            (data,) = self._file.fetcher.fetch([(chunk.start, chunk.size)])
            pages = chunk_pages.ChunkPages(data, chunk, self._file.options, Account(self._file.options.limits))
            pages.check()
            return _page_infos(pages)

    # ---- reading

    def _asked(self) -> OpenFile:
        """The file, prepared for a new question: a remote file is checked for changes."""
        begin(self._file.fetcher.source)
        return self._file

    def scan(
        self,
        columns: Names | None = None,
        filters: Filters | None = None,
        row_groups: Sequence[int] | None = None,
        *,
        rows: Any = None,
        limit: int | None = None,
    ) -> Scan:
        """A lazy scan of ``columns`` (all when ``None``) in the rows where ``filters`` is true.

        ``filters`` is an expression over :func:`pyparq.col`, or pyarrow's list of tuples. ``rows`` restricts the scan
        to a slice of the file's rows, or to a list of row numbers: each row comes once, in file order (see
        :meth:`take` for another order). ``limit`` restricts it to the first rows that match. Where the file has an
        OffsetIndex, pages without any of these rows are not read.

        Raises :class:`ColumnNotFoundError` for unknown columns, :class:`FilterError` for literals that do not fit the
        column and :class:`OptionError` for rows that do not exist.
        """
        begin(self._file.fetcher.source)
        with located(file=self._file.name):
            return Scan(self._file.fork(), columns, filters, row_groups, rows=rows, limit=limit)

    def tail(self, num_rows: int = 10, columns: Names | None = None) -> Table:
        """The last rows."""
        return self.read_rows(max(self.num_rows - num_rows, 0), None, columns)

    def read_rows(self, start: int, stop: int | None = None, columns: Names | None = None) -> Table:
        """Rows ``start`` to ``stop`` of the file (to the end when ``None``), with the rules of a Python slice."""
        return self.scan(columns, rows=slice(start, stop)).to_table()

    def take(self, indices: Any, columns: Names | None = None) -> Table:
        """The rows with these numbers, in the order given. Rows are counted from 0 over the whole file and may repeat.

        Reads the pages that hold these rows, the dictionaries and the OffsetIndexes. Without an OffsetIndex it reads
        whole column chunks.
        Raises :class:`OptionError` for a row that does not exist.
        """
        with located(file=self._file.name):
            numbers = row_numbers(indices, self.metadata.num_rows)
            if isinstance(numbers, slice):
                return self.scan(columns, rows=numbers).to_table()
            rows, places = np.unique(numbers, return_inverse=True)
            return self.scan(columns, rows=rows).rows_at(places.reshape(-1))

    def sample(self, num_rows: int = 10, columns: Names | None = None, *, seed: int | None = None) -> Table:
        """Rows chosen at random, each at most once, in file order. Every row is equally likely.

        ``num_rows``: how many (all, if the file has fewer). ``columns``: as in :meth:`scan`. ``seed``: a number that
        makes the same choice each time. Reads the pages that hold these rows, as :meth:`take` does.
        Raises :class:`OptionError` for a number of rows below 0.
        """
        return self.scan(columns, rows=random_rows(num_rows, self.metadata.num_rows, seed)).to_table()

    def read_row_group(self, k: int, columns: Names | None = None) -> Table:
        """The rows of row group ``k``, counted from 0."""
        return self.scan(columns, None, [k]).to_table()

    def read_row_groups(self, row_groups: Sequence[int], columns: Names | None = None) -> Table:
        """The rows of these row groups, in the order given."""
        return self.scan(columns, None, row_groups).to_table()

    def iter_row_groups(self, columns: Names | None = None, filters: Filters | None = None) -> Iterator[Any]:
        """The (matching) rows of one row group after the other as DataFrames of pandas, as in fastparquet."""
        return (self.scan(columns, filters, [k]).to_pandas() for k in range(self.num_row_groups))

    def iter_batches(
        self,
        batch_size: int | None = BATCH_ROWS,
        row_groups: Sequence[int] | None = None,
        columns: Names | None = None,
        filters: Filters | None = None,
    ) -> Generator[Batch]:
        """Matching rows in batches of at most ``batch_size``; see :meth:`Scan.iter_batches`."""
        return self.scan(columns, filters, row_groups).iter_batches(batch_size)

    def _map(self, scan: Scan | None, most_files: int) -> FileMap:
        return file_map.map_file(self._asked(), scan)

    def execute(self, plan: ScanPlan) -> Table:
        """Run a plan and return a table. :meth:`Scan.plan` made the plan for the same file, here or in another process.
        See :meth:`scan_of`."""
        return self.scan_of(plan).to_table()

    def scan_of(self, plan: ScanPlan) -> Scan:
        """The scan that a plan describes. Read it as a table, in batches or as a stream.

        It reads the planned pages, except those that filtering proves unneeded, and reads no index again. (Opening
        this file has already read the footer.) Keys, limits and threads are those of this file; all other options come
        from the plan. If a page is not as the plan describes it, the row group is read again without page locations,
        with a :class:`CorruptIndexWarning`.

        Raises :class:`PlanError` when this is another file, when the file changed since the plan was made, and when
        the plan was altered and does not read what its scan needs.
        """
        with located(file=self._file.name):
            return Scan.of_plan(self._asked(), plan)


ParquetFile.__doc__ = with_options(ParquetFile.__doc__, ReadOptions)


def _page_infos(pages: chunk_pages.ChunkPages) -> list[PageInfo]:
    found = []
    if (first := pages.dictionary) is not None:
        found.append(PageInfo(
            "dictionary", "dictionary", encoding_name(first.encoding), first.num_values, first.stored,
            first.uncompressed, first.has_crc,
        ))  # fmt: skip
    for ordinal, page in enumerate(pages.pages):
        found.append(PageInfo(
            ordinal, f"data v{page.version}", encoding_name(page.encoding), page.num_values, page.stored,
            page.uncompressed, page.has_crc,
        ))  # fmt: skip
    return found


def file_of(parquet: ParquetFile) -> OpenFile:
    """The open file that ``parquet`` shows to a user."""
    return parquet._file


def read_once(
    source: Any, options: ReadOptions, storage_options: Mapping[str, Any] | None, ask: Callable[..., T], *given: Any
) -> T:
    """The answer to one question about a file: ``ask(file, *given)``. If its footer is kept in memory, the question's
    own requests tell whether the file is still the same. If it is not, it is opened anew and asked again."""
    opened = open_file(source, options, storage_options, lazily=True)
    fetcher = opened.fetcher
    try:
        file = _parquet_file(opened)
        try:
            answer = ask(file, *given)
        except Exception as error:
            if not isinstance(error, ChangedFileError) and not may_pass(error):
                fetcher.prove()  # a new version may have the column, say
            raise
        if fetcher.kept is not None:
            fetcher.prove()
        return answer
    except ChangedFileError:
        if fetcher.is_proven:
            raise
    finally:
        opened.close()
    with _parquet_file(open_file(source, options, storage_options)) as file:
        return ask(file, *given)


def _parquet_file(opened: OpenFile) -> ParquetFile:
    file = object.__new__(ParquetFile)
    file._take(opened)
    return file


def first_table(
    parquet: ParquetFile,
    columns: Names | None,
    filters: Filters | None,
    row_groups: Sequence[int] | None,
    rows: Any,
    limit: int | None,
) -> Table:
    """All rows of the only scan of a file: see :meth:`ParquetFile.scan`."""
    file = parquet._file
    try:
        scan = Scan(file, columns, filters, row_groups, rows=rows, limit=limit)
    except ParquetError as error:
        error.locate(file=file.name)
        raise
    return scan._table(scan._all_batches())
