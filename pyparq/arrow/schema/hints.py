"""Types that a file's schema cannot express and ``ARROW:schema`` does: time zones, seconds, dictionaries, large, view
and fixed-size types, durations, intervals, run ends, extension types, names of list items and field metadata.

These are hints, never instructions: the metadata are bytes from outside. A hint is taken only if the file's column can
be shown in that type. Everything else is ignored silently: bad base64, a broken message, types that contradict the
file's schema, extension types that other libraries would act upon.
"""

from __future__ import annotations

import binascii
import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from pyparq.arrow.schema.extensions import (
    BOOL8,
    EXTENSION_METADATA,
    EXTENSION_NAME,
    FIELD_ID,
    JSON,
    LAYOUT,
    LOGICAL_TYPE,
    UUID,
)
from pyparq.arrow.schema.ipc_read import HintError, HintField, HintSchema, PlainHint
from pyparq.arrow.schema.keys import USUAL_NAMES, is_polars_note
from pyparq.format.schema_node import Shape, values_of
from pyparq.format.types import DataType, Field

ARROW_SCHEMA = b"ARROW:schema"
_MOST_BYTES = 256 << 20
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+\-/]{0,63}")
_OFFSET_ZONE = re.compile(r"[+-](0\d|1\d|2[0-3]):[0-5]\d")
_WIDER = {"u": ("U", "vu"), "z": ("Z", "vz")}
_COARSER = (("ttm", "tts"), ("tdD", "tdm"))
"""Types in a file, with the Arrow types that were stored as them."""
_DIGITS = {32: 9, 64: 18, 128: 38, 256: 76}
"""Digits that a decimal of so many bits can hold."""
_INDICES = ("c", "C", "s", "S", "i", "I", "l", "L")
_RUN_ENDS = ("s", "i", "l")
_RESERVED = (FIELD_ID, LOGICAL_TYPE, EXTENSION_NAME, EXTENSION_METADATA)


class Hints:
    """The hints of one file, looked up by the place of a top-level column. Never raises."""

    def __init__(self, key_values: Mapping[bytes, bytes], num_columns: int, enabled: bool = True) -> None:
        self._fields: HintSchema | None = None
        stored = key_values.get(ARROW_SCHEMA) if enabled else None
        if stored is None or len(stored) > _MOST_BYTES:
            return
        try:
            fields = HintSchema(binascii.a2b_base64(stored, strict_mode=True))
        except (binascii.Error, HintError):
            return
        if len(fields) == num_columns:
            self._fields = fields

    def __bool__(self) -> bool:
        """Is there anything to restore?"""
        return self._fields is not None

    def restored(self, field: Field, index: int) -> Field:
        """``field``, which the file's schema gives to top-level column ``index``, with the hints added."""
        if self._fields is None:
            return field
        plain = self._fields.plain(index)
        if plain is not None and plain.format == field.type.format:
            return field  # as most are
        try:
            hint = plain or self._fields.field(index)
            return _restored(field, hint) if hint.name == field.name else field
        except HintError:
            return field


def _restored(field: Field, hint: HintField | PlainHint) -> Field:
    noted = hint.metadata
    type_ = _interval(field, hint) or _type(field.type, hint)
    if LAYOUT in noted:
        type_ = _laid_out(type_, noted[LAYOUT])
    metadata = _metadata(field, type_, hint, noted)
    if type_ is field.type and metadata is field.metadata:
        return field
    return replace(field, type=type_, metadata=metadata)


def _type(stored: DataType, hint: HintField | PlainHint) -> DataType:
    """The type to show a column of type ``stored`` in; ``stored`` itself where the hint adds nothing."""
    wanted = hint.format
    if hint.is_dictionary and stored.format in ("u", "z"):
        value = wanted if wanted == _WIDER[stored.format][0] else stored.format
        return DataType(hint.index_format, (), DataType(value), hint.is_ordered)
    if stored.format in _WIDER:
        return DataType(wanted) if wanted in _WIDER[stored.format] else stored
    if stored.kind == "timestamp":
        return _zoned(stored, wanted)
    if stored.kind == "decimal":
        return _decimal(stored, wanted)
    if (stored.format, wanted[:2]) in (("l", "tD"), ("w:16", "_p")) or (stored.format, wanted) in _COARSER:
        return DataType(wanted)
    if stored.format == "+l":
        return _list(stored, hint, wanted)
    if stored.format == "+m" and wanted == "+m" and hint.num_children == 1:
        made = _with_children(stored, [_entries(stored.children[0], hint.child(0))])
        return replace(made, ordered=True) if hint.keys_are_sorted else made
    if stored.format == "+s" and wanted == "+s":
        named = {found.name: found for found in _children(hint)}
        return _with_children(stored, [_restored(f, named[f.name]) if f.name in named else f for f in stored.children])
    return stored


