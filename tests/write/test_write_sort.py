"""``sort_by`` and ``sorting_columns``: rows in order by every type, recorded only where true."""

from __future__ import annotations

import datetime as dt
import decimal
import functools
import io
import math
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from written import Written, write

import pyparq
from pyparq import col
from pyparq.errors import ColumnNotFoundError, DataError, OptionError

D = decimal.Decimal

VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "int8": (pa.int8(), st.integers(-128, 127)),
    "uint32": (pa.uint32(), st.integers(0, 2**32 - 1)),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "bool": (pa.bool_(), st.booleans()),
    "float": (pa.float32(), st.floats(width=32)),
    "double": (pa.float64(), st.floats()),
    "float16": (pa.float16(), st.floats(width=16).map(np.float16)),
    "string": (pa.string(), st.text("aé\0", max_size=30)),
    "binary": (pa.binary(), st.binary(max_size=20)),
    "fixed": (pa.binary(3), st.binary(min_size=3, max_size=3)),
    "date": (pa.date32(), st.dates()),
    "timestamp": (pa.timestamp("us", "UTC"), st.integers(-(2**40), 2**40)),
    "decimal9": (pa.decimal128(9, 2), st.integers(-(10**9) + 1, 10**9 - 1).map(lambda n: D(f"{n}e-2"))),
    "decimal38": (pa.decimal128(38, 2), st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: D(f"{n}e-2"))),
}


def compare(a: Any, b: Any, descending: bool, nulls_first: bool) -> int:
    """-1, 0, 1: SQL order with nulls where asked, NaN above all, the zeros equal."""
    if a is None or b is None:
        by_null = (a is None) - (b is None)
        return -by_null if nulls_first else by_null
    if isinstance(a, float | np.floating):
        a, b = (math.isnan(a), 0 if math.isnan(a) else a), (math.isnan(b), 0 if math.isnan(b) else b)
    if isinstance(a, str):
        a, b = a.encode(), b.encode()
    sign = (a > b) - (a < b)
    return -sign if descending else sign


def same(a: Any, b: Any) -> bool:
    return a == b or (isinstance(a, float | np.floating) and math.isnan(a) and math.isnan(b))


@settings(max_examples=150)
@given(
    name=st.sampled_from(sorted(VALUES)), data=st.data(), descending=st.booleans(), nulls_first=st.booleans(),
    per_group=st.booleans(),
)  # fmt: skip
def test_one_key(name: str, data: st.DataObject, descending: bool, nulls_first: bool, per_group: bool) -> None:
    kind, strategy = VALUES[name]
    values = data.draw(st.lists(st.none() | strategy, max_size=40))
    array = pa.array(values, kind)
    table = pa.table({"k": array, "row": pa.array(range(len(values)), pa.int64())})
    key = ("k", "descending" if descending else "ascending", "nulls_first" if nulls_first else "nulls_last")
    sink = io.BytesIO()
    scope = "row_group" if per_group else "input"
    pyparq.write_table(table, sink, sort_by=[key], sort_scope=scope, row_group_size=16)
    read = pq.read_table(sink)
    order = functools.cmp_to_key(lambda a, b: compare(a[0], b[0], descending, nulls_first))
    rows = list(zip(array.to_pylist(), range(len(values)), strict=True))
    step = 16 if per_group else max(len(rows), 1)
    expected = [row for k in range(0, len(rows), step) for row in sorted(rows[k : k + step], key=order)]
    assert read["row"].to_pylist() == [row for _, row in expected]
    assert all(map(same, read["k"].to_pylist(), [value for value, _ in expected]))
    for group in Written(sink.getvalue()).meta.row_groups:
        (recorded,) = group.sorting_columns
        assert (recorded.column_idx, recorded.descending, recorded.nulls_first) == (0, descending, nulls_first)
    # What was sorted passes the check of the same claim.
    pyparq.write_table(read, io.BytesIO(), sorting_columns=[key], row_group_size=16)


