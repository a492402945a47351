"""The facts of one file that its map shows: column chunks, pages, indexes, and what a query made of them.

Everything is in plain lists, one entry per column chunk (row group by row group) or per page (chunk by chunk). Offsets
are bytes from the begin of the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pyparq.errors import ParquetError, SchemaError
from pyparq.filters.literal import describe
from pyparq.format.compression import codec_name
from pyparq.format.encodings import encoding_name
from pyparq.format.schema_node import Node
from pyparq.index.bounds import Bounds, gregorian
from pyparq.index.statistics import bounds_from_statistics
from pyparq.read.decode.chunk_pages import DATA_PAGE, DATA_PAGE_V2
from pyparq.read.footers.column_chunk import Chunk
from pyparq.read.footers.footer_read import TRAILER
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.picture.fates import NO_QUERY, Fates
from pyparq.read.picture.placed_pages import PlacedPages, as_block, data_start, placed_pages
from pyparq.read.picture.value_ranges import bound_texts

MOST_WALKED = 2000
"""Column chunks whose page headers are read where there is no OffsetIndex."""
MOST_DECODED = 20_000
"""Column chunks up to which encodings and statistics of each are shown."""
MOST_BOUNDS = 20_000
"""Pages up to which the bounds of each are shown as text. The others are drawn only."""

LEVELS = {"RLE", "BIT_PACKED"}
"""Encodings of levels, which nearly every chunk has."""


@dataclass(slots=True)
class FileFacts:
    """One file: ``chunks`` has a list per kind of fact, with one entry per chunk. So has ``pages``."""

    name: str
    size: int
    created_by: str
    columns: list[tuple[str, str]]
    """Path and type of each leaf."""
    rows: list[int]
    """Rows of each row group."""
    footer: int
    """Where the footer begins."""
    chunks: dict[str, list[Any]]
    pages: dict[str, list[Any]]
    bounds: list[Bounds | None] = field(default_factory=list)
    """Of each chunk: those of its pages, or of the chunk where pages have none."""
    by_page: list[bool] = field(default_factory=list)
    """Of each chunk, whether its bounds are those of its pages."""


_CHUNK = (
    "start", "size", "raw", "values", "nulls", "codec", "encoding", "dictionary", "bloom", "bloomSize", "columnIndex",
    "columnIndexSize", "offsetIndex", "offsetIndexSize", "min", "max", "pages", "known", "note", "dictionaryRead",
    "bloomRead", "indexRead",
)  # fmt: skip
_PAGE = ("offset", "size", "first", "rows", "nulls", "min", "max", "raw", "encoding", "fate")


def file_facts(file: OpenFile, leaves: Sequence[Node], fates: Fates | None, most_pages: int) -> FileFacts:
    """The facts of the chunks of ``leaves``. ``most_pages``: with more pages than this, each chunk is one block."""
    rows = [file.num_rows_of(k) for k in range(file.num_row_groups)]
    created_by, size = file.created_by or "", file.fetcher.source.size
    facts = FileFacts(
        file.name, size, created_by, [(leaf.dotted, type_text(leaf)) for leaf in leaves], rows, _footer_start(file),
        {name: [] for name in _CHUNK}, {name: [] for name in _PAGE},
    )  # fmt: skip
    file.look_up(range(len(rows)), leaves)
    chunks = [[_chunk(file, k, leaf) for leaf in leaves] for k in range(len(rows))]
    readable = [[c for c in group if isinstance(c, Chunk)] for group in chunks]
    many = len(rows) * len(leaves)
    walk = many <= MOST_WALKED and file.fetcher.source.is_local
    placed = [placed_pages(file, group, walk=walk) for group in readable]
    total = sum(len(pages) for group in placed for pages in group.values())
    for k, group in enumerate(chunks):
        for leaf, chunk in zip(leaves, group, strict=True):
            if not isinstance(chunk, Chunk):
                _add_unreadable(facts, chunk)
                continue
            pages = placed[k][k, leaf.column]
            decoded = many <= MOST_DECODED
            whole = total > most_pages and len(pages) > 1
            bounds = _statistics(file, chunk) if decoded and (whole or pages.bounds is None) else None
            _add_chunk(facts, file, chunk, fates, bounds, decoded=decoded)
            _add_pages(facts, chunk, pages, fates, texts=total <= MOST_BOUNDS, whole=whole)
    return facts


def type_text(leaf: Node) -> str:
    """A leaf's type as a user knows it; its physical type where the annotation makes no sense."""
    try:
        return describe(leaf.type)
    except SchemaError:
        return f"type {leaf.element.type}"


def _chunk(file: OpenFile, row_group: int, leaf: Node) -> Chunk | str:
    """The chunk, or why it cannot be read."""
    try:
        return file.chunk(row_group, leaf)
    except ParquetError as error:
        return str(error.message)


def _footer_start(file: OpenFile) -> int:
    tail = file.fetcher.tail
    length = int.from_bytes(tail[-TRAILER:-4], "little")
    return max(file.fetcher.source.size - TRAILER - length, 0)


