"""The pages of a column chunk one by one: their headers and contents, as the native decoder finds them.

A scan does not ask for single pages. ``verify``, ``add_indexes`` and pruning by dictionaries do.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.errors import CorruptFileError, ParquetError, located
from pyparq.format.compression import DELTA_BYTE_ARRAY, DICTIONARY_ENCODINGS
from pyparq.format.leaf_values import (
    BinaryValues,
    Values,
    as_bytes,
    count_of,
    empty_values,
    from_plain_bytes,
    size_of,
    slice_of,
)
from pyparq.format.order import FLOAT_KINDS, Int64Array, Order, SegmentBounds, segment_minmax, stored_dtype
from pyparq.format.schema_node import Node
from pyparq.format.types import LeafType, Physical
from pyparq.options import ReadOptions
from pyparq.read.decode.arrow_columns import check_utf8
from pyparq.read.decode.decoder import Piece, limits_of, page_of, spec_of, worded
from pyparq.read.decode.memory_account import WITHOUT_END, Account, Share
from pyparq.read.footers.chunks import Chunk

DATA_PAGE, INDEX_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = 0, 1, 2, 3
"""Numbers of ``PageType`` in parquet.thrift."""

_GRANT = 1 << 20
"""Minimum number of bytes that the decoder gets when it asks for memory, if that many are left."""


class ChunkPages:
    """The pages in ``data``, which starts with the first page of ``chunk``.

    Pages are listed until they hold the values that the chunk declares; with ``to_the_end``, to the end of ``data``.
    What cannot be a page behind that many values is left alone. What is decoded is counted in ``share``.
    """

    def __init__(
        self, data: memoryview, chunk: Chunk, options: ReadOptions, share: Share | Account, to_the_end: bool = False
    ) -> None:
        self.data = data
        self.chunk = chunk
        self.fault: ParquetError | None = None
        """Why the list ends early."""
        self._share = share
        self._granted = 0
        leaf, self._untyped = _spec(chunk)
        self._native = kernels.PageReader(leaf, Piece(chunk, data).spec(), limits_of(options), chunk.start)
        refusal = self._native.list_pages(to_the_end, self._more, max(share.left, 0))
        self.num_values: int = self._native.num_values
        """Of all pages, nulls included."""
        self.size: int = self._native.end
        """Bytes of all pages with their headers."""
        self.uncompressed: int = self._native.uncompressed
        """The same before compression; headers count as they are stored."""
        self.dictionary = self._native.dictionary()
        self.pages = self._native.pages()
        if refusal is not None and (self.num_values < chunk.num_values or not self.pages):
            self.fault = self._error(refusal)

    def check(self) -> None:
        """Raise :class:`ParquetError` unless the pages hold exactly the values that the chunk declares."""
        if self.fault is not None:
            raise self.fault
        declared = self.chunk.num_values
        if self.num_values < declared:
            raise CorruptFileError(
                f"the column chunk declares {declared} values, but its pages end after {self.num_values}"
            )
        if self.num_values > declared:
            raise CorruptFileError(f"the column chunk declares {declared} values, but its pages hold {self.num_values}")

    def entries(self, check_text: bool = False) -> Values | None:
        """The entries of the dictionary; ``None`` without a dictionary page. With ``check_text``, text must be
        UTF-8."""
        if self.dictionary is None:
            return None
        if self._untyped is not None:
            raise self._untyped
        found, refusal = self._native.entries(self._more, max(self._share.left, 0))
        if refusal is not None:
            raise self._error(refusal)
        count, offsets, data = found
        values = _values(self.chunk.node.type, count, data if offsets is None else (offsets, data))
        if check_text and self.chunk.node.type.is_text and isinstance(values, BinaryValues):
            with located(page="dictionary"):
                check_utf8(values)
        return values

    def decode(
        self, first: int = 0, last: int = WITHOUT_END, window: int = WITHOUT_END, entries: Values | None = None,
        with_values: bool = True,
    ) -> PageRun:  # fmt: skip
        """What the pages from number ``first`` on hold, none behind number ``last``, until they take ``window`` bytes.

        ``entries``: of the dictionary. Without ``with_values``, their levels alone. What the call before has given out
        is not counted any more.
        """
        if self._untyped is not None:
            raise self._untyped
        count = -1 if entries is None else count_of(entries)
        found, refusal = self._native.decode(
            first, last, window, count, with_values, self._more, max(self._share.left, 0)
        )
        if found is None:
            raise self._error(refusal)
        pages = self.pages[first : first + found.count]
        leaf, values = self.chunk.node.type, found.values
        coded = np.array([page.encoding in DICTIONARY_ENCODINGS for page in pages], bool)
        direct = 0 if values is None or leaf.is_binary else len(values) // leaf.width
        return PageRun(
            found.numbers.reshape(-1, 5), coded, found.repetition_levels, found.definition_levels, found.codes,
            empty_values(leaf) if values is None else _values(leaf, direct, values),
            any(page.encoding == DELTA_BYTE_ARRAY for page in pages),
        )  # fmt: skip

    def release(self, alive: int) -> None:
        """Give memory back after the last page. ``alive`` bytes of what was decoded stay in use."""
        self._share.give(self._granted - alive)
        self._granted = alive

    def _more(self, missing: int) -> tuple[int, int]:
        size = max(missing, min(_GRANT, self._share.left // 8))
        self._share.take(size)
        self._granted += size
        return size, max(self._share.left, 0)

    def _error(self, refusal: Any) -> ParquetError:
        error = worded(refusal, self._share.refusal) if refusal.error is None else refusal.error
        if not isinstance(error, ParquetError):
            raise error
        page = page_of(refusal)
        return error if page is None else error.locate(page=page)


def _spec(chunk: Chunk) -> tuple[kernels.LeafSpec, ParquetError | None]:
    """The leaf in the form of the native decoder. Headers can be read even if its type is not known. Then decoding
    values raises the error."""
    node = chunk.node
    try:
        return spec_of(node), None
    except ParquetError as error:
        return kernels.LeafSpec(Physical.BYTE_ARRAY, 0, node.max_def, node.max_rep), error


def _values(leaf: LeafType, count: int, stored: Any) -> Values:
    if leaf.is_binary:
        return BinaryValues(*stored)
    if leaf.physical == Physical.BOOLEAN:
        found: npt.NDArray[Any] = stored[:count]
        return found
    return from_plain_bytes(stored, count, leaf)


Levels = npt.NDArray[np.uint8]
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


def decode_dictionary(data: memoryview, chunk: Chunk, options: ReadOptions, account: Account) -> Values | None:
    """The entries of the dictionary page that ``data`` begins with, which ``account`` counts from then on; ``None``
    where there is none.

    Raises :class:`CorruptFileError` for a damaged page, and for text that is not UTF-8.
    """
    with located(row_group=chunk.row_group, column=chunk.name, page="dictionary"):
        pages = ChunkPages(data, chunk, options, account)
        if pages.dictionary is None:
            if pages.fault is not None and not isinstance(pages.fault, CorruptFileError):
                raise pages.fault
            return None
        values = pages.entries(check_text=True)
        assert values is not None
        pages.release(size_of(values))
        return values
