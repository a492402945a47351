"""Types between Spark and files: Variants, collations, and the storage of columns where Spark's settings decide it.

In a file a Variant is a group with an annotation, which pyparq shows as an extension type. In Spark's Arrow batches it
is a struct whose field ``metadata`` has a tag. Both have the same two binary fields. Of collations, by which Spark
compares text, only Spark's own schema tells, in the metadata of its files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from pyparq.arrow.schema.extensions import EXTENSION_METADATA, EXTENSION_NAME, FIELD_ID, VARIANT
from pyparq.arrow.schema.from_text import schema as parse_schema
from pyparq.datasets.common_schema import tree_of
from pyparq.format.hybrid_calendar import ROW_METADATA
from pyparq.format.types import Schema

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


# ---- collations

_COLLATE = b"collat"
"""In the text of each schema that has a collation."""


def _described(schema: Schema) -> dict[str, Any]:
    """Spark's own fields by name, where one of them has a collation."""
    text = schema.metadata.get(ROW_METADATA, b"")
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


# ---- timestamps in milliseconds, field ids

_SPARK_ID = "parquet.field.id"
"""Metadata of a field in Spark: its field id in Parquet files."""


def instants(schema: pa.Schema, without: Collection[str]) -> list[tuple[str, ...]]:
    """Paths, as they are written, of the timestamps with a zone. ``without``: columns that are not written."""
    import pyarrow as pa

    kept = pa.schema([field for field in schema if field.name not in without])
    tree = tree_of(parse_schema(kept))
    return [leaf.path for leaf in tree.leaves if leaf.type.kind == "timestamp" and leaf.type.utc]


def in_milliseconds(schema: pa.Schema, without: Collection[str]) -> pa.Schema:
    """The schema with milliseconds for microseconds in timestamps with a zone, but for the columns in ``without``."""
    import pyarrow as pa

    return pa.schema(
        [field if field.name in without else field.with_type(_coarse(field.type)) for field in schema],
        metadata=schema.metadata,
    )


def _coarse(type_: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    if pa.types.is_timestamp(type_) and type_.tz is not None:
        return pa.timestamp("ms", type_.tz)
    return rebuilt(type_, lambda field: field.with_type(_coarse(field.type)))


def floored(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """The values in ``type_``, with microseconds cut to milliseconds, downwards, as Spark does."""
    return conformed(values, type_, _floored)


def _floored(values: pa.Array, type_: pa.DataType) -> pa.Array:
    import pyarrow as pa
    from pyarrow import compute

    if pa.types.is_timestamp(type_) and type_.unit == "ms":
        # Without the zone, because in a zone pyarrow refuses the hours that clocks show twice.
        values = compute.floor_temporal(values.cast(pa.timestamp("us")), unit="millisecond").cast(pa.timestamp("ms"))
    return values.cast(type_)


def with_field_ids(schema: pa.Schema, own: Any) -> pa.Schema:
    """The schema with the field ids that Spark's schema ``own`` has in the metadata of its fields."""
    import pyarrow as pa

    return pa.schema(
        [_with_id(field, theirs) for field, theirs in zip(schema, own.fields, strict=True)], metadata=schema.metadata
    )


def _with_id(field: pa.Field, own: Any) -> pa.Field:
    field = field.with_type(_with_ids(field.type, own.dataType))
    number = own.metadata.get(_SPARK_ID)
    if number is None:
        return field
    return field.with_metadata({**(field.metadata or {}), FIELD_ID: str(number).encode()})


def _with_ids(type_: pa.DataType, own: Any) -> pa.DataType:
    from pyspark.sql.types import ArrayType, MapType, StructType

    inner: list[Any] = []
    if isinstance(own, ArrayType):
        inner = [own.elementType]
    elif isinstance(own, MapType):
        inner = [own.keyType, own.valueType]
    elif isinstance(own, StructType):
        fields = iter(own.fields)
        return rebuilt(type_, lambda field: _with_id(field, next(fields)))
    types = iter(inner)
    return rebuilt(type_, lambda field: field.with_type(_with_ids(field.type, next(types)))) if inner else type_
