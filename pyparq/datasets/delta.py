"""Tables of Delta Lake, as the package ``deltalake`` opens them (https://github.com/delta-io/delta, PROTOCOL.md).

The log names the files of a version, their partition values and their statistics. With column mapping, files store
columns under other names than the table shows. Deletion vectors name rows of files that the table no longer has.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import numpy as np

from pyparq import kernels
from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import Int64Array, concat, list_items, slice_column, struct_child, take
from pyparq.arrow.exchange import schema_from_arrow
from pyparq.arrow.ingest.cast import cast
from pyparq.arrow.schema.extensions import FIELD_ID
from pyparq.arrow.table import Table
from pyparq.datasets.data_files import DataFile, data_file
from pyparq.datasets.file_columns import Matching, StoredNames
from pyparq.datasets.partitions import Partitions
from pyparq.datasets.tables import LogStatistics, OpenedTable, Stated, TableFiles
from pyparq.errors import CorruptFileError, LimitError, UnsupportedError
from pyparq.format.schema_node import Node
from pyparq.format.types import DataType, Field, Schema
from pyparq.index.row_ranges import RowMask
from pyparq.io.table_formats import DELTA
from pyparq.io.url import shown

_NAME, _ID = b"delta.columnMapping.physicalName", b"delta.columnMapping.id"
_READER_VERSIONS = (1, 2, 3)
_FEATURES = frozenset(
    ["columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "typeWidening-preview", "v2Checkpoint",
     "vacuumProtocolCheck"]
)  # fmt: skip
"""Reader features of a table that are understood here, or that concern the log alone."""
_OF_TYPES = {"variantType": "variant", "variantType-preview": "variant", "variantShredding": "variant",
             "variantShredding-preview": "variant"}  # fmt: skip
"""Reader features that matter only where the schema has a type, and that type. A table keeps a feature for good."""
_EXACT_DIGITS = 15
"""Decimals of so many digits survive in a JSON number that is read as a double."""
_MS = dt.timedelta(milliseconds=1)
"""Logs state times to the millisecond, rounded down."""


def open_delta(table: Any) -> OpenedTable:
    """The table at the version that ``table`` has loaded. Raises :class:`UnsupportedError` for a feature of the table
    that is not understood here."""
    root = folder_of(table)
    _check_protocol(table, root)
    actions = Table.from_arrow(table.get_add_actions())
    named, sizes = actions.column("path").to_pylist(), actions.column("size_bytes").to_pylist()
    paths, number = [place_in(root, path) for path in named], str(table.metadata().id)
    logged = ((p, number, t or 0) for p, t in zip(named, actions.column("modification_time").to_pylist(), strict=True))
    mapped = table.metadata().configuration.get("delta.columnMapping.mode", "none")
    schema, names = _schema(schema_from_arrow(table.schema().to_arrow()), mapped != "none")
    matching = Matching("name" if mapped == "name" or not names else "field_id", stored=names)
    partitions = _partitions(table.metadata().partition_columns, actions, schema)
    rows = _counts(actions, "num_records")
    if len(rows) and int(rows.max()) > 1 << 32:  # deltalake takes a byte for each row of a file with deleted ones
        raise LimitError(f"the table's log says that a file has {int(rows.max()):,} rows", file=root)
    known = TableFiles(DELTA, rows, _deleted(table, paths, root), _Statistics(actions, names), root)
    files = tuple(data_file(path, size, root, said) for path, size, said in zip(paths, sizes, logged, strict=True))
    catalog = DataFile(shown(root), root)
    return OpenedTable(root, files, schema, partitions, matching, known, (number, table.version()), catalog)


def _check_protocol(table: Any, root: str) -> None:
    protocol = table.protocol()
    unknown = sorted(set(protocol.reader_features or ()) - _FEATURES)
    types = {_OF_TYPES.get(feature, "") for feature in unknown}
    if unknown and "" not in types and not types & set(_type_names(json.loads(table.schema().to_json()))):
        unknown = []
    if unknown or protocol.min_reader_version not in _READER_VERSIONS:
        what = f"the feature {unknown[0]}" if unknown else f"a reader of version {protocol.min_reader_version}"
        raise UnsupportedError(f"the table needs {what}, which pyparq does not have", file=root)


def _type_names(schema: Any) -> Iterator[str]:
    """The names of all types in a schema's JSON."""
    if isinstance(schema, str):
        yield schema
    elif isinstance(schema, dict):
        inner = schema.get("fields", [schema.get(key) for key in ("type", "elementType", "keyType", "valueType")])
        for each in inner:
            yield from _type_names(each)


def folder_of(table: Any) -> str:
    """The path or URL of a table's folder, without a slash at its end."""
    return _named(re.split("[?#]", str(table.table_uri))[0]).rstrip("/")


def place_in(root: str, path: str) -> str:
    """Where the file is whose ``path`` in the log is relative to the table's folder, or absolute. Paths in logs are
    URL-encoded (PROTOCOL.md, "Add File and Remove File"). Raises :class:`CorruptFileError` for ``..`` in a path."""
    place = _named(path) if "://" in path else f"{root}/{unquote(path)}"
    if ".." in place.removeprefix(root).split("/"):
        raise CorruptFileError(f"the table's log names a file outside of the table: {path}", file=root)
    return place


