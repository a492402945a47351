"""Tests of items of lists and maps (:class:`AtItems`), and of a path into a Variant, such as
``col("v", "user", "id") == 5``, bound to the columns of a file.

A file that has shredded the path has its values in a column ``typed_value``, and those of other types in a column
``value`` beside it (VariantShredding.md). The test is one of the former, which every index answers, OR one of what the
latter holds (:class:`InVariant`). A file that has not shredded it holds all in the ``value`` of the last group on the
way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import null_column, pack_mask, take
from pyparq.arrow.layouts import normalize
from pyparq.arrow.schema.from_text import schema
from pyparq.arrow.schema.to_parquet import elements_from_schema
from pyparq.arrow.variant_columns import OBJECT, Terms, byte_arrays, shredded, typed_column
from pyparq.errors import ColumnNotFoundError, CorruptFileError, FilterError
from pyparq.filters.bound import FALSE, Columns, Constant, Levels
from pyparq.filters.computed import Computed, Leaf
from pyparq.filters.predicate import Predicate, conjunction, disjunction, null_test
from pyparq.format.schema_node import Node, shape_of
from pyparq.format.schema_tree import SchemaTree, build_tree
from pyparq.format.types import REPEATED, DataType
from pyparq.index.row_ranges import RowMask, Words
from pyparq.kernels import KernelError

Flags = npt.NDArray[np.bool_]
Bind = Callable[[Node], Predicate]
"""Binds a test of values to a leaf. Raises :class:`FilterError` if they cannot be compared with it."""

_BINARY = DataType("z")
_NO_NAMES = b"\x11\x00\x00"
_SHORT_STRING, _STRING = 1, 16


# ---- items of lists and maps


class ItemPlace(NamedTuple):
    """Where an item of each row is. ``node``: the column that tests of it are bound to, as if it were in the file."""

    node: Node
    leaf: Node
    """That of all items."""
    number: int | None
    """From 0, or from -1 backwards. ``None`` for what is in no list, and for a map."""
    key: tuple[Node, Node, Predicate] | None
    """Of a map: the leaf of the keys, and a column for a test of them."""

    def of_rows(self, columns: Columns, levels: Levels) -> Column:
        """The item of each row, or null."""
        own = None if levels is None else levels.get(self.leaf.column)
        if own is None or own.repetition is None:
            raise ValueError("an item of a list needs the levels of its leaf")
        values, starts = columns[self.leaf.column], np.flatnonzero(own.repetition == 0)
        slots = np.ones(len(own.repetition), bool) if own.definition is None else own.definition >= own.slot_level
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(slots)])
        first, end = before[starts], before[np.append(starts[1:], len(slots))]
        if self.key is not None:
            of_key, as_column, test = self.key
            keys = columns[of_key.column]
            passing = np.append(np.flatnonzero(test.rows({as_column.column: keys}, keys.length).bools()), values.length)
            places = passing[np.searchsorted(passing, first)]
        else:
            places = end if self.number is None else (first if self.number >= 0 else end) + self.number
        there = (places >= first) & (places < end)
        if not there.any():
            return null_column(values.type, len(first))
        found = take(values, np.where(there, places, int(places[there][0])))
        mask = found.valid_mask()
        validity, nulls = pack_mask(there if mask is None else there & mask)
        return Column(found.type, len(first), validity, found.buffers, nulls, (), found.dictionary)


class AtItems(Computed):
    """A test of items, each of which is a column of its own in ``inner``. ``beside``: other columns of the test."""

    __slots__ = ("inner", "items", "text")
    of_entries = False

    def __init__(self, items: list[ItemPlace], inner: Predicate, beside: list[Node], text: str) -> None:
        read = [node for item in items for node in (item.leaf, *(item.key or ())[:1])]
        super().__init__([Leaf(node, "item") for node in (*read, *beside)], False)
        self.items, self.inner, self.text = items, inner, text

    def rows(self, columns: Columns, num_rows: int = -1, levels: Levels = None, within: Words | None = None) -> RowMask:
        found = {item.node.column: item.of_rows(columns, levels) for item in self.items}
        return self.inner.rows({**columns, **found}, found[self.items[0].node.column].length, levels)

    def _text(self) -> str:
        return self.text


# ---- kinds of values, as columns that tests of values are bound to

_TYPES = {
    1: "bool", 6: "int64", 7: "float64", 11: "date", 12: "timestamp[us, UTC]", 13: "timestamp[us]", 14: "float32",
    15: "binary", 16: "string", 17: "time[us]", 18: "timestamp[ns, UTC]", 19: "timestamp[ns]", 20: "uuid",
}  # fmt: skip
_ALIKE = {2: 1, 3: 6, 4: 6, 5: 6}
"""Kinds of VariantEncoding.md that are compared as another one."""
_DECIMALS = (8, 9, 10)
_MOST_DIGITS = 38


class Kind(NamedTuple):
    """A primitive type of VariantEncoding.md. ``scale``: of decimals."""

    number: int
    scale: int = 0

    @property
    def column(self) -> str:
        """The name of its column in :func:`_tree`."""
        return f"{self.number}.{self.scale}"

    @property
    def node(self) -> Node:
        """Its column."""
        return _tree().find((self.column,))

    @property
    def terms(self) -> Terms:
        """The kind as the kernels take it."""
        return self.number, _MOST_DIGITS, self.scale


KINDS = (*map(Kind, _TYPES), *(Kind(10, scale) for scale in range(_MOST_DIGITS + 1)))
"""All of them, those without a scale first."""


def _kind_of(number: int, scale: int) -> Kind | None:
    """What a value with this number in its first byte is compared as. ``None`` for null and unknown ones."""
    if number in _DECIMALS:
        return Kind(10, scale) if scale <= _MOST_DIGITS else None
    number = _ALIKE.get(number, number)
    return Kind(number) if number in _TYPES else None


@cache
def _tree() -> SchemaTree:
    """A column for each kind, all of which may be null."""
    types = {Kind(number).column: f"{text}?" for number, text in _TYPES.items()}
    types |= {Kind(10, s).column: f"decimal({_MOST_DIGITS},{s})?" for s in range(_MOST_DIGITS + 1)}
    return build_tree(elements_from_schema(schema(types)))


# ---- where a path leads


class VariantPath(NamedTuple):
    """Where the values at a path of a Variant are in one file."""

    variant: Node
    names: tuple[str, ...]
    """Those of the fields below the Variant."""
    typed: Node | None
    """The column or group ``typed_value`` that holds those of its type."""
    value: Node | None
    """The column of the others, or of values around them."""
    metadata: Node
    rest: tuple[str, ...]
    """The names of fields from ``value`` on."""

    @property
    def name(self) -> str:
        """The whole path, with dots."""
        return ".".join((*self.variant.path, *self.names))


def variant_path(tree: SchemaTree, path: Any) -> VariantPath | None:
    """Where the path is, if it leads into a Variant. ``None`` if it names a column, or nothing at all.

    A column that has this path comes first: ``("v", "value")`` is the column of that name.
    """
    names = tuple(path.split(".")) if isinstance(path, str) else tuple(path)
    if len(names) < 2 or _is_column(tree, path):
        return None
    for count in range(1, len(names)):
        try:
            node = tree.find(names[:count])
        except ColumnNotFoundError:
            return None
        if node.is_variant:
            return None if node.is_leaf or node.max_rep else _place(node, names[count:])
    return None


def named_node(tree: SchemaTree, path: Any) -> Node:
    """The column or group that a test names, or the Variant that its path leads into."""
    place = variant_path(tree, path)
    return tree.find(path) if place is None else place.variant


def _is_column(tree: SchemaTree, path: Any) -> bool:
    try:
        tree.find(path)
    except ColumnNotFoundError:
        return False
    return True


def _place(variant: Node, names: tuple[str, ...]) -> VariantPath | None:
    children = {child.name: child for child in variant.children}
    metadata = children.get("metadata")
    if metadata is None or not metadata.is_leaf:
        return None
    at, done = variant, 0
    while True:
        parts = {child.name: child for child in at.children}
        typed, value = parts.get("typed_value"), parts.get("value")
        if done == len(names):
            return VariantPath(variant, names, typed, value, metadata, ())
        field = None if typed is None else _field(typed, names[done])
        if field is None:
            return VariantPath(variant, names, None, value, metadata, names[done:])
        at, done = field, done + 1


def _field(typed: Node, name: str) -> Node | None:
    """The group of a shredded field of an object."""
    if typed.is_leaf or shape_of(typed).kind != "struct":
        return None
    return next((child for child in typed.children if child.name == name and not child.is_leaf), None)


# ---- tests


class InVariant(Computed):
    """A test of what Variants hold at a path. True for no Variant that is null itself.

    ``value`` and ``metadata`` are the columns that hold them; the latter is needed for ``rest``, the names of fields
    down to the value. ``kinds``: a predicate for each kind of value that may pass, on a column of that kind
    (:class:`Kind`). Without them it is a null test. ``text``: it in words.
    """

    __slots__ = ("is_null", "kinds", "metadata", "rest", "text", "value")
    asks_variants = True

    def __init__(
        self, place: VariantPath, text: str, kinds: dict[str, Predicate] | None, is_null: bool = False
    ) -> None:
        assert place.value is not None
        self.value = Leaf(place.value, "variant")
        self.metadata = Leaf(place.metadata, "variant") if place.rest else None
        super().__init__((self.value,) if self.metadata is None else (self.value, self.metadata), False)
        self.text, self.rest, self.kinds, self.is_null = text, place.rest, kinds, is_null

    def _of_values(self, columns: Mapping[int, Column], within: Words | None = None) -> RowMask:
        found = _values_at(self, columns)
        if self.kinds is None:
            return RowMask.of_bools(found.null if self.is_null else found.present & ~found.null)
        mask = RowMask.none(found.num_rows)
        for kind in found.kinds():
            if (inner := self.kinds.get(kind.column)) is not None:
                mask |= inner.rows({kind.node.column: found.of_kind(kind)}, found.num_rows)
        return mask

    def _text(self) -> str:
        return f"{self.text} in {self.value!r}"


def bind_values(place: VariantPath, bind: Bind, what: str) -> Predicate:
    """A test of values: true where the path has a value of a kind that can be compared, which passes. ``what``: the
    test in words."""
    bound: dict[str, Predicate] = {}
    for kind in KINDS:
        if kind.scale and Kind(kind.number).column not in bound:
            break  # decimals cannot be compared with it, whatever their scale
        with suppress(FilterError):
            bound[kind.column] = bind(kind.node)
    if not bound:
        raise FilterError(f"no value of a Variant can be tested in this way: {what}", column=place.name)
    kinds = {name: found for name, found in bound.items() if found is not FALSE}
    typed = _of_typed(place.typed, bind)
    if place.value is None or not kinds:
        return typed
    inside = InVariant(place, what, kinds)
    return disjunction([typed, conjunction([null_test(place.value, False), inside])])


def bind_null_test(place: VariantPath, is_null: bool, of_group: Callable[[Node, bool], Predicate]) -> Predicate:
    """``is_null``: the path is not there, or its value is Variant's null. ``of_group`` binds null tests of columns and
    groups."""
    typed = Constant(is_null) if place.typed is None else of_group(place.typed, is_null)
    if place.value is None:
        return typed
    words = f"is {'' if is_null else 'not '}null"
    inside = InVariant(place, f"{place.name} {words}", None, is_null)
    if is_null:
        return conjunction([typed, disjunction([null_test(place.value, True), inside])])
    return disjunction([typed, conjunction([null_test(place.value, False), inside])])


def _of_typed(typed: Node | None, bind: Bind) -> Predicate:
    if typed is None or not typed.is_leaf or typed.repetition == REPEATED:
        return FALSE  # an object or an array, which no value equals
    try:
        return bind(typed)
    except FilterError:
        return FALSE


# ---- the values of rows


class _ValuesAtPath(NamedTuple):
    """The values at a path. ``present``: the rows whose Variant is not null. ``has_path``: those that have the path."""

    values: Column
    present: Flags
    has_path: Flags
    numbers: npt.NDArray[np.int64]
    """The number of the primitive type in VariantEncoding.md; -1 for objects, arrays, and where nothing is."""
    scales: npt.NDArray[np.int64]
    """Those of decimals, else 0."""

    @property
    def num_rows(self) -> int:
        return len(self.present)

    @property
    def null(self) -> Flags:
        """Where the path is missing in a Variant, or has Variant's null."""
        return np.asarray(self.present & (~self.has_path | (self.numbers == 0)))

    def kinds(self) -> Iterator[Kind]:
        """The kinds of value that there are."""
        pairs = np.unique(np.stack((self.numbers, self.scales), axis=1), axis=0)
        yield from dict.fromkeys(kind for pair in pairs.tolist() if (kind := _kind_of(*pair)) is not None)

    def of_kind(self, kind: Kind) -> Column:
        """A column of the values of one kind, null in all other rows."""
        rows = np.array([_kind_of(int(n), kind.scale) == kind for n in range(32)])[np.clip(self.numbers, 0, 31)]
        rows &= (self.numbers >= 0) & (self.scales == kind.scale)
        *_, typed = _shredded(_without_names(self.num_rows), self.values, rows, kind.terms)
        return typed_column(kind.node.arrow_type, *typed)


