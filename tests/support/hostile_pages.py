"""Pages and files made by hand: consistent claims that cost nothing to make."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import zstandard

from pyparq.format import ttypes as tt
from pyparq.format.thrift_codec import serialize


def hand_made(
    element: tt.SchemaElement, num_rows: int, pages: list[tuple[tt.PageHeader, bytes]], codec: int = 0
) -> bytes:
    """A file of one column and one row group whose metadata agrees with itself."""
    data, offsets, uncompressed = b"PAR1", [], 0
    for header, body in pages:
        header.compressed_page_size = len(body)
        offsets.append(len(data))
        raw = serialize(header)
        data += raw + body
        uncompressed += len(raw) + header.uncompressed_page_size
    has_dictionary = pages[0][0].type == 2
    meta = tt.ColumnMetaData(
        type=element.type, encodings=[0, 3, 8], path_in_schema=[element.name], codec=codec, num_values=num_rows,
        total_uncompressed_size=uncompressed, total_compressed_size=len(data) - 4,
        data_page_offset=offsets[1 if has_dictionary else 0], dictionary_page_offset=4 if has_dictionary else None,
    )  # fmt: skip
    group = tt.RowGroup(columns=[tt.ColumnChunk(file_offset=0, meta_data=meta)], total_byte_size=0, num_rows=num_rows)
    root = tt.SchemaElement(name="root", num_children=1)
    footer = serialize(tt.FileMetaData(version=1, schema=[root, element], num_rows=num_rows, row_groups=[group]))
    return data + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def data_page(count: int, encoding: int, size: int) -> tt.PageHeader:
    inner = tt.DataPageHeader(
        num_values=count, encoding=encoding, definition_level_encoding=3, repetition_level_encoding=3
    )
    return tt.PageHeader(type=0, uncompressed_page_size=size, compressed_page_size=size, data_page_header=inner)


def dictionary_page(count: int, size: int) -> tt.PageHeader:
    inner = tt.DictionaryPageHeader(num_values=count, encoding=0)
    return tt.PageHeader(type=2, uncompressed_page_size=size, compressed_page_size=size, dictionary_page_header=inner)


def run_of(count: int, value: int, width: int) -> bytes:
    """One RLE run."""
    header, raw = count << 1, b""
    while header > 127:
        raw += bytes([header & 127 | 128])
        header >>= 7
    return raw + bytes([header]) + value.to_bytes((width + 7) // 8, "little")


def with_size(raw: bytes) -> bytes:
    return len(raw).to_bytes(4, "little") + raw


OPTIONAL_INT = tt.SchemaElement(name="n", type=2, repetition_type=1)
REQUIRED_INT = tt.SchemaElement(name="n", type=2, repetition_type=0)
REQUIRED_TEXT = tt.SchemaElement(name="s", type=6, repetition_type=0)


def bombs() -> Iterator[tuple[str, bytes]]:
    nulls = with_size(run_of(1 << 30, 0, 1))
    yield "rows without end", hand_made(OPTIONAL_INT, 1 << 40, [(data_page(1 << 30, 0, len(nulls)), nulls)])
    yield "a billion nulls", hand_made(OPTIONAL_INT, 1 << 30, [(data_page(1 << 30, 0, len(nulls)), nulls)])
    some = with_size(run_of(1 << 26, 0, 1))
    page = (data_page(1 << 26, 0, len(some)), some)
    yield "many pages of nulls", hand_made(OPTIONAL_INT, 64 << 26, [page] * 64)
    wide = tt.SchemaElement(name="f", type=7, type_length=1 << 29, repetition_type=1)
    few = with_size(run_of(200, 0, 1))
    yield "values of half a gigabyte, all null", hand_made(wide, 200, [(data_page(200, 0, len(few)), few)])
    entry = with_size(bytes(1 << 20))
    indices = b"\0"  # no bits: the first entry
    for count in (1 << 10, 1 << 22):
        pages = [(dictionary_page(1, len(entry)), entry), (data_page(count, 8, len(indices)), indices)]
        yield f"one long value {count} times", hand_made(REQUIRED_TEXT, count, pages)
    zeros = zstandard.ZstdCompressor(level=3).compress(bytes(1 << 30))
    yield "a gigabyte of zeros", hand_made(REQUIRED_INT, 1 << 27, [(data_page(1 << 27, 0, 1 << 30), zeros)], codec=6)
    yield (
        "a gigabyte that is not there",
        hand_made(REQUIRED_INT, 8, [(data_page(8, 0, 1 << 30), bytes(90_000))], codec=6),
    )
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    gzip = b"".join([packer.compress(bytes(64 << 20)) for _ in range(10)]) + packer.flush()
    page = (data_page(80 << 20, 0, 640 << 20), gzip)
    yield "640 MiB in gzip", hand_made(REQUIRED_INT, 80 << 20, [page], codec=2)
