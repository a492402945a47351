"""What a query made of each page: which stage ruled it out, or that it was read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pyparq.errors import ParquetError
from pyparq.filters.bound import Constant
from pyparq.filters.predicate import Predicate
from pyparq.format.order import BoolArray, Int64Array
from pyparq.format.schema_node import Node
from pyparq.index.page_index import PageLocations
from pyparq.index.statistics import Bounds, gregorian
from pyparq.read.footers.chunks import Chunk
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.page_headers import PageFacts, walk_headers
from pyparq.read.plan.candidates import StageTrace, Trace
from pyparq.read.plan.page_indexes import read_locations, read_page_indexes

NO_QUERY, READ, STATISTICS, BLOOM, DICTIONARY, PAGE_INDEX, VALUES, NOT_ASKED, SURE, PARTITION, OTHER = range(11)
"""No query. Read. Ruled out by statistics, Bloom filter, dictionary or ColumnIndex. Not read because the values of the
filter columns left no row of it. Of a column that the query does not name. Not needed, because indexes prove that all
rows match. In a file that partitions rule out. Ruled out by a stage that has no colour of its own."""

_STAGES = {"statistics": STATISTICS, "bloom filter": BLOOM, "dictionary": DICTIONARY, "column index": PAGE_INDEX}


class Fates:
    """The fates of the pages of one file."""

    def __init__(self, predicate: Predicate, outputs: Iterable[Node], trace: Trace) -> None:
        """``predicate`` and ``outputs``: what the query asked for, and the leaves that it returned."""
        self._predicate = predicate
        self._trace = trace
        self._outputs = {leaf.column for leaf in outputs}
        self._tested = predicate.columns()
        self._pages_read: dict[Key, set[int] | None] = dict.fromkeys(trace.whole)
        self._dictionaries = self._asked("dictionary")
        self._take_reads()

    def _take_reads(self) -> None:
        for read in self._trace.reads:
            key = read.row_group, read.column
            if read.whole is not None or self._pages_read.get(key, set()) is None:
                self._pages_read[key] = None  # all
            elif read.pages is not None:
                pages = self._pages_read.setdefault(key, set())
                assert pages is not None
                pages.update(read.pages.ordinals.tolist())
            if read.dictionary is not None:
                self._dictionaries.add(key)

    def _asked(self, name: str) -> set[Key]:
        return {key for stage in self._trace.stages if stage.name == name for key in stage.asked}

    @property
    def asked_filters(self) -> set[Key]:
        """The chunks whose Bloom filter was asked."""
        return self._asked("bloom filter")

    @property
    def asked_indexes(self) -> set[Key]:
        """The chunks whose ColumnIndex was asked."""
        return self._asked("column index")

    def dictionary_read(self, key: Key) -> bool:
        """Whether the dictionary of a chunk was read."""
        return key in self._dictionaries or self._pages_read.get(key, set()) is None

    def of_pages(self, key: Key, pages: PlacedPages) -> list[int]:
        """The fate of each page of a chunk."""
        row_group, column = key
        if column not in self._outputs and column not in self._tested:
            return [NOT_ASKED] * len(pages)
        fates = self._by_stages(row_group, pages)
        read = self._pages_read.get(key, set())
        if read is None:
            fates[:] = READ
        elif read:
            fates[[k for k in read if k < len(pages)] if pages.known else slice(None)] = READ
        # Filter columns are read wherever the indexes leave a doubt.
        fates[fates == NO_QUERY] = VALUES if column in self._outputs else SURE
        return [int(fate) for fate in fates.tolist()]

    def _by_stages(self, row_group: int, pages: PlacedPages) -> Int64Array:
        fates = np.zeros(len(pages), np.int64)
        alive = np.ones(len(pages), np.bool_)
        predicate = self._predicate
        if isinstance(predicate, Constant) and not predicate.value:
            fates[:] = STATISTICS
        for stage in self._trace.stages:
            left = _touches(stage, row_group, pages)
            fates[alive & ~left] = _STAGES.get(stage.name, OTHER)
            alive &= left
        return fates


def _touches(stage: StageTrace, row_group: int, pages: PlacedPages) -> BoolArray:
    """Which pages hold a row that the stage has left."""
    rows = stage.left.get(row_group)
    if rows is None:
        return np.zeros(len(pages), np.bool_)
    first, end = pages.first_rows, pages.first_rows + pages.num_rows
    touched: BoolArray = rows.starts.searchsorted(end, "left") > rows.ends.searchsorted(first, "right")
    return touched


UNKNOWN, INDEXED, WALKED, ESTIMATED = range(4)
"""How the pages of a chunk are known: not at all (one block stands for them), by the OffsetIndex, by their headers, or
by their headers with an estimated number of rows (lists in v1 pages do not tell it)."""

Key = tuple[int, int]
"""(row group, leaf column)."""


@dataclass(slots=True)
class PlacedPages:
    """The data pages of one column chunk in file order."""

    known: int
    offsets: Int64Array
    sizes: Int64Array
    """Bytes with headers."""
    first_rows: Int64Array
    num_rows: Int64Array
    bounds: Bounds | None = None
    """What the ColumnIndex says of each page."""
    uncompressed: Int64Array | None = None
    encodings: list[str] | None = None

    def __len__(self) -> int:
        return len(self.offsets)


def placed_pages(file: OpenFile, chunks: Sequence[Chunk], *, walk: bool) -> dict[Key, PlacedPages]:
    """The pages of each chunk. ``walk``: read page headers where there is no OffsetIndex."""
    found: dict[Key, PlacedPages] = {}
    indexed = _indexed(file, chunks)
    for chunk in chunks:
        key = chunk.row_group, chunk.node.column
        pages = indexed.get(key)
        if pages is None and walk and chunk.size:
            pages = _walked(file, chunk)
        found[key] = as_block(chunk) if pages is None else pages
    return found


def as_block(chunk: Chunk) -> PlacedPages:
    """One block in place of pages."""
    start, size = data_start(chunk), chunk.end - data_start(chunk)
    count = 1 if chunk.size else 0
    offsets, sizes, first, rows = (np.full(count, n, np.int64) for n in (start, size, 0, chunk.num_rows))
    return PlacedPages(UNKNOWN, offsets, sizes, first, rows)


def data_start(chunk: Chunk) -> int:
    """Where the first data page begins, as far as the footer tells."""
    first = chunk.numbers.data_page_offset
    return first if chunk.first_page == "dictionary" and chunk.start < first < chunk.end else chunk.start


def _indexed(file: OpenFile, chunks: Sequence[Chunk]) -> dict[Key, PlacedPages]:
    """All indexes in two steps; chunk by chunk if one of them cannot be decrypted."""
    try:
        return _read_indexes(file, chunks)
    except ParquetError:
        found: dict[Key, PlacedPages] = {}
        for chunk in chunks if len(chunks) > 1 else ():
            found |= _indexed(file, [chunk])
        return found


def _read_indexes(file: OpenFile, chunks: Sequence[Chunk]) -> dict[Key, PlacedPages]:
    both = read_page_indexes(file, chunks)
    rest = [c for c in chunks if (c.row_group, c.node.column) not in both]
    places: dict[Key, tuple[Bounds | None, PageLocations]] = {**both}
    places |= {key: (None, locations) for key, locations in read_locations(file, rest).items()}
    found = {}
    for chunk in chunks:
        key = chunk.row_group, chunk.node.column
        if key in places:
            bounds, at = places[key]
            rows = np.asarray(at.row_counts(chunk.num_rows), np.int64)
            known = None if bounds is None else _shown(bounds)
            found[key] = PlacedPages(INDEXED, at.offsets, at.sizes, at.first_rows, rows, known)
    return found


def _shown(bounds: Bounds) -> Bounds | None:
    try:
        return gregorian(bounds)
    except ParquetError:  # a time zone that this machine does not know
        return None


def _walked(file: OpenFile, chunk: Chunk) -> PlacedPages | None:
    """The pages by their headers; ``None`` if these make no sense."""
    try:
        pages = [page for page in walk_headers(file, chunk) if page.ordinal is not None]
    except ParquetError:
        return None
    if not pages:
        return None
    exact = all(page.rows is not None for page in pages)
    rows = _array(page.rows or 0 for page in pages) if exact else _estimated(chunk.num_rows, pages)
    return PlacedPages(
        WALKED if exact else ESTIMATED,
        _array(page.offset for page in pages),
        _array(page.header_size + page.compressed_size for page in pages),
        np.cumsum(rows) - rows,
        rows,
        uncompressed=_array(page.header_size + page.uncompressed_size for page in pages),
        encodings=[page.encoding or "?" for page in pages],
    )


def _estimated(num_rows: int, pages: Sequence[PageFacts]) -> Int64Array:
    """Rows in proportion to values."""
    values = _array(max(page.values or 0, 0) for page in pages)
    ends = np.rint(np.cumsum(values) * (num_rows / max(int(values.sum()), 1))).astype(np.int64)
    rows: Int64Array = np.diff(ends, prepend=0)
    return rows


def _array(numbers: Iterable[int]) -> Int64Array:
    return np.fromiter(numbers, np.int64)
