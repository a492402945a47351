"""A dataset: many files read as one table."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from copy import copy
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyparq.arrow import pandas_key
from pyparq.arrow.column_operations import take
from pyparq.arrow.schema.from_text import schema as parse_schema
from pyparq.arrow.table import Batch, Table
from pyparq.column_names import as_list
from pyparq.datasets.explain import DatasetExplanation, FileScan, Run, explain_run
from pyparq.datasets.files import DatasetFiles, Progress
from pyparq.datasets.opening import Opening, TrustedCatalog
from pyparq.datasets.partitions import with_filenames
from pyparq.datasets.scan import DatasetPlan, DatasetScan, file_scans_of
from pyparq.errors import OptionError
from pyparq.filters.expression import Expression, IsIn, Path
from pyparq.filters.value_array import is_null_literal
from pyparq.format.schema_tree import SchemaTree
from pyparq.format.types import Schema
from pyparq.io.locations import located as on_system
from pyparq.option_checks import keywords, methods_told
from pyparq.options import ReadOptions, with_options
from pyparq.read.file_map import MOST_PAGES, FileMap, MappedFile, MapQuery, document, mapped_file
from pyparq.read.page_fates import PARTITION
from pyparq.read.projection import random_rows, row_numbers
from pyparq.read.scan import BATCH_ROWS
from pyparq.read.streams import Asked
from pyparq.runtime.tables import Cell, html_view, viewable
from pyparq.runtime.text import printable

if TYPE_CHECKING:
    from typing import Unpack

    from pyparq.arguments import Filters, ReadArguments
    from pyparq.column_names import Names


@methods_told
class Dataset(Asked[DatasetScan, DatasetPlan, DatasetExplanation, FileMap]):
    """Files that are read as one table: see :func:`pyparq.dataset`, which makes it.

    Rows come in the order of the files (:attr:`files`), and within a file in its order, however many threads read. No
    file stays open: each is opened while something of it is read. Footers are read once and kept.

    Any library that supports the Arrow PyCapsule interface can read a dataset as a stream:
    ``duckdb.sql("from ds")``, ``polars.DataFrame(ds)``, ``pyarrow.RecordBatchReader.from_stream(ds)``.

    Example::

        flights = pyparq.dataset("flights/")
        print(len(flights.files), flights.count(), flights.schema.names)
        some = flights.lookup("tailnum", ["N14228"], columns=["flight"], filename=True)
    """

    def __init__(
        self,
        source: Any,
        *,
        schema: Any = None,
        partitioning: Any = "hive",
        filename: bool | str = False,
        by: str = "name",
        on_error: str = "raise",
        catalog: str = "check",
        progress: Progress | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
        **options: Unpack[ReadArguments],
    ) -> None:
        if filesystem is not None:
            source, storage_options = on_system(source, filesystem, storage_options)
        read_options = ReadOptions.make(options)
        _check_choices(by, on_error, catalog)
        name = (filename if isinstance(filename, str) else "filename") if filename else None
        declared = None if schema is None else parse_schema(schema)
        opening = Opening(
            source, storage_options, declared, partitioning, name, read_options, by, on_error, progress
        )  # fmt: skip
        self._trusted: TrustedCatalog | None = None
        found = opening.table_files(use_catalog=catalog != "off")
        if found is None and catalog == "trust":
            self._trusted = opening.trusted_catalog()
        if self._trusted is None:
            self._listed = opening.listed_files(use_catalog=catalog != "off") if found is None else found

    @property
    def _files(self) -> DatasetFiles:
        return self._listed if self._trusted is None else self._trusted.all_files()

    def _files_for(self, filters: Filters | None) -> DatasetFiles:
        """The files to ask: all, or those that a trusted catalog leaves."""
        files = self._listed if self._trusted is None else self._trusted.files_for(filters)
        files.begin()
        return files

    @printable
    def __repr__(self) -> str:
        return f"<Dataset {self.root}: {len(self.files):,} files>"

    @viewable
    def _repr_html_(self) -> str:
        names = ", ".join(field.name for field in self.partitions) or "none"
        rows: list[list[Cell]] = [
            [file.name.removeprefix(self.root).lstrip("/"), file.size] for file in self._files.found.files
        ]
        facts = [("files", f"{len(rows):,}"), ("partition columns", names)]
        return html_view(f"Dataset {self.root}", facts, ["file", "bytes"], rows)

    # ---- what there is

    @property
    def files(self) -> list[str]:
        """Names of the files, in the order in which their rows come."""
        return self._files.files

    @property
    def root(self) -> str:
        """What the source is called."""
        return self._files.root

    @property
    def partitions(self) -> Schema:
        """The partition columns, and the ``filename`` column if it was asked for."""
        return self._files.partitions

    @property
    def schema(self) -> Schema:
        """The Arrow schema of the table that all files make together. Reads the footers of all files, once.

        A scan has this schema whichever files its filter leaves. Give ``schema=`` to :func:`pyparq.dataset` to have no
        footer read for it.

        Raises :class:`pyparq.SchemaError` where the files have types without a common one.
        """
        return self._files.schema

    @property
    def tree(self) -> SchemaTree:
        """:attr:`schema` as the tree of Parquet columns, as filters see it."""
        return self._files.tree

    @property
    def skipped(self) -> list[tuple[str, Exception]]:
        """Files that were left out, with their errors (``on_error="skip"``)."""
        return self._files.skipped

    # ---- reading

    def scan(
        self, columns: Names | None = None, filters: Filters | None = None, *, limit: int | None = None
    ) -> DatasetScan:
        """A lazy scan of ``columns`` (all when ``None``) in the rows where ``filters`` is true, over all files.

        Files that the filter rules out by their partitions are not opened. ``limit`` restricts the scan to the first
        rows that match: later files are not opened.

        Raises :class:`ColumnNotFoundError` for unknown columns and :class:`FilterError` for literals that do not fit.
        """
        return DatasetScan(self._files_for(filters), columns, filters, limit)

    @keywords
    def lookup(
        self, column: str | tuple[str, ...], keys: Any, *, columns: Names | None = None, filename: bool | str = False
    ) -> Table:
        """The rows where ``column`` is one of ``keys``: a single key, or a list or array (numpy, Arrow) of keys.

        The result is that of ``read(columns, col(column).isin(keys))``: every row that has one of the keys, once, in
        the order of the files and of their rows, however often a key is named. Keys that no file has are missing, and
        so are keys that are null. ``filename``: add a column with the name of each row's file, called ``"filename"``
        or as given.

        Statistics and Bloom filters of all files are asked at once (docs/lookup.md). Raises
        :class:`pyparq.FilterError` for keys that the column cannot be compared with, and
        :class:`pyparq.ColumnNotFoundError`.
        """
        expression = key_filter(column, keys)
        if filename is False:
            return self.scan(columns, expression).to_table()
        name = filename if isinstance(filename, str) else "filename"
        files = self._files_for(expression)
        if files.matching.has(files.schema.names, name):
            raise OptionError(f'there is already a column called {name!r}: give filename="another name"')
        partitions = with_filenames(files.partition_values, files.found.files, name, files.matching.case_sensitive)
        named = dataset_of(files.with_partitions(partitions))
        return named.scan(columns if columns is None else [*as_list(columns), name], expression).to_table()

    def read_rows(self, start: int, stop: int | None = None, columns: Names | None = None) -> Table:
        """Rows ``start`` to ``stop``, counted over all files (to the end when ``None``), with the rules of a Python
        slice. Reads the footers of all files, and data of those alone that hold these rows."""
        return self._rows(slice(start, stop), columns)

    def take(self, indices: Any, columns: Names | None = None) -> Table:
        """The rows with these numbers, in the order given. Rows are counted from 0 over all files and may repeat.

        As :meth:`pyparq.ParquetFile.take`, it reads the pages that hold these rows.
        Raises :class:`OptionError` for a row that does not exist.
        """
        rows, places = np.unique(np.asarray(indices), return_inverse=True)
        return _at_places(self._rows(rows, columns), places.reshape(-1))

    def sample(self, num_rows: int = 10, columns: Names | None = None, *, seed: int | None = None) -> Table:
        """Rows chosen at random, each at most once, in the order of the files: see
        :meth:`pyparq.ParquetFile.sample`."""
        self._files.begin()
        return self._rows(random_rows(num_rows, sum(_row_counts(self._files)), seed), columns)

    def _rows(self, rows: Any, columns: Names | None) -> Table:
        self._files.begin()
        return DatasetScan(self._files, columns, None, None).rows(_rows_by_file(self._files, rows))

    def iter_batches(
        self, batch_size: int | None = BATCH_ROWS, columns: Names | None = None, filters: Filters | None = None
    ) -> Generator[Batch]:
        """Matching rows in batches of at most ``batch_size``: see :meth:`DatasetScan.iter_batches`."""
        return self.scan(columns, filters).iter_batches(batch_size)

    def _map(self, scan: DatasetScan | None, most_files: int) -> FileMap:
        return _map_files(self._files, scan, most_files)


def dataset_of(files: DatasetFiles) -> Dataset:
    """The dataset of these files, whose options have been checked."""
    made = object.__new__(Dataset)
    made._listed, made._trusted = files, None
    return made


def files_of(dataset: Dataset) -> DatasetFiles:
    """The files of a dataset with their footers, for modules that do more with them than users can."""
    return dataset._files


def with_files(dataset: Dataset, files: DatasetFiles) -> Dataset:
    """The dataset with these files in place of its own."""
    other = copy(dataset)
    other._trusted, other._listed = None, files
    return other


def _check_choices(by: str, on_error: str, catalog: str) -> None:
    if catalog not in ("check", "trust", "off"):
        raise OptionError(f'catalog must be "check", "trust" or "off", not {catalog!r}')
    if by not in ("name", "field_id"):
        raise OptionError(f'by must be "name" or "field_id", not {by!r}')
    if on_error not in ("raise", "skip", "skip_missing"):
        raise OptionError(f'on_error must be "raise", "skip" or "skip_missing", not {on_error!r}')


def dataset(
    source: Any,
    *,
    schema: Any = None,
    partitioning: Any = "hive",
    filename: bool | str = False,
    by: str = "name",
    on_error: str = "raise",
    catalog: str = "check",
    progress: Progress | None = None,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    **options: Unpack[ReadArguments],
) -> Dataset:
    """Many files as one table.

    ``source``: a folder, a glob (``"logs/*/part-*.parquet"``; ``**`` for any number of folders), a URL, a file, or a
    list of these. Within folders, names that begin with ``_`` or ``.`` are skipped. ``schema``: the schema to read the
    files with; by default the one that all files fit (docs/datasets.md). ``partitioning``: ``"hive"`` for folders
    called ``name=value``, with types inferred; a mapping of names to types, to declare them; a list of names for
    folders that are plain values; ``None`` for none. ``filename``: add a column with the name of each row's file,
    called ``"filename"`` or as given. ``by``: match the columns of different files by ``"name"`` or ``"field_id"``.
    ``on_error``: ``"skip"`` leaves out files that cannot be read (:attr:`Dataset.skipped`), ``"skip_missing"`` only
    those that are gone when they are read; ``"raise"`` raises. ``catalog``: how a catalog of
    :func:`pyparq.index_dataset` is used. ``"check"`` uses it for files that have not changed, by the listing;
    ``"trust"`` does not list the folder; ``"off"`` does not use it (docs/catalog.md). ``progress``: called with the
    number of files done and the number of files. ``storage_options``, ``filesystem``: for a URL, as in
    :func:`pyparq.read_table`. ``options``: the fields of :class:`pyparq.ReadOptions`, listed below.

    Only the listing is read at once. Raises ``FileNotFoundError`` where nothing is found, and
    :class:`pyparq.OptionError` for folders whose partitions do not agree.

    Example::

        flights = pyparq.dataset("flights/")                 # folders month=1, month=2
        table = flights.read(["flight", "month"], pyparq.col("month") == 2)
    """
    return Dataset(
        source, schema=schema, partitioning=partitioning, filename=filename, by=by, on_error=on_error, catalog=catalog,
        progress=progress, storage_options=storage_options, filesystem=filesystem, **options,
    )  # fmt: skip


dataset.__doc__ = with_options(dataset.__doc__, ReadOptions)


def scan(
    source: Any,
    columns: Names | None = None,
    filters: Filters | None = None,
    *,
    limit: int | None = None,
    **options: Any,
) -> DatasetScan:
    """A lazy scan of one file or of many: ``pyparq.dataset(source, ...).scan(columns, filters, limit=limit)``.

    ``options``: those of :func:`pyparq.dataset`. The scan keeps no file open. It is an Arrow stream, and has
    ``to_table``, ``iter_batches``, ``count``, ``explain`` and ``plan``.

    Example::

        scan = pyparq.scan("flights/", ["flight"], pyparq.col("dest") == "LAX", limit=10)
        print(scan.to_table().num_rows)
    """
    return Dataset(source, **options).scan(columns, filters, limit=limit)


# ---- keys of a lookup -----------------------------------------------------------------------------------------------


def key_filter(column: Path, keys: Any) -> Expression:
    """True where ``column`` is one of ``keys``: one key, or a list or array of them. Null is no key. Raises
    :class:`OptionError` for values that cannot be keys."""
    if isinstance(keys, Expression):
        raise OptionError(
            f"keys must be values to look for, not the filter {keys!r}: give a filter to scan() or read()"
        )
    many = getattr(keys, "shape", None) != () and (hasattr(keys, "__iter__") or hasattr(keys, "to_pylist"))
    one = isinstance(keys, (str, bytes, bytearray, memoryview)) or hasattr(keys, "as_py") or not many
    known = IsIn(column, (keys,) if one else keys).values
    if not isinstance(known, tuple):
        return IsIn(column, known.without_null())
    return IsIn(column, tuple(key for key in known if not is_null_literal(key)))


# ---- rows by their numbers, counted over all files ------------------------------------------------------------------


def _rows_by_file(files: DatasetFiles, rows: Any) -> Iterator[tuple[int, Any]]:
    """The files that hold any of these rows, each with its rows: a slice, or row numbers that rise.

    ``rows``: a slice, or row numbers that rise, counted over all files. Raises :class:`OptionError` for a row that does
    not exist.
    """
    counts = _row_counts(files)
    chosen = row_numbers(rows, sum(counts))
    for k, (count, end) in enumerate(zip(counts, accumulate(counts), strict=True)):
        first = end - count
        if isinstance(chosen, slice):
            start, stop = max(chosen.start - first, 0), min(chosen.stop - first, count)
            if start < stop:
                yield k, slice(start, stop)
        else:
            a, b = np.searchsorted(chosen, (first, end))
            if a < b:
                yield k, chosen[a:b] - first


def _at_places(table: Table, places: npt.NDArray[np.int64]) -> Table:
    """The rows of ``table`` with these numbers, in this order. Numbers may repeat."""
    batches = table.batches
    if not batches:
        return table
    taken = Batch([take(column, places) for column in Batch.concat(batches).columns], len(places))
    return Table(pandas_key.at_places(table.schema, places), [taken])


def _row_counts(files: DatasetFiles) -> list[int]:
    numbers = range(len(files.found.files))
    files.know_rows(numbers)
    return [files.num_rows_of(k) for k in numbers]


# ---- the map: the maps of the files, one after the other ------------------------------------------------------------


def _map_files(files: DatasetFiles, scan: DatasetScan | None, most_files: int) -> FileMap:
    """The map of the first ``most_files`` files. ``scan``: the query to show; it runs over these."""
    numbers = range(min(len(files.files), most_files))
    asked: dict[int, MapQuery] = {}
    query = None
    if scan is not None:
        scans = [file_scan for file_scan in file_scans_of(scan) if file_scan.numbers[0] in numbers]
        asked = {file_scan.numbers[0]: MapQuery.run(file_scan.scan) for file_scan in scans}
        query = _map_explanation(files, scan, scans, asked, len(numbers)).to_dict()
    parts = [_mapped(files, number, asked.get(number), scan is not None) for number in numbers]
    return FileMap(document(files.root, [part for part in parts if part is not None], query))


def _mapped(files: DatasetFiles, number: int, asked: MapQuery | None, queried: bool) -> MappedFile | None:
    """One file; ``None`` if it is left out, because it cannot be read."""
    file = files.open(number)
    if file is None:
        return None
    part = mapped_file(file, asked, MOST_PAGES // max(len(files.files), 1))
    if queried and asked is None:
        pages = part.facts.pages
        pages["fate"] = [PARTITION] * len(pages["fate"])
    return part


def _map_explanation(
    files: DatasetFiles, scan: DatasetScan, scans: list[FileScan], asked: dict[int, MapQuery], count: int
) -> DatasetExplanation:
    rows: Any = [one.explanation.rows for one in asked.values()]
    return explain_run(
        Run(list(scans), set(), []), source=files.root, columns=scan.schema.names,
        predicate="true" if scan.filters is None else repr(scan.filters),
        files=count, files_opened=len(scans), catalog_knows=0, catalog_rules_out=0, rows=sum(row or 0 for row in rows),
    )  # fmt: skip
