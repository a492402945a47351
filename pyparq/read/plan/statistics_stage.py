"""The first stage of pruning: the statistics of all row groups at once, which the footer holds."""

from __future__ import annotations

from typing import Any

from pyparq.filters.computed import can_pass
from pyparq.filters.leaf_tests import Test, evaluate_bounds, is_box_test, may_intersect
from pyparq.format.schema_node import Node
from pyparq.index.bounds import Bounds
from pyparq.index.statistics import bounds_of_chunks, bounds_of_numbers
from pyparq.read.plan.candidates import Candidates
from pyparq.read.plan.selectivity import kept_shares


class StatisticsStage:
    """Drops row groups whose statistics say that no row can match."""

    def __init__(self, rows: Candidates) -> None:
        self._rows = rows

    def run(self) -> int:
        """Ask them, and drop row groups. Returns the number of column chunks that were asked."""
        bounds_of = self._rows.bounds
        for test in self._rows.tests:
            if test.node not in bounds_of:
                bounds_of[test.node] = self._chunk_bounds(test.node)
            bounds = bounds_of[test.node]
            some, every = evaluate_bounds(test, bounds)
            if is_box_test(test):
                some &= may_intersect(test, self._geospatial(test.node))
            self._rows.answers[test].take(some, every, kept_shares(test, bounds))
        for computed in self._rows.computed:
            for node in computed.nodes:
                if node not in bounds_of:
                    bounds_of[node] = self._chunk_bounds(node)
            self._rows.answers[computed].some = can_pass(computed, bounds_of)
        self._rows.select()
        return len(bounds_of) * len(self._rows.groups)

    def _geospatial(self, node: Node) -> list[Any]:
        """The GeospatialStatistics of a leaf, one entry per row group."""
        groups = self._rows.groups.row_groups
        return [self._rows.file.chunk(k, node).meta.geospatial_statistics for k in groups]

    def _chunk_bounds(self, node: Node) -> Bounds:
        """The bounds of a leaf from the statistics of its chunks, one entry per row group."""
        rows, file = self._rows, self._rows.file
        order, created_by = file.column_order(node), file.created_by
        rows.numbers(node)
        if rows.groups.all_placed(node) and not any(_asks_histograms(t) for t in rows.tests if t.node is node):
            return bounds_of_numbers(node.type, rows.groups.stack(node), file.footer.places, order, created_by)
        metas = [file.chunk(k, node).meta for k in rows.groups.row_groups]
        return bounds_of_chunks(node.type, metas, order, created_by)


def _asks_histograms(test: Test) -> bool:
    """Whether counts of levels can answer the test better than bounds."""
    return test.asks_levels or test.node.max_rep > 0
