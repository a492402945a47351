"""How types are stored where the format leaves a choice, both ways, against other implementations."""

from __future__ import annotations

import datetime as dt
import io
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from written import written

import pyparq
from pyparq import col
from pyparq.errors import OptionError
from pyparq.format.order import Order

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def read_by_pyarrow(file: bytes, **options: Any) -> Any:
    return pq.read_table(io.BytesIO(file), **options)


# ---- INT96 ---------------------------------------------------------------------------------------------------------

INSTANTS = [
    dt.datetime(1970, 1, 1), None, dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2026, 7, 8, 12, 30),
    dt.datetime(1700, 1, 1), dt.datetime(2262, 1, 1), dt.datetime(1900, 2, 28, 0, 0, 1),
]  # fmt: skip


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_int96_written_and_read(unit: str, dictionary: bool) -> None:
    values = [v and (v.replace(microsecond=0) if unit == "s" else v) for v in INSTANTS]
    if unit == "ms":
        values[2] = dt.datetime(1969, 12, 31, 23, 59, 59, 999000)
    data = pa.table({"t": pa.array(values * 3, pa.timestamp(unit)), "n": pa.array(range(21))})
    file = written(data, int96_timestamps=True, use_dictionary=dictionary)
    assert pq.ParquetFile(io.BytesIO(file)).schema.column(0).physical_type == "INT96"
    theirs = read_by_pyarrow(file)["t"]
    assert theirs.cast(pa.timestamp("us")).to_pylist() == values * 3
    assert pyparq.read_table(file).to_pydict()["t"] == values * 3
    named = written(data, use_deprecated_int96_timestamps=["t"], use_dictionary=dictionary)
    assert pyparq.read_table(named).to_pydict()["t"] == values * 3


def test_int96_beyond_nanoseconds_reads_in_a_coarser_unit() -> None:
    far = [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999), None, dt.datetime(2000, 1, 1)]
    file = written(pa.table({"t": pa.array(far, pa.timestamp("us"))}), int96_timestamps=True)
    theirs = pq.read_table(io.BytesIO(file), coerce_int96_timestamp_unit="us")["t"].to_pylist()
    assert theirs == far
    assert pyparq.read_table(file, coerce_int96_timestamp_unit="us").to_pydict()["t"] == far
    seconds = pyparq.read_table(file, coerce_int96_timestamp_unit="s").to_pydict()["t"]
    assert seconds == [v and v.replace(microsecond=0) for v in far]
    found = pyparq.read_table(file, coerce_int96_timestamp_unit="us", filters=col("t") > dt.datetime(2000, 1, 1))
    assert found.to_pydict()["t"] == [far[1]]
    with pytest.raises(OptionError, match="coerce_int96_timestamp_unit"):
        pyparq.read_table(file, coerce_int96_timestamp_unit="minutes")


def test_int96_bounds_under_their_own_order() -> None:
    start = dt.datetime(2024, 1, 1)
    values = [start + dt.timedelta(hours=k) for k in range(1000)]
    file = written(
        pa.table({"t": pa.array(values, pa.timestamp("us")), "k": pa.array(range(1000))}),
        int96_timestamps=True, max_rows_per_page=100, use_dictionary=False,
    )  # fmt: skip
    with pyparq.ParquetFile(file) as opened:
        leaf = opened.tree.leaves[0]
        assert opened._file.column_order(leaf) == Order.INT96
        index = opened.column_index(0, "t")
        assert index is not None
        assert index.has_bounds.all()
        assert index.boundary_order == 1
        assert index.mins.view("M8[ns]").tolist()[1] == np.datetime64(values[100], "ns").view("i8")
        scan = opened.scan(["k"], (col("t") >= values[250]) & (col("t") < values[260]))
        assert scan.to_table().to_pydict()["k"] == list(range(250, 260))
        assert scan.explain().pages_decoded <= 2
    assert read_by_pyarrow(file)["t"].cast(pa.timestamp("us")).to_pylist() == values


def test_int96_bounds_without_their_order_are_ignored(corpus: Any) -> None:
    with pyparq.ParquetFile(corpus / "data" / "int96_from_spark.parquet") as opened:
        assert opened._file.column_order(opened.tree.leaves[0]) == Order.UNKNOWN
    table = pyparq.read_table(corpus / "data" / "int96_from_spark.parquet", coerce_int96_timestamp_unit="us")
    path = corpus / "data" / "int96_from_spark.parquet"
    theirs = pq.read_table(path, coerce_int96_timestamp_unit="us")
    assert table.slice(0, 5).to_arrow().equals(theirs.slice(0, 5))
    # The last is in the year 290000: pyarrow's detour over nanoseconds loses it, Spark reads this.
    assert table.to_numpy("a")[5] == np.datetime64(9_089_380_393_200_000_000, "us")


