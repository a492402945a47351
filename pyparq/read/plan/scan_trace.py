"""What a scan notes of itself: the cost of each stage for ``explain()``, and for maps the rows left and all reads."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field

from pyparq.format.schema_node import Node
from pyparq.index.row_ranges import RowRanges
from pyparq.io.byte_ranges import Range
from pyparq.read.plan.page_reads import ColumnRead


@dataclass(slots=True)
class StageReport:
    """The effect and the cost of one stage: row groups, rows and pages before and after, requests and bytes."""

    name: str
    asked: int
    """Indexes asked (chunks)."""
    row_groups_before: int
    row_groups_after: int
    rows_before: int
    rows_after: int
    pages_before: int
    pages_after: int
    requests: int
    bytes: int


@dataclass(frozen=True, slots=True)
class StageTrace:
    """One stage of pruning."""

    name: str
    asked: frozenset[tuple[int, int]]
    """(row group, leaf column) of the indexes that were asked. Statistics cost nothing, and are not listed."""
    left: dict[int, RowRanges]
    """The rows that can still match, by row group. Row groups that are ruled out are missing."""


@dataclass(slots=True)
class Trace:
    """Everything that a scan notes of itself."""

    stages: list[StageTrace] = field(default_factory=list)
    reads: list[ColumnRead] = field(default_factory=list)
    """The column chunks, or pages of them, that were decoded."""
    whole: set[tuple[int, int]] = field(default_factory=set)
    """(row group, leaf column) of further chunks that were decoded in full."""
    requests: list[Range] = field(default_factory=list)
    """All requests to the source, without those that opened the file."""

    def note_stage(self, name: str, asked: Set[tuple[int, int]], left: dict[int, RowRanges]) -> None:
        """Note the rows that a stage has left, by row group."""
        self.stages.append(StageTrace(name, frozenset(asked), left))

    def note_whole(self, row_groups: Iterable[int], nodes: Iterable[Node]) -> None:
        """Note row groups of which all pages of some columns are decoded."""
        leaves = list(nodes)
        self.whole |= {(k, node.column) for k in row_groups for node in leaves}
