"""ColumnIndex and OffsetIndex: built against a brute-force oracle, foreign ones parsed, damaged ones refused."""

from __future__ import annotations

import io
import itertools
import math
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from written import footer

from pyparq.errors import CorruptFileError, DataError, LimitError, ParquetError
from pyparq.format import ttypes as tt
from pyparq.format.leaf_values import BinaryValues
from pyparq.format.order import Order, decode_bounds, encode_bound, order_of, segment_minmax
from pyparq.format.schema_tree import build_tree
from pyparq.format.thrift_codec import deserialize, serialize
from pyparq.format.types import LeafType, Physical
from pyparq.index.page_index import (
    MAX_WHOLE_BOUND,
    ColumnIndexBuilder,
    OffsetIndexBuilder,
    PageLocations,
    parse_column_index,
    parse_offset_index,
)
from pyparq.index.statistics import ASCENDING, DESCENDING, UNORDERED, Bounds
from pyparq.kernels import check_page_locations
from pyparq.limits import Limits

P = Physical
INT32 = LeafType(P.INT32, "int", bits=32)
INT64 = LeafType(P.INT64, "int", bits=64)
DOUBLE = LeafType(P.DOUBLE, "double")
TEXT = LeafType(P.BYTE_ARRAY, "string")
BINARY = LeafType(P.BYTE_ARRAY, "binary")
DECIMAL = LeafType(P.FIXED_LEN_BYTE_ARRAY, "decimal", 9, precision=20)


def built(leaf: LeafType, pages: list[list[Any]], truncate: int | None = 64) -> tt.ColumnIndex | None:
    """The ColumnIndex of pages of comparable values, ``None`` for null."""
    builder = ColumnIndexBuilder(leaf, truncate)
    there = [[v for v in page if v is not None] for page in pages]
    edges = np.cumsum([0, *map(len, there)])
    flat = [v for page in there for v in page]
    found = segment_minmax(leaf, physical(leaf, flat), edges)
    nans = [None] * len(found) if found.nan_counts is None else found.nan_counts.tolist()
    for page, values, low, high, nan in zip(pages, there, found.mins, found.maxs, nans, strict=True):
        builder.add_page(low, high, null_count=len(page) - len(values), value_count=len(values), nan_count=nan)
    stored = builder.finish()
    return None if stored is None else deserialize(tt.ColumnIndex, stored)[0]


def physical(leaf: LeafType, values: list[Any]) -> Any:
    if leaf.is_binary:
        return BinaryValues(np.cumsum([0, *map(len, values)]), np.frombuffer(b"".join(values), np.uint8))
    if leaf.kind == "decimal":
        raw = b"".join(encode_bound(leaf, v) for v in values)
        return np.frombuffer(raw, np.uint8).reshape(-1, leaf.length)
    return np.array(values, {P.INT32: "<i4", P.INT64: "<i8", P.DOUBLE: "<f8"}[leaf.physical])


def there_and_back(leaf: LeafType, pages: list[list[Any]], truncate: int | None = 64) -> Bounds:
    index = built(leaf, pages, truncate)
    assert index is not None
    counts = np.array([len(page) for page in pages], np.int64)
    return parse_column_index(serialize(index), leaf, len(pages), counts=counts)


# ---------------------------------------------------------------- building

VALUES = {
    "int32": (INT32, st.integers(-(2**31), 2**31 - 1)),
    "int64": (INT64, st.integers(-(2**63), 2**63 - 1)),
    "double": (DOUBLE, st.floats(allow_nan=False)),
    "text": (TEXT, st.text(st.characters(codec="utf-8"), max_size=12).map(str.encode)),
    "binary": (BINARY, st.binary(max_size=12)),
    "decimal": (DECIMAL, st.integers(-(10**20), 10**20)),
}


