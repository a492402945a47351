"""Reads the column chunks of many small row groups at once, each leaf as one column.

Scans without a filter use it as it is, those with one through :mod:`pyparq.read.filtered_row_groups`.

Decoding a row group of a few hundred rows takes less time than one pass of Python over it. So the chunks come from the
footer as arrays, go to the decoder in one call, and come out joined. Anything unusual is left to
:class:`~pyparq.read.column_reads.ColumnReader`, which takes one chunk at a time and reports what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from pyparq.arrow.column import Column
from pyparq.errors import ChecksumError, CorruptFileError, DataError, ParquetError
from pyparq.index.row_mask import Words
from pyparq.index.row_ranges import RowRanges
from pyparq.read.column_reads import ColumnReader
from pyparq.read.decode.decoded_leaf import DecodedLeaf
from pyparq.read.decode.decoder import PieceError
from pyparq.read.decode.memory_account import Account, Portion
from pyparq.read.decode.whole_chunks import NativeLeaf, WholeChunks, columns_of, decode_chunks
from pyparq.read.footers.arrow_fields import Projection
from pyparq.read.footers.chunk_table import ChunkTable
from pyparq.read.footers.leaf_set import LeafSet
from pyparq.read.plan.row_groups import Selection

SMALL = 1 << 16
"""Row groups of up to this many rows are joined with their neighbours."""
JOINED = 1 << 17
"""Maximum number of joined rows, unless a single row group has more."""
FEW = 32
"""Chunks up to which lists are quicker than arrays."""
WINDOW = 32 << 20
"""Stored bytes that are in memory at a time."""


class NoCodesError(Exception):
    """A page has values where codes of a dictionary were asked for."""


class Part(NamedTuple):
    """Consecutive row groups."""

    places: list[int]
    num_rows: int
    columns: list[Column]
    """One for each of their leaves."""
    leaves: list[DecodedLeaf]
    """The leaves with their levels, for columns that are built from levels."""


def whole_parts(reader: ColumnReader, selections: Sequence[Selection], projection: Projection) -> list[Part] | None:
    """All rows of ``selections``, joined. ``None`` where a chunk is unusual, or where joining does not pay."""
    if not _joins(reader, selections, projection):
        return None
    used = reader.account.used
    try:
        table = reader.file.chunk_table([s.row_group for s in selections], projection.leaves)
        if table.any_encrypted or overlaps(table):
            return None
        return list(_decoded(reader, list(runs_of(selections)), table, projection))
    except ChecksumError:
        raise
    except (CorruptFileError, DataError, PieceError):  # reading the chunks one by one raises it with its place
        reader.account.rewind(used)
        return None


def look_apart(reader: ColumnReader, selections: Sequence[Selection], projection: Projection) -> None:
    """Check all row groups for column chunks that overlap, once the first of several was read.

    If any seem to overlap, no further row group is read whole. Its pages are then compared with those that were read
    before.
    """
    small = any(s.num_rows <= SMALL for s in selections)
    if not small or not projection.leaves or reader.prefetch is not None or not projection.is_plain:
        return
    try:
        table = reader.file.chunk_table([s.row_group for s in selections], projection.leaves)
        apart = not overlaps(table)
    except ParquetError:  # The error is raised again when that row group is read.
        apart = False
    if not apart:
        reader.joins = False
        reader.note_whole(selections[0].row_group, projection.leaves.nodes)


def _joins(reader: ColumnReader, selections: Sequence[Selection], projection: Projection) -> bool:
    if not selections or not projection.leaves or reader.prefetch is not None or not projection.is_plain:
        return False
    if not reader.joins:
        return False
    whole = all(s.planned is None and s.sure.is_all and not s.dictionaries for s in selections)
    rising = all(a.row_group < b.row_group for a, b in pairwise(selections))
    return whole and rising and all(s.num_rows <= SMALL for s in selections)


def runs_of(selections: Sequence[Selection], most: int | None = None) -> Iterator[list[int]]:
    """Positions of consecutive row groups that are joined. ``most``: their rows, :data:`JOINED` if not given."""
    run, rows = list[int](), 0
    for k, selection in enumerate(selections):
        if run and rows + selection.num_rows > (JOINED if most is None else most):
            yield run
            run, rows = [], 0
        run.append(k)
        rows += selection.num_rows
    yield run


def overlaps(table: ChunkTable) -> bool:
    """Whether any two chunks share bytes."""
    start, size = table.start.reshape(-1), table.size.reshape(-1)
    if len(start) <= FEW:
        places = sorted(zip(start.tolist(), size.tolist(), strict=True))
        return any(a + length > b for (a, length), (b, _) in pairwise(places))
    order = np.argsort(start, kind="stable")
    ends = (start + size)[order]
    return bool((start[order][1:] < ends[:-1]).any())


def windows_of(runs: list[list[int]], table: ChunkTable, most: int = WINDOW) -> Iterator[list[list[int]]]:
    """The runs in groups of ``most`` stored bytes or one run, which are in memory at once."""
    if len(runs) == 1:
        yield runs
        return
    sizes = table.size.sum(axis=1)
    window, size = list[list[int]](), 0
    for run in runs:
        stored = int(sizes[run].sum())
        if window and size + stored > most:
            yield window
            window, size = [], 0
        window.append(run)
        size += stored
    yield window


def decode_window(
    reader: ColumnReader,
    window: list[list[int]],
    table: ChunkTable,
    leaves: LeafSet,
    wanted: Sequence[tuple[Words, Any]] = (),
    account: Account | Portion | None = None,
    all_threads: bool = True,
) -> list[list[NativeLeaf]]:
    """The columns of each run. ``wanted``: for each run a bitmap of the rows to decode, and the positions of the row
    groups that hold any. ``account``: the reader's if not given. ``all_threads``: otherwise the
    calling thread decodes alone. Raises :class:`NoCodesError` if codes are asked for and a page has none."""
    places = [k for run in window for k in run]
    whole = len(places) == len(table.num_rows)
    num_rows, codec, num_values, has_dictionary, start, size = (
        array if whole else array[places]
        for array in (
            table.num_rows,
            table.codec,
            table.num_values,
            table.has_dictionary_first,
            table.start,
            table.size,
        )
    )
    held = start, size
    if wanted:
        among = np.concatenate([groups for _, groups in wanted])
        held = table.start[among], table.size[among]
    chunks = WholeChunks(num_rows, codec, num_values, has_dictionary, start, size)
    options = reader.options if all_threads else replace(reader.options, use_threads=False)
    decoded, facts = decode_chunks(
        leaves, [len(run) for run in window], chunks, reader.file.fetcher.fetch_stretches(*held), options,
        account or reader.account, [rows for rows, _ in wanted],
    )  # fmt: skip
    if facts.ended_early:
        raise CorruptFileError("a column chunk does not end where it should")
    there = [native for native in decoded if native is not None]
    if len(there) < len(decoded):
        raise NoCodesError()
    reader.count(held[0].size, facts.data_pages, facts.dictionary_pages)
    return [there[k * len(leaves) : (k + 1) * len(leaves)] for k in range(len(window))]


def _decoded(reader: ColumnReader, runs: list[list[int]], table: ChunkTable, projection: Projection) -> Iterator[Part]:
    leaves = projection.leaves
    for window in windows_of(runs, table):
        for run, natives in zip(window, decode_window(reader, window, table, leaves), strict=True):
            count, columns = int(table.num_rows[run].sum()), columns_of(leaves, natives)
            levels = [] if projection.is_flat else with_levels(leaves, natives, columns, count)
            yield Part(run, count, columns, levels)


def with_levels(
    leaves: LeafSet, natives: Sequence[NativeLeaf], columns: Sequence[Column], num_rows: int
) -> list[DecodedLeaf]:
    """The columns with their levels, checked for the number of rows."""
    rows, found = RowRanges.all(num_rows), []
    for node, native, column in zip(leaves.nodes, natives, columns, strict=True):
        levels = native[0] if isinstance(native, tuple) else native
        leaf = DecodedLeaf(node, column, levels.definition_levels, levels.repetition_levels, rows)
        leaf.check_rows()
        found.append(leaf)
    return found
