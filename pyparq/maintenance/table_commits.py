"""Puts new files in the place of a table's data files, by a commit of the table's own library.

A table of Delta Lake or Iceberg records the sizes of its files, so they cannot change in place. Each new file is
written beside the old one. One commit then names the new files instead of the old ones. Older versions of the table
keep theirs.

``deltalake`` does not notice a compaction beside a commit: both would put files into the place of the same ones, and
every row would be there twice. So the old files are looked up in the newest version, and the commit may become the
version right after it and no other. A store lets one writer only make that version.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import unquote

from pyparq.arrow.table import Table
from pyparq.datasets.delta import folder_of, open_delta, place_in
from pyparq.datasets.files import DatasetFiles
from pyparq.datasets.tables import plain_place
from pyparq.errors import CommitUnknownError, OptionError, ParquetError, UnsupportedError, WriteConflictError
from pyparq.io.locations import file_system
from pyparq.io.source import open_source
from pyparq.io.table_formats import DELTA, format_of
from pyparq.io.url import is_url, plain_errors, shown
from pyparq.maintenance.report import IndexedFile
from pyparq.runtime.lazy_import import load

TRIES = 20
"""Commits to try at most, where other writers are faster each time."""


class NewFile(NamedTuple):
    """A file that takes the place of another."""

    path: str
    size: int


def gone(place: str) -> WriteConflictError:
    return WriteConflictError(
        "another writer has changed the table meanwhile: the file is no longer in it, or has deleted rows now. Load "
        "the table and try again",
        file=place,
    )


def outpaced() -> WriteConflictError:
    return WriteConflictError(f"another writer has changed the table meanwhile, {TRIES} times in a row. Try again")


# ---- Delta Lake ------------------------------------------------------------------------------------------------------


_OFTEN = "CommitFailedError"
"""What ``deltalake`` raises where another writer has made the version. It may also stand for a store that fails."""


def check_delta(table: Any) -> None:
    """Raise :class:`OptionError` for a table whose files cannot be replaced."""
    if table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
        raise OptionError("tables of Delta Lake with column mapping cannot get indexes: deltalake cannot commit them")


def commit_delta(table: Any, made: Mapping[str, NewFile]) -> None:
    """Name the new files, by the places of those that they replace. What others append meanwhile stays.

    Raises :class:`WriteConflictError` where one of the old files has gone, or got deleted rows.
    """
    old = _named_files(table)
    for _ in range(TRIES):
        now = _newest(table)
        check_delta(now)
        opened = open_delta(now)
        changed = {opened.files[k].where for k in opened.known.deleted}
        files = _named_files(now)
        for place in made:
            if files.get(place) != old[place] or place in changed:
                raise gone(place)
        try:
            _make_version(now, {place: (files[place], new) for place, new in made.items()})
        except Exception as error:
            if "Unsupported" in str(error):  # a feature of the table: nothing was tried
                raise UnsupportedError(f"deltalake cannot commit to the table: {error}", file=folder_of(now)) from error
            if type(error).__name__ != _OFTEN:
                raise
            after = _newest(table)
            if any(new.path in _named_files(after) for new in made.values()):
                return  # it took place: only the answer was lost
            if after.version() == now.version():
                raise
        else:
            return
    raise outpaced()


def _newest(table: Any) -> Any:
    return type(table)(table.table_uri, storage_options=getattr(table, "_storage_options", None))


def _named_files(table: Any) -> dict[str, dict[str, Any]]:
    """What the log says of each file, by its place."""
    root = folder_of(table)
    return {place_in(root, action["path"]): action for action in Table.from_arrow(table.get_add_actions()).to_pylist()}


def _make_version(now: Any, pairs: Mapping[str, tuple[Mapping[str, Any], NewFile]]) -> None:
    """Make the version after ``now``, or raise what :data:`_OFTEN` says."""
    transaction = load("deltalake.transaction")
    inside, written = len(folder_of(now)) + 1, int(time.time() * 1000)
    changes = _removals_change_data(now.metadata().configuration)
    actions = list[Any]()
    for action, new in pairs.values():
        if "://" in action["path"]:
            raise OptionError(
                "the table's log names the file by an absolute path: deltalake cannot replace it", file=new.path
            )
        texts = _partition_texts(action.get("partition") or {})
        # Both encode the path as the log has it.
        actions.append(transaction.AddAction(new.path[inside:], new.size, texts, written, False, _stats(action)))
        actions.append(transaction.RemoveAction(unquote(action["path"]), changes, written, action["size_bytes"], texts))
    now.create_write_transaction(
        actions, mode="append", schema=now.schema(), partition_by=list(now.metadata().partition_columns),
        commit_properties=load("deltalake").CommitProperties(max_commit_retries=0),
    )  # fmt: skip


def _removals_change_data(configuration: Mapping[str, str | None]) -> bool:
    """Whether the log says that the removals change data.

    They do not. But a compaction of ``deltalake`` that has read the old files notices only removals that do, and would
    bring all rows a second time. A change data feed would report all rows as deleted, and an append-only table does not
    take such removals: there the log says how it is.
    """
    return not any(configuration.get(f"delta.{name}") == "true" for name in ("enableChangeDataFeed", "appendOnly"))


def _partition_texts(values: Mapping[str, Any]) -> dict[str, str | None]:
    """Partition values as the log has them (PROTOCOL.md, "Partition Value Serialization")."""
    return {name: None if value is None else _text(value) for name, value in values.items()}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None).isoformat(" ", "microseconds")
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def _stats(action: Mapping[str, Any]) -> str:
    """The statistics of a file as the log has them. The file's rows are those of the file that it replaces."""
    kinds = {"minValues": "min", "maxValues": "max", "nullCount": "null_count"}
    stats: dict[str, Any] = {} if action["num_records"] is None else {"numRecords": action["num_records"]}
    stats |= {name: _plain(action.get(kind) or {}) for name, kind in kinds.items()}
    return json.dumps(stats, ensure_ascii=False)  # deltalake reads pairs of \\u escapes as other characters


