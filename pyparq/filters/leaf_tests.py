"""Tests of single leaves, a class for each kind. Every class says what the test means for each of its evaluators:

- rows: which decoded rows pass (:meth:`Test.rows`). This decides exactly which rows are kept.
- bounds: for each page or chunk, can some row pass, and must all rows pass (:meth:`Test.verdict`)? Both answers are
  one-sided. ``some`` is False only where no row can pass. ``all`` is True only where every row passes, whatever values
  lie between the bounds.
- the dictionary of a chunk: which of its entries pass (:meth:`Test.entries`).
- Bloom filters: the hashes to look up (:meth:`Test.hashes`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.errors import FilterError
from pyparq.filters.bound import Bound, Columns, EntryLevels, Levels
from pyparq.filters.compare import bytes_set, match_column, match_stored
from pyparq.filters.literal import format_literal
from pyparq.format.leaf_values import BinaryValues, Values
from pyparq.format.order import FLOAT_KINDS, BoolArray, bound_dtype, domain
from pyparq.format.schema_node import Node
from pyparq.format.types import DataType, LeafType, arrow_type
from pyparq.index.bloom_filter import can_prune, hash_literal
from pyparq.index.row_ranges import Int64Array, RowMask, Words
from pyparq.index.statistics import Bounds
from pyparq.kernels import BytesSet, KernelError, NumberSet

if TYPE_CHECKING:
    from pyparq.arrow.column import Column

Literals: TypeAlias = Any
"""A tuple of Python values, many numbers as one array, or many byte strings as buffers."""

BOX_OPS = ("intersects box", "not intersects box")
"""Those of geometries. Their literal is xmin, ymin, xmax, ymax."""
VALUE_OPS = ("==", "!=", "<", "<=", ">", ">=", "in", "not in", "starts_with", "not starts_with", *BOX_OPS)
"""Operators that look at a value and carry literals."""

MOST_LITERALS = 4096
"""With more literals, nearly every Bloom filter answers "maybe" to one of them, so asking is not worth the bytes."""

_ENTRIES_OF = {"!=": "==", "not in": "in", "not starts_with": "starts_with"}
"""The operators that are the negation of another one."""
NAN_PASSES = frozenset((">", ">=", "!=", "not in"))
"""NaN lies above every number, so it passes these operators whatever the literal is. (The literal is never NaN.)"""
_POINTS = frozenset((1, 1001, 2001, 3001))
"""Types of geometry that have one point."""


class Verdict(NamedTuple):
    """``some[k]``: a row of part k may pass. ``all[k]``: every row of part k passes."""

    some: BoolArray
    all: BoolArray


class Test(Bound):
    """One test on one leaf: an object of the class that fits ``op``.

    ``op`` is one of :data:`VALUE_OPS` or ``is_null is_not_null is_nan is_not_nan null_items``; a null satisfies
    ``is_null`` and nothing else. ``literals`` holds one value, sorted distinct ones for ``in`` and ``not in`` (an array
    of the domain's dtype where they are many numbers), none for the ``is_…`` tests; NaN never stands there (binding
    turns it into ``is_nan`` tests). For ``null_items`` they are the definition levels that mean a null item of a list.

    Null tests ask for the definition level: something is there from ``level`` on (``node.max_def`` for the leaf
    itself, less for a struct or list around it, which ``name`` then names).

    A test of values on a leaf inside of lists is true for a row where any item passes; with ``none``, where no item
    does and the outermost list is not null (its values are there from ``level`` on).
    """

    __slots__ = ("_array", "_sets", "column", "leaf", "level", "literals", "name", "no_nan", "node", "none", "op")
    __test__ = False  # pytest: this is no test class
    asks_levels = False
    """Whether levels answer the test, and not values: a null test of a struct or list around the leaf, or of items."""
    of_entries = True
    """Whether the answer for a value that is not null follows from the value alone."""

    def __new__(cls, node: Node, op: str, *args: Any, **options: Any) -> Test:
        return object.__new__(_CLASSES[op])

    def __init__(
        self,
        node: Node,
        op: str,
        literals: Literals = (),
        *,
        level: int | None = None,
        none: bool = False,
        name: str | None = None,
    ) -> None:
        self.node = node
        self.op = op
        self.literals = literals
        self.level = node.max_def if level is None else level
        self.none = none
        self.name = name
        self.no_nan = False
        """Whether NaN fails another test that has to pass too. Only bounds look at this."""
        self.leaf = node.type
        self.column = node.column
        """Ordinal of the leaf."""
        self._array: npt.NDArray[Any] | None = None
        self._sets: dict[np.dtype[Any], NumberSet | BytesSet] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _test_of, (self.node, self.op, self.literals, self.level, self.none, self.name)

    def changed(self, op: str, literals: Literals) -> Test:
        """The same test of other values."""
        return Test(self.node, op, literals, level=self.level, none=self.none, name=self.name)

    @property
    def literal(self) -> Any:
        """The value of a test that has one."""
        return self.literals[0]

    def literal_array(self) -> npt.NDArray[Any]:
        """The literals as an array of the comparable domain's dtype, made once."""
        if self._array is None:
            self._array = domain_array(self.leaf, self.literals)
        return self._array

    def known_values(self, dtype: np.dtype[Any]) -> NumberSet | BytesSet:
        """The literals as a set to look up values of this dtype in (bytes: object), made once."""
        found = self._sets.get(dtype)
        if found is None:
            of_bytes = dtype == np.dtype(object)
            found = bytes_set(self.literals) if of_bytes else NumberSet(np.asarray(self.literal_array(), dtype))
            self._sets[dtype] = found
        return found

    def columns(self) -> set[int]:
        return {self.column}

    def tests(self) -> Sequence[Test]:
        return (self,)

    def units_left(self, of_test: Callable[[Any], BoolArray | None], count: int) -> BoolArray:
        found = of_test(self)
        return np.ones(count, np.bool_) if found is None else found

    def entries_column(self, columns: Columns) -> int | None:
        if not self.of_entries or self.asks_levels or self.node.max_rep:
            return None
        column = columns[self.column]
        return None if column.type.dictionary is None or column.dictionary is None else self.column

    def __str__(self) -> str:
        name = self.name or self.node.dotted
        if self.node.max_rep and not self.asks_levels:
            item = format_literal(self.leaf, self.literal) if len(self.literals) else "nan"
            return f"{name} {'not ' if self.none else ''}contains {item}"
        if not len(self.literals):
            return f"{name} {self.op.replace('_', ' ')}"
        return f"{name} {self.op.replace('_', ' ')} {self._shown_literals()}"

    def _shown_literals(self) -> str:
        return format_literal(self.leaf, self.literal)

    # ---- rows

    def rows(self, columns: Columns, num_rows: int = -1, levels: Levels = None, within: Words | None = None) -> RowMask:
        column = columns[self.column]
        own = None if levels is None else levels.get(self.column)
        if self.asks_levels:
            return self._of_levels(column, own)
        if self.node.max_rep == 0:
            return self._slots(column, within)
        if own is None or own.repetition is None:
            raise ValueError("a test on items of lists needs their levels")
        rows = np.zeros(int(np.count_nonzero(own.repetition == 0)), bool)
        rows[_rows_of(self._slots(column, None).rows(), own)] = True
        return RowMask.of_bools(~rows & _reached(self.level, column, own) if self.none else rows)

    def _of_levels(self, column: Column, levels: EntryLevels | None) -> RowMask:
        reached = RowMask.of_bools(_reached(self.level, column, levels))
        return ~reached if self.op == "is_null" else reached

    def _slots(self, column: Column, within: Words | None) -> RowMask:
        """The test of every element of the column."""
        mask = self._match(column, within)
        is_plain = column.validity is None and column.type.dictionary is None
        valid = None if is_plain and column.type.format != "n" else valid_rows(column)
        return mask if valid is None else mask & valid

    def _match(self, column: Column, within: Words | None) -> RowMask:
        """The test on every slot. The result for a null slot is undefined."""
        have = column.type
        if have.dictionary is not None and column.dictionary is not None:
            return by_entry(column, column.dictionary, self._match(column.dictionary, None), within)
        if have.format != arrow_type(self.leaf).format:
            _check_unit(self.node, have)
        if have.format == "n":
            return RowMask.none(column.length)
        return self._match_values(column, within)

    def _match_values(self, column: Column, within: Words | None) -> RowMask:
        sets = self.known_values if self.op in ("in", "not in") else None
        return match_column(self.op, self.literals, column, within, sets)

    # ---- a dictionary

    def entries(self, values: Values, leaf: LeafType) -> RowMask | None:
        """The mask of a dictionary's values (physical ones, as in the page) that pass. ``None`` if values alone do not
        decide: for tests that a null passes, and for leaves without an order (INT96)."""
        if self.asks_levels or self.none or leaf.kind == "int96":
            return None
        sets = self.known_values if self.op in ("in", "not in") else None
        return match_stored(self.op, self.literals, values, leaf, sets)

    def may_be_among(self, values: Values, leaf: LeafType) -> bool:
        """Whether any row may pass in a chunk whose values are all among ``values``."""
        mask = self.entries(values, leaf)
        return mask is None or bool(mask)

    # ---- Bloom filters

    def hashes(self) -> list[list[int]] | None:
        """For each literal, the XXH64 hashes under which it may have been inserted. ``None`` if a filter cannot help.

        A row can pass only if the filter contains some hash of some literal. So an empty list, or a list of empty
        lists, means that no row passes. Only ``==`` and ``in`` can be answered. Zero has two hashes (0.0 and -0.0).
        """
        if self.none or self.op not in ("==", "in") or not can_prune(self.leaf) or len(self.literals) > MOST_LITERALS:
            return None
        literals = self.literals.tolist() if isinstance(self.literals, np.ndarray) else self.literals
        probes = []
        for literal in literals:
            hashes = hash_literal(literal, self.leaf)
            if hashes is None:
                return None
            probes.append(hashes)
        return probes

    # ---- bounds

    def verdict(self, bounds: Bounds) -> Verdict:
        """The verdict on each of the ``n`` parts that ``bounds`` describes.

        ``all`` needs a null count that is known and zero. For floats where a NaN would not pass, it needs such a NaN
        count too. Unknown counts are -1 in ``bounds`` and never prove anything.
        """
        if self.asks_levels:
            found = self._by_levels(bounds)
        elif self.node.max_rep == 0:
            found = self._by_values(bounds)
        else:
            # In lists, a row passes if any item does. Bounds cannot tell that every row has such an item.
            nowhere, nothing = ~self._by_values(bounds).some, np.zeros(len(bounds), bool)
            found = Verdict(~nothing, nowhere & self._all_reach(bounds)) if self.none else Verdict(~nowhere, nothing)
        if not self.leaf.nulls_beyond:
            return found
        # Values that do not fit the type are read as nulls. Neither bounds nor null counts include them.
        nulls_pass = self.op in ("is_null", "null_items")
        return Verdict(found.some | (nulls_pass and not self.none), np.zeros(len(bounds), bool))

    def _by_values(self, bounds: Bounds) -> Verdict:
        if self.node.max_def == 0:  # the schema excludes nulls, so counts of nulls are not believed
            some, every = self._of_present(bounds, np.zeros_like(bounds.null_counts), False)
            return Verdict(some, every)
        some, every = self._of_present(bounds, bounds.null_counts, bounds.all_null)
        present = ~bounds.all_null
        return Verdict(some & present, every & (bounds.null_counts == 0) & present)

    def _of_present(self, bounds: Bounds, null_counts: Int64Array, all_null: Any) -> tuple[BoolArray, BoolArray]:
        """The verdict on the values that are not null."""
        return np.ones(len(bounds), bool), np.zeros(len(bounds), bool)

    def _by_levels(self, bounds: Bounds) -> Verdict:
        raise NotImplementedError

    def _all_reach(self, bounds: Bounds) -> BoolArray:
        """The parts where every row certainly reaches :attr:`level`."""
        if self.level == 0:
            return np.ones(len(bounds), bool)
        known, below, _ = self._split_levels(bounds)
        # Some writers leave null and empty lists out of the null count, so only histograms tell about lists.
        counted = (bounds.null_counts == 0) & ~bounds.all_null & (self.node.max_rep == 0)
        return np.asarray(counted | known & (below == 0))

    def _split_levels(self, bounds: Bounds) -> tuple[BoolArray, Int64Array, Int64Array]:
        """Three arrays, one entry per part, from the level histograms: whether the counts are known, the entries below
        :attr:`level`, and the entries from it on.

        Below the outermost list a row has one entry, so the first count is a number of rows there.
        """
        histograms = bounds.definition_histograms
        if histograms is None or histograms.shape[1] != self.node.max_def + 1:
            unknown = np.full(len(bounds), -1, np.int64)
            return unknown >= 0, unknown, unknown
        total, below = histograms.sum(axis=1), histograms[:, : self.level].sum(axis=1)
        known = (total > 0) & ((bounds.counts < 0) | (bounds.counts == total))
        return known, below, total - below

    def found_at_bounds(self, bounds: Bounds) -> BoolArray:
        """The parts where the lower or the upper bound itself passes, so that a value probably passes.

        A bound need not be a value: a writer may state wider bounds, and cuts byte strings short. So this only tells
        that looking at single values is not worth it.
        """
        return np.zeros(len(bounds), bool)


