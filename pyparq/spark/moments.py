"""Points in time in filters, with Spark's meaning: literals without a zone get one.

Text, dates, numpy's ``datetime64`` and Arrow's values are clock times in the session's zone
(``spark.sql.session.timeZone``). A ``datetime`` without a zone is in the zone of this Python process, as everywhere in
PySpark.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from pyparq.errors import FilterError
from pyparq.filters.expression import Expression, ValueTest
from pyparq.filters.times import Instant, timestamp_ns
from pyparq.filters.value_array import plain
from pyparq.format.types import LeafType
from pyparq.spark.zones import as_datetime64, instant_us, wall_us, zone_of

_MOMENTS = (str, dt.date, np.datetime64, Instant)


def in_zone(expression: Expression, leaf: LeafType, zone: str) -> Expression:
    """The test with its literals as UTC where the column, a ``leaf`` of this type, holds instants, and as clocks of the
    session's ``zone`` where it holds dates or times without a zone. ``zone`` is ``""`` where it is not known.

    Raises :class:`FilterError` for a literal that needs a zone that is not known.
    """
    if leaf.kind not in ("timestamp", "int96", "date"):
        return expression
    change = _to_instant if leaf.kind == "int96" or leaf.utc else _to_wall
    if not isinstance(expression, ValueTest):
        return expression
    return expression.with_literals(lambda value: _changed(value, change, zone))


def _changed(value: Any, change: Callable[[Any, str], Any], zone: str) -> Any:
    if hasattr(value, "as_py") and hasattr(value, "type"):  # pyarrow's scalars
        value = plain(value)
    return change(value, zone) if isinstance(value, _MOMENTS) and value == value else value


def _to_instant(value: Any, zone: str) -> Any:
    """A point in time as UTC."""
    if isinstance(value, dt.datetime) and not hasattr(value, "asm8") and value.tzinfo is None:
        return as_datetime64(_local_us(value))
    try:
        found = timestamp_ns(value)
    except ValueError:
        return value  # the comparison raises the error
    if found is None or found[1]:
        return value
    us, rest = divmod(found[0], 1000)
    instant = instant_us(int(us), zone_of(_known(zone, value)))
    exact = isinstance(rest, int) and rest and abs(instant) < 9_000_000_000_000_000
    return np.datetime64(1000 * instant + int(rest), "ns") if exact else as_datetime64(instant)


def _local_us(value: dt.datetime) -> int:
    """A clock of this process's zone, as PySpark reads it."""
    return int(time.mktime(value.timetuple())) * 1_000_000 + value.microsecond


def _to_wall(value: Any, zone: str) -> Any:
    """An instant as the session's clocks show it; what has no zone stays as it is."""
    if not isinstance(value, (dt.datetime, Instant)):
        return value
    found = timestamp_ns(value)
    if found is None or not found[1]:
        return value
    return as_datetime64(wall_us(int(found[0] // 1000), zone_of(_known(zone, value))))


def _known(zone: str, value: Any) -> str:
    if not zone:
        raise FilterError(
            f"{value!s} has no time zone, and a data source is not told that of the session: give the option "
            "time_zone, such as 'Europe/Berlin', or write the zone, as in '2024-01-31 12:00:00+01:00'"
        )
    return zone
