"""A dataset: many files read as one table."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, TypeVar

from pyparq.arrow.schema.from_text import schema as parse_schema
from pyparq.arrow.table import Batch, Table
from pyparq.datasets.discovery import Found, discover
from pyparq.datasets.partitions import Partitions, partitions_of
from pyparq.datasets.read.column_matching import Matching
from pyparq.datasets.read.evolution import marked
from pyparq.datasets.read.explain import DatasetExplanation
from pyparq.datasets.read.filename_column import with_filenames
from pyparq.datasets.read.footers import Footers
from pyparq.datasets.read.lookup import key_filter
from pyparq.datasets.read.one_schema import unify
from pyparq.datasets.read.plan import DatasetPlan
from pyparq.datasets.read.scan import DatasetScan
from pyparq.datasets.read.schema_tree import tree_of
from pyparq.datasets.read.trusted_summary import TrustedSummary, trusted_summary
from pyparq.errors import ChangedFileError, OptionError, ParquetError, SkippedFileWarning
from pyparq.format.schema_tree import SchemaTree
from pyparq.format.types import Field, Schema
from pyparq.io.retry import Retry
from pyparq.io.source import begin
from pyparq.io.url import is_url
from pyparq.option_help import READ, with_options
from pyparq.options import ReadOptions
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.scan import BATCH_ROWS
from pyparq.runtime.safe_repr import printable
from pyparq.runtime.threads import REQUESTS, cpu_count, map_requests, map_tasks

if TYPE_CHECKING:
    from typing import Unpack

    from pyparq.arguments import Filters, ReadArguments
    from pyparq.column_names import Names
    from pyparq.datasets.read.plan_shards import Surveyed

T = TypeVar("T")
R = TypeVar("R")

Progress = Callable[[int, int], Any]
"""Called with the number of files that are done and the number of files."""

_OWN = ("schema", "partitioning", "filename", "by", "on_error", "progress", "storage_options")


class Dataset:
    """Files that are read as one table: see :func:`pyparq.dataset`, which makes it.

    Rows come in the order of the files (:attr:`files`), and within a file in its order, however many threads read. No
    file stays open: each is opened while something of it is read. Footers are read once and kept.

    Any library that supports the Arrow PyCapsule interface can read a dataset as a stream:
    ``duckdb.sql("from ds")``, ``polars.DataFrame(ds)``, ``pyarrow.RecordBatchReader.from_stream(ds)``.
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
        progress: Progress | None = None,
        storage_options: Mapping[str, Any] | None = None,
        **options: Unpack[ReadArguments],
    ) -> None:
        ReadOptions.check_known(options, ("source", *_OWN))
        _check_choices(by, on_error)
        made = ReadOptions.make(options)
        found = discover(source, storage_options, Retry(made.retries, made.retry_wait))
        declared = None if schema is None else parse_schema(schema)
        partitions = partitions_of(found.files, partitioning, made.case_sensitive)
        partitions = partitions if declared is None or made.case_sensitive else partitions.spelled(declared.names)
        if filename:
            name = filename if isinstance(filename, str) else "filename"
            partitions = with_filenames(partitions, found.files, name, made.case_sensitive)
        self._set(found, partitions, declared, made, by, on_error, progress)

    def _set(
        self,
        found: Found,
        partitions: Partitions,
        declared: Schema | None,
        options: ReadOptions,
        by: str | Matching,
        on_error: str,
        progress: Progress | None,
    ) -> None:
        self._found = found
        self._partitions = partitions
        self._declared = declared
        self._options = options
        rule = Matching(by, options.case_sensitive) if isinstance(by, str) else by
        self._by = rule.among([declared]) if isinstance(by, str) and declared is not None else rule
        """Once the schema is known, with the names that it takes apart."""
        self._on_error = on_error
        self._progress = progress
        self._footers = Footers(self._found.files, self._options, self._found.storage_options)
        self._summary: TrustedSummary | None = None
        self._summary_sought = False
        self._surveyed: Surveyed | None = None
        self._whole: Schema | None = None
        """The schema of all files, once it is known, without partition columns."""
        self._opened: dict[int, OpenFile] = {}
        self._skipped: dict[int, ParquetError | OSError] = {}

    @printable
    def __repr__(self) -> str:
        return f"<Dataset {self._found.root}: {len(self._found.files):,} files>"

    # ---- what there is

    @property
    def files(self) -> list[str]:
        """Names of the files, in the order in which their rows come."""
        return [file.name for file in self._found.files]

    @property
    def root(self) -> str:
        """What the source is called."""
        return self._found.root

    @property
    def partitions(self) -> Schema:
        """The partition columns, and the ``filename`` column if it was asked for."""
        return Schema(self._partitions.fields)

    @property
    def schema(self) -> Schema:
        """The Arrow schema of the table that all files make together. Reads the footers of all files, once.

        A scan has this schema whichever files its filter leaves. Give ``schema=`` to :func:`pyparq.dataset` to have no
        footer read for it.

        Raises :class:`pyparq.SchemaError` where the files have types without a common one.
        """
        return self.schema_of(range(len(self._found.files)))

    @property
    def tree(self) -> SchemaTree:
        """:attr:`schema` as the tree of Parquet columns, as filters see it."""
        return tree_of(self.schema, case_sensitive=self._by.case_sensitive)

    @property
    def skipped(self) -> list[tuple[str, Exception]]:
        """Files that were left out, with their errors (``on_error="skip"``)."""
        return [(self._found.files[k].name, error) for k, error in sorted(self._skipped.items())]

    # ---- reading

    def scan(
        self, columns: Names | None = None, filters: Filters | None = None, *, limit: int | None = None
    ) -> DatasetScan:
        """A lazy scan of ``columns`` (all when ``None``) in the rows where ``filters`` is true, over all files.

        Files that the filter rules out by their partitions are not opened. ``limit`` restricts the scan to the first
        rows that match: later files are not opened.

        Raises :class:`ColumnNotFoundError` for unknown columns and :class:`FilterError` for literals that do not fit.
        """
        for file in self._opened.values() if self.is_remote else ():
            begin(file.fetcher.source)
        return DatasetScan(self, columns, filters, limit)

    def read(self, columns: Names | None = None, filters: Filters | None = None) -> Table:
        """All (matching) rows as a table."""
        return self.scan(columns, filters).to_table()

    to_table = read

    def lookup(
        self,
        column: str | tuple[str, ...],
        keys: Any,
        *,
        columns: Names | None = None,
        path: bool | str = False,
    ) -> Table:
        """The rows where ``column`` is one of ``keys``: a single key, or a list or array (numpy, Arrow) of keys.

        The result is that of ``read(columns, col(column).isin(keys))``: every row that has one of the keys, once, in
        the order of the files and of their rows, however often a key is named. Keys that no file has are missing, and
        so are keys that are null. ``path``: add a column with the name of each row's file, called ``"filename"`` or as
        given.

        Statistics and Bloom filters of all files are asked at once (docs/lookup.md). Raises
        :class:`pyparq.FilterError` for keys that the column cannot be compared with, and
        :class:`pyparq.ColumnNotFoundError`.
        """
        expression = key_filter(column, keys)
        if path is False:
            return self.scan(columns, expression).to_table()
        name = path if isinstance(path, str) else "filename"
        if self._by.has(self.schema.names, name):
            raise OptionError(f'there is already a column called {name!r}: give path="another name"')
        named = copy(self)
        named._partitions = with_filenames(self._partitions, self._found.files, name, self._by.case_sensitive)
        return named.scan(columns if columns is None else [*columns, name], expression).to_table()

    def head(self, num_rows: int = 10, columns: Names | None = None, filters: Filters | None = None) -> Table:
        """The first (matching) rows."""
        return self.scan(columns, filters, limit=num_rows).to_table()

    def batches(
        self, batch_size: int | None = BATCH_ROWS, columns: Names | None = None, filters: Filters | None = None
    ) -> Generator[Batch]:
        """Matching rows in batches of at most ``batch_size``: see :meth:`DatasetScan.batches`."""
        return self.scan(columns, filters).batches(batch_size)

    def count(self, filters: Filters | None = None) -> int:
        """Number of (matching) rows. Without a filter, or with one on partition columns, only footers are read."""
        return self.scan([], filters).count()

    def explain(
        self, columns: Names | None = None, filters: Filters | None = None, *, execute: bool = True
    ) -> DatasetExplanation:
        """What the indexes of all files remove, and what a scan reads: see :meth:`DatasetScan.explain`."""
        return self.scan(columns, filters).explain(execute=execute)

    def plan(
        self, columns: Names | None = None, filters: Filters | None = None, *, limit: int | None = None
    ) -> DatasetPlan:
        """What a scan would read, as a value for other processes: see :meth:`DatasetScan.plan`."""
        return self.scan(columns, filters, limit=limit).plan()

    def __arrow_c_schema__(self) -> object:
        return self.scan().__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """All rows as a stream of Arrow batches, file by file."""
        return self.scan().__arrow_c_stream__(requested_schema)

    def __pyparq_stream__(self) -> tuple[Schema, Iterator[Batch]]:
        return self.scan().__pyparq_stream__()

    # ---- what a scan asks for

    def open(self, k: int) -> OpenFile | None:
        """File ``k`` with its footer; ``None`` for one that is left out."""
        opened = self._opened.get(k)
        if opened is None and k not in self._skipped:
            try:
                opened = self._footers.open(k)
                self._check_summary(k, opened)
                self._opened[k] = opened
            except (ParquetError, OSError) as error:
                opened = None
                self.leave_out(k, error)
        return opened

    def with_survey(self, surveyed: Surveyed) -> Dataset:
        """The same dataset, whose footers other processes have read."""
        found = dataset_of(
            self._found, self._partitions, self._declared, self._options, self._by, self._on_error, self._progress
        )
        found._surveyed = surveyed
        return found

    def read_footers(self, numbers: Iterable[int]) -> None:
        """Read the footers of these files, in parallel."""
        self.map_files(self.open, self._footers.read([k for k in numbers if k not in self._skipped]))

    def open_all(self, numbers: Iterable[int]) -> list[tuple[int, OpenFile]]:
        """The files with these numbers, their footers read in parallel, without those that are left out."""
        wanted = list(numbers)
        missing = [k for k in wanted if k not in self._opened and k not in self._skipped]
        self.map_files(self.open, self._footers.read(missing))
        for k in missing:
            self.open(k)
        return [(k, self._opened[k]) for k in wanted if k in self._opened]

    def map_files(self, function: Callable[[T], R], items: Sequence[T], at_a_time: int = REQUESTS) -> list[R]:
        """``function`` of each item in parallel: on the processors, or, where files are remote, on threads that wait
        for up to ``at_a_time`` of them."""
        if self.is_remote and self._options.use_threads:
            return map_requests(function, items, at_a_time)
        return map_tasks(function, items, self._options.use_threads)

    @property
    def is_remote(self) -> bool:
        """Whether requests of the first file, and so most likely of all, take milliseconds."""
        first = self._found.files[0] if self._found.files else None
        return first is not None and (
            first.fs is not None or is_url(first.where) or getattr(first.where, "is_local", True) is False
        )

    def at_a_time(self) -> int:
        """Remote files to read at a time: as many as fit into ``prefetch_bytes``, but one for each processor."""
        sizes = [file.size for file in self._found.files if file.size]
        mean = sum(sizes) // len(sizes) if sizes else 64 << 20
        return max(cpu_count(), min(REQUESTS, self._options.prefetch_bytes // max(mean, 1)))

    def _one_of_each(self, numbers: Iterable[int], asked: Collection[int]) -> Iterator[OpenFile]:
        """The first of all files whose footers are alike in all but rows and row groups, and all other files, their
        footers read in parallel. A file that is not ``asked`` for rows is passed over where it cannot be read."""
        wanted = [k for k in numbers if k not in self._skipped]
        few = self._footers.kinds() if len(asked) * 4 <= len(wanted) == len(self._found.files) else None
        wanted = wanted if few is None else few
        alone = self._footers.read(wanted) if few is None else [k for k in few if self._footers.frame(k) is None]
        self.map_files(lambda k: self.open(k) if k in asked else self._looked_at(k), alone)
        seen: set[int] = set()
        for k in wanted:
            frame = self._footers.frame(k)
            if frame is None or frame not in seen:
                file = self.open(k) if k in asked else self._looked_at(k)
                if file is not None:
                    yield file
                    if frame is not None:
                        seen.add(frame)

    def _looked_at(self, k: int) -> OpenFile | None:
        """File ``k`` for its schema alone; ``None``, and no word of it, where it cannot be read."""
        if k not in self._opened and k not in self._skipped:
            try:
                self._opened[k] = self._footers.open(k)
            except (ParquetError, OSError):
                return None
        return self._opened.get(k)

    def know_rows(self, numbers: Iterable[int]) -> None:
        """Read the footers of these files, in parallel, as far as they are needed to tell how many rows each has."""
        if self._trusted() is None:
            self.read_footers(k for k in numbers if k not in self._opened and self._footers.num_rows(k) is None)

    def _num_rows(self, k: int) -> int:
        """Rows of file ``k``; 0 for one that is left out."""
        if k not in self._skipped:
            summary = self._trusted()
            known = self._footers.num_rows(k) if summary is None else summary.rows[self._found.files[k].name]
            if known is not None:
                return known
        file = self.open(k)
        return 0 if file is None else sum(file.num_rows_of(group) for group in range(file.num_row_groups))

    def leave_out(self, k: int, error: ParquetError | OSError) -> None:
        """File ``k`` cannot be read: raise ``error``, or leave the file out of everything that comes."""
        if self._on_error == "raise":
            raise error
        self._opened.pop(k, None)
        self._skipped[k] = error
        said = SkippedFileWarning(f"the file is left out: {error}", self._found.files[k].name)
        warnings.warn(said, stacklevel=3)

    def schema_of(self, asked: Collection[int]) -> Schema:
        """The schema of the table that all files make, for a scan of those ``asked``: of the others one that cannot be
        read is passed over."""
        if self._whole is None:
            self._whole = self._declared if self._declared is not None else self._unified(asked)
        return self._with_partitions(self._whole)

    def schema_of_some(self, numbers: Iterable[int], asked: Collection[int] = ()) -> Schema:
        """The schema of the table that these files make."""
        return self._with_partitions(self._of_footers(sorted(set(numbers)), asked))

    @property
    def knows_schema(self) -> bool:
        """Whether :meth:`schema_of` takes no footer of a file."""
        known = self._whole is not None or self._declared is not None or self._surveyed is not None
        return known or self._trusted() is not None

    def _with_partitions(self, own: Schema) -> Schema:
        names = self._partitions.names
        kept: tuple[Field, ...] = tuple(field for field in own.fields if not self._by.has(names, field.name))
        return Schema((*kept, *self._partitions.fields), own.metadata)

    def _trusted(self) -> TrustedSummary | None:
        """The folder's summary, if there is one that can be believed."""
        if not self._summary_sought:
            self._summary = trusted_summary(self._found, self._options)
            self._summary_sought = True
        return self._summary

    def _check_summary(self, k: int, file: OpenFile) -> None:
        """Raises :class:`ChangedFileError` where the summary has turned out to be of other files."""
        if self._summary is None:
            return
        rows = sum(file.num_rows_of(group) for group in range(file.num_row_groups))
        stated = self._summary.rows[self._found.files[k].name]
        if rows != stated:
            raise ChangedFileError(
                f"the file has {rows} rows, but the summary {self._summary.name} says {stated}: remove the summary, or "
                "write it again", file=file.name,
            )  # fmt: skip

    def _unified(self, asked: Collection[int]) -> Schema:
        everything = range(len(self._found.files))
        if self._surveyed is not None:
            for k in asked:
                if k in self._surveyed.failed and k not in self._skipped:
                    self.leave_out(k, self._surveyed.failed[k])
            return self._united(self._surveyed.schemas(everything))
        summary = self._trusted()
        return self._of_footers(everything, asked) if summary is None else self._united([("", summary.schema)])

    def _of_footers(self, numbers: Iterable[int], asked: Collection[int]) -> Schema:
        rows_of = frozenset(asked)
        distinct: dict[int, tuple[str, Schema]] = {}
        for file in self._one_of_each(numbers, rows_of):
            if id(file.tree) not in distinct:
                distinct[id(file.tree)] = file.name, marked(file.fields.schema, file.tree)
        return self._united(list(distinct.values()))

    def _united(self, schemas: Sequence[tuple[str, Schema]]) -> Schema:
        """One schema for all of these, each with the name of a file that has it."""
        self._by = self._by.among(schema for _, schema in schemas)
        return unify(schemas, self._by)


def dataset_of(
    found: Found,
    partitions: Partitions,
    schema: Schema | None,
    options: ReadOptions,
    by: str | Matching,
    on_error: str,
    progress: Progress | None = None,
) -> Dataset:
    """The dataset with these files and partition values, whose options have been checked."""
    made = object.__new__(Dataset)
    made._set(found, partitions, schema, options, by, on_error, progress)
    return made


def _check_choices(by: str, on_error: str) -> None:
    if by not in ("name", "field_id"):
        raise OptionError(f'by must be "name" or "field_id", not {by!r}')
    if on_error not in ("raise", "skip"):
        raise OptionError(f'on_error must be "raise" or "skip", not {on_error!r}')


def dataset(
    source: Any,
    *,
    schema: Any = None,
    partitioning: Any = "hive",
    filename: bool | str = False,
    by: str = "name",
    on_error: str = "raise",
    progress: Progress | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **options: Unpack[ReadArguments],
) -> Dataset:
    """Many files as one table.

    ``source``: a folder, a glob (``"logs/*/part-*.parquet"``; ``**`` for any number of folders), a URL, a file, or a
    list of these. Within folders, names that begin with ``_`` or ``.`` are passed over. ``schema``: the schema to read
    the files with; by default the one that all files fit (docs/datasets.md). ``partitioning``: ``"hive"`` for folders
    called ``name=value``, with types inferred; a mapping of names to types, to declare them; a list of names for
    folders that are plain values; ``None`` for none. ``filename``: add a column with the name of each row's file,
    called ``"filename"`` or as given. ``by``: match the columns of different files by ``"name"`` or ``"field_id"``.
    ``on_error``: ``"skip"`` leaves out files that cannot be read (:attr:`Dataset.skipped`); ``"raise"`` raises.
    ``progress``: called with the number of files done and the number of files. ``storage_options``: options for the
    file system of a URL. ``options``: the fields of :class:`pyparq.ReadOptions`, listed below.

    Nothing but the listing is read before it is needed. Raises ``FileNotFoundError`` where nothing is found, and
    :class:`pyparq.OptionError` for folders whose partitions do not agree.
    """
    return Dataset(
        source, schema=schema, partitioning=partitioning, filename=filename, by=by, on_error=on_error,
        progress=progress, storage_options=storage_options, **options,
    )  # fmt: skip


dataset.__doc__ = with_options(dataset.__doc__, READ)


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
    ``to_table``, ``batches``, ``count``, ``explain`` and ``plan``.
    """
    return Dataset(source, **options).scan(columns, filters, limit=limit)
