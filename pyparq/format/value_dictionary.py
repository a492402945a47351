"""The dictionary of some values: each value once, and for every value the place of its entry."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.format.leaf_values import BinaryValues, Values, as_bytes
from pyparq.format.types import LeafType


def build(values: Values, leaf: LeafType, max_bytes: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Indices and the position of each entry's first occurrence.

    Stops before the value that would make the PLAIN dictionary larger than ``max_bytes``: fewer indices than values
    mean that it did.
    """
    if isinstance(values, BinaryValues):
        return kernels.dict_encode_binary(values.offsets, values.data, max_bytes)
    width = leaf.width
    return kernels.dict_encode_fixed(as_bytes(np.ascontiguousarray(values)), width, max(max_bytes // width, 1))


def entries(values: Values, first_positions: npt.NDArray[np.int64]) -> Values:
    """The dictionary's values, from where each first occurs."""
    if isinstance(values, BinaryValues):
        offsets, data = kernels.take_binary(values.offsets, values.data, first_positions)
        return BinaryValues(offsets, data)
    return values[first_positions]
