"""The stages of pruning: statistics, Bloom filters, dictionaries, page indexes. Each asks one kind of index about the
rows that can still match, and notes the answers with the :class:`~pyparq.read.plan.candidates.Candidates`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.filters.computed import Computed
from pyparq.filters.leaf_tests import VALUE_OPS, Test, is_box_test, may_intersect
from pyparq.format.chunk_numbers import ALL_DICTIONARY
from pyparq.format.leaf_values import Values
from pyparq.format.schema_node import Node
from pyparq.index import bloom_filter
from pyparq.index.page_index import PageLocations
from pyparq.index.statistics import Bounds, bounds_of_chunks, bounds_of_numbers
from pyparq.io.byte_ranges import Range
from pyparq.read.decode.chunk_pages import decode_dictionary
from pyparq.read.decode.memory_account import Account
from pyparq.read.footers.chunks import Chunk, Mask
from pyparq.read.plan.ahead import chosen, hold, is_slow_to_ask
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

Shares = npt.NDArray[np.float64]

USELESS = 0.95
"""From this share on no index is read for a test, as it can save a twentieth of the pages at most."""

UNKNOWN = 0.5


# ---- statistics


def ask_statistics(rows: Candidates) -> int:
    """Drop row groups whose statistics, which the footer holds, say that no row can match. Returns the number of column
    chunks that were asked."""
    known = rows.bounds
    for test in rows.tests:
        if test.node not in known:
            known[test.node] = _chunk_bounds(rows, test.node)
        bounds = known[test.node]
        some, every = test.verdict(bounds)
        if is_box_test(test):
            chunks = [rows.file.chunk(k, test.node) for k in rows.row_groups]
            some &= may_intersect(test, [chunk.meta.geospatial_statistics for chunk in chunks])
        rows.answers[test].take(some, every, kept_shares(test, bounds) < USELESS)
    for computed in rows.computed:
        for node in computed.nodes:
            if node not in known:
                known[node] = _chunk_bounds(rows, node)
        rows.answers[computed].some = computed.can_pass(known)
    rows.select()
    return len(known) * len(rows.row_groups)


def _chunk_bounds(rows: Candidates, node: Node) -> Bounds:
    """The bounds of a leaf from the statistics of its chunks, one entry per row group."""
    file, table, place = rows.file, rows.table, rows.places[node.column]
    order, created_by = file.column_order(node), file.created_by
    # Counts of levels answer some tests better than bounds. Bounds of unusual chunks do not lie in the footer in clear.
    histograms = node.max_rep > 0 or any(test.asks_levels for test in rows.tests if test.node is node)
    if not histograms and not table.odd[:, place].any():
        return bounds_of_numbers(node.type, table.stack_of(place), file.footer.places, order, created_by)
    return bounds_of_chunks(node.type, [file.chunk(k, node).meta for k in rows.row_groups], order, created_by)


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
        for test, selection, chunk in self._rows.open_questions(self._have_filters):
            if test not in hashes_of:
                hashes_of[test] = test.hashes()
            hashes = hashes_of[test]
            if hashes is not None:
                asked.append((test, selection, Probe(chunk, hashes)))
        file = self._rows.file
        return asked, Probing([probe for _, _, probe in asked], file.fetcher, file.options.limits)

    def _have_filters(self, test: Test) -> Mask | None:
        mask: Mask = self._rows.numbers[test.node].bloom_filter_offset != 0
        return mask if mask.any() and bloom_filter.can_prune(test.leaf) else None

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
        having = self._have_filters(test)
        if having is None:
            return []
        wanted = (self._rows.answers[test].is_open & having).tolist()
        return [s.place for s in self._rows.selections if wanted[s.place] and s.sure.count != s.maybe.count]


# ---- dictionaries


class DictionaryStage:
    """Rules out row groups whose dictionaries have no value that passes a test."""

    def __init__(self, rows: Candidates, account: Account, columns: Collection[int]) -> None:
        self._rows = rows
        self._account = account
        """Counts the decoded dictionaries."""
        self._columns = columns
        """The columns that will be read for the filter. Those of other tests only have bounds that are worth it."""
        self.decoded = 0
        self._has_none = False
        """No dictionary can tell anything, and later ones cannot either: questions only become fewer."""

    def ranges(self, before_index: bool) -> list[Range]:
        """The byte ranges that :meth:`run` will ask for, each once."""
        return _ranges(self._questions(before_index))

    def _questions(self, before_index: bool) -> list[Question]:
        asked: list[Question] = []
        if self._has_none:
            return asked
        opened = self._rows.open_questions(self._have_dictionaries)
        self._has_none = not opened
        for test, selection, chunk in opened:
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
        if len(asked) > FEW_DICTIONARIES and not is_slow_to_ask(self._rows.file.fetcher):
            # Decoding many small chunks takes less time than asking their dictionaries. In a store, bytes count more.
            return [] if sum(chunk.size for _, _, chunk in asked) <= SMALL_CHUNK * len(asked) else asked
        return asked

    def _have_dictionaries(self, test: Test) -> Mask | None:
        """A mask of the chunks whose data pages all use the dictionary, and whose dictionary may hold no matching
        value. A chunk whose bound itself matches needs no such question."""
        if test.op not in VALUE_OPS or test.node.column not in self._columns:
            return None
        mask: Mask = (self._rows.numbers[test.node].flags & ALL_DICTIONARY) != 0
        bounds = self._rows.bounds.get(test.node)
        return mask if bounds is None or not mask.any() else mask & ~test.found_at_bounds(bounds)

    def run(self, before_index: bool) -> None:
        """Ask the dictionaries. ``before_index``: those that are cheaper than the page index; otherwise the others."""
        asked = self._questions(before_index)
        if not asked:
            return
        self._rows.note([chunk for _, _, chunk in asked])
        if not before_index and is_slow_to_ask(self._rows.file.fetcher):
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

    def have_both(test: Test) -> Mask:
        numbers, bounds = rows.numbers[test.node], rows.bounds.get(test.node)
        mask: Mask = (numbers.column_index_offset != 0) & (numbers.offset_index_offset != 0)
        # The statistics of a chunk of one page say what its index says.
        return mask if bounds is None else mask & ((numbers.data_pages != 1) | ~bounds.has_bounds)

    asked, computed = rows.open_questions(have_both), rows.computed_questions()
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


# ---- the share of rows that a test is likely to keep


def kept_shares(test: Test, bounds: Bounds) -> Shares:
    """A share between 0 and 1 for each part of ``bounds`` (float64). Values are assumed to be spread evenly between
    their bounds."""
    if test.asks_levels:
        return np.full(len(bounds), UNKNOWN)
    if test.none:
        return np.ones(len(bounds))  # few lists hold one given value
    if test.op in ("==", "in", "is_nan"):
        return np.zeros(len(bounds))
    counts, nulls = bounds.counts, bounds.null_counts
    known = (counts > 0) & (nulls >= 0)
    null_shares = np.where(known, nulls / np.maximum(counts, 1), 0.0)
    if test.op == "is_null":
        return null_shares
    present = 1.0 - null_shares
    if test.op in ("!=", "not in", "not starts_with", "not intersects box", "is_not_null", "is_not_nan"):
        return present
    if test.op == "intersects box":
        return np.full(len(bounds), UNKNOWN)
    if test.op == "starts_with":
        return np.where(bounds.has_bounds, UNKNOWN * present, UNKNOWN)
    below = _positions(bounds, test.literal)
    share = present * (below if test.op in ("<", "<=") else 1.0 - below)
    return np.where(bounds.has_bounds, share, UNKNOWN)


def _positions(bounds: Bounds, literal: Any) -> Shares:
    """The position of a literal between the two bounds of each part: 0 at the lower bound, 1 at the upper."""
    if bounds.mins.dtype == np.dtype(object):  # bytes, or integers of any length
        found = [_position(low, high, literal) for low, high in zip(bounds.mins, bounds.maxs, strict=True)]
        return np.array(found, np.float64)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        low, high = bounds.mins.astype(np.float64), bounds.maxs.astype(np.float64)
        spread = high - low
        places = (float(literal) - low) / spread
    usable = (spread > 0) & np.isfinite(spread)
    return np.where(usable, np.clip(np.where(usable, places, 0.0), 0.0, 1.0), UNKNOWN)


def _position(low: Any, high: Any, literal: Any) -> float:
    if isinstance(low, bytes):
        low, high, literal = _as_numbers(low, high, literal)
    try:
        low, high, literal = float(low), float(high), float(literal)
    except OverflowError:
        return UNKNOWN
    if not high > low or not isfinite(high - low):
        return UNKNOWN
    return min(max(float((literal - low) / (high - low)), 0.0), 1.0)


def _as_numbers(low: bytes, high: bytes, literal: bytes) -> tuple[int, int, int]:
    """The eight bytes behind the common prefix of both bounds, as numbers."""
    common = 0
    for a, b in zip(low, high, strict=False):
        if a != b:
            break
        common += 1
    if literal[:common] != low[:common]:
        return 0, 1, 0 if literal < low else 1
    part = slice(common, common + 8)
    first, second, third = (int.from_bytes(x[part].ljust(8, b"\0"), "big") for x in (low, high, literal))
    return first, second, third
