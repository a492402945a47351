"""The physical limit beside each figure: what the bytes alone cost here, measured in the same run.

For a read: fetch exactly the pages a perfect index would name and decompress them into reused buffers, one
thread per core; no levels, no values, no Arrow. For a write: compress the finished pages and hand them to the
file system. Page positions come from a walk over the page headers, by the small Thrift reader below, so that
this file depends on no engine under test; the walk is not timed.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cramjam
import numpy as np
import pyarrow.parquet as pq
import zstandard

REPEATS = 9
BLOOM_PROBE = 64  # header and one block


@dataclass(frozen=True)
class Page:
    """A page as stored: body position, sizes, and the rows it holds (none: a dictionary page)."""

    row_group: int
    column: str
    offset: int
    stored: int
    plain: int
    first_row: int
    rows: int
    codec: str


def walk_pages(path: Path) -> list[Page]:
    """Every page of a flat file, in column chunk order."""
    metadata = pq.read_metadata(path)
    pages: list[Page] = []
    with path.open("rb") as source:
        for group in range(metadata.num_row_groups):
            for index in range(metadata.num_columns):
                chunk = metadata.row_group(group).column(index)
                start = min(x for x in (chunk.dictionary_page_offset, chunk.data_page_offset) if x)
                source.seek(start)
                raw = source.read(chunk.total_compressed_size)
                pages += walk_chunk(raw, start, group, chunk.path_in_schema, chunk.compression)
    return pages


def walk_chunk(raw: bytes, start: int, group: int, column: str, codec: str) -> Iterable[Page]:
    position, row = 0, 0
    while position < len(raw):
        header, position = read_struct(raw, position)
        data = header.get(5) or header.get(8)  # v1 or v2 header; a dictionary page has neither
        rows = data[1] if data else 0
        levels = data.get(5, 0) + data.get(6, 0) if header.get(8) else 0  # v2 levels are never compressed
        yield Page(group, column, start + position + levels, header[3] - levels, header[2] - levels, row, rows, codec)
        position, row = position + header[3], row + rows


def read_struct(raw: bytes, position: int) -> tuple[dict[int, Any], int]:
    """A Thrift compact struct as {field id: value}; page headers hold only the types handled here."""
    fields: dict[int, Any] = {}
    last = 0
    while (head := raw[position]) != 0:
        position += 1
        kind = head & 15
        if head >> 4:
            last += head >> 4
        else:
            last, position = read_zigzag(raw, position)
        if kind in (1, 2):
            fields[last] = kind == 1
        elif kind in (3, 4, 5, 6):
            fields[last], position = read_zigzag(raw, position)
        elif kind == 8:
            length, position = read_varint(raw, position)
            fields[last], position = raw[position : position + length], position + length
        elif kind == 12:
            fields[last], position = read_struct(raw, position)
        else:
            raise ValueError(f"Thrift type {kind} in a page header")
    return fields, position + 1


def read_varint(raw: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = raw[position]
        value |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return value, position


def read_zigzag(raw: bytes, position: int) -> tuple[int, int]:
    value, position = read_varint(raw, position)
    return (value >> 1) ^ -(value & 1), position


def select(pages: Sequence[Page], columns: Sequence[str], first: int, last: int, group: int) -> list[Page]:
    """The pages of `columns` in one row group that hold its rows first..last, and the dictionary pages."""
    return [
        page
        for page in pages
        if page.row_group == group
        and page.column in columns
        and (page.rows == 0 or (page.first_row <= last and page.first_row + page.rows > first))
    ]


def read_floor(path: Path, pages: Sequence[Page]) -> float:
    """Seconds to fetch and decompress `pages`, the pages dealt out over one thread per core."""
    largest = max((page.plain for page in pages), default=1)
    local = threading.local()

    def work(page: Page) -> None:
        if not hasattr(local, "buffer"):
            local.buffer = np.zeros(largest, np.uint8)
        body = os.pread(descriptor, page.stored, page.offset)
        decompress(page, body, local.buffer)

    descriptor = os.open(path, os.O_RDONLY)
    try:
        return run_parallel(work, pages)
    finally:
        os.close(descriptor)


def write_floor(path: Path, pages: Sequence[Page], level: int, target: Path) -> float:
    """Seconds to compress the bodies of `pages` again (codec as stored) and write them to `target`."""
    with path.open("rb") as source:
        bodies = [(page, plain_body(source, page)) for page in pages]
    local = threading.local()

    def work(item: tuple[Page, Any]) -> None:
        page, body = item
        if page.codec == "ZSTD":
            if not hasattr(local, "zstd"):
                local.zstd = zstandard.ZstdCompressor(level=level)
            packed: Any = local.zstd.compress(body)
        else:
            packed = cramjam.snappy.compress_raw(body)
        os.pwrite(descriptor, packed, page.offset)

    target.unlink(missing_ok=True)
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT)
    try:
        return run_parallel(work, bodies, repeats=3)
    finally:
        os.close(descriptor)
        target.unlink()


def probe_floor(path: Path, row_groups: int) -> float:
    """Seconds for the system calls of a Bloom miss: open, footer, one probe per row group, close."""
    size = path.stat().st_size
    footer = footer_bytes(path)

    def once() -> None:
        descriptor = os.open(path, os.O_RDONLY)
        os.pread(descriptor, footer, size - footer)
        for group in range(row_groups):
            os.pread(descriptor, BLOOM_PROBE, group * (size // (row_groups + 1)))
        os.close(descriptor)

    return timed(once, 101)


def footer_floor(path: Path) -> float:
    """Seconds to open the file and bring its footer into a reused buffer."""
    size = path.stat().st_size
    buffer = bytearray(footer_bytes(path))

    def once() -> None:
        with path.open("rb", buffering=0) as source:
            source.seek(size - len(buffer))
            source.readinto(buffer)

    return timed(once, REPEATS)


def footer_bytes(path: Path) -> int:
    with path.open("rb") as source:
        source.seek(-8, os.SEEK_END)
        return int.from_bytes(source.read(4), "little") + 8


def memory_bandwidth() -> float:
    """Bytes per second of one thread copying between two warm 64 MiB buffers."""
    source, target = np.ones(1 << 26, np.uint8), np.zeros(1 << 26, np.uint8)
    return len(source) / timed(lambda: np.copyto(target, source), REPEATS)


def codec_rate(path: Path, pages: Sequence[Page]) -> float:
    """Bytes per second, decompressed, of one thread on the file's own pages, already in memory."""
    with path.open("rb") as source:
        bodies = [(page, stored_body(source, page)) for page in pages]
    buffer = np.zeros(max(page.plain for page in pages), np.uint8)

    def once() -> None:
        for page, body in bodies:
            decompress(page, body, buffer)

    return sum(page.plain for page in pages) / timed(once, 3)


