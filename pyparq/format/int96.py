"""INT96 timestamps: nanoseconds of the day (8 bytes), then the Julian day (4 bytes), both little-endian and signed.

The type is deprecated, but Impala, Hive and Spark have written many files with it. An instant is read in a chosen unit
(nanoseconds reach from 1677 to 2262 only). INT96_TIMESTAMP_ORDER (parquet.thrift, ColumnOrder) compares days, then
nanoseconds. That is the order of the instants if the nanoseconds stay within a day.

Spark has 64 bits of microseconds. It counts them from Julian day 0 when it writes, and that sum wraps around for the
last 6,681 years. What it stores then is a day long before any instant that 64 bits of microseconds hold, with
nanoseconds that are not positive. Such values are read as the instants that Spark meant, in each unit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

JULIAN_EPOCH = 2_440_588
"""Julian day number of 1970-01-01."""
IS_INT96 = b"pyparq:int96"
"""Metadata of a field that is INT96 in the file: instants in UTC by convention, though the type has no time zone."""
NS_PER_DAY = 86_400_000_000_000
UNIT_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_US_PER_DAY = NS_PER_DAY // 1000
_LONG_AGO = -((1 << 63) // _US_PER_DAY)
"""The day since 1970 in which 64 bits of microseconds begin, or the next one. What Spark wrapped is no later."""

Bytes = npt.NDArray[np.uint8]
Int64Array = npt.NDArray[np.int64]


def parts(values: Bytes) -> tuple[Int64Array, Int64Array]:
    """(days since 1970, nanoseconds) of rows of 12 bytes."""
    flat = np.ascontiguousarray(values).reshape(-1, 12)
    nanos = flat[:, :8].copy().view("<i8").reshape(-1)
    days = flat[:, 8:].copy().view("<i4").reshape(-1).astype(np.int64)
    return days - JULIAN_EPOCH, nanos


def instants(values: Bytes, unit: str) -> tuple[Int64Array, npt.NDArray[np.bool_]]:
    """Ticks of ``unit`` since the epoch (int64), with finer parts cut off towards the past, and a mask of the instants
    that fit int64. The others wrap around."""
    days, nanos = parts(values)
    found, fits = _counted(days, nanos, unit)
    old = np.flatnonzero(days <= _LONG_AGO)
    if unit != "ns" and len(old):
        microseconds, meant = _wrapped_by_spark(days[old], nanos[old])
        found[old[meant]] = microseconds[meant] // (UNIT_NS[unit] // 1000)
        fits[old[meant]] = True
    return found, fits


def _counted(days: Int64Array, nanos: Int64Array, unit: str) -> tuple[Int64Array, npt.NDArray[np.bool_]]:
    per_day = NS_PER_DAY // UNIT_NS[unit]
    ticks = nanos // UNIT_NS[unit]
    before = days < 0
    # Whole days towards the epoch: the ticks alone decide about the first day that fits only in part.
    days = days + before
    with np.errstate(over="ignore"):
        rest = ticks - before * per_day
        whole = days * per_day
        found = whole + rest
    most = (1 << 63) // per_day
    overflown = ((whole ^ found) & (rest ^ found)) < 0  # both summands have another sign than the sum
    return found, (days >= -most) & (days <= most) & ~overflown & (rest <= ticks)


def _wrapped_by_spark(days: Int64Array, nanos: Int64Array) -> tuple[Int64Array, npt.NDArray[np.bool_]]:
    """Microseconds since 1970 (int64) of what Spark wrapped around, and a mask of the values that it did wrap.

    Spark's division rounds towards 0: of a sum below 0, neither the day nor its nanoseconds are positive.
    """
    found, fits = _counted(days, nanos, "us")
    within_a_day = (nanos <= 0) & (nanos > -NS_PER_DAY)
    _, sums_fit = _counted(days + JULIAN_EPOCH, np.where(within_a_day, nanos, 0), "us")
    return found, ~fits & within_a_day & sums_fit  # 64 bits that wrap twice are right again


def from_ticks(values: npt.NDArray[Any], unit: str) -> tuple[Bytes, npt.NDArray[np.bool_]]:
    """Rows of 12 bytes for ticks of ``unit`` since the epoch, and a mask of the rows whose day fits 32 bits."""
    per_day = NS_PER_DAY // UNIT_NS[unit]
    days, ticks = np.divmod(values.astype(np.int64, copy=False), per_day)
    days = days + JULIAN_EPOCH
    out = np.empty((len(values), 12), np.uint8)
    out[:, :8] = (ticks * UNIT_NS[unit]).astype("<i8").view(np.uint8).reshape(-1, 8)
    out[:, 8:] = days.astype("<i4").view(np.uint8).reshape(-1, 4)
    return out, (days >= -(1 << 31)) & (days < 1 << 31)


def keys(values: Bytes) -> npt.NDArray[Any]:
    """Python integers that compare as INT96_TIMESTAMP_ORDER does."""
    days, nanos = parts(values)
    found: npt.NDArray[Any] = days.astype(object) * (1 << 64) + nanos.astype(object)
    return found


def decode_bounds(raw: list[bytes | None], unit: str) -> tuple[Int64Array, npt.NDArray[np.bool_]]:
    """Stored bounds as ticks of ``unit``, and a mask of the usable ones.

    Where the lower bound is as old as what Spark wrapped around, the order of the days is not the one of the instants.
    """
    fits = np.array([r is not None and len(r) == 12 for r in raw], bool)
    joined = b"".join([r if r is not None and len(r) == 12 else bytes(12) for r in raw])
    rows = np.frombuffer(joined, np.uint8).reshape(-1, 12)
    values, in_range = instants(rows, unit)
    return values, fits & in_range & (parts(rows)[0] > _LONG_AGO)
