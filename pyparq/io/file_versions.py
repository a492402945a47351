"""Checks whether a remote file is still the one that was opened, for file systems whose requests cannot be bound to a
version.

Asking when the file is opened costs nothing, because its size is requested anyway. It is asked again after bytes have
arrived, so that these are known to belong to the same file: once for each question to an open file, and after a second.
A file that is opened and read at once is not asked about again.
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
"""Names of version tags in the answers of several file systems. The first one that both sides have decides."""
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
    """The version of a file as its file system states it."""

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
        """The generation of an object on Google Cloud Storage."""
        return dict(self.tags).get("generation")

    @property
    def tells(self) -> bool:
        """Whether it holds more than a size."""
        return bool(self.tags or self.dates)

    def differs(self, other: Stated) -> bool:
        """Whether it is another version: by a tag if both have the same kind of tag, otherwise by dates. The size
        counts in any case."""
        if None not in (self.size, other.size) and self.size != other.size:
            return True
        tags = dict(other.tags)
        for name, tag in self.tags:
            if name in tags:
                return tag != tags[name]
        dates, step = dict(other.dates), 1.0 if self.is_listed else 0.0  # listings may round
        return any(_differ(date, dates[name], step) for name, date in self.dates if name in dates)

    def check_opened(self, size: int, etag: str | None, listed_etag: str | None, name: str) -> None:
        """Raise :class:`ChangedFileError` where the file ``name`` is opened with another size or entity tag than a
        listing has told."""
        if self.size not in (None, size):
            raise ChangedFileError(
                f"the file has {size} bytes, but had {self.size} when the dataset was listed: make the dataset again",
                file=name,
            )
        if etag is not None and listed_etag not in (None, _plain_tag(etag)):
            raise ChangedFileError("the file is not the one that was listed: make the dataset again", file=name)


def _plain_tag(tag: Any) -> str:
    """Some stores write a tag with quotation marks in one answer and without in another."""
    return str(tag).removeprefix("W/").strip('"')


def _plain_date(date: Any) -> float | str:
    """Seconds, if the date can be read."""
    if isinstance(date, str):
        try:
            date = dt.datetime.fromisoformat(date)
        except ValueError:
            return str(date)
    if isinstance(date, dt.datetime):
        return float((date if date.tzinfo else date.replace(tzinfo=dt.UTC)).timestamp())
    return float(date) if isinstance(date, (int, float)) else str(date)


def _differ(one: float | str, other: float | str, step: float) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) > step
    return type(one) is type(other) and one != other


class Unchanged:
    """A file on an fsspec file system that must stay as it was stated."""

    def __init__(self, fs: Any, path: str, stated: Stated) -> None:
        self._path = path
        self._stated = stated
        self._costs_nothing = "memory" in protocols(within(fs))
        self._is_copy = not protocols(fs).isdisjoint(_COPIES)
        self._since = "the dataset was listed" if stated.is_listed else "it was opened"
        self._asked = time.monotonic()

    def begin(self) -> None:
        """Begin a new question: earlier checks do not count for it."""
        self._asked = float("-inf")

    def check(self, fs: Any, name: str, retry: Retry) -> None:
        """Check the version after bytes have arrived. Raises :class:`ChangedFileError` if they may belong to another
        file.

        ``fs``: the file system, which is another object in a forked child. ``name``: the file's name for the message.
        """
        now = time.monotonic()
        if self._is_copy or not self._stated.tells or (now - self._asked < FRESH and not self._costs_nothing):
            return
        before, self._asked = self._asked, now  # other threads, whose bytes arrived before, need not ask
        try:
            self.check_now(fs, name, retry)
        except BaseException:
            self._asked = before
            raise

    def check_now(self, fs: Any, name: str, retry: Retry) -> None:
        """Check the version even if it was checked a moment ago."""
        found = Folders(fs, retry).info(self._path)
        if found is None:
            raise ChangedFileError(f"the file was removed after {self._since}", file=name)
        if self._stated.differs(Stated.of(found)):
            again = "make the dataset again" if self._stated.is_listed else "open it again"
            raise ChangedFileError(f"the file has changed since {self._since}: {again}", file=name)
