"""From rows to pages to byte ranges: what to read of one column chunk.

A :class:`ColumnRead` is a plain value: it can be printed, pickled, sent to another machine and checked to the byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from pyparq.index.page_index import PageLocations
from pyparq.index.row_ranges import Int64Array, RowRanges, read_along
from pyparq.io.byte_ranges import Range
from pyparq.read.footers.chunks import Chunk
from pyparq.runtime.text import printable

Packed = int | bytes
"""One number if all are equal. Otherwise bytes: the width of the numbers, then the numbers."""

_WIDTHS = ((1, 0, 1 << 8), (2, 0, 1 << 16), (4, 0, 1 << 32))


def pack(values: Int64Array) -> Packed:
    """Pack int64 numbers. Their count is not stored."""
    if len(values) == 0:
        return 0
    low, high = int(values.min()), int(values.max())
    if low == high:
        return low
    width = next((width for width, least, after in _WIDTHS if least <= low and high < after), 8)
    return bytes([width]) + values.astype("<i8" if width == 8 else f"<u{width}").tobytes()


def unpack(packed: Packed, count: int) -> Int64Array:
    """Unpack ``count`` numbers that :func:`pack` has packed."""
    if isinstance(packed, int):
        return np.full(count, packed, np.int64)
    width = packed[0]
    return np.frombuffer(packed, "<i8" if width == 8 else f"<u{width}", count, offset=1).astype(np.int64)


Gaps = tuple[int, Packed]
"""The start of the first piece, and the distance from each piece to the next."""


def gaps_between(starts: Int64Array, sizes: Int64Array) -> Gaps:
    """Where pieces of these ``sizes`` start."""
    return int(starts[0]) if len(starts) else 0, pack(starts[1:] - starts[:-1] - sizes[:-1])


def spread(places: Gaps, sizes: Int64Array) -> Int64Array:
    """Where pieces of these ``sizes`` start: the inverse of :func:`gaps_between`."""
    if len(sizes) == 0:
        return np.empty(0, np.int64)
    first, gaps = places
    return np.cumsum(np.concatenate(([first], unpack(gaps, len(sizes) - 1) + sizes[:-1])), dtype=np.int64)


PackedRanges = tuple[int, Packed, Gaps]
"""How many ranges, their lengths, and where they start."""


def pack_ranges(rows: RowRanges) -> PackedRanges:
    """Pack a set of rows. The number of rows of its row group is not stored."""
    lengths = rows.ends - rows.starts
    return len(rows), pack(lengths), gaps_between(rows.starts, lengths)


def unpack_ranges(packed: PackedRanges, num_rows: int) -> RowRanges:
    """Unpack the set that :func:`pack_ranges` has packed, for a row group of ``num_rows`` rows."""
    count, lengths, places = packed
    sizes = unpack(lengths, count)
    starts = spread(places, sizes)
    return RowRanges(starts, starts + sizes, num_rows)


class PageRead(NamedTuple):
    """One data page: its ordinal, where it lies, and the rows it holds."""

    ordinal: int
    offset: int
    size: int
    first_row: int
    num_rows: int


class Pages:
    """Some data pages of one column chunk in file order. Each array has one int64 per page. They must not be
    changed."""

    __slots__ = ("first_rows", "num_rows", "offsets", "ordinals", "sizes")

    def __init__(
        self, ordinals: Int64Array, offsets: Int64Array, sizes: Int64Array, first_rows: Int64Array, num_rows: Int64Array
    ) -> None:
        self.ordinals = ordinals
        self.offsets = offsets
        self.sizes = sizes
        self.first_rows = first_rows
        self.num_rows = num_rows

    def __len__(self) -> int:
        return len(self.offsets)

    def __iter__(self) -> Iterator[PageRead]:
        return map(PageRead._make, zip(*(array.tolist() for array in self._arrays()), strict=True))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pages):
            return NotImplemented
        return all(np.array_equal(a, b) for a, b in zip(self._arrays(), other._arrays(), strict=True))

    __hash__ = None  # type: ignore[assignment]

    @printable
    def __repr__(self) -> str:
        return f"<{len(self)} pages, {int(self.sizes.sum()):,} bytes, {int(self.num_rows.sum()):,} rows>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Pages.unpacked, self.packed()

    def packed(self) -> tuple[Any, ...]:
        """Plain values in few bytes. :meth:`unpacked` restores the pages from them."""
        ordinals = gaps_between(self.ordinals, np.ones(len(self), np.int64))
        offsets, rows = gaps_between(self.offsets, self.sizes), gaps_between(self.first_rows, self.num_rows)
        return len(self), pack(self.sizes), pack(self.num_rows), ordinals, offsets, rows

    @classmethod
    def unpacked(cls, count: int, sizes: Packed, num_rows: Packed, ordinals: Gaps, offsets: Gaps, rows: Gaps) -> Pages:
        bytes_of, rows_of = unpack(sizes, count), unpack(num_rows, count)
        numbers = spread(ordinals, np.ones(count, np.int64))
        return cls(numbers, spread(offsets, bytes_of), bytes_of, spread(rows, rows_of), rows_of)

    def _arrays(self) -> tuple[Int64Array, ...]:
        return self.ordinals, self.offsets, self.sizes, self.first_rows, self.num_rows

    def at(self, places: Any) -> Pages:
        """The pages at these positions, or in this slice."""
        return Pages(*(array[places] for array in self._arrays()))

    def holding(self, rows: RowRanges) -> Int64Array:
        """The positions of the pages that hold any of ``rows``, ascending. Rows between pages are passed over."""
        if not rows:
            return np.empty(0, np.int64)
        # +1 where a range enters a page, -1 behind its last page: the sum so far is above 0 in pages that hold rows.
        first = (self.first_rows + self.num_rows).searchsorted(rows.starts, "right")
        after = self.first_rows.searchsorted(rows.ends)
        covered = np.zeros(len(self) + 1, np.int64)
        np.add.at(covered, first, 1)
        np.add.at(covered, after, -1)
        holding = np.flatnonzero(np.cumsum(covered[:-1]))
        return read_along(holding[self.num_rows[holding] > 0], self.num_rows)


NO_PAGES = Pages(*[np.empty(0, np.int64)] * 5)


@dataclass(frozen=True, slots=True)
class ColumnRead:
    """What to read of one column chunk: all of it, or the dictionary page and some data pages."""

    row_group: int
    column: int
    name: str
    pages: Pages | None
    """The data pages to read. For a ``whole`` chunk these are all pages, or ``None`` if their places are not known."""
    dictionary: Range | None
    """Bytes before the first data page, where pages are known and the dictionary was not read."""
    whole: Range | None
    """The whole chunk, where all of it is to be read."""
    num_rows: int
    """Rows that the pages hold."""

    @property
    def ranges(self) -> list[Range]:
        """The byte ranges in file order, before near ones are merged."""
        if self.whole is not None:
            return [self.whole]
        if self.pages is None:
            return []
        pages = zip(self.pages.offsets.tolist(), self.pages.sizes.tolist(), strict=True)
        return [*pages] if self.dictionary is None else [self.dictionary, *pages]

    @property
    def num_bytes(self) -> int:
        if self.whole is not None:
            return self.whole[1]
        held = 0 if self.pages is None else sum(self.pages.sizes.tolist())
        return held if self.dictionary is None else held + self.dictionary[1]

    @property
    def extent(self) -> tuple[int, int]:
        """The offset of the first byte, and the offset behind the last."""
        if self.whole is not None:
            return self.whole[0], sum(self.whole)
        if self.pages is None or not len(self.pages):
            return (0, 0) if self.dictionary is None else (self.dictionary[0], sum(self.dictionary))
        start = int(self.pages.offsets[0]) if self.dictionary is None else self.dictionary[0]
        return start, int(self.pages.offsets[-1]) + int(self.pages.sizes[-1])

    def row_ranges(self, num_rows: int) -> RowRanges:
        """The rows that the pages hold."""
        if self.whole is not None:
            return RowRanges.all(num_rows)
        if self.pages is None:
            return RowRanges.none(num_rows)
        starts = self.pages.first_rows
        if len(starts) == 1:
            return RowRanges.one(int(starts[0]), int(starts[0]) + self.num_rows, num_rows)
        return RowRanges.merged(starts, starts + self.pages.num_rows, num_rows)

    def narrowed(self, rows: RowRanges) -> ColumnRead:
        """The part of the read that holds any of ``rows``. If pages are not known, all of it."""
        if self.pages is None:
            return self
        kept = self.pages.holding(rows)
        if len(kept) == len(self.pages):
            return self
        pages, dictionary = self.pages.at(kept), self.dictionary if len(kept) else None
        return replace(self, pages=pages, dictionary=dictionary, whole=None, num_rows=int(pages.num_rows.sum()))


class Needed:
    """The pages that hold any of some rows. Most columns are cut into pages at the same rows, so the result is
    shared."""

    def __init__(self, rows: RowRanges, first_rows: Int64Array) -> None:
        """Page ``k`` starts at ``first_rows[k]``."""
        self.rows = rows
        self.first_rows = first_rows
        self.pages = rows.pages(first_rows)
        self._starts = first_rows[self.pages]
        self._counts = np.append(first_rows, rows.num_rows)[self.pages + 1] - self._starts
        self.num_rows = sum(self._counts.tolist())
        """Rows that these pages hold."""

    def fits(self, rows: RowRanges, first_rows: Int64Array) -> bool:
        """Whether another column has its pages at the same rows."""
        return rows is self.rows and np.array_equal(first_rows, self.first_rows)

    def reads(self, locations: PageLocations) -> Pages:
        """The read of a column chunk with these pages."""
        offsets, sizes = locations.offsets[self.pages], locations.sizes[self.pages]
        return Pages(self.pages, offsets, sizes, self._starts, self._counts)


def plan_column(
    chunk: Chunk,
    rows: RowRanges,
    locations: PageLocations | None,
    *,
    has_dictionary: bool = False,
    last: Needed | None = None,
) -> tuple[ColumnRead, Needed | None]:
    """The pages of ``chunk`` that hold any of ``rows``. The whole chunk if those are all pages, or if pages are not
    known.

    ``has_dictionary``: the dictionary is decoded already and need not be read again. ``last``: the result for the
    column before, which is used again if it fits.
    """
    if locations is None or len(locations) == 0 or rows.is_all:
        return _whole(chunk), last
    first_rows = locations.first_rows
    needed = last if last is not None and last.fits(rows, first_rows) else Needed(rows, first_rows)
    if len(needed.pages) == len(first_rows) and not has_dictionary:
        return _whole(chunk), needed
    pages = needed.reads(locations)
    dictionary = _dictionary(chunk, locations) if len(pages) and not has_dictionary else None
    read = ColumnRead(chunk.row_group, chunk.node.column, chunk.name, pages, dictionary, None, needed.num_rows)
    return read, needed


def with_pages(read: ColumnRead, chunk: Chunk, locations: PageLocations | None) -> ColumnRead:
    """A read of a whole chunk with the places of its pages added, so that it can be narrowed later. Other reads are
    returned unchanged."""
    if read.whole is None or locations is None or len(locations) == 0:
        return read
    pages = Needed(RowRanges.all(chunk.num_rows), locations.first_rows).reads(locations)
    return replace(read, pages=pages, dictionary=_dictionary(chunk, locations))


def _dictionary(chunk: Chunk, locations: PageLocations) -> Range | None:
    """Bytes before the first data page."""
    # Whatever lies there: a footer need not state dictionary_page_offset.
    head = int(locations.offsets[0]) - chunk.start
    return (chunk.start, head) if head > 0 else None


def _whole(chunk: Chunk) -> ColumnRead:
    whole = chunk.start, chunk.size
    return ColumnRead(chunk.row_group, chunk.node.column, chunk.name, None, None, whole, chunk.num_rows)
