"""Evaluates a filter on decoded rows. This decides exactly which rows are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.errors import FilterError
from pyparq.filters.compare import match_binary, match_fixed, match_flags, match_limbs
from pyparq.filters.computed import Computed, InVariant
from pyparq.filters.computed_rows import evaluate_computed
from pyparq.filters.dictionary_tests import number_mask
from pyparq.filters.geospatial_tests import box_mask, is_box_test
from pyparq.filters.predicate import And, Constant, Or, Predicate, Test
from pyparq.filters.variant_kinds import node_of
from pyparq.filters.variant_rows import values_at
from pyparq.format.types import DataType
from pyparq.index.row_mask import RowMask, Words

if TYPE_CHECKING:
    from pyparq.arrow.column import Column

BoolArray = npt.NDArray[np.bool_]

_OF_LEVELS = ("is_null", "is_not_null", "null_items")


@dataclass(frozen=True, slots=True)
class EntryLevels:
    """The levels of a leaf in a struct or list: one uint8 per entry.

    ``definition`` is ``None`` if no entry is null. ``repetition`` is ``None`` if each entry is a row. An entry has an
    element in the leaf's column if its definition level is ``slot_level`` or more.
    """

    definition: npt.NDArray[np.uint8] | None
    repetition: npt.NDArray[np.uint8] | None
    slot_level: int = 0


def evaluate_rows(
    predicate: Predicate,
    columns: Mapping[int, Column],
    num_rows: int = -1,
    levels: Mapping[int, EntryLevels] | None = None,
) -> BoolArray:
    """As :func:`matching_rows`, one bool per row."""
    return matching_rows(predicate, columns, num_rows, levels).bools()


def matching_rows(
    predicate: Predicate,
    columns: Mapping[int, Column],
    num_rows: int = -1,
    levels: Mapping[int, EntryLevels] | None = None,
    within: Words | None = None,
) -> RowMask:
    """The rows where ``predicate`` is true (neither false nor unknown).

    ``columns`` holds by leaf ordinal at least ``predicate.columns()``, all of one length, in the leaves'
    Arrow types (``Node.arrow_type``; dictionary-encoded and large ones too). A leaf inside structs must be
    null where any of them is. A leaf in a list has one element per item. ``levels`` are needed for leaves in lists and
    for null tests of groups, ``num_rows`` only for a :class:`Constant`. Rows outside of ``within`` may come out either
    way: so the later terms of AND and OR look only at rows that those before leave open.
    """
    if isinstance(predicate, Test):
        tested = predicate.node.column
        return evaluate_test(predicate, columns[tested], None if levels is None else levels.get(tested), within)
    if isinstance(predicate, Computed):
        return _of_computed(predicate, columns, within)
    if isinstance(predicate, Constant):
        if num_rows < 0:
            raise ValueError("a constant predicate needs num_rows")
        return RowMask.all(num_rows) if predicate.value else RowMask.none(num_rows)
    single = _on_entries(predicate, columns)
    if single is not None:
        return _of_entries(predicate, single, columns[single], within)
    children = _joined(predicate, columns)
    mask = matching_rows(children[0], columns, num_rows, levels, within)
    for child in children[1:]:
        if isinstance(predicate, And):
            if not mask:
                break
            mask &= matching_rows(child, columns, num_rows, levels, mask.words)
        else:
            open_rows = ~mask.words if within is None else within & ~mask.words
            mask |= matching_rows(child, columns, num_rows, levels, open_rows)
    return mask


def _joined(predicate: And | Or, columns: Mapping[int, Column]) -> Sequence[Predicate]:
    """The children of a predicate. Those on values of one dictionary-encoded column are grouped together."""
    groups: dict[int, list[Predicate]] = {}
    children: list[Predicate | list[Predicate]] = []
    for child in predicate.children:
        column = _on_entries(child, columns)
        if column is None:
            children.append(child)
        elif column in groups:
            groups[column].append(child)
        else:
            children.append(groups.setdefault(column, [child]))
    if len(children) == len(predicate.children):
        return predicate.children
    join = type(predicate)
    return [c if not isinstance(c, list) else c[0] if len(c) == 1 else join(tuple(c)) for c in children]


def _on_entries(predicate: Predicate, columns: Mapping[int, Column]) -> int | None:
    """The only column of the predicate, if the answers follow from the entries of its dictionary. Otherwise
    ``None``."""
    found: int | None = None
    for test in predicate.tests():
        column = test.node.column
        if found not in (None, column) or test.op in _OF_LEVELS or test.node.max_rep:
            return None
        if found is None and (columns[column].type.dictionary is None or columns[column].dictionary is None):
            return None
        found = column
    for computed in predicate.computed():
        column = computed.nodes[0].column
        if found not in (None, column) or not computed.is_of_entries or columns[column].dictionary is None:
            return None
        found = column
    return found


def _of_computed(predicate: Computed, columns: Mapping[int, Column], within: Words | None) -> RowMask:
    number = _on_entries(predicate, columns)
    if number is None or columns[number].type.dictionary is None:
        return _of_values(predicate, columns)
    column = columns[number]
    entries = column.dictionary
    assert entries is not None
    mask = _by_entry(column, entries, _of_values(predicate, {number: entries}), within)
    valid = _valid(column)
    return mask if valid is None else mask & valid


def _of_values(predicate: Computed, columns: Mapping[int, Column]) -> RowMask:
    test = predicate.test
    if not isinstance(test, InVariant):
        return evaluate_computed(predicate, columns)
    found = values_at(test, columns)
    if test.kinds is None:
        return RowMask.of_bools(found.null if test.is_null else found.present & ~found.null)
    mask = RowMask.none(found.num_rows)
    for kind in found.kinds():
        if (inner := test.kinds.get(kind.column)) is not None:
            mask |= matching_rows(inner, {node_of(kind).column: found.of_kind(kind)}, found.num_rows)
    return mask


def _of_entries(predicate: Predicate, number: int, column: Column, within: Words | None) -> RowMask:
    """Evaluate the predicate once per dictionary entry, then look up the answers by the codes."""
    entries = column.dictionary
    assert entries is not None
    mask = _by_entry(column, entries, matching_rows(predicate, {number: entries}), within)
    valid = _valid(column)
    return mask if valid is None else mask & valid


def evaluate_test(
    test: Test, column: Column, levels: EntryLevels | None = None, within: Words | None = None
) -> RowMask:
    """The rows where one test is true."""
    if test.op == "null_items":
        return RowMask.of_bools(_with_null_items(test, column, levels))
    if test.asks_levels:
        there = RowMask.of_bools(_reached(test.level, column, levels))
        return ~there if test.op == "is_null" else there
    if test.node.max_rep == 0:
        return _evaluate_slots(test, column, within)
    if levels is None or levels.repetition is None:
        raise ValueError("a test on items of lists needs their levels")
    passed = _rows_of(_evaluate_slots(test, column, None).rows(), levels)
    rows = np.zeros(int(np.count_nonzero(levels.repetition == 0)), bool)
    rows[passed] = True
    return RowMask.of_bools(~rows & _reached(test.level, column, levels) if test.none else rows)


def _evaluate_slots(test: Test, column: Column, within: Words | None) -> RowMask:
    valid = _valid(column)
    op = test.op
    if op == "is_null":
        return RowMask.none(column.length) if valid is None else ~valid
    if op == "is_not_null":
        return RowMask.all(column.length) if valid is None else valid
    mask = _match(test, column, within)
    return mask if valid is None else mask & valid


def _reached(level: int, column: Column, levels: EntryLevels | None) -> BoolArray:
    """For each row, whether its first entry reaches this definition level."""
    if levels is None:
        raise ValueError("a null test of a group needs the levels of its leaf")
    definition, repetition = levels.definition, levels.repetition
    if repetition is None:
        return np.ones(column.length, bool) if definition is None else definition >= level
    starts = repetition == 0
    return np.ones(int(np.count_nonzero(starts)), bool) if definition is None else definition[starts] >= level


def _with_null_items(test: Test, column: Column, levels: EntryLevels | None) -> BoolArray:
    if levels is None or levels.repetition is None:
        raise ValueError("a test on items of lists needs their levels")
    starts = np.flatnonzero(levels.repetition == 0)
    rows = np.zeros(len(starts), bool)
    if levels.definition is not None:
        nulls = np.flatnonzero(np.isin(levels.definition, np.array(test.literals, np.uint8)))
        rows[np.searchsorted(starts, nulls, side="right") - 1] = True
    return ~rows & _reached(test.level, column, levels) if test.none else rows


def _rows_of(slots: npt.NDArray[np.intp], levels: EntryLevels) -> npt.NDArray[np.intp]:
    """The rows that hold the given elements (ascending) of a leaf's column."""
    entries = slots
    if levels.definition is not None and len(slots):
        entries = np.flatnonzero(levels.definition >= levels.slot_level)[slots]
    return np.searchsorted(np.flatnonzero(levels.repetition == 0), entries, side="right") - 1


