"""Schemas and stored values of Apache Iceberg (https://iceberg.apache.org/spec, "Schemas and Data Types" and Appendix
D)."""

from __future__ import annotations

import struct
from decimal import Context, Decimal
from typing import Any

from pyparq.arrow.decimals import decimal_type
from pyparq.arrow.schema.extensions import EXTENSION_METADATA, EXTENSION_NAME, FIELD_ID, UUID
from pyparq.errors import UnsupportedError
from pyparq.filters.literal import Interpreted
from pyparq.format.types import DataType, Field, Schema

_PLAIN = {
    "boolean": "b", "int": "i", "long": "l", "float": "f", "double": "g", "date": "tdD", "time": "ttu",
    "timestamp": "tsu:", "timestamptz": "tsu:UTC", "timestamp_ns": "tsn:", "timestamptz_ns": "tsn:UTC",
    "string": "u", "binary": "z", "unknown": "n",
}  # fmt: skip
_NS = {"date": 86_400_000_000_000, "timestamp": 1000, "timestamptz": 1000, "timestamp_ns": 1, "timestamptz_ns": 1}
_NUMBERS = {4: "<i", 8: "<q"}


def schema_of(schema: Any) -> Schema:
    """The Arrow schema of an Iceberg schema, with its field ids. Raises :class:`UnsupportedError` for a type or a
    default value that pyparq does not have."""
    return Schema(tuple(_field(field) for field in schema.fields))


def _field(field: Any) -> Field:
    if getattr(field, "initial_default", None) is not None:
        raise UnsupportedError(
            "the column has an initial default, which files that are older than it do not store", column=field.name
        )
    return _numbered(field.name, field.field_id, field.field_type, not field.required)


def _numbered(name: str, number: int, type_: Any, nullable: bool) -> Field:
    metadata = {FIELD_ID: str(number).encode()}
    if str(type_) == "uuid":
        metadata |= {EXTENSION_NAME: UUID, EXTENSION_METADATA: b""}
    return Field(name, _type(type_, name), nullable, metadata)


def _type(type_: Any, name: str) -> DataType:
    if hasattr(type_, "fields"):
        return DataType("+s", tuple(map(_field, type_.fields)))
    if hasattr(type_, "element_type"):
        return DataType("+l", (_numbered("element", type_.element_id, type_.element_type, not type_.element_required),))
    if hasattr(type_, "key_type"):
        key = _numbered("key", type_.key_id, type_.key_type, False)
        value = _numbered("value", type_.value_id, type_.value_type, not type_.value_required)
        return DataType("+m", (Field("key_value", DataType("+s", (key, value)), False),))
    if hasattr(type_, "precision") and hasattr(type_, "scale"):
        return decimal_type(type_.precision, type_.scale)
    text = str(type_)
    if text == "uuid" or text.startswith("fixed"):
        return DataType(f"w:{16 if text == 'uuid' else len(type_)}")
    if text not in _PLAIN:
        raise UnsupportedError(f"the column has Iceberg's type {text}, which pyparq does not have", column=name)
    return DataType(_PLAIN[text])


def field_types(schema: Any) -> dict[int, Any]:
    """The types of all fields of primitive types, by their ids."""
    found: dict[int, Any] = {}

    def look(number: int, type_: Any) -> None:
        if hasattr(type_, "fields"):
            for field in type_.fields:
                look(field.field_id, field.field_type)
        elif hasattr(type_, "element_type"):
            look(type_.element_id, type_.element_type)
        elif hasattr(type_, "key_type"):
            look(type_.key_id, type_.key_type)
            look(type_.value_id, type_.value_type)
        else:
            found[number] = type_

    for field in schema.fields:
        look(field.field_id, field.field_type)
    return found


def bound(data: bytes | None, type_: Any) -> Any:
    """A bound of the single-value serialization as a literal of a filter. ``None`` where it cannot be told.

    An int, a float or a date of 4 bytes may belong to a column that is a long, a double or a timestamp by now.
    """
    if data is None:
        return None
    text = str(type_)
    if text in ("int", "long", "date", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"):
        if len(data) not in _NUMBERS:
            return None
        number = struct.unpack(_NUMBERS[len(data)], data)[0]
        if text not in _NS:
            return number
        return Interpreted(number * _NS["date" if len(data) == 4 else text])
    if text in ("float", "double"):
        return struct.unpack("<f" if len(data) == 4 else "<d", data)[0] if len(data) in (4, 8) else None
    if hasattr(type_, "precision"):
        return _decimal(int.from_bytes(data, "big", signed=True), type_.scale)
    if text == "boolean":
        return data != b"\0"
    return data if text in ("string", "binary") or text.startswith("fixed") else None


def _decimal(unscaled: int, scale: int) -> Any:
    return Decimal(unscaled).scaleb(-scale, Context(prec=80))
