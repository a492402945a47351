"""The comparison rules: comparable domains, stored bounds and the bounds of pages."""

from __future__ import annotations

import math
import random
import struct
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyparq.format import ttypes as tt
from pyparq.format.leaf_values import BinaryValues
from pyparq.format.order import (
    Order,
    bound_dtype,
    decode_bounds,
    encode_bound,
    has_order,
    order_of,
    segment_minmax,
)
from pyparq.format.types import LeafType, Physical

P = Physical
FLBA = P.FIXED_LEN_BYTE_ARRAY

NUMBERS = {
    "bool": (LeafType(P.BOOLEAN, "bool"), "u1", [0, 1]),
    "int8": (LeafType(P.INT32, "int", bits=8), "<i4", [-128, -1, 0, 127]),
    "int32": (LeafType(P.INT32, "int", bits=32), "<i4", [-(2**31), -1, 0, 2**31 - 1]),
    "int64": (LeafType(P.INT64, "int", bits=64), "<i8", [-(2**63), -1, 0, 2**63 - 1]),
    "uint32": (LeafType(P.INT32, "uint", bits=32), "<u4", [0, 1, 2**31, 2**32 - 1]),
    "uint64": (LeafType(P.INT64, "uint", bits=64), "<u8", [0, 1, 2**63, 2**64 - 1]),
    "date": (LeafType(P.INT32, "date"), "<i4", [-719162, 0, 20000]),
    "timestamp": (LeafType(P.INT64, "timestamp", unit="us", utc=True), "<i8", [-1, 0, 2**60]),
    "decimal32": (LeafType(P.INT32, "decimal", precision=9, scale=2), "<i4", [-999999999, 0, 999999999]),
    "decimal64": (LeafType(P.INT64, "decimal", precision=18, scale=2), "<i8", [-(10**17), 0, 10**17]),
}
FLOATS = {
    "float16": (LeafType(FLBA, "float16", 2), "<f2"),
    "float": (LeafType(P.FLOAT, "float"), "<f4"),
    "double": (LeafType(P.DOUBLE, "double"), "<f8"),
}
TEXT = LeafType(P.BYTE_ARRAY, "string")
BINARY = LeafType(P.BYTE_ARRAY, "binary")
FIXED = LeafType(FLBA, "fixed", 3)
DECIMAL_BYTES = LeafType(P.BYTE_ARRAY, "decimal", precision=38, scale=3)
DECIMAL_FIXED = LeafType(FLBA, "decimal", 5, precision=11, scale=3)

NO_ORDER = [
    LeafType(FLBA, "interval", 12),
    LeafType(P.BYTE_ARRAY, "variant"),
    LeafType(P.BYTE_ARRAY, "geometry"),
    LeafType(P.BYTE_ARRAY, "geography"),
    LeafType(P.INT32, "null"),
]


def binary(values: list[bytes]) -> BinaryValues:
    # Offsets that start above zero: bytes in front belong to nobody.
    offsets = np.cumsum([2, *map(len, values)]).astype(np.int64)
    return BinaryValues(offsets, np.frombuffer(b"\xee\xee" + b"".join(values), np.uint8))


@pytest.mark.parametrize("leaf", NO_ORDER, ids=lambda leaf: leaf.kind)
def test_leaves_without_an_order(leaf: LeafType) -> None:
    assert not has_order(leaf)
    _, ok = decode_bounds(leaf, [bytes(12), b""])
    assert not ok.any()
    values: Any = np.zeros((4, 12), np.uint8)
    if leaf.is_binary:
        values = binary([b"a", b"b", b"c", b"d"])
    found = segment_minmax(leaf, values, np.array([0, 2, 4]))
    assert found.mins == found.maxs == [None, None]
    with pytest.raises(TypeError):
        encode_bound(leaf, 1)


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_there_and_back(name: str) -> None:
    leaf, dtype, values = NUMBERS[name]
    raw = [encode_bound(leaf, v) for v in values]
    assert raw == [np.array(v, dtype).tobytes() for v in values]
    decoded, ok = decode_bounds(leaf, raw)
    assert decoded.dtype == bound_dtype(leaf)
    assert decoded.tolist() == values
    assert ok.all()
    assert (decoded[:-1] < decoded[1:]).all()


@pytest.mark.parametrize("name", [n for n in NUMBERS if n != "bool"])
def test_numbers_that_do_not_fit(name: str) -> None:
    leaf, dtype, _ = NUMBERS[name]
    info = np.iinfo(dtype)
    for value in (int(info.min) - 1, int(info.max) + 1, 0.5):
        with pytest.raises((ValueError, OverflowError)):
            encode_bound(leaf, value)


