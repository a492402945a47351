"""Bound predicates: tests on leaves, joined by AND and OR, without NOT.

The negation of every test is a test, so only "true" has to be computed. A row is kept where the tree of tests is true,
and a test that meets a null is not true. (``is_null`` is the one exception.) Literals are in the leaf's comparable
domain, see :mod:`pyparq.format.order`. Everything here can be pickled.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pyparq.filters.computed import Computed
from pyparq.format.hybrid_calendar import meant
from pyparq.format.order import bound_dtype
from pyparq.format.schema_node import Node
from pyparq.format.types import LeafType
from pyparq.kernels import NumberSet
from pyparq.runtime.text import printable

VALUE_OPS = (
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "in",
    "not in",
    "starts_with",
    "not starts_with",
    "intersects box",
    "not intersects box",
)
"""Operators that look at a value and carry literals."""

AT_LEAST = "number >="
"""As ``>=``, but NaN does not pass. Only indexes are asked about it."""
BOX_OPS = ("intersects box", "not intersects box")
"""Those of geometries. Their literal is xmin, ymin, xmax, ymax."""


Literals: TypeAlias = Any
"""A tuple of Python values, or many numbers as one array."""


class Constant:
    """True or false for every row."""

    __slots__ = ("value",)

    def __init__(self, value: bool) -> None:
        self.value = value

    def columns(self) -> set[int]:
        return set()

    def tests(self) -> Iterator[Test]:
        return iter(())

    def computed(self) -> Iterator[Computed]:
        return iter(())

    def __str__(self) -> str:
        return "true" if self.value else "false"

    __repr__ = printable(__str__)


class Test:
    """One test on one leaf.

    ``op`` is one of :data:`VALUE_OPS` or ``is_null is_not_null is_nan is_not_nan null_items``; a null satisfies
    ``is_null`` and nothing else. ``literals`` holds one value, sorted distinct ones for ``in`` and ``not in`` (an array
    of the domain's dtype where they are many numbers), none for the ``is_…`` tests; NaN never stands there (binding
    turns it into ``is_nan`` tests). For ``null_items`` they are the definition levels that mean a null item of a list.

    Null tests ask for the definition level: something is there from ``level`` on (``node.max_def`` for the leaf
    itself, less for a struct or list around it, which ``name`` then names).

    A test of values on a leaf inside of lists is true for a row where any item passes; with ``none``, where no item
    does and the outermost list is not null (its values are there from ``level`` on).
    """

    __slots__ = ("_array", "_sets", "level", "literals", "name", "node", "none", "op")
    __test__ = False  # pytest: this is no test class

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
        self._array: npt.NDArray[Any] | None = None
        self._sets: dict[np.dtype[Any], NumberSet] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _test_of, (self.node, self.op, self.literals, self.level, self.none, self.name)

    @property
    def leaf(self) -> LeafType:
        return self.node.type

    @property
    def column(self) -> int:
        """Ordinal of the leaf."""
        return self.node.column

    @property
    def asks_levels(self) -> bool:
        """Whether levels answer the test, and not values: a null test of a struct or list around the leaf, or of
        items."""
        return self.op == "null_items" or (self.level < self.node.max_def and self.op in ("is_null", "is_not_null"))

    @property
    def literal(self) -> Any:
        """The value of a test that has one."""
        return self.literals[0]

    def literal_array(self) -> npt.NDArray[Any]:
        """The literals as an array of the comparable domain's dtype, made once."""
        if self._array is None:
            self._array = domain_array(self.leaf, self.literals)
        return self._array

    def number_set(self, dtype: np.dtype[Any]) -> NumberSet:
        """The literals as a set to look up values of this dtype in, made once."""
        found = self._sets.get(dtype)
        if found is None:
            found = self._sets[dtype] = NumberSet(np.asarray(self.literal_array(), dtype))
        return found

    def columns(self) -> set[int]:
        return {self.node.column}

    def tests(self) -> Iterator[Test]:
        yield self

    def computed(self) -> Iterator[Computed]:
        return iter(())

    def __str__(self) -> str:
        name = self.name or self.node.dotted
        if self.op == "null_items":
            return f"{name} {'not ' if self.none else ''}contains null"
        if self.node.max_rep and not self.asks_levels:
            item = format_literal(self.leaf, self.literal) if len(self.literals) else "nan"
            return f"{name} {'not ' if self.none else ''}contains {item}"
        if not len(self.literals):
            return f"{name} {self.op.replace('_', ' ')}"
        if self.op in ("in", "not in"):
            shown = [format_literal(self.leaf, v) for v in self.literals[:5]]
            more = f", … {len(self.literals)} values" if len(self.literals) > 5 else ""
            return f"{name} {self.op} ({', '.join(shown)}{more})"
        return f"{name} {self.op.replace('_', ' ')} {format_literal(self.leaf, self.literal)}"

    __repr__ = printable(__str__)


def _test_of(node: Node, op: str, literals: Any, level: int, none: bool, name: str | None) -> Test:
    return Test(node, op, literals, level=level, none=none, name=name)


class _Junction:
    __slots__ = ("children",)

    def __init__(self, children: tuple[Predicate, ...]) -> None:
        self.children = children

    def columns(self) -> set[int]:
        """Ordinals of the leaves that the tests look at."""
        return {column for child in self.children for column in child.columns()}

    def tests(self) -> Iterator[Test]:
        for child in self.children:
            yield from child.tests()

    def computed(self) -> Iterator[Computed]:
        """The tests of computed values, which :meth:`tests` leaves out: no index of a single leaf answers them."""
        for child in self.children:
            yield from child.computed()


