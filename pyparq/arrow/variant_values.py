"""Variants from and to Python objects (VariantEncoding.md)."""

from __future__ import annotations

import datetime as dt
import struct
import uuid
from collections.abc import Callable, Iterator, Mapping
from decimal import Context, Decimal
from itertools import pairwise
from typing import Any

import numpy as np

from pyparq.errors import DataError

_DEEPEST = 200
"""Levels of objects and arrays in one value."""
_EXACT = Context(prec=100)
_EPOCH = dt.datetime(1970, 1, 1)
_EPOCH_UTC = _EPOCH.replace(tzinfo=dt.UTC)
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_US = dt.timedelta(microseconds=1)
_SHORT = 64
"""Strings below this many bytes have their length in the first byte."""
_PRIMITIVE, _TEXT, _OBJECT, _ARRAY = range(4)


# ---- from bytes ----------------------------------------------------------------------------------------------------


def decode(metadata: bytes, value: bytes) -> Any:
    """The Python object of a Variant: ``None``, bool, int, float, Decimal, str, bytes, date, time, datetime (in UTC
    for instants), UUID, list or dict. Times that Python has no object for come as numpy's ``datetime64``.

    Raises :class:`DataError` for bytes that are no Variant, and for one that nests too deeply.
    """
    try:
        return _walk(memoryview(value), _names(metadata), 0, _scalar)
    except (IndexError, struct.error, UnicodeDecodeError, OverflowError) as error:
        raise DataError(f"the bytes of a Variant are invalid: {error}") from None


def _number(data: memoryview | bytes, at: int, width: int) -> int:
    if at + width > len(data):
        raise DataError("the bytes of a Variant are cut short")
    return int.from_bytes(data[at : at + width], "little")


def _names(metadata: bytes) -> list[str]:
    if not metadata or metadata[0] & 0x0F != 1:
        raise DataError("the metadata of a Variant does not have version 1")
    width = (metadata[0] >> 6) + 1
    count = _number(metadata, 1, width)
    begin = 1 + width * (count + 2)
    if begin > len(metadata):
        raise DataError("the metadata of a Variant declares more names than it holds")
    edges = [_number(metadata, 1 + width * (k + 1), width) for k in range(count + 1)]
    return [_text(metadata[begin + a : begin + b], b - a) for a, b in pairwise(edges)]


def _text(data: memoryview | bytes, size: int) -> str:
    if size < 0 or len(data) != size:
        raise DataError("the bytes of a Variant are cut short")
    return bytes(data).decode()


def _walk(data: memoryview, names: list[str], depth: int, scalar: Callable[[memoryview], Any]) -> Any:
    """The lists and dicts of a Variant, with what ``scalar`` makes of each other value."""
    basic, header = data[0] & 3, data[0] >> 2
    if basic in (_PRIMITIVE, _TEXT):
        return scalar(data)
    if depth == _DEEPEST:
        raise DataError(f"a Variant nests more than {_DEEPEST} levels deep")
    if basic == _ARRAY:
        return [_walk(part, names, depth + 1, scalar) for _, part in _items(data, header, header >> 2, 0)]
    fields = _items(data, header, header >> 4, ((header >> 2) & 3) + 1)
    return {_name(names, number): _walk(part, names, depth + 1, scalar) for number, part in fields}


def _scalar(data: memoryview) -> Any:
    basic, header = data[0] & 3, data[0] >> 2
    if basic == _TEXT:
        return _text(data[1 : 1 + header], header)
    read = _PRIMITIVES.get(header)
    if read is None:
        raise DataError(f"the type {header} of a Variant is unknown")
    return read(data)


def _name(names: list[str], number: int) -> str:
    if number >= len(names):
        raise DataError(f"the field {number} of a Variant is not in its metadata")
    return names[number]


def _items(data: memoryview, header: int, is_large: int, id_width: int) -> Iterator[tuple[int, memoryview]]:
    """The fields of an object with their numbers, or the elements of an array."""
    width, count_width = (header & 3) + 1, 4 if is_large & 1 else 1
    count = _number(data, 1, count_width)
    ids = 1 + count_width
    offsets = ids + count * id_width
    values = offsets + (count + 1) * width
    if values > len(data):
        raise DataError("an object or array of a Variant declares more items than it holds")
    end = values + _number(data, offsets + count * width, width)
    for k in range(count):
        part = data[values + _number(data, offsets + k * width, width) : end]
        yield _number(data, ids + k * id_width, id_width) if id_width else k, part


def _unpacked(form: str) -> Callable[[memoryview], Any]:
    return lambda data: struct.unpack_from(form, data, 1)[0]


