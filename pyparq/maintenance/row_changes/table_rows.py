"""New rows of a table: one new file for each partition that they belong to."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from pyparq.arrow.column_operations import take
from pyparq.arrow.ingest import ingest
from pyparq.arrow.table import Batch, Table
from pyparq.datasets.data_files import plain_place
from pyparq.datasets.files import DatasetFiles
from pyparq.datasets.partitions import NULL, unescaped
from pyparq.datasets.write.partition_split import Splitter
from pyparq.errors import UnsupportedError
from pyparq.format.types import Schema
from pyparq.io.table_formats import DELTA, format_of
from pyparq.io.url import is_url
from pyparq.maintenance.row_changes.row_group_plans import RowGroupPlans, options_like
from pyparq.maintenance.table_change import AddedFile, facts_of
from pyparq.maintenance.table_commits import sized
from pyparq.runtime.lazy_import import load
from pyparq.write.file import write_table


class _Part(NamedTuple):
    """Rows of one partition."""

    uri: str
    """Of the new file."""
    partition: Any
    """As in :class:`AddedFile`."""
    rows: Table
    spec_id: int = 0


def add_files(
    table: Any, files: DatasetFiles, rows: Table, fsync: bool, note: Callable[[str], None]
) -> Iterator[AddedFile]:
    """Write the rows. ``note`` is told each place before something is there."""
    parts = _delta_parts if format_of(table) == DELTA else _iceberg_parts
    store, options = files.found.storage_options, _storage_of(files, rows.schema)
    for part in parts(table, files, rows):
        place = plain_place(part.uri)
        note(place)
        if not is_url(place):
            os.makedirs(os.path.dirname(place), exist_ok=True)
        on = store if is_url(place) else None
        write_table(part.rows, place, storage_options=on, force=True, fsync=fsync, **options)
        new = sized(place, store)
        new.facts = facts_of(place, on, None)
        yield AddedFile(new, part.partition, part.uri, part.spec_id)


def remove_empty_folders(places: Sequence[str], root: str) -> None:
    """Remove the local folders of files that are gone, where nothing else is."""
    for place in places:
        folder = os.path.dirname(place)
        with suppress(OSError):
            while not is_url(folder) and folder.startswith(root + "/"):
                os.rmdir(folder)
                folder = os.path.dirname(folder)


def _storage_of(files: DatasetFiles, schema: Schema) -> dict[str, Any]:
    """Options for new files, which are stored as the first file of the table is."""
    file = files.open(0) if files.found.files else None
    if file is None:
        return {}
    if file.decryption.info is not None:
        raise UnsupportedError("new files of an encrypted table cannot be written: their keys are not given")
    own = {leaf.path for leaf in files.tree.leaves if leaf.path[0] in schema.names}
    given = options_like(RowGroupPlans(file).for_more_rows())
    kept: dict[str, Any] = {}
    for name, value in given.items():
        if isinstance(value, dict):
            kept[name] = {path: one for path, one in value.items() if path in own}
        elif name == "sort_by":
            kept[name] = [key for key in value if key.name in own]
        elif name != "write_statistics":  # a table's log needs them
            kept[name] = value
    return kept


# ---- Delta Lake ------------------------------------------------------------------------------------------------------


def _delta_parts(table: Any, files: DatasetFiles, rows: Table) -> Iterator[_Part]:
    """Partition columns are in the log, and not in the files."""
    names = list(table.metadata().partition_columns)
    splitter = Splitter(rows.schema, names)
    root = files.table.folder if files.table is not None else ""
    parts: dict[tuple[str, ...], list[Batch]] = {}
    for batch in ingest(rows, rows.schema)[1]:
        for folders, some in splitter.split(batch):
            parts.setdefault(folders, []).append(Batch(some.columns, some.num_rows))
    for folders, batches in parts.items():
        texts = [unescaped(folder.partition("=")[2]) for folder in folders]
        values = {name: None if text == NULL else text for name, text in zip(names, texts, strict=True)}
        yield _Part("/".join([root, *folders, _name()]), values, Table(splitter.schema, batches))


def _name() -> str:
    return f"{uuid.uuid4()}-pyparq.parquet"


# ---- Apache Iceberg --------------------------------------------------------------------------------------------------


class _Folder(NamedTuple):
    """What pyiceberg's location provider asks of a partition."""

    path: str

    def to_path(self) -> str:
        return self.path


def _iceberg_parts(table: Any, files: DatasetFiles, rows: Table) -> Iterator[_Part]:
    """All columns are in the files."""
    spec, schema, location = table.spec(), table.schema(), table.location_provider()
    groups: dict[tuple[Any, ...], list[int]] = {}
    for number, values in enumerate(_partition_values(spec, schema, rows)):
        groups.setdefault(values, []).append(number)
    record = load("pyiceberg.typedef").Record
    for values, numbers in groups.items():
        partition = record(*values)
        folder = _Folder(spec.partition_to_path(partition, schema)) if spec.fields else None
        yield _Part(location.new_data_location(_name(), folder), partition, _taken(rows, numbers), spec.spec_id)


def _partition_values(spec: Any, schema: Any, rows: Table) -> Iterator[tuple[Any, ...]]:
    """The partition of each row."""
    if not spec.fields:
        yield from [()] * rows.num_rows
        return
    columns = [
        _transformed(field, schema, rows.column(schema.find_column_name(field.source_id)).to_pylist())
        for field in spec.fields
    ]
    yield from zip(*columns, strict=True)


def _transformed(field: Any, schema: Any, values: Sequence[Any]) -> list[Any]:
    """The values of a partition field, each computed once."""
    internal = load("pyiceberg.partitioning").partition_record_value
    transform = field.transform.transform(schema.find_field(field.source_id).field_type)
    known: dict[Any, Any] = {None: transform(None)}
    for value in set(values) - {None}:
        known[value] = transform(internal(field, value, schema))
    return [known[value] for value in values]


def _taken(rows: Table, numbers: Sequence[int]) -> Table:
    """Some rows of a table of one batch."""
    (batch,) = rows.batches
    picked = np.array(numbers, np.int64)
    return Table(rows.schema, [Batch([take(column, picked) for column in batch.columns], len(picked))])


def moves_rows(table: Any, files: DatasetFiles) -> bool:
    """Whether rows with new values may belong to another partition that only the table's library can tell: where
    partitions of an Iceberg table's files are made of columns of which the dataset does not know the values."""
    if format_of(table) == DELTA or hasattr(table, "plan_files"):
        return False
    known, names = files.partition_values.names, {field.field_id: field.name for field in table.schema().fields}
    specs, used = table.specs(), {task.file.spec_id for task in table.scan().plan_files()}
    return any(names.get(field.source_id) not in known for number in used for field in specs[number].fields)
