"""DELTA_BINARY_PACKED (Encodings.md): INT32 and INT64 as bit-packed differences, in blocks of miniblocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.errors import CorruptFileError
from pyparq.format.leaf_values import Values
from pyparq.format.types import LeafType, Physical

TYPES = (Physical.INT32, Physical.INT64)


def decode(data: Any, count: int, leaf: LeafType, out: npt.NDArray[Any] | None = None) -> Values:
    """``count`` values; differences wrap around, as the specification asks."""
    if leaf.physical not in TYPES:
        raise CorruptFileError(f"encoding DELTA_BINARY_PACKED cannot hold {leaf.physical.name} values")
    narrow = leaf.physical == Physical.INT32
    values: npt.NDArray[Any] = np.empty(count, np.int32 if narrow else np.int64) if out is None else out
    if narrow:
        _decode_i32(data, values, count)
    else:
        kernels.delta_decode_i64(data, values, count)
    return values


def _decode_i32(data: Any, out: npt.NDArray[Any], count: int) -> None:
    try:
        kernels.delta_decode_i32(data, out, count)
    except kernels.KernelError as error:
        # DuckDB (2.0) takes differences of INT32 as 64-bit numbers and packs them in up to 33 bits. Their sums are
        # right in the lower 32 bits all the same.
        wide = np.empty(count, np.int64)
        try:
            kernels.delta_decode_i64(data, wide, count)
        except kernels.KernelError:
            raise error from None
        out[:] = wide.astype(np.int32)


def encode(values: Values, leaf: LeafType) -> Any:
    assert isinstance(values, np.ndarray)
    pack = kernels.delta_encode_i32 if leaf.physical == Physical.INT32 else kernels.delta_encode_i64
    return pack(np.ascontiguousarray(values))
