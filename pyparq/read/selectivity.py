"""Guess what share of a chunk's rows a test keeps, from its statistics alone.

An index costs bytes to read. A test that keeps nearly everything must not cost any (a goal of both specifications: no
overhead when not selective), so the guess decides whether an index is asked at all. It never decides which rows are
kept.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

from pyparq.filters.predicate import Test
from pyparq.index.bounds import Bounds

USELESS = 0.95
"""From this share on no index is read for a test."""

_UNKNOWN = 0.5


def kept_share(test: Test, bounds: Bounds, k: int) -> float:
    """Between 0 and 1, for part ``k`` of ``bounds``; values are taken to be spread evenly between their bounds."""
    if test.asks_levels:
        return _UNKNOWN
    if test.none:
        return 1.0  # few lists hold any one value
    count, nulls = int(bounds.counts[k]), int(bounds.null_counts[k])
    null_share = nulls / count if count > 0 and nulls >= 0 else 0.0
    if test.op == "is_null":
        return null_share
    present = 1.0 - null_share
    if test.op in ("==", "in", "is_nan"):
        return 0.0
    if test.op in ("!=", "not in", "not starts_with", "is_not_null", "is_not_nan"):
        return present
    if not bounds.has_bounds[k]:
        return _UNKNOWN
    low, high, literal = bounds.mins[k], bounds.maxs[k], test.literal
    if test.op == "starts_with":
        return _UNKNOWN * present
    below: float = _position(low, high, literal)
    return present * (below if test.op in ("<", "<=") else 1.0 - below)


def _position(low: Any, high: Any, literal: Any) -> float:
    """Where a literal stands between two bounds: 0 at the lower, 1 at the upper."""
    if isinstance(low, bytes):
        low, high, literal = _as_numbers(low, high, literal)
    try:
        low, high, literal = float(low), float(high), float(literal)
    except OverflowError:  # decimals of any length are Python integers
        return _UNKNOWN
    if not high > low or not isfinite(high - low):
        return _UNKNOWN
    return min(max(float((literal - low) / (high - low)), 0.0), 1.0)


def _as_numbers(low: bytes, high: bytes, literal: bytes) -> tuple[int, int, int]:
    """Eight bytes behind the common prefix of the bounds, as numbers."""
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
