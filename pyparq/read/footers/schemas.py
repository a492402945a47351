"""The Arrow fields of a file's columns, from three sources: the file's schema, the hints, and the read options."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pyparq.arrow.column_operations import VIEWS
from pyparq.arrow.schema.hints import ARROW_SCHEMA, Hints, dictionary_leaves, with_dictionaries
from pyparq.arrow.schema.to_parquet import field_of
from pyparq.errors import OptionError, SchemaError
from pyparq.format.hybrid_calendar import Hybrid, hybrid_of, is_of_spark, without_hybrid
from pyparq.format.lazy_footer import LazyFileMetaData
from pyparq.format.schema_node import Node, Shape, shape_of, shown_field, top_of
from pyparq.format.schema_tree import SchemaTree, build_tree
from pyparq.format.types import OPTIONAL, Field, LeafType, Physical, Schema
from pyparq.options import ReadOptions
from pyparq.read import variants
from pyparq.read.footers.chunks import LeafSet
from pyparq.runtime import fork_safety

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
    """The columns of a result and their leaves. Most is computed at first use, and then an attribute like others."""

    __slots__ = ("_of_file", "fields", "hybrid", "is_as_stored", "is_flat", "is_plain", "leaves", "outputs")
    hybrid: list[int]
    """Positions of the columns that hold dates or timestamps of the hybrid calendar."""
    is_as_stored: bool
    """Whether every column has the type of the file's own schema."""
    is_flat: bool
    """Whether every column is a leaf, so that decoded columns are result columns."""
    is_plain: bool
    """Whether every leaf is decoded to plain values: no dictionaries, no views."""
    leaves: LeafSet
    """The leaves in the order of the columns, each in the form that the decoder returns."""

    def __init__(self, outputs: list[Output], of_file: FileFields) -> None:
        self.outputs = outputs
        self.fields = tuple(output.field for output in outputs)
        self._of_file = of_file

    def __getattr__(self, name: str) -> Any:
        if name == "hybrid":
            self.hybrid = [k for k, out in enumerate(self.outputs) if any(leaf.type.hybrid for leaf in out.leaves)]
        elif name == "is_as_stored":
            self.is_as_stored = all(out.field.type == out.stored.type for out in self.outputs)
        elif name == "is_flat":
            self.is_flat = all(output.shape.kind == "leaf" for output in self.outputs)
        elif name == "is_plain":
            self.is_plain = self._of_file.are_plain(self.leaves.nodes)
        elif name == "leaves":
            columns = dict.fromkeys([leaf.column for output in self.outputs for leaf in output.leaves])
            self.leaves = self._of_file.leaf_set(tuple(columns))
        else:
            raise AttributeError(name)
        return getattr(self, name)


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
        self._has_hints = bool(self._hints)
        self._whole_variants = options.variants == "whole"
        self._places: dict[Node, int] | None = None
        self._metadata: dict[bytes, bytes] | None = None
        self._fields: tuple[Field, ...] | None = None
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
        if self._fields is None:
            self._fields = tuple([self.whole(node).field for node in self._tree.root.children])
        return Schema(self._fields, self.metadata)

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
        field = self._hints.restored(stored, self._place(shape.node)) if self._has_hints else stored
        field = with_dictionaries(field, shape, self._asked) if self._asked else field
        if self._whole_variants and shape.kind != "leaf":
            field = variants.with_whole_variants(field, shape)
        if shape.kind == "leaf":  # keeps the hint, which is then looked up only once
            self._dictionaries[shape.node] = frozenset(dictionary_leaves(field.type, shape))
        return field

    def is_dictionary(self, leaf: Node) -> bool:
        """Whether the leaf is returned as a dictionary."""
        if not self._has_hints:
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
        if not self._has_hints:
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
            self._shown[leaf] = shown_field(leaf, [top], [self.whole(top).field]) if self._has_hints else None
        return self._shown[leaf]

    def _hinted_format(self, leaf: Node) -> str:
        return self.whole(leaf).field.type.format if self._has_hints and leaf.parent is self._tree.root else ""

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


MOST_SCHEMAS = 32
"""Schemas that are kept, those used last."""
MOST_BYTES = 1 << 20
"""Stored bytes of all schemas that are kept, key-value metadata included: enough for 10,000 columns. The derived
objects take about 15 times as much memory."""


class FileSchema(NamedTuple):
    """Everything that is derived from a schema. Files share it, so nothing in it may be changed."""

    tree: SchemaTree
    key_values: dict[bytes, bytes]
    """Key-value metadata of the file."""
    fields: FileFields


class _Kept(NamedTuple):
    schema: FileSchema
    size: int
    """Of its key."""


_known: OrderedDict[tuple[Any, ...], _Kept] = OrderedDict()
_lock = threading.Lock()


@fork_safety.in_child
def _forget_schemas() -> None:
    global _lock
    _lock = threading.Lock()
    _known.clear()


