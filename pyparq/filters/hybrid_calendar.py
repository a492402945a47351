"""Converts tests on columns in the hybrid calendar of old Spark to tests on stored values.

Statistics, page indexes, Bloom filters and dictionaries hold stored values, so they can then be asked.
"""

from __future__ import annotations

import numpy as np

from pyparq.errors import located
from pyparq.filters.predicate import (
    FALSE,
    VALUE_OPS,
    And,
    Literals,
    Or,
    Predicate,
    Test,
    conjunction,
    disjunction,
    null_test,
)
from pyparq.format.hybrid_calendar import Range, stored_above, stored_up_to, stored_values
from pyparq.format.schema_node import Node


def in_calendar(predicate: Predicate) -> Predicate:
    """The predicate with the literals of hybrid columns converted from the Gregorian calendar to stored values.

    Raises :class:`UnsupportedError`, naming the column, if that takes a time zone that this machine does not know.
    """
    if isinstance(predicate, (And, Or)):
        join = conjunction if isinstance(predicate, And) else disjunction
        return join([in_calendar(child) for child in predicate.children])
    if not isinstance(predicate, Test) or not predicate.node.type.hybrid or predicate.op not in VALUE_OPS:
        return predicate
    with located(column=predicate.node.dotted):
        return _stored(predicate)


def _stored(test: Test) -> Predicate:
    node, op, leaf = test.node, test.op, test.node.type
    if op in ("==", "!=", "in", "not in"):
        many = isinstance(test.literals, np.ndarray)
        found = stored_values(leaf, np.asarray(test.literals, np.int64))
        if not len(found):
            return FALSE if op in ("==", "in") else null_test(node, False)
        literals: Literals = found if many else tuple(found.tolist())
        if len(found) > 1:
            op = {"==": "in", "!=": "not in"}.get(op, op)
        return Test(node, op, literals, level=test.level, none=test.none, name=test.name)
    edge = int(test.literal)
    below = op in ("<", "<=")
    edge -= op in ("<", ">=")
    ranges = stored_up_to(leaf, edge) if below else stored_above(leaf, edge)
    if ranges == ([(None, edge)] if below else [(edge + 1, None)]):
        return test
    return disjunction([_within(node, part) for part in ranges])


def _within(node: Node, part: Range) -> Predicate:
    low, high = part
    tests: list[Predicate] = [] if low is None else [Test(node, ">=", (low,))]
    if high is not None:
        tests.append(Test(node, "<=", (high,)))
    return conjunction(tests) if tests else null_test(node, False)
