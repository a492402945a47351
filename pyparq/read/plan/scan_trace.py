"""What a scan notes of itself for a map of its file: the rows that each stage leaves, and everything that it reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field

from pyparq.format.schema_node import Node
from pyparq.index.row_ranges import RowRanges
from pyparq.io.byte_ranges import Range
from pyparq.read.plan.candidates import Selection
from pyparq.read.plan.page_reads import ColumnRead


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

    def note_stage(self, name: str, asked: Set[tuple[int, int]], selections: Sequence[Selection]) -> None:
        """Note the rows that a stage has left."""
        self.stages.append(StageTrace(name, frozenset(asked), {s.row_group: s.maybe for s in selections}))

    def note_whole(self, selections: Sequence[Selection], nodes: Iterable[Node]) -> None:
        """Note row groups of which all pages of some columns are decoded."""
        self.whole |= {(s.row_group, node.column) for s in selections for node in nodes}
