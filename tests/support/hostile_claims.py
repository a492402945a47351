"""Small files whose parts agree with themselves, but that claim more than there is: column chunks that share their
bytes, pages that overlap, counts without end."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import pyarrow as pa
from forged import Forged
from hostile_pages import OPTIONAL_INT, REQUIRED_INT, data_page, run_of, with_size
from written import written

from pyparq.format import ttypes as tt
from pyparq.format.thrift_codec import serialize

MOST_INT32 = (1 << 31) - 1
MOST_INT64 = (1 << 63) - 1


# ---- column chunks that share their bytes


def without_indexes(forged: Forged) -> Forged:
    """The footer without page indexes and Bloom filters."""
    for group in forged.meta.row_groups:
        for chunk in group.columns:
            chunk.column_index_offset = chunk.column_index_length = None
            chunk.offset_index_offset = chunk.offset_index_length = None
            chunk.meta_data.bloom_filter_offset = chunk.meta_data.bloom_filter_length = None
    return forged


def groups_on_one_chunk(count: int = 40, rows: int = 1000) -> bytes:
    """Row groups that all have the column chunk of the first."""
    table = pa.table({"n": pa.array([k * k % 1_000_003 for k in range(rows)], pa.int32())})
    options = {"use_dictionary": False, "compression": "none", "row_group_size": rows, "max_rows_per_page": rows}
    forged = without_indexes(Forged(written(table, **options)))
    first = forged.meta.row_groups[0]
    forged.meta.row_groups = [deepcopy(first) for _ in range(count)]
    for k, group in enumerate(forged.meta.row_groups):
        group.ordinal = k
    forged.meta.num_rows = first.num_rows * count
    return forged.data()


def columns_on_one_chunk(count: int = 200) -> bytes:
    """Columns that all have the column chunk of the first."""
    table = pa.table({f"c{k:03}": pa.array(range(20_000), pa.int32()) for k in range(count)})
    forged = without_indexes(Forged(written(table, use_dictionary=False, compression="none")))
    place = forged.of("c000").data_page_offset
    for chunk in forged.meta.row_groups[0].columns:
        chunk.meta_data.data_page_offset = place
    return forged.data()


def by_hand(groups: Sequence[tuple[int, int, int]], pages: bytes, element: Any = REQUIRED_INT) -> bytes:
    """Row groups of one column over ``pages``, which begin the file: where each starts, its size and its values."""
    found = []
    for start, size, count in groups:
        meta = tt.ColumnMetaData(
            type=element.type, encodings=[0, 3], path_in_schema=[element.name], codec=0, num_values=count,
            total_uncompressed_size=size, total_compressed_size=size, data_page_offset=start,
        )  # fmt: skip
        chunk = tt.ColumnChunk(file_offset=0, meta_data=meta)
        found.append(tt.RowGroup(columns=[chunk], total_byte_size=size, num_rows=count))
    return _closed(pages, [tt.SchemaElement(name="root", num_children=1), element], found)


def _closed(pages: bytes, schema: list[Any], groups: list[Any]) -> bytes:
    rows = min(sum(group.num_rows for group in groups), MOST_INT64)
    footer = serialize(tt.FileMetaData(version=1, schema=schema, num_rows=rows, row_groups=groups))
    return pages + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def null_pages(count: int, values: int) -> tuple[bytes, list[int]]:
    """The beginning of a file with pages of so many nulls, and where each page starts; last, where they end."""
    levels = with_size(run_of(values, 0, 1))
    page = serialize(data_page(values, 0, len(levels))) + levels
    return b"PAR1" + page * count, [4 + k * len(page) for k in range(count + 1)]


def staggered_chunks(count: int, true_sizes: bool, order: random.Random | None = None) -> bytes:
    """Row group k has the pages from number k to the last. Sizes are true, or those of one page."""
    values = 4000
    pages, places = null_pages(count, values)
    ends = [places[-1]] * count if true_sizes else places[1:]
    groups = [(places[k], ends[k] - places[k], values * (count - k)) for k in range(count)]
    if order is not None:
        order.shuffle(groups)
    return by_hand(groups, pages, OPTIONAL_INT)


def chunks_in_turn(count: int) -> bytes:
    """A sound file whose row groups lie in the file in the opposite order."""
    pages, groups = b"PAR1", []
    for k in reversed(range(count)):
        body = k.to_bytes(8, "little") * 10
        page = serialize(data_page(10, 0, len(body))) + body
        groups.append((len(pages), len(page), 10))
        pages += page
    return by_hand(groups[::-1], pages)


# ---- counts without end


def nulls(rows: int, of_a_page: int) -> bytes:
    """Pages of ten bytes of nulls."""
    pages, places = null_pages(rows // of_a_page, of_a_page)
    return by_hand([(4, places[-1] - 4, rows)], pages, OPTIONAL_INT)


def more_rows(rows: int) -> bytes:
    """A page of a billion nulls in a row group that declares other rows."""
    pages, places = null_pages(1, 1 << 30)
    return by_hand([(4, places[-1] - 4, rows)], pages, OPTIONAL_INT)


def huge_size() -> bytes:
    """A sound column chunk that declares to be larger than any file."""
    pages, _ = null_pages(1, 1000)
    return by_hand([(4, (1 << 62) + 5, 1000)], pages, OPTIONAL_INT)


def huge_sizes_of_many(count: int = 3000) -> bytes:
    """So many columns that declare to be larger than any file."""
    forged = without_indexes(Forged(written(pa.table({f"c{k}": [k] for k in range(count)}), compression="none")))
    for chunk in forged.meta.row_groups[0].columns:
        chunk.meta_data.total_compressed_size = 1 << 62
    return forged.data()


def no_columns(rows: int, groups: int = 1) -> bytes:
    """Row groups of a file without columns: nothing shows that they have so many rows, or others."""
    found = [tt.RowGroup(columns=[], total_byte_size=0, num_rows=rows) for _ in range(groups)]
    return _closed(b"PAR1", [tt.SchemaElement(name="root", num_children=0)], found)


def many_values_of_a_page(values: int) -> bytes:
    """A page of 800 bytes that declares so many values."""
    body = bytes(800)
    page = serialize(data_page(values, 0, len(body))) + body
    return by_hand([(4, len(page), values)], b"PAR1" + page)


# ---- indexes and Bloom filters


def indexed() -> Forged:
    """A chunk of 200,000 rows in 2,000 pages."""
    table = pa.table({"n": pa.array(range(200_000), pa.int64())})
    options = {"use_dictionary": False, "max_rows_per_page": 100, "bloom_filters": {"n": 0.01}}
    return Forged(written(table, compression="none", **options))


def overlapping_pages() -> bytes:
    """An OffsetIndex that gives 2,000 times the same page."""
    forged = indexed()

    def change(index: Any) -> None:
        first = index.page_locations[0]
        for place in index.page_locations:
            place.offset, place.compressed_page_size = first.offset, first.compressed_page_size

    forged.offset_index("n", change)
    return forged.data()


def counts_of_indexes(value: int) -> bytes:
    """An OffsetIndex whose rows, and a ColumnIndex and statistics whose counts, are without end."""
    forged = indexed()

    def rows(index: Any) -> None:
        for k, place in enumerate(index.page_locations[1:]):
            place.first_row_index = value + k

    def counts(index: Any) -> None:
        pages = len(index.null_pages)
        index.null_counts = [value] * pages
        index.definition_level_histograms = [value] * (2 * pages)
        index.repetition_level_histograms = [value] * pages

    forged.offset_index("n", rows)
    forged.column_index("n", counts)
    meta = forged.of("n")
    meta.size_statistics = tt.SizeStatistics(value, [value], [value, value])
    meta.statistics.null_count = value
    return forged.data()


def shared_filter(count: int = 300) -> bytes:
    """Row groups of one row that share a Bloom filter of two megabytes."""
    forged = Forged(written(pa.table({"n": pa.array(range(count), pa.int64())}), row_group_size=1, compression="none"))
    large = Forged(written(pa.table({"n": range(800_000)}), compression="none", bloom_filters={"n": 0.01}))
    meta = large.of("n")
    bits = bytes(large.body[meta.bloom_filter_offset : meta.bloom_filter_offset + meta.bloom_filter_length])
    place = forged.append(bits)
    for group in forged.meta.row_groups:
        meta = group.columns[0].meta_data
        meta.bloom_filter_offset, meta.bloom_filter_length = place
    return forged.data()


def shared_indexes(count: int = 3000) -> bytes:
    """Row groups of one row that share the page index of 2,000 pages of another file."""
    forged = Forged(written(pa.table({"n": pa.array(range(count), pa.int64())}), row_group_size=1, compression="none"))
    large = indexed()
    chunk = large.chunk("n")
    for name in ("column_index", "offset_index"):
        start, size = getattr(chunk, f"{name}_offset"), getattr(chunk, f"{name}_length")
        place = forged.append(bytes(large.body[start : start + size]))
        for group in forged.meta.row_groups:
            setattr(group.columns[0], f"{name}_offset", place[0])
            setattr(group.columns[0], f"{name}_length", place[1])
    return forged.data()


CLAIMS: dict[str, Callable[[], bytes]] = {
    "row groups on one chunk": lambda: groups_on_one_chunk(40, 1_000_000),
    "columns on one chunk": columns_on_one_chunk,
    "staggered chunks": lambda: staggered_chunks(2000, True),
    "staggered chunks, shuffled": lambda: staggered_chunks(2000, True, random.Random(1)),
    "staggered chunks of one page": lambda: staggered_chunks(2000, False),
    "staggered chunks of one page, shuffled": lambda: staggered_chunks(2000, False, random.Random(1)),
    "2**31 nulls in 2 pages": lambda: nulls(1 << 31, 1 << 30),
    "2**31 nulls in 256 pages": lambda: nulls(1 << 31, 1 << 23),
    "2**35 nulls": lambda: nulls(1 << 35, 1 << 30),
    "2**40 rows": lambda: more_rows(1 << 40),
    "2**62 rows": lambda: more_rows(1 << 62),
    "2**62 bytes": huge_size,
    "2**62 bytes in each column": huge_sizes_of_many,
    "no columns, 2**31 rows": lambda: no_columns(1 << 31),
    "no columns, 2**62 rows": lambda: no_columns(1 << 62),
    "no columns, 2**64 rows": lambda: no_columns(1 << 62, 4),
    "overlapping pages": overlapping_pages,
    "2**31 rows in an index": lambda: counts_of_indexes(1 << 31),
    "2**62 rows in an index": lambda: counts_of_indexes(1 << 62),
    "2**31 values in a page": lambda: many_values_of_a_page(MOST_INT32),
    "a shared Bloom filter": shared_filter,
    "shared page indexes": shared_indexes,
}
"""Each takes a few kilobytes, or megabytes at most."""
