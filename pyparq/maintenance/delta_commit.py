"""Commits new files to a table of Delta Lake in the place of old ones, by ``deltalake``.

``deltalake`` does not notice a compaction beside a commit: both would put files into the place of the same ones, and
every row would be there twice. So the old files are looked up in the newest version, and the commit may become the
version right after it and no other. A store lets one writer only make that version.
"""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

from pyparq.arrow.table import Table
from pyparq.datasets.delta import folder_of, open_delta, place_in
from pyparq.errors import OptionError, UnsupportedError
from pyparq.maintenance.new_files import TRIES, NewFile, gone, outpaced
from pyparq.runtime.lazy_import import load

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
            _commit(now, {place: (files[place], new) for place, new in made.items()})
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


def _commit(now: Any, pairs: Mapping[str, tuple[Mapping[str, Any], NewFile]]) -> None:
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
