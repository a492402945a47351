"""The ranges of values that the parts of a column have: as positions to draw, and how well they tell parts apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pyparq.errors import ParquetError
from pyparq.filters.literal import format_literal, type_text
from pyparq.format.compression import codec_name, encoding_name
from pyparq.format.lazy_footer import TRAILER
from pyparq.format.order import FLOAT_KINDS, Int64Array
from pyparq.format.schema_node import Node
from pyparq.format.types import LeafType
from pyparq.index.statistics import Bounds, bounds_of_chunks, gregorian
from pyparq.read.decode.chunk_pages import DATA_PAGE, DATA_PAGE_V2
from pyparq.read.footers.chunks import Chunk
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.page_fates import NO_QUERY, Fates, PlacedPages, as_block, data_start, placed_pages
from pyparq.runtime.text import cut, visible

STEPS = 1000
"""Positions of ranges are from 0 to this."""
LONGEST = 32
"""Characters of a bound."""
_ZERO_FRACTION = re.compile(r"(?<=:\d\d)\.0+(?=Z?$)")
_PREFIX = 6
"""Bytes of text that give its position. They fit a float exactly."""


@dataclass(slots=True)
class ValueRanges:
    """Lowest and highest position of each part, -1 for a part without bounds."""

    low: Int64Array
    high: Int64Array
    smallest: str
    largest: str
    touched: float
    """Of all parts, the share whose range holds a value: the mean over the middles of all ranges. A lookup of one value
    cannot skip these parts by their bounds."""


def value_ranges(parts: Sequence[Bounds | None], counts: Sequence[int]) -> ValueRanges | None:
    """The ranges of consecutive lists of parts of one column. ``counts``: the number of parts in each list, for those
    without bounds. ``None`` if no part has bounds, or if they cannot be compared."""
    valid = np.concatenate([
        np.zeros(count, np.bool_) if bounds is None else bounds.has_bounds
        for bounds, count in zip(parts, counts, strict=True)
    ])  # fmt: skip
    known = [bounds for bounds in parts if bounds is not None and bounds.has_bounds.any()]
    if not known:
        return None
    try:
        lows = np.concatenate([bounds.mins[bounds.has_bounds] for bounds in known])
        highs = np.concatenate([bounds.maxs[bounds.has_bounds] for bounds in known])
        values, ranks = np.unique(np.concatenate([lows, highs]), return_inverse=True)
    except (TypeError, ValueError):
        return None
    ranks = ranks.reshape(-1)
    places = _positions(values)
    low, high = np.full(len(valid), -1, np.int64), np.full(len(valid), -1, np.int64)
    low[valid] = places[ranks[: len(lows)]]
    high[valid] = places[ranks[len(lows) :]]
    leaf = known[0].leaf
    return ValueRanges(
        low, high, bound_text(leaf, values[0]), bound_text(leaf, values[-1]),
        _touched(ranks[: len(lows)], ranks[len(lows) :]),
    )  # fmt: skip


def _touched(low: Int64Array, high: Int64Array) -> float:
    probes = (low + high) / 2
    held = np.sort(low).searchsorted(probes, "right") - np.sort(high).searchsorted(probes, "left")
    return float(held.mean() / len(low))


def _positions(values: Any) -> Int64Array:
    """A position for each of these rising values: by their distance, or by their rank where they have none."""
    numbers = _as_numbers(values)
    with np.errstate(all="ignore"):
        span = numbers[-1] - numbers[0]
        shares = (numbers - numbers[0]) / span if span > 0 else np.zeros(len(numbers))
    if not np.isfinite(shares).all():
        shares = np.arange(len(numbers)) / max(len(numbers) - 1, 1)
    return np.rint(shares * STEPS).astype(np.int64)


def _as_numbers(values: Any) -> Any:
    first = values[0].item() if isinstance(values[0], np.generic) else values[0]
    if not isinstance(first, bytes):
        return values.astype(np.float64)
    texts = [bytes(value) for value in values]
    shared = 0  # bytes that the first and the last have in common, and all between them
    while shared < len(texts[0]) and texts[0][: shared + 1] == texts[-1][: shared + 1]:
        shared += 1
    cut_out = [text[shared : shared + _PREFIX].ljust(_PREFIX, b"\0") for text in texts]
    return np.array([int.from_bytes(part, "big") for part in cut_out], np.float64)


def bound_text(leaf: LeafType, value: Any) -> str:
    """A bound for people, cut where it is long."""
    value = value.item() if isinstance(value, np.generic) else value
    if leaf.kind in FLOAT_KINDS:
        return f"{value + 0.0:.7g}"  # writers store -0.0 for a minimum of zero
    if isinstance(value, bytes):
        value = value[: 4 * LONGEST]
        if not leaf.is_text and leaf.kind != "uuid":
            return cut("0x" + value.hex(), LONGEST)
        if leaf.is_text:
            return cut(visible(value.decode("utf-8", "replace")), LONGEST)
    return cut(visible(_ZERO_FRACTION.sub("", format_literal(leaf, value))), LONGEST)


def bound_texts(bounds: Bounds | None, count: int) -> tuple[list[str | None], list[str | None]]:
    """Smallest and largest value of each part, ``None`` where they are not known."""
    if bounds is None:
        return [None] * count, [None] * count
    has = bounds.has_bounds.tolist()
    low, high = (
        [bound_text(bounds.leaf, side[k]) if has[k] else None for k in range(len(has))]
        for side in (bounds.mins, bounds.maxs)
    )
    return low, high


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
        bounds = bounds_of_chunks(chunk.node.type, [chunk.meta], order, file.created_by)
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
