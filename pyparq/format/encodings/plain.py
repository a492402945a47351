"""PLAIN (Encodings.md): values one after another, little-endian; byte arrays behind their 4-byte length."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.errors import CorruptFileError
from pyparq.format.leaf_values import BinaryValues, Values, from_plain_bytes
from pyparq.format.types import LeafType, Physical

TYPES = tuple(Physical)


def decode(data: Any, count: int, leaf: LeafType, out: npt.NDArray[Any] | None = None) -> Values:
    """``count`` values; fixed-width ones are a view of ``data`` unless they go to ``out``."""
    if leaf.physical == Physical.BYTE_ARRAY:
        check_size(data, count)
        offsets = np.empty(count + 1, np.int64)
        values = np.empty(len(data) - 4 * count, np.uint8)
        kernels.plain_binary_decode(data, count, offsets, values)
        return BinaryValues(offsets, values[: offsets[-1]])
    fixed = _decode_fixed(data, count, leaf)
    if out is None:
        return fixed
    out[:] = fixed
    return out


def check_size(data: Any, count: int) -> None:
    """Raise :class:`CorruptFileError` where ``data`` cannot even hold the lengths of ``count`` byte arrays."""
    if count * 4 > len(data):
        raise CorruptFileError(f"the page has {len(data)} bytes, too few for {count} PLAIN byte arrays")


def _decode_fixed(data: Any, count: int, leaf: LeafType) -> npt.NDArray[Any]:
    if leaf.physical == Physical.BOOLEAN:
        if len(data) * 8 < count:
            raise CorruptFileError(f"the page has {len(data)} bytes for {count} PLAIN booleans")
        return np.unpackbits(np.frombuffer(data, np.uint8), count=count, bitorder="little")
    needed = count * leaf.width
    # The width of a FIXED_LEN_BYTE_ARRAY stands in the schema alone: nothing else would show one that is too small.
    if len(data) < needed or (len(data) > needed and leaf.physical == Physical.FIXED_LEN_BYTE_ARRAY):
        raise CorruptFileError(f"the page has {len(data)} bytes for {count} PLAIN values of {leaf.width} bytes")
    return from_plain_bytes(data, count, leaf)


def encode(values: Values, leaf: LeafType) -> Any:
    """The values' bytes, as a bytes-like object."""
    if isinstance(values, BinaryValues):
        return kernels.plain_binary_encode(values.offsets, values.data)
    if leaf.physical == Physical.BOOLEAN:
        return np.packbits(values, bitorder="little")
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)
