"""Split block Bloom filters (BloomFilter.md).

A filter is a list of blocks of 256 bits, eight 32-bit words each. The upper 32 bits of a hash choose the block, the
lower 32 bits choose one bit in each word. So a probe needs one block of 32 bytes. The hash is XXH64 with seed 0, over
the PLAIN encoding of the physical value without its length prefix.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from pyparq import kernels
from pyparq.errors import CorruptFileError, FilterError, LimitError, OptionError, UnsupportedError
from pyparq.format import ttypes as tt
from pyparq.format.leaf_values import BinaryValues, Values
from pyparq.format.order import FLOAT_KINDS, bound_dtype, domain, encode_bound, stored_dtype
from pyparq.format.thrift_codec import deserialize, serialize
from pyparq.format.types import LeafType, Physical
from pyparq.limits import DEFAULT_LIMITS, Limits
from pyparq.runtime.text import printable

BLOCK_BYTES = 32
MIN_BYTES = BLOCK_BYTES
MAX_BYTES = 128 << 20
"""The largest bitset that every implementation takes."""


def false_positive_rate(num_blocks: int, ndv: int) -> float:
    """Expected rate of "maybe" for absent values, after ``ndv`` distinct values went into ``num_blocks`` blocks."""
    if num_blocks <= 0 or ndv < 0:
        raise ValueError(f"{num_blocks} blocks and {ndv} values")
    return rate_of_load(ndv / num_blocks)


def rate_of_load(load: float) -> float:
    """The expected rate when a block holds ``load`` values on average."""
    if load <= 0:
        return 0.0
    spread = 12 * math.sqrt(load) + 24
    first, last = max(0, int(load - spread)), int(load + spread)
    counts = np.arange(first, last + 1, dtype=np.float64)
    # ln of the Poisson weights; ln(i!) as a running sum, started by lgamma.
    log_factorial = math.lgamma(first + 1) + np.concatenate(([0.0], np.cumsum(np.log(counts[1:]))))
    weights = np.exp(counts * math.log(load) - load - log_factorial)
    return float(min(1.0, (weights * (1.0 - (31 / 32) ** counts) ** 8).sum()))


@lru_cache(maxsize=256)
def load_for_rate(fpp: float) -> float:
    """The largest mean load of a block that keeps the expected rate at ``fpp`` or below."""
    if not 0.0 < fpp < 1.0:
        raise ValueError(f"the false-positive rate must be between 0 and 1, not {fpp}")
    low, high = 0.0, 1.0
    while rate_of_load(high) <= fpp:
        low, high = high, high * 2
    for _ in range(60):
        middle = (low + high) / 2
        if rate_of_load(middle) <= fpp:
            low = middle
        else:
            high = middle
    return max(low, 2.0**-60)  # rates below any that a filter can reach


def bytes_for(ndv: int, fpp: float, power_of_two: bool = True, cap: int = MAX_BYTES) -> int:
    """Bytes of the smallest bitset that keeps ``ndv`` distinct values at the rate ``fpp``, and at most ``cap``.

    ``power_of_two``: only such sizes, because Arrow C++ refuses others; otherwise any multiple of 32. With a ``cap``
    the rate may be missed. Raises ValueError for a rate outside (0, 1) or a cap below one block.
    """
    if cap < MIN_BYTES:
        raise ValueError(f"a Bloom filter needs at least {MIN_BYTES} bytes, but the cap is {cap}")
    if ndv < 0:
        raise ValueError(f"{ndv} distinct values")
    blocks = max(1, math.ceil(ndv / load_for_rate(fpp)))
    return fit_bytes(blocks * BLOCK_BYTES, power_of_two, cap)


def fit_bytes(wanted: int, power_of_two: bool = True, cap: int = MAX_BYTES) -> int:
    """``wanted`` rounded up to a legal size, then down to the largest legal size within ``cap``."""
    cap = min(cap, MAX_BYTES)
    if power_of_two:
        return min(max(MIN_BYTES, 1 << (max(wanted, 1) - 1).bit_length()), 1 << (cap.bit_length() - 1))
    return min(max(MIN_BYTES, -(-wanted // BLOCK_BYTES) * BLOCK_BYTES), cap // BLOCK_BYTES * BLOCK_BYTES)


UInt64Array = npt.NDArray[np.uint64]

SALT = (0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31)
"""One odd multiplier for each word of a block (BloomFilter.md)."""

_WORDS = struct.Struct("<8I")


# ---------------------------------------------------------------- hashing


def can_prune(leaf: LeafType) -> bool:
    """Whether a filter on this leaf can prove absence.

    Not for BOOLEAN: writers leave such filters empty. Not where one value has several encodings, or writers disagree:
    BYTE_ARRAY decimals, INTERVAL, INT96. Not for leaves without literals to ask for.
    """
    if leaf.kind in ("bool", "int96") or domain(leaf) == "":
        return False
    return not (leaf.kind == "decimal" and leaf.physical == Physical.BYTE_ARRAY)


def hash_values(values: Values, leaf: LeafType) -> UInt64Array:
    """The hashes to insert for physical values without nulls: uint64, one per value.

    Floats get extra hashes at the end. If either zero occurs, the hashes of both are inserted, because -0.0 equals 0.0
    and other readers probe only one. If a NaN occurs, the hash of the usual NaN bits is inserted: Spark treats all NaNs
    as equal and probes that one, but processors make others.
    """
    if isinstance(values, BinaryValues):
        return kernels.xxh64_binary(values.offsets, values.data)
    hashes = kernels.xxh64_fixed(np.ascontiguousarray(values), leaf.width)
    if leaf.kind in FLOAT_KINDS:
        dtype = stored_dtype(leaf)
        assert dtype is not None
        floats = values.reshape(-1).view(dtype)
        twins = _zero_hashes(dtype.itemsize) if bool((floats == 0).any()) else ()
        if bool(np.isnan(floats).any()):
            twins = (*twins, int(xxhash.xxh64_intdigest(np.array(np.nan, dtype).tobytes())))
        if twins:
            return np.concatenate((hashes, np.array(twins, np.uint64)))
    return hashes


@lru_cache(maxsize=4)
def _zero_hashes(width: int) -> tuple[int, ...]:
    """Hashes of +0.0 and -0.0 in a float of so many bytes."""
    return xxhash.xxh64_intdigest(bytes(width)), xxhash.xxh64_intdigest(bytes(width - 1) + b"\x80")


def hash_literal(value: Any, leaf: LeafType) -> list[int] | None:
    """The hashes under which a value of the comparable domain may have been inserted. If any of them is found, the
    answer is "maybe".

    An empty list: the leaf's type cannot hold the value, so it is absent. ``None``: a filter cannot help (NaN, or
    :func:`can_prune` is false).
    """
    if not can_prune(leaf):
        return None
    if leaf.kind in FLOAT_KINDS:
        if value != value:
            return None
        if value == 0:
            return list(_zero_hashes(leaf.width))
    try:
        return [xxhash.xxh64_intdigest(encode_bound(leaf, value))]
    except (ValueError, OverflowError):
        return []


# ---------------------------------------------------------------- one block


def block_index(hash_value: int, num_blocks: int) -> int:
    """The block (of ``num_blocks``) that a 64-bit hash belongs to."""
    return ((hash_value >> 32) * num_blocks) >> 32


def check_block(block: bytes | memoryview, hash_value: int) -> bool:
    """Whether the 32 bytes of a block contain the hash ("maybe"). False proves absence."""
    key = hash_value & 0xFFFFFFFF
    for word, salt in zip(_WORDS.unpack(block), SALT, strict=True):
        if not word >> (((key * salt) & 0xFFFFFFFF) >> 27) & 1:
            return False
    return True


# ---------------------------------------------------------------- a whole filter


class BloomFilter:
    """A filter in memory. ``bitset`` is uint8, a multiple of 32 bytes. Only :meth:`check` needs ``leaf``."""

    __slots__ = ("bitset", "leaf", "of_literal")

    def __init__(self, bitset: npt.NDArray[np.uint8], leaf: LeafType | None = None) -> None:
        if bitset.dtype != np.uint8 or bitset.ndim != 1 or len(bitset) == 0 or len(bitset) % BLOCK_BYTES:
            raise ValueError(f"a Bloom filter's bitset is a positive multiple of {BLOCK_BYTES} bytes")
        self.bitset = bitset
        self.leaf = leaf
        self.of_literal: Callable[[Any], Any] | None = None
        """Turns a literal of filters (a date, say) into a value of the leaf. ``None`` if no value equals it."""

    @classmethod
    def empty(cls, num_bytes: int, leaf: LeafType | None = None) -> BloomFilter:
        """A filter that holds nothing."""
        return cls(np.zeros(num_bytes, np.uint8), leaf)

    @property
    def num_bytes(self) -> int:
        return len(self.bitset)

    @property
    def num_blocks(self) -> int:
        return len(self.bitset) // BLOCK_BYTES

    @printable
    def __repr__(self) -> str:
        return f"<BloomFilter of {self.num_bytes} bytes>"

    def insert_hashes(self, hashes: UInt64Array) -> None:
        """Insert uint64 hashes (see :func:`hash_values`)."""
        kernels.sbbf_insert(self.bitset, np.ascontiguousarray(hashes, np.uint64))

    def check_hash(self, hashes: Any) -> Any:
        """Whether one hash (an int: answers bool) or each of many (answers a bool array) may be present.

        Raises :class:`FilterError` for what is no 64-bit integer.
        """
        if isinstance(hashes, (int, np.integer)):
            value = int(hashes) & 0xFFFFFFFFFFFFFFFF
            start = block_index(value, self.num_blocks) * BLOCK_BYTES
            return check_block(self.bitset[start : start + BLOCK_BYTES].tobytes(), value)
        array = np.asarray(hashes)
        if array.dtype.kind not in "iu" and array.size:
            raise FilterError(f"hashes must be 64-bit integers, not {array.dtype}")
        if array.dtype.kind == "i":
            array = array.view(np.uint64) if array.itemsize == 8 else array.astype(np.uint64)
        found = kernels.sbbf_check(self.bitset, np.ascontiguousarray(array, np.uint64).reshape(-1))
        return np.asarray(found, bool).reshape(array.shape)

    def check(self, values: Any, leaf: LeafType | None = None) -> Any:
        """Whether one value, or each of a list or array, may be present; False proves absence.

        Values are those of the leaf's physical type: int, float, bytes (str for text), unscaled int for
        decimals. A filter of a :class:`pyparq.ParquetFile` also takes whatever ``==`` takes for the column: dates,
        times, ``Decimal``, ``UUID``, text of these. Where a filter cannot prove anything (NaN, BOOLEAN, ...) the
        answer is True.

        Raises :class:`FilterError` for a value of another kind.
        """
        leaf = leaf or self.leaf
        if leaf is None:
            raise OptionError("check() needs the leaf type that the filter was built for")
        if (isinstance(values, np.ndarray) and values.ndim > 0) or isinstance(values, (list, tuple)):
            return self._check_many(values, leaf)
        return self._check_one(values, leaf)

    def _check_one(self, value: Any, leaf: LeafType) -> bool:
        if not can_prune(leaf):
            return True
        try:
            found = _comparable(value, leaf)
        except FilterError:
            if self.of_literal is None:
                raise
            found = self.of_literal(value)
            if found is None:
                return False
        hashes = hash_literal(found, leaf)
        return True if hashes is None else any(self.check_hash(h) for h in hashes)

    def _check_many(self, values: Sequence[Any] | npt.NDArray[Any], leaf: LeafType) -> npt.NDArray[np.bool_]:
        fast = _as_stored(values, leaf)
        if fast is None:
            return np.array([self._check_one(v, leaf) for v in values], bool)
        return np.asarray(self.check_hash(kernels.xxh64_fixed(fast, leaf.width)), bool)

    def false_positive_rate(self) -> float:
        """The achieved rate at which absent values are answered with "maybe", computed from the set bits."""
        counts = _bit_count(self.bitset.view("<u4")).reshape(-1, 8)
        return float((counts / 32.0).prod(axis=1).mean())

    def estimated_distinct(self) -> int:
        """Estimated number of distinct values, computed from the set bits."""
        filled = float(_bit_count(self.bitset.view("<u4")).mean()) / 32.0
        if filled >= 1.0:
            raise ValueError("every bit is set")
        # On average over the words; the load of one word is that of its block.
        low, high = 0.0, 1.0
        while _mean_fill(high) < filled:
            high *= 2
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if _mean_fill(middle) < filled else (low, middle)
        return round(low * self.num_blocks)


def _mean_fill(load: float) -> float:
    """Expected fraction of set bits in a word at a Poisson load of its block."""
    return float(-np.expm1(-load / 32.0))


def _bit_count(words: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint8]:
    """Set bits of each word."""
    return np.asarray(np.unpackbits(words.view(np.uint8)).reshape(-1, 32).sum(axis=1), np.uint8)


def _comparable(value: Any, leaf: LeafType) -> Any:
    """A Python or numpy scalar as a value of the leaf's comparable domain."""
    kind = domain(leaf)
    if kind == "bytes":
        if isinstance(value, str) and leaf.physical == Physical.BYTE_ARRAY:
            return value.encode("utf-8", "surrogatepass")
        if not isinstance(value, (bytes, bytearray, memoryview)):
            wanted = "text or bytes" if leaf.physical == Physical.BYTE_ARRAY else f"{leaf.length} bytes"
            raise FilterError(f"a Bloom filter of {leaf.kind} values takes {wanted}, not {type(value).__name__}")
        return bytes(value)
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (int, float)):
        unscaled = " (unscaled)" if leaf.kind == "decimal" else ""
        raise FilterError(
            f"a Bloom filter of {leaf.kind} values takes numbers{unscaled} as the file stores them, "
            f"not {type(value).__name__}"
        )
    return int(value) if kind != "float" and isinstance(value, float) and value.is_integer() else value


