"""Whole files: what is written comes back, in all rows, in some, and in those that a filter keeps.

The bytes of an input make values, options and questions, so that each input is a file that must be right.
"""

from __future__ import annotations

import datetime as dt
import io
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from fuzz_input import Stream, check, number, split

import pyparq
from pyparq import col
from pyparq.encryption import DecryptionProperties, EncryptionProperties

_DAY = dt.datetime(1970, 1, 1)
_KEY = b"sixteen bytes...", b"thirty-two bytes make the other."
_MOST = 90


def _int(bits: int, signed: bool = True) -> Callable[[Stream], int]:
    def made(stream: Stream) -> int:
        size = 1 + stream.next() % (bits // 8)
        return int.from_bytes(stream.bytes(size), "little", signed=signed)

    return made


def _float(form: str) -> Callable[[Stream], float]:
    def made(stream: Stream) -> float:
        if stream.next() % 2:
            return float(stream.next() - 128) / (1, 2, 4, 8)[stream.next() % 4]
        return float(struct.unpack(form, stream.bytes(struct.calcsize(form)))[0])

    return made


def _decimal(digits: int, scale: int) -> Callable[[Stream], Decimal]:
    most = 10**digits

    def made(stream: Stream) -> Decimal:
        raw = int.from_bytes(stream.bytes(1 + stream.next() % 20), "little", signed=True)
        unscaled = raw % (2 * most - 1) - most + 1
        return Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -scale))

    return made


def _time(microseconds: int) -> dt.time:
    return (_DAY + dt.timedelta(microseconds=microseconds)).time()


def _binary(stream: Stream) -> bytes:
    return stream.bytes(stream.next() % 40) * (1 + 8 * (stream.next() % 16 == 0))


def _text(stream: Stream) -> str:
    return _binary(stream).decode("cp037")


def _list(item: Callable[[Stream], Any]) -> Callable[[Stream], Any]:
    return lambda stream: [_or_null(item, stream) for _ in range(stream.next() % 5)]


def _struct(stream: Stream) -> dict[str, Any]:
    return {"a": _or_null(_int(8), stream), "b": _or_null(_list(_text), stream)}


def _map(stream: Stream) -> list[tuple[str, Any]]:
    return [(_text(stream), _or_null(_int(32), stream)) for _ in range(stream.next() % 4)]


def _or_null(make: Callable[[Stream], Any], stream: Stream) -> Any:
    return None if stream.next() % 5 == 0 else make(stream)


_TYPES: dict[str, Callable[[Stream], Any]] = {
    "bool": lambda stream: bool(stream.next() & 1), "int8": _int(8), "int16": _int(16), "int32": _int(32),
    "int64": _int(64), "uint8": _int(8, False), "uint16": _int(16, False), "uint32": _int(32, False),
    "uint64": _int(64, False), "float16": _float("<e"), "float32": _float("<f"), "float64": _float("<d"),
    "string": _text, "binary": _binary, "fixed[5]": lambda stream: stream.bytes(5),
    "uuid": lambda stream: stream.bytes(16), "interval": lambda stream: stream.bytes(12),
    "date": lambda stream: dt.date.fromordinal(1 + number(stream.bytes(3), 0, 3) % 3_652_059),
    "time[us]": lambda stream: _time(number(stream.bytes(5), 0, 5) % 86_400_000_000),
    "timestamp[us]": lambda stream: _DAY + dt.timedelta(seconds=_int(32)(stream), microseconds=stream.next()),
    "decimal(9,2)": _decimal(9, 2), "decimal(18,0)": _decimal(18, 0), "decimal(38,5)": _decimal(38, 5),
    "list<int32?>": _list(_int(32)), "list<string?>": _list(_text), "list<list<int32?>?>": _list(_list(_int(32))),
    "struct<a: int8?, b: list<string?>?>": _struct, "map<string,int32?>": _map,
}  # fmt: skip
_NAMES = tuple(_TYPES)
_BY_ORDER = ("bool", "int", "uint", "date", "decimal", "string", "binary", "timestamp", "time")
"""Types whose values Python compares as filters do."""
_CODECS = ("none", "snappy", "gzip", "zstd", "lz4_raw", "brotli", "none", "none")
_INTEGERS, _WIDE = ("DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT", "PLAIN"), ("BYTE_STREAM_SPLIT", "PLAIN")
_TEXTS = ("DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "PLAIN")
_ENCODINGS = {
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "date", "time[us]",
                     "timestamp[us]", "decimal(9,2)", "decimal(18,0)"), _INTEGERS),
    **dict.fromkeys(("float32", "float64"), ("ALP", *_WIDE)), "float16": _WIDE, "bool": ("RLE", "PLAIN"),
    **dict.fromkeys(("string", "binary"), _TEXTS),
    **dict.fromkeys(("fixed[5]", "uuid", "decimal(38,5)"), (*_WIDE, "DELTA_BYTE_ARRAY")),
}  # fmt: skip