def _zoned(stored: DataType, wanted: str) -> DataType:
    """Another zone for the same instants. The unit is the file's, but for seconds, which no file has."""
    zone = wanted[4:]
    if not wanted.startswith("ts") or bool(zone) != bool(stored.timezone):
        return stored
    unit = "s" if wanted[2] == "s" and stored.unit == "ms" else stored.format[2]
    made = f"ts{unit}:{zone if zone and _is_zone(zone) else stored.timezone}"
    return stored if made == stored.format else DataType(made)


def _decimal(stored: DataType, wanted: str) -> DataType:
    """The same digits in another width."""
    if not wanted.startswith("d:"):
        return stored
    found = DataType(wanted)
    digits, width = found.decimal[:2], found.decimal[2]
    if digits != stored.decimal[:2] or digits[0] > _DIGITS.get(width, 0):
        return stored
    return found if width != stored.decimal[2] else stored


def _interval(field: Field, hint: HintField | PlainHint) -> DataType | None:
    """Arrow's type for a column of INTERVAL, where one is hinted."""
    is_interval = field.type.format == "w:12" and field.metadata.get(LOGICAL_TYPE) == b"INTERVAL"
    return DataType(hint.format) if is_interval and hint.format in ("tiM", "tiD", "tin") else None


def _laid_out(type_: DataType, layouts: bytes) -> DataType:
    """date64, dictionaries of values other than strings, and run-end encoding; see :data:`LAYOUT`."""
    for layout in reversed(layouts.split()[:3]):
        kind, _, form = layout.partition(b":")
        number = form.decode("ascii", "replace")
        if kind == b"date64" and type_.format == "tdD":
            type_ = DataType("tdm")
        elif type_.dictionary is not None or type_.format == "n" or type_.is_nested:
            pass
        elif kind in (b"dictionary", b"ordered") and number in _INDICES:
            type_ = DataType(number, (), type_, kind == b"ordered")
        elif kind == b"run_end" and number in _RUN_ENDS:
            type_ = DataType("+r", (Field("run_ends", DataType(number), nullable=False), Field("values", type_)))
    return type_


@lru_cache(maxsize=64)
def _is_zone(name: str) -> bool:
    if _OFFSET_ZONE.fullmatch(name):
        return True
    if not _ZONE.fullmatch(name):
        return False
    from zoneinfo import ZoneInfo  # with json below: two milliseconds of an import that few files need

    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return False
    return True


def _list(stored: DataType, hint: HintField | PlainHint, wanted: str) -> DataType:
    if wanted not in ("+l", "+L", "+vl", "+vL") and not wanted.startswith("+w:"):
        return stored
    if hint.num_children != 1:
        return stored
    inner = _with_children(stored, [_named(_restored(stored.children[0], hint.child(0)), hint.child(0))])
    if wanted in ("+L", "+vl", "+vL") or (wanted.startswith("+w:") and 0 < int(wanted[3:]) < 1 << 31):
        return DataType(wanted, inner.children)
    return inner


def _entries(entries: Field, hint: HintField | PlainHint) -> Field:
    """A map's entries: key and value by position, whatever they are called."""
    if hint.num_children != 2:
        return entries
    pairs = zip(entries.type.children, _children(hint), strict=True)
    made = _with_children(entries.type, [_named(_restored(f, h), h) for f, h in pairs])
    return _named(entries if made is entries.type else replace(entries, type=made), hint)


def _named(field: Field, hint: HintField | PlainHint) -> Field:
    """The field with the hinted names of list items or map parts."""
    name = hint.name
    return field if name == field.name or name in USUAL_NAMES else replace(field, name=name)


def _children(hint: HintField | PlainHint) -> Iterator[HintField | PlainHint]:
    return (hint.child(k) for k in range(min(hint.num_children, 1 << 16)))


def _with_children(stored: DataType, children: list[Field]) -> DataType:
    if all(a is b for a, b in zip(children, stored.children, strict=True)):
        return stored
    return DataType(stored.format, tuple(children))


# ---- metadata and extension types ----------------------------------------------------------------------------------


def _metadata(
    field: Field, type_: DataType, hint: HintField | PlainHint, found: Mapping[bytes, bytes]
) -> Mapping[bytes, bytes]:
    """The file's own metadata, with what the hint adds (``found``)."""
    if type_.kind == "interval":  # which says it itself
        return {k: v for k, v in {**found, **field.metadata}.items() if k != LOGICAL_TYPE}
    if not found:
        return field.metadata
    added = {k: v for k, v in found.items() if k not in _RESERVED and not k.startswith((b"_PL_", b"PARQUET:"))}
    added |= {k: v for k, v in found.items() if k.startswith(b"_PL_") and is_polars_note(k, v, type_)}
    added |= {k: v for k, v in found.items() if k == FIELD_ID and v.strip(b"-0123456789")}  # no number, so no id
    name = found.get(EXTENSION_NAME)
    is_whole = name is not None and values_of(type_).format == hint.format and _is_whole(type_, hint)
    if name is not None and is_whole and EXTENSION_NAME not in field.metadata:
        checked = _extension(name, found.get(EXTENSION_METADATA, b""), type_)
        if checked is not None:
            added |= {EXTENSION_NAME: name, EXTENSION_METADATA: checked}
    return {**added, **field.metadata} if added else field.metadata


