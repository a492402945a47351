"""Arrow columns of what the kernels make of Variants when they take them apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import data_of, fixed_column, holding, pack_mask, struct_child, used_items
from pyparq.arrow.layouts import normalize
from pyparq.arrow.schema.extensions import EXTENSION_NAME, LOGICAL_TYPE, UUID, VARIANT
from pyparq.errors import DataError, UnsupportedError
from pyparq.format.types import DataType, Field
from pyparq.kernels import variant_shred

PARTS = ("metadata", "value")
WHOLE = DataType("+s", tuple(Field(name, DataType("z"), False) for name in PARTS))
"""The type of a Variant that is not shredded."""

OBJECT, LIST = 100, 101
"""What the kernels know objects and arrays by, beside the numbers of the primitive types."""
BYTE_ARRAYS = (15, 16)
"""Binary and string."""

_PRIMITIVES = {"b": 1, "c": 3, "s": 4, "i": 5, "l": 6, "g": 7, "tdD": 11, "f": 14, "z": 15, "Z": 15, "u": 16, "U": 16}
"""Numbers of the primitive types in VariantEncoding.md, by Arrow's formats."""
_TIMES = {("tsu:", True): 12, ("tsu:", False): 13, ("ttu", False): 17, ("tsn:", True): 18, ("tsn:", False): 19}
"""The same by unit, and by whether they are in UTC."""


def is_whole(type_: DataType) -> bool:
    """Whether this is the type of a Variant that is not shredded."""
    return type_.format == "+s" and tuple(child.name for child in type_.children) == PARTS


def primitive_kind(type_: DataType, field: Field) -> int:
    """The number of the primitive type in VariantEncoding.md that is shredded to columns of this type.

    Raises :class:`UnsupportedError` where there is none.
    """
    form, logical = type_.format, field.metadata.get(LOGICAL_TYPE)
    if form in _PRIMITIVES:
        return _PRIMITIVES[form]
    if form == "w:16" and field.metadata.get(EXTENSION_NAME) == UUID:
        return 20
    if type_.kind == "decimal" and type_.decimal[0] <= 38:
        digits = type_.decimal[0]
        return 8 if digits <= 9 else 9 if digits <= 18 else 10
    found = _TIMES.get(
        (form[:4] if form.startswith("ts") else form, bool(type_.kind == "timestamp" and type_.timezone))
    )
    if found is None or logical is not None:
        raise UnsupportedError(f"no Variant is shredded to columns of the type {type_}")
    return found


Place = tuple[int, ...]
"""The number of a column, and those of the fields on the way down. The items of a list are its field 0, and so are the
entries of a map, whose values are field 1."""
Fields = tuple[Field, ...]
Mask = np.ndarray[Any, np.dtype[np.bool_]] | None
"""Which elements are there. ``None``: all."""


def all_variants(fields: Sequence[Field]) -> dict[tuple[str, ...], Place]:
    """Where the Variants are, by their paths in a file."""
    found: dict[tuple[str, ...], Place] = {}
    for k, field in enumerate(fields):
        _add_variants(field, (k,), (field.name,), found)
    return found


def _add_variants(field: Field, place: Place, path: tuple[str, ...], found: dict[tuple[str, ...], Place]) -> None:
    type_ = field.type
    if field.metadata.get(EXTENSION_NAME) == VARIANT and is_whole(type_):
        found[path] = place
    elif type_.format == "+s":
        for k, child in enumerate(type_.children):
            _add_variants(child, (*place, k), (*path, child.name), found)
    elif type_.format == "+m":
        _, values = type_.children[0].type.children
        _add_variants(values, (*place, 0, 1), (*path, "key_value", "value"), found)
    elif type_.is_nested and len(type_.children) == 1:
        _add_variants(type_.children[0], (*place, 0), (*path, "list", "element"), found)


def field_at(fields: Fields, place: Place) -> Field:
    field = fields[place[0]]
    return field if len(place) == 1 else field_at(field.type.children, place[1:])


def with_field(fields: Fields, place: Place, made: Field) -> Fields:
    """The fields with another one at ``place``."""
    k, field = place[0], fields[place[0]]
    if len(place) > 1:
        made = replace(field, type=replace(field.type, children=with_field(field.type.children, place[1:], made)))
    return (*fields[:k], made, *fields[k + 1 :])


def column_at(columns: Sequence[Column], place: Place) -> Column:
    """The values at ``place``, those in null structs and lists too."""
    column = columns[place[0]]
    for k in place[1:]:
        column = struct_child(column, k) if column.type.format == "+s" else used_items(column)[1]
    return column


def with_column(
    column: Column, type_: DataType, place: Place, make: Callable[[Column, Mask], Column], mask: Mask = None
) -> Column:
    """The column with what ``make`` gives for the Variants at ``place`` below it, as ``type_``.

    ``make`` is told which of them are not in a null struct or list: the others may be any bytes. The column must have
    its plain layout.
    """
    if not place:
        return make(column, mask)
    own, below = column.valid_mask(), type_.children[place[0]].type
    mask = own if mask is None else mask if own is None else own & mask
    if type_.format == "+s":
        children = [struct_child(column, k) for k in range(len(column.children))]
        children[place[0]] = with_column(children[place[0]], below, place[1:], make, mask)
        validity, nulls = pack_mask(own)
        return Column(holding(type_, children), column.length, validity, (), nulls, tuple(children))
    offsets, items = used_items(column)
    within = None if mask is None else np.repeat(mask, np.diff(offsets))
    items = with_column(items, below, place[1:], make, within)
    validity, nulls = pack_mask(own)
    buffers = () if type_.format.startswith("+w:") else (offsets - offsets[0],)
    return Column(holding(type_, [items]), column.length, validity, buffers, nulls, (items,))


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
        metadata.offsets(), data_of(metadata), value.offsets(), data_of(value), rows, value.length, terms
    )  # fmt: skip


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
