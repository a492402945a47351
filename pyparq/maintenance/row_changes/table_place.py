"""Rows of a table of Delta Lake or Iceberg changed: new files beside the old ones, and one commit of the table's own
library. Older versions of the table keep the rows until its own clean-up removes their files."""

from __future__ import annotations

from typing import Any

from pyparq.datasets.files import DatasetFiles
from pyparq.datasets.reader import FileScan
from pyparq.errors import CommitUnknownError, UnsupportedError, located
from pyparq.io.sink import open_sink
from pyparq.io.table_formats import DELTA, format_of
from pyparq.io.url import is_url
from pyparq.maintenance.delta_commits import check_delta
from pyparq.maintenance.file_facts import NewFile, facts_of
from pyparq.maintenance.iceberg_commits import check_iceberg
from pyparq.maintenance.row_changes.copied_groups import NoSink
from pyparq.maintenance.row_changes.file_change import FileChange, FindChanges, written
from pyparq.maintenance.row_changes.report import ChangedFileReport
from pyparq.maintenance.table_change import TableChange
from pyparq.maintenance.table_commits import ELSEWHERE, HAS_DELETED, beside, commit, remove_files

_OLDER = {
    DELTA: "older versions of the table keep these rows until VACUUM removes their files, by default after 7 days: "
    "DeltaTable(...).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False), or VACUUM in Spark",
}
_OLDER_ICEBERG = (
    "older snapshots of the table keep these rows until they expire and their files are removed: in Spark, CALL "
    "catalog.system.expire_snapshots(table => '...', older_than => ...); "
    "table.maintenance.expire_snapshots() of pyiceberg removes no files"
)


class TablePlace:
    """The data files of a table."""

    at_once = True

    def __init__(self, table: Any, files: DatasetFiles, find: FindChanges, operation: str, options: Any) -> None:
        """``operation``: ``"DELETE"`` or the like, for the log. ``options``: those of the changes."""
        if format_of(table) == DELTA:
            check_delta(table, operation)
        else:
            check_iceberg(table)
        self._table = table
        self._files = files
        self._find_changes = find
        self._operation = operation
        self._options = options
        self._store = files.found.storage_options  # the table's own, where none are given
        self._made = dict[str, NewFile | None]()
        self._new = list[str]()

    def change(self, file_scan: FileScan) -> ChangedFileReport | None:
        scan, (number,) = file_scan.scan, file_scan.numbers
        file, table = self._files.found.files[number], self._files.table
        assert table is not None
        with located(file=file.name):
            change = FileChange(scan, self._find_changes, self._options.keep_empty)
            if not change.changes:
                return None
            if self._files.has_deleted(number):
                raise UnsupportedError(HAS_DELETED)
            if not file.where.startswith(table.folder + "/"):
                raise UnsupportedError(ELSEWHERE)
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
        return []

    def commit(self) -> list[str]:
        if not self._made:
            return []
        if not self._options.dry_run:
            try:
                commit(self._table, TableChange(self._made, self._operation))
            except CommitUnknownError:
                self._new.clear()  # the commit may name them
                raise
        return [_OLDER.get(str(format_of(self._table)), _OLDER_ICEBERG)]

    def abort(self) -> None:
        remove_files(self._new, self._store)
