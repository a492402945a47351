"""Tests of many values at once, in the kernels.

Every function returns a :class:`~pyparq.index.row_ranges.RowMask` with one bit per value. Literals are in the leaf's
comparable domain, and within the range of the values' type (binding has seen to that). ``within`` marks the values that
matter. The bits of other values are undefined. ``sets`` gives the literals as a set to look up
values of a dtype in (bytes: object).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.filters.value_array import ByteArray
from pyparq.format.leaf_values import BinaryValues, Values
from pyparq.format.order import stored_dtype
from pyparq.format.types import LeafType
from pyparq.index.row_ranges import RowMask, Words
from pyparq.kernels import BytesSet, NumberSet

if TYPE_CHECKING:
    from pyparq.arrow.column import Column

Within = Words | None
Sets = Callable[["np.dtype[Any]"], Any] | None
_FEW = 4
"""Up to this many literals, one pass for each beats a lookup."""


def match_column(op: str, literals: Any, column: Column, within: Within, sets: Sets) -> RowMask:
    """Decoded values, without a dictionary."""
    type_ = column.type
    if type_.is_binary_like:
        return _match_binary(op, literals, column.offsets(), column.buffers[1], within, sets)
    kind = type_.kind
    if kind == "decimal":
        return _match_limbs(op, literals, column.values(), within)
    if kind == "fixed":
        return _match_fixed(op, literals, column.values(), within, sets)
    if kind == "bool":
        flags = kernels.mask_of_bits(column.buffers[0], column.offset, column.length)
        return _match_flags(op, literals, RowMask.of_words(flags, column.length))
    return match_numbers(op, literals, column.values(), within, sets)


def match_stored(op: str, literals: Any, values: Values, leaf: LeafType, sets: Sets) -> RowMask:
    """Values as a page stores them."""
    is_decimal = leaf.kind == "decimal"
    if isinstance(values, BinaryValues):
        if not is_decimal:
            return _match_binary(op, literals, values.offsets, values.data, None, sets)
        return _by_sign(op, literals, lambda v: kernels.compare_binary_decimal(values.offsets, values.data, _big(v)))
    dtype = stored_dtype(leaf)
    if dtype is not None:
        return match_numbers(op, literals, values.reshape(-1).view(dtype), None, sets)
    if not is_decimal:
        return _match_fixed(op, literals, values, None, sets)
    width, data = values.shape[1], values.reshape(-1)
    return _by_sign(op, literals, lambda v: kernels.compare_flba(data, width, True, _big(v, width)))


def match_numbers(
    op: str, literals: Sequence[Any], values: npt.NDArray[Any], within: Within = None, sets: Sets = None
) -> RowMask:
    """Integers, floats (NaN above every number) and booleans as uint8, 1-D."""
    values = np.require(values, requirements=("C", "A"))  # the values of a dictionary may be unaligned
    if op in ("in", "not in"):
        mask = _among_numbers(values, literals, within, sets)
        return mask if op == "in" else ~mask
    literal = np.array(literals[:1] or (0,), values.dtype)
    return RowMask.of_words(kernels.match_numbers(values, op, literal, within), len(values))


def _among_numbers(values: npt.NDArray[Any], literals: Any, within: Within, sets: Sets) -> RowMask:
    if len(literals) > _FEW:
        found = NumberSet(np.array(literals, values.dtype)) if sets is None else sets(values.dtype)
        return RowMask.of_words(found.test(values, within), len(values))
    mask = RowMask.none(len(values))
    for literal in literals:
        mask |= match_numbers("==", (literal,), values, within)
    return mask


def _match_flags(op: str, literals: Sequence[Any], flags: RowMask) -> RowMask:
    """Booleans, one bit each."""
    on_false, on_true = match_numbers(op, literals, np.array([0, 1], np.uint8)).bools().tolist()
    if on_false is on_true:
        return RowMask.all(flags.num_rows) if on_true else RowMask.none(flags.num_rows)
    return flags if on_true else ~flags


def _match_binary(
    op: str, literals: Sequence[bytes], offsets: npt.NDArray[Any], data: Any, within: Within, sets: Sets
) -> RowMask:
    """Byte strings of any length (unsigned lexicographic order): int32 or int64 offsets into ``data``."""
    if op not in ("in", "not in"):
        return RowMask.of_words(kernels.match_binary(offsets, data, op, literals[0], within), len(offsets) - 1)
    known = bytes_set(literals) if sets is None else sets(np.dtype(object))
    found = RowMask.of_words(known.test(offsets, data, within), len(offsets) - 1)
    return found if op == "in" else ~found


def bytes_set(literals: Sequence[bytes]) -> BytesSet:
    known = literals if isinstance(literals, ByteArray) else ByteArray.of(literals, bytes, False)
    return BytesSet(known.offsets, known.data)


def _match_fixed(
    op: str, literals: Sequence[bytes], values: npt.NDArray[np.uint8], within: Within, sets: Sets
) -> RowMask:
    """Byte strings of one length: uint8 of shape ``(n, width)``."""
    count, width = values.shape
    if op in ("in", "not in"):
        return _match_binary(op, literals, np.arange(count + 1) * width, values.reshape(-1), within, sets)
    return RowMask.of_words(kernels.match_fixed(values.reshape(-1), width, op, literals[0], within), count)


def _match_limbs(op: str, literals: Sequence[int], values: npt.NDArray[np.uint8], within: Within = None) -> RowMask:
    """Decimals in memory layout: little-endian two's complement, uint8 of shape ``(n, width)``."""
    count, width = values.shape
    if width <= 8:
        return match_numbers(op, literals, values.reshape(-1).view(f"<i{width}"), within)
    raw = [v.to_bytes(width, "little", signed=True) for v in literals]
    if op in ("in", "not in"):
        return _match_fixed(op, raw, values, within, None)
    return RowMask.of_words(kernels.match_limbs(values.reshape(-1), width, op, raw[0], within), count)


def _big(literal: int, width: int = 0) -> bytes:
    """Big-endian two's complement, as in a file, of a width or of as few bytes as it needs."""
    return literal.to_bytes(width or literal.bit_length() // 8 + 1, "big", signed=True)


def _by_sign(op: str, literals: Sequence[int], sign: Callable[[int], npt.NDArray[np.int8]]) -> RowMask:
    """``sign`` compares all values with a literal."""
    if op not in ("in", "not in"):
        return match_numbers(op, (0,), sign(literals[0]))
    found = match_numbers("==", (0,), sign(literals[0]))
    for literal in literals[1:]:
        found |= match_numbers("==", (0,), sign(literal))
    return found if op == "in" else ~found
