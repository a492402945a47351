"""Columns from Python objects: the type inferred from the values, or the one a schema asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import Mask, binary_column, list_column, null_column, pack_mask, struct_column
from pyparq.arrow.ingest.cast import cast
from pyparq.arrow.ingest.from_numpy import column_from_numpy
from pyparq.arrow.ingest.python_values import (
    Given,
    common_zone,
    dates,
    datetimes,
    decimals,
    durations,
    fixed_values,
    kind_of,
    numpy_times,
    sorted_out,
    times,
)
from pyparq.arrow.variant_values import encode
from pyparq.errors import DataError, UnsupportedError, near_matches
from pyparq.format.types import DataType, Field

_MAX_DEPTH = 64
_EXACT = 2**53


def column_from_list(values: Sequence[Any], name: str, target: DataType | None = None, depth: int = 0) -> Column:
    """A column of Python objects; ``None`` is null.

    Without ``target`` the type is inferred: bool < int < float (mixed ones become the wider; ints beyond int64 make
    uint64), str, bytes, Decimal, date, datetime (naive: ``timestamp[us]``, with a zone: that one, or UTC for several),
    timedelta (``duration[us]``), time (``time64[us]``), UUID (16 bytes), lists, tuples and arrays (a list), dicts (a
    struct with every key that occurs). Nothing but nulls makes a null column. Raises :class:`DataError` for values that
    do not go together.
    """
    if depth > _MAX_DEPTH:
        raise DataError(f"the values are nested more than {_MAX_DEPTH} levels deep", column=name)
    quick = by_kernels(values, name, target, depth) if type(values) is list else None
    if quick is not None:
        return quick
    given = sorted_out(values, name, depth)
    if target is not None and target.is_nested:
        return _nested(given, target)
    if target is not None and target.kind == "decimal" and given.kinds <= {"int", "decimal"} and given.present:
        return decimals(given, target)
    column = _inferred(given)
    return column if target is None else cast(column, target, name)


def by_kernels(values: list[Any], name: str, target: DataType | None, depth: int) -> Column | None:
    """The column in one pass over the objects. ``None`` for values that take a closer look, or that are refused."""
    if target is not None and target.is_nested:
        return _nested_by_kernels(values, name, target, depth)
    wanted = target.decimal[:2] if target is not None and target.kind == "decimal" else (0, 0)
    found = kernels.column_of_objects(values, *wanted)
    if found is None:
        return _nested_by_kernels(values, name, None, depth) if target is None else None
    format_, length, validity, nulls, buffers = found
    zone = common_zone(values) if format_ == "tsu:UTC" and target is None else ""
    column = Column(DataType(f"tsu:{zone}" if zone else format_), length, validity, buffers, nulls)
    return column if target is None else cast(column, target, name)


def _nested_by_kernels(values: list[Any], name: str, target: DataType | None, depth: int) -> Column | None:
    first = next((value for value in values if value is not None), None)
    if type(first) is dict and (target is None or (target.format == "+s" and not _is_variant(target))):
        return _structs_by_kernels(values, name, target, depth)
    if type(first) in (list, tuple) and (target is None or (target.is_list and target.format[1] in "lL")):
        joined = kernels.join_lists(values)
        if joined is None:
            return None
        flat, offsets, mask = joined
        items = column_from_list(flat, name, None if target is None else target.children[0].type, depth + 1)
        return list_column(target or DataType("+l", (Field("element", items.type),)), offsets, items, mask)
    return None


def _structs_by_kernels(values: list[Any], name: str, target: DataType | None, depth: int) -> Column | None:
    split = kernels.split_dicts(values)
    if split is None:
        return None
    found, lists, mask = split
    by_name: dict[str, list[Any]] = dict(zip(found, lists, strict=True))
    names = found if target is None else [field.name for field in target.children]
    if not by_name.keys() <= set(names):
        return None
    nothing: list[Any] = [None] * len(values)
    return _struct({key: by_name.get(key, nothing) for key in names}, target, name, depth, len(values), mask)


def _struct(
    lists: Mapping[str, list[Any]], target: DataType | None, name: str, depth: int, length: int, mask: Mask | None
) -> Column:
    """A struct of the values of each key. With a target these are its fields."""
    types = [None] * len(lists) if target is None else [field.type for field in target.children]
    children = [
        column_from_list(values, f"{name}.{key}", type_, depth + 1)
        for (key, values), type_ in zip(lists.items(), types, strict=True)
    ]
    fields = tuple(Field(key, child.type) for key, child in zip(lists, children, strict=True))
    return struct_column(target or DataType("+s", fields), children, length, mask)


_NUMBERS = ("bool", "int", "float")


def _inferred(given: Given) -> Column:
    kinds = given.kinds
    if not kinds:
        return null_column(DataType("n"), given.length)
    if kinds <= set(_NUMBERS):
        return _numbers(given, max(kinds, key=_NUMBERS.index))
    if kinds == {"decimal", "int"}:
        return decimals(given, None)
    if len(kinds) > 1:
        first = kind_of(type(given.present[0]))
        at = next(k for k, v in enumerate(given.present) if kind_of(type(v)) != first)
        raise given.error(
            at, f"the value is a {type(given.present[at]).__name__}, but the column starts with {first} values"
        )
    return _BUILDERS[next(iter(kinds))](given)


def _numbers(given: Given, kind: str) -> Column:
    if kind == "bool":
        return fixed_values(given, "b", np.array(given.present, np.bool_))
    if kind == "float":
        if "int" in given.kinds:
            for k, value in enumerate(given.present):
                if kind_of(type(value)) == "int" and not -_EXACT <= value <= _EXACT:
                    raise given.error(k, f"the column has floats, and the integer {value} may not be exact as float64")
        if np.longdouble in set(map(type, given.present)):
            at = next((k for k, v in enumerate(given.present) if float(v) != v == v), None)
            if at is not None:
                raise given.error(at, f"{given.present[at]} cannot be stored exactly as float64")
        return fixed_values(given, "g", np.array(given.present, np.float64))
    for format_, dtype in (("l", np.int64), ("L", np.uint64)):
        with suppress(OverflowError):
            return fixed_values(given, format_, np.array(given.present, dtype))
    at = next(k for k, v in enumerate(given.present) if not 0 <= v < 2**64)
    raise given.error(at, f"{given.present[at]} does not fit a 64-bit integer type together with the other values")


# ---- bytes ---------------------------------------------------------------------------------------------------------


def _offsets(given: Given) -> npt.NDArray[np.int64]:
    """Where each row's items start, from the lengths of the values that are there; nulls have none."""
    lengths = np.fromiter(map(len, given.present), np.int64, len(given.present))
    offsets = np.zeros(given.length + 1, np.int64)
    if given.mask is None:
        np.cumsum(lengths, out=offsets[1:])
    else:
        offsets[1:][given.mask] = lengths
        np.cumsum(offsets, out=offsets)
    return offsets


