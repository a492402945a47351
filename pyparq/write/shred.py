"""Converts the columns of a batch to leaves with repetition and definition levels (README.md, "Nested Encoding").

A flat column takes a short path: required values are shared, nullable ones are compacted once. Nested columns are
walked from the outside in, with one numpy pass per level of nesting. Each pass carries, for every slot of the future
leaves, its levels so far. Slots that still have a value further down are called live; each pass also carries their
positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import Int64Array, Mask, list_items, slice_column
from pyparq.errors import DataError
from pyparq.format.leaf_values import Values, concat_values, same_values
from pyparq.format.schema_node import Node, Shape
from pyparq.format.types import LeafType
from pyparq.kernels import LIVE_SLOT, KernelError, expand_lists, settle_slots, take_memory
from pyparq.write.physical_values import Misfit, fits, leaf_values, misfit_error


def file_fault(column: Column, *, encrypts: bool) -> tuple[Mask, str] | None:
    """The first rule that values of a struct break: which ones do, null structs left out, and what it says.

    ``encrypts``: whether the file is encrypted. The bytes that it refers to in itself could not be.
    """
    there = column.valid_mask()
    for broken, said in _rules(column, encrypts):
        faults = broken if there is None else broken & there.view(np.bool_)
        if faults.any():
            return faults, said
    return None


def _rules(column: Column, encrypts: bool) -> Iterator[tuple[Mask, str]]:
    fields = {
        field.name: child
        for field, child in zip(column.type.children, column.children, strict=True)
        if len(child) >= column.offset + len(column)  # a shorter one is refused by the walk
    }
    part = slice(column.offset, column.offset + len(column))

    def is_set(name: str) -> Mask:
        child = fields.get(name)
        return np.zeros(len(column), np.bool_) if child is None else _is_set(child)[part]

    uri, offset, size, inline = map(is_set, ("uri", "offset", "size", "inline"))
    yield ~(inline | uri | offset), "a FILE needs inline bytes, a uri, or an offset in this file"
    yield offset & ~size, "a FILE with an offset needs a size"
    if encrypts:
        yield (
            ~(inline | uri),
            "a FILE in an encrypted file may not refer to bytes of the same file: give a uri, or inline",
        )
    for name, known in (("offset", offset), ("size", size)):
        if known.any():
            yield known & (_numbers(fields[name])[part] < 0), f"the {name} of a FILE is below 0"


def _is_set(child: Column) -> Mask:
    """Where a field is set: not null and, if it is text, not empty."""
    valid = child.valid_mask()
    found: Mask = np.ones(len(child), np.bool_) if valid is None else valid.view(np.bool_)
    if child.type.format in ("u", "U"):
        lengths: Any = np.diff(child.offsets())
        found = found & (lengths > 0)
    return found


def _numbers(child: Column) -> npt.NDArray[np.int64]:
    return np.asarray(child.values(), np.int64)


Levels = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Known:
    """The physical entries of the dictionary that a leaf's values come from, used or not."""

    values: Values
    source: Column | None
    """The column that holds the entries. ``None`` if several dictionaries were joined."""
    indices: npt.NDArray[np.int32] | None = None
    """The entry of each value. ``None``: it has to be looked for. Otherwise all entries are used."""
    distinct: int = -1
    """How many different entries there are, if that is known. With ``indices`` only."""


@dataclass(slots=True)
class LeafData:
    """One leaf of a run of rows.

    ``values`` are physical, nulls removed. ``def_levels`` has one uint8 per slot (``None``: every slot is at
    ``node.max_def``), ``rep_levels`` too (``None``: the leaf is not repeated, a slot is a row).
    """

    node: Node
    num_rows: int
    num_slots: int
    values: Values
    def_levels: Levels | None
    rep_levels: Levels | None
    known: Known | None = None


def shred_column(
    column: Column, shape: Shape, num_rows: int, first_row: int = 0, *, encrypts: bool = False
) -> list[LeafData]:
    """The leaves of one top-level column, in their order. ``encrypts``: whether the file is encrypted.

    Raises :class:`DataError` with column and row (counted from ``first_row``) for a null in a required field and for a
    value that its Parquet type cannot hold.
    """
    if len(column) != num_rows:
        raise DataError(f"the column has {len(column)} values for {num_rows} rows", column=shape.name)
    leaves: list[LeafData] = []
    _walk(column, shape, _Slots(num_rows, None, None, range(num_rows), first_row, encrypts), num_rows, leaves)
    return leaves


