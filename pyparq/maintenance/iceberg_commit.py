"""Commits new files to a table of Apache Iceberg in the place of old ones, by ``pyiceberg``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from pyparq.datasets.tables import plain_place
from pyparq.errors import OptionError, UnsupportedError
from pyparq.maintenance.new_files import TRIES, NewFile, gone, outpaced
from pyparq.runtime.lazy_import import load

_CONFLICTS = ("CommitFailedException", "ValidationException")
_MOST_VERSION = 2
"""Manifests of later versions number the rows, and ``pyiceberg`` writes none."""


def check_iceberg(table: Any) -> None:
    """Raise :class:`OptionError` for a table whose files cannot be replaced, and :class:`UnsupportedError` where
    ``pyiceberg`` cannot commit them."""
    if hasattr(table, "plan_files"):
        raise OptionError("give the Iceberg table itself: a scan of it cannot be changed")
    version = table.metadata.format_version
    if version > _MOST_VERSION:
        raise UnsupportedError(f"the table has version {version} of the format, which pyiceberg does not write")
    specs, known = table.specs(), set(table.schema().field_ids)
    for number in sorted({task.file.spec_id for task in table.scan().plan_files()}):
        for field in specs[number].fields:
            if field.source_id not in known:
                raise UnsupportedError(
                    f"the partition field {field.name!r} of older files is made of a column that the table no longer "
                    "has: pyiceberg cannot write their manifests"
                )


def commit_iceberg(table: Any, made: Mapping[str, NewFile]) -> None:
    """Name the new files, by the places of those that they replace. What others append meanwhile stays.

    Raises :class:`WriteConflictError` where one of the old files has gone, or got deleted rows.
    """
    for attempt in range(TRIES):
        if attempt:
            table.refresh()
            check_iceberg(table)
        tasks = {plain_place(task.file.file_path): task for task in table.scan().plan_files()}
        if all(new.path in tasks for new in made.values()):
            return  # it took place: only the answer was lost
        for place in made:
            if place not in tasks or tasks[place].delete_files:
                raise gone(place)
        try:
            _commit(table, [(tasks[place].file, new) for place, new in made.items()])
        except Exception as error:
            if type(error).__name__ not in _CONFLICTS:
                raise
        else:
            return
    raise outpaced()


def _commit(table: Any, pairs: list[tuple[Any, NewFile]]) -> None:
    with table.transaction() as transaction:
        snapshot = transaction.update_snapshot().overwrite()
        if any(old.spec_id != table.spec().spec_id for old, _ in pairs):
            kind = _by_spec(type(snapshot))
            operation = load("pyiceberg.table.snapshots").Operation.OVERWRITE
            snapshot = kind(operation=operation, transaction=transaction, io=table.io)
        with snapshot:
            for old, new in pairs:
                snapshot.delete_data_file(old)
                snapshot.append_data_file(_entry(old, new, table.metadata.format_version))


def _entry(old: Any, new: NewFile, version: int) -> Any:
    """The manifest entry of a file with the rows, partition and statistics of ``old``."""
    scheme = old.file_path.removesuffix(plain_place(old.file_path))  # local files are named by path or by URL
    same = ("content", "file_format", "partition", "record_count", "column_sizes", "value_counts", "null_value_counts",
            "nan_value_counts", "lower_bounds", "upper_bounds", "split_offsets", "sort_order_id")  # fmt: skip
    values = {name: getattr(old, name) for name in same} | {"key_metadata": None, "equality_ids": None}
    entry = type(old).from_args(
        _table_format_version=version, file_path=scheme + new.path, file_size_in_bytes=new.size, **values
    )
    entry.spec_id = old.spec_id
    return entry


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
        before = metadata.snapshot_by_id(self._parent_snapshot_id)
        found = snapshots.Summary(operation=self._operation, **collected.build(), **snapshot_properties)
        return snapshots.update_snapshot_summaries(summary=found, previous_summary=before.summary)

    return type("BySpec", (plain,), {"_manifests": written, "_summary": summary})
