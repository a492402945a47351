"""The hybrid calendar of old Spark files: Julian before 15 October 1582, Gregorian from then on.

Spark before 3.0, and later ones in legacy mode, store a day as the number that the hybrid calendar gives its date. They
store a point in time as what a clock of a time zone shows, counted by that calendar. Before 1900 that clock runs by the
zone's standard time of today. The format, like Spark today, has the Gregorian calendar for all days, and the zone's own
time at all times. So each stored value is moved by a shift that is constant between a few switches.

A move is not quite monotonic: two stored days may mean one day (29 February 1000 is 1 March), and clocks were set back.
"""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyparq.errors import UnsupportedError
from pyparq.format.int96 import UNIT_NS, Int64Array
from pyparq.format.types import LeafType

_SHORT = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh", "EST": "-05:00", "MST": "-07:00", "HST": "-10:00",
    "Z": "+00:00", "UTC": "+00:00", "GMT": "+00:00", "UT": "+00:00",
}  # fmt: skip
"""Short names that Java accepts as zones (``ZoneId.SHORT_IDS``)."""

_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{1,2}))?(?::?(\d{1,2}))?", re.ASCII)


@lru_cache(maxsize=64)
def java_zone(name: str) -> dt.tzinfo | None:
    """The zone with this name in Java: a region, an offset or a short name. ``None`` if this machine has no such
    zone."""
    text = _SHORT.get(name, name)
    found = _OFFSET.fullmatch(text)
    if found is not None:
        hours, minutes, seconds = (int(part or 0) for part in found.groups()[1:])
        offset = dt.timedelta(hours=hours, minutes=minutes, seconds=seconds)
        if offset <= dt.timedelta(hours=18):
            return dt.timezone(-offset if found[1] == "-" else offset)
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        return None


LOCAL = "local"
"""Stands for the zone of this process. Spark uses its own zone where a file names none."""

VERSION = b"org.apache.spark.version"
LEGACY_DATES, LEGACY_INT96 = b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96"
TIME_ZONE = b"org.apache.spark.timeZone"
"""Spark's keys in the metadata of files that it writes."""
ROW_METADATA = b"org.apache.spark.sql.parquet.row.metadata"
"""Spark's own schema, also in files that are made from its rows."""

Range = tuple[int | None, int | None]
"""The first and the last value of a range. ``None`` for an open end."""

_DAY = 86_400
_JULIAN_MARCH, _AHEAD = -719_470, 2
"""The Julian 1 March of year 0, in days since 1970, and the days by which the Gregorian one is later."""
_FIRST_CENTURY = -59_000
"""Before all days of 32 bits and all microseconds of 64."""
_REFORM = -141_427
"""15 October 1582, the first Gregorian day."""
_1900 = -2_208_988_800
"""Seconds of the year 1900. From then on, Java's older classes know the real clock times."""
_OLDEST = -5_364_662_400
"""Seconds of the year 1800: no zone had standard time before."""
_STANDARD_YEAR = 1_546_300_800
"""Seconds of the year 2019, in which Spark's tables were made. Standard time is the one of that year."""
_MONTH = 30 * _DAY
_UNMOVED = _1900 + 2 * _DAY
"""Seconds from which on nothing is moved, and to which nothing is."""


class Hybrid(NamedTuple):
    """The columns of a file that are in the hybrid calendar, and the zone of its timestamps."""

    dates: bool
    int96: bool
    zone: str

    def has(self, leaf: LeafType) -> bool:
        """Whether Spark stores values of this type in the hybrid calendar. Local times never are."""
        if leaf.kind == "int96":
            return self.int96
        return self.dates and (leaf.kind == "date" or (leaf.kind == "timestamp" and leaf.utc and leaf.unit != "ns"))


def is_of_spark(key_values: Mapping[bytes, bytes]) -> bool:
    """Whether the rows of the file came from Spark, whose timestamps have microseconds."""
    return VERSION in key_values or ROW_METADATA in key_values