def _test_of(node: Node, op: str, literals: Any, level: int, none: bool, name: str | None) -> Test:
    return Test(node, op, literals, level=level, none=none, name=name)


class _Comparison(Test):
    """``== != < <= > >= in`` and ``not in``, with values in the leaf's comparable domain."""

    __slots__ = ()

    def _shown_literals(self) -> str:
        if self.op not in ("in", "not in"):
            return format_literal(self.leaf, self.literal)
        shown = [format_literal(self.leaf, v) for v in self.literals[:5]]
        return f"({', '.join(shown)}{f', … {len(self.literals)} values' if len(self.literals) > 5 else ''})"

    def _of_present(self, bounds: Bounds, null_counts: Int64Array, all_null: Any) -> tuple[BoolArray, BoolArray]:
        floats = self.leaf.kind in FLOAT_KINDS
        only_nan = _only_nan(bounds, null_counts, all_null) if floats else None
        known = bounds.has_bounds
        if known.all():
            some, every = self._between(bounds.mins, bounds.maxs)
        else:
            some, every = np.ones(len(known), bool), np.zeros(len(known), bool)
            if only_nan is not None:
                some = ~only_nan
            if known.any():
                some[known], every[known] = self._between(bounds.mins[known], bounds.maxs[known])
        if only_nan is None:
            return some, every
        if self.op in NAN_PASSES and not self.no_nan:
            return some | (bounds.nan_counts != 0), every | only_nan
        return some, every & (bounds.nan_counts == 0)

    def _between(self, low: npt.NDArray[Any], high: npt.NDArray[Any]) -> tuple[BoolArray, BoolArray]:
        """The verdict on numbers or bytes between two bounds."""
        op = self.op
        if op in ("in", "not in"):
            some, every = self._among(low, high)
        else:
            value = low.dtype.type(self.literals[0]) if low.dtype != object else _boxed(self.literals[0])
            if op == "<":
                return low < value, high < value
            if op == "<=":
                return low <= value, high <= value
            if op == ">":
                return high > value, low > value
            if op == ">=":
                return high >= value, low >= value
            some, every = (low <= value) & (value <= high), (low == value) & (high == value)
        # A negated operator swaps and negates both answers: a row may pass `not in` unless all certainly pass `in`.
        return (~every, ~some) if op in _ENTRIES_OF else (some, every)

    def _among(self, low: npt.NDArray[Any], high: npt.NDArray[Any]) -> tuple[BoolArray, BoolArray]:
        """Whether a literal lies within the bounds, and whether the literals cover the bounds."""
        first = self._places(low, "left")
        count = self._places(high, "right") - first
        every = (count > 0) & (low == high)
        if isinstance(self.literals[0], (int, np.integer)):  # there are only finitely many integers between two bounds
            unsigned = low.dtype == np.dtype(np.int64)  # the difference of two int64 may need 64 bits
            span = high.view(np.uint64) - low.view(np.uint64) if unsigned else high - low
            every |= (count > 0) & (span == (count - 1).astype(span.dtype))
        return count > 0, every

    def _places(self, values: npt.NDArray[Any], side: Any) -> Int64Array:
        """Where values would stand among the literals."""
        if values.dtype != object:
            return np.searchsorted(self.literal_array(), values, side)
        find = bisect_left if side == "left" else bisect_right
        return np.array([find(self.literals, value) for value in values.tolist()], np.int64)

    def found_at_bounds(self, bounds: Bounds) -> BoolArray:
        found = np.zeros(len(bounds), bool)
        if self.op not in ("!=", "<", "<=", ">", ">=") or domain(self.leaf) not in ("int", "uint", "float", "decimal"):
            return found
        known = bounds.has_bounds
        low, high = bounds.mins[known], bounds.maxs[known]
        found[known] = (low != high) if self.op == "!=" else self._between(low, high)[0]
        return found