def _as_stored(values: Any, leaf: LeafType) -> npt.NDArray[Any] | None:
    """An integer array in the dtype of the leaf's physical values. ``None`` where the values must be converted one by
    one."""
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "iu" or not can_prune(leaf):
        return None
    dtype = stored_dtype(leaf)
    if dtype is None or dtype.kind not in "iu" or bound_dtype(leaf).kind not in "iu":
        return None
    limits = np.iinfo(dtype)
    if len(values) and (int(values.min()) < limits.min or int(values.max()) > limits.max):
        return None
    return np.ascontiguousarray(values.astype(dtype)).reshape(-1)


# ---------------------------------------------------------------- file format


@lru_cache(maxsize=64)
def _header_bytes(num_bytes: int) -> bytes:
    return serialize(
        tt.BloomFilterHeader(
            numBytes=num_bytes,
            algorithm=tt.BloomFilterAlgorithm(BLOCK=tt.SplitBlockAlgorithm()),
            hash=tt.BloomFilterHash(XXHASH=tt.XxHash()),
            compression=tt.BloomFilterCompression(UNCOMPRESSED=tt.Uncompressed()),
        )
    )


def serialize_filter(bitset: npt.NDArray[np.uint8]) -> tuple[bytes, npt.NDArray[np.uint8]]:
    """The two modules of a filter: its header and its bitset. ``bloom_filter_length`` is the sum of their
    lengths.
    """
    BloomFilter(bitset)
    return _header_bytes(len(bitset)), bitset


