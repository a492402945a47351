"""Checks the footer's statements about a column chunk against its pages: sizes, counts, encodings, statistics, page
indexes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from pyparq import kernels
from pyparq.format import ttypes as tt
from pyparq.format.compression import encoding_name
from pyparq.format.leaf_values import BinaryValues, count_of
from pyparq.format.order import FLOAT_KINDS, Int64Array, decode_bounds, segment_minmax
from pyparq.format.schema_node import Node
from pyparq.format.thrift_codec import deserialize
from pyparq.index.statistics import ASCENDING, DESCENDING, UNORDERED, parse_created_by
from pyparq.maintenance.verify.bounds import ChunkValues, Stated, TrueBounds, in_order
from pyparq.maintenance.verify.report import Findings
from pyparq.read.decode.chunk_pages import DATA_PAGE, DATA_PAGE_V2, ChunkPages, take_values
from pyparq.read.footers.chunks import Chunk
from pyparq.read.footers.open_file import omits_dictionary_header

META, STATISTICS, SIZES, HEADER = "ColumnMetaData", "Statistics", "SizeStatistics", "PageHeader"


def check_metadata(meta: Any, chunk: Chunk, stored: ChunkPages, created_by: str | None, findings: Findings) -> None:
    """Check ``meta``, the ColumnMetaData as stored in the footer."""
    if meta.num_values != stored.num_values:
        text = f"num_values is {meta.num_values}, but the pages hold {stored.num_values} values"
        findings.add("count", META, text)
    if meta.path_in_schema and meta.path_in_schema != list(chunk.node.path):
        findings.add("metadata", META, f"path_in_schema is {meta.path_in_schema}, but the schema says otherwise")
    _check_sizes(meta, chunk, stored, created_by, findings)
    _check_offsets(meta, stored, findings)
    _check_encodings(meta, stored, findings)


def _check_sizes(meta: Any, chunk: Chunk, stored: ChunkPages, created_by: str | None, findings: Findings) -> None:
    if not omits_dictionary_header(created_by) and meta.total_compressed_size != stored.size:
        text = f"total_compressed_size is {meta.total_compressed_size}, but the pages take {stored.size} bytes"
        findings.add("size", META, text)
    if not chunk.crypto.encrypted and meta.total_uncompressed_size != stored.uncompressed:
        stated = meta.total_uncompressed_size
        text = f"total_uncompressed_size is {stated}, but the pages take {stored.uncompressed} bytes uncompressed"
        findings.add("size", META, text)


def _check_offsets(meta: Any, stored: ChunkPages, findings: Findings) -> None:
    if stored.dictionary is not None and meta.dictionary_page_offset not in (None, 0, stored.dictionary.offset):
        stated, true = meta.dictionary_page_offset, stored.dictionary.offset
        findings.add("location", META, f"dictionary_page_offset is {stated}, but the dictionary page is at {true}")
    if stored.dictionary is None and meta.dictionary_page_offset:
        findings.add("location", META, "dictionary_page_offset is set, but the chunk has no dictionary page")
    # Without an offset of its own, old writers let the first offset stand for a dictionary too.
    allowed = {page.offset for page in stored.pages[:1]}
    if stored.dictionary is not None and not meta.dictionary_page_offset:
        allowed.add(stored.dictionary.offset)
    if allowed and meta.data_page_offset not in allowed:
        stated, true = meta.data_page_offset, stored.pages[0].offset
        findings.add("location", META, f"data_page_offset is {stated}, but the first data page is at {true}")


def _check_encodings(meta: Any, stored: ChunkPages, findings: Findings) -> None:
    used = {page.encoding for page in stored.pages}
    missing = used - set(meta.encodings or ())
    if missing and meta.encodings:
        page = next(k for k, page in enumerate(stored.pages) if page.encoding in missing)
        names = ", ".join(sorted(map(encoding_name, missing)))
        findings.add("encoding", META, f"encodings does not list {names}", page)
    if not meta.encoding_stats:
        return
    # By encoding only: parquet-java lists pages of version 2 as plain data pages.
    stated: Counter[int] = Counter()
    for entry in meta.encoding_stats:
        if entry.page_type in (DATA_PAGE, DATA_PAGE_V2):
            stated[entry.encoding] += entry.count
    true = Counter(page.encoding for page in stored.pages)
    for encoding in sorted(stated.keys() | true.keys()):
        if stated[encoding] != true[encoding]:
            name = encoding_name(encoding)
            text = f"encoding_stats counts {stated[encoding]} data pages of {name}, but there are {true[encoding]}"
            findings.add("encoding", META, text)


# ---- counts --------------------------------------------------------------------------------------------------------


def check_rows(chunk: Chunk, stored: ChunkPages, values: ChunkValues, findings: Findings) -> None:
    """Check the rows of the chunk, and the counts in the headers of v2 pages."""
    rows = int(values.num_rows.sum())
    if rows != chunk.num_rows:
        findings.add("count", "RowGroup", f"num_rows is {chunk.num_rows}, but the pages of the column hold {rows} rows")
    if values.rep_levels and values.rep_levels[0] is not None and len(values.rep_levels[0]):
        first = int(values.rep_levels[0][0])
        if first:
            findings.add("page", "data", f"the first repetition level is {first}, but a row starts with 0", 0, 0)
    nulls = values.num_levels - values.num_present
    for name, true in (("num_nulls", nulls), ("num_rows", values.num_rows)):
        stated = [getattr(page, name) for page in stored.pages]
        wrong = [k for k, n in enumerate(stated) if n is not None and n != true[k]]
        if wrong:
            page = wrong[0]
            text = f"{name} is {stated[page]}, but the page has {true[page]}"
            findings.add("count", HEADER, text, page, int(values.first_rows[page]), len(wrong))
    _check_sorted_dictionary(stored, values, findings)


def _check_sorted_dictionary(stored: ChunkPages, values: ChunkValues, findings: Findings) -> None:
    if stored.dictionary is None or not stored.dictionary.is_sorted or values.entries is None:
        return
    count = count_of(values.entries)
    found = segment_minmax(values.leaf, values.entries, np.arange(count + 1, dtype=np.int64)).mins
    keys, usable = decode_bounds(values.leaf, found)
    keys = keys[usable]
    wrong = np.flatnonzero(np.asarray(keys[:-1] > keys[1:], bool))
    if len(wrong):
        text = f"is_sorted is set, but entry {int(wrong[0]) + 1} is smaller than the one before"
        findings.add("sorting", "DictionaryPageHeader", text, "dictionary")


def check_counts(
    statistics: tt.Statistics, values: ChunkValues, bounds: TrueBounds | None, created_by: str | None,
    findings: Findings,
) -> None:  # fmt: skip
    """Check the counts of nulls, NaN and distinct values in the chunk's statistics."""
    nulls = values.num_levels - values.num_present
    counted = counts_nulls(values.chunk.node, created_by)
    if statistics.null_count is not None and statistics.null_count != int(nulls.sum()) and counted:
        page = int(np.argmax(nulls > 0)) if (nulls > 0).any() else None
        text = f"null_count is {statistics.null_count}, but the chunk holds {int(nulls.sum())} nulls"
        findings.add("count", STATISTICS, text, page)
    if bounds is not None and statistics.nan_count is not None and bounds.pages.nan_counts is not None:
        nans = int(bounds.pages.nan_counts.sum())
        if statistics.nan_count != nans:
            findings.add("count", STATISTICS, f"nan_count is {statistics.nan_count}, but the chunk holds {nans} NaN")
    estimates = parse_created_by(created_by or "")[0].startswith("duckdb")  # of distinct values
    if statistics.distinct_count is not None and not estimates and values.leaf.kind not in FLOAT_KINDS:
        true = num_distinct(values)
        if statistics.distinct_count != true:
            text = f"distinct_count is {statistics.distinct_count}, but the chunk holds {true} distinct values"
            findings.add("count", STATISTICS, text)


