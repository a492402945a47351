"""Chunk statistics: whom to believe, what we write, and truncation that stays valid."""

from __future__ import annotations

import io
import math
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from written import footer

from pyparq.format import ttypes as tt
from pyparq.format.order import Order, encode_bound, native_order, order_of
from pyparq.format.schema_tree import build_tree
from pyparq.format.thrift_codec import deserialize
from pyparq.format.types import LeafType, Physical
from pyparq.index.statistics import (
    Bounds,
    bounds_of_chunks,
    can_truncate,
    parse_created_by,
    truncate_max,
    truncate_min,
    writer_is_trusted,
)
from pyparq.kernels._native import probes

P = Physical
INT32 = LeafType(P.INT32, "int", bits=32)
UINT32 = LeafType(P.INT32, "uint", bits=32)
DOUBLE = LeafType(P.DOUBLE, "double")
TEXT = LeafType(P.BYTE_ARRAY, "string")
BINARY = LeafType(P.BYTE_ARRAY, "binary")
FIXED = LeafType(P.FIXED_LEN_BYTE_ARRAY, "fixed", 80)
FIXED_DECIMAL = LeafType(P.FIXED_LEN_BYTE_ARRAY, "decimal", 9, precision=20)
BYTES_DECIMAL = LeafType(P.BYTE_ARRAY, "decimal", precision=20)


def chunk(num_values: int = 10, **statistics: Any) -> tt.ColumnMetaData:
    found = tt.Statistics(**statistics) if statistics else None
    return tt.ColumnMetaData(num_values=num_values, statistics=found)


def bounds_of_chunk(leaf: LeafType, meta: tt.ColumnMetaData, *options: Any) -> Bounds:
    return bounds_of_chunks(leaf, [meta], *options)


def i32(value: int) -> bytes:
    return struct.pack("<i", value)


def statistics(
    leaf: LeafType, mins: list[bytes | None], maxs: list[bytes | None], *, null_count: int, truncate: int = 64
) -> tt.Statistics:
    """What is written of a chunk whose pages have these bounds, and two distinct values."""
    order = native_order(leaf, Order.TYPE)
    stored = probes.statistics(order, mins, maxs, null_count, 0, 2, truncate)
    return deserialize(tt.Statistics, stored)[0]


def f64(value: float) -> bytes:
    return struct.pack("<d", value)


def range_of(bounds: Bounds) -> tuple[Any, Any] | None:
    return (bounds.mins[0], bounds.maxs[0]) if bounds.has_bounds[0] else None


# ---------------------------------------------------------------- what to believe


def test_new_fields_under_type_order() -> None:
    meta = chunk(min_value=i32(-5), max_value=i32(7), null_count=3)
    found = bounds_of_chunk(INT32, meta, Order.TYPE)
    assert range_of(found) == (-5, 7)
    assert found.null_counts.tolist() == [3]
    assert found.nan_counts.tolist() == [0]
    assert found.counts.tolist() == [10]
    assert not found.all_null[0]


@pytest.mark.parametrize("order", [Order.ABSENT, Order.UNKNOWN])
def test_new_fields_mean_nothing_without_a_known_order(order: Order) -> None:
    meta = chunk(min_value=i32(-5), max_value=i32(7), null_count=3)
    found = bounds_of_chunk(INT32, meta, order)
    assert range_of(found) is None
    assert found.null_counts.tolist() == [3]


def test_deprecated_fields_only_where_signed_order_is_right() -> None:
    deprecated = {"min": i32(-5), "max": i32(7)}
    assert range_of(bounds_of_chunk(INT32, chunk(**deprecated), Order.ABSENT)) == (-5, 7)
    assert range_of(bounds_of_chunk(INT32, chunk(**deprecated), Order.TYPE)) == (-5, 7)
    assert range_of(bounds_of_chunk(INT32, chunk(**deprecated), Order.UNKNOWN)) is None
    assert range_of(bounds_of_chunk(UINT32, chunk(min=i32(1), max=i32(2)), Order.ABSENT)) is None
    for leaf in (TEXT, BINARY, BYTES_DECIMAL):
        assert range_of(bounds_of_chunk(leaf, chunk(min=b"a", max=b"b"), Order.ABSENT)) is None
        assert range_of(bounds_of_chunk(leaf, chunk(min=b"a", max=b"b"), Order.TYPE)) is None
    both = chunk(min=i32(0), max=i32(0), min_value=i32(-5), max_value=i32(7))
    assert range_of(bounds_of_chunk(INT32, both, Order.TYPE)) == (-5, 7)