def bitset_bytes(bloom_filter_length: int) -> int:
    """Size of the bitset if header and bitset take ``bloom_filter_length`` bytes: a standard header is shorter than 32
    bytes."""
    return bloom_filter_length // BLOCK_BYTES * BLOCK_BYTES


def parse_header(
    data: bytes | memoryview, limits: Limits = DEFAULT_LIMITS, available: int | None = None
) -> tuple[int, int]:
    """(bytes of the bitset, bytes of the header) from the header at the start of ``data``.

    ``available``: bytes from the header's start to the end of what may belong to the filter (the file, or
    ``bloom_filter_length``). Raises CorruptFileError for what is no header, or a size that is no multiple of
    32 or does not fit; UnsupportedError for another algorithm, hash or compression; LimitError beyond the
    cap. ``ThriftTruncatedError`` (a CorruptFileError) means that more bytes might do.
    """
    if _is_murmur3(data):
        raise UnsupportedError(
            "the Bloom filter has the retired Murmur3 format (before Parquet 2.7), which is not supported"
        )
    header, end = deserialize(tt.BloomFilterHeader, data)
    for name, member in (("algorithm", "BLOCK"), ("hash", "XXHASH"), ("compression", "UNCOMPRESSED")):
        if getattr(getattr(header, name), member) is None:
            raise UnsupportedError(f"the Bloom filter has an unknown {name}; only {member} is supported")
    size = header.numBytes
    if size <= 0 or size % BLOCK_BYTES:
        raise CorruptFileError(
            f"the Bloom filter header declares {size} bytes, but the size must be a positive multiple of {BLOCK_BYTES}"
        )
    if size > limits.max_bloom_filter:
        raise LimitError(
            f"the Bloom filter has {size} bytes: more than limits.max_bloom_filter ({limits.max_bloom_filter})"
        )
    if available is not None and size > available - end:
        raise CorruptFileError(
            f"the Bloom filter header declares {size} bytes, but the file has only {max(available - end, 0)} left"
        )
    return size, end


def _is_murmur3(data: bytes | memoryview) -> bool:
    """Whether this is the old layout: three little-endian int32 (the size, 0 for Murmur3, 0 for block)."""
    if len(data) < 12:
        return False
    size, hash_kind, algorithm = struct.unpack_from("<iii", data)
    return bool(hash_kind == 0 and algorithm == 0 and size > 0 and size % BLOCK_BYTES == 0)


def parse_filter(
    data: bytes | memoryview, leaf: LeafType | None = None, limits: Limits = DEFAULT_LIMITS
) -> BloomFilter:
    """A whole filter, header and bitset, from bytes that hold at least these. The bitset shares memory with
    ``data``.
    """
    size, start = parse_header(data, limits, available=len(data))
    return BloomFilter(np.frombuffer(data, np.uint8, size, start), leaf)
