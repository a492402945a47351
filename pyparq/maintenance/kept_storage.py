"""The storage of a source's columns, as options for the files that are made from it.

INT96 stays INT96, and Spark's own schema is kept in the key-value metadata. Spark believes it more than the columns'
types. Only this schema tells which integers are intervals, which strings have a length or a collation, and what users
have noted on columns. It is JSON: ``{"type": "struct", "fields": [{"name", "type", "nullable", "metadata"}]}``. A
nested type is an object of the same kind.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyparq.arrow.schema.extensions import EXTENSION_NAME, LOGICAL_TYPE, VARIANT
from pyparq.arrow.table import Table
from pyparq.datasets.common_schema import DECIMAL_STORAGE, tree_of
from pyparq.datasets.dataset import Dataset, dataset_of, files_of
from pyparq.errors import ColumnNotFoundError, SchemaError, UnsupportedError
from pyparq.filters.expression import Expression, simplified, tested_paths
from pyparq.filters.given import as_expression
from pyparq.filters.variants import named_node
from pyparq.format import hybrid_calendar
from pyparq.format.int96 import IS_INT96
from pyparq.format.schema_node import Shape, shape_of
from pyparq.format.types import Field, Schema
from pyparq.read.footers.open_file import OpenFile

if TYPE_CHECKING:
    from pyparq.arguments import Filters


ROW_METADATA = hybrid_calendar.ROW_METADATA.decode()


def row_metadata_kept(schema: Schema, without: Collection[str] = ()) -> str | None:
    """The schema text for new files with the columns of ``schema``, which has the metadata of the source.

    ``None`` if the source has none, or if it does not fit the columns any more. ``without``: columns that are not
    written.
    """
    try:
        described = {field["name"]: field for field in json.loads(schema.metadata[ROW_METADATA.encode()])["fields"]}
        kept = [described[field.name] for field in schema.fields if field.name not in without]
        written = [field for field in schema.fields if field.name not in without]
        if len(described) < len(written) or not all(map(_fits, written, [field["type"] for field in kept])):
            return None
    # the text comes from a file and may be anything
    except (AttributeError, KeyError, ValueError, TypeError, RecursionError):
        return None
    return json.dumps({"type": "struct", "fields": kept}, separators=(",", ":"))


def defaults_of(key_values: Mapping[bytes, bytes]) -> set[str]:
    """The columns for which Spark gives a DEFAULT where a file does not have them, as a file's metadata says."""
    try:
        fields = json.loads(key_values[ROW_METADATA.encode()])["fields"]
        return {str(field["name"]) for field in fields if "EXISTS_DEFAULT" in field["metadata"]}
    # the text comes from a file and may be anything
    except (AttributeError, KeyError, ValueError, TypeError, RecursionError):
        return set()


def check_defaults(files: Sequence[OpenFile], columns: Set[str], instead: str) -> None:
    """Raise :class:`UnsupportedError` for columns that some of the files lack, and for which Spark gives a DEFAULT
    there: here they are null. ``instead``: what to do, for the message."""
    given = {name for file in files for name in defaults_of(file.key_values)} & columns
    for file in files if given else ():
        missing = given - {node.name for node in file.tree.root.children}
        if missing:
            raise UnsupportedError(
                f"Spark gives this column's DEFAULT for files that do not have it, and here it is null: {instead}",
                file=file.name, column=min(missing),
            )  # fmt: skip


def _fits(field: Field, theirs: Any) -> bool:
    """Whether Spark may read the column as this type of its own."""
    type_ = field.type if field.type.dictionary is None else field.type.dictionary
    if theirs == "variant":
        return type_.kind == "struct"
    if isinstance(theirs, str):
        pattern = "timestamp" if IS_INT96 in field.metadata else _LEAVES.get(type_.format) or _of_family(type_)
        return pattern is not None and re.fullmatch(pattern, theirs) is not None
    if theirs["type"] == "struct":
        inner = theirs["fields"]
        names = [child.name for child in type_.children]
        return type_.kind == "struct" and names == [one["name"] for one in inner] and all(
            map(_fits, type_.children, [one["type"] for one in inner])
        )  # fmt: skip
    if theirs["type"] == "array":
        return type_.kind == "list" and _fits(type_.children[0], theirs["elementType"])
    if theirs["type"] == "map" and type_.kind == "map":
        key, value = type_.children[0].type.children
        return _fits(key, theirs["keyType"]) and _fits(value, theirs["valueType"])
    return False


_DAYS = "interval (day|hour|minute|second)( to (hour|minute|second))?"
_MONTHS = "interval (year|month)( to month)?"

_LEAVES = {
    "b": "boolean", "c": "byte", "s": "short", "i": f"integer|{_MONTHS}", "l": f"long|{_DAYS}", "f": "float",
    "g": "double", "tdD": "date", "tDu": _DAYS, "ttu": r"time\(\d\)", "tiM": _MONTHS,
}  # fmt: skip
"""Spark's type names for each Arrow format, as patterns."""


def _of_family(type_: Any) -> str | None:
    if type_.kind == "string":
        return "string( collate .+)?|char\\(\\d+\\)|varchar\\(\\d+\\)"
    if type_.kind == "binary":
        return "binary"
    if type_.kind == "timestamp":
        return "timestamp" if type_.timezone else "timestamp_ntz"
    if type_.kind == "decimal":
        precision, scale, _ = type_.decimal
        return rf"decimal\({precision},{scale}\)"
    return None


# ---- storage ---------------------------------------------------------------------------------------------------------


_INT96_OPTIONS = ("int96_timestamps", "use_deprecated_int96_timestamps")


