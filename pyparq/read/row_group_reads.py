"""Reads the rows that pruning left: the filter columns first, then the other columns of the matching rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from pyparq.arrow.column import Column, bytes_held
from pyparq.arrow.column_operations import slice_column
from pyparq.arrow.table import Batch
from pyparq.errors import ChecksumError, CorruptFileError, CorruptIndexWarning, ParquetError, located, reading
from pyparq.filters import computed, leaf_tests
from pyparq.filters import predicate as predicates
from pyparq.filters.bound import FALSE, Constant, EntryLevels
from pyparq.format.schema_node import Node
from pyparq.index.row_ranges import RowMask, RowRanges, Rows, as_mask, rows_of
from pyparq.index.statistics import bounds_of_chunks
from pyparq.read.column_reads import ColumnReader, Wanted
from pyparq.read.decode.leaves import DecodedLeaf, assemble, gregorian_column, spelled_out
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.footers.schemas import Output, Projection
from pyparq.read.joined import COUNTED, JOINED, SMALL, Part, check_overlaps, joined_rows
from pyparq.read.plan.ahead import MOST_CHUNKS, EarlyReads
from pyparq.read.plan.candidates import Selection
from pyparq.runtime.messages import warn_caller
from pyparq.runtime.threads import map_tasks

T = TypeVar("T")

MASKED_FROM = 1 << 13
"""From this many tested rows on, the matching rows may be a bitmap. Below, they are ranges."""

MATCHED_FROM = 1 << 16
"""From this many values per row group (the mean of several) on, a filter is evaluated on several threads. Below, the
threads would spend more time waiting for Python's lock than working."""

ALONE = 8
"""The first row groups of a stream come one by one, whatever their size."""

JOINED_BYTES = 4 << 20
"""Maximum number of stored bytes of small row groups that a stream reads together."""

COUNTED_BYTES = 16 << 20
"""Maximum number of stored bytes of the filter columns of row groups whose matching rows are counted together."""

ASSEMBLE_FROM = 1 << 16
"""From this many rows on, nested columns are assembled on several threads."""


class NeededColumns:
    """The predicate of a file, for one row group after another."""

    def __init__(self, file: OpenFile, predicate: predicates.Predicate) -> None:
        self._file = file
        self._predicate = predicate
        self._asks = predicate.asks_variants
        self._known: dict[int, predicates.Predicate] = {}

    def of(self, row_group: int) -> predicates.Predicate:
        """The predicate without tests of columns that are all null in the row group."""
        if not self._asks:
            return self._predicate
        found = self._known.get(row_group)
        if found is None:
            found = self._without(self._predicate, row_group)
            # A constant would need no column at all, and row groups without a matching row are pruned before.
            self._known[row_group] = found = self._predicate if isinstance(found, Constant) else found
        return found

    def _without(self, predicate: predicates.Predicate, row_group: int) -> predicates.Predicate:
        def change(test: leaf_tests.Test | computed.Computed) -> predicates.Predicate:
            if isinstance(test, leaf_tests.Test):
                is_value = test.leaf.kind == "variant" and test.op in ("is_null", "is_not_null")
                if is_value and not test.asks_levels and self._is_all_null(test.node, row_group):
                    return Constant(test.op == "is_null")
                return test
            # The first column of a test of Variants holds their values.
            return FALSE if test.asks_variants and self._is_all_null(test.nodes[0], row_group) else test

        return predicates.rewritten(predicate, change)

    def _is_all_null(self, node: Node, row_group: int) -> bool:
        meta = self._file.chunk(row_group, node).meta
        bounds = bounds_of_chunks(node.type, [meta], self._file.column_order(node), self._file.created_by)
        return node.max_def > 0 and node.max_rep == 0 and bool(bounds.all_null[0])


