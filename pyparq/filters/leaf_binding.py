"""Tests of one leaf, made of literals. A literal may decide a test alone. The test then becomes a constant or a null
test: ``x == 3.5`` on integers is false, and ``x < 2**40`` on an int32 is ``x is not null``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyparq.errors import FilterError, located
from pyparq.filters.bound import FALSE, TRUE
from pyparq.filters.expression import Path
from pyparq.filters.leaf_tests import VALUE_OPS, Literals, Test
from pyparq.filters.literal import FLOAT_TYPES, Place, describe, locate
from pyparq.filters.predicate import Predicate, conjunction, disjunction, interval, null_test, rewritten
from pyparq.filters.value_array import BYTES_KINDS, MANY, ByteArray, ValueArray, is_null_literal
from pyparq.format.hybrid_calendar import stored_above, stored_up_to, stored_values
from pyparq.format.schema_node import Node, shape_of
from pyparq.format.schema_tree import SchemaTree


def compare_literal(node: Node, op: str, value: Any) -> Predicate:
    """``node op value``. Raises :class:`FilterError` for a literal that cannot be compared with the column."""
    leaf = node.type
    found = compare(node, op, locate(leaf, value, node.dotted))
    return in_calendar(found) if leaf.hybrid else found


def compare(node: Node, op: str, place: Place) -> Predicate:
    """``node op literal``, for a literal at the position ``place`` among the leaf's values."""
    below, above = place
    if below is above and below is not None:
        # Only NaN differs from itself.
        return Test(node, op, (below,)) if below == below else _compare_nan(node, op)
    if node.type.kind == "int96" and (below is None or above is None):
        return _beyond_int96(node, op, place)
    if op in ("==", "!="):
        return FALSE if op == "==" or node.type.kind == "null" else null_test(node, False)
    if op in ("<", "<="):
        return FALSE if below is None else interval(node, None, below if above is not None else None)
    return FALSE if above is None else interval(node, above if below is not None else None, None)


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


def among(node: Node, values: tuple[Any, ...] | ValueArray | ByteArray, negate: bool) -> Predicate:
    """The value is one of ``values``, or none of them."""
    found = _among(node, values, negate)
    return in_calendar(found) if node.type.hybrid else found


def _among(node: Node, values: tuple[Any, ...] | ValueArray | ByteArray, negate: bool) -> Predicate:
    leaf = node.type
    many: Any = None if isinstance(values, tuple) else values.among(leaf)
    if many is not None and not isinstance(values, tuple):
        found, has_nan = many
        found = tuple(found.tolist()) if isinstance(found, np.ndarray) and len(found) < MANY else found
        return FALSE if negate and values.has_null else _of_literals(node, found, has_nan, negate)
    known = [v for v in values if not is_null_literal(v)]
    places = [locate(leaf, v, node.dotted) for v in known]  # checked even where a null decides: it may be a mistake
    if negate and len(known) < len(values):
        return FALSE  # each row is either in the list or unknown
    exact: list[Any] = [p.below for p in places if p.exact]
    if leaf.kind == "int96" and any(p.below is None or p.above is None for p in places):
        each = [compare(node, "!=" if negate else "==", p) for p in places]
        return conjunction(each) if negate else disjunction(each)
    if negate and not len(values):
        return TRUE  # an empty list contains nothing, not even a null
    if negate and leaf.kind == "null":
        return FALSE
    literals = tuple(sorted({v for v in exact if v == v}))
    return _of_literals(node, literals, any(v != v for v in exact), negate)


def _of_literals(node: Node, literals: Literals, has_nan: bool, negate: bool) -> Predicate:
    """``literals``: sorted and distinct. They stay an array if they are many."""
    tests: list[Predicate] = []
    if len(literals):
        one, many = ("!=", "not in") if negate else ("==", "in")
        tests.append(Test(node, one if len(literals) == 1 else many, literals))
    if has_nan:
        tests.append(Test(node, "is_not_nan" if negate else "is_nan"))
    if not negate:
        return disjunction(tests)
    return conjunction(tests) if tests else null_test(node, False)


def among_fitting(node: Node, values: Any, negate: bool) -> Predicate:
    """As :func:`among`, where literals may be of several kinds: those of another kind than the leaf's equal none of its
    values, nor are they unequal. Raises :class:`FilterError` if none is of its kind."""
    if isinstance(values, ValueArray):
        return among(node, values, negate)
    known = tuple(value for value in values if not is_null_literal(value))
    fitting = tuple(value for value in known if _can_compare(node, value))
    if known and not fitting:
        locate(node.type, known[0], node.dotted)  # raises the error
    return FALSE if negate and len(fitting) < len(values) else among(node, fitting, negate)


