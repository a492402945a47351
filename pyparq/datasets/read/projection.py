"""The columns of a dataset that a scan returns, and the lookup of filter names in a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyparq.datasets.read.schema_tree import tree_of
from pyparq.filters.bind import bind
from pyparq.filters.expression import Expression, simplified, tested_paths
from pyparq.filters.variants import named_node
from pyparq.format.nesting import Shape, shape_of
from pyparq.format.schema_node import Node
from pyparq.format.shown_types import shown_field, top_of
from pyparq.format.types import Field, Schema
from pyparq.read.projection import named

if TYPE_CHECKING:
    from collections.abc import Iterable


class Projection:
    """The columns of a result: some from the files (``own``), some from the names of folders.

    Raises :class:`ColumnNotFoundError` and :class:`FilterError` like a scan of one file.
    """

    def __init__(
        self,
        schema: Schema,
        columns: Iterable[Any] | str | None,
        expression: Expression | None,
        partitions: Sequence[Field],
        case_sensitive: bool = True,
    ) -> None:
        self.tree = tree_of(schema, case_sensitive=case_sensitive)
        """The dataset's schema as a tree, partition columns included."""
        self._fields = schema.fields
        bind(expression, self.tree, self.shown)  # raises the error
        order = {field.name: k for k, field in enumerate(partitions)}
        tops = {node: k for k, node in enumerate(self.tree.root.children)}
        wanted = dict.fromkeys(self.tree.root.children) if columns is None else named(self.tree, columns)
        self.own: list[Field] = []
        self.places: list[int | None] = []
        """For each column of the result, the number of its partition column. ``None`` for a column of the files."""
        fields = []
        for node, leaves in wanted.items():
            field = schema.fields[tops[node]]
            place = order.get(field.name)
            if place is None:
                field = field if leaves is None else _reduced(field, shape_of(node), leaves)
                self.own.append(field)
            self.places.append(place)
            fields.append(field)
        self.schema = Schema(tuple(fields), schema.metadata)
        """Of the result."""
        asked = {tops[node] for node in wanted} | {tops[top_of(node)] for node in self._tested(expression)}
        self.base = Schema(tuple(schema.fields[k] for k in sorted(asked)), schema.metadata)
        """The dataset's schema without columns that nothing asks for."""

    def _tested(self, expression: Expression | None) -> set[Node]:
        """All columns that the filter names, even those that binding proves irrelevant: the filter is bound again for
        each file, and where a plan runs."""
        found = set[Node]()

        def look(test: Any) -> Expression:
            found.update(named_node(self.tree, path) for path in tested_paths(test))
            return test  # type: ignore[no-any-return]

        if expression is not None:
            simplified(expression, look)
        return found

    def shown(self, leaf: Node) -> Field | None:
        """The field as which the dataset shows a leaf."""
        return shown_field(leaf, self.tree.root.children, self._fields)


def _reduced(field: Field, shape: Shape, leaves: set[int]) -> Field:
    """The field with only these leaves. Maps stay whole."""
    below = {leaf.node.column for leaf in shape.leaves()}
    if below <= leaves or shape.kind in ("leaf", "map"):
        return field
    pairs = zip(field.type.children, shape.children, strict=True)
    kept = [
        _reduced(child, inner, leaves)
        for child, inner in pairs
        if {leaf.node.column for leaf in inner.leaves()} & leaves
    ]
    return replace(field, type=replace(field.type, children=tuple(kept)))
