"""Columns of Python's and numpy's decimals, dates and times."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import Mask, fixed_column
from pyparq.arrow.decimals import decimal_column, decimal_type, digits_of
from pyparq.arrow.ingest.from_numpy import column_from_numpy
from pyparq.errors import DataError
from pyparq.format.types import DataType

_YEARS = 290_000
"""From 1970 on, microseconds in 64 bits reach a little further than that."""


def decimals(given: Given, target: DataType | None) -> Column:
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


def datetimes(given: Given) -> Column:
    zoned = {value.tzinfo is not None for value in given.present}
    if len(zoned) > 1:
        first = given.present[0].tzinfo is None
        at = next(k for k, v in enumerate(given.present) if (v.tzinfo is None) != first)
        raise given.error(at, "the column mixes datetimes with and without a time zone")
    zone = common_zone(given.present) if True in zoned else ""
    try:
        moved = (value if value.tzinfo is dt.UTC else value.astimezone(dt.UTC) for value in given.present if zone)
        naive = [value.replace(tzinfo=None) for value in moved] if zone else given.present
    except OverflowError:
        raise DataError(
            "a datetime is outside of the years 1 to 9999 when it is converted to UTC", column=given.name
        ) from None
    finer = [getattr(value, "nanosecond", 0) for value in naive]  # pandas' Timestamp
    # pandas' of coarse units go on where microseconds wrap around
    late = next((k for k, value in enumerate(naive) if abs(value.year) > _YEARS), None)
    if late is not None:
        raise given.error(late, f"{given.present[late]} does not fit in 64 bits as microseconds")
    micros = np.array(naive, "datetime64[us]").view(np.int64)
    if not any(finer):
        return fixed_values(given, f"tsu:{zone}", micros)
    try:
        nanos = np.array([m * 1000 + n for m, n in zip(micros.tolist(), finer, strict=True)], np.int64)
    except OverflowError:
        raise DataError("a timestamp does not fit in 64 bits as nanoseconds", column=given.name) from None
    return fixed_values(given, f"tsn:{zone}", nanos)


def common_zone(values: Sequence[Any]) -> str:
    """The time zone that all of these datetimes have. It is UTC for several zones, for offsets without a name, and for
    names that other machines may not know: polars fails on files with them."""
    if next(value.tzinfo for value in values if value is not None) is dt.UTC:
        return "UTC"
    zones = {id(value.tzinfo): value.tzinfo for value in values if value is not None}.values()
    names = {getattr(zone, "key", None) or getattr(zone, "zone", None) or "UTC" for zone in zones}
    return _known(names.pop()) if len(names) == 1 else "UTC"


@cache
def _known(zone: Any) -> str:
    from zoneinfo import ZoneInfo

    try:
        return "UTC" if zone.startswith(("posix", "right/", "localtime", "Factory")) else ZoneInfo(zone).key
    except (AttributeError, ValueError, OSError, KeyError):
        return "UTC"


def dates(given: Given) -> Column:
    return fixed_values(given, "tdD", np.array(given.present, "datetime64[D]").view(np.int64).astype(np.int32))


def times(given: Given) -> Column:
    for k, value in enumerate(given.present):
        if value.tzinfo is not None:
            raise given.error(k, "a time with a time zone cannot be stored. Remove its tzinfo first")
    numbers = [((v.hour * 60 + v.minute) * 60 + v.second) * 1_000_000 + v.microsecond for v in given.present]
    return fixed_values(given, "ttu", np.array(numbers, np.int64))


def numpy_times(given: Given) -> Column:
    """datetime64 or timedelta64 scalars."""
    dense = column_from_numpy(_one_unit(given), given.name, _no_objects)
    if given.mask is None:
        return dense
    known = dense.valid_mask()
    if known is not None:  # NaT scalars among them
        given.mask[np.flatnonzero(given.mask)[~known]] = False
        return fixed_values(given, dense.type.format, dense.values()[known])
    return fixed_values(given, dense.type.format, dense.values())


def _no_objects(values: Any, name: str) -> Column:
    raise AssertionError("an array of times holds no objects")


def _one_unit(given: Given) -> npt.NDArray[Any]:
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


def durations(given: Given) -> Column:
    """Python's timedeltas are exact in microseconds; pandas' are of nanoseconds, numpy's of any unit."""
    if all(isinstance(value, np.timedelta64) for value in given.present):
        return numpy_times(given)
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
        return fixed_values(given, form, np.array([number // ticks for number in numbers], np.int64))
    except OverflowError:
        raise DataError(
            f"a duration does not fit in 64 bits as {'nano' if finer else 'micro'}seconds", column=given.name
        ) from None


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


def as_dict(value: Any) -> Any:
    """The fields of a dataclass or of a named tuple by their names. Any other value as it is."""
    class_ = type(value)
    if is_dataclass(class_):
        return {field.name: getattr(value, field.name) for field in fields(class_)}
    is_named = isinstance(value, tuple) and hasattr(class_, "_fields")
    return dict(zip(class_._fields, value, strict=True)) if is_named else value


def kind_of(class_: type) -> str:
    kind = _KNOWN.get(class_)
    if kind is None:
        if class_.__name__ in ("NAType", "NaTType"):  # pandas' missing values, without importing pandas
            kind = "null"
        else:
            kind = next((kind for classes, kind in _KINDS if issubclass(class_, classes)), "")
        _KNOWN[class_] = kind
    return kind


@dataclass(slots=True)
class Given:
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

    def in_rows(self, absent: Any) -> list[Any]:
        """All values, with ``absent`` for nulls."""
        dense = iter(self.present)
        return self.present if self.mask is None else [next(dense) if there else absent for there in self.mask.tolist()]

    def first(self, kind: str) -> int:
        return next(k for k, value in enumerate(self.present) if kind_of(type(value)) == kind)


def sorted_out(values: Sequence[Any], name: str, depth: int) -> Given:
    values = values if isinstance(values, list) else list(values)
    classes = set(map(type, values))
    absent = {c for c in classes if kind_of(c) == "null"}
    mask: Mask | None = None
    present = values
    if absent:
        mask = np.fromiter((type(v) not in absent for v in values), np.bool_, len(values))
        present = [v for v in values if type(v) not in absent]
    kinds = {kind_of(c) for c in classes - absent}
    given = Given(present, mask, len(values), kinds, name, depth)
    if "" in kinds:
        dicts = [as_dict(value) for value in values]
        if any(value is not before for value, before in zip(dicts, values, strict=True)):
            return sorted_out(dicts, name, depth)
        at = given.first("")
        raise given.error(at, f"values of type {type(present[at]).__name__} cannot be stored. Convert them first")
    return given


def fixed_values(given: Given, format_: str, dense: npt.NDArray[Any]) -> Column:
    """A fixed-width column of the values that are there."""
    if given.mask is None:
        return fixed_column(DataType(format_), dense)
    spread = np.zeros((given.length, *dense.shape[1:]), dense.dtype)
    spread[given.mask] = dense
    return fixed_column(DataType(format_), spread, given.mask)
