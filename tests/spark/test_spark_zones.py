"""Zones in which clocks move by half an hour, or stand at a quarter, beside Spark's own reader, row by row."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

pytest_plugins = ("spark_session",)
pytestmark = pytest.mark.spark

SWITCHES = {
    "Europe/Berlin": ["2024-03-31T01:00", "2024-10-27T01:00", "1893-03-31T23:06:32"],
    "Australia/Lord_Howe": ["2024-04-06T15:00", "2024-10-05T15:30", "1981-02-28T14:00"],
    "Asia/Kathmandu": ["1985-12-31T18:30", "1919-12-31T18:18:44"],
}
"""Moments (UTC) at which clocks there were moved: by an hour, by half an hour, by a quarter, and by odd seconds."""


def moments(zone: str) -> list[dt.datetime]:
    """Every quarter of an hour around the switches, and others, in UTC."""
    chance = random.Random(zone)
    switches = [dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC) for text in SWITCHES[zone]]
    around = [moment + dt.timedelta(minutes=15 * k) for moment in switches for k in range(-8, 9)]
    return around + [
        dt.datetime(1950, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=chance.randrange(3 * 10**15))
        for _ in range(50)
    ]


def shown(frame: Any) -> list[Any]:
    return sorted(
        tuple(row) for row in frame.selectExpr("id", "string(ts)", "unix_micros(ts)", "string(ntz)").collect()
    )


def conditions(zone: str, chance: random.Random) -> list[str]:
    """Comparisons with clocks of the zone as text, also with those that it skips and those that it shows twice."""
    found = []
    for moment in chance.sample(moments(zone), 24):
        clock = f"{moment.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M:%S.%f}"
        column, op = chance.choice(["ts", "ntz"]), chance.choice(["=", "<", "<=", ">", ">=", "!="])
        kind = "" if chance.random() < 0.5 else "timestamp" if column == "ts" else "timestamp_ntz"
        found.append(f"{column} {op} {kind}'{clock}'")
        found.append(f"date(ts) = date'{clock[:10]}'")
        skipped = moment + dt.timedelta(minutes=chance.choice([-30, 15, 30]))
        found.append(f"ts {op} '{skipped.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M}'")
    return found


@pytest.mark.sweep(3)
@pytest.mark.parametrize(("zone", "ansi"), list(zip(SWITCHES, ("true", "false", "false"), strict=True)))
def test_reads_writes_and_filters(usual: Any, ps: Any, tmp_path: Path, zone: str, ansi: str) -> None:
    usual.conf.set("spark.sql.session.timeZone", zone)
    usual.conf.set("spark.sql.ansi.enabled", ansi)
    chance = random.Random(f"{zone} 1")
    rows = [(k, moment.isoformat()) for k, moment in enumerate(moments(zone))]
    frame = usual.createDataFrame(rows, "id int, text string").selectExpr(
        "id", "timestamp(text) ts", "cast(timestamp(text) as timestamp_ntz) ntz"
    )
    frame.coalesce(1).write.parquet(str(tmp_path / "theirs"))
    ps.write(frame.coalesce(1), tmp_path / "ours", bloom_filters=["ts", "ntz"], max_rows_per_page=7)
    wanted = shown(usual.read.parquet(str(tmp_path / "theirs")))
    assert len(wanted) == len(rows)
    asked = conditions(zone, chance)
    for name in ("theirs", "ours"):
        own = usual.read.parquet(str(tmp_path / name))
        assert shown(own) == wanted
        for engine in ("pyparq", "spark"):
            assert shown(ps.read(usual, tmp_path / name, engine=engine, small=0)) == wanted
        counts = own.selectExpr(*(f"count_if({condition})" for condition in asked)).first()
        assert [ps.count(usual, tmp_path / name, condition) for condition in asked] == list(counts)
        for condition in asked[:3]:
            assert shown(ps.read(usual, tmp_path / name, filters=condition)) == shown(own.where(condition)), condition
    assert sum(1 for number in counts if 0 < number < len(rows)) > 0