# ---- decimals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", ["smallest", "fixed", "binary"])
@pytest.mark.parametrize("precision", [1, 2, 9, 10, 18, 19, 37, 38, 39, 76])
def test_decimals_in_every_storage(precision: int, storage: str) -> None:
    most = 10**precision - 1
    numbers = [0, 1, -1, most, -most, most // 3, -most // 7, None, 127 % (most + 1), -128 % (most + 1)]
    scale = precision // 2
    values = [None if n is None else Decimal(n).scaleb(-scale, __import__("decimal").Context(prec=90)) for n in numbers]
    type_ = pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    data = pa.table({"d": pa.array(values, type_)})
    file = written(data, decimal_storage=storage)
    column = pq.ParquetFile(io.BytesIO(file)).schema.column(0)
    kinds = {"fixed": "FIXED_LEN_BYTE_ARRAY", "binary": "BYTE_ARRAY"}
    assert column.physical_type == kinds.get(storage, column.physical_type)
    assert read_by_pyarrow(file).equals(data)
    assert pyparq.read_table(file).to_arrow().equals(data)
    assert pyparq.read_table(file, filters=col("d") == values[3]).to_pydict()["d"] == [values[3]] * numbers.count(most)


def test_binary_decimals_take_the_fewest_bytes_and_keep_bounds() -> None:
    numbers = [-129, -128, -1, 0, 127, 128, 32767, -32768, 10**17]
    data = pa.table({"d": pa.array([Decimal(n) for n in numbers], pa.decimal128(18, 0))})
    file = written(data, decimal_storage={"d": "binary"}, use_dictionary=False)
    with pyparq.ParquetFile(file) as opened:
        bounds = opened.metadata.row_group(0).column(0).bounds
        assert (bounds.mins[0], bounds.maxs[0]) == (-32768, 10**17)
        sizes = opened._file.chunk(0, opened.tree.leaves[0]).meta.size_statistics
    expected = sum((n if n >= 0 else ~n).bit_length() // 8 + 1 for n in numbers)
    assert sizes.unencoded_byte_array_data_bytes == expected


def test_options_that_do_not_fit_their_column() -> None:
    data = {"a": np.arange(3), "d": [Decimal(1)] * 3}
    for options in (
        {"decimal_storage": {"a": "binary"}}, {"int96_timestamps": ["a"]}, {"write_time_adjusted_to_utc": ["a"]},
        {"float_order": {"a": "IEEE_754_TOTAL_ORDER"}}, {"float_order": "ieee"}, {"decimal_storage": "bytes"},
        {"int96_timestamps": "d"}, {"field_ids": {"a": 2**31}}, {"column_key_value_metadata": {"a": "text"}},
        {"sort_by": "d", "decimal_storage": "binary"}, {"store_schema": 1},
        {"int96_timestamps": True, "use_deprecated_int96_timestamps": True},
    ):  # fmt: skip
        with pytest.raises(OptionError):
            written(data, **options)


# ---- times, field ids, key-values ----------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("utc", [True, False])
def test_times_say_whether_they_are_adjusted_to_utc(unit: str, utc: bool) -> None:
    type_ = pa.time32("ms") if unit == "ms" else pa.time64(unit)
    data = pa.table({"t": pa.array([dt.time(12, 30, 1), None, dt.time(0, 0)], type_)})
    file = written(data, write_time_adjusted_to_utc=utc)
    logical = pq.ParquetFile(io.BytesIO(file)).schema.column(0).logical_type
    assert f"isAdjustedToUTC={str(utc).lower()}" in str(logical)
    assert read_by_pyarrow(file).equals(data)
    again = written(pyparq.read_table(file))  # the annotation survives being read and written
    assert str(pq.ParquetFile(io.BytesIO(again)).schema.column(0).logical_type) == str(logical)


def test_field_ids_and_key_values_of_chunks() -> None:
    data = pa.table({"a": pa.array([1, 2]), "s": pa.array([{"x": "p"}, None])})
    file = written(
        data, field_ids={"a": 7, "s": 9, "s.x": 3},
        column_key_value_metadata={"a": {"unit": "m", "raw": b"\xff"}, "s.x": {b"k": None}},
    )  # fmt: skip
    schema = pq.read_schema(io.BytesIO(file))
    assert schema.field("a").metadata == {b"PARQUET:field_id": b"7"}
    assert schema.field("s").type.field("x").metadata == {b"PARQUET:field_id": b"3"}
    with pyparq.ParquetFile(file) as opened:
        group = opened.metadata.row_group(0)
        assert group.column("a").key_value_metadata == {b"unit": b"m", b"raw": b"\xff"}
        assert group.column("s.x").key_value_metadata == {b"k": b""}
        assert opened.schema_arrow.field("s").metadata == {b"PARQUET:field_id": b"9"}
    again = pyparq.read_schema(written(pyparq.read_table(file)))
    assert again.field("a").metadata == {b"PARQUET:field_id": b"7"}


# ---- orders of floats ----------------------------------------------------------------------------------------------

NANS = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0xFFF0000000000001], np.uint64)


