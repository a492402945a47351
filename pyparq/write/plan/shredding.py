"""What Variants are shredded to: the option ``shredding`` resolved to columns (VariantShredding.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyparq.arrow.record_batch import RecordBatch
from pyparq.arrow.schema.extensions import EXTENSION_METADATA, EXTENSION_NAME, LOGICAL_TYPE, UUID, VARIANT
from pyparq.arrow.schema.from_text import schema as parse_schema
from pyparq.arrow.variant_columns import Terms
from pyparq.arrow.variant_types import LIST, OBJECT, primitive_kind
from pyparq.arrow.variants_within import Place, all_variants, column_at, field_at, with_field
from pyparq.errors import ColumnNotFoundError, OptionError, SchemaError, UnsupportedError, near_matches
from pyparq.format.types import DataType, Field, Schema
from pyparq.options import WriteOptions
from pyparq.write.plan.column_plans import WritePlan, make_plan
from pyparq.write.plan.inferred_shredding import inferred

BINARY = DataType("z")
_FORMS = {"U": "u", "vu": "u", "Z": "z", "vz": "z"}
_DEEPEST = 50
_ALLOWED = (
    "bool, int8 to int64, float32, float64, decimal(p,s) of up to 38 digits, date, time[us], timestamp[us] and [ns] "
    "with or without a time zone, binary, string and uuid"
)


@dataclass(frozen=True, slots=True)
class Shredded:
    """A Variant: its path, the field that is stored, and its types for the kernels."""

    name: str
    field: Field
    terms: Terms


def plan_with_shredding(
    schema: Schema, options: WriteOptions, source: Schema | None = None, first: Sequence[RecordBatch] = ()
) -> tuple[WritePlan, Mapping[Place, Shredded]]:
    """As :func:`make_plan`, for a file whose Variants are shredded as the options say; and which they are.

    ``first``: the first rows, where they decide what a column is shredded to. Raises :class:`OptionError` for types
    that no Variant is shredded to, and for columns that are no Variants.
    """
    if options.shredding is None:
        return make_plan(schema, options, source), {}
    columns = _shredded_columns(schema, options.shredding, first)
    hint = None if source is None else _with_shredded(source, columns)
    return make_plan(_with_shredded(schema, columns), options, hint), columns


def needs_rows(options: WriteOptions) -> bool:
    """Whether the first rows decide what a column is shredded to."""
    given = options.shredding
    return given == "auto" or (isinstance(given, Mapping) and "auto" in [v for v in given.values() if type(v) is str])


def _shredded_columns(schema: Schema, shredding: Any, first: Sequence[RecordBatch]) -> dict[Place, Shredded]:
    """The Variants that are shredded. ``first``: the first rows, where a column is ``"auto"``."""
    variants = all_variants(schema.fields)
    if shredding == "auto":
        shredding = dict.fromkeys(variants, "auto")
    if not isinstance(shredding, Mapping):
        raise OptionError(f"shredding must be 'auto' or a dict with columns as keys, not {shredding!r}")
    found = {}
    for name, given in shredding.items():
        path = _path_of(schema, variants, name)
        place, dotted = variants[path], ".".join(path)
        if isinstance(given, str) and given == "auto":
            given = inferred([column_at(batch.columns, place) for batch in first])
        typed = _typed(given, dotted, 0)
        if typed is not None:
            found[place] = Shredded(dotted, _stored(field_at(schema.fields, place), typed), terms_of(typed))
    return found


def _with_shredded(schema: Schema, columns: Mapping[Place, Shredded]) -> Schema:
    """The schema that is stored."""
    fields = schema.fields
    for place, shredded in columns.items():
        fields = with_field(fields, place, shredded.field)
    return replace(schema, fields=fields)


def _path_of(schema: Schema, variants: Mapping[tuple[str, ...], Place], name: Any) -> tuple[str, ...]:
    """The path of a Variant that the user names: a column, or the path of one within structs, lists and maps."""
    wanted = name if isinstance(name, tuple) else (name,)
    if wanted in variants:
        return wanted
    dotted = {".".join(path): path for path in variants}
    if name in dotted:
        return dotted[name]
    columns = {field.name: field for field in schema.fields}
    if len(wanted) == 1 and wanted[0] in columns:
        some = f". The Variants are {', '.join(map(repr, dotted))}" if dotted else ""
        raise OptionError(
            f"shredding names the column {wanted[0]!r}, which is no Variant but {columns[wanted[0]].type}{some}"
        )
    raise ColumnNotFoundError(f"shredding names the column {name!r}{near_matches(str(name), [*dotted, *columns])}")


# ---- types


def _typed(given: Any, where: str, depth: int) -> Field | None:
    """The column ``typed_value`` for what the user gives. ``None``: none."""
    if depth > _DEEPEST:
        raise OptionError(f"shredding nests more than {_DEEPEST} levels deep at {where}")
    if given is None or given == "variant":
        return None
    if isinstance(given, Mapping):
        bad = [name for name in given if not isinstance(name, str)]
        if bad:
            raise OptionError(f"shredding of {where}: the name of a field must be a string, not {bad[0]!r}")
        return _object({name: _typed(inner, f"{where}.{name}", depth + 1) for name, inner in given.items()}, where)
    if isinstance(given, list):
        if len(given) != 1:
            raise OptionError(f"shredding of {where}: an array has one type for its elements, as in ['int64']")
        return array_field(_typed(given[0], f"{where}[]", depth + 1))
    try:
        (field,) = parse_schema({"typed_value": given}).fields
    except SchemaError as error:
        raise OptionError(f"shredding of {where}: {error}") from None
    return _from_arrow(field, where)


def _from_arrow(field: Field, where: str) -> Field | None:
    type_, metadata = field.type, field.metadata
    if metadata.get(EXTENSION_NAME) == VARIANT:
        return None
    if type_.format == "+s":
        return _object({c.name: _from_arrow(c, f"{where}.{c.name}") for c in type_.children}, where)
    if type_.format in ("+l", "+L"):
        return array_field(_from_arrow(type_.children[0], f"{where}[]"))
    extension = metadata.get(EXTENSION_NAME)
    plain = Field("typed_value", replace(type_, format=_FORMS.get(type_.format, type_.format)), True, metadata)
    try:
        kind = primitive_kind(plain.type, plain)
    except UnsupportedError:
        kind = -1
    if kind < 0 or type_.dictionary is not None or extension not in (None, UUID):
        raise OptionError(f"shredding of {where}: no Variant is shredded to {type_}. The types are {_ALLOWED}")
    kept = {EXTENSION_NAME: UUID, EXTENSION_METADATA: b""} if extension == UUID else {}
    return replace(plain, metadata=kept)


def _object(fields: Mapping[str, Field | None], where: str) -> Field:
    if not fields:
        raise OptionError(f"shredding of {where}: an object needs at least one field")
    return object_field(fields)


def object_field(fields: Mapping[str, Field | None]) -> Field:
    """The column ``typed_value`` of objects with these fields."""
    groups = tuple(_group(name, typed) for name, typed in fields.items())
    return Field("typed_value", DataType("+s", groups))


def array_field(typed: Field | None) -> Field:
    """The column ``typed_value`` of arrays of these elements."""
    return Field("typed_value", DataType("+l", (_group("element", typed),)))


def _group(name: str, typed: Field | None) -> Field:
    value = Field("value", BINARY)
    return Field(name, DataType("+s", (value,) if typed is None else (value, typed)), nullable=False)


def _stored(field: Field, typed: Field) -> Field:
    metadata = {k: v for k, v in field.metadata.items() if k not in (EXTENSION_NAME, EXTENSION_METADATA)}
    parts = (Field("metadata", BINARY, False), Field("value", BINARY), typed)
    return replace(field, type=DataType("+s", parts), metadata={**metadata, LOGICAL_TYPE: b"VARIANT"})


def terms_of(typed: Field | None) -> Terms:
    """A column ``typed_value`` as the kernels take it."""
    if typed is None:
        return None
    type_ = typed.type
    if type_.format == "+s":
        return OBJECT, tuple(c.name for c in type_.children), tuple(_terms_of_group(c) for c in type_.children)
    if type_.format == "+l":
        return LIST, _terms_of_group(type_.children[0])
    digits, scale = type_.decimal[:2] if type_.kind == "decimal" else (0, 0)
    return primitive_kind(type_, typed), digits, scale


def _terms_of_group(group: Field) -> Terms:
    return terms_of(group.type.children[1] if len(group.type.children) > 1 else None)
