"""The findings of a verification: one for each statement of a file that its data contradict."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from pyparq.errors import ChecksumError, ParquetError

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
