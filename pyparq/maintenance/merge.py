"""``merge``: files of one schema joined into one by copying their row groups byte for byte."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyparq.datasets.data_files import DataFile
from pyparq.datasets.discovery import discover
from pyparq.datasets.read.dataset import Dataset, files_of
from pyparq.datasets.read.open_files import open_listed
from pyparq.errors import EncryptionError, OptionError
from pyparq.io.locations import both_located
from pyparq.io.sink import Sink, open_sink, replace_only
from pyparq.io.url import is_url, local_path
from pyparq.limits import DEFAULT_LIMITS, Limits
from pyparq.maintenance.file_runs import check_no_table, opened_table
from pyparq.maintenance.in_place import check_not_managed, identity_of, is_same_file, remove_stale, replaced_source
from pyparq.maintenance.merged_footer import MergedFooter, Part, check_part, encrypted
from pyparq.options import ReadOptions
from pyparq.pictures.tables import html_view, viewable
from pyparq.runtime.safe_repr import printable


@dataclass(frozen=True, slots=True, repr=False)
class MergeReport:
    """What :func:`pyparq.merge` has done.

    Example::

        report = pyparq.merge(["flights.parquet", "flights.parquet"], "twice.parquet")
        print(report.num_files, report.num_rows)
    """

    target: str
    num_files: int
    num_rows: int
    num_row_groups: int
    num_bytes: int
    """Bytes of the new file."""
    dropped_keys: tuple[str, ...] = ()
    """Keys of metadata that are left out, because the files have different values for them. A key that is kept without
    a part has the part in parentheses: ``pandas (price)``."""
    notes: tuple[str, ...] = ()
    """What else is not as it was in the files."""

    @viewable
    def _repr_html_(self) -> str:
        facts = [
            ("files", f"{self.num_files:,}"),
            ("written", f"{self.num_row_groups:,} row groups, {self.num_rows:,} rows, {self.num_bytes:,} bytes"),
            *(("note", note) for note in self.notes),
        ]
        return html_view(f"MergeReport {self.target}", facts)

    @printable
    def __repr__(self) -> str:
        done = f"{self.num_files:,} files, {self.num_row_groups:,} row groups, {self.num_rows:,} rows"
        return f"<MergeReport {self.target}: {done}, {self.num_bytes:,} bytes>"


def merge(
    files: Any,
    target: Any,
    *,
    key_value_metadata: Mapping[str, str | bytes | None] | None = None,
    force: bool = False,
    progress: Callable[[int, int], Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    limits: Limits | None = None,
    fsync: bool = False,
) -> MergeReport:
    """Join files of one schema into one file. Row groups, Bloom filters and page indexes are copied as they are, and
    nothing is decoded.

    ``files``: a list, folder or glob of files, or a :class:`pyparq.Dataset`; their row groups follow in that order.
    Values in the names of folders are not stored. ``target``: where the new file goes; it may be one of the files.
    ``key_value_metadata``: keys to set in the footer. Without it, a key is kept where all files that have it agree, and
    those of pandas and GeoParquet are joined.
    ``force``: write even into a folder that Delta Lake, Iceberg or Hudi manages. ``progress``: called with the number
    of files done and the number of files. ``storage_options``: options for the file system of URLs. ``filesystem``: a
    file system of fsspec or pyarrow or a store of obstore, on which paths are; or ``"obstore"`` or ``"fsspec"``, by
    which URLs are opened (docs/urls.md). ``limits``: what a footer may demand. ``fsync``: flush the file to disk before
    it gets its name.

    A footer names one writer, and readers know faults of some. If all files have the same one, its name is kept.
    Otherwise the new file names pyparq, and bounds that readers would not have believed are left out
    (docs/rewriting.md). Row groups stay as small as they are: :func:`pyparq.rewrite` makes larger ones.

    Raises :class:`pyparq.SchemaError`, which names both files, for files of different schemas or units of durations,
    :class:`pyparq.UnsupportedError` for encrypted files and for those of a writer whose pages need its name, and
    :class:`pyparq.ChangedFileError` where the target is one of the files, and another program changed it meanwhile.

    Example::

        report = pyparq.merge("flights/*/*.parquet", "all.parquet")
        print(report)
    """
    files, target, storage_options = both_located(files, target, filesystem, storage_options)
    own = identity_of(target)
    listed, storage_options = _listed(files, storage_options)
    if not is_url(target) and isinstance(target, (str, os.PathLike)):
        path = os.fsdecode(target)
        check_not_managed(local_path(path) or path, force)
    parts = _parts(listed, ReadOptions(limits=limits or DEFAULT_LIMITS), storage_options)
    footer = MergedFooter(parts)
    sink = open_sink(target, fsync, storage_options if is_url(target) else None)
    try:
        if any(is_same_file(file.where, target) for file in listed):
            replace_only(sink, replaced_source(own, target))
        _copy(parts, sink, progress)
        sink.write(footer.parts(key_value_metadata or {}))
        sink.commit()
    finally:
        sink.abort()
    if isinstance(target, (str, os.PathLike)) and not is_url(target):
        remove_stale(local_path(os.fsdecode(target)) or os.fsdecode(target))
    return MergeReport(
        sink.name, len(parts), footer.num_rows, footer.num_row_groups, sink.position, footer.dropped_keys, footer.notes
    )


def _parts(files: Sequence[DataFile], options: ReadOptions, storage_options: Mapping[str, Any] | None) -> list[Part]:
    """The opened files. Raises an error for one that cannot be joined to the first."""
    parts: list[Part] = []
    for file in files:
        try:
            opened = open_listed(file, options, storage_options)
        except EncryptionError:
            raise encrypted(file.name) from None
        check_part(opened, parts[0].file if parts else opened)
        parts.append(Part(opened))
    return parts


def _copy(parts: list[Part], sink: Sink, progress: Callable[[int, int], Any] | None) -> None:
    """Everything before the footer."""
    sink.write([b"PAR1"])
    for done, part in enumerate(parts):
        part.copy(sink)
        if progress is not None:
            progress(done + 1, len(parts))
    for part in parts:
        part.store_column_indexes(sink)
    for part in parts:
        part.store_offset_indexes(sink)


def _listed(files: Any, storage_options: Mapping[str, Any] | None) -> tuple[tuple[DataFile, ...], Any]:
    files = opened_table(files)
    if isinstance(files, Dataset):
        check_no_table(files)
        found = files_of(files).found
    else:
        found = discover(files, storage_options)
    if not found.files:
        raise OptionError("there are no files to merge")
    return found.files, found.storage_options or storage_options
