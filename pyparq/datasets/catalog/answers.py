"""What a catalog says about a filter: which of the known files, and which of their row groups, may have rows.

Keys and statistics are asked separately, and each answer is right by itself. An answer of ``None`` rules nothing out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pyparq.datasets.catalog.bounds_table import BoundsTable
from pyparq.datasets.catalog.catalog import Catalog
from pyparq.datasets.catalog.file_table import Int64Array
from pyparq.datasets.catalog.key_table import UInt64Array, units_of
from pyparq.datasets.catalog.kinds import Kind
from pyparq.filters.leaf_tests import Test, evaluate_bounds, probe_hashes
from pyparq.filters.predicate import And, Constant, Or, Predicate

Units: TypeAlias = UInt64Array | None
"""Sorted row groups of files (:func:`units_of`); ``None`` for all."""
Mask = npt.NDArray[np.bool_]

_NOTHING = np.zeros(0, np.uint64)


def by_keys(catalog: Catalog, kind: Kind, predicate: Predicate) -> Units:
    """The row groups in which keys allow a row, of files of this kind. Others may be among them."""

    def of_test(test: Test) -> Units:
        column = kind.key_columns.get(test.node.column)
        hashes = None if column is None else probe_hashes(test)
        if column is None or hashes is None:
            return None
        flat = np.array(sorted({h for alternatives in hashes for h in alternatives}), np.uint64)
        return catalog.units(column, flat) if len(flat) else _NOTHING

    return _combined(predicate, of_test)


def _combined(predicate: Predicate, of_test: Callable[[Test], Units]) -> Units:
    if isinstance(predicate, Test):
        return of_test(predicate)
    if isinstance(predicate, (And, Or)):
        found = [_combined(child, of_test) for child in predicate.children]
        known = [units for units in found if units is not None]
        if isinstance(predicate, And):
            return reduce(np.intersect1d, known) if known else None
        return reduce(np.union1d, known) if len(known) == len(found) else None
    return _NOTHING if isinstance(predicate, Constant) and not predicate.value else None


def by_bounds(table: BoundsTable, kind: Kind, predicate: Predicate, files: Int64Array) -> Units:
    """The row groups of the ``files`` (numbers, which rise) in which their statistics allow a row."""
    tests = [test for test in dict.fromkeys(predicate.tests()) if table.has(test.node)]
    if not tests:
        return None
    table.load([test.node for test in tests])
    of_file, groups = table.units
    rows = np.flatnonzero(np.isin(of_file, files))
    bounds = {test.node: table.bounds(test.node, rows) for test in tests}
    some = {test: evaluate_bounds(test, bounds[test.node]).some for test in tests}
    left = rows[_masked(predicate, some, len(rows))]
    return units_of(of_file[left], groups[left])


def _masked(predicate: Predicate, some: dict[Test, Mask], count: int) -> Mask:
    if isinstance(predicate, (And, Or)):
        parts = [_masked(child, some, count) for child in predicate.children]
        join = np.logical_and if isinstance(predicate, And) else np.logical_or
        return np.asarray(join.reduce(parts), bool)
    if isinstance(predicate, Test):
        return some.get(predicate, np.ones(count, bool))
    return np.full(count, not isinstance(predicate, Constant) or predicate.value)
