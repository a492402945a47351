"""The row groups of a scan while they are pruned: what is known of all of them as arrays, the answers of the tests, and
the rows that can still match. And what the scan notes of it: the cost of each stage for ``explain()``, and for maps the
rows left and all reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from pyparq.filters import computed, leaf_tests
from pyparq.filters import predicate as predicates
from pyparq.filters.bound import Constant
from pyparq.format.chunk_numbers import ALL_DICTIONARY, ChunkNumbers
from pyparq.format.leaf_values import Values
from pyparq.format.schema_node import Node
from pyparq.index.page_index import PageLocations
from pyparq.index.row_ranges import Int64Array, RowRanges
from pyparq.index.statistics import Bounds
from pyparq.io.byte_ranges import Range
from pyparq.read.footers.chunks import Chunk, ChunkTable, Mask
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.plan.page_reads import ColumnRead


@dataclass(slots=True)
class StageReport:
    """The effect and the cost of one stage: row groups, rows and pages before and after, requests and bytes."""

    name: str
    asked: int
    """Indexes asked (chunks)."""
    row_groups_before: int
    row_groups_after: int
    rows_before: int
    rows_after: int
    pages_before: int
    pages_after: int
    requests: int
    bytes: int


@dataclass(frozen=True, slots=True)
class StageTrace:
    """One stage of pruning."""

    name: str
    asked: frozenset[tuple[int, int]]
    """(row group, leaf column) of the indexes that were asked. Statistics cost nothing, and are not listed."""
    left: dict[int, RowRanges]
    """The rows that can still match, by row group. Row groups that are ruled out are missing."""


@dataclass(slots=True)
class Trace:
    """Everything that a scan notes of itself."""

    stages: list[StageTrace] = field(default_factory=list)
    reads: list[ColumnRead] = field(default_factory=list)
    """The column chunks, or pages of them, that were decoded."""
    whole: set[tuple[int, int]] = field(default_factory=set)
    """(row group, leaf column) of further chunks that were decoded in full."""
    requests: list[Range] = field(default_factory=list)
    """All requests to the source, without those that opened the file."""

    def note_stage(self, name: str, asked: Set[tuple[int, int]], left: dict[int, RowRanges]) -> None:
        """Note the rows that a stage has left, by row group."""
        self.stages.append(StageTrace(name, frozenset(asked), left))

    def note_whole(self, row_groups: Iterable[int], nodes: Iterable[Node]) -> None:
        """Note row groups of which all pages of some columns are decoded."""
        leaves = list(nodes)
        self.whole |= {(k, node.column) for k in row_groups for node in leaves}


@dataclass(slots=True)
class Selection:
    """The rows of one row group that can still match, and everything that was read to find out."""

    row_group: int
    maybe: RowRanges
    sure: RowRanges
    dictionaries: dict[int, Values] = field(default_factory=dict)
    """Decoded dictionaries by leaf column."""
    locations: dict[int, PageLocations | None] = field(default_factory=dict)
    """Page locations by leaf column. ``None`` for a column without a usable OffsetIndex."""
    planned: Mapping[int, ColumnRead] | None = None
    """The reads of a plan, by leaf column. With them, no index is asked."""
    narrows: bool = False
    """Whether few of the rows are expected to match. Page locations are then likely to be needed."""
    place: int = 0
    """Its number among the row groups that are pruned together."""

    @property
    def num_rows(self) -> int:
        return self.maybe.num_rows


class Answers:
    """The answers to one test: for whole row groups, and for row ranges where pages were asked."""

    __slots__ = ("_rows", "every", "is_open", "some")

    def __init__(self, count: int) -> None:
        self.some = np.ones(count, np.bool_)
        """Whether a row of the row group can pass."""
        self.every = np.zeros(count, np.bool_)
        """Whether all rows do."""
        self.is_open = np.ones(count, np.bool_)
        """Whether an index could tell more, and is expected to."""
        self._rows: dict[int, tuple[RowRanges, RowRanges]] = {}

    def take(self, some: Mask, every: Mask, may_narrow: Mask) -> None:
        """Take the answers of the row groups' statistics, and whether an index is likely to rule out more."""
        self.some, self.every = some.copy(), every & some
        self.is_open = some & ~every & may_narrow

    def drop(self, selection: Selection) -> None:
        """Note that no row of a row group passes."""
        k = selection.place
        self.some[k] = self.is_open[k] = False
        _, sure = self.rows(selection)
        self._rows[k] = RowRanges.none(selection.num_rows), sure

    def drop_all(self, places: Sequence[int]) -> None:
        """Note that no row passes in any of these row groups. No page of theirs was asked yet."""
        self.some[places] = self.is_open[places] = False

    def narrow(self, selection: Selection, first_rows: Int64Array, some: Mask, every: Mask) -> None:
        """Take the answers of a ColumnIndex, page by page."""
        maybe, sure = self.rows(selection)
        maybe &= RowRanges.from_pages(first_rows, np.flatnonzero(some), selection.num_rows)
        if every.any():
            sure |= RowRanges.from_pages(first_rows, np.flatnonzero(every), selection.num_rows)
        k = selection.place
        self._rows[k] = maybe, sure
        self.some[k] = bool(maybe)
        self.is_open[k] &= bool(maybe) and not sure.is_all

    def rows(self, selection: Selection) -> tuple[RowRanges, RowRanges]:
        """The rows of a row group that can pass, and those that certainly pass."""
        known = self._rows.get(selection.place)
        if known is not None:
            return known
        rows, none = RowRanges.all(selection.num_rows), RowRanges.none(selection.num_rows)
        return rows if self.some[selection.place] else none, rows if self.every[selection.place] else none