def _strings(given: Given) -> Column:
    text = "".join(given.present)
    offsets = _offsets(given)
    try:
        data = np.frombuffer(text.encode(), np.uint8)
    except UnicodeEncodeError:
        at = next(k for k, v in enumerate(given.present) if any(0xD800 <= ord(c) < 0xE000 for c in v))
        raise given.error(at, "the string has a lone surrogate, so it cannot be stored as UTF-8") from None
    if len(data) != len(text):
        # Lengths counted characters: find the byte each one starts at.
        starts = np.append(np.flatnonzero((data & 0xC0) != 0x80), len(data))
        offsets = starts[offsets]
    return binary_column(DataType("u"), offsets, data, given.mask)


def _bytes(given: Given) -> Column:
    if any(issubclass(c, memoryview) for c in set(map(type, given.present))):
        given.present = [bytes(v) for v in given.present]
    data = np.frombuffer(b"".join(given.present), np.uint8)
    return binary_column(DataType("z"), _offsets(given), data, given.mask)


def _uuids(given: Given) -> Column:
    raw = b"".join([value.bytes for value in given.present])
    return fixed_values(given, "w:16", np.frombuffer(raw, np.uint8).reshape(-1, 16))


# ---- nested --------------------------------------------------------------------------------------------------------


def _items(given: Given, element: DataType | None) -> Column:
    lists = given.present
    for k, value in enumerate(lists):
        if isinstance(value, np.ndarray) and value.ndim == 0:
            raise given.error(k, "an array with 0 dimensions is not a list")
    arrays = bool(lists) and all(isinstance(v, np.ndarray) and v.ndim == 1 and v.dtype.kind != "O" for v in lists)
    if arrays and len({v.dtype for v in lists}) == 1:
        masked = any(isinstance(v, np.ma.MaskedArray) for v in lists)
        joined = np.ma.concatenate(lists) if masked else np.concatenate(lists)  # type: ignore[no-untyped-call]
        items = column_from_numpy(joined, given.name, column_from_list)
        return items if element is None else cast(items, element, given.name)
    flat = list(chain.from_iterable(_objects(v) if isinstance(v, np.ndarray) else v for v in lists))
    return column_from_list(flat, given.name, element, given.depth + 1)


def _objects(array: npt.NDArray[Any]) -> Sequence[Any]:
    """An array's elements as Python objects; datetimes stay numpy's, since Python has no nanoseconds (``tolist()``
    makes integers of these)."""
    if array.dtype.kind not in "Mm":
        return array.tolist()  # type: ignore[no-any-return]
    if array.ndim > 1:
        return list(array)
    hidden = np.ma.getmaskarray(array).tolist()
    return [None if gone else value for value, gone in zip(np.ma.getdata(array), hidden, strict=True)]


