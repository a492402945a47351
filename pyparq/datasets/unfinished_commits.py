"""Commits that have begun and not ended, as readers of the folder see them. A reader gets the files from before the
commit.

By then, some of the old files may lie in the staging folder, and some of the new ones in their places. The commit
record tells which ones. A running commit takes some milliseconds, so a reader waits that long. A commit that was
interrupted by a crash stays unfinished until another write completes it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from pyparq.datasets.commit_record import Record, read_record
from pyparq.datasets.staging import RECORD, staging_folders
from pyparq.errors import CorruptFileError

WAITS = (0.01, 0.04, 0.1, 0.15)
"""Seconds between two looks at a commit that is under way."""

Names = tuple[str, ...]
"""A path below the folder that is read, name by name."""


@dataclass(frozen=True, slots=True)
class Place:
    """A staging folder, and the place of its target."""

    staging: str
    below: Names = ()
    """From the folder that is read to the target."""
    above: Names = ()
    """The path from the target to the folder that is read, if the target is above it."""

    def names(self, path: str) -> Names | None:
        """A path relative to the target, as a path below the folder that is read. ``None`` if it lies elsewhere."""
        names = tuple(path.split(os.sep))
        if names[: len(self.above)] != self.above:
            return None
        return (*self.below, *names[len(self.above) :])


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A commit that has begun and not ended."""

    place: Place
    record: Record | None
    """``None`` for a damaged record: old files cannot be told from new ones then."""

    @property
    def target(self) -> str:
        return os.path.dirname(self.place.staging) or os.curdir

    def changes(self) -> tuple[set[Names], dict[Names, str]]:
        """The changes to a listing: files to leave out, and old files that now lie elsewhere."""
        gone: dict[Names, str] = {}
        kept: set[Names] = set()
        record = self.record or Record((), ())
        for old in record.old:
            names, aside = self.place.names(old.path), os.path.join(self.place.staging, "old", old.name)
            if names is None:
                continue
            if os.path.lexists(aside):
                gone[names] = aside
            else:
                kept.add(names)
        new = {names for _, path in record.new if (names := self.place.names(path)) is not None}
        return (new - kept) | set(gone), gone


def unfinished(places: Iterable[Place]) -> list[Unfinished]:
    """The writes whose commit has begun and does not end during a short wait."""
    begun = [place for place in places if _has_record(place)]
    for seconds in WAITS:
        if not any(map(_has_record, begun)):
            return []
        time.sleep(seconds)
    found = []
    for place in begun:
        try:
            record = read_record(place.staging)
        except CorruptFileError:
            found.append(Unfinished(place, None))
            continue
        if record is not None and not _is_done(place, record):
            found.append(Unfinished(place, record))
    return found


def _is_done(place: Place, record: Record) -> bool:
    """Whether every file is in its final place, so that only tidying is left. Old files are moved aside before the
    first new one is placed."""
    if record.new:
        return not any(os.path.lexists(os.path.join(place.staging, "new", name)) for name, _ in record.new)
    target = os.path.dirname(place.staging)
    return not any(old.is_at(os.path.join(target, old.path)) for old in record.old)


def _has_record(place: Place) -> bool:
    return os.path.exists(os.path.join(place.staging, RECORD))


def is_as_found(places: Iterable[Place], commits: Iterable[Unfinished]) -> bool:
    """Whether the writes are still under way and the commits have not ended, so that a listing is valid."""
    return all(os.path.isdir(place.staging) for place in places) and all(_has_record(c.place) for c in commits)


def writes_above(root: str) -> Iterator[Place]:
    """Writes to the folders above a local folder, as far as these are partitions."""
    folder, above = os.path.abspath(root), Names()
    while "=" in os.path.basename(folder):
        above = (os.path.basename(folder), *above)
        folder = os.path.dirname(folder)
        with suppress(OSError):  # not readable: it belongs to another user
            yield from (Place(path, above=above) for path in staging_folders(folder))


def warning_of(commit: Unfinished) -> str:
    """The warning for a reader."""
    if commit.record is None:
        return (
            f"a write to {commit.target} has not ended, and its commit record in {commit.place.staging} is damaged: "
            "old and new files may be read together"
        )
    return (
        f"a write to {commit.target} has not ended: its files are being put into their places. The files of before are "
        f"read. If no program writes there any more, pyparq.recover_dataset({commit.target!r}) completes the write"
    )
