"""Bloom filters: the specification's cases, foreign filters, hashing rules, headers from outside."""

from __future__ import annotations

import io
import math
import random
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash
from written import footer

from pyparq.errors import CorruptFileError, FilterError, LimitError, OptionError, ParquetError, UnsupportedError
from pyparq.format import ttypes as tt
from pyparq.format.leaf_values import BinaryValues
from pyparq.format.schema_tree import build_tree
from pyparq.format.thrift_codec import ThriftTruncatedError, serialize
from pyparq.format.types import LeafType, Physical
from pyparq.index.bloom_filter import (
    SALT,
    BloomFilter,
    bitset_bytes,
    block_index,
    bytes_for,
    can_prune,
    check_block,
    hash_literal,
    hash_values,
    parse_filter,
    parse_header,
    serialize_filter,
)
from pyparq.limits import Limits

P = Physical
INT32 = LeafType(P.INT32, "int", bits=32)
UINT32 = LeafType(P.INT32, "uint", bits=32)
INT64 = LeafType(P.INT64, "int", bits=64)
FLOAT = LeafType(P.FLOAT, "float")
DOUBLE = LeafType(P.DOUBLE, "double")
HALF = LeafType(P.FIXED_LEN_BYTE_ARRAY, "float16", 2)
TEXT = LeafType(P.BYTE_ARRAY, "string")
DECIMAL = LeafType(P.FIXED_LEN_BYTE_ARRAY, "decimal", 9, precision=20, scale=2)
BOOL = LeafType(P.BOOLEAN, "bool")


# ---------------------------------------------------------------- the specification by hand


def block_mask(key: int) -> tuple[int, ...]:
    """The eight words, one bit each, that the lower 32 bits of a hash set in a block."""
    return tuple(1 << (((key * salt) & 0xFFFFFFFF) >> 27) for salt in SALT)


def test_mask_of_one_is_the_salts_upper_five_bits() -> None:
    # 0x47b6137b >> 27 = 8, 0x44974d91 >> 27 = 8, 0x8824ad5b >> 27 = 17, 0xa2b7289d >> 27 = 20,
    # 0x705495c7 >> 27 = 14, 0x2df1424b >> 27 = 5, 0x9efc4947 >> 27 = 19, 0x5c6bfb31 >> 27 = 11
    assert block_mask(1) == tuple(1 << bit for bit in (8, 8, 17, 20, 14, 5, 19, 11))
    # Doubling the key shifts the product left by one, modulo 2^32: 0x8f6c26f6 >> 27 = 17, ...
    assert block_mask(2) == tuple(1 << bit for bit in (17, 17, 2, 8, 28, 11, 7, 23))
    assert block_mask(0) == (1,) * 8
    assert block_mask(0x9_0000_0001) == block_mask(1)  # the lower 32 bits alone


def test_block_choice() -> None:
    assert block_index(0, 1000) == 0
    assert block_index(0xFFFFFFFF_FFFFFFFF, 1000) == 999
    assert block_index(0x80000000_00000000, 1000) == 500
    assert block_index(0x7FFFFFFF_FFFFFFFF, 1000) == 499
    assert block_index(0x00000000_FFFFFFFF, 1000) == 0  # the upper 32 bits alone
    assert block_index(0x80000000_00000000, (1 << 31) - 1) == (1 << 30) - 1


def test_insert_sets_the_masks_bits_in_the_chosen_block() -> None:
    built = BloomFilter.empty(4 * 32)
    value = 0xC0000000_00000001  # three quarters of the way: block 3, key 1
    built.insert_hashes(np.array([value], np.uint64))
    words = built.bitset.view("<u4").reshape(4, 8)
    assert not words[:3].any()
    assert tuple(words[3].tolist()) == block_mask(1)
    built.insert_hashes(np.array([0xC0000000_00000002], np.uint64))
    assert tuple(words[3].tolist()) == tuple(a | b for a, b in zip(block_mask(1), block_mask(2), strict=True))


