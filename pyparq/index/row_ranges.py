"""Sets of rows of one row group, as sorted, disjoint, half-open ranges, or as a bitmap.

Every pruning stage narrows one :class:`RowRanges`. Planning turns it into pages. A filter that has looked at values
keeps rows here and there: a :class:`RowMask`. A random half of a million rows is 250,000 ranges, but always 125 KB of
bits. Few long runs are smaller as ranges. :func:`rows_of` chooses the form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.runtime.text import printable

Int64Array = npt.NDArray[np.int64]

_NO_EDGES: Int64Array = np.empty(0, np.int64)
_NO_EDGES.flags.writeable = False  # shared


class RowRanges:
    """Rows ``[starts[k], ends[k])`` of a row group with ``num_rows`` rows; sorted, disjoint, not touching."""

    __slots__ = ("count", "ends", "is_all", "num_rows", "starts")

    def __init__(self, starts: Int64Array, ends: Int64Array, num_rows: int, count: int = -1) -> None:
        """It must not be changed afterwards. ``count``: the number of rows, which is computed if it is not given."""
        self.starts = starts
        self.ends = ends
        self.num_rows = num_rows
        self.count = int((ends - starts).sum()) if count < 0 else count
        self.is_all = self.count == num_rows

    @classmethod
    def all(cls, num_rows: int) -> RowRanges:
        if num_rows == 0:
            return cls.none(0)
        return cls(np.zeros(1, np.int64), np.array([num_rows], np.int64), num_rows, num_rows)

    @classmethod
    def none(cls, num_rows: int) -> RowRanges:
        return cls(_NO_EDGES, _NO_EDGES, num_rows, 0)

    @classmethod
    def one(cls, start: int, end: int, num_rows: int) -> RowRanges:
        """The rows ``[start, end)``. Scans of few rows use hardly any other sets, so this skips all checks."""
        if end <= start:
            return cls.none(num_rows)
        return cls(np.array([start], np.int64), np.array([end], np.int64), num_rows, end - start)

    @classmethod
    def of(cls, ranges: Sequence[tuple[int, int]], num_rows: int) -> RowRanges:
        """From sorted ``(start, end)`` pairs."""
        if len(ranges) == 1:
            return cls.one(*ranges[0], num_rows)
        edges = np.array(ranges, np.int64).reshape(-1, 2)
        return cls.merged(edges[:, 0].copy(), edges[:, 1].copy(), num_rows)

    @classmethod
    def from_rows(cls, rows: Int64Array, num_rows: int) -> RowRanges:
        """The given rows (sorted, unique)."""
        if len(rows) == 0:
            return cls.none(num_rows)
        if rows[-1] - rows[0] == len(rows) - 1:
            return cls.one(int(rows[0]), int(rows[-1]) + 1, num_rows)
        breaks = np.flatnonzero(np.diff(rows) != 1)
        starts = rows[np.concatenate(([0], breaks + 1))]
        ends = rows[np.concatenate((breaks, [len(rows) - 1]))] + 1
        return cls(starts.astype(np.int64), ends.astype(np.int64), num_rows)

    @classmethod
    def from_pages(cls, first_rows: Int64Array, pages: Int64Array, num_rows: int) -> RowRanges:
        """The rows of the given pages (ascending); page ``k`` starts at ``first_rows[k]``."""
        count = len(pages)
        if count and pages[-1] - pages[0] == count - 1:  # consecutive pages
            after = int(pages[-1]) + 1
            end = int(first_rows[after]) if after < len(first_rows) else num_rows
            return cls.one(int(first_rows[pages[0]]), end, num_rows)
        ends = np.append(first_rows[1:], num_rows)
        return cls.merged(first_rows[pages], ends[pages], num_rows)

    @classmethod
    def merged(cls, starts: Int64Array, ends: Int64Array, num_rows: int) -> RowRanges:
        """From sorted ranges, which may touch or be empty."""
        nonempty = ends > starts
        starts, ends = starts[nonempty], ends[nonempty]
        if len(starts) == 0:
            return cls.none(num_rows)
        if len(starts) == 1:
            return cls(starts.astype(np.int64), ends.astype(np.int64), num_rows)
        gap = starts[1:] > ends[:-1]
        first = np.concatenate(([True], gap))
        last = np.concatenate((gap, [True]))
        return cls(starts[first].astype(np.int64), ends[last].astype(np.int64), num_rows)

    def __bool__(self) -> bool:
        return len(self.starts) > 0

    def __len__(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(zip(self.starts.tolist(), self.ends.tolist(), strict=True))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, RowRanges) or self.num_rows != other.num_rows or len(self) != len(other):
            return False
        if len(self) == 1:
            return bool(self.starts[0] == other.starts[0] and self.ends[0] == other.ends[0])
        return np.array_equal(self.starts, other.starts) and np.array_equal(self.ends, other.ends)

    __hash__ = None  # type: ignore[assignment]

    @printable
    def __repr__(self) -> str:
        shown = ", ".join(f"{a}-{b}" for a, b in list(self)[:6]) + (", ..." if len(self) > 6 else "")
        return f"RowRanges({self.count} of {self.num_rows} rows: {shown})"

    def __and__(self, other: RowRanges) -> RowRanges:
        if self.is_all or not other:
            return other
        if other.is_all or not self:
            return self
        if len(self) == len(other) == 1:
            start, end = max(self.starts[0], other.starts[0]), min(self.ends[0], other.ends[0])
            return RowRanges.one(int(start), int(end), self.num_rows)
        return self._combine(other, 2)

    def __or__(self, other: RowRanges) -> RowRanges:
        if not other or self.is_all:
            return self
        if not self or other.is_all:
            return other
        return self._combine(other, 1)

    def without(self, other: RowRanges) -> RowRanges:
        """The rows that are not in ``other``."""
        return self if not other else self & ~other

    def __invert__(self) -> RowRanges:
        if not self:
            return RowRanges.all(self.num_rows)
        if self.is_all:
            return RowRanges.none(self.num_rows)
        starts = np.concatenate(([0], self.ends)).astype(np.int64)
        ends = np.concatenate((self.starts, [self.num_rows])).astype(np.int64)
        return RowRanges.merged(starts, ends, self.num_rows)

    def _combine(self, other: RowRanges, needed: int) -> RowRanges:
        """Sweep over all edges: the rows that at least ``needed`` of the two sets contain."""
        points = np.concatenate((self.starts, other.starts, self.ends, other.ends))
        deltas = np.ones(len(points), np.int64)
        deltas[len(self.starts) + len(other.starts) :] = -1
        # Starts sort before ends at the same row, so that touching ranges join.
        order = np.lexsort((-deltas, points))
        points = points[order]
        inside = np.cumsum(deltas[order]) >= needed
        return RowRanges.merged(points[:-1][inside[:-1]], points[1:][inside[:-1]], self.num_rows)

    def pages(self, first_rows: Int64Array) -> Int64Array:
        """The pages that hold any row of this set, ascending. Page ``k`` starts at ``first_rows[k]``.

        Pages without rows come with the page before them (:func:`read_along`).
        """
        if not self:
            return np.empty(0, np.int64)
        if first_rows[-1] >= self.num_rows or (first_rows[1:] <= first_rows[:-1]).any():  # a page without rows
            counts = np.diff(first_rows, append=self.num_rows)
            there = np.flatnonzero(counts > 0)
            return read_along(there[self.pages(first_rows[there])], counts)
        first = first_rows.searchsorted(self.starts, "right") - 1
        after = first_rows.searchsorted(self.ends)
        if len(first) == 1:
            return np.arange(first[0], after[0])
        covered = np.zeros(len(first_rows) + 1, np.int64)
        np.add.at(covered, first, 1)
        np.add.at(covered, after, -1)
        return np.flatnonzero(np.cumsum(covered[:-1]))

    def rows(self) -> Int64Array:
        """The row numbers, ascending, int64."""
        if len(self.starts) == 1:
            return np.arange(self.starts[0], self.ends[0], dtype=np.int64)
        if self.count == len(self.starts):  # each is a row
            return self.starts
        return self._at(np.arange(self.count, dtype=np.int64))

    def _at(self, positions: Int64Array) -> Int64Array:
        """The rows at ``positions`` (ascending) of this set."""
        if len(self.starts) == 1:
            return np.asarray(positions + self.starts[0])
        before = np.concatenate(([0], np.cumsum(self.ends - self.starts)[:-1]))
        index = np.searchsorted(before, positions, side="right") - 1
        return np.asarray(positions - before[index] + self.starts[index])

    def head(self, count: int) -> RowRanges:
        """The first ``count`` rows of this set."""
        if count >= self.count:
            return self
        before = np.cumsum(self.ends - self.starts) - (self.ends - self.starts)
        return RowRanges.merged(self.starts, np.minimum(self.ends, self.starts + count - before), self.num_rows)

    def positions_in(self, outer: RowRanges) -> Int64Array:
        """The positions of this set's rows among the rows of ``outer``, a superset (int64, ascending)."""
        rows = self.rows()
        if len(outer) == 1:
            return np.asarray(rows - outer.starts[0])
        before = np.concatenate(([0], np.cumsum(outer.ends - outer.starts)[:-1]))
        index = np.searchsorted(outer.starts, rows, side="right") - 1
        return np.asarray(rows - outer.starts[index] + before[index])

    def select(self, mask: npt.NDArray[np.bool_]) -> RowRanges:
        """Keep the rows of this set where ``mask`` (one per row *of the set*) is set."""
        return RowRanges.from_rows(self._at(np.flatnonzero(mask)), self.num_rows)