def decompress(page: Page, body: bytes, buffer: Any) -> None:
    if page.codec == "SNAPPY":
        cramjam.snappy.decompress_raw_into(body, buffer[: page.plain])
    elif page.codec == "ZSTD":
        cramjam.zstd.decompress_into(body, buffer[: page.plain])
    elif page.codec != "UNCOMPRESSED":
        raise ValueError(f"no floor for codec {page.codec}")


def stored_body(source: Any, page: Page) -> bytes:
    source.seek(page.offset)
    return bytes(source.read(page.stored))


def plain_body(source: Any, page: Page) -> Any:
    buffer = np.zeros(page.plain, np.uint8)
    decompress(page, stored_body(source, page), buffer)
    return buffer


def run_parallel(work: Callable[[Any], None], items: Sequence[Any], repeats: int = REPEATS) -> float:
    threads = os.cpu_count() or 1
    if len(items) < 4 * threads:  # starting threads would cost more than it brings
        return timed(lambda: [work(item) for item in items], repeats)
    with ThreadPoolExecutor(threads) as pool:
        shares = [items[i::threads] for i in range(threads)]
        return timed(lambda: list(pool.map(lambda share: [work(item) for item in share], shares)), repeats)


def timed(call: Callable[[], Any], repeats: int) -> float:
    """Seconds of the fastest repetition: a limit is what the machine can do, not what it usually does."""
    call()  # warm
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)
