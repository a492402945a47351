"""From rows to pages to byte ranges: what a scan will read of each column chunk.

A :class:`ColumnRead` is a plain value: it can be printed, pickled, sent to another machine and checked to the byte.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from pyparq.index.page_index import PageLocations
from pyparq.index.row_ranges import Int64Array, RowRanges
from pyparq.io.source import Range
from pyparq.options import ReadOptions
from pyparq.read.open import Chunk


class PageRead(NamedTuple):
    """One data page: its ordinal, where it lies, and the rows it holds."""

    ordinal: int
    offset: int
    size: int
    first_row: int
    num_rows: int


@dataclass(frozen=True, slots=True)
class ColumnRead:
    """What to read of one column chunk: the dictionary page and some data pages, or (``pages`` is ``None``) all."""

    row_group: int
    column: int
    name: str
    pages: tuple[PageRead, ...] | None
    dictionary: Range | None
    """Bytes before the first data page, when pages are read one by one and the dictionary is not known yet."""
    whole: Range | None
    """The whole chunk, when ``pages`` is ``None``."""
    num_rows: int
    """Rows that the pages hold."""

    @property
    def ranges(self) -> list[Range]:
        """Byte ranges in file order, before any are merged."""
        if self.whole is not None:
            return [self.whole]
        first = [] if self.dictionary is None else [self.dictionary]
        return first + [page[1:3] for page in self.pages or ()]

    @property
    def num_bytes(self) -> int:
        return sum(length for _, length in self.ranges)

    @property
    def rows(self) -> tuple[tuple[int, int], ...]:
        """Row ranges that the pages hold, joined where pages adjoin."""
        if self.pages is None:
            return ((0, self.num_rows),) if self.num_rows else ()
        held: list[tuple[int, int]] = []
        for page in self.pages:
            start, end = page.first_row, page.first_row + page.num_rows
            if held and held[-1][1] == start:
                start = held.pop()[0]
            held.append((start, end))
        return tuple(held)

    def row_ranges(self, num_rows: int) -> RowRanges:
        return RowRanges.of(self.rows, num_rows)


@dataclass(frozen=True, slots=True)
class RowGroupPlan:
    """One row group of a plan: rows that may match, rows that surely do, and what will be read of each column."""

    row_group: int
    num_rows: int
    maybe: tuple[tuple[int, int], ...]
    sure: tuple[tuple[int, int], ...]
    filter_reads: tuple[ColumnRead, ...]
    """Read first; they decide which rows survive."""
    output_reads: tuple[ColumnRead, ...]
    """At most: only the pages with surviving rows are read."""
    within: tuple[tuple[int, int], ...] | None = None
    """The rows that the scan asks for at all, matching or not; ``None``: all."""

    @property
    def num_bytes(self) -> int:
        return sum(read.num_bytes for read in self.filter_reads + self.output_reads)


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """A pruned scan as a plain value: picklable, comparable, splittable into parts that run elsewhere."""

    source: str
    columns: list[Any] | None
    """Names or paths of columns; ``None``: all."""
    filters: Any
    options: ReadOptions
    row_groups: tuple[RowGroupPlan, ...]
    limit: int | None = None
    """Rows to return at most, of those that match."""
    made_for: tuple[int, int] | None = None
    """Size and footer checksum of the file: row numbers and offsets mean nothing in any other."""

    @property
    def num_bytes(self) -> int:
        """Data page and dictionary bytes, at most."""
        return sum(group.num_bytes for group in self.row_groups)

    def split(self) -> list[ScanPlan]:
        """One plan per row group."""
        return [replace(self, row_groups=(group,)) for group in self.row_groups]

    def __str__(self) -> str:
        lines = [f"plan for {self.source}: {len(self.row_groups)} row groups, at most {self.num_bytes:,} bytes"]
        for group in self.row_groups:
            maybe = RowRanges.of(group.maybe, group.num_rows)
            lines.append(f"  row group {group.row_group}: {maybe.count:,} of {group.num_rows:,} rows")
            for read in group.filter_reads + group.output_reads:
                pages = "all pages" if read.pages is None else f"{len(read.pages)} pages"
                lines.append(f"    {read.name}: {pages}, {read.num_bytes:,} bytes")
        return "\n".join(lines)


class Needed:
    """The pages that hold any of some rows: found once for columns that are cut into pages alike, as most are."""

    def __init__(self, rows: RowRanges, first_rows: Int64Array) -> None:
        """Page ``k`` starts at ``first_rows[k]``."""
        self.rows = rows
        self.first_rows = first_rows
        self.pages = rows.pages(first_rows)
        ends = np.append(first_rows, rows.num_rows)[self.pages + 1]
        self._starts = first_rows[self.pages].tolist()
        self._counts = (ends - first_rows[self.pages]).tolist()
        self.num_rows = sum(self._counts)
        """Rows that these pages hold."""

    def fits(self, rows: RowRanges, first_rows: Int64Array) -> bool:
        """Whether these are the pages for others too."""
        return rows is self.rows and np.array_equal(first_rows, self.first_rows)

    def reads(self, locations: PageLocations) -> tuple[PageRead, ...]:
        """What to read of a column chunk."""
        offsets, sizes = locations.offsets[self.pages].tolist(), locations.sizes[self.pages].tolist()
        found = zip(self.pages.tolist(), offsets, sizes, self._starts, self._counts, strict=True)
        return tuple(map(PageRead._make, found))


def plan_column(
    chunk: Chunk,
    rows: RowRanges,
    locations: PageLocations | None,
    *,
    has_dictionary: bool = False,
    last: Needed | None = None,
) -> tuple[ColumnRead, Needed | None]:
    """The pages of ``chunk`` that hold any of ``rows``; the whole chunk when that is all, or nothing tells pages apart.

    ``has_dictionary``: the dictionary is decoded already and need not be read again. ``last`` is what the plan of the
    column before came with.
    """
    if locations is None or len(locations) == 0 or rows.is_all:
        return _whole(chunk), last
    first_rows = locations.first_rows
    needed = last if last is not None and last.fits(rows, first_rows) else Needed(rows, first_rows)
    if len(needed.pages) == len(first_rows) and not has_dictionary:
        return _whole(chunk), needed
    pages = needed.reads(locations)
    head = int(locations.offsets[0]) - chunk.start
    dictionary = (chunk.start, head) if head > 0 and pages and not has_dictionary else None
    read = ColumnRead(chunk.row_group, chunk.node.column, chunk.name, pages, dictionary, None, needed.num_rows)
    return read, needed


def _whole(chunk: Chunk) -> ColumnRead:
    whole = chunk.start, chunk.size
    return ColumnRead(chunk.row_group, chunk.node.column, chunk.name, None, None, whole, chunk.num_rows)