def test_single_and_many_agree_with_the_definition() -> None:
    rng = np.random.default_rng(3)
    built = BloomFilter.empty(64 * 32)
    inserted = rng.integers(0, 2**64, 900, np.uint64)
    built.insert_hashes(inserted)
    asked = np.concatenate((inserted, rng.integers(0, 2**64, 3000, np.uint64)))
    many = built.check_hash(asked)
    words = built.bitset.view("<u4").reshape(-1, 8).tolist()
    for value, found in zip(asked.tolist(), many.tolist(), strict=True):
        block = words[block_index(value, 64)]
        expected = all(w & m for w, m in zip(block, block_mask(value), strict=True))
        assert found == expected
        assert built.check_hash(value) == expected
        assert check_block(struct.pack("<8I", *block), value) == expected
    assert many[:900].all()
    assert not many.all()


# ---------------------------------------------------------------- others' filters


def test_a_foreign_filter_answers(corpus: Path) -> None:
    built = parse_filter((corpus / "data/bloom_filter.xxhash.bin").read_bytes(), TEXT)
    words = ["hello", "parquet", "bloom", "filter"]
    assert built.check(words).all()
    assert all(built.check(w) for w in words)
    assert all(built.check_hash(xxhash.xxh64_intdigest(w.encode())) for w in words)
    rebuilt = BloomFilter.empty(built.num_bytes)
    data = np.frombuffer("".join(words).encode(), np.uint8)
    rebuilt.insert_hashes(hash_values(BinaryValues(np.cumsum([0, *map(len, words)]), data), TEXT))
    assert np.array_equal(rebuilt.bitset, built.bitset)
    assert not built.check([f"absent {k}" for k in range(1000)]).any()


def test_the_retired_format_is_refused(corpus: Path) -> None:
    with pytest.raises(UnsupportedError, match="Murmur3"):
        parse_filter((corpus / "data/bloom_filter.bin").read_bytes(), TEXT)


@pytest.mark.parametrize("name", ["data_index_bloom_encoding_stats", "data_index_bloom_encoding_with_length"])
def test_filters_in_foreign_files(corpus: Path, name: str) -> None:
    path = corpus / "data" / f"{name}.parquet"
    data = path.read_bytes()
    chunk = footer(data).row_groups[0].columns[0].meta_data
    start = chunk.bloom_filter_offset
    size, header = parse_header(data[start : start + 64], available=len(data) - start)
    if chunk.bloom_filter_length is not None:
        assert header + size == chunk.bloom_filter_length
        assert size == bitset_bytes(chunk.bloom_filter_length)
    built = parse_filter(data[start : start + header + size], TEXT)
    present = pq.read_table(path).column(0).to_pylist()
    assert built.check(present).all()
    assert not all(built.check(f"{word}?") for word in present)


def test_pyarrows_filters_hold_our_hashes() -> None:
    """Every type that pyarrow writes a filter for: the same bits as ours, so the same hashes."""
    rng = np.random.default_rng(0)
    count = 500
    columns: dict[str, Any] = {
        "i32": pa.array(rng.integers(-(2**31), 2**31, count, np.int32)),
        "u32": pa.array(rng.integers(0, 2**32, count, np.uint32)),
        "i64": pa.array(rng.integers(-(2**63), 2**63, count)),
        "u64": pa.array(rng.integers(0, 2**64, count, np.uint64)),
        "f32": pa.array(rng.random(count, np.float32)),
        "f64": pa.array(rng.random(count)),
        "text": pa.array([f"v{k}" * (k % 40) for k in range(count)]),
        "flba": pa.array([rng.bytes(12) for _ in range(count)], pa.binary(12)),
        "ts": pa.array(rng.integers(0, 2**60, count), pa.timestamp("us", "UTC")),
        "date": pa.array(rng.integers(0, 20000, count, np.int32), pa.date32()),
    }
    table = pa.table(columns)
    sink = io.BytesIO()
    pq.write_table(table, sink, bloom_filter_options={name: {"ndv": count, "fpp": 0.01} for name in columns})
    data = sink.getvalue()
    meta = footer(data)
    leaves = build_tree(meta.schema).leaves
    for leaf, chunk in zip(leaves, meta.row_groups[0].columns, strict=True):
        start = chunk.meta_data.bloom_filter_offset
        theirs = parse_filter(data[start : start + chunk.meta_data.bloom_filter_length], leaf.type)
        ours = BloomFilter.empty(theirs.num_bytes)
        ours.insert_hashes(hash_values(physical(columns[leaf.name], leaf.type), leaf.type))
        assert np.array_equal(ours.bitset, theirs.bitset), leaf.name


