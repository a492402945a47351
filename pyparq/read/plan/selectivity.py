"""Estimates the share of a chunk's rows that a test keeps, from statistics alone.

An index costs bytes to read. A test that keeps nearly all rows must not cost any: both specifications ask for no
overhead when a filter is not selective. So the estimate decides whether an index is asked. It never decides which rows
are kept.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.filters.leaf_tests import Test
from pyparq.index.bounds import Bounds

Shares = npt.NDArray[np.float64]

USELESS = 0.95
"""From this share on no index is read for a test."""

UNKNOWN = 0.5


def kept_shares(test: Test, bounds: Bounds) -> Shares:
    """A share between 0 and 1 for each part of ``bounds`` (float64). Values are assumed to be spread evenly between
    their bounds."""
    if test.asks_levels:
        return np.full(len(bounds), UNKNOWN)
    if test.none:
        return np.ones(len(bounds))  # few lists hold one given value
    if test.op in ("==", "in", "is_nan"):
        return np.zeros(len(bounds))
    counts, nulls = bounds.counts, bounds.null_counts
    known = (counts > 0) & (nulls >= 0)
    null_shares = np.where(known, nulls / np.maximum(counts, 1), 0.0)
    if test.op == "is_null":
        return null_shares
    present = 1.0 - null_shares
    if test.op in ("!=", "not in", "not starts_with", "not intersects box", "is_not_null", "is_not_nan"):
        return present
    if test.op == "intersects box":
        return np.full(len(bounds), UNKNOWN)
    if test.op == "starts_with":
        return np.where(bounds.has_bounds, UNKNOWN * present, UNKNOWN)
    below = _positions(bounds, test.literal)
    share = present * (below if test.op in ("<", "<=") else 1.0 - below)
    return np.where(bounds.has_bounds, share, UNKNOWN)


def _positions(bounds: Bounds, literal: Any) -> Shares:
    """The position of a literal between the two bounds of each part: 0 at the lower bound, 1 at the upper."""
    if bounds.mins.dtype == np.dtype(object):  # bytes, or integers of any length
        found = [_position(low, high, literal) for low, high in zip(bounds.mins, bounds.maxs, strict=True)]
        return np.array(found, np.float64)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        low, high = bounds.mins.astype(np.float64), bounds.maxs.astype(np.float64)
        spread = high - low
        places = (float(literal) - low) / spread
    usable = (spread > 0) & np.isfinite(spread)
    return np.where(usable, np.clip(np.where(usable, places, 0.0), 0.0, 1.0), UNKNOWN)


def _position(low: Any, high: Any, literal: Any) -> float:
    if isinstance(low, bytes):
        low, high, literal = _as_numbers(low, high, literal)
    try:
        low, high, literal = float(low), float(high), float(literal)
    except OverflowError:
        return UNKNOWN
    if not high > low or not isfinite(high - low):
        return UNKNOWN
    return min(max(float((literal - low) / (high - low)), 0.0), 1.0)


def _as_numbers(low: bytes, high: bytes, literal: bytes) -> tuple[int, int, int]:
    """The eight bytes behind the common prefix of both bounds, as numbers."""
    common = 0
    for a, b in zip(low, high, strict=False):
        if a != b:
            break
        common += 1
    if literal[:common] != low[:common]:
        return 0, 1, 0 if literal < low else 1
    part = slice(common, common + 8)
    first, second, third = (int.from_bytes(x[part].ljust(8, b"\0"), "big") for x in (low, high, literal))
    return first, second, third
