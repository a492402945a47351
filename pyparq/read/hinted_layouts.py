"""Converts Parquet's values to hinted types: seconds, date64, intervals and run-end encoding
(:mod:`pyparq.read.hinted_types`)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import fixed_column, take
from pyparq.format import value_dictionary
from pyparq.format.leaf_values import BinaryValues
from pyparq.format.types import DataType, LeafType, Physical

_NO_LIMIT = (1 << 63) - 1
_MS_PER_DAY = 86_400_000
_NS_PER_MS = 1_000_000


def seconds(column: Column, type_: DataType) -> Column | None:
    """Milliseconds as seconds. ``None`` if one of them is not a whole second."""
    mask = column.valid_mask()
    values, rest = np.divmod(column.values(), np.array(1000, column.type.numpy_dtype))
    wrong = rest != 0
    if (wrong if mask is None else wrong & mask).any():
        return None
    return fixed_column(type_, values, mask)


def days_in_ms(column: Column, type_: DataType) -> Column:
    """Days as date64, which counts milliseconds."""
    return fixed_column(type_, column.values().astype(np.int64) * _MS_PER_DAY, column.valid_mask())


def intervals(column: Column, type_: DataType) -> Column | None:
    """INTERVAL (unsigned months, days and milliseconds) as one of Arrow's interval types. ``None`` if a value does not
    fit."""
    parts = np.ascontiguousarray(column.values()).view("<u4").astype(np.int64).reshape(-1, 3)
    mask = column.valid_mask()
    if mask is not None:
        parts[~mask] = 0
    months, days, ms = parts[:, 0], parts[:, 1], parts[:, 2]
    unused = {"tiM": (days, ms), "tiD": (months,), "tin": ()}[type_.format]
    if any(part.any() for part in unused) or max(parts[:, :2].max(initial=0), 0) >= 1 << 31:
        return None
    if type_.format == "tiM":
        made = months.astype("<i4").view(np.uint8)
    elif type_.format == "tiD":
        if ms.max(initial=0) >= 1 << 31:
            return None
        made = parts[:, 1:].astype("<i4").view(np.uint8)
    else:
        made = np.empty((column.length, 16), np.uint8)
        made[:, :8] = parts[:, :2].astype("<i4").view(np.uint8).reshape(-1, 8)
        made[:, 8:] = (ms * _NS_PER_MS).astype("<i8").view(np.uint8).reshape(-1, 8)
    return fixed_column(type_, made.reshape(column.length, type_.byte_width), mask)


def runs(column: Column, type_: DataType) -> Column:
    """The same values, run-end encoded. Consecutive nulls form a run too."""
    codes = _codes(column)
    starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1])) if len(codes) else np.empty(0, np.int64)
    ends_type = type_.children[0].type
    ends = np.append(starts[1:], len(codes)) if len(codes) else starts
    values = take(column, starts.astype(np.int64))
    parts = fixed_column(ends_type, ends.astype(ends_type.numpy_dtype)), values
    return Column(type_, column.length, None, (), 0, parts)


def _codes(column: Column) -> npt.NDArray[np.int64]:
    """One number per element. Elements of equal bytes have equal numbers, and all nulls share one."""
    if column.type.is_binary_like:
        offsets = np.ascontiguousarray(column.offsets(), np.int64)
        leaf = LeafType(Physical.BYTE_ARRAY, "binary")
        found, _ = value_dictionary.build(BinaryValues(offsets, column.buffers[1].view(np.uint8)), leaf, _NO_LIMIT)
    else:
        raw = np.ascontiguousarray(column.values())
        rows = raw.view(np.uint8).reshape(column.length, -1) if column.length else np.empty((0, 1), np.uint8)
        leaf = LeafType(Physical.FIXED_LEN_BYTE_ARRAY, "fixed", rows.shape[1])
        found, _ = value_dictionary.build(rows, leaf, _NO_LIMIT)
    codes, mask = found.astype(np.int64), column.valid_mask()
    if mask is not None:
        codes[~mask] = -1
    return codes