def _decimal(size: int) -> Callable[[memoryview], Decimal]:
    def read(data: memoryview) -> Decimal:
        if len(data) < 2 + size:
            raise DataError("the bytes of a Variant are cut short")
        return _EXACT.scaleb(Decimal(int.from_bytes(data[2 : 2 + size], "little", signed=True)), -data[1])

    return read


def _sized(make: Callable[[bytes], Any]) -> Callable[[memoryview], Any]:
    def read(data: memoryview) -> Any:
        size = _number(data, 1, 4)
        if len(data) < 5 + size:
            raise DataError("the bytes of a Variant are cut short")
        return make(bytes(data[5 : 5 + size]))

    return read


def _date(data: memoryview) -> Any:
    (days,) = struct.unpack_from("<i", data, 1)
    return np.datetime64(days, "D").tolist() if abs(days) < 1 << 22 else np.datetime64(days, "D")


def _moment(unit: str, in_utc: bool) -> Callable[[memoryview], Any]:
    def read(data: memoryview) -> Any:
        (ticks,) = struct.unpack_from("<q", data, 1)
        stored = np.datetime64(ticks, unit)  # type: ignore[call-overload]
        micros, rest = divmod(ticks, 1000) if unit == "ns" else (ticks, 0)
        found = np.datetime64(micros, "us").tolist()
        if rest or not isinstance(found, dt.datetime):
            return stored
        return found.replace(tzinfo=dt.UTC) if in_utc else found

    return read


def _time(data: memoryview) -> Any:
    (micros,) = struct.unpack_from("<q", data, 1)
    if not 0 <= micros < 86_400_000_000:
        return np.timedelta64(micros, "us")
    return (_EPOCH + dt.timedelta(microseconds=micros)).time()


def _uuid(data: memoryview) -> uuid.UUID:
    if len(data) < 17:
        raise DataError("the bytes of a Variant are cut short")
    return uuid.UUID(bytes=bytes(data[1:17]))


_PRIMITIVES: dict[int, Callable[[memoryview], Any]] = {
    0: lambda data: None, 1: lambda data: True, 2: lambda data: False,
    3: _unpacked("<b"), 4: _unpacked("<h"), 5: _unpacked("<i"), 6: _unpacked("<q"), 7: _unpacked("<d"),
    8: _decimal(4), 9: _decimal(8), 10: _decimal(16), 11: _date, 12: _moment("us", True), 13: _moment("us", False),
    14: _unpacked("<f"), 15: _sized(bytes), 16: _sized(lambda raw: raw.decode()), 17: _time,
    18: _moment("ns", True), 19: _moment("ns", False), 20: _uuid,
}  # fmt: skip


# ---- the type of a value, without the value -----------------------------------------------------------------------


def outline(metadata: bytes, value: bytes) -> Any:
    """What a Variant is made of: the number of a primitive type in VariantEncoding.md, ``(number, digits, scale)`` of
    a decimal, a list for an array, a dict for an object.

    Raises :class:`DataError` for bytes that are no Variant.
    """
    try:
        return _walk(memoryview(value), _names(metadata), 0, _scalar_type)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise DataError(f"the bytes of a Variant are invalid: {error}") from None


def _scalar_type(data: memoryview) -> Any:
    basic, header = data[0] & 3, data[0] >> 2
    if basic == _TEXT:
        return 16
    return (header, *_digits(data)) if 8 <= header <= 10 else header


def _digits(data: memoryview) -> tuple[int, int]:
    size = 4 << (data[0] >> 2) - 8
    unscaled = int.from_bytes(data[2 : 2 + size], "little", signed=True)
    return max(len(str(abs(unscaled))), data[1]), data[1]


# ---- to bytes ------------------------------------------------------------------------------------------------------


def encode(value: Any) -> tuple[bytes, bytes]:
    """The metadata and the value of a Python object: what :func:`decode` returns, tuples, numpy's numbers and times.

    Integers take the fewest bytes; those beyond 64 bits become decimals. Raises :class:`DataError` for anything else,
    and for what a Variant cannot hold.
    """
    names: set[str] = set()
    _collect(value, names, 0)
    ordered = sorted(names, key=str.encode)
    texts = [name.encode() for name in ordered]
    total = sum(map(len, texts))
    width = _width(max(total, len(texts)))
    edges, at = [0], 0
    for text in texts:
        at += len(text)
        edges.append(at)
    head = bytes([1 | 1 << 4 | (width - 1) << 6]) + len(texts).to_bytes(width, "little")
    metadata = head + b"".join(edge.to_bytes(width, "little") for edge in edges) + b"".join(texts)
    return metadata, _encoded(value, {name: k for k, name in enumerate(ordered)})


