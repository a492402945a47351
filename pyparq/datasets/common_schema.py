"""One schema for files whose schemas differ: columns that were added, left out, reordered or widened.

Two types have a common type if every value of both fits it exactly. Other types are refused, because a value would
change or be confused with another. The user may know better: so the error ends with a ``schema=`` that reads the files,
with all their columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from pyparq.arrow.column_operations import VIEWS
from pyparq.arrow.decimals import decimal_type
from pyparq.arrow.layouts import normal_field
from pyparq.arrow.schema.extensions import EXTENSION_METADATA, EXTENSION_NAME, JSON, LOGICAL_TYPE, OF_PANDAS
from pyparq.arrow.schema.from_text import schema as parse_schema
from pyparq.arrow.schema.to_parquet import decimal_storage, elements_from_schema
from pyparq.datasets.file_columns import BY_NAME, Matching, of_fields
from pyparq.errors import SchemaError
from pyparq.format.int96 import IS_INT96
from pyparq.format.schema_node import Node, Shape, shape_of
from pyparq.format.schema_tree import SchemaTree, build_tree
from pyparq.format.types import DataType, Field, Physical, Schema


def tree_of(schema: Schema, *, case_sensitive: bool = True) -> SchemaTree:
    """The tree of a schema.

    Types that Parquet does not have (intervals, run-end encoding, views) become columns of their stored form. Columns
    may share a name. ``case_sensitive``: see :class:`SchemaTree`.
    """
    stored = replace(schema, fields=tuple(map(_stored_field, schema.fields)))
    return build_tree(elements_from_schema(stored), case_sensitive=case_sensitive)


def _stored_field(field: Field) -> Field:
    plain = normal_field(field)
    return field if plain is field else replace(plain, metadata={**field.metadata, **plain.metadata})


DECIMAL_STORAGE = b"pyparq:decimal_storage"
"""Metadata of a field whose decimals are not in the smallest storage in the file: ``fixed`` or ``binary``, as the
option ``decimal_storage`` calls them."""

COMPACTION = b"pyparq.compaction"
"""Key-value metadata of a file that :func:`pyparq.spark.compact` has made: the run, and the Z-order of the rows. Files
that are made from it do not keep it."""

_UNITS = "smun"
_EXTENSION = (EXTENSION_NAME, EXTENSION_METADATA)


class Clash(Exception):
    """Two types without a common type. ``path``: the names down to the field. ``have``, ``other``: the two types.
    ``names``: what messages call them, where they are extension types."""

    def __init__(
        self,
        path: tuple[str, ...],
        have: DataType,
        other: DataType,
        names: tuple[str, str] | None = None,
        files: tuple[str, str] = ("", ""),
    ):
        super().__init__(path, have, other, names, files)
        self.path, self.have, self.other, self.names, self.files = path, have, other, names, files

    def between(self, path: tuple[str, ...], first: str, second: str) -> Clash:
        """The same with the whole path and the two files."""
        return Clash(path, self.have, self.other, self.names, (first, second))


class Rule(NamedTuple):
    """The rules by which schemas are united."""

    by: Matching
    """Which columns are one."""
    declare: Callable[[DataType, DataType], DataType | None] | None = None
    """Gives the type for two types without a common one. ``None`` if there is none."""


def marked(schema: Schema, tree: SchemaTree) -> Schema:
    """A file's schema with marks on fields that are INT96 (:data:`IS_INT96`), and on decimals in an unusual storage
    (:data:`DECIMAL_STORAGE`)."""
    if not has_marks(tree):
        return schema
    pairs = zip(schema.fields, tree.root.children, strict=True)
    return replace(schema, fields=tuple(_marked(field, shape_of(node)) for field, node in pairs))


@lru_cache(maxsize=64)
def has_marks(tree: SchemaTree) -> bool:
    """Whether :func:`marked` changes the schema of a file with this tree."""
    return any(map(_mark_of, tree.leaves))


def _marked(field: Field, shape: Shape) -> Field:
    if shape.kind == "leaf":
        mark = _mark_of(shape.node)
        return replace(field, metadata={**field.metadata, **mark}) if mark else field
    if shape.kind == "map":
        entries = field.type.children[0]
        entries = replace(entries, type=_with_marks(entries.type, shape))
        return replace(field, type=replace(field.type, children=(entries,)))
    return replace(field, type=_with_marks(field.type, shape))


def _with_marks(type_: DataType, shape: Shape) -> DataType:
    if shape.node.is_variant:
        return type_  # only its own file knows how it is stored
    pairs = zip(type_.children, shape.children, strict=True)
    return replace(type_, children=tuple(_marked(child, below) for child, below in pairs))


def _mark_of(leaf: Node) -> dict[bytes, bytes]:
    type_ = leaf.type
    if type_.physical == Physical.INT96:
        return {IS_INT96: b""}
    if type_.kind != "decimal" or (type_.physical, type_.length) == decimal_storage(type_.precision):
        return {}
    storage = {Physical.FIXED_LEN_BYTE_ARRAY: b"fixed", Physical.BYTE_ARRAY: b"binary"}.get(type_.physical)
    return {} if storage is None else {DECIMAL_STORAGE: storage}


def united(schemas: Iterable[tuple[str, Schema]], rule: Rule) -> tuple[Schema, list[Clash]]:
    """The schema that the rows of all files fit, with the columns in the order in which they first occur, and the
    columns that have no common type. The schema does not have these.

    ``schemas``: for each file (or one of each distinct schema) its name and schema. A column that a file does not have
    becomes nullable, as its rows there are null. Table-level metadata: :mod:`pyparq.datasets.joint_keys`.

    """
    merged: dict[object, Field] = {}
    from_file: dict[object, str] = {}
    clashes: dict[object, Clash] = {}
    count, seen = 0, dict[object, int]()
    for name, schema in schemas:
        count += 1
        for key, field in zip(rule.by.keys(of_fields(schema.fields)), schema.fields, strict=True):
            seen[key] = seen.get(key, 0) + 1
            have = merged.get(key)
            if have is None:
                merged[key], from_file[key] = field, name
                continue
            try:
                both = _merged_field(have, field, rule)
            except Clash as clash:
                clashes.setdefault(key, clash.between((have.name, *clash.path), from_file[key], name))
                continue
            if both.type != have.type:
                from_file[key] = name
            merged[key] = both
    kept = ((key, field) for key, field in merged.items() if key not in clashes)
    fields = (field if seen[key] >= count else replace(field, nullable=True) for key, field in kept)
    return Schema(tuple(fields)), list(clashes.values())


def _merged_field(have: Field, other: Field, rule: Rule) -> Field:
    if have == other:
        return have
    _check_pandas_types(have, other)
    type_ = common_type(have.type, other.type, rule, IS_INT96 in have.metadata, IS_INT96 in other.metadata)
    metadata = _merged_metadata(have, other)
    return replace(have, type=type_, nullable=have.nullable or other.nullable, metadata=metadata)


def _check_pandas_types(have: Field, other: Field) -> None:
    """Raise :class:`Clash` for periods of two frequencies and the like: their numbers mean other times."""
    if have.type.format == "n" or other.type.format == "n":
        return
    mine, theirs = ([field.metadata.get(key, b"") for key in _EXTENSION] for field in (have, other))
    if mine != theirs and (mine[0] in OF_PANDAS or theirs[0] in OF_PANDAS):
        names = (_described(have, mine), _described(other, theirs))
        raise Clash((), have.type, other.type, names)


def _described(field: Field, extension: list[bytes]) -> str:
    name, described = (part.decode(errors="replace") for part in extension)
    return f"{name} {described}" if name else str(field.type)


def _merged_metadata(have: Field, other: Field) -> dict[bytes, bytes]:
    """The first file's metadata. Metadata about the meaning of values are kept only where both files agree: an
    extension type over another storage would show other values."""
    mine, theirs = _meaning(have), _meaning(other)
    if "n" in (have.type.format, other.type.format):  # a column of nulls has no values to give a meaning to
        agreed = theirs if have.type.format == "n" else mine
    else:
        agreed = {key: value for key, value in mine.items() if theirs.get(key) == value}
        same = [key in agreed or key not in {**mine, **theirs} for key in _EXTENSION]
        if not all(same) or (have.type != other.type and agreed.get(EXTENSION_NAME) != JSON):
            agreed = {key: value for key, value in agreed.items() if key not in _EXTENSION}
    metadata = {key: value for key, value in have.metadata.items() if key not in mine} | agreed
    for mark in (IS_INT96, DECIMAL_STORAGE):
        if metadata.get(mark) != other.metadata.get(mark):
            metadata.pop(mark, None)
    return metadata


def _meaning(field: Field) -> dict[bytes, bytes]:
    """Metadata about the meaning of values: an extension type, a logical type, polars' notes on categories."""
    said = (*_EXTENSION, LOGICAL_TYPE)
    return {key: value for key, value in field.metadata.items() if key in said or key.startswith(b"_PL_")}


