"""From leaves and levels to columns: structs, lists and maps (README.md, Nested Encoding; the Dremel paper).

An entry (a pair of levels) of a leaf starts a slot of a position when it does not continue a deeper list
(``repetition <= rep``) and the position's parent item exists (``definition >= item``). ``rep`` and ``item`` are those
of the innermost list around the position, 0 at the top.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import list_column, struct_column
from pyparq.errors import CorruptFileError
from pyparq.format.nesting import Shape
from pyparq.format.types import DataType, Field
from pyparq.kernels import KernelError, levels_agree, list_slots, slot_validity
from pyparq.read.decode.decoded_leaf import DecodedLeaf, Mask

Leaves = Mapping[int, DecodedLeaf]
"""Decoded leaves by column ordinal, all at the same rows."""


def assemble(shape: Shape, field: Field, leaves: Leaves, num_rows: int) -> Column:
    """The column of a top-level position, reduced to the fields that ``field`` keeps.

    Raises :class:`CorruptFileError` when leaves of one group disagree about its slots.
    """
    return _assemble(shape, field.type, leaves, 0, 0, num_rows)


def _assemble(shape: Shape, type_: DataType, leaves: Leaves, rep: int, item: int, slots: int) -> Column:
    if shape.kind == "leaf":
        column = leaves[shape.node.column].column
        _check_slots(shape, column.length, slots)
        return column
    guide = _guide(shape, leaves)
    if shape.kind == "struct":
        mask = _validity(shape, guide, rep, item, slots)
        kept = _kept(shape, type_, leaves)
        _check_agreement([child for child, _ in kept], leaves, rep, shape.def_level)
        children = [_assemble(child, f.type, leaves, rep, item, slots) for child, f in kept]
        return struct_column(_with_types(type_, children), children, slots, mask)
    return _list(shape, type_, leaves, guide, (rep, item, slots))


def _list(shape: Shape, type_: DataType, leaves: Leaves, guide: DecodedLeaf, at: tuple[int, int, int]) -> Column:
    """A list or map: an item starts wherever an entry reaches the item's definition level."""
    rep, item, slots = at
    with _levels_of(shape):
        offsets, present = list_slots(
            guide.def_levels, guide.rep_levels, _entries(guide), slots, rep, item, shape.item_rep, shape.item_def,
            shape.def_level,
        )  # fmt: skip
    mask = present if shape.nullable else None
    rep, item, count = shape.item_rep, shape.item_def, int(offsets[-1])
    if shape.kind == "list":
        (element,) = type_.children
        child = _assemble(shape.children[0], element.type, leaves, rep, item, count)
        return list_column(_with_types(type_, [child]), offsets, child, mask)
    (entries,) = type_.children
    _check_agreement(shape.children, leaves, rep, item)
    pairs = [
        _assemble(position, f.type, leaves, rep, item, count)
        for position, f in zip(shape.children, entries.type.children, strict=True)
    ]
    if pairs[0].null_count:
        # Arrow's maps have no null keys, and libraries may crash on one.
        nulls = pairs[0].null_count
        raise CorruptFileError(
            f"the map has {nulls} null key{'s' * (nulls > 1)}; keys must not be null", column=shape.node.dotted
        )
    struct = struct_column(_with_types(entries.type, pairs), pairs, count)
    return list_column(_with_types(type_, [struct]), offsets, struct, mask)


def _guide(shape: Shape, leaves: Leaves) -> DecodedLeaf:
    """Any leaf below a position. Its levels tell which slots exist."""
    for leaf in shape.leaves():
        found = leaves.get(leaf.node.column)
        if found is not None:
            return found
    raise AssertionError("a position without a decoded leaf")


def _entries(guide: DecodedLeaf) -> int:
    for levels in (guide.rep_levels, guide.def_levels):
        if levels is not None:
            return len(levels)
    return guide.column.length


def _check_agreement(siblings: Sequence[Shape], leaves: Leaves, rep: int, level: int) -> None:
    """Check that all leaves of a group agree about it: definition levels up to ``level``, lists up to ``rep``.

    Only the first leaf below each sibling is compared. Groups further down compare their own leaves with it.
    """
    first, *others = (_guide(shape, leaves) for shape in siblings)
    if rep == level == 0:
        return  # no levels are shared
    for other in others:
        if not levels_agree(
            first.def_levels, first.rep_levels, _entries(first),
            other.def_levels, other.rep_levels, _entries(other), rep, level,
        ):  # fmt: skip
            raise CorruptFileError(
                f"its levels and those of {first.node.dotted} disagree about their common parent group",
                column=other.node.dotted,
            )


def _validity(shape: Shape, guide: DecodedLeaf, rep: int, item: int, slots: int) -> Mask | None:
    with _levels_of(shape):
        present = slot_validity(guide.def_levels, guide.rep_levels, _entries(guide), slots, rep, item, shape.def_level)
    return present if shape.nullable else None


@contextmanager
def _levels_of(shape: Shape) -> Iterator[None]:
    try:
        yield
    except KernelError as error:
        raise CorruptFileError(f"the levels are invalid: {error}", column=shape.node.dotted) from error


def _kept(shape: Shape, type_: DataType, leaves: Leaves) -> list[tuple[Shape, Field]]:
    """The struct's fields that the result keeps, in schema order."""
    kept = [c for c in shape.children if any(leaf.node.column in leaves for leaf in c.leaves())]
    return list(zip(kept, type_.children, strict=True))


def _with_types(type_: DataType, children: list[Column]) -> DataType:
    """``type_`` with the types that its children really have (a large_string inside a list, say)."""
    fields = tuple(
        f if f.type == c.type else Field(f.name, c.type, f.nullable, f.metadata)
        for f, c in zip(type_.children, children, strict=True)
    )
    return DataType(type_.format, fields)


def _check_slots(shape: Shape, found: int, slots: int) -> None:
    if found != slots:
        raise CorruptFileError(
            f"the leaf column has {found} values, but its parent group has {slots}", column=shape.node.dotted
        )