def _lists(given: Given, target: DataType | None = None) -> Column:
    items = _items(given, None if target is None else target.children[0].type)
    type_ = target or DataType("+l", (Field("element", items.type),))
    return list_column(type_, _offsets(given), items, given.mask)


def _fixed_lists(given: Given, target: DataType) -> Column:
    size = int(target.format[3:])
    for k, value in enumerate(given.present):
        if len(value) != size:
            raise given.error(k, f"the list has {len(value)} items, but {target} needs {size}")
    flat = list(chain.from_iterable(given.in_rows([None] * size)))
    items = column_from_list(flat, given.name, target.children[0].type, given.depth + 1)
    validity, nulls = pack_mask(given.mask)
    return Column(target, given.length, validity, (), nulls, (items,))


def _structs(given: Given, target: DataType | None = None) -> Column:
    names: dict[str, None] = dict.fromkeys(chain.from_iterable(given.present))
    for key in names:
        if not isinstance(key, str):
            at = next(k for k, v in enumerate(given.present) if key in v)
            raise given.error(at, f"the key {key!r} is not a string. To write a map, give a schema with map<..., ...>")
    if target is not None:
        wanted = [f.name for f in target.children]
        unknown = next((n for n in names if n not in wanted), None)
        if unknown is not None:
            at = next(k for k, v in enumerate(given.present) if unknown in v)
            raise given.error(
                at, f"the struct in the schema has no field {unknown!r}{near_matches(unknown, wanted, 'fields')}"
            )
        names = dict.fromkeys(wanted)
    rows = given.in_rows({})
    lists = {key: [row.get(key) for row in rows] for key in names}
    return _struct(lists, target, given.name, given.depth, given.length, given.mask)


_VARIANT = [("metadata", "z", False), ("value", "z", False)]


def _is_variant(type_: DataType) -> bool:
    return [(field.name, field.type.format, field.nullable) for field in type_.children] == _VARIANT


def _is_raw(value: Any) -> bool:
    """Whether this is a Variant's bytes, rather than what it holds."""
    is_pair = isinstance(value, dict) and value.keys() == {"metadata", "value"}
    return is_pair and all(isinstance(part, (bytes, bytearray, memoryview)) for part in value.values())


def _variants(given: Given, target: DataType) -> Column:
    raw = []
    for k, value in enumerate(given.present):
        if _is_raw(value):
            raw.append(value)
            continue
        try:
            metadata, encoded = encode(value)
        except DataError as error:
            raise given.error(k, error.message) from None
        raw.append({"metadata": metadata, "value": encoded})
    return _structs(replace(given, present=raw), target)


def _maps(given: Given, target: DataType) -> Column:
    entries = target.children[0].type
    pairs: list[tuple[Any, Any]] = []
    for k, value in enumerate(given.present):
        try:
            pairs.extend((a, b) for a, b in (value.items() if isinstance(value, Mapping) else value))
        except (TypeError, ValueError):
            raise given.error(k, "a map value must be a dict or a list of (key, value) pairs") from None
    halves = ([a for a, _ in pairs], [b for _, b in pairs])
    children = [
        column_from_list(half, f"{given.name}.{part}", field.type, given.depth + 1)
        for half, part, field in zip(halves, ("key", "value"), entries.children, strict=True)
    ]
    items = struct_column(entries, children, len(pairs))
    return list_column(target, _offsets(given), items, given.mask)


def _nested(given: Given, target: DataType) -> Column:
    if not given.present:
        return null_column(target, given.length)
    if _is_variant(target):
        return _variants(given, target)
    wanted = {"dict"} if target.format == "+s" else {"list", "dict"} if target.is_map else {"list"}
    if not given.kinds <= wanted:
        wrong = next(iter(given.kinds - wanted))
        raise given.error(given.first(wrong), f"{wrong} values cannot be converted to {target}")
    if target.format == "+s":
        return _structs(given, target)
    if target.is_map:
        return _maps(given, target)
    if target.format.startswith("+w:"):
        return _fixed_lists(given, target)
    if target.is_list:
        return _lists(given, target)
    raise UnsupportedError(f"Python objects cannot be converted to {target}", column=given.name)


_BUILDERS: dict[str, Callable[[Given], Column]] = {
    "str": _strings,
    "bytes": _bytes,
    "decimal": lambda given: decimals(given, None),
    "datetime": datetimes,
    "date": dates,
    "time": times,
    "datetime64": numpy_times,
    "duration": durations,
    "uuid": _uuids,
    "list": _lists,
    "dict": _structs,
}