def _values_at(test: InVariant, columns: Mapping[int, Column]) -> _ValuesAtPath:
    """What the Variants hold at the path of a test. Raises :class:`CorruptFileError` for bytes that are no Variant."""
    values = normalize(columns[test.value.node.column], "value")
    present = _present(values)
    has_path = present
    if test.metadata is not None:
        values, has_path = _below(normalize(columns[test.metadata.node.column], "metadata"), values, present, test.rest)
    numbers, scales = _numbers(values, has_path)
    return _ValuesAtPath(values, present, has_path, numbers, scales)


def _present(column: Column) -> Flags:
    mask = column.valid_mask()
    return np.ones(column.length, np.bool_) if mask is None else mask


def _without_names(count: int) -> Column:
    """Metadata for values that need no names."""
    data = np.frombuffer(_NO_NAMES * count, np.uint8)
    return byte_arrays(_BINARY, np.arange(count + 1, dtype=np.int64) * len(_NO_NAMES), data, np.ones(count, np.uint8))


def _shredded(metadata: Column, values: Column, rows: Flags, terms: Terms) -> tuple[Any, ...]:
    try:
        return shredded(metadata, values, rows, terms)
    except KernelError as error:
        raise CorruptFileError(f"a Variant is invalid: {error}") from error


def _below(metadata: Column, values: Column, present: Flags, names: tuple[str, ...]) -> tuple[Column, Flags]:
    """The values of a field of objects of objects, and where it is there."""
    terms: Terms = None
    for name in reversed(names):
        terms = (OBJECT, (name,), (terms,))
    parts = _shredded(metadata, values, present, terms)
    for _ in names:
        _, (parts,) = parts[3]
    offsets, data, mask, _ = parts
    return byte_arrays(_BINARY, offsets, data, mask), mask.view(np.bool_) & present


def _numbers(values: Column, has_path: Flags) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    offsets, data = values.offsets().astype(np.int64), values.buffers[1].view(np.uint8)
    starts, sizes = offsets[:-1], np.diff(offsets)
    numbers, scales = np.full(len(starts), -1, np.int64), np.zeros(len(starts), np.int64)
    rows = np.flatnonzero(has_path & (sizes > 0))
    heads = data[starts[rows]].astype(np.int64)
    basic, number = heads & 3, heads >> 2
    numbers[rows] = np.where(basic == 0, number, np.where(basic == _SHORT_STRING, _STRING, -1))
    decimals = rows[np.isin(numbers[rows], _DECIMALS) & (sizes[rows] > 1)]
    scales[decimals] = data[starts[decimals] + 1]
    return numbers, scales
