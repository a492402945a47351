"""A set of rows of one row group as a bitmap, one bit per row.

A filter that has looked at values keeps rows here and there. A random half of a million rows is 250,000 ranges, but
always 125 KB of bits. Few long runs are smaller as :class:`~pyparq.index.row_ranges.RowRanges`. :func:`rows_of` chooses
the form.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.index.row_ranges import Int64Array, RowRanges
from pyparq.runtime.text import printable

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
