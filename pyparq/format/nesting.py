"""What the groups of a file's schema mean: structs, lists and maps, with the levels that tell them apart.

The one place that knows the standard LIST and MAP structures and the legacy ones (LogicalTypes.md, "Nested Types").
Reading (levels to columns), writing (columns to levels) and the Arrow schema all follow a :class:`Shape`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyparq.format import ttypes as tt
from pyparq.format.schema_node import Node
from pyparq.format.types import OPTIONAL, REPEATED, DataType, Field

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
