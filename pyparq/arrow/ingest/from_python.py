"""Columns from Python objects: the type inferred from the values, or the one a schema asks for."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import (
    binary_column,
    fixed_column,
    list_column,
    null_column,
    pack_mask,
    struct_column,
)
from pyparq.arrow.decimals import decimal_column, decimal_type, digits_of
from pyparq.arrow.ingest.cast import cast
from pyparq.arrow.ingest.from_numpy import column_from_numpy
from pyparq.arrow.schema.to_parquet import is_list, is_map
from pyparq.arrow.variant_values import encode
from pyparq.errors import DataError, UnsupportedError, near_matches
from pyparq.format.types import DataType, Field

Mask = npt.NDArray[np.bool_]

_MAX_DEPTH = 64
_EXACT = 2**53
_YEARS = 290_000
"""From 1970 on, microseconds in 64 bits reach a little further than that."""
_KINDS: tuple[tuple[tuple[type, ...], str], ...] = (
    # In this order: bool is an int, datetime is a date, np.float64 is a float, np.timedelta64 an np.integer.
    ((type(None),), "null"),
    ((dt.timedelta, np.timedelta64), "duration"),
    ((bool, np.bool_), "bool"),
    ((int, np.integer), "int"),
    ((float, np.floating), "float"),
    ((str,), "str"),
    ((bytes, bytearray, memoryview), "bytes"),
    ((Decimal,), "decimal"),
    ((dt.datetime,), "datetime"),
    ((dt.date,), "date"),
    ((dt.time,), "time"),
    ((np.datetime64,), "datetime64"),
    ((uuid.UUID,), "uuid"),
    ((list, tuple, np.ndarray), "list"),
    ((Mapping,), "dict"),
)


_KNOWN: dict[type, str] = {}


def _kind_of(class_: type) -> str:
    kind = _KNOWN.get(class_)
    if kind is None:
        if class_.__name__ in ("NAType", "NaTType"):  # pandas' missing values, without importing pandas
            kind = "null"
        else:
            kind = next((kind for classes, kind in _KINDS if issubclass(class_, classes)), "")
        _KNOWN[class_] = kind
    return kind


@dataclass(slots=True)
class _Given:
    """Values that are not null, where they stand, and the column's name for errors."""

    present: list[Any]
    mask: Mask | None
    length: int
    kinds: set[str]
    name: str
    depth: int

    def row_of(self, k: int) -> int:
        return k if self.mask is None else int(np.flatnonzero(self.mask)[k])

    def error(self, k: int, why: str) -> DataError:
        element = "item" if self.depth else "row"
        return DataError(f"{element} {self.row_of(k)}: {why}", column=self.name)

    def first(self, kind: str) -> int:
        return next(k for k, value in enumerate(self.present) if _kind_of(type(value)) == kind)


def column_from_list(values: Sequence[Any], name: str, target: DataType | None = None, depth: int = 0) -> Column:
    """A column of Python objects; ``None`` is null.

    Without ``target`` the type is inferred: bool < int < float (mixed ones become the wider; ints beyond int64 make
    uint64), str, bytes, Decimal, date, datetime (naive: ``timestamp[us]``, with a zone: ``timestamp[us, UTC]``),
    timedelta (``duration[us]``), time (``time64[us]``), UUID (16 bytes), lists, tuples and arrays (a list), dicts (a
    struct with every key that occurs). Nothing but nulls makes a null column. Raises :class:`DataError` for values that
    do not go together.
    """
    if depth > _MAX_DEPTH:
        raise DataError(f"the values are nested more than {_MAX_DEPTH} levels deep", column=name)
    given = _sorted_out(values, name, depth)
    if target is not None and target.is_nested:
        return _nested(given, target)
    if target is not None and target.kind == "decimal" and given.kinds <= {"int", "decimal"} and given.present:
        return _decimals(given, target)
    column = _inferred(given)
    return column if target is None else cast(column, target, name)


def _sorted_out(values: Sequence[Any], name: str, depth: int) -> _Given:
    values = values if isinstance(values, list) else list(values)
    classes = set(map(type, values))
    absent = {c for c in classes if _kind_of(c) == "null"}
    mask: Mask | None = None
    present = values
    if absent == {type(None)}:
        mask = np.fromiter((v is not None for v in values), np.bool_, len(values))
        present = [v for v in values if v is not None]
    elif absent:
        mask = np.fromiter((type(v) not in absent for v in values), np.bool_, len(values))
        present = [v for v in values if type(v) not in absent]
    kinds = {_kind_of(c) for c in classes - absent}
    given = _Given(present, mask, len(values), kinds, name, depth)
    if "" in kinds:
        at = given.first("")
        raise given.error(at, f"values of type {type(present[at]).__name__} cannot be stored. Convert them first")
    return given


