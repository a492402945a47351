"""DELTA_BYTE_ARRAY (Encodings.md): the length of the prefix shared with the value before, then the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.errors import CorruptFileError
from pyparq.format.leaf_values import BinaryValues, Values
from pyparq.format.types import LeafType, Physical

TYPES = (Physical.BYTE_ARRAY, Physical.FIXED_LEN_BYTE_ARRAY)

MAX_PAGE_BYTES = (1 << 31) - 1
"""Shared prefixes let few stored bytes grow into many: decoded, a page may not pass what a plain page could hold."""


def decode(
    data: Any, count: int, leaf: LeafType, out: npt.NDArray[Any] | None = None, most: int = MAX_PAGE_BYTES
) -> Values:
    """``count`` byte strings of at most ``most`` bytes, or rows of ``leaf.length`` bytes for FIXED_LEN_BYTE_ARRAY."""
    if leaf.physical not in TYPES:
        raise CorruptFileError(f"encoding DELTA_BYTE_ARRAY cannot hold {leaf.physical.name} values")
    fixed = leaf.physical == Physical.FIXED_LEN_BYTE_ARRAY
    offsets, values, _ = kernels.delta_byte_array_decode(data, count, count * leaf.length if fixed else most)
    if not fixed:
        return BinaryValues(offsets, values)
    if (np.diff(offsets) != leaf.length).any():
        raise CorruptFileError(f"the page has DELTA_BYTE_ARRAY values that are not {leaf.length} bytes long")
    rows = values[: count * leaf.length].reshape(count, leaf.length)
    if out is None:
        return rows
    out[:] = rows
    return out


def encode(values: Values, leaf: LeafType) -> Any:
    if isinstance(values, BinaryValues):
        return kernels.delta_byte_array_encode(values.offsets, values.data)
    offsets = np.arange(len(values) + 1, dtype=np.int64) * leaf.length
    return kernels.delta_byte_array_encode(offsets, np.ascontiguousarray(values).reshape(-1))
