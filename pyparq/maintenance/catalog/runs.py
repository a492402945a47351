"""The entries of many files on their way into key tables: sorted in memory, or in runs where they are too many."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pyparq.datasets.catalog.key_table import Columns, KeyTable, bits_for, cut
from pyparq.datasets.catalog.layout import Place, Segment
from pyparq.maintenance.catalog.key_segments import merged, ordered, write_segment

IN_MEMORY = 8_000_000
"""Entries that are sorted in memory: 400 MB while they are."""
SEGMENT_ROWS = 32_000_000
"""Entries of a segment: 160 MB."""


class Runs:
    """The entries of one key column."""

    def __init__(self, place: Place, column: int) -> None:
        self._place = place
        self._column = column
        self._parts: list[Columns] = []
        self._count = 0
        self._written: list[Segment] = []

    def add(self, number: int, row_group: int, hashes: Any) -> None:
        """The hashes of one row group of a file."""
        same = np.full(len(hashes), 0, np.uint32)
        self._parts.append((hashes, same + np.uint32(number), same + np.uint32(row_group)))
        self._count += len(hashes)
        if self._count >= IN_MEMORY:
            self._written += self._flushed(64)

    def _flushed(self, bits: int) -> Iterator[Segment]:
        """What is in memory, as a segment."""
        parts, count, self._parts, self._count = self._parts, self._count, [], 0
        if count:
            hashes, files, groups = (np.concatenate([part[k] for part in parts]) for k in range(3))
            yield write_segment(self._place, self._column, bits, ordered((cut(hashes, 64, bits), files, groups)))

    def written(self) -> list[Segment]:
        """All entries as segments with whole hashes."""
        self._written += self._flushed(64)
        return self._written

    def segments(self, before: int, live: Any) -> list[Segment]:
        """All entries as segments. ``before``: entries of the column that the catalog has already. ``live``: a mask of
        the numbers of files."""
        if not self._written:
            return list(self._flushed(bits_for(self._count + before)))
        total = sum(segment.part.rows for segment in self.written())
        tables = [KeyTable(self._place, segment) for segment in self._written]
        try:
            return list(merged(self._place, self._column, tables, live, SEGMENT_ROWS, bits_for(total + before)))
        finally:
            self._place.remove_all(self._written)
