"""What the pages of a column chunk hold: read once, for every index that is wanted of them.

Where only an OffsetIndex of a column without lists is wanted, the page headers tell all. Otherwise pages are opened.
Values of dictionary-encoded pages are not decoded: it is counted how often each page uses each entry.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.errors import CorruptFileError, located, reading
from pyparq.format import encodings
from pyparq.format.encodings import DELTA_BYTE_ARRAY, DICTIONARY_ENCODINGS, delta_byte_array, dictionary, encoding_name
from pyparq.format.leaf_values import BinaryValues, Values, count_of
from pyparq.format.order import Order, segment_minmax, stored_dtype
from pyparq.format.page_header import DataPageHeaderV2
from pyparq.index.bloom_filter import hash_values
from pyparq.kernels import KernelError
from pyparq.read.decode.chunk_ends import beyond_its_size, check_end
from pyparq.read.decode.dictionary_entries import decode_dictionary
from pyparq.read.decode.memory_account import Account, Share
from pyparq.read.decode.pages import (
    DATA_PAGE_V2,
    PageBuffers,
    PageParts,
    PageWalk,
    StoredPage,
    num_levels_of,
    open_page,
    room_of,
)
from pyparq.read.footers.column_chunk import Chunk
from pyparq.read.footers.open_file import OpenFile
from pyparq.runtime.threads import check_stopped

Int64Array = npt.NDArray[np.int64]
UInt64Array = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What of a chunk is to be found out, beside where its pages are."""

    bounds: bool = False
    """The bounds and null counts of each page, and its levels."""
    hashes: bool = False
    """The hashes of the values."""

    @property
    def values(self) -> bool:
        return self.bounds or self.hashes


@dataclass(slots=True)
class PageFacts:
    """One data page."""

    offset: int
    size: int
    """With the header."""
    first_row: int
    slots: int
    """Values, nulls included."""
    present: int = 0
    """Values that are not null."""
    minimum: bytes | None = None
    maximum: bytes | None = None
    nan_count: int = 0
    unencoded: int | None = None
    """Bytes of BYTE_ARRAY values without their lengths."""
    definition: list[int] | None = None
    """How often each definition level occurs; ``None`` without such levels."""
    repetition: list[int] | None = None


@dataclass(slots=True)
class Survey:
    """What was found out about a chunk."""

    pages: list[PageFacts] = field(default_factory=list)
    no_rows: str = ""
    """Why no OffsetIndex can say which rows the pages hold; empty where one can."""
    hashes: UInt64Array | None = None
    """Of all values, or of all dictionary entries that are used."""
    all_dictionary: bool = False
    """Every data page is dictionary-encoded."""
    bytes_decoded: int = 0
    """Stored bytes of the pages that were opened."""


FEW_LEVELS = 8
"""So many are counted one by one: :func:`numpy.bincount` makes integers of eight bytes of all levels first."""
MID_ROW = "pages start in the middle of a row"


def survey_chunk(file: OpenFile, chunk: Chunk, order: Order, wanted: Wanted, account: Account) -> Survey:
    """Walk the pages of ``chunk``, and open them as far as ``wanted`` needs it.

    Raises :class:`CorruptFileError` for damaged pages and pages that do not hold the rows of the row group, and
    :class:`UnsupportedError` for codecs and encodings that cannot be read.
    """
    with reading(file=file.name, row_group=chunk.row_group, column=chunk.name):
        if chunk.size == 0:
            return Survey()
        (data,) = file.fetcher.fetch([(chunk.start, chunk.size)])
        try:
            return _survey(file, chunk, order, wanted, account, data)
        except CorruptFileError:
            longer = beyond_its_size(file, chunk, data)
            if longer is None:
                raise
        (data,) = file.fetcher.fetch([(longer.start, longer.size)])
        return _survey(file, longer, order, wanted, account, data)


