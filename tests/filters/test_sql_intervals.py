"""INTERVAL literals in SQL conditions: durations, exactly, or refused by name. The oracle is DuckDB."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from cli_files import ok, refused

import pyparq
from pyparq.filters.sql_text import parse_where

TEXTS = [
    "INTERVAL '1 day'", "INTERVAL '1' DAY", "INTERVAL 3 HOUR", "INTERVAL '1 day 2 hours'",
    "INTERVAL '1 day 02:03:04.5'",
    "INTERVAL '90 seconds'", "INTERVAL '-90 seconds'", "INTERVAL '10 days -3 hours'", "INTERVAL '01:02:03'",
    "INTERVAL '-01:02:03.000001'", "INTERVAL '2 weeks'", "INTERVAL '5 minutes 1 second'", "INTERVAL '250 milliseconds'",
    "INTERVAL '7 microseconds'", "INTERVAL '36 hours'", "'2 days'::interval", "CAST('2 days 1 hour' AS INTERVAL)",
    "- INTERVAL '1 day'", "INTERVAL '1 day -02:00:00'",
]  # fmt: skip
SPANS = {
    "INTERVAL '1 02:03:04.5' DAY TO SECOND": dt.timedelta(days=1, hours=2, minutes=3, seconds=4.5),
    "INTERVAL '2:30' HOUR TO MINUTE": dt.timedelta(hours=2, minutes=30),
    "INTERVAL '90:30.25' MINUTE TO SECOND": dt.timedelta(minutes=90, seconds=30.25),
    "- INTERVAL '1 02' DAY TO HOUR": -dt.timedelta(days=1, hours=2),
    "INTERVAL '1.5' SECOND": dt.timedelta(seconds=1.5),
}


@pytest.fixture
def spans(tmp_path: Path) -> pyparq.Dataset:
    """A folder that has one duration column in three units."""
    for unit in ("s", "ms", "ns"):
        ticks = pa.array([-90, 0, 90, 93_784, 86_400, None], pa.duration("s")).cast(pa.duration(unit))
        pyparq.write_table(pa.table({"x": ticks, "k": range(6)}), tmp_path / f"{unit}.parquet")
    return pyparq.dataset(tmp_path)


def literal(text: str, data: pyparq.Dataset) -> Any:
    value = parse_where(f"x = {text}", data.tree).other  # type: ignore[attr-defined]
    return value.astype("m8[us]").item() if isinstance(value, np.timedelta64) else value


@pytest.mark.parametrize("text", TEXTS)
def test_an_interval_is_what_duckdb_takes_it_for(spans: pyparq.Dataset, text: str) -> None:
    ((found,),) = duckdb.sql(f"SELECT {text}").fetchall()
    assert literal(text, spans) == found
    values = [v for v in spans.read(["x"]).to_pydict()["x"] if v is not None]
    for op, passes in ((">", lambda v: v > found), ("=", lambda v: v == found), ("<=", lambda v: v <= found)):
        assert spans.scan(filters=parse_where(f"x {op} {text}", spans.tree)).count() == sum(map(passes, values))


@pytest.mark.parametrize("text", SPANS)
def test_spans_and_units_behind_the_text(spans: pyparq.Dataset, text: str) -> None:
    assert literal(text, spans) == SPANS[text]


def test_nanoseconds_and_long_durations(spans: pyparq.Dataset) -> None:
    for text, ns in (("INTERVAL '1.000000001 seconds'", 1_000_000_001), ("INTERVAL '3 nanoseconds'", 3)):
        assert parse_where(f"x = {text}", spans.tree).other == np.timedelta64(ns, "ns")  # type: ignore[attr-defined]
    assert literal("INTERVAL '900000 days'", spans) == dt.timedelta(days=900_000)


def test_conditions_with_several(spans: pyparq.Dataset) -> None:
    for text, rows in (
        ("x BETWEEN INTERVAL '0 s' AND INTERVAL '1 day'", 9),
        ("x IN (INTERVAL '1 day', INTERVAL '90' SECOND)", 6),
        ("NOT x > INTERVAL '1 minute' AND k < 9", 6),
        ("x > INTERVAL '1 day 02:03:03'", 3),
    ):
        assert spans.scan(filters=parse_where(text, spans.tree)).count() == rows, text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("INTERVAL '1 month'", "no fixed length"), ("INTERVAL '1' YEAR", "no fixed length"),
        ("INTERVAL '1-2' YEAR TO MONTH", "no fixed length"), ("INTERVAL '1 day ago'", "no duration"),
        ("INTERVAL '5'", "no duration"), ("INTERVAL 'P1D'", "no duration"), ("INTERVAL '1 fortnight'", "no unit"),
        ("INTERVAL '25:61:00'", "below 60"), ("INTERVAL '-1 02:03:04' DAY TO SECOND", "before the word"),
        ("INTERVAL '1 02' DAY TO SECOND", "not of the form"), ("INTERVAL k DAY", "write INTERVAL"),
        ("INTERVAL '0.0000000001 seconds'", "finer than a nanosecond"), ("INTERVAL ''", "empty"),
        ("INTERVAL '999999999999999999 weeks'", "longer"), ("INTERVAL '1 day, 2 hours'", "no duration"),
        ("INTERVAL '1' DAY + INTERVAL '2' HOUR", "a value is needed"), ("6000", "INTERVAL '6 seconds'"),
        ("INTERVAL '90' SECOND(3)", "write INTERVAL"),
        ("'6000'", "INTERVAL '6 seconds'"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_duration_is_refused_by_name(spans: pyparq.Dataset, text: str, why: str) -> None:
    with pytest.raises(pyparq.FilterError, match=why):
        spans.scan(filters=parse_where(f"x > {text}", spans.tree))


def test_an_interval_beside_other_columns_is_refused(spans: pyparq.Dataset) -> None:
    with pytest.raises(pyparq.FilterError, match=r"int64.*give a number.*column k"):
        spans.scan(filters=parse_where("k > INTERVAL '1 day'", spans.tree))


@pytest.mark.parametrize("text", ["90 seconds", "0:01:30", "00:01:30", "1.5 min"])
def test_probes_on_the_command_line_mean_what_is_shown(spans: pyparq.Dataset, tmp_path: Path, text: str) -> None:
    """The file in milliseconds holds 90000; ``pyparq bloom`` looked for the number as it was given."""
    pyparq.write_table(spans.read(), tmp_path / "b.parquet", bloom_filters=["x"])
    assert "certainly not" not in ok("bloom", tmp_path / "b.parquet", "x", text)
    assert ok("lookup", tmp_path / "b.parquet", "x", text, "--json").count("0:01:30") == 3
    assert "durations" in refused(2, "bloom", tmp_path / "b.parquet", "x", "90")
    assert "durations" in refused(2, "lookup", tmp_path / "b.parquet", "x", "1 month")


def test_a_printed_duration_finds_itself(spans: pyparq.Dataset) -> None:
    for value in spans.read(["x"]).to_pydict()["x"][:5]:
        found = ok("lookup", spans.root, "x", "--json", "--", str(value))
        assert found.count(f'"x": "{value}"') == 3
