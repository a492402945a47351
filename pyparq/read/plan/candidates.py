"""The rows that can still match while a scan is pruned: answers of the tests, combined by the predicate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from pyparq.filters.computed import Computed
from pyparq.filters.leaf_tests import Test
from pyparq.filters.predicate import And, Constant, Predicate
from pyparq.format.chunk_numbers import ChunkNumbers
from pyparq.format.schema_node import Node
from pyparq.index.bounds import Bounds
from pyparq.index.row_ranges import RowRanges
from pyparq.read.footers.chunk_table import Mask
from pyparq.read.footers.column_chunk import Chunk
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.plan.row_groups import Answers, RowGroups, Selection

Question = tuple[Test, Selection, Chunk]
"""A test of a row group, and the column chunk whose index may answer it."""

ComputedQuestion = tuple[Computed, Selection, list[Chunk]]
"""A test of computed values, a row group, and the chunks of the columns that it takes."""


class Candidates:
    """What all stages of pruning share. Each stage answers tests; :meth:`settle` draws the conclusion."""

    def __init__(
        self, file: OpenFile, predicate: Predicate, row_groups: Sequence[int], within: Mapping[int, RowRanges]
    ) -> None:
        """``within``: the requested rows, for row groups of which only some are."""
        self.file = file
        self.options = file.options
        self.predicate = predicate
        self.tests = list(dict.fromkeys(predicate.tests()))
        self.selections: list[Selection] = []
        """The row groups that are left."""
        self.groups = RowGroups(file, row_groups, within)
        self.computed = list(predicate.computed())
        """The tests of computed values. Only bounds answer them."""
        # Tests that occur twice in the predicate share their answers.
        self.answers: dict[Test | Computed, Answers] = {
            test: Answers(len(row_groups)) for test in (*self.tests, *self.computed)
        }
        self.bounds: dict[Node, Bounds] = {}
        """The statistics of all row groups, for each tested leaf."""
        self.asked: set[tuple[int, int]] = set()
        """(row group, leaf column) of the indexes that the current stage has asked."""
        self.changed: set[int] = set()
        """Positions of row groups for which the current stage has learned something."""
        self._within = within
        self._left: int | None = None
        """Rows of the selections, once counted."""

    def select(self) -> None:
        """Drop the row groups in which no row can match. The stages that follow look at the others one by one."""
        maybe, sure = self._of_whole_groups(self.predicate)
        self.selections = self.groups.selections(maybe, sure)

    def rows_left(self) -> int:
        if self._left is None:
            self._left = sum([s.maybe.count for s in self.selections])
        return self._left

    def note(self, chunks: Sequence[Chunk]) -> None:
        """Note that the indexes of these chunks are asked in this stage."""
        self.asked.update((chunk.row_group, chunk.node.column) for chunk in chunks)

    def drop(self, test: Test, selection: Selection) -> None:
        self.answers[test].drop(selection)
        self.changed.add(selection.place)

    def open_questions(self, having: Callable[[Test], Mask | None] | None = None) -> list[Question]:
        """(test, row group, chunk) wherever an index could still change the result. ``having``: gives for a test a mask
        of the row groups to ask about (``None``: none of them)."""
        masks: list[tuple[Test, list[bool]]] = []
        for test in self.tests:
            wanted = None if having is None else having(test)
            if having is None or wanted is not None:
                is_open = self.answers[test].is_open
                mask = (is_open if wanted is None else is_open & wanted).tolist()
                if any(mask):
                    masks.append((test, mask))
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
            has_both = np.ones(len(self.groups), np.bool_)
            for node in test.nodes:
                numbers = self.numbers(node)
                has_both &= (numbers.column_index_offset != 0) & (numbers.offset_index_offset != 0)
            if test.has_bounds:
                found += [
                    (test, s, [self.file.chunk(s.row_group, node) for node in test.nodes])
                    for s in self.selections
                    if has_both[s.place] and s.sure.count != s.maybe.count
                ]
        return found

    def numbers(self, node: Node) -> ChunkNumbers:
        """The numbers of a tested leaf's chunks in all row groups."""
        nodes = [test.node for test in self.tests]
        if self.computed:
            nodes += [other for computed in self.computed for other in computed.nodes]
        return self.groups.numbers(nodes, node)

    def settle(self) -> None:
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

    def _of_whole_groups(self, predicate: Predicate) -> tuple[Mask, Mask]:
        """Two masks over row groups: those in which some row can match, and those in which all rows do."""
        if isinstance(predicate, (Test, Computed)):
            answers = self.answers[predicate]
            return answers.some, answers.every
        if isinstance(predicate, Constant):
            every = np.full(len(self.groups), predicate.value)
            return every, every
        maybe, sure = zip(*(self._of_whole_groups(child) for child in predicate.children), strict=True)
        join = np.logical_and if isinstance(predicate, And) else np.logical_or
        return join.reduce(maybe), join.reduce(sure)

    def _combine(self, predicate: Predicate, selection: Selection) -> tuple[RowRanges, RowRanges]:
        if isinstance(predicate, (Test, Computed)):
            return self.answers[predicate].rows(selection)
        if isinstance(predicate, Constant):
            rows, none = RowRanges.all(selection.num_rows), RowRanges.none(selection.num_rows)
            return (rows, rows) if predicate.value else (none, none)
        maybe, sure = self._combine(predicate.children[0], selection)
        for child in predicate.children[1:]:
            other_maybe, other_sure = self._combine(child, selection)
            if isinstance(predicate, And):
                maybe, sure = maybe & other_maybe, sure & other_sure
            else:
                maybe, sure = maybe | other_maybe, sure | other_sure
        return maybe, sure