def test_several_keys_carry_nested_columns() -> None:
    rng = random.Random(5)
    rows = [
        {
            "a": rng.choice([None, 1, 2, 3]),
            "b": rng.choice(["x" * 9, "x" * 9 + "a", "x" * 17, "", None]),
            "n": rng.choice([None, [], [1], [1, None, 3]]),
            "s": rng.choice([None, {"f": rng.random(), "t": "q" * rng.randrange(4)}]),
            "row": k,
        }
        for k in range(3_000)
    ]
    table = pa.Table.from_pylist(rows)
    sink = io.BytesIO()
    pyparq.write_table(table, sink, sort_by=["a", ("b", "descending"), ("row", "descending")], row_group_size=700)
    keys = [("a", False), ("b", True), ("row", True)]

    def by_keys(x: dict[str, Any], y: dict[str, Any]) -> int:
        return next((c for name, down in keys if (c := compare(x[name], y[name], down, False))), 0)

    assert pq.read_table(sink).to_pylist() == sorted(rows, key=functools.cmp_to_key(by_keys))
    file = Written(sink.getvalue())
    assert [g.num_rows for g in file.meta.row_groups] == [700, 700, 700, 700, 200]
    recorded = [(s.column_idx, s.descending) for s in file.meta.row_groups[0].sorting_columns]
    assert recorded == [(0, False), (1, True), (5, True)]  # leaf ordinals: n has one, s two


def test_sorting_by_a_struct_field() -> None:
    table = pa.table({"s": pa.array([{"x": 3}, None, {"x": 1}, {"x": None}, {"x": 2}])})
    file = write(table, sort_by="s.x")
    read = pq.read_table(io.BytesIO(file.data))["s"].to_pylist()
    assert read[:3] == [{"x": 1}, {"x": 2}, {"x": 3}]
    assert sorted(map(str, read[3:])) == ["None", "{'x': None}"]


def test_sorted_input_over_many_calls() -> None:
    values = np.random.default_rng(3).permutation(10_000)
    sink = io.BytesIO()
    with pyparq.ParquetWriter(sink, sort_by="v", row_group_size=3000) as writer:
        for part in np.array_split(values, 13):
            writer.write({"v": part})
            writer.flush()
    assert pq.read_table(sink)["v"].to_pylist() == list(range(10_000))
    assert [g.num_rows for g in Written(sink.getvalue()).meta.row_groups] == [3000, 3000, 3000, 1000]


def test_sorted_input_in_row_groups_by_bytes() -> None:
    texts = ["x" * (k % 100) for k in range(2000)]
    sink = io.BytesIO()
    pyparq.write_table(
        {"s": texts, "l": [[1] * (k % 3) for k in range(2000)]}, sink, sort_by="s", row_group_bytes=20_000
    )
    read = pq.read_table(sink)
    assert read["s"].to_pylist() == sorted(texts)
    at = 0
    for group in Written(sink.getvalue()).meta.row_groups:
        part = read.slice(at, group.num_rows).to_pylist()
        assert sum(len(r["s"]) + 4 + 8 * len(r["l"]) for r in part) <= 20_000
        at += group.num_rows
    assert at == 2000


@pytest.mark.parametrize(
    ("values", "claim", "row"),
    [
        ([1, 2, 2, 3], "k", None),
        ([1, 3, 2, 4], "k", 2),
        ([3, 2, 2, 1], ("k", "descending"), None),
        ([3, 2, 2, 4], ("k", "descending"), 3),
        ([1, 2, None, None], "k", None),
        ([None, 1, 2], "k", 1),
        ([None, 1, 2], ("k", "ascending", "nulls_first"), None),
        ([None, 3, 1], ("k", "descending", True), None),
        (["a", "a\0", "aaaaaaaa", "aaaaaaaab"], "k", None),
        (["aaaaaaaab", "aaaaaaaa"], "k", 1),
        (["a\0", "a"], "k", 1),
        (["é", "z"], "k", 1),
        ([D("-5.00"), D("-1.00"), D("2.00")], "k", None),
        ([1.0, math.inf, math.nan], "k", None),
        ([math.nan, 1.0], "k", 1),
        ([0.0, -0.0, 0.0], "k", None),
    ],
)  # fmt: skip
def test_a_claimed_order_is_checked(values: list[Any], claim: Any, row: int | None) -> None:
    if row is None:
        file = write({"k": values}, sorting_columns=[claim])
        assert len(file.meta.row_groups[0].sorting_columns) == 1
        return
    with pytest.raises(DataError, match=rf"row {row} is not in the order that sorting_columns declares \(k"):
        write({"k": values}, sorting_columns=[claim])