def _width(number: int) -> int:
    """Bytes of a number, 1 to 4."""
    if number >= 1 << 32:
        raise DataError("a Variant may have at most 4 GiB")
    return max((number.bit_length() + 7) // 8, 1)


def _collect(value: Any, names: set[str], depth: int) -> None:
    if depth > _DEEPEST:
        raise DataError(f"a Variant may nest at most {_DEEPEST} levels deep")
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise DataError(f"the key {key!r} of an object in a Variant is not a string")
            names.add(key)
            _collect(item, names, depth + 1)
    elif isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim):
        for item in value:
            _collect(item, names, depth + 1)


def _encoded(value: Any, numbers: Mapping[str, int]) -> bytes:
    if isinstance(value, Mapping):
        fields = sorted(value.items(), key=lambda item: item[0].encode())
        ids = [numbers[name] for name, _ in fields]
        return _container(_OBJECT, ids, [_encoded(item, numbers) for _, item in fields])
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim):
        return _container(_ARRAY, [], [_encoded(item, numbers) for item in value])
    for classes, make in _MAKERS:
        if isinstance(value, classes):
            return make(value)
    raise DataError(f"a Variant cannot hold values of the type {type(value).__name__}")


def _container(basic: int, ids: list[int], parts: list[bytes]) -> bytes:
    total, count = sum(map(len, parts)), len(parts)
    width, id_width, is_large = _width(total), _width(max(ids, default=0)), count > 255
    header = width - 1 | (is_large << 4 | id_width - 1 << 2 if basic == _OBJECT else is_large << 2)
    out = [bytes([header << 2 | basic]), count.to_bytes(4 if is_large else 1, "little")]
    if basic == _OBJECT:
        out += [number.to_bytes(id_width, "little") for number in ids]
    at = 0
    for part in [*parts, b""]:
        out.append(at.to_bytes(width, "little"))
        at += len(part)
    return b"".join(out + parts)


def _primitive(kind: int, data: bytes = b"") -> bytes:
    return bytes([kind << 2]) + data


def _integer(value: int) -> bytes:
    for kind, size in ((3, 1), (4, 2), (5, 4), (6, 8)):
        if -(1 << 8 * size - 1) <= value < 1 << 8 * size - 1:
            return _primitive(kind, value.to_bytes(size, "little", signed=True))
    return _of_decimal(Decimal(value))


def _of_decimal(value: Decimal) -> bytes:
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
    number = (-unscaled if sign else unscaled).to_bytes(size, "little", signed=True)
    return _primitive(kind, bytes([scale]) + number)


def _of_text(value: str) -> bytes:
    data = value.encode()
    if len(data) < _SHORT:
        return bytes([len(data) << 2 | _TEXT]) + data
    return _primitive(16, len(data).to_bytes(4, "little") + data)


def _of_datetime(value: dt.datetime) -> bytes:
    if value.tzinfo is None or value.utcoffset() is None:
        return _primitive(13, struct.pack("<q", (value.replace(tzinfo=None) - _EPOCH) // _US))
    return _primitive(12, struct.pack("<q", (value - _EPOCH_UTC) // _US))


def _of_time(value: dt.time) -> bytes:
    if value.tzinfo is not None:
        raise DataError("a Variant holds times of day without a time zone")
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return _primitive(17, struct.pack("<q", seconds * 1_000_000 + value.microsecond))


def _of_datetime64(value: np.datetime64) -> bytes:
    if np.isnat(value):
        return _primitive(0)
    unit = np.datetime_data(value.dtype)[0]
    if unit == "D":
        return _primitive(11, struct.pack("<i", int(value.astype(np.int64))))
    kind, stored = (19, "ns") if unit == "ns" else (13, "us")
    made = value.astype(f"M8[{stored}]")
    if made.astype(value.dtype) != value:
        raise DataError(f"a Variant cannot hold the time {value}")
    return _primitive(kind, struct.pack("<q", int(made.astype(np.int64))))


_MAKERS: list[tuple[Any, Callable[[Any], bytes]]] = [
    (type(None), lambda value: _primitive(0)),
    ((bool, np.bool_), lambda value: _primitive(1 if value else 2)),
    ((int, np.integer), lambda value: _integer(int(value))),
    (np.float32, lambda value: _primitive(14, struct.pack("<f", value))),
    ((float, np.floating), lambda value: _primitive(7, struct.pack("<d", value))),
    (str, _of_text),
    ((bytes, bytearray, memoryview), lambda value: _primitive(15, len(value).to_bytes(4, "little") + bytes(value))),
    (Decimal, _of_decimal),
    (dt.datetime, _of_datetime),
    (dt.date, lambda value: _primitive(11, struct.pack("<i", value.toordinal() - _EPOCH_DAY))),
    (dt.time, _of_time),
    (uuid.UUID, lambda value: _primitive(20, value.bytes)),
    (np.datetime64, _of_datetime64),
]
"""(classes, what makes the bytes). The first that fits counts."""