def _is_whole(type_: DataType, hint: HintField | PlainHint) -> bool:
    """Whether the column has all fields of the hinted type: an extension type takes no part of its storage."""
    if not type_.is_nested:
        return True
    pairs = zip(type_.children, _children(hint), strict=False)
    return len(type_.children) == hint.num_children and all(_is_whole(field.type, inner) for field, inner in pairs)


def _extension(name: bytes, described: bytes, type_: DataType) -> bytes | None:
    """The metadata of an extension type to pass on; ``None`` to leave the type out.

    Other libraries act on names that begin with ``arrow.`` (old ones even execute what comes with
    ``arrow.py_extension_type``): only those that are known to fit the column are passed on.
    """
    if not name.startswith(b"arrow."):
        return described
    if (
        (name == UUID and type_.format == "w:16")
        or (name == JSON and type_.kind == "string")
        or (name == BOOL8 and type_.format == "c")
    ):
        return b""
    if name == b"arrow.opaque" and _is_opaque(described):
        return described
    if name == b"arrow.fixed_shape_tensor" and _is_tensor(described, type_):
        return described
    return None


def _parsed(described: bytes) -> dict[str, object]:
    import json

    try:
        found = json.loads(described)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_opaque(described: bytes) -> bool:
    found = _parsed(described)
    return all(isinstance(found.get(key), str) for key in ("type_name", "vendor_name"))


def _is_tensor(described: bytes, type_: DataType) -> bool:
    found = _parsed(described)
    shape = found.get("shape")
    if not isinstance(shape, list) or not all(type(n) is int and 0 < n < 1 << 31 for n in shape):
        return False
    names, order = found.get("dim_names"), found.get("permutation")
    if names is not None and not (
        isinstance(names, list) and len(names) == len(shape) and all(isinstance(n, str) for n in names)
    ):
        return False
    if order is not None and not (
        isinstance(order, list) and sorted(map(str, order)) == sorted(map(str, range(len(shape))))
    ):
        return False
    return type_.format == f"+w:{math.prod(shape)}"


# ---- dictionaries that the reader asks for -------------------------------------------------------------------------


def with_dictionaries(field: Field, shape: Shape, columns: Collection[int]) -> Field:
    """The field with the leaves in ``columns`` (ordinals) as dictionaries of their types. An extension type has no
    dictionary as its storage: what it is of is shown then."""
    type_ = _with_dictionaries(field.type, shape, columns)
    if type_ is field.type:
        return field
    metadata = field.metadata
    if type_.dictionary is not None and EXTENSION_NAME in metadata:
        metadata = {k: v for k, v in metadata.items() if k not in (EXTENSION_NAME, EXTENSION_METADATA)}
    return replace(field, type=type_, metadata=metadata)


def _with_dictionaries(type_: DataType, shape: Shape, columns: Collection[int]) -> DataType:
    if shape.kind == "leaf":
        wanted = shape.node.column in columns and type_.dictionary is None
        return DataType("i", (), type_) if wanted else type_
    if shape.kind == "map":
        (entries,) = type_.children
        return _with_children(type_, [replace(entries, type=_pairs(entries.type, shape, columns))])
    return _pairs(type_, shape, columns)


def _pairs(type_: DataType, shape: Shape, columns: Collection[int]) -> DataType:
    """A struct's fields by name, a list's element or a map's key and value by position."""
    if shape.kind == "struct":
        named = {child.name: child for child in shape.children}
        return _with_children(type_, [with_dictionaries(f, named[f.name], columns) for f in type_.children])
    pairs = zip(type_.children, shape.children, strict=True)
    return _with_children(type_, [with_dictionaries(f, s, columns) for f, s in pairs])


def dictionary_leaves(type_: DataType, shape: Shape) -> Iterator[int]:
    """Ordinals of the leaves that ``type_`` shows as dictionaries."""
    if shape.kind == "leaf":
        if type_.dictionary is not None:
            yield shape.node.column
    elif shape.kind == "struct":
        named = {child.name: child for child in shape.children}
        for field in type_.children:
            yield from dictionary_leaves(field.type, named[field.name])
    else:
        inner = type_.children[0].type.children if shape.kind == "map" else type_.children
        for field, child in zip(inner, shape.children, strict=True):
            yield from dictionary_leaves(field.type, child)