def test_counts_that_are_missing_or_impossible_are_unknown() -> None:
    for null_count in (None, -1, 11):
        found = bounds_of_chunk(DOUBLE, chunk(null_count=null_count, distinct_count=1), Order.TYPE)
        assert found.null_counts.tolist() == [-1]
        assert found.nan_counts.tolist() == [-1]
        assert not found.all_null[0]
    assert bounds_of_chunk(DOUBLE, chunk(), Order.TYPE).null_counts.tolist() == [-1]
    assert bounds_of_chunk(DOUBLE, chunk(null_count=10), Order.TYPE).all_null[0]
    assert bounds_of_chunk(DOUBLE, chunk(nan_count=4), Order.TYPE).nan_counts.tolist() == [4]


@pytest.mark.parametrize(
    ("low", "high"),
    [(math.nan, 1.0), (0.0, math.nan), (math.nan, math.nan)],
)
def test_nan_in_old_bounds_is_ignored(low: float, high: float) -> None:
    assert range_of(bounds_of_chunk(DOUBLE, chunk(min=f64(low), max=f64(high)), Order.ABSENT)) is None
    assert range_of(bounds_of_chunk(DOUBLE, chunk(min_value=f64(low), max_value=f64(high)))) is None


def test_zeros_of_either_sign_lie_within_the_bounds() -> None:
    found = bounds_of_chunk(DOUBLE, chunk(min_value=f64(0.0), max_value=f64(0.0)), Order.TYPE)
    assert found.mins[0] <= -0.0 <= found.maxs[0]
    found = bounds_of_chunk(DOUBLE, chunk(min_value=f64(-1.0), max_value=f64(-0.0)), Order.TYPE)
    assert found.mins[0] <= 0.0 <= found.maxs[0]


@pytest.mark.parametrize(
    ("created_by", "known"),
    [
        ("parquet-mr version 1.17.0 (build abc)", 0), ("parquet-mr version 1.10.0", 0),
        ("parquet-mr version 1.8.1", -1), ("parquet-mr", -1), ("DuckDB version v1.1.3 (build 1)", 0), ("DuckDB", -1),
        ("parquet-cpp-arrow version 26.0.0", -1), ("Polars (python) version 2.1.0", -1),
        ("parquet-rs version 60.0.0", -1), ("parquet-mr compatible Photon version 1.12", -1), (None, -1),
    ],
)  # fmt: skip
def test_writers_whose_bounds_tell_that_there_is_no_nan(created_by: str | None, known: int) -> None:
    for leaf, code in ((DOUBLE, "<d"), (LeafType(P.FLOAT, "float"), "<f")):
        for high, found in ((2.0, known), (math.nan, -1)):
            meta = chunk(min_value=struct.pack(code, 1), max_value=struct.pack(code, high))
            assert bounds_of_chunk(leaf, meta, Order.TYPE, created_by).nan_counts.tolist() == [found]
    half = LeafType(P.FIXED_LEN_BYTE_ARRAY, "float16", 2)
    meta = chunk(min_value=bytes(2), max_value=bytes(2))
    assert bounds_of_chunk(half, meta, Order.TYPE, created_by).nan_counts.tolist() == [-1]


def test_nonsense_is_no_bound() -> None:
    assert range_of(bounds_of_chunk(INT32, chunk(min_value=i32(8), max_value=i32(7)))) is None
    assert range_of(bounds_of_chunk(INT32, chunk(min_value=b"\1", max_value=i32(7)))) is None
    assert range_of(bounds_of_chunk(INT32, chunk(min_value=i32(1)))) is None
    assert range_of(bounds_of_chunk(TEXT, chunk(max_value=b"x"))) is None
    interval = LeafType(P.FIXED_LEN_BYTE_ARRAY, "interval", 12)
    assert range_of(bounds_of_chunk(interval, chunk(min_value=bytes(12), max_value=bytes(12)))) is None


