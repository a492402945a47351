"""Checks of the values of a chunk: against their types (UTF-8 in text, decimals within their precision, integers within
their bits, times within a day), against its Bloom filter, and against the order of rows that is stated.

No value may be denied by a Bloom filter. The rate at which absent values are not denied is measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.format.leaf_values import BinaryValues, Values, concat_values, count_of, slice_of
from pyparq.format.order import Order, decode_bounds, domain, encode_bound, stored_dtype
from pyparq.format.schema_node import Node
from pyparq.format.types import LeafType
from pyparq.index import bloom_filter
from pyparq.io.fetch import Fetcher
from pyparq.limits import Limits
from pyparq.maintenance.verify.bounds import ChunkValues, TrueBounds, beyond, shown
from pyparq.maintenance.verify.report import BloomRate, Findings
from pyparq.option_values import SortKey
from pyparq.read.decode.chunk_pages import take_values
from pyparq.read.footers.chunks import Chunk
from pyparq.read.plan.bloom_probe import HEADER, read_filter
from pyparq.write.shred import LeafData
from pyparq.write.sort import first_unsorted

_DAYS = {"ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def check_text(values: ChunkValues, findings: Findings) -> None:
    """Report the first value that is not UTF-8."""
    if not values.leaf.is_text:
        return
    if isinstance(values.entries, BinaryValues):
        code = kernels.utf8_validate(values.entries.offsets, values.entries.data)
        if code >= 0:
            is_used = code in values.used_codes
            page, row = values.place_of_code(code) if is_used else ("dictionary", None)
            _report_text(values.entries.value(code), page, row, findings)
            return
    if isinstance(values.values, BinaryValues):
        at = kernels.utf8_validate(values.values.offsets, values.values.data)
        if at >= 0:
            _report_text(values.values.value(at), *values.place_of_value(at), findings)


def _report_text(value: bytes, page: int | str, row: int | None, findings: Findings) -> None:
    text = repr(value[:24]) + ("..." if len(value) > 24 else "")
    findings.add("text", "data", f"a value is not UTF-8: {text}", page, row)


def limits_of(leaf: LeafType) -> tuple[int, int] | None:
    """The smallest and the largest physical value that the type allows. ``None`` if all are allowed."""
    if leaf.kind == "decimal" and leaf.precision > 0:
        most = 10**leaf.precision - 1
        return -most, most
    if leaf.kind == "int" and leaf.bits < 32:
        return -(1 << leaf.bits - 1), (1 << leaf.bits - 1) - 1
    if leaf.kind == "uint" and leaf.bits < 32:
        return 0, (1 << leaf.bits) - 1
    if leaf.kind == "time" and leaf.unit in _DAYS:
        return 0, _DAYS[leaf.unit]  # writers also store the end of a day
    return None


def check_range(bounds: TrueBounds, findings: Findings) -> None:
    """Report the first page with a value that the type does not allow. Only extreme values need to be checked."""
    leaf, values = bounds.leaf, bounds.values
    allowed = limits_of(leaf)
    if allowed is None:
        return
    for below, limit, raw in ((True, allowed[0], bounds.pages.mins), (False, allowed[1], bounds.pages.maxs)):
        found = decode_bounds(leaf, raw)[0]
        wrong = np.flatnonzero(np.asarray(found < limit if below else found > limit, bool) & bounds.has_values)
        if not len(wrong):
            continue
        page = int(wrong[0])
        place = _first(values.page_values(page), leaf, limit, below)
        text = f"{shown(leaf, raw[page])} is {'below' if below else 'above'} {limit}, the limit of {_said(leaf)}"
        findings.add("range", "data", text, page, values.row_of(page, place) if place >= 0 else None, len(wrong))


def _first(values: Values, leaf: LeafType, limit: int, below: bool) -> int:
    """The first value beyond the limit."""
    dtype = stored_dtype(leaf)
    if dtype is not None and isinstance(values, np.ndarray):
        numbers = values.reshape(-1).view(dtype)
        found = np.flatnonzero(numbers < limit if below else numbers > limit)
    else:
        try:
            found = np.flatnonzero(beyond(values, leaf, Order.TYPE, encode_bound(leaf, limit), below))
        except (ValueError, OverflowError):
            return -1
    return int(found[0]) if len(found) else -1


def _said(leaf: LeafType) -> str:
    if leaf.kind == "decimal":
        return f"a decimal of {leaf.precision} digits (unscaled)"
    return f"a time of day in {leaf.unit}" if leaf.kind == "time" else f"{leaf.kind}{leaf.bits}"


# ---- Bloom filters ---------------------------------------------------------------------------------------------------


FILTER = "BloomFilter"
PROBES = 100_000
"""Number of random hashes for measuring the rate of false positives."""
AT_ONCE = 1 << 16
"""Number of values hashed together, so that their hashes stay in the cache."""


def check_filter(chunk: Chunk, values: ChunkValues, fetcher: Fetcher, limits: Limits, findings: Findings) -> BloomRate:
    """Ask the filter for every value. Raises :class:`ParquetError` if it cannot be read."""
    found = _read(chunk, fetcher, limits, findings)
    if bloom_filter.can_prune(values.leaf):
        _check_values(found, values, findings)
    return BloomRate(found.num_bytes, float(np.asarray(found.check_hash(_probes())).mean()))


@cache
def _probes() -> npt.NDArray[np.uint64]:
    return np.random.default_rng(0).integers(0, 1 << 64, PROBES, np.uint64, endpoint=False)


def _read(chunk: Chunk, fetcher: Fetcher, limits: Limits, findings: Findings) -> bloom_filter.BloomFilter:
    length, offset = chunk.meta.bloom_filter_length, chunk.meta.bloom_filter_offset
    known = length and 0 < length <= min(limits.max_bloom_filter + HEADER, fetcher.source.size - 8 - offset)
    if known and not chunk.crypto.encrypted:
        (data,) = fetcher.fetch([(offset, length)])
        size, header_size = bloom_filter.parse_header(data, limits)
        if size + header_size == length:
            return bloom_filter.parse_filter(data, chunk.node.type, limits)
        # Other readers take everything behind the header as bitset, so the length must be exact.
        text = f"bloom_filter_length is {length}, but the filter has {size + header_size} bytes"
        findings.add("size", FILTER, text)
    found = read_filter(chunk, fetcher, limits)
    assert found is not None
    return found


def _check_values(found: bloom_filter.BloomFilter, values: ChunkValues, findings: Findings) -> None:
    used = values.used_codes
    denied: list[tuple[int, int]] = []
    count = 0
    if len(used) and values.entries is not None:
        missing = ~_holds(found, take_values(values.entries, used), values.leaf)
        count += int(missing.sum())
        if missing.any():
            codes = np.zeros(count_of(values.entries), bool)
            codes[used[missing]] = True
            denied.append(values.place_of_code(int(values.codes[int(np.argmax(codes[values.codes]))])))
    total = count_of(values.values)
    for start in range(0, total, AT_ONCE):
        missing = ~_holds(found, slice_of(values.values, start, min(start + AT_ONCE, total)), values.leaf)
        if missing.any() and len(denied) < 2:
            denied.append(values.place_of_value(start + int(np.argmax(missing))))
        count += int(missing.sum())
    if denied:
        page, row = min(denied)
        findings.add(FILTER_KIND, FILTER, f"the filter denies {count} values that the chunk holds", page, row)


FILTER_KIND = "bloom filter"


def _holds(found: bloom_filter.BloomFilter, values: Values, leaf: LeafType) -> npt.NDArray[np.bool_]:
    if isinstance(values, BinaryValues):
        hashes = kernels.xxh64_binary(values.offsets, values.data)
    else:
        hashes = kernels.xxh64_fixed(np.ascontiguousarray(values), leaf.width)
    return np.asarray(found.check_hash(hashes), bool)


# ---- sorted rows -----------------------------------------------------------------------------------------------------


def can_be_compared(node: Node) -> bool:
    """Whether a leaf can order rows: it has at most one value per row, and a known order."""
    leaf = node.type
    return node.max_rep == 0 and domain(leaf) not in ("", "int96") and not (leaf.kind == "decimal" and leaf.is_binary)


def spelled_out(values: ChunkValues) -> LeafData:
    """All rows of a leaf outside of lists."""
    parts: list[Values] = [values.page_values(page) for page in range(values.num_pages)]
    joined = concat_values(parts, values.leaf)
    node, rows = values.chunk.node, int(values.num_rows.sum())
    levels = None
    if any(found is not None for found in values.def_levels):
        levels = np.concatenate([
            np.full(count, node.max_def, np.uint8) if found is None else found
            for found, count in zip(values.def_levels, values.num_levels.tolist(), strict=True)
        ])  # fmt: skip
    if isinstance(joined, BinaryValues):
        joined = BinaryValues(joined.offsets.astype(np.int64, copy=False), joined.data)
    return LeafData(node, rows, rows, joined, levels, None)


def checkable(sorting_columns: Any, leaves: list[Node], findings: Findings) -> list[tuple[Node, SortKey]]:
    """The sorting columns before the first one that cannot order rows."""
    keys: list[tuple[Node, SortKey]] = []
    known: set[int] = set()
    for stated in sorting_columns or ():
        if not 0 <= stated.column_idx < len(leaves):
            text = f"sorting_columns names column {stated.column_idx}, but there are {len(leaves)}"
            findings.add("metadata", "RowGroup", text)
            break
        node = leaves[stated.column_idx]
        if node.column in known:  # (rows that are equal in a column stay equal)
            continue
        known.add(node.column)
        if not can_be_compared(node):
            break
        keys.append((node, SortKey(node.path, descending=stated.descending, nulls_first=stated.nulls_first)))
    return keys


def check_order(keys: list[tuple[Node, SortKey]], leaves: Mapping[int, LeafData], findings: Findings) -> None:
    """``leaves``: the sorting columns that could be decoded, by column number."""
    known: list[tuple[Node, SortKey]] = []
    for node, key in keys:
        if node.column not in leaves:
            break
        known.append((node, key))
    if not known or len({leaves[node.column].num_rows for node, _ in known}) > 1:
        return
    row = first_unsorted([leaves[node.column] for node, _ in known], [key for _, key in known])
    if row is not None:
        names = ", ".join(f"{node.dotted}{' descending' if key.descending else ''}" for node, key in known)
        text = f"sorting_columns states the order {names}, but row {row} comes before the row above it"
        findings.add("sorting", "RowGroup", text, row=row)
