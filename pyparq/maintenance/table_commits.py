"""Puts new files in the place of a table's data files, by a commit of the table's own library.

A table of Delta Lake or Iceberg records the sizes of its files, so they cannot change in place. Each new file is
written beside the old one. One commit then names the new files instead of the old ones. Older versions of the table
keep theirs.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from pyparq.arrow.table import Table
from pyparq.datasets.read.dataset import Dataset, files_of
from pyparq.datasets.read.dataset_files import DatasetFiles
from pyparq.datasets.table_formats import DELTA, format_of
from pyparq.errors import CommitUnknownError, OptionError, WriteConflictError
from pyparq.io.roads import file_system
from pyparq.io.source import open_source
from pyparq.io.url import is_url, plain_errors, shown
from pyparq.maintenance.report import IndexedFile
from pyparq.runtime.lazy_import import load

Make = Callable[[str, str, Mapping[str, Any] | None], IndexedFile]
"""Makes the file at the second path from the file at the first, with these ``storage_options``."""

HAS_DELETED = "the file holds deleted rows: compact the table first"
ELSEWHERE = "the file lies outside the table's folder, so it may belong to another table"


class NewFile(NamedTuple):
    """A file that takes the place of another."""

    path: str
    size: int


def replace_files(
    table: Any,
    make: Make,
    progress: Callable[[int, int], Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> list[IndexedFile]:
    """Make a new file for each data file of ``table``, and commit those that changed.

    Files with deleted rows stay as they are: the deletions are bound to the file. Raises :class:`WriteConflictError` if
    another writer has changed these files meanwhile. The table is then as that writer left it, and the new files are
    gone.
    """
    _check(table)
    files = files_of(Dataset(table, storage_options=storage_options))
    storage_options = files.found.storage_options  # the table's own, where none are given
    made: dict[int, str] = {}
    try:
        reports = list(_reports(table, files, make, made, progress))
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
    table: Any, files: DatasetFiles, make: Make, made: dict[int, str], progress: Callable[[int, int], Any] | None
) -> Iterator[IndexedFile]:
    """Make the new files, and note in ``made`` those that changed."""
    root = _plain_path(table.table_uri if format_of(table) == DELTA else table.location())
    for k, file in enumerate(files.found.files):
        if files.has_deleted(k):
            yield IndexedFile(file.name, file.name, notes=(HAS_DELETED,))
        elif not file.where.startswith(root.rstrip("/") + "/"):
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


def _check(table: Any) -> None:
    """Raise :class:`OptionError` for a table whose files cannot be replaced."""
    if hasattr(table, "plan_files"):
        raise OptionError("give the Iceberg table itself: a scan of it cannot be changed")
    if format_of(table) == DELTA and table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
        raise OptionError("tables of Delta Lake with column mapping cannot get indexes: deltalake cannot commit them")


def _beside(path: str) -> str:
    """A new name in the folder of ``path``."""
    return f"{path.rpartition('/')[0]}/{uuid.uuid4()}-pyparq.parquet"


def _plain_path(uri: str) -> str:
    return uri.removeprefix("file://")


def _commit(table: Any, made: Mapping[str, NewFile]) -> None:
    commit = _commit_delta if format_of(table) == DELTA else _commit_iceberg
    try:
        commit(table, made)
    except Exception as error:
        if type(error).__name__ in _CONFLICTS:
            raise WriteConflictError(f"another writer has changed the table meanwhile: {error}. Try again") from error
        raise CommitUnknownError(
            f"the commit failed, and may have taken place: {error}. The new files stay where they are. If the table "
            "does not name them, its own clean-up removes them"
        ) from error


_CONFLICTS = ("CommitFailedError", "CommitFailedException", "ValidationException")


# ---- Delta Lake ----------------------------------------------------------------------------------------------------


def _commit_delta(table: Any, made: Mapping[str, NewFile]) -> None:
    transaction = load("deltalake.transaction")
    actions = Table.from_arrow(table.get_add_actions()).to_pylist()
    now, added = int(time.time() * 1000), list[Any]()
    for uri, action in zip(table.file_uris(), actions, strict=True):
        new = made.get(_plain_path(uri))
        if new is None:
            continue
        texts = _partition_texts(action.get("partition") or {})
        path = str(PurePosixPath(action["path"]).with_name(os.path.basename(new.path)))
        added.append(transaction.AddAction(path, new.size, texts, now, False, _stats(action)))
        added.append(transaction.RemoveAction(action["path"], False, now, action["size_bytes"], texts))
    table.create_write_transaction(
        added, mode="append", schema=table.schema(), partition_by=list(table.metadata().partition_columns)
    )


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
    return json.dumps(stats | {name: _plain(action.get(kind) or {}) for name, kind in kinds.items()})


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


# ---- Apache Iceberg ------------------------------------------------------------------------------------------------


def _commit_iceberg(table: Any, made: Mapping[str, NewFile]) -> None:
    with table.transaction() as transaction, transaction.update_snapshot().overwrite() as snapshot:
        for task in table.scan().plan_files():
            old = task.file
            new = made.get(_plain_path(old.file_path))
            if new is not None:
                snapshot.delete_data_file(old)
                snapshot.append_data_file(_entry(old, new, table.metadata.format_version))


def _entry(old: Any, new: NewFile, version: int) -> Any:
    """The manifest entry of a file with the rows, partition and statistics of ``old``."""
    scheme = "file://" if old.file_path.startswith("file://") else ""
    same = ("content", "file_format", "partition", "record_count", "column_sizes", "value_counts", "null_value_counts",
            "nan_value_counts", "lower_bounds", "upper_bounds", "split_offsets", "sort_order_id")  # fmt: skip
    values = {name: getattr(old, name) for name in same} | {"key_metadata": None, "equality_ids": None}
    entry = type(old).from_args(
        _table_format_version=version, file_path=scheme + new.path, file_size_in_bytes=new.size, **values
    )
    entry.spec_id = old.spec_id
    return entry
