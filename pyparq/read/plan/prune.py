"""Narrows row groups to the rows that can match. The cheapest index is asked first.

There are two sets of rows per test and row group. ``maybe`` holds every row that can match, ``sure`` holds rows that
certainly match. Each stage asks one kind of index, and narrows ``maybe`` or widens ``sure``. AND and OR combine the
sets of their tests. A stage asks only about rows that are in ``maybe`` and not in ``sure``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from pyparq.errors import ParquetError
from pyparq.filters.predicate import Predicate
from pyparq.format.schema_node import Node
from pyparq.index.row_ranges import RowRanges
from pyparq.io.byte_ranges import Range
from pyparq.read.decode.memory_account import Account
from pyparq.read.footers.column_chunk import Chunk
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.plan.bloom_probe import HEADER
from pyparq.read.plan.bloom_stage import BloomStage
from pyparq.read.plan.candidates import Candidates
from pyparq.read.plan.column_index_stage import ColumnIndexStage
from pyparq.read.plan.covering_tests import pruning_predicate
from pyparq.read.plan.dictionary_stage import DictionaryStage
from pyparq.read.plan.early_chunks import EarlyChunks
from pyparq.read.plan.joint_requests import MOST_CHUNKS, chosen, hold, pays
from pyparq.read.plan.page_indexes import offset_index_range, page_index_ranges, read_locations
from pyparq.read.plan.row_groups import Selection
from pyparq.read.plan.stage_report import StageReport
from pyparq.read.plan.statistics_stage import StatisticsStage
from pyparq.read.plan.trace import Trace


class Pruner:
    """Runs the stages over the row groups of one file."""

    def __init__(
        self,
        file: OpenFile,
        predicate: Predicate,
        row_groups: Sequence[int],
        within: Mapping[int, RowRanges] | None = None,
        account: Account | None = None,
        outputs: Sequence[Node] = (),
        *,
        ask_filters: bool = True,
        trace: Trace | None = None,
        early: EarlyChunks | None = None,
    ) -> None:
        """``within``: the requested rows, for row groups of which only some are. ``account`` counts the
        decoded dictionaries. ``outputs``: the columns that will be read for the rows that are left. ``ask_filters``:
        whether to ask Bloom filters. ``trace``: where to note what each stage leaves. ``early``: what may be read
        beside the indexes, if rows will be read at once."""
        self.file = file
        self.options = file.options
        self._rows = Candidates(file, pruning_predicate(file, predicate, row_groups), row_groups, within or {})
        self._outputs = outputs
        self._statistics = StatisticsStage(self._rows)
        self._bloom = BloomStage(self._rows) if ask_filters and file.options.use_bloom_filters else None
        counted = Account(file.options.limits) if account is None else account
        self._dictionaries = DictionaryStage(self._rows, counted, predicate.columns())
        self._pages = ColumnIndexStage(self._rows)
        self.reports: list[StageReport] = []
        self._trace = trace
        self._early = early
        self._not_reported = 0, 0
        """Requests and bytes that belong to the stages to come."""

    @property
    def dictionaries_decoded(self) -> int:
        return self._dictionaries.decoded

    def run(self) -> list[Selection]:
        """The row groups that may hold matching rows, each with its row ranges."""
        options = self.options
        if options.use_statistics:
            self._by_statistics()
        else:
            self._rows.select()
        with self._asked_together():
            if self._bloom is not None:
                self._stage("bloom filter", self._bloom.run)
            if options.use_dictionaries:
                self._stage("dictionary", lambda: self._dictionaries.run(before_index=True))
            if options.use_page_index:
                self._stage("column index", self._pages.run)
        if options.use_dictionaries:
            self._stage("dictionary", lambda: self._dictionaries.run(before_index=False))
        if self._early is not None:
            self._early.settle(bool(self._rows.selections))
        return self._rows.selections

    @contextmanager
    def _asked_together(self) -> Iterator[None]:
        """Within this context, most requests of the stages are answered from one joint request, if requests take
        long."""
        if not pays(self.file.fetcher):
            yield
            return
        output_chunks = self._note_narrowing()
        ranges = chosen(self._kinds_of_ranges(output_chunks))
        if self._early is not None:
            self._early.begin(self._rows.selections, ranges, 0 if self._bloom is None else self._bloom.num_filters)
        counts = self.file.fetcher.counts
        requests, size = counts.requests, counts.bytes
        ahead = hold(self.file.fetcher, ranges)
        self.file.fetcher.keep_indexes(ranges)
        self._not_reported = counts.requests - requests, counts.bytes - size
        try:
            yield
            self._locate(output_chunks)
        finally:
            self.file.fetcher.forget(ahead)

    def _note_narrowing(self) -> list[Chunk]:
        """Mark the row groups of which few rows are expected to match. Returns their chunks that will be read, unless
        there are too many."""
        narrowed = {selection.row_group for _, selection, _ in self._rows.open_questions()}
        for selection in self._rows.selections:
            selection.narrows = selection.row_group in narrowed
        if not self.options.use_page_index or len(narrowed) * len(self._outputs) > MOST_CHUNKS:
            return []
        return chunks_to_locate(self.file, [s for s in self._rows.selections if s.narrows], self._outputs)

    def _kinds_of_ranges(self, output_chunks: Sequence[Chunk]) -> Iterator[list[Range]]:
        """The ranges that the stages will ask for, the most useful kinds first."""
        chunks = [chunk for _, _, chunk in self._rows.open_questions()]
        chunks += [chunk for _, _, own in self._rows.computed_questions() for chunk in own]
        if self.options.use_page_index:
            yield list(dict.fromkeys(r for chunk in chunks for r in page_index_ranges(chunk, self.file)))
        if self._bloom is not None:
            yield self._bloom.ranges(self._room)
        yield [r for chunk in output_chunks for r in offset_index_range(chunk, self.file)]
        if self.options.use_dictionaries:
            yield self._dictionaries.ranges(before_index=True)

    def _room(self, chunk: Chunk, place: int) -> int:
        """Bytes from a Bloom filter of unknown length to the next known part of the file, if finding it is little
        work."""
        if len(self._rows.selections) * len(self.file.tree.leaves) > MOST_CHUNKS:
            return HEADER
        return self.file.room_at(chunk.row_group, place)

    def _locate(self, chunks: Sequence[Chunk]) -> None:
        """Keep the page locations of the chunks whose row groups are left. Only a part of each chunk is likely to be
        read."""
        parts = {s.row_group: s for s in self._rows.selections}
        wanted = [c for c in chunks if c.row_group in parts and c.node.column not in parts[c.row_group].locations]
        found = read_locations(self.file, wanted)
        for chunk in wanted:
            parts[chunk.row_group].locations[chunk.node.column] = found.get((chunk.row_group, chunk.node.column))

    # ---- the frame of a stage

    def _stage(self, name: str, run: Callable[[], None]) -> None:
        """Run one stage, and report it if it has asked anything."""
        rows, counts = self._rows, self.file.fetcher.counts
        if not rows.selections:
            return
        requests, size = counts.requests, counts.bytes
        groups, rows_before, among = len(rows.selections), rows.rows_left(), list(rows.selections)
        rows.asked = set()
        run()
        rows.settle()
        pages = self._pages.page_counts(among) if name == "column index" else (0, 0)
        if rows.asked:
            early, self._not_reported = self._not_reported, (0, 0)
            took = counts.requests - requests + early[0], counts.bytes - size + early[1]
            left = len(rows.selections), rows.rows_left()
            if self._trace is not None:
                self._trace.note_stage(name, rows.asked, rows.selections)
            self.reports.append(
                StageReport(name, len(rows.asked), groups, left[0], rows_before, left[1], *pages, *took)
            )

    def _by_statistics(self) -> None:
        asked, groups = self._statistics.run(), self._rows.groups
        if self._trace is not None:
            self._trace.note_stage("statistics", set(), self._rows.selections)
        if asked:
            before, left = (len(groups), groups.num_asked), (len(self._rows.selections), self._rows.rows_left())
            self.reports.append(StageReport("statistics", asked, before[0], left[0], before[1], left[1], 0, 0, 0, 0))


def chunks_to_locate(file: OpenFile, selections: Sequence[Selection], nodes: Sequence[Node]) -> list[Chunk]:
    """The chunks of leaves whose page locations are not known. Unreadable chunks are left out: they may not be
    needed."""
    found: list[Chunk] = []
    for selection in selections:
        for node in nodes:
            if selection.planned is None and node.column not in selection.locations:
                with suppress(ParquetError):
                    found.append(file.chunk(selection.row_group, node))
    return found
