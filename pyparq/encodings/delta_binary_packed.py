"""DELTA_BINARY_PACKED (Encodings.md): INT32 and INT64 as bit-packed differences, in blocks of miniblocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyparq import kernels
from pyparq.errors import CorruptFileError
from pyparq.schema.types import LeafType, Physical
from pyparq.schema.values import Values

TYPES = (Physical.INT32, Physical.INT64)


def decode(data: Any, count: int, leaf: LeafType) -> Values:
    """``count`` values; differences wrap around, as the specification asks."""
    if leaf.physical == Physical.INT32:
        return _decode_i32(data, count)
    if leaf.physical == Physical.INT64:
        out64 = np.empty(count, np.int64)
        kernels.delta_decode_i64(data, out64, count)
        return out64
    raise CorruptFileError(f"encoding DELTA_BINARY_PACKED on {leaf.physical.name} values")


def _decode_i32(data: Any, count: int) -> Values:
    out32 = np.empty(count, np.int32)
    try:
        kernels.delta_decode_i32(data, out32, count)
    except kernels.KernelError as error:
        # DuckDB (2.0) takes differences of INT32 as 64-bit numbers and packs them in up to 33 bits. Their sums are
        # right in the lower 32 bits all the same.
        wide = np.empty(count, np.int64)
        try:
            kernels.delta_decode_i64(data, wide, count)
        except kernels.KernelError:
            raise error from None
        return wide.astype(np.int32)
    return out32


def encode(values: Values, leaf: LeafType) -> Any:
    assert isinstance(values, np.ndarray)
    pack = kernels.delta_encode_i32 if leaf.physical == Physical.INT32 else kernels.delta_encode_i64
    return pack(np.ascontiguousarray(values))
