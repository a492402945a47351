"""Many literals as one array of numbers: one Python object per literal would take longer than the search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.arrow.exchange import arrays_from_arrow, column_from_nanoarrow, field_from_nanoarrow
from pyparq.format.types import LeafType

MANY = 256
"""Fewer values than this may as well be Python objects."""

Numbers = npt.NDArray[Any]


class ValueArray:
    """Integers or floats, and possibly a null. It behaves like a tuple of the Python values."""

    __slots__ = ("_found", "has_null", "numbers")

    def __init__(self, numbers: Numbers, has_null: bool) -> None:
        """``numbers``: an array of any integer or float dtype, without the null. It must not be changed."""
        self.numbers = numbers
        self.has_null = has_null
        self._found: dict[tuple[str, int], tuple[Numbers, bool]] = {}

    def __len__(self) -> int:
        return len(self.numbers) + self.has_null

    def __iter__(self) -> Iterator[Any]:
        """Python's numbers. Narrow floats come as numpy's, which keep their own digits."""
        narrow = self.numbers.dtype.kind == "f" and self.numbers.dtype.itemsize < 8
        yield from (self.numbers if narrow else self.numbers.tolist())
        if self.has_null:
            yield None

    def __reduce__(self) -> tuple[Any, ...]:
        return ValueArray, (self.numbers, self.has_null)

    def without_null(self) -> ValueArray:
        return ValueArray(self.numbers, False)

    def among(self, leaf: LeafType) -> tuple[Numbers, bool] | None:
        """The values that a numeric leaf can hold, distinct and sorted, in the dtype of its comparable domain; and
        whether NaN is among the values. ``None`` for other leaves. Computed once, however many files are asked."""
        if leaf.kind not in ("int", "uint", "float16", "float", "double"):
            return None
        key = leaf.kind, leaf.bits or 8 * leaf.width
        if key not in self._found:
            self._found[key] = _fitting(self.numbers, *key)
        return self._found[key]


def value_array(values: Any) -> ValueArray | None:
    """The values of a numpy array, a pandas Series over one, an Arrow array or column, or a list or set of Python
    numbers of one type, if they are many numbers. ``None`` for anything else."""
    try:
        if len(values) < MANY:
            return None
    except TypeError:
        return None
    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, np.dtype):
        plain = dtype.kind in "iuf" and dtype.itemsize <= 8 and getattr(values, "ndim", 0) == 1
        masked = isinstance(values, np.ma.MaskedArray)
        return ValueArray(np.array(values).astype(dtype.newbyteorder("=")), False) if plain and not masked else None
    if isinstance(values, (list, tuple, set, frozenset)):
        return _of_objects(values)
    if hasattr(values, "iloc"):  # pandas' own types have NaN or nulls in their own ways
        return None
    arrow = hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__")
    return _of_arrow(values) if arrow else None


def _of_objects(values: Iterable[Any]) -> ValueArray | None:
    """Python integers or floats, and None. Other objects are refused: True is not 1, and a Decimal is no float."""
    kinds = set(map(type, values))
    has_null = type(None) in kinds
    kinds.discard(type(None))
    if kinds not in ({int}, {float}):
        return None
    known = [v for v in values if v is not None] if has_null else list(values)
    try:
        numbers = np.array(known, np.float64 if kinds == {float} else np.int64)
    except OverflowError:
        return None
    return ValueArray(numbers, has_null)


def _of_arrow(values: Any) -> ValueArray | None:
    schema, arrays = arrays_from_arrow(values)
    type_ = field_from_nanoarrow(schema).type
    if type_.kind not in ("int", "uint", "float") or type_.dictionary is not None:
        return None
    parts, has_null = [np.empty(0, type_.numpy_dtype)], False
    for array in arrays:
        column = column_from_nanoarrow(array, type_)
        valid, numbers = column.valid_mask(), column.values()
        if valid is not None and not valid.all():
            has_null, numbers = True, numbers[valid]
        parts.append(numbers)
    return ValueArray(np.concatenate(parts), has_null)


def _fitting(numbers: Numbers, kind: str, bits: int) -> tuple[Numbers, bool]:
    if kind in ("int", "uint"):
        return _distinct(_integers(numbers, kind, bits)), False
    narrow = np.dtype(f"f{bits // 8}")
    with np.errstate(over="ignore"):
        near = numbers.astype(narrow).astype(np.float64)
    if numbers.dtype.kind == "f":
        kept = near[near == numbers]
        return _distinct(kept + 0.0), bool(np.isnan(numbers).any())  # -0.0 becomes 0.0
    wide = np.dtype(np.uint64 if numbers.dtype.kind == "u" else np.int64)
    limit = 2.0**64 if wide == np.uint64 else 2.0**63  # a value just below the limit may round up to it
    fits = np.isfinite(near) & (near < limit)
    near, own = near[fits], numbers[fits]
    return _distinct(near[near.astype(wide) == own]), False


def _integers(numbers: Numbers, kind: str, bits: int) -> Numbers:
    """The values that an integer type can hold, as int64 or uint64."""
    low, high = (0, (1 << bits) - 1) if kind == "uint" else (-(1 << bits - 1), (1 << bits - 1) - 1)
    wide = np.dtype(np.uint64 if kind == "uint" else np.int64)
    if numbers.dtype.kind == "f":
        exact: Numbers = numbers.astype(np.float64)
        # Both limits are powers of two, which floats hold.
        exact = exact[(exact >= float(low)) & (exact < float(high + 1)) & (exact == np.floor(exact))]
        numbers = exact.astype(wide)
        return numbers
    own = np.iinfo(numbers.dtype)
    if own.min < low:
        numbers = numbers[numbers >= low]
    if own.max > high:
        numbers = numbers[numbers <= high]
    return numbers.astype(wide)


def _distinct(numbers: Numbers) -> Numbers:
    """Sorted distinct values. A radix or vectorised sort is far quicker than ``numpy.unique``, which hashes."""
    ascending: Numbers = np.sort(numbers)
    if len(ascending) < 2:
        return ascending
    new = np.concatenate(([True], ascending[1:] != ascending[:-1]))
    distinct: Numbers = ascending[new]
    return distinct
