"""Which files and row groups have which keys: the hashes of all keys, sorted.

Each row is a hash, the number of a file, and a row group. The hash is that of Bloom filters (XXH64 of the value as the
file stores it), cut to so many bits that an absent key finds one of 2 million times a row at most. Sorted and stored as
differences, a row takes about 5 bytes. A key lies in one page of the file, which its page index finds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.arrow.schema.from_text import schema as parse_schema
from pyparq.datasets.catalog.layout import Part, Segment
from pyparq.datasets.catalog.page_lookup import rows_near
from pyparq.datasets.catalog.place import Place
from pyparq.filters.expression import col
from pyparq.option_values import Encoding
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.scan import Scan

SCHEMA = parse_schema({"hash": "uint64", "file": "uint32", "row_group": "uint32"})
ENCODINGS: dict[str, Encoding] = dict.fromkeys(("hash", "file", "row_group"), "DELTA_BINARY_PACKED")
PAGE_ROWS = 8192
"""Rows of a page: 40 KB. A key reads one page."""
SPARE_BITS = 21
"""Bits of a hash beyond those that number the rows."""

UInt64Array = npt.NDArray[np.uint64]
Columns = tuple[UInt64Array, npt.NDArray[np.uint32], npt.NDArray[np.uint32]]
"""Hashes, files, row groups."""

FILE_SHIFT = 32


def units_of(files: Any, row_groups: Any) -> UInt64Array:
    """Row groups of files as single numbers, sorted, each once."""
    return np.unique((files.astype(np.uint64) << np.uint64(FILE_SHIFT)) | row_groups.astype(np.uint64))


def bits_for(rows: int) -> int:
    """The bits of a hash that are stored in a table of so many rows."""
    return min(max(math.ceil(math.log2(max(rows, 1))) + SPARE_BITS, 32), 64)


def cut(hashes: UInt64Array, bits: int, to: int) -> UInt64Array:
    """The upper ``to`` bits of hashes that have ``bits`` bits."""
    return hashes >> np.uint64(bits - to)


def ordered(columns: Columns) -> Columns:
    """In the order of a key table, each row once."""
    hashes, files, row_groups = columns
    order = np.lexsort((row_groups, files, hashes))
    hashes, files, row_groups = hashes[order], files[order], row_groups[order]
    new = np.ones(len(hashes), bool)
    new[1:] = (np.diff(hashes) != 0) | (np.diff(files) != 0) | (np.diff(row_groups) != 0)
    return (hashes, files, row_groups) if new.all() else (hashes[new], files[new], row_groups[new])


def asked_at_once(segments: Sequence[Segment]) -> int:
    """The most segments that may have one hash."""
    ranges = [(s.low << (64 - s.bits), ((s.high + 1) << (64 - s.bits)) - 1) for s in segments]
    return max((sum(low <= at <= high for low, high in ranges) for at, _ in ranges), default=0)


def write_segment(place: Place, column: int, bits: int, columns: Columns) -> Segment:
    """A new segment with these rows, which are in order. There must be some."""
    table = dict(zip(("hash", "file", "row_group"), columns, strict=True))
    part = place.write("keys", SCHEMA, [table], ENCODINGS, PAGE_ROWS)
    return Segment(part, column, bits, int(columns[0][0]), int(columns[0][-1]))


class KeyTable:
    """One segment."""

    def __init__(self, place: Place, segment: Segment) -> None:
        self._place = place
        self.segment = segment
        self._file: OpenFile | None = None

    @property
    def part(self) -> Part:
        return self.segment.part

    def opened(self) -> OpenFile:
        """The segment's file. Its footer and page indexes are read once."""
        if self._file is None:
            self._file = self._place.opened(self.part)
        return self._file.fork()

    def wanted(self, hashes: UInt64Array) -> UInt64Array:
        """Of these whole hashes, those that may be in the segment, as it stores them."""
        segment = self.segment
        own = np.unique(cut(hashes, 64, segment.bits))
        return own[(own >= segment.low) & (own <= segment.high)]

    def units(self, hashes: UInt64Array) -> UInt64Array:
        """The row groups (:func:`units_of`) that may have keys with these whole hashes."""
        own = self.wanted(hashes)
        if not len(own):
            return own
        table = rows_near(self.opened(), "hash", own)
        there = np.isin(table.to_numpy("hash"), own)
        return units_of(table.to_numpy("file")[there], table.to_numpy("row_group")[there])

    def between(self, low: int, high: int, bits: int) -> Columns:
        """The rows whose hashes, cut to ``bits`` bits, lie in ``low`` to ``high``, ``high`` included."""
        shift = self.segment.bits - bits
        first, last = low << shift, ((high + 1) << shift) - 1
        table = Scan(self.opened(), None, col("hash").between(first, last)).to_table()
        hashes = cut(table.to_numpy("hash"), self.segment.bits, bits)
        return hashes, table.to_numpy("file"), table.to_numpy("row_group")


def merged(place: Place, column: int, tables: Sequence[KeyTable], live: Any, most: int, bits: int) -> Iterator[Segment]:
    """The rows of several segments in new ones of about ``most`` rows, without those of files that are not ``live`` (a
    mask by the number of the file). Each new segment has a range of hashes of its own. ``bits``: those to store, if the
    segments have them."""
    bits = min(bits, *(table.segment.bits for table in tables))
    count = -(-sum(table.part.rows for table in tables) // most)
    ends = [(k << bits) // count for k in range(count + 1)]
    for low, high in itertools.pairwise(ends):
        yield from merged_range(place, column, tables, live, (low, high - 1, bits))


def merged_range(
    place: Place, column: int, tables: Sequence[KeyTable], live: Any, wanted: tuple[int, int, int]
) -> Iterator[Segment]:
    """The rows of one range of hashes: from, to, and their bits."""
    parts = [table.between(*wanted) for table in tables]
    columns = [np.concatenate([part[k] for part in parts]) for k in range(3)]
    kept = live[columns[1]]
    rows = ordered((columns[0][kept], columns[1][kept], columns[2][kept]))
    if len(rows[0]):
        yield write_segment(place, column, wanted[2], rows)