def counts_nulls(node: Node, created_by: str | None) -> bool:
    """Whether the writer counts nulls as the format says. parquet-cpp, before it became a part of Arrow, left out lists
    that are null or empty."""
    return node.max_rep == 0 or parse_created_by(created_by or "")[0] != "parquet-cpp"


def num_distinct(values: ChunkValues) -> int:
    """Number of distinct values of the chunk, by their hashes."""
    parts = [] if values.entries is None else [take_values(values.entries, values.used_codes)]
    hashes = []
    for part in (*parts, values.values):
        if isinstance(part, BinaryValues):
            hashes.append(kernels.xxh64_binary(part.offsets, part.data))
        else:
            hashes.append(kernels.xxh64_fixed(np.ascontiguousarray(part), values.leaf.width))
    return kernels.count_distinct_u64(np.concatenate(hashes))


def counts_bytes(values: ChunkValues, created_by: str | None) -> bool:
    """Whether the stated bytes of byte arrays count all values in full. Arrow C++ leaves out the prefixes that
    DELTA_BYTE_ARRAY shares."""
    is_arrow = parse_created_by(created_by or "")[0] == "parquet-cpp-arrow"
    return values.leaf.is_binary and not (is_arrow and values.has_shared_prefixes)


def check_size_statistics(
    sizes: tt.SizeStatistics, values: ChunkValues, created_by: str | None, findings: Findings
) -> None:
    """Check the bytes of byte arrays, and the level histograms."""
    stated = sizes.unencoded_byte_array_data_bytes
    if stated is not None and counts_bytes(values, created_by):
        true = int(values.byte_counts.sum())
        if stated != true:
            text = f"unencoded_byte_array_data_bytes is {stated}, but the values have {true} bytes"
            findings.add("size", SIZES, text)
    for name in ("definition_level_histogram", "repetition_level_histogram"):
        listed = getattr(sizes, name)
        if not listed:
            continue
        by_page = values.def_histograms if name.startswith("definition") else values.rep_histograms
        counts = by_page.sum(axis=0).tolist()
        if listed != counts:
            findings.add("histogram", SIZES, f"{name} is {listed}, but it should be {counts}")


