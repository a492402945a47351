"""Keep only some rows of each page while a chunk is decoded: what few rows need is never spread out over a column."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.errors import CorruptFileError
from pyparq.index.row_ranges import RowRanges
from pyparq.kernels import take_binary
from pyparq.read.pages import PageParts
from pyparq.schema.tree import Node
from pyparq.schema.values import BinaryValues, Values

Int64Array = npt.NDArray[np.int64]

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

    def skips(self, num_rows: int) -> bool:
        """Step over the next ``num_rows`` rows if none of them is wanted."""
        if self._in(self.row, self.row + num_rows).size:
            return False
        self.row += num_rows
        return True

    def _in(self, start: int, end: int) -> Int64Array:
        first, last = np.searchsorted(self._wanted, (start, end))
        return self._wanted[first:last]

    def narrow(self, parts: PageParts) -> tuple[PageParts, Int64Array]:
        """The page's levels at the wanted rows, and which of its values (nulls not counted) these have."""
        entries = self._entries(parts)
        reps, defs = parts.rep_levels, parts.def_levels
        values = entries
        if defs is not None:
            present = defs == self._max_def
            values = (np.cumsum(present, dtype=np.int64) - 1)[entries[present[entries]]]
            defs = defs[entries]
        if reps is not None:
            reps = reps[entries]
        narrowed = replace(parts, num_levels=len(entries), rep_levels=reps, def_levels=defs, num_values=len(values))
        return narrowed, values

    def _entries(self, parts: PageParts) -> Int64Array:
        first = self.row
        if parts.rep_levels is None:
            self.row += parts.num_levels
            return self._in(first, self.row) - first
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


def pick(values: Values, places: Int64Array) -> Values:
    """The values at ``places``."""
    if isinstance(values, BinaryValues):
        return BinaryValues(*take_binary(np.ascontiguousarray(values.offsets), values.data, places))
    picked: npt.NDArray[Any] = values[places]
    return picked
