"""Reports about changed files, as plain values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pyparq.runtime.tables import Cell, html_view, summed, viewable
from pyparq.runtime.text import printable

ADDED, KEPT, REPLACED, REMOVED, LEFT = "added", "kept", "replaced", "removed", "left"
CHANGES = (ADDED, REPLACED, REMOVED)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a job."""

    written: bool
    target: str
    notes: tuple[str, ...] = ()
    copied_in_store: int = 0
    """Bytes that the store has copied itself."""
    old_version: str = ""
    """The name of the version that was replaced or removed, in a store that keeps versions."""


@dataclass(frozen=True, slots=True)
class IndexedColumn:
    """What :func:`pyparq.add_indexes` did for one leaf column.

    ``bloom_filter``, ``column_index`` and ``offset_index`` say in how many row groups the index was ``"added"``,
    ``"kept"`` (it was there already), ``"replaced"``, ``"removed"``, or ``"left"`` out although it was asked for.
    ``reasons`` says why it was left out. Sizes are in bytes.
    """

    name: str
    bloom_filter: dict[str, int] = field(default_factory=dict)
    column_index: dict[str, int] = field(default_factory=dict)
    offset_index: dict[str, int] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    bytes_decoded: int = 0
    """Stored bytes of the pages that were decoded to build the indexes."""
    bytes_added: int = 0
    """Bytes of the new indexes and filters."""

    @property
    def changed(self) -> bool:
        """Whether any index of the column was added, replaced or removed."""
        kinds = (self.bloom_filter, self.column_index, self.offset_index)
        return any(kind.get(change) for kind in kinds for change in CHANGES)


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """What :func:`pyparq.add_indexes` did for one file. Sizes are in bytes."""

    source: str
    target: str
    written: bool = False
    """The target was written. ``False`` when there was nothing to do, or on an error."""
    columns: tuple[IndexedColumn, ...] = ()
    bytes_decoded: int = 0
    """Stored bytes of the pages that were decoded."""
    bytes_copied: int = 0
    """Bytes that were taken over as they are: all pages, and the indexes that were kept."""
    bytes_written: int = 0
    """New bytes: indexes, filters and the footer."""
    notes: tuple[str, ...] = ()
    """What else there is to know, such as other files that became out of date."""
    error: Exception | None = None
    """Why the file could not be handled (``on_error="skip"``)."""


@dataclass(frozen=True, slots=True, repr=False)
class IndexReport:
    """What :func:`pyparq.add_indexes` did, file by file.

    Example::

        report = pyparq.add_indexes("events.parquet", "indexed.parquet", bloom_filters=["user"])
        for file in report.files:
            for column in file.columns:
                print(column.name, column.bloom_filter)
    """

    files: tuple[IndexedFile, ...]

    @property
    def columns(self) -> tuple[IndexedColumn, ...]:
        """The columns of all files."""
        return tuple(column for file in self.files for column in file.columns)

    @property
    def ok(self) -> bool:
        """No file failed."""
        return not self.errors

    @property
    def errors(self) -> dict[str, Exception]:
        """The errors of files that failed, by file name."""
        return {file.source: file.error for file in self.files if file.error is not None}

    files_written = summed("written", "Number of files that were written.")
    bytes_decoded = summed("bytes_decoded", "Stored bytes of the pages that were decoded.")
    bytes_copied = summed("bytes_copied", "Bytes that were taken over as they are.")
    bytes_written = summed("bytes_written", "New bytes: indexes, filters and footers.")

    def to_dict(self) -> dict[str, Any]:
        """The report as values that fit JSON."""
        files = []
        for file in self.files:
            plain = asdict(replace(file, error=None))
            plain["error"] = None if file.error is None else str(file.error)
            files.append(plain)
        return {"files": files}

    @printable
    def __repr__(self) -> str:
        return f"<IndexReport: {len(self.files):,} files, {self.files_written:,} written, {len(self.errors):,} failed>"

    @viewable
    def _repr_html_(self) -> str:
        facts = [
            ("files", f"{len(self.files):,}, of which {self.files_written:,} were written"),
            ("bytes", f"{self.bytes_copied:,} copied, {self.bytes_written:,} new, {self.bytes_decoded:,} decoded"),
            *((f"failed: {name}", str(error)) for name, error in self.errors.items()),
        ]
        rows: list[list[Cell]] = [
            [file.source, c.name, _counts(c.bloom_filter), _counts(c.column_index), _counts(c.offset_index)]
            for file in self.files
            for c in file.columns
        ]
        return html_view("IndexReport", facts, ["file", "column", "Bloom filter", "ColumnIndex", "OffsetIndex"], rows)

    def __str__(self) -> str:
        return "\n".join(line for file in self.files for line in _lines(file))


def _lines(file: IndexedFile) -> Iterable[str]:
    if file.error is not None:
        yield f"{file.source}: failed: {file.error}"
        return
    if not file.written:
        yield f"{file.source}: nothing to do"
    else:
        where = "" if file.target == file.source else f" to {file.target}"
        yield (
            f"{file.source}: written{where}: {file.bytes_copied:,} bytes copied, {file.bytes_written:,} new, "
            f"{file.bytes_decoded:,} decoded"
        )
    for column in file.columns:
        said = [
            f"{label} {_counts(counts)}"
            for label, counts in (
                ("Bloom filter", column.bloom_filter),
                ("ColumnIndex", column.column_index),
                ("OffsetIndex", column.offset_index),
            )
            if counts
        ]
        yield f"  {column.name}: {', '.join(said) or 'nothing asked for'}"
        for reason in column.reasons:
            yield f"    {reason}"
    for note in file.notes:
        yield f"  {note}"


def _counts(counts: dict[str, int]) -> str:
    """``added``, or ``added in 2, kept in 1`` where row groups differ."""
    if len(counts) == 1:
        return next(iter(counts))
    return " and ".join(f"{what} in {count}" for what, count in counts.items())
