"""Stores many whole numbers in few bytes, for pickled plans.

Pages and row ranges are stored as differences to the piece before, in the narrowest integers that hold all of them.
"""

from __future__ import annotations

import numpy as np

from pyparq.index.row_ranges import Int64Array, RowRanges

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
