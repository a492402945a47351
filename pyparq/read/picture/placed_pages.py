"""Where the pages of column chunks lie: from the OffsetIndex, else from the page headers, else as one block."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pyparq.errors import ParquetError
from pyparq.index.bounds import Bounds, Int64Array, gregorian
from pyparq.index.page_index import PageLocations
from pyparq.read.footers.column_chunk import Chunk
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.page_headers import PageFacts, walk_headers
from pyparq.read.plan.page_indexes import read_locations, read_page_indexes

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
