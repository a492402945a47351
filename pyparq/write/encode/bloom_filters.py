"""The Bloom filter of one column chunk: the hashes of its distinct values in a bitset of the right size."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.encryption.aad import Module
from pyparq.encryption.writing import ChunkEncryption
from pyparq.format.leaf_values import Values
from pyparq.format.types import LeafType
from pyparq.index.bloom_filter import BloomFilter, hash_values, serialize_filter
from pyparq.index.bloom_sizing import bytes_for
from pyparq.option_values import BloomOptions


def build_filter(
    values: Values, entries: Values | None, leaf: LeafType, options: BloomOptions
) -> npt.NDArray[np.uint8] | None:
    """The bitset over a chunk's values, nulls left out. ``None`` if the option ``auto`` finds that a filter adds
    nothing.

    ``entries``: the entries of a dictionary that holds every value of the chunk once. Only these are hashed then.
    """
    if entries is not None:
        if options.auto:
            return None
        values = entries
    return filter_of(hash_values(values, leaf), options)


def filter_of(hashes: npt.NDArray[np.uint64], options: BloomOptions) -> npt.NDArray[np.uint8]:
    """The bitset with these hashes, in the size that ``options`` ask for."""
    bloom = BloomFilter(np.zeros(_size(hashes, options), np.uint8))
    bloom.insert_hashes(hashes)
    return bloom.bitset


def _size(hashes: npt.NDArray[np.uint64], options: BloomOptions) -> int:
    if options.bytes is not None:
        return options.bytes
    if options.ndv is not None:
        return bytes_for(options.ndv, options.fpp, options.power_of_two, options.max_bytes)
    most = bytes_for(len(hashes), options.fpp, options.power_of_two, options.max_bytes)
    return most if most <= 32 else _size_counted(hashes, options)


_COUNT_FROM, _ERROR = 1 << 16, 0.02
"""From this many hashes on, their number is estimated first. The error of the estimate is smaller than this (by 14
standard deviations)."""


def _size_counted(hashes: npt.NDArray[np.uint64], options: BloomOptions) -> int:
    """The size for the exact number of distinct hashes. They are not counted if the estimate allows only one size."""
    if len(hashes) >= _COUNT_FROM and options.power_of_two:
        about = kernels.estimate_distinct_u64(hashes)
        sizes = {_size_for(int(about * factor), options) for factor in (1 - _ERROR, 1 + _ERROR)}
        if len(sizes) == 1:
            return sizes.pop()
    return _size_for(kernels.count_distinct_u64(hashes), options)


def _size_for(distinct: int, options: BloomOptions) -> int:
    return bytes_for(distinct, options.fpp, options.power_of_two, options.max_bytes)


def stored_filter(bitset: npt.NDArray[np.uint8], crypto: ChunkEncryption) -> list[Any]:
    """The two stored modules of a filter: header and bitset."""
    header, bits = serialize_filter(bitset)
    return crypto.seal(Module.BLOOM_FILTER_HEADER, [header]) + crypto.seal(Module.BLOOM_FILTER_BITSET, [bits])