def test_a_claim_is_about_each_row_group() -> None:
    data = {"k": [1, 2, 3, 1, 2, 3], "j": [1, 2, 3, 6, 5, 4]}
    write(data, sorting_columns="k", row_group_size=3)
    with pytest.raises(DataError, match="row 3 is not in the order"):
        write(data, sorting_columns="k")
    with pytest.raises(DataError, match="row 4 is not in the order"):
        write(data, sorting_columns=["j"], row_group_size=3)
    writer = pyparq.ParquetWriter(io.BytesIO(), sorting_columns=["j"], row_group_size=3)
    for k in range(5):
        writer.write({name: [values[k]] for name, values in data.items()})
    with pytest.raises(DataError, match="row 4 is not in the order"):
        writer.write({name: [values[5]] for name, values in data.items()})


def test_a_claim_over_two_keys() -> None:
    data = {"a": [1, 1, 1, 2, 2], "b": ["x", "y", "y", "a", "b"]}
    write(data, sorting_columns=["a", "b"])
    with pytest.raises(DataError, match=r"row 1 is not in the order.*a, b descending"):
        write(data, sorting_columns=["a", ("b", "descending")])


def test_pyarrow_sorting_columns_are_understood() -> None:
    columns = [pq.SortingColumn(1, descending=True), pq.SortingColumn(0)]
    file = write({"a": [1, 2, 1], "b": [5, 5, 4]}, sorting_columns=columns)
    assert pq.ParquetFile(io.BytesIO(file.data)).metadata.row_group(0).sorting_columns == tuple(columns)


def test_orders_that_make_no_sense() -> None:
    data = {"a": [1], "l": [[1]], "n": pa.nulls(1)}
    for option in ("sort_by", "sorting_columns"):
        with pytest.raises(ColumnNotFoundError, match="'b'"):
            write(data, **{option: "b"})
        for name in ("l", "n"):
            with pytest.raises(OptionError, match="cannot be sorted"):
                write(data, **{option: name})
        for wrong in (7, [("a", "up")], [["a"]], ["a", "a"], ("a", "descending", 3)):
            with pytest.raises((OptionError, ColumnNotFoundError)):
                write(data, **{option: wrong})
    with pytest.raises(OptionError, match="not both"):
        write(data, sort_by="a", sorting_columns="a")
    with pytest.raises(OptionError, match="sort_scope"):
        write(data, sort_by="a", sort_scope="file")


def test_dates_sort_as_days() -> None:
    days = [dt.date(1960, 1, 1), dt.date(2020, 1, 1), dt.date(1970, 1, 1)]
    file = write({"d": days}, sort_by="d")
    assert pq.read_table(io.BytesIO(file.data))["d"].to_pylist() == sorted(days)


SIGNALLING = {"<f2": (0x7C01, 0xFC01), "<f4": (0x7F800001, 0xFF800001), "<f8": (0x7FF0000000000001, 0xFFF0000000000001)}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("order", ["TYPE_ORDER", "IEEE_754_TOTAL_ORDER"])
@pytest.mark.parametrize("dtype", SIGNALLING)
def test_signalling_nans_are_values_like_others(dtype: str, order: str) -> None:
    """Arithmetic on them, a cast even, makes numpy warn: sorted, filtered and bounded without."""
    bits = f"u{dtype[-1]}"
    values = np.append(np.array(SIGNALLING[dtype], bits).view(dtype), np.array([2, -1], dtype))
    sink = io.BytesIO()
    pyparq.write_table({"x": values}, sink, sort_by=["x"], float_order=order, bloom_filters=["x"])
    data = sink.getvalue()
    found = pyparq.read_table(data).to_numpy("x")
    assert found[:2].tolist() == [-1, 2]
    assert sorted(found[2:].view(bits).tolist()) == sorted(SIGNALLING[dtype])
    for condition, rows in ((col("x") > 1, 3), (col("x") < 3, 2), (col("x").is_nan(), 2), (col("x") == 2.0, 1)):
        assert pyparq.read_table(data, filters=condition).num_rows == rows
