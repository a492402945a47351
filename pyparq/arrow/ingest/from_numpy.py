"""Columns from numpy arrays: shared where the bytes allow it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import Mask, binary_column, fixed_column
from pyparq.errors import DataError, UnsupportedError
from pyparq.format.types import DataType, Field

_FORMATS = {
    "i1": "c", "i2": "s", "i4": "i", "i8": "l", "u1": "C", "u2": "S", "u4": "I", "u8": "L",
    "f2": "e", "f4": "f", "f8": "g", "b1": "b",
}  # fmt: skip
_TO_SECONDS = ("m", "h")
_TO_DAYS = ("Y", "M", "W")
_DURATIONS = {"W": "s", "D": "s", "h": "s", "m": "s", "s": "s", "ms": "ms", "us": "us", "ns": "ns"}
"""Units of timedelta64 that have one length, and the unit of the duration that each becomes."""


def column_from_numpy(array: npt.NDArray[Any], name: str, from_list: Callable[[list[Any], str], Column]) -> Column:
    """A column of an array: the rows of two and more dimensions become lists of one length (embeddings, for example).
    ``from_list`` converts object arrays and numpy's variable-width strings.

    bool, integers, floats keep their type; datetime64 becomes a timestamp (``[D]`` a date; NaT is null), ``U`` and
    ``StringDType`` strings, ``S`` binary, ``V`` fixed-size binary. A masked array's mask is its nulls; NaN stays a
    value; timedelta64 becomes a duration. Raises :class:`UnsupportedError` for complex and wide floats,
    :class:`DataError` for an array without dimensions, or with one of length 0 behind the first.
    """
    if array.ndim != 1:
        return _lists(array, name, from_list)
    mask: Mask | None = None
    if isinstance(array, np.ma.MaskedArray):
        hidden = np.ma.getmaskarray(array)
        mask = ~hidden if hidden.any() else None
        array = np.ma.getdata(array)
    kind = array.dtype.kind
    if kind in "biuf" and array.dtype.str[1:] in _FORMATS:
        # Other byte orders become the machine's, which is little-endian wherever Arrow is.
        native = array.astype(array.dtype.newbyteorder("="), copy=False)
        return fixed_column(DataType(_FORMATS[array.dtype.str[1:]]), native, mask)
    if kind == "M":
        return _timestamps(array, mask, name)
    if kind == "m":
        return _durations(array, mask, name)
    if kind == "U":
        try:
            return _fixed_text(array, mask)
        except UnicodeEncodeError as error:
            raise DataError(
                f"the string {str(error.object)!r} has a lone surrogate, so it cannot be stored as UTF-8", column=name
            ) from None
    if kind == "S":
        return _fixed_bytes(array, mask)
    if kind == "V" and array.dtype.names is None and array.dtype.itemsize:
        width = array.dtype.itemsize
        raw = np.ascontiguousarray(array).view(np.uint8).reshape(-1, width)
        return fixed_column(DataType(f"w:{width}"), raw, mask)
    if kind in "OT":
        values = array.astype(object).tolist()
        if mask is not None:
            values = [value if present else None for value, present in zip(values, mask.tolist(), strict=True)]
        if kind == "T":  # StringDType's na_object may be anything
            return from_list([v if isinstance(v, str) else None for v in values], name)
        return from_list(values, name)
    raise UnsupportedError(f"numpy's {array.dtype} has no matching column type. Convert it first", column=name)


def _lists(array: npt.NDArray[Any], name: str, from_list: Callable[[list[Any], str], Column]) -> Column:
    """Lists of one length, over the memory of the array where it is contiguous."""
    if not array.ndim or not all(array.shape[1:]):
        raise DataError(f"an array of shape {array.shape} has no column: give one value or list a row", column=name)
    items = column_from_numpy(array.reshape(-1, *array.shape[2:]), name, from_list)
    element = Field("element", items.type, items.null_count != 0)
    return Column(DataType(f"+w:{array.shape[1]}", (element,)), len(array), None, (), 0, (items,))


def _timestamps(array: npt.NDArray[Any], mask: Mask | None, name: str) -> Column:
    unit, _ = np.datetime_data(array.dtype)
    unit = "D" if unit in _TO_DAYS else "s" if unit in _TO_SECONDS else unit
    if unit not in ("D", "s", "ms", "us", "ns"):
        raise UnsupportedError(
            f"numpy's {array.dtype} cannot be stored. Convert it to datetime64[ns] or a coarser unit", column=name
        )
    numbers, mask = _in_unit(array, f"datetime64[{unit}]", mask, name)
    array = numbers.view(f"datetime64[{unit}]")
    if unit != "D":
        return fixed_column(DataType(f"ts{unit[0]}:"), numbers, mask)
    days = numbers.astype(np.int32)
    beyond = days != numbers if mask is None else (days != numbers) & mask
    if beyond.any():
        row = int(np.argmax(beyond))
        raise DataError(f"row {row}: {array[row]} does not fit in a 32-bit number of days", column=name)
    return fixed_column(DataType("tdD"), days, mask)


def _durations(array: npt.NDArray[Any], mask: Mask | None, name: str) -> Column:
    unit = _DURATIONS.get(np.datetime_data(array.dtype)[0])
    if unit is None:
        raise UnsupportedError(
            f"numpy's {array.dtype} cannot be stored. Convert it to timedelta64[ns] or a coarser unit", column=name
        )
    numbers, mask = _in_unit(array, f"timedelta64[{unit}]", mask, name)
    return fixed_column(DataType(f"tD{unit[0]}"), numbers, mask)


def _in_unit(
    given: npt.NDArray[Any], dtype: str, mask: Mask | None, name: str
) -> tuple[npt.NDArray[np.int64], Mask | None]:
    """Times as 64-bit numbers of another unit, and which of them are there (``None``: all)."""
    try:  # also takes steps such as datetime64[10us] and foreign byte orders
        array = np.ascontiguousarray(given.astype(dtype))
    except OverflowError:  # numpy 2.5; older ones wrap around
        raise _beyond(given, dtype, name) from None
    missing = np.isnat(array)
    if missing.any():
        mask = ~missing if mask is None else mask & ~missing
    if given.dtype != array.dtype and np.any((array.astype(given.dtype) != given) & ~missing):
        raise _beyond(given, dtype, name)
    return array.view(np.int64), mask


def _beyond(given: npt.NDArray[Any], dtype: str, name: str) -> DataError:
    return DataError(f"some {given.dtype} values do not fit {dtype}", column=name)


def _fixed_text(array: npt.NDArray[Any], mask: Mask | None) -> Column:
    """``U`` arrays: fixed-width UCS-4, padded with zeros."""
    native = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False))
    width = native.dtype.itemsize // 4
    codes = native.view(np.uint32).reshape(len(native), width)
    if codes.size and int(codes.max()) >= 128:
        return _fixed_bytes(np.char.encode(native, "utf-8"), mask, "u")
    return _packed(codes, mask, "u")


def _fixed_bytes(array: npt.NDArray[Any], mask: Mask | None, format_: str = "z") -> Column:
    """``S`` arrays: zero bytes at the end are padding, as numpy has it."""
    array = np.ascontiguousarray(array)
    return _packed(array.view(np.uint8).reshape(len(array), array.dtype.itemsize), mask, format_)


def _packed(codes: npt.NDArray[Any], mask: Mask | None, format_: str) -> Column:
    rows, width = codes.shape
    offsets = np.zeros(rows + 1, np.int64)
    if width == 0 or rows == 0:
        return binary_column(DataType(format_), offsets, np.empty(0, np.uint8), mask)
    used = codes != 0
    lengths = np.where(used.any(axis=1), width - np.argmax(used[:, ::-1], axis=1), 0)
    np.cumsum(lengths, out=offsets[1:])
    data = codes[np.arange(width) < lengths[:, None]].astype(np.uint8)
    return binary_column(DataType(format_), offsets, data, mask)
