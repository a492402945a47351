"""Variants from and to Python objects (VariantEncoding.md): the values of classes that the kernels do not know."""

from __future__ import annotations

import datetime as dt
import struct
import uuid
from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from typing import Any

import numpy as np

from pyparq.errors import DataError
from pyparq.kernels import KernelError, variant_of_object, variant_to_object

_EXACT = Context(prec=100)
_EPOCH = dt.datetime(1970, 1, 1)
_EPOCH_UTC = _EPOCH.replace(tzinfo=dt.UTC)
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_US = dt.timedelta(microseconds=1)
_Primitive = tuple[int, bytes]
"""The number of a primitive type in VariantEncoding.md, and the bytes behind its header."""


# ---- from bytes ----------------------------------------------------------------------------------------------------


def decode(metadata: bytes, value: bytes) -> Any:
    """The Python object of a Variant: ``None``, bool, int, float, Decimal, str, bytes, date, time, datetime (in UTC
    for instants), UUID, list or dict. Times that Python has no object for come as numpy's ``datetime64``.

    Raises :class:`DataError` for bytes that are no Variant, and for one that nests too deeply.
    """
    try:
        return variant_to_object(metadata, value, _object)
    except KernelError as error:
        raise DataError(f"the bytes of a Variant are invalid: {error}") from None


def _object(kind: int, data: bytes) -> Any:
    return _OBJECTS[kind](data)


def _decimal(data: bytes) -> Decimal:
    return _EXACT.scaleb(Decimal(int.from_bytes(data[1:], "little", signed=True)), -data[0])


def _date(data: bytes) -> Any:
    (days,) = struct.unpack("<i", data)
    return np.datetime64(days, "D").tolist() if abs(days) < 1 << 22 else np.datetime64(days, "D")


def _moment(unit: str, in_utc: bool) -> Callable[[bytes], Any]:
    def read(data: bytes) -> Any:
        (ticks,) = struct.unpack("<q", data)
        micros, rest = divmod(ticks, 1000) if unit == "ns" else (ticks, 0)
        found = np.datetime64(micros, "us").tolist()
        if rest or not isinstance(found, dt.datetime):
            return np.datetime64(ticks, unit)  # type: ignore[call-overload]
        return found.replace(tzinfo=dt.UTC) if in_utc else found

    return read


def _time(data: bytes) -> Any:
    (micros,) = struct.unpack("<q", data)
    if not 0 <= micros < 86_400_000_000:
        return np.timedelta64(micros, "us")
    return (_EPOCH + dt.timedelta(microseconds=micros)).time()


_OBJECTS: dict[int, Callable[[bytes], Any]] = {
    8: _decimal, 9: _decimal, 10: _decimal, 11: _date, 12: _moment("us", True), 13: _moment("us", False), 17: _time,
    18: _moment("ns", True), 19: _moment("ns", False), 20: lambda data: uuid.UUID(bytes=data),
}  # fmt: skip


# ---- to bytes ------------------------------------------------------------------------------------------------------


def encode(value: Any) -> tuple[bytes, bytes]:
    """The metadata and the value of a Python object: what :func:`decode` returns, tuples, numpy's numbers and times.

    Integers take the fewest bytes; those beyond 64 bits become decimals. Raises :class:`DataError` for anything else,
    and for what a Variant cannot hold.
    """
    try:
        return variant_of_object(value, _plain)
    except KernelError as error:
        raise DataError(f"a Variant cannot hold this: {error}") from None


def _plain(value: Any) -> Any:
    """A value of a class that the kernel does not know, as one that it does, or as a primitive value."""
    for classes, make in _PLAIN:
        if isinstance(value, classes):
            return make(value)
    if isinstance(value, Mapping):
        return dict(value.items())
    if isinstance(value, np.ndarray) and value.ndim:
        return list(value)
    raise DataError(f"a Variant cannot hold values of the type {type(value).__name__}")


def _of_decimal(value: Decimal) -> _Primitive:
    if not value.is_finite():
        raise DataError(f"a Variant cannot hold the decimal {value}")
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    unscaled, scale = int("".join(map(str, digits))), -exponent
    if scale < 0:
        unscaled, scale = unscaled * 10**-scale if -scale < 40 else 10**40, 0
    count = len(str(unscaled))
    if count > 38 or scale > 38:
        raise DataError(f"a Variant holds decimals of at most 38 digits, not {value}")
    kind, size = (8, 4) if count <= 9 else (9, 8) if count <= 18 else (10, 16)
    return kind, bytes([scale]) + (-unscaled if sign else unscaled).to_bytes(size, "little", signed=True)


def _of_integer(value: Any) -> Any:
    whole = int(value)
    return whole if -(1 << 63) <= whole < 1 << 63 else _of_decimal(Decimal(whole))


def _of_datetime(value: dt.datetime) -> _Primitive:
    if value.tzinfo is None or value.utcoffset() is None:
        return 13, struct.pack("<q", (value.replace(tzinfo=None) - _EPOCH) // _US)
    return 12, struct.pack("<q", (value - _EPOCH_UTC) // _US)


def _of_time(value: dt.time) -> _Primitive:
    if value.tzinfo is not None:
        raise DataError("a Variant holds times of day without a time zone")
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return 17, struct.pack("<q", seconds * 1_000_000 + value.microsecond)


def _of_datetime64(value: np.datetime64) -> _Primitive | None:
    if np.isnat(value):
        return None
    unit = np.datetime_data(value.dtype)[0]
    if unit == "D":
        return 11, struct.pack("<i", int(value.astype(np.int64)))
    kind, stored = (19, "ns") if unit == "ns" else (13, "us")
    made = value.astype(f"M8[{stored}]")
    if made.astype(value.dtype) != value:
        raise DataError(f"a Variant cannot hold the time {value}")
    return kind, struct.pack("<q", int(made.astype(np.int64)))


_PLAIN: list[tuple[Any, Callable[[Any], Any]]] = [
    (np.bool_, bool),
    ((int, np.integer), _of_integer),
    (np.float32, lambda value: (14, struct.pack("<f", value))),
    (np.floating, float),
    ((bytearray, memoryview), bytes),
    (Decimal, _of_decimal),
    (dt.datetime, _of_datetime),
    (dt.date, lambda value: (11, struct.pack("<i", value.toordinal() - _EPOCH_DAY))),
    (dt.time, _of_time),
    (uuid.UUID, lambda value: (20, value.bytes)),
    (np.datetime64, _of_datetime64),
]
"""(classes, what makes a plain value). The first that fits counts."""