def _add_unreadable(facts: FileFacts, why: str) -> None:
    for name in _CHUNK:
        facts.chunks[name].append(0)
    for name in ("min", "max", "note", "nulls"):
        facts.chunks[name][-1] = None
    facts.chunks["size"][-1] = facts.chunks["raw"][-1] = -1
    facts.chunks["codec"][-1] = facts.chunks["encoding"][-1] = ""
    facts.chunks["note"][-1] = why
    facts.bounds.append(None)
    facts.by_page.append(False)


def _add_chunk(
    facts: FileFacts, file: OpenFile, chunk: Chunk, fates: Fates | None, bounds: Bounds | None, *, decoded: bool
) -> None:
    numbers, key = chunk.numbers, (chunk.row_group, chunk.node.column)
    low, high = bound_texts(bounds, 1)
    facts.bounds.append(bounds)
    facts.by_page.append(False)
    values = {
        "start": chunk.start,
        "size": chunk.size,
        "raw": numbers.total_uncompressed_size,
        "values": chunk.num_values,
        "nulls": numbers.null_count if numbers.null_count >= 0 else None,
        "codec": codec_name(chunk.codec),
        "encoding": _encodings(chunk, decoded),
        "dictionary": data_start(chunk) - chunk.start,
        "bloom": numbers.bloom_filter_offset,
        "bloomSize": _bloom_size(file, chunk),
        "columnIndex": numbers.column_index_offset,
        "columnIndexSize": numbers.column_index_length,
        "offsetIndex": numbers.offset_index_offset,
        "offsetIndexSize": numbers.offset_index_length,
        "min": low[0],
        "max": high[0],
        "note": None,
        "dictionaryRead": int(fates is not None and fates.dictionary_read(key)),
        "bloomRead": int(fates is not None and key in fates.asked_filters),
        "indexRead": int(fates is not None and key in fates.asked_indexes),
    }
    for name, value in values.items():
        facts.chunks[name].append(int(value) if isinstance(value, int) else value)


def _bloom_size(file: OpenFile, chunk: Chunk) -> int:
    """Bytes of the Bloom filter. Older writers do not state them: then up to the next known part of the file."""
    place, size = chunk.numbers.bloom_filter_offset, chunk.numbers.bloom_filter_length
    return int(size or file.room_at(chunk.row_group, place)) if place else 0


def _statistics(file: OpenFile, chunk: Chunk) -> Bounds | None:
    try:
        order = file.column_order(chunk.node)
        bounds = bounds_from_statistics(chunk.node.type, chunk.meta, order, file.created_by)
        return gregorian(bounds)
    except ParquetError:
        return None


def _encodings(chunk: Chunk, decoded: bool) -> str:
    """The encodings of the data pages."""
    if not decoded:
        return "RLE_DICTIONARY" if chunk.is_all_dictionary else ""
    stats = chunk.meta.encoding_stats or ()
    numbers = [s.encoding for s in stats if s.page_type in (DATA_PAGE, DATA_PAGE_V2)]
    if numbers:
        return " + ".join(dict.fromkeys(map(encoding_name, numbers)))
    names = [encoding_name(number) for number in chunk.meta.encodings or ()]
    shown = [name for name in names if name not in LEVELS]
    if chunk.first_page == "dictionary" and "RLE_DICTIONARY" in shown and len(shown) == 2:
        shown.remove("PLAIN") if "PLAIN" in shown else None  # the dictionary page is PLAIN
    return " + ".join(dict.fromkeys(shown or names))


def _add_pages(
    facts: FileFacts, chunk: Chunk, pages: PlacedPages, fates: Fates | None, *, texts: bool, whole: bool
) -> None:
    key = chunk.row_group, chunk.node.column
    count, found = len(pages), [NO_QUERY] * len(pages) if fates is None else fates.of_pages(key, pages)
    facts.chunks["pages"].append(count)
    if whole:
        pages = as_block(chunk)  # its bounds are those of the chunk
        found = [min((fate for fate in found if fate), default=NO_QUERY)]  # read, if any page was
    facts.chunks["known"].append(pages.known)
    bounds = pages.bounds
    if bounds is not None:
        facts.bounds[-1], facts.by_page[-1] = bounds, True
    n = len(pages)
    low, high = bound_texts(bounds if texts else None, n)
    nulls = [-1] * n if bounds is None else bounds.null_counts.tolist()
    values: dict[str, list[Any]] = {
        "offset": pages.offsets.tolist(),
        "size": pages.sizes.tolist(),
        "first": pages.first_rows.tolist(),
        "rows": pages.num_rows.tolist(),
        "nulls": nulls,
        "min": low,
        "max": high,
        "raw": [-1] * n if pages.uncompressed is None else pages.uncompressed.tolist(),
        "encoding": [None] * n if pages.encodings is None else pages.encodings,
        "fate": found,
    }
    for name, listed in values.items():
        facts.pages[name] += listed