def files(data: Any) -> None:
    """One column of any type, by any options, and the numbers of its rows beside it."""
    head, stored = split(data)
    name = _NAMES[head[0] % len(_NAMES)]
    values = _values(_TYPES[name], Stream(bytes(stored)), nulls=not head[1] & 1) * (1 + head[2] % 4)
    out = io.BytesIO()
    schema = pyparq.schema({"x": name if head[1] & 1 else name + "?", "k": "int64"})
    pyparq.write_table({"x": values, "k": list(range(len(values)))}, out, schema=schema, **_options(head, name))
    opens: dict[str, Any] = {"use_threads": False}
    if head[7] & 3 == 1:
        opens["decryption"] = DecryptionProperties(_KEY[0], column_keys={"x": _KEY[1]})
    _compare(out.getvalue(), values, head, name, opens)


def _values(make: Callable[[Stream], Any], stream: Stream, nulls: bool) -> list[Any]:
    """New values, earlier ones again, and nulls."""
    made: list[Any] = []
    while stream.left and len(made) < _MOST:
        choice = stream.next()
        if nulls and choice % 8 == 7:
            made.append(None)
        elif made and choice % 4 == 2:
            made += [made[choice // 8 % len(made)]] * (1 + choice // 64 * 5)
        else:
            made.append(make(stream))
    return made


def _options(head: bytes, name: str) -> dict[str, Any]:
    layout, extras = head[4], head[5]
    options: dict[str, Any] = {
        "compression": _CODECS[head[3] % 8], "data_page_version": "2.0" if head[3] & 8 else "1.0",
        "use_dictionary": not layout & 1, "max_rows_per_page": 1 + layout // 2 % 16 * 5,
        "row_group_size": 1 + head[6], "write_page_checksum": bool(extras & 1), "write_statistics": not extras & 2,
        "write_page_index": not extras & 4, "use_threads": False,
    }  # fmt: skip
    if extras & 8 and name != "bool" and "<" not in name and name != "interval":
        options["bloom_filters"] = {"x": 0.05}
    if layout & 1 and extras & 16 and name in _ENCODINGS:
        encodings = _ENCODINGS[name]
        options["column_encoding"] = {"x": encodings[head[8] % len(encodings)]}
    if head[7] & 3 == 1:
        algorithm = "AES_GCM_CTR_V1" if head[7] & 4 else "AES_GCM_V1"
        options["encryption"] = EncryptionProperties(
            _KEY[0], column_keys={"x": _KEY[1]}, algorithm=algorithm, plaintext_footer=bool(head[7] & 8)
        )
    return options


def _compare(data: bytes, values: list[Any], head: bytes, name: str, opens: dict[str, Any]) -> None:
    found = pyparq.read_table(data, **opens).to_pylist()
    check([row["k"] for row in found] == list(range(len(values))), "other rows")
    # Text: NaN is not equal to itself, and 0.0 is equal to -0.0.
    check(repr([row["x"] for row in found]) == repr(values), "other values")
    if head[9] & 1:
        _exchange(pyparq.read_table(data, **opens), [repr(row) for row in found])
    if not values:
        return
    wanted = sorted({place % len(values) for place in head[12:16]})
    some = pyparq.read_table(data, rows=wanted, **opens).to_pylist()
    check(repr([row["x"] for row in some]) == repr([values[k] for k in wanted]), "other values in some rows")
    literal = values[head[16] % len(values)]
    if literal is not None and name.startswith(_BY_ORDER) and name != "interval":
        _filter(data, values, literal, head[17] % 6, opens)


class _Stream:
    """A table as another library shows it, in batches of some rows."""

    def __init__(self, table: pyparq.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


def _exchange(table: pyparq.Table, rows: list[str]) -> None:
    """The table through Arrow's C structs into another file."""
    out = io.BytesIO()
    pyparq.write_table(_Stream(table), out, use_threads=False, row_group_size=50)
    again = pyparq.read_table(out.getvalue(), use_threads=False).to_pylist()
    check([repr(row) for row in again] == rows, "other values through Arrow")


def _filter(data: bytes, values: list[Any], literal: Any, op: int, opens: dict[str, Any]) -> None:
    x = col("x")
    ask, holds = (
        (x == literal, lambda v: v == literal), (x != literal, lambda v: v != literal),
        (x < literal, lambda v: v < literal), (x >= literal, lambda v: v >= literal),
        (x.isin([literal]), lambda v: v == literal), (x.is_not_null(), lambda v: True),
    )[op]  # fmt: skip
    found = pyparq.read_table(data, ["k"], filters=ask, **opens).to_pydict()["k"]
    true = [k for k, v in enumerate(values) if v is not None and holds(v)]
    check(found == true, f"{ask} keeps {found}, not {true}")
