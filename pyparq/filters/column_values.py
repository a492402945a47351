"""The values of a decoded column, as computed tests take them: exact numbers, doubles or texts."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.filters.computed import Leaf
from pyparq.filters.exact_numbers import Exact, whole
from pyparq.index.row_mask import RowMask

if TYPE_CHECKING:
    from pyparq.arrow.column import Column

Flags = npt.NDArray[np.bool_]
Floats: TypeAlias = npt.NDArray[np.float64]


class Texts:
    """Byte strings: the distinct ones, and which of them each row has."""

    __slots__ = ("codes", "entries")

    def __init__(self, entries: list[bytes], codes: npt.NDArray[Any]) -> None:
        self.entries = entries
        self.codes = codes

    def looked_up(self, answers: list[Any], dtype: Any) -> npt.NDArray[Any]:
        """For each row, the answer for its entry."""
        if not answers:
            return np.zeros(self.codes.shape, dtype)
        return np.asarray(np.array(answers, dtype)[self.codes])

    def objects(self) -> npt.NDArray[Any]:
        boxed = np.empty(max(len(self.entries), 1), object)
        boxed[:] = self.entries or [b""]
        found = np.empty(self.codes.shape, object)
        found[...] = boxed[self.codes]
        return found


class Vector(NamedTuple):
    """A value for each row. ``valid``: where it is not null (``None``: everywhere)."""

    data: Exact | Floats | Texts
    valid: Flags | None


def both(a: Flags | None, b: Flags | None) -> Flags | None:
    if a is None or b is None:
        return b if a is None else a
    return a & b


def values_of_column(column: Column, leaf: Leaf) -> Vector:
    """The values of a column that is decoded as the leaf's type."""
    if column.type.dictionary is not None and column.dictionary is not None:
        return _looked_up(column, values_of_column(column.dictionary, leaf))
    valid = _valid(column)
    if column.type.is_binary_like:
        return Vector(_texts(column, valid), valid)
    if column.type.kind == "fixed":
        return Vector(_distinct([bytes(row) for row in np.ascontiguousarray(column.values())], valid), valid)
    numbers = _numbers(column)
    if leaf.floats:
        return Vector(numbers.astype(np.float64), valid)
    if valid is not None:  # what stands in null slots must not look like a large number
        numbers = np.where(valid, numbers, 0)
    return Vector(Exact(numbers, whole(leaf.den)), valid)


def _looked_up(column: Column, entries: Vector) -> Vector:
    """The value of each row, from the values of the dictionary's entries."""
    valid = _valid(column)
    codes = np.ascontiguousarray(column.values())
    codes = codes if valid is None else np.where(valid, codes, 0)
    if not column.dictionary:  # nothing but nulls
        return _all_null(column.length, entries)
    if entries.valid is not None:
        valid = both(valid, entries.valid[codes])
    data = entries.data
    if isinstance(data, Texts):
        return Vector(Texts(data.entries, data.codes[codes]), valid)
    return Vector(Exact(data.num[codes], data.den) if isinstance(data, Exact) else data[codes], valid)


def _all_null(count: int, like: Vector) -> Vector:
    codes, valid = np.zeros(count, np.int64), np.zeros(count, bool)
    if isinstance(like.data, Texts):
        return Vector(Texts([], codes), valid)
    return Vector(Exact(codes, like.data.den) if isinstance(like.data, Exact) else codes.astype(np.float64), valid)


def _valid(column: Column) -> Flags | None:
    if column.validity is None or not column.null_count:
        return None
    bits = kernels.mask_of_bits(column.validity, column.offset, column.length)
    return RowMask.of_words(bits, column.length).bools()


def _numbers(column: Column) -> npt.NDArray[Any]:
    kind = column.type.kind
    if kind == "bool":
        bits = kernels.mask_of_bits(column.buffers[0], column.offset, column.length)
        return RowMask.of_words(bits, column.length).bools().astype(np.int64)
    values = column.values()
    if kind == "decimal":
        return _limbs(values)
    if values.dtype == np.uint64 and len(values) and int(values.max()) >= 1 << 63:
        return values.astype(object)
    return values.astype(np.int64) if values.dtype.kind in "iu" else values


def _limbs(values: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
    """Little-endian two's complement numbers of any width, as int64 where they fit."""
    count, width = values.shape
    flat = np.ascontiguousarray(values).reshape(-1)
    if width <= 8:
        return flat.view(f"<i{width}").astype(np.int64)
    words = flat.view("<i8").reshape(count, width // 8)
    low = words[:, 0]
    if (words[:, 1:] == (low >> 63)[:, None]).all():
        return low.astype(np.int64)
    found = np.empty(count, object)
    raw = flat.tobytes()
    found[:] = [int.from_bytes(raw[k : k + width], "little", signed=True) for k in range(0, count * width, width)]
    return found


def _texts(column: Column, valid: Flags | None) -> Texts:
    offsets, data = column.offsets().tolist(), memoryview(column.buffers[1])  # type: ignore[arg-type]
    return _distinct([bytes(data[a:b]) for a, b in pairwise(offsets)], valid)


def _distinct(values: list[bytes], valid: Flags | None) -> Texts:
    """Null slots have any entry."""
    if valid is not None:
        values = [value if there else b"" for value, there in zip(values, valid.tolist(), strict=True)]
    entries = list(dict.fromkeys(values))
    places = {entry: k for k, entry in enumerate(entries)}
    return Texts(entries, np.fromiter((places[value] for value in values), np.int64, len(values)))
