"""Keep only some rows of each page while a chunk is decoded: what few rows need is never spread out over a column."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq import encodings
from pyparq.encodings import plain
from pyparq.errors import CorruptFileError
from pyparq.index.row_ranges import RowRanges
from pyparq.kernels import take_binary
from pyparq.read.pages import PageParts
from pyparq.schema.tree import Node
from pyparq.schema.types import LeafType
from pyparq.schema.values import BinaryValues, Values

Int64Array = npt.NDArray[np.int64]
Places = slice | Int64Array
"""Ascending positions; a slice where they adjoin, which is the usual case and many times quicker to index with."""

PAYS_FROM = 4
"""Rows that the pages hold per row that is wanted, from which on picking page by page is the quicker way."""


class Narrower:
    """Walks the pages of one chunk in row order and keeps the entries of the wanted rows.

    ``row`` is the next row to start; whoever skips pages sets it.
    """

    def __init__(self, node: Node, rows: RowRanges) -> None:
        self.row = 0
        self._max_def = node.max_def
        self._wanted = rows.rows()
        self._adjoin = len(rows) == 1

    def skips(self, num_rows: int) -> bool:
        """Step over the next ``num_rows`` rows if none of them is wanted."""
        if len(self._in(self.row, self.row + num_rows)):
            return False
        self.row += num_rows
        return True

    def _in(self, start: int, end: int) -> Int64Array:
        return self._wanted[self._wanted.searchsorted(start) : self._wanted.searchsorted(end)]

    def narrow(self, parts: PageParts) -> tuple[PageParts, Places]:
        """The page's levels at the wanted rows, and which of its values (nulls not counted) these have."""
        entries = self._entries(parts)
        reps, defs = parts.rep_levels, parts.def_levels
        values = entries
        if defs is not None:
            values = _values_at(defs == self._max_def, entries)
            defs = defs[entries]
        if reps is not None:
            reps = reps[entries]
        narrowed = PageParts(_count(entries), reps, defs, _count(values), parts.encoding, parts.data)
        return narrowed, values

    def _entries(self, parts: PageParts) -> Places:
        first = self.row
        if parts.rep_levels is None:
            self.row += parts.num_levels
            entries = self._in(first, self.row)
            if len(entries) and (self._adjoin or entries[-1] - entries[0] == len(entries) - 1):
                return slice(int(entries[0]) - first, int(entries[-1]) - first + 1)
            return entries - first
        # The first entries may continue the row before, where pages do not begin with one.
        if first == 0 and len(parts.rep_levels) and parts.rep_levels[0] != 0:
            raise CorruptFileError("repetition levels that continue a row before the first")
        row_of = np.cumsum(parts.rep_levels == 0, dtype=np.int64)
        started = int(row_of[-1]) if len(row_of) else 0
        self.row += started
        wanted = np.zeros(started + 1, np.bool_)
        wanted[self._in(first - 1, self.row) - first + 1] = True
        return np.flatnonzero(wanted[row_of])

    def check_end(self, num_rows: int) -> None:
        """After the last page of a whole chunk: :class:`CorruptFileError` unless all its rows came by."""
        if self.row != num_rows:
            raise CorruptFileError(f"{self.row} rows in the pages of a row group of {num_rows}")


def _count(places: Places) -> int:
    return places.stop - places.start if isinstance(places, slice) else len(places)


def _values_at(present: npt.NDArray[np.bool_], entries: Places) -> Places:
    """Which of the values that are present the given entries have."""
    if isinstance(entries, slice):
        before = int(np.count_nonzero(present[: entries.start]))
        return slice(before, before + int(np.count_nonzero(present[entries])))
    if not len(entries):
        return entries
    first = entries[0]
    near = present[first : entries[-1] + 1]
    numbers = np.cumsum(near, dtype=np.int64) + (np.count_nonzero(present[:first]) - 1)
    wanted = entries - first
    return np.asarray(numbers[wanted[near[wanted]]])


def decode_picked(parts: PageParts, leaf: LeafType, places: Places) -> Values:
    """The values at ``places`` of a page that is not dictionary-encoded.

    Raises :class:`CorruptFileError` or :class:`KernelError` for bytes that do not decode, :class:`UnsupportedError`
    for an unknown encoding.
    """
    if parts.encoding != encodings.PLAIN or not leaf.is_binary:
        return pick(encodings.decode(parts.encoding, parts.data, parts.num_values, leaf), places)
    if isinstance(places, slice):
        places = np.arange(places.start, places.stop, dtype=np.int64)
    return plain.decode_binary_at(parts.data, parts.num_values, places)


def pick(values: Values, places: Places) -> Values:
    """The values at ``places``."""
    if isinstance(values, BinaryValues):
        offsets = np.ascontiguousarray(values.offsets)
        if isinstance(places, slice):
            offsets = offsets[places.start : places.stop + 1]
            return BinaryValues(offsets - offsets[0], values.data[offsets[0] : offsets[-1]])
        return BinaryValues(*take_binary(offsets, values.data, places))
    picked: npt.NDArray[Any] = values[places]
    return picked
