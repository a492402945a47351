"""What commits to tables of Delta Lake and Apache Iceberg have in common: the change, and what to say of conflicts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyparq.errors import WriteConflictError
from pyparq.maintenance.file_facts import NewFile
from pyparq.maintenance.table_features import SAME_ROWS, Intent

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
