"""Filters of Spark reads mean what Spark shows: the table of test_filter_meaning.py, planned without a JVM."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from filter_meaning import NS, passes, rank_literal, rank_shown
from test_filter_meaning import LITERALS, TYPES, unwrapped, with_order, written

import pyparq
from pyparq import col
from pyparq.spark.question import Question, planned, replied

pytest.importorskip("pyspark")

SESSION = ZoneInfo("Europe/Berlin")
STORED = ("uuid", "bool8")
"""Shown as bytes and numbers in Spark; a filter may still name them by what they stand for."""
ASKED = [literal for literal in LITERALS if getattr(literal, "year", 1970) > 1]
"""Not those that are before the first year by the session's clocks: the oracle has no such time."""


def asked(folder: Path, filters: Any = None) -> Question:
    return Question(
        str(folder), None, filters, None, None, 8 << 20, None, "raise", True, None, False, zone="Europe/Berlin"
    )


def answer(folder: Path, filters: Any = None) -> pa.ChunkedArray:
    reply = replied(asked(folder, filters), lambda: 1)
    assert isinstance(reply.answer, bytes)  # type: ignore[union-attr]
    return pa.ipc.open_stream(reply.answer).read_all().column("x")  # type: ignore[union-attr]


def as_spark_means(literal: Any, type_: pa.DataType) -> Any:
    """A literal with the zone that Spark takes it to have: the session's, or this process's for a ``datetime``."""
    literal = unwrapped(literal)
    if pa.types.is_timestamp(type_) and type_.tz is not None:
        return _instant(literal)
    if not (pa.types.is_timestamp(type_) or pa.types.is_date(type_)) or not isinstance(literal, dt.datetime):
        return literal
    if literal.tzinfo is None:
        return literal
    return literal.astimezone(SESSION).replace(tzinfo=None)


def _instant(literal: Any) -> Any:
    if isinstance(literal, str):
        try:
            literal = dt.datetime.fromisoformat(literal) if literal[4:5] == "-" else literal
        except ValueError:
            return literal
        clock = isinstance(literal, dt.datetime) and literal.tzinfo is None
        return literal.replace(tzinfo=SESSION) if clock else literal
    if isinstance(literal, pa.TimestampScalar):
        literal = np.datetime64(literal.value * NS[literal.type.unit], "ns")
    if isinstance(literal, (pd.Timestamp, np.datetime64)):
        moment = pd.Timestamp(literal)
        return moment if moment.tzinfo else moment.tz_localize(SESSION)
    if isinstance(literal, dt.datetime):
        if literal.tzinfo:
            return literal
        # Not by astimezone(), which ends at the year 9999: the process may be west of Greenwich.
        return np.datetime64(int(time.mktime(literal.timetuple())) * 1_000_000 + literal.microsecond, "us")
    return dt.datetime.combine(literal, dt.time(), SESSION) if isinstance(literal, dt.date) else literal


@pytest.mark.sweep(7)
@pytest.mark.parametrize("name", [name for name in TYPES if name != "decimal"])  # Spark's have at most 38 digits
def test_a_read_in_spark(tmp_path: Path, name: str) -> None:
    for k, x in enumerate(TYPES[name]):
        written(tmp_path / f"{k}.parquet", x)
    shown = answer(tmp_path)
    type_ = pyparq.dataset(tmp_path).read().to_arrow().column("x").type if name in STORED else shown.type
    ranks = [rank_shown(scalar, shown.type) for chunk in shown.chunks for scalar in chunk]
    wrong = []
    for literal in ASKED:
        rank = rank_literal(as_spark_means(literal, type_), type_)
        try:
            found = len(answer(tmp_path, [("x", "<=", literal)]))
        except pyparq.FilterError as error:
            wrong += [f"{literal!r}: {error}"] if rank is not None else []
            continue
        expected = None if rank is None else sum(passes("<=", value, rank) is True for value in ranks)
        wrong += [f"{literal!r}: {found}, not {expected}"] if found != expected else []
    assert not wrong, shown.type


def test_sql_with_intervals(tmp_path: Path) -> None:
    for unit in ("s", "us"):
        written(tmp_path / f"{unit}.parquet", pa.array([1, 90, None], pa.duration("s")).cast(pa.duration(unit)))
    assert answer(tmp_path, "X > INTERVAL '1' MINUTE").to_pylist() == [dt.timedelta(seconds=90)] * 2


def test_what_spark_pushes_and_we_cannot_answer_is_left_to_spark(tmp_path: Path) -> None:
    written(tmp_path / "a.parquet", with_order(["low", "high", None]))
    plan, _ = planned(asked(tmp_path), col("x") < "low")
    assert plan.scan().count() == 3
    assert planned(asked(tmp_path), col("x") == "low")[0].scan().count() == 1
    with pytest.raises(pyparq.FilterError, match=r"give a str.*column x"):
        planned(asked(tmp_path, col("x") == 5), col("x") == "low")
