"""Binds an expression to a file's schema: names become leaves, literals become values of the leaf's comparable domain.

NOT is pushed down to the tests, each of which has a negation: ``not (x < 1)`` is ``x >= 1``, because NaN lies above
every number. A literal may decide a test alone. The test then becomes a constant or a null test: ``x == 3.5`` on
integers is false, and ``x < 2**40`` on an int32 is ``x is not null``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pyparq.errors import FilterError
from pyparq.filters.bind_computed import Columns, bind_comparison, bind_match, bind_null
from pyparq.filters.constant_folding import simplified
from pyparq.filters.expression import (
    AllOf,
    AnyOf,
    ColumnRef,
    Compare,
    CompareValues,
    Contains,
    Expression,
    IntersectsBox,
    IsIn,
    IsNan,
    IsNull,
    Known,
    Not,
    Path,
    StartsWith,
    is_null_literal,
)
from pyparq.filters.hybrid_calendar import in_calendar
from pyparq.filters.literal import BYTES_KINDS, Place, describe, locate
from pyparq.filters.predicate import FALSE, TRUE, Constant, Predicate, Test, conjunction, disjunction, null_test
from pyparq.filters.shown_values import Shown, as_shown
from pyparq.filters.tuple_filters import parse_filters
from pyparq.filters.value_array import MANY, ValueArray
from pyparq.filters.value_expressions import Matches, NullValue
from pyparq.filters.value_rewrites import as_plain_test, compared_with_literal
from pyparq.filters.variant_paths import VariantPath, bind_null_test, bind_values, only_variant, variant_path
from pyparq.format.nesting import shape_of
from pyparq.format.schema_node import Node
from pyparq.format.schema_tree import SchemaTree
from pyparq.format.types import OPTIONAL, REPEATED, Field

_NEGATED = {
    "==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">", "in": "not in", "not in": "in",
    "is_null": "is_not_null", "is_not_null": "is_null", "is_nan": "is_not_nan", "is_not_nan": "is_nan",
    "starts_with": "not starts_with", "not starts_with": "starts_with",
}  # fmt: skip

_MAX_DEPTH = 200


def bind(filters: Any, tree: SchemaTree, shown: Shown | None = None) -> Predicate:
    """``filters`` (an expression, or pyarrow's list of tuples) as a predicate on the leaves of ``tree``.

    ``shown``: the types in which results show the leaves. Raises :class:`ColumnNotFoundError` (with near matches) for
    an unknown name. Raises :class:`FilterError` when a column cannot be tested, or a literal cannot be compared with
    it.
    """
    expression = parse_filters(filters)
    if expression is None:
        return TRUE
    if shown is not None:
        of_leaf = shown  # For mypy, which forgets in a function what it knows about a variable.
        expression = simplified(expression, lambda test: _as_shown(test, tree, of_leaf))
    binder = _BINDERS.get(type(expression), _bind)
    return binder(expression, Scope(tree, shown), False, _MAX_DEPTH)


def value_of_literal(value: Any, node: Node, field: Field | None) -> Any:
    """The value of the leaf ``node``, shown as ``field``, that equals a literal. ``None`` if no value does. Raises
    :class:`FilterError` for a literal that cannot be compared with the column."""
    test = as_shown(Compare(node.path, "==", value), node, field)
    if not isinstance(test, Compare):
        raise FilterError(f"{value!r} stands for several values of the column", column=node.dotted)
    place = locate(node.type, test.value, node.dotted)
    return place.below if place.exact else None


def _as_shown(test: Expression, tree: SchemaTree, shown: Shown) -> Expression:
    if not isinstance(test, (Compare, Contains, IsIn)) or variant_path(tree, test.path) is not None:
        return test
    leaf = tested_leaf(tree, test)
    return as_shown(test, leaf, shown(leaf)) if leaf.is_leaf else test


def tested_leaf(tree: SchemaTree, test: Compare | Contains | IsIn | IsNan) -> Node:
    """The leaf whose values a test looks at. A group, if the test names one by mistake."""
    node = tree.find(test.path)
    return _item(node) if isinstance(test, Contains) else node


class Scope(NamedTuple):
    """What names mean: the columns, and the types in which results show them."""

    tree: SchemaTree
    shown: Shown | None

    def leaf(self, path: Path) -> Node:
        return _leaf(self.tree, path)


def _bind(expression: Expression, scope: Scope, negate: bool, depth: int) -> Predicate:
    """One answer per kind of node: see :data:`_BINDERS`."""
    if depth == 0:
        raise FilterError(f"the filter nests more than {_MAX_DEPTH} levels deep")
    binder = _BINDERS.get(type(expression))
    if binder is None:
        raise FilterError(f"{expression!r} is not a complete filter")
    return binder(expression, scope, negate, depth)


def _compare(test: Compare, scope: Scope, negate: bool, depth: int) -> Predicate:
    op = _NEGATED[test.op] if negate else test.op
    if (place := variant_path(scope.tree, test.path)) is not None:
        return bind_values(place, lambda leaf: _compare_leaf(leaf, op, test.value), f"{place.name} {op} {test.value!r}")
    return _compare_leaf(_leaf(scope.tree, test.path), op, test.value)


def _compare_leaf(node: Node, op: str, value: Any) -> Predicate:
    found = compare(node, op, locate(node.type, value, node.dotted))
    return in_calendar(found) if node.type.hybrid else found


def _junction(expression: AllOf | AnyOf, scope: Scope, negate: bool, depth: int) -> Predicate:
    join = conjunction if isinstance(expression, AllOf) is not negate else disjunction
    return join([_bind(e, scope, negate, depth - 1) for e in expression.children])


def _not(expression: Not, scope: Scope, negate: bool, depth: int) -> Predicate:
    return _bind(expression.child, scope, not negate, depth - 1)


def _is_null(test: IsNull, scope: Scope, negate: bool, depth: int) -> Predicate:
    if (place := variant_path(scope.tree, test.path)) is not None:
        return bind_null_test(place, not negate, group_null_test)
    return group_null_test(scope.tree.find(test.path), not negate)


def _contains(test: Contains, scope: Scope, negate: bool, depth: int) -> Predicate:
    if is_null_literal(test.value):
        return _bind_null_items(scope.tree, test.path, negate)
    node = scope.tree.find(test.path)
    if _is_plain_text(node) and isinstance(test.value, (str, bytes)):
        return bind_match(Matches(ColumnRef(test.path), "contains", test.value), Columns(scope.leaf, None), negate)
    if node.is_leaf and node.type.kind == "null":
        return FALSE
    return _bind_contains(items_leaf(scope.tree, test.path), test.value, negate)


def _is_plain_text(node: Node) -> bool:
    return node.is_leaf and node.max_rep == 0 and node.type.kind in BYTES_KINDS


def _is_in(test: IsIn, scope: Scope, negate: bool, depth: int) -> Predicate:
    if (place := variant_path(scope.tree, test.path)) is not None:
        return _in_variant(place, test, negate)
    node = _leaf(scope.tree, test.path)
    found = _bind_isin(node, test.values, negate)
    return in_calendar(found) if node.type.hybrid else found


def _in_variant(place: VariantPath, test: IsIn, negate: bool) -> Predicate:
    """Literals of a list may be of several kinds. Each is compared with values of its own kind."""
    what = f"{place.name} {'not ' if negate else ''}in {len(test.values)} values"
    if not isinstance(test.values, ValueArray) and len(test.values) <= 5:
        what = f"{place.name} {'not ' if negate else ''}in {list(test.values)!r}"
    if not len(test.values):
        return Constant(negate)
    return bind_values(place, lambda leaf: _among_kind(leaf, test.values, negate), what)


def _among_kind(node: Node, values: Any, negate: bool) -> Predicate:
    """A list of literals for values of one kind. Those of other kinds equal none of them, nor are they unequal."""
    if isinstance(values, ValueArray):
        return _bind_isin(node, values, negate)
    known = tuple(value for value in values if not is_null_literal(value))
    fitting = tuple(value for value in known if _can_compare(node, value))
    if known and not fitting:
        locate(node.type, known[0], node.dotted)  # raises the error
    if negate and len(fitting) < len(values):
        return FALSE
    return _bind_isin(node, fitting, negate)


def _can_compare(node: Node, value: Any) -> bool:
    try:
        locate(node.type, value, node.dotted)
    except FilterError:
        return False
    return True


def _is_nan(test: IsNan, scope: Scope, negate: bool, depth: int) -> Predicate:
    if (place := variant_path(scope.tree, test.path)) is not None:
        return bind_values(place, lambda leaf: _bind_nan(leaf, not negate), f"{place.name} is nan")
    return _bind_nan(_leaf(scope.tree, test.path), not negate)


def _known(test: Known, scope: Scope, negate: bool, depth: int) -> Predicate:
    return Constant(test.value is not None and test.value is not negate)


def _starts_with(test: StartsWith, scope: Scope, negate: bool, depth: int) -> Predicate:
    if (place := variant_path(scope.tree, test.path)) is not None:
        what = f"{place.name} {'not ' if negate else ''}starts with {test.prefix!r}"
        return bind_values(place, lambda leaf: _bind_prefix(leaf, test.prefix, negate), what)
    return _bind_prefix(_leaf(scope.tree, test.path), test.prefix, negate)


def _intersects_box(test: IntersectsBox, scope: Scope, negate: bool, depth: int) -> Predicate:
    node = _leaf(scope.tree, test.path)
    if node.type.kind == "null":
        return FALSE
    if node.type.kind not in ("geometry", "geography", "binary") or node.type.length:
        raise FilterError(f"intersects_box() needs a geometry column, not {describe(node.type)}", column=node.dotted)
    return Test(node, "not intersects box" if negate else "intersects box", (test.box,))


def _compare_values(test: CompareValues, scope: Scope, negate: bool, depth: int) -> Predicate:
    plain = compared_with_literal(test)
    if plain is None:
        paths = test.left._columns() + test.right._columns()
        if (place := only_variant(scope.tree, paths)) is not None:
            return bind_values(place, lambda leaf: bind_comparison(test, _of(leaf), negate), repr(test))
        return bind_comparison(test, Columns(scope.leaf, scope.shown), negate)
    shown = plain if scope.shown is None else _as_shown(plain, scope.tree, scope.shown)
    return _bind(shown, scope, negate, depth - 1)


def _matches(test: Matches, scope: Scope, negate: bool, depth: int) -> Predicate:
    """LIKE of a column is as much a test of its start, or its whole, as its pattern allows."""
    plain = as_plain_test(test)
    if plain is None:
        return _bind_match(test, scope, negate)
    start, is_all = plain
    if is_all:
        return _bind(start, scope, negate, depth - 1)
    found = _bind_match(test, scope, negate)
    return found if negate else conjunction([_bind(start, scope, False, depth - 1), found])


def _bind_match(test: Matches, scope: Scope, negate: bool) -> Predicate:
    if (place := only_variant(scope.tree, test.value._columns())) is not None:
        return bind_values(place, lambda leaf: bind_match(test, _of(leaf), negate), repr(test))
    return bind_match(test, Columns(scope.leaf, scope.shown), negate)


def _of(leaf: Node) -> Columns:
    """The columns of a test that names a path of a Variant alone, for its values of one kind."""
    return Columns(lambda path: leaf, None)


def _null_value(test: NullValue, scope: Scope, negate: bool, depth: int) -> Predicate:
    return bind_null(test, Columns(scope.leaf, scope.shown), negate)


_BINDERS: dict[type, Callable[[Any, Scope, bool, int], Predicate]] = {
    Compare: _compare, AllOf: _junction, AnyOf: _junction, Not: _not, IsNull: _is_null, Contains: _contains,
    IsIn: _is_in, IsNan: _is_nan, Known: _known, StartsWith: _starts_with, IntersectsBox: _intersects_box,
    CompareValues: _compare_values,
    Matches: _matches, NullValue: _null_value,
}  # fmt: skip


def _leaf(tree: SchemaTree, path: Path) -> Node:
    if (place := variant_path(tree, path)) is not None:
        raise FilterError(
            "the values at a path of a Variant are of any type: compare them with a value, alone or in a computation",
            column=place.name,
        )
    node = tree.find(path)
    if node.max_rep > 0 or shape_of(node).kind == "list":
        raise FilterError(
            "a row has a list of values in this column: use .contains(value) to look for one of them",
            column=node.dotted,
        )
    if not node.is_leaf:
        leaves = ", ".join(repr(leaf.dotted) for leaf in list(node.leaves())[:5])
        raise FilterError(f"the column has nested fields: filter on one of {leaves}", column=node.dotted)
    return node


def items_leaf(tree: SchemaTree, path: Path) -> Node:
    """The leaf that holds the items of a list, of lists of lists, or of a field inside a list."""
    node = tree.find(path)
    item = _item(node)
    if not item.is_leaf:
        leaves = ", ".join(repr(leaf.dotted) for leaf in list(node.leaves())[:5])
        raise FilterError(f"the list items have nested fields: use one of {leaves}", column=node.dotted)
    if item.max_rep == 0:
        raise FilterError("contains() needs a list column: use == to compare this one", column=node.dotted)
    return item


def _item(node: Node) -> Node:
    """The items of the innermost list in lists of lists. The node itself if it is no list."""
    shape = shape_of(node)
    while shape.kind == "list":
        shape = shape.children[0]
    return shape.node


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
    # The levels of any leaf below tell. A flat one of fixed width is the cheapest to read.
    leaf = min(node.leaves(), key=lambda leaf: (leaf.max_rep, leaf.type.is_binary, leaf.column))
    return Test(leaf, "is_null" if is_null else "is_not_null", level=level, name=node.dotted)


def _bind_contains(node: Node, value: Any, negate: bool) -> Predicate:
    found = compare(node, "==", locate(node.type, value, node.dotted))
    found = in_calendar(found) if node.type.hybrid else found
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


def _bind_null_items(tree: SchemaTree, path: Path, negate: bool) -> Predicate:
    """A test for null items. Each optional node ends the entry at one level below its own, so several levels mean
    null."""
    item = _item(tree.find(path))
    if item.max_rep == 0:
        raise FilterError("contains() needs a list column: use .is_null() on this one", column=item.dotted)
    outer, node, levels = _outermost(item), item, []
    while node is not outer:
        assert node.parent is not None
        if node.repetition == OPTIONAL:
            levels.append(node.max_def - 1)
        node = node.parent
    leaf = min(item.leaves(), key=lambda leaf: (leaf.max_rep, leaf.type.is_binary, leaf.column))
    level = outer.max_def - 1
    if levels:
        return Test(leaf, "null_items", tuple(sorted(levels)), level=level, none=negate, name=item.dotted)
    if not negate:
        return FALSE
    return TRUE if level == 0 else Test(leaf, "is_not_null", level=level, name=item.dotted)


def compare(node: Node, op: str, place: Place) -> Predicate:
    """``node op literal``, for a literal at the position ``place`` among the leaf's values."""
    below, above = place
    if place.exact:
        # Only NaN differs from itself.
        return Test(node, op, (below,)) if below == below else _compare_nan(node, op)
    if node.type.kind == "int96" and (below is None or above is None):
        return _beyond_int96(node, op, place)
    if op in ("==", "!="):
        return FALSE if op == "==" or node.type.kind == "null" else null_test(node, False)
    if op in ("<", "<="):
        if below is None:
            return FALSE
        return null_test(node, False) if above is None else Test(node, "<=", (below,))
    if above is None:
        return FALSE
    return null_test(node, False) if below is None else Test(node, ">=", (above,))


def _beyond_int96(node: Node, op: str, place: Place) -> Predicate:
    """A literal beyond 64 bits of the unit, on INT96, which reaches further. It becomes a test of the values and not a
    constant, because reading a value that does not fit is an error too."""
    below, above = place
    if above is None:
        return Test(node, "<=" if op in ("<", "<=", "!=") else ">", (below,))
    return Test(node, ">=" if op in (">", ">=", "!=") else "<", (above,))


def _compare_nan(node: Node, op: str) -> Predicate:
    """NaN equals itself and is above every number."""
    if op == ">":
        return FALSE
    if op == "<=":
        return null_test(node, False)
    return Test(node, "is_nan" if op in ("==", ">=") else "is_not_nan")


def _bind_isin(node: Node, values: tuple[Any, ...] | ValueArray, negate: bool) -> Predicate:
    many = values.among(node.type) if isinstance(values, ValueArray) else None
    if many is not None and isinstance(values, ValueArray):
        return _bind_many(node, *many, values.has_null, negate)
    known = [v for v in values if not is_null_literal(v)]
    leaf, name = node.type, node.dotted
    places = [locate(leaf, v, name) for v in known]  # checked even where a null decides: a wrong literal is a mistake
    if negate and len(known) < len(values):
        return FALSE  # each row is either in the list or unknown
    exact: list[Any] = [p.below for p in places if p.exact]
    if leaf.kind == "int96" and any(p.below is None or p.above is None for p in places):
        each = [compare(node, "!=" if negate else "==", p) for p in places]
        return conjunction(each) if negate else disjunction(each)
    numbers = tuple(sorted({v for v in exact if v == v}))
    has_nan = len(exact) > 0 and any(v != v for v in exact)
    if not negate:
        return _among(node, numbers, has_nan)
    if not values:
        return TRUE  # an empty list contains nothing, not even a null
    return FALSE if leaf.kind == "null" else _not_among(node, numbers, has_nan)


def _bind_many(node: Node, numbers: Any, has_nan: bool, has_null: bool, negate: bool) -> Predicate:
    """Bind an array of numbers, sorted and distinct. It stays an array if it is long."""
    if negate and has_null:
        return FALSE
    literals = numbers if len(numbers) >= MANY else tuple(numbers.tolist())
    return (_not_among if negate else _among)(node, literals, has_nan)


def _among(node: Node, numbers: Any, has_nan: bool) -> Predicate:
    tests: list[Predicate] = [Test(node, "is_nan")] if has_nan else []
    if len(numbers):
        tests.insert(0, Test(node, "==" if len(numbers) == 1 else "in", numbers))
    return disjunction(tests)


def _not_among(node: Node, numbers: Any, has_nan: bool) -> Predicate:
    tests: list[Predicate] = [Test(node, "is_not_nan")] if has_nan else []
    if len(numbers):
        tests.insert(0, Test(node, "!=" if len(numbers) == 1 else "not in", numbers))
    return conjunction(tests) if tests else null_test(node, False)


def _bind_nan(node: Node, is_nan: bool) -> Predicate:
    kind = node.type.kind
    if kind == "null":
        return FALSE
    if kind not in ("float", "double", "float16"):
        raise FilterError(f"is_nan() needs a floating-point column, not {describe(node.type)}", column=node.dotted)
    return Test(node, "is_nan" if is_nan else "is_not_nan")


def _bind_prefix(node: Node, prefix: str | bytes, negate: bool) -> Predicate:
    leaf = node.type
    if leaf.kind == "null":
        return FALSE
    if leaf.kind not in BYTES_KINDS and not (leaf.kind == "uuid" and isinstance(prefix, bytes)):
        raise FilterError(f"starts_with() needs a string or binary column, not {describe(leaf)}", column=node.dotted)
    raw = prefix if isinstance(prefix, bytes) else _encode(prefix, node)
    if not raw or (leaf.length and len(raw) > leaf.length):
        return FALSE if bool(raw) is not negate else null_test(node, False)
    return Test(node, "not starts_with" if negate else "starts_with", (raw,))


def _encode(prefix: str, node: Node) -> bytes:
    try:
        return prefix.encode()
    except UnicodeEncodeError:
        raise FilterError(f"{prefix!r} is not valid Unicode", column=node.dotted) from None