def common_type(
    have: DataType, other: DataType, rule: Rule, have_int96: bool = False, other_int96: bool = False
) -> DataType:
    """The type that all values of both types fit. Raises :class:`Clash` if there is none."""
    if have == other:
        return have
    if have.format == "n" or other.format == "n":
        return other if have.format == "n" else have
    if have.dictionary is not None or other.dictionary is not None:
        return _dictionaries(have, other, rule)
    if have.is_nested or other.is_nested:
        return _nested(have, other, rule)
    found = _times(have, other, have_int96, other_int96) or _numbers(have, other) or _bytes(have, other)
    return found or _declarable(have, other, rule)


def _declarable(have: DataType, other: DataType, rule: Rule) -> DataType:
    found = None if rule.declare is None else rule.declare(have, other)
    if found is None:
        raise Clash((), have, other)
    return found


# ---- numbers -------------------------------------------------------------------------------------------------------

_BITS = {"c": 8, "s": 16, "i": 32, "l": 64, "C": 8, "S": 16, "I": 32, "L": 64}
_SIGNED = {8: "c", 16: "s", 32: "i", 64: "l"}
_EXACT_DIGITS = {"e": 11, "f": 24, "g": 53}
"""Bits of an integer that a float type holds exactly."""


def _numbers(have: DataType, other: DataType) -> DataType | None:
    kinds = {have.kind, other.kind}
    if kinds <= {"int", "uint"}:
        return _integers(have, other)
    if kinds == {"float"}:
        return max(have, other, key=lambda type_: "efg".index(type_.format))
    if "float" in kinds and kinds & {"int", "uint"}:
        number, whole = (have, other) if have.kind == "float" else (other, have)
        wide = [
            f for f in "efg" if f >= number.format and _EXACT_DIGITS[f] >= _BITS[whole.format] - (whole.kind == "int")
        ]
        return DataType(wide[0]) if wide else None
    if "decimal" in kinds and kinds <= {"decimal", "int", "uint"}:
        return _decimals(have, other)
    return None