# ---- the ColumnIndex and OffsetIndex (PageIndex.md)


OFFSET, COLUMN = "OffsetIndex", "ColumnIndex"


def first_difference(stated: Any, true: Int64Array) -> tuple[int, int]:
    """(the first position where two arrays differ, the number of differences). ``(-1, 0)`` if they are equal."""
    wrong = np.flatnonzero(np.asarray(stated, np.int64) != true)
    return (int(wrong[0]), len(wrong)) if len(wrong) else (-1, 0)


def may_be_left_out(num_values: Int64Array, encrypted: bool) -> Int64Array:
    """The ordinals of the data pages that the indexes of a chunk may leave out, all of them or none. See
    :mod:`pyparq.index.page_index`.

    ``num_values``: values of each page, nulls included.
    """
    empty = np.flatnonzero(num_values == 0)
    return np.empty(0, np.int64) if encrypted else empty[empty > 0]


def check_offset_index(
    data: Any, stored: ChunkPages, values: ChunkValues | None, findings: Findings, *, byte_counts: bool,
    encrypted: bool,
) -> int:  # fmt: skip
    """Offsets and sizes against the pages, first rows and (``byte_counts``) bytes against what they hold. ``values`` is
    ``None`` where they do not decode. Returns how many pages the index lists. Raises :class:`ParquetError` for bytes
    that are no OffsetIndex."""
    index, _ = deserialize(tt.OffsetIndex, data)
    num_listed = len(index.page_locations)
    left_out = may_be_left_out(np.array([page.num_values for page in stored.pages], np.int64), encrypted)
    if len(left_out) and num_listed == len(stored.pages) - len(left_out):
        _put_back(index, left_out.tolist(), stored, values)
    _check_locations(index, stored, values, findings, byte_counts)
    return num_listed


