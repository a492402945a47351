"""Rows that wait for their row group. Batches are cut by rows and by bytes."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from pyparq.arrow.c_import import ImportedColumn
from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import list_items, slice_column, trimmed
from pyparq.arrow.dictionary_column import SpelledColumn
from pyparq.arrow.record_batch import RecordBatch

_WIDTHS = dict.fromkeys("cC", 1) | dict.fromkeys("sSe", 2) | dict.fromkeys("iIf", 4) | dict.fromkeys("lLg", 8)
"""Bytes of a value, for the most common formats."""


def slice_batch(batch: RecordBatch, start: int, stop: int) -> RecordBatch:
    """Rows ``start`` to ``stop``, sharing memory."""
    if stop - start == batch.num_rows:
        return batch
    return RecordBatch([slice_column(c, start, stop) for c in batch.columns], stop - start)


def batch_bytes(batch: RecordBatch, start: int, stop: int) -> int:
    """Approximate bytes in memory of the rows ``start`` to ``stop``: their own, not those of shared buffers."""
    return sum([column_bytes(c, start, stop) for c in batch.columns])


def column_bytes(column: Column, start: int, stop: int) -> int:
    """Approximate bytes in memory of some rows of one column."""
    rows = stop - start
    type_ = column.type
    if type_.format in _WIDTHS and type_.dictionary is None:
        return rows * _WIDTHS[type_.format]
    if isinstance(column, ImportedColumn) and rows == column.length:
        return column.imported.num_bytes
    if type_.dictionary is not None and column.dictionary is not None:
        whole = column_bytes(column.dictionary, 0, len(column.dictionary))
        return rows * whole // max(len(column.dictionary), 1)
    if type_.format == "b":
        return (rows + 7) // 8
    if type_.format == "+s":
        at = column.offset
        return sum(column_bytes(c, at + start, at + stop) for c in column.children)
    if type_.is_nested:
        offsets, items = list_items(column)
        return 4 * rows + column_bytes(items, int(offsets[start]), int(offsets[stop]))
    if isinstance(column, SpelledColumn) and type_.is_binary_like:
        return 4 * rows + column.text_bytes(start, stop)
    if type_.is_binary_like:
        offsets = column.offsets()
        return 4 * rows + int(offsets[stop]) - int(offsets[start])
    if type_.format in ("vu", "vz"):
        views = column.buffers[0].view(np.int32).reshape(-1, 4)
        return 4 * rows + int(views[column.offset + start : column.offset + stop, 0].sum(dtype=np.int64))
    return rows * type_.byte_width


@dataclass(slots=True)
class _Waiting:
    batch: RecordBatch
    size: int
    owned: bool = False
    """Whether its buffers are copies, which no other code writes to."""


class RowBuffer:
    """Batches in order, returned as row groups of at most ``max_rows`` rows and about ``max_bytes`` bytes."""

    def __init__(self, max_rows: int, max_bytes: int) -> None:
        self.max_rows = max_rows
        self._max_bytes = max_bytes
        self._waiting: deque[_Waiting] = deque()
        self.num_rows = 0
        self.num_bytes = 0

    def add(self, batch: RecordBatch) -> None:
        if batch.num_rows:
            self._waiting.append(_Waiting(batch, batch_bytes(batch, 0, batch.num_rows)))
            self._count(self._waiting[-1], 1)

    def _count(self, item: _Waiting, sign: int) -> None:
        self.num_rows += sign * item.batch.num_rows
        self.num_bytes += sign * item.size

    @property
    def has_full_group(self) -> bool:
        return self.num_rows >= self.max_rows or self.num_bytes >= self._max_bytes

    def take_all(self) -> list[RecordBatch]:
        """All waiting rows, regardless of the limits."""
        taken = [item.batch for item in self._waiting]
        self._waiting.clear()
        self.num_rows = self.num_bytes = 0
        return taken

    def take_group(self) -> list[RecordBatch]:
        """The batches of the next row group (at least one row). The last one is cut where the row group ends."""
        taken: list[RecordBatch] = []
        rows_left, bytes_left = self.max_rows, self._max_bytes
        while self._waiting and rows_left > 0:
            item = self._waiting.popleft()
            self._count(item, -1)
            batch = item.batch
            rows = self._rows_that_fit(batch, item.size, rows_left, bytes_left)
            if rows == 0 and not taken:
                rows = 1
            if rows:
                taken.append(slice_batch(batch, 0, rows))
            if rows < batch.num_rows:
                rest = slice_batch(batch, rows, batch.num_rows)
                self._waiting.appendleft(_Waiting(rest, batch_bytes(rest, 0, rest.num_rows), item.owned))
                self._count(self._waiting[0], 1)
                break
            rows_left -= rows
            bytes_left -= item.size
        return taken

    def _rows_that_fit(self, batch: RecordBatch, size: int, rows_left: int, bytes_left: int) -> int:
        rows = min(batch.num_rows, rows_left)
        if size <= bytes_left:
            return rows
        low, high = 0, rows  # the first `low` rows fit, the first `high + 1` may not
        while low < high:
            middle = (low + high + 1) // 2
            if batch_bytes(batch, 0, middle) <= bytes_left:
                low = middle
            else:
                high = middle - 1
        return low

    def own(self) -> None:
        """Copy the waiting rows, so that the caller may reuse the arrays."""
        for item in self._waiting:
            if not item.owned:
                item.batch = RecordBatch([_copied(trimmed(c)) for c in item.batch.columns], item.batch.num_rows)
                item.owned = True


def _copied(column: Column) -> Column:
    """The same elements in new buffers."""
    return Column(
        column.type, column.length, None if column.validity is None else column.validity.copy(),
        tuple(b.copy() for b in column.buffers), column.null_count, tuple(map(_copied, column.children)),
        column.dictionary, column.offset,
    )  # fmt: skip
