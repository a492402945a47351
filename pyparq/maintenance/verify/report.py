"""The result of a verification: findings, one for each statement of a file that its data contradict, as values, as a
table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from pyparq.errors import ChecksumError, ParquetError
from pyparq.format.schema_node import Node
from pyparq.runtime.tables import Cell, aligned, html_view, viewable
from pyparq.runtime.text import printable, visible
from pyparq.write.shred import LeafData

KINDS = {
    "file": "the file or its footer cannot be read",
    "signature": "the signature of a plaintext footer is wrong",
    "metadata": "the footer contradicts itself or the schema",
    "layout": "parts of the file overlap or lie outside of it",
    "checksum": "a page does not match its CRC",
    "page": "a page cannot be read",
    "size": "a size is not the real one",
    "count": "a number of rows, values, nulls or NaN is not the real one",
    "histogram": "a level histogram is not the real one",
    "bounds": "a value lies outside of its bounds, or a bound cannot be one",
    "exactness": "a bound that is called exact is not the extreme value",
    "boundary order": "the bounds of the pages are not in the order that the ColumnIndex states",
    "location": "a page is not where the OffsetIndex says, or starts with another row",
    "index": "a ColumnIndex or OffsetIndex cannot be read, or does not fit the pages",
    "bloom filter": "a Bloom filter denies a value that is there, or cannot be read",
    "encoding": "the footer lists other encodings than the pages have",
    "sorting": "rows are not in the order of the sorting columns",
    "text": "text is not UTF-8",
    "catalog": "the catalog beside the dataset cannot be read, or denies a key that is there",
    "range": "a value is outside of what its type allows",
}
"""Kinds of findings, and what each means."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a file.

    ``kind`` is a key of the table in docs/verify.md. ``structure`` is the part of the file that makes the wrong
    statement: ``"Statistics"``, ``"ColumnIndex"``, ``"BloomFilter"`` and so on, or ``"data"`` where the data themselves
    are wrong. ``column`` is the path of a leaf column. ``page`` and ``row`` are the first that show it: pages are
    counted from 0 within the column chunk, rows from 0 within the row group. ``pages`` is how many pages show it. What
    does not apply is ``None``.
    """

    kind: str
    structure: str
    text: str
    file: str = ""
    row_group: int | None = None
    column: tuple[str, ...] | None = None
    page: int | str | None = None
    row: int | None = None
    pages: int = 1

    @property
    def dotted(self) -> str:
        """The path of the column as one string; empty for findings about the file."""
        return "" if self.column is None else ".".join(self.column)

    def __str__(self) -> str:
        names = {"file": self.file or None, "row group": self.row_group, "column": self.dotted or None}
        names |= {"page": self.page, "row": self.row}
        place = ", ".join(f"{name} {value}" for name, value in names.items() if value is not None)
        return f"{self.structure}: {self.text}" + (f" [{place}]" if place else "")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return found | {"column": None if self.column is None else list(self.column)}


class Findings:
    """Collects the findings of one place: a file, a row group or a column chunk."""

    def __init__(self, file: str, row_group: int | None = None, column: tuple[str, ...] | None = None) -> None:
        self.file = file
        self.row_group = row_group
        self.column = column
        self.found: list[Finding] = []

    def add(
        self, kind: str, structure: str, text: str, page: int | str | None = None, row: int | None = None,
        pages: int = 1,
    ) -> None:  # fmt: skip
        assert kind in KINDS, kind
        finding = Finding(kind, structure, text, self.file, self.row_group, self.column, page, row, pages)
        if finding not in self.found:
            self.found.append(finding)

    def add_error(self, kind: str, structure: str, error: ParquetError) -> None:
        """Add the error that reading raised."""
        if isinstance(error, ChecksumError):
            kind, structure = "checksum", "PageHeader"
        self.add(kind, structure, error.message, page=error.page)


Extent = tuple[int, int, str]
"""The start and end of a part of the file, and its name."""


@dataclass(frozen=True, slots=True)
class BloomRate:
    """The size of a filter in bytes, and the share of random probes that it does not deny."""

    num_bytes: int
    rate: float


@dataclass(slots=True)
class ChunkResult:
    """The result of checking a column chunk. Counts are numbers of checked structures."""

    node: Node
    findings: list[Finding] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)
    places: list[Extent] = field(default_factory=list)
    meta: Any = None
    """ColumnMetaData as it stands in the footer."""
    pages: int = 0
    crcs: int = 0
    num_values: int = 0
    num_nulls: int = 0
    statistics: bool = False
    column_index: bool = False
    offset_index: bool = False
    pages_listed: int | None = None
    """Number of pages in the OffsetIndex. ``None`` if there is none that decodes."""
    bloom: BloomRate | None = None
    leaf: LeafData | None = None
    """Its rows, where they are needed to check the order of rows."""


# ---- reports ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class ColumnReport:
    """The checks of one leaf column of a file, over all its row groups."""

    path: tuple[str, ...]
    chunks: int = 0
    pages: int = 0
    num_values: int = 0
    """Nulls included."""
    num_nulls: int = 0
    checksums: int = 0
    """Pages with a CRC."""
    statistics: int = 0
    """Column chunks with statistics, and so on."""
    column_indexes: int = 0
    offset_indexes: int = 0
    bloom_filters: int = 0
    bloom_rate: float | None = None
    """Measured rate of false positives: the mean of the column's filters. ``None`` without filters."""
    findings: int = 0
    not_checked: list[str] = field(default_factory=list)
    """What could not be checked, and why."""

    @property
    def dotted(self) -> str:
        return ".".join(self.path)

    def take(self, result: ChunkResult) -> None:
        """Add one column chunk."""
        self.chunks += 1
        self.pages += result.pages
        self.num_values += result.num_values
        self.num_nulls += result.num_nulls
        self.checksums += result.crcs
        self.statistics += result.statistics
        self.column_indexes += result.column_index
        self.offset_indexes += result.offset_index
        self.findings += len(result.findings)
        if result.bloom is not None:
            before = 0.0 if self.bloom_rate is None else self.bloom_rate * self.bloom_filters
            self.bloom_filters += 1
            self.bloom_rate = (before + result.bloom.rate) / self.bloom_filters
        self.not_checked += [reason for reason in result.not_checked if reason not in self.not_checked]

    def add(self, other: ColumnReport) -> None:
        """Add the same column of another file."""
        if other.bloom_rate is not None:
            before = 0.0 if self.bloom_rate is None else self.bloom_rate * self.bloom_filters
            total = self.bloom_filters + other.bloom_filters
            self.bloom_rate = (before + other.bloom_rate * other.bloom_filters) / total
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.not_checked += [reason for reason in other.not_checked if reason not in self.not_checked]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        counts = {name: getattr(self, name) for name in _COUNTS}
        return {"column": list(self.path), **counts, "bloom_rate": self.bloom_rate, "not_checked": self.not_checked}