@pytest.mark.parametrize("name", VALUES)
@settings(max_examples=40)
@given(data=st.data())
def test_bounds_hold_and_are_tight(name: str, data: st.DataObject) -> None:
    leaf, values = VALUES[name]
    page = st.lists(values | st.none(), min_size=1, max_size=6)
    pages = data.draw(st.lists(page, min_size=1, max_size=6))
    truncate = data.draw(st.sampled_from([4, 64, None]))
    found = there_and_back(leaf, pages, truncate)
    for k, entries in enumerate(pages):
        there = [v for v in entries if v is not None]
        assert found.null_counts[k] == len(entries) - len(there)
        assert found.all_null[k] == (not there)
        assert found.has_bounds[k] == bool(there)
        if there:
            assert found.mins[k] <= min(there)
            assert found.maxs[k] >= max(there)
            if truncate != 4 or not leaf.is_binary:
                assert (found.mins[k], found.maxs[k]) == (min(there), max(there))
    mins, maxs = found.mins[found.has_bounds], found.maxs[found.has_bounds]
    rising = all(mins[:-1] <= mins[1:]) and all(maxs[:-1] <= maxs[1:])
    falling = all(mins[:-1] >= mins[1:]) and all(maxs[:-1] >= maxs[1:])
    assert found.boundary_order == (ASCENDING if rising else DESCENDING if falling else UNORDERED)


@pytest.mark.parametrize(
    ("pages", "order"),
    [
        ([[1], [2], [3]], ASCENDING),
        ([[3], [2], [1]], DESCENDING),
        ([[1], [3], [2]], UNORDERED),
        ([[1, 9], [2, 5]], UNORDERED),
        ([[1, 5], [3, 9], [9, 9]], ASCENDING),  # pages may overlap
        ([[2], [2], [2]], ASCENDING),
        ([[1], [None, None], [2]], ASCENDING),  # null pages stand aside
        ([[2], [None], [1]], DESCENDING),
        ([[None], [None]], ASCENDING),
        ([[5]], ASCENDING),
    ],
)
def test_boundary_order(pages: list[list[Any]], order: int) -> None:
    index = built(INT32, pages)
    assert index is not None
    assert index.boundary_order == order
    assert there_and_back(INT32, pages).boundary_order == order


def test_null_pages() -> None:
    index = built(INT32, [[1, None], [None, None], [2]])
    assert index is not None
    assert index.null_pages == [False, True, False]
    assert index.min_values[1] == index.max_values[1] == b""
    assert index.null_counts == [1, 2, 0]
    assert index.nan_counts is None


def test_floats() -> None:
    nan = math.nan
    index = built(DOUBLE, [[1.0, nan], [0.0, -1.0], [None], [-0.0, 5.0]])
    assert index is not None
    assert index.nan_counts == [1, 0, 0, 0]
    assert index.min_values[0] == index.max_values[0] == struct.pack("<d", 1.0)
    assert index.max_values[1] == struct.pack("<d", 0.0)
    assert index.min_values[3] == struct.pack("<d", -0.0)
    # A page of nothing but NaN: TYPE_ORDER forbids the index of the whole chunk.
    assert built(DOUBLE, [[1.0], [nan, None]]) is None


def test_leaves_without_an_order_have_no_column_index() -> None:
    builder = ColumnIndexBuilder(LeafType(P.INT96, "int96"))
    builder.add_page(None, None, null_count=0, value_count=5)
    assert builder.finish() is None


def test_histograms() -> None:
    builder = ColumnIndexBuilder(INT32)
    low = encode_bound(INT32, 1)
    for _ in range(2):
        builder.add_page(
            low, low, null_count=2, value_count=3, definition_histogram=[1, 1, 3], repetition_histogram=[4, 1]
        )
    stored = builder.finish()
    assert stored is not None
    index = deserialize(tt.ColumnIndex, stored)[0]
    assert index is not None
    data = serialize(index)
    found = parse_column_index(data, INT32, 2, max_def=2, max_rep=1)
    assert found.definition_histograms is not None
    assert found.definition_histograms.tolist() == [[1, 1, 3], [1, 1, 3]]
    assert found.repetition_histograms is not None
    assert found.repetition_histograms.tolist() == [[4, 1], [4, 1]]
    assert found.counts.tolist() == [-1, -1]
    with pytest.raises(CorruptFileError, match="histogram"):
        parse_column_index(data, INT32, 2, max_def=3, max_rep=1)