def _named(uri: str) -> str:
    """A URI with the names as they are in the store. A local one becomes a path."""
    scheme, mark, rest = uri.partition("://")
    if not mark:
        return uri
    host, slash, path = rest.partition("/")
    return slash + unquote(path) if scheme == "file" else f"{scheme}://{host}{slash}{unquote(path)}"


# ---- schema --------------------------------------------------------------------------------------------------------


def _schema(logical: Schema, mapped: bool) -> tuple[Schema, StoredNames]:
    """The table's schema, and the names under which files store its columns."""
    names: StoredNames = {}
    fields = tuple(_field(field, names if mapped else None) for field in logical.fields)
    return Schema(fields), names


def _field(field: Field, names: StoredNames | None) -> Field:
    metadata = {key: value for key, value in field.metadata.items() if not key.startswith(b"delta.")}
    number, stored = field.metadata.get(_ID), field.metadata.get(_NAME)
    if names is not None and number is not None and stored is not None:
        names[number] = (stored.decode(),)
        metadata[FIELD_ID] = number
    return replace(field, type=_type(field.type, names), metadata=metadata)


def _type(type_: DataType, names: StoredNames | None) -> DataType:
    if not type_.children:
        return type_
    return replace(type_, children=tuple(_field(child, names) for child in type_.children))


def _partitions(names: Sequence[str], actions: Table, schema: Schema) -> Partitions:
    if not names:
        return Partitions((), (), np.zeros(actions.num_rows, np.int64))
    columns = _children(actions, "partition")
    fields = [schema.field(name) for name in names]
    values = [cast(columns[field.name], field.type, field.name) for field in fields]
    seen: dict[tuple[Any, ...], int] = {}
    rows = zip(*(column.to_pylist() for column in values), strict=True)
    of_file = np.array([seen.setdefault(row, len(seen)) for row in rows], np.int64)
    _, first = np.unique(of_file, return_index=True)
    return Partitions(tuple(fields), tuple(take(column, first) for column in values), of_file)


# ---- what the log says of files --------------------------------------------------------------------------------------


def _counts(actions: Table, name: str) -> Int64Array:
    if name not in actions.column_names:
        return np.full(actions.num_rows, -1, np.int64)
    return np.array([-1 if n is None else n for n in actions.column(name).to_pylist()], np.int64)


def _children(actions: Table, name: str) -> dict[str, Column]:
    """The fields of a column of structs."""
    if name not in actions.column_names:
        return {}
    whole = _whole(actions, name)
    return {field.name: struct_child(whole, k) for k, field in enumerate(whole.type.children)}


def _whole(actions: Table, name: str) -> Column:
    k = actions.schema.index(name)
    return concat([batch.columns[k] for batch in actions.batches])


def _deleted(table: Any, paths: Sequence[str], root: str) -> dict[int, Int64Array]:
    found: dict[int, Int64Array] = {}
    if "deletionVectors" not in (table.protocol().reader_features or ()):
        return found  # deltalake refuses to look in tables with some other features
    numbers = {path: k for k, path in enumerate(paths)}
    for batch in Table.from_arrow(table.deletion_vectors()).batches:
        vectors = batch.columns[batch.schema.index("selection_vector")]
        for row, path in enumerate(batch.columns[batch.schema.index("filepath")].to_pylist()):
            k = numbers.get(_named(path))
            if k is None:
                raise CorruptFileError(f"the deletion vector of {path} belongs to no file of the table", file=root)
            ends, kept = list_items(slice_column(vectors, row, row + 1))
            start, stop = int(ends[0]), int(ends[1])
            bits = kernels.mask_of_bits(kept.buffers[0], kept.offset + start, stop - start)
            found[k] = (~RowMask.of_words(bits, stop - start)).rows()
    return found


class _Statistics(LogStatistics):
    """The column statistics of a log. Files that were written without them have none."""

    def __init__(self, actions: Table, names: StoredNames) -> None:
        self._actions = actions
        self._names = names

    def stated(self, node: Node) -> Stated | None:
        lows, highs = self._at("min", node), self._at("max", node)
        counts = self._at("null_count", node)
        nothing: list[Any] = [None] * self._actions.num_rows
        nulls = np.array([-1 if n is None else n for n in counts or nothing], np.int64)
        is_long = node.type.kind == "decimal" and node.type.precision > _EXACT_DIGITS
        if lows is None or highs is None or is_long:
            return Stated(nothing, nothing, nulls)
        if node.type.kind == "timestamp":
            return Stated([_moved(low, -1) for low in lows], [_moved(high, 1) for high in highs], nulls)
        return Stated(lows, highs, nulls)

    def _at(self, kind: str, node: Node) -> list[Any] | None:
        """The statements of one kind about a leaf."""
        if not self._actions.num_rows or kind not in self._actions.column_names:
            return None
        column = _whole(self._actions, kind)
        for part in _way(node):
            number = part.element.field_id
            wanted = self._names.get(b"" if number is None else str(number).encode(), (part.name,))
            found = [k for k, child in enumerate(column.type.children) if child.name in wanted]
            if not found:
                return None
            column = struct_child(column, found[0])
        return None if column.type.children else column.to_pylist()


def _way(node: Node) -> list[Node]:
    """The nodes from the top down to ``node``."""
    way = []
    while node.parent is not None:
        way.append(node)
        node = node.parent
    return way[::-1]


def _moved(time: dt.datetime | None, steps: int) -> dt.datetime | None:
    try:
        return None if time is None else time + steps * _MS
    except OverflowError:
        return None
