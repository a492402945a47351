"""Files that take the places of others in a table, and the errors of their commits."""

from __future__ import annotations

from typing import NamedTuple

from pyparq.errors import WriteConflictError

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
