"""How columns are stored where the format leaves a choice: INT96, decimals, times, field ids, orders, key-values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pyparq.arrow.schema.to_parquet import fixed_decimal_length
from pyparq.errors import OptionError, located
from pyparq.format.annotation import restate
from pyparq.format.order import FLOAT_KINDS, Order
from pyparq.format.schema_node import Node
from pyparq.format.schema_tree import SchemaTree
from pyparq.format.types import LeafType, Physical
from pyparq.options import WriteOptions

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
