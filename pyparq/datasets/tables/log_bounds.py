"""Rules out files of a table by the statistics in its log, before any of them is opened."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.datasets.partitions import Partitions
from pyparq.datasets.tables.table_files import Int64Array, Stated, TableFiles
from pyparq.errors import ParquetError
from pyparq.filters.computed import Computed
from pyparq.filters.leaf_tests import Test, domain_dtype, evaluate_bounds
from pyparq.filters.literal import locate
from pyparq.filters.predicate import And, Constant, Predicate
from pyparq.format.schema_node import Node
from pyparq.format.types import LeafType
from pyparq.index.bounds import Bounds

Mask = npt.NDArray[np.bool_]


class FileBounds:
    """The bounds of all files of a table, asked column by column."""

    def __init__(self, table: TableFiles, partitions: Partitions) -> None:
        self._table = table
        self._partitions = partitions
        self._places = {field.name: k for k, field in enumerate(partitions.fields)}
        self._known: dict[Node, Bounds | None] = {}

    def may_match(self, predicate: Predicate) -> Mask:
        """The files in which a row may match. ``predicate`` is bound to the table's schema."""
        count = len(self._table.num_rows)
        if isinstance(predicate, Test):
            bounds = self._of(predicate.node)
            return np.ones(count, bool) if bounds is None else evaluate_bounds(predicate, bounds).some
        if isinstance(predicate, (Constant, Computed)):
            return np.full(count, not isinstance(predicate, Constant) or predicate.value)
        join = np.logical_and if isinstance(predicate, And) else np.logical_or
        return np.asarray(join.reduce([self.may_match(child) for child in predicate.children]), bool)

    def _of(self, node: Node) -> Bounds | None:
        if node not in self._known:
            place = self._places.get(node.path[0])
            stated = self._table.statistics.stated(node) if place is None else _of_partition(self._partitions, place)
            unusable = stated is None or node.max_rep > 0
            self._known[node] = None if unusable else _as_bounds(stated, node, self._table.num_rows)  # type: ignore[arg-type]
        return self._known[node]


def _of_partition(partitions: Partitions, place: int) -> Stated:
    distinct = partitions.columns[place].to_pylist()
    each = [distinct[k] for k in partitions.of_file.tolist()]
    return Stated(each, each, np.full(len(each), -1, np.int64), exact=True)


def _as_bounds(stated: Stated, node: Node, num_rows: Int64Array) -> Bounds:
    """The statements as bounds in the leaf's comparable domain."""
    leaf, count = node.type, len(num_rows)
    mins, maxs = (np.zeros(count, domain_dtype(leaf)) for _ in range(2))
    known = np.zeros(count, bool)
    for k, (low, high) in enumerate(zip(stated.lows, stated.highs, strict=True)):
        found = None if low is None or high is None else _edges(leaf, low, high)
        if found is not None:
            mins[k], maxs[k] = found
            known[k] = True
    nulls, unknown = stated.null_counts, np.full(count, -1, np.int64)
    if stated.exact:
        missing = np.array([low is None for low in stated.lows], bool)
        return Bounds(leaf, mins, maxs, known, np.where(missing, num_rows, 0), unknown, num_rows, missing)
    all_null = (nulls >= 0) & (nulls == num_rows)
    # What the log counts below a struct is not defined: whether the struct's own nulls are included.
    nulls, all_null = (nulls, all_null) if len(node.path) == 1 else (unknown, all_null & False)
    return Bounds(leaf, mins, maxs, known, nulls, unknown, num_rows, all_null)


def _edges(leaf: LeafType, low: Any, high: Any) -> tuple[Any, Any] | None:
    """The largest value of the domain that is not above ``low``, and the smallest that is not below ``high``."""
    try:
        below, above = locate(leaf, low, "").below, locate(leaf, high, "").above
    except ParquetError:  # the log keeps it in a form that the column's type does not have
        return None
    if below is None or above is None or below != below or above != above or below > above:
        return None
    return below, above