def test_bounds_of_wrong_length_are_flagged() -> None:
    leaf = NUMBERS["int32"][0]
    values, ok = decode_bounds(leaf, [b"\x01\0\0\0", b"", b"\x01", None, bytes(8), b"\x02\0\0\0"])
    assert ok.tolist() == [True, False, False, False, False, True]
    assert values[ok].tolist() == [1, 2]
    assert decode_bounds(NUMBERS["bool"][0], [b"\0", b"\1", b"\2", b""])[1].tolist() == [True, True, False, False]
    assert decode_bounds(DECIMAL_FIXED, [bytes(5), bytes(4), b"", None])[1].tolist() == [True, False, False, False]
    assert decode_bounds(DECIMAL_BYTES, [bytes(5), b"\xff", b"", None])[1].tolist() == [True, True, False, False]
    assert decode_bounds(TEXT, [b"", b"a", None])[1].tolist() == [True, True, False]


@pytest.mark.parametrize("name", FLOATS)
def test_floats(name: str) -> None:
    leaf, dtype = FLOATS[name]
    stored = [float(v) for v in np.array([-math.inf, -1.5, -0.0, 0.0, 2.25, math.inf], dtype)]
    values, ok = decode_bounds(leaf, [encode_bound(leaf, v) for v in stored] + [np.array(np.nan, dtype).tobytes()])
    assert values[:-1].tolist() == stored
    assert ok.tolist() == [True] * 6 + [False]
    if name != "double":
        with pytest.raises((ValueError, OverflowError)):
            encode_bound(leaf, 0.1)
        with pytest.raises((ValueError, OverflowError)):
            encode_bound(leaf, 1e300)


@given(st.integers(-(10**37), 10**37))
def test_decimals_of_any_length(value: int) -> None:
    raw = encode_bound(DECIMAL_BYTES, value)
    assert int.from_bytes(raw, "big", signed=True) == value
    if len(raw) > 1:  # no byte could go
        assert int.from_bytes(raw[1:], "big", signed=True) != value
    padded = (b"\xff" if value < 0 else b"\0") * 3 + raw
    decoded, ok = decode_bounds(DECIMAL_BYTES, [raw, padded])
    assert decoded.tolist() == [value, value]
    assert ok.all()


def test_decimals_of_fixed_length() -> None:
    assert encode_bound(DECIMAL_FIXED, -2) == b"\xff\xff\xff\xff\xfe"
    with pytest.raises(OverflowError):
        encode_bound(DECIMAL_FIXED, 2**39)


# ---------------------------------------------------------------- bounds of pages


def segments(count: int, rng: random.Random) -> np.ndarray[Any, Any]:
    cuts = sorted(rng.choices(range(count + 1), k=6))
    return np.array([0, *cuts, count], np.int64)


@pytest.mark.parametrize("name", NUMBERS)
def test_pages_of_numbers(name: str) -> None:
    leaf, dtype, extremes = NUMBERS[name]
    rng = random.Random(name)
    picked = [rng.choice(extremes) if rng.random() < 0.1 else rng.randint(0, 1) for _ in range(300)]
    values = np.array(picked, dtype)
    physical = values.view(dtype.replace("u", "i")) if dtype != "u1" else values
    edges = segments(300, rng)
    found = segment_minmax(leaf, physical, edges)
    assert found.nan_counts is None
    for k, (a, b) in enumerate(pairwise(edges.tolist())):
        if a == b:
            assert found.mins[k] is None
            assert found.maxs[k] is None
        else:
            assert found.mins[k] == encode_bound(leaf, min(picked[a:b]))
            assert found.maxs[k] == encode_bound(leaf, max(picked[a:b]))


@pytest.mark.parametrize("name", FLOATS)
def test_pages_of_floats(name: str) -> None:
    leaf, dtype = FLOATS[name]
    nan, inf = math.nan, math.inf
    pages = [[1.0, nan, -2.0], [nan, nan], [], [0.0, 3.0], [-0.0, -1.0], [0.0], [-0.0], [inf, -inf, nan]]
    flat = np.array([v for page in pages for v in page], dtype)
    values = flat.view(np.uint8).reshape(-1, 2) if name == "float16" else flat
    edges = np.cumsum([0, *map(len, pages)])
    found = segment_minmax(leaf, values, edges)
    assert found.nan_counts is not None
    assert found.nan_counts.tolist() == [1, 2, 0, 0, 0, 0, 0, 1]
    assert found.mins[1] is found.maxs[1] is found.mins[2] is found.maxs[2] is None

    def bits(value: float) -> bytes:
        return np.array(value, dtype).tobytes()

    assert found.mins[0] == bits(-2.0)
    assert found.maxs[0] == bits(1.0)
    # A zero minimum is written as -0.0, a zero maximum as +0.0 (parquet.thrift, ColumnOrder).
    assert found.mins[3] == bits(-0.0)
    assert found.maxs[4] == bits(0.0)
    assert found.mins[5] == found.mins[6] == bits(-0.0)
    assert found.maxs[5] == found.maxs[6] == bits(0.0)
    assert found.mins[7] == bits(-inf)
    assert found.maxs[7] == bits(inf)


