"""Text that Spark compares by a collation. Only Spark's own schema, in the metadata of its files, tells of it."""

from __future__ import annotations

import json
from typing import Any

from pyparq.format.types import Schema
from pyparq.maintenance.kept_storage import ROW_METADATA

_COLLATE = b"collat"
"""In the text of each schema that has a collation."""


def _described(schema: Schema) -> dict[str, Any]:
    """Spark's own fields by name, where one of them has a collation."""
    text = schema.metadata.get(ROW_METADATA.encode(), b"")
    if _COLLATE not in text.lower():
        return {}
    try:
        return {str(field["name"]): field for field in json.loads(text)["fields"]}
    except (AttributeError, KeyError, ValueError, TypeError, RecursionError):  # it is text from a file
        return {}


def collated_columns(schema: Schema) -> frozenset[str]:
    """Names of the columns with a collation at any depth."""
    found = _described(schema).items()
    return frozenset(name for name, field in found if _COLLATE in json.dumps(field).lower().encode())


def with_collations(types: Any, schema: Schema) -> Any:
    """A Spark schema (a ``StructType``) with the collations that Spark's own schema of the files tells."""
    from pyspark.sql.types import StructField, StructType

    described = _described(schema)
    if not described:
        return types
    fields = []
    for field in types.fields:
        theirs = described.get(field.name)
        try:
            own = None if theirs is None else StructField.fromJson(theirs).dataType
        except Exception:  # a type that this Spark does not know
            own = None
        changed = field.dataType if own is None else _collated(field.dataType, own)
        fields.append(StructField(field.name, changed, field.nullable, field.metadata))
    return StructType(fields)


def _collated(ours: Any, theirs: Any) -> Any:
    from pyspark.sql.types import ArrayType, MapType, StringType, StructField, StructType

    if isinstance(ours, StringType) and type(theirs) is StringType:
        return theirs
    if isinstance(ours, ArrayType) and isinstance(theirs, ArrayType):
        return ArrayType(_collated(ours.elementType, theirs.elementType), ours.containsNull)
    if isinstance(ours, MapType) and isinstance(theirs, MapType):
        key, value = _collated(ours.keyType, theirs.keyType), _collated(ours.valueType, theirs.valueType)
        return MapType(key, value, ours.valueContainsNull)
    if isinstance(ours, StructType) and isinstance(theirs, StructType) and ours.names == theirs.names:
        pairs = zip(ours.fields, theirs.fields, strict=True)
        return StructType([StructField(a.name, _collated(a.dataType, b.dataType), a.nullable) for a, b in pairs])
    return ours
