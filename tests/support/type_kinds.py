"""Every type that pyarrow, polars and pandas hand over by Arrow, with values: what is written has to come back as it
was (``test_types_round.py``, ``docs/types.md``)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

# ---- pyarrow -------------------------------------------------------------------------------------------------------

DAY = 86_400_000
WORDS = ["b", "a" * 20, "", "é"]

ARROW: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bool": (pa.bool_(), [True, False]),
    **{str(t): (t, [0, 1, 100]) for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    **{str(t): (t, [0, 1, 200]) for t in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
    "float16": (pa.float16(), [1.5, -2.0]), "float32": (pa.float32(), [1.5, -2.0]), "float64": (pa.float64(), [0.1]),
    "string": (pa.string(), WORDS), "large_string": (pa.large_string(), WORDS),
    "string_view": (pa.string_view(), WORDS),
    "binary": (pa.binary(), [b"\xff", b""]), "large_binary": (pa.large_binary(), [b"\xff", b""]),
    "binary_view": (pa.binary_view(), [b"\xff" * 20, b""]), "fixed_size_binary[3]": (pa.binary(3), [b"abc", b"\0\0\0"]),
    "date32": (pa.date32(), [0, -1, 20_000]), "date64": (pa.date64(), [0, -DAY, 20_000 * DAY]),
    "time32[s]": (pa.time32("s"), [0, 86_399]), "time32[ms]": (pa.time32("ms"), [0, 86_399_999]),
    "time64[us]": (pa.time64("us"), [1, 2]), "time64[ns]": (pa.time64("ns"), [1, 2]),
    **{f"timestamp[{u}]": (pa.timestamp(u), [-1, 0, 10**9]) for u in ("s", "ms", "us", "ns")},
    **{f"timestamp[{u}, {z}]": (pa.timestamp(u, z), [-1, 0, 10**9])
       for u, z in (("s", "UTC"), ("ms", "+05:30"), ("us", "Europe/Berlin"), ("ns", "America/New_York"))},
    **{f"duration[{u}]": (pa.duration(u), [-1, 0, 10**9]) for u in ("s", "ms", "us", "ns")},
    "decimal32(5, 1)": (pa.decimal32(5, 1), [Decimal("1.5"), Decimal("-9999.9")]),
    "decimal64(15, 2)": (pa.decimal64(15, 2), [Decimal("1.50"), Decimal("-9999999999999.99")]),
    "decimal128(38, 3)": (pa.decimal128(38, 3), [Decimal("1.500"), Decimal(-1)]),
    "decimal256(20, 3)": (pa.decimal256(20, 3), [Decimal("1.500"), Decimal(-1)]),
    "decimal256(76, 3)": (pa.decimal256(76, 3), [Decimal("1.500"), Decimal(-1)]),
    "month_day_nano_interval": (pa.month_day_nano_interval(), [pa.MonthDayNano([1, 2, 3_000_000])]),
    "null": (pa.null(), []),
    "list": (pa.list_(pa.int32()), [[1, None], []]), "large_list": (pa.large_list(pa.string()), [["x", None], []]),
    "list named": (pa.list_(pa.field("point", pa.int32())), [[1, None], []]),
    "fixed_size_list": (pa.list_(pa.int32(), 2), [[1, None], [3, 4]]),
    "list_view": (pa.list_view(pa.int32()), [[1, None], []]),
    "large_list_view": (pa.large_list_view(pa.string_view()), [["x" * 20, None], []]),
    "struct": (pa.struct([("a", pa.int32()), pa.field("b", pa.string(), nullable=False)]), [{"a": None, "b": "x"}]),
    "map": (pa.map_(pa.string(), pa.int32()), [[("k", 1), ("l", None)], []]),
    "map, keys sorted": (pa.map_(pa.string(), pa.int32(), keys_sorted=True), [[("k", 1), ("l", None)], []]),
    "map named": (pa.map_(pa.field("k", pa.string(), nullable=False), pa.field("v", pa.int32())), [[("k", 1)], []]),
    "uuid": (pa.uuid(), [b"0123456789abcdef"]), "json": (pa.json_(), ['{"a": 1}']),
    "json of large_string": (pa.json_(pa.large_string()), ['{"a": 1}']),
    "bool8": (pa.bool8(), [1, 0]), "opaque": (pa.opaque(pa.int32(), "thing", "someone"), [1, 2]),
    "fixed_shape_tensor": (pa.fixed_shape_tensor(pa.int32(), (2, 2)), [[1, 2, 3, 4]]),
    **{f"dictionary<{v}>": (pa.dictionary(i, v), values) for i, v, values in (
        (pa.int32(), pa.string(), WORDS), (pa.uint8(), pa.large_string(), WORDS),
        (pa.int8(), pa.binary(), [b"b", b"a"]), (pa.int16(), pa.int64(), [3, 1, 2]), (pa.int8(), pa.float64(), [0.5]),
        (pa.int64(), pa.date32(), [3, 1]), (pa.int8(), pa.decimal128(5, 1), [Decimal("1.5")]),
        (pa.int8(), pa.timestamp("us", "Asia/Tokyo"), [7, 3]), (pa.int8(), pa.duration("ms"), [7, 3]),
        (pa.int8(), pa.bool_(), [True, False]), (pa.int8(), pa.binary(2), [b"zz", b"aa"]),
    )},
    "dictionary<string>, ordered": (pa.dictionary(pa.int8(), pa.string(), ordered=True), WORDS),
    "dictionary<int32>, ordered": (pa.dictionary(pa.int8(), pa.int32(), ordered=True), [3, 1]),
    "dictionary<date64>": (pa.dictionary(pa.int8(), pa.date64()), [DAY, 0]),
    "run_end_encoded<date64>": (pa.run_end_encoded(pa.int32(), pa.date64()), [DAY, DAY, 0]),
    "dictionary<struct>": (pa.dictionary(pa.int8(), pa.struct([("a", pa.int32())])), [{"a": 1}, {"a": None}]),
    "run_end_encoded<string>": (pa.run_end_encoded(pa.int32(), pa.string()), ["x", "x", "y"]),
    "run_end_encoded<int64>": (pa.run_end_encoded(pa.int16(), pa.int64()), [1, 1, 2]),
    "struct without fields": (pa.struct([]), [{}]), "decimal128(5, -2)": (pa.decimal128(5, -2), [Decimal(100)]),
    "fixed_size_binary[0]": (pa.binary(0), [b""]),
    "dense_union": (pa.dense_union([pa.field("a", pa.int8()), pa.field("b", pa.string())]), [1]),
}  # fmt: skip
"""By name: the type and some values (of the storage, for extension types)."""


def arrow_array(type_: pa.DataType, values: list[Any]) -> pa.Array:
    """An array of any of the types, with entries that no value uses where it is a dictionary."""
    if isinstance(type_, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(type_, arrow_array(type_.storage_type, values))
    if pa.types.is_dictionary(type_):
        known = [v for k, v in enumerate(values) if v is not None and v not in values[:k]]
        entries = arrow_array(type_.value_type, [*known[::-1]])
        indices = [None if v is None else len(known) - 1 - known.index(v) for v in values]
        return pa.DictionaryArray.from_arrays(pa.array(indices, type_.index_type), entries, ordered=type_.ordered)
    if pa.types.is_union(type_):
        count = len(values)
        children = [pa.array([1] * count, pa.int8()), pa.array([], pa.string())]
        ids, offsets = pa.array([0] * count, pa.int8()), pa.array(range(count), pa.int32())
        return pa.UnionArray.from_dense(ids, offsets, children, ["a", "b"])
    if pa.types.is_run_end_encoded(type_):
        return pa.compute.run_end_encode(arrow_array(type_.value_type, values), run_end_type=type_.run_end_type)
    return pa.array(values, type_)


def contents(values: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Values in every mixture with nulls; ``[]`` is a table without rows."""
    filled = (values or [None]) * 6
    yield "valid", filled[:9]
    yield "nulls", [None if k % 3 == 1 else v for k, v in enumerate(filled[:9])]
    yield "all null", [None] * 5
    yield "no rows", []


