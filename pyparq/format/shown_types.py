"""The Arrow fields that results show for leaves. ``ARROW:schema`` and declared schemas add meaning to some values.

Parquet has no durations, no ordered categories and no extension types of users. The file holds integers or text for
them.
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