def test_several_chunks_at_once() -> None:
    metas = [
        chunk(min_value=i32(1), max_value=i32(2), null_count=0),
        chunk(),
        chunk(num_values=4, null_count=4),
        chunk(min_value=i32(-9), max_value=i32(9)),
    ]
    found = bounds_of_chunks(INT32, metas, Order.TYPE)
    assert len(found) == 4
    assert found.has_bounds.tolist() == [True, False, False, True]
    assert found.all_null.tolist() == [False, False, True, False]
    assert found.mins[found.has_bounds].tolist() == [1, -9]
    assert found.null_counts.tolist() == [0, -1, 4, -1]


@pytest.mark.parametrize(
    ("created_by", "parsed"),
    [
        ("parquet-mr version 1.8.0 (build 0fda28af)", ("parquet-mr", (1, 8, 0), "")),
        ("parquet-mr version 1.6.0rc3-SNAPSHOT", ("parquet-mr", (1, 6, 0), "rc3-SNAPSHOT")),
        ("parquet-mr version 1.5.0-cdh5.7.1 (build x)", ("parquet-mr", (1, 5, 0), "cdh5.7.1")),
        ("parquet-cpp-arrow version 26.0.1", ("parquet-cpp-arrow", (26, 0, 1), "")),
        ("DuckDB version v2.0.0 (build 1)", ("duckdb", (2, 0, 0), "")),
        ("impala version 2.0-INTERNAL (build 5)", ("impala", (2, 0, 0), "INTERNAL")),
        ("Polars", ("polars", None, "")),
        ("parquet-mr", ("parquet-mr", None, "")),
        ("parquet-mr version unknown", ("parquet-mr", None, "")),
    ],
)
def test_created_by(created_by: str, parsed: Any) -> None:
    assert parse_created_by(created_by) == parsed


@pytest.mark.parametrize(
    ("created_by", "trusted"),
    [
        ("parquet-mr version 1.8.0 (build a)", True),
        ("parquet-mr version 1.8.0rc4 (build a)", False),
        ("parquet-mr version 1.7.0", False),
        ("parquet-mr version 1.6.0rc3-SNAPSHOT", False),
        ("parquet-mr version 1.5.0-cdh5.4.999", False),
        ("parquet-mr version 1.5.0-cdh5.5.0", True),
        ("parquet-mr version 1.5.0-cdh5.10.0", True),
        ("parquet-mr version 1.5.0", False),
        ("parquet-mr version 1.17.0 (build a)", True),
        ("parquet-mr", False),
        ("parquet-cpp version 1.0.0", True),
        (None, True),
        ("", True),
    ],
)
def test_byte_arrays_of_early_parquet_mr(created_by: str | None, trusted: bool) -> None:
    assert writer_is_trusted(TEXT, created_by) is trusted
    assert writer_is_trusted(INT32, created_by)  # PARQUET-251 is about byte arrays
    meta = chunk(min_value=b"a", max_value=b"b")
    assert (range_of(bounds_of_chunk(TEXT, meta, Order.TYPE, created_by)) is not None) is trusted


@pytest.mark.parametrize(
    ("created_by", "fixed", "variable"),
    [
        ("parquet-cpp version 1.5.1", False, False),
        ("parquet-cpp-arrow version 3.0.0", False, False),
        ("parquet-cpp-arrow version 4.0.0", True, True),
        ("parquet-rs version 59.3.0", True, False),
        ("parquet-rs version 60.0.0", True, True),
        ("Polars", False, False),
        ("github.com/parquet-go/parquet-go version 0.32.0(build )", False, False),
        ("ClickHouse v25.6.1.1", False, False),
        ("ClickHouse v25.8.1.1", True, True),
        ("parquet-mr version 1.17.0", True, True),
        ("pyparq version 0.1.0", True, True),
    ],
)
def test_decimals_of_writers_that_compared_them_wrongly(created_by: str, fixed: bool, variable: bool) -> None:
    assert writer_is_trusted(FIXED_DECIMAL, created_by) is fixed
    assert writer_is_trusted(BYTES_DECIMAL, created_by) is variable
    assert writer_is_trusted(TEXT, created_by)


# ---------------------------------------------------------------- the corpus


