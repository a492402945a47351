"""Data out: columns as Python objects and as numpy arrays."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import list_items, slice_column, struct_child
from pyparq.arrow.decimals import unscaled
from pyparq.arrow.layouts import normalize
from pyparq.arrow.schema.extensions import EXTENSION_NAME, VARIANT
from pyparq.arrow.variant_values import decode
from pyparq.errors import DataError, UnsupportedError
from pyparq.format.types import DataType, Field

_EXACT = Context(prec=100)  # the default context would round decimals beyond 28 digits
_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY = 86_400


def column_to_pylist(column: Column) -> list[Any]:
    """One Python object per element, ``None`` for nulls.

    bool, int, float, str, bytes (also for UUIDs), Decimal, date, time, datetime (with the column's zone if it has
    one); lists for lists, dicts for structs, lists of ``(key, value)`` for maps. What Python's own classes cannot hold
    comes as numpy's: nanoseconds that are no whole microseconds and years outside 1 to 9999 (in the column's zone) as
    ``datetime64`` (UTC), a time of day or a duration of that kind as ``timedelta64``. The smallest number of 64 bits,
    which numpy has no other value for, is NaT.

    Raises :class:`DataError` for a string that is not UTF-8, and for structs whose fields share a name.
    """
    if column.type.dictionary is not None and column.dictionary is not None:
        entries = column_to_pylist(column.dictionary)
        keys = Column(DataType(column.type.format), column.length, None, column.buffers, 0, offset=column.offset)
        return kernels.objects_at(entries, np.ascontiguousarray(keys.values(), np.int64), column.valid_mask())
    convert = _CONVERTERS.get(column.type.kind)
    if convert is None:
        raise UnsupportedError(f"values of {column.type} cannot be converted to Python objects")
    return convert(column)


def field_to_pylist(field: Field, column: Column) -> list[Any]:
    """The same for a column whose ``field`` says what Arrow's type does not: Variants come as what they hold."""
    if is_variant(field):
        return variants_to_pylist(column)
    return column_to_pylist(column)


def _with_nulls(values: list[Any], mask: npt.NDArray[np.bool_] | None) -> list[Any]:
    if mask is not None:
        for i in np.flatnonzero(~mask).tolist():
            values[i] = None
    return values


def _nulls(column: Column) -> list[Any]:
    return [None] * column.length


_NATIVE = {"|b1", "|i1", "|u1", *(f"<{kind}{width}" for kind in "iu" for width in (2, 4, 8)), "<f4", "<f8"}


def _numbers(column: Column) -> list[Any]:
    values = np.ascontiguousarray(column.values())
    if values.dtype.str in _NATIVE:
        return kernels.objects_of_numbers(values, values.dtype.kind == "b", column.valid_mask())
    return _with_nulls(column.values().tolist(), column.valid_mask())


def _strings(column: Column) -> list[Any]:
    column = _plain(column)
    found = _of_bytes(column, text=True)
    return _decoded(column) if found is None else found


def _of_bytes(column: Column, *, text: bool) -> list[Any] | None:
    return kernels.objects_of_bytes(column.offsets(), column.buffers[1], column.valid_mask(), text)


def _decoded(column: Column) -> list[Any]:
    """The strings one by one, to find the one that is not UTF-8."""
    out: list[Any] = []
    for row, value in enumerate(_of_bytes(column, text=False) or ()):
        try:
            out.append(None if value is None else value.decode())
        except UnicodeDecodeError:
            raise DataError(f"row {row} is not valid UTF-8. Read the column with binary_columns") from None
    return out


def _plain(column: Column) -> Column:
    """Views of strings and of lists as strings and lists."""
    if not column.type.format.startswith(("v", "+v")):
        return column
    return normalize(column, "")


def _binary(column: Column) -> list[Any]:
    return _of_bytes(_plain(column), text=False) or []


def _fixed(column: Column) -> list[Any]:
    width = column.type.byte_width
    raw = np.ascontiguousarray(column.values()).tobytes()
    values = [raw[i * width : (i + 1) * width] for i in range(column.length)]
    return _with_nulls(values, column.valid_mask())


