"""Physical values of one leaf, nulls left out: what encodings take and give.

``Values`` is a numpy array (BOOLEAN as uint8 0/1, INT32/INT64/FLOAT/DOUBLE in their own dtype, INT96 and
FIXED_LEN_BYTE_ARRAY as uint8 of shape ``(n, width)``) or, for BYTE_ARRAY, :class:`BinaryValues`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.format.types import PHYSICAL_DTYPE, LeafType, Physical


class BinaryValues(NamedTuple):
    """Byte strings: value ``k`` is ``data[offsets[k]:offsets[k + 1]]``. ``offsets`` (int64, in places int32) need not
    start at 0."""

    offsets: npt.NDArray[Any]
    data: npt.NDArray[np.uint8]

    def value(self, k: int) -> bytes:
        return self.data[self.offsets[k] : self.offsets[k + 1]].tobytes()

    def tolist(self) -> list[bytes]:
        raw = self.data.tobytes()
        edges = self.offsets.tolist()
        return [raw[a:b] for a, b in pairwise(edges)]


Values = npt.NDArray[Any] | BinaryValues


def as_bytes(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """A flat uint8 view of values of fixed width: kernels take bytes and a width."""
    return values.reshape(-1).view(np.uint8)


def count_of(values: Values) -> int:
    """How many values there are."""
    return len(values.offsets) - 1 if isinstance(values, BinaryValues) else len(values)


def slice_of(values: Values, start: int, stop: int) -> Values:
    """Values ``start`` to ``stop``, sharing memory."""
    if isinstance(values, BinaryValues):
        return BinaryValues(values.offsets[start : stop + 1], values.data)
    return values[start:stop]


def same_values(a: Values, b: Values) -> bool:
    """Are all values the same, bit by bit?"""
    if isinstance(a, BinaryValues) and isinstance(b, BinaryValues):
        lengths = np.array_equal(np.diff(a.offsets), np.diff(b.offsets))
        return lengths and np.array_equal(a.data[a.offsets[0] : a.offsets[-1]], b.data[b.offsets[0] : b.offsets[-1]])
    if isinstance(a, BinaryValues) or isinstance(b, BinaryValues):
        return False
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def plain_bytes(values: Values, leaf: LeafType) -> npt.NDArray[np.uint8]:
    """The values in PLAIN encoding (Encodings.md): uint8, one value after another; byte arrays behind their length of
    four bytes, booleans as bits."""
    if isinstance(values, BinaryValues):
        return kernels.plain_binary_encode(values.offsets, values.data)
    if leaf.physical == Physical.BOOLEAN:
        return np.packbits(values, bitorder="little")
    return as_bytes(np.ascontiguousarray(values))


def plain_size(values: Values) -> int:
    """Bytes of the values in PLAIN encoding (BOOLEAN not considered: one byte each)."""
    if isinstance(values, BinaryValues):
        return int(values.offsets[-1] - values.offsets[0]) + 4 * (len(values.offsets) - 1)
    return values.nbytes


def empty_values(leaf: LeafType) -> Values:
    return (
        from_plain_bytes(b"", 0, leaf)
        if not leaf.is_binary
        else BinaryValues(np.zeros(1, np.int64), np.empty(0, np.uint8))
    )


def from_plain_bytes(raw: Any, count: int, leaf: LeafType) -> npt.NDArray[Any]:
    """View ``count`` fixed-width values in a buffer that holds at least their bytes (not BOOLEAN, not BYTE_ARRAY)."""
    if leaf.physical in PHYSICAL_DTYPE:
        return np.frombuffer(raw, PHYSICAL_DTYPE[leaf.physical], count)
    width = leaf.width
    return np.frombuffer(raw, np.uint8, count * width).reshape(count, width)


def concat_values(parts: Sequence[Values], leaf: LeafType) -> Values:
    """All parts one after another."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return empty_values(leaf)
    if not leaf.is_binary:
        return np.concatenate([p for p in parts if not isinstance(p, BinaryValues)])
    binary = [p for p in parts if isinstance(p, BinaryValues)]
    offsets = np.empty(sum(len(p.offsets) - 1 for p in binary) + 1, np.int64)
    offsets[0] = at = base = 0
    for part in binary:
        count = len(part.offsets) - 1
        np.add(part.offsets[1:], base - part.offsets[0], out=offsets[at + 1 : at + 1 + count])
        at += count
        base = int(offsets[at])
    data = np.concatenate([p.data[p.offsets[0] : p.offsets[-1]] for p in binary])
    return BinaryValues(offsets, data)


def size_of(values: Values) -> int:
    """Bytes of memory."""
    return values.offsets.nbytes + values.data.nbytes if isinstance(values, BinaryValues) else values.nbytes


def build(
    values: Values, leaf: LeafType, max_bytes: int = (1 << 63) - 1
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
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