def corpus_bounds(path: Path) -> list[tuple[Any, list[Bounds]]]:
    meta = footer(path.read_bytes())
    orders = meta.column_orders or [None] * 10_000
    result = []
    for leaf, order in zip(build_tree(meta.schema).leaves, orders, strict=False):
        found = order_of(leaf.type, order, leaf.element)
        result.append(
            (leaf, [bounds_of_chunk(leaf.type, group.columns[leaf.column].meta_data, found, meta.created_by)
                    for group in meta.row_groups])
        )  # fmt: skip
    return result


def test_corpus_nan_in_stats(corpus: Path) -> None:
    [(_, [found])] = corpus_bounds(corpus / "data" / "nan_in_stats.parquet")
    assert not found.has_bounds[0]


def test_corpus_float_orders(corpus: Path) -> None:
    path = corpus / "data" / "floating_orders_nan_count.parquet"
    table = pq.ParquetFile(path)
    for leaf, groups in corpus_bounds(path):
        for k, found in enumerate(groups):
            values = [float(v) for v in table.read_row_group(k, [leaf.name]).column(0).to_pylist()]
            numbers = [v for v in values if not math.isnan(v)]
            assert found.nan_counts[0] == len(values) - len(numbers)
            # Under TYPE_ORDER parquet-java leaves the bounds of a chunk with NaN out.
            wanted = bool(numbers) if leaf.name.endswith("ieee754") else len(numbers) == len(values)
            assert bool(found.has_bounds[0]) == wanted
            if wanted:
                assert found.mins[0] == min(numbers)
                assert found.maxs[0] == max(numbers)


def test_corpus_truncated_bounds(corpus: Path) -> None:
    path = corpus / "data" / "binary_truncated_min_max.parquet"
    table = pq.read_table(path)
    for leaf, [found] in corpus_bounds(path):
        values = [v.encode() if isinstance(v, str) else v for v in table.column(leaf.name).to_pylist()]
        assert found.has_bounds[0]
        assert found.mins[0] <= min(values)
        assert found.maxs[0] >= max(values)


def test_corpus_annotation_from_the_future_has_no_order(corpus: Path) -> None:
    (_, [known]), (_, [unknown]) = corpus_bounds(corpus / "data" / "unknown-logical-type.parquet")
    assert known.has_bounds[0]
    assert not unknown.has_bounds[0]


def test_corpus_deprecated_decimal_bounds(corpus: Path) -> None:
    path = corpus / "data" / "fixed_length_decimal.parquet"  # parquet-mr 1.8.2, min and max alone
    [(_, [found])] = corpus_bounds(path)
    assert not found.has_bounds[0]


# ---------------------------------------------------------------- writing