def _put_back(index: Any, left_out: list[int], stored: ChunkPages, values: ChunkValues | None) -> None:
    """Insert the pages without values into an OffsetIndex that leaves them out."""
    sizes = index.unencoded_byte_array_data_bytes
    whole = sizes is not None and len(sizes) == len(index.page_locations)
    for k in left_out:
        page = stored.pages[k]
        row = 0 if values is None else int(values.first_rows[k])
        index.page_locations.insert(k, tt.PageLocation(page.offset, page.size, row))
        if whole:
            sizes.insert(k, 0)


def _check_locations(
    index: Any, stored: ChunkPages, values: ChunkValues | None, findings: Findings, byte_counts: bool
) -> None:
    listed = index.page_locations
    if len(listed) != len(stored.pages):
        findings.add("index", OFFSET, f"it lists {len(listed)} pages, but the chunk has {len(stored.pages)} data pages")
        return
    for name, true in (
        ("offset", [page.offset for page in stored.pages]),
        ("compressed_page_size", [page.size for page in stored.pages]),
    ):
        _compare([getattr(p, name) for p in listed], np.array(true, np.int64), name, "location", OFFSET, findings)
    if values is None:
        return
    first_rows = [p.first_row_index for p in listed]
    page, pages = first_difference(first_rows, values.first_rows)
    if pages:
        text = f"first_row_index is {first_rows[page]}, but the page starts with row {values.first_rows[page]}"
        findings.add("location", OFFSET, text, page, int(values.first_rows[page]), pages)
    _check_starts(values, findings)
    sizes = index.unencoded_byte_array_data_bytes
    if sizes is not None and byte_counts:
        _compare(sizes, values.byte_counts, "unencoded_byte_array_data_bytes", "size", OFFSET, findings)


def _check_starts(values: ChunkValues, findings: Findings) -> None:
    """Check that the pages in an OffsetIndex begin with a row."""
    middle = [k for k, reps in enumerate(values.rep_levels) if reps is not None and len(reps) and reps[0] != 0]
    if middle:
        row = int(values.first_rows[middle[0]]) - 1
        text = "the page starts in the middle of a row, which an OffsetIndex cannot express"
        findings.add("location", OFFSET, text, middle[0], max(row, 0), len(middle))


def _compare(stated: Any, true: Int64Array, name: str, kind: str, structure: str, findings: Findings) -> None:
    if len(stated) != len(true):
        findings.add("index", structure, f"it has {len(stated)} {name} for {len(true)} pages")
        return
    page, pages = first_difference(stated, true)
    if pages:
        findings.add(kind, structure, f"{name} is {stated[page]}, but it should be {true[page]}", page, pages=pages)


def check_column_index(
    data: Any, values: ChunkValues, bounds: TrueBounds | None, num_listed: int | None, findings: Findings
) -> None:
    """Null pages, counts, histograms, and where ``bounds`` is given those of the pages and their order. The OffsetIndex
    lists ``num_listed`` pages, if that is known.

    Raises :class:`ParquetError` for bytes that are no ColumnIndex."""
    index, _ = deserialize(tt.ColumnIndex, data)
    left_out = may_be_left_out(values.num_levels, values.chunk.crypto.encrypted)
    if len(left_out) and len(index.null_pages) == values.num_pages - len(left_out):
        if num_listed == values.num_pages:
            text = f"it has {len(index.null_pages)} pages, but the OffsetIndex lists {num_listed}"
            findings.add("index", COLUMN, text)
            return
        _spread(index, left_out.tolist(), values)
    elif num_listed == values.num_pages - len(left_out) and num_listed != values.num_pages:
        text = f"it has {len(index.null_pages)} pages, but the OffsetIndex lists {num_listed}"
        findings.add("index", COLUMN, text)
        return
    lists = ("null_pages", "min_values", "max_values", "null_counts", "nan_counts")
    lengths = {name: len(found) for name in lists if (found := getattr(index, name)) is not None}
    wrong = {name: length for name, length in lengths.items() if length != values.num_pages}
    for name, length in wrong.items():
        findings.add("index", COLUMN, f"it has {length} {name}, but the chunk has {values.num_pages} data pages")
    if wrong:
        return
    is_null = (values.num_present == 0).astype(np.int64)
    page, pages = first_difference(index.null_pages, is_null)
    if pages:
        what = "holds no value" if is_null[page] else f"holds {values.num_present[page]} values"
        text = f"null_pages is {bool(index.null_pages[page])}, but the page {what}"
        findings.add("count", COLUMN, text, page, int(values.first_rows[page]), pages)
    if index.null_counts is not None:
        _compare(index.null_counts, values.num_levels - values.num_present, "null_counts", "count", COLUMN, findings)
    if bounds is not None and index.nan_counts is not None and bounds.pages.nan_counts is not None:
        _compare(index.nan_counts, bounds.pages.nan_counts, "nan_counts", "count", COLUMN, findings)
    _check_histograms(index, values, findings)
    if bounds is not None:
        _check_bounds(index, bounds, findings)


