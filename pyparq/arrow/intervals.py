"""Arrow's intervals as Parquet's INTERVAL (LogicalTypes.md): months, days and milliseconds, unsigned 32-bit each."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import fixed_column
from pyparq.errors import DataError
from pyparq.format.types import DataType

_NS_PER_MS = 1_000_000
_MOST = (1 << 32) - 1


def intervals(column: Column, target: DataType, name: str) -> Column:
    """A column of 12-byte intervals from one of months, of days and milliseconds, or of months, days and nanoseconds.

    Raises :class:`DataError` with the row for what INTERVAL cannot hold: negative parts, and times of day that are not
    whole milliseconds or beyond 49 days.
    """
    raw = np.ascontiguousarray(column.values())
    count, mask = column.length, column.valid_mask()
    months: npt.NDArray[Any] = np.zeros(count, np.int64)
    days: npt.NDArray[Any] = months
    ms: npt.NDArray[Any] = months
    exact = np.ones(count, np.bool_)
    words = raw.reshape(-1).view("<i4").reshape(count, column.type.byte_width // 4)
    if column.type.format == "tiM":
        months = words[:, 0]
    elif column.type.format == "tiD":
        days, ms = words[:, 0], words[:, 1]
    else:
        months, days = words[:, 0], words[:, 1]
        ns = raw.reshape(-1).view("<i8").reshape(count, 2)[:, 1]
        ms, rest = np.divmod(ns, _NS_PER_MS)
        exact = rest == 0
    ok = exact & (months >= 0) & (days >= 0) & (ms >= 0) & (ms <= _MOST)
    bad = ~ok if mask is None else ~ok & mask
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(
            f"row {row}: a Parquet INTERVAL has no negative parts and is exact to the millisecond only "
            f"({months[row]} months, {days[row]} days, {ms[row]} ms"
            f"{'' if exact[row] else ' and a fraction of a millisecond'})",
            column=name,
        )
    out = np.zeros((count, 3), "<u4")
    for k, part in enumerate((months, days, ms)):
        out[:, k] = part if mask is None else np.where(mask, part, 0)
    return fixed_column(target, out.view(np.uint8).reshape(count, 12), mask)
