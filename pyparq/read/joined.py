"""Reads whole column chunks of small row groups, many in one call, each leaf as one column.

Decoding a row group of a few hundred rows takes less time than one pass of Python over it. So the chunks come from the
footer as arrays, go to the decoder in one call, and come out joined. With a filter, its columns are decoded first. One
bitmap says which rows match, and the other columns are decoded at these rows. Anything unusual is left to
:class:`~pyparq.read.row_group_reads.RowGroupReader`, which takes one row group at a time and reports what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple, cast

import numpy as np

from pyparq.arrow.column import Column, bytes_held
from pyparq.arrow.column_operations import keep
from pyparq.errors import ChecksumError, CorruptFileError, DataError, LimitError, ParquetError
from pyparq.filters import predicate as predicates
from pyparq.filters.bound import Constant, EntryLevels
from pyparq.format.schema_node import Node
from pyparq.format.types import Physical
from pyparq.index.row_ranges import Int64Array, RowMask, RowRanges, Words
from pyparq.read.column_reads import ColumnReader
from pyparq.read.decode.decoder import NativeLeaf, PieceError, columns_of, decode_chunks
from pyparq.read.decode.leaves import DecodedLeaf, spelled_out
from pyparq.read.decode.memory_account import Account, Portion
from pyparq.read.footers.chunks import ChunkTable, LeafSet
from pyparq.read.footers.schemas import Projection
from pyparq.read.plan.candidates import Selection
from pyparq.runtime.threads import cpu_count, map_tasks, runs_within

SMALL = 1 << 16
"""Row groups of up to this many rows are read together."""
FILTERED = 1 << 15
"""The same for row groups of which a filter may leave few rows."""
JOINED = 1 << 17
"""Maximum number of joined rows, unless a single row group has more."""
COUNTED = 1 << 20
"""The same if matching rows are only counted."""
MOST_STORED = 1 << 20
"""Row groups of more stored bytes (the mean of all) are filtered one by one: some of their pages may be left out."""
WINDOW = 32 << 20
"""Stored bytes that are in memory at a time."""
THREAD_WINDOW = 8 << 20
"""Stored bytes for each thread from which on the threads take row groups, not columns. About so many are in memory at a
time."""


class NoCodesError(Exception):
    """A page has values where codes of a dictionary were asked for."""


class Part(NamedTuple):
    """The rows of consecutive row groups."""

    places: list[int]
    counts: Int64Array
    """Rows of each row group that are here."""
    num_rows: int
    columns: dict[int, Column]
    """The leaves of the result, by leaf column."""
    leaves: dict[int, DecodedLeaf]
    """The same with their levels. Empty if all columns of the result are leaves."""


class Question(NamedTuple):
    """What the row groups are asked."""

    predicate: predicates.Predicate | None
    """``None``: all rows are wanted."""
    outputs: Sequence[Node]
    """The leaves of the result."""
    is_flat: bool
    """Whether they are the columns of the result."""
    limit: int | None
    """Maximum number of rows."""


def joined_rows(
    reader: ColumnReader, selections: Sequence[Selection], predicate: predicates.Predicate, projection: Projection,
    counts: bool, limit: int | None = None,
) -> list[Part] | None:  # fmt: skip
    """The matching rows of ``selections``. ``None`` where a chunk is unusual, or where joining does not pay.
    ``counts``: they are only counted."""
    tested = predicate if False in [s.sure.is_all for s in selections] else None
    if not _may_join(reader, selections, tested, limit) or not (counts or projection.is_plain):
        return None
    leaves, fields, row_groups = reader.file.tree.leaves, reader.file.fields, [s.row_group for s in selections]
    wanted = fields.leaf_set(()) if counts else projection.leaves
    if tested is None and not wanted.nodes:
        return None
    first: tuple[int, ...] = ()
    others = whole = wanted
    if tested is not None:
        first = tuple(sorted(tested.columns()))
        if any(leaves[column].type.nulls_beyond for column in first):
            return None  # levels do not tell where values that do not fit are read as nulls
        others = fields.leaf_set(tuple([column for column in wanted.numbers if column not in first]))
        whole = fields.leaf_set((*first, *others.numbers))
    used = reader.account.used
    try:
        table = reader.file.chunk_table(row_groups, whole)
        if table.any_encrypted or table.any_overlap():
            return None
        # Whole chunks are read. Those of several pages are left to the reader that may leave out some of them.
        if first and reader.options.use_page_index and table.may_leave_out_pages():
            return None
        if first and int(table.size.sum()) > MOST_STORED * len(selections):
            return None
        forms: list[LeafSet] = []
        if first:
            coded = tuple([c for k, c in enumerate(first) if _has_codes(leaves[c], table, k)])
            forms = [fields.leaf_set(first, named) for named in ((coded, ()) if coded else ((),))]
        if reader.logger is not None:
            names = ", ".join([node.dotted for node in whole.nodes])
            reader.logger.debug(
                "%s: planned %d row groups together, columns %s: all pages", reader.file.name, len(selections), names
            )
        question = Question(tested, wanted.nodes, projection.is_flat, limit)
        return _Job(reader, selections, question, table, forms, others).run()
    except ChecksumError:
        raise
    except LimitError:
        if tested is None:
            raise
    except (CorruptFileError, DataError, PieceError):
        pass
    reader.account.rewind(used)
    return None  # reading them one by one raises it with its place


def _may_join(
    reader: ColumnReader, selections: Sequence[Selection], tested: predicates.Predicate | None, limit: int | None
) -> bool:
    """Whether the row groups are small, in order, and nothing but the footer is known of them."""
    if not selections or not reader.joins or reader.prefetch is not None:
        return False
    if tested is None:
        if limit is not None:
            return False
    elif isinstance(tested, Constant) or reader.trace is not None or tested.asks_variants:
        return False  # a Variant needs other columns in each row group
    before, most = -1, SMALL if tested is None else FILTERED
    for s in selections:
        if s.planned is not None or s.dictionaries or s.row_group <= before or s.maybe.num_rows > most:
            return False
        if not s.maybe.is_all:
            return False
        before = s.row_group
    return True


def check_overlaps(reader: ColumnReader, selections: Sequence[Selection], projection: Projection) -> None:
    """Check all row groups for column chunks that overlap, once the first of several was read.

    If any seem to overlap, no further row group is read whole. Its pages are then compared with those that were read
    before.
    """
    small = any(s.num_rows <= SMALL for s in selections)
    if not small or not projection.leaves or reader.prefetch is not None or not projection.is_plain:
        return
    try:
        table = reader.file.chunk_table([s.row_group for s in selections], projection.leaves)
        apart = not table.any_overlap()
    except ParquetError:  # The error is raised again when that row group is read.
        apart = False
    if not apart:
        reader.joins = False
        reader.note_whole(selections[0].row_group, projection.leaves.nodes)


def _has_codes(node: Node, table: ChunkTable, k: int) -> bool:
    """Whether to test the entries of dictionaries instead of each value: text, if each chunk has a dictionary."""
    type_ = node.type
    plain = type_.physical == Physical.BYTE_ARRAY and type_.kind != "decimal" and node.max_rep == 0
    return plain and bool(table.has_dictionary_first[:, k].all())


class _Run(NamedTuple):
    """Row groups that are joined: their matching rows (``mask``, ``None`` for all), and the decoded filter columns."""

    places: list[int]
    counts: Int64Array
    num_rows: int
    mask: RowMask | None
    words: Words | None
    """Its words."""
    tested: list[DecodedLeaf]


class _Job(NamedTuple):
    reader: ColumnReader
    selections: Sequence[Selection]
    question: Question
    table: ChunkTable
    """The chunks of the filter columns, then those of the others."""
    forms: list[LeafSet]
    """The filter columns as they are decoded. The last one is values. If a page does not allow the first, it is
    removed."""
    others: LeafSet

    def run(self) -> list[Part]:
        left, parts = self.question.limit, list[Part]()
        rows, most = self.table.num_rows.tolist(), JOINED if self.question.outputs else COUNTED
        places = range(len(rows))
        runs = [[*places]] if sum(rows) <= most else list(runs_within(places, (rows, most)))  # each is joined
        if left is None and self.question.predicate is not None and (shared := self._shared(runs)):
            # One thread reads a window from its bytes to its rows: what it has just read is near, and it waits for no
            # other.
            for found in map_tasks(lambda window: _Window(self, window, False).rows(None), shared, True, in_order=True):
                parts += found
            runs = runs[sum(len(window) for window in shared) :]
        for window in self._windows(runs):
            if left == 0:
                break
            found = _Window(self, window, True).rows(left)
            left = None if left is None else left - sum([part.num_rows for part in found])
            parts += found
        return parts

    def _windows(self, runs: list[list[int]], most: int = WINDOW) -> Iterable[list[list[int]]]:
        """The runs in groups of ``most`` stored bytes or one run, which are in memory at once."""
        if len(runs) <= 1:
            return [runs] if runs else []
        sizes = self.table.size.sum(axis=1)
        return runs_within(runs, ([int(sizes[run].sum()) for run in runs], most))

    def _shared(self, runs: list[list[int]]) -> list[list[list[int]]]:
        """Windows of about one size, as many for each thread. What is left over, the decoder shares out."""
        stored = int(self.table.size.sum())
        if stored < 2 * THREAD_WINDOW:
            return []
        workers = cpu_count()
        rounds = stored // (THREAD_WINDOW * workers)
        if rounds == 0 or workers < 2 or not self.reader.options.use_threads:
            return []
        size = stored // (rounds * workers)
        windows = list(self._windows(runs, size + size // 8))
        return windows[: len(windows) // workers * workers]


class _Window:
    """Some runs, which are in memory at once."""

    def __init__(self, job: _Job, runs: list[list[int]], is_alone: bool) -> None:
        """``is_alone``: all threads are for it. Otherwise this thread alone, as others read other windows."""
        self._job = job
        self._runs = runs
        reader, question = job.reader, job.question
        self._options = reader.options if is_alone else replace(reader.options, use_threads=False)
        self._account: Account | Portion = reader.account
        if question.predicate is not None:
            self._account = Portion(reader.account, 1 if is_alone else cpu_count() + 1)

    def rows(self, limit: int | None) -> list[Part]:
        """The matching rows. The memory of the decoded filter columns is released, but for these rows."""
        if self._job.question.predicate is None:
            rows = self._job.table.num_rows
            runs = [_Run(places, rows[places], int(rows[places].sum()), None, None, []) for places in self._runs]
            return self._parts(runs)
        runs = self._tested(self._job.question.predicate, limit)
        found = self._parts([run for run in runs if run.num_rows])
        if isinstance(self._account, Portion):
            self._account.set_held(sum(map(_bytes_of, found)))
        return found

    def _tested(self, predicate: predicates.Predicate, limit: int | None) -> list[_Run]:
        """The runs with their matching rows."""
        form, decoded = self._filter_columns()
        runs = []
        for places, natives in zip(self._runs, decoded, strict=True):
            ends = np.cumsum(self._job.table.num_rows[places])
            leaves = _with_levels(form, natives, columns_of(form, natives), int(ends[-1]))
            columns = {leaf.node.column: leaf.column for leaf in leaves}
            levels = {
                leaf.node.column: EntryLevels(leaf.def_levels, leaf.rep_levels, leaf.node.slot_level) for leaf in leaves
            }
            mask = predicate.rows(columns, levels=levels)
            sure = [self._job.selections[k].sure for k in places]
            if any(sure):
                mask |= RowMask.of_ranges(_joined(sure, ends))
            if limit is not None:
                mask = mask.head(limit)
                limit -= mask.count
            counts = np.diff(mask.ranks(ends), prepend=0)
            runs.append(_Run(places, counts, int(counts.sum()), mask, mask.words, leaves))
        return runs

    def _filter_columns(self) -> tuple[LeafSet, list[list[NativeLeaf]]]:
        """The filter columns of each run, and the form that they have."""
        forms = self._job.forms
        for form in forms[:-1]:
            with suppress(NoCodesError):
                return form, self._decode(form, self._runs, slice(0, len(form.nodes)))
            if isinstance(self._account, Portion):
                self._account.release()
            forms[:] = forms[-1:]
        return forms[-1], self._decode(forms[-1], self._runs, slice(0, len(forms[-1].nodes)))

    def _decode(
        self, leaves: LeafSet, runs: list[list[int]], columns: slice, wanted: Sequence[tuple[Words, Any]] = ()
    ) -> list[list[NativeLeaf]]:
        """The ``columns`` of the table for each run. ``wanted``: for each run a bitmap of the rows to decode, and the
        positions of the row groups that hold any. Raises :class:`NoCodesError` if codes are asked for and a page has
        none."""
        reader, table = self._job.reader, self._job.table
        places = runs[0] if len(runs) == 1 else list(chain.from_iterable(runs))
        bitmaps, groups = zip(*wanted, strict=True) if wanted else ((), ())
        held = np.concatenate(groups) if groups else places
        start, size = table.start[held, columns], table.size[held, columns]
        decoded, facts = decode_chunks(
            leaves, list(map(len, runs)), table.whole(places, columns),
            reader.file.fetcher.fetch_stretches(start, size), self._options, self._account,
            bitmaps,
        )  # fmt: skip
        if facts.ended_early:
            raise CorruptFileError("a column chunk does not end where it should")
        if None in decoded:
            raise NoCodesError()
        reader.count(size.size, facts.data_pages, facts.dictionary_pages)
        there, count = cast("list[NativeLeaf]", decoded), len(leaves.nodes)
        return [there] if len(runs) == 1 else [there[k * count : (k + 1) * count] for k in range(len(runs))]

    def _parts(self, runs: list[_Run]) -> list[Part]:
        """The leaves of the result at the matching rows, for runs that have some."""
        leaves, is_flat = self._job.others, self._job.question.is_flat
        decoded: list[list[NativeLeaf]] = [list[NativeLeaf]()] * len(runs)
        if leaves.nodes and runs:
            wanted = [(run.words, np.array(run.places)[run.counts > 0]) for run in runs if run.words is not None]
            first = self._job.table.start.shape[1] - len(leaves.nodes)
            decoded = self._decode(leaves, [run.places for run in runs], slice(first, None), wanted)
        results, parts = self._job.question.outputs, []
        for run, natives in zip(runs, decoded, strict=True):
            columns = columns_of(leaves, natives) if natives else []
            own = [self._kept(leaf, run) for leaf in run.tested if leaf.node in results] if run.tested else []
            if is_flat:
                found = dict(zip(leaves.numbers, columns, strict=False))
                for leaf in own:
                    found[leaf.node.column] = leaf.column
                parts.append(Part(run.places, run.counts, run.num_rows, found, {}))
            else:
                levels = [*(_with_levels(leaves, natives, columns, run.num_rows) if natives else ()), *own]
                parts.append(
                    Part(run.places, run.counts, run.num_rows, {}, {leaf.node.column: leaf for leaf in levels})
                )
        return parts

    def _kept(self, leaf: DecodedLeaf, run: _Run) -> DecodedLeaf:
        """The matching rows of a filter column, as values."""
        assert run.mask is not None
        assert run.words is not None
        if leaf.def_levels is None and leaf.rep_levels is None:
            found = replace(leaf, column=keep(leaf.column, run.words, run.num_rows))
        else:
            found = leaf.select(run.mask)
        found.rows = RowRanges.all(run.num_rows)
        if found.column.type.dictionary is not None:
            found.column = spelled_out(found.column, self._account, self._options.limits.max_column)
        return found


def _with_levels(
    leaves: LeafSet, natives: Sequence[NativeLeaf], columns: Sequence[Column], num_rows: int
) -> list[DecodedLeaf]:
    """The columns with their levels, checked for the number of rows."""
    rows, found = RowRanges.all(num_rows), []
    for node, native, column in zip(leaves.nodes, natives, columns, strict=True):
        levels = native[0] if isinstance(native, tuple) else native
        leaf = DecodedLeaf(node, column, levels.definition_levels, levels.repetition_levels, rows)
        if leaf.rep_levels is not None:
            leaf.check_rows()
        found.append(leaf)
    return found


def _bytes_of(part: Part) -> int:
    levels: Iterable[int] = map(attrgetter("num_bytes"), part.leaves.values())
    return sum(map(bytes_held, part.columns.values())) + sum(levels)


def _joined(sets: Sequence[RowRanges], ends: Int64Array) -> RowRanges:
    """Rows of consecutive row groups as rows of all of them. ``ends``: the row behind each row group."""
    firsts = [0, *ends[:-1].tolist()]
    starts = np.concatenate([rows.starts + first for rows, first in zip(sets, firsts, strict=True)])
    stops = np.concatenate([rows.ends + first for rows, first in zip(sets, firsts, strict=True)])
    return RowRanges.merged(starts, stops, int(ends[-1]))