def _wide_integers(column: Column) -> list[Any]:
    signed = column.type.format == "_pli128"
    return [None if v is None else int.from_bytes(v, "little", signed=signed) for v in _fixed(column)]


def _decimals(column: Column) -> list[Any]:
    scale = column.type.decimal[1]
    numbers = unscaled(column)
    return _with_nulls([_EXACT.scaleb(Decimal(n), -scale) for n in numbers], column.valid_mask())


# ---- times ---------------------------------------------------------------------------------------------------------


def _dates(column: Column) -> list[Any]:
    values = column.values().astype(np.int64)
    if column.type.format == "tdm":
        values = values // (_DAY * 1000)
    return _with_nulls(_python_times(values.view("M8[D]"), "D"), column.valid_mask())


def _python_times(values: npt.NDArray[Any], unit: str) -> list[Any]:
    """date or datetime objects, ``datetime64`` where the year is outside of Python's, or what numpy calls NaT."""
    return _known_or(values.tolist(), np.datetime64, unit)


def _known_or(objects: list[Any], number: Any, unit: str) -> list[Any]:
    """numpy gives a bare int for what Python has no object for, and ``None`` for the smallest number, which is NaT."""
    return [number("NaT" if v is None else v, unit) if v is None or isinstance(v, int) else v for v in objects]


def _timestamps(column: Column) -> list[Any]:
    values, unit, mask = column.values(), column.type.unit, column.valid_mask()
    if unit == "ns":
        out = _nanoseconds(values)
    else:
        out = _python_times(np.ascontiguousarray(values).view(f"M8[{unit}]"), unit)
    if column.type.timezone:
        zone = _zone(column.type.timezone)
        out = [v if isinstance(v, np.datetime64) else _in_zone(v, zone, unit) for v in out]
    return _with_nulls(out, mask)


def _nanoseconds(values: npt.NDArray[Any]) -> list[Any]:
    micros, rest = np.divmod(values, 1000)
    out = np.ascontiguousarray(micros).view("M8[us]").tolist()
    for i in np.flatnonzero(rest).tolist():
        out[i] = np.datetime64(int(values[i]), "ns")
    return out  # type: ignore[no-any-return]


def _in_zone(value: dt.datetime, zone: dt.tzinfo, unit: Any) -> dt.datetime | np.datetime64:
    utc = value.replace(tzinfo=dt.UTC)
    try:
        return utc if zone is dt.UTC else utc.astimezone(zone)
    except OverflowError:  # within a day of the ends of Python's years
        return np.datetime64(value, unit)


def _zone(name: str) -> dt.tzinfo:
    if name.upper() in ("UTC", "ETC/UTC", "Z", "+00:00"):
        return dt.UTC
    fixed = re.fullmatch(r"([+-])(\d\d):?(\d\d)", name)
    if fixed:
        offset = dt.timedelta(hours=int(fixed[2]), minutes=int(fixed[3]))
        return dt.timezone(-offset if fixed[1] == "-" else offset)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise DataError(f"unknown time zone {name!r}") from None