def test_index_of_long_shared_prefixes_stays_small() -> None:
    """The ceiling that the builder states: 2 * 64 + 24 bytes a page, whatever the strings are."""
    prefix = b"https://example.org/" + b"very-long-path/" * 300
    pages = [[prefix + b"%08d" % (100 * k), prefix + b"%08d" % (100 * k + 99)] for k in range(200)]
    index = built(TEXT, pages)
    assert index is not None
    data = serialize(index)
    assert len(data) <= 200 * (2 * 64 + 24)
    assert max(map(len, index.min_values + index.max_values)) <= 64
    found = there_and_back(TEXT, pages)
    for k, page in enumerate(pages):
        assert found.mins[k] <= page[0]
        assert found.maxs[k] >= page[1]
    assert len(serialize(built(TEXT, pages, truncate=None))) > 200 * 2 * len(prefix)  # what it saves


def test_bounds_that_cannot_be_cut() -> None:
    at_most = b"\xff" * MAX_WHOLE_BOUND
    index = built(BINARY, [[at_most]])
    assert index is not None
    assert index.max_values == [at_most]
    assert built(BINARY, [[at_most + b"\xff"]]) is None
    assert built(BINARY, [[at_most + b"\xff"]], truncate=None) is not None


def test_offset_index_there_and_back() -> None:
    builder = OffsetIndexBuilder()
    builder.add_page(0, 100, 0, unencoded=7)
    builder.add_page(100, 50, 10, unencoded=0)
    builder.add_page(150, 1, 11, unencoded=3)
    found = parse_offset_index(serialize(builder.finish(base=4)), 20, 4, 155)
    assert found.offsets.tolist() == [4, 104, 154]
    assert found.sizes.tolist() == [100, 50, 1]
    assert found.first_rows.tolist() == [0, 10, 11]
    assert found.row_counts(20).tolist() == [10, 1, 9]
    assert found.unencoded is not None
    assert found.unencoded.tolist() == [7, 0, 3]
    assert len(found) == 3


def test_what_an_offset_index_cannot_express() -> None:
    builder = OffsetIndexBuilder()
    with pytest.raises(DataError):
        builder.add_page(0, 0, 0)
    with pytest.raises(DataError):
        builder.add_page(0, 1 << 31, 0)
    builder.add_page(0, 10, 0)
    builder.add_page(10, 10, 4)
    builder.add_page(20, 10, 4)  # a page of no rows before it
    with pytest.raises(DataError):
        builder.add_page(30, 10, 3)
    with pytest.raises(DataError):
        builder.add_page(0, 10, 5)


# ---------------------------------------------------------------- foreign indexes


def indexes(data: bytes) -> list[tuple[Any, int, PageLocations, Bounds | None]]:
    """(leaf, row group, page locations, bounds) of every chunk that has an OffsetIndex and is not repeated."""
    meta = footer(data)
    orders = meta.column_orders or [None] * len(meta.schema)
    result = []
    for leaf, order in zip(build_tree(meta.schema).leaves, orders, strict=False):
        for number, group in enumerate(meta.row_groups):
            chunk = group.columns[leaf.column]
            if chunk.offset_index_offset is None or leaf.max_rep:
                continue
            body = chunk.meta_data
            start = min(at for at in (body.dictionary_page_offset, body.data_page_offset) if at)
            place = chunk.offset_index_offset
            pages = parse_offset_index(
                data[place : place + chunk.offset_index_length], group.num_rows, start,
                start + body.total_compressed_size,
            )  # fmt: skip
            bounds = None
            if chunk.column_index_offset is not None:
                place = chunk.column_index_offset
                bounds = parse_column_index(
                    data[place : place + chunk.column_index_length], leaf.type, len(pages),
                    counts=pages.row_counts(group.num_rows), column_order=order_of(leaf.type, order, leaf.element),
                    created_by=meta.created_by, max_def=leaf.max_def, max_rep=leaf.max_rep,
                )  # fmt: skip
            result.append((leaf, number, pages, bounds))
    return result


