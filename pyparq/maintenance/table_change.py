"""What commits to tables of Delta Lake and Apache Iceberg have in common: the change, and what to say of conflicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyparq.errors import WriteConflictError
from pyparq.maintenance.file_facts import NewFile

TRIES = 20
"""Commits to try at most, where other writers are faster each time."""


@dataclass(frozen=True, slots=True)
class TableChange:
    """New data files of a table."""

    files: Mapping[str, NewFile | None]
    """By the places of those that they replace. ``None``: the file goes."""
    operation: str = ""
    """What is done to rows: ``"DELETE"`` or ``"UPDATE"``. ``""``: the new files have the same rows."""

    @property
    def made(self) -> list[NewFile]:
        return [new for new in self.files.values() if new is not None]


def gone(place: str) -> WriteConflictError:
    return WriteConflictError(
        "another writer has changed the table meanwhile: the file is no longer in it, or has deleted rows now. Load "
        "the table and try again",
        file=place,
    )


def outpaced() -> WriteConflictError:
    return WriteConflictError(f"another writer has changed the table meanwhile, {TRIES} times in a row. Try again")
