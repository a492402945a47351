"""``ARROW:schema``: whether a file gets it, and what it may contain."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from pyparq.arrow.schema.extensions import EXTENSION_METADATA, EXTENSION_NAME, LOGICAL_TYPE
from pyparq.arrow.schema.loss import loses
from pyparq.arrow.schema.to_parquet import schema_from_tree
from pyparq.format.nesting import Shape, shapes
from pyparq.format.schema_tree import SchemaTree
from pyparq.format.types import DataType, Field, Schema, arrow_type

_Change = Callable[[Field, Shape], Field]


def hint_for(data: Schema, tree: SchemaTree, option: bool | str) -> Schema | None:
    """The schema to store, or ``None`` if the file gets none. ``option``: the value of ``store_schema``."""
    if not option or (option == "auto" and _flat_and_kept(data, tree)):
        return None
    if any(leaf.type.kind == "int96" for leaf in tree.leaves):
        data = changed(data, tree, _as_read)
    return data if option is True or loses(data, schema_from_tree(tree)) else None


def _as_read(field: Field, shape: Shape) -> Field:
    """The field as readers see it: INT96 bytes (``coerce_int96_timestamp_unit="bytes"``) become a timestamp."""
    if shape.kind != "leaf" or shape.node.type.kind != "int96" or field.type.kind != "fixed":
        return field
    kept = {key: value for key, value in field.metadata.items() if key != LOGICAL_TYPE}
    return replace(field, type=arrow_type(shape.node.type), metadata=kept)


def _flat_and_kept(data: Schema, tree: SchemaTree) -> bool:
    """Whether all columns are flat and keep their types in the file. That holds for most tables and is checked
    quickly."""
    for field, node in zip(data, tree.root.children, strict=True):
        type_ = field.type
        if field.metadata or type_.children or type_.dictionary is not None or type_.format == "n" or not node.is_leaf:
            return False
        if arrow_type(node.type) != type_:
            return False
    return True


def dictionary_leaves(hint: Schema | None, tree: SchemaTree) -> dict[int, bool]:
    """The leaves that were dictionaries of plain values: by ordinal, whether the order of the entries had a meaning."""
    found: dict[int, bool] = {}

    def note(field: Field, shape: Shape) -> Field:
        if shape.kind == "leaf" and field.type.dictionary is not None:
            found[shape.node.column] = field.type.ordered
        return field

    if hint is not None:
        changed(hint, tree, note)
    return found


def without_order(hint: Schema, tree: SchemaTree, leaves: Collection[int]) -> Schema:
    """The schema with unordered dictionaries, for dictionaries that did not keep the order of their entries."""

    def change(field: Field, shape: Shape) -> Field:
        if shape.kind == "leaf" and field.type.ordered and shape.node.column in leaves:
            return replace(field, type=replace(field.type, ordered=False))
        return field

    return changed(hint, tree, change) if leaves else hint


def without_notes(hint: Schema, tree: SchemaTree, leaves: Collection[int]) -> Schema:
    """The schema without field metadata (extension types are kept) for the columns of these leaves.

    This is for encrypted columns in a file with a plaintext footer. The file's schema shows their names and types
    anyway. But other field metadata may contain values: polars lists the values of an Enum there.
    """

    def change(field: Field, shape: Shape) -> Field:
        if field.metadata and any(leaf.node.column in leaves for leaf in shape.leaves()):
            kept = {k: v for k, v in field.metadata.items() if k in (EXTENSION_NAME, EXTENSION_METADATA)}
            return replace(field, metadata=kept)
        return field

    return changed(hint, tree, change) if leaves else hint


def changed(hint: Schema, tree: SchemaTree, change: _Change) -> Schema:
    """The schema with ``change`` applied to every field, at any depth. ``tree``: the tree that the data are written
    as."""
    pairs = zip(hint, shapes(tree.root), strict=True)
    return replace(hint, fields=tuple(_changed(field, shape, change) for field, shape in pairs))


def _changed(field: Field, shape: Shape, change: _Change) -> Field:
    type_ = field.type
    if type_.dictionary is None and shape.children and type_.format != "+r":
        inner = type_.children if type_.format != "+m" else type_.children[0].type.children
        pairs = zip(inner, shape.children, strict=True)
        fields = tuple(_changed(f, s, change) for f, s in pairs)
        if type_.format == "+m":
            entries = type_.children[0]
            fields = (replace(entries, type=DataType(entries.type.format, fields)),)
        field = replace(field, type=replace(type_, children=fields))
    return change(field, shape)