_NUMBERS = ("bool", "int", "float")


def _inferred(given: _Given) -> Column:
    kinds = given.kinds
    if not kinds:
        return null_column(DataType("n"), given.length)
    if kinds <= set(_NUMBERS):
        return _numbers(given, max(kinds, key=_NUMBERS.index))
    if kinds == {"decimal", "int"}:
        return _decimals(given, None)
    if len(kinds) > 1:
        first = _kind_of(type(given.present[0]))
        at = next(k for k, v in enumerate(given.present) if _kind_of(type(v)) != first)
        raise given.error(
            at, f"the value is a {type(given.present[at]).__name__}, but the column starts with {first} values"
        )
    return _BUILDERS[next(iter(kinds))](given)


def _fixed(given: _Given, format_: str, dense: npt.NDArray[Any]) -> Column:
    """A fixed-width column of the values that are there."""
    if given.mask is None:
        return fixed_column(DataType(format_), dense)
    spread = np.zeros((given.length, *dense.shape[1:]), dense.dtype)
    spread[given.mask] = dense
    return fixed_column(DataType(format_), spread, given.mask)


def _numbers(given: _Given, kind: str) -> Column:
    if kind == "bool":
        return _fixed(given, "b", np.array(given.present, np.bool_))
    if kind == "float":
        if "int" in given.kinds:
            for k, value in enumerate(given.present):
                if _kind_of(type(value)) == "int" and not -_EXACT <= value <= _EXACT:
                    raise given.error(k, f"the column has floats, and the integer {value} may not be exact as float64")
        if np.longdouble in set(map(type, given.present)):
            at = next((k for k, v in enumerate(given.present) if float(v) != v == v), None)
            if at is not None:
                raise given.error(at, f"{given.present[at]} cannot be stored exactly as float64")
        return _fixed(given, "g", np.array(given.present, np.float64))
    try:
        return _fixed(given, "l", np.array(given.present, np.int64))
    except OverflowError:
        pass
    try:
        return _fixed(given, "L", np.array(given.present, np.uint64))
    except OverflowError:
        at = next(k for k, v in enumerate(given.present) if not 0 <= v < 2**64)
        raise given.error(
            at, f"{given.present[at]} does not fit a 64-bit integer type together with the other values"
        ) from None


# ---- bytes ---------------------------------------------------------------------------------------------------------


def _offsets(given: _Given) -> npt.NDArray[np.int64]:
    """Where each row's items start, from the lengths of the values that are there; nulls have none."""
    lengths = np.fromiter(map(len, given.present), np.int64, len(given.present))
    offsets = np.zeros(given.length + 1, np.int64)
    if given.mask is None:
        np.cumsum(lengths, out=offsets[1:])
    else:
        offsets[1:][given.mask] = lengths
        np.cumsum(offsets, out=offsets)
    return offsets


def _strings(given: _Given) -> Column:
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


def _bytes(given: _Given) -> Column:
    if any(issubclass(c, memoryview) for c in set(map(type, given.present))):
        given.present = [bytes(v) for v in given.present]
    data = np.frombuffer(b"".join(given.present), np.uint8)
    return binary_column(DataType("z"), _offsets(given), data, given.mask)


def _uuids(given: _Given) -> Column:
    raw = b"".join([value.bytes for value in given.present])
    return _fixed(given, "w:16", np.frombuffer(raw, np.uint8).reshape(-1, 16))


# ---- decimals and times --------------------------------------------------------------------------------------------