def _survey(file: OpenFile, chunk: Chunk, order: Order, wanted: Wanted, account: Account, data: memoryview) -> Survey:
    share = Share(account)
    try:
        return _Surveyor(file, chunk, order, wanted, share).run(data)
    finally:
        share.settle(0)


class _Surveyor:
    """One chunk on its way."""

    def __init__(self, file: OpenFile, chunk: Chunk, order: Order, wanted: Wanted, share: Share) -> None:
        self._file = file
        self._chunk = chunk
        self._options = file.options
        self._node = chunk.node
        self._leaf = chunk.node.type
        self._order = order
        self._wanted = wanted
        self._share = share
        self._opens = wanted.values or self._node.max_rep > 0
        self._found = Survey()
        self._row = 0
        self._buffers = PageBuffers()
        self._entries: Values | None = None
        self._used: npt.NDArray[np.bool_] | None = None
        self._counts = np.empty(0, np.int64)
        """Of the entries, all 0 between two pages."""
        self._hashes: list[UInt64Array] = []
        self._direct_pages = 0

    def run(self, data: memoryview) -> Survey:
        walk = PageWalk(data, self._chunk, self._options)
        while (page := walk.next_page()) is not None:
            check_stopped()
            with located(page=page.ordinal):
                if page.ordinal == "dictionary":
                    if self._wanted.values:
                        self._take_dictionary(page, walk)
                    continue
                self._take_page(page, self._chunk.start + walk.page_at, walk.at - walk.page_at)
        if walk.at < len(data):
            check_end(self._file, walk.chunk, walk.data, walk.at, walk.ordinal)
        return self._finish()

    def _finish(self) -> Survey:
        found = self._found
        if self._row != self._chunk.num_rows:
            raise CorruptFileError(f"the pages hold {self._row} rows, but the row group has {self._chunk.num_rows}")
        found.all_dictionary = self._entries is not None and not self._direct_pages
        if self._wanted.hashes:
            if self._entries is not None and self._used is not None:
                used = dictionary.entries(self._entries, np.flatnonzero(self._used))
                self._hashes.append(hash_values(used, self._leaf))
            found.hashes = np.concatenate(self._hashes) if self._hashes else np.empty(0, np.uint64)
        return found

    def _take_dictionary(self, page: StoredPage, walk: PageWalk) -> None:
        self._entries = decode_dictionary(page, self._chunk, self._options, self._share)
        count = count_of(self._entries)
        self._share.take(9 * count)
        self._used, self._counts = np.zeros(count, np.bool_), np.zeros(count, np.int64)
        self._found.bytes_decoded += walk.at - walk.page_at

    def _take_page(self, page: StoredPage, offset: int, size: int) -> None:
        slots = num_levels_of(page)
        if slots == 0 and self._found.pages and not self._chunk.crypto.encrypted:
            return  # (pyarrow writes such pages where it gives up a dictionary; which are listed: see page_index.py)
        facts = PageFacts(offset, size, self._row, slots)
        self._found.pages.append(facts)
        if not self._opens:
            rows = slots
        else:
            self._buffers.clear()
            self._share.make_room(room_of(page, self._node))
            parts = open_page(page, self._chunk, self._options, self._buffers)
            self._found.bytes_decoded += size
            rows = self._rows_of(page, parts)
            facts.present = parts.num_values
            if self._wanted.values:
                self._take_values(parts, facts)
            if self._wanted.bounds:
                facts.definition = _histogram(parts.def_levels, self._node.max_def, slots)
                facts.repetition = _histogram(parts.rep_levels, self._node.max_rep, slots)
        self._row += rows

    def _rows_of(self, page: StoredPage, parts: PageParts) -> int:
        """Rows that start in a page."""
        levels = parts.rep_levels
        if levels is None:
            return parts.num_levels
        if len(levels) and levels[0] != 0:
            if self._row == 0:
                raise CorruptFileError(f"the first repetition level is {levels[0]}, but a row must start with 0")
            self._found.no_rows = MID_ROW
        rows = int(np.count_nonzero(levels == 0))
        header = page.header.data_page_header_v2 if page.header.type == DATA_PAGE_V2 else None
        if isinstance(header, DataPageHeaderV2) and header.num_rows != rows:
            raise CorruptFileError(f"the page header declares {header.num_rows} rows, but the page has {rows}")
        return rows

    def _take_values(self, parts: PageParts, facts: PageFacts) -> None:
        if parts.encoding in DICTIONARY_ENCODINGS:
            self._take_indices(parts, facts)
            return
        self._direct_pages += 1
        size = self._room_for(parts)
        self._share.take(size)
        values = self._decoded(parts)
        if self._wanted.hashes:
            self._share.take(8 * parts.num_values)
            self._hashes.append(hash_values(values, self._leaf))
        if isinstance(values, BinaryValues):
            facts.unencoded = int(values.offsets[-1] - values.offsets[0])
        self._bound(values, facts, None)
        self._share.give(size)

    def _room_for(self, parts: PageParts) -> int:
        """Bytes that the values of a page take, decoded."""
        return len(parts.data) + 8 * parts.num_values if self._leaf.is_binary else parts.num_values * self._leaf.width

    def _decoded(self, parts: PageParts) -> Values:
        if parts.encoding == DELTA_BYTE_ARRAY and self._leaf.is_binary:  # a few bytes may stand for any number
            most = min(max(self._share.left, 0), delta_byte_array.MAX_PAGE_BYTES)
            try:
                return delta_byte_array.decode(parts.data, parts.num_values, self._leaf, most=most)
            except KernelError as error:
                raise CorruptFileError(f"bad {encoding_name(parts.encoding)} data: {error}") from error
        values = encodings.decode(parts.encoding, parts.data, parts.num_values, self._leaf)
        if isinstance(values, BinaryValues) or values.flags.aligned:
            return values
        return values.copy()  # plain values may lie anywhere in their page

    def _take_indices(self, parts: PageParts, facts: PageFacts) -> None:
        if self._entries is None or self._used is None:
            raise CorruptFileError("the page is dictionary-encoded, but the column chunk has no dictionary page")
        try:
            used = kernels.count_indices(parts.data, parts.num_values, self._counts)
        except KernelError as error:
            raise CorruptFileError(f"bad {encoding_name(parts.encoding)} data: {error}") from error
        times = self._counts[used]
        self._counts[used] = 0
        self._used[used] = True
        values = dictionary.entries(self._entries, used)
        if isinstance(values, BinaryValues):
            facts.unencoded = int((np.diff(values.offsets) * times).sum())
        self._bound(values, facts, times)

    def _bound(self, values: Values, facts: PageFacts, times: Int64Array | None) -> None:
        """Note the bounds of a page that holds each of ``values`` once, or so many ``times``."""
        if not self._wanted.bounds:
            return
        edges = np.array([0, count_of(values)], np.int64)
        bounds = segment_minmax(self._leaf, values, edges, self._order)
        facts.minimum, facts.maximum = bounds.mins[0], bounds.maxs[0]
        if bounds.nan_counts is not None:
            facts.nan_count = int(bounds.nan_counts[0])
            if facts.nan_count and times is not None:
                facts.nan_count = int(times[_nans(values, stored_dtype(self._leaf))].sum())


def _nans(values: Any, dtype: Any) -> npt.NDArray[np.bool_]:
    return np.asarray(np.isnan(values.reshape(-1).view(dtype)), bool)


def _histogram(levels: npt.NDArray[np.uint8] | None, maximum: int, slots: int) -> list[int] | None:
    if maximum == 0:
        return None
    if levels is None:  # all are the maximum
        return [*[0] * maximum, slots]
    if maximum > FEW_LEVELS:
        return list(np.bincount(levels, minlength=maximum + 1).tolist())
    counts = [int(np.count_nonzero(levels == level)) for level in range(1, maximum + 1)]
    return [len(levels) - sum(counts), *counts]
