"""Tests of a path into a Variant, such as ``col("v", "user", "id") == 5``, bound to the columns of a file.

A file that has shredded the path has its values in a column ``typed_value``, and those of other types in a column
``value`` beside it (VariantShredding.md). The test is one of the former, which every index answers, OR one of what the
latter holds. A file that has not shredded it holds all in the ``value`` of the last group on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, NamedTuple

from pyparq.errors import ColumnNotFoundError, FilterError
from pyparq.filters.computed import Computed, InVariant, Leaf
from pyparq.filters.predicate import FALSE, Constant, Predicate, conjunction, disjunction, null_test
from pyparq.filters.variant_kinds import KINDS, Kind, node_of
from pyparq.format.nesting import shape_of
from pyparq.format.schema_node import Node
from pyparq.format.schema_tree import SchemaTree
from pyparq.format.types import REPEATED

Bind = Callable[[Node], Predicate]
"""Binds a test of values to a leaf. Raises :class:`FilterError` if they cannot be compared with it."""


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


def only_variant(tree: SchemaTree, paths: Iterable[Any]) -> VariantPath | None:
    """The path into a Variant that a test names, if it names nothing else."""
    named = set(paths)
    return variant_path(tree, named.pop()) if len(named) == 1 else None


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


def bind_values(place: VariantPath, bind: Bind, what: str) -> Predicate:
    """A test of values: true where the path has a value of a kind that can be compared, which passes. ``what``: the
    test in words."""
    bound: dict[str, Predicate] = {}
    for kind in KINDS:
        if kind.scale and Kind(kind.number).column not in bound:
            break  # decimals cannot be compared with it, whatever their scale
        with suppress(FilterError):
            bound[kind.column] = bind(node_of(kind))
    if not bound:
        raise FilterError(f"no value of a Variant can be tested in this way: {what}", column=place.name)
    kinds = {name: found for name, found in bound.items() if found is not FALSE}
    typed = _of_typed(place.typed, bind)
    if place.value is None or not kinds:
        return typed
    inside = Computed(InVariant(what, *_leaves(place), kinds), False)
    return disjunction([typed, conjunction([null_test(place.value, False), inside])])


def bind_null_test(place: VariantPath, is_null: bool, of_group: Callable[[Node, bool], Predicate]) -> Predicate:
    """``is_null``: the path is not there, or its value is Variant's null. ``of_group`` binds null tests of columns and
    groups."""
    typed = Constant(is_null) if place.typed is None else of_group(place.typed, is_null)
    if place.value is None:
        return typed
    words = f"is {'' if is_null else 'not '}null"
    inside = Computed(InVariant(f"{place.name} {words}", *_leaves(place), None, is_null), False)
    if is_null:
        return conjunction([typed, disjunction([null_test(place.value, True), inside])])
    return disjunction([typed, conjunction([null_test(place.value, False), inside])])


def _leaves(place: VariantPath) -> tuple[Leaf, Leaf | None, tuple[str, ...]]:
    assert place.value is not None
    metadata = Leaf(place.metadata, "variant") if place.rest else None
    return Leaf(place.value, "variant"), metadata, place.rest


def _of_typed(typed: Node | None, bind: Bind) -> Predicate:
    if typed is None or not typed.is_leaf or typed.repetition == REPEATED:
        return FALSE  # an object or an array, which no value equals
    try:
        return bind(typed)
    except FilterError:
        return FALSE
