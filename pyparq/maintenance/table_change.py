"""What commits to tables of Delta Lake and Apache Iceberg have in common: the change, and what to say of conflicts. And
what their logs say of a new data file: its rows, and counts and bounds of its columns, from its footer."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

from pyparq.errors import WriteConflictError
from pyparq.format.schema_tree import SchemaTree
from pyparq.format.types import LeafType
from pyparq.maintenance.table_features import SAME_ROWS, Intent
from pyparq.read.file import ParquetFile
from pyparq.read.footers.metadata import FileMetaData

_EXACT = Context(prec=100)


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """A column of a file. Bounds are Python values, and ``None`` where they are not known."""

    path: tuple[str, ...]
    field_id: int | None
    size: int
    """Compressed bytes of all its chunks."""
    values: int
    """Nulls included."""
    nulls: int
    """-1 where it is not known."""
    low: Any
    high: Any


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A file that has been written."""

    num_rows: int
    columns: tuple[ColumnFacts, ...]


class NewFile:
    """A file that takes the place of another in a table."""

    __slots__ = ("facts", "path", "size")

    def __init__(self, path: str, size: int, facts: FileFacts | None = None) -> None:
        """``facts``: ``None`` for a file with the rows of the one that it replaces."""
        self.path = path
        self.size = size
        self.facts = facts


def facts_of(path: str, storage_options: Mapping[str, Any] | None, decryption: Any) -> FileFacts:
    """The facts of the file at a path or URL."""
    with ParquetFile(path, storage_options=storage_options, decryption=decryption) as file:
        return facts_in(file.metadata, file.tree)


def facts_in(metadata: FileMetaData, tree: SchemaTree) -> FileFacts:
    """The facts of an open file."""
    groups = [metadata.row_group(k).columns for k in range(metadata.num_row_groups)]
    columns = (
        _column([group[k] for group in groups], leaf.path, leaf.element.field_id, leaf.max_rep > 0)
        for k, leaf in enumerate(tree.leaves)
    )
    return FileFacts(metadata.num_rows, tuple(columns))


def _column(chunks: list[Any], path: tuple[str, ...], field_id: int | None, repeats: bool) -> ColumnFacts:
    bounds = [chunk.bounds for chunk in chunks]
    nulls = [int(one.null_counts[0]) for one in bounds]
    low = high = None
    # Readers of logs take NaN for the largest number, and footers leave it out.
    stated = [one for one in bounds if not one.all_null[0]]
    if stated and not repeats and all(one.has_bounds[0] and not one.nan_counts[0] for one in stated):
        leaf = stated[0].leaf
        low, high = _value(leaf, min(one.mins[0] for one in stated)), _value(leaf, max(one.maxs[0] for one in stated))
        if low is None or high is None:
            low = high = None
    return ColumnFacts(
        path, field_id, sum(chunk.total_compressed_size for chunk in chunks), sum(c.num_values for c in chunks),
        -1 if -1 in nulls else sum(nulls), low, high,
    )  # fmt: skip


def _value(leaf: LeafType, value: Any) -> Any:
    """A value of the leaf's comparable domain as a Python object. ``None`` for what a log has no bounds of."""
    kind = leaf.kind
    if kind == "bool":
        return bool(value)
    if kind in ("int", "uint"):
        return int(value)
    if kind in ("float", "double"):
        return float(value)
    if kind == "decimal":
        return Decimal(int(value)).scaleb(-leaf.scale, _EXACT)
    with suppress(OverflowError, UnicodeDecodeError):
        if kind == "string":
            return bytes(value).decode()
        if kind == "date":
            return dt.date(1970, 1, 1) + dt.timedelta(days=int(value))
        if kind == "timestamp" and leaf.unit in ("ms", "us"):
            zone = dt.UTC if leaf.utc else None
            return dt.datetime(1970, 1, 1, tzinfo=zone) + int(value) * dt.timedelta(**{_UNITS[leaf.unit]: 1})
    return None


_UNITS = {"ms": "milliseconds", "us": "microseconds"}

TRIES = 20
"""Commits to try at most, where other writers are faster each time."""


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A data file of rows that are new to a table."""

    new: NewFile
    """With its facts."""
    partition: Any
    """Delta Lake: the texts of the partition values, by column. Iceberg: the record of them."""
    uri: str = ""
    """The name of the file in the manifests of Iceberg."""
    spec_id: int = 0
    """The partition spec of Iceberg that the record is made by."""


def _no_matter(table: Any, places: Collection[str]) -> None:
    return None


@dataclass(frozen=True, slots=True)
class TableChange:
    """New data files of a table."""

    files: Mapping[str, NewFile | None]
    """By the places of those that they replace. ``None``: the file goes."""
    intent: Intent = SAME_ROWS
    added: Sequence[AddedFile] = ()
    """Files that replace none."""
    check_newer: Callable[[Any, Collection[str]], None] = _no_matter
    """Called with the newest table and the places of files that others have added to it since. Raises
    :class:`WriteConflictError` where these matter."""


def gone(place: str) -> WriteConflictError:
    return WriteConflictError(
        "another writer has changed the table meanwhile: the file is no longer in it, or has deleted rows now. Load "
        "the table and try again",
        file=place,
    )


def has_such_rows(place: str) -> WriteConflictError:
    return WriteConflictError(
        "another writer has added rows meanwhile that are meant, too. Load the table and try again", file=place
    )


def other_rules() -> WriteConflictError:
    return WriteConflictError(
        "another writer has changed the schema or the settings of the table meanwhile. Load the table and try again"
    )


def outpaced() -> WriteConflictError:
    return WriteConflictError(f"another writer has changed the table meanwhile, {TRIES} times in a row. Try again")