@pytest.mark.parametrize("leaf", [TEXT, BINARY, DECIMAL_BYTES], ids=["text", "binary", "decimal"])
@settings(max_examples=60)
@given(data=st.data())
def test_pages_of_byte_arrays(leaf: LeafType, data: st.DataObject) -> None:
    empty = 1 if leaf.kind == "decimal" else 0
    values = data.draw(st.lists(st.binary(min_size=empty, max_size=6), max_size=40))
    cut = data.draw(st.integers(0, len(values)))
    found = segment_minmax(leaf, binary(values), np.array([0, cut, len(values)]))
    for k, page in enumerate((values[:cut], values[cut:])):
        if not page:
            assert found.mins[k] is found.maxs[k] is None
            continue
        low, high = found.mins[k], found.maxs[k]
        assert low in page
        assert high in page
        domain = decode_bounds(leaf, page)[0].tolist()
        assert decode_bounds(leaf, [low, high])[0].tolist() == [min(domain), max(domain)]


@pytest.mark.parametrize("leaf", [FIXED, DECIMAL_FIXED], ids=["fixed", "decimal"])
def test_pages_of_fixed_width(leaf: LeafType) -> None:
    rng = random.Random(7)
    values = [rng.randbytes(leaf.length) for _ in range(200)] + [b"\xff" * leaf.length, bytes(leaf.length)]
    array = np.frombuffer(b"".join(values), np.uint8).reshape(-1, leaf.length)
    edges = segments(len(values), rng)
    found = segment_minmax(leaf, array, edges)
    for k, (a, b) in enumerate(pairwise(edges.tolist())):
        if a < b:
            domain = decode_bounds(leaf, values[a:b])[0].tolist()
            assert decode_bounds(leaf, [found.mins[k], found.maxs[k]])[0].tolist() == [min(domain), max(domain)]
        else:
            assert found.mins[k] is None


# ---------------------------------------------------------------- column orders


def test_column_orders() -> None:
    double, int64, int96 = LeafType(P.DOUBLE, "double"), NUMBERS["int64"][0], LeafType(P.INT96, "int96")
    type_order = tt.ColumnOrder(TYPE_ORDER=tt.TypeDefinedOrder())
    total = tt.ColumnOrder(IEEE_754_TOTAL_ORDER=tt.IEEE754TotalOrder())
    int96_order = tt.ColumnOrder(INT96_TIMESTAMP_ORDER=tt.Int96TimestampOrder())
    assert order_of(int64, None) == Order.ABSENT
    assert order_of(int64, type_order) == Order.TYPE
    assert order_of(double, total) == Order.TOTAL
    assert order_of(int64, total) == Order.UNKNOWN
    assert order_of(int96, int96_order) == Order.INT96
    assert order_of(int96, type_order) == order_of(int96, None) == order_of(int96, total) == Order.UNKNOWN
    assert order_of(int64, int96_order) == Order.UNKNOWN
    assert order_of(int64, tt.ColumnOrder()) == Order.UNKNOWN  # an order from the future
    known = tt.SchemaElement(name="a", logicalType=tt.LogicalType(DATE=tt.DateType()))
    future = tt.SchemaElement(name="a", logicalType=tt.LogicalType())
    assert order_of(int64, type_order, known) == Order.TYPE
    assert order_of(int64, type_order, future) == Order.UNKNOWN
    assert order_of(int64, type_order, tt.SchemaElement(name="a")) == Order.TYPE


def test_float_bits_of_the_bounds() -> None:
    # A bound keeps the whole value, not a rounded one.
    leaf = LeafType(P.FLOAT, "float")
    value = struct.unpack("<f", struct.pack("<f", 0.1))[0]
    found = segment_minmax(leaf, np.array([value], "<f4"), np.array([0, 1]))
    assert found.mins == found.maxs == [struct.pack("<f", 0.1)]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("name", "raw"), [("float16", "017c"), ("float", "010080ff"), ("double", "010000000000f07f")])
def test_bounds_that_are_signalling_nans(name: str, raw: str) -> None:
    one = np.ones(1, FLOATS[name][1]).tobytes()
    values, usable = decode_bounds(FLOATS[name][0], [bytes.fromhex(raw), one])
    assert usable.tolist() == [False, True]
    assert values[1] == 1
