"""Files that arrive in a folder, read in batches. A stream's offset tells which files were read.

An offset must be small, because Spark keeps one for every batch. So it holds the time of the latest file, and the names
(as hashes) of files from the last :attr:`Arrivals.late` seconds before it. Every older file counts as read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import xxhash

from pyparq.datasets.data_files import DataFile
from pyparq.errors import ChangedFileError, LimitError, PlanError, UnsupportedError

LATE = 600.0
"""Seconds: a writer may take so long between the time that a file gets and the time that it is seen."""

MOST_NAMES = 100_000
"""In one offset: two megabytes of text."""


@dataclass(frozen=True)
class Arrival:
    """A file, and when it came."""

    file: DataFile
    time: int
    """Nanoseconds since 1970. Of a local file the last change of its directory entry or content, which a rename sets;
    of an object the store's own time."""
    key: str
    """The hash of its name."""


def arrived(files: Iterable[DataFile]) -> list[Arrival]:
    """When files came, in this order.

    Raises :class:`pyparq.UnsupportedError` where a store does not say it. A file that is gone is passed over.
    """
    found = []
    for file in files:
        time = file.mtime_ns
        if isinstance(file.where, str) and "://" not in file.where:
            try:
                time = os.stat(file.where).st_ctime_ns
            except FileNotFoundError:
                continue
        if time is None:
            raise UnsupportedError(f"{file.name}: this store lists files without times, which a stream needs")
        found.append(Arrival(file, time, xxhash.xxh64_hexdigest(file.name.encode("utf-8", "surrogateescape"))))
    return sorted(found, key=lambda arrival: (arrival.time, arrival.file.name))


@dataclass(frozen=True)
class Offset:
    """How far a stream has come."""

    time: int | None = None
    """Of the latest file that was given out, in nanoseconds; ``None``: no file was."""
    names: frozenset[str] = frozenset()
    """Keys of the files that were given out and are not older than the time allows."""

    def to_json(self) -> dict[str, Any]:
        return {"version": 1, "time": self.time, "names": sorted(self.names)}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Offset:
        """Raises :class:`pyparq.PlanError` for what is no offset of ours."""
        time, names = given.get("time"), given.get("names")
        if given.get("version") != 1 or not isinstance(names, list) or not isinstance(time, int | None):
            raise PlanError(f"the checkpoint holds no offset of pyparq's stream reader: {str(dict(given))[:100]}")
        return cls(time, frozenset(map(str, names)))


@dataclass(frozen=True)
class Arrivals:
    """The rules by which offsets are moved on."""

    late: float = LATE
    """Seconds."""

    def covers(self, offset: Offset, arrival: Arrival) -> bool:
        """Was the file given out before ``offset``, or did it come too late?"""
        return offset.time is not None and (arrival.time <= self._horizon(offset.time) or arrival.key in offset.names)

    def _horizon(self, time: int) -> int:
        return time - int(self.late * 1e9)

    def advanced(self, start: Offset, files: Sequence[Arrival], limit: int | None) -> Offset:
        """The offset behind at most ``limit`` more of the files, which are in order.

        Raises :class:`pyparq.LimitError` where it would have to name too many files.
        """
        new = [arrival for arrival in files if not self.covers(start, arrival)][:limit]
        if not new:
            return start
        time = max(new[-1].time, start.time if start.time is not None else new[-1].time)
        taken = {arrival.key for arrival in new} | start.names
        names = frozenset(a.key for a in files if a.time > self._horizon(time) and a.key in taken)
        if len(names) > MOST_NAMES:
            raise LimitError(
                f"{len(names):,} files came within {self.late:g} seconds, and an offset names at most {MOST_NAMES:,}: "
                "set the option late_seconds lower, or maxFilesPerTrigger"
            )
        return Offset(time, names)

    def between(self, start: Offset, end: Offset, files: Sequence[Arrival]) -> list[Arrival]:
        """The files of the batch from ``start`` to ``end``.

        Raises :class:`pyparq.ChangedFileError` if a file that ``end`` names is gone.
        """
        missing = end.names - start.names - {arrival.key for arrival in files}
        if missing:
            raise ChangedFileError(
                f"{len(missing)} of the files of this batch are gone: a folder that a stream reads must keep its files "
                "until they are read"
            )
        return [arrival for arrival in files if self.covers(end, arrival) and not self.covers(start, arrival)]
