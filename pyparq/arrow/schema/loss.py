"""Would a file's own schema lose something of the schema of the data?

Decided by comparing two Arrow schemas: that of the data, and the one that a reader derives from the file alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyparq.arrow.schema.extensions import EXTENSION_METADATA, EXTENSION_NAME, IN_ANNOTATIONS
from pyparq.format.types import DataType, Field, Schema

USUAL_NAMES = ("item", "element", "entries", "key_value", "key", "value")
"""Default names of list items and map parts. They tell nothing about the data, and Arrow's comparison of types ignores
them."""


def loses(data: Schema, derived: Schema) -> bool:
    """Whether ``derived`` lacks anything about the columns of ``data``. (Nullability is kept by Parquet. The table's
    own key-value metadata are stored elsewhere.)"""
    return any(_field_loses(a, b) for a, b in zip(data, derived, strict=True))


def _field_loses(data: Field, derived: Field) -> bool:
    return _type_loses(data.type, derived.type) or _metadata_loses(data.metadata, derived.metadata)


def _type_loses(data: DataType, derived: DataType) -> bool:
    if data.format == "n":
        return True  # UNKNOWN has this meaning, but polars (2.1) reads such a column as INT32
    if data == derived and not data.children:
        return False
    if data.format != derived.format or data.dictionary is not None or data.ordered:
        return True
    if len(data.children) != len(derived.children):
        return True
    named_by_place = data.format != "+s"
    for a, b in zip(data.children, derived.children, strict=True):
        if _field_loses(a, b) or (named_by_place and _name_loses(a.name, b.name)):
            return True
    if data.format == "+m":
        parts = zip(data.children[0].type.children, derived.children[0].type.children, strict=True)
        return any(_name_loses(a.name, b.name) for a, b in parts)
    return False


def _name_loses(name: str, derived: str) -> bool:
    return name != derived and name not in USUAL_NAMES


def _metadata_loses(data: Mapping[bytes, bytes], derived: Mapping[bytes, bytes]) -> bool:
    if not data:
        return False
    own = {k: v for k, v in data.items() if not k.startswith(b"PARQUET:")}  # these can be stored in a file's schema
    name = own.get(EXTENSION_NAME)
    if name is not None and name == derived.get(EXTENSION_NAME) and name in IN_ANNOTATIONS:
        own.pop(EXTENSION_NAME)
        own.pop(EXTENSION_METADATA, None)
    return any(derived.get(key) != value for key, value in own.items())
