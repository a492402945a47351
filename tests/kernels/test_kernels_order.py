"""Hash tables, bounds, comparisons, hashes and Bloom filters against plain references."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import reference
import xxhash
from kernel_data import OFFSET_TYPES, binary, words

from pyparq import kernels
from pyparq.kernels import KernelError

# --- dictionaries and sets ---


def first_appearance(values: Sequence[Any]) -> tuple[list[int], list[int]]:
    seen: dict[Any, int] = {}
    indices = [seen.setdefault(v, len(seen)) for v in values]
    return indices, [values.index(v) for v in seen]


@pytest.mark.parametrize("width", [1, 2, 3, 4, 8, 12, 16])
@pytest.mark.parametrize("distinct", [1, 2, 200, 5000])
def test_dict_encode_fixed(width: int, distinct: int) -> None:
    rng = random.Random(width * distinct)
    pool = [rng.randbytes(width) for _ in range(distinct)]
    values = [rng.choice(pool) for _ in range(4000)]
    indices, first = first_appearance(values)
    got = kernels.dict_encode_fixed(b"".join(values), width, 1 << 20)
    assert got[0].tolist() == indices
    assert got[1].tolist() == first
    assert (got[0].dtype, got[1].dtype) == (np.int32, np.int64)
    limit = len(first) // 2
    stopped, entries = kernels.dict_encode_fixed(b"".join(values), width, limit)
    stop = first[limit]
    assert stopped.tolist() == indices[:stop]
    assert entries.tolist() == first[:limit]


def test_dict_encode_fixed_compares_bits() -> None:
    values = np.array([0.0, -0.0, math.nan, math.nan, 0.0])
    indices, first = kernels.dict_encode_fixed(values, 8, 10)
    assert indices.tolist() == [0, 1, 2, 2, 0]
    assert first.tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", OFFSET_TYPES)
def test_dict_encode_binary(dtype: Any) -> None:
    rng = random.Random(9)
    values = words(rng, 3000, b"ab", 6) + [rng.randbytes(rng.randrange(60)) for _ in range(3000)]
    offsets, data = binary(values, dtype, b"lead")
    indices, first = first_appearance(values)
    got = kernels.dict_encode_binary(offsets, data, 1 << 30)
    assert got[0].tolist() == indices
    assert got[1].tolist() == first
    plain = 0
    for k, at in enumerate(first):  # the limit is inclusive
        plain += 4 + len(values[at])
        if k % 500 == 0:
            exact = kernels.dict_encode_binary(offsets, data, plain)
            assert exact[1].tolist() == first[: k + 1]
            assert len(kernels.dict_encode_binary(offsets, data, plain - 1)[1]) == k
            assert exact[0].tolist() == indices[: first[k + 1]]
    assert kernels.dict_encode_binary(offsets, data, 0)[0].size == 0


def test_byte_strings_in_a_set() -> None:
    rng = random.Random(2)
    values = words(rng, 2000)
    wanted = [*words(rng, 30), b"not there at all"]
    many = [*(b"%d" % k for k in range(70_000)), *values[:900], *values[:900]]
    for dtype in OFFSET_TYPES:
        for chosen in (wanted, wanted[:1], many, []):
            known = kernels.BytesSet(*binary(chosen))
            got = np.unpackbits(known.test(*binary(values, dtype)).view(np.uint8), bitorder="little")
            among = set(chosen)
            assert got[: len(values)].astype(bool).tolist() == [v in among for v in values]
            within = np.full((len(values) + 63) // 64, 0x5555_5555_5555_5555, np.uint64)
            some = np.unpackbits(known.test(*binary(values, dtype), within).view(np.uint8), bitorder="little")
            assert (some == got * (np.arange(len(got)) % 2 == 0)).all()


@pytest.mark.parametrize("n", [0, 1, 100, 4096, 5000, 300_000])
def test_count_distinct(n: int) -> None:
    rng = np.random.default_rng(n)
    for top in (1, 10, 2**40):
        hashes = rng.integers(0, top, n).astype(np.uint64)
        assert kernels.count_distinct_u64(hashes) == len(set(hashes.tolist()))


# --- order ---

NUMBERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
BOUNDS = np.array([0, 1, 1, 40, 333, 1000], np.int64)


INT, UINT, FLOAT, BYTES, DECIMAL = range(1, 6)
"""Domains of a LeafOrder."""


def order(domain: int, width: int = 0, total: bool = False) -> kernels.LeafOrder:
    return kernels.LeafOrder(domain, width, total, False, False)


def parts(values: Any) -> list[Any]:
    return [values[a:b] for a, b in zip(BOUNDS.tolist(), BOUNDS.tolist()[1:])]


@pytest.mark.parametrize("dtype", NUMBERS)
def test_bounds_of_integers(dtype: Any) -> None:
    info = np.iinfo(dtype)
    values = np.random.default_rng(1).integers(info.min, info.max, 1000, dtype=dtype, endpoint=True)
    rules = order(INT if info.min else UINT, values.itemsize)
    lo, hi, nans = kernels.segment_bounds_fixed(rules, values, BOUNDS)
    assert nans is None
    for k, part in enumerate(parts(values)):
        wanted = (part.min().tobytes(), part.max().tobytes()) if part.size else (None, None)
        assert (lo[k], hi[k]) == wanted


@pytest.mark.parametrize("total", [False, True])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.99, 1.0])
def test_bounds_of_floats(dtype: Any, share: float, total: bool) -> None:
    rng = np.random.default_rng(3)
    values = (rng.standard_normal(1000) * 1000).astype(dtype)
    values[rng.random(1000) < 0.05] = np.inf
    values[rng.random(1000) < 0.05] = -np.inf
    values[rng.random(1000) < share] = np.nan
    values[0] = np.inf
    lo, hi, nans = kernels.segment_bounds_fixed(order(FLOAT, values.itemsize, total), values, BOUNDS)
    assert nans is not None
    for k, part in enumerate(parts(values)):
        real = part[~np.isnan(part)]
        assert nans[k] == part.size - real.size
        if real.size:
            assert (lo[k], hi[k]) == (real.min().tobytes(), real.max().tobytes())
        else:
            wanted = dtype(np.nan).tobytes() if part.size and total else None
            assert (lo[k], hi[k]) == (wanted, wanted)


@pytest.mark.parametrize("bounds", [[], [-1, 0], [0, 1001], [5, 3], [0, 5, 4]])
def test_bounds_refuse_bad_edges(bounds: list[int]) -> None:
    edges = np.array(bounds, np.int64)
    with pytest.raises(KernelError, match="edges"):
        kernels.segment_bounds_fixed(order(FLOAT, 8), np.zeros(1000), edges)
    with pytest.raises(KernelError, match="edges"):
        kernels.segment_bounds_binary(order(BYTES), *binary([b""] * 1000), edges)


def extremes(values: Sequence[Any], keys: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Of each segment the values whose keys are smallest and largest."""
    lo: list[Any] = []
    hi: list[Any] = []
    for rows in parts(range(len(values))):
        lo.append(values[min(rows, key=keys.__getitem__)] if rows else None)
        hi.append(values[max(rows, key=keys.__getitem__)] if rows else None)
    return lo, hi


