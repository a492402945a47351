"""A node of a file's schema: its levels, its place among the columns, what a leaf holds, and what a group means: a
struct, a list or a map.

The one place that knows the standard LIST and MAP structures and the legacy ones (LogicalTypes.md, "Nested Types").
Reading (levels to columns), writing (columns to levels) and the Arrow schema all follow a :class:`Shape`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from pyparq.format import ttypes as tt
from pyparq.format.annotation import leaf_type
from pyparq.format.types import OPTIONAL, REPEATED, REQUIRED, DataType, Field, LeafType, arrow_type
from pyparq.runtime.text import printable


class Node:
    """A schema node. ``max_def`` and ``max_rep`` are the levels at this node (README.md, Nested Encoding)."""

    __slots__ = (
        "children", "column", "dotted", "element", "is_leaf", "max_def", "max_rep", "name", "parent", "repetition",
        "slot_level", "type",
    )  # fmt: skip

    dotted: str
    """The names from below the root down to here, with dots between them."""
    slot_level: int
    """The definition level from which on an entry of this leaf has a slot in the innermost list. 0 outside of lists."""
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
        if name == "slot_level":
            parent = self.parent
            self.slot_level = self.max_def if parent is None or self.repetition == REPEATED else parent.slot_level
            return self.slot_level
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


class LeafNumber(int):
    """A leaf by its position in the file, for columns that names cannot tell apart."""


# ---- what groups mean

_CT = tt.ConvertedType


@dataclass(frozen=True, slots=True)
class Shape:
    """One value position: a column, a struct's field, a list's element, a map's key or value.

    A value here is non-null where the definition level is at least ``def_level`` (``nullable`` says whether it can
    be less while the parent is there). For ``list`` and ``map``, an item exists where the definition level is at
    least ``item_def``, and a repetition level of ``item_rep`` continues the list. ``children`` are a struct's
    fields, a list's one element, or a map's key and value. ``node`` is the schema node the position belongs to.
    """

    name: str
    kind: str
    """``leaf``, ``struct``, ``list`` or ``map``."""
    nullable: bool
    def_level: int
    node: Node
    children: tuple[Shape, ...] = ()
    item_def: int = 0
    item_rep: int = 0

    def leaves(self) -> Iterator[Shape]:
        """The leaf shapes at or below this one, in column order."""
        if self.kind == "leaf":
            yield self
        for child in self.children:
            yield from child.leaves()


def shapes(root: Node) -> list[Shape]:
    """The shapes of the top-level columns, which are the children of ``root``.

    Never raises: an annotation that its structure contradicts is ignored."""
    return [shape_of(node) for node in root.children]


def shape_of(node: Node) -> Shape:
    """The shape of a schema node in the place of a value (a repeated one is a required list of required items)."""
    if node.repetition != REPEATED:
        return _value(node, node.name)
    # A bare repeated field: neither LIST nor MAP around it.
    return Shape(
        node.name, "list", False, node.max_def - 1, node, (_value(node, "element"),), node.max_def, node.max_rep
    )


def parts_of(node: Node) -> Iterator[tuple[str, Node]]:
    """Names and nodes of what a list or map consists of, its structure passed over: elements, however deep the lists
    are, the fields of structs in lists, ``key`` and ``value`` of maps. Nothing for other nodes."""
    shape = shape_of(node)
    if shape.kind not in ("list", "map"):
        return
    while shape.kind == "list":
        shape = shape.children[0]
        yield shape.name, shape.node
    for child in shape.children:
        yield child.name, child.node
    if shape.kind == "map":
        yield from zip(("key", "value"), (child.node for child in shape.children), strict=True)


def _value(node: Node, name: str) -> Shape:
    """The shape of a node whose own repetition (REPEATED) is already accounted for."""
    nullable = node.repetition == OPTIONAL
    if node.is_leaf:
        return Shape(name, "leaf", nullable, node.max_def, node)
    only = node.children[0] if len(node.children) == 1 else None
    repeated = only if only is not None and only.repetition == REPEATED else None
    if repeated is not None and is_map(node) and not repeated.is_leaf:
        if len(repeated.children) == 2 and all(c.repetition != REPEATED for c in repeated.children):
            items = tuple(_value(child, child.name) for child in repeated.children)
            return _repeated(node, name, "map", repeated, items)
        if len(repeated.children) == 1:  # keys without values: read as the list of the keys
            return _repeated(node, name, "list", repeated, (shape_of(repeated.children[0]),))
    if repeated is not None and is_list(node):
        return _repeated(node, name, "list", repeated, (_element(node, repeated),))
    return Shape(name, "struct", nullable, node.max_def, node, tuple(shape_of(c) for c in node.children))


def _repeated(node: Node, name: str, kind: str, repeated: Node, children: tuple[Shape, ...]) -> Shape:
    nullable = node.repetition == OPTIONAL
    return Shape(name, kind, nullable, node.max_def, node, children, repeated.max_def, repeated.max_rep)


def _element(node: Node, repeated: Node) -> Shape:
    """The element of a LIST by the backward-compatibility rules, which are numbered as in LogicalTypes.md."""
    if repeated.is_leaf:  # rule 1
        return _value(repeated, repeated.name)
    if len(repeated.children) != 1:  # rule 2
        return _value(repeated, repeated.name)
    child = repeated.children[0]
    if child.repetition == REPEATED:  # rule 3
        return _value(repeated, repeated.name)
    if repeated.name in ("array", f"{node.name}_tuple"):  # rule 4
        return _value(repeated, repeated.name)
    return _value(child, child.name)  # rule 5, and the standard structure


def is_list(node: Node) -> bool:
    """Is the group annotated with LIST?"""
    logical: Any = node.element.logicalType
    return (logical is not None and logical.LIST is not None) or node.element.converted_type == _CT.LIST


def is_map(node: Node) -> bool:
    """Is the group annotated with MAP (or, in old files, MAP_KEY_VALUE)?"""
    logical: Any = node.element.logicalType
    if logical is not None and logical.MAP is not None:
        return True
    return node.element.converted_type in (_CT.MAP, _CT.MAP_KEY_VALUE)


# ---- the Arrow fields that results show for leaves: ``ARROW:schema`` and declared schemas add meaning to some values
#
# Parquet has no durations, no ordered categories and no extension types of users. The file holds integers or text for
# them.


def top_of(leaf: Node) -> Node:
    """The top-level column that a leaf belongs to."""
    top = leaf
    while top.parent is not None and top.parent.parent is not None:
        top = top.parent
    return top


def shown_field(leaf: Node, tops: Sequence[Node], fields: Sequence[Field]) -> Field | None:
    """The Arrow field of a leaf in the result. ``None`` if the result does not have it. ``fields``: the result's fields
    for the top-level nodes ``tops``."""
    top = top_of(leaf)
    place = next((k for k, node in enumerate(tops) if node is top), None)
    return None if place is None else _below(leaf, shape_of(top), fields[place])


def values_of(type_: DataType) -> DataType:
    """The value type of a dictionary or of run-end encoding. Any other type is returned as it is."""
    return type_.dictionary or (type_.children[1].type if type_.format == "+r" else type_)


def _below(leaf: Node, shape: Shape, field: Field) -> Field | None:
    type_ = values_of(field.type)
    if shape.kind == "leaf":
        return field if shape.node is leaf else None
    if shape.kind == "map":
        type_ = type_.children[0].type
    if shape.kind == "struct":
        named = {inner.name: inner for inner in type_.children}
        pairs = [(child, named[child.name]) for child in shape.children if child.name in named]
    else:
        pairs = list(zip(shape.children, type_.children, strict=False))
    for child, inner in pairs:
        found = _below(leaf, child, inner)
        if found is not None:
            return found
    return None
