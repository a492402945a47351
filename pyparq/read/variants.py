"""Shredded Variants, put together again (VariantShredding.md).

A file may store parts of a Variant in columns of their own, as ``typed_value``. A result has the Variant: a struct of
``metadata`` and ``value``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pyparq.arrow.column import Column, bytes_held
from pyparq.arrow.column_operations import data_of, list_items, pack_mask, struct_child
from pyparq.arrow.layouts import normalize
from pyparq.arrow.schema.extensions import EXTENSION_METADATA, EXTENSION_NAME, LOGICAL_TYPE, VARIANT
from pyparq.arrow.variant_columns import BYTE_ARRAYS, LIST, OBJECT, PARTS, WHOLE, is_whole, primitive_kind
from pyparq.errors import CorruptFileError, UnsupportedError
from pyparq.format.schema_node import Shape
from pyparq.format.types import DataType, Field
from pyparq.kernels import KernelError, variant_unshred

_PER_VALUE = 24
"""Bytes that a value, its number and its offset take at most, beside text and binary."""


# ---- schemas


def with_whole_variants(field: Field, shape: Shape) -> Field:
    """The field with its shredded Variants, at any depth, as whole ones. A Variant of which only some leaves are read
    stays the struct of these."""
    type_ = field.type
    if shape.kind == "leaf":
        return field
    if shape.kind == "struct" and shape.node.is_variant:
        return _whole(field) if _is_complete(type_, shape) else field
    if shape.kind == "map":
        (entries,) = type_.children
        pairs = _all_whole(entries.type, shape)
        inner = type_ if pairs is entries.type else replace(type_, children=(replace(entries, type=pairs),))
    else:
        inner = _all_whole(type_, shape)
    return field if inner is type_ else replace(field, type=inner)


def _all_whole(type_: DataType, shape: Shape) -> DataType:
    """A struct's fields are found by name, a list's element or a map's key and value by position."""
    if shape.kind == "struct":
        named = {child.name: child for child in shape.children}
        below = [(field, named.get(field.name)) for field in type_.children]
    else:
        below = list(zip(type_.children, shape.children, strict=False))
    made = tuple(field if child is None else with_whole_variants(field, child) for field, child in below)
    return type_ if all(a is b for a, b in zip(made, type_.children, strict=True)) else replace(type_, children=made)


def _is_complete(type_: DataType, shape: Shape) -> bool:
    """Whether this is all of a Variant that is shredded, or that has its two columns in the other order."""
    names = {child.name for child in type_.children}
    if "metadata" not in names or not names & {"value", "typed_value"} or not names <= {*PARTS, "typed_value"}:
        return False
    if "typed_value" not in names and not _is_optional(type_, "value") and is_whole(type_):
        return False  # it is whole already
    return _leaves(type_) == sum(1 for _ in shape.leaves())


def _is_optional(type_: DataType, name: str) -> bool:
    return next(child for child in type_.children if child.name == name).nullable


def _leaves(type_: DataType) -> int:
    return sum(_leaves(child.type) for child in type_.children) if type_.children else 1


def _whole(field: Field) -> Field:
    kept = {key: value for key, value in field.metadata.items() if key != LOGICAL_TYPE}
    return replace(field, type=WHOLE, metadata={**kept, EXTENSION_NAME: VARIANT, EXTENSION_METADATA: b""})


# ---- values


def is_shredded(type_: DataType, wanted: DataType) -> bool:
    """Whether a column of this type is a Variant that ``wanted`` has whole, and that is stored in another form."""
    if type_.format != "+s" or not is_whole(wanted):
        return False
    names = [child.name for child in type_.children]
    if "metadata" not in names or len(names) > 3:
        return False
    return names != list(PARTS) or _is_optional(type_, "value") > _is_optional(wanted, "value")


def bytes_of_whole(column: Column) -> int:
    """An upper bound for the bytes of the Variants that :func:`unshredded` makes of the column."""
    return bytes_held(column) + _PER_VALUE * _values_in(column)


