"""What a catalog says about a filter: which of the known files, and which of their row groups, may have rows.

Keys and statistics are asked separately, and each answer is right by itself. An answer of ``None`` rules nothing out.
Files that the catalog does not know, or knows in another state, are asked as if there were none.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pyparq.datasets.catalog.bounds_table import BoundsTable
from pyparq.datasets.catalog.catalog import Catalog, KnownFiles, files_of, pass_over
from pyparq.datasets.catalog.file_table import Int64Array, Kind
from pyparq.datasets.catalog.key_table import FILE_SHIFT, UInt64Array, units_of
from pyparq.datasets.query import FilesLeft, Query
from pyparq.errors import ParquetError
from pyparq.filters.bind import bind
from pyparq.filters.bound import Constant
from pyparq.filters.expression import Expression, Known
from pyparq.filters.leaf_tests import Test
from pyparq.filters.predicate import Predicate, folded

Units: TypeAlias = UInt64Array | None
"""Sorted row groups of files (:func:`units_of`); ``None`` for all."""
Mask = npt.NDArray[np.bool_]

_NOTHING = np.zeros(0, np.uint64)
_GROUP_MASK = np.uint64((1 << FILE_SHIFT) - 1)


def by_keys(catalog: Catalog, kind: Kind, predicate: Predicate) -> Units:
    """The row groups in which keys allow a row, of files of this kind. Others may be among them."""

    def of_test(test: Any) -> Units:
        if not isinstance(test, Test):
            return _NOTHING if isinstance(test, Constant) and not test.value else None
        column = kind.key_columns.get(test.node.column)
        hashes = None if column is None else test.hashes()
        if column is None or hashes is None:
            return None
        flat = np.array(sorted({h for alternatives in hashes for h in alternatives}), np.uint64)
        return catalog.units(column, flat) if len(flat) else _NOTHING

    def all_of(found: list[Units]) -> Units:
        known = [units for units in found if units is not None]
        return reduce(np.intersect1d, known) if known else None

    def any_of(found: list[Units]) -> Units:
        known = [units for units in found if units is not None]
        return reduce(np.union1d, known) if len(known) == len(found) else None

    return folded(predicate, of_test, all_of, any_of)


def by_bounds(table: BoundsTable, kind: Kind, predicate: Predicate, files: Int64Array) -> Units:
    """The row groups of the ``files`` (numbers, which rise) in which their statistics allow a row."""
    tests = [t for t in dict.fromkeys(predicate.tests()) if isinstance(t, Test) and table.has(t.node)]
    if not tests:
        return None
    table.load([test.node for test in tests])
    of_file, groups = table.units
    rows = np.flatnonzero(np.isin(of_file, files))
    bounds = {test.node: table.bounds(test.node, rows) for test in tests}
    some = {test: test.verdict(bounds[test.node]).some for test in tests}
    left = rows[predicate.units_left(some.get, len(rows))]
    return units_of(of_file[left], groups[left])


# ---- the files of a dataset -----------------------------------------------------------------------------------------

FEW_FILES = 64
"""If keys leave at most this many files, statistics are not asked: the files have them."""


def files_left(known: KnownFiles, numbers: list[int], query: Query) -> FilesLeft:
    """The files of ``numbers`` that can have a row for which the filter is true."""
    if query.filter.expression is None or not numbers or not known.is_usable:
        return FilesLeft(numbers)
    try:
        return _files_left(known, np.asarray(numbers, np.int64), query)
    except (ParquetError, OSError) as error:
        known.is_usable = False
        pass_over(known.catalog.place.name, error)
        return FilesLeft(numbers)


def _files_left(known: KnownFiles, numbers: Int64Array, query: Query) -> FilesLeft:
    is_known = known.place_of[numbers] >= 0
    asked, left = numbers[is_known], dict.fromkeys(numbers[~is_known].tolist())
    found = FilesLeft([], known=len(asked))
    kinds = known.table.kinds[known.place_of[asked]]
    for rest, same in query.filter.by_rest(asked):
        for kind in np.unique(kinds[same]).tolist():
            members = asked[same & (kinds == kind)]
            units, asked_keys = _row_groups(
                known, known.kinds[kind], query.in_file(rest, known.kinds[kind].model), members
            )
            if units is None:
                left |= dict.fromkeys(members.tolist())
                continue
            for number, groups in _by_file(known, units, members):
                left[number], found.groups[number] = None, groups
                if asked_keys:
                    found.by_keys.add(number)
    found.numbers = sorted(left)
    found.ruled_out = len(numbers) - len(left)
    return found


def _row_groups(known: KnownFiles, kind: Kind, question: Expression, members: Int64Array) -> tuple[Units, bool]:
    """The row groups of these files that can match, and whether keys have said so."""
    if isinstance(question, Known):
        return (None if question.value is True else _NOTHING), False
    predicate, bounds = bind(question, kind.model.tree, kind.model.fields.shown), known.catalog.bounds
    units = by_keys(known.catalog, kind, predicate)
    if bounds is None or not known.options.use_statistics:
        return units, units is not None
    files = np.sort(known.table.numbers[known.place_of[members]])
    if units is not None:
        files = np.intersect1d(files, files_of(units))
        if len(files) <= FEW_FILES:
            return units, True
    bounded = by_bounds(bounds, kind, predicate, files)
    if bounded is None or units is None:
        return (units if bounded is None else bounded), units is not None
    return np.intersect1d(units, bounded), True


def _by_file(known: KnownFiles, units: UInt64Array, members: Int64Array) -> Iterator[tuple[int, list[int]]]:
    """The row groups of each of the files ``members`` that have any."""
    number_of = dict(zip(known.table.numbers[known.place_of[members]].tolist(), members.tolist(), strict=True))
    groups: dict[int, list[int]] = {}
    for file, group in zip(files_of(units).tolist(), (units & _GROUP_MASK).tolist(), strict=True):
        if file in number_of:
            groups.setdefault(number_of[file], []).append(group)
    return iter(groups.items())
