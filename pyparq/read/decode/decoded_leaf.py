"""A decoded leaf: its values, the levels that place them in rows, and the rows it holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.arrow.column import Column, bytes_held
from pyparq.arrow.column_operations import Words, keep, take
from pyparq.errors import CorruptFileError
from pyparq.format.schema_node import Node
from pyparq.format.types import REPEATED
from pyparq.index.row_mask import RowMask, Rows, as_mask
from pyparq.index.row_ranges import RowRanges

Levels = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

MANY = 16
"""Up to this many rows per kept row, one pass over all rows is faster than looking up places."""


def slot_level(node: Node) -> int:
    """The definition level from which on an entry of this leaf has a slot in the innermost list. 0 outside of lists."""
    at: Node | None = node
    while at is not None:
        if at.repetition == REPEATED:
            return at.max_def
        at = at.parent
    return 0


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
        slots = entries if levels is None else kernels.mask_slots(entries, levels, slot_level(self.node))
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