def _times(column: Column) -> list[Any]:
    unit = column.type.unit
    ticks = _TICKS[unit]
    number: Any = np.timedelta64  # (the stubs want literal units)
    out: list[Any] = []
    for value in column.values().tolist():
        seconds, part = divmod(value, ticks)
        micros, finer = divmod(part * 10**6, ticks)
        if finer or not 0 <= seconds < _DAY:
            out.append(number(value, unit))
        else:
            out.append(dt.time(seconds // 3600, seconds // 60 % 60, seconds % 60, micros))
    return _with_nulls(out, column.valid_mask())


def _durations(column: Column) -> list[Any]:
    unit, values = column.type.unit, np.ascontiguousarray(column.values())
    if unit != "ns":
        out = _known_or(values.view(f"m8[{unit}]").tolist(), np.timedelta64, unit)
        return _with_nulls(out, column.valid_mask())
    micros, rest = np.divmod(values, 1000)
    out = np.ascontiguousarray(micros).view("m8[us]").tolist()
    for i in np.flatnonzero(rest).tolist():
        out[i] = np.timedelta64(int(values[i]), "ns")
    return _with_nulls(out, column.valid_mask())


def _intervals(column: Column) -> list[Any]:
    """Months, days and nanoseconds, whatever parts the type has: pyarrow's MonthDayNano, as a tuple."""
    words = np.ascontiguousarray(column.values()).view("<i4").reshape(column.length, column.type.byte_width // 4)
    if column.type.format == "tiM":
        rows = [(months, 0, 0) for months in words[:, 0].tolist()]
    elif column.type.format == "tiD":
        rows = [(0, days, ms * 1_000_000) for days, ms in words.tolist()]
    else:
        nanos = np.ascontiguousarray(words).view("<i8").reshape(column.length, 2)[:, 1].tolist()
        rows = [(months, days, ns) for (months, days), ns in zip(words[:, :2].tolist(), nanos, strict=True)]
    return _with_nulls(rows, column.valid_mask())


def _runs(column: Column) -> list[Any]:
    return column_to_pylist(normalize(column, ""))


# ---- nested --------------------------------------------------------------------------------------------------------


def _lists(column: Column) -> list[Any]:
    column = _plain(column)
    offsets, items = list_items(column)
    first, last = int(offsets[0]), int(offsets[-1])
    values = field_to_pylist(column.type.children[0], slice_column(items, first, last))
    return kernels.cut_list(values, offsets - first, column.valid_mask())


def _maps(column: Column) -> list[Any]:
    offsets, entries = column.offsets(), column.children[0]
    first, last = int(offsets[0]), int(offsets[-1])
    used = slice_column(entries, first, last)
    keys, values = (field_to_pylist(used.type.children[i], struct_child(used, i)) for i in range(2))
    return kernels.cut_list(list(zip(keys, values, strict=True)), offsets - first, column.valid_mask())


def _structs(column: Column) -> list[Any]:
    names = [field.name for field in column.type.children]
    _check_names(names)
    lists = [field_to_pylist(field, struct_child(column, i)) for i, field in enumerate(column.type.children)]
    return kernels.dicts_of_lists(names, lists, column.length, column.valid_mask())


def is_variant(field: Field) -> bool:
    """Whether the field holds Variants that are not shredded."""
    return field.type.kind == "struct" and field.metadata.get(EXTENSION_NAME) == VARIANT


def variants_to_pylist(column: Column) -> list[Any]:
    """What Variants hold. One that is Variant's own null is ``None``, as one that is null in the column."""
    names = [field.name for field in column.type.children]
    metadata, values = (column_to_pylist(struct_child(column, names.index(name))) for name in ("metadata", "value"))
    mask = column.valid_mask()
    present = [True] * column.length if mask is None else mask.tolist()
    # In a null struct, a Variant that may not be null has no bytes.
    return [
        decode(m, v) if there and m is not None and v is not None else None
        for m, v, there in zip(metadata, values, present, strict=True)
    ]


def check_field_names(type_: DataType) -> None:
    """Raise :class:`DataError` where a struct, at any depth, has several fields of one name: a dict holds one."""
    if type_.kind == "struct":
        _check_names([field.name for field in type_.children])
    # A map's keys and values become pairs, whatever their fields are called.
    for field in type_.children[0].type.children if type_.kind == "map" else type_.children:
        check_field_names(field.type)


def _check_names(names: list[str]) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"a struct has several fields called {twice!r}, but a dict can hold only one. Use to_arrow()")


_CONVERTERS: dict[str, Callable[[Column], list[Any]]] = {
    "null": _nulls,
    "bool": _numbers,
    "int": _numbers,
    "uint": _numbers,
    "float": _numbers,
    "string": _strings,
    "binary": _binary,
    "fixed": _fixed,
    "int128": _wide_integers,
    "decimal": _decimals,
    "date": _dates,
    "timestamp": _timestamps,
    "time": _times,
    "duration": _durations,
    "interval": _intervals,
    "run_end": _runs,
    "list": _lists,
    "list_view": _lists,
    "map": _maps,
    "struct": _structs,
}


# ---- numpy ---------------------------------------------------------------------------------------------------------


def chunks_to_numpy(type_: DataType, chunks: Sequence[Column]) -> npt.NDArray[Any]:
    """The elements of all chunks as one numpy array of shape ``(n,)``; of ``(n, length)`` for lists of numbers that
    all have one length, as embeddings have, again over the memory of the column.

    Numbers keep their dtype (and share memory when there is one chunk); dates and timestamps come as datetime64
    (``[D]`` and the column's unit; instants in UTC), times of day as timedelta64; with nulls all of these are masked
    arrays (NaT or whatever under the mask). Everything else is an object array as from :func:`column_to_pylist`.
    """
    dtype = _time_dtype(type_)
    if dtype is None and (type_.kind not in ("bool", "int", "uint", "float") or type_.dictionary is not None):
        if type_.kind == "list" and type_.dictionary is None and (made := _rows_of_lists(type_, chunks)) is not None:
            return made
        return object_array([value for chunk in chunks for value in column_to_pylist(chunk)])
    parts = [chunk.values() for chunk in chunks]
    plain = np.dtype(np.bool_) if type_.format == "b" else type_.numpy_dtype
    values = parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, plain), *parts])
    if dtype is not None:
        values = np.ascontiguousarray(values.astype(np.int64, copy=False)).view(dtype)
    masks = [chunk.valid_mask() for chunk in chunks]
    if all(mask is None for mask in masks):
        return values
    hidden = np.concatenate(
        [np.zeros(len(c), np.bool_) if m is None else ~m for c, m in zip(chunks, masks, strict=True)]
    )
    if not hidden.any():
        return values
    if dtype is not None:
        values = values.copy()
        values[hidden] = np.array("NaT", dtype)
    return np.ma.MaskedArray(values, hidden)