def _decimals(given: _Given, target: DataType | None) -> Column:
    parts: list[tuple[int, int]] = []
    for k, value in enumerate(given.present):
        try:
            parts.append(digits_of(value) if isinstance(value, Decimal) else (int(value), 0))
        except ValueError as error:
            raise given.error(k, str(error)) from None
    if target is None:
        scale = max(s for _, s in parts)
        whole = max(len(str(abs(n))) - s if n else 0 for n, s in parts)
        precision = max(whole + scale, scale, 1)
        if precision > 76:
            raise DataError(f"these decimals need {precision} digits, but at most 76 can be stored", column=given.name)
        target = decimal_type(precision, scale)
    scale = target.decimal[1]
    numbers: list[int] = []
    for k, (number, decimals) in enumerate(parts):
        # No power of ten is worked out that is far beyond the number: Decimal("1E-999999999") has few digits.
        finer = min(decimals - scale, number.bit_length() + 1)
        whole, rest = divmod(number, 10**finer) if finer > 0 else (number, 0)
        if rest:
            raise given.error(k, f"{given.present[k]} has more decimal places than {target}")
        numbers.append(whole if decimals > scale else number * 10 ** (scale - decimals))
    if given.mask is not None:
        dense = iter(numbers)
        numbers = [next(dense) if there else 0 for there in given.mask.tolist()]
    return decimal_column(target, numbers, given.mask, given.name)


def _datetimes(given: _Given) -> Column:
    zoned = {value.tzinfo is not None for value in given.present}
    if len(zoned) > 1:
        first = given.present[0].tzinfo is None
        at = next(k for k, v in enumerate(given.present) if (v.tzinfo is None) != first)
        raise given.error(at, "the column mixes datetimes with and without a time zone")
    zone = "UTC" if True in zoned else ""
    try:
        naive = [_naive(value) for value in given.present] if zone else given.present
    except OverflowError:
        raise DataError(
            "a datetime is outside of the years 1 to 9999 when it is converted to UTC", column=given.name
        ) from None
    plain = set(map(type, naive)) == {dt.datetime}
    finer = [] if plain else [getattr(value, "nanosecond", 0) for value in naive]  # pandas' Timestamp
    if not plain:  # pandas' of coarse units go on where microseconds wrap around
        late = next((k for k, value in enumerate(naive) if abs(value.year) > _YEARS), None)
        if late is not None:
            raise given.error(late, f"{given.present[late]} does not fit in 64 bits as microseconds")
    micros = np.array(naive, "datetime64[us]").view(np.int64)
    if not any(finer):
        return _fixed(given, f"tsu:{zone}", micros)
    try:
        nanos = np.array([m * 1000 + n for m, n in zip(micros.tolist(), finer, strict=True)], np.int64)
    except OverflowError:
        raise DataError("a timestamp does not fit in 64 bits as nanoseconds", column=given.name) from None
    return _fixed(given, f"tsn:{zone}", nanos)


def _naive(value: dt.datetime) -> dt.datetime:
    return (value if value.tzinfo is dt.UTC else value.astimezone(dt.UTC)).replace(tzinfo=None)


def _dates(given: _Given) -> Column:
    return _fixed(given, "tdD", np.array(given.present, "datetime64[D]").view(np.int64).astype(np.int32))


def _times(given: _Given) -> Column:
    for k, value in enumerate(given.present):
        if value.tzinfo is not None:
            raise given.error(k, "a time with a time zone cannot be stored. Remove its tzinfo first")
    numbers = [((v.hour * 60 + v.minute) * 60 + v.second) * 1_000_000 + v.microsecond for v in given.present]
    return _fixed(given, "ttu", np.array(numbers, np.int64))


def _numpy_times(given: _Given) -> Column:
    """datetime64 or timedelta64 scalars."""
    dense = column_from_numpy(_one_unit(given), given.name, column_from_list)
    if given.mask is None:
        return dense
    known = dense.valid_mask()
    if known is not None:  # NaT scalars among them
        given.mask[np.flatnonzero(given.mask)[~known]] = False
        return _fixed(given, dense.type.format, dense.values()[known])
    return _fixed(given, dense.type.format, dense.values())


def _one_unit(given: _Given) -> npt.NDArray[Any]:
    """The values in the finest unit that occurs, which must hold them all: numpy would wrap around."""
    dtypes = {value.dtype for value in given.present}
    finest = np.result_type(*dtypes)
    if len(dtypes) > 1:
        for k, value in enumerate(given.present):
            try:
                same = value.astype(finest).astype(value.dtype) == value
            except OverflowError:  # numpy 2.5
                same = False
            if not same and not np.isnat(value):
                raise given.error(k, f"{value} does not fit {finest}, which another value needs")
    return np.array(given.present, finest)