def _integers(have: DataType, other: DataType) -> DataType | None:
    if have.kind == other.kind:
        return max(have, other, key=lambda type_: _BITS[type_.format])
    signed, unsigned = (have, other) if have.kind == "int" else (other, have)
    bits = max(_BITS[signed.format], 2 * _BITS[unsigned.format])
    return DataType(_SIGNED[bits]) if bits in _SIGNED else None


def _decimals(have: DataType, other: DataType) -> DataType | None:
    parts = [type_.decimal[:2] if type_.kind == "decimal" else (_digits(type_), 0) for type_ in (have, other)]
    scale = max(scale for _, scale in parts)
    precision = max(precision - scale for precision, scale in parts) + scale
    return decimal_type(precision, scale) if precision <= 76 else None


def _digits(whole: DataType) -> int:
    """Number of decimal digits that an integer type needs."""
    bits = _BITS[whole.format] - (whole.kind == "int")
    return len(str((1 << bits) - 1))


# ---- times ---------------------------------------------------------------------------------------------------------


def _times(have: DataType, other: DataType, have_int96: bool, other_int96: bool) -> DataType | None:
    if have.kind != other.kind:
        return None
    if have.kind == "date":
        return DataType("tdD")
    if have.kind == "timestamp":
        if have_int96 != other_int96 and not (have if have_int96 else other).timezone:
            return other if have_int96 else have
        if bool(have.timezone) != bool(other.timezone):
            return None
        return DataType(f"ts{finer_unit(have, other)}:{have.timezone}")
    if have.kind in ("time", "duration"):
        return DataType(f"{have.format[:2]}{finer_unit(have, other)}")
    return None


def finer_unit(have: DataType, other: DataType) -> str:
    """The letter of the finer of two time units."""
    return max(have.format[2], other.format[2], key=_UNITS.index)


# ---- bytes ---------------------------------------------------------------------------------------------------------


