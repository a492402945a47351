"""Makes row groups from batches: flattened to leaves, sorted if asked, encoded on the thread pool, stored in order.

While one row group is stored, the next one may be encoded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import list_items, slice_column, trimmed
from pyparq.arrow.layouts import SpelledColumn
from pyparq.arrow.record_batch import ImportedColumn, RecordBatch
from pyparq.encryption.writing import FileEncryption
from pyparq.errors import DataError, ParquetError
from pyparq.format.leaf_values import plain_size
from pyparq.option_values import SortKey
from pyparq.options import WriteOptions
from pyparq.runtime import fork_safety
from pyparq.runtime.threads import Task, cpu_count, stop_all
from pyparq.write.column_chunks import ChunkEncoder, StoredChunks
from pyparq.write.column_plans import SortPlan, WritePlan
from pyparq.write.encoding_choice import Choices
from pyparq.write.file_layout import FileLayout
from pyparq.write.flat_columns import FlatData, LastKnown, flat_leaves
from pyparq.write.shred import LeafData, concat_leaf_data, shred_column
from pyparq.write.sort import Rows, cut_groups, first_unsorted, sort_order

_WIDTHS = dict.fromkeys("cC", 1) | dict.fromkeys("sSe", 2) | dict.fromkeys("iIf", 4) | dict.fromkeys("lLg", 8)
"""Bytes of a value, for the most common formats."""


def slice_batch(batch: RecordBatch, start: int, stop: int) -> RecordBatch:
    """Rows ``start`` to ``stop``, sharing memory."""
    if stop - start == batch.num_rows:
        return batch
    return RecordBatch([slice_column(c, start, stop) for c in batch.columns], stop - start)


def batch_bytes(batch: RecordBatch, start: int, stop: int) -> int:
    """Approximate bytes in memory of the rows ``start`` to ``stop``: their own, not those of shared buffers."""
    return sum(_sizes(batch, start, stop))


def _sizes(batch: RecordBatch, start: int, stop: int) -> list[int]:
    """The same of each column."""
    found = []
    for column in batch.columns:
        width = _WIDTHS.get(column.type.format) if column.type.dictionary is None else None
        found.append(_column_bytes(column, start, stop) if width is None else (stop - start) * width)
    return found


def _column_bytes(column: Column, start: int, stop: int) -> int:
    rows = stop - start
    type_ = column.type
    if type_.format in _WIDTHS and type_.dictionary is None:
        return rows * _WIDTHS[type_.format]
    if isinstance(column, ImportedColumn) and rows == column.length:
        return column.imported.num_bytes
    if type_.dictionary is not None and column.dictionary is not None:
        whole = _column_bytes(column.dictionary, 0, len(column.dictionary))
        return rows * whole // max(len(column.dictionary), 1)
    if type_.format in ("u", "z", "U", "Z"):
        if isinstance(column, SpelledColumn):
            return 4 * rows + column.text_bytes(start, stop)
        offsets = column.offsets()
        return 4 * rows + int(offsets[stop]) - int(offsets[start])
    if type_.format == "b":
        return (rows + 7) // 8
    if type_.format == "+s":
        at = column.offset
        return sum(_column_bytes(c, at + start, at + stop) for c in column.children)
    if type_.is_nested:
        offsets, items = list_items(column)
        return 4 * rows + _column_bytes(items, int(offsets[start]), int(offsets[stop]))
    if type_.format in ("vu", "vz"):
        views = column.buffers[0].view(np.int32).reshape(-1, 4)
        return 4 * rows + int(views[column.offset + start : column.offset + stop, 0].sum(dtype=np.int64))
    return rows * type_.byte_width


class RowGroup(NamedTuple):
    """The rows of a row group."""

    batches: list[RecordBatch]
    num_rows: int
    sizes: list[int]
    """Approximate bytes of each top-level column."""


@dataclass(slots=True)
class _Waiting:
    batch: RecordBatch
    sizes: list[int]
    """Approximate bytes of each column."""
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
            sizes = _sizes(batch, 0, batch.num_rows)
            self._waiting.append(_Waiting(batch, sizes))
            self.num_rows += batch.num_rows
            self.num_bytes += sum(sizes)

    @property
    def has_full_group(self) -> bool:
        return self.num_rows >= self.max_rows or self.num_bytes >= self._max_bytes

    def first(self) -> list[RecordBatch]:
        """The batch that waits longest, if there is one."""
        return [self._waiting[0].batch] if self._waiting else []

    def take_all(self) -> RowGroup:
        """All waiting rows, regardless of the limits."""
        taken = [*self._waiting]
        self._waiting.clear()
        self.num_rows = self.num_bytes = 0
        return _group(taken)

    def take_group(self) -> RowGroup:
        """The rows of the next row group (at least one row). The last batch is cut where the row group ends."""
        taken: list[_Waiting] = []
        rows_left, bytes_left = self.max_rows, self._max_bytes
        while self._waiting and rows_left > 0:
            item = self._waiting.popleft()
            batch, size = item.batch, sum(item.sizes)
            rows = min(batch.num_rows, rows_left)
            if size > bytes_left:
                rows = self._rows_that_fit(batch, rows, bytes_left)
            if rows == 0 and not taken:
                rows = 1
            self.num_rows -= rows
            self.num_bytes -= size
            if rows < batch.num_rows:
                if rows:
                    taken.append(_Waiting(slice_batch(batch, 0, rows), _sizes(batch, 0, rows)))
                rest = slice_batch(batch, rows, batch.num_rows)
                self._waiting.appendleft(_Waiting(rest, _sizes(rest, 0, rest.num_rows), item.owned))
                self.num_bytes += sum(self._waiting[0].sizes)
                break
            taken.append(item)
            rows_left -= rows
            bytes_left -= size
        return _group(taken)

    def _rows_that_fit(self, batch: RecordBatch, rows: int, bytes_left: int) -> int:
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


def _group(taken: list[_Waiting]) -> RowGroup:
    if len(taken) == 1:
        return RowGroup([taken[0].batch], taken[0].batch.num_rows, taken[0].sizes)
    batches = [item.batch for item in taken]
    sizes = [sum(same) for same in zip(*(item.sizes for item in taken), strict=True)]
    return RowGroup(batches, sum(batch.num_rows for batch in batches), sizes)


def _copied(column: Column) -> Column:
    """The same elements in new buffers."""
    return Column(
        column.type, column.length, None if column.validity is None else column.validity.copy(),
        tuple(b.copy() for b in column.buffers), column.null_count, tuple(map(_copied, column.children)),
        column.dictionary, column.offset,
    )  # fmt: skip


_MIN_THREADED_BYTES = 1 << 20
"""Smaller row groups (in bytes) are encoded on the calling thread: threads would cost more than they gain."""
_TASK_BYTES = 512 << 10
"""Columns are encoded in one task until they have this many bytes, because each task has a fixed cost."""
_READ_BYTES = 4 << 20
"""The same for tasks that read their columns first, at most: two of them are in memory at a time."""
_IN_FLIGHT = 2
"""Maximum number of row groups in memory, encoded or half encoded: one is stored while one is encoded."""

Leaves = Callable[[int], list[LeafData]]
"""The leaves of a top-level column, by its number."""
LeavesOf = Callable[[Sequence[int]], Sequence[LeafData]]
"""Leaves by their numbers."""
Chunks = Callable[[range], Sequence[LeafData | FlatData]]
"""The leaves of some top-level columns, as the kernels take them."""


@dataclass(slots=True)
class _Running:
    """A row group whose columns are being encoded, or are encoded. Results are in column order."""

    num_rows: int
    chunks: list[StoredChunks]


class RowGroupEncoder:
    """Turns rows into stored row groups."""

    def __init__(self, plan: WritePlan, layout: FileLayout, encryption: FileEncryption) -> None:
        self._plan = plan
        self._options: WriteOptions = plan.options
        self._tops = plan.tops
        self.sorts_input = plan.sort is not None and plan.sort.scope == "input"
        """Whether all rows must be there before the first row group can be made."""
        self._layout = layout
        self._encrypts = encryption.encrypts
        self._choices = Choices(len(plan.columns))
        fork_safety.watch(self)
        self._chunks = ChunkEncoder(plan, encryption, self._choices)
        self._dictionaries: LastKnown = {}
        self._running: deque[_Running] = deque()
        self._submitted = 0
        self._rows_before = 0
        self.inherited = False
        """This is a forked child, and the file its parent's."""

    @property
    def reordered(self) -> set[int]:
        """Leaves that came as dictionaries and did not keep the order of one dictionary; see :class:`Choices`."""
        return self._choices.reordered

    def add(self, group: RowGroup) -> None:
        """One row group of these rows (at least one)."""
        batches, first_row = group.batches, self._rows_before

        def leaves_of(top: int) -> list[LeafData]:
            return self._shredded(batches, top, first_row)

        sort = self._plan.sort
        make: Chunks = partial(self._leaves, group, first_row)
        if sort is not None:
            leaves = self._sort_leaves(leaves_of, sort)
            keys = [key for _, key in sort.keys]
            if sort.scope:
                order = sort_order(leaves, keys)
                make = lambda tops: [Rows(d).pick(order) for top in tops for d in leaves_of(top)]  # noqa: E731
            else:
                _check_sorted(leaves, keys, first_row)
        self._submit(group.num_rows, make, group.sizes, leaves_of)

    def add_ordered(self, group: RowGroup) -> None:
        """One row group of these rows, which are already in the file's order."""
        first_row = self._rows_before
        make = partial(self._leaves, group, first_row)
        self._submit(group.num_rows, make, group.sizes, lambda top: self._shredded(group.batches, top, first_row))

    def add_leaves(self, num_rows: int, leaves_of: LeavesOf, sizes: Sequence[int], together: int | None = None) -> None:
        """One row group of leaves (at least one row), in the file's order. ``leaves_of``: those of some columns, asked
        for once, by the thread that encodes them. ``sizes``: bytes of each leaf, about. ``together``: columns are asked
        for together until they have as many bytes."""
        of_tops = [sum(sizes[k] for k in top.leaves) for top in self._tops]
        least = together or max(_TASK_BYTES, min(_READ_BYTES, sum(sizes) // 4))

        def make(tops: range) -> Sequence[LeafData]:
            return leaves_of([leaf for top in tops for leaf in self._tops[top].leaves])

        self._submit(num_rows, make, of_tops, together=least)

    def add_sorted(self, batches: list[RecordBatch]) -> None:
        """All rows of the file, sorted together, in as many row groups as needed."""
        sort = self._plan.sort
        assert sort is not None
        if not batches:
            return
        tops = [self._shredded(batches, top, 0) for top in range(len(self._tops))]
        order = sort_order(self._sort_leaves(tops.__getitem__, sort), [key for _, key in sort.keys])
        rows_of = [[Rows(data) for data in leaves] for leaves in tops]
        sizes = np.zeros(len(order), np.int64)
        for rows in (rows for leaves in rows_of for rows in leaves):
            sizes += rows.sizes()
        for start, stop in cut_groups(sizes[order], self._options.row_group_size, self._options.row_group_bytes):
            part = order[start:stop]

            def picked(tops: range, part: np.ndarray[tuple[int], np.dtype[np.int64]] = part) -> list[LeafData]:
                return [rows.pick(part) for top in tops for rows in rows_of[top]]

            self._submit(stop - start, picked, [int(sizes[part].sum()) // len(tops)] * len(tops))

    def wait_until_stored(self, keep: int = 0) -> None:
        """Wait for row groups and store them, until ``keep`` are left that are being encoded."""
        while len(self._running) > keep:
            group = self._running[0]
            self._layout.add_row_group(group.chunks, group.num_rows, self._plan)
            self._running.popleft()

    def drop(self) -> None:
        """Stop the running work at its next page and wait for it, because it uses the caller's buffers."""
        self._choices.release(range(len(self._plan.columns)))
        stop_all(some.task for group in self._running for some in group.chunks if some.task is not None)
        self._running.clear()

    def _after_fork(self) -> None:
        """The threads that worked on the row groups do not exist in the child, so nothing waits for them."""
        self._running.clear()
        self.inherited = True

    # ---- inside --------------------------------------------------------------------------------------------------

    def _leaves(self, group: RowGroup, first_row: int, tops: range) -> Sequence[LeafData | FlatData]:
        """The leaves of some columns, as they lie in memory where the kernels take them so."""
        found: list[LeafData | FlatData] = []
        some = self._tops[tops.start : tops.stop]
        for top, flat in zip(tops, flat_leaves(group.batches, group.num_rows, some, self._dictionaries), strict=True):
            found += self._shredded(group.batches, top, first_row) if flat is None else [flat]
        return found

    def _shredded(self, batches: list[RecordBatch], top: int, first_row: int) -> list[LeafData]:
        shape, parts = self._tops[top].shape, []
        try:
            for batch in batches:
                leaves = shred_column(batch.columns[top], shape, batch.num_rows, first_row, encrypts=self._encrypts)
                parts.append(leaves)
                first_row += batch.num_rows
            return [concat_leaf_data(same) for same in zip(*parts, strict=True)]
        except ParquetError as error:
            error.locate(column=shape.node.dotted)
            raise

    def _sort_leaves(self, leaves_of: Leaves, sort: SortPlan) -> list[LeafData]:
        found = []
        for node, _ in sort.keys:
            top = next(k for k, top in enumerate(self._tops) if node.column in top.leaves)
            found += [d for d in leaves_of(top) if d.node.column == node.column]
        return found

    def _submit(
        self, num_rows: int, leaves_of: Chunks, sizes: list[int], shredded: Leaves | None = None,
        together: int = _TASK_BYTES,
    ) -> None:  # fmt: skip
        """Start encoding a row group, after making room for it. ``sizes``: approximate bytes of each column.
        ``shredded`` gives the leaves that the kernels do not take from ``leaves_of``. ``together``: of one task."""
        ordinal = self._submitted
        self._submitted += 1
        self._rows_before += num_rows

        def again(column: int) -> LeafData:
            assert shredded is not None  # comes together with arrays
            return shredded(next(k for k, top in enumerate(self._tops) if column in top.leaves))[0]

        def encode(made: StoredChunks, tops: range) -> None:
            try:
                self._chunks.encode(made, leaves_of(tops), again)
            except ParquetError as error:
                error.locate(row_group=ordinal)
                raise
            finally:  # also after an error: other row groups wait for the encodings that this one chooses
                self._choices.release(made.columns)

        slices = _together(sizes, together)
        chunks = [StoredChunks(ordinal, [leaf for top in tops for leaf in self._tops[top].leaves]) for tops in slices]
        threaded = sum(sizes) >= _MIN_THREADED_BYTES and self._options.use_threads and cpu_count() > 1
        if threaded:
            # First, because encoded chunks stay in memory until they are stored.
            self.wait_until_stored(keep=_IN_FLIGHT - 1)
            tasks = [Task(encode, made, tops) for made, tops in zip(chunks, slices, strict=True)]
            for made, task in zip(chunks, tasks, strict=True):
                made.task = task
            # Noted before the first task begins, so that drop() finds all of them after an error.
            self._running.append(_Running(num_rows, chunks))
            for task in tasks:
                task.start()
        else:
            self.wait_until_stored()
            for made, tops in zip(chunks, slices, strict=True):
                encode(made, tops)
            self._running.append(_Running(num_rows, chunks))


def leaf_bytes(leaf: LeafData) -> int:
    """Approximate bytes of a leaf's values and levels."""
    levels = 0 if leaf.def_levels is None else len(leaf.def_levels)
    return plain_size(leaf.values) + levels


def _together(sizes: list[int], least: int) -> list[range]:
    """Columns that are encoded by one task: until they have ``least`` bytes."""
    found, start, total = [], 0, 0
    for top, size in enumerate(sizes):
        total += size
        if total >= least or top == len(sizes) - 1:
            found.append(range(start, top + 1))
            start, total = top + 1, 0
    return found


def _check_sorted(leaves: Sequence[LeafData], keys: Sequence[SortKey], first_row: int) -> None:
    row = first_unsorted(leaves, keys)
    if row is not None:
        order = ", ".join(f"{k.name} descending" if k.descending else str(k.name) for k in keys)
        raise DataError(
            f"row {first_row + row} is not in the order that sorting_columns declares ({order}). Sort the data, use "
            f"sort_by, or leave sorting_columns out"
        )
