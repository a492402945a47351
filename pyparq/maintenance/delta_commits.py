"""Commits of new data files to tables of Delta Lake, by ``deltalake``.

``deltalake`` does not notice a compaction beside a commit: both would put files into the place of the same ones, and
every row would be there twice. So the old files are looked up in the newest version, and the commit may become the
version right after it and no other. A store lets one writer only make that version.
"""

from __future__ import annotations

import datetime as dt
import json
import time
import uuid
from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

from pyparq.arrow.table import Table
from pyparq.datasets.delta import folder_of, open_delta, place_in
from pyparq.errors import OptionError, UnsupportedError
from pyparq.maintenance.table_change import (
    TRIES,
    AddedFile,
    FileFacts,
    NewFile,
    TableChange,
    gone,
    other_rules,
    outpaced,
)
from pyparq.maintenance.table_features import check_table
from pyparq.runtime.lazy_import import load

_OFTEN = "CommitFailedError"
"""What ``deltalake`` raises where another writer has made the version. It may also stand for a store that fails."""


def commit_delta(table: Any, change: TableChange) -> None:
    """Name the new files, in the places of those that they replace. What others append meanwhile stays.

    Raises :class:`WriteConflictError` where one of the old files has gone, or got deleted rows, and what
    ``change.check_newer`` raises.
    """
    old, mark = _Log(table), uuid.uuid4().hex
    for _ in range(TRIES):
        now = _newest(table)
        files = old if now.version() == old.version else _Log(now)
        check_table(now, change.intent)
        if files is not old:
            _check_newer(table, old, now, files, change)
        try:
            _make_version(now, files, change, mark)
        except Exception as error:
            if "Unsupported" in str(error):  # a feature of the table: nothing was tried
                raise UnsupportedError(f"deltalake cannot commit to the table: {error}", file=folder_of(now)) from error
            if type(error).__name__ != _OFTEN:
                raise
            after = _newest(table)
            if _has(after, now.version(), mark):
                return  # it took place: only the answer was lost
            if after.version() == now.version():
                raise
        else:
            return
    raise outpaced()


def _check_newer(table: Any, old: _Log, now: Any, files: _Log, change: TableChange) -> None:
    """Raise :class:`WriteConflictError` for what others have done between the two versions."""
    if change.intent.operation and _rules(now) != _rules(table):
        raise other_rules()
    opened = open_delta(now)
    changed = {opened.files[k].where for k in opened.known.deleted}
    for place in change.files:
        if place in changed or place not in files.places or files.action(place) != old.action(place):
            raise gone(place)
    if not files.places.keys() <= old.places.keys():
        change.check_newer(now, files.places.keys() - old.places.keys())


_MARK, _DONE = "pyparq.commit", "pyparq.operation"
"""What a commit says of itself. The operation is always WRITE for ``deltalake``."""


def _has(table: Any, version: int, mark: str) -> bool:
    """Whether one of the versions after ``version`` is the commit with the mark."""
    return any(info.get(_MARK) == mark for info in table.history(max(table.version() - version, 1)))


def _rules(table: Any) -> tuple[Any, ...]:
    """What a commit must go by: a change of it is a conflict for every other commit (PROTOCOL.md)."""
    metadata, protocol = table.metadata(), table.protocol()
    return (
        table.schema().to_json(), metadata.partition_columns, metadata.configuration, protocol.min_writer_version,
        protocol.writer_features,
    )  # fmt: skip


def _newest(table: Any) -> Any:
    return type(table)(table.table_uri, storage_options=getattr(table, "_storage_options", None))


class _Log:
    """What the log says of the files of a version."""

    def __init__(self, table: Any) -> None:
        self.version = table.version()
        self._actions = Table.from_arrow(table.get_add_actions())
        root = folder_of(table)
        paths = self._actions.column("path").to_pylist()
        self.places = {place_in(root, path): k for k, path in enumerate(paths)}
        """The positions of the files' actions."""

    def action(self, place: str) -> dict[str, Any]:
        (found,) = self._actions.slice(self.places[place], 1).to_pylist()
        return found

    def told(self) -> set[tuple[str, ...]]:
        """The columns of which it has statistics, of one of the files at least."""
        if "null_count" not in self._actions.column_names:
            return set()
        return {path for counts in self._actions.column("null_count").to_pylist() for path in _paths(counts or {})}


