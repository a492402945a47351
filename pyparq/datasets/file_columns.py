"""Which columns of different files are one column of a dataset, and how a file's column gets the dataset's type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import (
    VIEWS,
    as_views,
    fixed_column,
    holding,
    list_column,
    list_items,
    null_column,
    slice_column,
    struct_child,
    struct_column,
    take,
)
from pyparq.arrow.ingest.cast import cast
from pyparq.arrow.layouts import normalize
from pyparq.arrow.schema.extensions import FIELD_ID
from pyparq.arrow.variant_columns import is_whole
from pyparq.errors import DataError, ParquetError, SchemaError, located
from pyparq.format.schema_node import LeafNumber, Node, Shape, shape_of
from pyparq.format.schema_tree import SchemaTree
from pyparq.format.types import DataType, Field, Schema
from pyparq.read.hinted_types import HintMismatch, restore


class Named(NamedTuple):
    """A column or a nested field, with the attributes that matching needs."""

    name: str
    number: bytes | None
    """Its field id."""


def of_fields(fields: Iterable[Field]) -> list[Named]:
    return [Named(field.name, field.metadata.get(FIELD_ID)) for field in fields]


def of_nodes(nodes: Iterable[Node]) -> list[Named]:
    numbered = ((node.name, node.element.field_id) for node in nodes)
    return [Named(name, None if number is None else str(number).encode()) for name, number in numbered]


StoredNames = dict[bytes, tuple[str, ...]]
"""The names under which files may store columns, by field id."""


class Matching(NamedTuple):
    """The rule by which columns are matched. Nested fields follow it too."""

    by: str = "name"
    """``"name"`` or ``"field_id"``. A column without a field id is matched by its name."""
    case_sensitive: bool = True
    apart: frozenset[str] = frozenset()
    """Names in lower case that some file has in two spellings. For these names, case matters after all."""
    stored: Mapping[bytes, tuple[str, ...]] = {}
    """For a table whose log names its columns, the names in files by field id (:data:`StoredNames`). With
    ``by="field_id"`` they are asked for columns of files that have no id, and else for all columns."""

    def among(self, schemas: Iterable[Schema]) -> Matching:
        """The same rule for files with these schemas."""
        if self.case_sensitive:
            return self
        return self._replace(apart=frozenset(name for schema in schemas for name in _in_two_spellings(schema.fields)))

    def has(self, names: Iterable[str], name: str) -> bool:
        """Whether a column called ``name`` is one of ``names``."""
        if self.case_sensitive:
            return name in names
        return name.lower() in {other.lower() for other in names}

    def keys(self, columns: Sequence[Named]) -> list[object]:
        """The keys by which the columns of a file are matched. If several columns have one key, the first ones of all
        files match, the second ones match, and so on."""
        seen, keys = dict[object, int](), list[object]()
        for column in columns:
            key = self._key(column)
            seen[key] = seen.get(key, 0) + 1
            keys.append(key if seen[key] == 1 else (key, seen[key]))
        return keys

    def places(self, wanted: Sequence[Named], have: Sequence[Named]) -> list[int | None]:
        """For each of ``wanted``, its position in ``have``; ``None`` if it is missing.

        Raises :class:`SchemaError` if two of ``have`` differ by case only, and the wanted column may be either.
        """
        if self.stored:
            return [self._stored_place(column, have) for column in wanted]
        positions = {key: k for k, key in enumerate(self.keys(have))}
        found = [positions.get(key) for key in self.keys(wanted)]
        if not self.case_sensitive:
            for k, column in zip(found, wanted, strict=True):
                if k is not None:
                    self._check_one(column, have)
        return found

    def _stored_place(self, wanted: Named, have: Sequence[Named]) -> int | None:
        by_id = self.by == "field_id"
        if by_id and wanted.number is not None:
            for k, column in enumerate(have):
                if column.number == wanted.number:
                    return k
        names = self.stored.get(wanted.number or b"", ())
        if by_id and not names and have and all(column.number is None for column in have):
            raise SchemaError(
                "the file has no field ids, and the table has no name mapping (schema.name-mapping.default), so its "
                "columns cannot be told",
                column=wanted.name,
            )
        return next((k for k, c in enumerate(have) if c.name in names and not (by_id and c.number is not None)), None)

    def _key(self, column: Named) -> object:
        if self.by == "field_id" and column.number is not None:
            return column.number
        if self.case_sensitive:
            return column.name
        lower = column.name.lower()
        return column.name if lower in self.apart else lower

    def _check_one(self, wanted: Named, have: Sequence[Named]) -> None:
        key = self._key(wanted)
        names = list(dict.fromkeys(column.name for column in have if self._key(column) == key))
        if len(names) > 1 and not isinstance(key, bytes):
            raise SchemaError(
                f"the file has columns that differ only by case: {', '.join(map(repr, names))}. Give "
                "case_sensitive=True, or leave the file out",
                column=wanted.name,
            )


BY_NAME = Matching()


def _in_two_spellings(fields: Iterable[Field]) -> set[str]:
    """Names in lower case that neighbouring fields have in two spellings, at any depth."""
    spelled: dict[str, str] = {}
    found: set[str] = set()
    for field in fields:
        lower = field.name.lower()
        if spelled.setdefault(lower, field.name) != field.name:
            found.add(lower)
        found |= _in_two_spellings(field.type.children)
    return found


_LARGEST = (1 << 62) - 1
_SMALL = ("u", "z")


class Adapter:
    """The conversion from one schema of files to the ``wanted`` fields. It is made once per schema, not per file."""

    def __init__(self, tree: SchemaTree, schema: Schema, wanted: Sequence[Field], by: Matching = BY_NAME) -> None:
        """``tree``, ``schema``: those of a file, with its INT96 fields marked."""
        places = by.places(of_fields(wanted), of_fields(schema.fields))
        self.wanted = list(wanted)
        self._by = by
        self._sources = [None if k is None else schema.fields[k] for k in places]
        self._pairs = list(zip(self._sources, wanted, strict=True))
        self.columns: list[Any] = []
        """The columns to read from the file, in the order of the wanted columns that it has."""
        for k, field in zip(places, wanted, strict=True):
            if k is not None:
                leaves = _leaves(shape_of(tree.root.children[k]), field.type, by)
                self.columns += [LeafNumber(leaf.node.column) for leaf in leaves]
        self._given = [k for k, source in enumerate(self._sources) if source is not None]

    def adapt(self, columns: Sequence[Column], num_rows: int) -> list[Column]:
        """The wanted columns, made from the columns that were read. Raises :class:`DataError` for a value that does not
        fit, and :class:`SchemaError` for types that cannot be converted."""
        found: list[Column | None] = [None] * len(self.wanted)
        for k, read in zip(self._given, columns, strict=True):
            found[k] = read
        made = []
        for (source, field), column in zip(self._pairs, found, strict=True):
            if column is None or source is None:
                made.append(_nulls(field, num_rows))
                continue
            with located(column=field.name):
                made.append(conform(column, source, field, self._by))
        return made


def left_out(tree: SchemaTree, schema: Schema, wanted: Sequence[Field], by: Matching) -> list[str]:
    """Columns of a file, nested ones too, that a reading as ``wanted`` leaves out."""
    read = set(Adapter(tree, schema, wanted, by).columns)
    return [leaf.dotted for leaf in tree.leaves if LeafNumber(leaf.column) not in read]


def _nulls(field: Field, num_rows: int) -> Column:
    if not field.nullable:
        raise SchemaError(
            "the schema says that the column has no nulls, but the file has no such column", column=field.name
        )
    return null_column(field.type, num_rows)


def _leaves(shape: Shape, wanted: DataType, by: Matching) -> Iterator[Shape]:
    """The leaves below ``shape`` that a wanted type has. A whole Variant takes all that it is shredded to."""
    if shape.node.is_variant and is_whole(wanted):
        yield from shape.leaves()
    elif shape.kind == "struct" and wanted.format == "+s":
        places = by.places(of_fields(wanted.children), of_nodes(child.node for child in shape.children))
        for k, field in zip(places, wanted.children, strict=True):
            if k is not None:
                yield from _leaves(shape.children[k], field.type, by)
        if not any(k is not None for k in places):  # its first leaf tells where the struct is null
            yield next(shape.leaves())
    elif shape.kind == "list" and wanted.is_list:
        yield from _leaves(shape.children[0], wanted.children[0].type, by)
    else:
        yield from shape.leaves()


# ---- one column ----------------------------------------------------------------------------------------------------


def conform(column: Column, source: Field, wanted: Field, by: Matching = BY_NAME) -> Column:
    """The column as ``wanted``.

    Fields of structs are matched by name or id; missing ones are null, others are left out. Values do not change. A
    value that does not fit raises :class:`DataError`.
    """
    type_ = wanted.type
    if column.type == type_:
        return column
    if column.type.format == "n":
        return null_column(type_, column.length)
    if column.type.format == "+s" and type_.format == "+s":
        return _struct(column, source, wanted, by)
    if column.type.format == "+m" and type_.format == "+m":
        return _map(column, source, wanted, by)
    if column.type.is_list and type_.kind == "list_view":
        laid_out = DataType("+L" if type_.format == "+vL" else "+l", type_.children)
        return restore(conform(column, source, replace(wanted, type=laid_out), by), type_, _LARGEST)
    if column.type.is_list and type_.is_list and column.type.children[0].type != type_.children[0].type:
        column = _list(column, source, wanted, by)
    if column.dictionary is not None and column.type.dictionary is not None and type_.dictionary is None:
        column = _decoded(column)
    # only INT96, or a declared schema, relates times without a zone to times with one
    if column.type.kind == type_.kind == "timestamp":
        column = _retyped(column, DataType(f"{column.type.format[:4]}{type_.timezone}"))
    if column.type.format == "tdD" and type_.kind == "timestamp" and not type_.timezone:
        column = _midnights(column)
    if column.type.kind == type_.kind == "decimal":
        scaled = _rescaled(column, type_)
        if scaled is not None:
            return scaled
    if column.type.kind != "decimal" or type_.kind != "decimal" or column.type.decimal[1] == type_.decimal[1]:
        try:
            shown = restore(column, type_, _LARGEST)  # the same values in another layout
        except HintMismatch:
            pass
        else:
            # A column that stayed large may fit smaller offsets now.
            return _cast(shown, type_, wanted.name) if type_.format in _SMALL else shown
    plain = normalize(column, wanted.name)
    if plain is not column:
        return conform(plain, source, wanted, by)
    if type_.dictionary is not None:
        raise SchemaError(
            f"the column is {column.type} in the file, and a schema cannot make it a dictionary: "
            f"give the type of the values, {type_.dictionary}"
        )
    try:
        return _cast(column, type_, wanted.name)
    except DataError as error:
        raise DataError(f"{error.message}. Give schema= with a type that holds all values") from None


def _cast(column: Column, type_: DataType, name: str) -> Column:
    """As :func:`pyparq.arrow.ingest.cast.cast`, also to views."""
    if type_.format not in VIEWS:
        return cast(column, type_, name)
    laid_out = cast(column, DataType("U" if type_.kind == "string" else "Z"), name)
    return as_views(laid_out, type_)


def _retyped(column: Column, type_: DataType) -> Column:
    return Column(
        type_, column.length, column.validity, column.buffers, column.null_count, column.children, None, column.offset
    )


def _midnights(column: Column) -> Column:
    """Days as timestamps in seconds."""
    seconds = column.values().astype(np.int64) * 86_400
    return fixed_column(DataType("tss:"), seconds, column.valid_mask())


def _decoded(column: Column) -> Column:
    """The values of a dictionary column as a plain column."""
    assert column.dictionary is not None
    mask = column.valid_mask()
    indices = column.values().astype(np.int64)
    if mask is not None:
        indices[~mask] = 0
    if column.dictionary.length == 0:
        return null_column(column.dictionary.type, column.length)
    values = take(column.dictionary, indices)
    values.dictionary = None
    if mask is None:
        return values
    packed = fixed_column(DataType("b"), np.zeros(column.length, np.bool_), mask)
    return Column(
        values.type,
        values.length,
        packed.validity,
        values.buffers,
        packed.null_count,
        values.children,
        None,
        values.offset,
    )


def _rescaled(column: Column, type_: DataType) -> Column | None:
    """A decimal of up to 18 digits with more decimal places, by 64-bit arithmetic. ``None`` if that is not possible."""
    (precision, scale, bits), (due, due_scale, _) = column.type.decimal, type_.decimal
    factor = due_scale - scale
    if bits != 128 or not 0 <= factor <= 18 or precision + factor > 18 or due - due_scale < precision - scale:
        return None
    if type_.byte_width < 8:
        return None
    limbs, valid = column.values().reshape(-1, 16).view(np.int64), column.valid_mask()
    low, most = limbs[:, 0], 10**precision
    beyond = (limbs[:, 1] != low >> 63) | (low <= -most) | (low >= most)
    if (beyond if valid is None else beyond & valid).any():
        raise DataError(f"a decimal has more digits than {column.type} allows")
    numbers = low * np.int64(10**factor)
    wide = np.zeros((column.length, type_.byte_width // 8), np.int64)
    wide[:] = (numbers >> 63)[:, None]
    wide[:, 0] = numbers
    return fixed_column(type_, wide.view(np.uint8).reshape(column.length, -1), valid)


def _struct(column: Column, source: Field, wanted: Field, by: Matching) -> Column:
    fields = of_fields(wanted.type.children)
    places = by.places(fields, of_fields(column.type.children))
    sources = by.places(fields, of_fields(source.type.children))
    children = []
    for k, of_source, field in zip(places, sources, wanted.type.children, strict=True):
        if k is None:
            children.append(null_column(field.type, column.length))
            continue
        read = column.type.children[k] if of_source is None else source.type.children[of_source]
        try:
            children.append(conform(struct_child(column, k), read, field, by))
        except ParquetError as error:  # its path below this struct
            error.column = f"{wanted.name}.{error.column or field.name}"
            raise
    return struct_column(holding(wanted.type, children), children, column.length, column.valid_mask())


def _list(column: Column, source: Field, wanted: Field, by: Matching) -> Column:
    offsets, items = list_items(column)
    first, last = int(offsets[0]), int(offsets[-1])
    items = conform(slice_column(items, first, last), source.type.children[0], wanted.type.children[0], by)
    form = wanted.type.format if wanted.type.format in ("+l", "+L") else "+l"
    return list_column(
        holding(DataType(form, wanted.type.children), [items]), offsets - first, items, column.valid_mask()
    )


def _map(column: Column, source: Field, wanted: Field, by: Matching) -> Column:
    offsets, entries = list_items(column)
    first, last = int(offsets[0]), int(offsets[-1])
    entries = slice_column(entries, first, last)
    inner = wanted.type.children[0]
    pairs = zip(source.type.children[0].type.children, inner.type.children, strict=True)
    children = [conform(struct_child(entries, k), have, field, by) for k, (have, field) in enumerate(pairs)]
    made = struct_column(holding(inner.type, children), children, entries.length)
    return list_column(holding(wanted.type, [made]), offsets - first, made, column.valid_mask())
