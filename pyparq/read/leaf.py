"""A decoded leaf: its values, the levels that place them in rows, and the rows it holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyparq.columns import take
from pyparq.errors import CorruptFileError
from pyparq.index.row_ranges import RowRanges
from pyparq.schemas.tree import Node
from pyparq.schemas.types import REPEATED
from pyparq.table import Column

Levels = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]


def slot_level(node: Node) -> int:
    """The definition level from which on an entry of this leaf has a slot in the innermost list: 0 outside of lists."""
    at: Node | None = node
    while at is not None:
        if at.repetition == REPEATED:
            return at.max_def
        at = at.parent
    return 0


def is_flat(node: Node) -> bool:
    """The leaf is a column of its own: its validity is all its levels say."""
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
    rows: RowRanges

    def select(self, rows: RowRanges) -> DecodedLeaf:
        """The same leaf at ``rows``, a subset of those it holds."""
        if rows == self.rows:
            return self
        positions = rows.positions_in(self.rows)
        if self.rep_levels is None:
            levels = None if self.def_levels is None else self.def_levels[positions]
            return DecodedLeaf(self.node, take(self.column, positions), levels, None, rows)
        kept_rows = np.zeros(self.rows.count, np.bool_)
        kept_rows[positions] = True
        entries = kept_rows[np.cumsum(self.rep_levels == 0) - 1]
        levels = None if self.def_levels is None else self.def_levels[entries]
        slots = entries if self.def_levels is None else entries[self.def_levels >= slot_level(self.node)]
        return DecodedLeaf(self.node, take(self.column, np.flatnonzero(slots)), levels, self.rep_levels[entries], rows)

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