def physical(array: pa.Array, leaf: LeafType) -> Any:
    if leaf.is_binary:
        values = [v.encode() if isinstance(v, str) else v for v in array.to_pylist()]
        return BinaryValues(np.cumsum([0, *map(len, values)]), np.frombuffer(b"".join(values), np.uint8))
    raw = array.buffers()[1]
    if leaf.kind == "fixed":
        return np.frombuffer(raw, np.uint8, len(array) * leaf.length).reshape(-1, leaf.length)
    return np.frombuffer(
        raw, {P.INT32: "<i4", P.INT64: "<i8", P.FLOAT: "<f4", P.DOUBLE: "<f8"}[leaf.physical], len(array)
    )


# ---------------------------------------------------------------- hashing rules


def test_hash_input_is_plain_without_length() -> None:
    assert hash_literal(b"hello", TEXT) == [xxhash.xxh64_intdigest(b"hello")]
    assert hash_literal(-2, INT32) == [xxhash.xxh64_intdigest(struct.pack("<i", -2))]
    assert hash_literal(2**32 - 1, UINT32) == [xxhash.xxh64_intdigest(b"\xff" * 4)]
    assert hash_literal(1.5, FLOAT) == [xxhash.xxh64_intdigest(struct.pack("<f", 1.5))]
    assert hash_literal(-5, DECIMAL) == [xxhash.xxh64_intdigest((-5).to_bytes(9, "big", signed=True))]
    assert hash_literal(0.5, HALF) == [xxhash.xxh64_intdigest(struct.pack("<e", 0.5))]


@pytest.mark.parametrize(("leaf", "dtype"), [(FLOAT, "<f4"), (DOUBLE, "<f8"), (HALF, "<f2")])
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_either_zero_brings_both(leaf: LeafType, dtype: str, zero: float) -> None:
    flat = np.array([1.5, zero, 2.0], dtype)
    values = flat.view(np.uint8).reshape(-1, 2) if leaf is HALF else flat
    hashes = set(hash_values(values, leaf).tolist())
    both = {xxhash.xxh64_intdigest(np.array(z, dtype).tobytes()) for z in (0.0, -0.0)}
    assert both < hashes
    assert set(hash_literal(0.0, leaf) or []) == set(hash_literal(-0.0, leaf) or []) == both
    # Another writer put in one of them only: probing finds it either way.
    for only in both:
        built = BloomFilter.empty(32, leaf)
        built.insert_hashes(np.array([only], np.uint64))
        assert built.check(0.0)
        assert built.check(-0.0)
    without = flat[[0, 2]]
    assert not both & set(
        hash_values(without.view(np.uint8).reshape(-1, 2) if leaf is HALF else without, leaf).tolist()
    )


