"""Parquet files put together by hand, from schema elements and page bodies: what no writer would write."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyparq.format import ttypes as tt
from pyparq.format.thrift_codec import serialize

REQUIRED, OPTIONAL, REPEATED = 0, 1, 2
PLAIN, RLE, BIT_PACKED = 0, 3, 4


def group(name: str, repetition: int | None, children: int | None, **given: Any) -> tt.SchemaElement:
    return tt.SchemaElement(name=name, repetition_type=repetition, num_children=children, **given)


def leaf(name: str, repetition: int | None, type_: int | None = 1, **given: Any) -> tt.SchemaElement:
    return tt.SchemaElement(name=name, repetition_type=repetition, type=type_, **given)


@dataclass
class Page:
    """A data page of version 1, uncompressed. Levels: a list to encode in one bit-packed run each, or raw bytes."""

    num_values: int
    values: bytes
    rep: Sequence[int] | bytes | None = None
    definition: Sequence[int] | bytes | None = None
    encoding: int = PLAIN
    level_encoding: int = RLE

    def body(self, max_rep: int, max_def: int) -> bytes:
        parts = []
        for levels, maximum in ((self.rep, max_rep), (self.definition, max_def)):
            if levels is None:
                continue
            raw = levels if isinstance(levels, bytes) else runs(levels, maximum.bit_length())
            parts.append(raw if self.level_encoding == BIT_PACKED else len(raw).to_bytes(4, "little") + raw)
        return b"".join(parts) + self.values

    def header(self, size: int) -> tt.PageHeader:
        inner = tt.DataPageHeader(
            num_values=self.num_values, encoding=self.encoding, definition_level_encoding=self.level_encoding,
            repetition_level_encoding=self.level_encoding,
        )  # fmt: skip
        return tt.PageHeader(type=0, uncompressed_page_size=size, compressed_page_size=size, data_page_header=inner)


def runs(levels: Sequence[int], width: int) -> bytes:
    """Levels as RLE runs of one each, of any value that the bytes can hold."""
    return b"".join(b"\2" + bytes([level]) * ((width + 7) // 8) for level in levels)


def int32(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}i", *values)


@dataclass
class Column:
    pages: Sequence[Page]
    max_rep: int = 0
    max_def: int = 0
    path: Sequence[str] = ("x",)
    type_: int = 1
    num_values: int | None = None
    """As the metadata claim; otherwise what the pages hold."""


def make(elements: Sequence[tt.SchemaElement], columns: Sequence[Column], num_rows: int) -> bytes:
    """A file of one row group. ``elements`` come with their root."""
    data, chunks = b"PAR1", []
    for column in columns:
        start = len(data)
        for page in column.pages:
            body = page.body(column.max_rep, column.max_def)
            data += serialize(page.header(len(body))) + body
        count = sum(p.num_values for p in column.pages) if column.num_values is None else column.num_values
        meta = tt.ColumnMetaData(
            type=column.type_, encodings=[0, 3], path_in_schema=list(column.path), codec=0, num_values=count,
            total_uncompressed_size=len(data) - start, total_compressed_size=len(data) - start, data_page_offset=start,
        )  # fmt: skip
        chunks.append(tt.ColumnChunk(file_offset=0, meta_data=meta))
    row_group = tt.RowGroup(columns=chunks, total_byte_size=0, num_rows=num_rows)
    meta = tt.FileMetaData(version=1, schema=list(elements), num_rows=num_rows, row_groups=[row_group])
    footer = serialize(meta)
    return data + footer + len(footer).to_bytes(4, "little") + b"PAR1"
