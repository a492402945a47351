"""A JSON Schema of the objects that ``pyparq cat`` prints, one for each row."""

from __future__ import annotations

import json
from typing import Any

from pyparq.cli.other_schemas.fields import entry_of, stored
from pyparq.format.types import DataType, Field, Schema

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_SPECIAL = {"enum": ["NaN", "Infinity", "-Infinity"]}
_BITS = {"c": 8, "s": 16, "i": 32, "l": 64}


def json_schema(schema: Schema, name: str) -> str:
    return json.dumps({"$schema": DRAFT, "title": name} | _object(schema.fields), ensure_ascii=False, indent=2)


def _object(fields: tuple[Field, ...]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {field.name: _nullable(field) for field in fields},
        "required": list(dict.fromkeys(field.name for field in fields)),
        "additionalProperties": False,
    }


def _nullable(field: Field) -> dict[str, Any]:
    found = _of(stored(field.type))
    if not field.nullable or found == {"type": "null"}:
        return found
    return {"anyOf": [{"type": "null"}, found]}


def _of(type_: DataType) -> dict[str, Any]:
    kind = type_.kind
    if kind == "struct":
        return _object(type_.children)
    if kind in ("list", "list_view"):
        return {"type": "array", "items": _nullable(type_.children[0])} | _length(type_)
    if kind == "map":
        pair = [_nullable(field) for field in entry_of(type_)]
        return {"type": "array", "items": {"type": "array", "prefixItems": pair, "minItems": 2, "maxItems": 2}}
    if kind in ("int", "uint"):
        return {"type": "integer"} | _range(type_.format)
    if kind == "float":
        return {"anyOf": [{"type": "number"}, _SPECIAL]}
    if kind in ("binary", "fixed"):
        digits = f"{{{2 * type_.byte_width}}}" if kind == "fixed" else "*"
        return {"type": "string", "pattern": f"^0x[0-9a-f]{digits}$"}
    if kind == "decimal":
        return {"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]+)?$"}
    return {"type": {"bool": "boolean", "null": "null"}.get(kind, "string")}


def _length(type_: DataType) -> dict[str, int]:
    if not type_.format.startswith("+w"):
        return {}
    return {"minItems": int(type_.format[3:]), "maxItems": int(type_.format[3:])}


def _range(format_: str) -> dict[str, int]:
    bits = _BITS[format_.lower()]
    if format_.isupper():
        return {"minimum": 0, "maximum": (1 << bits) - 1}
    return {"minimum": -(1 << bits - 1), "maximum": (1 << bits - 1) - 1}
