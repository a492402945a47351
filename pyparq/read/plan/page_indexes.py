"""Reads ColumnIndexes and OffsetIndexes, many in one step.

A damaged index is ignored with a warning, and the data is read without it. An encrypted index that fails its
authentication is refused: damage by accident is unlikely there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pyparq.encryption.cipher import Module
from pyparq.errors import CorruptFileError, CorruptIndexWarning, ParquetError
from pyparq.format.schema_node import Node
from pyparq.index.page_index import PageLocations, parse_column_index, parse_offset_index
from pyparq.index.statistics import Bounds
from pyparq.io.byte_ranges import Range
from pyparq.read.footers.chunks import Chunk
from pyparq.read.footers.open_file import OpenFile
from pyparq.runtime.messages import warn_caller

Key = tuple[int, int]
"""(row group, leaf column)."""


def has_offset_index(chunk: Chunk) -> bool:
    return bool(chunk.numbers.offset_index_offset) and bool(chunk.numbers.offset_index_length)


def has_column_index(chunk: Chunk) -> bool:
    return bool(chunk.numbers.column_index_offset) and bool(chunk.numbers.column_index_length)


def _offset_range(chunk: Chunk) -> Range:
    return chunk.numbers.offset_index_offset, chunk.numbers.offset_index_length


def _column_range(chunk: Chunk) -> Range:
    return chunk.numbers.column_index_offset, chunk.numbers.column_index_length


def offset_index_range(chunk: Chunk, file: OpenFile) -> list[Range]:
    """The place of the OffsetIndex of a chunk, if it has a usable one."""
    return [_offset_range(chunk)] if has_offset_index(chunk) and _fits([_offset_range(chunk)], file) else []


def page_index_ranges(chunk: Chunk, file: OpenFile) -> list[Range]:
    """The places of both indexes of a chunk, if they are usable."""
    if not has_offset_index(chunk) or not has_column_index(chunk):
        return []
    ranges = [_column_range(chunk), _offset_range(chunk)]
    return ranges if _fits(ranges, file) else []


def _inside(ranges: list[Range], chunk: Chunk, file: OpenFile) -> bool:
    for place in ranges:
        if not _fits([place], file):
            warn_index(file, chunk, CorruptFileError(f"{place[1]} bytes at offset {place[0]} are outside the file"))
            return False
        if not _is_own(place, chunk, file):
            text = f"its bytes at offset {place[0]} are also those of another column chunk's"
            warn_index(file, chunk, CorruptFileError(text))
            return False
    return True


def _is_own(place: Range, chunk: Chunk, file: OpenFile) -> bool:
    return file.modules.belongs(*place, chunk.row_group, chunk.node.column)


def claim_modules(file: OpenFile, row_group: int, node: Node) -> Chunk | None:
    """Note that a chunk owns its page index and its Bloom filter, unless another chunk owns them. For operations that
    take many chunks in any order. Returns the chunk, if it can be read."""
    try:
        chunk = file.chunk(row_group, node)
    except ParquetError:
        return None
    filter_range = chunk.numbers.bloom_filter_offset, chunk.numbers.bloom_filter_length
    for place in (_offset_range(chunk), _column_range(chunk), filter_range):
        if place[0] and (place[1] == 0 or _fits([place], file)):
            _is_own(place, chunk, file)
    return chunk


def check_own_index(file: OpenFile, chunk: Chunk) -> None:
    """Raise :class:`CorruptFileError` if an earlier chunk has the same page index. Otherwise many chunks could cause
    one large index to be read again and again."""
    for what, offset, length in (
        ("OffsetIndex", *_offset_range(chunk)),
        ("ColumnIndex", *_column_range(chunk)),
    ):
        if offset and length and not _is_own((offset, length), chunk, file):
            raise CorruptFileError(
                f"the bytes of its {what} at offset {offset} are also those of another column chunk's: "
                "pyparq.add_indexes makes new ones",
                file=file.name, row_group=chunk.row_group, column=chunk.name,
            )  # fmt: skip


def _fits(ranges: list[Range], file: OpenFile) -> bool:
    end, most = file.fetcher.source.size - 8, file.options.limits.max_index
    return all(offset >= 4 and 0 < length <= most and offset + length <= end for offset, length in ranges)


def warn_index(file: OpenFile, chunk: Chunk, error: ParquetError) -> None:
    """Warn that a damaged index is ignored."""
    said = CorruptFileError(
        f"page index ignored: {error.message}", file=file.name, row_group=chunk.row_group, column=chunk.name
    )
    warn_caller(str(said), CorruptIndexWarning)


def read_locations(file: OpenFile, chunks: Sequence[Chunk]) -> dict[Key, PageLocations]:
    """Page locations of every chunk that has a usable OffsetIndex."""
    usable = [c for c in chunks if has_offset_index(c) and _inside([_offset_range(c)], c, file)]
    parts = file.fetcher.fetch_indexes([_offset_range(c) for c in usable])
    found: dict[Key, PageLocations] = {}
    for chunk, data in zip(usable, parts, strict=True):
        locations = _locations(file, chunk, data)
        if locations is not None:
            found[chunk.row_group, chunk.node.column] = locations
    return found


def sound_locations(file: OpenFile, chunk: Chunk) -> PageLocations | None:
    """The page locations of a chunk, if its OffsetIndex (and its ColumnIndex, if it has one) is undamaged. ``None``
    otherwise, without a warning. Raises :class:`EncryptionError` if one fails its authentication."""
    ranges = [_offset_range(chunk), *([_column_range(chunk)] if has_column_index(chunk) else [])]
    own = all(_is_own(place, chunk, file) for place in ranges)
    if not own or not _fits(ranges, file):
        return None
    parts = file.fetcher.fetch(ranges)
    placed = chunk.crypto.open(Module.OFFSET_INDEX, parts[0])
    bounded = [chunk.crypto.open(Module.COLUMN_INDEX, part) for part in parts[1:]]
    try:
        locations = _parsed_locations(file, chunk, placed)
        for data in bounded:
            _parsed_bounds(file, chunk, data, locations)
    except ParquetError:
        return None
    return locations


def _parsed_locations(file: OpenFile, chunk: Chunk, data: memoryview) -> PageLocations:
    return parse_offset_index(data, chunk.num_rows, chunk.start, chunk.end, file.options.limits)


def _locations(file: OpenFile, chunk: Chunk, data: memoryview) -> PageLocations | None:
    data = chunk.crypto.open(Module.OFFSET_INDEX, data)
    try:
        return _parsed_locations(file, chunk, data)
    except ParquetError as error:
        warn_index(file, chunk, error)
        return None


def read_page_indexes(file: OpenFile, chunks: Sequence[Chunk]) -> dict[Key, tuple[Bounds, PageLocations]]:
    """Bounds and locations of the pages of every chunk that has both indexes, undamaged."""
    usable = [
        c
        for c in chunks
        if has_offset_index(c) and has_column_index(c) and _inside([_offset_range(c), _column_range(c)], c, file)
    ]
    parts = file.fetcher.fetch_indexes([r for c in usable for r in (_column_range(c), _offset_range(c))])
    found: dict[Key, tuple[Bounds, PageLocations]] = {}
    for k, chunk in enumerate(usable):
        locations = _locations(file, chunk, parts[2 * k + 1])
        bounds = None if locations is None else _bounds(file, chunk, parts[2 * k], locations)
        if bounds is not None and locations is not None:
            found[chunk.row_group, chunk.node.column] = bounds, locations
    return found


def _bounds(file: OpenFile, chunk: Chunk, data: memoryview, locations: PageLocations) -> Bounds | None:
    data = chunk.crypto.open(Module.COLUMN_INDEX, data)
    try:
        return _parsed_bounds(file, chunk, data, locations)
    except ParquetError as error:
        warn_index(file, chunk, error)
        return None


def _parsed_bounds(file: OpenFile, chunk: Chunk, data: memoryview, locations: PageLocations) -> Bounds:
    node = chunk.node
    counts = locations.row_counts(chunk.num_rows) if node.max_rep == 0 else None
    return parse_column_index(
        data,
        node.type,
        len(locations),
        counts=None if counts is None else np.asarray(counts),
        column_order=file.column_order(node),
        created_by=file.created_by,
        max_def=node.max_def,
        max_rep=node.max_rep,
        limits=file.options.limits,
    )
