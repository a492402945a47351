"""A whole column chunk decoded to be looked at: levels page by page, values without nulls, dictionary codes as codes.

Pages are opened and decoded in a way of its own, not by the native decoder: its mistakes must not hide themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.errors import CorruptFileError, ParquetError, located
from pyparq.format.encodings import DELTA_BYTE_ARRAY, DICTIONARY_ENCODINGS, encoding_name, rle
from pyparq.format.encodings.dictionary import as_bytes
from pyparq.format.leaf_values import BinaryValues, Values, count_of, empty_values, slice_of
from pyparq.format.order import FLOAT_KINDS, Order, SegmentBounds, segment_minmax, stored_dtype
from pyparq.kernels import KernelError
from pyparq.kernels.buffers import empty_results
from pyparq.maintenance.verify.builder import Builder, make_builder
from pyparq.maintenance.verify.page_runs import SpelledPage, Together
from pyparq.options import ReadOptions
from pyparq.read.decode.dictionary_entries import decode_entries
from pyparq.read.decode.memory_account import Share
from pyparq.read.decode.pages import Levels, PageBuffers, PageWalk, open_page, room_of
from pyparq.read.footers.column_chunk import Chunk

_NULL = np.zeros(1, np.uint8)
WAITING = 1 << 20
"""Bytes of pages, opened, levels included, that are looked at together."""

Int64Array = npt.NDArray[np.int64]
Int32Array = npt.NDArray[np.int32]


def take_values(values: Values, places: npt.NDArray[Any]) -> Values:
    """The values at these places."""
    if isinstance(values, BinaryValues):
        rows = np.ascontiguousarray(places, np.int64)
        return BinaryValues(*kernels.take_binary(values.offsets, values.data, rows))
    if places.dtype != np.int32:
        return np.asarray(values[places])
    out = np.empty((len(places), *values.shape[1:]), values.dtype)
    kernels.gather_fixed(as_bytes(values), values.itemsize * prod(values.shape[1:]), places, as_bytes(out))
    return out


def opened_pages(
    data: memoryview, chunk: Chunk, options: ReadOptions, share: Share
) -> Iterator[tuple[int, list[SpelledPage], Values | None]]:
    """Runs of data pages, opened: the ordinal of the first, the pages, and the dictionary as far as it has come. What
    they hold is gone with the next run."""
    buffers = PageBuffers()
    walk, together = PageWalk(data, chunk, options), Together(chunk, options, buffers, share)
    entries: Values | None = None
    together_pays = True
    while True:
        buffers.clear()
        if together_pays and (walk.at or chunk.first_page == 0):
            first = walk.ordinal
            try:
                opened = together.next(walk, WAITING)
            except ParquetError:  # what it is, and where, is said when it happens again
                opened = []
            if opened:
                yield first, opened, entries
                continue
            together_pays = walk.ordinal == 0
        page = walk.next_page()
        if page is None:
            return
        if page.ordinal == "dictionary":
            entries = decode_entries(page, chunk, options, share)
            if isinstance(entries, np.ndarray):  # where nothing is compressed, they stand in the file's bytes
                entries = np.require(entries, requirements="A")
            continue
        with located(page=page.ordinal):
            share.make_room(room_of(page, chunk.node))
            parts = open_page(page, chunk, options, buffers)
            levels = parts.num_levels, parts.rep_levels, parts.def_levels
        yield int(page.ordinal), [(*levels, parts.num_values, parts.encoding, parts.data)], entries
        together_pays = True


class ChunkValues:
    """The decoded pages of one column chunk. Arrays of counts have one entry per data page."""

    def __init__(self, data: memoryview, chunk: Chunk, options: ReadOptions, share: Share, num_pages: int = 0) -> None:
        """``num_pages``: of data, as far as that is known. What lies behind the last value are pages without any.

        Raises :class:`ParquetError`, with the page, where one does not decode."""
        self.chunk = chunk
        self.leaf = chunk.node.type
        self.entries: Values | None = None
        """Entries of the dictionary."""
        self.rep_levels: list[Levels | None] = []
        self.def_levels: list[Levels | None] = []
        self._tallied: tuple[Int32Array, Int64Array, Int64Array] | None = None
        self._histograms: dict[str, Int64Array] = {}
        self._share = share
        self._options = options
        self._num_levels: list[int] = []
        self._num_present: list[int] = []
        self._num_rows: list[int] = []
        self._codes: Int32Array = np.empty(0, np.int32)
        self._num_codes = 0
        self._builder: Builder | None = None
        self._is_coded: list[bool] = []
        self.has_shared_prefixes = False
        """A page is encoded as DELTA_BYTE_ARRAY."""
        for first, opened, entries in opened_pages(data, chunk, options, share):
            self.entries = entries
            for ordinal, page in enumerate(opened, first):
                try:
                    self._take(page)
                except ParquetError as error:
                    error.locate(page=ordinal)
                    raise
        for _ in range(len(self._num_levels), num_pages):
            self._take_none()
        self._settle()

    def _take(self, page: SpelledPage) -> None:
        num_levels, rep_levels, def_levels, present, encoding, data = page
        nested = rep_levels is not None
        if (
            present == 0 and not nested and self.chunk.node.max_def == 1
        ):  # a few bytes may stand for any number of nulls
            def_levels = np.broadcast_to(_NULL, num_levels)
        else:
            self._share.take(num_levels * (nested + (def_levels is not None)))
        self.rep_levels.append(rep_levels)
        self.def_levels.append(def_levels if present < num_levels or nested else None)
        self._num_levels.append(num_levels)
        self._num_present.append(present)
        self._num_rows.append(num_levels if rep_levels is None else int(np.count_nonzero(rep_levels == 0)))
        self._is_coded.append(encoding in DICTIONARY_ENCODINGS)
        try:
            if encoding in DICTIONARY_ENCODINGS:
                if self.entries is None:
                    raise CorruptFileError("the page is dictionary-encoded, but the chunk has no dictionary page")
                out = self._room_for_codes(present)
                rle.decode_indices(data, present, count_of(self.entries), out)
                self._num_codes += present
            else:
                self.has_shared_prefixes |= encoding == DELTA_BYTE_ARRAY
                self._make_builder().append_encoded(encoding, (data, present, None))
        except KernelError as error:
            raise CorruptFileError(f"bad {encoding_name(encoding)} data: {error}") from error

    def _take_none(self) -> None:
        """A page that holds no value."""
        for found in (self.rep_levels, self.def_levels):
            found.append(np.empty(0, np.uint8) if found and found[-1] is not None else None)
        for counts in (self._num_levels, self._num_present, self._num_rows):
            counts.append(0)
        self._is_coded.append(False)

    def _room_for_codes(self, count: int) -> Int32Array:
        """The next ``count`` codes, to be filled."""
        end = self._num_codes + count
        if end > len(self._codes):
            # A flat chunk says how many there are at most; one of lists may claim anything.
            expected = self.chunk.meta.num_values if self.chunk.node.max_rep == 0 else 0
            room = max(end, min(expected, 64 * self.chunk.size), 2 * len(self._codes))
            self._share.take(4 * room)
            larger = empty_results((room,), np.int32)
            larger[: self._num_codes] = self._codes[: self._num_codes]
            self._share.give(self._codes.nbytes)
            self._codes = larger
        return self._codes[self._num_codes : end]

    def _make_builder(self) -> Builder:
        if self._builder is None:
            meta, limits = self.chunk.meta, self._options.limits
            left = max(meta.num_values - sum(self._num_levels[:-1]), 0)
            room = min(max(meta.total_uncompressed_size, self.chunk.size), self.chunk.size * 64 + 1024) + 64
            self._builder = make_builder(self.leaf, left, room, limits.max_column, self._share)
        return self._builder

    def _settle(self) -> None:
        self.num_levels = np.array(self._num_levels, np.int64)
        self.num_present = np.array(self._num_present, np.int64)
        """Values that are not null."""
        self.num_rows = np.array(self._num_rows, np.int64)
        """Rows that start in each page."""
        self.first_rows = np.cumsum(self.num_rows) - self.num_rows
        coded = np.array(self._is_coded, bool)
        self.coded_pages, self.direct_pages = np.flatnonzero(coded), np.flatnonzero(~coded)
        """Pages of dictionary codes, and the others."""
        self.code_edges = _edges(self.num_present[self.coded_pages])
        self.value_edges = _edges(self.num_present[self.direct_pages])
        self.codes = self._codes[: self._num_codes]
        self.values: Values = empty_values(self.leaf) if self._builder is None else self._builder.values()
        """Those of pages that are not dictionary-encoded."""

    @property
    def num_pages(self) -> int:
        return len(self.num_levels)

    def page_values(self, page: int) -> Values:
        """The values of one page, nulls left out."""
        k = int(np.searchsorted(self.coded_pages, page))
        if k < len(self.coded_pages) and self.coded_pages[k] == page:
            assert self.entries is not None
            return take_values(self.entries, self.codes[self.code_edges[k] : self.code_edges[k + 1]])
        k = int(np.searchsorted(self.direct_pages, page))
        return slice_of(self.values, int(self.value_edges[k]), int(self.value_edges[k + 1]))

    def row_of(self, page: int, value: int) -> int:
        """The row that holds value number ``value`` of a page, nulls not counted."""
        defs, reps = self.def_levels[page], self.rep_levels[page]
        slot = value if defs is None else int(np.flatnonzero(defs == self.chunk.node.max_def)[value])
        before = slot if reps is None else int(np.count_nonzero(reps[: slot + 1] == 0)) - 1
        return int(self.first_rows[page]) + before

    def place_of_code(self, code: int) -> tuple[int, int]:
        """The first page and row with this dictionary code."""
        at = int(np.flatnonzero(self.codes == code)[0])
        k = int(np.searchsorted(self.code_edges, at, side="right")) - 1
        page = int(self.coded_pages[k])
        return page, self.row_of(page, at - int(self.code_edges[k]))

    def place_of_value(self, at: int) -> tuple[int, int]:
        """The page and row of value number ``at`` of those that are not dictionary-encoded."""
        k = int(np.searchsorted(self.value_edges, at, side="right")) - 1
        page = int(self.direct_pages[k])
        return page, self.row_of(page, at - int(self.value_edges[k]))

    # ---- what all pages say

    @property
    def _tally(self) -> tuple[Int32Array, Int64Array, Int64Array]:
        """Of pages of codes: the codes that each page uses, where each page's begin, and what all of its values weigh:
        bytes for byte arrays, NaN for floats."""
        if self._tallied is None:
            count = 0 if self.entries is None else count_of(self.entries)
            self._tallied = kernels.tally_codes(self.codes, self.code_edges, count, self._weights())
        return self._tallied

    def _weights(self) -> Int32Array | None:
        if isinstance(self.entries, BinaryValues):
            return np.diff(self.entries.offsets).astype(np.int32)
        if self.entries is None or self.leaf.kind not in FLOAT_KINDS:
            return None
        dtype = stored_dtype(self.leaf)
        assert dtype is not None
        is_nan = np.isnan(self.entries.reshape(-1).view(dtype))
        return is_nan.astype(np.int32) if is_nan.any() else None

    @property
    def used_codes(self) -> Int64Array:
        """Codes that occur, ascending."""
        seen = np.zeros(0 if self.entries is None else count_of(self.entries), bool)
        seen[self._tally[0]] = True
        return np.flatnonzero(seen)

    def page_bounds(self, order: Order) -> SegmentBounds:
        """The true bounds and NaN counts of each page, as a writer would find them under ``order``."""
        mins: list[bytes | None] = [None] * self.num_pages
        maxs: list[bytes | None] = [None] * self.num_pages
        nans = np.zeros(self.num_pages, np.int64) if self.leaf.kind in FLOAT_KINDS else None
        for pages, part in ((self.coded_pages, self._coded_bounds(order)), (self.direct_pages, self._bounds(order))):
            for k, page in enumerate(pages.tolist()):
                mins[page], maxs[page] = part.mins[k], part.maxs[k]
            if nans is not None and part.nan_counts is not None:
                nans[pages] = part.nan_counts
        return SegmentBounds(mins, maxs, nans)

    def _bounds(self, order: Order) -> SegmentBounds:
        return segment_minmax(self.leaf, self.values, self.value_edges, order)

    def _coded_bounds(self, order: Order) -> SegmentBounds:
        """Each page's bounds are those of the entries that it uses."""
        if self.entries is None or not len(self.coded_pages):
            return SegmentBounds([], [], None)
        used, edges, weights = self._tally
        found = segment_minmax(self.leaf, take_values(self.entries, used), edges, order)
        if found.nan_counts is not None:
            found.nan_counts = weights
        return found

    @property
    def byte_counts(self) -> Int64Array:
        """Bytes of each page's values, for a leaf of byte arrays."""
        found = np.zeros(self.num_pages, np.int64)
        if isinstance(self.values, BinaryValues):
            found[self.direct_pages] = np.diff(self.values.offsets[self.value_edges].astype(np.int64))
        if isinstance(self.entries, BinaryValues):
            found[self.coded_pages] = self._tally[2]
        return found

    @property
    def def_histograms(self) -> Int64Array:
        """How often each definition level occurs in each page."""
        return self._histogram("definition", self.def_levels, self.chunk.node.max_def)

    @property
    def rep_histograms(self) -> Int64Array:
        """How often each repetition level occurs in each page."""
        return self._histogram("repetition", self.rep_levels, self.chunk.node.max_rep)

    def _histogram(self, kind: str, levels: list[Levels | None], maximum: int) -> Int64Array:
        if kind in self._histograms:
            return self._histograms[kind]
        counts = self._histograms[kind] = np.zeros((self.num_pages, maximum + 1), np.int64)
        for page, (found, count) in enumerate(zip(levels, self._num_levels, strict=True)):
            if found is None:
                counts[page, maximum] = count
            else:
                counts[page, 1:] = [np.count_nonzero(found == level) for level in range(1, maximum + 1)]
                counts[page, 0] = count - counts[page].sum()
        return counts


def _edges(counts: Int64Array) -> Int64Array:
    edges = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=edges[1:])
    return edges
