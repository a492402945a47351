"""A decoded leaf: its values, the levels that place them in rows, and the rows it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.arrow.column import Column, bytes_held
from pyparq.arrow.column_operations import MOST_OFFSET, Words, binary_column, keep, list_column, struct_column, take
from pyparq.errors import CorruptFileError, DataError, LimitError
from pyparq.format.hybrid_calendar import to_gregorian
from pyparq.format.schema_node import Node, Shape
from pyparq.format.types import REPEATED, DataType, Field, LeafType
from pyparq.index.row_ranges import RowMask, RowRanges, Rows, as_mask
from pyparq.kernels import KernelError, levels_agree, list_slots, slot_validity
from pyparq.kernels.buffers import empty_results
from pyparq.read.decode.memory_account import Account, Portion

Levels = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

MANY = 16
"""Up to this many rows per kept row, one pass over all rows is faster than looking up places."""


def is_flat(node: Node) -> bool:
    """Whether the leaf is a column of its own, so that its validity replaces its levels."""
    return node.parent is not None and node.parent.parent is None and node.repetition != REPEATED


@dataclass(slots=True)
class DecodedLeaf:
    """Values of one leaf in one row group.

    ``column`` has one element per slot: a row for a leaf outside of lists, an item of the innermost list otherwise.
    ``def_levels`` and ``rep_levels`` have one entry per level pair (``None``: all at the maximum, or no repetition).
    ``rows`` says which rows of the row group they cover.
    """

    node: Node
    column: Column
    def_levels: Levels | None
    rep_levels: Levels | None
    rows: Rows

    def select(self, rows: Rows) -> DecodedLeaf:
        """The same leaf at ``rows``, a subset of its rows."""
        if rows is self.rows or rows == self.rows:
            return self
        if isinstance(self.rows, RowMask):
            return self._select_of_mask(self.rows, as_mask(rows))
        if isinstance(rows, RowRanges) and rows.count * MANY < self.rows.count:
            return self._at(rows, self.rows)
        return self._keep(rows, as_mask(rows).within(self.rows))

    def _select_of_mask(self, own: RowMask, rows: RowMask) -> DecodedLeaf:
        kept = kernels.keep_bits(own.words, rows.bits, 0, rows.num_rows)
        return self._keep(rows, RowMask.of_words(kept, own.count, rows.count))

    def _at(self, rows: RowRanges, own: RowRanges) -> DecodedLeaf:
        """A few of the rows, whose places are looked up."""
        positions = rows.positions_in(own)
        if self.rep_levels is None:
            levels = None if self.def_levels is None else self.def_levels[positions]
            return DecodedLeaf(self.node, take(self.column, positions), levels, None, rows)
        kept_rows = np.zeros(own.count, np.bool_)
        kept_rows[positions] = True
        return self._keep(rows, RowMask.of_bools(kept_rows))

    def _keep(self, rows: Rows, kept: RowMask) -> DecodedLeaf:
        """The rows set in ``kept``, which has one bit per row of the leaf. They are ``rows`` of the row group."""
        levels, slots = self.def_levels, kept.words
        if self.rep_levels is None:
            levels = None if levels is None else _kept_levels(levels, slots)
            return DecodedLeaf(self.node, keep(self.column, slots, rows.count), levels, None, rows)
        entries = kernels.mask_entries(kept.words, kept.num_rows, self.rep_levels)
        slots = entries if levels is None else kernels.mask_slots(entries, levels, self.node.slot_level)
        column = keep(self.column, slots, kernels.mask_count(slots))
        levels = None if levels is None else _kept_levels(levels, entries)
        return DecodedLeaf(self.node, column, levels, _kept_levels(self.rep_levels, entries), rows)

    @property
    def num_bytes(self) -> int:
        """Bytes of the column and the levels."""
        levels = (levels for levels in (self.def_levels, self.rep_levels) if levels is not None)
        return bytes_held(self.column) + sum(len(found) for found in levels)

    @property
    def num_levels(self) -> int:
        """Entries, those without a slot included."""
        levels = self.def_levels if self.rep_levels is None else self.rep_levels
        return self.column.length if levels is None else len(levels)

    def check_rows(self) -> None:
        """Raise :class:`CorruptFileError` unless the repetition levels start as many rows as there are."""
        if self.rep_levels is None:
            return
        if len(self.rep_levels) and self.rep_levels[0] != 0:
            raise CorruptFileError(f"the first repetition level is {self.rep_levels[0]}, but a row must start with 0")
        starts = int(np.count_nonzero(self.rep_levels == 0))
        if starts != self.rows.count:
            raise CorruptFileError(f"the repetition levels start {starts} rows, but {self.rows.count} are expected")


def _kept_levels(levels: Levels, words: Words) -> Levels:
    kept = np.empty(kernels.mask_count(words), np.uint8)
    kernels.keep_fixed(words, levels, 1, kept)
    return kept


Codes = npt.NDArray[np.int32]


def spelled_out(column: Column, account: Account | Portion, most: int) -> Column:
    """The values, at most ``most`` bytes. ``account`` counts them before they are allocated."""
    entries = column.dictionary
    assert entries is not None
    codes = column.values()
    nulls = column.valid_mask()
    if nulls is not None:  # null slots use one additional entry, which is empty
        codes = np.where(nulls, codes, np.int32(entries.length))
    spell = _binary if entries.type.is_binary_like else _fixed
    values = spell(entries, codes, nulls is not None, lambda size: _count(size, account, most))
    values.validity, values.null_count = column.validity, column.null_count
    return values


def _fixed(entries: Column, codes: Codes, has_nulls: bool, count: Callable[[int], None]) -> Column:
    width = entries.type.byte_width
    count(width * len(codes))
    known = entries.buffers[0].reshape(-1).view(np.uint8)[: width * entries.length]
    if has_nulls:
        known = np.append(known, np.zeros(width, np.uint8))
    out = empty_results((width * len(codes),), np.uint8)
    kernels.gather_fixed(known, width, codes, out)
    return Column(entries.type, len(codes), None, (out.view(entries.buffers[0].dtype),), 0)


def _binary(entries: Column, codes: Codes, has_nulls: bool, count: Callable[[int], None]) -> Column:
    edges, data = entries.offsets(), entries.buffers[1]
    longest = int(np.diff(edges).max(initial=0))
    if has_nulls:
        edges = np.append(edges, edges[-1])
    wide = longest * len(codes) > MOST_OFFSET
    count((len(codes) + 1) * (8 if wide else 4))
    offsets = empty_results((len(codes) + 1,), np.int64 if wide else np.int32)
    size = kernels.gather_binary_offsets(edges, codes, offsets, 0)
    count(size)
    out = empty_results((size,), np.uint8)
    kernels.gather_binary_bytes(edges, data, codes, out)
    return binary_column(entries.type, offsets, out)


def _count(size: int, account: Account | Portion, most: int) -> None:
    if size > most:
        raise LimitError(f"the decoded column chunk takes {size} bytes: more than limits.max_column ({most})")
    account.take(size)


def gregorian_column(column: Column, shape: Shape, account: Account) -> Column:
    """The column (flat or nested) with its leaves converted from the hybrid calendar.

    ``account`` counts the memory of converted values. Raises :class:`DataError` for a value that leaves its 64 bits,
    and :class:`UnsupportedError` for a time zone that this machine does not know.
    """
    if shape.kind == "leaf":
        return _moved(column, shape.node.type, account) if shape.node.type.hybrid else column
    if not any(leaf.node.type.hybrid for leaf in shape.leaves()):
        return column
    children: tuple[Column, ...]
    if shape.kind == "map":
        entries = column.children[0]
        pairs = zip(entries.children, shape.children, strict=True)
        children = (_holding(entries, tuple(gregorian_column(child, below, account) for child, below in pairs)),)
    else:
        pairs = zip(column.children, shape.children, strict=True)
        children = tuple(gregorian_column(child, below, account) for child, below in pairs)
    return _holding(column, children)


def _holding(column: Column, children: tuple[Column, ...]) -> Column:
    return Column(
        column.type, column.length, column.validity, column.buffers, column.null_count, children, column.dictionary,
        column.offset,
    )  # fmt: skip


def _moved(column: Column, leaf: LeafType, account: Account) -> Column:
    stored = column.buffers[0].view(column.type.numpy_dtype)
    moved = to_gregorian(stored, leaf)
    if moved is stored:
        return column
    account.take(moved.nbytes)
    wrapped = (moved > stored) != (moved.astype(np.int64) - stored > 0)
    if wrapped.any():
        at = int(np.argmax(wrapped))
        raise DataError(f"the value {stored[at]} leaves 64 bits in the Gregorian calendar")
    return Column(column.type, column.length, column.validity, (moved,), column.null_count, offset=column.offset)


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
