"""Statistics of column chunks: which ones to believe when reading, and how to build them when writing. And bounds of
several parts (pages or column chunks) of one leaf as arrays, ready for the evaluation of tests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.format import ttypes as tt
from pyparq.format.chunk_numbers import BoundPlaces, ChunkNumbers
from pyparq.format.hybrid_calendar import meant_range
from pyparq.format.order import (
    FLOAT_KINDS,
    BoolArray,
    Int64Array,
    Order,
    bound_dtype,
    can_truncate,
    decode_bound_pairs,
    domain,
    native_order,
    number_layout,
)
from pyparq.format.types import LeafType, Physical

UNORDERED, ASCENDING, DESCENDING = 0, 1, 2
"""Numbers of ``BoundaryOrder`` (parquet.thrift)."""


@dataclass(slots=True)
class Bounds:
    """What statistics or a ColumnIndex state about ``n`` parts of one leaf: the pages of a chunk, or whole chunks.

    ``mins`` and ``maxs`` hold values in the leaf's comparable domain (:mod:`pyparq.format.order`). An entry is valid
    only where ``has_bounds`` is set. There, every value that is neither null nor NaN lies within ``[min, max]``. The
    bounds themselves need not occur.
    """

    leaf: LeafType
    mins: npt.NDArray[Any]
    maxs: npt.NDArray[Any]
    has_bounds: BoolArray
    null_counts: Int64Array
    """Nulls per part (int64), null ancestors and empty lists included. -1 where unknown."""
    nan_counts: Int64Array
    """NaNs per part (int64). -1 where unknown, 0 for types without NaN."""
    counts: Int64Array
    """Slots per part, nulls included; -1 where it is not known."""
    all_null: BoolArray
    """True where the part certainly holds only nulls, or nothing."""
    boundary_order: int = UNORDERED
    """``ASCENDING`` or ``DESCENDING`` only if the bounds are really in that order. This is checked."""
    definition_histograms: Int64Array | None = None
    """``[n, max_definition_level + 1]`` counts of each level, where the file has them."""
    repetition_histograms: Int64Array | None = None
    """``[n, max_repetition_level + 1]`` counts of each level, where the file has them."""

    def __len__(self) -> int:
        return len(self.has_bounds)

    def at(self, places: Int64Array) -> Bounds:
        """The bounds of the parts with these numbers, in this order. Numbers may repeat."""
        per_part = ("mins", "maxs", "has_bounds", "null_counts", "nan_counts", "counts", "all_null")
        return Bounds(self.leaf, *(getattr(self, name)[places] for name in per_part))

    def learn_of_nan(self, created_by: str | None) -> Bounds:
        """Count no NaN where there are bounds, if NaN leaves none: DuckDB does not write them, and to parquet-mr since
        1.10 NaN is the largest number (in statistics; there is no ColumnIndex)."""
        if self.leaf.physical in (Physical.FLOAT, Physical.DOUBLE) and created_by:
            name, version, _ = parse_created_by(created_by)
            if version is not None and (name == "duckdb" or (name == "parquet-mr" and version >= (1, 10, 0))):
                self.nan_counts = np.where(self.has_bounds & (self.nan_counts < 0), 0, self.nan_counts)
        return self


def gregorian(bounds: Bounds) -> Bounds:
    """The same bounds in the Gregorian calendar, if the file stores them in the hybrid one. Raises
    :class:`pyparq.UnsupportedError` for a time zone that this machine does not know."""
    if not bounds.leaf.hybrid:
        return bounds
    mins, maxs = bounds.mins.copy(), bounds.maxs.copy()
    for k in np.flatnonzero(bounds.has_bounds).tolist():
        mins[k], maxs[k] = meant_range(bounds.leaf, int(mins[k]), int(maxs[k]))
    same = np.array_equal(mins, bounds.mins) and np.array_equal(maxs, bounds.maxs)
    order = bounds.boundary_order if same else UNORDERED
    return replace(bounds, leaf=replace(bounds.leaf, hybrid=""), mins=mins, maxs=maxs, boundary_order=order)


__all__ = ["DEFAULT_TRUNCATE", "can_truncate", "truncate_max", "truncate_min"]

DEFAULT_TRUNCATE = 64
"""Bytes that a bound is cut to, as most writers do."""


def truncate_min(leaf: LeafType, value: bytes, length: int | None) -> bytes:
    """A lower bound of ``value`` with at most ``length`` bytes (``None``: the whole value)."""
    return kernels.shorter_min(native_order(leaf), value, -1 if length is None else length)


def truncate_max(leaf: LeafType, value: bytes, length: int | None) -> bytes:
    """An upper bound of ``value`` with at most ``length`` bytes. The whole value if there is none."""
    return kernels.shorter_max(native_order(leaf), value, -1 if length is None else length)


_BYTES_PHYSICAL = (Physical.BYTE_ARRAY, Physical.FIXED_LEN_BYTE_ARRAY)

_DIGITS = 9
"""Of a number in a version, at most."""
_VERSION = re.compile(r"v?(?P<numbers>\d+(?:\.\d+){0,2})(?P<rest>[^+]*)")


@lru_cache(maxsize=64)
def parse_created_by(created_by: str) -> tuple[str, tuple[int, int, int] | None, str]:
    """(application, version, pre-release suffix) from a ``created_by`` of the form ``<application> version <version>
    (build …)``.

    The application is lower case. The version is ``None`` if there is no readable one.
    """
    at = created_by.find("version")
    while at == 0 or (at > 0 and not created_by[at - 1].isspace()):
        at = created_by.find("version", at + 1)
    if at < 0:
        return created_by.strip().lower(), None, ""
    name = created_by[:at].strip().lower()
    version = _VERSION.match(created_by[at + len("version") :].partition("(")[0].strip())
    if version is None or max(map(len, version["numbers"].split("."))) > _DIGITS:
        return name, None, ""
    numbers = [int(n) for n in version["numbers"].split(".")] + [0, 0]
    return name, (numbers[0], numbers[1], numbers[2]), version["rest"].strip().lstrip("-")


def writer_is_trusted(leaf: LeafType, created_by: str | None) -> bool:
    """Whether this writer can be trusted with bounds of this leaf, in statistics and in the ColumnIndex.

    Known faults, with the issues of the public trackers:

    - parquet-mr before 1.8.0 (PARQUET-251): byte arrays kept a reference to a buffer that changed later. Cloudera's
      1.5.0-cdh5.5 and later builds have the fix.
    - DECIMAL on byte arrays compared in the wrong order: parquet-cpp and parquet-cpp-arrow before 4.0 (PARQUET-1655),
      ClickHouse before 25.8, polars and parquet-go (no correct version is known), and arrow-rs before 60 for BYTE_ARRAY
      only.
    - Integers of 128 bits of polars (2.1): the bytes of bounds are the other way round than those of values.
    """
    if not created_by or leaf.physical not in _BYTES_PHYSICAL:
        return True
    name, version, suffix = parse_created_by(created_by)
    if name == "parquet-mr":
        return version is not None and (
            (version, not suffix) >= ((1, 8, 0), True) or (version == (1, 5, 0) and _cloudera(suffix) >= (5, 5, 0))
        )
    if leaf.kind != "decimal":
        return not (name == "polars" and leaf.kind == "fixed" and leaf.length == 16)
    if name == "parquet-cpp-arrow":
        return version is not None and version >= (4, 0, 0)
    if name == "parquet-rs":
        return leaf.physical != Physical.BYTE_ARRAY or (version is not None and version >= (60, 0, 0))
    if name.startswith("clickhouse"):
        number = version or parse_created_by(f"clickhouse version {name.removeprefix('clickhouse')}")[1]
        return number is not None and number >= (25, 8, 0)
    return not (name in ("parquet-cpp", "polars") or "parquet-go" in name)


def _cloudera(suffix: str) -> tuple[int, ...]:
    found = re.match(r"cdh(\d+)\.(\d+)\.(\d+)", suffix)
    return tuple(int(n) for n in found.groups()) if found else (0, 0, 0)


def bounds_of_chunks(
    leaf: LeafType, metas: Sequence[tt.ColumnMetaData], column_order: int = Order.TYPE, created_by: str | None = None
) -> Bounds:
    """The :class:`Bounds` of the chunks of one leaf in several row groups, as far as their statistics can be believed.

    ``column_order`` is the result of :func:`pyparq.format.order.order_of` (``True`` and ``False`` stand for TYPE_ORDER
    and none).
    """
    modern, old = believed_bounds(leaf, column_order, created_by)
    mins: list[bytes | None] = []
    maxs: list[bytes | None] = []
    nulls: list[int] = []
    nans: list[int] = []
    for meta in metas:
        low, high = _stored_pair(meta.statistics, modern, old)
        mins.append(low)
        maxs.append(high)
        nulls.append(_count(meta.statistics, "null_count"))
        nans.append(_count(meta.statistics, "nan_count"))
    counts = np.array([meta.num_values for meta in metas], np.int64)
    bounds = bounds_of_stored(leaf, mins, maxs, np.array(nulls, np.int64), np.array(nans, np.int64), counts)
    bounds.definition_histograms = _level_histograms(metas)
    return bounds.learn_of_nan(created_by)


def bounds_of_numbers(
    leaf: LeafType,
    stack: Int64Array,
    places: BoundPlaces,
    column_order: int = Order.TYPE,
    created_by: str | None = None,
) -> Bounds:
    """As :func:`bounds_of_chunks`, but from arrays and without level histograms.

    ``stack`` has one array per kind of number, in the order of :class:`~pyparq.format.chunk_numbers.ChunkNumbers`.
    ``places``: the bytes that the places of bounds refer to.
    """
    modern, old = believed_bounds(leaf, column_order, created_by)
    width, kind = number_layout(leaf)
    if not width:
        lows, highs, usable = _bounds_as_bytes(leaf, ChunkNumbers(*stack), places, modern, old)
    else:
        low, high, usable = kernels.number_bounds(
            places.footers, places.of, places.shift, stack.reshape(-1), modern, old, width, kind
        )
        dtype = bound_dtype(leaf)
        lows, highs = low.view(dtype), high.view(dtype)
    nulls, nans, counts, all_null = kernels.chunk_counts(stack.reshape(-1), leaf.kind in FLOAT_KINDS)
    bounds = Bounds(leaf, lows, highs, usable, nulls, nans, counts, all_null)
    return bounds.learn_of_nan(created_by) if leaf.kind in FLOAT_KINDS else bounds


def _bounds_as_bytes(
    leaf: LeafType, numbers: ChunkNumbers, places: BoundPlaces, modern: bool, old: bool
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], BoolArray]:
    new = modern & ((numbers.min_value >= 0) | (numbers.max_value >= 0))
    absent = np.full(len(numbers.min), -1, np.int64)
    lows = np.where(new, numbers.min_value, numbers.min if old else absent)
    highs = np.where(new, numbers.max_value, numbers.max if old else absent)
    low_sizes = np.where(new, numbers.min_value_size, numbers.min_size)
    high_sizes = np.where(new, numbers.max_value_size, numbers.max_size)
    return decode_bound_pairs(leaf, places.bytes_at(lows, low_sizes), places.bytes_at(highs, high_sizes))


@lru_cache(maxsize=256)
def believed_bounds(leaf: LeafType, column_order: int, created_by: str | None) -> tuple[bool, bool]:
    """Two flags: whether ``min_value`` and ``max_value`` can be believed, and whether the deprecated ``min`` and
    ``max`` can be believed if the former are missing."""
    if column_order == Order.UNKNOWN or not writer_is_trusted(leaf, created_by):
        return False, False
    kind = domain(leaf)
    # Writers computed the deprecated pair by signed comparison.
    return bool(kind) and column_order in (Order.TYPE, Order.TOTAL, Order.INT96), kind in ("int", "float")


def bounds_of_stored(
    leaf: LeafType,
    mins: Sequence[bytes | None],
    maxs: Sequence[bytes | None],
    null_counts: npt.NDArray[np.int64],
    nan_counts: npt.NDArray[np.int64],
    num_values: npt.NDArray[np.int64],
) -> Bounds:
    """The :class:`Bounds` of chunks from stored bounds (``None`` where missing) and counts (-1 where missing)."""
    lows, highs, usable = decode_bound_pairs(leaf, mins, maxs)
    # A count above the number of values is wrong, and is treated as missing.
    nulls, nans = (np.where(found <= num_values, found, -1) for found in (null_counts, nan_counts))
    counts = np.maximum(num_values, -1)
    return Bounds(
        leaf, lows, highs, usable, nulls, nans if leaf.kind in FLOAT_KINDS else np.zeros_like(nans), counts,
        all_null=(counts >= 0) & (nulls == counts),
    )  # fmt: skip


def _level_histograms(metas: Sequence[tt.ColumnMetaData]) -> npt.NDArray[np.int64] | None:
    """Counts of each definition level in each chunk. ``None`` unless all chunks have them."""
    found: list[list[int]] = []
    for meta in metas:
        sizes = meta.size_statistics
        histogram = None if sizes is None else sizes.definition_level_histogram
        if not histogram or min(histogram) < 0 or len(histogram) != len((found or [histogram])[0]):
            return None
        found.append(histogram)
    return np.array(found, np.int64) if found else None


def _stored_pair(statistics: tt.Statistics | None, modern: bool, old: bool) -> tuple[bytes | None, bytes | None]:
    if statistics is None:
        return None, None
    if modern and (statistics.min_value is not None or statistics.max_value is not None):
        return statistics.min_value, statistics.max_value
    return (statistics.min, statistics.max) if old else (None, None)


def _count(statistics: tt.Statistics | None, name: str) -> int:
    """A count of a chunk, -1 when it is missing or negative."""
    stored = getattr(statistics, name, None)
    return stored if stored is not None and stored >= 0 else -1