class _Prefix(Test):
    """``starts_with`` and its negation, byte for byte."""

    __slots__ = ()

    def _of_present(self, bounds: Bounds, null_counts: Int64Array, all_null: Any) -> tuple[BoolArray, BoolArray]:
        prefix, size = self.literal, len(self.literal)
        some, every = np.ones(len(bounds), bool), np.zeros(len(bounds), bool)
        for k in np.flatnonzero(bounds.has_bounds).tolist():
            # Cutting keeps the order: the values between the bounds have prefixes between the prefixes of the bounds.
            low, high = bounds.mins[k][:size], bounds.maxs[k][:size]
            found, is_all = low <= prefix <= high, low == prefix == high
            some[k], every[k] = (not is_all, not found) if self.op in _ENTRIES_OF else (found, is_all)
        return some, every


class _NanTest(Test):
    __slots__ = ()

    def _of_present(self, bounds: Bounds, null_counts: Int64Array, all_null: Any) -> tuple[BoolArray, BoolArray]:
        only_nan = _only_nan(bounds, null_counts, all_null)
        if self.op == "is_nan":
            return bounds.nan_counts != 0, only_nan
        return ~only_nan, bounds.nan_counts == 0


class _NullTest(Test):
    """Null tests of a leaf, or, with a lower level, of a struct or list around it."""

    __slots__ = ()
    of_entries = False

    @property
    def asks_levels(self) -> bool:  # type: ignore[override]
        return self.level < self.node.max_def

    def _slots(self, column: Column, within: Words | None) -> RowMask:
        valid = valid_rows(column)
        if self.op == "is_null":
            return RowMask.none(column.length) if valid is None else ~valid
        return RowMask.all(column.length) if valid is None else valid

    def entries(self, values: Values, leaf: LeafType) -> RowMask | None:
        if self.op == "is_null" or self.asks_levels or self.none or leaf.kind == "int96":
            return None
        return RowMask.all(len(values.offsets) - 1 if isinstance(values, BinaryValues) else len(values))

    def _by_values(self, bounds: Bounds) -> Verdict:
        no_null, all_null = bounds.null_counts == 0, bounds.all_null
        if self.node.max_def == 0:
            no_null, all_null = np.ones(len(bounds), bool), np.zeros(len(bounds), bool)
        if self.op == "is_null":
            return Verdict(~no_null | all_null, all_null)
        return Verdict(~all_null, no_null & ~all_null)

    def _by_levels(self, bounds: Bounds) -> Verdict:
        """The leaf's nulls include the nulls of the struct or list, and more."""
        reached = self._all_reach(bounds)
        known, _, above = self._split_levels(bounds)
        absent = known & (above == 0)
        return Verdict(~reached, absent) if self.op == "is_null" else Verdict(~absent, reached)


