"""Commits of new data files to tables of Apache Iceberg, by ``pyiceberg``."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from typing import Any

from pyparq.datasets.data_files import plain_place
from pyparq.datasets.iceberg import field_types
from pyparq.maintenance.table_change import (
    TRIES,
    AddedFile,
    ColumnFacts,
    FileFacts,
    NewFile,
    TableChange,
    gone,
    outpaced,
)
from pyparq.maintenance.table_features import check_table
from pyparq.runtime.lazy_import import load

_CONFLICTS = ("CommitFailedException", "ValidationException")


def commit_iceberg(table: Any, change: TableChange) -> None:
    """Name the new files, in the places of those that they replace. What others append meanwhile stays.

    Raises :class:`WriteConflictError` where one of the old files has gone, or got deleted rows, and what
    ``change.check_newer`` raises.
    """
    mark, operation = uuid.uuid4().hex, change.intent.operation
    known: set[str] | None = None
    made: list[Any] = []
    for attempt in range(TRIES + 1):
        if attempt:
            table.refresh()
            if any(_has(snapshot, mark) for snapshot in table.snapshots()):
                return  # it took place: only the answer was lost
            made.pop()._clean_all_uncommitted()
            check_table(table, change.intent)
        if attempt == TRIES:
            break
        tasks = {plain_place(task.file.file_path): task for task in table.scan().plan_files()}
        for place in change.files:
            if place not in tasks or tasks[place].delete_files:
                raise gone(place)
        known = set(tasks) if known is None else known
        if not tasks.keys() <= known:
            change.check_newer(table, tasks.keys() - known)
        try:
            pairs = [(tasks[place].file, new) for place, new in change.files.items()]
            said = {_MARK: mark, **({_DONE: operation} if operation else {})}
            _replace_in_snapshot(table, pairs, change, said, made)
        except Exception as error:
            if type(error).__name__ not in _CONFLICTS:
                raise
        else:
            return
    raise outpaced()


_MARK, _DONE = "pyparq.commit", "pyparq.operation"
"""What a snapshot says of itself in its summary."""


def _has(snapshot: Any, mark: str) -> bool:
    summary = snapshot.summary
    return summary is not None and summary.additional_properties.get(_MARK) == mark


def _replace_in_snapshot(
    table: Any, pairs: list[tuple[Any, NewFile | None]], change: TableChange, said: Mapping[str, str], made: list[Any]
) -> None:
    with table.transaction() as transaction:
        plain = type(transaction.update_snapshot().overwrite())
        operation = load("pyiceberg.table.snapshots").Operation.OVERWRITE
        snapshot = _by_spec(plain)(
            operation=operation, transaction=transaction, io=table.io, snapshot_properties=dict(said)
        )
        made.append(snapshot)
        with snapshot:
            for old, new in pairs:
                snapshot.delete_data_file(old)
                if new is not None:
                    snapshot.append_data_file(_entry(old, new, table, change.intent.makes_values))
            for added in change.added:
                snapshot.append_data_file(_added_entry(added, table))
        transaction._snapshot_producers = []  # pyiceberg would try again by itself, after a wait, and compare less


def _entry(old: Any, new: NewFile, table: Any, has_other_order: bool) -> Any:
    """The manifest entry of a file with the partition of ``old``, and with its rows and statistics or new ones.
    ``has_other_order``: the rows may no longer be in the order of the old file."""
    scheme = old.file_path.removesuffix(plain_place(old.file_path))  # local files are named by path or by URL
    same = ("content", "file_format", "partition", "record_count", "column_sizes", "value_counts", "null_value_counts",
            "nan_value_counts", "lower_bounds", "upper_bounds", "split_offsets", "sort_order_id")  # fmt: skip
    values = {name: getattr(old, name) for name in same} | {"key_metadata": None, "equality_ids": None}
    if new.facts is not None:
        values |= _facts(old, new.facts, field_types(table.schema()))
    if has_other_order:
        values["sort_order_id"] = None
    entry = type(old).from_args(
        file_path=scheme + new.path, file_size_in_bytes=new.size, **values
    )  # fmt: skip
    entry.spec_id = old.spec_id
    return entry


def _added_entry(added: AddedFile, table: Any) -> Any:
    """The manifest entry of a file of new rows."""
    manifests, facts = load("pyiceberg.manifest"), added.new.facts
    assert facts is not None
    entry = manifests.DataFile.from_args(
        content=manifests.DataFileContent.DATA,
        file_path=added.uri, file_format=manifests.FileFormat.PARQUET, partition=added.partition,
        file_size_in_bytes=added.new.size, key_metadata=None, equality_ids=None, sort_order_id=None,
        **_facts(None, facts, field_types(table.schema())),
    )  # fmt: skip
    entry.spec_id = added.spec_id
    return entry


def _facts(old: Any, facts: FileFacts, types: Mapping[int, Any]) -> dict[str, Any]:
    """What a manifest says of a file, about the columns of which it says so for ``old``, or about all columns."""
    convert = load("pyiceberg.conversions").to_bytes
    columns = {column.field_id: column for column in facts.columns if column.field_id is not None}

    def of(kind: str, fact: Callable[[ColumnFacts], Any]) -> dict[int, Any]:
        wanted = columns if old is None else getattr(old, kind) or ()
        told = {number: fact(columns[number]) for number in wanted if number in columns}
        return {number: value for number, value in told.items() if value is not None}

    def bound(column: ColumnFacts, value: Any) -> bytes | None:
        type_ = types.get(column.field_id or 0)
        return None if value is None or type_ is None else convert(type_, _fitting(value, type_))

    return {
        "record_count": facts.num_rows, "nan_value_counts": {}, "split_offsets": None,
        "column_sizes": of("column_sizes", lambda column: column.size),
        "value_counts": of("value_counts", lambda column: column.values),
        "null_value_counts": of("null_value_counts", lambda column: None if column.nulls < 0 else column.nulls),
        "lower_bounds": of("lower_bounds", lambda column: bound(column, _start(column.low))),
        "upper_bounds": of("upper_bounds", lambda column: bound(column, _end(column.high))),
    }  # fmt: skip


_PREFIX = 16
"""Characters of texts that manifests have as bounds."""


def _start(value: Any) -> Any:
    return value[:_PREFIX] if isinstance(value, str) else value


def _end(value: Any) -> Any:
    """``None`` where there is no such text."""
    if not isinstance(value, str):
        return value
    return load("pyiceberg.utils.truncate").truncate_upper_bound_text_string(value, _PREFIX)


def _fitting(value: Any, type_: Any) -> Any:
    """The value as a column's type has it: files may be older than a wider type."""
    text = str(type_)
    if isinstance(value, Decimal):
        return value.quantize(Decimal(1).scaleb(-type_.scale), context=Context(prec=80))
    return float(value) if text in ("float", "double") else value