@pytest.mark.parametrize("dtype", OFFSET_TYPES)
@pytest.mark.parametrize("alphabet", [b"\x00\x01", b"ab\xff", bytes(range(256))])
def test_bounds_of_byte_arrays(dtype: Any, alphabet: bytes) -> None:
    values = words(random.Random(4), 1000, alphabet)
    got = kernels.segment_bounds_binary(order(BYTES), *binary(values, dtype), BOUNDS)
    assert got[:2] == extremes(values, values)


@pytest.mark.parametrize("alphabet", [b"\x00\x01\x80\xff\x7f", bytes(range(256))])
def test_bounds_of_decimals_of_any_length(alphabet: bytes) -> None:
    values = words(random.Random(4), 1000, alphabet)
    got = kernels.segment_bounds_binary(order(DECIMAL), *binary(values), BOUNDS)
    assert got[:2] == extremes(values, [reference.twos_complement(v) for v in values])


@pytest.mark.parametrize("width", [1, 2, 7, 8, 9, 12, 16, 17])
@pytest.mark.parametrize("alphabet", [b"\x00\x80\xff", bytes(range(256))])
def test_bounds_of_fixed_length(width: int, alphabet: bytes) -> None:
    rng = random.Random(width)
    values = [bytes(rng.choices(alphabet, k=width)) for _ in range(1000)]
    for domain, keys in ((BYTES, values), (DECIMAL, [reference.twos_complement(v) for v in values])):
        got = kernels.segment_bounds_fixed(order(domain, width), b"".join(values), BOUNDS)
        assert got[:2] == extremes(values, keys)