class RowGroupReader:
    """Reads the columns of a projection where a predicate is true."""

    def __init__(
        self, file: OpenFile, columns: ColumnReader, projection: Projection, predicate: predicates.Predicate,
        within: Mapping[int, RowRanges],
    ) -> None:  # fmt: skip
        """``within``: the requested rows, for row groups of which only some are."""
        self._file = file
        self._columns = columns
        self._projection = projection
        self._predicate = predicate
        self._within = within
        self._needed_columns: NeededColumns | None = None
        self._looked_up: set[int] | None = None
        self.context = reading(file=file.fetcher.source.name)
        """A context in which errors name the file."""
        self.rows_of_groups: dict[int, int] = {}
        """Number of rows returned of each row group that was read."""

    @property
    def _needed(self) -> NeededColumns:
        if self._needed_columns is None:
            self._needed_columns = NeededColumns(self._file, self._predicate)
        return self._needed_columns

    @property
    def _by_entries(self) -> set[int]:
        """The columns whose values are looked up in a set or computed with. Comparing a number takes no longer than to
        look up the answer for its entry of a dictionary."""
        if self._looked_up is None:
            tests = self._predicate.tests()
            asked = [t for t in tests if isinstance(t, computed.Computed) or t.op in ("in", "not in")]
            self._looked_up = {column for test in asked for column in test.columns()}
        return self._looked_up

    def filter_columns(self, selection: Selection) -> list[Wanted]:
        """The filter columns that are still needed, if any row is undecided. Those that are in the result too are read
        for all rows that can match."""
        if isinstance(self._predicate, Constant):
            return []
        undecided = selection.maybe.without(selection.sure)
        if not undecided:
            return []
        leaves = self._file.tree.leaves
        wanted_too = {leaf.column for output in self._projection.outputs for leaf in output.leaves}
        return [
            Wanted(selection, leaves[c], selection.maybe, tested=True)
            if c in wanted_too
            else Wanted(selection, leaves[c], undecided, tested=True, by_entries=c in self._by_entries)
            for c in sorted(self._needed.of(selection.row_group).columns())
        ]

    def run(
        self, selections: list[Selection], outputs: list[Output] | None = None, limit: int | None = None
    ) -> list[Batch]:
        """One batch per selection or for several small ones, with at most ``limit`` rows. If a page contradicts its
        index, the rows are read again without the index."""
        with self.context:
            asked = self._projection.outputs if outputs is None else outputs
            batches = self._or_without_index(selections, self._read, asked, limit)
            hybrid = self._projection.hybrid if outputs is None else []
            return [self._gregorian(batch, hybrid) for batch in batches] if hybrid else batches

    def _gregorian(self, batch: Batch, places: list[int]) -> Batch:
        """The batch with the columns at ``places`` converted from the hybrid calendar to the Gregorian one."""
        columns = list(batch.columns)
        for k in places:
            output = self._projection.outputs[k]
            with located(column=output.field.name):
                columns[k] = gregorian_column(columns[k], output.shape, self._columns.account)
        return Batch(columns, batch.num_rows)

    def matches(self, selection: Selection) -> Rows:
        """The rows of a row group where the predicate is true. Only columns that it tests are read."""
        with self.context:
            return self._or_without_index([selection], self._matching)[0]

    def _matching(self, selections: list[Selection]) -> list[Rows]:
        first = [w for s in selections for w in self.filter_columns(s)]
        decoded = _by_place(first, self._columns.read(first))
        return [self._survivors(s, decoded) for s in selections]

    def _or_without_index(self, selections: list[Selection], read: Callable[..., list[T]], *how: Any) -> list[T]:
        used = self._columns.account.used
        try:
            return read(selections, *how)
        except ChecksumError:
            raise  # the page itself is damaged: reading it without the index would fail as well
        except CorruptFileError as error:
            if not any(map(_knows_pages, selections)):
                raise
            error.locate(file=self._columns.file.name)
            warn_caller(f"the page indexes cannot be read and are ignored: {error}", CorruptIndexWarning)
            self._columns.account.rewind(used)  # what the failed read held is gone
            return read([self._without_index(s) for s in selections], *how)

    def _without_index(self, selection: Selection) -> Selection:
        asked = self._within.get(selection.row_group)
        rows = RowRanges.all(selection.num_rows) if asked is None else asked
        sure = rows if isinstance(self._predicate, Constant) else RowRanges.none(selection.num_rows)
        plain = Selection(selection.row_group, rows, sure)
        plain.locations = {leaf.column: None for leaf in self._file.tree.leaves}
        return plain

    def check_overlaps(self, selections: Sequence[Selection]) -> None:
        """Called before the second of several row groups that are read one by one: see :func:`check_overlaps`."""
        check_overlaps(self._columns, selections, self._projection)

    def in_groups(
        self, selections: list[Selection], apart: bool = False, counted: bool = False
    ) -> Iterator[list[Selection]]:
        """The row groups one by one, or small ones together unless ``apart``. The first few come alone, and then more
        and more at a time: the caller may need no more. ``counted``: all rows are only counted, so that as many row
        groups come together as may be in memory."""
        alone, small, most_rows, most_bytes = (
            (0, COUNTED, COUNTED, COUNTED_BYTES) if counted else (ALONE, SMALL, JOINED, JOINED_BYTES)
        )
        few = apart or len(selections) <= max(alone, 1) or all(s.num_rows > small for s in selections)
        sizes = None if few else self._sizes(selections, [] if counted else self._projection.leaves.nodes)
        if sizes is None:
            yield from ([s] for s in selections)
            return
        yield from ([s] for s in selections[:alone])
        # The number doubles. Who takes one batch waits for one row group; who takes all seldom pays the cost of a read.
        part, rows, stored, most = list[Selection](), 0, 0, alone or len(selections)
        for selection, size in zip(selections[alone:], sizes[alone:], strict=True):
            if part and (len(part) == most or rows + selection.num_rows > most_rows or stored + size > most_bytes):
                yield part
                part, rows, stored, most = [], 0, 0, 2 * most
            part.append(selection)
            rows, stored = rows + selection.num_rows, stored + size
        yield part

    def _sizes(self, selections: list[Selection], outputs: Sequence[Node]) -> list[int] | None:
        """The stored bytes to read of each row group. ``None`` if they are to be read one by one."""
        if self._columns.prefetch is not None or not self._columns.joins:
            return None
        tested = (self._file.tree.leaves[column] for column in self._predicate.columns())
        nodes = list(dict.fromkeys((*outputs, *tested)))
        try:
            table = self._file.chunk_table([s.row_group for s in selections], nodes) if nodes else None
        except ParquetError:  # The error is raised again when that row group is read.
            return None
        sizes: list[int] | None = None if table is None else table.size.sum(axis=1).tolist()
        return sizes

    def _joined(self, selections: list[Selection], outputs: list[Output], limit: int | None) -> list[Batch] | None:
        """Several small row groups per batch. ``None`` if the selections hold other row groups."""
        parts = joined_rows(self._columns, selections, self._predicate, self._projection, not outputs, limit)
        if parts is None:
            return None
        for s in selections:
            self.rows_of_groups[s.row_group] = 0
        for part in parts:
            for k, count in zip(part.places, part.counts.tolist(), strict=True):
                self.rows_of_groups[selections[k].row_group] = count
        if self._columns.trace is not None:
            nodes = self._projection.leaves.nodes if outputs else []
            self._columns.trace.note_whole([s.row_group for s in selections], nodes)
        return [self._joined_batch(part, selections[part.places[0]], outputs) for part in parts]

    def _joined_batch(self, part: Part, group: Selection, outputs: list[Output]) -> Batch:
        if self._projection.is_flat:
            return Batch([part.columns[output.leaves[0].column] for output in outputs], part.num_rows)
        decoded = {(group.row_group, column): leaf for column, leaf in part.leaves.items()}
        rows = RowRanges.all(part.num_rows)
        return Batch([self._assemble(output, group, rows, decoded) for output in outputs], part.num_rows)

    def _read(self, selections: list[Selection], outputs: list[Output], limit: int | None = None) -> list[Batch]:
        if (found := self._joined(selections, outputs, limit)) is not None:
            return found
        first = [w for s in selections for w in self.filter_columns(s)]
        leaves = [leaf for output in outputs for leaf in output.leaves]
        self._file.look_up([s.row_group for s in selections], [*{w.node: None for w in first}, *leaves])
        beside = self._begin_beside(selections, first, outputs, limit)
        decoded = _by_place(first, self._columns.read(first))
        matches = self._file.options.use_threads and sum(w.count for w in first) >= MATCHED_FROM * len(selections)
        kept = map_tasks(lambda s: self._survivors(s, decoded), selections, matches)
        if limit is not None:
            kept = _within_limit(kept, limit)
        self.rows_of_groups |= {s.row_group: rows.count for s, rows in zip(selections, kept, strict=True)}
        # The other columns come last: by now it is known which of their pages hold a matching row.
        rest = [
            Wanted.at(s, leaf, rows)
            for s, rows in zip(selections, kept, strict=True)
            if rows
            for output in outputs
            for leaf in output.leaves
            if (s.row_group, leaf.column) not in decoded
        ]
        decoded |= _by_place(rest, self._columns.read(rest))
        if beside is not None:
            beside.count_use(any(kept))
            beside.release()
        parts = [(s, rows) for s, rows in zip(selections, kept, strict=True) if rows]
        places = [(output, s, rows) for s, rows in parts for output in outputs]
        columns = iter(
            map_tasks(
                lambda place: self._assemble(*place, decoded), places, self._assembles_on_threads(kept, bool(first))
            )
        )
        return [Batch([next(columns) for _ in outputs], rows.count) for _, rows in parts]

    def _begin_beside(
        self, selections: list[Selection], first: list[Wanted], outputs: list[Output], limit: int | None
    ) -> EarlyReads | None:
        """Request what the other columns will need while the filter columns are read."""
        if not first or not self._file.options.use_threads or not self._file.fetcher.is_slow:
            return None
        read = {w.node.column for w in first}
        nodes = [leaf for output in outputs for leaf in output.leaves if leaf.column not in read]
        if not 0 < len(nodes) * len(selections) <= MOST_CHUNKS:
            return None
        beside = EarlyReads(self._file, self._columns.spare)
        beside.beside_filter(selections, nodes, with_pages=limit is None)
        return beside

    def _assembles_on_threads(self, kept: Sequence[Rows], filtered: bool) -> bool:
        """Whether to assemble columns on threads. Making lists and structs, or selecting rows, pays from some size on.
        Other columns are handed on as they are."""
        works = filtered or any(output.shape.kind != "leaf" for output in self._projection.outputs)
        return works and self._file.options.use_threads and sum(rows.count for rows in kept) >= ASSEMBLE_FROM

    def _survivors(self, selection: Selection, decoded: dict[tuple[int, int], DecodedLeaf]) -> Rows:
        """The rows where the predicate is true."""
        undecided = selection.maybe.without(selection.sure)
        if not undecided:
            return selection.sure
        predicate = self._needed.of(selection.row_group)
        leaves = {c: decoded[selection.row_group, c] for c in predicate.columns()}
        # Columns of the result were read for all rows that can match, the others for the undecided rows only.
        rows = next(iter(leaves.values())).rows
        if not isinstance(rows, RowRanges) or any(leaf.rows != rows for leaf in leaves.values()):
            rows = undecided
            leaves = {c: self._select(leaf, undecided) for c, leaf in leaves.items()}
        columns = {c: leaf.column for c, leaf in leaves.items()}
        levels = {c: EntryLevels(leaf.def_levels, leaf.rep_levels, leaf.node.slot_level) for c, leaf in leaves.items()}
        mask = self._where_true(predicate, columns, levels)
        if rows.count < MASKED_FROM:
            return rows.select(mask.bools()) & selection.maybe | selection.sure
        found = mask.spread(rows)
        if not selection.maybe.is_all:
            found &= as_mask(selection.maybe)
        return rows_of(found | as_mask(selection.sure) if selection.sure else found)

    def _where_true(
        self, predicate: predicates.Predicate, columns: Mapping[int, Column], levels: Mapping[int, EntryLevels]
    ) -> RowMask:
        """The rows where the predicate is true. Many texts are tested in slices, on several threads; few different ones
        are tested once each."""
        count = next(iter(columns.values())).length
        repeated = any(c.codes is not None or c.type.dictionary is not None for c in columns.values())
        nested = any(level.definition is not None or level.repetition is not None for level in levels.values())
        texts = any(c.type.is_binary_like for c in columns.values())
        if count < 2 * MATCHED_FROM or repeated or nested or not texts or not self._file.options.use_threads:
            return predicate.rows(columns, levels=levels)

        def of_slice(start: int) -> RowMask:
            stop = min(start + MATCHED_FROM, count)
            some = {k: slice_column(c, start, stop) for k, c in columns.items()}
            return predicate.rows(some, levels=levels)  # which hold none

        masks = map_tasks(of_slice, range(0, count, MATCHED_FROM), True)
        return RowMask.of_words(np.concatenate([mask.words for mask in masks]), count)

    def _select(self, leaf: DecodedLeaf, rows: Rows) -> DecodedLeaf:
        """The leaf at some of its rows. Its memory is counted."""
        if rows == leaf.rows:
            return leaf
        held = bytes_held(leaf.column) * rows.count // max(leaf.rows.count, 1)
        self._columns.account.take(held + 8 * rows.count)
        return leaf.select(rows)

    def _values(self, leaf: DecodedLeaf, rows: Rows) -> DecodedLeaf:
        """The leaf at some of its rows. Codes of a leaf that was only tested become values."""
        leaf = self._select(leaf, rows)
        if leaf.column.type.dictionary is None or self._file.fields.is_dictionary(leaf.node):
            return leaf
        return replace(
            leaf, column=spelled_out(leaf.column, self._columns.account, self._file.options.limits.max_column)
        )

    def _assemble(
        self, output: Output, selection: Selection, rows: Rows, decoded: dict[tuple[int, int], DecodedLeaf]
    ) -> Column:
        leaves = {leaf.column: self._values(decoded[selection.row_group, leaf.column], rows) for leaf in output.leaves}
        if output.shape.kind == "leaf":
            return leaves[output.leaves[0].column].column
        with located(row_group=selection.row_group, column=output.field.name):
            self._columns.account.take(8 * sum(leaf.num_levels for leaf in leaves.values()))
            return assemble(output.shape, output.stored, leaves, rows.count)


def _within_limit(kept: Sequence[Rows], limit: int) -> list[Rows]:
    """The first ``limit`` rows."""
    found: list[Rows] = []
    for rows in kept:
        found.append(rows.head(limit))
        limit -= found[-1].count
    return found


def _knows_pages(selection: Selection) -> bool:
    """Whether any column is read by page locations. These may be wrong."""
    planned = selection.planned or {}
    return any(known is not None for known in (*selection.locations.values(), *(r.pages for r in planned.values())))


def _by_place(wanted: Sequence[Wanted], decoded: Sequence[DecodedLeaf]) -> dict[tuple[int, int], DecodedLeaf]:
    return {(w.selection.row_group, w.node.column): d for w, d in zip(wanted, decoded, strict=True)}