def arrow_forms(type_: pa.DataType, rows: list[Any]) -> Iterator[tuple[str, pa.Array]]:
    """A column of the type itself, and of structs, lists and maps with it."""
    flat = arrow_array(type_, rows)
    yield "flat", flat
    count, field = len(rows), pa.field("element", type_)
    missing = pa.array([k % 4 == 3 for k in range(count)], pa.bool_())
    yield "struct", pa.StructArray.from_arrays([flat], fields=[pa.field("x", type_)], mask=missing)
    lists = [min(k, count) for k in range(0, count + 2, 2)]
    yield "list", pa.ListArray.from_arrays(pa.array(lists, pa.int32()), flat, type=pa.list_(field))
    keys = pa.array([str(k) for k in range(count)], pa.string())
    yield (
        "map",
        pa.MapArray.from_arrays(
            pa.array(lists, pa.int32()), keys, flat, type=pa.map_(pa.string(), pa.field("value", type_))
        ),
    )


# ---- polars --------------------------------------------------------------------------------------------------------

TIME = dt.datetime(2024, 2, 29, 12, 30, 1)

POLARS: dict[str, tuple[Any, list[Any]]] = {
    "Boolean": (pl.Boolean(), [True, False]),
    **{str(t): (t(), [0, 1, 100]) for t in
       (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)},
    "Float16": (pl.Float16(), [1.5]), "Float32": (pl.Float32(), [1.5]), "Float64": (pl.Float64(), [0.1]),
    "String": (pl.String(), WORDS), "Binary": (pl.Binary(), [b"\xff" * 20, b""]),
    "Date": (pl.Date(), [dt.date(2024, 2, 29)]), "Time": (pl.Time(), [dt.time(1, 2, 3, 4)]),
    **{f"Datetime({u})": (pl.Datetime(u), [TIME]) for u in ("ms", "us", "ns")},
    "Datetime(us, UTC)": (pl.Datetime("us", "UTC"), [TIME.replace(tzinfo=dt.UTC)]),
    "Datetime(ms, Asia/Tokyo)": (pl.Datetime("ms", "Asia/Tokyo"), [TIME.replace(tzinfo=dt.UTC)]),
    **{f"Duration({u})": (pl.Duration(u), [dt.timedelta(-1), dt.timedelta(0, 1)]) for u in ("ms", "us", "ns")},
    "Decimal(10, 2)": (pl.Decimal(10, 2), [Decimal("1.50"), Decimal(-2)]),
    "Decimal(38, 0)": (pl.Decimal(38, 0), [Decimal(10**37), Decimal(-2)]),
    "Categorical": (pl.Categorical(), ["b", "a"]),
    "Categorical, named": (pl.Categorical(pl.Categories("sizes", "shop", pl.UInt8)), ["b", "a"]),
    "Enum": (pl.Enum(["low", "high; higher", "é"]), ["high; higher", "low"]),
    "Null": (pl.Null(), []),
    "List": (pl.List(pl.Int32), [[1, None], []]), "Array": (pl.Array(pl.Int32, 2), [[1, None], [3, 4]]),
    "Struct": (pl.Struct({"a": pl.Int32, "b": pl.String}), [{"a": None, "b": "x"}]),
    "Struct without fields": (pl.Struct({}), [{}]), "Object": (pl.Object(), [object()]),
    "Int128": (pl.Int128(), [1]), "UInt128": (pl.UInt128(), [1]),
}  # fmt: skip


