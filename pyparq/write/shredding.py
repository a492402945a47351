"""What a Variant is shredded to where its first rows decide: ``shredding="auto"``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import struct_child
from pyparq.arrow.layouts import normalize
from pyparq.arrow.record_batch import RecordBatch
from pyparq.arrow.schema.extensions import EXTENSION_METADATA, EXTENSION_NAME, LOGICAL_TYPE, UUID, VARIANT
from pyparq.arrow.schema.from_text import schema as parse_schema
from pyparq.arrow.variant_columns import (
    LIST,
    OBJECT,
    Mask,
    Place,
    Terms,
    all_variants,
    column_at,
    field_at,
    primitive_kind,
    shredded_column,
    with_column,
    with_field,
)
from pyparq.errors import ColumnNotFoundError, DataError, OptionError, SchemaError, UnsupportedError, near_matches
from pyparq.format.types import DataType, Field, Schema
from pyparq.kernels import KernelError, variant_types
from pyparq.options import WriteOptions
from pyparq.write.column_plans import WritePlan, make_plan

_ROWS = 1000
"""Rows that are looked at."""
_OFTEN = 0.1
"""A field gets a column if so many of the objects have it."""
_MOSTLY = 0.5
"""A column gets a type if so many of its values, nulls aside, fit it."""
_MOST_COLUMNS = 200
_DEEPEST_INFERRED = 10

_NULL, _TRUE, _FALSE = 0, 1, 2
_NAMES = {
    1: "bool", 7: "float64", 11: "date", 12: "timestamp[us, UTC]", 13: "timestamp[us]", 14: "float32", 15: "binary",
    16: "string", 17: "time[us]", 18: "timestamp[ns, UTC]", 19: "timestamp[ns]", 20: "uuid",
}  # fmt: skip
_INTEGERS, _EXACT, _OBJECT, _ARRAY = range(3, 7), "exact", "object", "array"


@dataclass(slots=True)
class _Seen:
    """What the values at one place of the Variants were."""

    kinds: Counter[Any] = field(default_factory=Counter)
    digits: int = 0
    """Most digits before the point of exact numbers."""
    scale: int = 0
    decimals: int = 0
    fields: dict[str, _Seen] = field(default_factory=dict)
    elements: _Seen | None = None

    def add(self, given: Any, depth: int = 0) -> None:
        if isinstance(given, dict):
            self.kinds[_OBJECT] += 1
            for name, inner in given.items() if depth < _DEEPEST_INFERRED else ():
                self.fields.setdefault(name, _Seen()).add(inner, depth + 1)
        elif isinstance(given, list):
            self.kinds[_ARRAY] += 1
            for inner in given if depth < _DEEPEST_INFERRED else ():
                self.elements = self.elements or _Seen()
                self.elements.add(inner, depth + 1)
        elif isinstance(given, tuple):
            _, digits, scale = given
            self.decimals += 1
            self._add_number(digits - scale, scale)
        elif given in _INTEGERS:
            self._add_number(19 if given == 6 else 10, 0)
        else:
            self.kinds[_TRUE if given == _FALSE else given] += 1

    def _add_number(self, digits: int, scale: int) -> None:
        self.kinds[_EXACT] += 1
        self.digits, self.scale = max(self.digits, digits), max(self.scale, scale)


def inferred(columns: Sequence[Column]) -> Any:
    """What the Variants of these columns are shredded to, as users give it. ``None``: nothing."""
    seen = _Seen()
    for metadata, value in _values(columns):
        try:
            seen.add(variant_types(metadata, value))
        except KernelError:  # it is refused with its row when it is shredded
            continue
    return _choice(seen, [_MOST_COLUMNS])


def _values(columns: Sequence[Column]) -> Iterator[tuple[bytes, bytes]]:
    left = _ROWS
    for column in columns:
        mask = column.valid_mask()
        parts = [normalize(struct_child(column, k), "variant") for k in (0, 1)]
        (names, texts), (edges, data) = ((part.offsets(), part.buffers[1]) for part in parts)
        for k in range(min(column.length, left)):
            if mask is None or mask[k]:
                yield texts[names[k] : names[k + 1]].tobytes(), data[edges[k] : edges[k + 1]].tobytes()
        left -= min(column.length, left)


def _choice(seen: _Seen, room: list[int]) -> Any:
    """The type of one place. ``room``: columns that may still be made."""
    there = sum(seen.kinds.values()) - seen.kinds[_NULL]
    if not there or room[0] <= 0:
        return None
    kind, count = max(
        ((kind, count) for kind, count in seen.kinds.items() if kind != _NULL), key=lambda pair: (pair[1], str(pair[0]))
    )
    if count < _MOSTLY * there:
        return None
    if kind == _OBJECT:
        return _object_type(seen, count, room)
    room[0] -= 1
    if kind == _ARRAY:
        return None if seen.elements is None else [_choice(seen.elements, room)]
    return _number(seen) if kind == _EXACT else _NAMES[kind]


def _object_type(seen: _Seen, objects: int, room: list[int]) -> Any:
    often = [(name, inner) for name, inner in seen.fields.items() if sum(inner.kinds.values()) >= _OFTEN * objects]
    made = {}
    for name, inner in sorted(often, key=lambda pair: -sum(pair[1].kinds.values())):
        if room[0] > 0:
            made[name] = _choice(inner, room)
    return made or None


def _number(seen: _Seen) -> str | None:
    """Room for larger numbers of later rows: 64 bits, or 18 or 38 digits."""
    if not seen.decimals:
        return "int64"
    digits = seen.digits + seen.scale
    return None if digits > 38 else f"decimal({18 if digits <= 18 else 38}, {seen.scale})"


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


Planned = tuple[WritePlan, Mapping[Place, Shredded]]
"""The plan of a file, and the Variants that are shredded."""


def plan_with_shredding(
    schema: Schema, options: WriteOptions, source: Schema | None = None, first: Sequence[RecordBatch] = ()
) -> Planned:
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


def shredded_batch(batch: RecordBatch, columns: Mapping[Place, Shredded]) -> RecordBatch:
    """The batch as it is stored.

    Raises :class:`DataError` for bytes that are no Variant.
    """
    made = list(batch.columns)
    for place, shredded in columns.items():
        try:
            made[place[0]] = _shredded(made[place[0]], place[1:], shredded)
        except KernelError as error:
            raise DataError(f"a Variant is invalid: {error}", column=shredded.name) from error
    return RecordBatch(made, batch.num_rows)


def _shredded(column: Column, below: Place, shredded: Shredded) -> Column:
    def make(variants: Column, mask: Mask) -> Column:
        return shredded_column(variants, shredded.field, shredded.terms, mask)

    if not below:
        return make(column, None)
    column = normalize(column, shredded.name)
    return with_column(column, column.type, below, make)