class And(_Junction):
    """True where every child is; at least two children, none of them an ``And`` or a ``Constant``."""

    __slots__ = ()

    def __str__(self) -> str:
        return " and ".join(f"({c})" if isinstance(c, Or) else str(c) for c in self.children)

    __repr__ = printable(__str__)


class Or(_Junction):
    """True where any child is; at least two children, none of them an ``Or`` or a ``Constant``."""

    __slots__ = ()

    def __str__(self) -> str:
        return " or ".join(f"({c})" if isinstance(c, And) else str(c) for c in self.children)

    __repr__ = printable(__str__)


Predicate = And | Or | Test | Constant | Computed

TRUE, FALSE = Constant(True), Constant(False)


def null_test(node: Node, is_null: bool) -> Predicate:
    """``is_null`` or ``is_not_null``; a constant where the schema has no nulls."""
    if node.max_def == 0:
        return Constant(not is_null)
    return Test(node, "is_null" if is_null else "is_not_null")


def disjunction(children: Iterable[Predicate]) -> Predicate:
    """The OR of ``children``, flattened and without constants."""
    kept: list[Predicate] = []
    for child in children:
        if isinstance(child, Constant):
            if child.value:
                return TRUE
        else:
            kept.extend(child.children if isinstance(child, Or) else (child,))
    kept = _merged(kept, "==", "in")
    return Or(tuple(kept)) if len(kept) > 1 else kept[0] if kept else FALSE


def conjunction(children: Iterable[Predicate]) -> Predicate:
    """The AND of ``children``, flattened, without constants; FALSE if ranges on one leaf are disjoint."""
    kept: list[Predicate] = []
    for child in children:
        if isinstance(child, Constant):
            if not child.value:
                return FALSE
        else:
            kept.extend(child.children if isinstance(child, And) else (child,))
    kept = _merged(kept, "!=", "not in")
    if len(kept) < 2:
        return kept[0] if kept else TRUE
    return FALSE if _contradictory(kept) else And(tuple(kept))


def _merged(children: list[Predicate], one: str, many: str) -> list[Predicate]:
    """Equality tests of one leaf as one test with all their literals: ``x == 1 or x == 2`` becomes ``x in (1, 2)``.
    Tests of list items are left alone."""
    groups: dict[int, list[Test]] = {}
    for child in children:
        if isinstance(child, Test) and child.op in (one, many) and child.node.max_rep == 0:
            groups.setdefault(child.node.column, []).append(child)
    groups = {column: tests for column, tests in groups.items() if len(tests) > 1}
    if not groups:
        return children
    kept: list[Predicate] = []
    for child in children:
        found = groups.get(child.node.column) if isinstance(child, Test) and child.op in (one, many) else None
        if found is None:
            kept.append(child)
        elif child is found[0]:
            literals = sorted({v for test in found for v in _plain(test.literals)})
            kept.append(Test(found[0].node, many if len(literals) > 1 else one, tuple(literals)))
    return kept


def _plain(literals: Literals) -> Literals:
    return literals.tolist() if isinstance(literals, np.ndarray) else literals


_LOWER, _UPPER = frozenset(("==", ">", ">=")), frozenset(("==", "<", "<="))


def _contradictory(children: list[Predicate]) -> bool:
    """Whether no value passes all range tests on some leaf (``x > 3 and x < 4`` on integers)."""
    tests: dict[int, list[Test]] = {}
    for child in children:
        if not isinstance(child, Test) or child.node.max_rep > 0:
            continue  # different items of a list may pass different tests
        if child.op in _LOWER or child.op in _UPPER:
            tests.setdefault(child.node.column, []).append(child)
    for found in tests.values():
        lows = [_edge(t, 1) for t in found if t.op in _LOWER]
        highs = [_edge(t, -1) for t in found if t.op in _UPPER]
        if not lows or not highs:
            continue
        # Among equal lower edges the open one is the higher, so its flag (1) sorts behind a closed one's (0).
        low, high = max(lows), min(highs)
        if low[0] > high[0] or (low[0] == high[0] and (low[1] or high[1])):
            return True
    return False


def _edge(test: Test, inwards: int) -> tuple[Any, int]:
    """(value, 0 if it is inside the range; ±1 if not, ordering open edges inwards)."""
    value = test.literal
    if test.op not in ("<", ">"):
        return value, 0
    return (value + inwards, 0) if isinstance(value, int) else (value, inwards)


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


_UNIT_NS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}


def format_literal(leaf: LeafType, value: Any) -> str:
    """A literal of the comparable domain as readable text."""
    kind = leaf.kind
    if isinstance(value, tuple):
        return f"({', '.join(map(repr, value))})"
    if leaf.hybrid:
        value = meant(leaf, value)
    if kind == "bool":
        return "true" if value else "false"
    if kind == "decimal":
        return format(Decimal(f"{value}e-{leaf.scale}"), "f")
    if kind == "date":
        return str(np.datetime64(value, "D"))
    if kind in ("timestamp", "int96"):
        if value == np.iinfo(np.int64).min:  # numpy calls it NaT
            return f"{value} {leaf.unit or 'ns'}"
        return str(np.array(value, f"M8[{leaf.unit or 'ns'}]")) + ("Z" if leaf.utc else "")
    if kind == "time":
        return _format_time(value * _UNIT_NS[leaf.unit])
    if isinstance(value, bytes):
        if kind == "uuid" and len(value) == 16:
            return str(uuid.UUID(bytes=value))
        try:
            return repr(value.decode()) if leaf.is_text else repr(value)
        except UnicodeDecodeError:
            return repr(value)
    return str(value)


def _format_time(ns: int) -> str:
    seconds, fraction = divmod(abs(ns), 1_000_000_000)
    shown = f"{'-' if ns < 0 else ''}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{shown}.{fraction:09d}".rstrip("0") if fraction else shown
