"""The Arrow fields of a file's columns, from three sources: the file's schema, the hints, and the read options."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyparq.arrow.column_operations import VIEWS
from pyparq.arrow.schema.hints import ARROW_SCHEMA, Hints, dictionary_leaves, with_dictionaries
from pyparq.arrow.schema.to_parquet import field_of
from pyparq.errors import OptionError
from pyparq.format.hybrid_calendar import without_hybrid
from pyparq.format.nesting import Shape, shape_of
from pyparq.format.schema_node import Node
from pyparq.format.schema_tree import SchemaTree
from pyparq.format.shown_types import shown_field, top_of
from pyparq.format.types import Field, Physical, Schema
from pyparq.options import ReadOptions
from pyparq.read.footers.leaf_set import LeafSet
from pyparq.read.variants import with_whole_variants

MOST_SETS = 64
MOST_KEPT = 256
"""Sets of leaves of a schema that are kept, and the leaves of each."""


@dataclass(frozen=True, slots=True)
class Output:
    """One column of a result: its shape, its leaves, and its Arrow field.

    ``stored`` is the field by the file's own schema, ``field`` the one that is returned.
    """

    shape: Shape
    stored: Field
    leaves: tuple[Node, ...]
    field: Field


class Projection:
    """The columns of a result and their leaves. Most is computed at first use."""

    __slots__ = ("_hybrid", "_is_flat", "_is_plain", "_leaves", "_of_file", "fields", "outputs")

    def __init__(self, outputs: list[Output], of_file: FileFields) -> None:
        self.outputs = outputs
        self.fields = tuple(output.field for output in outputs)
        self._of_file = of_file
        self._leaves: LeafSet | None = None
        self._is_flat: bool | None = None
        self._is_plain: bool | None = None
        self._hybrid: list[int] | None = None

    @property
    def hybrid(self) -> list[int]:
        """Positions of the columns that hold dates or timestamps of the hybrid calendar."""
        if self._hybrid is None:
            self._hybrid = [k for k, out in enumerate(self.outputs) if any(leaf.type.hybrid for leaf in out.leaves)]
        return self._hybrid

    @property
    def leaves(self) -> LeafSet:
        """The leaves in the order of the columns, each in the form that the decoder returns."""
        if self._leaves is None:
            columns = dict.fromkeys([leaf.column for output in self.outputs for leaf in output.leaves])
            self._leaves = self._of_file.leaf_set(tuple(columns))
        return self._leaves

    @property
    def is_flat(self) -> bool:
        """Whether every column is a leaf, so that decoded columns are result columns."""
        if self._is_flat is None:
            self._is_flat = all(output.shape.kind == "leaf" for output in self.outputs)
        return self._is_flat

    @property
    def is_plain(self) -> bool:
        """Whether every leaf is decoded to plain values: no dictionaries, no views."""
        if self._is_plain is None:
            self._is_plain = self._of_file.are_plain(self.leaves.nodes)
        return self._is_plain


class FileFields:
    """The Arrow fields of all columns, for files with one schema.

    Everything is computed at first use, because files may have thousands of columns. Several threads may use it:
    results that two threads compute at once are equal.
    """

    def __init__(self, tree: SchemaTree, key_values: Mapping[bytes, bytes], options: ReadOptions) -> None:
        self._tree = tree
        self._key_values = key_values
        self._asked = _dictionary_columns(tree, options.read_dictionary)
        self._hints = Hints(key_values, len(tree.root.children), options.use_arrow_schema)
        self._whole_variants = options.variants == "whole"
        self._places: dict[Node, int] | None = None
        self._metadata: dict[bytes, bytes] | None = None
        self._dictionaries: dict[Node, frozenset[int]] = {}
        self._whole: dict[Node, Output] = {}
        self._shown: dict[Node, Field | None] = {}
        self._leaf_sets: dict[tuple[tuple[int, ...], tuple[int, ...]], LeafSet] = {}
        self.projection: Projection | None = None
        """The projection of all columns, once it was asked for."""

    def leaf_set(self, columns: tuple[int, ...], coded: tuple[int, ...] = ()) -> LeafSet:
        """Leaves that are read together, by their places in a row group. ``coded``: those that come as codes. The sets
        of few leaves that were asked for last are kept."""
        found = self._leaf_sets.get((columns, coded))
        if found is None:
            found = LeafSet([self._tree.leaves[column] for column in columns], coded)
            if len(columns) <= MOST_KEPT:
                if len(self._leaf_sets) >= MOST_SETS:
                    self._leaf_sets.clear()
                self._leaf_sets[columns, coded] = found
        return found

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """The file's key-value metadata for tables. It leaves out the Arrow schema, which tables have as such, and
        Spark's notes on its calendar, which do not hold for the converted values of a table."""
        if self._metadata is None:
            kept = without_hybrid(self._key_values)
            self._metadata = {key: value for key, value in kept.items() if key != ARROW_SCHEMA}
        return dict(self._metadata)

    @property
    def schema(self) -> Schema:
        """The schema of a table with all columns."""
        return Schema(tuple(self.whole(node).field for node in self._tree.root.children), self.metadata)

    def whole(self, node: Node) -> Output:
        """A top-level column with all its leaves."""
        found = self._whole.get(node)
        if found is None:
            shape = shape_of(node)
            stored = self.stored(shape, None)
            assert stored is not None, "a column without leaves"
            found = self._whole[node] = Output(shape, stored, tuple(node.leaves()), self.result(stored, shape))
        return found

    def stored(self, shape: Shape, columns: Collection[int] | None) -> Field | None:
        """The field by the file's own schema, reduced to the leaves in ``columns``."""
        return field_of(shape, columns, self._key_values)

    def result(self, stored: Field, shape: Shape) -> Field:
        """The result field of the column ``stored``."""
        field = self._hints.restored(stored, self._place(shape.node)) if self._hints else stored
        field = with_dictionaries(field, shape, self._asked) if self._asked else field
        if self._whole_variants and shape.kind != "leaf":
            field = with_whole_variants(field, shape)
        if shape.kind == "leaf":  # keeps the hint, which is then looked up only once
            self._dictionaries[shape.node] = frozenset(dictionary_leaves(field.type, shape))
        return field

    def is_dictionary(self, leaf: Node) -> bool:
        """Whether the leaf is returned as a dictionary."""
        if not self._hints:
            return leaf.column in self._asked
        top = leaf
        while top.parent is not None and top.parent is not self._tree.root:
            top = top.parent
        found = self._dictionaries.get(top)
        if found is None:
            shape = shape_of(top)
            stored = self.stored(shape, None)
            found = (
                frozenset() if stored is None else frozenset(dictionary_leaves(self.result(stored, shape).type, shape))
            )
            self._dictionaries[top] = found
        return leaf.column in found

    def are_plain(self, leaves: Iterable[Node]) -> bool:
        """Whether every leaf is decoded to plain values: no dictionaries, no views."""
        if not self._hints:
            return not self._asked or self._asked.isdisjoint([leaf.column for leaf in leaves])
        return not any(self.is_dictionary(leaf) or self.is_view(leaf) for leaf in leaves)

    def is_view(self, leaf: Node) -> bool:
        """Whether the leaf, a column of its own, is returned as string views."""
        return self._hinted_format(leaf) in VIEWS

    def is_large(self, leaf: Node) -> bool:
        """Whether the leaf, a column of its own, is returned with 64-bit offsets."""
        return self._hinted_format(leaf) in ("U", "Z")

    def shown(self, leaf: Node) -> Field | None:
        """The field that the leaf is shown as. ``None`` if nothing is hinted about it."""
        if leaf not in self._shown:
            top = top_of(leaf)
            self._shown[leaf] = shown_field(leaf, [top], [self.whole(top).field]) if self._hints else None
        return self._shown[leaf]

    def _hinted_format(self, leaf: Node) -> str:
        return self.whole(leaf).field.type.format if self._hints and leaf.parent is self._tree.root else ""

    def _place(self, node: Node) -> int:
        """The position of a top-level node among the columns."""
        if self._places is None:
            self._places = {child: k for k, child in enumerate(self._tree.root.children)}
        return self._places[node]


def _dictionary_columns(tree: SchemaTree, names: Iterable[Any]) -> frozenset[int]:
    found = set()
    for name in names:
        for leaf in tree.find(name).leaves():
            if leaf.element.type != Physical.BYTE_ARRAY or leaf.type.kind in ("decimal", "null"):
                raise OptionError(
                    f"read_dictionary takes string and binary columns, not {leaf.type.kind}", column=leaf.dotted
                )
            found.add(leaf.column)
    return frozenset(found)