def _values_in(column: Column) -> int:
    return column.length + sum(_values_in(child) for child in column.children)


def unshredded(column: Column, type_: DataType) -> Column:
    """The Variants of a shredded column. ``type_``: :data:`WHOLE`.

    Raises :class:`CorruptFileError` for values that are no Variant, or that contradict the shredded columns, and
    :class:`UnsupportedError` for columns of types that no Variant is shredded to.
    """
    parts = _parts(column)
    metadata = normalize(struct_child(column, parts["metadata"]), "metadata")
    mask = column.valid_mask()
    if "typed_value" not in parts and "value" in parts and not _is_optional(column.type, "value"):
        value = normalize(struct_child(column, parts["value"]), "value")
        return _joined(column, type_, metadata, value)
    try:
        offsets, data = variant_unshred(
            (metadata.offsets(), data_of(metadata)), _tree(column, parts), _bytes_of(mask), column.length
        )
    except KernelError as error:
        raise CorruptFileError(f"a shredded Variant is invalid: {error}") from error
    if offsets[-1] < 1 << 31:
        value = Column(DataType("z"), column.length, None, (offsets.astype(np.int32), data), 0)
    else:
        value = Column(DataType("Z"), column.length, None, (offsets, data), 0)
    return _joined(column, type_, metadata, value)


def _joined(column: Column, type_: DataType, *parts: Column) -> Column:
    """The struct of metadata and value, with the nulls of ``column``."""
    without_nulls = tuple(Column(c.type, c.length, None, c.buffers, 0, offset=c.offset) for c in parts)
    fields = tuple(replace(f, type=c.type) for f, c in zip(type_.children, without_nulls, strict=True))
    validity, nulls = pack_mask(column.valid_mask())
    return Column(replace(type_, children=fields), column.length, validity, (), nulls, without_nulls)


def _parts(column: Column) -> dict[str, int]:
    return {child.name: k for k, child in enumerate(column.type.children)}


def _bytes_of(mask: Any) -> Any:
    return None if mask is None else mask.view(np.uint8)


def _tree(column: Column, parts: dict[str, int]) -> tuple[Any, Any]:
    """What the kernel takes: the columns ``value`` and ``typed_value`` of a group."""
    value = typed = None
    if "value" in parts:
        stored = normalize(struct_child(column, parts["value"]), "value")
        if stored.type.format not in ("z", "Z"):
            raise UnsupportedError(f"the value of a Variant must be binary, not {stored.type}")
        value = stored.offsets(), data_of(stored), _bytes_of(stored.valid_mask())
    if "typed_value" in parts:
        place = parts["typed_value"]
        typed = _typed(normalize(struct_child(column, place), "typed_value"), column.type.children[place])
    return value, typed


def _typed(column: Column, field: Field) -> tuple[Any, ...]:
    mask, form = _bytes_of(column.valid_mask()), column.type.format
    if form == "+s":
        inner = [struct_child(column, k) for k in range(len(column.children))]
        names = tuple(child.name for child in column.type.children)
        return OBJECT, 0, mask, names, tuple(_group(child) for child in inner)
    if form in ("+l", "+L"):
        offsets, items = list_items(column)
        return LIST, 0, mask, offsets, _group(items)
    kind = primitive_kind(column.type, field)
    if kind in BYTE_ARRAYS:
        return kind, 0, mask, column.offsets(), data_of(column)
    scale = column.type.decimal[1] if column.type.kind == "decimal" else 0
    values = column.values()
    return kind, scale, mask, np.ascontiguousarray(values).reshape(-1).view(np.uint8)


def _group(column: Column) -> tuple[Any, Any]:
    """A shredded field or element."""
    if column.type.format != "+s":
        raise UnsupportedError(f"a shredded field of a Variant must be a group, not {column.type}")
    parts = _parts(column)
    if not parts or not parts.keys() <= {"value", "typed_value"}:
        raise UnsupportedError(f"a shredded field of a Variant has the columns {', '.join(parts) or 'none'}")
    return _tree(column, parts)