def _spread(index: Any, left_out: list[int], values: ChunkValues) -> None:
    """Insert the pages without values into a ColumnIndex that leaves them out."""
    node, pages = values.chunk.node, len(index.null_pages)
    entries: dict[str, list[Any]] = {
        "null_pages": [True],
        "min_values": [b""],
        "max_values": [b""],
        "null_counts": [0],
        "nan_counts": [0],
    }
    entries["definition_level_histograms"] = [0] * (node.max_def + 1)
    entries["repetition_level_histograms"] = [0] * (node.max_rep + 1)
    for name, entry in entries.items():
        listed, width = getattr(index, name), len(entry)
        if listed is not None and len(listed) == pages * width:
            for k in left_out:
                listed[k * width : k * width] = entry


def _check_bounds(index: Any, bounds: TrueBounds, findings: Findings) -> None:
    lows: list[bytes | None] = list(index.min_values)
    highs: list[bytes | None] = list(index.max_values)
    bounds.check(Stated(COLUMN, "min_values", "max_values", lows, highs), findings)
    claimed = index.boundary_order
    if claimed not in (UNORDERED, ASCENDING, DESCENDING):
        findings.add("boundary order", COLUMN, f"boundary_order {claimed} does not exist")
    if claimed not in (ASCENDING, DESCENDING):
        return
    nulls = np.array(index.null_pages, bool)
    for name, raw in (("min_values", lows), ("max_values", highs)):
        listed, usable = in_order(bounds.leaf, raw, bounds.order)
        there = np.flatnonzero(usable & ~nulls)
        above, below = listed[there[:-1]], listed[there[1:]]
        wrong = np.flatnonzero(np.asarray(above > below if claimed == ASCENDING else above < below, bool))
        if len(wrong):
            page = int(there[int(wrong[0]) + 1])
            stated = "ASCENDING" if claimed == ASCENDING else "DESCENDING"
            text = f"boundary_order is {stated}, but {name} of the page is {_side(claimed)} than that of the one before"
            findings.add("boundary order", COLUMN, text, page, int(bounds.values.first_rows[page]), len(wrong))


def _side(claimed: int) -> str:
    return "smaller" if claimed == ASCENDING else "larger"


def _check_histograms(index: Any, values: ChunkValues, findings: Findings) -> None:
    node = values.chunk.node
    for name, maximum in (
        ("definition_level_histograms", node.max_def),
        ("repetition_level_histograms", node.max_rep),
    ):
        listed = getattr(index, name)
        if not listed or (maximum == 0 and name.startswith("repetition")):
            continue
        if len(listed) != values.num_pages * (maximum + 1):
            text = f"{name} has {len(listed)} entries for {values.num_pages} pages and {maximum + 1} levels"
            findings.add("index", COLUMN, text)
            continue
        true = values.def_histograms if name.startswith("definition") else values.rep_histograms
        stated = np.array(listed, np.int64).reshape(true.shape)
        wrong = np.flatnonzero((stated != true).any(axis=1))
        if len(wrong):
            page = int(wrong[0])
            text = f"{name} of the page is {stated[page].tolist()}, but it should be {true[page].tolist()}"
            findings.add("histogram", COLUMN, text, page, pages=len(wrong))
