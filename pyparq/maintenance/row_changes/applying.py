"""Rows of many files changed: which files may hold them, and how the new files take the places of the old ones.

The files of a local folder change together, by one commit: a reader sees all of it or nothing. Others are replaced one
by one: a file that was named, files of a list or a pattern, and objects in a store, each only as it was read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyparq.arrow.table import Table
from pyparq.datasets.data_files import DataFile
from pyparq.datasets.dataset import Dataset
from pyparq.datasets.files import DatasetFiles
from pyparq.datasets.reader import FileScan
from pyparq.datasets.scan import MatchingFiles
from pyparq.datasets.write.commit import LocalTarget
from pyparq.datasets.write.job_sources import Sources
from pyparq.datasets.write.targets import companions
from pyparq.datasets.write.write_dataset import add_rows
from pyparq.errors import UnsupportedError, located
from pyparq.format.types import Schema
from pyparq.io.remote_file import RemoteFile
from pyparq.io.table_formats import check_streams
from pyparq.io.url import is_url, local_path
from pyparq.maintenance.file_runs import Job, Removal, run
from pyparq.maintenance.in_place import ask_whether_managed, check_not_managed, local_file
from pyparq.maintenance.kept_storage import storage_kept, without_marks
from pyparq.maintenance.row_changes.changed_file import ChangedFile
from pyparq.maintenance.row_changes.copied_groups import NoSink
from pyparq.maintenance.row_changes.file_change import FileChange, FindChanges, index_help, written
from pyparq.maintenance.row_changes.old_catalogs import OldCatalogs, remove_catalogs
from pyparq.maintenance.row_changes.report import ChangedFileReport, ChangeReport
from pyparq.maintenance.row_changes.row_group_plans import RowGroupPlans, options_like
from pyparq.maintenance.row_changes.table_place import TablePlace
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.scan import Scan
from pyparq.runtime.threads import map_requests
from pyparq.write.shred import LeafData


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """How changes are made."""

    keep_empty: bool = False
    dry_run: bool = False
    force: bool = False
    fsync: bool = False
    progress: Callable[[int, int], Any] | None = None
    table: Any = None
    """The table of Delta Lake or Iceberg that gets the changes."""
    operation: str = ""
    """What the log of a table calls the changes."""


class Additions(Protocol):
    """Rows that are added once it is known which of them have been put in the place of others."""

    def begin(self) -> None:
        """Forget what was found: a file is asked again."""

    def table(self) -> Table:
        """The rows."""

    def leaves(self, file: OpenFile) -> list[list[LeafData]]:
        """The same rows as the leaves of row groups of a file."""


class _Place(Protocol):
    """Where new files go."""

    def change(self, file_scan: FileScan) -> ChangedFileReport | None:
        """Change one file. ``None`` if it has no such rows."""

    def finish(self) -> list[ChangedFileReport]:
        """Add rows, when all files have been changed."""

    def commit(self) -> list[str]:
        """Make the changes visible. Returns notes."""

    def abort(self) -> None: ...


def apply(
    dataset: Dataset, filters: Any, find: FindChanges, options: ApplyOptions, more: Additions | None = None
) -> ChangeReport:
    """Change the rows of a dataset for which ``filters`` is true, as ``find`` says, and then add ``more`` rows."""
    began = time.perf_counter()
    matching = MatchingFiles(dataset.scan([], filters))
    files = matching.files
    if files.table is None:
        check_streams(files.found.streams, options.force)
        _check_folders(files, options.force)
    candidates = matching.candidates()
    asked = index_help(matching.reports)
    place = _place(files, matching, find, options, more)
    reports = list[ChangedFileReport]()
    try:
        done = 0
        for part in _together(candidates, place, files, more):
            found = map_requests(place.change, part) if len(part) > 1 else [place.change(part[0])]
            reports += [report for report in found if report is not None]
            done += len(part)
            if options.progress is not None:
                options.progress(done, len(candidates))
        reports += place.finish()
        notes = place.commit()
    except BaseException:
        place.abort()
        raise
    return ChangeReport(
        files.root, tuple(reports), files.total, options.dry_run, asked, time.perf_counter() - began,
        tuple(notes),
    )  # fmt: skip


_AT_A_TIME, _SMALL = 8, 32 << 20
"""Small objects that are changed at the same time, and how many bytes they may have together."""


def _together(
    candidates: Sequence[FileScan], place: _Place, files: DatasetFiles, more: Additions | None
) -> Iterator[list[FileScan]]:
    """The files in parts that are changed at the same time: small objects in a store, whose requests take most of the
    time. Others are changed one after the other, so that one row group is in memory."""
    if isinstance(place, _OneByOne):
        place.begin(candidates)
    part, size = list[FileScan](), 0
    for file_scan in candidates:
        file = files.found.files[file_scan.numbers[0]]
        alone = not isinstance(place, _OneByOne) or more is not None or local_file(file.where) is not None
        more_bytes = _SMALL if alone or file.size is None else file.size
        if part and (len(part) == _AT_A_TIME or size + more_bytes > _SMALL):
            yield part
            part, size = [], 0
        part.append(file_scan)
        size += more_bytes
    if part:
        yield part


def _check_folders(files: DatasetFiles, force: bool) -> None:
    """Raise :class:`OptionError` for local files of a table format, whether rows of them change or not."""
    folders = {os.path.dirname(path) for path in (local_file(file.where) for file in files.found.files) if path}
    for folder in sorted(folders):
        check_not_managed(os.path.join(folder, ""), force)


def _place(
    files: DatasetFiles, matching: MatchingFiles, find: FindChanges, options: ApplyOptions, more: Additions | None
) -> _Place:
    if files.table is not None:
        if options.table is None or more is not None:
            raise UnsupportedError(
                f"rows of a dataset of {files.table.kind} cannot be changed so: give the table itself"
            )
        return TablePlace(options.table, files, find, options.operation, options)
    if options.dry_run:
        return _DryRun(files, find, options, more)
    folder = local_folder(files)
    if folder is None:
        return _OneByOne(files, matching, find, options, more)
    return _Folder(folder, files, find, options, more)


def local_folder(files: DatasetFiles) -> str | None:
    """The local folder that a dataset is, if it is one."""
    if is_url(files.root) or files.found.is_one_file:
        return None
    folder = local_path(files.root) or files.root
    return folder if os.path.isdir(folder) else None


class _DryRun:
    """Nothing is written, but all of it is made: so the report has its figures."""

    def __init__(self, files: DatasetFiles, find: FindChanges, options: ApplyOptions, more: Additions | None) -> None:
        self._files = files
        self._changes_of = find
        self._keep_empty = options.keep_empty
        self._more = more
        self._adds_to_file = more is not None and files.found.is_one_file
        self._asked = False

    def change(self, file_scan: FileScan) -> ChangedFileReport | None:
        self._asked = True
        return self._change(file_scan.scan)

    def _change(self, scan: Scan) -> ChangedFileReport | None:
        with located(file=scan.file.name):
            more = self._more.leaves if self._more is not None and self._adds_to_file else None
            change = FileChange(scan, self._changes_of, self._keep_empty, more)
            if not change.changes:
                return None
            if not change.removes:
                written(change, NoSink(scan.file.name))
        return change.report(scan.file.name)

    def finish(self) -> list[ChangedFileReport]:
        if self._more is None:
            return []
        if self._adds_to_file:
            opened = None if self._asked else self._files.open(0)
            report = None if opened is None else self._change(Scan(opened.fork(), [], row_groups=[]))
            return [] if report is None else [report]
        rows = self._more.table().num_rows
        return [ChangedFileReport(self._files.root, rows_added=rows, notes=("rows of new files",))] if rows else []

    def commit(self) -> list[str]:
        return []

    def abort(self) -> None:
        return None


class _Folder:
    """The files of a local folder. The new ones have the names of the old ones."""

    def __init__(
        self, folder: str, files: DatasetFiles, find: FindChanges, options: ApplyOptions, more: Additions | None
    ) -> None:
        self._folder = folder
        self._more = more
        self._files = files
        self._changes_of = find
        self._options = options
        self._target: LocalTarget | None = None
        self._old: list[DataFile] = []
        self._new: list[str] = []

    def change(self, file_scan: FileScan) -> ChangedFileReport | None:
        scan, (number,) = file_scan.scan, file_scan.numbers
        with located(file=scan.file.name):
            change = FileChange(scan, self._changes_of, self._options.keep_empty)
            if not change.changes:
                return None
            target = self._begun()
            file = self._files.found.files[number]
            self._old.append(file)
            if not change.removes:
                path = os.path.join(*file.folders, os.path.basename(file.name))
                sink = target.sink(path, self._options.fsync)
                written(change, sink)
                sink.commit()
                self._new.append(path)
        return change.report(scan.file.name)

    def _begun(self) -> LocalTarget:
        if self._target is None:
            self._target = LocalTarget(self._folder, "overwrite", self._options.force)
        return self._target

    def finish(self) -> list[ChangedFileReport]:
        table = None if self._more is None else self._more.table()
        if table is None or not table.num_rows:
            return []
        names = [name for name in self._files.partition_values.names if name in table.column_names]
        made = add_rows(
            self._begun(), table, without_marks(table.schema), names, self._write_options(table.schema, names)
        )
        self._new += [path for path, _ in made]
        return [
            ChangedFileReport(
                file.sink.name, rows_added=file.num_rows, rows_left=file.num_rows, bytes_written=file.num_bytes
            )
            for _, file in made
        ]

    def _write_options(self, schema: Schema, names: Sequence[str]) -> dict[str, Any]:
        """Options for new files, which are stored as the first file of the folder is."""
        file = self._files.open(0)
        assert file is not None  # the schema is known
        if file.decryption.info is not None:
            raise UnsupportedError("new files of an encrypted folder cannot be written: their keys are not given")
        given = options_like(RowGroupPlans(file).for_more_rows())
        return {**storage_kept(schema, {}, names), **_of_columns(given, schema), "fsync": self._options.fsync}

    def commit(self) -> list[str]:
        if self._target is None:
            return []
        self._target.sources = Sources.of(self._old)
        stale = [path for path in self._companions() if os.path.lexists(os.path.join(self._folder, path))]
        notes = remove_catalogs(self._files, self._old)  # first: after a crash between the two, nobody would
        self._target.commit(self._new, self._options.fsync, None)
        return [*(f"removed {path}, which described the old files" for path in stale), *notes]

    def _companions(self) -> list[str]:
        return companions(self._folder, [os.path.join(*f.folders, os.path.basename(f.name)) for f in self._old])

    def abort(self) -> None:
        if self._target is not None:
            self._target.abort()


def _of_columns(options: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """The options without columns that new files do not have."""

    def kept(value: Any) -> Any:
        if isinstance(value, dict):
            return {path: one for path, one in value.items() if path[0] in schema.names}
        return [path for path in value if path[0] in schema.names] if isinstance(value, list) else value

    sort = [key for key in options["sort_by"] if key.name[0] in schema.names]
    return {**{name: kept(value) for name, value in options.items() if name != "sort_by"}, "sort_by": sort}


class _OneByOne:
    """Files that are replaced one by one, each in its place and only as it was read."""

    def __init__(
        self, files: DatasetFiles, matching: MatchingFiles, find: FindChanges, options: ApplyOptions,
        more: Additions | None,
    ) -> None:  # fmt: skip
        """``more``: for a single file."""
        self._files = files
        self._matching = matching
        self._changes_of = find
        self._options = options
        self._more = more
        self._asked = False
        self._catalogs = OldCatalogs(files)
        self._known = dict[str, Any]()

    def begin(self, candidates: Sequence[FileScan]) -> None:
        """Ask the store what it takes to know before files change, for all of them at the same time."""
        sources = [file_scan.scan.file.fetcher.source for file_scan in candidates]
        remote = [source for source in sources if isinstance(source, RemoteFile)]
        numbers = [number for file_scan in candidates for number in file_scan.numbers]
        ask: list[Callable[[], None]] = [lambda: self._catalogs.ask([self._files.found.files[k] for k in numbers])]
        if remote and not self._options.force:
            ask.append(lambda: ask_whether_managed(remote, self._known))
        map_requests(lambda one: one(), ask)

    def change(self, file_scan: FileScan) -> ChangedFileReport | None:
        self._asked = True
        (number,) = file_scan.numbers
        opened = file_scan.scan.file
        return self._run(number, opened if isinstance(opened.fetcher.source, RemoteFile) else None)

    def _run(self, number: int, opened: OpenFile | None = None) -> ChangedFileReport | None:
        file, found, seen = self._files.found.files[number], self._files.found, list[FileChange]()

        def prepare(opened: OpenFile) -> ChangedFile | Removal | None:
            scan, more = self._matching.ask(number, opened), None
            if self._more is not None:
                self._more.begin()
                more = self._more.leaves
                scan = scan or Scan(opened, [], row_groups=[])
            if scan is None:
                return None
            seen.append(FileChange(scan, self._changes_of, self._options.keep_empty, more))
            if not seen[-1].changes:
                return None
            self._catalogs.remove_for(file)
            return Removal() if seen[-1].removes else seen[-1].writer

        job = Job(
            file.where, None, self._files.options, found.storage_options, self._options.force, self._options.fsync,
            self._known, opened,
        )  # fmt: skip
        outcome = run(job, prepare)
        return seen[-1].report(file.name, outcome) if outcome.written else None

    def finish(self) -> list[ChangedFileReport]:
        report = None if self._more is None or self._asked else self._run(0)
        return [] if report is None else [report]

    def commit(self) -> list[str]:
        return self._catalogs.notes

    def abort(self) -> None:
        return None
