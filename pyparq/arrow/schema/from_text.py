"""Schemas written by hand, without any Arrow library: ``pyparq.schema({"id": "int64", "name": "string?"})``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Never

import numpy as np

from pyparq.arrow.exchange import field_from_arrow, schema_from_arrow
from pyparq.arrow.schema.extensions import (
    EXTENSION_METADATA,
    EXTENSION_NAME,
    FILE_PARTS,
    JSON,
    LOGICAL_TYPE,
    UUID,
    VARIANT,
    metadata_of,
)
from pyparq.errors import SchemaError, near
from pyparq.format.types import DataType, Field, LeafType, Physical, Schema
from pyparq.option_checks import keywords

_NAMES = {
    "null": "n", "bool": "b", "boolean": "b",
    "int8": "c", "int16": "s", "int32": "i", "int64": "l",
    "uint8": "C", "uint16": "S", "uint32": "I", "uint64": "L",
    "float16": "e", "halffloat": "e", "float32": "f", "float": "f", "float64": "g", "double": "g",
    "string": "u", "utf8": "u", "str": "u", "large_string": "U",
    "binary": "z", "bytes": "z", "large_binary": "Z",
    "date": "tdD", "date32": "tdD", "date64": "tdm", "json": "u", "uuid": "w:16", "enum": "u", "bson": "z",
    "interval": "w:12", "geometry": "z", "geography": "z",
}  # fmt: skip
_METADATA = {
    "json": {EXTENSION_NAME: JSON, EXTENSION_METADATA: b""},
    "uuid": {EXTENSION_NAME: UUID, EXTENSION_METADATA: b""},
    "enum": {LOGICAL_TYPE: b"ENUM"},
    "bson": {LOGICAL_TYPE: b"BSON"},
    "interval": {LOGICAL_TYPE: b"INTERVAL"},
    "file": {LOGICAL_TYPE: b"FILE"},
    "variant": {EXTENSION_NAME: VARIANT, EXTENSION_METADATA: b""},
}
_VARIANT_TYPE = DataType("+s", tuple(Field(name, DataType("z"), False) for name in ("metadata", "value")))
_FILE_TYPE = DataType("+s", tuple(Field(name, DataType(_NAMES[kind]), True) for name, kind in FILE_PARTS.items()))
_TIMES = {"s": "tts", "ms": "ttm", "us": "ttu", "ns": "ttn"}
_TIME_WIDTHS = {
    "time32": ("s", "ms"), "time64": ("us", "ns"), "time": ("s", "ms", "us", "ns"), "duration": ("s", "ms", "us", "ns"),
}  # fmt: skip
_WRITE = {
    "int": "int8, int16, int32 or int64", "integer": "int8, int16, int32 or int64", "long": "int64", "short": "int16",
    "tinyint": "int8", "smallint": "int16", "bigint": "int64", "uint": "uint8, uint16, uint32 or uint64",
    "number": "int64, float64 or decimal(9,2)", "numeric": "decimal(9,2)", "real": "float32",
    "timestamp": "timestamp[us] (local time) or timestamp[us, UTC]; the units are s, ms, us, ns",
    "datetime": "timestamp[us] (local time) or timestamp[us, UTC]", "datetime64": "timestamp[us] or timestamp[ns]",
    "timestamptz": "timestamp[us, UTC]", "time": "time[us]; the units are s, ms, us, ns", "time32": "time32[ms]",
    "time64": "time64[us]", "duration": "duration[us]; the units are s, ms, us, ns", "timedelta": "duration[us]",
    "decimal": "decimal(9,2), with precision and scale", "fixed": "fixed[16], with the number of bytes",
    "list": "list<int64?>, with the type of its items", "array": "list<int64?>", "large_list": "large_list<int64?>",
    "map": "map<string, int64?>", "dict": "struct<a: int64, b: string?> or map<string, int64?>",
    "struct": "struct<a: int64, b: string?>", "object": "string, or whatever the column holds",
    "text": "string", "varchar": "string", "char": "string", "category": "string", "blob": "binary",
}  # fmt: skip
"""Ambiguous names, and names of other libraries, with the names to use instead."""
_PYTHON: dict[Any, str] = {str: "string", bytes: "binary", dict: _WRITE["dict"], list: _WRITE["list"], None: "null"}
_TOKEN = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*|\d+|[?<>\[\](),:=]|[^\s\w])\s*")


@keywords
def schema(spec: Any) -> Schema:
    """A :class:`Schema` from a description.

    ``spec`` is a mapping of names to types (or an iterable of ``(name, type)`` pairs or :class:`Field` objects), a
    :class:`Schema`, or anything with ``__arrow_c_schema__``. A type is a string, a :class:`DataType`, or a type of
    pyarrow, polars or numpy. Strings:

    - ``bool``, ``int8`` to ``int64``, ``uint8`` to ``uint64``, ``float16``, ``float32``, ``float64``, ``string``,
      ``binary``, ``fixed[16]``, ``date``, ``time[ms|us|ns]``, ``timestamp[ms|us|ns]`` (local time),
      ``timestamp[us, UTC]``, ``duration[s|ms|us|ns]``, ``decimal(9,2)``, ``json``, ``uuid``, ``null``; and Parquet's
      ``enum`` (strings), ``bson`` (binary), ``interval`` (12 bytes: months, days, milliseconds), ``geometry``,
      ``geography`` (WKB in longitude and latitude), ``variant`` (a struct of ``metadata`` and ``value``) and
      ``file`` (a struct of ``uri``, ``offset``, ``size``, ``content_type``, ``checksum`` and ``inline``);
    - ``list<int64?>``, ``struct<a: int64, b: string?>``, ``map<string, float64?>``, nested as needed, and
      ``float32[384]``, lists of one length;
    - a ``?`` behind a type makes the value nullable; without it, it is required.

    Raises :class:`SchemaError` that says what is wrong with which column.

    Example::

        schema = pyparq.schema({"id": "int64", "price": "decimal(9,2)?", "at": "timestamp[us, UTC]"})
        print(schema)
    """
    if isinstance(spec, Schema):
        return spec
    if hasattr(spec, "__arrow_c_schema__"):
        return schema_from_arrow(spec)
    if isinstance(spec, Mapping):
        fields = [_field(name, type_) for name, type_ in spec.items()]
    elif isinstance(spec, Iterable) and not isinstance(spec, str | bytes):
        fields = list(map(_pair, spec))
    else:
        raise SchemaError(f"a schema cannot be made from a {type(spec).__name__}: give a dict of names to types")
    names = [field.name for field in fields]
    if len(set(names)) != len(names):
        twice = next(n for i, n in enumerate(names) if n in names[:i])
        raise SchemaError(f"the schema has two columns named {twice!r}")
    return Schema(tuple(fields))


def _pair(entry: Any) -> Field:
    if isinstance(entry, Field) or hasattr(entry, "__arrow_c_schema__"):
        return entry if isinstance(entry, Field) else field_from_arrow(entry)
    try:
        name, type_ = entry
    except (TypeError, ValueError):
        raise SchemaError(f"{entry!r} is neither a Field nor a (name, type) pair") from None
    return _field(name, type_)


def _field(name: Any, type_: Any) -> Field:
    if not isinstance(name, str):
        raise SchemaError(f"a column name must be a string, not {name!r}")
    if isinstance(type_, Field):
        return Field(name, type_.type, type_.nullable, type_.metadata)
    if isinstance(type_, DataType):
        return Field(name, type_)
    if isinstance(type_, str):
        return _Parser(name, type_).field()
    if getattr(type_, "__module__", "").startswith("polars."):
        import polars as pl

        return schema_from_arrow(pl.Schema({name: type_})).fields[0]
    if hasattr(type_, "__arrow_c_schema__"):
        return replace(field_from_arrow(type_), name=name)
    try:
        if type_ is None or (isinstance(type_, type) and type_ in _PYTHON):
            raise SchemaError(f"not a type: {type_!r}; write {_PYTHON[type_]!r}", column=name)
        dtype = np.dtype(type_)
    except TypeError:
        raise SchemaError(f"not a type: {type_!r}; a type is text such as 'int64' or 'string?'", column=name) from None
    return Field(name, _from_dtype(name, dtype))


def _from_dtype(name: str, dtype: np.dtype[Any]) -> DataType:
    if dtype.kind in "biuf" and (dtype.kind != "f" or dtype.itemsize <= 8):
        return DataType(_NAMES["bool" if dtype.kind == "b" else dtype.name])
    if dtype.kind == "M":
        unit = np.datetime_data(dtype)[0]
        if unit == "D":
            return DataType("tdD")
        if unit in _TIMES:
            return DataType(f"ts{unit[0]}:")
    if dtype.kind == "m" and np.datetime_data(dtype)[0] in _TIMES:
        return DataType(f"tD{np.datetime_data(dtype)[0][0]}")
    raise SchemaError(f"no column type for the numpy dtype {dtype}; write the type as a string", column=name)


class _Parser:
    """Recursive descent over one type string."""

    def __init__(self, column: str, text: str) -> None:
        self.column = column
        self.text = text
        self.tokens = _TOKEN.findall(text)
        self.at = 0

    def field(self) -> Field:
        field = self.nullable_type(self.column)
        if self.at < len(self.tokens):
            self.fail(f"{self.tokens[self.at]!r} is left over")
        return field

    def fail(self, why: str) -> Never:
        raise SchemaError(f"type {self.text!r}: {why}", column=self.column)

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted: str = "") -> str:
        token = self.peek()
        if not token or (wanted and token != wanted):
            what = repr(wanted) if wanted else "more"
            self.fail(f"{what} expected" + (f" before {token!r}" if token else " at the end"))
        self.at += 1
        return token

    def number(self) -> int:
        token = self.take()
        if not token.isdigit() or len(token) > 9:
            self.fail(f"{token!r} is not a number")
        return int(token)

    def nullable_type(self, name: str) -> Field:
        word = self.take().lower()
        if word in _WRITE and self.peek() not in ("[", "<", "("):
            self.fail(f"write {_WRITE[word]}")
        type_ = self.type_of(word)
        geo = word in ("geometry", "geography")
        metadata = metadata_of(LeafType(Physical.BYTE_ARRAY, word)) if geo else _METADATA.get(word, {})
        found = Field(name, type_, self.takes_null() or word == "null", metadata)
        while self.peek() == "[":
            found = self.fixed_list(found)
        return found

    def takes_null(self) -> bool:
        nullable = self.peek() == "?"
        if nullable:
            self.take()
        return nullable

    def fixed_list(self, element: Field) -> Field:
        """``float32[384]``: lists of one length."""
        type_ = DataType(f"+w:{self.size()}", (replace(element, name="element"),))
        return Field(element.name, type_, self.takes_null())

    def size(self, needed: str = "lists of at least 1 item are needed") -> int:
        self.take("[")
        size = self.number()
        self.take("]")
        if size < 1:
            self.fail(needed)
        return size

    def type_of(self, word: str) -> DataType:
        if word in ("fixed", "fixed_size_binary", "binary") and self.peek() == "[":
            return self.fixed()
        if word in _NAMES and self.peek() not in ("<", "("):
            return DataType(_NAMES[word])
        if word == "variant":
            return _VARIANT_TYPE
        if word == "file":
            return _FILE_TYPE
        if word in ("fixed", "fixed_size_binary"):
            return self.fixed()
        if word == "fixed_size_list":
            return self.printed_list()
        if word == "timestamp":
            return self.timestamp()
        if word in _TIME_WIDTHS:
            return self.time(word)
        if word.startswith("decimal"):
            return self.decimal(word)
        if word in ("list", "large_list"):
            self.take("<")
            self.skip_name()
            element = self.nullable_type("element")
            self.take(">")
            return DataType("+L" if word == "large_list" else "+l", (element,))
        if word == "map":
            return self.map()
        if word == "struct":
            return self.struct()
        known = [*_NAMES, "timestamp", "duration", "decimal", "fixed", "list", "map", "struct", "variant", "file"]
        similar = near(word, known)
        return self.fail(f"unknown type {word!r}" + (f"; did you mean {similar[0]!r}?" if similar else ""))

    def printed_list(self) -> DataType:
        """``fixed_size_list[384]<element: float32>``, as such types print."""
        size = self.size()
        self.take("<")
        self.skip_name()
        element = self.nullable_type("element")
        self.take(">")
        return DataType(f"+w:{size}", (element,))

    def fixed(self) -> DataType:
        return DataType(f"w:{self.size('a width of at least 1 byte is needed')}")

    def timestamp(self) -> DataType:
        self.take("[")
        unit = self.take()
        if unit not in _TIMES:
            self.fail(f"unit {unit!r} is not one of s, ms, us, ns")
        zone = ""
        if self.peek() == ",":
            self.take()
            while self.peek() not in ("]", ""):
                zone += self.take()
            zone = zone.removeprefix("tz=")
            if not zone:
                self.fail("a time zone is missing after the comma")
        self.take("]")
        return DataType(f"ts{unit[0]}:{zone}")

    def time(self, word: str) -> DataType:
        self.take("[")
        unit = self.take()
        if unit not in _TIME_WIDTHS[word]:
            self.fail(f"unit {unit!r} is not one of {', '.join(_TIME_WIDTHS[word])}")
        self.take("]")
        return DataType(f"tD{unit[0]}" if word == "duration" else _TIMES[unit])

    def decimal(self, word: str) -> DataType:
        self.take("(")
        precision, scale = self.number(), 0
        if self.peek() == ",":
            self.take()
            scale = self.number()
        self.take(")")
        bits = word.removeprefix("decimal") or ("128" if precision <= 38 else "256")
        most = {"32": 9, "64": 18, "128": 38, "256": 76}.get(bits)
        if most is None:
            self.fail(f"unknown type {word!r}")
        if not 1 <= precision <= most or scale > precision:
            self.fail(f"needs 1 <= precision <= {most} and 0 <= scale <= precision")
        return DataType(f"d:{precision},{scale}" + ("" if bits == "128" else f",{bits}"))

    def map(self) -> DataType:
        self.take("<")
        key = self.nullable_type("key")
        if key.nullable:
            self.fail("a map's key cannot be nullable")
        self.take(",")
        value = self.nullable_type("value")
        self.take(">")
        entries = Field("entries", DataType("+s", (key, value)), nullable=False)
        return DataType("+m", (entries,))

    def struct(self) -> DataType:
        self.take("<")
        fields: list[Field] = []
        while True:
            name = self.take()
            if not re.fullmatch(r"\w+", name):
                self.fail(f"{name!r} is not a field name")
            self.take(":")
            fields.append(self.nullable_type(name))
            if self.peek() != ",":
                break
            self.take()
        self.take(">")
        if len({f.name for f in fields}) != len(fields):
            self.fail("two fields of a struct share a name")
        return DataType("+s", tuple(fields))

    def skip_name(self) -> None:
        """``list<element: int64>``, as types print, is the same as ``list<int64>``."""
        if self.at + 1 < len(self.tokens) and self.tokens[self.at + 1] == ":":
            self.at += 2
