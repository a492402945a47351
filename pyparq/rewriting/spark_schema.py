"""Spark's own schema in a file's metadata: kept by a rewrite as far as the new file has the same columns.

From there Spark knows what Parquet has no type for, such as intervals, and the metadata of columns. Spark believes it
rather than the file. So it goes with the rows only where each column of the new file is there with a type that fits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pyparq.schemas.extensions import LOGICAL_TYPE
from pyparq.schemas.int96 import IS_INT96
from pyparq.schemas.types import Field, Schema

ROW_METADATA = "org.apache.spark.sql.parquet.row.metadata"
_MOST = 16 << 20
"""Bytes that are looked at."""

_FORMATS = {"boolean": "b", "byte": "c", "short": "s", "integer": "i", "long": "l", "float": "f", "double": "g",
            "date": "tdD"}  # fmt: skip
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


def spark_schema_kept(schema: Schema) -> dict[str, str]:
    """Key-value metadata for a file with these columns, which were read with the ``schema``; empty where Spark's does
    not fit."""
    text = schema.metadata.get(ROW_METADATA.encode())
    if text is None or len(text) > _MOST:
        return {}
    try:
        by_name = {field["name"]: field for field in json.loads(text)["fields"]}
        own = [by_name[field.name] for field in schema.fields]
        if len(by_name) < len(own) or not all(map(_fits, own, schema.fields)):
            return {}
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        return {}
    return {ROW_METADATA: json.dumps({"type": "struct", "fields": own}, separators=(",", ":"))}


def _fits(said: Mapping[str, Any], field: Field) -> bool:
    return _type_fits(said["type"], field)


def _type_fits(said: Any, field: Field) -> bool:
    """Whether a type of Spark's, as JSON, is that of a column."""
    type_ = field.type
    if isinstance(said, dict):
        return _nested_fits(said, field)
    if said == "timestamp":
        is_bytes = field.metadata.get(LOGICAL_TYPE) == b"INT96"
        return is_bytes or (type_.kind == "timestamp" and (bool(type_.timezone) or IS_INT96 in field.metadata))
    if said == "timestamp_ntz":
        return type_.kind == "timestamp" and not type_.timezone
    if said.startswith("interval"):
        return type_.format == ("i" if "month" in said or "year" in said else "l")
    if said.startswith(("string", "char", "varchar")):
        return type_.kind == "string"
    if said in ("binary", "variant"):
        return type_.kind == "binary" if said == "binary" else type_.format == "+s"
    decimal = _DECIMAL.fullmatch(said)
    if decimal:
        return type_.kind == "decimal" and type_.decimal[:2] == (int(decimal[1]), int(decimal[2]))
    return bool(_FORMATS.get(said) == type_.format)


def _nested_fits(said: Mapping[str, Any], field: Field) -> bool:
    kind, children = said["type"], field.type.children
    if kind == "udt":
        return _type_fits(said["sqlType"], field)
    if kind == "array":
        return field.type.format == "+l" and _type_fits(said["elementType"], children[0])
    if kind == "map":
        key, value = children[0].type.children
        return field.type.format == "+m" and _type_fits(said["keyType"], key) and _type_fits(said["valueType"], value)
    names = [inner["name"] for inner in said["fields"]]
    if kind != "struct" or field.type.format != "+s" or names != [child.name for child in children]:
        return False
    return all(map(_fits, said["fields"], children))