def read_along(pages: Int64Array, num_rows: Int64Array) -> Int64Array:
    """The positions of ``pages``, and of the pages without rows that directly follow one of them, ascending.

    ``num_rows`` are the rows of each known page of the column chunk. If such a page held values after all, they would
    belong to the last row of the page before it.
    """
    if num_rows.min(initial=1) > 0:
        return pages
    wanted = np.zeros(len(num_rows) + 1, np.bool_)
    wanted[pages] = True
    own = np.where(num_rows > 0, np.arange(len(num_rows)), -1)
    return np.flatnonzero(wanted[np.maximum.accumulate(own)])


# ---- bitmaps


Words = npt.NDArray[np.uint64]

MOST_RANGES = 1024
"""Up to so many runs, rows are ranges."""
NEAR = 64
""":attr:`RowMask.cover` joins rows with at most this many rows between them. No page that matters is that short."""


class RowMask:
    """Some rows of a row group with ``num_rows`` rows. It must not be changed.

    ``bits`` is a bitmap in Arrow's order (least significant bit first), uint8, padded with zeros to a multiple of 8
    bytes. ``count`` is the number of set bits.
    """

    __slots__ = ("_count", "_cover", "_ranges", "bits", "num_rows")

    def __init__(self, bits: npt.NDArray[np.uint8], num_rows: int, count: int = -1) -> None:
        """``count`` is computed when it is needed, if it is not given."""
        self.bits = bits
        self.num_rows = num_rows
        self._count = count
        self._ranges: RowRanges | None = None
        self._cover: RowRanges | None = None

    @classmethod
    def of_words(cls, words: Words, num_rows: int, count: int = -1) -> RowMask:
        """From a bitmap as uint64 words of 64 rows."""
        return cls(words.view(np.uint8), num_rows, count)

    @classmethod
    def of_bools(cls, mask: npt.NDArray[np.bool_]) -> RowMask:
        """From one bool per row."""
        bits = np.zeros((len(mask) + 63) // 64 * 8, np.uint8)
        bits[: (len(mask) + 7) // 8] = np.packbits(mask, bitorder="little")
        return cls(bits, len(mask))

    @classmethod
    def of_ranges(cls, rows: RowRanges) -> RowMask:
        return cls.of_words(kernels.mask_from_ranges(rows.starts, rows.ends, rows.num_rows), rows.num_rows, rows.count)

    @classmethod
    def all(cls, num_rows: int) -> RowMask:
        return cls.of_ranges(RowRanges.all(num_rows))

    @classmethod
    def none(cls, num_rows: int) -> RowMask:
        return cls.of_words(np.zeros((num_rows + 63) // 64, np.uint64), num_rows, 0)

    @property
    def words(self) -> Words:
        return self.bits.view(np.uint64)

    @property
    def count(self) -> int:
        """Number of rows in the set."""
        if self._count < 0:
            self._count = kernels.mask_count(self.words)
        return self._count

    @property
    def is_all(self) -> bool:
        return self.count == self.num_rows

    def __bool__(self) -> bool:
        return self.count > 0

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, RowMask) or self.num_rows != other.num_rows:
            return False
        return np.array_equal(self.words, other.words)

    __hash__ = None  # type: ignore[assignment]

    @printable
    def __repr__(self) -> str:
        return f"RowMask({self.count} of {self.num_rows} rows)"

    def __and__(self, other: RowMask) -> RowMask:
        return RowMask.of_words(self.words & other.words, self.num_rows)

    def __or__(self, other: RowMask) -> RowMask:
        return RowMask.of_words(self.words | other.words, self.num_rows)

    def __invert__(self) -> RowMask:
        flipped = ~self.words
        # The bits behind the last row must stay zero: counts and comparisons look at whole words.
        if self.num_rows % 64:
            flipped[-1] &= np.uint64((1 << self.num_rows % 64) - 1)
        return RowMask.of_words(flipped, self.num_rows, -1 if self._count < 0 else self.num_rows - self._count)

    def bools(self) -> npt.NDArray[np.bool_]:
        """One bool per row."""
        return np.unpackbits(self.bits, count=self.num_rows, bitorder="little").view(np.bool_)

    def rows(self) -> Int64Array:
        """The row numbers, ascending."""
        return kernels.mask_rows(self.words)

    def ranks(self, places: Int64Array) -> Int64Array:
        """Number of these rows before each of ``places``, which ascend."""
        return kernels.mask_ranks(self.words, places)

    def head(self, count: int) -> RowMask:
        """The first ``count`` rows of this set."""
        if count >= self.count:
            return self
        return RowMask.of_words(kernels.mask_head(self.words, count), self.num_rows, count)

    def num_runs(self) -> int:
        """Number of runs of consecutive rows."""
        return kernels.mask_runs(self.words)

    @property
    def ranges(self) -> RowRanges:
        """The same rows as ranges."""
        if self._ranges is None:
            self._ranges = RowRanges(*kernels.mask_to_ranges(self.words, self.num_rows), self.num_rows, self.count)
        return self._ranges

    @property
    def cover(self) -> RowRanges:
        """Ranges that hold all these rows and few others. Pages are chosen by them."""
        if self._cover is None:
            self._cover = RowRanges(*kernels.mask_to_ranges(self.words, self.num_rows, NEAR), self.num_rows)
        return self._cover

    def within(self, outer: RowRanges) -> RowMask:
        """A mask over the rows of ``outer``: the rows that are in this set too."""
        if outer.is_all:
            return self
        words = kernels.mask_within(self.words, self.num_rows, outer.starts, outer.ends)
        return RowMask.of_words(words, outer.count)

    def spread(self, outer: RowRanges) -> RowMask:
        """The inverse of :meth:`within`: this mask over the rows of ``outer``, as a set of rows of the row group."""
        if outer.is_all:
            return self
        words = kernels.mask_spread(self.words, outer.starts, outer.ends, outer.num_rows)
        return RowMask.of_words(words, outer.num_rows, self._count)


Rows = RowRanges | RowMask
"""Rows of a row group in either form."""


def as_mask(rows: Rows) -> RowMask:
    return rows if isinstance(rows, RowMask) else RowMask.of_ranges(rows)


def rows_of(mask: RowMask) -> Rows:
    """The same rows as ranges or as a bitmap, in the smaller form."""
    if mask.num_runs() <= MOST_RANGES:
        return mask.ranges
    return mask
