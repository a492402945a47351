"""Narrows row groups to the rows that can match. The cheapest index is asked first.

There are two sets of rows per test and row group. ``maybe`` holds every row that can match, ``sure`` holds rows that
certainly match. Each stage asks one kind of index, and narrows ``maybe`` or widens ``sure``. AND and OR combine the
sets of their tests. A stage asks only about rows that are in ``maybe`` and not in ``sure``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import numpy as np

from pyparq.errors import ParquetError
from pyparq.filters.bloom_hashes import probe_hashes
from pyparq.filters.bounds_tests import evaluate_bounds, found_at_bounds
from pyparq.filters.dictionary_tests import evaluate_dictionary
from pyparq.filters.predicate import VALUE_OPS, And, Constant, Predicate, Test
from pyparq.format.chunk_numbers import ALL_DICTIONARY, ChunkNumbers
from pyparq.format.leaf_values import Values
from pyparq.format.schema_tree import Node
from pyparq.index import bloom_filter
from pyparq.index.bounds import Bounds
from pyparq.index.row_ranges import RowRanges
from pyparq.index.statistics import bounds_of_chunks, bounds_of_numbers
from pyparq.io.byte_ranges import Range
from pyparq.read.decode.dictionary_entries import decode_dictionary
from pyparq.read.decode.memory_account import Account
from pyparq.read.footers.chunk_table import Mask
from pyparq.read.footers.open_file import Chunk, OpenFile
from pyparq.read.plan.bloom_probe import ABSENT, HEADER, UNUSABLE, Probe, Probing, probe_local
from pyparq.read.plan.joint_requests import hold, pays
from pyparq.read.plan.page_indexes import offset_index_range, page_index_ranges, read_locations, read_page_indexes
from pyparq.read.plan.page_reads import plan_column
from pyparq.read.plan.row_groups import Answers, RowGroups, Selection
from pyparq.read.plan.selectivity import kept_shares

MOST_CHUNKS = 1000
"""Maximum number of column chunks whose metadata and page locations are looked at before they are known to be
needed."""


Question = tuple[Test, Selection, Chunk]


def _asks_histograms(test: Test) -> bool:
    """Whether counts of levels can answer the test better than bounds."""
    return test.asks_levels or test.node.max_rep > 0


@dataclass(slots=True)
class Probes:
    """The Bloom filters to ask, each about a test in a row group."""

    asked: list[tuple[Test, Selection, Probe]]
    all: Probing


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
    ) -> None:
        """``within``: the requested rows of each row group of which not all are requested. ``account`` counts the
        decoded dictionaries. ``outputs``: the columns that will be read for the rows that are left. ``ask_filters``:
        whether to ask Bloom filters."""
        self.file = file
        self.options = file.options
        self._ask_filters = ask_filters and file.options.use_bloom_filters
        self._account = Account(file.options.limits) if account is None else account
        self.predicate = predicate
        self.tests = list(dict.fromkeys(predicate.tests()))
        self.reports: list[StageReport] = []
        self.selections: list[Selection] = []
        self.dictionaries_decoded = 0
        self._within = within or {}
        self._outputs = outputs
        self._probes: Probes | None = None
        self._not_reported = 0, 0
        """Requests and bytes that belong to the stages to come."""
        self._asked: set[tuple[int, int]] = set()
        self._groups = RowGroups(file, row_groups, self._within)
        self._answers = {test: Answers(len(row_groups)) for test in self.tests}
        self._bounds: dict[Node, Bounds] = {}
        """The statistics of all row groups, for each tested leaf."""
        self._changed: set[int] = set()
        """Positions of row groups for which the current stage has learned something."""
        self._left: int | None = None
        """Rows of the selections, once counted."""

    def run(self) -> list[Selection]:
        """The row groups that may hold matching rows, each with its row ranges."""
        options = self.options
        if options.use_statistics:
            self._stage_of_statistics()
        else:
            self._select()
        with self._asked_together():
            if self._ask_filters:
                self._stage("bloom filter", self._by_bloom)
            if options.use_dictionaries:
                self._stage("dictionary", lambda: self._by_dictionary(before_index=True))
            if options.use_page_index:
                self._stage("column index", self._by_column_index)
        if options.use_dictionaries:
            self._stage("dictionary", lambda: self._by_dictionary(before_index=False))
        return self.selections

    @contextmanager
    def _asked_together(self) -> Iterator[None]:
        """Within this context, most requests of the stages are answered from one joint request, if requests take
        long."""
        if not pays(self.file.fetcher):
            yield
            return
        counts = self.file.fetcher.counts
        requests, size = counts.requests, counts.bytes
        output_chunks = self._note_narrowing()
        ahead = hold(self.file.fetcher, self._kinds_of_ranges(output_chunks))
        self._not_reported = counts.requests - requests, counts.bytes - size
        try:
            yield
            self._locate(output_chunks)
        finally:
            self.file.fetcher.forget(ahead)

    def _note_narrowing(self) -> list[Chunk]:
        """Mark the row groups of which few rows are expected to match. Returns their chunks that will be read, unless
        there are too many."""
        narrowed = {selection.row_group for _, selection, _ in self._open_questions()}
        for selection in self.selections:
            selection.narrows = selection.row_group in narrowed
        if not self.options.use_page_index or len(narrowed) * len(self._outputs) > MOST_CHUNKS:
            return []
        return chunks_to_locate(self.file, [s for s in self.selections if s.narrows], self._outputs)

    def _kinds_of_ranges(self, output_chunks: Sequence[Chunk]) -> Iterator[list[Range]]:
        """The ranges that the stages will ask for, the most useful kinds first."""
        chunks = [chunk for _, _, chunk in self._open_questions()]
        if self.options.use_page_index:
            yield list(dict.fromkeys(r for chunk in chunks for r in page_index_ranges(chunk, self.file)))
        if self._ask_filters:
            self._probes = self._bloom_probes()
            yield self._probes.all.ranges(self._room)
        yield [r for chunk in output_chunks for r in offset_index_range(chunk, self.file)]
        if self.options.use_dictionaries:
            asked = self._dictionary_questions(before_index=True)
            yield list(dict.fromkeys((chunk.start, dictionary_size(chunk)) for _, _, chunk in asked))

    def _room(self, chunk: Chunk, place: int) -> int:
        """Bytes from a Bloom filter of unknown length to the next known part of the file, if finding it is little
        work."""
        if len(self.selections) * len(self.file.tree.leaves) > MOST_CHUNKS:
            return HEADER
        return self.file.room_at(chunk.row_group, place)

    def _locate(self, chunks: Sequence[Chunk]) -> None:
        """Keep the page locations of the chunks whose row groups are left. Only a part of each chunk is likely to be
        read."""
        parts = {s.row_group: s for s in self.selections}
        wanted = [c for c in chunks if c.row_group in parts and c.node.column not in parts[c.row_group].locations]
        found = read_locations(self.file, wanted)
        for chunk in wanted:
            parts[chunk.row_group].locations[chunk.node.column] = found.get((chunk.row_group, chunk.node.column))

    # ---- the frame of a stage

    def _select(self) -> None:
        """Drop the row groups in which no row can match. The stages that follow look at the others one by one."""
        maybe, sure = self._of_whole_groups(self.predicate)
        self.selections = self._groups.selections(maybe, sure)

    def _of_whole_groups(self, predicate: Predicate) -> tuple[Mask, Mask]:
        """Two masks over row groups: those in which some row can match, and those in which all rows do."""
        if isinstance(predicate, Test):
            answers = self._answers[predicate]
            return answers.some, answers.every
        if isinstance(predicate, Constant):
            every = np.full(len(self._groups), predicate.value)
            return every, every
        maybe, sure = zip(*(self._of_whole_groups(child) for child in predicate.children), strict=True)
        join = np.logical_and if isinstance(predicate, And) else np.logical_or
        return join.reduce(maybe), join.reduce(sure)

    def _stage(self, name: str, run: Callable[[], None]) -> None:
        if not self.selections:
            return
        counts = self.file.fetcher.counts
        requests, size = counts.requests, counts.bytes
        groups, rows, asked = len(self.selections), self._rows_left(), list(self.selections)
        self._asked = set()
        run()
        self._settle()
        pages = self._page_counts(asked) if name == "column index" else (0, 0)
        if self._asked:
            early, self._not_reported = self._not_reported, (0, 0)
            took = counts.requests - requests + early[0], counts.bytes - size + early[1]
            self.reports.append(
                StageReport(
                    name, len(self._asked), groups, len(self.selections), rows, self._rows_left(), *pages, *took
                )
            )

    def _rows_left(self) -> int:
        if self._left is None:
            self._left = sum([s.maybe.count for s in self.selections])
        return self._left

    def _note(self, chunks: Sequence[Chunk]) -> None:
        """Note that the indexes of these chunks are asked in this stage."""
        self._asked.update((chunk.row_group, chunk.node.column) for chunk in chunks)

    def _page_counts(self, asked: list[Selection]) -> tuple[int, int]:
        """The pages of the chunks whose index was asked: their number, and the number of pages that can still match."""
        before = after = 0
        selections = {selection.row_group: selection for selection in asked}
        for row_group, column in self._asked:
            selection = selections[row_group]
            locations = selection.locations.get(column)
            if locations is not None:
                before += len(locations)
                after += len(selection.maybe.pages(locations.first_rows))
        return before, after

    def _settle(self) -> None:
        """Combine the rows of the tests by the predicate, where a stage has learned something. Drop row groups without
        any row."""
        if not self._changed:
            return
        left = list[Selection]()
        possible = self._of_whole_groups(self.predicate)[0].tolist()
        for selection in self.selections:
            if not possible[selection.place]:
                continue
            if selection.place in self._changed:
                selection.maybe, selection.sure = self._combine(self.predicate, selection)
                inside = self._within.get(selection.row_group)
                if inside is not None:
                    selection.maybe, selection.sure = selection.maybe & inside, selection.sure & inside
                if not selection.maybe:
                    continue
            left.append(selection)
        self._changed.clear()
        self._left = None
        self.selections = left

    def _combine(self, predicate: Predicate, selection: Selection) -> tuple[RowRanges, RowRanges]:
        if isinstance(predicate, Test):
            return self._answers[predicate].rows(selection)
        if isinstance(predicate, Constant):
            rows, none = RowRanges.all(selection.num_rows), RowRanges.none(selection.num_rows)
            return (rows, rows) if predicate.value else (none, none)
        maybe, sure = self._combine(predicate.children[0], selection)
        for child in predicate.children[1:]:
            other_maybe, other_sure = self._combine(child, selection)
            if isinstance(predicate, And):
                maybe, sure = maybe & other_maybe, sure & other_sure
            else:
                maybe, sure = maybe | other_maybe, sure | other_sure
        return maybe, sure

    def _open_questions(self, having: Callable[[Test], Mask | None] | None = None) -> list[Question]:
        """(test, row group, chunk) wherever an index could still change the result. ``having``: gives for a test a mask
        of the row groups to ask about (``None``: none of them)."""
        masks: list[tuple[Test, list[bool]]] = []
        for test in self.tests:
            wanted = None if having is None else having(test)
            if having is None or wanted is not None:
                is_open = self._answers[test].is_open
                mask = (is_open if wanted is None else is_open & wanted).tolist()
                if any(mask):
                    masks.append((test, mask))
        if not masks:
            return []
        chunk = self.file.chunk
        return [
            (test, s, chunk(s.row_group, test.node))
            for s in self.selections
            if s.sure.count != s.maybe.count
            for test, mask in masks
            if mask[s.place]
        ]

    def _numbers(self, node: Node) -> ChunkNumbers:
        """The numbers of a tested leaf's chunks in all row groups."""
        return self._groups.numbers([test.node for test in self.tests], node)

    def _drop(self, test: Test, selection: Selection) -> None:
        self._answers[test].drop(selection)
        self._changed.add(selection.place)

    # ---- the stages

    def _stage_of_statistics(self) -> None:
        """Ask the statistics of all row groups at once."""
        groups = self._groups
        bounds_of = self._bounds
        for test in self.tests:
            if test.node not in bounds_of:
                bounds_of[test.node] = self._chunk_bounds(test.node)
            bounds = bounds_of[test.node]
            self._answers[test].take(*evaluate_bounds(test, bounds), kept_shares(test, bounds))
        self._select()
        asked = len(bounds_of) * len(groups)
        if asked:
            self.reports.append(
                StageReport(
                    "statistics", asked, len(groups), len(self.selections), groups.num_asked, self._rows_left(),
                    0, 0, 0, 0,
                )
            )  # fmt: skip

    def _chunk_bounds(self, node: Node) -> Bounds:
        """The bounds of a leaf from the statistics of its chunks, one entry per row group."""
        order, created_by = self.file.column_order(node), self.file.created_by
        self._numbers(node)
        if self._groups.all_placed(node) and not any(_asks_histograms(t) for t in self.tests if t.node is node):
            return bounds_of_numbers(node.type, self._groups.stack(node), self.file.footer.places, order, created_by)
        metas = [self.file.chunk(k, node).meta for k in self._groups.row_groups]
        return bounds_of_chunks(node.type, metas, order, created_by)

    def _bloom_probes(self) -> Probes:
        asked: list[tuple[Test, Selection, Probe]] = []
        hashes_of: dict[Test, list[list[int]] | None] = {}
        for test, selection, chunk in self._open_questions(self._have_filters):
            if test not in hashes_of:
                hashes_of[test] = probe_hashes(test)
            hashes = hashes_of[test]
            if hashes is not None:
                asked.append((test, selection, Probe(chunk, hashes)))
        return Probes(asked, Probing([probe for _, _, probe in asked], self.file.fetcher, self.options.limits))

    def _have_filters(self, test: Test) -> Mask | None:
        if not bloom_filter.can_prune(test.leaf):
            return None
        mask: Mask = self._numbers(test.node).bloom_filter_offset != 0
        return mask

    def _by_bloom(self) -> None:
        if self._probes is None and self._by_local_filters():
            return
        probes = self._probes or self._bloom_probes()
        self._note([probe.chunk for _, _, probe in probes.asked])
        probes.all.run()
        for test, selection, probe in probes.asked:
            if not probe.answer:
                self._drop(test, selection)

    def _by_local_filters(self) -> bool:
        """Ask the Bloom filters of a local file, all filters of a test in one call. Returns whether everything was
        asked. Encrypted and unusable filters are left for :meth:`_by_bloom`."""
        usable = True
        for test in self.tests:
            places = self._filters_to_ask(test)
            if places and self._groups.any_encrypted(test.node):
                return False
            hashes = probe_hashes(test) if places else None
            if hashes is None:
                continue
            numbers = self._numbers(test.node)
            offsets, lengths = numbers.bloom_filter_offset[places], numbers.bloom_filter_length[places]
            answers = probe_local(self.file.fetcher, offsets, lengths, hashes, self.options.limits)
            if answers is None:
                return False
            groups, column = self._groups.row_groups, test.node.column
            self._asked.update([(groups[place], column) for place in places])
            known = [place for place, answer in zip(places, answers.tolist(), strict=True) if answer == ABSENT]
            self._answers[test].drop_all(known)
            self._changed.update(known)
            usable &= UNUSABLE not in answers
        return usable

    def _filters_to_ask(self, test: Test) -> list[int]:
        """Positions of the row groups whose filter could change the answer to a test."""
        having = self._have_filters(test)
        if having is None:
            return []
        wanted = (self._answers[test].is_open & having).tolist()
        if not any(wanted):
            return []
        return [s.place for s in self.selections if wanted[s.place] and s.sure.count != s.maybe.count]

    def _dictionary_questions(self, before_index: bool) -> list[tuple[Test, Selection, Chunk]]:
        asked = []
        for test, selection, chunk in self._open_questions(self._have_dictionaries):
            size = dictionary_size(chunk)
            if size == 0:
                continue
            if before_index:
                index_size = chunk.numbers.column_index_length + chunk.numbers.offset_index_length
                if index_size and index_size < size and self.options.use_page_index:
                    continue  # the column index is cheaper: it goes first
            elif (test.node.column in selection.dictionaries) or chunk.size < 2 * size:
                continue  # asked already, or nearly the whole chunk
            asked.append((test, selection, chunk))
        return asked

    def _have_dictionaries(self, test: Test) -> Mask | None:
        """A mask of the chunks whose data pages all use the dictionary, and whose dictionary may hold no matching
        value. A chunk whose bound itself matches needs no such question."""
        if test.op not in VALUE_OPS:
            return None
        mask: Mask = (self._numbers(test.node).flags & ALL_DICTIONARY) != 0
        bounds = self._bounds.get(test.node)
        return mask if bounds is None or not mask.any() else mask & ~found_at_bounds(test, bounds)

    def _by_dictionary(self, before_index: bool) -> None:
        asked = self._dictionary_questions(before_index)
        self._note([chunk for _, _, chunk in asked])
        if asked and not before_index and pays(self.file.fetcher):
            # Held while the scan runs: these pages are read next, unless the dictionaries rule them out.
            dictionaries = list(dict.fromkeys((chunk.start, dictionary_size(chunk)) for _, _, chunk in asked))
            hold(self.file.fetcher, [dictionaries, self._filter_pages([selection for _, selection, _ in asked])])
        self._read_dictionaries([(selection, chunk) for _, selection, chunk in asked])
        for test, selection, chunk in asked:
            values = selection.dictionaries.get(chunk.node.column)
            if values is not None and not evaluate_dictionary(test, values, test.leaf):
                self._drop(test, selection)

    def _filter_pages(self, selections: Sequence[Selection]) -> list[Range]:
        """The pages of the filter columns that hold rows in question, where the places of pages are known."""
        found: list[Range] = []
        for selection in {s.row_group: s for s in selections}.values():
            for column in sorted(self.predicate.columns()):
                locations = selection.locations.get(column)
                if locations is not None:
                    chunk = self.file.chunk(selection.row_group, self.file.tree.leaves[column])
                    found += plan_column(chunk, selection.maybe, locations)[0].ranges
        return found

    def _read_dictionaries(self, asked: Sequence[tuple[Selection, Chunk]]) -> None:
        """Read each dictionary once, even if several tests ask for it."""
        missing = {
            (chunk.row_group, chunk.node.column): (selection, chunk)
            for selection, chunk in asked
            if chunk.node.column not in selection.dictionaries
        }
        ranges = [(chunk.start, dictionary_size(chunk)) for _, chunk in missing.values()]
        parts = self.file.fetcher.fetch(ranges) if ranges else []
        for (selection, chunk), data in zip(missing.values(), parts, strict=True):
            values = self._dictionary(chunk, data)
            if values is not None:
                self.dictionaries_decoded += 1
                selection.dictionaries[chunk.node.column] = values

    def _dictionary(self, chunk: Chunk, data: memoryview) -> Values | None:
        # (The first page may not be where the metadata say.)
        return decode_dictionary(data, chunk, self.options, self._account)

    def _have_page_index(self, test: Test) -> Mask | None:
        numbers = self._numbers(test.node)
        mask: Mask = (numbers.column_index_offset != 0) & (numbers.offset_index_offset != 0)
        return mask

    def _by_column_index(self) -> None:
        asked = self._open_questions(self._have_page_index)
        self._note([chunk for _, _, chunk in asked])
        chunks = list({(c.row_group, c.node.column): c for _, _, c in asked}.values())
        indexes = read_page_indexes(self.file, chunks)
        for test, selection, chunk in asked:
            index = indexes.get((chunk.row_group, chunk.node.column))
            if index is None:
                continue
            bounds, locations = index
            selection.locations[chunk.node.column] = locations
            some, every = evaluate_bounds(test, bounds)
            self._answers[test].narrow(selection, locations.first_rows, some, every)
            self._changed.add(selection.place)


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


def dictionary_size(chunk: Chunk) -> int:
    """Size of the dictionary page with its header, by the offsets in the metadata. 0 if there is none."""
    first, data = chunk.numbers.dictionary_page_offset, chunk.numbers.data_page_offset
    return int(data - first) if 0 < first < data <= chunk.end else 0