def sign(a: Any, b: Any) -> int:
    return int(a > b) - int(a < b)


@pytest.mark.parametrize("dtype", OFFSET_TYPES)
def test_compare_binary(dtype: Any) -> None:
    rng = random.Random(8)
    values = words(rng, 1000, b"\x00a\x80\xff")
    o, data = binary(values, dtype, b"x")
    for literal in [b"", b"a", b"aaaaaaaaa", *values[:40]]:
        assert kernels.compare_binary(o, data, literal).tolist() == [sign(v, literal) for v in values]
        number = reference.twos_complement(literal)
        assert kernels.compare_binary_decimal(o, data, literal).tolist() == [
            sign(reference.twos_complement(v), number) for v in values
        ]


@pytest.mark.parametrize("width", [1, 5, 16])
def test_compare_flba(width: int) -> None:
    rng = random.Random(width)
    values = [bytes(rng.choices(b"\x00\x7f\x80\xff", k=width)) for _ in range(500)]
    for literal in [b"", b"\x00\x00\x01", b"\xff", *values[:20]]:
        number = reference.twos_complement(literal)
        data = b"".join(values)
        assert kernels.compare_flba(data, width, False, literal).tolist() == [sign(v, literal) for v in values]
        assert kernels.compare_flba(data, width, True, literal).tolist() == [
            sign(reference.twos_complement(v), number) for v in values
        ]


# --- hashes and Bloom filters ---


@pytest.mark.parametrize("length", range(301))
def test_xxh64_every_length(length: int) -> None:
    rng = random.Random(length)
    values = [rng.randbytes(length) for _ in range(3)]
    expect = [xxhash.xxh64_intdigest(v, seed=0) for v in values]
    assert kernels.xxh64_binary(*binary(values)).tolist() == expect
    assert kernels.xxh64_binary(*binary(values, np.int32, b"odd")).tolist() == expect
    if length:
        assert kernels.xxh64_fixed(b"".join(values), length).tolist() == expect


def test_xxh64_of_nothing() -> None:
    assert kernels.xxh64_binary(*binary([b""])).tolist() == [0xEF46DB3751D8E999]
    assert kernels.xxh64_fixed(b"", 8).size == 0


@pytest.mark.parametrize("blocks", [1, 2, 3, 64, 1000])
def test_bloom_filter(blocks: int) -> None:
    rng = np.random.default_rng(blocks)
    hashes = rng.integers(0, 2**64, 3 * blocks, dtype=np.uint64)
    plain = reference.BloomFilter(blocks)
    bitset = np.zeros(32 * blocks, np.uint8)
    kernels.sbbf_insert(bitset, hashes)
    for h in hashes.tolist():
        plain.insert(h)
    assert bitset.tobytes() == plain.tobytes()
    assert kernels.sbbf_check(bitset, hashes).all()
    probes = rng.integers(0, 2**64, 2000, dtype=np.uint64)
    got = kernels.sbbf_check(bitset, probes)
    assert got.dtype == np.bool_
    assert got.tolist() == [plain.check(h) for h in probes.tolist()]
    # One block by itself answers for the hashes that fall into it.
    for h in probes[:20]:
        at = ((int(h) >> 32) * blocks >> 32) * 32
        one = np.array([h], np.uint64)
        assert kernels.sbbf_check(bitset[at : at + 32], one)[0] == kernels.sbbf_check(bitset, one)[0]


def test_bloom_filter_by_hand() -> None:
    # x = 1: each salt's own top five bits choose the bit of its word.
    bitset = np.zeros(32, np.uint8)
    kernels.sbbf_insert(bitset, np.array([1], np.uint64))
    expect = [1 << b for b in (8, 8, 17, 20, 14, 5, 19, 11)]
    assert list(struct.unpack("<8I", bitset)) == expect


@pytest.mark.parametrize("size", [0, 1, 31, 33])
def test_bloom_filter_sizes(size: int) -> None:
    with pytest.raises(KernelError, match="32"):
        kernels.sbbf_insert(np.zeros(size, np.uint8), np.zeros(1, np.uint64))
    with pytest.raises(KernelError, match="32"):
        kernels.sbbf_check(bytes(size), np.zeros(1, np.uint64))
