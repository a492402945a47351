"""Computed values that are bound to the leaves of a file, as in :mod:`pyparq.filters.value_expressions`."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, TypeAlias

from pyparq.format.schema_node import Node
from pyparq.runtime.text import printable

NUMBER, TEXT, BINARY, UUID, BOOL = "number", "text", "binary", "uuid", "bool"
LOCAL, INSTANT, MOMENT, TIME, DURATION = "local time", "instant", "moment", "time of day", "duration"
"""What values are, which decides what they can be compared with. A moment (INT96) is a local time and an instant."""


class Leaf:
    """A column. ``den``: its values are whole numbers of ``1 / den``: decimals, and times in days."""

    __slots__ = ("den", "family", "floats", "node")

    def __init__(self, node: Node, family: str, den: int = 1, floats: bool = False) -> None:
        self.node, self.family, self.den, self.floats = node, family, den, floats

    @printable
    def __repr__(self) -> str:
        return self.node.dotted


class Fixed:
    """A literal: an exact number, a double, or bytes."""

    __slots__ = ("family", "floats", "value")

    def __init__(self, value: Fraction | float | bytes, family: str) -> None:
        self.value, self.family = value, family
        self.floats = isinstance(value, float)

    @printable
    def __repr__(self) -> str:
        return repr(self.value) if isinstance(self.value, bytes) else str(self.value)


class Operation:
    """``op`` is one of ``+ - * /`` or a function. ``floats``: it is computed in doubles."""

    __slots__ = ("family", "floats", "op", "operands")

    def __init__(self, op: str, operands: tuple[BoundValue, ...], family: str, floats: bool) -> None:
        self.op, self.operands, self.family, self.floats = op, operands, family, floats

    @printable
    def __repr__(self) -> str:
        if len(self.operands) == 1:
            return f"{self.op}({self.operands[0]!r})"
        return f"({self.operands[0]!r} {self.op} {self.operands[1]!r})"


BoundValue: TypeAlias = Leaf | Fixed | Operation


class Comparison:
    """``left op right``."""

    __slots__ = ("left", "op", "right")

    def __init__(self, left: BoundValue, op: str, right: BoundValue) -> None:
        self.left, self.op, self.right = left, op, right

    @property
    def values(self) -> tuple[BoundValue, ...]:
        return self.left, self.right

    @printable
    def __repr__(self) -> str:
        return f"{self.left!r} {self.op} {self.right!r}"


class Match:
    """A text fits a pattern: see :class:`pyparq.filters.value_expressions.Matches`."""

    __slots__ = ("escape", "kind", "pattern", "value")

    def __init__(self, value: BoundValue, kind: str, pattern: Any, escape: str) -> None:
        self.value, self.kind, self.pattern, self.escape = value, kind, pattern, escape

    @property
    def values(self) -> tuple[BoundValue, ...]:
        return (self.value,)

    @printable
    def __repr__(self) -> str:
        return f"{self.value!r} {self.kind.replace('_', ' ')} {self.pattern!r}"


class Missing:
    """A value is null."""

    __slots__ = ("value",)

    def __init__(self, value: BoundValue) -> None:
        self.value = value

    @property
    def values(self) -> tuple[BoundValue, ...]:
        return (self.value,)

    @printable
    def __repr__(self) -> str:
        return f"{self.value!r} is null"


class InVariant:
    """A test of what Variants hold at a path. True for no Variant that is null itself.

    ``value`` and ``metadata`` are the columns that hold them; the latter is needed for ``rest``, the names of fields
    down to the value. ``kinds``: a predicate for each kind of value that may pass, on a column of that kind
    (:mod:`pyparq.filters.variant_kinds`). Without them it is a null test. ``text``: it in words.
    """

    __slots__ = ("is_null", "kinds", "metadata", "rest", "text", "value")

    def __init__(
        self, text: str, value: Leaf, metadata: Leaf | None, rest: tuple[str, ...], kinds: Any, is_null: bool = False
    ) -> None:
        self.text, self.value, self.metadata, self.rest = text, value, metadata, rest
        self.kinds, self.is_null = kinds, is_null

    @property
    def values(self) -> tuple[BoundValue, ...]:
        return (self.value,) if self.metadata is None else (self.value, self.metadata)

    @printable
    def __repr__(self) -> str:
        return f"{self.text} in {self.value!r}"


BoundTest: TypeAlias = Comparison | Match | Missing | InVariant


class Computed:
    """A test of computed values: true for a row where ``test`` is true, or with ``negated`` where it is false."""

    __slots__ = ("negated", "nodes", "test")

    def __init__(self, test: BoundTest, negated: bool) -> None:
        self.test = test
        self.negated = negated
        leaves = [leaf for value in test.values for leaf in leaves_of(value)]
        self.nodes: tuple[Node, ...] = tuple({leaf.node.column: leaf.node for leaf in leaves}.values())

    def tests(self) -> Iterator[Any]:
        """Tests of single leaves: none."""
        return iter(())

    def computed(self) -> Iterator[Computed]:
        yield self

    @property
    def is_of_entries(self) -> bool:
        """Whether the answer for a row follows from the entry of the only column's dictionary. No null passes."""
        return len(self.nodes) == 1 and not isinstance(self.test, Missing)

    @property
    def has_bounds(self) -> bool:
        """Whether bounds of the columns can prove more than that a column is null."""
        return isinstance(self.test, Comparison) and bool(self.nodes)

    def columns(self) -> set[int]:
        return {node.column for node in self.nodes}

    def __str__(self) -> str:
        return f"not ({self.test!r})" if self.negated else repr(self.test)

    __repr__ = printable(__str__)


def leaves_of(value: BoundValue) -> list[Leaf]:
    if isinstance(value, Operation):
        return [leaf for operand in value.operands for leaf in leaves_of(operand)]
    return [value] if isinstance(value, Leaf) else []
