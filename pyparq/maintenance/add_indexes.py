"""``add_indexes``: Bloom filters and page indexes for files that exist, without touching their pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pyparq.datasets.table_formats import format_of
from pyparq.errors import OptionError, ParquetError
from pyparq.limits import DEFAULT_LIMITS, Limits
from pyparq.maintenance.file_runs import Job, run
from pyparq.maintenance.index_request import IndexOptions, resolve
from pyparq.maintenance.indexed_file import Changes, IndexWriter, find_changes, report_of
from pyparq.maintenance.report import IndexedFile, IndexReport
from pyparq.maintenance.sources import jobs_of
from pyparq.maintenance.table_commits import replace_files
from pyparq.options import ReadOptions, WriteOptions
from pyparq.read.footers.open_file import OpenFile

if TYPE_CHECKING:
    from pyparq.column_names import ListOf, Names, PerColumn
    from pyparq.encryption.properties import DecryptionProperties
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
    decryption: DecryptionProperties | None = None,
    limits: Limits | None = None,
    verify_checksums: bool = True,
    use_threads: bool = True,
    fsync: bool = False,
) -> IndexReport:
    """Add Bloom filters, ColumnIndexes and OffsetIndexes to files that exist. Every page is copied byte for byte.

    ``source``: a file by any writer (a path, URL, bytes or file object), or many: a folder, a glob, a list, a
    :class:`pyparq.Dataset`. ``target``: where the new file goes; for many files, a folder. Without it, each file is
    replaced in its place once the new one is complete. A ``DeltaTable`` or a table of pyiceberg gets new files instead,
    by one commit of the table.

    ``bloom_filters``, ``bloom_filter_options``, ``bloom_filter_layout``, ``column_index_truncate_length``: as in
    :class:`pyparq.WriteOptions`. ``page_index``: ``True`` adds a ColumnIndex and an OffsetIndex for every column that
    can have them; a list of names adds ColumnIndexes for these columns alone, and OffsetIndexes for all; ``False`` adds
    none. Indexes and filters that are there are kept. ``replace=True`` builds those that are asked for anew.
    ``remove``: kinds to remove (``"bloom_filters"``, ``"column_indexes"``, ``"page_indexes"``), as a list, or as a dict
    of kind to columns. A file in which nothing changes is not written.

    ``force``: also replace files of a table of Delta Lake, Apache Iceberg or Apache Hudi in place.
    ``on_error="skip"``: a file that fails is reported, and the others go on. ``progress``: called with the number of
    files done and the number of files. ``storage_options``: options for the file system of a URL. ``decryption``: keys
    of encrypted files; new indexes are encrypted with them, and columns whose key is missing stay as they are.
    ``limits``, ``verify_checksums``, ``use_threads``: as in :class:`pyparq.ReadOptions`. ``fsync``: flush new files to
    disk before they get their names.

    Returns an :class:`pyparq.IndexReport`: per column, what was added, kept and left out, and why.

    Raises :class:`pyparq.OptionError`, :class:`pyparq.ColumnNotFoundError`, :class:`pyparq.CorruptFileError` for damage
    in a page that had to be read, and ``OSError``. The file at ``source`` is then unchanged. See
    docs/add-indexes.md.

    Example::

        report = pyparq.add_indexes("events.parquet", bloom_filters=["user"])      # in place
        print(report)
    """
    options = IndexOptions(
        WriteOptions(
            bloom_filters=bloom_filters,
            bloom_filter_options=bloom_filter_options,
            bloom_filter_layout=bloom_filter_layout,
            column_index_truncate_length=column_index_truncate_length,
        ),
        page_index, replace, remove,
    )  # fmt: skip
    if on_error not in ("raise", "skip"):
        raise OptionError(f'on_error must be "raise" or "skip", not {on_error!r}')
    reading = ReadOptions(
        decryption=decryption,
        limits=limits or DEFAULT_LIMITS,
        verify_checksums=verify_checksums,
        use_threads=use_threads,
    )
    if target is None and format_of(source) is not None:
        return IndexReport(tuple(index_table(source, reading, options, fsync, progress)))
    jobs = jobs_of(source, target, reading, storage_options, force, fsync)
    files = []
    for done, job in enumerate(jobs):
        files.append(_one(job, options, on_error))
        if progress is not None:
            progress(done + 1, len(jobs))
    return IndexReport(tuple(files))


def index_table(
    table: Any, reading: ReadOptions, options: IndexOptions, fsync: bool, progress: Callable[[int, int], Any] | None
) -> list[IndexedFile]:
    """Add indexes to the data files of a table, by a commit of its own library."""

    def make(old: str, new: str) -> IndexedFile:
        return index_file(Job(old, new, reading, None, False, fsync), options)

    return replace_files(table, make, progress)


def _one(job: Job, options: IndexOptions, on_error: str) -> IndexedFile:
    try:
        return index_file(job, options)
    except (ParquetError, OSError) as error:
        if on_error == "raise":
            raise
        name = str(job.source)
        return IndexedFile(name, name if job.target is None else str(job.target), error=error)


def index_file(job: Job, options: IndexOptions) -> IndexedFile:
    """Add indexes to one file."""
    seen: list[tuple[OpenFile, Changes, IndexWriter | None]] = []

    def prepare(file: OpenFile) -> IndexWriter | None:
        request = resolve(options, file.tree)
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
