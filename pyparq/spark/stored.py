"""The storage of Spark's columns where its settings decide it: timestamps in milliseconds, field ids."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from pyparq.arrow.schema.extensions import FIELD_ID
from pyparq.arrow.schema.from_text import schema as parse_schema
from pyparq.datasets.common_schema import tree_of
from pyparq.spark.variants import conformed, rebuilt

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
