"""The kinds of values that Variants hold, as columns that tests of values are bound to."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from pyparq.arrow.schema.from_text import schema
from pyparq.arrow.schema.to_parquet import elements_from_schema
from pyparq.arrow.variant_columns import Terms
from pyparq.format.schema_node import Node
from pyparq.format.schema_tree import SchemaTree, build_tree
from pyparq.format.types import DataType

_TYPES = {
    1: "bool", 6: "int64", 7: "float64", 11: "date", 12: "timestamp[us, UTC]", 13: "timestamp[us]", 14: "float32",
    15: "binary", 16: "string", 17: "time[us]", 18: "timestamp[ns, UTC]", 19: "timestamp[ns]", 20: "uuid",
}  # fmt: skip
_ALIKE = {2: 1, 3: 6, 4: 6, 5: 6}
"""Kinds of VariantEncoding.md that are compared as another one."""
DECIMALS = (8, 9, 10)
_MOST_DIGITS = 38


class Kind(NamedTuple):
    """A primitive type of VariantEncoding.md. ``scale``: of decimals."""

    number: int
    scale: int = 0

    @property
    def column(self) -> str:
        """The name of its column in :func:`tree`."""
        return f"{self.number}.{self.scale}"

    @property
    def terms(self) -> Terms:
        """The kind as the kernels take it."""
        return self.number, _MOST_DIGITS, self.scale


KINDS = (*map(Kind, _TYPES), *(Kind(10, scale) for scale in range(_MOST_DIGITS + 1)))
"""All of them, those without a scale first."""


def kind_of(number: int, scale: int) -> Kind | None:
    """What a value with this number in its first byte is compared as. ``None`` for null and unknown ones."""
    if number in DECIMALS:
        return Kind(10, scale) if scale <= _MOST_DIGITS else None
    number = _ALIKE.get(number, number)
    return Kind(number) if number in _TYPES else None


@cache
def tree() -> SchemaTree:
    """A column for each kind, all of which may be null."""
    types = {Kind(number).column: f"{text}?" for number, text in _TYPES.items()}
    types |= {Kind(10, s).column: f"decimal({_MOST_DIGITS},{s})?" for s in range(_MOST_DIGITS + 1)}
    return build_tree(elements_from_schema(schema(types)))


def node_of(kind: Kind) -> Node:
    """The column of a kind."""
    return tree().find((kind.column,))


def type_of(kind: Kind) -> DataType:
    """Its Arrow type."""
    return node_of(kind).arrow_type