class _NullItems(Test):
    """A list has a null item."""

    __slots__ = ()
    asks_levels = True
    of_entries = False

    def __str__(self) -> str:
        return f"{self.name or self.node.dotted} {'not ' if self.none else ''}contains null"

    def _of_levels(self, column: Column, levels: EntryLevels | None) -> RowMask:
        if levels is None or levels.repetition is None:
            raise ValueError("a test on items of lists needs their levels")
        starts = np.flatnonzero(levels.repetition == 0)
        rows = np.zeros(len(starts), bool)
        if levels.definition is not None:
            nulls = np.flatnonzero(np.isin(levels.definition, np.array(self.literals, np.uint8)))
            rows[np.searchsorted(starts, nulls, side="right") - 1] = True
        return RowMask.of_bools(~rows & _reached(self.level, column, levels) if self.none else rows)

    def _by_levels(self, bounds: Bounds) -> Verdict:
        """By histograms: without an entry at any level that means a null item, no row has one. Null counts tell less,
        because writers differ in what they count around the leaf."""
        known = self._split_levels(bounds)[0]
        nothing, absent = np.zeros(len(bounds), bool), known
        if bounds.definition_histograms is not None and known.any():
            absent = known & (bounds.definition_histograms[:, list(self.literals)].sum(axis=1) == 0)
        return Verdict(~nothing, absent & self._all_reach(bounds)) if self.none else Verdict(~absent, nothing)


