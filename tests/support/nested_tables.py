"""A nested table whose values drift with the row, as plain Python rows and in files of several makes."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from written import Page, Written

import pyparq
from pyparq.format import ttypes as tt
from pyparq.format.compression import PLAIN
from pyparq.format.leaf_values import BinaryValues, Values, concat_values, from_plain_bytes, plain_bytes, slice_of
from pyparq.format.thrift_codec import serialize
from pyparq.format.types import LeafType
from pyparq.kernels._native import probes

Row = dict[str, Any]

STRUCT = pa.struct([("a", pa.int32()), ("t", pa.string()), ("in", pa.struct([("b", pa.float64())]))])
SCHEMA = pa.schema([
    pa.field("id", pa.int64(), nullable=False),
    ("s", STRUCT),
    ("l", pa.list_(pa.int32())),
    ("ll", pa.list_(pa.list_(pa.string()))),
    ("ls", pa.list_(pa.struct([("x", pa.int64()), ("y", pa.string()), ("z", pa.list_(pa.int32()))]))),
    ("m", pa.map_(pa.string(), pa.int32())),
    pa.field("r", pa.list_(pa.field("item", pa.int32(), nullable=False)), nullable=False),
    ("sl", pa.struct([("v", pa.list_(pa.float64()))])),
])  # fmt: skip


def maybe(rng: random.Random, make: Callable[[], Any], share: float = 0.15) -> Any:
    return None if rng.random() < share else make()


def items(rng: random.Random, make: Callable[[], Any], most: int = 4) -> list[Any]:
    return [make() for _ in range(rng.randrange(most))]


def make_row(k: int, rng: random.Random) -> Row:
    # Values drift with the row, so that pages differ in their bounds; whole stretches are null or empty.
    number = lambda: maybe(rng, lambda: k // 40 + rng.randrange(12))  # noqa: E731
    word = lambda: maybe(rng, lambda: f"w{k // 50 + rng.randrange(6):03d}")  # noqa: E731
    floats = lambda: maybe(rng, lambda: rng.choice([float("nan"), 0.0, -0.0, float(k // 100)]))  # noqa: E731
    nothing = 300 <= k < 500
    struct = lambda: {"a": number(), "t": word(), "in": maybe(rng, lambda: {"b": floats()})}  # noqa: E731
    inner = lambda: {"x": number(), "y": word(), "z": maybe(rng, lambda: items(rng, number))}  # noqa: E731
    return {
        "id": k,
        "s": None if nothing else maybe(rng, struct),
        "l": None if nothing else maybe(rng, lambda: items(rng, number)),
        "ll": maybe(rng, lambda: items(rng, lambda: maybe(rng, lambda: items(rng, word)))),
        "ls": [] if nothing else maybe(rng, lambda: items(rng, lambda: maybe(rng, inner))),
        "m": maybe(rng, lambda: {f"k{k // 100 + j}": number() for j in range(rng.randrange(3))}),
        "r": items(rng, lambda: k // 60 + rng.randrange(5)),
        "sl": maybe(rng, lambda: {"v": maybe(rng, lambda: items(rng, floats))}),
    }  # fmt: skip


def rows_of(count: int = 1200) -> list[Row]:
    rng = random.Random(11)
    return [make_row(k, rng) for k in range(count)]


ROWS = rows_of()
TABLE = pa.Table.from_pylist([{**r, "m": None if r["m"] is None else list(r["m"].items())} for r in ROWS], SCHEMA)


def by_pyarrow(**options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(TABLE, sink, row_group_size=700, **options)
    return sink.getvalue()


def by_us(**options: Any) -> bytes:
    sink = io.BytesIO()
    pyparq.write_table(TABLE, sink, row_group_size=700, **options)
    return sink.getvalue()


def within_rows(index: bool = False, **options: Any) -> bytes:
    """Pages that begin within rows, as old writers made them. Such pages may have no index; with ``index`` they get one
    all the same, which lies."""
    file = Written(by_us(max_rows_per_page=60, compression="none", write_page_checksum=False, **options))
    with pyparq.ParquetFile(file.data) as opened:
        leaves = opened.tree.leaves
    data, indexes = bytearray(b"PAR1"), []
    for group, row_group in enumerate(file.meta.row_groups):
        for column, chunk in enumerate(row_group.columns):
            pages = file.pages(group, column)
            first_rows = [place.first_row_index for place in file.offset_index(group, column).page_locations]
            start, places = len(data), []
            for page in pages if leaves[column].max_rep == 0 else moved(pages, leaves[column]):
                head = serialize(page.header)
                if page.header.data_page_header is not None:
                    places.append(tt.PageLocation(len(data), len(head) + len(page.body), first_rows[len(places)]))
                data += head + page.body
            chunk.meta_data.data_page_offset = places[0].offset
            if chunk.meta_data.dictionary_page_offset is not None:
                chunk.meta_data.dictionary_page_offset = start
            chunk.meta_data.total_compressed_size = chunk.meta_data.total_uncompressed_size = len(data) - start
            chunk.column_index_offset = chunk.column_index_length = None
            chunk.offset_index_offset = chunk.offset_index_length = None
            indexes.append((chunk, serialize(tt.OffsetIndex(places))))
    for chunk, stored in indexes if index else ():
        chunk.offset_index_offset, chunk.offset_index_length = len(data), len(stored)
        data += stored
    footer = serialize(file.meta)
    return bytes(data + footer + len(footer).to_bytes(4, "little") + b"PAR1")


def moved(pages: list[Page], leaf: Any) -> list[Page]:
    """The same pages, but each begins with the first slot that continues a row, where it has one."""
    kept = [page for page in pages if page.header.data_page_header is None]
    entries = kept[0].detail.num_values if kept else 0
    width = max(entries - 1, 0).bit_length()
    reps, defs, values = [], [], []
    for page in pages[len(kept) :]:
        count, at, levels = page.detail.num_values, 0, []
        for maximum in (leaf.max_rep, leaf.max_def):
            size = int.from_bytes(page.body[at : at + 4], "little")
            levels.append(np.empty(count, np.uint8))
            probes.rle_decode_u8(page.body[at + 4 : at + 4 + size], maximum.bit_length(), count, levels[-1])
            at += 4 + size
        present, body = int(np.count_nonzero(levels[1] == leaf.max_def)), page.body[at:]
        reps.append(levels[0]), defs.append(levels[1])
        values.append(indices(body, present) if kept else plain_values(page, body, present, leaf.type))
    whole = np.concatenate(values) if kept else concat_values(values, leaf.type)
    edges = [0, *np.cumsum([len(r) for r in reps]).tolist()]
    all_reps, all_defs = np.concatenate(reps), np.concatenate(defs)
    for k in range(1, len(edges) - 1):
        inside = np.flatnonzero(all_reps[edges[k] : edges[k + 1]])
        edges[k] += int(inside[0]) if len(inside) else 0
    before = np.append(0, np.cumsum(all_defs == leaf.max_def))
    for page, (first, last) in zip(pages[len(kept) :], pairwise(edges), strict=True):
        body = b""
        for levels, maximum in ((all_reps, leaf.max_rep), (all_defs, leaf.max_def)):
            runs = bytes(probes.rle_encode_u8(levels[first:last], maximum.bit_length()))
            body += len(runs).to_bytes(4, "little") + runs
        part = slice_of(whole, int(before[first]), int(before[last]))
        coded = bytes([width]) + bytes(probes.rle_encode_i32(part, width)) if kept else b""
        body += coded or bytes(plain_bytes(part, leaf.type))
        page.header.uncompressed_page_size = page.header.compressed_page_size = len(body)
        page.detail.num_values, page.body = last - first, body
    return pages


def indices(body: bytes, count: int) -> Any:
    """Dictionary indices: a byte with the bit width, then runs."""
    found = np.empty(count, np.int32)
    if count:
        probes.rle_decode_i32(body[1:], body[0], count, found, 1 << 31)
    return found


def plain_values(page: Page, body: bytes, count: int, leaf: LeafType) -> Values:
    """The values of a page of PLAIN values."""
    assert page.detail.encoding == PLAIN
    if not leaf.is_binary:
        return from_plain_bytes(body, count, leaf)
    offsets, data = np.empty(count + 1, np.int64), np.empty(len(body), np.uint8)
    probes.plain_binary_decode(body, count, offsets, data)
    return BinaryValues(offsets, data[: offsets[-1]])


FILES: dict[str, Callable[[], bytes]] = {
    "ours": lambda: by_us(max_rows_per_page=50),
    "ours v2 bloom": lambda: by_us(max_rows_per_page=70, data_page_version="2.0", bloom_filters=True),
    "ours plain": lambda: by_us(use_dictionary=False, write_page_index=False, write_size_statistics=False),
    "pyarrow": lambda: by_pyarrow(write_page_index=True, max_rows_per_page=60),
    "pyarrow v2": lambda: by_pyarrow(
        write_page_index=True, data_page_version="2.0", data_page_size=400, write_batch_size=16
    ),
    "within rows": lambda: within_rows(),
    "within rows, plain": lambda: within_rows(column_encoding="PLAIN", use_dictionary=False),
}  # fmt: skip
