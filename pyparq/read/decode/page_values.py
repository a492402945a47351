"""The contents of some pages of a column chunk: levels page by page, values without nulls, dictionary codes."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.format.leaf_values import BinaryValues, Values, as_bytes, count_of, size_of, slice_of
from pyparq.format.order import FLOAT_KINDS, Order, SegmentBounds, segment_minmax, stored_dtype
from pyparq.format.schema_node import Node

Levels = npt.NDArray[np.uint8]
Int64Array = npt.NDArray[np.int64]
Int32Array = npt.NDArray[np.int32]

_NULL = np.zeros(1, np.uint8)
_ALL_NULL = -2
"""In place of the start of a page's levels: all of them are 0. Any other negative number: all are the maximum."""


class PageRun(NamedTuple):
    """Pages as the native decoder gives them."""

    numbers: Int64Array
    """pages x 5: levels, values that are present, rows, where repetition and definition levels begin."""
    is_coded: npt.NDArray[np.bool_]
    rep_levels: Levels
    def_levels: Levels
    codes: Int32Array
    values: Values
    has_shared_prefixes: bool


class PageValues:
    """Decoded pages of one column chunk. Arrays of counts are int64, one entry per data page."""

    def __init__(self, node: Node, run: PageRun, entries: Values | None) -> None:
        self.node = node
        self.leaf = node.type
        self.entries = entries
        """Entries of the dictionary."""
        self.num_levels, self.num_present, self.num_rows, reps, defs = run.numbers.T.copy()
        """Values of each page, those that are not null, and rows that start in the page."""
        self.rep_levels = self._split(run.rep_levels, reps)
        """Of each page; ``None`` when nothing repeats."""
        self.def_levels = self._split(run.def_levels, defs)
        """Of each page; ``None`` when every value is present."""
        self.coded_pages, self.direct_pages = run.is_coded.nonzero()[0], (~run.is_coded).nonzero()[0]
        """Pages of dictionary codes, and the others."""
        self.code_edges = _edges(self.num_present[self.coded_pages])
        self.value_edges = _edges(self.num_present[self.direct_pages])
        self.codes = run.codes
        self.values = run.values
        """Those of pages that are not dictionary-encoded."""
        self.has_shared_prefixes = run.has_shared_prefixes
        """A page is encoded as DELTA_BYTE_ARRAY."""
        self.size = sum(a.nbytes for a in (run.rep_levels, run.def_levels, run.codes)) + size_of(run.values)
        """Bytes of memory, those of the entries left out."""
        self._tallied: tuple[Int32Array, Int64Array, Int64Array] | None = None
        self._histograms: dict[str, Int64Array] = {}

    def _split(self, levels: Levels, starts: Int64Array) -> list[Levels | None]:
        found: list[Levels | None] = []
        for start, count in zip(starts.tolist(), self.num_levels.tolist(), strict=True):
            if start >= 0:
                found.append(levels[start : start + count])
            else:
                found.append(np.broadcast_to(_NULL, count) if start == _ALL_NULL else None)
        return found

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

    @property
    def _tally(self) -> tuple[Int32Array, Int64Array, Int64Array]:
        """For pages of codes: the codes that each page uses, the start of each page's codes, and the total size of all
        its values (bytes for byte arrays, NaN for floats)."""
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
        """The codes that occur, ascending."""
        seen = np.zeros(0 if self.entries is None else count_of(self.entries), bool)
        seen[self._tally[0]] = True
        return np.flatnonzero(seen)

    def page_bounds(self, order: Order) -> SegmentBounds:
        """The true bounds and NaN counts of each page, as a writer would compute them under ``order``."""
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
        """The bounds of each page are those of the entries that it uses."""
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
        """How often each definition level occurs in each page: pages x (maximum + 1)."""
        return self._histogram("definition", self.def_levels, self.node.max_def)

    @property
    def rep_histograms(self) -> Int64Array:
        """How often each repetition level occurs in each page: pages x (maximum + 1)."""
        return self._histogram("repetition", self.rep_levels, self.node.max_rep)

    def _histogram(self, kind: str, levels: list[Levels | None], maximum: int) -> Int64Array:
        if kind in self._histograms:
            return self._histograms[kind]
        counts = self._histograms[kind] = np.zeros((self.num_pages, maximum + 1), np.int64)
        for page, (found, count) in enumerate(zip(levels, self.num_levels.tolist(), strict=True)):
            if found is None:
                counts[page, maximum] = count
            else:
                counts[page, 1:] = [np.count_nonzero(found == level) for level in range(1, maximum + 1)]
                counts[page, 0] = count - counts[page].sum()
        return counts


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


def _edges(counts: Int64Array) -> Int64Array:
    edges = np.zeros(len(counts) + 1, np.int64)
    counts.cumsum(out=edges[1:])
    return edges
