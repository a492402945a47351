"""Converts columns to the type of a schema: exactly, or with a :class:`DataError` that names the row.

Integers, decimals, times and timestamps change width or unit only if every value stays the same. float64 to float32 or
float16 rounds, because such a schema asks for it. Strings are not parsed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import (
    binary_column,
    fixed_column,
    list_column,
    list_items,
    null_column,
    pack_mask,
    slice_column,
    struct_child,
    struct_column,
    take,
)
from pyparq.arrow.decimals import decimal_column, unscaled
from pyparq.errors import DataError, near_matches
from pyparq.format.types import DataType
from pyparq.kernels import utf8_validate

_MS_PER_DAY = 86_400_000
_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_EXACT_FLOAT = {"e": 1 << 11, "f": 1 << 24, "g": 1 << 53}


class Where(NamedTuple):
    """The place for error messages: the column, and the name of its elements (list items are not rows)."""

    column: str
    element: str = "row"


def cast(column: Column, target: DataType, name: str) -> Column:
    """The column as ``target`` (both of plain layout). Memory is shared where the layouts agree.

    A string column whose bytes do not fit int32 offsets comes out as the large type. Raises :class:`DataError`
    when the types do not go together or a value does not fit.
    """
    return _cast(column, target, Where(name))


def _cast(column: Column, target: DataType, where: Where) -> Column:
    source = column.type
    if source == target:
        return column
    if source.format == "n":
        return null_column(target, column.length)
    if source.is_nested or target.is_nested:
        return _nested(column, target, where)
    convert = _CASTS.get((source.kind, target.kind))
    if convert is None:
        raise _mismatch(column, target, where)
    return convert(column, target, where)


def _mismatch(column: Column, target: DataType, where: Where) -> DataError:
    if target.format == "n":
        return DataError(
            f"the data is {column.type}, but the schema says null (as it does when the first batch has only nulls). "
            f"Give the writer a schema, such as schema={{{where.column!r}: '{column.type}?'}} for this column",
            column=where.column,
        )
    return DataError(f"the data is {column.type}, but the schema says {target}. Convert it first", column=where.column)


def _require(ok: npt.NDArray[np.bool_], column: Column, values: npt.NDArray[Any], where: Where, why: str) -> None:
    """Every value that is not null must be ``ok``."""
    mask = column.valid_mask()
    bad = ~ok if mask is None else ~ok & mask
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(f"{where.element} {row}: {values[row]} {why}", column=where.column)


def _rebuilt(column: Column, target: DataType, values: npt.NDArray[Any]) -> Column:
    return fixed_column(target, values, column.valid_mask())


def _limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    info = np.iinfo(dtype.type)
    return int(info.min), int(info.max)


# ---- numbers -------------------------------------------------------------------------------------------------------


def _int_to_int(column: Column, target: DataType, where: Where) -> Column:
    values, dtype = column.values(), target.numpy_dtype
    if not np.can_cast(values.dtype, dtype, "safe"):
        least, most = _limits(dtype)
        _require((values >= least) & (values <= most), column, values, where, f"does not fit {target}")
    return _rebuilt(column, target, values.astype(dtype))


def _int_to_float(column: Column, target: DataType, where: Where) -> Column:
    values, limit = column.values(), _EXACT_FLOAT[target.format]
    if _limits(values.dtype)[1] > limit:
        ok = (values <= limit) & (values >= -limit)
        _require(ok, column, values, where, f"may not be exact as {target}")
    return _rebuilt(column, target, values.astype(target.numpy_dtype))


def _float_to_float(column: Column, target: DataType, where: Where) -> Column:
    values = column.values()
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        out = values.astype(target.numpy_dtype)
    _require(np.isfinite(out) | ~np.isfinite(values), column, values, where, f"is too large for {target}")
    return _rebuilt(column, target, out)


def _float_to_int(column: Column, target: DataType, where: Where) -> Column:
    values, (least, most) = column.values(), _limits(target.numpy_dtype)
    wide = values.astype(np.float64)
    # Compare with the powers of two next to the limits: those are exact as floats.
    fits = (wide >= float(least)) & (wide < float(most // 2 + 1) * 2.0)
    _require(fits & (np.trunc(wide) == wide), column, values, where, f"is not a whole number that fits {target}")
    with np.errstate(invalid="ignore"):
        return _rebuilt(column, target, np.where(fits, wide, 0).astype(target.numpy_dtype))


def _to_decimal(column: Column, target: DataType, where: Where) -> Column:
    scale = target.decimal[1] - (column.type.decimal[1] if column.type.kind == "decimal" else 0)
    mask = column.valid_mask()
    numbers = unscaled(column)
    out: list[int] = []
    for row, number in enumerate(numbers):
        if mask is not None and not mask[row]:
            out.append(0)
            continue
        whole, rest = (number * 10**scale, 0) if scale >= 0 else divmod(number, 10**-scale)
        if rest:
            raise DataError(
                f"{where.element} {row}: the value has more decimal places than {target}", column=where.column
            )
        out.append(whole)
    return decimal_column(target, out, mask, *where)


# ---- times ---------------------------------------------------------------------------------------------------------


def _change_unit(column: Column, target: DataType, where: Where) -> Column:
    if column.type.kind == "timestamp" and bool(column.type.timezone) != bool(target.timezone):
        kinds = "with a time zone", "without one"
        has, wants = kinds if column.type.timezone else kinds[::-1]
        raise DataError(
            f"the timestamps are {has}, but the schema says {target}, which is {wants}", column=where.column
        )
    before, after = _TICKS[column.type.unit], _TICKS[target.unit]
    values, dtype = column.values(), target.numpy_dtype
    wide = values.astype(np.int64)
    least, most = _limits(dtype)
    if after < before:
        factor = before // after
        _require(wide % factor == 0, column, values, where, f"({column.type}) has a finer unit than {target} can hold")
        wide, factor = wide // factor, 1
    else:
        factor = after // before
    ok = (wide <= most // factor) & (wide >= -(-least // factor))
    _require(ok, column, values, where, f"({column.type}) does not fit {target}")
    return _rebuilt(column, target, (np.where(ok, wide, 0) * factor).astype(dtype))


def _date_to_date(column: Column, target: DataType, where: Where) -> Column:
    values = column.values().astype(np.int64)
    if target.format == "tdm":
        return _rebuilt(column, target, values * _MS_PER_DAY)
    days, rest = np.divmod(values, _MS_PER_DAY)
    _require(rest == 0, column, values, where, f"({column.type}) is not midnight, and {target} holds no time of day")
    short = days.astype(np.int32)
    _require(short == days, column, values, where, f"({column.type}) does not fit {target}")
    return _rebuilt(column, target, short)


# ---- bytes ---------------------------------------------------------------------------------------------------------


def _to_binary(column: Column, target: DataType, where: Where) -> Column:
    if column.type.kind == "fixed":
        width = column.type.byte_width
        offsets = np.arange(column.length + 1, dtype=np.int64) * width
        return binary_column(target, offsets, column.values().reshape(-1), column.valid_mask())
    return binary_column(target, column.offsets(), column.buffers[1].view(np.uint8), column.valid_mask())


def _to_string(column: Column, target: DataType, where: Where) -> Column:
    out = _to_binary(column, target, where)
    if column.type.kind != "string":
        mask = column.valid_mask()
        rows = np.arange(column.length) if mask is None else np.flatnonzero(mask)
        bad = _first_bad_text(column, rows)
        if bad >= 0:
            raise DataError(f"{where.element} {bad} is not valid UTF-8, so it cannot be a string", column=where.column)
    return out


def _first_bad_text(column: Column, rows: npt.NDArray[np.int64]) -> int:
    part = take(column, rows)
    bad = utf8_validate(part.offsets(), part.buffers[1])
    return -1 if bad < 0 else int(rows[bad])


def _to_fixed(column: Column, target: DataType, where: Where) -> Column:
    width = target.byte_width
    if column.type.kind == "fixed":
        raise _mismatch(column, target, where)
    offsets, mask = column.offsets().astype(np.int64), column.valid_mask()
    lengths = np.diff(offsets)
    _require(lengths == width, column, lengths, where, f"bytes, but {target} needs {width}")
    data = column.buffers[1].view(np.uint8)[int(offsets[0]) : int(offsets[-1])]
    if mask is None:
        return fixed_column(target, data.reshape(-1, width))
    out = np.zeros((column.length, width), np.uint8)
    starts = offsets[:-1][mask] - offsets[0]
    out[mask] = data[starts[:, None] + np.arange(width)]
    return fixed_column(target, out, mask)


# ---- nested --------------------------------------------------------------------------------------------------------


def _nested(column: Column, target: DataType, where: Where) -> Column:
    source, mask = column.type, column.valid_mask()
    if source.format == "+s" and target.format == "+s":
        return _struct(column, target, where)
    if source.format == "+m" and target.format == "+m":
        offsets, entries = list_items(column)
        return list_column(target, offsets, _entries(entries, target.children[0].type, where), mask)
    if source.is_list and target.is_list:
        offsets, items = list_items(column)
        if target.format.startswith("+w:"):
            return _to_fixed_list(column, target, where)
        return list_column(target, offsets, _cast(items, target.children[0].type, _items_of(where)), mask)
    raise _mismatch(column, target, where)


def _items_of(where: Where) -> Where:
    return Where(f"{where.column}.element", "item")


def _struct(column: Column, target: DataType, where: Where) -> Column:
    fields = {f.name: i for i, f in enumerate(column.type.children)}
    unknown = [n for n in fields if n not in {f.name for f in target.children}]
    if unknown:
        known = near_matches(unknown[0], [f.name for f in target.children], "fields")
        raise DataError(f"the struct in the schema has no field {unknown[0]!r}{known}", column=where.column)
    children = []
    for field in target.children:
        inner = where._replace(column=f"{where.column}.{field.name}")
        if field.name in fields:
            children.append(_cast(struct_child(column, fields[field.name]), field.type, inner))
        else:
            children.append(null_column(field.type, column.length))
    return struct_column(target, children, column.length, column.valid_mask())


def _entries(entries: Column, target: DataType, where: Where) -> Column:
    """A map's entries: key and value by position, whatever they are called."""
    parts = zip(target.children, ("key", "value"), strict=True)
    children = [
        _cast(struct_child(entries, i), field.type, Where(f"{where.column}.{part}", "item"))
        for i, (field, part) in enumerate(parts)
    ]
    return struct_column(target, children, entries.length)


