"""Which columns of a shredded Variant a filter needs in one row group.

A test of a path asks the column that has the path, and the column ``value`` of what did not fit it. Where statistics
say that the latter is all null, it is not read.
"""

from __future__ import annotations

from pyparq.filters.computed import Computed
from pyparq.filters.leaf_tests import Test
from pyparq.filters.predicate import FALSE, Constant, Predicate, rewritten
from pyparq.filters.variants import InVariant
from pyparq.format.schema_node import Node
from pyparq.index.statistics import bounds_of_chunks
from pyparq.read.footers.open_file import OpenFile


def asks_variants(predicate: Predicate) -> bool:
    """Whether a test asks for a path of a Variant."""
    return any(isinstance(computed, InVariant) for computed in predicate.computed())


class NeededColumns:
    """The predicate of a file, for one row group after another."""

    def __init__(self, file: OpenFile, predicate: Predicate) -> None:
        self._file = file
        self._predicate = predicate
        self._asks = asks_variants(predicate)
        self._known: dict[int, Predicate] = {}

    def of(self, row_group: int) -> Predicate:
        """The predicate without tests of columns that are all null in the row group."""
        if not self._asks:
            return self._predicate
        found = self._known.get(row_group)
        if found is None:
            found = self._without(self._predicate, row_group)
            # A constant would need no column at all, and row groups without a matching row are pruned before.
            self._known[row_group] = found = self._predicate if isinstance(found, Constant) else found
        return found

    def _without(self, predicate: Predicate, row_group: int) -> Predicate:
        def change(test: Test | Computed) -> Predicate:
            if isinstance(test, Test):
                is_value = test.leaf.kind == "variant" and test.op in ("is_null", "is_not_null")
                if is_value and not test.asks_levels and self._is_all_null(test.node, row_group):
                    return Constant(test.op == "is_null")
                return test
            return FALSE if isinstance(test, InVariant) and self._is_all_null(test.value.node, row_group) else test

        return rewritten(predicate, change)

    def _is_all_null(self, node: Node, row_group: int) -> bool:
        meta = self._file.chunk(row_group, node).meta
        bounds = bounds_of_chunks(node.type, [meta], self._file.column_order(node), self._file.created_by)
        return node.max_def > 0 and node.max_rep == 0 and bool(bounds.all_null[0])
