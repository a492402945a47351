"""``add_indexes``: Bloom filters and page indexes for files that exist, without touching their pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pyparq.datasets.read.dataset import Dataset, files_of
from pyparq.errors import OptionError, ParquetError
from pyparq.io.locations import both_located
from pyparq.io.table_formats import format_of
from pyparq.limits import DEFAULT_LIMITS, Limits
from pyparq.maintenance.file_runs import Job, run
from pyparq.maintenance.index_request import IndexOptions, resolve
from pyparq.maintenance.indexed_file import Changes, IndexWriter, find_changes, report_of
from pyparq.maintenance.report import IndexedFile, IndexReport
from pyparq.maintenance.sources import jobs_of
from pyparq.maintenance.table_commits import replace_files
from pyparq.maintenance.table_names import StoredOptions
from pyparq.options import ReadOptions, WriteOptions
from pyparq.read.footers.open_file import OpenFile

if TYPE_CHECKING:
    from pyparq.column_names import ListOf, Names, PerColumn
    from pyparq.encryption.properties import DecryptionProperties
    from pyparq.format.schema_tree import SchemaTree
    from pyparq.option_values import Bloom


def add_indexes(
    source: Any,
    target: Any = None,
    *,
    bloom_filters: bool | Names | PerColumn[Bloom] = False,
    bloom_filter_options: Literal["auto"] | PerColumn[Bloom] | None = None,
    bloom_filter_layout: Literal["footer", "row_group"] = "footer",
    page_index: bool | Names = True,
    column_index_truncate_length: int = 64,
    replace: bool = False,
    remove: ListOf[Literal["bloom_filters", "column_indexes", "page_indexes"]] | Mapping[str, bool | Names] = (),
    force: bool = False,
    on_error: Literal["raise", "skip"] = "raise",
    progress: Callable[[int, int], Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    decryption: DecryptionProperties | None = None,
    limits: Limits | None = None,
    verify_checksums: bool = True,
    use_threads: bool = True,
    fsync: bool = False,
) -> IndexReport:
    """Add Bloom filters, ColumnIndexes and OffsetIndexes to files that exist. Every page is copied byte for byte.

    ``source``: a file (a path, URL, bytes or file object), or many: a folder, a glob, a list, a
    :class:`pyparq.Dataset`. ``target``: where the new file goes; for many files, a folder. Without it, each file is
    replaced once the new one is complete. A ``DeltaTable`` or a table of pyiceberg gets new files by a commit.
    ``page_index``: add a ColumnIndex and an OffsetIndex for every column; names: ColumnIndexes for these alone.
    ``replace``: also build what is asked for and there already. ``remove``: kinds to remove, as a list or a dict of
    kind to columns. ``force``: also replace files of a table of Delta Lake, Apache Iceberg or Apache Hudi.
    ``on_error="skip"``: report a file that fails, and go on. ``progress``: called with the number of files done and the
    number of files. ``storage_options``: for the file system of a URL. ``filesystem``: a file system of fsspec or
    pyarrow or a store of obstore, on which paths are; or ``"obstore"`` or ``"fsspec"``, by which URLs are opened
    (docs/urls.md). ``decryption``: keys; new indexes are encrypted with them, and columns whose key is missing stay as
    they are. ``fsync``: flush new files to disk before they get their names. Other options: as in
    :class:`pyparq.WriteOptions` and :class:`pyparq.ReadOptions`.

    Returns an :class:`pyparq.IndexReport`: per column, what was added, kept and left out, and why. A file in which
    nothing changes is not written. docs/add-indexes.md has the details.

    Raises :class:`pyparq.OptionError`, :class:`pyparq.ColumnNotFoundError`, :class:`pyparq.CorruptFileError` for damage
    in a page that had to be read, and ``OSError``. The file at ``source`` is then unchanged.

    Example::

        report = pyparq.add_indexes("events.parquet", bloom_filters=["user"])      # in place
    """
    if on_error not in ("raise", "skip"):
        raise OptionError(f'on_error must be "raise" or "skip", not {on_error!r}')
    options = WriteOptions(
        bloom_filters=bloom_filters, bloom_filter_options=bloom_filter_options,
        bloom_filter_layout=bloom_filter_layout, column_index_truncate_length=column_index_truncate_length,
    )  # fmt: skip
    reading = ReadOptions(
        decryption=decryption, limits=limits or DEFAULT_LIMITS, verify_checksums=verify_checksums,
        use_threads=use_threads,
    )  # fmt: skip
    wanted = IndexOptions(options, page_index, replace, remove)
    source, target, storage_options = both_located(source, target, filesystem, storage_options)
    if target is None and format_of(source) is not None:
        return IndexReport(tuple(index_table(source, reading, wanted, fsync, progress, storage_options)))
    return _index_files(jobs_of(source, target, reading, storage_options, force, fsync), wanted, on_error, progress)


def _index_files(
    jobs: Sequence[Job], options: IndexOptions, on_error: str, progress: Callable[[int, int], Any] | None
) -> IndexReport:
    files = []
    for done, job in enumerate(jobs):
        files.append(_one(job, options, on_error))
        if progress is not None:
            progress(done + 1, len(jobs))
    return IndexReport(tuple(files))


def index_table(
    table: Any,
    reading: ReadOptions,
    options: IndexOptions,
    fsync: bool,
    progress: Callable[[int, int], Any] | None,
    storage_options: Mapping[str, Any] | None,
) -> list[IndexedFile]:
    """Add indexes to the data files of a table, by a commit of its own library."""
    files = files_of(Dataset(table, storage_options=storage_options))
    stored = StoredOptions(options, files.tree, files.matching)

    def make(old: str, new: str, store: Mapping[str, Any] | None) -> IndexedFile:
        return index_file(Job(old, new, reading, store, False, fsync), stored.of)

    return replace_files(table, files, make, progress)


def _one(job: Job, options: IndexOptions, on_error: str) -> IndexedFile:
    try:
        return index_file(job, options)
    except (ParquetError, OSError) as error:
        if on_error == "raise":
            raise
        name = str(job.source)
        return IndexedFile(name, name if job.target is None else str(job.target), error=error)


def index_file(job: Job, options: IndexOptions | Callable[[SchemaTree], IndexOptions]) -> IndexedFile:
    """Add indexes to one file. ``options`` may depend on its schema."""
    seen: list[tuple[OpenFile, Changes, IndexWriter | None]] = []

    def prepare(file: OpenFile) -> IndexWriter | None:
        request = resolve(options(file.tree) if callable(options) else options, file.tree)
        changes = find_changes(file, request)
        writer = None
        if changes.any:
            writer = IndexWriter(file, request, changes)
            writer.prepare()
        seen.append((file, changes, writer))
        return writer

    outcome = run(job, prepare)
    report = report_of(*_last(seen, outcome.target), outcome.notes)
    return replace(report, written=outcome.written)


def _last(
    seen: list[tuple[OpenFile, Changes, IndexWriter | None]], target: str
) -> tuple[OpenFile, str, Changes, IndexWriter | None]:
    file, changes, writer = seen[-1]
    return file, target, changes, writer
