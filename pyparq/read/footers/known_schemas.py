"""Schemas with everything derived from them, computed once for all files that share a schema.

The parts of a dataset and a file that is opened again share it. The key is the schema's stored bytes, and everything
else that its meaning depends on. The place of the file is no part of the key.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from pyparq.errors import OptionError, SchemaError
from pyparq.format.hybrid_calendar import Hybrid, hybrid_of, is_of_spark
from pyparq.format.lazy_footer import LazyFileMetaData
from pyparq.format.schema_tree import SchemaTree, build_tree
from pyparq.format.types import OPTIONAL, LeafType, Physical
from pyparq.options import ReadOptions
from pyparq.read.footers.arrow_fields import FileFields
from pyparq.runtime import fork_safety

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
