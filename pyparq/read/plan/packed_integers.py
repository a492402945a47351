"""Many whole numbers in few bytes, for plans that are pickled: pages and row ranges as differences to what comes
before, each in the narrowest integers that hold them all."""

from __future__ import annotations

import numpy as np

from pyparq.index.row_ranges import Int64Array, RowRanges

Packed = int | bytes
"""One number, where all are that one; otherwise bytes: how wide the numbers are, and the numbers."""

_WIDTHS = ((1, 0, 1 << 8), (2, 0, 1 << 16), (4, 0, 1 << 32))


def pack(values: Int64Array) -> Packed:
    """Any int64 numbers; how many they are has to be known otherwise."""
    if len(values) == 0:
        return 0
    low, high = int(values.min()), int(values.max())
    if low == high:
        return low
    width = next((width for width, least, after in _WIDTHS if least <= low and high < after), 8)
    return bytes([width]) + values.astype("<i8" if width == 8 else f"<u{width}").tobytes()


def unpack(packed: Packed, count: int) -> Int64Array:
    """``count`` numbers, as :func:`pack` got them."""
    if isinstance(packed, int):
        return np.full(count, packed, np.int64)
    width = packed[0]
    return np.frombuffer(packed, "<i8" if width == 8 else f"<u{width}", count, offset=1).astype(np.int64)


Gaps = tuple[int, Packed]
"""Where the first of some pieces starts, and what lies between each and the next."""


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
    """A set of rows; of how many has to be known otherwise."""
    lengths = rows.ends - rows.starts
    return len(rows), pack(lengths), gaps_between(rows.starts, lengths)


def unpack_ranges(packed: PackedRanges, num_rows: int) -> RowRanges:
    """The set that :func:`pack_ranges` got, of a row group of ``num_rows`` rows."""
    count, lengths, places = packed
    sizes = unpack(lengths, count)
    starts = spread(places, sizes)
    return RowRanges(starts, starts + sizes, num_rows)