def _valid(column: Column) -> RowMask | None:
    """Where a value is present. ``None`` if all are. Nulls in the dictionary, and columns of type null, are
    considered."""
    if column.type.format == "n":
        return RowMask.none(column.length)
    valid: RowMask | None = None
    if column.validity is not None and column.null_count:
        valid = _bits(column, column.validity)
    if column.type.dictionary is None or column.dictionary is None or not column.dictionary.null_count:
        return valid
    inner = _by_entry(column, column.dictionary, _valid(column.dictionary))
    return inner if valid is None else inner & valid


def _bits(column: Column, bitmap: npt.NDArray[Any]) -> RowMask:
    return RowMask.of_words(kernels.mask_of_bits(bitmap, column.offset, column.length), column.length)


def _by_entry(column: Column, entries: Column, of_entries: RowMask | None, within: Words | None = None) -> RowMask:
    """The answer for each row, from the answer for each entry of its dictionary (``None``: true for all)."""
    table = RowMask.all(entries.length) if of_entries is None else of_entries
    codes = np.ascontiguousarray(column.values())
    return RowMask.of_words(kernels.match_codes(codes, table.words, entries.length, within), column.length)


def _match(test: Test, column: Column, within: Words | None) -> RowMask:
    """The test on every slot. The result for a null slot is undefined."""
    type_ = column.type
    if type_.dictionary is not None and column.dictionary is not None:
        return _by_entry(column, column.dictionary, _match(test, column.dictionary, None), within)
    _check(test, type_)
    if type_.format == "n":
        return RowMask.none(column.length)
    if is_box_test(test):
        return box_mask(test, column.offsets(), column.buffers[1], within)
    if type_.is_binary_like:
        return match_binary(test.op, test.literals, column.offsets(), column.buffers[1], within)
    kind = type_.kind
    if kind == "decimal":
        return match_limbs(test.op, test.literals, column.values(), within)
    if kind == "fixed":
        return match_fixed(test.op, test.literals, column.values(), within)
    if kind == "bool":
        return match_flags(test.op, test.literals, _bits(column, column.buffers[0]))
    return number_mask(test, column.values(), within)


def _check(test: Test, have: DataType) -> None:
    """Check the column's unit: literals are counted in the leaf's unit, and another unit would be compared wrongly."""
    want = test.node.arrow_type
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
            f"the filter needs a column of type {want}, but the column has type {have}", column=test.node.dotted
        )