def _make_version(now: Any, files: _Log, change: TableChange, mark: str) -> None:
    """Make the version after ``now``, or raise what :data:`_OFTEN` says."""
    transaction = load("deltalake.transaction")
    inside, written = len(folder_of(now)) + 1, int(time.time() * 1000)
    operation = change.intent.operation
    moves = bool(operation)
    changes = moves or _removals_change_data(now.metadata().configuration)
    actions = list[Any]()
    for place, new in change.files.items():
        action = files.action(place)
        if "://" in action["path"]:
            raise OptionError(
                "the table's log names the file by an absolute path: deltalake cannot replace it", file=place
            )
        texts = {name: _text(value) for name, value in (action.get("partition") or {}).items()}
        # Both encode the path as the log has it.
        if new is not None:
            actions.append(
                transaction.AddAction(new.path[inside:], new.size, texts, written, moves, _stats(action, new))
            )
        actions.append(transaction.RemoveAction(unquote(action["path"]), changes, written, action["size_bytes"], texts))
    told = files.told() if change.added else set()
    actions += [_add_action(added, inside, written, told) for added in change.added]
    said = {_MARK: mark} | ({_DONE: operation} if moves else {})
    now.create_write_transaction(
        actions, mode="append", schema=now.schema(), partition_by=list(now.metadata().partition_columns),
        commit_properties=load("deltalake").CommitProperties(custom_metadata=said, max_commit_retries=0),
    )  # fmt: skip


def _add_action(added: AddedFile, inside: int, written: int, told: Collection[tuple[str, ...]]) -> Any:
    """The action of a file of new rows. ``told``: the columns of which the log has statistics, if it has any."""
    facts = added.new.facts
    assert facts is not None
    flat = [column.path for column in facts.columns if column.low is not None or column.nulls >= 0]
    stats = _of_facts(facts, told or flat[:_TOLD])
    return load("deltalake.transaction").AddAction(
        added.new.path[inside:],
        added.new.size,
        dict(added.partition),
        written,
        True,
        json.dumps(stats, ensure_ascii=False),
    )


_TOLD = 32
"""Columns of which logs have statistics, unless the table says otherwise."""


def _removals_change_data(configuration: Mapping[str, str | None]) -> bool:
    """Whether the log says of files with the same rows that the removals of the old ones change data.

    They do not. But a compaction of ``deltalake`` that has read the old files notices only removals that do, and would
    bring all rows a second time. A change data feed would report all rows as deleted, and an append-only table does not
    take such removals: there the log says how it is.
    """
    return not any(configuration.get(f"delta.{name}") == "true" for name in ("enableChangeDataFeed", "appendOnly"))


def _text(value: Any) -> str | None:
    """A partition value as the log has it (PROTOCOL.md, "Partition Value Serialization")."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None).isoformat(" ", "microseconds")
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def _stats(action: Mapping[str, Any], new: NewFile) -> str:
    """The statistics of a new file as the log has them. ``action``: of the file that it replaces."""
    if new.facts is None:
        stats: dict[str, Any] = {} if action["num_records"] is None else {"numRecords": action["num_records"]}
        stats |= {name: _plain(action.get(kind) or {}) for name, kind in _KINDS.items()}
    else:
        stats = _of_facts(new.facts, set(_paths(action.get("null_count") or {})))
    return json.dumps(stats, ensure_ascii=False)  # deltalake reads pairs of \\u escapes as other characters


_KINDS = {"minValues": "min", "maxValues": "max", "nullCount": "null_count"}


def _of_facts(facts: FileFacts, wanted: Collection[tuple[str, ...]]) -> dict[str, Any]:
    found = _facts(facts, wanted)
    return {"numRecords": facts.num_rows} | {name: _plain(found[kind]) for name, kind in _KINDS.items()}


def _paths(values: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _paths(value, (*above, name))
        elif value is not None:
            yield (*above, name)


def _facts(facts: FileFacts, wanted: Collection[tuple[str, ...]]) -> dict[str, dict[str, Any]]:
    """The facts of the columns that the log tells of, structs within structs."""
    found: dict[str, dict[str, Any]] = {"min": {}, "max": {}, "null_count": {}}
    for column in facts.columns:
        if column.path not in wanted:
            continue
        low, high = column.low, column.high
        if isinstance(low, str) and isinstance(high, str):
            low, high = low[:_PREFIX], high if len(high) <= _PREFIX else high[:_PREFIX] + _LAST
        nulls = None if column.nulls < 0 else column.nulls
        for kind, value in (("min", low), ("max", high), ("null_count", nulls)):
            inner = found[kind]
            for name in column.path[:-1]:
                inner = inner.setdefault(name, {})
            inner[column.path[-1]] = value
    return found


_PREFIX, _LAST = 32, "\U0010ffff"
"""Characters of texts that logs have as bounds, and the largest character."""


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
