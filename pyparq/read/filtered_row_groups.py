"""Filters many small row groups as one: their filter columns in one call, one mask, and one call for the other columns.

Looking at a row group by itself takes Python longer than decoding it, if it has a few thousand rows. So the row groups
are joined as those of a read without a filter. Anything unusual is left to the reader of single row groups, which
reports what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from pyparq.errors import ChecksumError, CorruptFileError, DataError, LimitError
from pyparq.filters.leaf_tests import EntryLevels
from pyparq.filters.predicate import Predicate, matching_rows
from pyparq.format.schema_node import Node
from pyparq.format.types import Physical
from pyparq.index.row_mask import RowMask, Words
from pyparq.index.row_ranges import Int64Array, RowRanges
from pyparq.read.column_reads import ColumnReader
from pyparq.read.decode.decode_dictionary import spelled_out
from pyparq.read.decode.decoded_leaf import DecodedLeaf, slot_level
from pyparq.read.decode.decoder import PieceError
from pyparq.read.decode.memory_account import Portion
from pyparq.read.decode.whole_chunks import NativeLeaf, columns_of
from pyparq.read.footers.chunk_table import ChunkTable
from pyparq.read.footers.leaf_set import LeafSet
from pyparq.read.plan.row_groups import Selection
from pyparq.read.small_row_groups import NoCodesError, decode_window, overlaps, runs_of, windows_of, with_levels
from pyparq.runtime.threads import cpu_count, current_lane, map_tasks

SMALL = 1 << 15
"""Row groups of up to this many rows are filtered together."""
COUNTED = 1 << 20
"""Maximum number of rows of row groups whose matching rows are counted together."""
MOST_STORED = 1 << 20
"""Row groups of more stored bytes (the mean of all) are looked at one by one: some of their pages may be left out."""
THREAD_WINDOW = 8 << 20
"""Stored bytes for each thread from which on the threads take row groups, not columns. About so many are in memory at a
time."""


class FilteredRows(NamedTuple):
    """The matching rows of consecutive row groups."""

    places: list[int]
    counts: Int64Array
    """Matching rows of each row group."""
    rows: RowRanges
    """All matching rows, counted from 0."""
    leaves: dict[int, DecodedLeaf]
    """The leaves of the result at these rows, by leaf column."""


class Question(NamedTuple):
    """The question that the row groups answer."""

    predicate: Predicate
    outputs: Sequence[Node]
    """The leaves of the result."""
    limit: int | None
    """Maximum number of rows."""


def may_be_filtered(reader: ColumnReader, selections: Sequence[Selection]) -> bool:
    """Whether the row groups are small, and nothing but the footer is known of them."""
    if len(selections) < 2 or not reader.joins or reader.prefetch is not None or reader.trace is not None:
        return False
    numbers = [s.row_group for s in selections]
    rising = all(a < b for a, b in pairwise(numbers))
    return rising and all(
        s.planned is None and s.maybe.is_all and not s.dictionaries and s.num_rows <= SMALL for s in selections
    )


def filtered_rows(
    reader: ColumnReader, selections: Sequence[Selection], question: Question
) -> list[FilteredRows] | None:
    """The matching rows of ``selections``. ``None`` where a chunk is unusual, or large."""
    leaves = reader.file.tree.leaves
    tested = sorted(question.predicate.columns())
    if any(leaves[column].type.nulls_beyond for column in tested):
        return None  # levels do not tell where values that do not fit are read as nulls
    others = list(dict.fromkeys(node.column for node in question.outputs if node.column not in tested))
    used = reader.account.used
    try:
        table = reader.file.chunk_table([s.row_group for s in selections], [leaves[c] for c in (*tested, *others)])
        if table.any_encrypted or overlaps(table) or not _worth(reader, table):
            return None
        places = np.arange(len(selections))
        coded = [c for k, c in enumerate(tested) if _has_codes(leaves[c], table, k)]
        forms = [LeafSet((leaves[c] for c in tested), named) for named in ((coded, ()) if coded else ((),))]
        job = _Job(
            reader, selections, question, forms, LeafSet(leaves[c] for c in others),
            table.part(places, range(len(tested))), table.part(places, range(len(tested), len(tested) + len(others))),
        )  # fmt: skip
        return list(job.run(table))
    except ChecksumError:
        raise
    except (CorruptFileError, DataError, LimitError, PieceError):  # reading them one by one raises it with its place
        reader.account.rewind(used)
        return None


def _has_codes(node: Node, table: ChunkTable, k: int) -> bool:
    """Whether to test the entries of dictionaries instead of each value: text, if each chunk has a dictionary."""
    type_ = node.type
    plain = type_.physical == Physical.BYTE_ARRAY and type_.kind != "decimal" and node.max_rep == 0
    return plain and bool(table.has_dictionary_first[:, k].all())


def _worth(reader: ColumnReader, table: ChunkTable) -> bool:
    """Whether to read whole chunks. Those of several pages are left to the reader that may leave out some of them."""
    if int(table.size.sum()) > MOST_STORED * len(table.num_rows):
        return False
    numbers = table.numbers
    unknown = (numbers.offset_index_offset != 0) & (numbers.data_pages < 0)
    return not (reader.options.use_page_index and bool((unknown | (numbers.data_pages > 1)).any()))


class _Run(NamedTuple):
    """Row groups that are joined: the mask of their matching rows, and the decoded filter columns."""

    places: list[int]
    mask: RowMask
    counts: Int64Array
    tested: list[DecodedLeaf]


class _Job(NamedTuple):
    reader: ColumnReader
    selections: Sequence[Selection]
    question: Question
    forms: list[LeafSet]
    """The filter columns as they are decoded. The last one is values. If a page does not allow the first, it is
    removed."""
    others: LeafSet
    tested_chunks: ChunkTable
    other_chunks: ChunkTable

    def run(self, table: ChunkTable) -> Iterator[FilteredRows]:
        left = self.question.limit
        runs = list(runs_of(self.selections, None if self.question.outputs else COUNTED))
        if left is None and (shared := self._shared(runs, table)):
            yield from self._beside_others(shared)
            runs = runs[sum(len(window) for window in shared) :]
        for window in windows_of(runs, table):
            if left == 0:
                return
            for found in _Window(self, window, True).rows(left):
                left = None if left is None else left - found.rows.count
                yield found

    def _shared(self, runs: list[list[int]], table: ChunkTable) -> list[list[list[int]]]:
        """Windows of about one size, as many for each thread. What is left over, the decoder shares out."""
        stored, workers = int(table.size.sum()), cpu_count()
        if not self.reader.options.use_threads or workers < 2 or current_lane() is not None:
            return []
        rounds = stored // (THREAD_WINDOW * workers)
        if rounds == 0:
            return []
        size = stored // (rounds * workers)
        windows = list(windows_of(runs, table, size + size // 8))
        return windows[: len(windows) // workers * workers]

    def _beside_others(self, windows: list[list[list[int]]]) -> Iterator[FilteredRows]:
        """One thread reads a window from its bytes to its rows: what it has just read is near, and it waits for no
        other."""
        for found in map_tasks(lambda window: _Window(self, window, False).rows(None), windows, True, in_order=True):
            yield from found


class _Window:
    """Some runs, which are in memory at once."""

    def __init__(self, job: _Job, runs: list[list[int]], is_alone: bool) -> None:
        """``is_alone``: all threads are for it. Otherwise this thread alone, as others read other windows."""
        self._job = job
        self._runs = runs
        self._is_alone = is_alone
        self._account = Portion(job.reader.account, 1 if is_alone else cpu_count() + 1)

    def rows(self, limit: int | None) -> list[FilteredRows]:
        """The matching rows. The memory of the decoded columns is released, but for these rows."""
        form, decoded = self._decoded()
        runs = []
        for places, natives in zip(self._runs, decoded, strict=True):
            run = self._tested(places, with_levels(
                form, natives, columns_of(form, natives), int(self._job.tested_chunks.num_rows[places].sum())
            ), limit)  # fmt: skip
            runs.append(run)
            limit = None if limit is None else limit - run.mask.count
        found = list(self._kept([run for run in runs if run.mask]))
        self._account.settle(sum(leaf.num_bytes for part in found for leaf in part.leaves.values()))
        return found

    def _decoded(self) -> tuple[LeafSet, list[list[NativeLeaf]]]:
        """The filter columns of each run, and the form that they have."""
        forms = self._job.forms
        for form in forms[:-1]:
            with suppress(NoCodesError):
                return form, self._decode(self._runs, self._job.tested_chunks, form)
            self._account.release()
            forms[:] = forms[-1:]
        return forms[-1], self._decode(self._runs, self._job.tested_chunks, forms[-1])

    def _decode(
        self, runs: list[list[int]], chunks: ChunkTable, leaves: LeafSet, wanted: Sequence[tuple[Words, Any]] = ()
    ) -> list[list[NativeLeaf]]:
        return decode_window(self._job.reader, runs, chunks, leaves, wanted, self._account, self._is_alone)

    def _tested(self, places: list[int], leaves: list[DecodedLeaf], limit: int | None) -> _Run:
        columns = {leaf.node.column: leaf.column for leaf in leaves}
        levels = {
            leaf.node.column: EntryLevels(leaf.def_levels, leaf.rep_levels, slot_level(leaf.node)) for leaf in leaves
        }
        mask = matching_rows(self._job.question.predicate, columns, levels=levels)
        ends = np.cumsum(self._job.tested_chunks.num_rows[places])
        sure = [self._job.selections[k].sure for k in places]
        if any(sure):
            mask |= RowMask.of_ranges(_joined(sure, ends))
        if limit is not None:
            mask = mask.head(limit)
        return _Run(places, mask, np.diff(mask.ranks(ends), prepend=0), leaves)

    def _kept(self, runs: list[_Run]) -> Iterator[FilteredRows]:
        """The leaves of the result at the matching rows, for runs that have some."""
        leaves, others = self._job.others, list[list[DecodedLeaf]]([[] for _ in runs])
        if len(leaves) and runs:
            wanted = [(run.mask.words, np.array(run.places)[run.counts > 0]) for run in runs]
            decoded = self._decode([run.places for run in runs], self._job.other_chunks, leaves, wanted)
            for k, (run, natives) in enumerate(zip(runs, decoded, strict=True)):
                others[k] = with_levels(leaves, natives, columns_of(leaves, natives), run.mask.count)
        outputs = {node.column for node in self._job.question.outputs}
        for run, rest in zip(runs, others, strict=True):
            rows = RowRanges.all(run.mask.count)
            own = [self._own(leaf, run.mask, rows) for leaf in run.tested if leaf.node.column in outputs]
            yield FilteredRows(run.places, run.counts, rows, {leaf.node.column: leaf for leaf in (*own, *rest)})

    def _own(self, leaf: DecodedLeaf, mask: RowMask, rows: RowRanges) -> DecodedLeaf:
        """The matching rows of a filter column, as values."""
        found = replace(leaf.select(mask), rows=rows)
        if found.column.type.dictionary is None:
            return found
        most = self._job.reader.options.limits.max_column
        return replace(found, column=spelled_out(found.column, self._account, most))


def _joined(sets: Sequence[RowRanges], ends: Int64Array) -> RowRanges:
    """Rows of consecutive row groups as rows of all of them. ``ends``: the row behind each row group."""
    firsts = [0, *ends[:-1].tolist()]
    starts = np.concatenate([rows.starts + first for rows, first in zip(sets, firsts, strict=True)])
    stops = np.concatenate([rows.ends + first for rows, first in zip(sets, firsts, strict=True)])
    return RowRanges.merged(starts, stops, int(ends[-1]))


def rows_by_group(found: Sequence[FilteredRows], selections: Sequence[Selection]) -> Mapping[int, int]:
    """Matching rows of each row group."""
    rows = dict.fromkeys((s.row_group for s in selections), 0)
    for part in found:
        rows |= {selections[k].row_group: n for k, n in zip(part.places, part.counts.tolist(), strict=True)}
    return rows
