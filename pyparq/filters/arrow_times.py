"""Exact points in time from Arrow's scalars and arrays. As Python objects they would lose nanoseconds, or need
pandas."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyparq.arrow.exchange import arrays_from_arrow, column_from_nanoarrow, field_from_nanoarrow
from pyparq.filters.temporal import UNIT_NS, Instant
from pyparq.format.types import DataType

_TYPES = ("timestamp[", "time64[", "date64[", "duration[", "Datetime(", "Duration(", "Time")
"""Prefixes of the type names in pyarrow, pandas (over pyarrow) and polars."""


def exact_scalar(scalar: Any) -> Any:
    """The value of a pyarrow scalar. ``None`` if it is null or no point in time."""
    name, ticks = str(scalar.type), getattr(scalar, "value", None)
    if not name.startswith(_TYPES) or ticks is None:
        return None
    unit = name[name.index("[") + 1 :].split("]")[0].split(",")[0]
    return _exact(name.split("[")[0], unit, "tz=" in name, ticks)


def exact_values(values: Any) -> tuple[Any, ...] | None:
    """The values of an array or series of points in time, ``None`` for nulls. ``None`` for anything else."""
    if not str(getattr(values, "type", getattr(values, "dtype", ""))).startswith(_TYPES):
        return None
    if not (hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__")):
        return None
    schema, arrays = arrays_from_arrow(values)
    type_ = field_from_nanoarrow(schema).type
    if type_.dictionary is not None or type_.kind not in ("timestamp", "time", "date", "duration"):
        return None
    found: list[Any] = []
    for array in arrays:
        column = column_from_nanoarrow(array, type_)
        valid = column.valid_mask()
        ticks = column.values().tolist()
        known = [True] * len(ticks) if valid is None else valid.tolist()
        found += [_of_type(type_, tick) if there else None for tick, there in zip(ticks, known, strict=True)]
    return tuple(found)


def _of_type(type_: DataType, ticks: int) -> Any:
    kind = type_.kind if type_.format != "tdm" else "date64"
    return _exact(kind, type_.unit or "D", bool(type_.timezone), ticks)


def _exact(kind: str, unit: str, aware: bool, ticks: int) -> Any:
    if kind == "timestamp":
        return Instant(ticks * UNIT_NS[unit], aware)
    if kind == "date64":
        return Instant(ticks * UNIT_NS["ms"], False)
    return np.array(ticks, "M8[D]" if kind == "date" else f"m8[{unit}]")[()]