def _can_compare(node: Node, value: Any) -> bool:
    try:
        locate(node.type, value, node.dotted)
    except FilterError:
        return False
    return True


def nan_test(node: Node, is_nan: bool) -> Predicate:
    kind = node.type.kind
    if kind == "null":
        return FALSE
    if kind not in FLOAT_TYPES:
        raise FilterError(f"is_nan() needs a floating-point column, not {describe(node.type)}", column=node.dotted)
    return Test(node, "is_nan" if is_nan else "is_not_nan")


def prefix_test(node: Node, prefix: str | bytes, negate: bool) -> Predicate:
    leaf = node.type
    if leaf.kind == "null":
        return FALSE
    if leaf.kind not in BYTES_KINDS and not (leaf.kind == "uuid" and isinstance(prefix, bytes)):
        raise FilterError(f"starts_with() needs a string or binary column, not {describe(leaf)}", column=node.dotted)
    try:
        raw = prefix if isinstance(prefix, bytes) else prefix.encode()
    except UnicodeEncodeError:
        raise FilterError(f"{prefix!r} is not valid Unicode", column=node.dotted) from None
    if not raw or (leaf.length and len(raw) > leaf.length):
        return FALSE if bool(raw) is not negate else null_test(node, False)
    return Test(node, "not starts_with" if negate else "starts_with", (raw,))


def box_test(node: Node, box: Any, negate: bool) -> Predicate:
    leaf = node.type
    if leaf.kind == "null":
        return FALSE
    if leaf.kind not in ("geometry", "geography", "binary") or leaf.length:
        raise FilterError(f"intersects_box() needs a geometry column, not {describe(leaf)}", column=node.dotted)
    return Test(node, "not intersects box" if negate else "intersects box", (box,))


# ---- columns in the hybrid calendar of old Spark


def in_calendar(predicate: Predicate) -> Predicate:
    """The predicate with the literals of hybrid columns converted from the Gregorian calendar to stored values.
    Statistics, page indexes, Bloom filters and dictionaries hold stored values, so they can then be asked.

    Raises :class:`UnsupportedError`, naming the column, if that takes a time zone that this machine does not know.
    """
    return rewritten(predicate, _stored)


def _stored(test: Any) -> Predicate:
    if not isinstance(test, Test) or not test.leaf.hybrid or test.op not in VALUE_OPS:
        return test  # type: ignore[no-any-return]
    node, op, leaf = test.node, test.op, test.leaf
    with located(column=node.dotted):
        if op in ("==", "!=", "in", "not in"):
            found = stored_values(leaf, np.asarray(test.literals, np.int64))
            if not len(found):
                return FALSE if op in ("==", "in") else null_test(node, False)
            if len(found) > 1:
                op = {"==": "in", "!=": "not in"}.get(op, op)
            return test.changed(op, found if isinstance(test.literals, np.ndarray) else tuple(found.tolist()))
        below = op in ("<", "<=")
        edge = int(test.literal) - (op in ("<", ">="))
        ranges = stored_up_to(leaf, edge) if below else stored_above(leaf, edge)
    if ranges == ([(None, edge)] if below else [(edge + 1, None)]):
        return test
    return disjunction([interval(node, low, high) for low, high in ranges])


# ---- the leaf that is meant


def items_leaf(tree: SchemaTree, path: Path) -> Node:
    """The leaf that holds the items of a list, of lists of lists, or of a field inside a list."""
    node = tree.find(path)
    item = item_of(node)
    if not item.is_leaf:
        raise FilterError(f"the list items have nested fields: use one of {named_leaves(node)}", column=node.dotted)
    if item.max_rep == 0:
        raise FilterError("contains() needs a list column: use == to compare this one", column=node.dotted)
    return item


def item_of(node: Node) -> Node:
    """The items of the innermost list in lists of lists. The node itself if it is no list."""
    shape = shape_of(node)
    while shape.kind == "list":
        shape = shape.children[0]
    return shape.node


def named_leaves(node: Node) -> str:
    """Some leaves of a group, for errors."""
    return ", ".join(repr(leaf.dotted) for leaf in list(node.leaves())[:5])
