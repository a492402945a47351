"""What bounds prove about a test. For each page or chunk: can some row pass, and must all rows pass?

Both answers are one-sided. ``some`` is False only where no row can pass. ``all`` is True only where every row passes,
whatever values lie between the bounds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyparq.filters.predicate import AT_LEAST, BOX_OPS, Test
from pyparq.format.order import FLOAT_KINDS, domain
from pyparq.index.bounds import Bounds, Int64Array

BoolArray = npt.NDArray[np.bool_]


class Verdict(NamedTuple):
    """``some[k]``: a row of part k may pass. ``all[k]``: every row of part k passes."""

    some: BoolArray
    all: BoolArray


_NAN_PASSES = frozenset((">", ">=", "!=", "not in"))
"""NaN lies above every number, so it passes these operators whatever the literal is. (The literal is never NaN.)"""


def evaluate_bounds(test: Test, bounds: Bounds) -> Verdict:
    """The verdict on each of the ``n`` parts that ``bounds`` describes.

    ``all`` needs a null count that is known and zero. For floats where a NaN would not pass, it needs such a NaN count
    too. Unknown counts are -1 in ``bounds`` and never prove anything.
    """
    verdict = _of_stored(test, bounds)
    if not test.leaf.nulls_beyond:
        return verdict
    # Values that do not fit the type are read as nulls. Neither bounds nor null counts include them.
    nulls_pass = test.op in ("is_null", "null_items")
    return Verdict(verdict.some | (nulls_pass and not test.none), np.zeros(len(bounds), bool))


def _of_stored(test: Test, bounds: Bounds) -> Verdict:
    if test.op == "null_items":
        return _by_null_levels(test, bounds)
    if test.asks_levels:
        return _by_levels(test, bounds)
    if test.node.max_rep == 0:
        return _by_values(test, bounds)
    # In lists, a row passes if any item does. Bounds cannot tell that every row has such an item.
    nowhere = ~_by_values(test, bounds).some
    nothing = np.zeros(len(bounds), bool)
    return Verdict(~nothing, nowhere & _all_there(test, bounds)) if test.none else Verdict(~nowhere, nothing)


def found_at_bounds(test: Test, bounds: Bounds) -> BoolArray:
    """The parts where the lower or the upper bound itself passes, so that a value probably passes.

    A bound need not be a value: a writer may state wider bounds, and cuts byte strings short. So this only tells that
    looking at single values is not worth it.
    """
    found = np.zeros(len(bounds), bool)
    if test.op not in ("!=", "<", "<=", ">", ">=") or domain(test.leaf) not in ("int", "uint", "float", "decimal"):
        return found
    known = bounds.has_bounds
    low, high = bounds.mins[known], bounds.maxs[known]
    found[known] = (low != high) if test.op == "!=" else _compare(test, low, high)[0]
    return found


def _by_levels(test: Test, bounds: Bounds) -> Verdict:
    """Null tests of a struct or list around the leaf. The leaf's nulls include the nulls of the struct or list, and
    more."""
    there = _all_there(test, bounds)
    known, _, above = _split_levels(test, bounds)
    absent = known & (above == 0)
    if test.op == "is_null":
        return Verdict(~there, absent)
    return Verdict(~absent, there)


def _by_null_levels(test: Test, bounds: Bounds) -> Verdict:
    """Null items of lists, by histograms: without an entry at any level that means a null item, no row has one. Null
    counts tell less, because writers differ in what they count around the leaf."""
    known = _split_levels(test, bounds)[0]
    nothing, absent = np.zeros(len(bounds), bool), known
    if bounds.definition_histograms is not None and known.any():
        absent = known & (bounds.definition_histograms[:, list(test.literals)].sum(axis=1) == 0)
    return Verdict(~nothing, absent & _all_there(test, bounds)) if test.none else Verdict(~absent, nothing)


def _all_there(test: Test, bounds: Bounds) -> BoolArray:
    """The parts where every row certainly reaches ``test.level``."""
    if test.level == 0:
        return np.ones(len(bounds), bool)
    known, below, _ = _split_levels(test, bounds)
    # Some writers leave null and empty lists out of the null count, so only histograms tell about lists.
    counted = (bounds.null_counts == 0) & ~bounds.all_null & (test.node.max_rep == 0)
    return np.asarray(counted | known & (below == 0))


def _split_levels(test: Test, bounds: Bounds) -> tuple[BoolArray, Int64Array, Int64Array]:
    """Three arrays, one entry per part, from the level histograms: whether the counts are known, the entries below
    ``test.level``, and the entries from it on.

    Below the outermost list a row has one entry, so the first count is a number of rows there.
    """
    histograms = bounds.definition_histograms
    if histograms is None or histograms.shape[1] != test.node.max_def + 1:
        unknown = np.full(len(bounds), -1, np.int64)
        return unknown >= 0, unknown, unknown
    total, below = histograms.sum(axis=1), histograms[:, : test.level].sum(axis=1)
    known = (total > 0) & ((bounds.counts < 0) | (bounds.counts == total))
    return known, below, total - below


def _by_values(test: Test, bounds: Bounds) -> Verdict:
    null_counts, all_null = bounds.null_counts, bounds.all_null
    if test.node.max_def == 0:  # the schema excludes nulls, so counts of nulls are not believed
        null_counts, all_null = np.zeros_like(null_counts), np.zeros_like(all_null)
    no_null, nans = null_counts == 0, bounds.nan_counts
    op = test.op
    if op == "is_null":
        return Verdict(~no_null | all_null, all_null)
    if op == "is_not_null":
        return Verdict(~all_null, no_null & ~all_null)
    if op in BOX_OPS:  # bounds of bytes say nothing about boxes
        return Verdict(~all_null, np.zeros(len(bounds), bool))
    if test.leaf.kind not in FLOAT_KINDS and op not in ("is_nan", "is_not_nan"):
        some, every = _between(test, bounds, np.zeros(len(bounds), bool))
        return Verdict(some & ~all_null, every & no_null & ~all_null)
    # Bounds leave NaN out. A part that holds nothing but NaN and nulls therefore has no bounds.
    counted = (null_counts >= 0) & (nans > 0) & (bounds.counts >= 0)
    only_nan = counted & (null_counts + nans == bounds.counts) & ~all_null
    if op == "is_nan":
        return Verdict((nans != 0) & ~all_null, only_nan & no_null)
    if op == "is_not_nan":
        return Verdict(~all_null & ~only_nan, no_null & (nans == 0) & ~all_null)
    some, every = _between(test, bounds, only_nan)
    if op in _NAN_PASSES:
        some |= nans != 0
        every |= only_nan
    else:
        every &= nans == 0
    return Verdict(some & ~all_null, every & no_null & ~all_null)


def _between(test: Test, bounds: Bounds, only_nan: BoolArray) -> tuple[BoolArray, BoolArray]:
    """The verdict on the values that are neither null nor NaN."""
    known = bounds.has_bounds
    if known.all():
        return _compare(test, bounds.mins, bounds.maxs)
    some, every = ~only_nan, np.zeros(len(known), bool)
    if known.any():
        some[known], every[known] = _compare(test, bounds.mins[known], bounds.maxs[known])
    return some, every


def _compare(test: Test, low: npt.NDArray[Any], high: npt.NDArray[Any]) -> tuple[BoolArray, BoolArray]:
    op = test.op
    # A negated operator swaps and negates both answers: a row may pass `not in` unless all certainly pass `in`.
    if op in ("in", "not in"):
        some, every = _within(test, low, high)
        return (some, every) if op == "in" else (~every, ~some)
    if op in ("starts_with", "not starts_with"):
        some, every = _prefixed(test.literal, low, high)
        return (some, every) if op == "starts_with" else (~every, ~some)
    value = _scalar(test.literal, low.dtype)
    if op == "<":
        return low < value, high < value
    if op == "<=":
        return low <= value, high <= value
    if op == ">":
        return high > value, low > value
    if op in (">=", AT_LEAST):
        return high >= value, low >= value
    some, every = (low <= value) & (value <= high), (low == value) & (high == value)
    return (some, every) if op == "==" else (~every, ~some)


def _scalar(value: Any, dtype: np.dtype[Any]) -> Any:
    """A scalar that compares in the array's own type (numpy would cut NULs off the end of plain bytes)."""
    if dtype != np.dtype(object):
        return dtype.type(value)
    boxed = np.empty((), object)
    boxed[()] = value
    return boxed