def _by_spec(plain: Any) -> Any:
    """A producer of snapshots like pyiceberg's ``plain``, with a manifest for each partition spec of the new files.

    pyiceberg's own puts all of them into one manifest of the newest spec. The partition values of files that are older
    than it would then be taken for values of other columns.
    """
    snapshots, manifests = load("pyiceberg.table.snapshots"), load("pyiceberg.manifest")

    def written(self: Any) -> list[Any]:
        added, self._added_data_files = self._added_data_files, []
        others = plain._manifests(self)
        self._added_data_files = added
        by_spec: dict[int, list[Any]] = defaultdict(list)
        for file in added:
            by_spec[file.spec_id].append(file)
        return [*(_manifest(self, number, files) for number, files in by_spec.items()), *others]

    def _manifest(self: Any, number: int, files: list[Any]) -> Any:
        with self.new_manifest_writer(self.spec(number)) as writer:
            for file in files:
                writer.add(
                    manifests.ManifestEntry.from_args(
                        status=manifests.ManifestEntryStatus.ADDED, snapshot_id=self.snapshot_id,
                        sequence_number=None, file_sequence_number=None, data_file=file,
                    )
                )  # fmt: skip
        return writer.to_manifest_file()

    def summary(self: Any, snapshot_properties: Mapping[str, str]) -> Any:
        metadata, collected = self._transaction.table_metadata, snapshots.SnapshotSummaryCollector()
        schema, specs = metadata.schema(), metadata.specs()
        for file in self._added_data_files:
            collected.add_file(file, schema, specs[file.spec_id])
        for file in self._deleted_data_files:
            collected.remove_file(file, schema, specs[file.spec_id])
        before = self._parent_snapshot_id and metadata.snapshot_by_id(self._parent_snapshot_id)
        found = snapshots.Summary(operation=self._operation, **collected.build(), **snapshot_properties)
        return snapshots.update_snapshot_summaries(summary=found, previous_summary=before.summary if before else None)

    return type("BySpec", (plain,), {"_manifests": written, "_summary": summary})
