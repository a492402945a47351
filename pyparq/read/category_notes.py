"""Checks polars' notes on categories against the data: see :mod:`pyparq.arrow.schema.polars_categories`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import list_items
from pyparq.arrow.schema.polars_categories import CATEGORIES, ENUM_VALUES, enum_values, most_categories
from pyparq.format.types import Field


def with_true_notes(field: Field, columns: Sequence[Column]) -> Field:
    """The field without the notes that the data in ``columns`` (the parts of the column) contradict."""
    if field.type.dictionary is not None:
        wrong = [key for key in (ENUM_VALUES, CATEGORIES) if key in field.metadata and not _holds(field, key, columns)]
        return replace(field, metadata={k: v for k, v in field.metadata.items() if k not in wrong}) if wrong else field
    if not field.type.children or field.type.format == "+r":
        return field
    below = [column.children if field.type.format == "+s" else (list_items(column)[1],) for column in columns]
    checked = tuple(
        with_true_notes(child, [parts[k] for parts in below]) for k, child in enumerate(field.type.children)
    )
    if all(a is b for a, b in zip(checked, field.type.children, strict=True)):
        return field
    return replace(field, type=replace(field.type, children=checked))


def _holds(field: Field, key: bytes, columns: Sequence[Column]) -> bool:
    entries = [column.dictionary for column in columns if column.dictionary is not None]
    if key == CATEGORIES:
        return all(len(column) <= most_categories(field.metadata[key]) for column in entries)
    known = enum_values(field.metadata[key])
    return known is not None and all(_texts(column) <= known for column in entries)


def _texts(column: Column) -> set[bytes]:
    offsets = column.offsets().tolist()
    raw = column.buffers[1].tobytes()
    return {raw[a:b] for a, b in pairwise(offsets)}