def hybrid_of(key_values: Mapping[bytes, bytes]) -> Hybrid | None:
    """The hybrid columns of a file by its key-value metadata, read as Spark reads it. ``None`` if there are none."""
    version = key_values.get(VERSION)
    if version is None:
        return None
    dates = version < b"3.0.0" or LEGACY_DATES in key_values
    int96 = version < b"3.1.0" or LEGACY_INT96 in key_values
    zone = key_values.get(TIME_ZONE, b"").decode("utf-8", "replace") or LOCAL
    return Hybrid(dates, int96, zone) if dates or int96 else None


def without_hybrid(key_values: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """The metadata without the notes on the hybrid calendar, for rows that were converted to the Gregorian one."""
    if hybrid_of(key_values) is None:
        return dict(key_values)
    gone = [LEGACY_DATES, LEGACY_INT96, TIME_ZONE]
    gone += [VERSION] if key_values[VERSION] < b"3.1.0" else []
    return {key: value for key, value in key_values.items() if key not in gone}


class Calendar(NamedTuple):
    """``shifts[k]`` is added to stored values from ``switches[k - 1]`` on, and up to ``switches[k]``."""

    switches: Int64Array
    shifts: Int64Array


def to_gregorian(values: npt.NDArray[Any], leaf: LeafType) -> npt.NDArray[Any]:
    """Stored days or ticks in the Gregorian calendar. The same array if none of them moves.

    Values that leave their 64 bits wrap around. Raises :class:`UnsupportedError` for an old point in time in a zone
    that this machine does not know.
    """
    if not len(values) or int(values.min()) >= unmoved_from(leaf):
        return values
    calendar = calendar_of(leaf)
    shifts = calendar.shifts[np.searchsorted(calendar.switches, values, side="right")]
    return np.asarray((values + shifts).astype(values.dtype)) if shifts.any() else values


def meant(leaf: LeafType, value: int) -> int:
    """The Gregorian value of one stored value, for display. If its zone is unknown, the stored value."""
    try:
        return int(to_gregorian(np.array([value], np.int64), leaf)[0])
    except UnsupportedError:
        return value


def stored_up_to(leaf: LeafType, value: int) -> list[Range]:
    """The ranges of stored values that mean ``value`` or less, ascending and disjoint."""
    if value >= unmoved_from(leaf):
        return [(None, value)]
    switches, shifts = calendar_of(leaf)
    reach = int(np.abs(shifts).max())
    first, last = (int(np.searchsorted(switches, at, "right")) for at in (value - reach, value + reach))
    found: list[Range] = [(None, int(switches[first - 1]) - 1)] if first else []
    for k in range(first, last + 1):
        begin = int(switches[k - 1]) if k else None
        end = value - int(shifts[k])
        if k < len(switches):
            end = min(end, int(switches[k]) - 1)
        if begin is None or begin <= end:
            joined = bool(found) and begin is not None and found[-1][1] == begin - 1
            found.append((found.pop()[0] if joined else begin, end))
    return found


def stored_above(leaf: LeafType, value: int) -> list[Range]:
    """The ranges of stored values that mean more than ``value``, ascending and disjoint: all other values."""
    below = stored_up_to(leaf, value)
    ends = [end + 1 for _, end in below if end is not None]
    begins = [begin - 1 for begin, _ in below if begin is not None]
    return list(zip(ends, [*begins, None], strict=True))


def stored_values(leaf: LeafType, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """All stored values, sorted and distinct, that mean one of ``values``."""
    old = values[values < unmoved_from(leaf)].astype(np.int64)
    if not len(old):
        return np.unique(values)
    switches, shifts = calendar_of(leaf)
    reach = int(np.abs(shifts).max())
    first = int(np.searchsorted(switches, int(old.min()) - reach, "right"))
    last = int(np.searchsorted(switches, int(old.max()) + reach, "right"))
    found = [values[values >= unmoved_from(leaf)]]
    for k in range(first, last + 1):
        moved = old - shifts[k]
        found.append(moved[np.searchsorted(switches, moved, "right") == k])
    return np.unique(np.concatenate(found)).astype(values.dtype)


def meant_range(leaf: LeafType, low: int, high: int) -> tuple[int, int]:
    """The smallest and the largest value that stored values from ``low`` to ``high`` may mean."""
    if low >= unmoved_from(leaf):
        return low, high
    switches, shifts = calendar_of(leaf)
    first, last = (int(np.searchsorted(switches, value, "right")) for value in (low, high))
    moves = shifts[first : last + 1]
    starts, ends = np.append(low, switches[first:last]), np.append(switches[first:last] - 1, high)
    return int((starts + moves).min()), int((ends + moves).max())


def unmoved_from(leaf: LeafType) -> int:
    """From this value on, a stored value means itself, and no other stored value means it."""
    return _REFORM if leaf.kind == "date" else _UNMOVED * (10**9 // UNIT_NS[leaf.unit or "ns"])


def calendar_of(leaf: LeafType) -> Calendar:
    """The switches of the calendar in which a leaf is stored, in its unit.

    Raises :class:`UnsupportedError` for the name of a zone that this machine does not know.
    """
    if leaf.kind == "date":
        return _of_days()
    own = os.environ.get("TZ", "") if leaf.hybrid == LOCAL else ""
    return _of_ticks(leaf.hybrid, own, 10**9 // UNIT_NS[leaf.unit or "ns"])


@lru_cache(maxsize=1)
def _of_days() -> Calendar:
    centuries = np.arange(_FIRST_CENTURY, 16)
    centuries = centuries[centuries % 4 != 0]  # in other years both calendars have a 29 February
    switches = 36_525 * centuries + _JULIAN_MARCH
    shifts = _AHEAD - centuries + centuries // 4
    return Calendar(np.append(switches, _REFORM), np.concatenate(([shifts[0] + 1], shifts, [0])))


@lru_cache(maxsize=64)
def _of_ticks(zone: str, own: str, per_second: int) -> Calendar:
    """``own``: the zone of this process, where that is meant."""
    clock = _zone(zone)
    standard = min(_offset(_STANDARD_YEAR + k * 5 * _DAY, clock) for k in range(73))
    oldest, changes = _offsets(clock)
    days = _of_days()
    switches = days.switches * _DAY - standard
    shifts = days.shifts * _DAY + (standard - oldest)
    later = [(at + offset - standard, standard - offset) for at, offset in changes]
    later = [(at, shift) for at, shift in later if at < _1900] + [(_1900, 0)]
    switches = np.append(switches, [at for at, _ in later])
    shifts = np.append(shifts, [shift for _, shift in later])
    held = np.abs(switches) < (1 << 63) // per_second - _MONTH
    return Calendar(switches[held] * per_second, shifts[np.append(held, True)] * per_second)


def _zone(name: str) -> dt.tzinfo | None:
    """A time zone by its name. ``None`` means the zone of this process."""
    if name == LOCAL:
        return None
    if name.startswith(("+", "-", "UTC+", "UTC-", "UT+", "UT-")):
        return dt.UTC  # Spark asks an older Java class here, which does not take offsets without GMT for zones.
    found = java_zone(name)
    if found is None:
        raise UnsupportedError(
            f"the file has timestamps before 1900 as clocks of the time zone {name!r} showed them (the key "
            "org.apache.spark.timeZone), but this machine's Python does not know that zone: pip install tzdata"
        )
    return found


def _offset(seconds: int, zone: dt.tzinfo | None) -> int:
    """Seconds by which clocks in the zone are ahead of UTC."""
    at = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=seconds)
    offset = at.astimezone(zone).utcoffset()
    assert offset is not None  # zones have offsets at all times
    return offset.days * _DAY + offset.seconds


def _offsets(zone: dt.tzinfo | None) -> tuple[int, list[tuple[int, int]]]:
    """The first offset of a zone, and the seconds before 1900 when it changed, with the offsets from then on."""
    start, offset = _OLDEST, _offset(_OLDEST, zone)
    oldest, found = offset, []
    while start < _1900:
        end = min(start + _MONTH, _1900)
        if _offset(end, zone) != offset:
            low, high = start, end
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if _offset(middle, zone) == offset else (low, middle)
            offset = _offset(end, zone)
            found.append((high, offset))
        start = end
    return oldest, found
