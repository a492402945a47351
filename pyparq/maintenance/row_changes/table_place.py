"""Rows of a table of Delta Lake or Iceberg changed: new files beside the old ones, and one commit of the table's own
library. Older versions of the table keep the rows until its own clean-up removes their files."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pyparq.arrow.schema.extensions import FIELD_ID
from pyparq.datasets.dataset import Dataset, files_of, with_files
from pyparq.datasets.explain import FileScan
from pyparq.datasets.file_columns import of_fields
from pyparq.datasets.files import DatasetFiles
from pyparq.datasets.scan import MatchingFiles
from pyparq.errors import CommitUnknownError, UnsupportedError, located
from pyparq.format.types import DataType, Field
from pyparq.io.sink import open_sink
from pyparq.io.table_formats import DELTA, format_of
from pyparq.io.url import is_url
from pyparq.maintenance.row_changes.copied_groups import NoSink
from pyparq.maintenance.row_changes.file_change import FileChange, FindChanges, rows_go, written
from pyparq.maintenance.row_changes.report import ChangedFileReport
from pyparq.maintenance.row_changes.table_rows import add_files, remove_empty_folders
from pyparq.maintenance.table_change import AddedFile, NewFile, TableChange, facts_of, has_such_rows
from pyparq.maintenance.table_commits import ELSEWHERE, HAS_DELETED, beside, commit, remove_files
from pyparq.maintenance.table_features import Intent, check_table
from pyparq.read.footers.open_file import OpenFile


def _older(table: Any) -> list[str]:
    """What there is to know of older versions of the table."""
    if format_of(table) == DELTA:
        return [
            "older versions of the table keep these rows as they were until VACUUM removes their files, by default "
            "after 7 days: DeltaTable(...).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False), "
            "or in Spark VACUUM ... RETAIN 0 HOURS"
        ]
    name = ".".join(table.name())
    others = sorted(f"the {ref.snapshot_ref_type.value} {called!r}" for called, ref in table.refs().items())
    kept = [other for other in others if other != "the branch 'main'"]
    return [
        "older snapshots of the table keep these rows as they were until they expire and their files are removed: in "
        f"Spark, CALL catalog.system.expire_snapshots(table => '{name}', older_than => TIMESTAMP '...', retain_last => "
        "1); table.maintenance.expire_snapshots() of pyiceberg removes no files",
        *([f"expiry passes over the snapshots of {', '.join(kept)}"] if kept else ()),
    ]


class TablePlace:
    """The data files of a table."""

    at_once = True

    def __init__(
        self, files: DatasetFiles, matching: MatchingFiles, find: FindChanges, options: Any, more: Any = None
    ) -> None:
        """``options``: those of the changes. ``more``: rows to add (:class:`Additions`)."""
        self._table = options.table
        self._intent = Intent(options.operation, options.columns)
        check_table(self._table, self._intent)
        self._files = files
        self._matching = matching
        self._find_changes = find
        self._options = options
        self._more = more
        self._store = files.found.storage_options  # the table's own, where none are given
        self._made = dict[str, NewFile | None]()
        self._added = list[AddedFile]()
        self._new = list[str]()

    def change(self, file_scan: FileScan) -> ChangedFileReport | None:
        scan, (number,) = file_scan.scan, file_scan.numbers
        file, table = self._files.found.files[number], self._files.table
        assert table is not None
        with located(file=file.name):
            if self._intent.makes_values:
                astray = _astray(self._files, scan.file, self._options.columns)
                if astray is not None and rows_go(scan):
                    raise astray
                if astray is not None:
                    return None
            keep_empty = self._options.keep_empty and not self._intent.makes_values
            change = FileChange(scan, self._find_changes, keep_empty)
            if not change.changes:
                return None
            if self._files.has_deleted(number):
                raise UnsupportedError(HAS_DELETED)
            if not file.where.startswith(table.folder + "/"):
                raise UnsupportedError(ELSEWHERE)
            change.check_required({f.name for f in self._files.schema.fields if not f.nullable})
            new = None if change.removes else self._written(change, file.where)
        self._made[file.where] = new
        return change.report(file.name)

    def _written(self, change: FileChange, place: str) -> NewFile | None:
        """The new file. ``None`` in a dry run."""
        if self._options.dry_run:
            written(change, NoSink(place))
            return None
        path = beside(place)
        self._new.append(path)
        store = self._store if is_url(path) else None
        sink = open_sink(path, self._options.fsync, store)
        written(change, sink)
        size = sink.position
        sink.commit()
        return NewFile(path, size, facts_of(path, store, self._files.options.decryption))

    def finish(self) -> list[ChangedFileReport]:
        rows = None if self._more is None else self._more.table()
        if rows is None or not rows.num_rows:
            return []
        if self._options.dry_run:
            return [ChangedFileReport(self._files.root, rows_added=rows.num_rows, notes=("rows of new files",))]
        self._added += add_files(self._table, self._files, rows, self._options.fsync, self._new.append)
        return [
            ChangedFileReport(
                added.new.path, rows_added=added.new.facts.num_rows, rows_left=added.new.facts.num_rows,
                bytes_written=added.new.size,
            )
            for added in self._added if added.new.facts is not None
        ]  # fmt: skip

    def commit(self) -> list[str]:
        if not self._options.dry_run and (self._made or self._added):
            change = TableChange(self._made, self._intent, self._added, self._check_newer)
            try:
                commit(self._table, change)
            except CommitUnknownError:
                self._new.clear()  # the commit may name them
                raise
        return _older(self._table) if self._made else []

    def _check_newer(self, table: Any, places: Collection[str]) -> None:
        """Raise :class:`WriteConflictError` where files that others have added hold rows that are meant."""
        dataset = Dataset(table, storage_options=self._store)
        files = files_of(dataset)
        dataset = with_files(dataset, files.with_options(self._files.options, files.declared))
        for file_scan in MatchingFiles(dataset.scan([], self._matching.expression)).candidates():
            file = files.found.files[file_scan.numbers[0]]
            if file.where in places and rows_go(file_scan.scan):
                raise has_such_rows(file.where)

    def abort(self) -> None:
        remove_files(self._new, self._store)
        if self._files.table is not None:
            remove_empty_folders(self._new, self._files.table.folder)


# ---- how a file stores the columns of the table ----------------------------------------------------------------------


def _astray(files: DatasetFiles, file: OpenFile, columns: Collection[str]) -> UnsupportedError | None:
    """The error for a file into which new values cannot be put, because it does not store the columns as the table
    has them. ``columns``: those of an update."""
    wanted, have = files.schema.fields, file.fields.schema.fields
    for field, place in zip(wanted, files.matching.places(of_fields(wanted), of_fields(have)), strict=True):
        found = None if place is None else have[place]
        why = ""
        if found is None and any(other.name == field.name for other in have):
            why = "another column has this name in the file"
        elif found is not None and not _is_alike(field, found):
            why = "the file stores the column, or a field of it, under another name or without a field"
        elif field.name in columns and found is None:
            why = "the file is older than the column"
        elif field.name in columns and found is not None and _is_looser(found.type, field.type):
            why = "the table has required fields that are not required in the file"
        if why:
            return UnsupportedError(f"{why}: let the table's own library write the file anew", column=field.name)
    return None


def _is_alike(field: Field, stored: Field) -> bool:
    """Whether a file's column has the names and field ids of the table's column, at any depth."""
    number, own = field.metadata.get(FIELD_ID), stored.metadata.get(FIELD_ID)
    if field.name != stored.name or (number and own and number != own):
        return False
    return _are_alike(field.type, stored.type)


def _are_alike(type_: DataType, stored: DataType) -> bool:
    if type_.format == "+s" and stored.format == "+s":
        others = {child.name: child for child in stored.children}
        names = [child.name for child in type_.children]
        return set(names) == set(others) and all(_is_alike(child, others[child.name]) for child in type_.children)
    pairs = list(zip(type_.children, stored.children, strict=False))  # names of elements are the writer's choice
    return len(type_.children) == len(stored.children) and all(_are_alike(a.type, b.type) for a, b in pairs)


def _is_looser(stored: DataType, wanted: DataType) -> bool:
    """Whether a nested field may be null in the file, and not in the table."""
    pairs = list(zip(stored.children, wanted.children, strict=False))
    return any((s.nullable and not w.nullable) or _is_looser(s.type, w.type) for s, w in pairs)
