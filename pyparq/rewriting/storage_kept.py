"""How the columns of a source are stored, as options for the files that are made of them.

INT96 stays INT96, and Spark's own schema stays beside the columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pyparq.datasets.evolution import DECIMAL_STORAGE
from pyparq.datasets.schema_tree import tree_of
from pyparq.rewriting.row_metadata import ROW_METADATA, row_metadata_kept
from pyparq.schemas.int96 import IS_INT96
from pyparq.schemas.shape import Shape, shape_of
from pyparq.schemas.types import Field, Schema


def storage_kept(schema: Schema, options: Mapping[str, Any], without: Collection[str] = ()) -> dict[str, Any]:
    """``options``, with those that keep how the columns of a dataset's ``schema`` are stored, unless they are given.
    ``without``: columns that become names of folders. Options go by name: columns of one name get what new files have.
    """
    kept = Schema(tuple(field for field in schema.fields if field.name not in without))
    leaves = list(_marks(kept)) if any(map(_has_mark, kept.fields)) else []
    times = Counter(path for path, _ in leaves)
    marked = [(path, metadata) for path, metadata in leaves if times[path] == 1]
    found: dict[str, Any] = {}
    int96 = {path: True for path, metadata in marked if IS_INT96 in metadata}
    if int96 and "use_deprecated_int96_timestamps" not in options:
        found["int96_timestamps"] = int96
    decimals = {path: metadata[DECIMAL_STORAGE].decode() for path, metadata in marked if DECIMAL_STORAGE in metadata}
    if decimals:
        found["decimal_storage"] = decimals
    own = row_metadata_kept(schema, without)
    if own is not None:
        options = {
            **options,
            "key_value_metadata": {ROW_METADATA: own, **dict(options.get("key_value_metadata") or {})},
        }
    return {**found, **options}


def _has_mark(field: Field) -> bool:
    marks = field.metadata.keys() & {IS_INT96, DECIMAL_STORAGE}
    return bool(marks) or any(map(_has_mark, field.type.children))


def _marks(schema: Schema) -> Iterator[tuple[tuple[str, ...], Mapping[bytes, bytes]]]:
    """The path of each leaf as it will be written, and the metadata of its field."""
    tree = tree_of(schema)
    for node, field in zip(tree.root.children, schema.fields, strict=True):
        yield from _below(shape_of(node), field)


def _below(shape: Shape, field: Field) -> Iterator[tuple[tuple[str, ...], Mapping[bytes, bytes]]]:
    if shape.kind == "leaf":
        yield shape.node.path, field.metadata
        return
    children = field.type.children[0].type.children if shape.kind == "map" else field.type.children
    for below, child in zip(shape.children, children, strict=True):
        yield from _below(below, child)
