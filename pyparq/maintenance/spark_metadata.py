"""Keeps Spark's own schema in the key-value metadata of files that are made from its files.

Spark believes it more than the columns' types. Only this schema tells which integers are intervals, which strings have
a length or a collation, and what users have noted on columns. It is JSON: ``{"type": "struct", "fields": [{"name",
"type", "nullable", "metadata"}]}``. A nested type is an object of the same kind.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from pyparq.format import hybrid_calendar
from pyparq.format.int96 import IS_INT96
from pyparq.format.types import Field, Schema

ROW_METADATA = hybrid_calendar.ROW_METADATA.decode()


def row_metadata_kept(schema: Schema, without: Collection[str] = ()) -> str | None:
    """The schema text for new files with the columns of ``schema``, which has the metadata of the source.

    ``None`` if the source has none, or if it does not fit the columns any more. ``without``: columns that are not
    written.
    """
    try:
        described = {field["name"]: field for field in json.loads(schema.metadata[ROW_METADATA.encode()])["fields"]}
        kept = [described[field.name] for field in schema.fields if field.name not in without]
        written = [field for field in schema.fields if field.name not in without]
        if len(described) < len(written) or not all(map(_fits, written, [field["type"] for field in kept])):
            return None
    # the text comes from a file and may be anything
    except (AttributeError, KeyError, ValueError, TypeError, RecursionError):
        return None
    return json.dumps({"type": "struct", "fields": kept}, separators=(",", ":"))


def defaults_of(key_values: Mapping[bytes, bytes]) -> set[str]:
    """The columns for which Spark gives a DEFAULT where a file does not have them, as a file's metadata says."""
    try:
        fields = json.loads(key_values[ROW_METADATA.encode()])["fields"]
        return {str(field["name"]) for field in fields if "EXISTS_DEFAULT" in field["metadata"]}
    # the text comes from a file and may be anything
    except (AttributeError, KeyError, ValueError, TypeError, RecursionError):
        return set()


def _fits(field: Field, theirs: Any) -> bool:
    """Whether Spark may read the column as this type of its own."""
    type_ = field.type if field.type.dictionary is None else field.type.dictionary
    if theirs == "variant":
        return type_.kind == "struct"
    if isinstance(theirs, str):
        pattern = "timestamp" if IS_INT96 in field.metadata else _LEAVES.get(type_.format) or _of_family(type_)
        return pattern is not None and re.fullmatch(pattern, theirs) is not None
    if theirs["type"] == "struct":
        inner = theirs["fields"]
        names = [child.name for child in type_.children]
        return type_.kind == "struct" and names == [one["name"] for one in inner] and all(
            map(_fits, type_.children, [one["type"] for one in inner])
        )  # fmt: skip
    if theirs["type"] == "array":
        return type_.kind == "list" and _fits(type_.children[0], theirs["elementType"])
    if theirs["type"] == "map" and type_.kind == "map":
        key, value = type_.children[0].type.children
        return _fits(key, theirs["keyType"]) and _fits(value, theirs["valueType"])
    return False


_DAYS = "interval (day|hour|minute|second)( to (hour|minute|second))?"
_MONTHS = "interval (year|month)( to month)?"

_LEAVES = {
    "b": "boolean", "c": "byte", "s": "short", "i": f"integer|{_MONTHS}", "l": f"long|{_DAYS}", "f": "float",
    "g": "double", "tdD": "date", "tDu": _DAYS, "ttu": r"time\(\d\)", "tiM": _MONTHS,
}  # fmt: skip
"""Spark's type names for each Arrow format, as patterns."""


def _of_family(type_: Any) -> str | None:
    if type_.kind == "string":
        return "string( collate .+)?|char\\(\\d+\\)|varchar\\(\\d+\\)"
    if type_.kind == "binary":
        return "binary"
    if type_.kind == "timestamp":
        return "timestamp" if type_.timezone else "timestamp_ntz"
    if type_.kind == "decimal":
        precision, scale, _ = type_.decimal
        return rf"decimal\({precision},{scale}\)"
    return None
