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
from pyparq.read.decode.physical_values import int96_ticks

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


def test_days_that_spark_counts_from_julian_day_0() -> None:
    """Microseconds that wrap around are those of Spark, as far as a day from Julian day 0 fits 64 bits of them."""
    days = [-106_751_990, -106_751_991]
    raw = b"".join(bytes(8) + day.to_bytes(4, "little", signed=True) for day in days)
    found, fits = int96_ticks(np.frombuffer(raw, np.uint8).reshape(-1, 12), "us")
    assert fits.tolist() == [True, False]
    assert found[0] == (days[0] - int96.JULIAN_EPOCH) * 86_400_000_000 + (1 << 64)