@dataclass(slots=True)
class _Slots:
    """The state of the walk. The k-th live slot belongs to element ``elements[k]`` of the current column."""

    count: int
    reps: Levels | None
    """``None``: no slot continues a list."""
    defs: Levels | None
    """Levels of the slots that have ended, ``LIVE_SLOT`` for the others (uint8). ``None``: all are live."""
    elements: range | Int64Array
    first_row: int
    encrypts: bool
    """Whether the file is encrypted."""

    def row_of(self, k: int) -> int:
        """The row of the k-th live slot."""
        slot = k if self.defs is None else int(np.flatnonzero(self.defs == LIVE_SLOT)[k])
        before = slot if self.reps is None else int(np.count_nonzero(self.reps[: slot + 1] == 0)) - 1
        return self.first_row + before


def _walk(column: Column, shape: Shape, slots: _Slots, num_rows: int, out: list[LeafData]) -> None:
    if shape.kind == "leaf":
        out.append(_leaf(column, shape, slots, num_rows))
        return
    slots = _without_nulls(column, shape, slots)
    if shape.kind == "struct":
        if shape.node.is_file:
            _check_files(column, shape, slots)
        _walk_fields(column, shape, slots, num_rows, out)
        return
    offsets, items = list_items(column)
    slots = _expanded(offsets, len(items), shape, slots)
    if shape.kind == "list":
        _walk(items, shape.children[0], slots, num_rows, out)
        return
    # A map's items are structs of key and value that are never null themselves.
    _walk_fields(items, shape, slots, num_rows, out)


def _walk_fields(column: Column, shape: Shape, slots: _Slots, num_rows: int, out: list[LeafData]) -> None:
    if len(column.children) != len(shape.children):
        raise DataError(
            f"the struct has {len(column.children)} fields, but the schema has {len(shape.children)}",
            column=shape.node.dotted,
        )
    slots = replace(slots, elements=_shifted(slots.elements, column.offset))
    for child, child_shape in zip(column.children, shape.children, strict=True):
        if len(child) < column.offset + len(column):
            raise DataError("a field of the struct is shorter than the struct", column=child_shape.node.dotted)
        _walk(child, child_shape, slots, num_rows, out)


def _check_files(column: Column, shape: Shape, slots: _Slots) -> None:
    """Refuse a reference to bytes that means nothing, or that the format does not allow."""
    found = file_fault(column, encrypts=slots.encrypts)
    if found is None:
        return
    faults, said = found
    wrong = np.flatnonzero(_pick(faults, slots.elements))
    if len(wrong):
        raise DataError(f"row {slots.row_of(int(wrong[0]))}: {said}", column=shape.node.dotted)


def _shifted(elements: range | Int64Array, by: int) -> range | Int64Array:
    if isinstance(elements, range):
        return range(elements.start + by, elements.stop + by)
    return elements + by if by else elements


def _pick(values: npt.NDArray[np.generic], elements: range | Int64Array) -> npt.NDArray[np.generic]:
    return values[elements.start : elements.stop] if isinstance(elements, range) else values[elements]


def _present(column: Column, slots: _Slots) -> Mask | None:
    """For every live slot, whether it has a value. ``None``: all have."""
    if column.type.format == "n":
        return np.zeros(len(slots.elements), np.bool_)
    mask = column.valid_mask()
    if mask is None:
        return None
    present = _pick(mask, slots.elements).view(np.bool_)
    return None if present.all() else present


def _without_nulls(column: Column, shape: Shape, slots: _Slots) -> _Slots:
    """End the slots of this column's nulls, one level below the column's own."""
    present = _present(column, slots)
    if present is None:
        return slots
    if not shape.nullable:
        _refuse_null(present, shape, slots)
    defs = settle_slots(slots.count, slots.defs, present, shape.def_level - 1, LIVE_SLOT)
    elements = slots.elements
    kept = elements.start + np.flatnonzero(present) if isinstance(elements, range) else elements[present]
    return replace(slots, defs=defs, elements=kept)


def _refuse_null(present: Mask, shape: Shape, slots: _Slots) -> None:
    row = slots.row_of(int(np.argmin(present)))
    where = shape.node.dotted
    raise DataError(f"row {row} is null, but the column is required (not nullable, as 'string?' is)", column=where)


