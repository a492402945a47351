"""Where new files go when rows change.

The files of a local folder change together, by one commit: a reader sees all of it or nothing. Others are replaced one
by one: a file that was named, files of a list or a pattern, and objects in a store, each only as it was read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from pyparq.arrow.table import Table
from pyparq.datasets.data_files import DataFile
from pyparq.datasets.dataset import Dataset
from pyparq.datasets.explain import FileScan
from pyparq.datasets.files import DatasetFiles
from pyparq.datasets.scan import MatchingFiles
from pyparq.datasets.write.commit import LocalTarget
from pyparq.datasets.write.rolling_files import FileLimits
from pyparq.datasets.write.targets import Sources, companions
from pyparq.datasets.write.write_dataset import add_rows, write_folder
from pyparq.errors import OptionError, UnsupportedError, located
from pyparq.format.types import Schema
from pyparq.io.locations import path_on
from pyparq.io.remote_file import RemoteFile
from pyparq.io.url import is_url, local_path
from pyparq.maintenance.file_runs import Job, Removal, run
from pyparq.maintenance.in_place import ask_whether_managed
from pyparq.maintenance.kept_storage import storage_kept, without_marks
from pyparq.maintenance.row_changes.changed_file import ChangedFile
from pyparq.maintenance.row_changes.copied_groups import NoSink
from pyparq.maintenance.row_changes.file_change import FileChange, FindChanges, written
from pyparq.maintenance.row_changes.old_catalogs import OldCatalogs, remove_catalogs
from pyparq.maintenance.row_changes.report import ChangedFileReport
from pyparq.maintenance.row_changes.row_group_plans import RowGroupPlans, options_like
from pyparq.maintenance.row_changes.table_place import TablePlace
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.scan import Scan
from pyparq.runtime.threads import map_requests
from pyparq.write.shred import LeafData

if TYPE_CHECKING:
    from pyparq.arguments import WriteArguments
    from pyparq.encryption.properties import EncryptionProperties


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
    retries: int = 0
    """How many more rounds there may be."""
    again: Callable[[], Dataset] | None = None
    """Lists the source anew. ``None`` where that is not possible."""
    repeatable: bool = True
    """Whether rows that have changed may change again, to the same: a price that doubles may not."""
    encryption: EncryptionProperties | None = None
    """Of new files."""
    columns: Collection[str] = ()
    """Columns that get other values."""
    only_removes: bool = False
    """Whether rows only go."""

    def __post_init__(self) -> None:
        if type(self.retries) is not int or self.retries < 0:
            raise OptionError(f"retries must be a whole number of at least 0, not {self.retries!r}")
        if self.retries and self.again is None:
            raise OptionError(
                "retries needs a path, a URL or a list: the files of a Dataset are listed already, and commits to a "
                "table are not tried again"
            )


class Additions(Protocol):
    """Rows that are added once it is known which of them have been put in the place of others."""

    def begin(self, files: DatasetFiles) -> None:
        """Forget what was found: files are asked again."""

    def added(self) -> None:
        """The rows of :meth:`table` are in new files. The same files are asked once more."""

    def placed(self) -> None:
        """The rows are in the files. What later files have of them goes."""

    def table(self) -> Table:
        """The rows."""

    def leaves(self, file: OpenFile) -> list[list[LeafData]]:
        """The same rows as the leaves of row groups of a file."""


class Place(Protocol):
    """Where new files go."""

    @property
    def at_once(self) -> bool:
        """Whether nothing is visible before the commit."""

    def change(self, file_scan: FileScan) -> ChangedFileReport | None:
        """Change one file. ``None`` if it has no such rows."""

    def finish(self) -> list[ChangedFileReport]:
        """Add rows, when all files have been changed."""

    def commit(self) -> list[str]:
        """Make the changes visible. Returns notes."""

    def abort(self) -> None: ...


def place_for(
    files: DatasetFiles, matching: MatchingFiles, candidates: Sequence[FileScan], find: FindChanges,
    options: ApplyOptions, more: Additions | None,
) -> Place:  # fmt: skip
    if files.table is not None:
        if options.table is None:
            raise UnsupportedError(
                f"rows of a dataset of {files.table.kind} cannot be changed so: give the table itself"
            )
        return TablePlace(files, matching, find, options, more)
    if options.dry_run:
        return _DryRun(files, find, options, more)
    folder = local_folder(files)
    if folder is not None:
        return _Folder(folder, files, find, options, more)
    if more is not None and not files.found.is_one_file:
        return _StoreFolder(files, matching, candidates, find, options, more)
    return OneByOne(files, matching, find, options, more)


def has_room(files: DatasetFiles) -> bool:
    """Whether new rows have a place: in the one file, or in new files of the one folder."""
    if files.found.is_one_file or local_folder(files) is not None:
        return True
    if not is_url(files.root) or any(file.fs is None for file in files.found.files):
        return False
    # By path: some file systems have several protocols, and name files by another one than the folder was given by.
    in_folder = ((path_on(file.fs, file.where), path_on(file.fs, files.root)) for file in files.found.files)
    return all(path.startswith(root.rstrip("/") + "/") for path, root in in_folder)


def local_folder(files: DatasetFiles) -> str | None:
    """The local folder that a dataset is, if it is one."""
    if is_url(files.root) or files.found.is_one_file:
        return None
    folder = local_path(files.root) or files.root
    return folder if os.path.isdir(folder) else None


class _DryRun:
    """Nothing is written, but all of it is made: so the report has its figures."""

    at_once = True

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

    at_once = True

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
            force = self._options.force or self._options.only_removes  # a bucket stays one without some rows
            self._target = LocalTarget(self._folder, "overwrite", force)
        return self._target

    def finish(self) -> list[ChangedFileReport]:
        table = None if self._more is None else self._more.table()
        if table is None or not table.num_rows:
            return []
        names, given = _new_files(self._files, table.schema, self._options)
        made = add_rows(self._begun(), table, without_marks(table.schema), names, given)
        self._new += [path for path, _ in made]
        return [
            ChangedFileReport(
                file.sink.name, rows_added=file.num_rows, rows_left=file.num_rows, bytes_written=file.num_bytes
            )
            for _, file in made
        ]

    def commit(self) -> list[str]:
        if self._target is None:
            return []
        self._target.sources = Sources.of(self._old)
        old = [os.path.join(*f.folders, os.path.basename(f.name)) for f in self._old]
        stale = [one for one in companions(self._folder, old) if os.path.lexists(os.path.join(self._folder, one))]
        notes = remove_catalogs(self._files, self._old)  # first: after a crash between the two, nobody would
        self._target.commit(self._new, self._options.fsync, None)
        return [*(f"removed {path}, which described the old files" for path in stale), *notes]

    def abort(self) -> None:
        if self._target is not None:
            self._target.abort()


def _new_files(files: DatasetFiles, schema: Schema, options: ApplyOptions) -> tuple[Sequence[str], dict[str, Any]]:
    """Partition columns and options for new files, which are stored as the first file of the folder is."""
    names = [name for name in files.partition_values.names if name in schema.names]
    file = files.open(0)
    assert file is not None  # the schema is known
    return names, {**new_file_options(file, schema, names, options.encryption), "fsync": options.fsync}


def new_file_options(
    file: OpenFile, schema: Schema, names: Sequence[str], encryption: EncryptionProperties | None = None
) -> dict[str, Any]:
    """Options for new files, which are stored as a file of the folder is. ``names``: of the partition columns."""
    if file.decryption.info is not None and encryption is None:
        raise UnsupportedError("the folder is encrypted, and so must be its new files: give encryption=")
    if file.decryption.info is None and encryption is not None:
        raise OptionError("the files of the folder are not encrypted, so its new ones are not: leave encryption out")
    given = options_like(RowGroupPlans(file).for_more_rows())
    return {**storage_kept(schema, {}, names), **_of_columns(given, schema), "encryption": encryption}


def _of_columns(options: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """The options without columns that new files do not have."""

    def kept(value: Any) -> Any:
        if isinstance(value, dict):
            return {path: one for path, one in value.items() if path[0] in schema.names}
        return [path for path in value if path[0] in schema.names] if isinstance(value, list) else value

    sort = [key for key in options["sort_by"] if key.name[0] in schema.names]
    return {**{name: kept(value) for name, value in options.items() if name != "sort_by"}, "sort_by": sort}


class OneByOne:
    """Files that are replaced one by one, each in its place and only as it was read."""

    at_once = False

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
            ask.append(lambda: ask_whether_managed((source.place for source in remote), self._known))
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
                self._more.begin(self._files)
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
            self._known, opened=opened,
        )  # fmt: skip
        outcome = run(job, prepare)
        return seen[-1].report(file.name, outcome) if outcome.written else None

    def finish(self) -> list[ChangedFileReport]:
        if self._more is None or self._asked:
            return []
        self._catalogs.ask(self._files.found.files[:1])
        report = self._run(0)
        return [] if report is None else [report]

    def commit(self) -> list[str]:
        return self._catalogs.notes

    def abort(self) -> None:
        return None


class _StoreFolder(OneByOne):
    """The objects of a folder in a store, when rows are added. These come first, as new objects. Only then other
    objects lose the rows that belong elsewhere: a crash may leave a row twice, and the same call again ends it."""

    def __init__(
        self, files: DatasetFiles, matching: MatchingFiles, candidates: Sequence[FileScan], find: FindChanges,
        options: ApplyOptions, more: Additions,
    ) -> None:  # fmt: skip
        super().__init__(files, matching, find, options, None)
        self._rows = more
        self._unasked: Sequence[FileScan] | None = candidates
        self._added: list[ChangedFileReport] = []

    def change(self, file_scan: FileScan) -> ChangedFileReport | None:
        self._add_first()
        return super().change(file_scan)

    def finish(self) -> list[ChangedFileReport]:
        self._add_first()
        self._add()  # rows whose place another program has removed meanwhile
        return self._added

    def _add_first(self) -> None:
        for file_scan in self._unasked or ():
            with located(file=file_scan.scan.file.name):
                self._changes_of(file_scan.scan)
        if self._unasked is not None:
            self._unasked = None
            self._add()

    def _add(self) -> None:
        table = self._rows.table()
        if table.num_rows:
            names, given = _new_files(self._files, table.schema, self._options)
            made = write_folder(
                table, self._files.root, names, "append", FileLimits(), schema=without_marks(table.schema),
                force=self._options.force, storage_options=self._files.found.storage_options,
                options=cast("WriteArguments", given),
            )  # fmt: skip
            self._added += [
                ChangedFileReport(
                    file.path, rows_added=file.num_rows, rows_left=file.num_rows, bytes_written=file.num_bytes
                )
                for file in made.files
            ]
        self._rows.added()
