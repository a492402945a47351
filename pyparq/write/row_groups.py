"""Makes row groups from batches: flattened to leaves, sorted if asked, encoded on the thread pool, stored in order.

While one row group is stored, the next one may be encoded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pyparq.arrow.c_import import ImportedColumn
from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import list_items, slice_column, trimmed
from pyparq.arrow.layouts import SpelledColumn
from pyparq.arrow.record_batch import RecordBatch
from pyparq.encryption.writing import FileEncryption
from pyparq.errors import DataError, ParquetError
from pyparq.format.leaf_values import plain_size
from pyparq.option_values import SortKey
from pyparq.options import WriteOptions
from pyparq.runtime.threads import Task, cpu_count, stop_all
from pyparq.write.column_chunks import ChunkEncoder, StoredChunks
from pyparq.write.column_plans import SortPlan, WritePlan
from pyparq.write.encoding_choice import Choices
from pyparq.write.file_layout import FileLayout
from pyparq.write.flat_columns import FlatData, KnownDictionaries, code_parts, flat_parts
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
Chunks = Callable[[int], Sequence[LeafData | FlatData]]
"""The same for the kernels."""


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
        self._layout = layout
        self._encrypts = encryption.encrypts
        self._choices = Choices(len(plan.columns))
        self._chunks = ChunkEncoder(plan, encryption, self._choices)
        self._dictionaries = KnownDictionaries()
        self._running: deque[_Running] = deque()
        self._submitted = 0
        self._rows_before = 0

    @property
    def sorts_input(self) -> bool:
        """Whether all rows must be there before the first row group can be made."""
        return self._plan.sort is not None and self._plan.sort.scope == "input"

    @property
    def reordered(self) -> set[int]:
        """Leaves that came as dictionaries and did not keep the order of one dictionary; see :class:`Choices`."""
        return self._choices.reordered

    def add(self, batches: list[RecordBatch]) -> None:
        """One row group of these batches (at least one row)."""
        num_rows, first_row = sum(b.num_rows for b in batches), self._rows_before

        def leaves_of(top: int) -> list[LeafData]:
            return self._shredded(batches, top, first_row)

        sort = self._plan.sort
        make: Chunks = lambda top: self._leaves(batches, top, first_row)  # noqa: E731
        if sort is not None:
            leaves = self._sort_leaves(leaves_of, sort)
            keys = [key for _, key in sort.keys]
            if sort.scope:
                order = sort_order(leaves, keys)
                make = lambda top: [Rows(d).pick(order) for d in leaves_of(top)]  # noqa: E731
            else:
                _check_sorted(leaves, keys, first_row)
        self._submit(num_rows, make, _sizes(batches), leaves_of)

    def add_ordered(self, batches: list[RecordBatch]) -> None:
        """One row group of these batches, whose rows are already in the file's order."""
        first_row = self._rows_before
        num_rows = sum(b.num_rows for b in batches)
        make: Chunks = lambda top: self._leaves(batches, top, first_row)  # noqa: E731
        self._submit(num_rows, make, _sizes(batches), lambda top: self._shredded(batches, top, first_row))

    def add_leaves(self, num_rows: int, leaves_of: LeavesOf, sizes: Sequence[int], together: int | None = None) -> None:
        """One row group of leaves (at least one row), in the file's order. ``leaves_of``: those of some columns, asked
        for once, by the thread that encodes them. ``sizes``: bytes of each leaf, about. ``together``: columns are asked
        for together until they have as many bytes."""
        of_tops = [sum(sizes[k] for k in top.leaves) for top in self._tops]
        least = together or max(_TASK_BYTES, min(_READ_BYTES, sum(sizes) // 4))
        parts = {tops.start: tops for tops in _together(of_tops, least)}

        def make(top: int) -> Sequence[LeafData]:
            """All columns of a task with its first one."""
            return () if top not in parts else leaves_of([leaf for k in parts[top] for leaf in self._tops[k].leaves])

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

            def picked(top: int, part: np.ndarray[tuple[int], np.dtype[np.int64]] = part) -> list[LeafData]:
                return [rows.pick(part) for rows in rows_of[top]]

            self._submit(stop - start, picked, [int(sizes[part].sum()) // len(tops)] * len(tops))

    def wait_until_stored(self) -> None:
        """Wait until every row group is stored."""
        self._store(keep=0)

    def drop(self) -> None:
        """Stop the running work at its next page and wait for it, because it uses the caller's buffers."""
        self._choices.release(range(len(self._plan.columns)))
        stop_all(some.task for group in self._running for some in group.chunks if some.task is not None)
        self._running.clear()

    def forget(self) -> None:
        """In a forked child: the threads that worked on the row groups do not exist here, so nothing waits for them."""
        self._running.clear()

    # ---- inside --------------------------------------------------------------------------------------------------

    def _leaves(self, batches: list[RecordBatch], top: int, first_row: int) -> Sequence[LeafData | FlatData]:
        """The leaves of a column, as they lie in memory if the kernels take them so."""
        shape, _, is_flat = self._tops[top]
        if not is_flat:
            return self._shredded(batches, top, first_row)
        columns = [batch.columns[top] for batch in batches]
        num_rows = sum([batch.num_rows for batch in batches])
        known = None
        if self._chunks.keeps_entries(shape.node.column):
            known = self._dictionaries.of(columns[0], shape.node)
            parts = None if known is None or known.source is None else code_parts(columns, known.source)
        else:
            parts = flat_parts(columns, shape.node.type)
        if parts is None:
            return self._shredded(batches, top, first_row)
        return [FlatData(shape.node, num_rows, parts, known)]

    def _shredded(self, batches: list[RecordBatch], top: int, first_row: int) -> list[LeafData]:
        shape, parts = self._tops[top].shape, []
        for batch in batches:
            leaves = shred_column(batch.columns[top], shape, batch.num_rows, first_row, encrypts=self._encrypts)
            parts.append(leaves)
            first_row += batch.num_rows
        return [concat_leaf_data(same) for same in zip(*parts, strict=True)]

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
                leaves: list[LeafData | FlatData] = []
                for top in tops:
                    try:
                        leaves += leaves_of(top)
                    except ParquetError as error:
                        error.locate(row_group=ordinal, column=self._tops[top].shape.node.dotted)
                        raise
                self._chunks.encode(made, leaves, again)
            finally:  # also after an error: other row groups wait for the encodings that this one chooses
                self._choices.release(made.columns)

        slices = _together(sizes, together)
        columns = [[leaf for top in tops for leaf in self._tops[top].leaves] for tops in slices]
        chunks = [StoredChunks(ordinal, leaves) for leaves in columns]
        threaded = sum(sizes) >= _MIN_THREADED_BYTES and self._options.use_threads and cpu_count() > 1
        if threaded:
            self._store(keep=_IN_FLIGHT - 1)  # first, because encoded chunks stay in memory until they are stored
            tasks = [Task(encode, made, tops) for made, tops in zip(chunks, slices, strict=True)]
            for made, task in zip(chunks, tasks, strict=True):
                made.task = task
            # Noted before the first task begins, so that drop() finds all of them after an error.
            self._running.append(_Running(num_rows, chunks))
            for task in tasks:
                task.start()
        else:
            self._store(keep=0)
            for made, tops in zip(chunks, slices, strict=True):
                encode(made, tops)
            self._running.append(_Running(num_rows, chunks))

    def _store(self, keep: int) -> None:
        """Wait for row groups and store them, until ``keep`` are left running."""
        while len(self._running) > keep:
            group = self._running[0]
            self._layout.add_row_group(group.chunks, group.num_rows, self._plan)
            self._running.popleft()


def leaf_bytes(leaf: LeafData) -> int:
    """Approximate bytes of a leaf's values and levels."""
    levels = 0 if leaf.def_levels is None else len(leaf.def_levels)
    return plain_size(leaf.values) + levels


def _sizes(batches: list[RecordBatch]) -> list[int]:
    """Approximate bytes of each top-level column."""
    measured = [[column_bytes(column, 0, len(column)) for column in batch.columns] for batch in batches]
    return measured[0] if len(measured) == 1 else [sum(same) for same in zip(*measured, strict=True)]


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
