"""Keys of key-value metadata that stand in ``ARROW:schema`` too.

pyarrow, and pandas with it, take the keys of a table from there, and do not look at the footer's own then. So a key
that changes in a footer changes there, and one that is removed goes from there with its bytes.
"""

from __future__ import annotations

import binascii
from collections.abc import Collection, Mapping

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