def _durations(given: _Given) -> Column:
    """Python's timedeltas are exact in microseconds; pandas' are of nanoseconds, numpy's of any unit."""
    if all(isinstance(value, np.timedelta64) for value in given.present):
        return _numpy_times(given)
    numbers: list[int] = []
    finer = False
    for k, value in enumerate(given.present):
        if isinstance(value, np.timedelta64):
            raise given.error(k, "the column mixes numpy.timedelta64 with datetime.timedelta values")
        nanos = int(getattr(value, "nanoseconds", 0))
        finer = finer or nanos != 0
        numbers.append(((value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds) * 1000 + nanos)
    form, ticks = ("tDn", 1) if finer else ("tDu", 1000)
    try:
        return _fixed(given, form, np.array([number // ticks for number in numbers], np.int64))
    except OverflowError:
        raise DataError(
            f"a duration does not fit in 64 bits as {'nano' if finer else 'micro'}seconds", column=given.name
        ) from None


# ---- nested --------------------------------------------------------------------------------------------------------


def _items(given: _Given, element: DataType | None) -> Column:
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


def _lists(given: _Given, target: DataType | None = None) -> Column:
    items = _items(given, None if target is None else target.children[0].type)
    type_ = target or DataType("+l", (Field("element", items.type),))
    return list_column(type_, _offsets(given), items, given.mask)


def _fixed_lists(given: _Given, target: DataType) -> Column:
    size = int(target.format[3:])
    for k, value in enumerate(given.present):
        if len(value) != size:
            raise given.error(k, f"the list has {len(value)} items, but {target} needs {size}")
    dense = iter(given.present)
    there = [True] * given.length if given.mask is None else given.mask.tolist()
    flat = list(chain.from_iterable(next(dense) if present else [None] * size for present in there))
    items = column_from_list(flat, given.name, target.children[0].type, given.depth + 1)
    validity, nulls = pack_mask(given.mask)
    return Column(target, given.length, validity, (), nulls, (items,))


def _structs(given: _Given, target: DataType | None = None) -> Column:
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
    dense = iter(given.present)
    empty: dict[str, Any] = {}
    there = [True] * given.length if given.mask is None else given.mask.tolist()
    rows = [next(dense) if present else empty for present in there]
    types = [None] * len(names) if target is None else [f.type for f in target.children]
    children = [
        column_from_list([row.get(key) for row in rows], f"{given.name}.{key}", type_, given.depth + 1)
        for key, type_ in zip(names, types, strict=True)
    ]
    fields = tuple(Field(key, child.type) for key, child in zip(names, children, strict=True))
    return struct_column(target or DataType("+s", fields), children, given.length, given.mask)


_VARIANT = [("metadata", "z", False), ("value", "z", False)]


def _is_raw(value: Any) -> bool:
    """Whether this is a Variant's bytes, rather than what it holds."""
    return isinstance(value, dict) and value.keys() == {"metadata", "value"} and all(map(_is_bytes, value.values()))


def _is_bytes(value: Any) -> bool:
    return isinstance(value, (bytes, bytearray, memoryview))


def _variants(given: _Given, target: DataType) -> Column:
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


def _maps(given: _Given, target: DataType) -> Column:
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


def _nested(given: _Given, target: DataType) -> Column:
    if not given.present:
        return null_column(target, given.length)
    if [(field.name, field.type.format, field.nullable) for field in target.children] == _VARIANT:
        return _variants(given, target)
    wanted = {"dict"} if target.format == "+s" else {"list", "dict"} if is_map(target) else {"list"}
    if not given.kinds <= wanted:
        wrong = next(iter(given.kinds - wanted))
        raise given.error(given.first(wrong), f"{wrong} values cannot be converted to {target}")
    if target.format == "+s":
        return _structs(given, target)
    if is_map(target):
        return _maps(given, target)
    if target.format.startswith("+w:"):
        return _fixed_lists(given, target)
    if is_list(target):
        return _lists(given, target)
    raise UnsupportedError(f"Python objects cannot be converted to {target}", column=given.name)


_BUILDERS: dict[str, Callable[[_Given], Column]] = {
    "str": _strings,
    "bytes": _bytes,
    "decimal": lambda given: _decimals(given, None),
    "datetime": _datetimes,
    "date": _dates,
    "time": _times,
    "datetime64": _numpy_times,
    "duration": _durations,
    "uuid": _uuids,
    "list": _lists,
    "dict": _structs,
}
