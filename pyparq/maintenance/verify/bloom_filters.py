"""Checks Bloom filters against the values. No value may be denied. The rate at which absent values are not denied is
measured."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.format.leaf_values import BinaryValues, Values, count_of, slice_of
from pyparq.format.types import LeafType
from pyparq.index import bloom_filter
from pyparq.io.fetch import Fetcher
from pyparq.limits import Limits
from pyparq.maintenance.verify.chunk_values import ChunkValues
from pyparq.maintenance.verify.findings import Findings
from pyparq.read.decode.chunk_pages import take_values
from pyparq.read.footers.chunks import Chunk
from pyparq.read.plan.bloom_probe import HEADER, read_filter

FILTER = "BloomFilter"
PROBES = 100_000
"""Number of random hashes for measuring the rate of false positives."""
AT_ONCE = 1 << 16
"""Number of values hashed together, so that their hashes stay in the cache."""


@dataclass(frozen=True, slots=True)
class BloomRate:
    """The size of a filter in bytes, and the share of random probes that it does not deny."""

    num_bytes: int
    rate: float


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
