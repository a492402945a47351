"""Binds an expression to a file's schema: names become leaves, literals become values of the leaf's comparable domain.

NOT is pushed down to the tests, each of which has a negation: ``not (x < 1)`` is ``x >= 1``, because NaN lies above
every number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from itertools import count
from typing import Any, NoReturn, cast

from pyparq.errors import ColumnNotFoundError, FilterError
from pyparq.filters import expression, leaf_binding
from pyparq.filters.bind_computed import Columns, bind_comparison, bind_match, bind_null, bind_value
from pyparq.filters.bound import FALSE, TRUE, Constant
from pyparq.filters.computed import BoundValue, parts_of
from pyparq.filters.expression import AllOf, ColumnRef, Compare, Contains, Expression, IsIn, Known, Matches, Path, Value
from pyparq.filters.given import parse_filters
from pyparq.filters.leaf_binding import among, box_test, compare_literal, item_of, items_leaf, nan_test, prefix_test
from pyparq.filters.leaf_tests import Test
from pyparq.filters.literal import locate
from pyparq.filters.predicate import Predicate, conjunction, disjunction, null_test
from pyparq.filters.shown import Shown, as_shown
from pyparq.filters.value_array import BYTES_KINDS, ValueArray, is_null_literal
from pyparq.filters.variants import AtItems, ItemPlace, VariantPath, bind_null_test, bind_values, variant_path
from pyparq.format.schema_node import Node, Shape, shape_of
from pyparq.format.schema_tree import SchemaTree
from pyparq.format.types import OPTIONAL, REPEATED, Field

_MAX_DEPTH = 200


def bind(filters: Any, tree: SchemaTree, shown: Shown | None = None) -> Predicate:
    """``filters`` (an expression, or pyarrow's list of tuples) as a predicate on the leaves of ``tree``.

    ``shown``: the types in which results show the leaves. Raises :class:`ColumnNotFoundError` (with near matches) for
    an unknown name. Raises :class:`FilterError` when a column cannot be tested, or a literal cannot be compared with
    it.
    """
    is_condition = isinstance(filters, Expression) and not isinstance(filters, Value)
    expression = filters if is_condition else parse_filters(filters)
    return TRUE if expression is None else _Binder(tree, shown).bind(expression, False, _MAX_DEPTH)


def value_of_literal(value: Any, node: Node, field: Field | None) -> Any:
    """The value of the leaf ``node``, shown as ``field``, that equals a literal. ``None`` if no value does. Raises
    :class:`FilterError` for a literal that cannot be compared with the column."""
    test = as_shown(Compare(node.path, "==", value), node, field)
    if not isinstance(test, Compare):
        raise FilterError(f"{value!r} stands for several values of the column", column=node.dotted)
    place = locate(node.type, test.other, node.dotted)
    return place.below if place.exact else None


def tested_leaf(tree: SchemaTree, test: Any) -> Node:
    """The leaf whose values a test of a column looks at. A group, if the test names one by mistake."""
    node = tree.find(test.path)
    return item_of(node) if isinstance(test, Contains) else node


def computed_value(value: Value, tree: SchemaTree, shown: Shown | None = None) -> BoundValue:
    """A value that is computed from columns, for modules that store it. Raises as :func:`bind` does."""
    return bind_value(value, Columns(_Binder(tree, shown)._leaf, shown))


_NO_ITEMS: Mapping[Any, Node] = {}
_numbers = count()  # of columns that stand for items: below 0, where the file has none


def _field_of(shape: Shape, name: Any) -> Shape:
    found = next((child for child in shape.children if child.name == name), None) if shape.kind == "struct" else None
    if found is None:
        raise FilterError(f"there is no field {name!r} in it", column=shape.node.dotted)
    return found


class _Binder:
    """What names mean: the columns, and the types in which results show them. A method for each kind of expression:
    see :data:`_BINDERS`."""

    def __init__(self, tree: SchemaTree, shown: Shown | None, items: Mapping[Any, Node] = _NO_ITEMS) -> None:
        """``items``: columns that stand for items of lists and maps, by the paths that no other column has."""
        self._tree = tree
        self._shown = shown
        self._items = items

    def bind(self, expression: Expression, negate: bool, depth: int) -> Predicate:
        """``depth``: how many levels there may be from here on."""
        if depth == 0:
            raise FilterError(f"the filter nests more than {_MAX_DEPTH} levels deep")
        binder = _BINDERS.get(type(expression))
        if binder is None:
            raise FilterError(f"{expression!r} is not a complete filter")
        return binder(self, expression, negate, depth)

    def junction(self, several: AllOf | expression.AnyOf, negate: bool, depth: int) -> Predicate:
        join = conjunction if isinstance(several, AllOf) is not negate else disjunction
        return join([self.bind(child, negate, depth - 1) for child in several.children])

    def negation(self, test: expression.Not, negate: bool, depth: int) -> Predicate:
        return self.bind(test.child, not negate, depth - 1)

    def known(self, test: Known, negate: bool, depth: int) -> Predicate:
        return Constant(test.value is not None and test.value is not negate)

    # ---- tests of a column and literals

    def compare(self, test: Compare, negate: bool, depth: int) -> Predicate:
        value, other = test.value, test.other
        if type(value) is not ColumnRef or isinstance(other, Value):
            found = self._at_items(test, negate, depth)
            return found or self._of_values(test, lambda columns: bind_comparison(test, columns, negate))
        op, place = expression.OPERATORS[test.op].negated if negate else test.op, self._single(value.path)
        if isinstance(place, VariantPath):
            return bind_values(place, lambda leaf: compare_literal(leaf, op, other), f"{place.name} {op} {other!r}")
        if self._shown is None or (field := self._shown(place)) is None:
            return compare_literal(place, op, other)
        return self._of_shown(test, place, field, negate, depth)

    def is_in(self, test: IsIn, negate: bool, depth: int) -> Predicate:
        if test.path is None:
            each = [Known(None) if is_null_literal(v) else Compare(test.value, "==", v) for v in test.values]
            return self.bind(expression.joined(each, expression.AnyOf) if each else Known(False), negate, depth - 1)  # type: ignore[arg-type]
        place = self._single(test.path)
        if isinstance(place, VariantPath):
            return _in_variant(place, test, negate)
        return self._of_shown(test, place, None if self._shown is None else self._shown(place), negate, depth)

    def contains(self, test: Contains, negate: bool, depth: int) -> Predicate:
        if is_null_literal(test.item):
            return _null_items(self._tree, test.path, negate)
        node = self._tree.find(test.path)
        is_plain_text = node.is_leaf and node.max_rep == 0 and node.type.kind in BYTES_KINDS
        if is_plain_text and isinstance(test.item, (str, bytes)):
            return self.matches(Matches(test.value, "contains", test.item), negate, depth)
        if node.is_leaf and node.type.kind == "null":
            return FALSE
        item = items_leaf(self._tree, test.path)
        return self._of_shown(test, item, None if self._shown is None else self._shown(item), negate, depth)

    def is_null(self, test: expression.IsNull, negate: bool, depth: int) -> Predicate:
        if test.path is None:
            return self._at_items(test, negate, depth) or bind_null(test, Columns(self._leaf, self._shown), negate)
        place = self._place(test.path)
        if isinstance(place, VariantPath):
            return bind_null_test(place, not negate, group_null_test)
        return group_null_test(place, not negate)

    def is_nan(self, test: expression.IsNan, negate: bool, depth: int) -> Predicate:
        if test.path is None and (found := self._at_items(test, negate, depth)):
            return found
        place = self._single(test.path)
        if isinstance(place, VariantPath):
            return bind_values(place, lambda leaf: nan_test(leaf, not negate), f"{place.name} is nan")
        return nan_test(place, not negate)

    def intersects_box(self, test: expression.IntersectsBox, negate: bool, depth: int) -> Predicate:
        return box_test(self._leaf(test.path), test.box, negate)

    def matches(self, test: Matches, negate: bool, depth: int) -> Predicate:
        """LIKE of a column is as much a test of its start, or its whole, as its pattern allows."""
        if test.path is not None:
            return self._starts_with(test, negate)
        if found := self._at_items(test, negate, depth):
            return found
        plain = _as_plain_test(test)
        if plain is not None and plain[1]:
            return self.bind(plain[0], negate, depth - 1)
        found = self._of_values(test, lambda columns: bind_match(test, columns, negate))
        if plain is None or negate:
            return found
        return conjunction([self.bind(plain[0], False, depth - 1), found])

    def _starts_with(self, test: Matches, negate: bool) -> Predicate:
        place = self._single(test.path)
        if isinstance(place, VariantPath):
            words = f"{place.name} {'not ' if negate else ''}starts with {test.pattern!r}"
            return bind_values(place, lambda leaf: prefix_test(leaf, test.pattern, negate), words)
        return prefix_test(place, test.pattern, negate)

    # ---- items of lists and maps

    def _at_items(self, test: expression.ValueTest, negate: bool, depth: int) -> Predicate | None:
        """A test with items in it: of columns that stand for them. ``None`` for a test without."""
        items: list[ItemPlace] = []
        plain = self._without_items(test, items)
        if plain is None or not items:
            return None if plain is None else self.bind(plain, negate, depth - 1)
        shown = self._shown
        real = {item.node: item.leaf for item in items}
        by_path = {item.node.path: item.node for item in items}
        own = _Binder(self._tree, shown and (lambda node: shown(real.get(node, node))), by_path)
        inner = own.bind(plain, negate, depth - 1)
        if isinstance(inner, Constant):
            return inner
        beside = [self._tree.leaves[column] for column in sorted(inner.columns()) if column >= 0]
        found = AtItems(items, inner, beside, f"{'not ' if negate else ''}{test!r}")
        # What an item equals, an item of the list equals: indexes know of those.
        if len(items) == 1 and isinstance(inner, Test) and inner.op == "==":
            return conjunction([Test(items[0].leaf, "==", inner.literals), found])
        return found

    def _without_items(self, part: Any, items: list[ItemPlace]) -> Any:
        """The same with columns in the place of items. ``None`` if there are none."""
        if isinstance(part, expression.Item):
            return self._as_column(part, items)
        changed = {}
        for name in part._parts:
            value = getattr(part, name)
            if isinstance(value, Expression) and (made := self._without_items(value, items)) is not None:
                changed[name] = made
        if not changed:
            return None
        other = copy(part)
        for name, value in changed.items():
            setattr(other, name, value)
        return other

    def _as_column(self, item: expression.Item, items: list[ItemPlace]) -> ColumnRef:
        keys, at = list[Any](), cast(Value, item)
        while isinstance(at, expression.Item):
            keys.insert(0, at.key)
            at = at.value
        assert isinstance(at, ColumnRef)
        place = self._place(at.path)
        if isinstance(place, VariantPath) or place.is_variant:
            names = place.variant.path + place.names if isinstance(place, VariantPath) else place.path
            return ColumnRef((*names, *keys))
        shape = shape_of(place)
        while keys and shape.kind == "struct":
            shape = _field_of(shape, keys.pop(0))
        if not keys:
            return ColumnRef(shape.node.path)
        found, key = shape, keys.pop(0)
        if found.kind not in ("list", "map") or place.max_rep:
            raise FilterError(f"{item!r}: items are those of lists and maps that are in no list", column=place.dotted)
        shape = found.children[-1]
        for name in keys:
            shape = _field_of(shape, name)
        if shape.kind != "leaf":
            raise FilterError(f"{item!r} is nested, and has no value to compare", column=shape.node.dotted)
        by_key = None
        if found.kind == "map":
            of_key = found.children[0].node
            as_column = self._column_for(of_key, of_key.dotted)
            shown = self._shown
            own = _Binder(self._tree, shown and (lambda _: shown(of_key)), {as_column.path: as_column})
            by_key = of_key, as_column, own.bind(Compare(as_column.path, "==", key), False, 2)
        elif key is not None and (isinstance(key, bool) or not isinstance(key, int)):
            raise FilterError(f"an item of a list is named by its number, not by {key!r}", column=place.dotted)
        node = self._column_for(shape.node, repr(item))
        items.append(ItemPlace(node, shape.node, None if by_key else key, by_key))
        return ColumnRef(node.path)

    def _column_for(self, leaf: Node, name: str) -> Node:
        """A column of its own, with the values of a leaf."""
        element = copy(leaf.element)
        element.name, element.repetition_type = name, OPTIONAL
        node = Node(element, self._tree.root, -1 - next(_numbers))
        node.type = leaf.type
        return node

    # ---- what names mean

    def _of_values(self, test: expression.ValueTest, bound: Callable[[Columns], Predicate]) -> Predicate:
        """A test that computes something. If it names a path into a Variant alone, it is bound for each kind of value
        there."""
        named = set(test._columns())
        place = self._place(named.pop()) if len(named) == 1 else None
        if isinstance(place, VariantPath):
            return bind_values(place, lambda leaf: bound(Columns(lambda path: leaf, None)), repr(test))
        return bound(Columns(self._leaf, self._shown))

    def _of_shown(
        self, test: Compare | IsIn | Contains, leaf: Node, field: Field | None, negate: bool, depth: int
    ) -> Predicate:
        """The test of the stored values, which results may show as something else."""
        changed = as_shown(test, leaf, field)
        if changed is not test:
            return _Binder(self._tree, None, self._items).bind(changed, negate, depth - 1)
        if isinstance(test, IsIn):
            return among(leaf, test.values, negate)
        if isinstance(test, Contains):
            return _contains(leaf, test.item, negate)
        return compare_literal(leaf, expression.OPERATORS[test.op].negated if negate else test.op, test.other)

    def _place(self, path: Path) -> Node | VariantPath:
        """The column or group of this name, or the place of a path into a Variant."""
        if path in self._items:
            return self._items[path]
        try:
            return self._tree.find(path)
        except ColumnNotFoundError:
            place = variant_path(self._tree, path)
            if place is None:
                raise
            return place

    def _single(self, path: Path) -> Node | VariantPath:
        """A leaf of which a row has one value, or the place of a path into a Variant."""
        if path in self._items:
            return self._items[path]
        try:
            place: Node | VariantPath = self._tree.find(path)
        except ColumnNotFoundError:
            place = self._place(path)
        return place if isinstance(place, VariantPath) or (place.is_leaf and place.max_rep == 0) else _refused(place)

    def _leaf(self, path: Path) -> Node:
        place = self._single(path)
        if isinstance(place, VariantPath):
            raise FilterError(
                "the values at a path of a Variant are of any type: compare them with a value, alone or in a "
                "computation",
                column=place.name,
            )
        return place


_BINDERS: dict[type, Callable[[_Binder, Any, bool, int], Predicate]] = {
    AllOf: _Binder.junction, expression.AnyOf: _Binder.junction, expression.Not: _Binder.negation, Known: _Binder.known,
    Compare: _Binder.compare, IsIn: _Binder.is_in, Contains: _Binder.contains, expression.IsNull: _Binder.is_null,
    expression.IsNan: _Binder.is_nan, expression.IntersectsBox: _Binder.intersects_box, Matches: _Binder.matches,
}  # fmt: skip


def _in_variant(place: VariantPath, test: IsIn, negate: bool) -> Predicate:
    """Literals of a list may be of several kinds. Each is compared with values of its own kind."""
    what = f"{place.name} {'not ' if negate else ''}in {len(test.values)} values"
    if not isinstance(test.values, ValueArray) and len(test.values) <= 5:
        what = f"{place.name} {'not ' if negate else ''}in {list(test.values)!r}"
    if not len(test.values):
        return Constant(negate)
    return bind_values(place, lambda leaf: leaf_binding.among_fitting(leaf, test.values, negate), what)


def _as_plain_test(test: Matches) -> tuple[Expression, bool] | None:
    """A test of the column that is true wherever ``test`` is, and whether it is the same. ``None`` if there is none."""
    if not isinstance(test.value, ColumnRef) or test.kind != "like":
        return None
    parts = parts_of(test.pattern, test.escape)
    if not parts:
        return Compare(test.value, "==", ""), True
    if not parts[0]:
        return None
    if len(parts) == 1:
        return Compare(test.value, "==", parts[0]), True
    return Matches(test.value, "starts_with", parts[0]), parts[1:] == [None] * (len(parts) - 1)


def _refused(node: Node) -> NoReturn:
    """Raise an error for a column of which a row has more or less than one value."""
    if node.max_rep > 0 or shape_of(node).kind == "list":
        raise FilterError(
            "a row has a list of values in this column: use .contains(value) to look for one of them",
            column=node.dotted,
        )
    raise FilterError(
        f"the column has nested fields: filter on one of {leaf_binding.named_leaves(node)}", column=node.dotted
    )


# ---- lists and groups


def _level_leaf(node: Node) -> Node:
    """A leaf whose levels tell of the group. A flat one of fixed width is the cheapest to read."""
    return min(node.leaves(), key=lambda leaf: (leaf.max_rep, leaf.type.is_binary, leaf.column))


def group_null_test(node: Node, is_null: bool) -> Predicate:
    """``is_null`` or ``is_not_null`` of a node outside of lists: a leaf, a struct, a list or a map."""
    if node.is_leaf and node.max_rep == 0:
        return null_test(node, is_null)
    repeated = node.repetition == REPEATED  # a list without a node around it: as null as its parent
    if node.max_rep > repeated:
        raise FilterError(
            "null tests do not look inside lists, and a row has a list of these values: "
            "use .contains(None) to look for a null item",
            column=node.dotted,
        )
    level = node.max_def - repeated
    if level == 0:
        return Constant(not is_null)
    return Test(_level_leaf(node), "is_null" if is_null else "is_not_null", level=level, name=node.dotted)


def _contains(node: Node, value: Any, negate: bool) -> Predicate:
    found = compare_literal(node, "==", value)
    if not negate:
        return found
    level = _outermost(node).max_def - 1  # the level from which on the outermost list exists
    if isinstance(found, Test):
        return Test(node, found.op, found.literals, level=level, none=True)
    return TRUE if level == 0 else Test(node, "is_not_null", level=level, name=node.dotted)


def _outermost(node: Node) -> Node:
    """The repeated node of the outermost list around a node."""
    while node.max_rep > 1 or node.repetition != REPEATED:
        assert node.parent is not None
        node = node.parent
    return node


def _null_items(tree: SchemaTree, path: Path, negate: bool) -> Predicate:
    """A test for null items. Each optional node ends the entry at one level below its own, so several levels mean
    null."""
    item = item_of(tree.find(path))
    if item.max_rep == 0:
        raise FilterError("contains() needs a list column: use .is_null() on this one", column=item.dotted)
    outer, node, levels = _outermost(item), item, []
    while node is not outer:
        assert node.parent is not None
        if node.repetition == OPTIONAL:
            levels.append(node.max_def - 1)
        node = node.parent
    leaf, level = _level_leaf(item), outer.max_def - 1
    if levels:
        return Test(leaf, "null_items", tuple(sorted(levels)), level=level, none=negate, name=item.dotted)
    if not negate:
        return FALSE
    return TRUE if level == 0 else Test(leaf, "is_not_null", level=level, name=item.dotted)