@pytest.mark.parametrize(
    ("leaf", "dtype", "odd", "usual"),
    [
        (FLOAT, "<f4", 0xFFC00001, 0x7FC00000),
        (DOUBLE, "<f8", 0xFFF8000000000000, 0x7FF8000000000000),
        (HALF, "<f2", 0xFE01, 0x7E00),
    ],
)
def test_any_nan_brings_the_usual_one(leaf: LeafType, dtype: str, odd: int, usual: int) -> None:
    bits = dtype.replace("f", "u")
    flat = np.array([0x1234, odd], bits)
    hashes = set(hash_values(flat.view(np.uint8).reshape(-1, 2) if leaf is HALF else flat.view(dtype), leaf).tolist())
    assert hashes == {xxhash.xxh64_intdigest(np.array(v, bits).tobytes()) for v in (0x1234, odd, usual)}


def test_what_cannot_be_in_the_column_is_absent() -> None:
    assert hash_literal(2**40, INT32) == []
    assert hash_literal(-1, UINT32) == []
    assert hash_literal(0.1, FLOAT) == []
    assert hash_literal(1e300, FLOAT) == []
    assert hash_literal(10**40, DECIMAL) == []
    full = BloomFilter(np.full(32, 255, np.uint8), INT32)
    assert full.check([1, 2**40, 3.5, -1.0]).tolist() == [True, False, False, True]


def test_where_a_filter_proves_nothing() -> None:
    assert hash_literal(math.nan, DOUBLE) is None
    never = [
        BOOL,
        LeafType(P.INT96, "int96"),
        LeafType(P.FIXED_LEN_BYTE_ARRAY, "interval", 12),
        LeafType(P.BYTE_ARRAY, "decimal", precision=9),
    ]
    for leaf in never:
        assert not can_prune(leaf)
        assert hash_literal(1, leaf) is None
    for leaf in (INT32, UINT32, DOUBLE, HALF, TEXT, DECIMAL):
        assert can_prune(leaf)
    empty = BloomFilter.empty(32)  # as Spark leaves it for BOOLEAN
    assert empty.check(True, BOOL)
    assert empty.check([math.nan, 1.0], DOUBLE).tolist() == [True, False]


def test_check_takes_values_and_arrays() -> None:
    built = BloomFilter.empty(1 << 12, INT64)
    values = np.arange(0, 2000, 2)
    built.insert_hashes(hash_values(values.astype("<i8"), INT64))
    assert built.check(values).all()
    assert built.check(values.tolist()).all()
    assert built.check(values.astype(np.uint16)).all()
    assert built.check(np.int32(4))
    assert built.check(4.0)
    assert built.check(4) is True
    odd = built.check(values + 1)
    assert odd.tolist() == [built.check(int(v) + 1) for v in values]
    assert odd.mean() < 0.1
    assert built.check(np.array([2**63, 4], np.uint64)).tolist() == [False, True]
    with pytest.raises(OptionError, match="leaf"):
        BloomFilter.empty(32).check(4)


def test_values_and_hashes_of_the_wrong_kind() -> None:
    uuid = LeafType(Physical.FIXED_LEN_BYTE_ARRAY, "uuid", 16)
    wrong: list[tuple[LeafType, Any, str]] = [
        (INT64, "4", "of int values takes numbers as the file stores them, not str"),
        (INT64, [1, None], "not NoneType"),
        (DECIMAL, Decimal("1.5"), "unscaled.*not Decimal"),
        (TEXT, 4, "of string values takes text or bytes, not int"),
        (TEXT, np.array([1, 2]), "not int64"),
        (uuid, "00112233-4455-6677-8899-aabbccddeeff", "takes 16 bytes, not str"),
    ]
    for leaf, value, says in wrong:
        with pytest.raises(FilterError, match=says):
            BloomFilter.empty(32, leaf).check(value)
    for hashes in ("4", 1.5, [1.0], [None], [2**64]):
        with pytest.raises(FilterError, match="hashes must be 64-bit integers"):
            BloomFilter.empty(32, INT64).check_hash(hashes)
    assert BloomFilter.empty(32, INT64).check_hash([]).tolist() == []
    interval = LeafType(Physical.FIXED_LEN_BYTE_ARRAY, "interval", 12)
    assert BloomFilter.empty(32, interval).check(b"x" * 12) is True  # nothing can be proved


