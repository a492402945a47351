"""IEEE 754 totalOrder of floats, as integers that compare alike (parquet.thrift, IEEE_754_TOTAL_ORDER).

-NaN < -inf < … < -0.0 < +0.0 < … < +inf < +NaN, and NaNs among themselves by their bits. As bounds NaNs count only
where there is nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def keys(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Signed integers of the floats' width whose ``<`` is the total order."""
    bits = np.ascontiguousarray(values).view(np.dtype(f"<i{values.itemsize}"))
    return np.asarray(bits ^ ((bits >> (8 * values.itemsize - 1)) & np.iinfo(bits.dtype).max))
