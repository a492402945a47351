"""Whole column chunks of many small row groups, each leaf as one column: what a scan without a filter reads.

A row group of a few hundred rows takes less time to decode than Python takes to look at it. So the chunks come as
arrays from the footer, go to the decoder in one call, and leave it joined. Anything unusual is left to
:class:`~pyparq.read.column_reads.ColumnReader`, which takes one chunk at a time and says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from pyparq.decoding.decoded_leaf import DecodedLeaf
from pyparq.decoding.decoder import Refused, WholeChunks, decode_chunks, terms_of
from pyparq.decoding.output import column_of
from pyparq.errors import ChecksumError, CorruptFileError
from pyparq.footers.chunk_table import ChunkTable
from pyparq.index.row_ranges import RowRanges
from pyparq.pruning.row_groups import Selection
from pyparq.read.column_reads import ColumnReader
from pyparq.schemas.tree import Node

SMALL = 1 << 16
"""Rows of a row group up to which it is joined with its neighbours."""
JOINED = 1 << 17
"""Rows that are joined at most, unless a single row group has more."""
MANY = 8
"""Column chunks from which on it pays."""
WINDOW = 32 << 20
"""Stored bytes that are in memory at a time."""

Part = tuple[list[int], dict[int, DecodedLeaf]]
"""Places of row groups that follow each other, and their leaves by column."""


def whole_parts(reader: ColumnReader, selections: Sequence[Selection], nodes: Sequence[Node]) -> list[Part] | None:
    """All rows of ``selections``, joined; ``None`` where something is unusual, or joining would not pay."""
    if not _joins(reader, selections, nodes):
        return None
    used = reader.account.used
    try:
        table = reader.file.chunk_table([s.row_group for s in selections], nodes)
        if table.encrypted.any() or _overlaps(table):
            return None
        return list(_decoded(reader, list(_runs(selections)), table, nodes))
    except ChecksumError:
        raise
    except (CorruptFileError, Refused):  # what it is, and where, is said when the chunks are read one by one
        reader.account.rewind(used)
        return None


def _joins(reader: ColumnReader, selections: Sequence[Selection], nodes: Sequence[Node]) -> bool:
    if len(selections) * len(nodes) < MANY or not nodes or reader.prefetch is not None:
        return False
    if any(reader.file.fields.is_dictionary(node) or reader.file.fields.is_view(node) for node in nodes):
        return False
    whole = all(s.planned is None and s.sure.is_all and not s.dictionaries for s in selections)
    rising = all(a.row_group < b.row_group for a, b in pairwise(selections))
    return whole and rising and all(s.num_rows <= SMALL for s in selections)


def _runs(selections: Sequence[Selection]) -> Iterator[list[int]]:
    """Places of the row groups that are joined."""
    run, rows = list[int](), 0
    for k, selection in enumerate(selections):
        if run and rows + selection.num_rows > JOINED:
            yield run
            run, rows = [], 0
        run.append(k)
        rows += selection.num_rows
    yield run


def _overlaps(table: ChunkTable) -> bool:
    start, end = table.start.reshape(-1), (table.start + table.size).reshape(-1)
    order = np.argsort(start, kind="stable")
    return bool((start[order][1:] < end[order][:-1]).any())


def _decoded(reader: ColumnReader, runs: list[list[int]], table: ChunkTable, nodes: Sequence[Node]) -> Iterator[Part]:
    sizes = table.size.sum(axis=1)
    window, size = list[list[int]](), 0
    for run in runs:
        stored = int(sizes[run].sum())
        if window and size + stored > WINDOW:
            yield from _decoded_window(reader, window, table, nodes)
            window, size = [], 0
        window.append(run)
        size += stored
    yield from _decoded_window(reader, window, table, nodes)


def _decoded_window(
    reader: ColumnReader, window: list[list[int]], table: ChunkTable, nodes: Sequence[Node]
) -> Iterator[Part]:
    places = [k for run in window for k in run]
    whole = len(places) == len(table.num_rows)
    num_rows, codec, num_values, first_page, start, size = (
        array if whole else array[places]
        for array in (table.num_rows, table.codec, table.num_values, table.first_page, table.start, table.size)
    )
    read = reader.file.fetcher.fetch_stretches(start, size)
    chunks = WholeChunks(num_rows, codec, num_values, -first_page, start, size)
    terms = [terms_of(node) for node in nodes]
    decoded, facts = decode_chunks(terms, [len(run) for run in window], chunks, read, reader.options, reader.account)
    if facts.ended_early:
        raise CorruptFileError("a column chunk does not end where it should")
    reader.count(start.size, facts.data_pages, facts.dictionary_pages)
    found = iter(decoded)
    for run in window:
        rows = RowRanges.all(int(table.num_rows[run].sum()))
        leaves: dict[int, DecodedLeaf] = {}
        for node in nodes:
            native = next(found)
            column = column_of(node.type, native)
            leaf = DecodedLeaf(node, column, native.definition_levels, native.repetition_levels, rows)
            leaf.check_rows()
            leaves[node.column] = leaf
        yield run, leaves
