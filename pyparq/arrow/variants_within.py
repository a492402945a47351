"""Whole Variants in a schema: columns, and fields and items of columns at any depth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import holding, list_items, pack_mask, slice_column, struct_child
from pyparq.arrow.schema.extensions import EXTENSION_NAME, VARIANT
from pyparq.arrow.variant_types import is_whole
from pyparq.format.types import DataType, Field

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
        column = struct_child(column, k) if column.type.format == "+s" else _items(column)[1]
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
    offsets, items = _items(column)
    within = None if mask is None else np.repeat(mask, np.diff(offsets))
    items = with_column(items, below, place[1:], make, within)
    validity, nulls = pack_mask(own)
    buffers = () if type_.format.startswith("+w:") else (offsets - offsets[0],)
    return Column(holding(type_, [items]), column.length, validity, buffers, nulls, (items,))


def _items(column: Column) -> tuple[Any, Column]:
    """The offsets of a list or map, and the items from the first one to the last."""
    offsets, items = list_items(column)
    return offsets, slice_column(items, int(offsets[0]), int(offsets[-1]))
