"""Which columns of files Spark's own reader reads in a given type of Spark, exactly as pyparq does."""

from __future__ import annotations

from typing import Any

from pyparq.format.nesting import is_list, is_map
from pyparq.format.schema_node import Node
from pyparq.format.types import REPEATED, LeafType, Physical


def reads_as(node: Node, type_: Any) -> bool:
    """Whether Spark's reader makes the values of ``type_`` (a ``DataType``) of a column, which pyparq makes too.

    Only what both are known to read alike is true. Files in which lists and maps have an old structure, or whose types
    have to be converted, are pyparq's.
    """
    from pyspark.sql.types import ArrayType, MapType, StructType

    if node.repetition == REPEATED:
        return False
    if node.is_leaf:
        return type_ in _types_of(node.type)
    inner = node.children[0] if len(node.children) == 1 else None
    if is_list(node):
        return (
            isinstance(type_, ArrayType) and inner is not None and inner.repetition == REPEATED
            and inner.name == "list" and len(inner.children) == 1
            and reads_as(inner.children[0], type_.elementType)
        )  # fmt: skip
    if is_map(node):
        return (
            isinstance(type_, MapType) and inner is not None and inner.repetition == REPEATED
            and inner.name == "key_value" and len(inner.children) == 2
            and reads_as(inner.children[0], type_.keyType) and reads_as(inner.children[1], type_.valueType)
        )  # fmt: skip
    names = [child.name for child in node.children]
    return (
        isinstance(type_, StructType) and not node.is_variant and not node.is_file and type_.names == names
        and len({name.lower() for name in names}) == len(names)
        and all(reads_as(child, field.dataType) for child, field in zip(node.children, type_.fields, strict=True))
    )  # fmt: skip


def _types_of(leaf: LeafType) -> tuple[Any, ...]:
    """The type of Spark in which its reader gives the values of a leaf; none where it reads them otherwise."""
    from pyspark.sql import types as t

    if leaf.hybrid or leaf.nulls_beyond:
        return ()
    physical, kind = leaf.physical, leaf.kind
    plain = {
        (Physical.BOOLEAN, "bool"): t.BooleanType(),
        (Physical.FLOAT, "float"): t.FloatType(),
        (Physical.DOUBLE, "double"): t.DoubleType(),
        (Physical.BYTE_ARRAY, "string"): t.StringType(),
        (Physical.BYTE_ARRAY, "binary"): t.BinaryType(),
        (Physical.INT32, "date"): t.DateType(),
        (Physical.INT96, "int96"): t.TimestampType(),
    }.get((physical, kind))
    if plain is not None:
        return (plain,)
    if kind == "int":
        sizes = {8: t.ByteType(), 16: t.ShortType(), 32: t.IntegerType(), 64: t.LongType()}
        return (sizes[leaf.bits],) if (physical == Physical.INT64) == (leaf.bits == 64) else ()
    if kind == "timestamp" and leaf.unit in ("us", "ms"):
        return (t.TimestampType() if leaf.utc else t.TimestampNTZType(),)
    if kind == "decimal" and leaf.precision <= _DIGITS.get(physical, 38) and leaf.scale >= 0:
        return (t.DecimalType(leaf.precision, leaf.scale),)
    return ()


_DIGITS = {Physical.INT32: 9, Physical.INT64: 18}
