"""Tests on a dictionary page. If no entry passes, no row passes in a chunk whose pages all use the dictionary."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from pyparq.filters.compare import (
    match_binary,
    match_decimal_binary,
    match_decimal_fixed,
    match_fixed,
    match_numbers,
)
from pyparq.filters.geospatial_tests import box_mask, is_box_test
from pyparq.filters.predicate import Test
from pyparq.format.leaf_values import BinaryValues, Values
from pyparq.format.order import stored_dtype
from pyparq.format.types import LeafType
from pyparq.index.row_mask import RowMask, Words


def evaluate_dictionary(test: Test, values: Values, leaf: LeafType) -> bool:
    """Whether any row may pass in a chunk whose values are all among ``values`` (physical values, as in the page).

    True for tests that a null passes, and for leaves without an order (INT96): the dictionary proves nothing there.
    """
    mask = dictionary_mask(test, values, leaf)
    return mask is None or bool(mask)


def dictionary_mask(test: Test, values: Values, leaf: LeafType) -> RowMask | None:
    """The mask of the dictionary's values that pass. ``None`` if values alone do not decide."""
    op = test.op
    if op == "is_null" or test.asks_levels or test.none or leaf.kind == "int96":
        return None
    if op == "is_not_null":
        return RowMask.all(_count(values))
    if isinstance(values, BinaryValues) and is_box_test(test):
        return box_mask(test, values.offsets, values.data)
    if isinstance(values, BinaryValues):
        match = match_decimal_binary if leaf.kind == "decimal" else match_binary
        return match(op, test.literals, values.offsets, values.data)
    dtype = stored_dtype(leaf)
    if dtype is None:
        match_wide = match_decimal_fixed if leaf.kind == "decimal" else match_fixed
        return match_wide(op, test.literals, values)
    return number_mask(test, values.reshape(-1).view(dtype))


def number_mask(test: Test, values: npt.NDArray[Any], within: Words | None = None) -> RowMask:
    """Any test of values, on numbers (1-D)."""
    found = test.number_set(values.dtype) if test.op in ("in", "not in") else None
    return match_numbers(test.op, test.literals, values, within, found)


def _count(values: Values) -> int:
    return len(values.offsets) - 1 if isinstance(values, BinaryValues) else len(values)
