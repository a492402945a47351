"""Tables of Apache Iceberg, as the package ``pyiceberg`` opens them (https://iceberg.apache.org/spec).

Manifests name the data files of a snapshot, their partition values and their statistics. Columns are found by field id.
Delete files name rows of data files that the table no longer has.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from decimal import Context, Decimal
from typing import Any

import numpy as np

from pyparq.arrow.column import Column
from pyparq.arrow.decimals import decimal_type
from pyparq.arrow.ingest.cast import cast
from pyparq.arrow.ingest.from_python import column_from_list
from pyparq.arrow.schema.extensions import EXTENSION_METADATA, EXTENSION_NAME, FIELD_ID, UUID
from pyparq.datasets.catalog.puffin import is_catalog
from pyparq.datasets.data_files import DataFile, data_file, plain_place
from pyparq.datasets.file_columns import Matching, StoredNames
from pyparq.datasets.partitions import Partitions
from pyparq.datasets.tables import LogStatistics, OpenedTable, Stated, TableFiles
from pyparq.errors import CorruptFileError, LimitError, OptionError, UnsupportedError, located
from pyparq.filters.expression import col
from pyparq.filters.literal import Interpreted
from pyparq.format.order import Int64Array
from pyparq.format.schema_node import Node
from pyparq.format.types import DataType, Field, Schema
from pyparq.io.table_formats import ICEBERG
from pyparq.read.file import ParquetFile
from pyparq.runtime.lazy_import import load

_PLAIN = {
    "boolean": "b", "int": "i", "long": "l", "float": "f", "double": "g", "date": "tdD", "time": "ttu",
    "timestamp": "tsu:", "timestamptz": "tsu:UTC", "timestamp_ns": "tsn:", "timestamptz_ns": "tsn:UTC",
    "string": "u", "binary": "z", "unknown": "n",
}  # fmt: skip
_NS = {"date": 86_400_000_000_000, "timestamp": 1000, "timestamptz": 1000, "timestamp_ns": 1, "timestamptz_ns": 1}
_NUMBERS = {4: "<i", 8: "<q"}


def schema_of(schema: Any) -> Schema:
    """The Arrow schema of an Iceberg schema, with its field ids. Raises :class:`UnsupportedError` for a type or a
    default value that pyparq does not have."""
    found = Schema(tuple(_schema_field(field) for field in schema.fields))
    numbers = list(_field_ids(found.fields))
    if len(set(numbers)) < len(numbers):
        raise CorruptFileError("two columns of the table have one field id")
    return found


def _field_ids(fields: Iterable[Field]) -> Iterator[bytes]:
    for field in fields:
        yield from [field.metadata[FIELD_ID]] if FIELD_ID in field.metadata else ()
        yield from _field_ids(field.type.children)


def _schema_field(field: Any) -> Field:
    if getattr(field, "initial_default", None) is not None:
        raise UnsupportedError(
            "the column has an initial default, which files that are older than it do not store", column=field.name
        )
    return _numbered(field.name, field.field_id, field.field_type, not field.required)


def _numbered(name: str, number: int, type_: Any, nullable: bool) -> Field:
    metadata = {FIELD_ID: str(number).encode()}
    if str(type_) == "uuid":
        metadata |= {EXTENSION_NAME: UUID, EXTENSION_METADATA: b""}
    return Field(name, _schema_type(type_, name), nullable, metadata)


def _schema_type(type_: Any, name: str) -> DataType:
    if hasattr(type_, "fields"):
        return DataType("+s", tuple(map(_schema_field, type_.fields)))
    if hasattr(type_, "element_type"):
        return DataType("+l", (_numbered("element", type_.element_id, type_.element_type, not type_.element_required),))
    if hasattr(type_, "key_type"):
        key = _numbered("key", type_.key_id, type_.key_type, False)
        value = _numbered("value", type_.value_id, type_.value_type, not type_.value_required)
        return DataType("+m", (Field("key_value", DataType("+s", (key, value)), False),))
    if hasattr(type_, "precision") and hasattr(type_, "scale"):
        return decimal_type(type_.precision, type_.scale)
    text = str(type_)
    if text == "uuid" or text.startswith("fixed"):
        return DataType(f"w:{16 if text == 'uuid' else len(type_)}")
    if text not in _PLAIN:
        raise UnsupportedError(f"the column has Iceberg's type {text}, which pyparq does not have", column=name)
    return DataType(_PLAIN[text])


def field_types(schema: Any) -> dict[int, Any]:
    """The types of all fields of primitive types, by their ids."""
    found: dict[int, Any] = {}

    def look(number: int, type_: Any) -> None:
        if hasattr(type_, "fields"):
            for field in type_.fields:
                look(field.field_id, field.field_type)
        elif hasattr(type_, "element_type"):
            look(type_.element_id, type_.element_type)
        elif hasattr(type_, "key_type"):
            look(type_.key_id, type_.key_type)
            look(type_.value_id, type_.value_type)
        else:
            found[number] = type_

    for field in schema.fields:
        look(field.field_id, field.field_type)
    return found


def bound(data: bytes | None, type_: Any) -> Any:
    """A bound of the single-value serialization as a literal of a filter. ``None`` where it cannot be told.

    An int, a float or a date of 4 bytes may belong to a column that is a long, a double or a timestamp by now.
    """
    if data is None:
        return None
    text = str(type_)
    if text in ("int", "long", "date", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"):
        if len(data) not in _NUMBERS:
            return None
        number = struct.unpack(_NUMBERS[len(data)], data)[0]
        if text not in _NS:
            return number
        return Interpreted(number * _NS["date" if len(data) == 4 else text])
    if text in ("float", "double"):
        return struct.unpack("<f" if len(data) == 4 else "<d", data)[0] if len(data) in (4, 8) else None
    if hasattr(type_, "precision"):
        return _decimal(int.from_bytes(data, "big", signed=True), type_.scale)
    if text == "boolean":
        return data != b"\0"
    return data if text in ("string", "binary") or text.startswith("fixed") else None


def _decimal(unscaled: int, scale: int) -> Any:
    return Decimal(unscaled).scaleb(-scale, Context(prec=80))


_DATA, _POSITIONS, _EQUALITY = 0, 1, 2
"""Contents of a file (``content`` of a manifest entry)."""


def open_iceberg(table: Any) -> OpenedTable:
    """The current snapshot of a table, or the snapshot of an unfiltered scan of it.

    Raises :class:`UnsupportedError` for equality deletes, data files that are not Parquet, and types that pyparq does
    not have. Raises :class:`OptionError` for a scan that has a filter, columns or a limit of its own.
    """
    scan = table if hasattr(table, "plan_files") else table.scan()
    _check_plain(scan)
    metadata = scan.table_metadata
    root = str(metadata.location)
    with located(file=root):
        schema, types = schema_of(scan.projection()), field_types(scan.projection())
        tasks = sorted(_tasks(scan), key=lambda task: task.file.file_path)
        entries = [task.file for task in tasks]
        _check_parquet(entries)
        partitions = _partitions(entries, metadata, schema)
        deleted = _deleted(tasks, scan.io, root)
    names: StoredNames = {b"": ()}
    for mapped in _mapped(metadata.name_mapping()):
        names[str(mapped.field_id).encode()] = tuple(mapped.names)
    rows = np.array([entry.record_count for entry in entries], np.int64)
    known = TableFiles(ICEBERG, rows, deleted, _Statistics(entries, types), plain_place(root).rstrip("/"))
    number, snapshot = str(metadata.table_uuid), scan.snapshot()
    files = tuple(
        data_file(entry.file_path, entry.file_size_in_bytes, root, (entry.file_path, number, 0)) for entry in entries
    )
    return OpenedTable(
        root, files, schema, partitions, Matching("field_id", stored=names), known,
        None if snapshot is None else (number, snapshot.snapshot_id), _catalog(metadata),
    )  # fmt: skip


def _catalog(metadata: Any) -> DataFile | None:
    """The newest catalog of keys that the metadata names, whatever the snapshot: it knows files by their names."""
    named = [(one.statistics_path, one.file_size_in_bytes) for one in metadata.statistics]
    own = [DataFile(path, plain_place(path), (), size) for path, size in named if is_catalog(path)]
    return own[-1] if own else None


def _check_plain(scan: Any) -> None:
    if tuple(scan.selected_fields) != ("*",) or scan.limit is not None or str(scan.row_filter) != "AlwaysTrue()":
        raise OptionError(
            "a scan of an Iceberg table is taken for its snapshot alone: leave out its row_filter, selected_fields and "
            "limit, and give columns=, filters= and limit= here"
        )


def _tasks(scan: Any) -> Iterable[Any]:
    try:
        tasks = list(scan.plan_files())
    except (ValueError, NotImplementedError) as error:
        if "equality delete" not in str(error):
            raise
        raise UnsupportedError(f"the table has equality deletes, which pyiceberg does not read: {error}") from error
    manifests = [] if (snapshot := scan.snapshot()) is None else snapshot.manifests(scan.io)
    named = [(one, (one.added_files_count or 0) + (one.existing_files_count or 0)) for one in manifests]
    of_data = sum(count for one, count in named if int(one.content) == _DATA)
    # pyiceberg takes a manifest that is cut as whole. It also leaves out files without rows, which are no fault.
    doubtful = [pair for pair in named if int(pair[0].content) != _DATA or of_data > len(tasks)]
    missing = sum(max(count - len(one.fetch_manifest_entry(scan.io)), 0) for one, count in doubtful)
    if missing > 0:
        raise CorruptFileError(f"a manifest of the table is cut: {missing} of its files are missing")
    if len({task.file.file_path for task in tasks}) < len(tasks):
        raise CorruptFileError("the manifests of the table name a file twice")
    return tasks


def _check_parquet(entries: Sequence[Any]) -> None:
    for entry in entries:
        form = str(entry.file_format).rpartition(".")[2].upper()
        if form != "PARQUET":
            raise UnsupportedError(f"the data file is in the format {form}", file=entry.file_path)


def _mapped(mapping: Any) -> Iterator[Any]:
    """The fields of a name mapping at any depth (``schema.name-mapping.default``)."""
    for field in () if mapping is None else mapping.root if hasattr(mapping, "root") else mapping.fields:
        if field.field_id is not None:
            yield field
        yield from _mapped(field) if field.fields else ()


# ---- partitions ----------------------------------------------------------------------------------------------------


def _partitions(entries: Sequence[Any], metadata: Any, schema: Schema) -> Partitions:
    """The columns whose value the manifests hold for every file: those that all partition specs in use keep as they
    are. The files need not store them."""
    specs = {spec.spec_id: spec for spec in metadata.specs().values()} if callable(metadata.specs) else metadata.specs
    places = {number: _identity(specs[number]) for number in sorted({entry.spec_id for entry in entries})}
    fields, columns = [], []
    for field in schema.fields:
        number = int(field.metadata[b"PARQUET:field_id"])
        if not places or any(number not in place for place in places.values()):
            continue
        values = [entry.partition[places[entry.spec_id][number]] for entry in entries]
        fields.append(field)
        columns.append(_column(values, field))
    return Partitions(tuple(fields), tuple(columns), np.arange(len(entries)) if fields else np.zeros(len(entries), int))


def _identity(spec: Any) -> dict[int, int]:
    """The positions in a partition of the columns that a spec keeps as they are, by field id."""
    return {part.source_id: k for k, part in enumerate(spec.fields) if str(part.transform) == "identity"}


def _column(values: list[Any], field: Field) -> Column:
    """Partition values of a manifest, where dates and times are numbers (Appendix D, "Binary single-value")."""
    column, stored = column_from_list(values, field.name), _STORED.get(field.type.kind)
    if stored is None or column.type.kind != "int":
        return cast(column, field.type, field.name)
    whole = cast(column, DataType(stored), field.name)
    return Column(field.type, whole.length, whole.validity, whole.buffers, whole.null_count)


_STORED = {"date": "i", "time": "l", "timestamp": "l"}


# ---- deleted rows --------------------------------------------------------------------------------------------------


def _deleted(tasks: Sequence[Any], io: Any, root: str) -> dict[int, Int64Array]:
    """The rows that delete files name, by the number of the data file. Each delete file is read once."""
    numbers = {task.file.file_path: k for k, task in enumerate(tasks)}
    meant: dict[str, tuple[Any, set[str]]] = {}
    for task in tasks:
        for entry in task.delete_files:
            meant.setdefault(_key(entry), (entry, set()))[1].add(task.file.file_path)
    found: dict[int, list[Int64Array]] = {}
    for entry, paths in meant.values():
        data_file(entry.file_path, None, root)
        if int(entry.content) == _EQUALITY:
            raise UnsupportedError("equality deletes are not supported", file=entry.file_path)
        for path, rows in _named_rows(entry, io, paths):
            found.setdefault(numbers[path], []).append(rows)
    return {k: np.unique(np.concatenate(rows)) for k, rows in found.items()}


def _key(entry: Any) -> str:
    """A Puffin file may hold the deletion vectors of several data files."""
    return f"{entry.file_path} {getattr(entry, 'content_offset', None)}"


def _named_rows(entry: Any, io: Any, paths: set[str]) -> Iterator[tuple[str, Int64Array]]:
    form = str(entry.file_format).rpartition(".")[2].upper()
    if form == "PUFFIN":
        yield from _of_vectors(entry, io, paths)
    elif form == "PARQUET":
        with io.new_input(entry.file_path).open() as opened, ParquetFile(opened) as file:
            for path in sorted(paths):
                named = file.read(["pos"], col("file_path") == path)
                yield path, np.array(named.column("pos").to_pylist(), np.int64)
    else:
        raise UnsupportedError(f"the delete file is in the format {form}", file=entry.file_path)


def _of_vectors(entry: Any, io: Any, paths: set[str]) -> Iterator[tuple[str, Int64Array]]:
    """The rows in a Puffin file's deletion vectors."""
    with io.new_input(entry.file_path).open() as opened:
        puffin = load("pyiceberg.table.puffin").PuffinFile(opened.read())
    for blob in puffin.footer.blobs:
        path = blob.properties.get("referenced-data-file")
        if blob.type != "deletion-vector-v1" or path is None:  # passed over, deleted rows would come back
            raise CorruptFileError(f"a delete file has a blob of the type {blob.type!r}", file=entry.file_path)
        if path in paths:
            yield path, _of_vector(bytes(puffin.get_blob_payload(blob)), entry.file_path)


