"""The largest and smallest values of each type come out as they are, or as an error that names the column."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import DataError

MOST = 2**63 - 1
DAY = 86_400
PYTHONS_LAST, PYTHONS_FIRST = 253_402_300_799_999_999, -62_135_596_800_000_000
"""Of ``datetime``, in microseconds."""


def of_numbers(type_: pa.DataType, *numbers: int | None) -> pa.Array:
    """pyarrow's constructors refuse some of these values."""
    return pa.array(numbers, pa.int32() if type_.bit_width == 32 else pa.int64()).view(type_)


def stored(tmp_path: Path, array: pa.Array) -> Path:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": array}), path)
    return path


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo", "+05:30", "-11:00"])
def test_instants_that_leave_pythons_years_in_their_zone(zone: str, tmp_path: Path) -> None:
    """The ends of ``datetime`` in UTC: a day further in some zones. pyarrow raises OverflowError."""
    path = stored(tmp_path, of_numbers(pa.timestamp("us", zone), PYTHONS_LAST, PYTHONS_FIRST, 0, None))
    table = pyparq.read_table(path)
    for values in (table["x"].to_pylist(), table.to_pydict()["x"], [row["x"] for row in table.to_pylist()]):
        for value, number in zip(values, (PYTHONS_LAST, PYTHONS_FIRST, 0), strict=False):
            if isinstance(value, np.datetime64):
                assert value == np.datetime64(number, "us")
            else:
                assert (value - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1) == number
        assert any(isinstance(value, np.datetime64) for value in values)
        assert isinstance(values[2], dt.datetime)
        assert values[3] is None
    assert "?" not in str(table)
    assert any(line.endswith("Z") for line in str(table).splitlines())


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("kind", [pa.timestamp, pa.duration])
def test_the_smallest_number_is_numpys_nat(kind: Any, unit: str) -> None:
    """numpy has no other value for it. It is not null, and does not come out as ``None``."""
    table = pyparq.Table.from_arrow(pa.table({"x": of_numbers(kind(unit), -MOST - 1, None, 0)}))
    first, null, _ = table["x"].to_pylist()
    assert np.isnat(first)
    assert null is None
    assert np.isnat(table.to_numpy("x")[0])


@pytest.mark.parametrize("type_", [pa.duration("s"), pa.timestamp("s"), pa.timestamp("s", "UTC")], ids=str)
@pytest.mark.parametrize("nest", [False, True])
def test_seconds_that_polars_would_wrap_around(type_: pa.DataType, nest: bool) -> None:
    """polars counts them in milliseconds, and lets them wrap around."""
    pl = pytest.importorskip("polars")

    def table(*numbers: int | None) -> pyparq.Table:
        array = of_numbers(type_, *numbers)
        items = pa.ListArray.from_arrays(pa.array(range(len(numbers) + 1), pa.int32()), array)
        return pyparq.Table.from_arrow(pa.table({"x": items if nest else array}))

    wrapped = pl.from_arrow(pa.table({"x": of_numbers(type_, 2**62)}))["x"].to_physical()[0]
    assert wrapped != 2**62 * 1000
    with pytest.raises(DataError, match=r"does not fit .*\[ms.*column x"):
        table(1, 2**62).to_polars()
    limit = MOST // 1000
    found = table(limit, None, -limit).to_polars()["x"]
    found = found.explode() if nest else found
    assert found.to_physical().to_list() == [limit * 1000, None, -limit * 1000]


