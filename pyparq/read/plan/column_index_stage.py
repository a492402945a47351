"""The stage of pruning that asks page indexes which pages can match."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pyparq.filters.computed import Computed, can_pass
from pyparq.filters.leaf_tests import Test, evaluate_bounds
from pyparq.index.bounds import Bounds
from pyparq.index.page_index import PageLocations
from pyparq.read.footers.chunk_table import Mask
from pyparq.read.plan.candidates import Candidates
from pyparq.read.plan.page_indexes import read_page_indexes
from pyparq.read.plan.row_groups import Selection


class ColumnIndexStage:
    """Narrows row groups to the rows of those pages whose bounds let a test pass."""

    def __init__(self, rows: Candidates) -> None:
        self._rows = rows

    def _have_page_index(self, test: Test) -> Mask | None:
        numbers = self._rows.numbers(test.node)
        mask: Mask = (numbers.column_index_offset != 0) & (numbers.offset_index_offset != 0)
        return mask

    def run(self) -> None:
        """Ask the page indexes of the tests and row groups that are open."""
        asked = self._rows.open_questions(self._have_page_index)
        computed = self._rows.computed_questions()
        wanted = [chunk for _, _, chunk in asked] + [chunk for _, _, chunks in computed for chunk in chunks]
        self._rows.note(wanted)
        chunks = list({(c.row_group, c.node.column): c for c in wanted}.values())
        indexes = read_page_indexes(self._rows.file, chunks)
        for test, selection, chunk in asked:
            index = indexes.get((chunk.row_group, chunk.node.column))
            if index is None:
                continue
            bounds, locations = index
            selection.locations[chunk.node.column] = locations
            some, every = evaluate_bounds(test, bounds)
            self._rows.answers[test].narrow(selection, locations.first_rows, some, every)
            self._rows.changed.add(selection.place)

        for value_test, selection, own in computed:
            found = [indexes.get((chunk.row_group, chunk.node.column)) for chunk in own]
            self._narrow_computed(value_test, selection, [index for index in found if index is not None])

    def _narrow_computed(
        self, test: Computed, selection: Selection, indexes: Sequence[tuple[Bounds, PageLocations]]
    ) -> None:
        """Narrow by the pages of several columns, which need not end at the same rows: their parts do."""
        if len(indexes) < len(test.nodes):
            return
        starts = np.unique(np.concatenate([locations.first_rows for _, locations in indexes]))
        bounds = {}
        for node, (of_pages, locations) in zip(test.nodes, indexes, strict=True):
            bounds[node] = of_pages.at(np.searchsorted(locations.first_rows, starts, "right") - 1)
            selection.locations[node.column] = locations
        some = can_pass(test, bounds)
        if not some.all():
            self._rows.answers[test].narrow(selection, starts, some, np.zeros(len(some), np.bool_))
            self._rows.changed.add(selection.place)

    def page_counts(self, asked: list[Selection]) -> tuple[int, int]:
        """The pages of the chunks whose index was asked: their number, and the number of pages that can still match."""
        before = after = 0
        selections = {selection.row_group: selection for selection in asked}
        for row_group, column in self._rows.asked:
            selection = selections[row_group]
            locations = selection.locations.get(column)
            if locations is not None:
                before += len(locations)
                after += len(selection.maybe.pages(locations.first_rows))
        return before, after