def storage_kept(schema: Schema, options: Mapping[str, Any], without: Collection[str] = ()) -> dict[str, Any]:
    """``options`` with additions that keep the storage of the columns of a dataset's ``schema``. Given options win.

    ``without``: columns that become names of folders. Options go by name, so columns with one name get what new files
    have.
    """
    kept = replace(schema, fields=tuple(field for field in schema.fields if field.name not in without))
    leaves = list(_marks(kept)) if any(map(_has_mark, kept.fields)) else []
    times = Counter(path for path, _ in leaves)
    marked = [(path, metadata) for path, metadata in leaves if times[path] == 1]
    found: dict[str, Any] = {}
    int96 = {path: True for path, metadata in marked if IS_INT96 in metadata and metadata.get(LOGICAL_TYPE) != b"INT96"}
    if int96 and "use_deprecated_int96_timestamps" not in options:
        found["int96_timestamps"] = int96
    decimals = {path: metadata[DECIMAL_STORAGE].decode() for path, metadata in marked if DECIMAL_STORAGE in metadata}
    if decimals:
        found["decimal_storage"] = decimals
    own = row_metadata_kept(schema, without)
    if own is not None:
        options = {
            **options,
            "key_value_metadata": {ROW_METADATA: own, **dict(options.get("key_value_metadata") or {})},
        }
    return {**found, **options}


def without_marks(schema: Schema) -> Schema:
    """The schema without the internal marks of storage, which are no metadata of the data."""
    fields = tuple(_unmarked(field) if _has_mark(field) else field for field in schema.fields)
    return replace(schema, fields=fields)


def _unmarked(field: Field) -> Field:
    children = tuple(_unmarked(child) for child in field.type.children)
    metadata = {key: value for key, value in field.metadata.items() if key not in (IS_INT96, DECIMAL_STORAGE)}
    return replace(field, type=replace(field.type, children=children), metadata=metadata)


def int96_as_bytes(
    dataset: Dataset, filters: Filters | None, options: Mapping[str, Any], partitions: Collection[str]
) -> Dataset:
    """The dataset with INT96 read as its stored bytes, if it will be written as INT96.

    The same dataset if no column is INT96 in all files, if another type is requested, if a filter or the name of a
    folder needs the time, or if old Spark has stored one in the hybrid calendar.
    """
    files = files_of(dataset)
    if any(name in options for name in _INT96_OPTIONS) or files.declared is not None:
        return dataset
    marked = {field.name for field in dataset.schema.fields if _is_int96(field)}
    if not marked or not marked.isdisjoint(partitions) or not marked.isdisjoint(_asked(dataset, filters)):
        return dataset
    if any(leaf.type.hybrid for _, file in files.open_all(range(len(files.files))) for leaf in file.tree.leaves):
        return dataset
    return dataset_of(files.with_options(replace(files.options, coerce_int96_timestamp_unit="bytes")))


def variants_as_stored(dataset: Dataset) -> Dataset:
    """The dataset with shredded Variants read as their columns, so that they are written as such.

    The same dataset if no Variant is shredded, or if the files have shredded one in different ways.
    """
    files = files_of(dataset)
    if files.declared is not None or not any(map(_has_variant, dataset.schema.fields)):
        return dataset
    stored = files.with_options(replace(files.options, variants="stored"))
    with suppress(SchemaError):
        # A field that one file shreds and another keeps in ``value`` must not become shredded in one part of the rows.
        due = {field.name: str(field.type) for field in stored.schema.fields if _is_stored(field)}
        opened = stored.open_all(range(len(stored.files)))
        if due and all(_types(file.fields.schema, due) == due for _, file in opened):
            return dataset_of(stored)
    return dataset


def _types(schema: Schema, names: Collection[str]) -> dict[str, str]:
    return {field.name: str(field.type) for field in schema.fields if field.name in names}


def _is_stored(field: Field) -> bool:
    """Whether there are Variants, at any depth, as they are stored."""
    return field.metadata.get(LOGICAL_TYPE) == b"VARIANT" or any(map(_is_stored, field.type.children))


def _has_variant(field: Field) -> bool:
    return field.metadata.get(EXTENSION_NAME) == VARIANT or any(map(_has_variant, field.type.children))


def _asked(dataset: Dataset, filters: Filters | None) -> set[str]:
    """The columns that a filter tests. A nested one is given by its top-level name."""
    found: set[str] = set()

    def note(test: Expression) -> Expression:
        with suppress(ColumnNotFoundError):  # the scan raises the error
            found.update(named_node(dataset.tree, path).path[0] for path in tested_paths(test))
        return test

    expression = as_expression(filters, lambda: dataset.tree, lambda: Table(dataset.schema, []))
    if expression is not None:
        simplified(expression, note)
    return found


def _is_int96(field: Field) -> bool:
    return IS_INT96 in field.metadata or any(map(_is_int96, field.type.children))


def _has_mark(field: Field) -> bool:
    marks = field.metadata.keys() & {IS_INT96, DECIMAL_STORAGE}
    return bool(marks) or any(map(_has_mark, field.type.children))


def _marks(schema: Schema) -> Iterator[tuple[tuple[str, ...], Mapping[bytes, bytes]]]:
    """The path of each leaf as it will be written, and the metadata of its field."""
    tree = tree_of(schema)
    for node, field in zip(tree.root.children, schema.fields, strict=True):
        yield from _below(shape_of(node), field)


def _below(shape: Shape, field: Field) -> Iterator[tuple[tuple[str, ...], Mapping[bytes, bytes]]]:
    if shape.kind == "leaf":
        yield shape.node.path, field.metadata
        return
    children = field.type.children[0].type.children if shape.kind == "map" else field.type.children
    for below, child in zip(shape.children, children, strict=True):
        yield from _below(below, child)
