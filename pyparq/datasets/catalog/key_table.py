"""Which files and row groups have which keys: the hashes of all keys, sorted.

Each row is a hash, the number of a file, and a row group. The hash is that of Bloom filters (XXH64 of the value as the
file stores it), cut to so many bits that an absent key finds one of 2 million times a row at most. Sorted and stored as
differences, a row takes about 5 bytes. A key lies in one page of the file, which its page index finds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.arrow.schema.from_text import schema as parse_schema
from pyparq.arrow.table import Table
from pyparq.datasets.catalog.layout import Part, Place, Segment
from pyparq.filters.expression import col
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.scan import Scan


def rows_near(file: OpenFile, column: str, values: Any) -> Table:
    """The rows of all pages in which ``column`` may have one of the values."""
    firsts = np.cumsum(file.footer.rows) - file.footer.rows
    found = [np.zeros(0, np.int64)]
    for group in Scan(file.fork(), [column], col(column).isin(values)).plan().row_groups:
        for start, end in zip(group.maybe.starts.tolist(), group.maybe.ends.tolist(), strict=True):
            found.append(np.arange(start, end) + firsts[group.row_group])
    return Scan(file.fork(), rows=np.concatenate(found)).to_table()


SCHEMA = parse_schema({"hash": "uint64", "file": "uint32", "row_group": "uint32"})
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
        wanted = np.isin(table.to_numpy("hash"), own)
        return units_of(table.to_numpy("file")[wanted], table.to_numpy("row_group")[wanted])

    def between(self, low: int, high: int, bits: int) -> Columns:
        """The rows whose hashes, cut to ``bits`` bits, lie in ``low`` to ``high``, ``high`` included."""
        shift = self.segment.bits - bits
        first, last = low << shift, ((high + 1) << shift) - 1
        table = Scan(self.opened(), None, col("hash").between(first, last)).to_table()
        hashes = cut(table.to_numpy("hash"), self.segment.bits, bits)
        return hashes, table.to_numpy("file"), table.to_numpy("row_group")
