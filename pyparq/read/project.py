"""From the names a user asked for to the leaves to read and the fields to return."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyparq.errors import OptionError
from pyparq.read.fields import FileFields
from pyparq.schema.shape import Shape, shape_of
from pyparq.schema.tree import Node, SchemaTree
from pyparq.schema.types import Field


@dataclass(frozen=True, slots=True)
class Output:
    """One column of the result: its shape, the leaves it needs, and the Arrow field it becomes.

    ``stored`` is the field by the file's own schema, ``field`` what it is returned as.
    """

    shape: Shape
    stored: Field
    leaves: tuple[Node, ...]
    field: Field


def project(tree: SchemaTree, columns: Sequence[str] | None, fields: FileFields) -> list[Output]:
    """The result's columns: all, or those named, in the order of the names (a repeated name counts once).

    A name is a top-level column or a dotted path into one; paths into one column give one column reduced to those
    leaves. Raises :class:`ColumnNotFoundError` with near matches.
    """
    if columns is None:
        return [_output(node, None, fields) for node in tree.root.children]
    if isinstance(columns, str):
        raise OptionError(f"columns must be a list of names; did you mean [{columns!r}]?")
    wanted: dict[Node, set[int] | None] = {}
    for name in columns:
        if not isinstance(name, (str, tuple)):
            raise OptionError(f"columns must be a list of names, {name!r} is none")
        node = tree.find(name)
        top = node
        while top.parent is not tree.root and top.parent is not None:
            top = top.parent
        leaves = {leaf.column for leaf in node.leaves()}
        before = wanted.get(top, set())
        wanted[top] = None if node is top or before is None else before | leaves
    return [_output(node, leaves, fields) for node, leaves in wanted.items()]


def _output(node: Node, columns: set[int] | None, fields: FileFields) -> Output:
    shape = shape_of(node)
    if columns is not None and shape.kind != "leaf":
        columns = columns | _whole_maps(shape, columns)
    stored = fields.stored(shape, columns)
    assert stored is not None, "a column without leaves"
    leaves = tuple(leaf for leaf in node.leaves() if columns is None or leaf.column in columns)
    return Output(shape, stored, leaves, fields.result(stored, shape))


def _whole_maps(shape: Shape, columns: set[int]) -> set[int]:
    """The leaves of the maps that any of ``columns`` stands in: a map without its keys or values is none."""
    below = {leaf.node.column for leaf in shape.leaves()}
    if shape.kind == "map":
        return below if below & columns else set()
    return {column for child in shape.children for column in _whole_maps(child, columns)}
