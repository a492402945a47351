"""An Avro schema (a record), in JSON."""

from __future__ import annotations

import json
import re
from typing import Any

from pyparq.cli.other_schemas.fields import entry_of, none_for, stored
from pyparq.format.types import DataType, Field, Schema

_NAMES = {
    "b": "boolean", "c": "int", "s": "int", "i": "int", "l": "long", "C": "int", "S": "int", "I": "long", "e": "float",
    "f": "float", "g": "double", "n": "null",
}  # fmt: skip
_KINDS = {"string": "string", "binary": "bytes"}
_UNITS = {"s": "millis", "ms": "millis", "us": "micros", "ns": "nanos"}


def avro_schema(schema: Schema, name: str) -> str:
    """A record with a union of null and its type for each column that may be null.

    Avro's names are ASCII letters, digits and ``_``. Other characters become ``_``, and ``doc`` has the real name.
    Raises :class:`UnsupportedError`, which names the column, for a type that Avro has nothing for.
    """
    return json.dumps(_Schema().record(schema.fields, name, ""), ensure_ascii=False, indent=2)


class _Schema:
    """Names of records and fixed types must be unique in a schema."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def record(self, fields: tuple[Field, ...], name: str, path: str) -> dict[str, Any]:
        own = self._unique(name)
        taken: set[str] = set()
        return {"type": "record", "name": own, "fields": [self._field(f, f"{path}{f.name}", taken) for f in fields]}

    def _field(self, field: Field, path: str, taken: set[str]) -> dict[str, Any]:
        name = _free(_valid(field.name), taken)
        found: dict[str, Any] = {"name": name} if name == field.name else {"name": name, "doc": field.name}
        type_ = self._of(field, path)
        if field.nullable and type_ != "null":
            return found | {"type": ["null", type_], "default": None}
        return found | {"type": type_}

    def _nullable(self, field: Field, path: str) -> Any:
        type_ = self._of(field, path)
        return ["null", type_] if field.nullable and type_ != "null" else type_

    def _of(self, field: Field, path: str) -> Any:
        type_ = stored(field.type)
        if type_.kind == "struct":
            return self.record(type_.children, path, f"{path}.")
        if type_.kind in ("list", "list_view"):
            return {"type": "array", "items": self._nullable(type_.children[0], f"{path}.element")}
        if type_.kind == "map":
            return self._map(type_, path)
        if type_.kind == "fixed":
            return self._fixed(field, type_, path)
        return _plain(type_, path)

    def _map(self, type_: DataType, path: str) -> dict[str, Any]:
        key, value = entry_of(type_)
        if stored(key.type).kind == "string":
            return {"type": "map", "values": self._nullable(value, f"{path}.value")}
        return {"type": "array", "items": self.record((key, value), f"{path}.entry", f"{path}.")}

    def _fixed(self, field: Field, type_: DataType, path: str) -> dict[str, Any]:
        if field.metadata.get(b"ARROW:extension:name") == b"arrow.uuid":
            return {"type": "string", "logicalType": "uuid"}
        return {"type": "fixed", "name": self._unique(path), "size": type_.byte_width}

    def _unique(self, path: str) -> str:
        return _free(_valid(path), self._taken)


def _plain(type_: DataType, path: str) -> Any:
    kind = type_.kind
    if kind == "decimal":
        precision, scale, _ = type_.decimal
        return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
    if type_.format == "L":
        return {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 0}
    if kind == "date":
        return {"type": "int", "logicalType": "date"}
    if kind == "time":
        short = type_.unit in ("s", "ms")
        return {"type": "int" if short else "long", "logicalType": f"time-{'millis' if short else 'micros'}"}
    if kind == "timestamp":
        return {"type": "long", "logicalType": f"{'' if type_.timezone else 'local-'}timestamp-{_UNITS[type_.unit]}"}
    found = _NAMES.get(type_.format) or _KINDS.get(kind)
    if found is None:
        raise none_for("Avro", path, type_)
    return found


def _valid(name: str) -> str:
    text = re.sub(r"[^A-Za-z0-9_]", "_", name) or "_"
    return f"_{text}" if text[0].isdigit() else text


def _free(name: str, taken: set[str]) -> str:
    found, n = name, 2
    while found in taken:
        found, n = f"{name}_{n}", n + 1
    taken.add(found)
    return found
