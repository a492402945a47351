"""Converts a column's values in memory to the physical values of its leaf, without nulls.

Conversions are exact. A value that its storage cannot hold is a :class:`DataError` with the row; it is never rounded.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.arrow.column import Column
from pyparq.arrow.decimals import beyond_digits
from pyparq.arrow.schema.to_parquet import leaf_of
from pyparq.errors import DataError
from pyparq.format import int96
from pyparq.format.leaf_values import BinaryValues, Values
from pyparq.format.types import DataType, Field, LeafType, Physical
from pyparq.kernels import compact_binary, compact_fixed, take_binary, utf8_validate

Mask = npt.NDArray[np.bool_]
Int64Array = npt.NDArray[np.int64]

_MS_PER_DAY = 86_400_000
_TICKS_PER_DAY = {"s": 86_400, "ms": _MS_PER_DAY, "us": _MS_PER_DAY * 1000, "ns": _MS_PER_DAY * 1_000_000}

_SAME_BYTES = frozenset({"json", "enum", "uuid", "bson", "interval", "variant", "geometry", "geography", "int128"})
"""Annotations over bytes that Arrow holds as strings, binary or fixed-size binary."""


class Misfit(Exception):
    """Value number ``index`` (counted without nulls) does not fit. The caller knows its row."""

    def __init__(self, index: int, message: str) -> None:
        super().__init__(message)
        self.index = index


@lru_cache(maxsize=4096)
def fits(type_: DataType, leaf: LeafType) -> bool:
    """Whether a column of this type is written as this leaf."""
    if leaf.kind == "null" or type_.is_nested:
        return type_.format == "n"
    made = leaf_of(Field("", type_))
    if leaf.kind in _SAME_BYTES:
        same = made.physical == leaf.physical and made.length == leaf.length
        return same and made.kind in ("string", "binary", "fixed")
    if leaf.kind == "int96":
        return made.kind == "timestamp" or type_.format == "w:12"  # INT96 bytes as they were stored
    if leaf.kind == "decimal":  # options decide about its storage
        return (made.kind, made.precision, made.scale) == ("decimal", leaf.precision, leaf.scale)
    return made == replace(leaf, utc=made.utc) if leaf.kind == "time" else made == leaf


def leaf_values(column: Column, keep: Mask | Int64Array | None, leaf: LeafType, *, check_text: bool = True) -> Values:
    """Physical values of the elements to ``keep``: a mask, positions, or ``None`` for all.

    Shares memory with the column if neither a conversion nor a selection is needed. ``check_text=False``: for text that
    is in a file already, valid or not. Raises :class:`Misfit`.
    """
    if leaf.kind == "null":
        return np.empty(0, np.int32)
    if column.type.is_binary_like:
        taken = _binary(column, keep)
        if leaf.is_text and check_text:
            _check_text(taken)
        return taken
    values = to_physical(_fixed(column, keep), column.type, leaf)
    if leaf.is_binary:
        return _shortest(values)  # a decimal in a BYTE_ARRAY
    return values


def _binary(column: Column, keep: Mask | Int64Array | None) -> BinaryValues:
    offsets, data = np.ascontiguousarray(column.offsets()), column.buffers[1].view(np.uint8)
    if keep is None:
        return BinaryValues(offsets.astype(np.int64, copy=False), data)
    if keep.dtype != np.bool_:
        return BinaryValues(*take_binary(offsets, data, np.ascontiguousarray(keep, np.int64)))
    if offsets[0] == offsets[-1] or not np.any(np.diff(offsets)[~keep]):
        # No bytes lie under the nulls, as usual, so the bytes can stay where they are.
        starts = offsets[:-1][keep]
        return BinaryValues(np.append(starts, offsets[-1:]).astype(np.int64, copy=False), data)
    return BinaryValues(*compact_binary(offsets, data, np.ascontiguousarray(keep).view(np.uint8)))


def _check_text(values: BinaryValues) -> None:
    bad = utf8_validate(values.offsets, values.data)
    if bad >= 0:
        raise Misfit(bad, f"{values.value(bad)[:24]!r} is not valid UTF-8. Use a binary column for other bytes")


def _fixed(column: Column, keep: Mask | Int64Array | None) -> npt.NDArray[Any]:
    values = column.values()
    if keep is None:
        return values
    if keep.dtype != np.bool_ or values.dtype == np.bool_:
        return values[keep]
    width = column.type.byte_width
    packed = compact_fixed(values.view(np.uint8).reshape(-1), width, np.ascontiguousarray(keep).view(np.uint8))
    return packed.reshape(-1, width) if values.ndim == 2 else packed.view(values.dtype)


def to_physical(values: npt.NDArray[Any], type_: DataType, leaf: LeafType) -> npt.NDArray[Any]:
    """Fixed-width values of an Arrow type as physical values of the leaf."""
    kind = leaf.kind
    if kind == "bool":
        return values.view(np.uint8)
    if kind in ("int", "uint"):
        if values.dtype.itemsize < 4:
            return values.astype(np.int32)
        return values.view(np.int32 if leaf.physical == Physical.INT32 else np.int64)
    if kind == "decimal":
        return _decimal(values, type_, leaf)
    if kind == "float16":
        return values.view(np.uint8).reshape(-1, 2)
    if kind == "date" and type_.format == "tdm":
        return _days(values)
    if kind == "time":
        _check(
            within_a_day(values, type_.unit), values, f"({type_}) is no time of day: it must lie within 0:00 and 24:00"
        )
    if kind in ("time", "timestamp") and type_.unit == "s":
        return _milliseconds(values, values.dtype)
    if kind == "int96" and type_.kind == "fixed":
        return values.reshape(-1, 12)
    if kind == "int96":
        stored, fit = int96.from_ticks(values, type_.unit)
        _check(fit, values, f"{type_.unit} do not fit a 32-bit Julian day")
        return stored
    return values


def within_a_day(values: npt.NDArray[Any], unit: str) -> npt.NDArray[np.bool_]:
    """A mask of the valid times of day. 24:00 is valid: DuckDB has it."""
    return np.asarray((values >= 0) & (values <= _TICKS_PER_DAY[unit]))


def _days(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    days, rest = np.divmod(values, _MS_PER_DAY)
    _check(rest == 0, values, "milliseconds are not midnight, and a DATE holds no time of day")
    short = days.astype(np.int32)
    _check(short == days, values, "milliseconds do not fit a 32-bit number of days")
    return short


def _milliseconds(values: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    limit = np.iinfo(dtype).max // 1000
    _check((values >= -limit) & (values <= limit), values, "seconds do not fit in milliseconds")
    return np.asarray(values * dtype.type(1000))


def _check(ok: npt.NDArray[np.bool_], values: npt.NDArray[Any], why: str) -> None:
    if not ok.all():
        bad = int(np.argmin(ok))
        raise Misfit(bad, f"{values[bad]} {why}")


# ---- decimals ------------------------------------------------------------------------------------------------------


def _decimal(values: npt.NDArray[np.uint8], type_: DataType, leaf: LeafType) -> npt.NDArray[Any]:
    """Little-endian two's complement of any width to INT32, INT64 or big-endian bytes of the leaf's length."""
    width = values.shape[1]
    _check_digits(values, leaf.precision)
    if leaf.physical in (Physical.INT32, Physical.INT64):
        dtype = np.int32 if leaf.physical == Physical.INT32 else np.int64
        if width == dtype().itemsize:
            return values.reshape(-1).view(dtype)
        if width == 4:
            return values.reshape(-1).view(np.int32).astype(dtype)
        return values.reshape(-1).view(np.int64).reshape(-1, width // 8)[:, 0].astype(dtype)
    length = leaf.length or width
    return np.ascontiguousarray(_widened(values, length)[:, length - 1 :: -1])


def _shortest(values: npt.NDArray[np.uint8]) -> BinaryValues:
    """Rows of big-endian two's complement in the fewest bytes that keep the sign (LogicalTypes.md, DECIMAL)."""
    count, width = values.shape
    sign = np.where(values[:, :1] >= 128, 255, 0)
    # A leading byte may go when it repeats the sign and the next one still begins with it.
    spare = (values[:, :-1] == sign) & ((values[:, 1:] >= 128) == (sign == 255))
    skipped = np.where(spare.all(axis=1), width - 1, np.argmin(spare, axis=1)) if width > 1 else np.zeros(count, int)
    kept = np.arange(width) >= skipped[:, None]
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(width - skipped, out=offsets[1:])
    return BinaryValues(offsets, np.ascontiguousarray(values[kept]))


def _widened(values: npt.NDArray[np.uint8], length: int) -> npt.NDArray[np.uint8]:
    width = values.shape[1]
    if length <= width:
        return values
    wide = np.empty((len(values), length), np.uint8)
    wide[:, :width] = values
    wide[:, width:] = np.where(values[:, -1:] >= 128, 255, 0)
    return wide


def _check_digits(values: npt.NDArray[np.uint8], precision: int) -> None:
    """Check that every value has at most ``precision`` digits, so that the smaller storage holds it too."""
    beyond = beyond_digits(values, precision)
    if beyond is not None and beyond.any():
        bad = int(np.argmax(beyond))
        number = int.from_bytes(values[bad].tobytes(), "little", signed=True)
        raise Misfit(bad, f"the unscaled decimal {number} has more than {precision} digits")


def misfit_error(misfit: Misfit, row: int, column: str) -> DataError:
    return DataError(f"row {row}: {misfit}", column=column)
