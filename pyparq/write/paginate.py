"""Cut a column chunk into pages: at row boundaries, by rows and by bytes (parquet.thrift, OffsetIndex).

A :class:`Section` is a stretch of the chunk's values that one encoding holds: the dictionary part, and what comes
after the dictionary grew past its limit. No page spans two sections, and no page is empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pyparq.errors import DataError
from pyparq.schemas.values import BinaryValues, Values

if TYPE_CHECKING:
    from pyparq.write.shred import LeafData

Int64Array = npt.NDArray[np.int64]

MAX_PAGE = (1 << 31) - (1 << 20)
"""Bytes that a page may hold at most; sizes in page headers are signed 32-bit, compression may add some."""


@dataclass(frozen=True, slots=True)
class Pages:
    """Boundaries of ``p`` pages (``p + 1`` numbers each): rows, slots (values with nulls), and values without nulls."""

    rows: Int64Array
    slots: Int64Array
    values: Int64Array

    def __len__(self) -> int:
        return len(self.rows) - 1


class Positions:
    """Where rows, slots and values of a leaf's data stand; each question is answered from what it needs."""

    def __init__(self, data: LeafData) -> None:
        self._data = data
        self._max_def = data.node.max_def
        self._row_starts: Int64Array | None = None
        if data.rep_levels is not None:
            self._row_starts = np.append(np.flatnonzero(data.rep_levels == 0), data.num_slots)
        self._valid_before: Int64Array | None = None

    def slot_of_row(self, row: int) -> int:
        """The row's first slot (the number of slots for the row behind the last)."""
        return row if self._row_starts is None else int(self._row_starts[row])

    def slots_of_rows(self, rows: Int64Array) -> Int64Array:
        return rows if self._row_starts is None else self._row_starts[rows]

    def values_in(self, first_slot: int, last_slot: int) -> int:
        """Values (not nulls) in ``[first_slot, last_slot)``."""
        levels = self._data.def_levels
        if levels is None:
            return last_slot - first_slot
        return int(np.count_nonzero(levels[first_slot:last_slot] == self._max_def))

    def slot_of_value(self, value: int) -> int:
        """The slot that holds value number ``value``."""
        levels = self._data.def_levels
        return value if levels is None else int(np.flatnonzero(levels == self._max_def)[value])

    def row_of_slot(self, slot: int) -> int:
        if self._row_starts is None:
            return slot
        return int(np.searchsorted(self._row_starts, slot, side="right")) - 1

    def values_before_rows(self, first_row: int, last_row: int) -> Int64Array:
        """For rows ``first_row`` to ``last_row`` (inclusive): values before each, counted from ``first_row``."""
        starts = self.slots_of_rows(np.arange(first_row, last_row + 1)) - self.slot_of_row(first_row)
        levels = self._data.def_levels
        if levels is None:
            return starts
        first = self.slot_of_row(first_row)
        valid = levels[first : first + int(starts[-1])] == self._max_def
        before = np.zeros(len(valid) + 1, np.int64)
        np.cumsum(valid, out=before[1:])
        return before[starts]


@dataclass(frozen=True, slots=True)
class Cost:
    """Estimated bytes of encoded values: ``bits`` per value, or the PLAIN size of byte arrays."""

    bits: int
    binary: BinaryValues | None = None

    def of(self, first: int, count: int) -> int:
        """Bytes of ``count`` values from value number ``first`` on."""
        total = (count * self.bits + 7) // 8
        if self.binary is not None:
            total += int(self.binary.offsets[first + count] - self.binary.offsets[first])
        return total

    def of_prefixes(self, first: int, counts: Int64Array) -> Int64Array:
        """Bytes of the first ``counts[k]`` values from ``first`` on."""
        total = (counts * self.bits + 7) // 8
        if self.binary is not None:
            total = total + (self.binary.offsets[first + counts] - self.binary.offsets[first])
        return total


def plain_cost(values: Values, width: int) -> Cost:
    """Cost of PLAIN values of ``width`` bytes (0 for byte arrays)."""
    return Cost(32, values) if isinstance(values, BinaryValues) else Cost(8 * width)


class Cutter:
    """Cuts rows into pages of at most ``max_rows`` rows and about ``max_bytes`` bytes, one row at least."""

    def __init__(self, data: LeafData, max_rows: int, max_bytes: int) -> None:
        self._data = data
        self._positions = Positions(data)
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        self._rows = [0]
        self._slots = [0]
        self._values = [0]

    def row_before_value(self, value: int) -> int:
        """The last row boundary at or before value number ``value``."""
        return self._positions.row_of_slot(self._positions.slot_of_value(value))

    def cut(self, last_row: int, cost: Cost) -> int:
        """Add pages up to ``last_row``; returns how many there are now."""
        row = self._rows[-1]
        while row < last_row:
            row = self._add_page(row, min(row + self._max_rows, last_row), cost)
        return len(self._rows) - 1

    def _add_page(self, row: int, end: int, cost: Cost) -> int:
        """Append the page that starts at ``row`` and ends at ``end`` or before; returns where it ends."""
        first_slot, first_value = self._slots[-1], self._values[-1]
        slots = self._positions.slot_of_row(end) - first_slot
        count = self._positions.values_in(first_slot, first_slot + slots)
        size = cost.of(first_value, count) + self._level_bytes(slots)
        if size > self._max_bytes and end - row > 1:
            end = self._last_row_within(row, end, first_value, cost)
            slots = self._positions.slot_of_row(end) - first_slot
            count = self._positions.values_in(first_slot, first_slot + slots)
            size = cost.of(first_value, count) + self._level_bytes(slots)
        if size > MAX_PAGE:
            raise DataError(f"row {row} of the row group takes {size} bytes, but a page must be smaller than 2 GiB")
        self._rows.append(end)
        self._slots.append(first_slot + slots)
        self._values.append(first_value + count)
        return end

    def _last_row_within(self, row: int, end: int, first_value: int, cost: Cost) -> int:
        counts = self._positions.values_before_rows(row, end)
        sizes = cost.of_prefixes(first_value, counts)
        sizes += self._level_bytes_of(self._positions.slots_of_rows(np.arange(row, end + 1)) - self._slots[-1])
        return row + max(int(np.searchsorted(sizes, self._max_bytes, side="right")) - 1, 1)

    def _level_bits(self) -> int:
        data = self._data
        bits = 0 if data.def_levels is None else data.node.max_def.bit_length()
        return bits + (0 if data.rep_levels is None else data.node.max_rep.bit_length())

    def _level_bytes(self, slots: int) -> int:
        return slots * self._level_bits() // 8

    def _level_bytes_of(self, slots: Int64Array) -> Int64Array:
        return slots * self._level_bits() // 8

    def pages(self) -> Pages:
        """The boundaries of all pages cut so far."""
        return Pages(*(np.array(edges, np.int64) for edges in (self._rows, self._slots, self._values)))