class _BoxTest(Test):
    """The box around a geometry (WKB) intersects another one. Bounds of bytes say nothing about boxes."""

    __slots__ = ()

    def _match_values(self, column: Column, within: Words | None) -> RowMask:
        return self._match_wkb(column.offsets(), column.buffers[1], within)

    def entries(self, values: Values, leaf: LeafType) -> RowMask | None:
        if not isinstance(values, BinaryValues):
            return super().entries(values, leaf)
        return None if self.none else self._match_wkb(values.offsets, values.data, None)

    def _match_wkb(self, offsets: npt.NDArray[Any], data: Any, within: Words | None) -> RowMask:
        """Which WKB values pass. The answer for a null is undefined. Raises :class:`FilterError` for other values."""
        box, wanted = np.array(self.literal, np.float64), self.op == "intersects box"
        try:
            found = kernels.match_boxes(offsets, data, box, self.leaf.kind == "geography", wanted, within)
        except KernelError as error:
            raise FilterError(f"the filter needs ISO WKB: {error}", column=self.node.dotted) from None
        return RowMask.of_words(found, len(offsets) - 1)

    def may_intersect(self, statistics: Sequence[Any]) -> BoolArray:
        """For each chunk whether a row may pass, by its GeospatialStatistics (``None``: it has none).

        NaN, and numbers that do not fit each other, prove nothing.
        """
        if self.op != "intersects box":
            return np.ones(len(statistics), bool)
        return np.array([self._may_intersect(found) for found in statistics], bool)

    def _may_intersect(self, found: Any) -> bool:
        box = None if found is None else found.bbox
        if box is None:
            return True
        xmin, ymin, xmax, ymax = self.literal
        if box.ymin > ymax or box.ymax < ymin:
            return not box.ymin <= box.ymax
        # Points lie within the chunk's box from west to east. Around other values on a globe, a box can be drawn across
        # the antimeridian or the other way.
        points = _POINTS.issuperset(found.geospatial_types or (0,))
        if xmin > xmax or not (points or (self.leaf.kind != "geography" and bool(box.xmin <= box.xmax))):
            return True
        if box.xmin > box.xmax:  # across the antimeridian
            return not (xmin > box.xmax and xmax < box.xmin)
        return not (box.xmin > xmax or box.xmax < xmin)


