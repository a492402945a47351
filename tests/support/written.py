"""What a test looks at in a file: footer, pages and indexes, taken apart without pyparq's reader.

Only the Thrift structs are shared with the code under test (they are held against the standard elsewhere).
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyparq
from pyparq.format import ttypes as tt
from pyparq.format.thrift_codec import deserialize


@dataclass
class Page:
    offset: int
    header: Any
    body: bytes

    @property
    def size(self) -> int:
        """Stored bytes, header included."""
        return self.header_size + len(self.body)

    header_size: int = 0

    @property
    def detail(self) -> Any:
        h = self.header
        return h.data_page_header or h.data_page_header_v2 or h.dictionary_page_header


@dataclass
class Written:
    data: bytes

    def __post_init__(self) -> None:
        assert self.data[:4] == b"PAR1"
        assert self.data[-4:] == b"PAR1"
        length = int.from_bytes(self.data[-8:-4], "little")
        self.footer_start = len(self.data) - 8 - length
        self.meta, end = deserialize(tt.FileMetaData, self.data, self.footer_start)
        assert end == len(self.data) - 8

    def chunk(self, row_group: int, column: int) -> Any:
        return self.meta.row_groups[row_group].columns[column]

    def pages(self, row_group: int, column: int) -> list[Page]:
        return list(self._pages(self.chunk(row_group, column).meta_data))

    def _pages(self, meta: Any) -> Iterator[Page]:
        at = meta.data_page_offset if meta.dictionary_page_offset is None else meta.dictionary_page_offset
        end = at + meta.total_compressed_size
        while at < end:
            header, body = deserialize(tt.PageHeader, self.data, at)
            stop = body + header.compressed_page_size
            yield Page(at, header, self.data[body:stop], body - at)
            at = stop
        assert at == end

    def offset_index(self, row_group: int, column: int) -> Any:
        chunk = self.chunk(row_group, column)
        index, end = deserialize(tt.OffsetIndex, self.data, chunk.offset_index_offset)
        assert end == chunk.offset_index_offset + chunk.offset_index_length
        return index

    def column_index(self, row_group: int, column: int) -> Any:
        chunk = self.chunk(row_group, column)
        if chunk.column_index_offset is None:
            return None
        index, end = deserialize(tt.ColumnIndex, self.data, chunk.column_index_offset)
        assert end == chunk.column_index_offset + chunk.column_index_length
        return index

    def bitset(self, row_group: int, column: int) -> bytes | None:
        """The Bloom filter's bitset."""
        meta = self.chunk(row_group, column).meta_data
        if meta.bloom_filter_offset is None:
            return None
        header, start = deserialize(tt.BloomFilterHeader, self.data, meta.bloom_filter_offset)
        end = meta.bloom_filter_offset + meta.bloom_filter_length
        assert end == start + header.numBytes
        return self.data[start:end]


def write(data: Any, **options: Any) -> Written:
    """Write with pyparq to memory, and take it apart."""
    return Written(written(data, **options))


def written(data: Any, **options: Any) -> bytes:
    """The bytes of a file that pyparq writes."""
    sink = io.BytesIO()
    pyparq.write_table(data, sink, **options)
    return sink.getvalue()


def footer(data: bytes) -> Any:
    """The FileMetaData at the end of a file, whoever wrote it."""
    size = int.from_bytes(data[-8:-4], "little")
    return deserialize(tt.FileMetaData, data[-8 - size : -8])[0]


def crc_of(body: bytes) -> int:
    """As a page header holds it: signed."""
    crc = zlib.crc32(body)
    return crc - (1 << 32) if crc >= 1 << 31 else crc
