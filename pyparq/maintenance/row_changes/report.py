"""Reports about deleted, updated and replaced rows, as plain values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pyparq.arrow.table import Table
from pyparq.runtime.tables import Cell, html_view, summed, viewable
from pyparq.runtime.text import printable

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class IndexHelp:
    """What one kind of index ruled out, in one file or in several that were asked together.

    Example::

        report = pyparq.delete("flights.parquet", pyparq.col("flight") == 7, dry_run=True)
        for help in (help for file in report.files for help in file.indexes):
            print(help.index, help.row_groups_before, help.row_groups_after)
    """

    index: str
    """``"statistics"``, ``"bloom_filter"`` and so on, as in ``explain()``."""
    row_groups_before: int
    row_groups_after: int
    rows_before: int
    rows_after: int


@dataclass(frozen=True, slots=True)
class ChangedFileReport:
    """What was done to one file. Sizes are in bytes.

    Example::

        report = pyparq.delete("flights.parquet", pyparq.col("flight") == 7, dry_run=True)
        for file in report.files:
            print(file.file, file.rows_deleted, file.row_groups_copied)
    """

    file: str
    rows_deleted: int = 0
    rows_updated: int = 0
    rows_added: int = 0
    rows_left: int = 0
    """Rows that the file has now."""
    row_groups_copied: int = 0
    """Row groups that were copied byte for byte."""
    row_groups_rewritten: int = 0
    """Row groups that were made anew."""
    row_groups_removed: int = 0
    """Row groups of which no row is left."""
    bytes_read: int = 0
    """Bytes that were fetched to find and to decode rows. Copied bytes are not among them."""
    bytes_copied: int = 0
    bytes_copied_in_store: int = 0
    """Those of ``bytes_copied`` that the store copied itself: they went over no network."""
    bytes_written: int = 0
    """New bytes of the file that was written."""
    removed: bool = False
    """The file was removed, as no row was left."""
    old_version: str = ""
    """The version of the object that was replaced or removed, in a store that keeps versions. It has the rows still."""
    indexes: tuple[IndexHelp, ...] = ()
    """How the file's indexes helped to find the rows."""
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    """What else there is to know: why row groups were made anew, and which other files were removed."""


@dataclass(frozen=True, slots=True, repr=False)
class ChangeReport:
    """What :func:`pyparq.delete`, :func:`pyparq.update` or :func:`pyparq.upsert` has done, or would do.

    Example::

        report = pyparq.delete("flights.parquet", pyparq.col("flight") == 7, dry_run=True)
        print(report)
        report.to_pandas()
    """

    source: str
    files: tuple[ChangedFileReport, ...]
    """The files that changed, in their order. All others are as they were."""
    files_total: int
    """Number of files of the source."""
    dry_run: bool = False
    """Nothing was written."""
    indexes: tuple[IndexHelp, ...] = ()
    """What indexes ruled out where several files were asked together."""
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    rows_deleted = summed("rows_deleted")
    rows_updated = summed("rows_updated")
    rows_added = summed("rows_added")
    bytes_read = summed("bytes_read", "Bytes that were fetched to find and to decode rows, in the files that changed.")
    bytes_copied = summed("bytes_copied")
    bytes_copied_in_store = summed("bytes_copied_in_store", "Those of ``bytes_copied`` that stores copied themselves.")
    bytes_written = summed("bytes_written")

    def to_dict(self) -> dict[str, Any]:
        """The report as values that fit JSON."""
        return {**asdict(self), "rows_deleted": self.rows_deleted, "rows_updated": self.rows_updated,
                "rows_added": self.rows_added}  # fmt: skip

    def to_pandas(self) -> pd.DataFrame:
        """A DataFrame with a row for each file that changed."""
        columns = {name: [getattr(file, name) for file in self.files] for name in _COLUMNS}
        schema = {name: _TYPES.get(name, "int64") for name in _COLUMNS}
        return Table.from_pydict(columns, schema).to_pandas()

    @printable
    def __repr__(self) -> str:
        return f"<ChangeReport {self.source}: {_done(self)}>"

    @viewable
    def _repr_html_(self) -> str:
        facts = [
            ("rows", _done(self)),
            ("files", f"{len(self.files):,} of {self.files_total:,} changed"),
            ("bytes", f"{self.bytes_copied:,} copied, {self.bytes_written:,} new, {self.bytes_read:,} read"),
            *(("note", note) for note in self.notes),
        ]
        rows: list[list[Cell]] = [[getattr(file, name) for name in _SHOWN] for file in self.files]
        return html_view(f"ChangeReport {self.source}", facts, [name.replace("_", " ") for name in _SHOWN], rows)

    def __str__(self) -> str:
        return "\n".join(_lines(self))


_COLUMNS = (
    "file", "rows_deleted", "rows_updated", "rows_added", "rows_left", "row_groups_copied", "row_groups_rewritten",
    "row_groups_removed", "bytes_read", "bytes_copied", "bytes_copied_in_store", "bytes_written", "removed",
    "old_version", "seconds",
)  # fmt: skip
_TYPES = {"file": "string", "old_version": "string", "removed": "bool", "seconds": "double"}
_SHOWN = (*_COLUMNS[:8], "bytes_copied", "bytes_written")


def _done(report: ChangeReport) -> str:
    counts = (
        (report.rows_deleted, "deleted"), (report.rows_updated, "updated"), (report.rows_added, "added"),
    )  # fmt: skip
    said = ", ".join(f"{count:,} {what}" for count, what in counts if count) or "no row changed"
    return f"{said} in {len(report.files):,} of {report.files_total:,} files{' (dry run)' if report.dry_run else ''}"


def _by_store(file: ChangedFileReport) -> str:
    return f" ({file.bytes_copied_in_store:,} by the store)" if file.bytes_copied_in_store else ""


def _lines(report: ChangeReport) -> Iterable[str]:
    yield f"{report.source}: {_done(report)}, {report.seconds:.2f} s"
    for file in report.files:
        rows = file.rows_deleted + file.rows_updated + file.rows_added
        yield (
            f"  {file.file}: {rows:,} rows; row groups: {file.row_groups_copied:,} copied, "
            f"{file.row_groups_rewritten:,} made anew, {file.row_groups_removed:,} removed; "
            f"{file.bytes_copied:,} bytes copied{_by_store(file)}, {file.bytes_written:,} new"
        )
        for note in file.notes:
            yield f"    {note}"
    yield from (f"  {note}" for note in report.notes)