@pytest.mark.parametrize("type_", [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")], ids=str)
@pytest.mark.parametrize("number", [-1, 1], ids=["negative", "end of day"])
def test_times_that_polars_would_make_null(type_: pa.DataType, number: int) -> None:
    pl = pytest.importorskip("polars")
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[type_.unit]
    bad = -1 if number < 0 else DAY * per_second
    assert pl.from_arrow(pa.table({"x": of_numbers(type_, bad)}))["x"].null_count() == 1
    for array in (of_numbers(type_, 0, None, bad), pa.ListArray.from_arrays([0, 1], of_numbers(type_, bad)),
                  pa.StructArray.from_arrays([of_numbers(type_, bad)], ["a"])):  # fmt: skip
        with pytest.raises(DataError, match="column x"):
            pyparq.Table.from_arrow(pa.table({"x": array})).to_polars()
    just = of_numbers(type_, 0, None, DAY * per_second - 1)
    assert pyparq.Table.from_arrow(pa.table({"x": just})).to_polars()["x"].null_count() == 1


@pytest.mark.parametrize("type_", [pa.int64(), pa.uint64()], ids=str)
def test_integers_with_nulls_stay_exact_in_pandas(type_: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    """pandas has NaN for what is missing among numbers, and float64 rounds integers beyond 2^53, as pyarrow lets it."""
    numbers = [2**53 + 1, None, 2**63 - 1]
    table = pyparq.Table.from_arrow(
        pa.table({"x": pa.array(numbers, type_), "small": pa.array([1, None, 2**53], type_)})
    )
    assert pa.table(table).to_pandas()["x"].tolist()[0] == 2.0**53
    for by_pyarrow in (True, False):
        if not by_pyarrow:
            monkeypatch.setattr("pyparq.arrow.table.find_spec", lambda name: None if name == "pyarrow" else 1)
        frame = table.to_pandas()
        assert [None if v is pd.NA else int(v) for v in frame["x"]] == numbers
        assert frame["x"].dtype == ("Int64" if type_ == pa.int64() else "UInt64")
        assert frame["small"].dtype == np.float64
    items = pyparq.Table.from_arrow(pa.table({"x": pa.array([numbers, None, [1]], pa.list_(type_))}))
    monkeypatch.undo()
    found = items.to_pandas()["x"]
    assert [None if v is None else list(v) for v in found] == [numbers, None, [1]]


def test_text_of_cells() -> None:
    """What the command line shows of them."""
    from pyparq.cli.values import field_json

    def texts(type_: pa.DataType, *numbers: int) -> list[str]:
        table = pyparq.Table.from_arrow(pa.table({"x": of_numbers(type_, *numbers)}))
        render = field_json(table.schema.fields[0])
        return [render(value) for value in table["x"].to_pylist()]

    found = texts(pa.timestamp("us", "America/New_York"), PYTHONS_FIRST, MOST, -MOST - 1, 0)
    assert found[:3] == ["0001-01-01T00:00:00.000000Z", "294247-01-10T04:00:54.775807Z", "NaT"]  # in UTC
    assert found[3] == "1969-12-31T19:00:00-05:00"
    assert texts(pa.timestamp("us"), PYTHONS_FIRST - 1) == ["0000-12-31T23:59:59.999999"]
    assert texts(pa.time64("us"), -1, DAY * 10**6, 2**62) == [
        "-00:00:00.000001000", "24:00:00.000000000", "1281023894:00:27.387904000",
    ]  # fmt: skip


def test_text_of_bounds(tmp_path: Path) -> None:
    """Bounds and literals, as ``explain`` and the command line show them."""
    from pyparq.filters.literal import format_literal

    def leaf(type_: pa.DataType) -> Any:
        with pyparq.ParquetFile(stored(tmp_path, of_numbers(type_, 1))) as file:
            return file._file.tree.leaves[0].type

    us, utc, time = leaf(pa.timestamp("us")), leaf(pa.timestamp("us", "UTC")), leaf(pa.time64("us"))
    assert format_literal(us, -MOST - 1) == "-9223372036854775808 us"  # numpy has NaT for it
    assert format_literal(utc, -MOST - 1) == "-9223372036854775808 us"
    assert format_literal(us, -MOST) == "-290308-12-21T19:59:05.224193"
    assert format_literal(utc, PYTHONS_LAST + 1) == "10000-01-01T00:00:00.000000Z"
    assert format_literal(time, -1) == "-00:00:00.000001"
    assert format_literal(time, DAY * 10**6) == "24:00:00"


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_polars_literals_beyond_pythons_years(unit: str, zone: str | None, tmp_path: Path) -> None:
    pl = pytest.importorskip("polars")
    import pyparq.polars

    numbers = [0, 5, MOST, -MOST, MOST // 1000, MOST // 1000 + 1, None]
    path = stored(tmp_path, of_numbers(pa.timestamp(unit, zone), *numbers))
    lazy = pyparq.polars.scan(path)
    literals = pl.Series(numbers[:-1]).cast(pl.Datetime(unit, None if zone is None else "UTC"))
    literals = literals if zone is None else literals.dt.convert_time_zone(zone)
    for k, number in enumerate(numbers[:-1]):
        literal = pl.lit(literals[k : k + 1]).first()
        known = [v for v in numbers if v is not None]
        for test, due in [
            (pl.col("x") < literal, sum(v < number for v in known)), (pl.col("x") == literal, known.count(number)),
            (pl.col("x").is_in(literals[k : k + 1].implode()), known.count(number)),
        ]:  # fmt: skip
            assert lazy.filter(test).collect().height == due
