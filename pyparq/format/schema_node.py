"""A node of a file's schema: its levels, its place among the columns, and what a leaf holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pyparq.format.annotation import leaf_type
from pyparq.format.types import OPTIONAL, REPEATED, REQUIRED, DataType, LeafType, arrow_type
from pyparq.runtime.text import printable


class Node:
    """A schema node. ``max_def`` and ``max_rep`` are the levels at this node (README.md, Nested Encoding)."""

    __slots__ = (
        "children", "column", "dotted", "element", "is_leaf", "max_def", "max_rep", "name", "parent", "repetition",
        "type",
    )  # fmt: skip

    dotted: str
    """The names from below the root down to here, with dots between them."""
    type: LeafType
    """Physical type and annotation of a leaf. Set another one to read or write the same stored values otherwise."""

    def __init__(self, element: Any, parent: Node | None, column: int) -> None:
        self.element = element
        self.parent = parent
        self.name: str = element.name
        repetition = element.repetition_type
        self.repetition: int = REQUIRED if parent is None or repetition is None else repetition
        self.max_def: int = 0 if parent is None else parent.max_def + (self.repetition != REQUIRED)
        self.max_rep: int = 0 if parent is None else parent.max_rep + (self.repetition == REPEATED)
        self.children: tuple[Node, ...] = ()
        self.column = column
        """Ordinal of this leaf (of the first leaf below, for a group): its place in ``RowGroup.columns``."""
        self.is_leaf: bool = element.num_children is None or (element.num_children == 0 and element.type is not None)

    def __getattr__(self, name: str) -> Any:
        # Most of the thousands of nodes of a wide file are never asked.
        if name == "type":
            found = leaf_type(self.element)
            if found.kind == "binary" and self.name != "typed_value" and self.in_variant():
                found = replace(found, kind="variant")
            self.type = found
            return found
        if name == "dotted":
            self.dotted = ".".join(self.path)
            return self.dotted
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    @property
    def path(self) -> tuple[str, ...]:
        """Names from below the root down to here."""
        if self.parent is not None and self.parent.parent is None:
            return (self.name,)
        names: list[str] = []
        node: Node | None = self
        while node is not None and node.parent is not None:
            names.append(node.name)
            node = node.parent
        return tuple(reversed(names))

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """What was not asked for yet stays so: the type of a damaged column is an error when somebody needs it."""
        state = {}
        for name in self.__slots__:
            with suppress(AttributeError):
                state[name] = Node.__dict__[name].__get__(self)
        return None, state

    def in_variant(self) -> bool:
        """Whether the node lies below a group annotated with VARIANT. Its columns ``metadata`` and ``value`` have no
        order. A column ``typed_value`` has that of its type."""
        node = self.parent
        while node is not None:
            if node.is_variant:
                return True
            node = node.parent
        return False

    @property
    def is_variant(self) -> bool:
        """Whether the node is a group annotated with VARIANT."""
        logical = self.element.logicalType
        return logical is not None and logical.VARIANT is not None

    @property
    def is_file(self) -> bool:
        """Whether the node is a group annotated with FILE: references to bytes, here or elsewhere."""
        logical = self.element.logicalType
        return logical is not None and logical.FILE is not None

    @property
    def arrow_type(self) -> DataType:
        """Arrow type of a leaf's values."""
        return arrow_type(self.type)

    @property
    def nullable(self) -> bool:
        return self.repetition == OPTIONAL

    def leaves(self) -> Iterator[Node]:
        """The leaves at or below this node, in column order."""
        if self.is_leaf:
            yield self
        for child in self.children:
            yield from child.leaves()

    @printable
    def __repr__(self) -> str:
        return f"<{'leaf' if self.is_leaf else 'group'} {self.dotted or self.name!r}>"