def total_key(value: np.float64) -> int:
    bits = int(np.float64(value).view(np.int64))
    return bits if bits >= 0 else bits ^ 0x7FFFFFFFFFFFFFFF


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_total_order_bounds(dtype: Any) -> None:
    nan, inf = np.nan, np.inf
    pages = [
        [1.5, -2.0, nan], [-0.0, 0.0], [0.0], [-0.0], [nan, nan], [-inf, 3.0, -nan], [inf, 1.0], [nan, 0.5],
    ]  # fmt: skip
    values = np.array([v for page in pages for v in (page * 4)[:4]], dtype)
    file = written({"x": values}, float_order="IEEE_754_TOTAL_ORDER", max_rows_per_page=4, use_dictionary=False)
    with pyparq.ParquetFile(file) as opened:
        assert opened._file.column_order(opened.tree.leaves[0]) == Order.TOTAL
        raw = opened._file.chunk(0, opened.tree.leaves[0])
        stats = raw.meta.statistics
        assert np.frombuffer(stats.min_value, dtype)[0] == -inf
        assert np.frombuffer(stats.max_value, dtype)[0] == inf
        assert stats.nan_count == int(np.isnan(values).sum())
        index = opened.column_index(0, "x")
        assert index is not None  # also with a page of nothing but NaN
        parts = values.reshape(-1, 4)
        assert index.nan_counts.tolist() == np.isnan(parts).sum(axis=1).tolist()
        for k, part in enumerate(parts):
            real = part[~np.isnan(part)]
            assert index.has_bounds[k] == (len(real) > 0)
            if len(real):
                low = min(real, key=lambda v: total_key(np.float64(v)))
                assert total_key(np.float64(index.mins[k])) == total_key(np.float64(low))
        for predicate, keep in [
            (col("x") > 2.0, lambda v: (v > 2) | np.isnan(v)), (col("x") == 0.0, lambda v: v == 0),
            (col("x") < -1.0, lambda v: v < -1), (col("x").is_nan(), np.isnan),
        ]:  # fmt: skip
            got = opened.scan(["x"], predicate).to_table().to_numpy("x")
            assert np.array_equal(got, values[keep(values)], equal_nan=True)
    assert np.array_equal(read_by_pyarrow(file)["x"].to_numpy(), values, equal_nan=True)


def test_total_order_of_nans_alone() -> None:
    values = NANS.view(np.float64)
    file = written({"x": values}, float_order={"x": "IEEE_754_TOTAL_ORDER"}, use_dictionary=False)
    with pyparq.ParquetFile(file) as opened:
        stats = opened._file.chunk(0, opened.tree.leaves[0]).meta.statistics
        by_order = sorted(values, key=total_key)
        assert stats.min_value == by_order[0].tobytes()
        assert stats.max_value == by_order[-1].tobytes()
        assert stats.nan_count == 4


def test_the_usual_order_writes_no_index_over_nans_alone() -> None:
    file = written({"x": np.array([np.nan] * 3), "y": np.array([1.0, np.nan, 0.0])})
    with pyparq.ParquetFile(file) as opened:
        assert opened.column_index(0, "x") is None
        assert opened.page_locations(0, "x") is not None
        index = opened.column_index(0, "y")
        assert index is not None
        assert index.nan_counts.tolist() == [1]
        assert np.signbit(index.mins[0])
