"""Spark's schema: the JSON that ``StructType.fromJson`` reads."""

from __future__ import annotations

import json
from typing import Any

from pyparq.cli.other_schemas.fields import entry_of, none_for, stored
from pyparq.format.types import DataType, Field, Schema

_NAMES = {
    "b": "boolean", "c": "byte", "s": "short", "i": "integer", "l": "long", "C": "short", "S": "integer", "I": "long",
    "L": "decimal(20,0)", "e": "float", "f": "float", "g": "double", "n": "void",
}  # fmt: skip
_KINDS = {
    "string": "string", "binary": "binary", "fixed": "binary", "date": "date", "duration": "interval day to second",
}  # fmt: skip
MOST_DIGITS = 38


def spark_schema(schema: Schema) -> str:
    """Every field is nullable, as in what Spark itself reads from files.

    Raises :class:`UnsupportedError`, which names the column, for a type that Spark has nothing for.
    """
    return json.dumps(_struct(schema.fields, ""), ensure_ascii=False, indent=2)


def _struct(fields: tuple[Field, ...], path: str) -> dict[str, Any]:
    return {
        "type": "struct",
        "fields": [
            {"name": f.name, "type": _type(f.type, f"{path}{f.name}"), "nullable": True, "metadata": {}} for f in fields
        ],
    }


def _type(given: DataType, path: str) -> Any:
    type_ = stored(given)
    if type_.kind == "struct":
        return _struct(type_.children, f"{path}.")
    if type_.kind in ("list", "list_view"):
        element = _type(type_.children[0].type, f"{path}.element")
        return {"type": "array", "elementType": element, "containsNull": True}
    if type_.kind == "map":
        key, value = entry_of(type_)
        return {
            "type": "map", "keyType": _type(key.type, f"{path}.key"), "valueType": _type(value.type, f"{path}.value"),
            "valueContainsNull": True,
        }  # fmt: skip
    if type_.kind == "decimal" and type_.decimal[0] <= MOST_DIGITS:
        return f"decimal({type_.decimal[0]},{type_.decimal[1]})"
    if type_.kind == "timestamp":
        return "timestamp" if type_.timezone else "timestamp_ntz"
    if type_.kind == "time":
        return "time(6)"
    found = _NAMES.get(type_.format) or _KINDS.get(type_.kind)
    if found is None:
        raise none_for("Spark", path, type_)
    return found