def check_against_values(data: bytes, exact: bool) -> int:
    """Every page's nulls, NaNs and bounds against the values that pyarrow reads; returns the pages seen."""
    file = pq.ParquetFile(io.BytesIO(data))
    seen = 0
    for leaf, number, pages, bounds in indexes(data):
        if bounds is None:
            continue
        column = file.read_row_group(number, [leaf.dotted]).column(0)
        raw = plain(column, leaf.type)
        ends = [*pages.first_rows.tolist()[1:], len(raw)]
        for k, (a, b) in enumerate(zip(pages.first_rows.tolist(), ends, strict=True)):
            seen += 1
            there = [v for v in raw[a:b] if v is not None]
            assert bounds.null_counts[k] in (-1, b - a - len(there))
            assert bounds.all_null[k] == (not there)
            numbers = [v for v in there if v == v]
            assert bounds.nan_counts[k] in (-1, len(there) - len(numbers))
            if bounds.has_bounds[k]:
                assert bounds.mins[k] <= min(numbers)
                assert bounds.maxs[k] >= max(numbers)
                if exact:
                    assert (bounds.mins[k], bounds.maxs[k]) == (min(numbers), max(numbers))
    return seen


def plain(column: Any, leaf: LeafType) -> list[Any]:
    """Values in the comparable domain."""
    if leaf.kind == "date":
        column = column.cast(pa.int32())
    elif leaf.kind == "timestamp":
        column = column.cast(pa.int64())
    values = column.to_pylist()
    if leaf.kind == "decimal":
        return [None if v is None else int(v.scaleb(leaf.scale)) for v in values]
    return [v.encode() if isinstance(v, str) else v for v in values]


def test_pyarrows_index() -> None:
    rng = np.random.default_rng(1)
    count = 3000
    nulls = rng.random(count) < 0.2
    nulls[500:900] = True  # whole pages of nulls

    def nullable(values: Any, kind: pa.DataType) -> pa.Array:
        return pa.array([None if null else v for v, null in zip(values, nulls, strict=True)], kind)

    table = pa.table(
        {
            "sorted": pa.array(np.arange(count)),
            "i32": nullable(rng.integers(-9, 9, count).tolist(), pa.int32()),
            "u64": nullable(rng.integers(0, 2**64, count, np.uint64).tolist(), pa.uint64()),
            "f64": nullable(rng.random(count).tolist(), pa.float64()),
            "text": nullable([f"é{v}" for v in rng.integers(0, 99, count)], pa.string()),
            "date": nullable(rng.integers(0, 9999, count).tolist(), pa.date32()),
            "ts": nullable(rng.integers(0, 2**50, count).tolist(), pa.timestamp("us", "UTC")),
            "flag": nullable(rng.integers(0, 2, count).astype(bool).tolist(), pa.bool_()),
        }
    )
    sink = io.BytesIO()
    pq.write_table(
        table, sink, write_page_index=True, data_page_size=400, row_group_size=2000, use_dictionary=False,
        write_batch_size=100,
    )  # fmt: skip
    data = sink.getvalue()
    assert check_against_values(data, exact=True) > 150
    orders = {leaf.name: bounds.boundary_order for leaf, _, _, bounds in indexes(data) if bounds is not None}
    assert orders["sorted"] == ASCENDING
    assert orders["u64"] == UNORDERED


@pytest.mark.parametrize(
    "name",
    [
        "alltypes_tiny_pages.parquet",
        "alltypes_tiny_pages_plain.parquet",
        "int32_with_null_pages.parquet",
        "data_index_bloom_encoding_stats.parquet",
        "data_index_bloom_encoding_with_length.parquet",
        "binary_truncated_min_max.parquet",
    ],
)
def test_corpus_indexes(corpus: Path, name: str) -> None:
    data = (corpus / "data" / name).read_bytes()
    assert check_against_values(data, exact=False) > 0


def test_corpus_float_orders(corpus: Path) -> None:
    data = (corpus / "data" / "floating_orders_nan_count.parquet").read_bytes()
    assert check_against_values(data, exact=True) > 0


# ---------------------------------------------------------------- damage


def offset_index(*pages: tuple[int, int, int], **more: Any) -> bytes:
    return serialize(tt.OffsetIndex(page_locations=[tt.PageLocation(*page) for page in pages], **more))


GOOD_PAGES = ((100, 50, 0), (150, 50, 10), (200, 100, 15))


def test_a_sound_offset_index() -> None:
    assert len(parse_offset_index(offset_index(*GOOD_PAGES), 20, 100, 300)) == 3
    assert len(parse_offset_index(offset_index(), 0, 100, 300)) == 0


