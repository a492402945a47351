"""Arrow columns of what the kernels make of Variants when they take them apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import fixed_column, pack_mask, struct_child
from pyparq.arrow.plain_layouts import normalize
from pyparq.errors import DataError
from pyparq.format.types import DataType, Field
from pyparq.kernels import variant_shred

Terms = tuple[Any, ...] | None
"""What Variants are shredded to, as the kernels take it. ``None``: no column ``typed_value``."""


def shredded_column(column: Column, field: Field, terms: Terms, present: Any = None) -> Column:
    """The struct of ``metadata``, ``value`` and ``typed_value`` (the type of ``field``) for a column of whole Variants.
    ``present``: which of them are in structs and lists that are there; ``None``: all.

    Raises :class:`KernelError`, which names the row, for bytes that are no Variant.
    """
    metadata, value = (normalize(struct_child(column, k), part.name) for k, part in enumerate(column.type.children))
    mask = column.valid_mask()
    mask = mask if present is None else present if mask is None else mask & present
    parts = shredded(metadata, value, mask, terms)
    names = Column(metadata.type, metadata.length, None, metadata.buffers, 0, offset=metadata.offset)
    validity, nulls = pack_mask(mask)
    group = _group(DataType("+s", field.type.children[1:]), parts)
    return Column(field.type, column.length, validity, (), nulls, (names, *group.children))


def shredded(metadata: Column, value: Column, mask: Any, terms: Terms) -> tuple[Any, ...]:
    """What the kernel makes of columns of binary: offsets, data and mask of ``value``, and the parts of
    ``typed_value``. ``mask``: which rows are there; ``None``: all."""
    rows = None if mask is None else mask.view(np.uint8)
    return variant_shred(
        metadata.offsets(), _bytes(metadata), value.offsets(), _bytes(value), rows, value.length, terms
    )  # fmt: skip


def _bytes(column: Column) -> Any:
    return column.buffers[1].view(np.uint8)


def _group(type_: DataType, parts: tuple[Any, ...]) -> Column:
    """The struct of ``value`` and ``typed_value``, which is never null itself."""
    offsets, data, mask, typed = parts
    children = [byte_arrays(type_.children[0].type, offsets, data, mask)]
    if typed is not None:
        children.append(typed_column(type_.children[1].type, *typed))
    return Column(type_, len(mask), None, (), 0, tuple(children))


def byte_arrays(type_: DataType, offsets: Any, data: Any, mask: Any) -> Column:
    """A column of strings or binary. ``mask``: one byte per row."""
    validity, nulls = pack_mask(mask.view(np.bool_))
    if offsets[-1] < 1 << 31:
        offsets = offsets.astype(np.int32)
    else:
        type_ = DataType(type_.format.upper())
    return Column(type_, len(mask), validity, (offsets, data), nulls)


def typed_column(type_: DataType, mask: Any, *parts: Any) -> Column:
    """The column ``typed_value`` of the parts that the kernel gives."""
    validity, nulls = pack_mask(mask.view(np.bool_))
    if type_.format == "+s":
        groups = tuple(_group(field.type, part) for field, part in zip(type_.children, parts[0], strict=True))
        return Column(type_, len(mask), validity, (), nulls, groups)
    if type_.format == "+l":
        offsets, elements = parts
        items = _group(type_.children[0].type, elements)
        if offsets[-1] >= 1 << 31:
            raise DataError("the arrays of one batch of Variants have more than 2^31 elements. Write smaller batches")
        return Column(type_, len(mask), validity, (offsets.astype(np.int32),), nulls, (items,))
    if len(parts) == 2:
        return byte_arrays(type_, *parts, mask)
    (values,) = parts
    if type_.format == "b":
        return fixed_column(type_, values.view(np.bool_), mask.view(np.bool_))
    return Column(type_, len(mask), validity, (_as_numbers(values, type_),), nulls)


def _as_numbers(values: Any, type_: DataType) -> Any:
    return values if type_.byte_width == 16 else values.view(type_.numpy_dtype)
