"""Checks the footer's statements about a column chunk against its pages: sizes, counts, encodings, statistics."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from pyparq import kernels
from pyparq.format import ttypes as tt
from pyparq.format.compression import encoding_name
from pyparq.format.leaf_values import BinaryValues, count_of
from pyparq.format.order import FLOAT_KINDS, decode_bounds, segment_minmax
from pyparq.format.schema_node import Node
from pyparq.index.statistics import parse_created_by
from pyparq.maintenance.verify.bounds import ChunkValues, TrueBounds
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
