"""The common schema of all files of a dataset, or advice about what to declare.

Types without a common type are refused, because a value would change or be confused with another. The user may know
better. So the error ends with a ``schema=`` that reads the files, with all their columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from pyparq.arrow.decimals import decimal_type
from pyparq.arrow.schema.extensions import EXTENSION_NAME, LOGICAL_TYPE
from pyparq.arrow.schema.from_text import schema as parse_schema
from pyparq.arrow.schema.to_parquet import is_list
from pyparq.datasets.read.column_matching import BY_NAME, Matching
from pyparq.datasets.read.evolution import Clash, Rule, finer_unit, united
from pyparq.errors import SchemaError
from pyparq.format.types import DataType, Field, Schema

MOST_TEXT = 4000
"""Characters of a schema that an error shows."""


class Common(NamedTuple):
    """What files have in common."""

    schema: Schema
    """The schema that all rows fit, without the columns that have no common type."""
    clashes: dict[str, SchemaError]
    """The error for each column without a common type. It names both types and both files, and advises what to
    declare."""

    def for_all_columns(self) -> Schema:
        """The schema. Raises :class:`pyparq.SchemaError` if a column has no common type."""
        for error in self.clashes.values():
            raise error
        return self.schema


def unify(schemas: Iterable[tuple[str, Schema]], by: Matching = BY_NAME) -> Common:
    """The common schema of files: see :func:`pyparq.datasets.read.evolution.united`. It has no table-level metadata."""
    given = list(schemas)
    schema, clashes = united(given, Rule(by))
    if not clashes:
        return Common(schema, {})
    readable, left_out = united(given, Rule(by, settled))
    errors = {}
    for clash in clashes:
        told = clash.told or (clash.have, clash.other)
        others = [name for other in left_out for name in other.path[:1] if name != clash.path[0]]
        errors[clash.path[0]] = SchemaError(
            f"the column is {told[0]} in {clash.files[0]} and {told[1]} here, which have no common type. "
            f"{_advice(clash, readable, others, by)}",
            file=clash.files[1], column=".".join(clash.path),
        )  # fmt: skip
    return Common(schema, errors)


def settled(have: DataType, other: DataType) -> DataType | None:
    """A type to declare that can read files of both types. Values that do not fit it are an error."""
    kinds = {have.kind, other.kind}
    if kinds <= {"int", "uint"}:
        return decimal_type(20, 0)
    if "float" in kinds and kinds <= {"int", "uint", "float"}:
        return DataType("g")
    if kinds == {"timestamp"}:
        return DataType(f"ts{finer_unit(have, other)}:{have.timezone or other.timezone}")
    if kinds <= {"string", "binary", "fixed"}:
        return DataType("z")
    return None


_SAYS = {
    "decimal": "", "float": " (whole numbers that it does not hold exactly are an error)",
    "timestamp": " (those without a time zone are taken as UTC)", "binary": " (text as its bytes in UTF-8)",
}  # fmt: skip


def _advice(clash: Clash, schema: Schema, others: Sequence[str], by: Matching) -> str:
    """``others``: further columns that ``schema`` does not have, as there is no type to declare for them."""
    text = None if by.by == "field_id" else _text_of(schema)
    type_ = None if clash.told else settled(clash.have, clash.other)
    if text is None:
        such = "" if type_ is None else f", such as {type_}{_SAYS[type_.kind]}"
        return f"Give schema= with the type to read{such}, or leave one of the files out"
    also = f", without {', '.join(map(repr, others))}, which has no common type either" if others else ""
    if type_ is None:
        return f"Leave one of the files out, or read the other columns{also}: columns= or schema={text}"
    return f"Leave one of the files out, or read the column as {type_}{_SAYS[type_.kind]}{also}: schema={text}"


def _text_of(schema: Schema) -> str | None:
    """The schema as an argument to paste. ``None`` if it is too long, or if text cannot name a column."""
    columns = {field.name: _type_text(field) for field in schema.fields}
    if not columns or len(columns) < len(schema.fields) or None in columns.values():
        return None
    text = repr(columns)
    with suppress(SchemaError):
        parse_schema(columns)
        return text if len(text) <= MOST_TEXT else None
    return None


def _type_text(field: Field) -> str | None:
    """A type as :func:`pyparq.schema` takes it. ``None`` if it has no text."""
    type_ = field.type.dictionary or field.type
    if EXTENSION_NAME in field.metadata or LOGICAL_TYPE in field.metadata:
        return None
    mark = "?" if field.nullable else ""
    if type_.format == "+m":
        inner = list(map(_type_text, type_.children[0].type.children))
        return None if None in inner else f"map<{inner[0]}, {inner[1]}>{mark}"
    if is_list(type_):
        item = _type_text(type_.children[0])
        return None if item is None else f"list<{item}>{mark}"
    if type_.format == "+s":
        fields = [(child.name, _type_text(child)) for child in type_.children]
        inside = ", ".join(f"{name}: {text}" for name, text in fields)
        return None if any(text is None for _, text in fields) else f"struct<{inside}>{mark}"
    with suppress(SchemaError):
        if parse_schema({"": f"{type_}"}).fields[0].type == type_:
            return f"{type_}{mark}"
    return None
