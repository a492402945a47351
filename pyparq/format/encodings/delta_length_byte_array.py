"""DELTA_LENGTH_BYTE_ARRAY (Encodings.md): all lengths, delta-encoded, then all bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.errors import CorruptFileError
from pyparq.format.leaf_values import BinaryValues, Values
from pyparq.format.types import LeafType, Physical

TYPES = (Physical.BYTE_ARRAY,)


def decode(data: Any, count: int, leaf: LeafType, out: npt.NDArray[Any] | None = None) -> Values:
    if leaf.physical not in TYPES:
        raise CorruptFileError(f"encoding DELTA_LENGTH_BYTE_ARRAY cannot hold {leaf.physical.name} values")
    offsets = np.empty(count + 1, np.int64)
    values = np.empty(len(data), np.uint8)
    kernels.delta_length_decode(data, count, offsets, values)
    return BinaryValues(offsets, values[: offsets[-1]])


def encode(values: Values, leaf: LeafType) -> Any:
    assert isinstance(values, BinaryValues)
    return kernels.delta_length_encode(values.offsets, values.data)
