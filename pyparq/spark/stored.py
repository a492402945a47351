"""How columns of Spark's are stored where its settings say so: timestamps in milliseconds, field ids."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from pyparq.datasets.schema_tree import tree_of
from pyparq.schemas.extensions import FIELD_ID
from pyparq.schemas.parse import schema as parse_schema

if TYPE_CHECKING:
    import pyarrow as pa

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
    return _rebuilt(type_, lambda field: field.with_type(_coarse(field.type)))


def _rebuilt(type_: pa.DataType, change: Callable[[pa.Field], pa.Field]) -> pa.DataType:
    """A nested type of Spark's with its fields changed; any other as it is."""
    import pyarrow as pa

    if pa.types.is_struct(type_):
        return pa.struct([change(field) for field in type_])
    if pa.types.is_map(type_):
        return pa.map_(change(type_.key_field), change(type_.item_field))
    if pa.types.is_list(type_):
        return pa.list_(change(type_.value_field))
    return type_


def floored(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """The values in ``type_``, with microseconds cut to milliseconds, downwards, as Spark does."""
    import pyarrow as pa
    from pyarrow import compute

    if values.type == type_:
        return values
    if pa.types.is_timestamp(type_):
        coarse = compute.floor_temporal(values, unit="millisecond") if type_.unit == "ms" else values
        return coarse.cast(type_)
    if pa.types.is_struct(type_):
        inner = [floored(values.field(k), field.type) for k, field in enumerate(type_)]
        return pa.StructArray.from_arrays(inner, fields=list(type_), mask=values.is_null())
    if pa.types.is_map(type_):
        keys, items = floored(values.keys, type_.key_type), floored(values.items, type_.item_type)
        return pa.MapArray.from_arrays(values.offsets, keys, items, type=type_, mask=_nulls(values))
    if pa.types.is_list(type_):
        items = floored(values.values, type_.value_type)
        return pa.ListArray.from_arrays(values.offsets, items, type=type_, mask=_nulls(values))
    return values.cast(type_)


def _nulls(values: pa.Array) -> pa.Array | None:
    return values.is_null() if values.null_count else None


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
        return _rebuilt(type_, lambda field: _with_id(field, next(fields)))
    types = iter(inner)
    return _rebuilt(type_, lambda field: field.with_type(_with_ids(field.type, next(types)))) if inner else type_
