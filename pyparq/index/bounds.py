"""What statistics or a ColumnIndex say about some pages (or row groups) of one leaf, ready to evaluate."""

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
    """``n`` parts of one leaf: the pages of a chunk, or whole chunks (then usually ``n`` is 1).

    ``mins`` and ``maxs`` hold values in the leaf's comparable domain (:mod:`pyparq.format.order`); an entry
    means something only where ``has_bounds`` is set. There every value that is neither null nor NaN lies
    within ``[min, max]``; the bounds need not occur themselves.
    """

    leaf: LeafType
    mins: npt.NDArray[Any]
    maxs: npt.NDArray[Any]
    has_bounds: BoolArray
    null_counts: Int64Array
    """Nulls per part, null ancestors and empty lists included; -1 where it is not known."""
    nan_counts: Int64Array
    """NaNs per part; -1 where it is not known, 0 for types that have none."""
    counts: Int64Array
    """Slots per part, nulls included; -1 where it is not known."""
    all_null: BoolArray
    """The part is known to hold nothing but nulls (an empty part included)."""
    boundary_order: int = UNORDERED
    """``ASCENDING`` or ``DESCENDING`` only if mins and maxs of the parts with bounds really are (checked)."""
    definition_histograms: Int64Array | None = None
    """``[n, max_definition_level + 1]`` counts of each level, where the file has them."""
    repetition_histograms: Int64Array | None = None
    """``[n, max_repetition_level + 1]`` counts of each level, where the file has them."""

    def __len__(self) -> int:
        return len(self.has_bounds)


def gregorian(bounds: Bounds) -> Bounds:
    """The bounds of values in the Gregorian calendar, where the file has them in the hybrid one.

    Raises :class:`pyparq.UnsupportedError` for a time zone that this machine does not know.
    """
    if not bounds.leaf.hybrid:
        return bounds
    mins, maxs = bounds.mins.copy(), bounds.maxs.copy()
    for k in np.flatnonzero(bounds.has_bounds).tolist():
        mins[k], maxs[k] = meant_range(bounds.leaf, int(mins[k]), int(maxs[k]))
    same = np.array_equal(mins, bounds.mins) and np.array_equal(maxs, bounds.maxs)
    order = bounds.boundary_order if same else UNORDERED
    return replace(bounds, leaf=replace(bounds.leaf, hybrid=""), mins=mins, maxs=maxs, boundary_order=order)
