"""Tests of geometries against a box: what GeospatialStatistics prove of a row group, and the values themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.errors import FilterError
from pyparq.filters.predicate import BOX_OPS, Test
from pyparq.index.row_mask import RowMask, Words
from pyparq.kernels import KernelError

_POINTS = frozenset((1, 1001, 2001, 3001))


def is_box_test(test: Test) -> bool:
    """Whether a test asks for the boxes of geometries."""
    return test.op in BOX_OPS


def box_mask(
    test: Test, offsets: npt.NDArray[Any], data: npt.NDArray[np.uint8], within: Words | None = None
) -> RowMask:
    """Which WKB values pass. The answer for a null is undefined. Raises :class:`FilterError` for other values."""
    box, wanted = np.array(test.literal, np.float64), test.op == "intersects box"
    try:
        found = kernels.match_boxes(offsets, data, box, test.leaf.kind == "geography", wanted, within)
    except KernelError as error:
        raise FilterError(f"the filter needs ISO WKB: {error}", column=test.node.dotted) from None
    return RowMask.of_words(found, len(offsets) - 1)


def may_intersect(test: Test, statistics: Sequence[Any]) -> npt.NDArray[np.bool_]:
    """For each chunk whether a row may pass, by its GeospatialStatistics (``None``: it has none).

    NaN, and numbers that do not fit each other, prove nothing.
    """
    if test.op != "intersects box":
        return np.ones(len(statistics), bool)
    return np.array([_may_intersect(test, found) for found in statistics], bool)


def _may_intersect(test: Test, found: Any) -> bool:
    box = None if found is None else found.bbox
    if box is None:
        return True
    xmin, ymin, xmax, ymax = test.literal
    if box.ymin > ymax or box.ymax < ymin:
        return not box.ymin <= box.ymax
    if xmin > xmax or not _bounds_x(test, found):
        return True
    if box.xmin > box.xmax:  # across the antimeridian
        return not (xmin > box.xmax and xmax < box.xmin)
    return not (box.xmin > xmax or box.xmax < xmin)


def _bounds_x(test: Test, found: Any) -> bool:
    """Whether the box of every row lies within the chunk's from west to east, too.

    Points do. Around other values on a globe, a box can be drawn across the antimeridian or the other way.
    """
    if _POINTS.issuperset(found.geospatial_types or (0,)):
        return True
    return test.leaf.kind != "geography" and bool(found.bbox.xmin <= found.bbox.xmax)