def schema_of(footer: LazyFileMetaData, options: ReadOptions) -> FileSchema:
    """The tree and the fields of a file, as ``options`` ask for them.

    Raises :class:`CorruptFileError` for a schema that is no tree, :class:`LimitError` for one that nests too deeply,
    and :class:`ColumnNotFoundError` or :class:`OptionError` for columns in ``options`` that do not exist or do not fit.
    """
    pairs = [(to_bytes(pair.key), to_bytes(pair.value)) for pair in footer.meta.key_value_metadata or []]
    size = len(footer.schema_bytes) + sum(len(key) + len(value) for key, value in pairs)
    if size > MOST_BYTES:
        return _made(footer, dict(pairs), options)
    key = (
        footer.schema_bytes, tuple(pairs), options.limits.max_schema_depth, options.coerce_int96_timestamp_unit,
        options.int96_adjusted_to_utc, tuple(options.binary_columns), tuple(options.read_dictionary),
        options.use_arrow_schema, options.case_sensitive, options.out_of_range,
        options.variants,
    )  # fmt: skip
    with _lock:
        known = _known.get(key)
        if known is not None:
            _known.move_to_end(key)
            return known.schema
    made = _made(footer, dict(pairs), options)
    with _lock:
        _known[key] = _Kept(made, size)
        while len(_known) > MOST_SCHEMAS or sum(kept.size for kept in _known.values()) > MOST_BYTES:
            _known.popitem(last=False)
    return made


def _made(footer: LazyFileMetaData, key_values: dict[bytes, bytes], options: ReadOptions) -> FileSchema:
    tree = build_tree(footer.schema(), options.limits.max_schema_depth, case_sensitive=options.case_sensitive)
    unit = options.coerce_int96_timestamp_unit or ("us" if is_of_spark(key_values) else "ns")
    if unit not in ("ns", "auto") or options.int96_adjusted_to_utc:
        _read_int96_as(tree, "ns" if unit == "auto" else unit, options.int96_adjusted_to_utc)
    if options.out_of_range == "null":
        _null_beyond(tree)
    elif options.out_of_range == "widen":
        _widen(tree)
    hybrid = hybrid_of(key_values)
    if hybrid is not None:
        _read_hybrid(tree, hybrid)
    _read_as_binary(tree, options.binary_columns)
    return FileSchema(tree, key_values, FileFields(tree, key_values, options))


def _read_int96_as(tree: SchemaTree, unit: str, utc: bool) -> None:
    for leaf in tree.leaves:
        if leaf.element.type == Physical.INT96:
            in_unit = replace(leaf.type, unit=unit, utc=utc)
            leaf.type = in_unit if unit != "bytes" else LeafType(Physical.INT96, "int96_bytes", 12)


def _null_beyond(tree: SchemaTree) -> None:
    """Mark leaves whose values may not fit their type. If a leaf is nullable, it reads such values as nulls."""
    for leaf in tree.leaves:
        if leaf.repetition != OPTIONAL:
            continue
        with suppress(SchemaError):  # invalid annotation: reading the column raises the error
            kind, bits = leaf.type.kind, leaf.type.bits
            if kind in ("decimal", "int96") or (kind in ("int", "uint") and bits < 32):
                leaf.type = replace(leaf.type, nulls_beyond=True)


def _widen(tree: SchemaTree) -> None:
    """Give leaves whose values may not fit their type the type that all stored values fit. Parts of Variants have
    types of their own."""
    for leaf in tree.leaves:
        if leaf.in_variant():
            continue
        with suppress(SchemaError):  # invalid annotation: reading the column raises the error
            type_ = leaf.type
            if type_.kind == "decimal":
                leaf.type = replace(type_, precision=_most_digits(type_))
            elif type_.kind in ("int", "uint") and type_.bits < 32:
                leaf.type = replace(type_, bits=32)


def _most_digits(leaf: LeafType) -> int:
    """Digits of the largest decimal that a leaf can store and a table can have."""
    most = 38 if leaf.precision <= 38 and leaf.width <= 16 else 76
    return max(leaf.precision, most if leaf.is_binary else min(len(str(1 << (8 * leaf.width - 1))), most))


def _read_hybrid(tree: SchemaTree, hybrid: Hybrid) -> None:
    """Mark the columns that Spark stored in the hybrid calendar."""
    for leaf in tree.leaves:
        if leaf.element.type in (Physical.INT32, Physical.INT64, Physical.INT96):
            with suppress(SchemaError):  # invalid annotation: reading the column raises the error
                if hybrid.has(leaf.type):
                    leaf.type = replace(leaf.type, hybrid="UTC" if leaf.type.kind == "date" else hybrid.zone)


def _read_as_binary(tree: SchemaTree, names: Iterable[Any]) -> None:
    """Take the annotation off text columns. The name of a group means all text columns below it."""
    for name in names:
        node = tree.find(name)
        leaves = [leaf for leaf in node.leaves() if leaf.type.is_text]
        if not leaves and any(leaf.type.kind != "binary" for leaf in node.leaves()):
            what = node.type.kind if node.is_leaf else "a group without text"
            raise OptionError(f"binary_columns takes text columns, not {what}", column=node.dotted)
        for leaf in leaves:
            leaf.type = LeafType(leaf.type.physical, "binary")


def to_bytes(value: str | bytes | None) -> bytes:
    """A key or value of key-value metadata as bytes. A missing one is empty."""
    if value is None:
        return b""
    return value.encode() if isinstance(value, str) else bytes(value)
