"""Decimal columns from and to Python integers (the unscaled values)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import numpy as np
import numpy.typing as npt

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import fixed_column
from pyparq.errors import DataError
from pyparq.format.types import DataType, Schema


def decimal_type(precision: int, scale: int) -> DataType:
    return DataType(f"d:{precision},{scale}" + (",256" if precision > 38 else ""))


def decimal_column(
    type_: DataType, numbers: list[int], mask: npt.NDArray[np.bool_] | None, name: str, element: str = "row"
) -> Column:
    """A column of the unscaled ``numbers``. Raises :class:`DataError` for a number with more digits than the type has.
    ``name`` and ``element`` name the column and its elements in the error."""
    precision, _, bits = type_.decimal
    limit = 10**precision
    for row, number in enumerate(numbers):
        if not -limit < number < limit:
            raise DataError(f"{element} {row}: the unscaled decimal {number} does not fit {type_}", column=name)
    width = bits // 8
    raw = b"".join([number.to_bytes(width, "little", signed=True) for number in numbers])
    return fixed_column(type_, np.frombuffer(raw, np.uint8).reshape(-1, width), mask)


def in_width(column: Column, type_: DataType) -> Column | None:
    """A decimal column as ``type_``, which has its scale; ``None`` where a value has too many digits or bits for it."""
    values, width = column.values(), type_.byte_width
    count, have = values.shape
    out = np.empty((count, width), np.uint8)
    kept = min(have, width)
    out[:, :kept] = values[:, :kept]
    sign = (out[:, kept - 1] >> 7) * np.uint8(255)
    out[:, kept:] = sign[:, None]
    mask = column.valid_mask()
    wrong = (values[:, kept:] != sign[:, None]).any(axis=1)
    beyond = beyond_digits(values, type_.decimal[0]) if type_.decimal[0] < column.type.decimal[0] else None
    if beyond is not None:
        wrong |= beyond
    if (wrong if mask is None else wrong & mask).any():
        return None
    return fixed_column(type_, out, mask)


def beyond_digits(values: npt.NDArray[np.uint8], precision: int) -> npt.NDArray[np.bool_] | None:
    """Where decimals, rows of little-endian two's complement of 4, 8, 16 or 32 bytes, have more than ``precision``
    digits; ``None`` where none can."""
    count, width = values.shape
    limit = 10**precision
    if count == 0 or limit > 1 << (8 * width - 1):
        return None
    if width == 4:
        numbers = np.ascontiguousarray(values).reshape(-1).view(np.int32)
        return np.asarray((numbers <= -limit) | (numbers >= limit))
    limbs = np.ascontiguousarray(values).reshape(-1).view(np.uint64).reshape(count, width // 8)
    return _limbs_less(limbs, 1 - limit) | ~_limbs_less(limbs, limit)


def _limbs_less(limbs: npt.NDArray[np.uint64], bound: int) -> npt.NDArray[np.bool_]:
    """Numbers of 64-bit limbs, lowest first, that are less than ``bound``; the highest limb has the sign."""
    count = limbs.shape[1]
    raw = bound.to_bytes(8 * count, "little", signed=True)
    less = np.zeros(len(limbs), np.bool_)
    equal = np.ones(len(limbs), np.bool_)
    for k in reversed(range(count)):
        dtype = np.dtype(np.int64 if k == count - 1 else np.uint64)
        limb, edge = limbs[:, k].view(dtype), np.frombuffer(raw, dtype, 1, 8 * k)[0]
        less |= equal & (limb < edge)
        equal &= limb == edge
    return less


def unscaled(column: Column) -> list[int]:
    """Unscaled values of a decimal column, or the values of an integer one; nulls give any number."""
    values = column.values()
    if column.type.kind != "decimal":
        numbers: list[int] = values.tolist()
        return numbers
    width = values.shape[1]
    if width <= 8:
        numbers = values.reshape(-1).view(f"<i{width}").tolist()
        return numbers
    if width == 16:
        halves = np.ascontiguousarray(values).reshape(-1).view("<i8").reshape(-1, 2)
        low, high = halves[:, 0], halves[:, 1]
        if np.array_equal(high, low >> 63):  # all fit 64 bits, as is usual
            numbers = low.tolist()
            return numbers
    raw = np.ascontiguousarray(values).tobytes()
    return [int.from_bytes(raw[i : i + width], "little", signed=True) for i in range(0, len(raw), width)]


def digits_of(value: Decimal) -> tuple[int, int]:
    """(unscaled integer, number of decimals >= 0) of a finite Decimal; ``ValueError`` for NaN and infinity."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{value} is not a finite decimal")
    number = int("".join(map(str, digits)) or "0")
    if exponent > 0:
        if exponent > 76 and number:
            raise ValueError(f"{value} has more than 76 digits")
        number, exponent = number * 10 ** min(exponent, 77), 0
    return (-number if sign else number), -exponent


def with_usual_decimals(
    schema: Schema, parts: Sequence[tuple[list[Column], int]]
) -> tuple[Schema, list[tuple[list[Column], int]]]:
    """Rows with decimals in 128 bits, or in 256 beyond 38 digits, at any depth."""
    fields = tuple(replace(f, type=_usual(f.type)) for f in schema.fields)
    found = [
        ([_in_usual_width(c, f.type) for c, f in zip(columns, fields, strict=True)], rows) for columns, rows in parts
    ]
    return replace(schema, fields=fields), found


def _usual(type_: DataType) -> DataType:
    if type_.kind == "decimal" and type_.dictionary is None:
        return decimal_type(*type_.decimal[:2])
    children = tuple(replace(field, type=_usual(field.type)) for field in type_.children)
    dictionary = None if type_.dictionary is None else _usual(type_.dictionary)
    return replace(type_, children=children, dictionary=dictionary)


def _in_usual_width(column: Column, type_: DataType) -> Column:
    if column.type == type_:
        return column
    if column.type.kind == "decimal" and type_.dictionary is None:
        made = in_width(column, type_)
        if made is None:
            raise DataError(f"a value has more digits than {type_}")
        return made
    children = tuple(_in_usual_width(c, f.type) for c, f in zip(column.children, type_.children, strict=True))
    entries = None
    if column.dictionary is not None and type_.dictionary is not None:
        entries = _in_usual_width(column.dictionary, type_.dictionary)
    return Column(
        type_, column.length, column.validity, column.buffers, column.null_count, children, entries, column.offset
    )
