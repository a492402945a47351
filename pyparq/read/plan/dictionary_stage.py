"""The stage of pruning that asks dictionaries whether any value of a column chunk can match."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyparq.filters.leaf_tests import VALUE_OPS, Test, evaluate_dictionary, found_at_bounds
from pyparq.format.chunk_numbers import ALL_DICTIONARY
from pyparq.format.leaf_values import Values
from pyparq.io.byte_ranges import Range
from pyparq.read.decode.dictionary_entries import decode_dictionary
from pyparq.read.decode.memory_account import Account
from pyparq.read.footers.chunk_table import Mask
from pyparq.read.footers.column_chunk import Chunk
from pyparq.read.plan.candidates import Candidates, Question
from pyparq.read.plan.joint_requests import chosen, hold, pays
from pyparq.read.plan.page_reads import plan_column
from pyparq.read.plan.row_groups import Selection
from pyparq.runtime.threads import map_tasks

FEW = 32
"""Up to so many dictionaries are asked, however small their chunks are."""
SMALL = 64 << 10
"""More of them are not asked if their chunks have no more stored bytes, as the mean of all."""
LARGE = 64 << 10
"""Dictionaries of so many stored bytes, as the mean of all, are decoded on several threads."""


class DictionaryStage:
    """Rules out row groups whose dictionaries have no value that passes a test."""

    def __init__(self, rows: Candidates, account: Account, columns: Collection[int]) -> None:
        self._rows = rows
        self._account = account
        """Counts the decoded dictionaries."""
        self._columns = columns
        """The columns that will be read for the filter. Those of other tests only have bounds that are worth it."""
        self.decoded = 0

    def ranges(self, before_index: bool) -> list[Range]:
        """The byte ranges that :meth:`run` will ask for, each once."""
        return _ranges(self._questions(before_index))

    def _questions(self, before_index: bool) -> list[Question]:
        asked = []
        for test, selection, chunk in self._rows.open_questions(self._have_dictionaries):
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
        return [] if self._are_many_and_small(asked) else asked

    def _are_many_and_small(self, asked: Sequence[Question]) -> bool:
        """Whether decoding the chunks takes less time than asking their dictionaries. In a store, bytes count more."""
        if len(asked) <= FEW or pays(self._rows.file.fetcher):
            return False
        return sum(chunk.size for _, _, chunk in asked) <= SMALL * len(asked)

    def _have_dictionaries(self, test: Test) -> Mask | None:
        """A mask of the chunks whose data pages all use the dictionary, and whose dictionary may hold no matching
        value. A chunk whose bound itself matches needs no such question."""
        if test.op not in VALUE_OPS or test.node.column not in self._columns:
            return None
        mask: Mask = (self._rows.numbers(test.node).flags & ALL_DICTIONARY) != 0
        bounds = self._rows.bounds.get(test.node)
        return mask if bounds is None or not mask.any() else mask & ~found_at_bounds(test, bounds)

    def run(self, before_index: bool) -> None:
        """Ask the dictionaries. ``before_index``: those that are cheaper than the page index; otherwise the others."""
        asked = self._questions(before_index)
        self._rows.note([chunk for _, _, chunk in asked])
        if asked and not before_index and pays(self._rows.file.fetcher):
            # Held while the scan runs: these pages are read next, unless the dictionaries rule them out.
            pages = self._filter_pages([selection for _, selection, _ in asked])
            hold(self._rows.file.fetcher, chosen([_ranges(asked), pages]))
        self._read_dictionaries([(selection, chunk) for _, selection, chunk in asked])
        for test, selection, chunk in asked:
            values = selection.dictionaries.get(chunk.node.column)
            if values is not None and not evaluate_dictionary(test, values, test.leaf):
                self._rows.drop(test, selection)

    def _filter_pages(self, selections: Sequence[Selection]) -> list[Range]:
        """The pages of the filter columns that hold rows in question, where the places of pages are known."""
        found: list[Range] = []
        for selection in {s.row_group: s for s in selections}.values():
            for column in sorted(self._columns):
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
        large = sum(size for _, size in ranges) >= LARGE * len(ranges)
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
