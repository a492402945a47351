"""Keeps the extents of the pages that a read has read. Those of two column chunks may not overlap: otherwise a file of
a few bytes could be decoded any number of times."""

from __future__ import annotations

from bisect import bisect_left, insort

from pyparq.errors import CorruptFileError

Key = tuple[int, int]
"""(row group, leaf column)."""


class Extents:
    """For each column chunk, the first and the last byte that was read. The pages of a chunk are contiguous."""

    def __init__(self) -> None:
        self._of: dict[Key, tuple[int, int]] = {}
        self._sorted: list[tuple[int, int, Key]] = []

    def add(self, key: Key, start: int, end: int) -> None:
        """Note that pages of a column chunk lie between ``start`` and ``end``. Raises :class:`CorruptFileError` if
        pages of another chunk overlap them."""
        if start >= end:
            return
        known = self._of.get(key)
        if known is not None:
            start, end = min(start, known[0]), max(end, known[1])
            if known == (start, end):
                return
            self._sorted.remove((*known, key))
        if self._sorted and start < self._sorted[-1][1]:
            self._check(start, end, key)
        insort(self._sorted, (start, end, key))
        self._of[key] = start, end

    def add_if_new(self, key: Key, start: int, end: int) -> None:
        """:meth:`add` for a column chunk without an extent so far."""
        if key not in self._of:
            self.add(key, start, end)

    def _check(self, start: int, end: int, key: Key) -> None:
        at = bisect_left(self._sorted, (start, end, key))
        for other in self._sorted[max(at - 1, 0) : at + 1]:
            if other[0] < end and start < other[1]:
                raise CorruptFileError(
                    f"its pages (offset {start} to {end}) overlap those of column chunk {other[2][1]} in row group "
                    f"{other[2][0]} (offset {other[0]} to {other[1]})"
                )
