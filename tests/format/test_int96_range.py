"""INT96 reaches further than 64 bits of nanoseconds: no instant comes out wrong without a word."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pyparq
from pyparq import col
from pyparq.format import int96

EPOCH = dt.datetime(1970, 1, 1)
LAST, FIRST = np.datetime64((1 << 63) - 1, "ns"), np.datetime64(-(1 << 63) + 1, "ns")
INSTANTS = [dt.datetime(1969, 12, 31, 23), dt.datetime(2024, 7, 1, 12), None, dt.datetime(9999, 12, 31)]


def stored(path: Path, values: list[dt.datetime | None], **options: Any) -> Path:
    rows = pa.table({"k": list(range(len(values))), "at": pa.array(values, pa.timestamp("us"))})
    pyparq.write_table(rows, path, int96_timestamps=True, **options)
    return path


@pytest.mark.parametrize("dictionary", [True, False])
def test_an_instant_beyond_the_unit_is_refused_by_name(tmp_path: Path, dictionary: bool) -> None:
    path = stored(tmp_path / "f.parquet", INSTANTS, use_dictionary=dictionary, row_group_size=3)
    said = r'nanoseconds.*coerce_int96_timestamp_unit="us".*f\.parquet, row group 1, column at'
    beyond = col("at") > dt.datetime(5000, 1, 1)
    for filters in (None, beyond, col("at") < dt.datetime(1970, 1, 1)):
        with pytest.raises(pyparq.DataError, match=said):
            pyparq.read_table(path, filters=filters)
        with pytest.raises(pyparq.DataError, match=said):
            pyparq.dataset(tmp_path).read(filters=filters)
    with pytest.raises(pyparq.DataError, match=said):
        pyparq.ParquetFile(path).scan(filters=beyond, columns=["k"]).count()
    shown = pyparq.read_table(path, coerce_int96_timestamp_unit="us").to_pydict()["at"]
    assert shown == INSTANTS
    first = pyparq.ParquetFile(path).read_row_group(0).to_pydict()["at"]  # nulls are no instants of year -4713
    assert first == INSTANTS[:3]


LITERALS = [
    dt.datetime(1, 1, 1), dt.datetime(1600, 1, 1), dt.datetime(1970, 1, 1), dt.datetime(2024, 7, 1, 12),
    dt.datetime(5000, 1, 1), dt.datetime(9999, 12, 31), np.datetime64("2024-07-01T12:00:00.000000001"),
]  # fmt: skip


@pytest.mark.parametrize("values", [INSTANTS[:3], [*INSTANTS, dt.datetime(1, 1, 1)]], ids=["within", "beyond"])
@pytest.mark.parametrize("unit", ["ns", "us", "ms", "s"])
def test_filters_agree_with_what_is_shown(tmp_path: Path, unit: Any, values: list[Any]) -> None:
    """Each filter is right, or refused because the values cannot be shown: never other rows."""
    path = stored(tmp_path / "f.parquet", values)
    fits = unit != "ns" or len(values) == 3
    for k, literal in enumerate(LITERALS):
        exact = np.datetime64(literal)

        def true(op: str, exact: np.datetime64 = exact) -> list[int]:
            known = [(n, np.datetime64(v)) for n, v in enumerate(values) if v is not None]
            return [n for n, v in known if _holds(op, _order(v, exact))]

        at = col("at")
        asked = {
            "<": at < literal, "<=": at <= literal, ">": at > literal, ">=": at >= literal, "==": at == literal,
            "!=": at != literal, "in": at.isin([literal]), "not in": ~at.isin([literal]),
        }  # fmt: skip
        for op, filters in asked.items():
            try:
                found = pyparq.read_table(path, ["k"], filters=filters, coerce_int96_timestamp_unit=unit)
            except pyparq.DataError:
                assert not fits, (literal, op)
                continue
            no_need = k == 6 and op in ("==", "in")  # no value is ever between two ticks
            no_need |= k == 6 and op in ("!=", "not in")  # and all are something else
            assert fits or no_need, (literal, op)
            assert found.to_pydict()["k"] == true(op), (literal, op)


def _order(a: np.datetime64, b: np.datetime64) -> int:
    """-1, 0 or 1, by Python's integers: numpy's own comparison wraps around between units."""
    first, second = _ns(a), _ns(b)
    return (first > second) - (first < second)


def _ns(at: np.datetime64) -> int:
    return int(at.astype(np.int64)) * {"us": 1000, "ns": 1}[np.datetime_data(at.dtype)[0]]


def _holds(op: str, order: int) -> bool:
    return {
        "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0, "==": order == 0, "!=": order != 0,
        "in": order == 0, "not in": order != 0,
    }[op]  # fmt: skip


@pytest.mark.parametrize("unit", ["ns", "us", "ms", "s"])
def test_the_range_is_exact(unit: str) -> None:
    """To the tick, in each unit, against Python's integers; ticks beyond a day too."""
    step, rng = int96.UNIT_NS[unit], np.random.default_rng(7)
    edges = [divmod(n * step, int96.NS_PER_DAY) for e in (-(1 << 63), (1 << 63) - 1) for n in range(e - 2, e + 3)]
    edges += [(0, 0), (-1, 0), (0, -1), (0, (1 << 63) - 1), (-1, -(1 << 63))]
    edges += [
        (int(d), int(n)) for d, n in zip(rng.integers(-200_000, 200_000, 200), rng.integers(-1 << 62, 1 << 62, 200))
    ]
    kept = [(d, n) for d, n in edges if -(1 << 31) <= d + int96.JULIAN_EPOCH < 1 << 31]
    raw = b"".join(
        n.to_bytes(8, "little", signed=True) + (d + int96.JULIAN_EPOCH).to_bytes(4, "little", signed=True)
        for d, n in kept
    )
    found, fits = int96.instants(np.frombuffer(raw, np.uint8).reshape(-1, 12), unit)
    for (day, nanos), got, good in zip(kept, found.tolist(), fits.tolist(), strict=True):
        wanted = day * (int96.NS_PER_DAY // step) + nanos // step
        inside = -(1 << 63) <= wanted < 1 << 63
        assert not good or (inside and got == wanted), (day, nanos)
        if 0 <= nanos < int96.NS_PER_DAY:
            assert good == inside, (day, nanos)


def test_the_first_and_the_last_nanosecond_are_read(tmp_path: Path) -> None:
    rows = pa.table({"at": pa.array([FIRST, LAST], pa.timestamp("ns"))})
    pyparq.write_table(rows, tmp_path / "f.parquet", int96_timestamps=True)
    found = pyparq.read_table(tmp_path / "f.parquet").to_arrow()["at"].cast(pa.int64()).to_pylist()
    assert found == [-(1 << 63) + 1, (1 << 63) - 1]


# ---- what Spark wrapped around


def as_spark_stores(microseconds: int) -> bytes:
    """``DateTimeUtils.toJulianDay`` of Spark: 64 bits that wrap, and a division that rounds towards 0."""
    total = (microseconds + int96.JULIAN_EPOCH * 86_400_000_000 + (1 << 63)) % (1 << 64) - (1 << 63)
    day, rest = divmod(abs(total), 86_400_000_000)
    sign = -1 if total < 0 else 1
    return (sign * rest * 1000).to_bytes(8, "little", signed=True) + (sign * day).to_bytes(4, "little", signed=True)


WRAPPED_FROM = (1 << 63) - int96.JULIAN_EPOCH * 86_400_000_000
"""The first microsecond that Spark's sum wraps."""
SPARK = [
    0, -1, 1_704_141_296_123_456, -(1 << 63), -(1 << 63) + 1, -210_866_803_200_000_001, WRAPPED_FROM - 1, WRAPPED_FROM,
    WRAPPED_FROM + 1, 9_089_380_393_200_000_000, (1 << 63) - 86_400_000_001, (1 << 63) - 1,
]  # fmt: skip


def spark_file(path: Path, values: list[int | None], **options: Any) -> Path:
    """A file with Spark's bytes, whose writer knows INT96_TIMESTAMP_ORDER."""
    stored = [None if v is None else as_spark_stores(v) for v in values]
    metadata = {b"PARQUET:logical_type": b"INT96"}
    schema = pa.schema([("k", pa.int64()), pa.field("at", pa.binary(12), metadata=metadata)])
    pyparq.write_table(pa.table([range(len(stored)), stored], schema=schema), path, **options)
    assert pyparq.ParquetFile(path).metadata.row_group(0).column(1).physical_type == "INT96"
    return path


@pytest.mark.parametrize("unit", ["us", "ms", "s"])
def test_what_spark_wrapped_is_what_it_meant(tmp_path: Path, unit: Any) -> None:
    for k, values in enumerate((SPARK, [*SPARK, None] * 9, SPARK[:7], SPARK[7:])):
        path = spark_file(tmp_path / f"{k}.parquet", values, max_rows_per_page=3, use_dictionary=k % 2 == 1)
        step = int96.UNIT_NS[unit] // 1000
        shown = [None if v is None else v // step for v in values]
        table = pyparq.read_table(path, coerce_int96_timestamp_unit=unit)
        assert table.to_arrow()["at"].cast(pa.int64()).to_pylist() == shown
        assert pyparq.verify(path).ok
        for limit in sorted(SPARK)[
            1:
        ]:  # the first one is NaT in numpy; the bounds in the file are in the order of days, not of instants
            kept = pyparq.read_table(
                path, filters=col("at") >= np.datetime64(limit, "us"), coerce_int96_timestamp_unit=unit
            )
            numbers = [n for n, v in enumerate(shown) if v is not None and v * step >= limit]
            assert kept.to_pydict()["k"] == numbers, (k, limit)


def test_nanoseconds_do_not_hold_what_spark_wrapped(tmp_path: Path) -> None:
    path = spark_file(tmp_path / "f.parquet", [0, SPARK[-1]])
    with pytest.raises(pyparq.DataError, match=r"106751991 days from 1970 .*unit=\"us\""):
        pyparq.read_table(path)
    assert pyparq.read_table(path, out_of_range="null")["at"].to_pylist() == [dt.datetime(1970, 1, 1), None]


def test_other_values_as_old_stand_as_they_are() -> None:
    """Days before all microseconds that no sum of Spark's gives: too old for microseconds, fine in milliseconds."""
    days = [-107_000_000, -109_192_578, -109_192_580, -1_000_000_000]
    nanos = [1, int96.NS_PER_DAY - 1, -5000, 0]
    raw = b"".join(
        n.to_bytes(8, "little", signed=True) + (d + int96.JULIAN_EPOCH).to_bytes(4, "little", signed=True)
        for d, n in zip(days, nanos, strict=True)
    )
    values = np.frombuffer(raw, np.uint8).reshape(-1, 12)
    assert int96.instants(values, "us")[1].tolist() == [False] * 4
    found, fits = int96.instants(values, "ms")
    assert fits.all()
    assert found.tolist() == [d * 86_400_000 + n // 10**6 for d, n in zip(days, nanos, strict=True)]


# ---- "auto"


def unit_of(source: Any, **options: Any) -> str:
    found = pyparq.read_table(source, coerce_int96_timestamp_unit="auto", **options).to_arrow().schema.field("at").type
    while pa.types.is_list(found):
        found = found.value_type
    return str(found.unit)


@pytest.mark.parametrize("statistics", [True, False])
def test_auto_is_nanoseconds_where_all_fit(tmp_path: Path, statistics: bool) -> None:
    for k, (values, unit) in enumerate([(INSTANTS[:3], "ns"), (INSTANTS, "us"), ([None], "ns"), ([], "ns")]):
        path = stored(tmp_path / f"{k}.parquet", values, write_statistics=statistics)
        assert unit_of(path) == unit_of(path, out_of_range="null") == unit
        assert unit_of(path, filters=col("at") < dt.datetime(2000, 1, 1)) == unit  # not by the rows that are asked for
        assert pyparq.read_table(path, coerce_int96_timestamp_unit="auto").to_pydict()["at"] == values
        assert unit_of(spark_file(tmp_path / "s.parquet", SPARK[k : k + 3])) == ("ns" if k == 0 else "us")
    with pyparq.ParquetFile(path, coerce_int96_timestamp_unit="auto") as file:
        assert file.schema_arrow.field("at").type.unit == "ns"
        assert file.scan(["at"]).to_table().num_rows == 0


def test_auto_at_the_ends_of_nanoseconds(tmp_path: Path) -> None:
    last, day = (1 << 63) - 1, int96.NS_PER_DAY
    for k, (value, unit) in enumerate([(last, "ns"), (-last - 1, "ns"), (last + 1, "us"), (-last - 2, "us")]):
        raw = (value % day).to_bytes(8, "little") + (value // day + int96.JULIAN_EPOCH).to_bytes(4, "little")
        schema = pa.schema([pa.field("at", pa.binary(12), metadata={b"PARQUET:logical_type": b"INT96"})])
        pyparq.write_table(pa.table([[raw]], schema=schema), tmp_path / f"{k}.parquet")
        assert unit_of(tmp_path / f"{k}.parquet") == unit


def test_auto_in_lists_and_in_many_files(tmp_path: Path) -> None:
    for k, values in enumerate((INSTANTS[:3], INSTANTS)):
        rows = pa.table({"at": pa.array([values, None, []], pa.list_(pa.timestamp("us")))})
        pyparq.write_table(rows, tmp_path / f"list{k}.parquet", int96_timestamps=True)
        assert unit_of(tmp_path / f"list{k}.parquet") == ("ns", "us")[k]
    (tmp_path / "many").mkdir()
    for k in range(3):
        stored(tmp_path / "many" / f"{k}.parquet", INSTANTS if k == 1 else INSTANTS[:3])
    assert unit_of(tmp_path / "many") == "us"
    some = pyparq.dataset(tmp_path / "many", coerce_int96_timestamp_unit="auto")
    assert some.scan(filters=col("at") > dt.datetime(5000, 1, 1)).to_table().to_pydict() == {
        "k": [3], "at": [dt.datetime(9999, 12, 31)],
    }  # fmt: skip
    (tmp_path / "many" / "1.parquet").unlink()
    assert unit_of(tmp_path / "many") == "ns"
    with pytest.raises(pyparq.OptionError, match="trust"):
        pyparq.dataset(tmp_path / "many", coerce_int96_timestamp_unit="auto", catalog="trust")


def test_statistics_answer_for_auto(tmp_path: Path) -> None:
    """No page is read where the bounds say enough."""
    path = stored(tmp_path / "f.parquet", INSTANTS[:3])
    data = bytearray(path.read_bytes())
    data[4:60] = bytes(56)  # pages
    path.write_bytes(data)
    with pyparq.ParquetFile(path, coerce_int96_timestamp_unit="auto") as file:
        assert file.schema_arrow.field("at").type.unit == "ns"
