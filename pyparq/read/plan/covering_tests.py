"""The predicate that indexes are asked about: with tests of the boxes that GeoParquet keeps in other columns."""

from __future__ import annotations

from collections.abc import Sequence

from pyparq.errors import ParquetError
from pyparq.filters.coverings import Covering, coverings_of, with_coverings
from pyparq.filters.leaf_tests import is_box_test
from pyparq.filters.predicate import Predicate
from pyparq.read.footers.open_file import OpenFile


def pruning_predicate(file: OpenFile, predicate: Predicate, row_groups: Sequence[int]) -> Predicate:
    """The predicate, with tests that are true for every row for which it is true."""
    tested = {test.node.column for test in predicate.tests() if is_box_test(test)}
    if not tested:
        return predicate
    usable = {}
    for column, covering in coverings_of(file.tree, file.key_values).items():
        found = _usable(file, column, covering, row_groups) if column in tested else None
        if found is not None:
            usable[column] = found
    return with_coverings(predicate, usable) if usable else predicate


def _usable(file: OpenFile, column: int, covering: Covering, row_groups: Sequence[int]) -> Covering | None:
    """The covering with what null counts say of it. ``None`` if a column chunk cannot be asked: nobody has asked for
    them, so they must not fail.

    With no more null boxes than null geometries, the same rows are taken to be without both.
    """
    leaves = [file.tree.leaves[column], *covering.sides]
    try:
        table = file.chunk_table(row_groups, leaves)
    except ParquetError:
        return None
    geometries, *sides = (table.of_column(k).null_count for k in range(len(leaves)))
    all_there = all(bool(((nulls >= 0) & (nulls <= geometries)).all()) for nulls in sides)
    return covering._replace(some_missing=not all_there)
