"""Which leaves a result shows as durations: Parquet has none, ``ARROW:schema`` says which integers are such."""

from __future__ import annotations

from collections.abc import Sequence

from pyparq.schemas.shape import Shape, shape_of
from pyparq.schemas.tree import Node
from pyparq.schemas.types import DataType, Field, Physical


def may_be_duration(leaf: Node) -> bool:
    """Whether the file holds what durations are stored as: plain 64-bit integers."""
    return leaf.is_leaf and leaf.element.type == Physical.INT64 and leaf.type.kind == "int"


def duration_unit(leaf: Node, tops: Sequence[Node], fields: Sequence[Field]) -> str:
    """The unit (``s``, ``ms``, ``us``, ``ns``) in which ``leaf`` is shown as a duration, ``""`` where it is none.
    ``fields``: what the top-level nodes ``tops`` come out as."""
    top = leaf
    while top.parent is not None and top.parent.parent is not None:
        top = top.parent
    place = next((k for k, node in enumerate(tops) if node is top), None)
    return "" if place is None else _unit(leaf, shape_of(top), fields[place].type)


def _unit(leaf: Node, shape: Shape, type_: DataType) -> str:
    type_ = _values_of(type_)
    if shape.kind == "leaf":
        return type_.unit if shape.node is leaf and type_.kind == "duration" else ""
    if shape.kind == "map":
        type_ = type_.children[0].type
    if shape.kind == "struct":
        named = {field.name: field for field in type_.children}
        pairs = [(child, named[child.name]) for child in shape.children if child.name in named]
    else:
        pairs = list(zip(shape.children, type_.children, strict=False))
    return next((unit for child, field in pairs if (unit := _unit(leaf, child, field.type))), "")


def _values_of(type_: DataType) -> DataType:
    """What a dictionary or runs are of; any other type itself."""
    return type_.dictionary or (type_.children[1].type if type_.format == "+r" else type_)