SAMPLES: dict[str, pa.Array] = {
    "bool": pa.array([True, False, None]),
    "i8": pa.array([-3, 5, None], pa.int8()),
    "u32": pa.array([1, 2**32 - 1, None], pa.uint32()),
    "u64": pa.array([1, 2**64 - 1, None], pa.uint64()),
    "i64": pa.array([-(2**63), 2**63 - 1, None]),
    "f32": pa.array([1.5, -2.5, None], pa.float32()),
    "f64": pa.array([1.5, -2.5, None]),
    "zeros": pa.array([0.0, -0.0, None]),
    "text": pa.array(["b", "é", None]),
    "binary": pa.array([b"\xff", b"\x00", None]),
    "fixed": pa.array([b"\xff\x00", b"\x00\xff", None], pa.binary(2)),
    "date": pa.array([date(1960, 1, 1), date(2020, 1, 1), None]),
    "ts": pa.array([datetime(1960, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC), None]),
    "dec9": pa.array([Decimal("-1.5"), Decimal("2.5"), None], pa.decimal128(30, 2)),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_our_statistics_equal_arrows(name: str) -> None:
    """Built from two one-value pages, compared with what Arrow C++ computes for the chunk."""
    array = SAMPLES[name]
    sink = io.BytesIO()
    pq.write_table(pa.table({"c": array}), sink)
    meta = footer(sink.getvalue())
    leaf = build_tree(meta.schema).leaves[0].type
    theirs = meta.row_groups[0].columns[0].meta_data.statistics
    bounds = bounds_of_chunk(leaf, tt.ColumnMetaData(num_values=3, statistics=theirs), Order.TYPE)
    pages = [encode_bound(leaf, v) for v in (bounds.maxs[0], bounds.mins[0])]
    ours = statistics(leaf, [*pages, None], [*pages, None], null_count=1)
    assert ours.nan_count == (0 if leaf.kind in ("float", "double") else None)
    assert (ours.min_value, ours.max_value) == (theirs.min_value, theirs.max_value)
    assert ours.null_count == theirs.null_count == 1
    assert ours.is_min_value_exact == ours.is_max_value_exact == (name != "zeros")
    assert ours.min is None


def test_no_values_no_bounds() -> None:
    ours = statistics(INT32, [None, None], [None, None], null_count=7)
    assert (ours.min_value, ours.max_value, ours.is_min_value_exact, ours.null_count) == (None, None, None, 7)


def test_truncated_statistics_say_so() -> None:
    long = b"x" * 100
    ours = statistics(TEXT, [b"a", long], [b"a", long], null_count=0)
    assert (ours.min_value, ours.is_min_value_exact) == (b"a", True)
    assert (ours.max_value, ours.is_max_value_exact) == (b"x" * 63 + b"y", False)
    assert ours.distinct_count == 2
    whole = statistics(TEXT, [b"a", long], [b"a", long], null_count=0, truncate=-1)
    assert (whole.max_value, whole.is_max_value_exact) == (long, True)


# ---------------------------------------------------------------- truncation


@given(st.text(max_size=30), st.integers(1, 20))
def test_text_bounds_stay_text_and_bounds(text: str, length: int) -> None:
    value = text.encode("utf-8", "surrogatepass")
    low, high = truncate_min(TEXT, value, length), truncate_max(TEXT, value, length)
    assert low <= value <= high
    assert len(low) <= length or low == value
    assert len(high) <= length or high == value
    if low != value and value.decode("utf-8", "replace").encode() == value:
        low.decode("utf-8")
    if value.decode("utf-8", "replace").encode() == value:
        high.decode("utf-8")


@given(st.binary(max_size=30), st.integers(1, 20))
def test_binary_bounds(value: bytes, length: int) -> None:
    for leaf in (BINARY, TEXT):  # text that is not UTF-8 is bounded all the same
        low, high = truncate_min(leaf, value, length), truncate_max(leaf, value, length)
        assert low <= value <= high
        assert len(low) <= length or low == value
        assert len(high) <= length or high == value


def test_increments_by_hand() -> None:
    assert truncate_max(BINARY, b"ab\xffz", 3) == b"ac"
    assert truncate_max(BINARY, b"\xff\xff\xff\xff", 3) == b"\xff\xff\xff\xff"
    assert truncate_max(TEXT, b"abcd", 3) == b"abd"
    assert truncate_min(TEXT, "ab€".encode(), 4) == b"ab"
    # € would be cut in half: it goes, and b grows.
    assert truncate_max(TEXT, "ab€".encode(), 4) == b"ac"
    # The last character of its length grows by a byte: no room, so the one before takes the increment.
    assert truncate_max(TEXT, b"a\x7fz", 2) == b"b"
    assert truncate_max(TEXT, b"a\x7fzz", 3) == b"a\x7f{"
    # Surrogates are no characters: U+D7FF is followed by U+E000.
    assert truncate_max(TEXT, "\ud7ffabc".encode(), 3) == "\ue000".encode()
    assert truncate_max(TEXT, "a\U0010ffffz".encode(), 5) == b"b"
    assert truncate_max(TEXT, ("\U0010ffff" * 3).encode(), 8) == ("\U0010ffff" * 3).encode()


def test_other_types_are_never_cut() -> None:
    for leaf in (FIXED, BYTES_DECIMAL, FIXED_DECIMAL, LeafType(P.FIXED_LEN_BYTE_ARRAY, "uuid", 16), INT32):
        assert not can_truncate(leaf)
        assert truncate_min(leaf, b"x" * 80, 10) == truncate_max(leaf, b"x" * 80, 10) == b"x" * 80
    for kind in ("string", "enum", "json", "bson", "binary"):
        assert can_truncate(LeafType(P.BYTE_ARRAY, kind))


def test_numpy_stays_out_of_python_ints() -> None:
    found = bounds_of_chunk(FIXED_DECIMAL, chunk(min_value=bytes(9), max_value=b"\x7f" + b"\xff" * 8))
    assert type(found.maxs[0]) is int
    assert found.maxs[0] == 2**71 - 1
    assert isinstance(found.has_bounds, np.ndarray)
