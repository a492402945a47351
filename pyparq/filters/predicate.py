"""Bound predicates: tests on leaves and on computed values, joined by AND and OR, without NOT.

The negation of every test is a test, so only "true" has to be computed. A row is kept where the tree of tests is true,
and a test that meets a null is not true. (``is_null`` is the one exception.) Literals are in the leaf's comparable
domain, see :mod:`pyparq.format.order`. Everything here can be pickled.

:func:`folded` and :func:`rewritten` are the two ways to walk a predicate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from pyparq.filters.bound import FALSE, TRUE, Bound, Columns, Constant, Levels, Mask
from pyparq.filters.computed import Computed
from pyparq.filters.leaf_tests import NAN_PASSES, Literals, Test, looked_up
from pyparq.format.order import FLOAT_KINDS
from pyparq.format.schema_node import Node
from pyparq.index.row_ranges import RowMask, Words

_Found = TypeVar("_Found")


class _Junction(Bound):
    __slots__ = ("asks_variants", "children")
    _word = ""

    def __init__(self, children: tuple[Predicate, ...]) -> None:
        self.children = children
        self.asks_variants = any(child.asks_variants for child in children)

    def columns(self) -> set[int]:
        return set[int]().union(*[child.columns() for child in self.children])

    def tests(self) -> Sequence[Test | Computed]:
        return [test for child in self.children for test in child.tests()]

    def units_left(self, of_test: Callable[[Any], Mask | None], count: int) -> Mask:
        join = np.logical_and if isinstance(self, And) else np.logical_or
        return np.asarray(join.reduce([child.units_left(of_test, count) for child in self.children]), np.bool_)

    def entries_column(self, columns: Columns) -> int | None:
        found = {child.entries_column(columns) for child in self.children}
        return found.pop() if len(found) == 1 else None

    def rows(self, columns: Columns, num_rows: int = -1, levels: Levels = None, within: Words | None = None) -> RowMask:
        first, *others = self._grouped(columns)
        if not others:
            number = first.entries_column(columns)
            assert number is not None
            return looked_up(columns[number], lambda entries: self.rows({number: entries}), within)
        mask = first.rows(columns, num_rows, levels, within)
        for child in others:
            if isinstance(self, And):
                if not mask:
                    break
                mask &= child.rows(columns, num_rows, levels, mask.words)
            else:
                open_rows = ~mask.words if within is None else within & ~mask.words
                mask |= child.rows(columns, num_rows, levels, open_rows)
        return mask

    def _grouped(self, columns: Columns) -> Sequence[Predicate]:
        """The children. Those on values of one dictionary-encoded column are grouped together."""
        groups: dict[Any, list[Predicate]] = {}
        for k, child in enumerate(self.children):
            column = child.entries_column(columns)
            groups.setdefault(("none", k) if column is None else column, []).append(child)
        if len(groups) == len(self.children):
            return self.children
        return [each[0] if len(each) == 1 else type(self)(tuple(each)) for each in groups.values()]  # type: ignore[misc]

    def __str__(self) -> str:
        return self._word.join(f"({c})" if isinstance(c, (And, Or)) else str(c) for c in self.children)


class And(_Junction):
    """True where every child is; at least two children, none of them an ``And`` or a ``Constant``."""

    __slots__ = ()
    _word = " and "


class Or(_Junction):
    """True where any child is; at least two children, none of them an ``Or`` or a ``Constant``."""

    __slots__ = ()
    _word = " or "


Predicate: TypeAlias = And | Or | Test | Constant | Computed

# ---- walking a predicate


def evaluate_rows(
    predicate: Predicate, columns: Columns, num_rows: int = -1, levels: Levels = None
) -> npt.NDArray[np.bool_]:
    """As :meth:`Bound.rows`, one bool per row."""
    return predicate.rows(columns, num_rows, levels).bools()


def folded(
    predicate: Predicate,
    of_test: Callable[[Any], _Found],
    all_of: Callable[[list[_Found]], _Found],
    any_of: Callable[[list[_Found]], _Found],
) -> _Found:
    """What the tests and constants are worth, joined: ``of_test`` is asked about each of them."""
    if not isinstance(predicate, _Junction):
        return of_test(predicate)
    parts = [folded(child, of_test, all_of, any_of) for child in predicate.children]
    return (all_of if isinstance(predicate, And) else any_of)(parts)


def rewritten(predicate: Predicate, change: Callable[[Test | Computed], Predicate]) -> Predicate:
    """The predicate with every test replaced by what ``change`` makes of it."""
    return folded(predicate, lambda t: t if isinstance(t, Constant) else change(t), conjunction, disjunction)


# ---- making a predicate


def null_test(node: Node, is_null: bool) -> Predicate:
    """``is_null`` or ``is_not_null``; a constant where the schema has no nulls."""
    if node.max_def == 0:
        return Constant(not is_null)
    return Test(node, "is_null" if is_null else "is_not_null")


def interval(node: Node, low: Any, high: Any) -> Predicate:
    """The values from ``low`` to ``high``; ``None`` for an end that is open."""
    tests: list[Predicate] = [] if low is None else [Test(node, ">=", (low,))]
    if high is not None:
        tests.append(Test(node, "<=", (high,)))
    return conjunction(tests) if tests else null_test(node, False)


def disjunction(children: Iterable[Predicate]) -> Predicate:
    """The OR of ``children``, flattened and without constants."""
    return _junction(children, Or)


def conjunction(children: Iterable[Predicate]) -> Predicate:
    """The AND of ``children``, flattened, without constants; FALSE if ranges on one leaf are disjoint."""
    return _junction(children, And)


def _junction(children: Iterable[Predicate], kind: type[And] | type[Or]) -> Predicate:
    decisive = kind is Or  # the constant that decides the whole
    kept: list[Predicate] = []
    for child in children:
        if not isinstance(child, Constant):
            kept.extend(child.children if isinstance(child, kind) else (child,))
        elif child.value is decisive:
            return TRUE if decisive else FALSE
    if len(kept) > 1:
        kept = _merged(kept, *(("==", "in") if decisive else ("!=", "not in")))
        kept = kept if decisive else _without_nan(kept)
    if len(kept) < 2:
        return kept[0] if kept else FALSE if decisive else TRUE
    return FALSE if not decisive and _contradictory(kept) else kind(tuple(kept))


def _merged(children: list[Predicate], one: str, many: str) -> list[Predicate]:
    """Equality tests of one leaf as one test with all their literals: ``x == 1 or x == 2`` becomes ``x in (1, 2)``.
    Tests of list items are left alone."""
    groups: dict[Any, list[Predicate]] = {}
    for k, child in enumerate(children):
        equal = isinstance(child, Test) and child.op in (one, many) and child.node.max_rep == 0
        groups.setdefault(child.column if equal else ("other", k), []).append(child)  # type: ignore[union-attr]
    return [each[0] if len(each) == 1 else _one_test(each, one, many) for each in groups.values()]


def _one_test(tests: Sequence[Any], one: str, many: str) -> Test:
    literals = sorted({v for test in tests for v in _plain(test.literals)})
    return Test(tests[0].node, many if len(literals) > 1 else one, tuple(literals))


def _without_nan(children: list[Predicate]) -> list[Predicate]:
    """Tests of floats that NaN passes are marked where it fails another child: ``x > 1 and x < 2``."""
    floats = [c for c in children if isinstance(c, Test) and c.leaf.kind in FLOAT_KINDS and c.node.max_rep == 0]
    without = {test.column for test in floats if test.op in ("==", "<", "<=", "in", "is_not_nan")}
    marked = {id(t): t.changed(t.op, t.literals) for t in floats if t.column in without and t.op in NAN_PASSES}
    for test in marked.values():
        test.no_nan = True
    return [marked.get(id(child), child) for child in children]


def _plain(literals: Literals) -> Literals:
    return literals.tolist() if isinstance(literals, np.ndarray) else literals


_LOWER, _UPPER = frozenset(("==", ">", ">=")), frozenset(("==", "<", "<="))


def _contradictory(children: list[Predicate]) -> bool:
    """Whether no value passes all range tests on some leaf (``x > 3 and x < 4`` on integers)."""
    tests: dict[int, list[Test]] = {}
    for child in children:
        # Different items of a list may pass different tests.
        if isinstance(child, Test) and child.node.max_rep == 0 and child.op in _LOWER | _UPPER:
            tests.setdefault(child.column, []).append(child)
    for found in tests.values():
        lows = [_edge(t, 1) for t in found if t.op in _LOWER] if len(found) > 1 else []
        highs = [_edge(t, -1) for t in found if t.op in _UPPER] if lows else []
        if not highs:
            continue
        # Among equal lower edges the open one is the higher, so its flag (1) sorts behind a closed one's (0).
        low, high = max(lows), min(highs)
        if low[0] > high[0] or (low[0] == high[0] and (low[1] or high[1])):
            return True
    return False


def _edge(test: Test, inwards: int) -> tuple[Any, int]:
    """(value, 0 if it is inside the range; ±1 if not, ordering open edges inwards)."""
    value = test.literals[0]
    if test.op not in ("<", ">"):
        return value, 0
    return (value + inwards, 0) if isinstance(value, int) else (value, inwards)