_COUNTS = (
    "chunks", "pages", "num_values", "num_nulls", "checksums", "statistics", "column_indexes", "offset_indexes",
    "bloom_filters", "findings",
)  # fmt: skip


@dataclass(slots=True)
class FileReport:
    """The checks of one file."""

    name: str
    row_groups: int = 0
    num_rows: int = 0
    created_by: str | None = None
    findings: list[Finding] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)
    columns: dict[tuple[str, ...], ColumnReport] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong with the file."""
        return not self.findings

    def take(self, result: ChunkResult) -> None:
        """Add one column chunk."""
        column = self.columns.setdefault(result.node.path, ColumnReport(result.node.path))
        column.take(result)
        self.findings += result.findings

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "file": self.name, "ok": self.ok, "row_groups": self.row_groups, "rows": self.num_rows,
            "created_by": self.created_by, "findings": [finding.to_dict() for finding in self.findings],
            "not_checked": self.not_checked, "columns": [column.to_dict() for column in self.columns.values()],
        }  # fmt: skip


class VerificationReport:
    """What :func:`pyparq.verify` found. It is true of the files as they were when they were read.

    ``str(report)`` is a text with a table of the columns and one of the findings.

    Example::

        report = pyparq.verify("flights.parquet", columns=["tailnum"])
        print(report)
        for finding in report.findings:
            print(finding.kind, finding.column, finding.text)
    """

    def __init__(self, source: str, files: Sequence[FileReport]) -> None:
        self.source = source
        """What was verified."""
        self.files = list(files)
        """A report for each file, in the order of the files."""

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong with any file. What could not be checked does not count: see :attr:`not_checked`."""
        return all(file.ok for file in self.files)

    @property
    def findings(self) -> list[Finding]:
        """All that is wrong, file by file."""
        return [finding for file in self.files for finding in file.findings]

    @property
    def columns(self) -> list[ColumnReport]:
        """A report for each leaf column, over all files."""
        found: dict[tuple[str, ...], ColumnReport] = {}
        for file in self.files:
            for path, column in file.columns.items():
                found.setdefault(path, ColumnReport(path)).add(column)
        return list(found.values())

    @property
    def not_checked(self) -> list[str]:
        """What could not be checked, and why: columns whose keys are not known, for example."""
        found: dict[str, None] = {}
        for file in self.files:
            found |= dict.fromkeys(file.not_checked)
        for column in self.columns:
            found |= dict.fromkeys(f"column {column.dotted}: {reason}" for reason in column.not_checked)
        return list(found)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "source": self.source, "ok": self.ok, "findings": len(self.findings), "not_checked": self.not_checked,
            "files": [file.to_dict() for file in self.files],
        }  # fmt: skip

    @viewable
    def _repr_html_(self) -> str:
        parts = [html_view(self.summary(), (), *_plain(*self.column_table()))]
        if not self.ok:
            parts.append(html_view("Findings", (), *_plain(*self.finding_table())))
        if self.not_checked:
            parts.append(html_view("Not checked", [("", reason) for reason in self.not_checked]))
        return "".join(parts)

    @printable
    def __repr__(self) -> str:
        return f"<VerificationReport of {self.source}: {len(self.files)} files, {len(self.findings)} findings>"

    def __str__(self) -> str:
        lines = [self.summary(), "", *aligned(*self.column_table())]
        if self.not_checked:
            lines += ["", "not checked:", *(f"  {visible(reason)}" for reason in self.not_checked)]
        if not self.ok:
            lines += ["", *aligned(*self.finding_table())]
        return "\n".join(lines)

    def summary(self) -> str:
        """One line: what was verified, and how many findings there are."""
        rows = sum(file.num_rows for file in self.files)
        groups = sum(file.row_groups for file in self.files)
        plural = "" if groups == 1 else "s"
        found = len(self.findings)
        said = "no findings" if not found else "1 finding" if found == 1 else f"{found:,} findings"
        files = "" if len(self.files) == 1 else f"{len(self.files):,} files, "
        bad = sum(not file.ok for file in self.files)
        where = f" in {bad:,} of them" if found and len(self.files) > 1 else ""
        return f"{visible(self.source)}: {files}{groups:,} row group{plural}, {rows:,} rows: {said}{where}"

    def column_table(self) -> tuple[list[str], list[list[str]]]:
        """Headings and rows of the table of columns. A leading ``>`` marks numbers."""
        rows = [
            [
                visible(c.dotted), f"{c.chunks:,}", f"{c.pages:,}", f"{c.num_values:,}", f"{c.num_nulls:,}",
                f"{c.checksums:,}", f"{c.statistics:,}", f"{c.column_indexes:,}", f"{c.offset_indexes:,}",
                f"{c.bloom_filters:,}", "-" if c.bloom_rate is None else f"{100 * c.bloom_rate:.3g} %",
                f"{c.findings:,}" if c.chunks > 0 else "-",
            ]
            for c in self.columns
        ]  # fmt: skip
        return list(_COLUMNS), rows

    def finding_table(self) -> tuple[list[str], list[list[str]]]:
        """Headings and rows of the table of findings."""
        many = len(self.files) > 1
        rows = []
        for f in self.findings:
            place = [_shown(f.row_group), visible(f.dotted) or "-", _shown(f.page), _shown(f.row)]
            rows.append([*([visible(f.file)] if many else []), *place, f.kind, f"{f.structure}: {visible(f.text)}"])
        return [*(["file"] if many else []), *_FINDINGS], rows


_COLUMNS = (
    "column", ">chunks", ">pages", ">values", ">nulls", ">CRCs", ">statistics", ">ColumnIndex", ">OffsetIndex",
    ">Bloom filters", ">false positives", ">findings",
)  # fmt: skip
_FINDINGS = (">row group", "column", ">page", ">row", "kind", "what is wrong")


def _shown(value: Any) -> str:
    return "-" if value is None else str(value)


def _plain(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[list[str], list[list[Cell]]]:
    """A table without the marks of its headings."""
    return [heading.lstrip(">") for heading in headings], [list(row) for row in rows]
