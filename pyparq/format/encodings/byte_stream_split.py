"""BYTE_STREAM_SPLIT (Encodings.md): byte ``k`` of every value together, for all fixed-width types but BOOLEAN."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.errors import CorruptFileError
from pyparq.format.leaf_values import Values, from_plain_bytes
from pyparq.format.types import LeafType, Physical

TYPES = (Physical.INT32, Physical.INT64, Physical.FLOAT, Physical.DOUBLE, Physical.FIXED_LEN_BYTE_ARRAY)


def decode(data: Any, count: int, leaf: LeafType, out: npt.NDArray[Any] | None = None) -> Values:
    if leaf.physical not in TYPES:
        raise CorruptFileError(f"encoding BYTE_STREAM_SPLIT cannot hold {leaf.physical.name} values")
    if len(data) != count * leaf.width:
        # The streams are as long as the page is: a padded page would be read wrong.
        raise CorruptFileError(
            f"the page has {len(data)} bytes for {count} BYTE_STREAM_SPLIT values of {leaf.width} bytes"
        )
    if out is None:
        out = from_plain_bytes(np.empty(count * leaf.width, np.uint8), count, leaf)
    kernels.byte_stream_split_decode(data, leaf.width, out.reshape(-1).view(np.uint8))
    return out


def encode(values: Values, leaf: LeafType) -> Any:
    assert isinstance(values, np.ndarray)
    return kernels.byte_stream_split_encode(np.ascontiguousarray(values).reshape(-1).view(np.uint8), leaf.width)
