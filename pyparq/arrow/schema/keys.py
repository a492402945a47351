"""Keys of key-value metadata that stand in ``ARROW:schema`` too.

pyarrow, and pandas with it, take the keys of a table from there, and do not look at the footer's own then. So a key
that changes in a footer changes there, and one that is removed goes from there with its bytes.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Collection, Mapping
from functools import lru_cache

from pyparq.arrow.schema.extensions import EXTENSION_METADATA, EXTENSION_NAME, IN_ANNOTATIONS
from pyparq.arrow.schema.ipc_read import HintError, HintField, HintSchema
from pyparq.arrow.schema.ipc_write import schema_message
from pyparq.errors import UnsupportedError
from pyparq.format.types import DataType, Field, Schema

_DEEPEST = 100
"""Levels of nesting in a schema that is stored anew."""


def keys_of(stored: bytes) -> dict[bytes, bytes]:
    """The keys in a value of ``ARROW:schema``. Empty if it cannot be read: nobody takes keys from it then."""
    try:
        return dict(_parsed(stored).pairs())
    except HintError:
        return {}


def with_keys(stored: bytes, update: Mapping[bytes, bytes], remove: Collection[bytes]) -> bytes:
    """A value of ``ARROW:schema`` with keys set and others removed. ``stored`` itself if nothing changes.

    Raises :class:`UnsupportedError` for a schema with types that cannot be stored anew.
    """
    have = keys_of(stored)
    wanted = {key: value for key, value in {**have, **update}.items() if key not in remove}
    try:
        schema = _parsed(stored)
    except HintError:
        return stored
    if wanted == have:
        return stored
    try:
        fields = tuple(_field(schema.field(k), _DEEPEST) for k in range(len(schema)))
    except (HintError, UnicodeError) as error:
        raise UnsupportedError(
            "keys of metadata also stand in ARROW:schema, which has a type or bytes that cannot be stored anew "
            f"({error}). Remove ARROW:schema too, or use pyparq.rewrite"
        ) from None
    return in_base64(Schema(fields, wanted))


def in_base64(schema: Schema) -> bytes:
    """A schema as the value of ``ARROW:schema``, its types as they are."""
    return binascii.b2a_base64(schema_message(schema), newline=False)


def _parsed(stored: bytes) -> HintSchema:
    try:
        return HintSchema(binascii.a2b_base64(stored, strict_mode=True))
    except binascii.Error as error:
        raise HintError(str(error)) from None


def _field(hint: HintField, levels: int) -> Field:
    if not hint.format or not levels:
        raise HintError(f"column {hint.name}")
    children = tuple(_field(hint.child(k), levels - 1) for k in range(hint.num_children))
    type_ = DataType(hint.format, children, ordered=hint.keys_are_sorted if hint.format == "+m" else False)
    if hint.is_dictionary:
        type_ = DataType(hint.index_format, (), type_, hint.is_ordered)
    return Field(hint.name, type_, hint.nullable, hint.metadata)


ENUM_VALUES = b"_PL_ENUM_VALUES2"
"""``length;value`` for each value, one after another."""
CATEGORIES = b"_PL_CATEGORICAL2"
"""``length;name``, ``length;namespace``, and the type of the indices with a ``;``."""
_MOST = 1 << 20
_LENGTH = re.compile(rb"(0|[1-9][0-9]{0,7});")


def is_polars_note(key: bytes, value: bytes, type_: DataType) -> bool:
    """Whether this is a note that polars understands, on a column of the right type."""
    if type_.dictionary is None or type_.dictionary.kind != "string":
        return False
    if key == ENUM_VALUES:
        return enum_values(value) is not None
    return key == CATEGORIES and _is_categories(value)


@lru_cache(maxsize=64)
def enum_values(note: bytes) -> frozenset[bytes] | None:
    """The values that an Enum's note lists; ``None`` where it makes no sense."""
    values, rest = _parts(note)
    if rest or len(note) > _MOST or len(set(values)) < len(values) or not all(map(_is_text, values)):
        return None
    return frozenset(values)


def _is_categories(note: bytes) -> bool:
    values, rest = _parts(note[:_MOST], 2)
    return len(values) == 2 and rest in (b"u8;", b"u16;", b"u32;") and all(map(_is_text, values))


def most_categories(note: bytes) -> int:
    """The number of categories that the indices of a note can number, with one left for missing values."""
    return {b"u8;": 255, b"16;": 65_535}.get(note[-3:], (1 << 32) - 1)


def _parts(note: bytes, most: int = _MOST) -> tuple[list[bytes], bytes]:
    """The length-prefixed values, and the rest of the bytes."""
    found: list[bytes] = []
    at = 0
    while at < len(note) and len(found) < most:
        match = _LENGTH.match(note, at)
        if match is None or match.end() + int(match[1]) > len(note):
            break
        found.append(note[match.end() : match.end() + int(match[1])])
        at = match.end() + int(match[1])
    return found, note[at:]


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


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