_CLASSES: dict[str, type[Test]] = {
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "in", "not in"), _Comparison),
    **dict.fromkeys(("starts_with", "not starts_with"), _Prefix), **dict.fromkeys(BOX_OPS, _BoxTest),
    **dict.fromkeys(("is_null", "is_not_null"), _NullTest), **dict.fromkeys(("is_nan", "is_not_nan"), _NanTest),
    "null_items": _NullItems,
}  # fmt: skip


def is_box_test(test: Test) -> bool:
    """Whether a test asks for the boxes of geometries."""
    return test.op in BOX_OPS


def may_intersect(test: Test, statistics: Sequence[Any]) -> BoolArray:
    """What GeospatialStatistics prove of a test of boxes."""
    assert isinstance(test, _BoxTest)
    return test.may_intersect(statistics)


def domain_array(leaf: LeafType, literals: Iterable[Any]) -> npt.NDArray[Any]:
    """Values of the comparable domain as int64, uint64, float64 or object array."""
    dtype = domain_dtype(leaf)
    if isinstance(literals, np.ndarray) and literals.dtype == dtype:
        return literals
    values = list(literals)
    if dtype != np.dtype(object):
        return np.array(values, dtype)
    array = np.empty(len(values), object)
    array[:] = values
    return array


def domain_dtype(leaf: LeafType) -> np.dtype[Any]:
    """dtype of the comparable domain. INT96 has no order in files, so it is compared as nanoseconds, as in memory."""
    return np.dtype(np.int64) if leaf.kind == "int96" else bound_dtype(leaf)


