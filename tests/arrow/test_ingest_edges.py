"""The edges of what numbers hold on the way in: exact there, an error beyond."""

from __future__ import annotations

import io
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq.arrow.ingest import ingest
from pyparq.arrow.table import Batch, Table
from pyparq.errors import DataError


def raw(type_: pa.DataType, *numbers: int) -> pa.Array:
    """64-bit values as they are, whatever pyarrow would make of them."""
    return pa.Array.from_buffers(type_, len(numbers), [None, pa.py_buffer(np.array(numbers, np.int64).tobytes())])


def table(column: Any) -> Table:
    schema, batches = ingest({"c": column})
    return Table(schema, [Batch(*batch) for batch in batches])


def values(column: Any) -> list[Any]:
    found: list[Any] = pa.table(table(column)).column("c").to_pylist()
    return found


def stored(data: Any, schema: Any = None) -> tuple[str, list[int | None]]:
    """Type and integers of a written column, as pyarrow reads them."""
    sink = io.BytesIO()
    pyparq.write_table({"c": data}, sink, schema=schema)
    column = pq.read_table(io.BytesIO(sink.getvalue())).column("c")
    width = pa.int32() if pa.types.is_date32(column.type) else pa.int64()
    return str(column.type), column.combine_chunks().view(width).to_pylist()


LEAST, MOST = -(2**31), 2**31 - 1


def test_the_first_and_the_last_date() -> None:
    days = np.array([LEAST, 0, MOST]).view("M8[D]")
    expected = ("date32[day]", [LEAST, 0, MOST])
    assert stored(days) == expected
    assert stored(list(days)) == expected
    assert stored(raw(pa.date64(), *(k * 86_400_000 for k in expected[1]))) == expected
    assert stored(raw(pa.date64(), LEAST * 86_400_000), pa.schema([("c", pa.date32())])) == ("date32[day]", [LEAST])
    for beyond in (LEAST - 1, MOST + 1):
        with pytest.raises(DataError, match="32-bit number of days"):
            stored(np.array([beyond]).view("M8[D]"))
        with pytest.raises(DataError, match="32-bit number of days"):
            stored(raw(pa.date64(), beyond * 86_400_000))
    assert stored(np.ma.masked_array(np.array([2**40, 5]).view("M8[D]"), [1, 0])) == ("date32[day]", [None, 5])


def test_the_first_date_as_a_filter_and_in_statistics() -> None:
    sink = io.BytesIO()
    pyparq.write_table({"c": np.array([LEAST, 7]).view("M8[D]"), "k": [0, 1]}, sink, row_group_size=1)
    first = np.array([LEAST]).view("M8[D]")[0]
    assert pyparq.read_table(sink.getvalue(), ["k"], filters=pyparq.col("c") == first).to_pydict() == {"k": [0]}
    assert pyparq.read_table(sink.getvalue(), ["k"], filters=pyparq.col("c") > first).to_pydict() == {"k": [1]}


@pytest.mark.parametrize("ms", [1, -1, 86_400_001, 2**62 + 1])
def test_a_time_of_day_under_a_date_is_an_error(ms: int) -> None:
    with pytest.raises(DataError, match="no time of day") as caught:
        stored(raw(pa.date64(), 0, ms))
    assert caught.value.column == "c"
    assert "row 1" in str(caught.value)


def test_timestamps_at_the_ends_of_64_bits() -> None:
    ends = [-(2**63), 2**63 - 1]
    schema = pa.schema([("c", pa.timestamp("us", "Asia/Tokyo"))])
    assert stored(raw(pa.timestamp("us", "UTC"), *ends), schema)[1] == ends
    low, high = -(2**63 // 1000), (2**63 - 1) // 1000
    schema = pa.schema([("c", pa.timestamp("us"))])
    assert stored(raw(pa.timestamp("ms"), low, high), schema)[1] == [low * 1000, high * 1000]
    assert stored([pd.Timestamp.min, pd.Timestamp.max]) == ("timestamp[ns]", [1 - 2**63, 2**63 - 1])
    with pytest.raises(DataError, match="does not fit in 64 bits as nanoseconds"):
        stored([pd.Timestamp("2500-01-01"), pd.Timestamp(1)])
    with pytest.raises(DataError, match=r"row 0: .* does not fit in 64 bits as microseconds"):
        stored([pd.Timestamp(np.datetime64(10**13, "s"))])


def test_datetime64_scalars_of_several_units() -> None:
    assert stored([np.datetime64(5, "ms"), None, np.datetime64(7, "ns")]) == ("timestamp[ns]", [5_000_000, None, 7])
    with pytest.raises(DataError, match=r"row 1: 9999 does not fit datetime64\[ns\]"):
        stored([np.datetime64(1, "ns"), np.datetime64("9999", "Y")])


def test_arrays_in_lists_keep_nanoseconds_and_masks() -> None:
    moment, other = np.array([1001], "M8[ns]"), np.array([1], "M8[us]")
    assert str(table([moment, other]).schema.fields[0].type) == "list<element: timestamp[ns]>"
    for data in ([moment, other], [[moment[0]], [np.datetime64(1000, "ns")]]):
        made = pa.table(table(data)).column("c").combine_chunks()
        assert made.values.view(pa.int64()).to_pylist() == [1001, 1000]
    square = pa.table(table([np.array([[1001, 5]], "M8[ns]")])).column("c").combine_chunks()
    assert square.values.values.view(pa.int64()).to_pylist() == [1001, 5]
    hidden = [np.ma.masked_array([1, 2], [False, True]), np.ma.masked_array([3], [False])]
    assert values(hidden) == [[1, None], [3]]
    assert values([hidden[0], np.array([1.5])]) == [[1, None], [1.5]]
    dates = [np.ma.masked_array(np.array([1, 2], "M8[D]"), [True, False]), np.array([3], "M8[ns]")]
    assert pa.table(table(dates)).column("c").combine_chunks().values.is_valid().to_pylist() == [
        False,
        True,
        True,
    ]


def test_wide_floats_are_not_rounded_silently() -> None:
    assert values([np.longdouble(1.5), 2.0, np.longdouble("nan")])[:2] == [1.5, 2.0]
    if np.finfo(np.longdouble).nmant > 52:
        with pytest.raises(DataError, match=r"row 1: .* cannot be stored exactly as float64"):
            table([1.0, np.longdouble(1) / 3])


def test_lone_surrogates_in_arrays() -> None:
    with pytest.raises(DataError, match="lone surrogate"):
        table(np.array(["a", "\ud800"]))


def test_decimals_of_very_many_decimals_end_at_once() -> None:
    tiny, none = Decimal("1E-999999999"), Decimal("0E-999999999")
    with pytest.raises(DataError, match=r"row 1: 1E-999999999 has more decimal places than decimal\(5, 2\)"):
        pyparq.write_table({"c": [none, tiny]}, io.BytesIO(), schema=pa.schema([("c", pa.decimal128(5, 2))]))
    with pytest.raises(DataError, match="digits"):
        table([tiny])
    pyparq.write_table({"c": [none]}, io.BytesIO(), schema=pa.schema([("c", pa.decimal128(5, 2))]))
