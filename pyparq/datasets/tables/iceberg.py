"""Tables of Apache Iceberg, as the package ``pyiceberg`` opens them (https://iceberg.apache.org/spec).

Manifests name the data files of a snapshot, their partition values and their statistics. Columns are found by field id.
Delete files name rows of data files that the table no longer has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from pyparq.arrow.column import Column
from pyparq.arrow.ingest.cast import cast
from pyparq.arrow.ingest.from_python import column_from_list
from pyparq.datasets.partitions import Partitions
from pyparq.datasets.read.column_matching import Matching, StoredNames
from pyparq.datasets.tables.iceberg_types import bound, field_types, schema_of
from pyparq.datasets.tables.opened_table import OpenedTable, data_file, plain_place
from pyparq.datasets.tables.table_files import Int64Array, LogStatistics, Stated, TableFiles
from pyparq.errors import OptionError, UnsupportedError, located
from pyparq.filters.expression import col
from pyparq.format.schema_node import Node
from pyparq.format.types import DataType, Field, Schema
from pyparq.io.table_formats import ICEBERG
from pyparq.read.file import ParquetFile
from pyparq.runtime.lazy_import import load

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
        deleted = _deleted(tasks, scan.io)
    names: StoredNames = {b"": ()}
    for mapped in _mapped(metadata.name_mapping()):
        names[str(mapped.field_id).encode()] = tuple(mapped.names)
    rows = np.array([entry.record_count for entry in entries], np.int64)
    known = TableFiles(ICEBERG, rows, deleted, _Statistics(entries, types), plain_place(root).rstrip("/"))
    files = tuple(data_file(entry.file_path, entry.file_size_in_bytes) for entry in entries)
    return OpenedTable(root, files, schema, partitions, Matching("field_id", stored=names, of_table=True), known)


def _check_plain(scan: Any) -> None:
    if tuple(scan.selected_fields) != ("*",) or scan.limit is not None or str(scan.row_filter) != "AlwaysTrue()":
        raise OptionError(
            "a scan of an Iceberg table is taken for its snapshot alone: leave out its row_filter, selected_fields and "
            "limit, and give columns=, filters= and limit= here"
        )


def _tasks(scan: Any) -> Iterable[Any]:
    try:
        return list(scan.plan_files())
    except (ValueError, NotImplementedError) as error:
        if "equality delete" not in str(error):
            raise
        raise UnsupportedError(f"the table has equality deletes, which pyiceberg does not read: {error}") from error


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


def _deleted(tasks: Sequence[Any], io: Any) -> dict[int, Int64Array]:
    """The rows that delete files name, by the number of the data file. Each delete file is read once."""
    numbers = {task.file.file_path: k for k, task in enumerate(tasks)}
    meant: dict[str, tuple[Any, set[str]]] = {}
    for task in tasks:
        for entry in task.delete_files:
            meant.setdefault(_key(entry), (entry, set()))[1].add(task.file.file_path)
    found: dict[int, list[Int64Array]] = {}
    for entry, paths in meant.values():
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
    puffin = load("pyiceberg.table.puffin")
    vectors = load("pyiceberg.table.deletion_vector")
    with io.new_input(entry.file_path).open() as opened:
        file = puffin.PuffinFile(opened.read())
    for vector in vectors.deletion_vectors_from_puffin_file(file):
        if vector.referenced_data_file in paths:
            yield vector.referenced_data_file, np.array(vector.to_vector().to_pylist(), np.int64)


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
        lows, highs = ([bound((b or {}).get(number), type_) for b in each] for each in (self._lows(), self._highs()))
        counts = [(entry.null_value_counts or {}).get(number, -1) for entry in self._entries]
        return Stated(lows, highs, np.array(counts, np.int64))

    def _lows(self) -> list[Any]:
        return [entry.lower_bounds for entry in self._entries]

    def _highs(self) -> list[Any]:
        return [entry.upper_bounds for entry in self._entries]
