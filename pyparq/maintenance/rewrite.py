"""``rewrite``: the rows of files read and written again, sorted on disk where memory does not take them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from pyparq.arrow.ingest import ingest
from pyparq.arrow.pandas_key import in_other_order
from pyparq.arrow.record_batch import BatchStream, RecordBatch
from pyparq.datasets.dataset import Dataset, files_of
from pyparq.datasets.files import DatasetFiles
from pyparq.datasets.footers import ListedFile, status_of
from pyparq.datasets.write.commit import complete_writes
from pyparq.datasets.write.targets import Sources
from pyparq.datasets.write.write_dataset import replace_sources, write_dataset
from pyparq.errors import ChangedMeanwhile, OptionError, reading
from pyparq.filters.expression import top_names
from pyparq.format.types import Schema
from pyparq.io.atomic_write import Expected
from pyparq.io.file_lock import Identity
from pyparq.io.locations import both_located
from pyparq.io.sink import Sink, open_sink, replace_only, replace_only_read
from pyparq.io.url import is_url, local_path, shown
from pyparq.kernels.buffers import release_unused
from pyparq.limits import DEFAULT_LIMITS, Limits
from pyparq.maintenance.in_place import (
    check_not_managed,
    identity_of,
    is_same_file,
    is_same_object,
    remove_stale,
    replaced_source,
)
from pyparq.maintenance.kept_storage import (
    check_defaults,
    int96_as_bytes,
    storage_kept,
    variants_as_stored,
    without_marks,
)
from pyparq.option_values import SortKey, sort_keys
from pyparq.options import WriteOptions, with_options
from pyparq.write.column_plans import check_options, make_plan
from pyparq.write.external_sort import ExternalSorter
from pyparq.write.file import ParquetWriter
from pyparq.write.file_layout import WriteReport, WrittenFile
from pyparq.write.row_groups import batch_bytes

if TYPE_CHECKING:
    from typing import Unpack

    from pyparq.arguments import Filters, WriteArguments
    from pyparq.column_names import Names
    from pyparq.encryption.properties import DecryptionProperties

_SUFFIXES = (".parquet", ".parq", ".pq")
_BATCH_ROWS = 1 << 16
_RELEASES = 16
"""Kept memory is given back each time batches with one sixteenth of the allowed memory have passed."""


def rewrite(
    source: Any,
    target: Any,
    *,
    columns: Names | None = None,
    filters: Filters | None = None,
    partition_cols: Sequence[str] | str | None = None,
    max_rows_per_file: int | None = None,
    max_bytes_per_file: int | None = None,
    mode: str = "error",
    max_memory: int = 1 << 30,
    temp_folder: str | os.PathLike[str] | None = None,
    force: bool = False,
    progress: Callable[[int], Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    decryption: DecryptionProperties | None = None,
    limits: Limits | None = None,
    **options: Unpack[WriteArguments],
) -> WriteReport:
    """Write the rows of files again: to join small files, to sort, to change pages, compression or indexes, to encrypt.

    ``source``: a file, folder, glob, list or :class:`pyparq.Dataset`. ``target``: a file if its name ends in
    ``.parquet``, ``.parq`` or ``.pq`` (or a file object), otherwise a folder. It may be the source itself: a file is
    replaced when the new one is complete, a folder with ``mode="overwrite"``. ``columns``, ``filters``: what to keep.
    ``partition_cols`` (by default those of the source), ``max_rows_per_file``, ``max_bytes_per_file``, ``mode``: for a
    folder, as in :func:`pyparq.write_dataset`. ``max_memory``: bytes that may be used, approximately, beside one row
    group of the source. ``temp_folder``: where rows wait while they are sorted and do not fit. ``force``: write even
    where Delta Lake, Iceberg or Hudi manages the folder. ``progress``: called with the number of rows read so far.
    ``storage_options``, ``filesystem``: for a URL, as in :func:`pyparq.read_table`. ``decryption``: keys of the source.
    ``limits``: what the source may demand. ``options``: the fields of :class:`pyparq.WriteOptions`, listed below.
    ``sort_by`` sorts all rows together.

    Only rows and key-value metadata are taken over: name the Bloom filters and the encryption that the new files should
    have. INT96 timestamps, decimals in byte arrays and shredded Variants stay as they are stored, unless options say
    otherwise (docs/rewriting.md).

    Returns the new files. Raises what :func:`pyparq.dataset` and :func:`pyparq.write_dataset` raise, and
    :class:`pyparq.ChangedFileError` where the target is the source, and another program changed it meanwhile. The
    target is then as it was.

    Example::

        pyparq.rewrite("flights/", "sorted.parquet", sort_by=["dest"], compression="zstd", bloom_filters=["tailnum"])
    """
    source, target, storage_options = both_located(source, target, filesystem, storage_options)
    wanted = _Wanted(
        columns, filters, partition_cols, max_rows_per_file, max_bytes_per_file, mode, max_memory, temp_folder, force,
        progress, storage_options,
    )  # fmt: skip
    return _rewritten(source, target, wanted, decryption, limits, options)


class _Wanted(NamedTuple):
    """Arguments of :func:`rewrite`."""

    columns: Names | None
    filters: Filters | None
    partition_cols: Sequence[str] | str | None
    max_rows_per_file: int | None
    max_bytes_per_file: int | None
    mode: str
    max_memory: int
    temp_folder: str | os.PathLike[str] | None
    force: bool
    progress: Callable[[int], Any] | None
    storage_options: Mapping[str, Any] | None


def _rewritten(
    source: Any,
    target: Any,
    wanted: _Wanted,
    decryption: DecryptionProperties | None,
    limits: Limits | None,
    options: WriteArguments,
) -> WriteReport:
    max_memory = wanted.max_memory
    if type(max_memory) is not int or max_memory < 1:
        raise OptionError(f"max_memory must be a whole number of at least 1, not {max_memory!r}")
    checked = WriteOptions.make(options)
    check_options(checked)
    own = identity_of(target)
    if wanted.mode == "overwrite" and _is_folder(target):
        complete_writes(target)  # otherwise the rows of before a crashed write would be read
    dataset = _dataset(source, wanted.storage_options, decryption, limits)
    cols = wanted.partition_cols
    named = (cols,) if isinstance(cols, str) else cols or ()
    dataset = int96_as_bytes(dataset, wanted.filters, options, named)
    if checked.shredding is None:
        dataset = variants_as_stored(dataset)
    rows = _Rows(dataset, wanted.columns, wanted.filters, max_memory, wanted.progress)
    if wanted.columns is None and _replaces(dataset, target, wanted.mode):
        _check_whole(files_of(dataset))
    if _is_folder(target):
        names = _partition_names(cols, dataset, rows.schema)
    else:
        names = []
        _check_single(target, cols, wanted.max_rows_per_file, wanted.max_bytes_per_file, wanted.mode, wanted.force)
    given: dict[str, Any] = {**storage_kept(rows.source, options, names)}
    rows.source, rows.schema = without_marks(rows.source), without_marks(rows.schema)
    # Two row groups are in memory at a time: as rows, as leaves and as pages.
    given["row_group_bytes"] = min(checked.row_group_bytes, max(max_memory // 16, 1))
    keys = sort_keys(checked.sort_by)
    if keys and checked.sort_scope == "input":
        del given["sort_by"]
        given["sorting_columns"] = [key for key in keys if key.name not in names]
        secret = options.get("encryption") is not None or decryption is not None
        rows.sort(keys, None if wanted.temp_folder is None else os.fspath(wanted.temp_folder), secret)
    with reading(), closing(rows):
        if _is_folder(target):
            return _write_folder(rows, target, dataset, wanted, names, given)
        return _write_file(
            rows, target, _only_source(dataset, target, own), _sink(dataset, target, wanted, given), given
        )


class _Rows:
    """The rows of the source, in a form that :func:`pyparq.arrow.ingest.ingest` takes."""

    def __init__(
        self,
        dataset: Dataset,
        columns: Names | None,
        filters: Filters | None,
        max_memory: int,
        progress: Callable[[int], Any] | None,
    ) -> None:
        scan = dataset.scan(columns, filters)
        self._max_memory = max_memory
        self._progress = progress
        self.source: Schema = scan.schema
        """With dictionaries, views and other layouts, as in the files."""
        self.tested = top_names(scan.filters)
        """The columns that the filter looks at."""
        self.schema, self._batches = ingest(BatchStream(scan.schema, scan.iter_batches(_BATCH_ROWS)))
        self._sorter: ExternalSorter | None = None

    def sort(self, keys: Sequence[SortKey], folder: str | None, secret: bool) -> None:
        """Sort the rows by this order."""
        self.schema = in_other_order(self.schema)
        self.source = replace(self.source, metadata=self.schema.metadata)
        plan = make_plan(self.schema, WriteOptions(sort_by=keys))
        self._sorter = ExternalSorter(plan, self._max_memory // 2, folder, secret)

    def __pyparq_stream__(self) -> tuple[Schema, Iterator[RecordBatch]]:
        return self.schema, self._in_order()

    def _in_order(self) -> Iterator[RecordBatch]:
        if self._sorter is None:
            yield from self._read()
            return
        for batch in self._read():
            self._sorter.add(batch)
        yield from self._released(self._sorter.batches())

    def _read(self) -> Iterator[RecordBatch]:
        done = 0
        for batch in self._released(self._batches):
            yield batch
            done += batch.num_rows
            if self._progress is not None:
                self._progress(done)

    def _released(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        """The batches. Kept memory is given back now and then."""
        passed = 0
        for batch in batches:
            passed += batch_bytes(batch, 0, batch.num_rows)
            yield batch
            if passed * _RELEASES > self._max_memory:
                passed = 0
                del batch
                release_unused()

    def close(self) -> None:
        if self._sorter is not None:
            self._sorter.close()


def _write_file(rows: _Rows, target: Any, own: Expected | None, sink: Sink, options: dict[str, Any]) -> WriteReport:
    """``own``: the local source that the new file replaces, if it does."""
    replace_only(sink, own)
    try:
        with ParquetWriter(sink, rows.source, **options) as writer:
            writer.write(rows)
        assert writer.metadata is not None  # it is closed
        file = WrittenFile(sink.name, writer.metadata.num_rows, sink.position)
    finally:
        sink.abort()
    if own is not None:
        remove_stale(os.fsdecode(target))
    return WriteReport(sink.name, (file,))


def _sink(dataset: Dataset, target: Any, wanted: _Wanted, options: Mapping[str, Any]) -> Sink:
    """The sink of a single file. A source in a store is replaced only as it was read."""
    sink = open_sink(target, bool(options.get("fsync")), wanted.storage_options if is_url(target) else None)
    files = files_of(dataset)
    number = next((k for k, file in enumerate(files.found.files) if is_same_object(file, target)), None)
    opened = None if number is None else files.open(number)
    if opened is not None:
        replace_only_read(sink, opened.fetcher.source)
    return sink


def _write_folder(
    rows: _Rows, target: Any, dataset: Dataset, wanted: _Wanted, names: list[str], options: dict[str, Any]
) -> WriteReport:
    given = {
        **options, "max_rows_per_file": wanted.max_rows_per_file, "max_bytes_per_file": wanted.max_bytes_per_file,
        "max_memory": max(wanted.max_memory // 8, 1), "force": wanted.force, "partition_cols": names,
        "schema": rows.source, "storage_options": wanted.storage_options if is_url(target) else None,
    }  # fmt: skip
    if wanted.mode == "overwrite" and _is_own_folder(dataset, target):
        _check_defaults(dataset, rows.source.names, rows.tested)
        return replace_sources(rows, target, lambda: _read_files(dataset), **given)
    return write_dataset(rows, target, mode=wanted.mode, **given)


def _check_defaults(dataset: Dataset, names: Sequence[str], tested: Set[str]) -> None:
    """Raise :class:`UnsupportedError` where Spark gives a column's DEFAULT for files without it: new files of all rows
    would have nulls there for good, and a filter would leave out rows for which its default is true."""
    files = files_of(dataset)
    opened = [file for _, file in files.open_all(range(len(files.found.files)))]
    check_defaults(
        opened, {*names, *tested},
        "give another folder as the target, or pyparq.spark.rewrite without a filter, which keeps such files apart",
    )  # fmt: skip


def _only_source(dataset: Dataset, target: Any, own: Identity | None) -> Expected | None:
    """``own``, the file at the target, if it is one of the sources: only this file may be replaced.

    Raises :class:`ChangedMeanwhile` if the dataset has read an older version.
    """
    number = next((k for k, path in enumerate(dataset.files) if is_same_file(path, target)), None)
    if number is None:
        return None
    expected = replaced_source(own, target)
    opened = files_of(dataset).open(number)
    source = None if opened is None else opened.fetcher.source
    if isinstance(source, ListedFile) and source.status != status_of(os.stat(target)):
        raise ChangedMeanwhile("the file has changed since the dataset was made: make it again", file=source.name)
    return expected


# ---- arguments -----------------------------------------------------------------------------------------------------


def _dataset(
    source: Any,
    storage_options: Mapping[str, Any] | None,
    decryption: DecryptionProperties | None,
    limits: Limits | None,
) -> Dataset:
    if isinstance(source, Dataset):
        return source
    remote = is_url(source) or isinstance(source, (list, tuple))
    return Dataset(
        source,
        storage_options=storage_options if remote else None,
        decryption=decryption,
        limits=limits or DEFAULT_LIMITS,
    )


def _is_own_folder(dataset: Dataset, target: Any) -> bool:
    """Whether the target is the folder of the dataset itself."""
    source, folder = dataset.root, os.fsdecode(target)
    if is_url(source) or is_url(folder):
        return source.rstrip("/") == shown(folder).rstrip("/")
    folder = local_path(folder) or folder
    return os.path.isdir(source) and os.path.isdir(folder) and os.path.samefile(source, folder)


def _replaces(dataset: Dataset, target: Any, mode: str) -> bool:
    """Whether the target takes the place of files of the source."""
    if _is_folder(target):
        return mode == "overwrite" and _is_own_folder(dataset, target)
    return any(is_same_file(file.where, target) for file in files_of(dataset).found.files)


def _check_whole(files: DatasetFiles) -> None:
    """Raise :class:`OptionError` if columns would be lost because ``schema=`` of the dataset does not have them."""
    seen: set[int] = set()
    for _, file in files.open_all(range(len(files.found.files))) if files.declared is not None else ():
        names = [] if id(file.tree) in seen else files.left_out_columns(file)
        seen.add(id(file.tree))
        if names:
            raise OptionError(
                f"schema= of the dataset leaves out columns, which the new files would not have: {', '.join(names)}. "
                "Name the columns to keep with columns=, or give another target",
                file=file.name,
            )


def _read_files(dataset: Dataset) -> Sources:
    """The files that were read. Files that were left out stay in place."""
    files = files_of(dataset)
    return Sources.of(file for k, file in enumerate(files.found.files) if k not in files.unreadable)


def _is_folder(target: Any) -> bool:
    if not isinstance(target, (str, os.PathLike)):
        return False
    path = os.fsdecode(target)
    if not is_url(path):
        path = local_path(path) or path
        if os.path.exists(path):
            return os.path.isdir(path)
    return not path.lower().endswith(_SUFFIXES)


def _check_single(
    target: Any,
    partition_cols: Any,
    max_rows: int | None,
    max_bytes: int | None,
    mode: str,
    force: bool,
) -> None:
    """Check the arguments for a single file as the target."""
    for name, value, default in (
        ("partition_cols", partition_cols or None, None), ("max_rows_per_file", max_rows, None),
        ("max_bytes_per_file", max_bytes, None), ("mode", mode, "error"),
    ):  # fmt: skip
        if value != default:
            raise OptionError(f"{name} is for folders, but the target {shown(str(target))} is a file")
    if isinstance(target, (str, os.PathLike)) and not is_url(target):
        path = os.fsdecode(target)
        check_not_managed(local_path(path) or path, force)


def _partition_names(given: Sequence[str] | str | None, dataset: Dataset, schema: Schema) -> list[str]:
    if given is None:
        return [name for name in dataset.partitions.names if name in schema.names]
    return [given] if isinstance(given, str) else list(given)


rewrite.__doc__ = with_options(rewrite.__doc__, WriteOptions)
