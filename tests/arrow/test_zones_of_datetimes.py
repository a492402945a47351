"""The zone of Python's datetimes is written where other machines know it, too."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import polars as pl
import pyarrow as pa
import pytest

import pyparq


class Named(dt.tzinfo):
    """A zone that says something odd of its name."""

    def __init__(self, key: object) -> None:
        self.key = key

    def utcoffset(self, when: dt.datetime | None) -> dt.timedelta:
        return dt.timedelta(hours=1)

    def dst(self, when: dt.datetime | None) -> None:
        return None


@pytest.mark.parametrize(
    ("zone", "written"),
    [
        (ZoneInfo("Europe/Berlin"), "Europe/Berlin"), (Named("Asia/Kathmandu"), "Asia/Kathmandu"),
        (Named("localtime"), "UTC"), (Named("posix/Europe/Berlin"), "UTC"), (Named("No/Such"), "UTC"),
        (Named("../etc/passwd"), "UTC"), (Named(7), "UTC"), (Named(""), "UTC"),
        (dt.timezone(dt.timedelta(hours=2)), "UTC"),
    ],
)  # fmt: skip
def test_a_zone_is_written_where_it_is_known(zone: dt.tzinfo, written: str) -> None:
    at = dt.datetime(2024, 7, 1, 12, tzinfo=zone)
    table = pyparq.table({"at": [at, None]})
    assert pa.table(table).schema.field("at").type == pa.timestamp("us", written)
    assert pl.DataFrame(table)["at"].to_list()[0] == at.astimezone(dt.UTC)