def _bytes(have: DataType, other: DataType) -> DataType | None:
    forms = {_plain(have), _plain(other)}
    for small in "uz":
        if forms <= {small, small.upper()}:
            return DataType(small.upper() if small.upper() in forms else small)
    if all(form.lower() == "z" or form.startswith("w:") for form in forms):
        return DataType("Z" if "Z" in forms else "z")
    return None


def _plain(type_: DataType) -> str:
    return type_.format[1:] if type_.format in VIEWS else type_.format


# ---- nested --------------------------------------------------------------------------------------------------------


def _dictionaries(have: DataType, other: DataType, rule: Rule) -> DataType:
    """Dictionaries of one value type stay dictionaries. Otherwise the common type of the values is used."""
    if have.dictionary is not None and other.dictionary is not None and have.dictionary == other.dictionary:
        return replace(have, format="i", ordered=have.ordered and other.ordered)
    return common_type(have.dictionary or have, other.dictionary or other, rule)


def _nested(have: DataType, other: DataType, rule: Rule) -> DataType:
    if have.format == other.format == "+s":
        return _structs(have, other, rule)
    if have.format == other.format == "+m":
        entries = [_merged_below(a, b, rule) for a, b in zip(_entries(have), _entries(other), strict=True)]
        inner = replace(have.children[0], type=replace(have.children[0].type, children=tuple(entries)))
        return replace(have, children=(inner,))
    if have.is_list and other.is_list:
        item = _merged_below(have.children[0], other.children[0], rule)
        form = have.format if have.format == other.format else "+L" if "+L" in (have.format, other.format) else "+l"
        return DataType(form, (item,))
    return _declarable(have, other, rule)


def _entries(map_: DataType) -> tuple[Field, ...]:
    return map_.children[0].type.children


def _structs(have: DataType, other: DataType, rule: Rule) -> DataType:
    others = dict(zip(rule.by.keys(of_fields(other.children)), other.children, strict=True))
    fields = []
    for key, field in zip(rule.by.keys(of_fields(have.children)), have.children, strict=True):
        found = others.pop(key, None)
        fields.append(replace(field, nullable=True) if found is None else _merged_below(field, found, rule))
    fields += [replace(field, nullable=True) for field in others.values()]
    return replace(have, children=tuple(fields))


def _merged_below(have: Field, other: Field, rule: Rule) -> Field:
    try:
        return _merged_field(have, other, rule)
    except Clash as clash:
        raise clash.between((have.name, *clash.path), *clash.files) from None


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
    """The common schema of files: see :func:`pyparq.datasets.common_schema.united`. The caller knows its metadata."""
    given = list(schemas)
    if len(given) == 1:
        return Common(given[0][1], {})
    schema, clashes = united(given, Rule(by))
    if not clashes:
        return Common(schema, {})
    readable, left_out = united(given, Rule(by, declarable_type))
    errors = {}
    for clash in clashes:
        names = clash.names or (clash.have, clash.other)
        others = [name for other in left_out for name in other.path[:1] if name != clash.path[0]]
        errors[clash.path[0]] = SchemaError(
            f"the column is {names[0]} in {clash.files[0]} and {names[1]} here, which have no common type. "
            f"{_advice(clash, readable, others, by)}",
            file=clash.files[1], column=".".join(clash.path),
        )  # fmt: skip
    return Common(schema, errors)


def declarable_type(have: DataType, other: DataType) -> DataType | None:
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


_NOTES = {
    "decimal": "", "float": " (whole numbers that it does not hold exactly are an error)",
    "timestamp": " (those without a time zone are taken as UTC)", "binary": " (text as its bytes in UTF-8)",
}  # fmt: skip


def _advice(clash: Clash, schema: Schema, others: Sequence[str], by: Matching) -> str:
    """``others``: further columns that ``schema`` does not have, as there is no type to declare for them."""
    text = None if by.by == "field_id" else _text_of(schema)
    type_ = None if clash.names else declarable_type(clash.have, clash.other)
    if text is None:
        such = "" if type_ is None else f", such as {type_}{_NOTES[type_.kind]}"
        return f"Give schema= with the type to read{such}, or leave one of the files out"
    also = f", without {', '.join(map(repr, others))}, which has no common type either" if others else ""
    if type_ is None:
        return f"Leave one of the files out, or read the other columns{also}: columns= or schema={text}"
    return f"Leave one of the files out, or read the column as {type_}{_NOTES[type_.kind]}{also}: schema={text}"


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
    if type_.is_list:
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
