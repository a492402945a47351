"""Is a remote file still the one that was opened? By what its file system says of it, where requests cannot be bound.

What is said when the file is opened costs nothing: its size is asked for anyway. It is asked for again after bytes have
come, so that these are known to be of the same file: once for each question to an open file, and after a second. A file
that is opened and read at once is not asked about again.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from pyparq.errors import ChangedFileError
from pyparq.io.file_systems import protocols, within
from pyparq.io.folders import Folders
from pyparq.io.retry import Retry

_TAGS = ("generation", "etag", "ETag", "e_tag", "sha", "blob_id", "rev", "md5Checksum")
"""What names one version of a file, in the words of several file systems. The first that both sides have decides."""
_DATES = (
    "mtime", "modified", "LastModified", "last_modified", "updated", "modificationTime", "modify", "modifiedTime",
    "last_write_time", "date_time", "created",
)  # fmt: skip
FRESH = 1.0
"""Seconds for which an answer holds."""
_COPIES = {"filecache", "simplecache"}
"""They read a copy of the file, which stays as it is."""


@dataclass(frozen=True, slots=True)
class Stated:
    """What a file system says of the version of a file."""

    size: int | None
    tags: tuple[tuple[str, str], ...]
    """Kinds and values."""
    dates: tuple[tuple[str, float | str], ...]
    is_listed: bool = False
    """It comes from the listing of a folder."""

    @classmethod
    def of(cls, info: Mapping[str, Any], *, is_listed: bool = False) -> Self:
        size = info.get("size")
        tags = tuple((name, _plain_tag(info[name])) for name in _TAGS if info.get(name))
        dates = tuple((name, _plain_date(info[name])) for name in _DATES if info.get(name))
        return cls(None if size is None else int(size), tags, dates, is_listed)

    @property
    def generation(self) -> str | None:
        """Of an object on Google Cloud Storage."""
        return dict(self.tags).get("generation")

    @property
    def tells(self) -> bool:
        """Is there more than a size?"""
        return bool(self.tags or self.dates)

    def differs(self, other: Stated) -> bool:
        """Is it another version? By a tag where both have one of a kind, else by dates. The size counts in any case."""
        if None not in (self.size, other.size) and self.size != other.size:
            return True
        tags = dict(other.tags)
        for name, tag in self.tags:
            if name in tags:
                return tag != tags[name]
        dates, step = dict(other.dates), 1.0 if self.is_listed else 0.0  # listings may round
        return any(_apart(date, dates[name], step) for name, date in self.dates if name in dates)


def _plain_tag(tag: Any) -> str:
    """Some stores write a tag with quotation marks in one answer and without in another."""
    return str(tag).removeprefix("W/").strip('"')


def _plain_date(date: Any) -> float | str:
    """Seconds, where that can be told."""
    if isinstance(date, str):
        try:
            date = dt.datetime.fromisoformat(date)
        except ValueError:
            return str(date)
    if isinstance(date, dt.datetime):
        return float((date if date.tzinfo else date.replace(tzinfo=dt.UTC)).timestamp())
    return float(date) if isinstance(date, (int, float)) else str(date)


def _apart(one: float | str, other: float | str, step: float) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) > step
    return type(one) is type(other) and one != other


class Unchanged:
    """One file on a file system of fsspec's, which is to stay as it was stated."""

    def __init__(self, fs: Any, path: str, stated: Stated) -> None:
        self._path = path
        self._stated = stated
        self._costs_nothing = "memory" in protocols(within(fs))
        self._is_copy = not protocols(fs).isdisjoint(_COPIES)
        self._since = "the dataset was listed" if stated.is_listed else "it was opened"
        self._asked = time.monotonic()

    def begin(self) -> None:
        """A new question: what was asked before does not hold for it."""
        self._asked = float("-inf")

    def check(self, fs: Any, name: str, retry: Retry) -> None:
        """To be called when bytes have come. Raises :class:`ChangedFileError` where they may be of another file.

        ``fs``: the file system, which is another object in a forked child. ``name``: of the file, for the message.
        """
        now = time.monotonic()
        if self._is_copy or not self._stated.tells or (now - self._asked < FRESH and not self._costs_nothing):
            return
        before, self._asked = self._asked, now  # other threads, whose bytes came before, need not ask
        try:
            self.check_now(fs, name, retry)
        except BaseException:
            self._asked = before
            raise

    def check_now(self, fs: Any, name: str, retry: Retry) -> None:
        """The same, whenever it was asked before."""
        found = Folders(fs, retry).info(self._path)
        if found is None:
            raise ChangedFileError(f"the file was removed after {self._since}", file=name)
        if self._stated.differs(Stated.of(found)):
            again = "make the dataset again" if self._stated.is_listed else "open it again"
            raise ChangedFileError(f"the file has changed since {self._since}: {again}", file=name)
