"""Sorts more rows than memory holds: sorted runs on disk, which are merged block by block.

A run holds as many rows as fit into memory, sorted. Merging keeps one or two blocks of each run in memory. Each run has
a last loaded row. All rows up to the smallest of these can be returned, because no row that is still on disk comes
before them. Binary search finds them in each run; they are joined and sorted together. So no Python code runs per row.
The sort is stable.
"""

from __future__ import annotations

import pickle
import secrets
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import Int64Array, concat, slice_column, take
from pyparq.arrow.record_batch import RecordBatch
from pyparq.encryption.cipher import DataKey
from pyparq.format.schema_node import shapes
from pyparq.kernels.buffers import release_unused
from pyparq.write.column_plans import WritePlan
from pyparq.write.row_groups import batch_bytes
from pyparq.write.shred import LeafData, shred_column
from pyparq.write.sort import RowKeys, row_keys, sort_order


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of a run, column by column: where each column lies in the file."""

    num_rows: int
    places: tuple[tuple[int, int], ...]
    """Offset and length."""


class SpillFile:
    """Blocks of rows in a file in ``folder`` (``None``: where the system has temporary files). ``secret``: encrypted,
    with a key that exists in memory only."""

    def __init__(self, folder: str | None, secret: bool) -> None:
        self._file = tempfile.TemporaryFile(dir=folder, prefix="pyparq-sort-")  # noqa: SIM115
        self._key: Any = None
        if secret:
            self._key = DataKey(secrets.token_bytes(16))

    def store(self, batches: list[RecordBatch], order: Int64Array, block_rows: int) -> list[Block]:
        """Store the rows of ``batches`` (emptied) in an order, in blocks of so many rows."""
        columns = [[batch.columns[k] for batch in batches] for k in range(len(batches[0].columns))]
        batches.clear()
        parts = [order[at : at + block_rows] for at in range(0, len(order), block_rows)]
        places: list[list[tuple[int, int]]] = [[] for _ in parts]
        for k in range(len(columns)):
            joined, columns[k] = concat(columns[k]), []  # the parts go while the next columns are still there
            for into, rows in zip(places, parts, strict=True):
                into.append(self._append(_bare(take(joined, rows))))
        return [Block(len(rows), tuple(into)) for into, rows in zip(places, parts, strict=True)]

    def load(self, block: Block) -> RecordBatch:
        """The rows of a block."""
        columns = []
        for offset, length in block.places:
            self._file.seek(offset)
            data: Any = self._file.read(length)
            columns.append(pickle.loads(data if self._key is None else self._key.open(data, b"")))
        return RecordBatch(columns, block.num_rows)

    def close(self) -> None:
        self._file.close()

    def _append(self, column: Column) -> tuple[int, int]:
        data: Any = pickle.dumps(column, protocol=5)
        if self._key is not None:
            data = self._key.seal([data], b"")
        offset = self._file.seek(0, 2)
        self._file.write(data)
        return offset, memoryview(data).nbytes


def _bare(column: Column) -> Column:
    """Without the dictionary that the values were spelled out from: each block would store it anew."""
    if column.type.dictionary is None:
        column.dictionary = None
    column.children = tuple(map(_bare, column.children))
    return column


RUN_SHARE = 4
"""The share of the memory that a run may take. Sorting and storing it needs about as much again."""
_BLOCKS = 128
"""Blocks of a run."""
MIN_BLOCK = 128 << 10
"""Minimum size of a block in bytes. Smaller blocks would cost more time than they save memory."""
FAN_IN = 128
"""Number of runs that are merged at once. Each has at most two blocks in memory, together about two runs."""


class RowOrder:
    """The sort order of a plan, over batches."""

    def __init__(self, plan: WritePlan) -> None:
        assert plan.sort is not None
        self._keys = [key for _, key in plan.sort.keys]
        found = shapes(plan.tree.root)
        self._places = []
        for node, _ in plan.sort.keys:
            top = max(k for k, shape in enumerate(found) if shape.node.column <= node.column)
            self._places.append((top, found[top], node.column))

    def _leaves(self, batch: RecordBatch) -> list[LeafData]:
        leaves = []
        for top, shape, column in self._places:
            shredded = shred_column(batch.columns[top], shape, batch.num_rows)
            leaves += [data for data in shredded if data.node.column == column]
        return leaves

    def order(self, batches: Sequence[RecordBatch]) -> Int64Array:
        """The rows of all batches together, in sorted order."""
        tops = {top for top, _, _ in self._places}
        num_rows = sum(batch.num_rows for batch in batches)
        width = len(batches[0].columns)
        joined = [concat([b.columns[k] for b in batches]) if k in tops else batches[0].columns[k] for k in range(width)]
        return sort_order(self._leaves(RecordBatch(joined, num_rows)), self._keys)

    def keys(self, batch: RecordBatch) -> list[RowKeys]:
        return [row_keys(leaf, key) for leaf, key in zip(self._leaves(batch), self._keys, strict=True)]


class ExternalSorter:
    """Takes rows in any order and returns them sorted.

    ``max_memory``: approximate maximum of bytes in memory. Temporary files go to ``folder``; ``secret`` encrypts them.
    It must be closed in any case.
    """

    def __init__(self, plan: WritePlan, max_memory: int, folder: str | None = None, secret: bool = False) -> None:
        self._order = RowOrder(plan)
        self._run_bytes = max(max_memory // RUN_SHARE, 1)
        self._file = SpillFile(folder, secret)
        self._waiting: list[RecordBatch] = []
        self._num_bytes = 0
        self._runs: deque[deque[Block]] = deque()
        """Each as its blocks, in the order of the rows that came."""

    def add(self, batch: RecordBatch) -> None:
        """Add rows. They may wait in memory, so their buffers must not change."""
        if batch.num_rows:
            self._waiting.append(batch)
            self._num_bytes += batch_bytes(batch, 0, batch.num_rows)
            if self._num_bytes >= self._run_bytes:
                self._end_run()

    def batches(self) -> Iterator[RecordBatch]:
        """All rows, sorted, in batches of at most about the size of a run. No rows can be added afterwards."""
        if not self._runs:
            yield from self._all_in_memory()
            return
        if self._waiting:
            self._end_run()
        while len(self._runs) > FAN_IN:
            self._merge_runs()
        yield from _merged(self._opened(list(self._runs)))

    def close(self) -> None:
        self._file.close()

    def _all_in_memory(self) -> Iterator[RecordBatch]:
        batches, self._waiting = self._waiting, []
        if batches:
            yield _sorted(batches, self._order)

    def _end_run(self) -> None:
        """Store the waiting rows as a run on disk."""
        batches, self._waiting = self._waiting, []
        size, self._num_bytes = self._num_bytes, 0
        order = self._order.order(batches)
        self._runs.append(deque(self._file.store(batches, order, self._block_rows(len(order), size))))
        release_unused()

    def _block_rows(self, num_rows: int, size: int) -> int:
        """Rows per block, if so many rows take so many bytes."""
        return max(int(max(self._run_bytes / _BLOCKS, MIN_BLOCK) / max(size, 1) * num_rows), 1)

    def _merge_runs(self) -> None:
        """Merge neighbouring runs, so that equal rows keep their order."""
        runs, self._runs = list(self._runs), deque()
        for at in range(0, len(runs), FAN_IN):
            merged: deque[Block] = deque()
            for batch in _merged(self._opened(runs[at : at + FAN_IN])):
                num_rows = batch.num_rows
                rows = self._block_rows(num_rows, batch_bytes(batch, 0, num_rows))
                merged.extend(self._file.store([batch], np.arange(num_rows), rows))
            self._runs.append(merged)

    def _opened(self, runs: list[deque[Block]]) -> list[_Run]:
        return [_Run(self._file, self._order, run) for run in runs]


@dataclass(slots=True)
class _LoadedBlock:
    """A block in memory. Rows from ``start`` on were not returned yet."""

    batch: RecordBatch
    keys: list[RowKeys]
    start: int = 0

    @property
    def left(self) -> int:
        return self.batch.num_rows - self.start


@dataclass(slots=True)
class _Run:
    """A sorted run while it is merged."""

    file: SpillFile
    order: RowOrder
    blocks: deque[Block]
    loaded: deque[_LoadedBlock] = field(default_factory=deque)

    def fill(self) -> None:
        """Load blocks until the run has two with rows, or all."""
        while self.blocks and len(self.loaded) < 2:
            batch = self.file.load(self.blocks.popleft())
            self.loaded.append(_LoadedBlock(batch, self.order.keys(batch)))

    def take(self, limit: tuple[list[RowKeys], int] | None, with_equal: bool) -> Iterator[RecordBatch]:
        """The rows up to ``limit`` (a row of another run), and rows equal to it only ``with_equal``. ``None``: all
        loaded rows."""
        while self.loaded:
            first = self.loaded[0]
            stop = first.batch.num_rows
            if limit is not None:
                stop = _position(first, limit, with_equal)
            if stop > first.start:
                columns = [slice_column(c, first.start, stop) for c in first.batch.columns]
                yield RecordBatch(columns, stop - first.start)
            first.start = stop
            if first.left:
                return
            self.loaded.popleft()


def _compare(mine: list[RowKeys], row: int, theirs: list[RowKeys], other: int) -> int:
    for here, there in zip(mine, theirs, strict=True):
        sign = here.before(row, there, other)
        if sign:
            return sign
    return 0


def _position(block: _LoadedBlock, limit: tuple[list[RowKeys], int], with_equal: bool) -> int:
    """The first row of a block that comes behind ``limit``."""
    low, high = block.start, block.batch.num_rows
    while low < high:
        middle = (low + high) // 2
        sign = _compare(block.keys, middle, *limit)
        if sign < 0 or (sign == 0 and with_equal):
            low = middle + 1
        else:
            high = middle
    return low


def _merged(runs: list[_Run]) -> Iterator[RecordBatch]:
    """The rows of sorted runs, merged. Equal rows keep the order of the runs."""
    order = runs[0].order
    while runs:
        for run in runs:
            run.fill()
        limit = _limit(runs)
        pieces: list[RecordBatch] = []
        several = 0
        for k, run in enumerate(runs):
            mine = limit is None or k == limit[0]
            found = list(run.take(None if limit is None or mine else limit[1], limit is not None and k < limit[0]))
            pieces += found
            several += bool(found)
        if several > 1:
            yield _sorted(pieces, order)
        else:
            yield from pieces
        runs = [run for run in runs if run.loaded or run.blocks]


def _limit(runs: list[_Run]) -> tuple[int, tuple[list[RowKeys], int]] | None:
    """The run whose loaded rows end first, and its last loaded row. ``None`` if no run has more on disk."""
    found: tuple[int, tuple[list[RowKeys], int]] | None = None
    for k, run in enumerate(runs):
        if not run.blocks:
            continue
        last = run.loaded[-1]
        row = last.batch.num_rows - 1
        if found is None or _compare(last.keys, row, *found[1]) < 0:
            found = k, (last.keys, row)
    return found


def _sorted(pieces: list[RecordBatch], order: RowOrder) -> RecordBatch:
    rows = order.order(pieces)
    width = len(pieces[0].columns)
    return RecordBatch([take(concat([b.columns[k] for b in pieces]), rows) for k in range(width)], len(rows))