def polars_forms(dtype: Any, rows: list[Any]) -> Iterator[tuple[str, pl.Series]]:
    flat = pl.Series("x", rows, dtype=dtype)
    yield "flat", flat
    missing = [None if k % 4 == 3 else {"x": row} for k, row in enumerate(rows)]
    yield "struct", pl.Series("x", missing, dtype=pl.Struct({"x": dtype}))
    lists = [None if k % 6 == 4 else rows[k : k + 2] for k in range(0, len(rows), 2)]
    yield "list", pl.Series("x", lists, dtype=pl.List(dtype))


# ---- pandas --------------------------------------------------------------------------------------------------------

PANDAS: dict[str, tuple[Any, list[Any]]] = {
    "bool": ("bool", [True, False]), "int8": ("int8", [1, 2]), "int64": ("int64", [1, 2]), "uint16": ("uint16", [1]),
    "float32": ("float32", [0.5, np.nan]), "float64": ("float64", [0.5, np.nan]),
    "str": ("str", WORDS), "string[python]": (pd.StringDtype("python"), WORDS),
    "string[pyarrow]": (pd.StringDtype("pyarrow"), WORDS),
    "boolean": ("boolean", [True, None]), "Int8": ("Int8", [1, None]), "Int64": ("Int64", [1, None]),
    "UInt32": ("UInt32", [1, None]), "Float32": ("Float32", [0.5, None]), "Float64": ("Float64", [0.5, None]),
    **{f"datetime64[{u}]": (f"datetime64[{u}]", [pd.Timestamp(TIME), pd.NaT]) for u in ("s", "ms", "us", "ns")},
    **{f"datetime64[{u}, {z}]": (f"datetime64[{u}, {z}]", [pd.Timestamp(TIME, tz="UTC"), pd.NaT])
       for u, z in (("us", "UTC"), ("ns", "Europe/Berlin"), ("s", "Asia/Tokyo"), ("ms", "+05:30"))},
    **{f"timedelta64[{u}]": (f"timedelta64[{u}]", [pd.Timedelta(1, "s"), pd.NaT]) for u in ("s", "ms", "us", "ns")},
    "category": (pd.CategoricalDtype(["b", "a", "unused"]), ["a", "b", None]),
    "category, ordered": (pd.CategoricalDtype(["b", "a", "unused"], ordered=True), ["a", "b", None]),
    "category of int64": (pd.CategoricalDtype([3, 1, 2]), [1, 3, None]),
    "period[M]": ("period[M]", [pd.Period("2024-02", "M"), None]),
    "interval[int64]": (pd.IntervalDtype("int64", "right"), [pd.Interval(0, 1), pd.Interval(1, 3)]),
    "object: bytes": ("object", [b"x", None]), "object: date": ("object", [dt.date(2024, 2, 29), None]),
    "object: time": ("object", [dt.time(1, 2, 3), None]), "object: Decimal": ("object", [Decimal("1.50"), None]),
    "int64[pyarrow]": (pd.ArrowDtype(pa.int64()), [1, None]),
    "timestamp[us, tz][pyarrow]": (pd.ArrowDtype(pa.timestamp("us", "Asia/Tokyo")), [pd.Timestamp(TIME, tz="UTC")]),
    "duration[ms][pyarrow]": (pd.ArrowDtype(pa.duration("ms")), [pd.Timedelta(1, "s"), None]),
    "complex128": ("complex128", [1j]), "Sparse[int64]": (pd.SparseDtype("int64"), [0, 1]),
    "list<int64>[pyarrow]": (pd.ArrowDtype(pa.list_(pa.int64())), [[1, 2], None]),
}  # fmt: skip


def pandas_series(dtype: Any, rows: list[Any]) -> pd.Series:
    return pd.Series(rows, dtype=dtype, name="x")
