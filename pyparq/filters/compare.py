"""Tests of many values at once, in the kernels.

Every function returns a :class:`~pyparq.index.row_mask.RowMask` with one bit per value. Literals are in the leaf's
comparable domain, and within the range of the values' type (binding has seen to that). ``within`` marks the values that
matter. The bits of other values are undefined.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.index.row_mask import RowMask, Words
from pyparq.kernels import NumberSet

Within = Words | None
_FEW = 4
"""Up to this many literals, one pass for each beats a lookup."""


def match_numbers(
    op: str, literals: Sequence[Any], values: npt.NDArray[Any], within: Within = None, found: NumberSet | None = None
) -> RowMask:
    """Integers, floats (NaN above every number) and booleans as uint8, 1-D. ``found``: the literals as a set."""
    values = np.require(values, requirements=("C", "A"))  # the values of a dictionary may be unaligned
    if op in ("in", "not in"):
        mask = _isin_numbers(values, literals, within, found)
        return mask if op == "in" else ~mask
    literal = np.array(literals[:1] or (0,), values.dtype)
    return RowMask.of_words(kernels.match_numbers(values, op, literal, within), len(values))


def number_set(literals: Any, dtype: np.dtype[Any]) -> NumberSet:
    """The literals as a set to look values up in. Each of them fits the values' type."""
    return NumberSet(np.array(literals, dtype))


def _isin_numbers(values: npt.NDArray[Any], literals: Any, within: Within, found: NumberSet | None) -> RowMask:
    if len(literals) > _FEW:
        found = number_set(literals, values.dtype) if found is None else found
        return RowMask.of_words(found.test(values, within), len(values))
    mask = RowMask.none(len(values))
    for literal in literals:
        mask |= match_numbers("==", (literal,), values, within)
    return mask


def match_flags(op: str, literals: Sequence[Any], flags: RowMask) -> RowMask:
    """Booleans, one bit each."""
    on_false, on_true = match_numbers(op, literals, np.array([0, 1], np.uint8)).bools().tolist()
    if on_false is on_true:
        return RowMask.all(flags.num_rows) if on_true else RowMask.none(flags.num_rows)
    return flags if on_true else ~flags


def match_binary(
    op: str,
    literals: Sequence[bytes],
    offsets: npt.NDArray[Any],
    data: npt.NDArray[np.uint8],
    within: Within = None,
) -> RowMask:
    """Byte strings of any length (unsigned lexicographic order): int32 or int64 offsets into ``data``."""
    if op in ("in", "not in"):
        found = _isin_binary(offsets, data, literals)
        return found if op == "in" else ~found
    return RowMask.of_words(kernels.match_binary(offsets, data, op, literals[0], within), len(offsets) - 1)


def match_fixed(op: str, literals: Sequence[bytes], values: npt.NDArray[np.uint8], within: Within = None) -> RowMask:
    """Byte strings of one length: uint8 of shape ``(n, width)``."""
    count, width = values.shape
    if op in ("in", "not in"):
        return match_binary(op, literals, _even_offsets(count, width), values.reshape(-1))
    return RowMask.of_words(kernels.match_fixed(values.reshape(-1), width, op, literals[0], within), count)


def match_limbs(op: str, literals: Sequence[int], values: npt.NDArray[np.uint8], within: Within = None) -> RowMask:
    """Decimals in memory layout: little-endian two's complement, uint8 of shape ``(n, width)``."""
    count, width = values.shape
    if width <= 8:
        return match_numbers(op, literals, values.reshape(-1).view(f"<i{width}"), within)
    if op in ("in", "not in"):
        raw = [v.to_bytes(width, "little", signed=True) for v in literals]
        found = _isin_binary(_even_offsets(count, width), values.reshape(-1), raw)
        return found if op == "in" else ~found
    literal = literals[0].to_bytes(width, "little", signed=True)
    return RowMask.of_words(kernels.match_limbs(values.reshape(-1), width, op, literal, within), count)


def match_decimal_fixed(op: str, literals: Sequence[int], values: npt.NDArray[np.uint8]) -> RowMask:
    """Decimals in file layout: big-endian two's complement, uint8 of shape ``(n, width)``."""
    width = values.shape[1]
    data = values.reshape(-1)

    def sign(literal: int) -> npt.NDArray[np.int8]:
        return kernels.compare_flba(data, width, True, literal.to_bytes(width, "big", signed=True))

    return _by_sign(op, literals, sign)


def match_decimal_binary(
    op: str, literals: Sequence[int], offsets: npt.NDArray[Any], data: npt.NDArray[np.uint8]
) -> RowMask:
    """Decimals on BYTE_ARRAY: big-endian two's complement of any length."""

    def sign(literal: int) -> npt.NDArray[np.int8]:
        size = literal.bit_length() // 8 + 1
        return kernels.compare_binary_decimal(offsets, data, literal.to_bytes(size, "big", signed=True))

    return _by_sign(op, literals, sign)


def _by_sign(op: str, literals: Sequence[int], sign: Any) -> RowMask:
    if op not in ("in", "not in"):
        return match_numbers(op, (0,), sign(literals[0]))
    found = match_numbers("==", (0,), sign(literals[0]))
    for literal in literals[1:]:
        found |= match_numbers("==", (0,), sign(literal))
    return found if op == "in" else ~found


def _isin_binary(offsets: npt.NDArray[Any], data: npt.NDArray[np.uint8], literals: Sequence[bytes]) -> RowMask:
    lengths = np.fromiter(map(len, literals), np.int64, len(literals))
    edges = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
    return RowMask.of_bools(kernels.isin_binary(offsets, data, edges, b"".join(literals)))


def _even_offsets(count: int, width: int) -> npt.NDArray[np.int64]:
    return np.arange(count + 1, dtype=np.int64) * width