def _boxed(value: Any) -> Any:
    """A scalar that compares with objects (numpy would cut NULs off the end of plain bytes)."""
    boxed = np.empty((), object)
    boxed[()] = value
    return boxed


def _only_nan(bounds: Bounds, null_counts: Int64Array, all_null: Any) -> BoolArray:
    """The parts that hold nothing but NaN and nulls. They have no bounds, which leave NaN out."""
    nans = bounds.nan_counts
    counted = (null_counts >= 0) & (nans > 0) & (bounds.counts >= 0)
    return np.asarray(counted & (null_counts + nans == bounds.counts) & np.logical_not(all_null), bool)


# ---- decoded columns


def valid_rows(column: Column) -> RowMask | None:
    """Where a value is present. ``None`` if all are. Nulls in the dictionary, and columns of type null, are
    considered."""
    if column.type.format == "n":
        return RowMask.none(column.length)
    valid: RowMask | None = None
    if column.validity is not None and column.null_count:
        bits = kernels.mask_of_bits(column.validity, column.offset, column.length)
        valid = RowMask.of_words(bits, column.length)
    if column.type.dictionary is None or column.dictionary is None or not column.dictionary.null_count:
        return valid
    inner = by_entry(column, column.dictionary, valid_rows(column.dictionary))
    return inner if valid is None else inner & valid


def by_entry(column: Column, entries: Column, of_entries: RowMask | None, within: Words | None = None) -> RowMask:
    """The answer for each row, from the answer for each entry of its dictionary (``None``: true for all)."""
    table = RowMask.all(entries.length) if of_entries is None else of_entries
    codes = np.ascontiguousarray(column.values())
    return RowMask.of_words(kernels.match_codes(codes, table.words, entries.length, within), column.length)


def looked_up(column: Column, of_entries: Callable[[Column], RowMask], within: Words | None) -> RowMask:
    """The answer for each row of a test that is asked once per entry of the dictionary. No null passes."""
    entries = column.dictionary
    assert entries is not None
    mask = by_entry(column, entries, of_entries(entries), within)
    valid = valid_rows(column)
    return mask if valid is None else mask & valid


def _check_unit(node: Node, have: DataType) -> None:
    """Check the column's unit: literals are counted in the leaf's unit, and another unit would be compared wrongly."""
    want = node.arrow_type
    same = have.format == want.format
    if not same and have.kind == want.kind:
        if have.kind in ("timestamp", "time"):
            same = have.unit == want.unit
        elif have.kind == "decimal":
            same = have.decimal[1] == want.decimal[1]
        else:
            same = have.kind in ("int", "uint", "float", "string", "binary")
    if not same and {have.kind, want.kind} != {"string", "binary"}:
        raise FilterError(
            f"the filter needs a column of type {want}, but the column has type {have}", column=node.dotted
        )


def _reached(level: int, column: Column, levels: EntryLevels | None) -> BoolArray:
    """For each row, whether its first entry reaches this definition level."""
    if levels is None:
        raise ValueError("a null test of a group needs the levels of its leaf")
    definition, repetition = levels.definition, levels.repetition
    if repetition is None:
        return np.ones(column.length, bool) if definition is None else definition >= level
    starts = repetition == 0
    return np.ones(int(np.count_nonzero(starts)), bool) if definition is None else definition[starts] >= level


def _rows_of(slots: npt.NDArray[np.intp], levels: EntryLevels) -> npt.NDArray[np.intp]:
    """The rows that hold the given elements (ascending) of a leaf's column."""
    entries = slots
    if levels.definition is not None and len(slots):
        entries = np.flatnonzero(levels.definition >= levels.slot_level)[slots]
    return np.searchsorted(np.flatnonzero(levels.repetition == 0), entries, side="right") - 1
