"""The stages of pruning that read: Bloom filters, dictionaries, page indexes. Each asks one kind of index about the
rows that can still match, and notes the answers with the :class:`~pyparq.read.plan.candidates.Candidates`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pyparq.filters.computed import Computed
from pyparq.filters.leaf_tests import Test
from pyparq.format.leaf_values import Values
from pyparq.index.page_index import PageLocations
from pyparq.index.statistics import Bounds
from pyparq.io.byte_ranges import Range
from pyparq.read.decode.chunk_pages import decode_dictionary
from pyparq.read.decode.memory_account import Account
from pyparq.read.footers.chunks import Chunk
from pyparq.read.plan.ahead import chosen, hold
from pyparq.read.plan.bloom_probe import ABSENT, UNUSABLE, Probe, Probing, probe_local
from pyparq.read.plan.candidates import Candidates, Question, Selection
from pyparq.read.plan.page_indexes import read_page_indexes
from pyparq.read.plan.page_reads import plan_column
from pyparq.runtime.threads import map_tasks

FEW_DICTIONARIES = 32
"""Up to so many dictionaries are asked, however small their chunks are."""
SMALL_CHUNK = 64 << 10
"""More of them are not asked if their chunks have no more stored bytes, as the mean of all."""
LARGE_DICTIONARY = 64 << 10
"""Dictionaries of so many stored bytes, as the mean of all, are decoded on several threads."""

# ---- Bloom filters


class BloomStage:
    """Rules out row groups whose Bloom filters have none of the values that a test asks for."""

    def __init__(self, rows: Candidates) -> None:
        self._rows = rows
        self._known: tuple[list[tuple[Test, Selection, Probe]], Probing] | None = None

    @property
    def num_filters(self) -> int:
        """Filters that :meth:`run` will ask, if :meth:`ranges` was called."""
        return 0 if self._known is None else len(self._known[0])

    def ranges(self, room: Callable[[Chunk, int], int]) -> list[Range]:
        """The byte ranges that :meth:`run` will ask for. ``room``: bytes that a filter of unknown length can have, by
        its column chunk and place."""
        self._known = self._probes()
        return self._known[1].ranges(room)

    def _probes(self) -> tuple[list[tuple[Test, Selection, Probe]], Probing]:
        asked: list[tuple[Test, Selection, Probe]] = []
        hashes_of: dict[Test, list[list[int]] | None] = {}
        for test, selection, chunk in self._rows.open_questions(self._rows.with_filters):
            if test not in hashes_of:
                hashes_of[test] = test.hashes()
            hashes = hashes_of[test]
            if hashes is not None:
                asked.append((test, selection, Probe(chunk, hashes)))
        file = self._rows.file
        return asked, Probing([probe for _, _, probe in asked], file.fetcher, file.options.limits)

    def run(self) -> None:
        """Ask the filters of the tests and row groups that are open."""
        if self._known is None and self._ask_local_filters():
            return
        asked, probing = self._known or self._probes()
        self._rows.note([probe.chunk for _, _, probe in asked])
        probing.run()
        for test, selection, probe in asked:
            if not probe.answer:
                self._rows.drop(test, selection)

    def _ask_local_filters(self) -> bool:
        """Ask the Bloom filters of a local file, all filters of a test in one call. Returns whether everything was
        asked. Encrypted and unusable filters are left for :meth:`run`."""
        rows, usable = self._rows, True
        for test in rows.tests:
            places = self._filters_to_ask(test)
            if places and rows.table.encrypted[:, rows.places[test.node.column]].any():
                return False
            hashes = test.hashes() if places else None
            if hashes is None:
                continue
            numbers = rows.numbers[test.node]
            offsets, lengths = numbers.bloom_filter_offset[places], numbers.bloom_filter_length[places]
            answers = probe_local(rows.file.fetcher, offsets, lengths, hashes, rows.options.limits)
            if answers is None:
                return False
            rows.asked.update([(rows.row_groups[place], test.node.column) for place in places])
            known = [place for place, answer in zip(places, answers.tolist(), strict=True) if answer == ABSENT]
            rows.answers[test].drop_all(known)
            rows.changed.update(known)
            usable &= UNUSABLE not in answers
        return usable

    def _filters_to_ask(self, test: Test) -> list[int]:
        """Positions of the row groups whose filter could change the answer to a test."""
        wanted = (self._rows.answers[test].is_open & self._rows.with_filters(test)).tolist()
        return [s.place for s in self._rows.selections if wanted[s.place] and s.sure.count != s.maybe.count]


# ---- dictionaries


class DictionaryStage:
    """Rules out row groups whose dictionaries have no value that passes a test."""

    def __init__(self, rows: Candidates, account: Account) -> None:
        self._rows = rows
        self._account = account
        """Counts the decoded dictionaries."""
        self.decoded = 0

    def ranges(self, before_index: bool) -> list[Range]:
        """The byte ranges that :meth:`run` will ask for, each once."""
        return _ranges(self._questions(before_index))

    def _questions(self, before_index: bool) -> list[Question]:
        asked: list[Question] = []
        for test, selection, chunk in self._rows.open_questions(self._rows.with_dictionaries):
            size = _size(chunk)
            if size == 0:
                continue
            if before_index:
                index_size = chunk.numbers.column_index_length + chunk.numbers.offset_index_length
                if index_size and index_size < size and self._rows.options.use_page_index:
                    continue  # the column index is cheaper: it goes first
            elif (test.node.column in selection.dictionaries) or chunk.size < 2 * size:
                continue  # asked already, or nearly the whole chunk
            asked.append((test, selection, chunk))
        if len(asked) > FEW_DICTIONARIES and not self._rows.file.fetcher.is_slow:
            # Decoding many small chunks takes less time than asking their dictionaries. In a store, bytes count more.
            return [] if sum(chunk.size for _, _, chunk in asked) <= SMALL_CHUNK * len(asked) else asked
        return asked

    def run(self, before_index: bool) -> None:
        """Ask the dictionaries. ``before_index``: those that are cheaper than the page index; otherwise the others."""
        asked = self._questions(before_index)
        if not asked:
            return
        self._rows.note([chunk for _, _, chunk in asked])
        if not before_index and self._rows.file.fetcher.is_slow:
            # Held while the scan runs: these pages are read next, unless the dictionaries rule them out.
            pages = self._filter_pages([selection for _, selection, _ in asked])
            hold(self._rows.file.fetcher, chosen([_ranges(asked), pages]))
        self._read_dictionaries([(selection, chunk) for _, selection, chunk in asked])
        for test, selection, chunk in asked:
            values = selection.dictionaries.get(chunk.node.column)
            if values is not None and not test.may_be_among(values, test.leaf):
                self._rows.drop(test, selection)

    def _filter_pages(self, selections: Sequence[Selection]) -> list[Range]:
        """The pages of the filter columns that hold rows in question, where the places of pages are known."""
        found: list[Range] = []
        for selection in {s.row_group: s for s in selections}.values():
            for column in sorted(self._rows.columns):
                locations = selection.locations.get(column)
                if locations is not None:
                    chunk = self._rows.file.chunk(selection.row_group, self._rows.file.tree.leaves[column])
                    found += plan_column(chunk, selection.maybe, locations)[0].ranges
        return found

    def _read_dictionaries(self, asked: Sequence[tuple[Selection, Chunk]]) -> None:
        """Read each dictionary once, even if several tests ask for it."""
        missing = {
            (chunk.row_group, chunk.node.column): (selection, chunk)
            for selection, chunk in asked
            if chunk.node.column not in selection.dictionaries
        }
        ranges = [(chunk.start, _size(chunk)) for _, chunk in missing.values()]
        parts = self._rows.file.fetcher.fetch_indexes(ranges) if ranges else []
        large = sum(size for _, size in ranges) >= LARGE_DICTIONARY * len(ranges)
        pages = [(chunk, data) for (_, chunk), data in zip(missing.values(), parts, strict=True)]
        found = map_tasks(self._dictionary, pages, large and self._rows.options.use_threads)
        for (selection, chunk), values in zip(missing.values(), found, strict=True):
            if values is not None:
                self.decoded += 1
                selection.dictionaries[chunk.node.column] = values

    def _dictionary(self, page: tuple[Chunk, memoryview]) -> Values | None:
        # The first page may not be where the metadata say.
        chunk, data = page
        return decode_dictionary(data, chunk, self._rows.options, self._account)


def _ranges(asked: Sequence[Question]) -> list[Range]:
    return list(dict.fromkeys((chunk.start, _size(chunk)) for _, _, chunk in asked))


def _size(chunk: Chunk) -> int:
    """Size of the dictionary page with its header, by the offsets in the metadata. 0 if there is none."""
    first, data = chunk.numbers.dictionary_page_offset, chunk.numbers.data_page_offset
    return int(data - first) if 0 < first < data <= chunk.end else 0


# ---- page indexes


def ask_page_indexes(rows: Candidates) -> None:
    """Narrow row groups to the rows of those pages whose bounds let a test pass."""
    asked, computed = rows.open_questions(rows.with_page_indexes), rows.computed_questions()
    if not asked and not computed:
        return
    wanted = [chunk for _, _, chunk in asked] + [chunk for _, _, chunks in computed for chunk in chunks]
    rows.note(wanted)
    indexes = read_page_indexes(rows.file, list({(c.row_group, c.node.column): c for c in wanted}.values()))
    for test, selection, chunk in asked:
        index = indexes.get((chunk.row_group, chunk.node.column))
        if index is not None:
            bounds, locations = index
            selection.locations[chunk.node.column] = locations
            some, every = test.verdict(bounds)
            rows.answers[test].narrow(selection, locations.first_rows, some, every)
            rows.changed.add(selection.place)
    for value_test, selection, own in computed:
        found = [indexes.get((chunk.row_group, chunk.node.column)) for chunk in own]
        _narrow_computed(rows, value_test, selection, [index for index in found if index is not None])


def _narrow_computed(
    rows: Candidates, test: Computed, selection: Selection, indexes: Sequence[tuple[Bounds, PageLocations]]
) -> None:
    """Narrow by the pages of several columns, which need not end at the same rows: their parts do."""
    if len(indexes) < len(test.nodes):
        return
    starts = np.unique(np.concatenate([locations.first_rows for _, locations in indexes]))
    bounds = {}
    for node, (of_pages, locations) in zip(test.nodes, indexes, strict=True):
        bounds[node] = of_pages.at(np.searchsorted(locations.first_rows, starts, "right") - 1)
        selection.locations[node.column] = locations
    some = test.can_pass(bounds)
    if not some.all():
        rows.answers[test].narrow(selection, starts, some, np.zeros(len(some), np.bool_))
        rows.changed.add(selection.place)


def page_counts(rows: Candidates, asked: Sequence[Selection]) -> tuple[int, int]:
    """The pages of the chunks whose index was asked: their number, and the number of pages that can still match."""
    before = after = 0
    selections = {selection.row_group: selection for selection in asked}
    for row_group, column in rows.asked:
        selection = selections[row_group]
        locations = selection.locations.get(column)
        if locations is not None:
            before += len(locations)
            after += len(selection.maybe.pages(locations.first_rows))
    return before, after