def _of_vector(blob: bytes, name: str) -> Int64Array:
    """The rows in a deletion vector: its length, a magic number, Roaring bitmaps by the upper 32 bits of the rows, and
    a checksum. Few bytes may stand for any number of rows, so these are counted before they are made."""
    head, left = max(len(blob) - 8, 0).to_bytes(4, "big") + b"\xd1\xd3\x39\x64", memoryview(blob)[16:-4]
    if blob[:8] != head or zlib.crc32(blob[4:-4]) != int.from_bytes(blob[-4:], "big"):
        raise CorruptFileError("the deletion vector is damaged", file=name)
    found, total = [np.zeros(0, np.int64)], 0
    for _ in range(int.from_bytes(blob[8:16], "little")):
        bitmap = load("pyroaring").BitMap.deserialize(bytes(left[4:]))
        total += len(bitmap)
        if total > _MOST_DELETED:
            raise LimitError(f"the deletion vector names more than {_MOST_DELETED:,} rows", file=name)
        found.append(np.array(bitmap.to_array(), np.int64) + (int.from_bytes(left[:4], "little") << 32))
        left = left[4 + len(bitmap.serialize()) :]
    return np.concatenate(found)


_MOST_DELETED = 1 << 27


# ---- statistics ----------------------------------------------------------------------------------------------------


class _Statistics(LogStatistics):
    """The column statistics of manifests."""

    def __init__(self, entries: Sequence[Any], types: dict[int, Any]) -> None:
        self._entries = entries
        self._types = types

    def stated(self, node: Node) -> Stated | None:
        number = node.element.field_id
        type_ = self._types.get(number)
        if type_ is None:
            return None
        each = [(entry.lower_bounds or {}, entry.upper_bounds or {}) for entry in self._entries]
        lows, highs = ([bound(pair[k].get(number), type_) for pair in each] for k in (0, 1))
        counts = [(entry.null_value_counts or {}).get(number, -1) for entry in self._entries]
        return Stated(lows, highs, np.array(counts, np.int64))
