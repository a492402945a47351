"""Whole Variants taken apart to the columns that are stored (VariantShredding.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import fixed_column, pack_mask, struct_child
from pyparq.arrow.plain_layouts import normalize
from pyparq.arrow.record_batch import RecordBatch
from pyparq.errors import DataError
from pyparq.format.types import DataType
from pyparq.kernels import KernelError, variant_shred
from pyparq.write.plan.shredding import Shredded


def shredded_batch(batch: RecordBatch, columns: Mapping[int, Shredded]) -> RecordBatch:
    """The batch as it is stored.

    Raises :class:`DataError` for bytes that are no Variant.
    """
    made = list(batch.columns)
    for number, shredded in columns.items():
        try:
            made[number] = shredded_column(batch.columns[number], shredded)
        except KernelError as error:
            raise DataError(f"a Variant is invalid: {error}", column=shredded.field.name) from error
    return RecordBatch(made, batch.num_rows)


def shredded_column(column: Column, shredded: Shredded) -> Column:
    """The struct of ``metadata``, ``value`` and ``typed_value``. Raises :class:`KernelError`."""
    metadata, value = (normalize(struct_child(column, k), field.name) for k, field in enumerate(column.type.children))
    mask = column.valid_mask()
    parts = variant_shred(
        metadata.offsets(), _bytes(metadata), value.offsets(), _bytes(value),
        None if mask is None else mask.view(np.uint8), column.length, shredded.terms,
    )  # fmt: skip
    type_ = shredded.field.type
    names = Column(metadata.type, metadata.length, None, metadata.buffers, 0, offset=metadata.offset)
    validity, nulls = pack_mask(mask)
    group = _group(DataType("+s", type_.children[1:]), parts)
    return Column(type_, column.length, validity, (), nulls, (names, *group.children))


def _bytes(column: Column) -> Any:
    return column.buffers[1].view(np.uint8)


def _group(type_: DataType, parts: tuple[Any, ...]) -> Column:
    """The struct of ``value`` and ``typed_value``, which is never null itself."""
    offsets, data, mask, typed = parts
    children = [_byte_arrays(type_.children[0].type, offsets, data, mask)]
    if typed is not None:
        children.append(_typed(type_.children[1].type, *typed))
    return Column(type_, len(mask), None, (), 0, tuple(children))


def _byte_arrays(type_: DataType, offsets: Any, data: Any, mask: Any) -> Column:
    validity, nulls = pack_mask(mask.view(np.bool_))
    if offsets[-1] < 1 << 31:
        offsets = offsets.astype(np.int32)
    else:
        type_ = DataType(type_.format.upper())
    return Column(type_, len(mask), validity, (offsets, data), nulls)


def _typed(type_: DataType, mask: Any, *parts: Any) -> Column:
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
        return _byte_arrays(type_, *parts, mask)
    (values,) = parts
    if type_.format == "b":
        return fixed_column(type_, values.view(np.bool_), mask.view(np.bool_))
    return Column(type_, len(mask), validity, (_as_numbers(values, type_),), nulls)


def _as_numbers(values: Any, type_: DataType) -> Any:
    return values if type_.byte_width == 16 else values.view(type_.numpy_dtype)
