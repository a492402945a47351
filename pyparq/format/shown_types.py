"""What a leaf is shown as: ``ARROW:schema`` and declared schemas say more of some values than Parquet does.

Parquet has no durations, no categories with an order and no extension types of users: the file holds integers or text.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyparq.format.nesting import Shape, shape_of
from pyparq.format.schema_node import Node
from pyparq.format.types import DataType, Field


def top_of(leaf: Node) -> Node:
    """The top-level column that a leaf belongs to."""
    top = leaf
    while top.parent is not None and top.parent.parent is not None:
        top = top.parent
    return top


def shown_field(leaf: Node, tops: Sequence[Node], fields: Sequence[Field]) -> Field | None:
    """The Arrow field of a leaf; ``None`` where the result has none. ``fields``: what the top-level nodes ``tops`` come
    out as."""
    top = top_of(leaf)
    place = next((k for k, node in enumerate(tops) if node is top), None)
    return None if place is None else _below(leaf, shape_of(top), fields[place])


def values_of(type_: DataType) -> DataType:
    """What a dictionary or runs are of; any other type itself."""
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
