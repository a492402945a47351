"""Column: one contiguous array in Arrow layout over numpy buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.schemas.types import DataType

Buffer = npt.NDArray[Any]


class Column:
    """One contiguous Arrow array.

    ``validity`` is a packed little-endian bitmap (uint8) or ``None`` when nothing is null. ``buffers`` are the
    type's other buffers in Arrow order: ``(values,)`` for fixed width (a packed bitmap for bool), ``(offsets,
    data)`` for strings and binary, ``(offsets,)`` for lists and maps, ``(offsets, sizes)`` for list views, ``()`` for
    structs. ``offset`` counts leading elements to pass over in all of them (arrays from elsewhere may be slices).
    ``dictionary`` holds the entries of a dictionary-encoded column, or (where the type is not that of one) those of the
    dictionary that it was spelled out from.
    """

    __slots__ = ("buffers", "children", "dictionary", "length", "null_count", "offset", "type", "validity")

    def __init__(
        self,
        type: DataType,
        length: int,
        validity: Buffer | None,
        buffers: tuple[Buffer, ...],
        null_count: int,
        children: tuple[Column, ...] = (),
        dictionary: Column | None = None,
        offset: int = 0,
    ) -> None:
        self.type = type
        self.length = length
        self.validity = validity
        self.buffers = buffers
        self.null_count = null_count
        self.children = children
        self.dictionary = dictionary
        self.offset = offset

    def __len__(self) -> int:
        return self.length

    def valid_mask(self) -> npt.NDArray[np.bool_] | None:
        """bool array, one per element, ``True`` where a value is present; ``None`` when all are."""
        if self.validity is None or self.null_count == 0:
            return None
        bits = np.unpackbits(self.validity.view(np.uint8), count=self.offset + self.length, bitorder="little")
        return bits[self.offset :].view(np.bool_)

    def values(self) -> Buffer:
        """The values buffer of a fixed-width column as a typed array (bool unpacked); nulls hold anything."""
        if self.type.format == "b":
            bits = np.unpackbits(self.buffers[0].view(np.uint8), count=self.offset + self.length, bitorder="little")
            return bits[self.offset :].view(np.bool_)
        width = self.type.byte_width
        raw = self.buffers[0].view(np.uint8)[self.offset * width : (self.offset + self.length) * width]
        if self.type.format[0] in "wd" or self.type.kind == "interval":
            return raw.reshape(self.length, width)
        return raw.view(self.type.numpy_dtype)

    def offsets(self) -> Buffer:
        """int32 or int64 offsets (``length + 1``) of a string, binary, list or map column."""
        dtype = np.int64 if self.type.format in ("U", "Z", "+L") else np.int32
        if len(self.buffers[0]) == 0:  # Arrow lets an empty array leave its offsets out
            return np.zeros(1, dtype)
        return self.buffers[0].view(dtype)[self.offset : self.offset + self.length + 1]


def shifted(column: Column, offset: int, length: int) -> Column:
    """A slice; the null count is unknown then (-1) unless there are none."""
    nulls = 0 if column.null_count == 0 else -1
    return Column(
        column.type, length, column.validity, column.buffers, nulls, column.children, column.dictionary,
        column.offset + offset,
    )  # fmt: skip


def bytes_held(column: Column) -> int:
    total = sum(b.nbytes for b in column.buffers) + (0 if column.validity is None else column.validity.nbytes)
    total += sum(bytes_held(c) for c in column.children)
    return total + (bytes_held(column.dictionary) if column.dictionary is not None else 0)
