"""IEEE 754 totalOrder of floats, as integers that compare alike (parquet.thrift, IEEE_754_TOTAL_ORDER).

-NaN < -inf < … < -0.0 < +0.0 < … < +inf < +NaN, and NaNs among themselves by their bits. As bounds NaNs count only
where there is nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq import kernels

Int64Array = npt.NDArray[np.int64]


def keys(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Signed integers of the floats' width whose ``<`` is the total order; :func:`floats` is the way back."""
    bits = np.ascontiguousarray(values).view(np.dtype(f"<i{values.itemsize}"))
    return np.asarray(bits ^ ((bits >> (8 * values.itemsize - 1)) & np.iinfo(bits.dtype).max))


def floats(found: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The floats of :func:`keys`; the mapping is its own inverse."""
    bits = found ^ ((found >> (8 * found.itemsize - 1)) & np.iinfo(found.dtype).max)
    return np.asarray(bits.view(np.dtype(f"<f{found.itemsize}")))


def segment_minmax(
    values: npt.NDArray[Any], bounds: Int64Array
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], Int64Array]:
    """Smallest and largest value of each segment and its NaN count; NaNs are bounds of a segment of NaNs alone.

    An empty segment's bounds mean nothing.
    """
    ordered, nan = keys(values), np.isnan(values)
    before = np.concatenate((np.zeros(1, np.int64), np.cumsum(nan, dtype=np.int64)))
    nan_counts = before[bounds[1:]] - before[bounds[:-1]]
    info = np.iinfo(ordered.dtype)
    mins = kernels.minmax_numeric(np.where(nan, info.max, ordered).astype(ordered.dtype), bounds)[0]
    maxs = kernels.minmax_numeric(np.where(nan, info.min, ordered).astype(ordered.dtype), bounds)[1]
    only = (nan_counts == np.diff(bounds)) & (nan_counts > 0)
    if only.any():
        low, high = kernels.minmax_numeric(ordered, bounds)[:2]
        mins, maxs = np.where(only, low, mins), np.where(only, high, maxs)
    return floats(mins.astype(ordered.dtype)), floats(maxs.astype(ordered.dtype)), np.asarray(nan_counts)


def extreme(raw: Sequence[bytes], dtype: np.dtype[Any], largest: bool) -> bytes:
    """The smallest or largest of stored bounds: NaNs only where all are."""
    values = np.frombuffer(b"".join(raw), dtype)
    ordered, nan = keys(values), np.isnan(values)
    places = np.arange(len(values)) if nan.all() else np.flatnonzero(~nan)
    chosen = ordered[places]
    return raw[int(places[int(chosen.argmax() if largest else chosen.argmin())])]
