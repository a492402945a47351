"""``ARROW:schema``: whether a file gets it, and what it may contain."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from pyparq.arrow.schema.extensions import EXTENSION_METADATA, EXTENSION_NAME, LOGICAL_TYPE
from pyparq.arrow.schema.keys import loses
from pyparq.arrow.schema.to_parquet import fixed_decimal_length, schema_from_tree
from pyparq.errors import DataError, OptionError, located
from pyparq.format.annotation import restate
from pyparq.format.order import FLOAT_KINDS, Order
from pyparq.format.schema_node import Node, Shape, shapes
from pyparq.format.schema_tree import SchemaTree
from pyparq.format.types import DataType, Field, LeafType, Physical, Schema, arrow_type
from pyparq.options import WriteOptions

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
        if arrow_type(node.type).format != type_.format:
            return False
    return True


def dictionary_leaves(hint: Schema | None, tree: SchemaTree) -> dict[int, bool]:
    """The leaves that were dictionaries of plain values: by ordinal, whether the order of the entries had a meaning."""
    found: dict[int, bool] = {}

    def note(field: Field, shape: Shape) -> Field:
        if shape.kind == "leaf" and field.type.dictionary is not None:
            found[shape.node.column] = field.type.ordered
        if field.type.format[0] == "_":  # the lowest byte comes first, as polars stores them: bytes without an order
            shape.node.type = replace(shape.node.type, kind="int128")
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


PerLeaf = Callable[[SchemaTree, Any, Any], list[Any]]
_ORDERS = {"TYPE_ORDER": Order.TYPE, "IEEE_754_TOTAL_ORDER": Order.TOTAL}
_DECIMALS = ("smallest", "fixed", "binary")


def apply_storage(tree: SchemaTree, options: WriteOptions, per_leaf: PerLeaf) -> None:
    """Change the tree's leaves (and their SchemaElements) to what the options ask for, and set field ids.

    ``per_leaf`` gives an option's value for every leaf. Raises :class:`OptionError` for an option that names a column
    which it does not fit.
    """
    int96 = per_leaf(tree, options.int96_timestamps, False)
    utc = per_leaf(tree, options.write_time_adjusted_to_utc, False)
    decimals = per_leaf(tree, options.decimal_storage, "smallest")
    named = {
        "int96_timestamps": not isinstance(options.int96_timestamps, bool),
        "write_time_adjusted_to_utc": not isinstance(options.write_time_adjusted_to_utc, bool),
        "decimal_storage": isinstance(options.decimal_storage, Mapping),
    }
    usual = options.int96_timestamps is False and options.write_time_adjusted_to_utc is False
    leaves = [] if usual and options.decimal_storage == "smallest" else tree.leaves
    for leaf in leaves:
        k = leaf.column
        with located(column=leaf.dotted):
            if int96[k] and _suits(leaf, "timestamp", "int96_timestamps", named):
                _restate(leaf, LeafType(Physical.INT96, "int96", unit=leaf.type.unit))
            if utc[k] and _suits(leaf, "time", "write_time_adjusted_to_utc", named):
                _restate(leaf, replace(leaf.type, utc=True))
            if decimals[k] not in _DECIMALS:
                raise OptionError(f"decimal_storage must be one of {', '.join(_DECIMALS)}, not {decimals[k]!r}")
            if decimals[k] != "smallest" and _suits(leaf, "decimal", "decimal_storage", named):
                _restate(leaf, _decimal(leaf.type, decimals[k]))
    _set_field_ids(tree, options.field_ids)


def _suits(leaf: Node, kind: str, option: str, named: Mapping[str, bool]) -> bool:
    if leaf.type.kind == kind:
        return True
    if named[option]:
        raise OptionError(f"{option} is for {kind} columns, but this column is {leaf.type.kind}")
    return False


def _restate(leaf: Node, type_: LeafType) -> None:
    restate(leaf.element, type_)
    leaf.type = type_


def _decimal(leaf: LeafType, storage: str) -> LeafType:
    if storage == "binary":
        return replace(leaf, physical=Physical.BYTE_ARRAY, length=0)
    return replace(leaf, physical=Physical.FIXED_LEN_BYTE_ARRAY, length=fixed_decimal_length(leaf.precision))


def by_node(tree: SchemaTree, option: Mapping[Any, Any]) -> dict[Node, Any]:
    """An option's values by the leaves and groups that its names stand for.

    Raises :class:`OptionError` where two names of one give different values."""
    found: dict[Node, Any] = {}
    for name, value in option.items():
        node = tree.find(name)
        if node in found and found[node] != value:
            raise OptionError(
                f"the column has two values: {found[node]!r}, and {value!r} under the name {name!r}", column=node.dotted
            )
        found[node] = value
    return found


def _set_field_ids(tree: SchemaTree, ids: Mapping[Any, int]) -> None:
    for node, number in by_node(tree, ids).items():
        if type(number) is not int or not -(1 << 31) <= number < 1 << 31:
            raise OptionError(f"a field id must be a 32-bit whole number, not {number!r}", column=node.dotted)
        node.element.field_id = number


def order_of_leaf(leaf: LeafType, asked: Any, by_name: bool) -> Order:
    """The order in which a leaf's bounds are written."""
    if asked not in _ORDERS:
        raise OptionError(f"float_order must be one of {', '.join(_ORDERS)}, not {asked!r}")
    if leaf.kind == "int96":
        return Order.INT96
    order = _ORDERS[asked]
    if order == Order.TOTAL and leaf.kind not in FLOAT_KINDS:
        if by_name:
            raise OptionError(f"float_order is for float columns, but this column is {leaf.kind}")
        return Order.TYPE
    return order


def text_key(key: Any) -> str:
    try:
        text = key.decode("utf-8") if isinstance(key, bytes) else key
    except UnicodeDecodeError:
        text = None
    if not isinstance(text, str):
        raise DataError(f"metadata key {key!r} is not text")
    return text


def text_value(key: Any, value: Any) -> str | bytes | None:
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, bytes):
        raise DataError(f"metadata {key!r} has a value of {type(value).__name__}; give text or bytes")
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value
