"""Variants between Parquet and Spark, and nested Arrow types taken apart and put together.

In a file a Variant is a group with an annotation, which pyparq shows as an extension type. In Spark's Arrow batches it
is a struct whose field ``metadata`` has a tag. Both have the same two binary fields.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyparq.arrow.schema.extensions import EXTENSION_METADATA, EXTENSION_NAME, VARIANT

if TYPE_CHECKING:
    import pyarrow as pa

_TAG = {b"variant": b"true"}


def is_variant(field: pa.Field) -> bool:
    """Whether a field of either form is a Variant."""
    import pyarrow as pa

    metadata, type_ = field.metadata or {}, field.type
    if isinstance(type_, pa.BaseExtensionType):
        return bool(type_.extension_name == VARIANT.decode())
    if not pa.types.is_struct(type_):
        return False
    tagged = any(inner.name == "metadata" and (inner.metadata or {}).get(b"variant") == b"true" for inner in type_)
    return tagged or metadata.get(EXTENSION_NAME) == VARIANT


def spark_variant() -> pa.DataType:
    """A Variant as Spark has it in Arrow batches."""
    import pyarrow as pa

    return pa.struct([pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False, metadata=_TAG)])


def has_variant(field: pa.Field) -> bool:
    """Whether there is a Variant at any depth."""
    if is_variant(field):
        return True
    found = []
    rebuilt(field.type, lambda inner: found.append(has_variant(inner)) or inner)  # type: ignore[func-returns-value]
    return any(found)


def as_stored(field: pa.Field) -> pa.Field:
    """The field with Variants, at any depth, as files have them."""
    import pyarrow as pa

    if not is_variant(field):
        return field.with_type(rebuilt(field.type, as_stored))
    plain = pa.struct([pa.field(name, pa.binary(), False) for name in ("metadata", "value")])
    marks = {**(field.metadata or {}), EXTENSION_NAME: VARIANT, EXTENSION_METADATA: b""}
    return field.with_type(plain).with_metadata(marks)


def rebuilt(type_: pa.DataType, change: Callable[[pa.Field], pa.Field]) -> pa.DataType:
    """A nested type of Spark's with its fields changed; any other as it is."""
    import pyarrow as pa

    if pa.types.is_struct(type_):
        return pa.struct([change(field) for field in type_])
    if pa.types.is_map(type_):
        return pa.map_(change(type_.key_field), change(type_.item_field))
    if pa.types.is_list(type_):
        return pa.list_(change(type_.value_field))
    return type_


def conformed(values: pa.Array, type_: pa.DataType, cast: Callable[[pa.Array, pa.DataType], pa.Array]) -> pa.Array:
    """The values in ``type_``. Fields of structs are found by their names; ``cast`` is for what is not nested."""
    import pyarrow as pa

    if values.type == type_:
        return values
    if isinstance(values.type, pa.BaseExtensionType):
        return conformed(values.storage, type_, cast)
    if values.offset:
        values = pa.concat_arrays([values, values.slice(0, 0)])  # masks need arrays that begin at their beginning
    if pa.types.is_struct(type_) and pa.types.is_struct(values.type):
        inner = [_present(conformed(values.field(field.name), field.type, cast), field) for field in type_]
        return pa.StructArray.from_arrays(inner, fields=list(type_), mask=values.is_null())
    if pa.types.is_map(type_) and pa.types.is_map(values.type):
        keys, items = conformed(values.keys, type_.key_type, cast), conformed(values.items, type_.item_type, cast)
        return pa.MapArray.from_arrays(values.offsets, keys, items, type=type_, mask=_nulls(values))
    if pa.types.is_list(type_) and pa.types.is_list(values.type):
        items = conformed(values.values, type_.value_type, cast)
        return pa.ListArray.from_arrays(values.offsets, items, type=type_, mask=_nulls(values))
    return cast(values, type_)


def _present(values: pa.Array, field: pa.Field) -> pa.Array:
    """Values of a field that cannot be null: those of a Variant that is null are empty."""
    import pyarrow as pa

    return values.fill_null(b"") if not field.nullable and pa.types.is_binary(values.type) else values


def _nulls(values: Any) -> Any:
    return values.is_null() if values.null_count else None
