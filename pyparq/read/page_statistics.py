"""What the pages of a column chunk hold: read once, for every index that is wanted of them.

Where only an OffsetIndex of a column without lists is wanted, the page headers tell all. Otherwise pages are opened.
Values of dictionary-encoded pages are not decoded: it is counted how often each page uses each entry.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from pyparq.errors import CorruptFileError, located, reading
from pyparq.format.leaf_values import Values, count_of
from pyparq.format.order import Order
from pyparq.index.bloom_filter import UInt64Array, hash_values
from pyparq.kernels import StoredPage
from pyparq.read.column_reads import beyond_its_size, check_end
from pyparq.read.decode.chunk_pages import ChunkPages, PageValues, take_values
from pyparq.read.decode.memory_account import WITHOUT_END, Account, Share
from pyparq.read.footers.chunks import Chunk
from pyparq.read.footers.open_file import OpenFile
from pyparq.runtime.threads import check_stopped


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to find out about a chunk, beside the places of its pages."""

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


WINDOW = 1 << 20
"""Bytes of pages, inflated, that are looked at together."""
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
        share.set_held(0)


class _Surveyor:
    """One chunk on its way."""

    def __init__(self, file: OpenFile, chunk: Chunk, order: Order, wanted: Wanted, share: Share) -> None:
        self._file = file
        self._chunk = chunk
        self._node = chunk.node
        self._leaf = chunk.node.type
        self._order = order
        self._wanted = wanted
        self._share = share
        self._found = Survey()
        self._row = 0
        self._entries: Values | None = None
        self._used: npt.NDArray[np.bool_] | None = None
        self._hashes: list[UInt64Array] = []
        self._direct_pages = 0

    def run(self, data: memoryview) -> Survey:
        pages = ChunkPages(data, self._chunk, self._file.options, self._share)
        if self._wanted.values or self._node.max_rep > 0:
            self._open(pages)
        else:
            for page in pages.pages:
                self._take_page(page, page.num_values)
        pages.check()
        if pages.size < len(data):
            check_end(self._file, self._chunk, data, pages.size, len(pages.pages))
        return self._finish()

    def _open(self, pages: ChunkPages) -> None:
        if self._wanted.values:
            self._take_dictionary(pages)
        first = 0
        while first < len(pages.pages):
            check_stopped()
            run = pages.decode(first, WITHOUT_END, WINDOW, self._entries, self._wanted.values)
            values = PageValues(self._node, run, self._entries)
            self._take_run(pages.pages[first : first + values.num_pages], values, first)
            first += values.num_pages

    def _finish(self) -> Survey:
        found = self._found
        if self._row != self._chunk.num_rows:
            raise CorruptFileError(f"the pages hold {self._row} rows, but the row group has {self._chunk.num_rows}")
        found.all_dictionary = self._entries is not None and not self._direct_pages
        if self._wanted.hashes:
            if self._entries is not None and self._used is not None:
                used = take_values(self._entries, np.flatnonzero(self._used))
                self._hashes.append(hash_values(used, self._leaf))
            found.hashes = np.concatenate(self._hashes) if self._hashes else np.empty(0, np.uint64)
        return found

    def _take_dictionary(self, pages: ChunkPages) -> None:
        if pages.dictionary is None:
            return
        self._entries = pages.entries(check_text=True)
        assert self._entries is not None
        count = count_of(self._entries)
        self._share.take(9 * count)
        self._used = np.zeros(count, np.bool_)
        self._found.bytes_decoded += pages.dictionary.size

    def _take_page(self, page: StoredPage, rows: int) -> PageFacts | None:
        if page.num_values == 0 and self._found.pages and not self._chunk.crypto.encrypted:
            # pyarrow writes such pages where it gives up a dictionary. Which of them are listed: see page_index.py.
            return None
        facts = PageFacts(page.offset, page.size, self._row, page.num_values)
        self._found.pages.append(facts)
        self._row += rows
        return facts

    def _take_run(self, pages: list[StoredPage], values: PageValues, first: int) -> None:
        facts: list[PageFacts | None] = []
        for k, page in enumerate(pages):
            with located(page=first + k):
                self._check_rows(page, values, k)
            facts.append(self._take_page(page, int(values.num_rows[k])))
        kept = [(k, found) for k, found in enumerate(facts) if found is not None]
        for k, found in kept:
            found.present = int(values.num_present[k])
            self._found.bytes_decoded += found.size
        if self._wanted.values:
            self._direct_pages += sum(1 for k in values.direct_pages.tolist() if facts[k] is not None)
            self._take_values(values, kept)
        if self._wanted.bounds:
            self._take_levels(values, kept)

    def _check_rows(self, page: StoredPage, values: PageValues, k: int) -> None:
        levels, rows = values.rep_levels[k], int(values.num_rows[k])
        if levels is None:
            return
        if len(levels) and levels[0] != 0:
            if self._row == 0:
                raise CorruptFileError(f"the first repetition level is {levels[0]}, but a row must start with 0")
            self._found.no_rows = MID_ROW
        if page.num_rows is not None and page.num_rows != rows:
            raise CorruptFileError(f"the page header declares {page.num_rows} rows, but the page has {rows}")

    def _take_values(self, values: PageValues, kept: list[tuple[int, PageFacts]]) -> None:
        if self._used is not None:
            self._used[values.used_codes] = True
        if self._wanted.hashes and len(values.direct_pages):
            self._share.take(8 * count_of(values.values))
            self._hashes.append(hash_values(values.values, self._leaf))
        if self._leaf.is_binary:
            sizes = values.byte_counts.tolist()
            for k, found in kept:
                found.unencoded = sizes[k]
        if self._wanted.bounds:
            bounds = values.page_bounds(self._order)
            for k, found in kept:
                found.minimum, found.maximum = bounds.mins[k], bounds.maxs[k]
                if bounds.nan_counts is not None:
                    found.nan_count = int(bounds.nan_counts[k])

    def _take_levels(self, values: PageValues, kept: list[tuple[int, PageFacts]]) -> None:
        """Note how often each level occurs."""
        definition, repetition = values.def_histograms.tolist(), values.rep_histograms.tolist()
        for k, found in kept:
            found.definition = definition[k] if self._node.max_def else None
            found.repetition = repetition[k] if self._node.max_rep else None
