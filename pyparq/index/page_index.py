"""ColumnIndex and OffsetIndex, reading and writing (PageIndex.md and parquet.thrift).

Parsing checks the structure. Lists that disagree with each other or with the chunk raise
:class:`pyparq.errors.CorruptFileError`. Callers then warn with CorruptIndexWarning and read without the index. A
well-formed index with wrong bounds cannot be noticed here.

**Pages without values.** Writers may store data pages that hold no value (pyarrow does, where pages are tiny). Such a
page holds no row. An OffsetIndex may list it: its first row is then that of the next page, or the number of rows if it
is the last page. Or it may leave it out, if the ColumnIndex leaves out the same pages. The first page of a chunk must
be listed, because readers would take what lies before it for a dictionary. All pages of an encrypted chunk must be
listed, because their ordinals count. In a ColumnIndex such a page is a null page without nulls. Readers read it
together with the page before it (:func:`pyparq.index.row_ranges.read_along`): if it held values, they would belong to
the last row of that page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyparq import kernels
from pyparq.errors import CorruptFileError, DataError, LimitError
from pyparq.format import ttypes as tt
from pyparq.format.order import (
    FLOAT_KINDS,
    BoolArray,
    Int64Array,
    Order,
    bound_dtype,
    decode_bound_pairs,
    native_order,
    number_layout,
)
from pyparq.format.thrift_codec import deserialize_column_index, deserialize_lists
from pyparq.format.types import LeafType
from pyparq.index.statistics import ASCENDING, DEFAULT_TRUNCATE, DESCENDING, UNORDERED, Bounds, writer_is_trusted
from pyparq.kernels import check_page_locations
from pyparq.limits import DEFAULT_LIMITS, Limits

MAX_WHOLE_BOUND = 4096
"""Maximum size in bytes of a bound that cannot be truncated. With a longer one, no ColumnIndex is written."""

_INT32_MAX = (1 << 31) - 1


# ---------------------------------------------------------------- writing


class ColumnIndexBuilder:
    """Gathers one entry per data page of a chunk, in page order.

    ``truncate``: bytes that bounds are cut to where that is valid (``None``: whole). An index stays within
    ``pages * (2 * truncate + 24)`` bytes, level histograms aside, for the types that are cut; where no valid
    upper bound is that short, bounds of up to ``MAX_WHOLE_BOUND`` bytes are kept and beyond that no index is
    written.
    """

    def __init__(
        self, leaf: LeafType, truncate: int | None = DEFAULT_TRUNCATE, column_order: Order = Order.TYPE
    ) -> None:
        self._order = native_order(leaf, column_order)
        self._truncate = -1 if truncate is None else truncate
        self._mins: list[bytes | None] = []
        self._maxs: list[bytes | None] = []
        self._null_counts: list[int] = []
        self._value_counts: list[int] = []
        self._nan_counts: list[int] = []
        self._definition: list[int] = []
        self._repetition: list[int] = []

    def add_page(
        self,
        minimum: bytes | None,
        maximum: bytes | None,
        *,
        null_count: int,
        value_count: int,
        nan_count: int | None = None,
        definition_histogram: Sequence[int] | None = None,
        repetition_histogram: Sequence[int] | None = None,
    ) -> None:
        """Add a page: whole PLAIN bounds, number of nulls, number of other values, number of NaNs (floats), counts of
        levels.

        Bounds are ``None`` for a page without values that could be a bound. Histograms are given for every page or for
        none.
        """
        self._mins.append(minimum)
        self._maxs.append(maximum)
        self._null_counts.append(null_count)
        self._value_counts.append(value_count)
        self._nan_counts.append(nan_count or 0)
        self._definition.extend(definition_histogram or ())
        self._repetition.extend(repetition_histogram or ())

    def finish(self) -> bytes | None:
        """The serialized ColumnIndex. ``None`` if the format allows none: no order, or a page that holds only NaN."""
        return kernels.column_index(
            self._order, self._mins, self._maxs, self._null_counts, self._value_counts, self._nan_counts,
            self._definition, self._repetition, self._truncate, MAX_WHOLE_BOUND,
        )  # fmt: skip


class OffsetIndexBuilder:
    """Collects the place of each data page of a chunk, in page order. Dictionary pages are not listed."""

    def __init__(self) -> None:
        self._pages: list[tuple[int, int, int]] = []
        self._unencoded: list[int] = []

    def add_page(self, offset: int, size: int, first_row: int, unencoded: int | None = None) -> None:
        """Add a page: the offset of its header, its size with the header, and its first row in the row group.

        ``unencoded``: bytes of its BYTE_ARRAY values without lengths, for every page or none. Raises DataError for
        numbers that an OffsetIndex cannot express.
        """
        if not 0 < size <= _INT32_MAX:
            raise DataError(f"a data page of {size} bytes cannot be indexed", page=len(self._pages))
        if self._pages and (first_row < self._pages[-1][2] or offset <= self._pages[-1][0]):
            raise DataError(
                "the offsets of pages must increase, and their first rows may not fall", page=len(self._pages)
            )
        self._pages.append((offset, size, first_row))
        if unencoded is not None:
            self._unencoded.append(unencoded)

    def finish(self, base: int = 0) -> tt.OffsetIndex:
        """The OffsetIndex; ``base`` is added to every offset."""
        index = tt.OffsetIndex(page_locations=[tt.PageLocation(base + at, n, row) for at, n, row in self._pages])
        if self._unencoded:
            index.unencoded_byte_array_data_bytes = self._unencoded
        return index


# ---------------------------------------------------------------- reading


@dataclass(slots=True)
class PageLocations:
    """The places of the data pages of a chunk: int64 arrays, one entry per page."""

    offsets: Int64Array
    """File offset of the page header."""
    sizes: Int64Array
    """Stored bytes, header included."""
    first_rows: Int64Array
    """First row, counted within the row group."""
    unencoded: Int64Array | None = None
    """Unencoded BYTE_ARRAY bytes, where the file has them."""

    def __len__(self) -> int:
        return len(self.offsets)

    def row_counts(self, num_rows: int) -> Int64Array:
        """Rows of each page of a row group of ``num_rows`` rows."""
        return np.diff(self.first_rows, append=num_rows)


def _checked_size(data: Any, what: str, limits: Limits) -> None:
    if len(data) > limits.max_index:
        raise LimitError(f"the {what} has {len(data)} bytes: more than limits.max_index ({limits.max_index})")


def parse_offset_index(
    data: bytes | memoryview, num_rows: int, start: int, end: int, limits: Limits = DEFAULT_LIMITS
) -> PageLocations:
    """Decode and check the OffsetIndex of a chunk that occupies file bytes ``[start, end)``.

    Raises CorruptFileError unless the pages lie inside the chunk, do not overlap and rise in offset, and their first
    rows start with 0, never fall and stay within ``num_rows``. Pages without rows may be listed (see the module).
    """
    _checked_size(data, "an OffsetIndex", limits)
    (pages, unencoded), _ = deserialize_lists(tt.OffsetIndex, data)
    assert pages is not None  # required
    count = len(pages) // 3
    offsets, sizes, first_rows = pages[:count], pages[count : 2 * count], pages[2 * count :]
    if count == 0:
        if num_rows > 0:
            raise CorruptFileError(f"the OffsetIndex lists no pages, but the row group has {num_rows} rows")
        return PageLocations(offsets, sizes, first_rows)
    fault = check_page_locations(pages, num_rows, start, end)
    if fault:
        raise CorruptFileError(
            (
                f"the first rows of the pages in the OffsetIndex do not fit a row group of {num_rows} rows",
                f"the OffsetIndex has pages outside the column chunk at {start}-{end}",
                f"the OffsetIndex has pages that overlap or lie outside the column chunk at {start}-{end}",
            )[fault - 1]
        )
    if unencoded is not None and (len(unencoded) != count or int(unencoded.min()) < 0):
        raise CorruptFileError(f"the OffsetIndex gives {len(unencoded)} unencoded sizes for {count} pages")
    return PageLocations(offsets, sizes, first_rows, unencoded)


def parse_column_index(
    data: bytes | memoryview,
    leaf: LeafType,
    num_pages: int,
    *,
    counts: Int64Array | None = None,
    column_order: int = Order.TYPE,
    created_by: str | None = None,
    max_def: int | None = None,
    max_rep: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Bounds:
    """Decode and check a ColumnIndex; one entry per page of the OffsetIndex.

    ``counts``: slots per page, where they are known (the rows of each page, for a leaf that is not repeated).
    ``column_order`` and ``created_by`` as for :func:`pyparq.index.statistics.bounds_of_chunks`: bounds
    under no known order, or by a writer that cannot be trusted, are left out, the null counts kept.
    ``max_def`` and ``max_rep`` are needed for the level histograms. Raises CorruptFileError when lists
    disagree in length or contradict each other.
    """
    _checked_size(data, "a ColumnIndex", limits)
    width, number_kind = number_layout(leaf)
    found = deserialize_column_index(data, width, number_kind)
    all_null, low, high = found.null_pages, found.lower, found.upper
    nulls, order = found.null_counts, found.order
    lists = {
        "null_pages": all_null, "min_values": low, "max_values": high, "null_counts": nulls,
        "nan_counts": found.nan_counts,
    }  # fmt: skip
    if width:
        lists["min_values"], lists["max_values"] = low[0], high[0]
    for name, listed in lists.items():
        if listed is not None and len(listed) != num_pages:
            raise CorruptFileError(f"the ColumnIndex has {len(listed)} {name} for {num_pages} pages")
    if order not in (UNORDERED, ASCENDING, DESCENDING):
        raise CorruptFileError(f"the ColumnIndex has the unknown boundary order {order}")
    slots = np.full(num_pages, -1, np.int64) if counts is None else counts
    null_counts = _page_counts(nulls, num_pages, counts, "null")
    nan_counts = np.zeros(num_pages, np.int64)
    if leaf.kind in FLOAT_KINDS:
        nan_counts = _page_counts(found.nan_counts, num_pages, counts, "NaN")
    known = counts is not None and nulls is not None
    if known and bool(((null_counts == slots) != all_null).any()):
        raise CorruptFileError("the null pages and null counts of the ColumnIndex contradict each other")
    definition = None if max_def is None else _histograms(found.definition_histograms, num_pages, max_def)
    repetition = None if max_rep is None else _histograms(found.repetition_histograms, num_pages, max_rep)
    usable = column_order in (Order.TYPE, Order.TOTAL, Order.INT96) and writer_is_trusted(leaf, created_by)
    if width:
        mins, maxs = low[0].view(bound_dtype(leaf)), high[0].view(bound_dtype(leaf))
        ok = low[1] & high[1] & (mins <= maxs)
    else:
        mins, maxs, ok = decode_bound_pairs(leaf, low, high)
    ok &= ~all_null if usable else False
    if max_rep:
        # arrow-rs marks a page of lists as null when it has as many nulls as rows, even if it holds values.
        all_null &= False if definition is None else definition[:, -1] == 0
    bounds = Bounds(leaf, mins, maxs, ok, null_counts, nan_counts, slots, all_null)
    bounds.boundary_order = _checked_order(bounds, order)
    bounds.definition_histograms, bounds.repetition_histograms = definition, repetition
    return bounds.learn_of_nan(created_by)


def _page_counts(listed: Int64Array | None, pages: int, counts: Int64Array | None, what: str) -> Int64Array:
    if listed is None:
        return np.full(pages, -1, np.int64)
    if bool((listed < 0).any()) or (counts is not None and bool((listed > counts).any())):
        raise CorruptFileError(f"the ColumnIndex has impossible {what} counts")
    return listed


def _checked_order(bounds: Bounds, claimed: int) -> int:
    """The boundary order, if bisection over the parts with bounds is safe; UNORDERED otherwise."""
    ok: BoolArray = bounds.has_bounds
    if claimed == UNORDERED or bool((ok | bounds.all_null).all()) is False:
        return UNORDERED
    mins, maxs = (bounds.mins, bounds.maxs) if bool(ok.all()) else (bounds.mins[ok], bounds.maxs[ok])
    if claimed == DESCENDING:
        mins, maxs = mins[::-1], maxs[::-1]
    rising = bool(np.all(mins[:-1] <= mins[1:])) and bool(np.all(maxs[:-1] <= maxs[1:]))
    return claimed if rising else UNORDERED


def _histograms(listed: Int64Array | None, pages: int, max_level: int) -> Int64Array | None:
    if listed is None:
        return None
    if len(listed) != pages * (max_level + 1):
        raise CorruptFileError(
            f"the ColumnIndex has {len(listed)} histogram entries for {pages} pages and {max_level + 1} levels"
        )
    found = listed.reshape(pages, max_level + 1)
    if bool((found < 0).any()):
        raise CorruptFileError("a level histogram of the ColumnIndex has negative counts")
    return found


__all__ = [
    "MAX_WHOLE_BOUND",
    "ColumnIndexBuilder",
    "OffsetIndexBuilder",
    "PageLocations",
    "parse_column_index",
    "parse_offset_index",
]
