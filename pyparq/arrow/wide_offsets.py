"""One width of offsets for the columns of several batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import is_
from typing import Protocol, TypeVar

import numpy as np

from pyparq.arrow.column import Column
from pyparq.format.types import DataType, Schema


class _HasColumns(Protocol):
    @property
    def columns(self) -> list[Column]: ...


B = TypeVar("B", bound=_HasColumns)


_LARGE = {"u": "U", "z": "Z", "+l": "+L", "+vl": "+vL"}


def widen_columns(schema: Schema, batches: list[B]) -> tuple[Schema, list[B]]:
    """Make columns of one type over all batches, at any depth: where one has int64 offsets, all get them."""
    types = [field.type for field in schema.fields]
    if all(all(map(is_, [column.type for column in batch.columns], types)) for batch in batches):
        return schema, batches  # most often, and quicker than to compare
    fields = list(schema.fields)
    for i, field in enumerate(fields):
        types = [b.columns[i].type for b in batches]
        if all(type_ == field.type for type_ in types):
            continue
        widest = _widest([field.type, *types])
        fields[i] = replace(field, type=widest)
        for batch in batches:
            batch.columns[i] = _widened(batch.columns[i], widest)
    return replace(schema, fields=tuple(fields)), batches


def _widest(types: Sequence[DataType]) -> DataType:
    """The first type, with int64 offsets wherever any of the others has them."""
    first = types[0]
    large = _LARGE.get(first.format)
    form = large if large is not None and any(t.format == large for t in types) else first.format
    same = [t for t in types if len(t.children) == len(first.children)]
    children = tuple(replace(f, type=_widest([t.children[k].type for t in same])) for k, f in enumerate(first.children))
    return replace(first, format=form, children=children)


def _widened(column: Column, type_: DataType) -> Column:
    """The column with the offsets of ``type_``; its own type where that differs in more than offsets."""
    have = column.type
    if have == type_ or len(have.children) != len(type_.children):
        return column
    buffers, form = column.buffers, have.format
    if _LARGE.get(form) == type_.format:
        offsets = 2 if form == "+vl" else 1  # a list view's lengths are as wide as its offsets
        wide = (buffer.view(np.int32).astype(np.int64) for buffer in buffers[:offsets])
        buffers, form = (*wide, *buffers[offsets:]), type_.format
    children = tuple(_widened(c, f.type) for c, f in zip(column.children, type_.children, strict=True))
    fields = tuple(replace(f, type=c.type) for f, c in zip(have.children, children, strict=True))
    made = replace(have, format=form, children=fields)
    return Column(
        made, column.length, column.validity, buffers, column.null_count, children, column.dictionary, column.offset
    )
