"""Converts between Arrow schemas and Parquet's list of SchemaElements (LogicalTypes.md).

In writing, every Arrow type has one Parquet form, which options may change. In reading, a leaf's annotation decides its
Arrow type. Information that Parquet cannot store may be in the ``ARROW:schema`` metadata: see
:mod:`pyparq.arrow.schema.hints`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pyparq.arrow.schema.extensions import (
    FIELD_ID,
    LOGICAL_TYPE,
    annotated,
    is_file_field,
    is_variant_field,
    metadata_of,
    variant_metadata,
)
from pyparq.errors import ParquetError, SchemaError, UnsupportedError, located
from pyparq.format import ttypes as tt
from pyparq.format.annotation import decimal_capacity, restate
from pyparq.format.schema_node import Shape, shapes
from pyparq.format.schema_tree import SchemaTree
from pyparq.format.types import OPTIONAL, REPEATED, REQUIRED, DataType, Field, LeafType, Physical, Schema, arrow_type

_SIMPLE = {
    "b": LeafType(Physical.BOOLEAN, "bool"),
    "c": LeafType(Physical.INT32, "int", bits=8),
    "C": LeafType(Physical.INT32, "uint", bits=8),
    "s": LeafType(Physical.INT32, "int", bits=16),
    "S": LeafType(Physical.INT32, "uint", bits=16),
    "i": LeafType(Physical.INT32, "int", bits=32),
    "I": LeafType(Physical.INT32, "uint", bits=32),
    "l": LeafType(Physical.INT64, "int", bits=64),
    "L": LeafType(Physical.INT64, "uint", bits=64),
    "e": LeafType(Physical.FIXED_LEN_BYTE_ARRAY, "float16", 2),
    "f": LeafType(Physical.FLOAT, "float"),
    "g": LeafType(Physical.DOUBLE, "double"),
    "n": LeafType(Physical.INT32, "null"),
    "tdD": LeafType(Physical.INT32, "date"),
    "tdm": LeafType(Physical.INT32, "date"),
    # Arrow's times are local times of day: not adjusted to UTC. Parquet has no seconds: stored as ms.
    "tts": LeafType(Physical.INT32, "time", unit="ms"),
    "ttm": LeafType(Physical.INT32, "time", unit="ms"),
    "ttu": LeafType(Physical.INT64, "time", unit="us"),
    "ttn": LeafType(Physical.INT64, "time", unit="ns"),
    **dict.fromkeys("uU", LeafType(Physical.BYTE_ARRAY, "string")),
    **dict.fromkeys("zZ", LeafType(Physical.BYTE_ARRAY, "binary")),
    # Parquet has no durations. ARROW:schema tells that these integers are durations.
    **{f"tD{unit}": LeafType(Physical.INT64, "int", bits=64) for unit in "smun"},
}
_ADVICE = {"union": ("union", "convert it to a struct with one nullable field per case")}
"""By kind or format: what the type is called, and what to do."""


def leaf_of(field: Field) -> LeafType:
    """The Parquet leaf type in which a field of a non-nested Arrow type is written.

    Raises :class:`UnsupportedError` (naming the column and what to do) for intervals, unions and other types that
    Parquet has no form for, and :class:`SchemaError` for decimals it cannot annotate.
    """
    type_ = field.type if field.type.dictionary is None else field.type.dictionary
    found = _SIMPLE.get(type_.format)
    if found is None:
        found = _plain_leaf(field, type_)
    return annotated(field, found) if field.metadata else found


def _plain_leaf(field: Field, type_: DataType) -> LeafType:
    kind = type_.kind
    if kind in ("string", "binary"):
        return LeafType(Physical.BYTE_ARRAY, kind)
    if kind in ("fixed", "int128"):
        return _fixed(field, type_)
    if kind == "timestamp":
        unit = "ms" if type_.unit == "s" else type_.unit
        return LeafType(Physical.INT64, "timestamp", unit=unit, utc=bool(type_.timezone))
    if kind == "decimal":
        return _decimal(field, type_)
    raise _unsupported(field, type_)


def _fixed(field: Field, type_: DataType) -> LeafType:
    width = type_.byte_width
    if width < 1:
        raise SchemaError(
            f"{type_} has values of 0 bytes, but Parquet needs at least 1: cast the column to binary", column=field.name
        )
    return LeafType(Physical.FIXED_LEN_BYTE_ARRAY, "fixed", width)


def _decimal(field: Field, type_: DataType) -> LeafType:
    precision, scale, _ = type_.decimal
    if not 0 <= scale <= precision or not 1 <= precision <= 76:
        raise SchemaError(
            f"Parquet cannot store {type_}: cast the column to a decimal with 0 <= scale <= precision <= 76",
            column=field.name,
        )
    physical, length = decimal_storage(precision)
    return LeafType(physical, "decimal", length, precision=precision, scale=scale)


def decimal_storage(precision: int) -> tuple[Physical, int]:
    """Smallest storage of a decimal: INT32, INT64 or a FIXED_LEN_BYTE_ARRAY with its length in bytes."""
    for physical in (Physical.INT32, Physical.INT64):
        if precision <= decimal_capacity(physical, 0):
            return physical, 0
    return Physical.FIXED_LEN_BYTE_ARRAY, fixed_decimal_length(precision)


def fixed_decimal_length(precision: int) -> int:
    """Fewest bytes of a FIXED_LEN_BYTE_ARRAY that hold ``precision`` digits (1 to 76)."""
    return next(n for n in range(1, 34) if decimal_capacity(Physical.FIXED_LEN_BYTE_ARRAY, n) >= precision)


def _unsupported(field: Field, type_: DataType) -> UnsupportedError:
    unknown = "Arrow type", "cast it to a number, a string, a list or a struct"
    what, advice = _ADVICE.get(type_.kind) or _ADVICE.get(type_.format) or unknown
    return UnsupportedError(f"Parquet cannot store the {what} {type_.format!r}: {advice}", column=field.name)


def check_supported(field: Field) -> None:
    """Raise what :func:`leaf_of` raises for a type, however deep, that Parquet has no form for."""
    type_ = field.type if field.type.dictionary is None else field.type.dictionary
    if type_.format in _SIMPLE and not field.metadata:
        return
    if type_.format == "+s" or type_.is_map or type_.is_list:
        for child in type_.children:
            try:
                check_supported(child)
            except ParquetError as error:
                error.column = f"{field.name}.{error.column}" if error.column else field.name
                raise
    else:
        leaf_of(field)


# ---- writing: Arrow to SchemaElements ------------------------------------------------------------------------------


def elements_from_schema(schema: Schema, name: str = "schema") -> list[Any]:
    """The SchemaElements of a file, the root (called ``name``) first, in depth-first order.

    Lists and maps get the standard three-level structures (``list.element``, ``key_value.key/value``); a field's
    ``PARQUET:field_id`` metadata becomes its ``field_id``. Columns, and fields of a struct, may share a name. Raises
    what :func:`leaf_of` raises, and :class:`SchemaError` when a null column is required.
    """
    elements: list[Any] = [tt.SchemaElement(name=name, num_children=len(schema))]
    for field in schema:
        with located(column=field.name):
            _add(field, elements)
    return elements


def _add(field: Field, elements: list[Any], name: str | None = None) -> None:
    """Append the elements of one field, under another ``name`` when given."""
    type_ = field.type
    element = tt.SchemaElement(
        name=field.name if name is None else name, repetition_type=OPTIONAL if field.nullable else REQUIRED
    )
    element.field_id = _field_id(field.metadata.get(FIELD_ID, b""))
    elements.append(element)
    if type_.is_list:
        element.logicalType, element.converted_type = tt.LogicalType(LIST=tt.ListType()), tt.ConvertedType.LIST
        element.num_children = 1
        elements.append(tt.SchemaElement(name="list", repetition_type=REPEATED, num_children=1))
        _add(_child(type_, 0), elements, "element")
    elif type_.is_map:
        element.logicalType, element.converted_type = tt.LogicalType(MAP=tt.MapType()), tt.ConvertedType.MAP
        element.num_children = 1
        elements.append(tt.SchemaElement(name="key_value", repetition_type=REPEATED, num_children=2))
        entries = _child(type_, 0).type
        key, value = _child(entries, 0), _child(entries, 1)
        _add(Field(key.name, key.type, nullable=False, metadata=key.metadata), elements, "key")
        _add(value, elements, "value")
    elif type_.format == "+s":
        if not type_.children:
            raise UnsupportedError("Parquet cannot store a struct without fields: leave the column out or add a field")
        if is_variant_field(field):
            element.logicalType = tt.LogicalType(VARIANT=tt.VariantType(specification_version=1))
        if is_file_field(field):
            element.logicalType = tt.LogicalType(FILE=tt.FileType())
        element.num_children = len(type_.children)
        for child in type_.children:
            _add(child, elements)
    else:
        _add_leaf(field, element)


def _add_leaf(field: Field, element: Any) -> None:
    leaf = leaf_of(field)
    if leaf.kind == "null" and not field.nullable:
        raise SchemaError(
            "a column of type null cannot be required, because all its values are null", column=field.name
        )
    restate(element, leaf)


def _child(type_: DataType, index: int) -> Field:
    try:
        return type_.children[index]
    except IndexError:
        raise SchemaError(f"an Arrow {type_.format} type with {len(type_.children)} children") from None


def _field_id(stored: bytes) -> int | None:
    """``None`` for what is no number of 32 bits. That is metadata of the field and no more, as in pyarrow."""
    try:
        number = int(stored)
    except ValueError:
        return None
    return number if -(2**31) <= number < 2**31 else None


# ---- reading: the tree to Arrow ------------------------------------------------------------------------------------


def schema_from_tree(
    tree: SchemaTree, metadata: Mapping[bytes, bytes] | None = None, columns: Collection[int] | None = None
) -> Schema:
    """The schema that the file's own schema gives its tables, without the hints of :mod:`pyparq.arrow.schema.hints`.

    ``columns`` keeps only the leaves with these ordinals (and the groups above them). Legacy LIST structures
    read as lists by the backward-compatibility rules of LogicalTypes.md; a bare repeated field is a required list
    of required items.
    """
    fields = (field_of(shape, columns, metadata) for shape in shapes(tree.root))
    return Schema(tuple(field for field in fields if field is not None), metadata or {})


def field_of(
    shape: Shape, columns: Collection[int] | None = None, key_values: Mapping[bytes, bytes] | None = None
) -> Field | None:
    """The Arrow field of a shape, reduced to the leaves in ``columns``; ``None`` when none is left.

    A map of which only the key or the value is wanted stays a map: its other half is kept too. ``key_values`` are the
    file's: what a leaf refers to (a CRS) lies there.
    """
    if shape.kind == "leaf":
        if columns is not None and shape.node.column not in columns:
            return None
        leaf = shape.node.type
        metadata = {**metadata_of(leaf, key_values), **_node_metadata(shape)}
        return Field(shape.name, arrow_type(leaf), shape.nullable, metadata)
    if shape.kind == "map" and columns is not None and any(s.node.column in columns for s in shape.leaves()):
        columns = None
    found = [field_of(child, columns, key_values) for child in shape.children]
    children = tuple(field for field in found if field is not None)
    if not children and (columns is not None or shape.kind != "struct"):
        return None
    metadata = _node_metadata(shape)
    if shape.node.is_variant and shape.kind == "struct":
        metadata = {**variant_metadata(children), **metadata}
    if shape.node.is_file and shape.kind == "struct":
        metadata = {LOGICAL_TYPE: b"FILE", **metadata}
    return Field(shape.name, _nested_type(shape.kind, children), shape.nullable, metadata)


def _nested_type(kind: str, children: tuple[Field, ...]) -> DataType:
    if kind == "struct":
        return DataType("+s", children)
    if kind == "list":
        return DataType("+l", children)
    key, value = children
    entries = DataType("+s", (Field(key.name, key.type, False, key.metadata), value))
    return DataType("+m", (Field("entries", entries, nullable=False),))


def _node_metadata(shape: Shape) -> dict[bytes, bytes]:
    # A list's own node carries the id; where a repeated node stands for list and element, the list has it.
    number = shape.node.element.field_id
    return {} if number is None else {FIELD_ID: str(number).encode()}