def _expanded(offsets: npt.NDArray[np.generic], num_items: int, shape: Shape, slots: _Slots) -> _Slots:
    """One slot per list item. An empty list keeps one slot, which ends here."""
    starts, ends = (_as_int64(_pick(part, slots.elements)) for part in (offsets[:-1], offsets[1:]))
    lengths = np.subtract(ends, starts, out=ends)
    try:
        reps, defs, live, items, first = expand_lists(
            slots.count, slots.reps, slots.defs, starts, lengths, num_items, shape.item_rep, shape.def_level
        )
    except KernelError as error:
        raise DataError(
            f"the list offsets decrease or point behind the items: {error}", column=shape.node.dotted
        ) from error
    elements = range(first, first + live) if items is None else items
    return replace(slots, count=len(reps), reps=reps, defs=defs, elements=elements)


def _as_int64(values: npt.NDArray[np.generic]) -> Int64Array:
    """A copy as int64, in reused memory."""
    out = take_memory(8 * len(values)).view(np.int64)
    out[:] = values
    return out


def _leaf(column: Column, shape: Shape, slots: _Slots, num_rows: int) -> LeafData:
    node, elements = shape.node, slots.elements
    if not fits(column.type, node.type):
        raise DataError(f"the data is {column.type}, which is not the type in the schema", column=node.dotted)
    present = _present(column, slots)
    if present is not None and not shape.nullable:
        _refuse_null(present, shape, slots)
    try:
        if isinstance(elements, range):
            part = slice_column(column, elements.start, elements.stop)
            values = leaf_values(part, present, node.type)
        else:
            values = leaf_values(column, elements if present is None else elements[present], node.type)
    except Misfit as misfit:
        k = misfit.index if present is None else int(np.flatnonzero(present)[misfit.index])
        raise misfit_error(misfit, slots.row_of(k), node.dotted) from None
    defs = _leaf_defs(slots, present, shape)
    reps = slots.reps
    if reps is None and node.max_rep > 0:
        reps = np.zeros(slots.count, np.uint8)
    return LeafData(node, num_rows, slots.count, values, defs, reps, known_entries(column, node))


def known_entries(column: Column, node: Node) -> Known | None:
    """The entries of the dictionary that a column comes from. ``None`` if the leaf cannot hold all of them."""
    if column.dictionary is None:
        return None
    try:
        return Known(leaf_values(column.dictionary, None, node.type), column.dictionary)
    except Misfit:
        return None  # an unused entry that does not fit; a used one would have been refused


def _leaf_defs(slots: _Slots, present: Mask | None, shape: Shape) -> Levels | None:
    if slots.defs is not None:
        return settle_slots(slots.count, slots.defs, present, shape.def_level - 1, shape.def_level)
    if present is None:
        return None
    # The last level only tells whether the value is there: the mask, shifted.
    defs = present.view(np.uint8)
    return defs if shape.def_level == 1 else defs + np.uint8(shape.def_level - 1)


def concat_leaf_data(parts: Sequence[LeafData]) -> LeafData:
    """The same leaf of several batches joined into one (at least one part)."""
    if len(parts) == 1:
        return parts[0]
    node = parts[0].node
    defs: Levels | None = None
    if any(p.def_levels is not None for p in parts):
        full = [np.full(p.num_slots, node.max_def, np.uint8) if p.def_levels is None else p.def_levels for p in parts]
        defs = np.concatenate(full)
    reps: Levels | None = None
    if node.max_rep > 0:
        reps = np.concatenate([p.rep_levels for p in parts if p.rep_levels is not None])
    values = concat_values([p.values for p in parts], node.type)
    num_rows, num_slots = sum(p.num_rows for p in parts), sum(p.num_slots for p in parts)
    return LeafData(node, num_rows, num_slots, values, defs, reps, _joined([p.known for p in parts], node.type))


def _joined(parts: Sequence[Known | None], leaf: LeafType) -> Known | None:
    """The entries of all dictionaries. Those of the first come first."""
    known = {id(part.source): part for part in parts if part is not None and part.indices is None}
    if len(known) <= 1:
        return next(iter(known.values()), None)
    first, *others = known.values()
    others = [part for part in others if not same_values(first.values, part.values)]
    if not others:
        return first
    return Known(concat_values([first.values, *(part.values for part in others)], leaf), None)
