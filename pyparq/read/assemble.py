"""From leaves and levels to columns: structs, lists and maps (README.md, Nested Encoding; the Dremel paper).

An entry (a pair of levels) of a leaf starts a slot of a position when it does not continue a deeper list
(``repetition <= rep``) and the position's parent item exists (``definition >= item``). ``rep`` and ``item`` are those
of the innermost list around the position, 0 at the top. Everything is done for all entries at once.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pyparq.columns import list_column, struct_column
from pyparq.errors import CorruptFileError
from pyparq.read.leaf import DecodedLeaf, Mask
from pyparq.schema.shape import Shape
from pyparq.schema.types import DataType, Field
from pyparq.table import Column

Leaves = Mapping[int, DecodedLeaf]
"""Decoded leaves by column ordinal, all at the same rows."""


def assemble(shape: Shape, field: Field, leaves: Leaves, num_rows: int) -> Column:
    """The column of a top-level position, reduced to what ``field`` keeps of it.

    Raises :class:`CorruptFileError` when leaves of one group disagree about its slots.
    """
    return _assemble(shape, field.type, leaves, 0, 0, num_rows)


def _assemble(shape: Shape, type_: DataType, leaves: Leaves, rep: int, item: int, slots: int) -> Column:
    if shape.kind == "leaf":
        column = leaves[shape.node.column].column
        _check_slots(shape, column.length, slots)
        return column
    guide = _guide(shape, leaves)
    starts = _slot_mask(guide, rep, item)
    _check_slots(shape, int(np.count_nonzero(starts)), slots)
    mask = _validity(shape, guide, starts)
    if shape.kind == "struct":
        children = [_assemble(child, f.type, leaves, rep, item, slots) for child, f in _kept(shape, type_, leaves)]
        return struct_column(_with_types(type_, children), children, slots, mask)
    return _list(shape, type_, leaves, guide, starts, mask)


def _list(shape: Shape, type_: DataType, leaves: Leaves, guide: DecodedLeaf, starts: Mask, mask: Mask | None) -> Column:
    """A list or map: an item starts wherever an entry reaches the item's definition level."""
    items = _slot_mask(guide, shape.item_rep, shape.item_def)
    before = np.cumsum(items, dtype=np.int64) - items
    count = int(np.count_nonzero(items))
    offsets = np.append(before[starts], count)
    rep, item = shape.item_rep, shape.item_def
    if shape.kind == "list":
        (element,) = type_.children
        child = _assemble(shape.children[0], element.type, leaves, rep, item, count)
        return list_column(_with_types(type_, [child]), offsets, child, mask)
    (entries,) = type_.children
    pairs = [
        _assemble(position, f.type, leaves, rep, item, count)
        for position, f in zip(shape.children, entries.type.children, strict=True)
    ]
    if pairs[0].null_count:
        # Arrow's maps have none, and libraries that are handed one may crash.
        nulls = pairs[0].null_count
        raise CorruptFileError(f"{nulls} null{'s' * (nulls > 1)} among the keys of a map", column=shape.node.dotted)
    struct = struct_column(_with_types(entries.type, pairs), pairs, count)
    return list_column(_with_types(type_, [struct]), offsets, struct, mask)


def _guide(shape: Shape, leaves: Leaves) -> DecodedLeaf:
    """Any leaf below a position: its levels tell what is there."""
    for leaf in shape.leaves():
        found = leaves.get(leaf.node.column)
        if found is not None:
            return found
    raise AssertionError("a position without a decoded leaf")


def _slot_mask(guide: DecodedLeaf, rep: int, item: int) -> Mask:
    levels, repeats = guide.def_levels, guide.rep_levels
    if repeats is None:
        entries = guide.column.length if levels is None else len(levels)
        return np.ones(entries, np.bool_)
    mask = repeats <= rep
    if item and levels is not None:
        mask &= levels >= item
    return mask


def _validity(shape: Shape, guide: DecodedLeaf, starts: Mask) -> Mask | None:
    if not shape.nullable or guide.def_levels is None:
        return None
    return np.asarray(guide.def_levels[starts] >= shape.def_level)


def _kept(shape: Shape, type_: DataType, leaves: Leaves) -> list[tuple[Shape, Field]]:
    """The struct's fields that the result keeps, in schema order."""
    kept = [c for c in shape.children if any(leaf.node.column in leaves for leaf in c.leaves())]
    return list(zip(kept, type_.children, strict=True))


def _with_types(type_: DataType, children: list[Column]) -> DataType:
    """``type_`` with the types that the children came out as (a large_string inside a list, say)."""
    fields = tuple(
        f if f.type == c.type else Field(f.name, c.type, f.nullable, f.metadata)
        for f, c in zip(type_.children, children, strict=True)
    )
    return DataType(type_.format, fields)


def _check_slots(shape: Shape, found: int, slots: int) -> None:
    if found != slots:
        raise CorruptFileError(f"the leaf has {found} values where its group has {slots}", column=shape.node.dotted)
