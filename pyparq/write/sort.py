"""Sorts rows, and checks that rows are sorted, in the order of :mod:`pyparq.format.order`.

NaN is above every number and the two zeros are equal, as in filters. Everything works on leaves, so a sort order can
apply to nested columns too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.arrow.column_operations import Int64Array, ranges
from pyparq.format.leaf_values import BinaryValues, Values
from pyparq.format.order import BoolArray, domain, stored_dtype
from pyparq.option_values import SortKey

if TYPE_CHECKING:
    from pyparq.write.shred import LeafData


@dataclass(slots=True)
class RowKeys:
    """One sort key per row: numbers that ``<`` orders, or byte strings that are compared unsigned."""

    valid: BoolArray | None
    """Where a value is present. ``None``: everywhere. Elsewhere the key is undefined."""
    values: npt.NDArray[Any] | BinaryValues
    key: SortKey

    def before(self, row: int, other: RowKeys, other_row: int) -> int:
        """-1, 0 or 1: a row comes before, with or after a row of ``other``, by this key alone."""
        here, there = self._is_valid(row), other._is_valid(other_row)
        if not (here and there):
            return 0 if here == there else -1 if here != self.key.nulls_first else 1
        mine, theirs = self._value(row), other._value(other_row)
        sign = int(mine > theirs) - int(mine < theirs)
        return -sign if self.key.descending else sign

    def _is_valid(self, row: int) -> bool:
        return self.valid is None or bool(self.valid[row])

    def _value(self, row: int) -> Any:
        if isinstance(self.values, BinaryValues):
            start, stop = self.values.offsets[row : row + 2]
            return self.values.data[start:stop].tobytes()
        return self.values[row]


def sort_order(leaves: Sequence[LeafData], keys: Sequence[SortKey]) -> Int64Array:
    """The rows in sorted order (stable), by one flat leaf per key."""
    columns: list[npt.NDArray[Any]] = []
    for leaf, key in zip(leaves, keys, strict=True):
        found = row_keys(leaf, key)
        values = _ranks(found.values) if isinstance(found.values, BinaryValues) else found.values
        if key.descending:
            values = ~values  # reverses both signed and unsigned integers, and keeps ties
        if found.valid is not None:
            columns.append(found.valid == key.nulls_first)
            values = np.where(found.valid, values, values.dtype.type(0))
        columns.append(values)
    if len(columns) == 1:
        return np.argsort(columns[0], kind="stable").astype(np.int64, copy=False)
    return np.lexsort(columns[::-1]).astype(np.int64, copy=False)


def first_unsorted(leaves: Sequence[LeafData], keys: Sequence[SortKey]) -> int | None:
    """The first row that belongs before the row above it, in the order of ``keys``. ``None`` if rows are sorted."""
    rows = leaves[0].num_rows
    if rows < 2:
        return None
    signs = np.zeros(rows - 1, np.int8)
    for leaf, key in zip(leaves, keys, strict=True):
        undecided = np.flatnonzero(signs == 0)
        signs[undecided] = _compare_neighbours(row_keys(leaf, key), undecided)
    wrong = np.flatnonzero(signs > 0)
    return int(wrong[0]) + 1 if len(wrong) else None


class Rows:
    """Rows of a leaf that can be picked in any order, any number of times."""

    def __init__(self, data: LeafData) -> None:
        self._data = data
        self._starts: Int64Array | None = None
        if data.rep_levels is not None:
            self._starts = np.append(np.flatnonzero(data.rep_levels == 0), data.num_slots)
        self._present: BoolArray | None = None
        if data.def_levels is not None:
            self._present = data.def_levels == data.node.max_def
            self._positions = np.cumsum(self._present, dtype=np.int64) - 1

    def pick(self, rows: Int64Array) -> LeafData:
        """The leaf with the given rows, in that order."""
        data, slots, rep_levels, def_levels = self._data, rows, None, None
        if self._starts is not None and data.rep_levels is not None:
            slots = ranges(self._starts[rows], self._starts[rows + 1] - self._starts[rows])
            rep_levels = data.rep_levels[slots]
        positions = slots
        if self._present is not None and data.def_levels is not None:
            positions = self._positions[slots[self._present[slots]]]
            def_levels = data.def_levels[slots]
        values = _take(data.values, positions)
        return replace(
            data, num_rows=len(rows), num_slots=len(slots), values=values, def_levels=def_levels, rep_levels=rep_levels
        )

    def sizes(self) -> Int64Array:
        """Approximate bytes in memory of each row."""
        data = self._data
        if isinstance(data.values, BinaryValues):
            per_value = np.diff(data.values.offsets) + 4
        else:
            per_value = np.full(len(data.values), data.node.type.width, np.int64)
        per_slot = per_value
        if self._present is not None:
            per_slot = np.zeros(data.num_slots, np.int64)
            per_slot[self._present] = per_value
        if self._starts is None:
            return per_slot
        before = np.append(0, np.cumsum(per_slot))
        return np.asarray(np.diff(before[self._starts]))


def cut_groups(sizes: Int64Array, max_rows: int, max_bytes: int) -> Iterator[tuple[int, int]]:
    """``(start, stop)`` of row groups over rows of these sizes: at most that many rows and bytes, at least one row."""
    before = np.append(0, np.cumsum(sizes))
    start, rows = 0, len(sizes)
    while start < rows:
        within = int(np.searchsorted(before, before[start] + max_bytes, side="right")) - 1
        stop = max(min(within, start + max_rows, rows), start + 1)
        yield start, stop
        start = stop


def _take(values: Values, positions: Int64Array) -> Values:
    if isinstance(values, BinaryValues):
        return BinaryValues(*kernels.take_binary(values.offsets, values.data, np.ascontiguousarray(positions)))
    return values[positions]


# ---- keys --------------------------------------------------------------------------------------------------------


def row_keys(data: LeafData, key: SortKey) -> RowKeys:
    """The key of each row, by its flat leaf."""
    valid = None if data.def_levels is None else data.def_levels == data.node.max_def
    if valid is not None and bool(valid.all()):
        valid = None
    leaf = data.node.type
    values = data.values
    kind = domain(leaf)
    if kind == "int96" and not isinstance(values, BinaryValues):
        # Nanoseconds of the day, then the day, little-endian. Reversed, it is a signed number in big-endian bytes.
        values = np.ascontiguousarray(values.reshape(-1, 12)[:, ::-1])
        return RowKeys(valid, _per_row(_as_binary(values, True), valid), key)
    if isinstance(values, BinaryValues) or kind in ("bytes", "decimal"):
        return RowKeys(valid, _per_row(_as_binary(values, kind == "decimal"), valid), key)
    dtype = stored_dtype(leaf)
    assert dtype is not None  # the domains that are left are numeric
    numbers = values.reshape(-1).view(dtype)
    if kind == "float":
        with np.errstate(invalid="ignore"):  # signalling NaNs are values like any other
            numbers = _ordered_floats(numbers.astype(np.float64))
    else:
        numbers = numbers.astype(np.uint64 if kind == "uint" else np.int64)
    if valid is not None:
        spread = np.zeros(len(valid), numbers.dtype)
        spread[valid] = numbers
        numbers = spread
    return RowKeys(valid, numbers, key)


def _ordered_floats(values: npt.NDArray[np.float64]) -> Int64Array:
    """Integers in the order of the floats: the sign bit is kept, the other bits of negative numbers are inverted."""
    bits = (values + 0.0).view(np.int64)  # -0.0 + 0.0 is +0.0
    ordered = bits ^ ((bits >> 63) & np.int64(0x7FFF_FFFF_FFFF_FFFF))
    ordered[np.isnan(values)] = np.iinfo(np.int64).max
    return ordered


def _as_binary(values: Values, signed: bool) -> BinaryValues:
    """Byte strings whose unsigned order is the order of the values. Fixed-width decimals get their sign bit flipped."""
    if isinstance(values, BinaryValues):
        return values
    count, width = values.shape
    if signed:
        values = values.copy()
        values[:, 0] ^= 0x80
    return BinaryValues(np.arange(count + 1, dtype=np.int64) * width, np.ascontiguousarray(values).reshape(-1))


def _per_row(values: BinaryValues, valid: BoolArray | None) -> BinaryValues:
    """One byte string per row (empty if there is no value), and eight spare bytes behind the last."""
    offsets = values.offsets
    if valid is not None:
        lengths = np.zeros(len(valid) + 1, np.int64)
        lengths[1:][valid] = np.diff(offsets)
        lengths[0] = offsets[0]
        offsets = np.cumsum(lengths)
    return BinaryValues(offsets, np.concatenate((values.data[: offsets[-1]], np.zeros(8, np.uint8))))


def _word(strings: BinaryValues, rows: Int64Array, depth: int) -> tuple[npt.NDArray[np.uint64], Int64Array]:
    """Bytes ``8 * depth`` on of some strings as big-endian numbers, zero-padded, and how many are left (at most 9)."""
    starts = strings.offsets[rows] + 8 * depth
    left = np.clip(strings.offsets[rows + 1] - starts, 0, 9)
    # Every position of the buffer as the start of a number: gathers without a copy of the strings.
    everywhere = np.ndarray((len(strings.data) - 7,), ">u8", strings.data, strides=(1,))
    words = everywhere[np.minimum(starts, len(everywhere) - 1)].astype(np.uint64)
    cut = (8 * (8 - np.minimum(left, 8))).astype(np.uint64)
    # A shift by 64 is not defined: an exhausted string is zero outright.
    half = cut >> np.uint64(1)
    words = (words >> half >> (cut - half)) << half << (cut - half)
    return words, left


def _ranks(strings: BinaryValues) -> Int64Array:
    """For each string, how many are smaller: groups of equal prefixes are split eight bytes at a time."""
    count = len(strings.offsets) - 1
    ranks = np.zeros(count, np.int64)
    active = np.arange(count)
    depth = 0
    while len(active):
        words, left = _word(strings, active, depth)
        order = np.lexsort((left, words, ranks[active]))
        active, words, left = active[order], words[order], left[order]
        groups = ranks[active]
        new_group = np.append(True, groups[1:] != groups[:-1])
        new_part = new_group | np.append(True, (words[1:] != words[:-1]) | (left[1:] != left[:-1]))
        place = np.arange(len(active))
        group_start = np.maximum.accumulate(np.where(new_group, place, 0))
        part_start = np.maximum.accumulate(np.where(new_part, place, 0))
        ranks[active] = groups + part_start - group_start
        alone = new_part & np.append(new_part[1:], True)
        active = active[~alone & (left > 8)]
        depth += 1
    return ranks


def _compare_neighbours(keys: RowKeys, pairs: Int64Array) -> npt.NDArray[np.int8]:
    """For each ``k`` in ``pairs``: -1, 0 or 1 as row ``k`` comes before, with or after row ``k + 1``."""
    if isinstance(keys.values, BinaryValues):
        signs = _compare_strings(keys.values, pairs)
    else:
        above, below = keys.values[pairs], keys.values[pairs + 1]
        signs = (above > below).astype(np.int8) - (above < below)
    if keys.key.descending:
        signs = -signs
    if keys.valid is not None:
        above_valid, below_valid = keys.valid[pairs], keys.valid[pairs + 1]
        nulls_last = 1 if not keys.key.nulls_first else -1
        by_null = (below_valid.astype(np.int8) - above_valid) * nulls_last
        signs = np.where(above_valid & below_valid, signs, by_null).astype(np.int8)
    return signs


def _compare_strings(strings: BinaryValues, pairs: Int64Array) -> npt.NDArray[np.int8]:
    signs = np.zeros(len(pairs), np.int8)
    open_ = np.arange(len(pairs))
    depth = 0
    while len(open_):
        above, above_left = _word(strings, pairs[open_], depth)
        below, below_left = _word(strings, pairs[open_] + 1, depth)
        found = (above > below).astype(np.int8) - (above < below)
        lengths = (above_left > below_left).astype(np.int8) - (above_left < below_left)
        signs[open_] = np.where(found == 0, lengths, found)
        open_ = open_[(found == 0) & (above_left > 8) & (below_left > 8)]
        depth += 1
    return signs
