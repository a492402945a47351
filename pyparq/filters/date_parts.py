"""Parts of points in time and times of day, which come as exact numbers of days."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.filters.exact_numbers import Exact

_OF_CLOCK = {"hour": 24, "minute": 24 * 60, "second": 24 * 3600}
_WITHIN = {"hour": 24, "minute": 60, "second": 60}


def part_of(name: str, moments: Exact) -> npt.NDArray[Any]:
    """``year``, ``month`` and so on, in UTC, as int64."""
    ticks, per_day = moments.num.astype(np.int64), int(moments.den)
    days = ticks // per_day
    if name in _OF_CLOCK:
        return np.asarray((ticks - days * per_day) * _OF_CLOCK[name] // per_day % _WITHIN[name])
    dates = days.astype("M8[D]")
    if name == "year":
        return dates.astype("M8[Y]").astype(np.int64) + 1970
    months = dates.astype("M8[M]")
    if name == "day":
        return np.asarray((dates - months.astype("M8[D]")).astype(np.int64) + 1)
    month = months.astype(np.int64) % 12
    return np.asarray(month // 3 + 1 if name == "quarter" else month + 1)


def year_of(ticks: int, per_day: int) -> int:
    """The year of one point in time of any size, in the proleptic Gregorian calendar."""
    days = ticks // per_day + 719_468  # since 0000-03-01
    era, day = divmod(days, 146_097)
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    in_year = day - (365 * year + year // 4 - year // 100)
    return 400 * era + year + (in_year >= 306)
