"""What tests look at in a file that was written again from another: every page's bytes, the indexes and the footer.

Taken apart with the generated Thrift structs alone, without pyparq's reader.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pyparq.format import ttypes as tt
from pyparq.format.thrift_codec import deserialize


@lru_cache(maxsize=4)
def footer_of(data: bytes) -> Any:
    """The FileMetaData of a file in the clear."""
    assert data[-4:] == b"PAR1"
    size = int.from_bytes(data[-8:-4], "little")
    return deserialize(tt.FileMetaData, data, len(data) - 8 - size)[0]


def footer_bytes(data: bytes) -> bytes:
    size = int.from_bytes(data[-8:-4], "little")
    return data[-8 - size : -8]


@dataclass(frozen=True)
class PlacedPage:
    offset: int
    size: int
    kind: int
    values: int


def pages_of(data: bytes, meta: Any) -> Iterator[PlacedPage]:
    """The pages of a column chunk, dictionary page included."""
    starts = [o for o in (meta.dictionary_page_offset or 0, meta.data_page_offset) if o > 0]
    at, left = min(starts, default=0), meta.num_values
    while left > 0:
        header, body = deserialize(tt.PageHeader, data, at)
        inner = header.data_page_header or header.data_page_header_v2
        values = inner.num_values if inner is not None else 0
        yield PlacedPage(at, body + header.compressed_page_size - at, header.type, values)
        left -= values
        at = body + header.compressed_page_size


def page_hashes(data: bytes) -> list[list[str]]:
    """A hash per page and column chunk: the same for two files whose pages are the same, wherever they lie."""
    hashes = []
    for group in footer_of(data).row_groups:
        for chunk in group.columns:
            pages = pages_of(data, chunk.meta_data)
            hashes.append([hashlib.sha256(data[p.offset : p.offset + p.size]).hexdigest() for p in pages])
    return hashes


def data_pages(data: bytes, row_group: int, column: int) -> list[PlacedPage]:
    meta = footer_of(data).row_groups[row_group].columns[column].meta_data
    return [p for p in pages_of(data, meta) if p.kind in (0, 3)]


def offset_index(data: bytes, row_group: int, column: int) -> Any:
    chunk = footer_of(data).row_groups[row_group].columns[column]
    if chunk.offset_index_offset is None:
        return None
    index, end = deserialize(tt.OffsetIndex, data, chunk.offset_index_offset)
    assert end == chunk.offset_index_offset + chunk.offset_index_length
    return index


def column_index(data: bytes, row_group: int, column: int) -> Any:
    chunk = footer_of(data).row_groups[row_group].columns[column]
    if chunk.column_index_offset is None:
        return None
    index, end = deserialize(tt.ColumnIndex, data, chunk.column_index_offset)
    assert end == chunk.column_index_offset + chunk.column_index_length
    return index


def without_indexes(data: bytes) -> list[Any]:
    """What a footer says beside indexes, key-values and column orders, in order; offsets of pages left out."""
    footer = footer_of(data)
    facts: list[Any] = [footer.version, footer.schema, footer.num_rows, footer.created_by]
    for group in footer.row_groups:
        facts += [group.total_byte_size, group.num_rows, group.sorting_columns, group.total_compressed_size]
        facts.append(group.ordinal)
        for chunk in group.columns:
            meta = chunk.meta_data
            facts += [chunk.file_path, meta.type, meta.encodings, meta.path_in_schema, meta.codec, meta.num_values]
            facts += [meta.total_uncompressed_size, meta.total_compressed_size, meta.statistics, meta.encoding_stats]
            facts += [meta.size_statistics, meta.key_value_metadata]
    return facts


def key_values(data: bytes) -> dict[str, Any]:
    return {pair.key: pair.value for pair in footer_of(data).key_value_metadata or []}


def copy_of(path: Path, folder: Path) -> Path:
    copy = folder / path.name
    copy.write_bytes(path.read_bytes())
    return copy
