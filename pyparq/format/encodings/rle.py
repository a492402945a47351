"""RLE / bit-packed hybrid (Encodings.md): levels, dictionary indices and, with a length prefix, booleans."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.errors import CorruptFileError
from pyparq.format.leaf_values import Values
from pyparq.format.types import LeafType, Physical

TYPES = (Physical.BOOLEAN,)


def bit_width(maximum: int) -> int:
    """Bits that hold 0 to ``maximum``."""
    return maximum.bit_length()


def encode_levels(levels: npt.NDArray[np.uint8], maximum: int) -> Any:
    """Levels without a length prefix."""
    return kernels.rle_encode_u8(levels, bit_width(maximum))


def decode_indices(
    data: Any, count: int, limit: int, out: npt.NDArray[np.int32] | None = None
) -> npt.NDArray[np.int32]:
    """Dictionary indices: a byte with the bit width, then runs; each index below ``limit``. They go to ``out``, an
    array of ``count``, where it is given."""
    indices = np.empty(count, np.int32) if out is None else out
    if count == 0:
        return indices
    if len(data) == 0:
        raise CorruptFileError("the dictionary-encoded page has no data")
    kernels.rle_decode_i32(memoryview(data)[1:], data[0], count, indices, limit)
    return indices


def encode_indices(indices: npt.NDArray[np.int32], num_entries: int) -> bytes:
    """The inverse of :func:`decode_indices` for a dictionary of ``num_entries``."""
    width = bit_width(max(num_entries - 1, 0))
    return bytes([width]) + bytes(kernels.rle_encode_i32(indices, width))


def decode(data: Any, count: int, leaf: LeafType, out: npt.NDArray[Any] | None = None) -> Values:
    """Booleans in encoding RLE: 4-byte length, then runs of bit width 1."""
    if leaf.physical not in TYPES:
        raise CorruptFileError(f"encoding RLE cannot hold {leaf.physical.name} values")
    if len(data) < 4:
        raise CorruptFileError("the RLE boolean page ends before its length field")
    size = int.from_bytes(memoryview(data)[:4], "little")
    if size > len(data) - 4:
        raise CorruptFileError(f"the RLE boolean page declares {size} bytes, but only {len(data) - 4} follow")
    values = np.empty(count, np.uint8) if out is None else out
    kernels.rle_decode_u8(memoryview(data)[4 : 4 + size], 1, count, values)
    return values


def encode(values: Values, leaf: LeafType) -> bytes:
    assert isinstance(values, np.ndarray)
    runs = bytes(encode_levels(values, 1))
    return len(runs).to_bytes(4, "little") + runs