@pytest.mark.parametrize(
    "pages",
    [
        [],
        [(100, 50, 1), (150, 50, 10)],  # does not start with row 0
        [(100, 50, 0), (150, 50, 12), (200, 50, 11)],
        [(100, 50, 0), (150, 50, 21)],  # beyond the rows
        [(100, 50, -1), (150, 50, 10)],
        [(100, 0, 0), (150, 50, 10)],
        [(100, -5, 0), (150, 50, 10)],
        [(99, 50, 0), (150, 50, 10)],  # before the chunk
        [(100, 50, 0), (150, 151, 10)],  # beyond the chunk
        [(100, 51, 0), (150, 50, 10)],  # overlap
        [(150, 50, 0), (100, 50, 10)],
        [(-1, 50, 0), (150, 50, 10)],
        [(100, 50, 0), (2**63 - 1, 2**31 - 1, 10)],
    ],
)
def test_offset_indexes_that_cannot_be_right(pages: list[tuple[int, int, int]]) -> None:
    with pytest.raises(CorruptFileError):
        parse_offset_index(offset_index(*pages), 20, 100, 300)


def test_unencoded_sizes_must_fit() -> None:
    for sizes in ([1, 2], [1, 2, -3], [1, 2, 3, 4]):
        with pytest.raises(CorruptFileError, match="unencoded"):
            parse_offset_index(offset_index(*GOOD_PAGES, unencoded_byte_array_data_bytes=sizes), 20, 100, 300)


def column_index(**changes: Any) -> bytes:
    fields: dict[str, Any] = {
        "null_pages": [False, True, False],
        "min_values": [encode_bound(INT32, 1), b"", encode_bound(INT32, 5)],
        "max_values": [encode_bound(INT32, 3), b"", encode_bound(INT32, 9)],
        "boundary_order": ASCENDING,
        "null_counts": [1, 10, 0],
    }
    return serialize(tt.ColumnIndex(**(fields | changes)))


COUNTS = np.array([10, 10, 5], np.int64)


def parsed(data: bytes, leaf: LeafType = INT32, pages: int = 3, **more: Any) -> Bounds:
    return parse_column_index(data, leaf, pages, counts=COUNTS[:pages], **more)


def test_a_sound_column_index() -> None:
    found = parsed(column_index())
    assert found.has_bounds.tolist() == [True, False, True]
    assert found.boundary_order == ASCENDING
    assert found.mins[found.has_bounds].tolist() == [1, 5]


@pytest.mark.parametrize(
    "changes",
    [
        {"null_pages": [False, True]},
        {"min_values": [b"\1\0\0\0"] * 2},
        {"max_values": [b"\1\0\0\0"] * 4},
        {"null_counts": [0, 10]},
        {"nan_counts": [0]},
        {"boundary_order": 3},
        {"boundary_order": -1},
        {"null_counts": [-1, 10, 0]},
        {"null_counts": [11, 10, 0]},
        {"null_counts": [1, 9, 0]},  # a null page with something in it
        {"null_counts": [10, 10, 0]},  # a page of nulls that claims bounds
    ],
)
def test_column_indexes_that_contradict_themselves(changes: dict[str, Any]) -> None:
    with pytest.raises(CorruptFileError):
        parsed(column_index(**changes))


def test_single_bounds_that_cannot_be_right_are_left_out() -> None:
    swapped = column_index(min_values=[encode_bound(INT32, 4), b"", encode_bound(INT32, 5)])
    assert parsed(swapped).has_bounds.tolist() == [False, False, True]
    short = column_index(max_values=[b"\3", b"", encode_bound(INT32, 9)])
    found = parsed(short)
    assert found.has_bounds.tolist() == [False, False, True]
    assert found.boundary_order == UNORDERED  # bisection needs them all


def test_a_false_boundary_order_is_not_believed() -> None:
    assert parsed(column_index(boundary_order=DESCENDING)).boundary_order == UNORDERED
    assert parsed(column_index(boundary_order=UNORDERED)).boundary_order == UNORDERED


def test_counts_that_are_not_there_are_unknown() -> None:
    found = parsed(column_index(null_counts=None))
    assert found.null_counts.tolist() == [-1, -1, -1]
    assert found.all_null.tolist() == [False, True, False]
    double = [struct.pack("<d", 1.0)] * 3
    fields = {"min_values": double, "max_values": double, "null_pages": [False] * 3, "null_counts": [0] * 3}
    assert parsed(column_index(**fields), DOUBLE).nan_counts.tolist() == [-1, -1, -1]
    assert parsed(column_index(**fields, nan_counts=[1, 0, 2]), DOUBLE).nan_counts.tolist() == [1, 0, 2]


