"""Test values in bulk: numbers in numpy, byte strings and big decimals in the kernels.

Every function gives a bool mask with one entry per value. Literals are in the leaf's comparable domain and,
by binding, always within what the values' type can hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq import kernels

BoolArray = npt.NDArray[np.bool_]

_FEW = 8
"""Up to this many literals, one pass for each beats a lookup."""
_TABLE_SPAN = 1 << 22
"""Integer literals that span less are looked up in a table of flags."""


def match_numbers(op: str, literals: Sequence[Any], values: npt.NDArray[Any]) -> BoolArray:
    """Integers, floats (NaN above every number) and booleans as uint8, 1-D."""
    if op in ("in", "not in"):
        found = _isin_numbers(values, np.array(literals, values.dtype))
        return found if op == "in" else np.logical_not(found, out=found)
    literal = values.dtype.type(literals[0])
    if op == "==":
        return np.asarray(values == literal)
    if op == "!=":
        return np.asarray(values != literal)
    if op == "<":
        return np.asarray(values < literal)
    if op == "<=":
        return np.asarray(values <= literal)
    if values.dtype.kind != "f":
        return np.asarray(values > literal if op == ">" else values >= literal)
    # The negation lets NaN pass, which numpy's > and >= do not.
    below: BoolArray = np.asarray(values <= literal if op == ">" else values < literal)
    return np.logical_not(below, out=below)


def _isin_numbers(values: npt.NDArray[Any], literals: npt.NDArray[Any]) -> BoolArray:
    """Membership in sorted distinct literals."""
    if len(literals) <= _FEW:
        found = np.asarray(values == literals[0])
        for literal in literals[1:]:
            found |= values == literal
        return found
    if values.dtype.kind in "iu" and int(literals[-1]) - int(literals[0]) < _TABLE_SPAN:
        return _isin_table(values, literals)
    if values.dtype == literals.dtype and values.dtype.kind in "iu" and len(values) > len(literals):
        return _isin_hashed(values, literals)
    return _isin_sorted(values, literals)


def _isin_sorted(values: npt.NDArray[Any], literals: npt.NDArray[Any]) -> BoolArray:
    place = np.searchsorted(literals, values)
    place[place == len(literals)] = 0
    return np.asarray(literals[place] == values)


def _isin_hashed(values: npt.NDArray[Any], literals: npt.NDArray[Any]) -> BoolArray:
    """Membership by a table of flags for hashes: only what is flagged, little more than what is a member, is searched
    for."""
    bits = min((16 * len(literals)).bit_length(), 24)
    flags = np.zeros(1 << bits, bool)
    flags[_hashed(literals, bits)] = True
    perhaps = np.flatnonzero(np.take(flags, _hashed(values, bits), mode="clip"))
    found = np.zeros(len(values), bool)
    found[perhaps] = _isin_sorted(values[perhaps], literals)
    return found


def _hashed(values: npt.NDArray[Any], bits: int) -> npt.NDArray[np.int64]:
    """The upper bits of a product with an odd constant (Fibonacci hashing)."""
    numbers = values.view(np.dtype(f"u{values.dtype.itemsize}")).astype(np.uint64)
    numbers *= np.uint64(0x9E3779B97F4A7C15)
    numbers >>= np.uint64(64 - bits)
    return numbers.view(np.int64)


def _isin_table(values: npt.NDArray[Any], literals: npt.NDArray[Any]) -> BoolArray:
    """Membership by a table of flags (numpy's own refuses spans that the values' type cannot hold)."""
    low, span = int(literals[0]), int(literals[-1]) - int(literals[0])
    flags = np.zeros(span + 2, bool)
    flags[[int(v) - low for v in literals]] = True
    # Differences wrap around in the unsigned type, so all that lies outside comes out beyond the span.
    unsigned = np.dtype(f"u{values.dtype.itemsize}")
    place = values.view(unsigned) - literals[:1].view(unsigned)
    if unsigned.itemsize == 8:
        place = np.minimum(place, unsigned.type(span + 1), out=place).view(np.int64)
    return np.asarray(np.take(flags, place, mode="clip"))


def match_binary(
    op: str, literals: Sequence[bytes], offsets: npt.NDArray[Any], data: npt.NDArray[np.uint8]
) -> BoolArray:
    """Byte strings of any length (unsigned lexicographic order): int32 or int64 offsets into ``data``."""
    if op in ("in", "not in"):
        found = _isin_binary(offsets, data, literals)
        return found if op == "in" else ~found
    if op in ("starts_with", "not starts_with"):
        found = kernels.starts_with_binary(offsets, data, literals[0])
        return found if op == "starts_with" else ~found
    return _from_sign(op, kernels.compare_binary(offsets, data, literals[0]))


def match_fixed(op: str, literals: Sequence[bytes], values: npt.NDArray[np.uint8]) -> BoolArray:
    """Byte strings of one length: uint8 of shape ``(n, width)``."""
    count, width = values.shape
    if op in ("==", "!=", "<", "<=", ">", ">="):
        return _from_sign(op, kernels.compare_flba(values.reshape(-1), width, False, literals[0]))
    return match_binary(op, literals, _even_offsets(count, width), values.reshape(-1))


def match_limbs(op: str, literals: Sequence[int], values: npt.NDArray[np.uint8]) -> BoolArray:
    """Decimals as memory holds them: little-endian two's complement, uint8 of shape ``(n, width)``."""
    count, width = values.shape
    if width <= 8:
        return match_numbers(op, literals, values.reshape(-1).view(f"<i{width}"))
    if op in ("in", "not in"):
        raw = [v.to_bytes(width, "little", signed=True) for v in literals]
        found = _isin_binary(_even_offsets(count, width), values.reshape(-1), raw)
        return found if op == "in" else ~found
    limbs = values.reshape(-1).view("<u8").reshape(count, width // 8)
    less, equal = _compare_limbs(limbs, literals[0], needs_less=op not in ("==", "!="))
    if op == "==":
        return equal
    if op == "!=":
        return ~equal
    if op == "<":
        return less
    if op == ">=":
        return ~less
    return less | equal if op == "<=" else ~(less | equal)


def _compare_limbs(limbs: npt.NDArray[np.uint64], literal: int, needs_less: bool) -> tuple[BoolArray, BoolArray]:
    """(value < literal, value == literal), from the signed top limb down."""
    top = limbs.shape[1] - 1
    high, sign = limbs[:, top].view("<i8"), np.int64(literal >> (64 * top))
    equal = np.asarray(high == sign)
    less = np.asarray(high < sign) if needs_less else equal
    for k in range(top - 1, -1, -1):
        part = np.uint64((literal >> (64 * k)) & 0xFFFF_FFFF_FFFF_FFFF)
        if needs_less:
            less |= equal & (limbs[:, k] < part)
        equal &= limbs[:, k] == part
    return less, equal


def match_decimal_fixed(op: str, literals: Sequence[int], values: npt.NDArray[np.uint8]) -> BoolArray:
    """Decimals as files hold them: big-endian two's complement, uint8 of shape ``(n, width)``."""
    width = values.shape[1]
    data = values.reshape(-1)

    def sign(literal: int) -> npt.NDArray[np.int8]:
        return kernels.compare_flba(data, width, True, literal.to_bytes(width, "big", signed=True))

    return _by_sign(op, literals, sign)


def match_decimal_binary(
    op: str, literals: Sequence[int], offsets: npt.NDArray[Any], data: npt.NDArray[np.uint8]
) -> BoolArray:
    """Decimals on BYTE_ARRAY: big-endian two's complement of any length."""

    def sign(literal: int) -> npt.NDArray[np.int8]:
        size = literal.bit_length() // 8 + 1
        return kernels.compare_binary_decimal(offsets, data, literal.to_bytes(size, "big", signed=True))

    return _by_sign(op, literals, sign)


def _by_sign(op: str, literals: Sequence[int], sign: Any) -> BoolArray:
    if op not in ("in", "not in"):
        return _from_sign(op, sign(literals[0]))
    found = np.asarray(sign(literals[0]) == 0)
    for literal in literals[1:]:
        found |= sign(literal) == 0
    return found if op == "in" else ~found


def _from_sign(op: str, sign: npt.NDArray[np.int8]) -> BoolArray:
    if op == "==":
        return np.asarray(sign == 0)
    if op == "!=":
        return np.asarray(sign != 0)
    if op == "<":
        return np.asarray(sign < 0)
    if op == "<=":
        return np.asarray(sign <= 0)
    return np.asarray(sign > 0 if op == ">" else sign >= 0)


def _isin_binary(offsets: npt.NDArray[Any], data: npt.NDArray[np.uint8], literals: Sequence[bytes]) -> BoolArray:
    lengths = np.fromiter(map(len, literals), np.int64, len(literals))
    edges = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
    return kernels.isin_binary(offsets, data, edges, b"".join(literals))


def _even_offsets(count: int, width: int) -> npt.NDArray[np.int64]:
    return np.arange(count + 1, dtype=np.int64) * width