Question: TypeAlias = "tuple[leaf_tests.Test, Selection, Chunk]"
"""A test of a row group, and the column chunk whose index may answer it."""

ComputedQuestion: TypeAlias = "tuple[computed.Computed, Selection, list[Chunk]]"
"""A test of computed values, a row group, and the chunks of the columns that it takes."""


class _Numbers(dict[Node, ChunkNumbers]):
    """The numbers of a tested leaf's chunks in all row groups, once they are asked for."""

    def __init__(self, rows: Candidates) -> None:
        self._rows = rows

    def __missing__(self, node: Node) -> ChunkNumbers:
        found = self[node] = self._rows.table.of_column(self._rows.places[node.column])
        return found


class Candidates:
    """What all stages of pruning share. Each stage answers tests; :meth:`narrow_selections` draws the conclusion."""

    def __init__(
        self, file: OpenFile, predicate: predicates.Predicate, row_groups: Sequence[int],
        within: Mapping[int, RowRanges], columns: Set[int],
    ) -> None:  # fmt: skip
        """``within``: the requested rows, for row groups of which only some are. ``columns``: those that will be read
        for the filter. Tests of others only have bounds that are worth it."""
        self.file = file
        self.options = file.options
        self.predicate = predicate
        every = dict.fromkeys(predicate.tests())
        self.tests = [test for test in every if isinstance(test, leaf_tests.Test)]
        self.computed = [test for test in every if isinstance(test, computed.Computed)]
        """The tests of computed values. Only bounds answer them."""
        self.row_groups = row_groups
        self.num_rows = file.rows_of(np.array(row_groups, np.int64))
        self.selections: list[Selection] = []
        """The row groups that are left."""
        # Tests that occur twice in the predicate share their answers.
        self.answers: dict[leaf_tests.Test | computed.Computed, Answers] = {
            test: Answers(len(row_groups)) for test in every
        }
        self.bounds: dict[Node, Bounds] = {}
        """The statistics of all row groups, for each tested leaf."""
        self.asked: set[tuple[int, int]] = set()
        """(row group, leaf column) of the indexes that the current stage has asked."""
        self.changed: set[int] = set()
        """Positions of row groups for which the current stage has learned something."""
        self._within = within
        self.columns = columns
        self._left: int | None = None
        """Rows of the selections, once counted."""
        nodes = dict.fromkeys([test.node for test in self.tests])
        nodes |= dict.fromkeys([node for computed in self.computed for node in computed.nodes])
        self.places = {node.column: j for j, node in enumerate(nodes)}
        """The positions of the tested leaves in :attr:`table`."""
        self._nodes = list(nodes)
        self._table: ChunkTable | None = None
        self.numbers = _Numbers(self)

    @property
    def table(self) -> ChunkTable:
        """The chunks of all tested leaves in all row groups."""
        if self._table is None:
            self._table = self.file.chunk_table(self.row_groups, self._nodes)
        return self._table

    @property
    def num_asked(self) -> int:
        """Number of requested rows."""
        if not self._within:
            return int(self.num_rows.sum())
        return sum(self._within[k].count if k in self._within else int(n)
                   for k, n in zip(self.row_groups, self.num_rows, strict=True))  # fmt: skip

    def select(self) -> None:
        """Drop the row groups in which no row can match. The stages that follow look at the others one by one. Equal
        sets of rows are shared."""
        maybe, sure = self._of_whole_groups(self.predicate)
        self.selections = []
        whole: dict[int, tuple[RowRanges, RowRanges]] = {}
        kept = np.flatnonzero(maybe & (self.num_rows > 0))
        for k, num_rows, every in zip(kept.tolist(), self.num_rows[kept].tolist(), sure[kept].tolist(), strict=True):
            sets = whole.get(num_rows)
            if sets is None:
                sets = whole[num_rows] = RowRanges.all(num_rows), RowRanges.none(num_rows)
            rows = self._within.get(self.row_groups[k], sets[0])
            if rows.count:
                self.selections.append(Selection(self.row_groups[k], rows, rows if every else sets[1], place=k))

    def rows_by_group(self) -> dict[int, RowRanges]:
        """The rows that can still match. Row groups that are ruled out are missing."""
        return {s.row_group: s.maybe for s in self.selections}

    def rows_left(self) -> int:
        if self._left is None:
            self._left = sum([s.maybe.count for s in self.selections])
        return self._left

    def note(self, chunks: Sequence[Chunk]) -> None:
        """Note that the indexes of these chunks are asked in this stage."""
        self.asked.update((chunk.row_group, chunk.node.column) for chunk in chunks)

    def drop(self, test: leaf_tests.Test, selection: Selection) -> None:
        self.answers[test].drop(selection)
        self.changed.add(selection.place)

    # ---- which indexes there are: for a test a mask of the row groups to ask about

    def with_filters(self, test: leaf_tests.Test) -> Mask:
        """The chunks that have a Bloom filter."""
        return np.asarray(self.numbers[test.node].bloom_filter_offset != 0)

    def with_dictionaries(self, test: leaf_tests.Test) -> Mask:
        """The chunks whose data pages all use the dictionary, and whose dictionary may hold no matching value. A chunk
        whose bound itself matches needs no such question."""
        if test.op not in leaf_tests.VALUE_OPS or test.node.column not in self.columns:
            return np.zeros(len(self.row_groups), np.bool_)
        mask: Mask = (self.numbers[test.node].flags & ALL_DICTIONARY) != 0
        bounds = self.bounds.get(test.node)
        return mask if bounds is None or not mask.any() else mask & ~test.found_at_bounds(bounds)

    def with_page_indexes(self, test: leaf_tests.Test) -> Mask:
        """The chunks with both page indexes. The statistics of a chunk of one page say what its index says."""
        numbers, bounds = self.numbers[test.node], self.bounds.get(test.node)
        mask: Mask = (numbers.column_index_offset != 0) & (numbers.offset_index_offset != 0)
        return mask if bounds is None else mask & ((numbers.data_pages != 1) | ~bounds.has_bounds)

    def may_learn(self, having: Callable[[leaf_tests.Test], Mask]) -> bool:
        """Whether an open test has any of these indexes. Most files have few kinds: the others need no stage."""
        return any((self.answers[test].is_open & having(test)).any() for test in self.tests)

    def open_questions(self, having: Callable[[leaf_tests.Test], Mask] | None = None) -> list[Question]:
        """(test, row group, chunk) wherever an index could still change the result. ``having``: gives for a test a mask
        of the row groups to ask about."""
        masks: list[tuple[leaf_tests.Test, list[bool]]] = []
        for test in self.tests:
            mask = self.answers[test].is_open
            if having is not None:
                mask = mask & having(test)
            if mask.any():
                masks.append((test, mask.tolist()))
        if not masks:
            return []
        chunk = self.file.chunk
        return [
            (test, s, chunk(s.row_group, test.node))
            for s in self.selections
            if s.sure.count != s.maybe.count
            for test, mask in masks
            if mask[s.place]
        ]

    def computed_questions(self) -> list[ComputedQuestion]:
        """(test, row group, chunks) for tests of computed values that page indexes may answer: all of their columns
        have both indexes there."""
        found = list[ComputedQuestion]()
        for test in self.computed:
            if test.has_bounds:
                has_both = np.ones(len(self.row_groups), np.bool_)
                for node in test.nodes:
                    numbers = self.numbers[node]
                    has_both &= (numbers.column_index_offset != 0) & (numbers.offset_index_offset != 0)
                found += [
                    (test, s, [self.file.chunk(s.row_group, node) for node in test.nodes])
                    for s in self.selections
                    if has_both[s.place] and s.sure.count != s.maybe.count
                ]
        return found

    def narrow_selections(self) -> None:
        """Combine the rows of the tests by the predicate, where a stage has learned something. Drop row groups without
        any row."""
        if not self.changed:
            return
        left = list[Selection]()
        possible = self._of_whole_groups(self.predicate)[0].tolist()
        for selection in self.selections:
            if not possible[selection.place]:
                continue
            if selection.place in self.changed:
                selection.maybe, selection.sure = self._combine(self.predicate, selection)
                inside = self._within.get(selection.row_group)
                if inside is not None:
                    selection.maybe, selection.sure = selection.maybe & inside, selection.sure & inside
                if not selection.maybe:
                    continue
            left.append(selection)
        self.changed.clear()
        self._left = None
        self.selections = left

    def _of_whole_groups(self, predicate: predicates.Predicate) -> tuple[Mask, Mask]:
        """Two masks over row groups: those in which some row can match, and those in which all rows do."""
        if isinstance(predicate, (leaf_tests.Test, computed.Computed)):
            answers = self.answers[predicate]
            return answers.some, answers.every
        if isinstance(predicate, Constant):
            every = np.full(len(self.row_groups), predicate.value)
            return every, every
        maybe, sure = zip(*(self._of_whole_groups(child) for child in predicate.children), strict=True)
        join = np.logical_and if isinstance(predicate, predicates.And) else np.logical_or
        return join.reduce(maybe), join.reduce(sure)

    def _combine(self, predicate: predicates.Predicate, selection: Selection) -> tuple[RowRanges, RowRanges]:
        if isinstance(predicate, (leaf_tests.Test, computed.Computed)):
            return self.answers[predicate].rows(selection)
        if isinstance(predicate, Constant):
            rows, none = RowRanges.all(selection.num_rows), RowRanges.none(selection.num_rows)
            return (rows, rows) if predicate.value else (none, none)
        maybe, sure = self._combine(predicate.children[0], selection)
        for child in predicate.children[1:]:
            other_maybe, other_sure = self._combine(child, selection)
            if isinstance(predicate, predicates.And):
                maybe, sure = maybe & other_maybe, sure & other_sure
            else:
                maybe, sure = maybe | other_maybe, sure | other_sure
        return maybe, sure