def test_bounds_under_no_trusted_order_are_left_out() -> None:
    for order in (Order.ABSENT, Order.UNKNOWN):
        found = parsed(column_index(), column_order=order)
        assert not found.has_bounds.any()
        assert found.null_counts.tolist() == [1, 10, 0]
        assert found.boundary_order == UNORDERED
    raw = [encode_bound(DECIMAL, v) for v in (1, 2, 3)]
    data = column_index(min_values=raw, max_values=raw, null_pages=[False] * 3, null_counts=[0] * 3)
    assert parsed(data, DECIMAL).has_bounds.all()
    assert not parsed(data, DECIMAL, created_by="Polars").has_bounds.any()
    assert not parsed(data, LeafType(P.INT96, "int96")).has_bounds.any()


def test_limits() -> None:
    with pytest.raises(LimitError, match="max_index"):
        parsed(column_index(), limits=Limits(max_index=10))
    with pytest.raises(LimitError, match="max_index"):
        parse_offset_index(offset_index(*GOOD_PAGES), 20, 100, 300, Limits(max_index=10))


@pytest.mark.fuzz
def test_damaged_bytes_give_typed_errors() -> None:
    rng = random.Random(4)
    offset, column = offset_index(*GOOD_PAGES), column_index()
    for good, parse in (
        (offset, lambda d: parse_offset_index(d, 20, 100, 300)),
        (column, parsed),
    ):
        for _ in range(2000):
            data = bytearray(good)
            for _ in range(rng.randint(1, 3)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            try:
                found: Any = parse(bytes(data[: rng.randint(1, len(data))]))
            except ParquetError:
                continue
            assert len(found) == 3 or isinstance(found, PageLocations)
            if isinstance(found, PageLocations):
                assert (found.offsets >= 100).all()
                assert (found.offsets + found.sizes <= 300).all()
                assert (np.diff(found.first_rows, append=20) > 0).all()


def test_decoding_needs_no_copy_of_order() -> None:
    # What the builder writes decodes to the same values as the builder got.
    index = built(DECIMAL, [[-5, 3], [7, 8]])
    assert index is not None
    assert decode_bounds(DECIMAL, index.min_values)[0].tolist() == [-5, 7]
    assert decode_bounds(DECIMAL, index.max_values)[0].tolist() == [3, 8]


@given(
    sizes=st.lists(st.integers(1, 50), min_size=1, max_size=6),
    gaps=st.lists(st.integers(0, 3), min_size=6, max_size=6),
    steps=st.lists(st.integers(1, 9), min_size=6, max_size=6),
    change=st.none() | st.tuples(st.integers(0, 17), st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 400)),
    room=st.integers(-2, 3),
)
def test_page_locations_against_the_rules_spelt_out(
    sizes: list[int], gaps: list[int], steps: list[int], change: tuple[int, int] | None, room: int
) -> None:
    """Sound places with at most one number changed: the kernel finds fault exactly where a rule is broken."""
    start, count, offsets, at = 100, len(sizes), [], 100
    for size, gap in zip(sizes, gaps, strict=False):
        at += gap
        offsets.append(at)
        at += size
    rows = [0, *np.cumsum(steps[: count - 1]).tolist()]
    num_rows, end = rows[-1] + 1 + room, at + room
    numbers = [*offsets, *sizes, *rows]
    if change is not None:
        numbers[change[0] % len(numbers)] = change[1]
    offsets, sizes, rows = numbers[:count], numbers[count : 2 * count], numbers[2 * count :]
    sound = (
        rows[0] == 0
        and all(a < b for a, b in itertools.pairwise([*rows, max(num_rows, 1)]))
        and all(start <= o and s > 0 for o, s in zip(offsets, sizes, strict=True))
        and all(o + s <= after for o, s, after in zip(offsets, sizes, [*offsets[1:], end], strict=True))
    )
    found = check_page_locations(np.array(numbers, np.int64), num_rows, start, end)
    assert (found == 0) == sound