def _rows_of_lists(type_: DataType, chunks: Sequence[Column]) -> npt.NDArray[Any] | None:
    """Lists of numbers as rows. ``None`` for lists that are missing or of several lengths, and for other items."""
    parts, width = [], int(type_.format[3:]) if type_.format.startswith("+w:") else 0
    for chunk in chunks:
        if not len(chunk):
            continue
        if chunk.valid_mask() is not None:
            return None
        offsets, items = list_items(chunk)
        width = width or int(offsets[1] - offsets[0])
        if not width or (np.diff(offsets) != width).any():
            return None
        found = chunks_to_numpy(items.type, [slice_column(items, int(offsets[0]), int(offsets[-1]))])
        if found.dtype.kind == "O":
            return None
        parts.append(found.reshape(len(chunk), width, *found.shape[1:]))
    if not parts and width:
        none = chunks_to_numpy(type_.children[0].type, [])
        return None if none.dtype.kind == "O" else none.reshape(0, width, *none.shape[1:])
    if len(parts) < 2:
        return parts[0] if parts else None
    join = np.ma.concatenate if any(map(np.ma.isMaskedArray, parts)) else np.concatenate
    joined: npt.NDArray[Any] = join(parts)
    return joined


def without_mask(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A masked array as a plain one, as pandas has it: NaN for nulls of numbers, which are float64 then, NaT for those
    of times, ``None`` among objects for those of booleans."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    missing, plain = np.ma.getmaskarray(values), np.ma.getdata(values)
    if not missing.any():
        return plain
    kind = plain.dtype.kind
    dtype: Any = np.float64 if kind in "iu" else object if kind == "b" else plain.dtype
    made = plain.astype(dtype)
    made[missing] = None if kind == "b" else np.nan if kind in "iuf" else np.array("NaT", plain.dtype)
    return made


def _time_dtype(type_: DataType) -> str | None:
    if type_.dictionary is not None:
        return None
    if type_.kind == "date":
        return "M8[D]" if type_.format == "tdD" else "M8[ms]"
    if type_.kind == "timestamp":
        return f"M8[{type_.unit}]"
    return f"m8[{type_.unit}]" if type_.kind in ("time", "duration") else None


def object_array(values: list[Any]) -> npt.NDArray[Any]:
    """An array of Python objects; lists of one length do not make two dimensions."""
    return np.fromiter(values, object, len(values))
