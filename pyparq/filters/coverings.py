"""Boxes of geometries in columns of their own: ``covering.bbox`` of GeoParquet 1.1, in the key ``geo`` of a file.

Statistics and page indexes of these columns rule out row groups and pages that no box intersects. Rows are tested by
the geometries themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from pyparq.errors import ParquetError
from pyparq.filters.computed import Computed
from pyparq.filters.leaf_binding import compare_literal
from pyparq.filters.leaf_tests import AT_LEAST, Test
from pyparq.filters.predicate import Predicate, conjunction, disjunction, null_test, rewritten
from pyparq.format.schema_node import Node
from pyparq.format.schema_tree import SchemaTree

GEO = b"geo"
_SIDES = ("xmin", "ymin", "xmax", "ymax")
_DEEPEST = 100


class Covering(NamedTuple):
    """The columns with the boxes of one column of geometries."""

    xmin: Node
    ymin: Node
    xmax: Node
    ymax: Node
    bounds_x: bool
    """Whether no box crosses the antimeridian."""
    some_missing: bool = True
    """Whether a geometry may be without a box."""

    @property
    def sides(self) -> list[Node]:
        return [self.xmin, self.ymin, self.xmax, self.ymax]


def coverings_of(tree: SchemaTree, key_values: Mapping[bytes, bytes]) -> dict[int, Covering]:
    """The coverings of a file, by the number of the leaf with the geometries.

    What is no such metadata, or names columns that are not there, is passed over: nothing is pruned then.
    """
    try:
        columns = json.loads(key_values[GEO])["columns"]
        found = {tree.find((name,)).column: _covering(tree, given) for name, given in columns.items()}
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, ParquetError):
        return {}
    return {column: covering for column, covering in found.items() if covering is not None}


def _covering(tree: SchemaTree, given: Any) -> Covering | None:
    with suppress(KeyError, TypeError, AttributeError, ParquetError):
        box = given["covering"]["bbox"]
        leaves = [tree.find(tuple(box[side])) for side in _SIDES]
        if all(leaf.is_leaf and leaf.max_rep == 0 and leaf.type.kind in ("float", "double") for leaf in leaves):
            xmin, ymin, xmax, ymax = leaves
            return Covering(xmin, ymin, xmax, ymax, _bounds_x(given))
    return None


def _bounds_x(given: Mapping[str, Any]) -> bool:
    """Whether boxes reach from west to east. On a globe they may do otherwise, as the box of the column tells."""
    whole: list[Any] = given.get("bbox") or []
    crosses = len(whole) in (4, 6) and whole[0] > whole[len(whole) // 2]
    return not crosses and given.get("edges", "planar") == "planar"


def with_coverings(predicate: Predicate, coverings: Mapping[int, Covering]) -> Predicate:
    """The predicate with tests of the boxes beside each test of a geometry that has one."""

    def change(test: Test | Computed) -> Predicate:
        if not isinstance(test, Test) or test.op != "intersects box" or test.leaf.kind == "geography":
            return test
        covering = coverings.get(test.column)
        return test if covering is None else conjunction([test, *_tests(covering, *test.literal)])

    return rewritten(predicate, change)


def _tests(covering: Covering, xmin: float, ymin: float, xmax: float, ymax: float) -> Iterator[Predicate]:
    sides = [(covering.ymin, "<=", ymax), (covering.ymax, ">=", ymin)]
    if covering.bounds_x and xmin <= xmax:
        sides += [(covering.xmin, "<=", xmax), (covering.xmax, ">=", xmin)]
    for leaf, op, number in sides:
        test = _test(leaf, op, number)
        yield disjunction([test, null_test(leaf, True)]) if covering.some_missing else test


def _test(leaf: Node, op: str, number: float) -> Predicate:
    if leaf.type.kind == "float":  # the box may have been rounded inwards
        with np.errstate(over="ignore"):
            number = float(np.nextafter(np.float32(number), np.float32(np.inf if op == "<=" else -np.inf)))
    test = compare_literal(leaf, op, number)
    if isinstance(test, Test) and op == ">=":  # an empty geometry may have a box of NaN
        return Test(leaf, AT_LEAST, test.literals)
    return test