@pytest.mark.parametrize("fpp", [0.1, 0.01, 0.001])
@pytest.mark.parametrize("power_of_two", [True, False])
def test_the_rate_asked_for_is_met(fpp: float, power_of_two: bool) -> None:
    ndv = 100_000
    built = BloomFilter.empty(bytes_for(ndv, fpp, power_of_two), TEXT)
    present = [b"present %d" % k for k in range(ndv)]
    built.insert_hashes(hash_values(binary(present), TEXT))
    absent = hash_values(binary([b"absent %d" % k for k in range(400_000)]), TEXT)
    assert built.check_hash(hash_values(binary(present), TEXT)).all()
    assert float(built.check_hash(absent).mean()) <= 1.1 * fpp
    assert built.false_positive_rate() <= 1.05 * fpp
    assert built.estimated_distinct() == pytest.approx(ndv, rel=0.01)


def binary(values: list[bytes]) -> BinaryValues:
    return BinaryValues(np.cumsum([0, *map(len, values)]), np.frombuffer(b"".join(values), np.uint8))


# ---------------------------------------------------------------- headers


@pytest.mark.parametrize("size", [32, 96, 1 << 20, 128 << 20])
def test_header_there_and_back(size: int) -> None:
    header, bitset = serialize_filter(np.zeros(size, np.uint8))
    assert len(header) < 32
    assert bitset_bytes(len(header) + len(bitset)) == size
    assert parse_header(header + bytes(16)) == (size, len(header))
    assert parse_header(header, available=len(header) + size) == (size, len(header))
    with pytest.raises(CorruptFileError, match="the file has only"):
        parse_header(header, available=len(header) + size - 1)
    with pytest.raises(ThriftTruncatedError):
        parse_header(header[:-1])


def header_with(**changes: Any) -> bytes:
    fields: dict[str, Any] = {
        "numBytes": 64,
        "algorithm": tt.BloomFilterAlgorithm(BLOCK=tt.SplitBlockAlgorithm()),
        "hash": tt.BloomFilterHash(XXHASH=tt.XxHash()),
        "compression": tt.BloomFilterCompression(UNCOMPRESSED=tt.Uncompressed()),
    }
    return serialize(tt.BloomFilterHeader(**(fields | changes)))


@pytest.mark.parametrize("size", [-32, 0, 1, 33, 2**31 - 1])
def test_bad_sizes(size: int) -> None:
    with pytest.raises(CorruptFileError):
        parse_header(header_with(numBytes=size))


def test_sizes_over_the_cap() -> None:
    with pytest.raises(LimitError, match="max_bloom_filter"):
        parse_header(header_with(numBytes=(128 << 20) + 32))
    with pytest.raises(LimitError):
        parse_header(header_with(), Limits(max_bloom_filter=32))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("algorithm", tt.BloomFilterAlgorithm()),
        ("hash", tt.BloomFilterHash()),
        ("compression", tt.BloomFilterCompression()),
    ],
)
def test_members_from_the_future(name: str, value: Any) -> None:
    with pytest.raises(UnsupportedError, match=name):
        parse_header(header_with(**{name: value}))


@pytest.mark.fuzz
def test_damaged_headers_give_typed_errors() -> None:
    rng = random.Random(11)
    good = header_with() + bytes(64)
    for _ in range(3000):
        data = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(24)] = rng.randrange(256)
        try:
            size, end = parse_header(bytes(data[: rng.randint(0, len(data))]), available=len(data))
        except ParquetError:
            continue
        assert size % 32 == 0
        assert 0 < size <= len(data) - end


def test_bitsets_must_be_whole_blocks() -> None:
    for size in (0, 31, 33):
        with pytest.raises(ValueError, match="multiple of 32"):
            BloomFilter(np.zeros(size, np.uint8))
