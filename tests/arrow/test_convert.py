"""Columns as Python objects and numpy arrays, against pyarrow's own conversion."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyparq.arrow.column import Column
from pyparq.arrow.record_batch import batches_from_arrow
from pyparq.arrow.table import Batch, Table
from pyparq.arrow.to_python import chunks_to_numpy, column_to_pylist
from pyparq.errors import DataError, UnsupportedError
from pyparq.format.types import DataType


def table(array: Any) -> Table:
    schema, batches = batches_from_arrow(pa.table({"c": array}))
    return Table(schema, [Batch(*batch) for batch in batches])


D = Decimal
ARRAYS = [
    pa.array([True, None, False, True]),
    pa.array([1, None, -3, 4], pa.int8()),
    pa.array([1, None, 2**64 - 1, 4], pa.uint64()),
    pa.array([1.5, None, float("inf"), -0.0], pa.float32()),
    pa.array(np.array([1.5, 2, 3, 4], np.float16)),
    pa.array(["ä", None, "", "x" * 30]),
    pa.array(["abc", None, "", "x" * 30], pa.large_string()),
    pa.array(["ä", None, "", "x" * 30], pa.string_view()),
    pa.array([b"\xff", None, b"", b"x"], pa.binary()),
    pa.array([b"\xff" * 20, None, b"", b"x"], pa.binary_view()),
    pa.array([b"ab", None, b"cd", b"ef"], pa.binary(2)),
    pa.array([D("1.50"), None, D("-2.25"), D(0)], pa.decimal32(5, 2)),
    pa.array([D("1.50"), None, D("-2.25"), D(0)], pa.decimal64(15, 2)),
    pa.array([D("-12345678901234567890123456789012345.67"), None, D("-2.25"), D(0)], pa.decimal128(38, 2)),
    pa.array([D(10) ** 60, None, D("-2.25"), D(0)], pa.decimal256(76, 3)),
    pa.array([1, None, -700_000, 0], pa.date32()),
    pa.array([86_400_000, None, -86_400_000, 0], pa.date64()),
    pa.array([1, None, 86_399, 0], pa.time32("s")),
    pa.array([1, None, 86_399_999, 0], pa.time32("ms")),
    pa.array([1, None, 86_399_999_999, 0], pa.time64("us")),
    pa.array([1000, None, 86_399_999_999_000, 0], pa.time64("ns")),
    *(pa.array([1, None, -5, 10**9], pa.timestamp(unit)) for unit in ("s", "ms", "us")),
    pa.array([1000, None, -5000, 10**18], pa.timestamp("ns")),
    *(pa.array([1, None, -5, 10**9], pa.timestamp("ms", zone)) for zone in ("UTC", "Europe/Paris", "-05:30")),
    pa.nulls(4),
    pa.array(["a", None, "b", "a"]).dictionary_encode(),
    pa.array([[1, None], None, [], [2]], pa.list_(pa.int16())),
    pa.array([["a"], None, [], [None, "b"]], pa.large_list(pa.string())),
    pa.array([[1, 2], None, [3, None], [4, 5]], pa.list_(pa.int32(), 2)),
    pa.array([[("a", 1)], None, [], [("b", None), ("c", 2)]], pa.map_(pa.string(), pa.int8())),
    pa.array([{"x": 1, "y": ["a"]}, None, {"x": None, "y": None}, {"x": 2, "y": [None]}]),
    pa.array(
        [[[("k", [{"z": 1}])]], None, [[]], [None]],
        pa.list_(pa.map_(pa.string(), pa.list_(pa.struct([("z", pa.int8())])))),
    ),
]
IDS = [f"{i}-{a.type}"[:40] for i, a in enumerate(ARRAYS)]


@pytest.mark.parametrize("array", ARRAYS, ids=IDS)
@pytest.mark.parametrize("part", [slice(0, 4), slice(1, 3), slice(2, 4), slice(0, 0)])
def test_pylist_is_pyarrow_s(array: pa.Array, part: slice) -> None:
    array = array[part]
    got = table(array)
    assert got.to_pydict() == {"c": array.to_pylist()}
    assert got.to_pylist() == [{"c": v} for v in array.to_pylist()]


def test_types_of_the_objects() -> None:
    zoned = table(pa.array([0], pa.timestamp("us", "Europe/Paris"))).to_pydict()["c"][0]
    assert zoned.tzinfo is not None
    assert zoned.hour == 1
    assert table(pa.array([0], pa.timestamp("us", "UTC"))).to_pydict()["c"][0].tzinfo is dt.UTC
    assert str(table(pa.array([D("1.50")], pa.decimal128(5, 3))).to_pydict()["c"][0]) == "1.500"


def test_what_python_cannot_hold_comes_as_numpy() -> None:
    out = table(pa.array([1, 1000, None], pa.timestamp("ns"))).to_pydict()["c"]
    assert out == [np.datetime64(1, "ns"), dt.datetime(1970, 1, 1, 0, 0, 0, 1), None]
    out = table(pa.array([10**17, None, 0], pa.timestamp("us"))).to_pydict()["c"]
    assert out == [dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=10**17), None, dt.datetime(1970, 1, 1)]
    assert table(pa.array([10**15], pa.timestamp("s", "UTC"))).to_pydict()["c"] == [np.datetime64(10**15, "s")]
    assert table(pa.array([10**7], pa.date32())).to_pydict()["c"] == [np.datetime64(10**7, "D")]
    assert table(pa.array([1], pa.time64("ns"))).to_pydict()["c"] == [np.timedelta64(1, "ns")]


def test_bad_text_is_a_typed_error() -> None:
    column = Column(DataType("u"), 2, None, (np.array([0, 1, 2], np.int32), np.frombuffer(b"a\xff", np.uint8)), 0)
    with pytest.raises(DataError, match="row 1 is not valid UTF-8"):
        column_to_pylist(column)
    with pytest.raises(UnsupportedError, match="values of _a_type_to_come cannot be converted to Python objects"):
        column_to_pylist(Column(DataType("_a_type_to_come"), 1, None, (), 0))


def test_intervals_and_runs() -> None:
    assert table(pa.array([pa.MonthDayNano([1, 2, 3]), None])).to_pydict()["c"] == [(1, 2, 3), None]
    assert table(pa.array([], pa.month_day_nano_interval())).to_pydict()["c"] == []
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["x", None]))
    assert table(runs).to_pydict()["c"] == ["x", "x", None]
    assert table(runs).slice(1, 2).to_pydict()["c"] == ["x", None]


# ---- numpy ---------------------------------------------------------------------------------------------------------


def chunked(*parts: Any, type_: Any) -> Table:
    schema, batches = batches_from_arrow(pa.table({"c": pa.chunked_array([pa.array(p, type_) for p in parts], type_)}))
    return Table(schema, [Batch(*batch) for batch in batches])


@pytest.mark.parametrize(
    ("type_", "dtype"),
    [
        (pa.int8(), "i1"), (pa.uint64(), "u8"), (pa.float32(), "f4"), (pa.bool_(), "?"), (pa.date32(), "M8[D]"),
        (pa.date64(), "M8[ms]"), (pa.timestamp("us", "UTC"), "M8[us]"), (pa.timestamp("s"), "M8[s]"),
        (pa.time32("s"), "m8[s]"), (pa.time64("ns"), "m8[ns]"), (pa.float16(), "f2"),
    ],
)  # fmt: skip
def test_numpy_dtypes(type_: pa.DataType, dtype: str) -> None:
    given_: list[Any] = [1, 0, 1]
    if type_ == pa.bool_():
        given_ = [True, False, True]
    elif type_ == pa.float16():
        given_ = [np.float16(v) for v in given_]
    elif type_ == pa.date64():
        given_ = [86_400_000, 0, 86_400_000]
    for parts in ([given_], [given_[:1], given_[1:]], [given_, []]):
        out = chunked(*parts, type_=type_).to_numpy("c")
        assert not isinstance(out, np.ma.MaskedArray)
        assert out.dtype == np.dtype(dtype)
        assert out.tolist() == np.array(given_).astype(dtype).tolist()
    out = chunked(given_[:1], [None, given_[2]], type_=type_).to_numpy("c")
    assert isinstance(out, np.ma.MaskedArray)
    assert out.dtype == np.dtype(dtype)
    assert out.mask.tolist() == [False, True, False]
    assert out.compressed().tolist() == np.array([given_[0], given_[2]]).astype(dtype).tolist()
    assert chunked(type_=type_).to_numpy("c").dtype == np.dtype(dtype)


def test_numpy_shares_memory_of_one_chunk() -> None:
    numbers = np.arange(100)
    got = Table(table(pa.array([1])).schema, [Batch([Column(DataType("l"), 100, None, (numbers,), 0)], 100)])
    assert np.shares_memory(got.to_numpy("c"), numbers)


@pytest.mark.parametrize("array", [a for a in ARRAYS if a.type.num_fields or pa.types.is_string(a.type)], ids=str)
def test_everything_else_is_objects(array: pa.Array) -> None:
    out = chunks_to_numpy(table(array).schema.fields[0].type, table(array).chunks("c"))
    assert out.dtype == object
    assert out.shape == (4,)
    assert out.tolist() == array.to_pylist()


DECIMALS = st.decimals(-(10**30), 10**30, allow_nan=False, allow_infinity=False, places=5)


@given(st.lists(st.none() | DECIMALS))
@settings(max_examples=50)
def test_decimals_are_exact(values: list[Decimal | None]) -> None:
    array = pa.array(values, pa.decimal128(38, 5))
    assert list(map(str, table(array).to_pydict()["c"])) == list(map(str, array.to_pylist()))
