"""The ``pandas`` key of several tables that become one, and of rows in another order.

It says which types pandas had for the columns and what the index was. pandas applies it to all rows, so what it says
has to hold for all of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pyparq.errors import DroppedMetadataWarning
from pyparq.format.types import DataType, Schema
from pyparq.runtime.messages import warn_caller

PANDAS = b"pandas"
_INVALID = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""Errors for bytes that are no metadata of pandas."""
_NULLABLE = re.compile(r"(?:U?Int(?:8|16|32|64)|Float(?:32|64)|boolean)")
_NUMPY = re.compile(r"(?:u?int(?:8|16|32|64)|float(?:16|32|64)|bool|object|(?:datetime|timedelta)64\[\w+\])")
_TEXTS = {"object", "str", "string"}
_PYARROW_NAMES = {"e": "halffloat", "f": "float", "g": "double", "b": "bool"}
_RANGE = re.compile(rb'\{"kind": "range"[^{}]*\}')


def joined(schemas: Sequence[Schema], whole: Schema) -> tuple[bytes | None, list[str]]:
    """The key for the rows of all ``schemas``, and what it cannot say of them: names of columns, or ``"index"``.
    ``None``: no key.

    An index that is a range of numbers becomes the default one, as in pandas and pyarrow.
    """
    known: dict[bytes | None, list[Schema]] = {}
    for schema in schemas:
        stored = schema.metadata.get(PANDAS)
        group = known.setdefault(None if stored is None else _RANGE.sub(b"", stored), [])
        if all(schema.fields != other.fields for other in group):
            group.append(schema)
    if len(known) == 1 and all(len(group) == 1 for group in known.values()):
        return next(iter(known)), []
    try:
        return _joined([(_parsed(group[0]), group) for group in known.values()], whole)
    except _INVALID:
        return None, ["index", *whole.names]


def _parsed(schema: Schema) -> dict[str, Any] | None:
    stored = schema.metadata.get(PANDAS)
    if stored is None:
        return None
    found = json.loads(stored)
    if not isinstance(found, dict):
        raise ValueError("no metadata of a DataFrame")
    return found


def _joined(
    described: Sequence[tuple[dict[str, Any] | None, Sequence[Schema]]], whole: Schema
) -> tuple[bytes | None, list[str]]:
    first = next(found for found, _ in described if found is not None)
    levels = [_index(found) for found, _ in described]
    labels = [found.get("column_indexes") for found, _ in described if found is not None]
    if any(other != levels[0] for other in levels) or any(other != labels[0] for other in labels):
        return None, ["index"]
    lost, columns = [], []
    types_of = [[{field.name: field.type for field in schema} for schema in group] for _, group in described]
    entries_of = [_entries(found) for found, _ in described]
    for field in whole.fields:
        entries: list[dict[str, Any] | None] = []
        types: list[DataType] = []
        for named, known in zip(entries_of, types_of, strict=True):
            own = [by_name[field.name] for by_name in known if field.name in by_name]
            if any(type_.format != "n" or type_ == field.type for type_ in own):
                types += own
                entries.append(named.get(field.name))
        entry = next((entry for entry in entries if entry is not None), None)
        if entry is None:
            continue
        names = ["object" if one is None else str(one["numpy_type"]) for one in entries]  # without one: no DataFrame
        name = _common_name(names, types, field.type)
        if name is None:
            lost.append(field.name)
            entry = {**entry, "pandas_type": "object", "numpy_type": "object", "metadata": None}
        elif field.type.dictionary is None and name != entry["numpy_type"]:
            entry = {**entry, "numpy_type": name}
        columns.append(entry)
    # Attributes are those of a whole DataFrame.
    attributes = [found.get("attributes") for found, _ in described if found is not None]
    if any(other != attributes[0] for other in attributes):
        lost.append("attributes")
        first = {key: value for key, value in first.items() if key != "attributes"}
    return json.dumps({**first, "index_columns": levels[0], "columns": columns}).encode(), lost


def _index(found: dict[str, Any] | None) -> list[Any]:
    """The columns that are levels of the index. A range is no column."""
    levels = [] if found is None else found["index_columns"]
    return [level for level in levels if not isinstance(level, dict)]


def _entries(found: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    return {} if found is None else {column["field_name"]: column for column in found["columns"]}


def _common_name(names: Sequence[str], types: Sequence[DataType], whole: DataType) -> str | None:
    """The name of the pandas type that all values have together. ``None`` if it is not known."""
    if len(set(names)) == 1 and all(type_ == whole for type_ in types):
        return names[0]
    if all(map(_NUMPY.fullmatch, names)) or whole.dictionary is not None:
        return names[0]
    if whole.kind == "string" and {"object"} < set(names) <= _TEXTS:
        return "object"
    if all(_NULLABLE.fullmatch(name) or _NUMPY.fullmatch(name) for name in names):
        return _nullable_name(whole)
    if all(name.endswith("[pyarrow]") for name in names):
        plain = _PYARROW_NAMES.get(whole.format) or (str(whole) if whole.kind in ("int", "uint") else None)
        if whole.kind == "timestamp":
            plain = f"timestamp[{whole.unit}, tz={whole.timezone}]" if whole.timezone else f"timestamp[{whole.unit}]"
        return None if plain is None else f"{plain}[pyarrow]"
    return None


def _nullable_name(type_: DataType) -> str | None:
    bits = {"f": "Float32", "g": "Float64", "b": "boolean"}
    if type_.kind in ("int", "uint"):
        return str(type_).replace("uint", "UInt").replace("int", "Int")
    return bits.get(type_.format)


def at_places(schema: Schema, places: Any) -> Schema:
    """The schema of the rows with these numbers, in this order."""
    return schema if (np.diff(places) == 1).all() else in_other_order(schema)


def in_other_order(schema: Schema) -> Schema:
    """The schema of rows in another order: their index is no range of numbers any more.

    Warns with :class:`pyparq.DroppedMetadataWarning` where the labels are not those that rows have by default.
    """
    if PANDAS not in schema.metadata:
        return schema
    try:
        found = _parsed(schema) or {}
        ranges = [level for level in found["index_columns"] if isinstance(level, dict)]
        usual = all((level["start"], level["step"], level["name"]) == (0, 1, None) for level in ranges)
        stored = json.dumps({**found, "index_columns": _index(found)}).encode()
    except _INVALID:
        return schema
    if not ranges:
        return schema
    if not usual:
        text = "the rows have another order, so the key pandas does not give them their index, which was a range"
        warn_caller(f"{text}. Call reset_index() before, to store it as a column", DroppedMetadataWarning)
    return replace(schema, metadata={**schema.metadata, PANDAS: stored})