def _plain(value: Any) -> Any:
    """A value of JSON. What it does not hold exactly is left out: the log may miss statistics."""
    if isinstance(value, Mapping):
        inner = {name: _plain(below) for name, below in value.items()}
        return {name: below for name, below in inner.items() if below is not None}
    if isinstance(value, dt.datetime):
        zone = "Z" if value.tzinfo else ""
        return value.replace(tzinfo=None).isoformat("T", "milliseconds") + zone
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value) if len(value.as_tuple().digits) <= _EXACT_DIGITS else None
    if isinstance(value, float) and value - value != 0:
        return None
    return value if isinstance(value, (bool, int, float, str)) else None


_EXACT_DIGITS = 15


# ---- Apache Iceberg --------------------------------------------------------------------------------------------------


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
            _replace_in_snapshot(table, [(tasks[place].file, new) for place, new in made.items()])
        except Exception as error:
            if type(error).__name__ not in _CONFLICTS:
                raise
        else:
            return
    raise outpaced()


def _replace_in_snapshot(table: Any, pairs: list[tuple[Any, NewFile]]) -> None:
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


# ---- both ------------------------------------------------------------------------------------------------------------


Make = Callable[[str, str, Mapping[str, Any] | None], IndexedFile]
"""Makes the file at the second path from the file at the first, with these ``storage_options``."""

HAS_DELETED = "the file holds deleted rows: compact the table first"
ELSEWHERE = "the file lies outside the table's folder, so it may belong to another table"


def replace_files(
    table: Any, files: DatasetFiles, make: Make, progress: Callable[[int, int], Any] | None = None
) -> list[IndexedFile]:
    """Make a new file for each data file of ``table``, and commit those that changed. ``files``: its dataset.

    Files with deleted rows stay as they are: the deletions are bound to the file. Raises :class:`WriteConflictError` if
    another writer has changed these files meanwhile. The table is then as that writer left it, and the new files are
    gone.
    """
    (check_delta if format_of(table) == DELTA else check_iceberg)(table)
    storage_options = files.found.storage_options  # the table's own, where none are given
    made: dict[int, str] = {}
    try:
        reports = list(_reports(files, make, made, progress))
        pairs = {files.found.files[k].where: _sized(path, storage_options) for k, path in made.items()}
        if pairs:
            _commit(table, pairs)
    except CommitUnknownError:
        raise
    except BaseException:
        _remove(made.values(), storage_options)
        raise
    return reports


def _reports(
    files: DatasetFiles, make: Make, made: dict[int, str], progress: Callable[[int, int], Any] | None
) -> Iterator[IndexedFile]:
    """Make the new files, and note in ``made`` those that changed."""
    assert files.table is not None
    for k, file in enumerate(files.found.files):
        if files.has_deleted(k):
            yield IndexedFile(file.name, file.name, notes=(HAS_DELETED,))
        elif not file.where.startswith(files.table.folder + "/"):
            yield IndexedFile(file.name, file.name, notes=(ELSEWHERE,))
        else:
            made[k] = _beside(file.where)
            report = make(file.where, made[k], files.found.storage_options)
            if not any(column.changed for column in report.columns):
                _remove([made.pop(k)], files.found.storage_options)
                report = replace(report, target=file.name, written=False)
            yield report
        if progress is not None:
            progress(k + 1, len(files.found.files))


def _remove(paths: Iterable[str], storage_options: Mapping[str, Any] | None) -> None:
    for path in paths:
        with suppress(FileNotFoundError):
            if is_url(path):
                fs, name = file_system(path, "removing", "remove", storage_options)
                with plain_errors(shown(path), path, storage_options):
                    fs.rm_file(name)
            else:
                os.unlink(path)


def _sized(path: str, storage_options: Mapping[str, Any] | None) -> NewFile:
    with closing(open_source(path, storage_options if is_url(path) else None)) as source:
        return NewFile(path, source.size)


def _beside(path: str) -> str:
    """A new name in the folder of ``path``."""
    return f"{path.rpartition('/')[0]}/{uuid.uuid4()}-pyparq.parquet"


def _commit(table: Any, made: Mapping[str, NewFile]) -> None:
    try:
        (commit_delta if format_of(table) == DELTA else commit_iceberg)(table, made)
    except ParquetError:
        raise
    except Exception as error:
        raise CommitUnknownError(
            f"the commit failed, and may have taken place: {error}. The new files stay where they are. If the table "
            "does not name them, its own clean-up removes them"
        ) from error
