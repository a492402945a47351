"""The row groups of a scan while they are pruned: what is known about all of them as arrays, and the ones that are
left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pyparq.format.chunk_numbers import ChunkNumbers
from pyparq.format.leaf_values import Values
from pyparq.format.schema_node import Node
from pyparq.index.page_index import PageLocations
from pyparq.index.row_ranges import Int64Array, RowRanges
from pyparq.read.footers.chunk_table import ChunkTable, Mask
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.plan.page_reads import ColumnRead
from pyparq.read.plan.selectivity import USELESS, Shares


@dataclass(slots=True)
class Selection:
    """The rows of one row group that can still match, and everything that was read to find out."""

    row_group: int
    maybe: RowRanges
    sure: RowRanges
    dictionaries: dict[int, Values] = field(default_factory=dict)
    """Decoded dictionaries by leaf column."""
    locations: dict[int, PageLocations | None] = field(default_factory=dict)
    """Page locations by leaf column. ``None`` for a column without a usable OffsetIndex."""
    planned: Mapping[int, ColumnRead] | None = None
    """The reads of a plan, by leaf column. With them, no index is asked."""
    narrows: bool = False
    """Whether few of the rows are expected to match. Page locations are then likely to be needed."""
    place: int = 0
    """Among the row groups that are pruned together."""

    @property
    def num_rows(self) -> int:
        return self.maybe.num_rows


def all_rows(file: OpenFile, row_groups: Sequence[int], within: Mapping[int, RowRanges]) -> list[Selection]:
    """The selections of a read without a filter: all requested rows. Equal sets of rows are shared."""
    found: list[Selection] = []
    whole: dict[int, RowRanges] = {}
    counts = file.rows_of(np.array(row_groups, np.int64)).tolist()
    for place, (k, num_rows) in enumerate(zip(row_groups, counts, strict=True)):
        rows = within.get(k)
        if rows is None:
            rows = whole.get(num_rows)
            if rows is None:
                rows = whole[num_rows] = RowRanges.all(num_rows)
        if rows:
            found.append(Selection(k, rows, rows, place=place))
    return found


class Answers:
    """The answers to one test: for whole row groups, and for row ranges where pages were asked."""

    __slots__ = ("_rows", "every", "is_open", "some")

    def __init__(self, count: int) -> None:
        self.some = np.ones(count, np.bool_)
        """Whether a row of the row group can pass."""
        self.every = np.zeros(count, np.bool_)
        """Whether all rows do."""
        self.is_open = np.ones(count, np.bool_)
        """Whether an index could tell more, and is expected to."""
        self._rows: dict[int, tuple[RowRanges, RowRanges]] = {}

    def take(self, some: Mask, every: Mask, kept: Shares) -> None:
        """Take the answers of the row groups' statistics, and the estimated share of matching rows."""
        self.some, self.every = some.copy(), every & some
        self.is_open = some & ~every & (kept < USELESS)

    def drop(self, selection: Selection) -> None:
        """Note that no row of a row group passes."""
        k = selection.place
        self.some[k] = self.is_open[k] = False
        _, sure = self.rows(selection)
        self._rows[k] = RowRanges.none(selection.num_rows), sure

    def drop_all(self, places: Sequence[int]) -> None:
        """Note that no row passes in any of these row groups. No page of theirs was asked yet."""
        self.some[places] = self.is_open[places] = False

    def narrow(self, selection: Selection, first_rows: Int64Array, some: Mask, every: Mask) -> None:
        """Take the answers of a ColumnIndex, page by page."""
        maybe, sure = self.rows(selection)
        maybe &= RowRanges.from_pages(first_rows, np.flatnonzero(some), selection.num_rows)
        if every.any():
            sure |= RowRanges.from_pages(first_rows, np.flatnonzero(every), selection.num_rows)
        k = selection.place
        self._rows[k] = maybe, sure
        self.some[k] = bool(maybe)
        self.is_open[k] &= bool(maybe) and not sure.is_all

    def rows(self, selection: Selection) -> tuple[RowRanges, RowRanges]:
        """The rows of a row group that can pass, and those that certainly pass."""
        known = self._rows.get(selection.place)
        if known is not None:
            return known
        rows, none = RowRanges.all(selection.num_rows), RowRanges.none(selection.num_rows)
        return rows if self.some[selection.place] else none, rows if self.every[selection.place] else none


class RowGroups:
    """The row groups of a scan."""

    def __init__(self, file: OpenFile, row_groups: Sequence[int], within: Mapping[int, RowRanges]) -> None:
        self.row_groups = row_groups
        self._file = file
        self._within = within
        self.num_rows = file.rows_of(np.array(row_groups, np.int64))
        self._asked = self.num_rows
        if within:
            counts = self.num_rows.tolist()
            self._asked = np.array([len_of(within.get(k), n) for k, n in zip(row_groups, counts, strict=True)])
        self._table: ChunkTable | None = None
        self._places: dict[int, int] = {}
        self._numbers: dict[int, ChunkNumbers] = {}

    def __len__(self) -> int:
        return len(self.row_groups)

    @property
    def num_asked(self) -> int:
        """Number of requested rows."""
        return int(self._asked.sum())

    def selections(self, maybe: Mask, sure: Mask) -> list[Selection]:
        """The row groups in which a row can match. ``sure`` marks those in which all rows do. Equal sets of rows are
        shared."""
        found: list[Selection] = []
        whole: dict[int, tuple[RowRanges, RowRanges]] = {}
        kept = np.flatnonzero(maybe & (self._asked > 0))
        for k, num_rows, every in zip(kept.tolist(), self.num_rows[kept].tolist(), sure[kept].tolist(), strict=True):
            sets = whole.get(num_rows)
            if sets is None:
                sets = whole[num_rows] = RowRanges.all(num_rows), RowRanges.none(num_rows)
            rows = self._within.get(self.row_groups[k], sets[0])
            found.append(Selection(self.row_groups[k], rows, rows if every else sets[1], place=k))
        return found

    def numbers(self, nodes: Sequence[Node], node: Node) -> ChunkNumbers:
        """The numbers of the chunks of ``node`` in all row groups. The chunks of all ``nodes`` are looked up at
        once."""
        if self._table is None:
            distinct = list(dict.fromkeys(nodes))
            self._table = self._file.chunk_table(self.row_groups, distinct)
            self._places = {other.column: j for j, other in enumerate(distinct)}
        found = self._numbers.get(node.column)
        if found is None:
            found = self._numbers[node.column] = self._table.of_column(self._places[node.column])
        return found

    def stack(self, node: Node) -> Int64Array:
        """The same numbers in one array, for a node that was looked up before."""
        assert self._table is not None
        return self._table.stack_of(self._places[node.column])

    def any_encrypted(self, node: Node) -> bool:
        """Whether any chunk of ``node`` is encrypted. The node must have been looked up."""
        assert self._table is not None
        return bool(self._table.encrypted[:, self._places[node.column]].any())

    def all_placed(self, node: Node) -> bool:
        """Whether the bounds of all these chunks lie in the footer unencrypted."""
        return self._table is not None and not self._table.odd[:, self._places[node.column]].any()


def len_of(rows: RowRanges | None, num_rows: int) -> int:
    return num_rows if rows is None else rows.count