def _to_fixed_list(column: Column, target: DataType, where: Where) -> Column:
    size = int(target.format[3:])
    offsets, items = list_items(column)
    lengths = np.diff(offsets.astype(np.int64))
    mask = column.valid_mask()
    _require(lengths == size, column, lengths, where, f"items, but {target} needs {size}")
    if mask is not None and np.any(lengths[~mask] != size):
        why = "null lists cannot be stored as a fixed-size list here. Use a list type in the schema"
        raise DataError(why, column=where.column)
    used = slice_column(items, int(offsets[0]), int(offsets[-1]))
    items = _cast(used, target.children[0].type, _items_of(where))
    validity, nulls = pack_mask(mask)
    return Column(target, column.length, validity, (), nulls, (items,))


_Cast = Callable[[Column, DataType, Where], Column]
_INTS = ("int", "uint")
_CASTS: dict[tuple[str, str], _Cast] = {
    **{(a, b): _int_to_int for a in _INTS for b in _INTS},
    **{(a, "float"): _int_to_float for a in _INTS},
    **{("float", b): _float_to_int for b in _INTS},
    **{("bool", b): lambda one, to, _: _rebuilt(one, to, one.values().astype(to.numpy_dtype)) for b in _INTS},
    **{(a, "decimal"): _to_decimal for a in (*_INTS, "decimal")},
    ("float", "float"): _float_to_float,
    ("timestamp", "timestamp"): _change_unit,
    ("time", "time"): _change_unit,
    ("duration", "duration"): _change_unit,
    ("date", "date"): _date_to_date,
    ("string", "string"): _to_string,
    ("binary", "string"): _to_string,
    ("string", "binary"): _to_binary,
    ("binary", "binary"): _to_binary,
    ("fixed", "binary"): _to_binary,
    ("binary", "fixed"): _to_fixed,
}
