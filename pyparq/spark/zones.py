"""Time zones by Spark's names, and the instants of clock times in them, as ``java.time`` computes them.

A clock time that is skipped (when daylight saving begins) is moved later by the skipped time. A clock time that occurs
twice is the first of the two. Old times have the zone's local mean time.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np

from pyparq.errors import OptionError
from pyparq.format.hybrid_calendar import java_zone

_CYCLE_YEARS = 400
_CYCLE_SECONDS = 146_097 * 86_400
"""The Gregorian calendar repeats after so long."""
_FIRST, _LAST = -62_135_596_800, 253_402_300_799
"""Seconds of the years 1 to 9999, which are all that Python's dates have."""


def zone_of(name: str) -> dt.tzinfo:
    """The zone with Java's name: a region, an offset or a short name.

    Raises :class:`OptionError` for a name that this machine has no zone for.
    """
    found = java_zone(name)
    if found is None:
        raise OptionError(
            f"the time zone {name!r} is not known to this machine's Python: give spark.sql.session.timeZone a region "
            "like 'Europe/Berlin' or an offset like '+02:00' (pip install tzdata brings the regions)"
        )
    return found


def offset_at(wall: int, zone: dt.tzinfo) -> int:
    """Seconds by which a clock of the zone is ahead of UTC while it shows ``wall`` (seconds since 1970)."""
    cycles = 0
    if not _FIRST <= wall <= _LAST:  # as in the first and in the last four centuries that Python knows
        year_one = wall < _FIRST
        start = _FIRST if year_one else _LAST + 1 - _CYCLE_SECONDS
        cycles = (wall - start) // _CYCLE_SECONDS
    shown = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=wall - cycles * _CYCLE_SECONDS)
    offset = zone.utcoffset(shown) if isinstance(zone, dt.timezone) else shown.replace(tzinfo=zone).utcoffset()
    assert offset is not None  # zones have offsets at all times
    return offset.days * 86_400 + offset.seconds


def instant_us(wall: int, zone: dt.tzinfo) -> int:
    """Microseconds since 1970 in UTC when a clock of the zone shows ``wall``, microseconds since 1970."""
    return wall - 1_000_000 * offset_at(wall // 1_000_000, zone)


def wall_us(instant: int, zone: dt.tzinfo) -> int:
    """What a clock of the zone shows at ``instant``; both microseconds since 1970."""
    seconds = instant // 1_000_000
    cycles = 0
    if not _FIRST + 86_400 <= seconds <= _LAST - 86_400:
        start = _FIRST + 86_400 if seconds < 0 else _LAST - 86_400 - _CYCLE_SECONDS
        cycles = (seconds - start) // _CYCLE_SECONDS
    there = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=seconds - cycles * _CYCLE_SECONDS)
    offset = there.astimezone(zone).utcoffset()
    assert offset is not None
    return instant + 1_000_000 * (offset.days * 86_400 + offset.seconds)


def as_datetime64(us: int) -> Any:
    """Microseconds since 1970 as numpy's ``datetime64``."""
    return np.datetime64(us, "us")