def _within(test: Test, low: npt.NDArray[Any], high: npt.NDArray[Any]) -> tuple[BoolArray, BoolArray]:
    """``in``: whether a literal lies within the bounds, and whether the literals cover the bounds."""
    literals = test.literal_array()
    first = np.searchsorted(literals, low, "left")
    count = np.searchsorted(literals, high, "right") - first
    every = (count > 0) & (low == high)
    if isinstance(test.literals[0], (int, np.integer)):  # between two bounds there are only finitely many integers
        unsigned = low.dtype == np.dtype(np.int64)  # the difference of two int64 may need 64 bits
        span = high.view(np.uint64) - low.view(np.uint64) if unsigned else high - low
        every |= (count > 0) & (span == (count - 1).astype(span.dtype))
    return count > 0, every


def _prefixed(prefix: bytes, low: npt.NDArray[Any], high: npt.NDArray[Any]) -> tuple[BoolArray, BoolArray]:
    size = len(prefix)
    # Cutting keeps the order: the values between the bounds have prefixes between the prefixes of the bounds.
    starts, ends = [v[:size] for v in low], [v[:size] for v in high]
    some = [a <= prefix <= b for a, b in zip(starts, ends, strict=True)]
    every = [a == prefix == b for a, b in zip(starts, ends, strict=True)]
    return np.array(some, bool), np.array(every, bool)
