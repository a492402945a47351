"""Bounds of several parts (pages or column chunks) of one leaf, as arrays, ready for the evaluation of tests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.format.hybrid_calendar import meant_range
from pyparq.format.types import LeafType

BoolArray = npt.NDArray[np.bool_]
Int64Array = npt.NDArray[np.int64]

UNORDERED, ASCENDING, DESCENDING = 0, 1, 2
"""Numbers of ``BoundaryOrder`` (parquet.thrift)."""


@dataclass(slots=True)
class Bounds:
    """What statistics or a ColumnIndex state about ``n`` parts of one leaf: the pages of a chunk, or whole chunks.

    ``mins`` and ``maxs`` hold values in the leaf's comparable domain (:mod:`pyparq.format.order`). An entry is valid
    only where ``has_bounds`` is set. There, every value that is neither null nor NaN lies within ``[min, max]``. The
    bounds themselves need not occur.
    """

    leaf: LeafType
    mins: npt.NDArray[Any]
    maxs: npt.NDArray[Any]
    has_bounds: BoolArray
    null_counts: Int64Array
    """Nulls per part (int64), null ancestors and empty lists included. -1 where unknown."""
    nan_counts: Int64Array
    """NaNs per part (int64). -1 where unknown, 0 for types without NaN."""
    counts: Int64Array
    """Slots per part, nulls included; -1 where it is not known."""
    all_null: BoolArray
    """True where the part certainly holds only nulls, or nothing."""
    boundary_order: int = UNORDERED
    """``ASCENDING`` or ``DESCENDING`` only if the bounds are really in that order. This is checked."""
    definition_histograms: Int64Array | None = None
    """``[n, max_definition_level + 1]`` counts of each level, where the file has them."""
    repetition_histograms: Int64Array | None = None
    """``[n, max_repetition_level + 1]`` counts of each level, where the file has them."""

    def __len__(self) -> int:
        return len(self.has_bounds)

    def at(self, places: Int64Array) -> Bounds:
        """The bounds of the parts with these numbers, in this order. Numbers may repeat."""
        per_part = ("mins", "maxs", "has_bounds", "null_counts", "nan_counts", "counts", "all_null")
        return Bounds(self.leaf, *(getattr(self, name)[places] for name in per_part))


def gregorian(bounds: Bounds) -> Bounds:
    """The same bounds in the Gregorian calendar, if the file stores them in the hybrid one. Raises
    :class:`pyparq.UnsupportedError` for a time zone that this machine does not know."""
    if not bounds.leaf.hybrid:
        return bounds
    mins, maxs = bounds.mins.copy(), bounds.maxs.copy()
    for k in np.flatnonzero(bounds.has_bounds).tolist():
        mins[k], maxs[k] = meant_range(bounds.leaf, int(mins[k]), int(maxs[k]))
    same = np.array_equal(mins, bounds.mins) and np.array_equal(maxs, bounds.maxs)
    order = bounds.boundary_order if same else UNORDERED
    return replace(bounds, leaf=replace(bounds.leaf, hybrid=""), mins=mins, maxs=maxs, boundary_order=order)
