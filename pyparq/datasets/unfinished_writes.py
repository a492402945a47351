"""Writes to a folder that have not ended, as readers of the folder see them.

*Local folders.* A reader gets the files from before the commit. By then, some of the old files may lie in the staging
folder, and some of the new ones in their places. The commit record tells which ones. A running commit takes some
milliseconds, so a reader waits that long. A commit that was interrupted by a crash stays unfinished until another write
completes it.

*Stores.* A store renames nothing, so new files appear one by one, and old ones go one by one. A write that replaces
files, or that fills an empty folder, therefore puts a *marker* into the folder first, and takes it away last:

- It begins by telling which files are the new ones. Readers leave these out: they get the files from before.
- When all new files are complete, one request puts another marker in its place, which lists the old files. The write
  counts from here on. Readers leave the old files out, and get the new ones.

So a reader gets one of the two states, also where the write is cut short at any moment.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Self

from pyparq.datasets.kept_files import RECORD
from pyparq.datasets.staging import Record, read_record, staging_folders
from pyparq.errors import ChangedMeanwhile, CorruptFileError
from pyparq.io.file_versions import Stated
from pyparq.io.folders import Folders, Info
from pyparq.io.url import shown
from pyparq.runtime.threads import map_requests

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


# ---- stores --------------------------------------------------------------------------------------------------------

MARKER = "_pyparq_write.json"
LISTINGS = 4
"""Maximum number of times that a folder is listed, if writes go on in the meantime."""

Listing = dict[str, Info]


@dataclass(frozen=True, slots=True)
class Marker:
    """What a marker tells of its write. Paths are relative to the folder."""

    id: str
    mode: str
    begun: str
    """When, for messages."""
    template: str = ""
    """How new files are called, with ``{i}`` for a number; empty if they are listed."""
    new: tuple[str, ...] = ()
    """The new files, where they are known from the beginning."""
    kept: tuple[str, ...] = ()
    """Old files that are called as new ones could be."""
    old: tuple[tuple[str, str], ...] | None = None
    """The files to remove, each with its state (:func:`state_of`). ``None`` until the write counts."""

    def to_bytes(self) -> bytes:
        return json.dumps({"pyparq": 1, **asdict(self)}).encode()

    @classmethod
    def parse(cls, data: bytes, name: str) -> Self:
        """Raises :class:`CorruptFileError` for what is no marker, ``name``."""
        try:
            found = json.loads(data)
            texts = [found[key] for key in ("id", "mode", "begun", "template")]
            lists = [tuple(found[key]) for key in ("new", "kept")]
            old = None if found["old"] is None else tuple((path, state) for path, state in found["old"])
        except (ValueError, TypeError, KeyError, RecursionError):
            old, texts, lists, found = None, [None], [], {}
        paths = [*(path for some in lists for path in some), *(text for pair in old or () for text in pair)]
        if found.get("pyparq") != 1 or not all(isinstance(text, str) for text in [*texts, *paths]):
            raise CorruptFileError(
                "the marker of a write is damaged, so old and new files cannot be told apart: remove one of the two "
                "and the marker",
                file=name,
            )
        return cls(texts[0], texts[1], texts[2], texts[3], lists[0], lists[1], old)

    def is_new(self) -> Callable[[str], bool]:
        """Tells whether a file is one of the new ones, as long as the write does not count."""
        new, kept = frozenset(self.new), frozenset(self.kept)
        if not self.template:
            return new.__contains__
        fits = re.compile(re.escape(self.template).replace(re.escape("{i}"), r"\d+")).fullmatch
        return lambda path: fits(posixpath.basename(path)) is not None and path not in kept

    def hides(self) -> Callable[[str, Info], bool]:
        """Tells whether readers leave a file out."""
        if self.old is None:
            is_new = self.is_new()
            return lambda path, info: is_new(path)
        old = dict(self.old)
        return lambda path, info: path in old and _is_state(old[path], state_of(info))


def state_of(info: Info) -> str:
    """The state of a file that was listed, as a marker has it. Another file of the same name has another state."""
    stated = Stated.of(info, is_listed=True)
    kind, told = next(iter((*stated.tags, *stated.dates)), ("", ""))
    return f"{stated.size} {kind}={told}"


def _is_state(one: str, other: str) -> bool:
    """Whether both are of the same file. Another library may tell other things of it, but the same size."""
    (size, _, told), (other_size, _, other_told) = one.partition(" "), other.partition(" ")
    if told.partition("=")[0] != other_told.partition("=")[0]:
        return size == other_size
    return one == other


@dataclass(frozen=True, slots=True)
class StoreWrite:
    """A write that has not ended."""

    target: str
    """The folder, as messages show it."""
    marker: Marker

    def warning(self) -> str:
        """The warning for a reader."""
        which = "before" if self.marker.old is None else "after"
        return (
            f"a write to {self.target} began at {self.marker.begun} and has not ended. The files of {which} it are "
            f"read. If no program writes there any more, pyparq.recover_dataset({self.target!r}) ends the write"
        )


def listed_files(
    fs: Any, folders: Folders, ask: Callable[[], Listing], beyond: Sequence[str] = ()
) -> tuple[Listing, tuple[StoreWrite, ...]]:
    """The files that ``ask`` lists, without those that writes which have not ended hide; and these writes.

    ``beyond``: folders whose markers the listing does not show. They are looked for while it is made. Raises
    :class:`CorruptFileError` for a damaged marker, and :class:`ChangedMeanwhile` where writes go on all the time.
    """
    seen: dict[str, bytes] | None = None
    for _ in range(LISTINGS):
        listed, found = _asked(folders, ask, [posixpath.join(folder, MARKER) for folder in beyond])
        inside = [path for path in listed if posixpath.basename(path) == MARKER and path not in found]
        # One that is gone by now was there while the folder was listed: it counts as changed.
        now = found | {path: folders.content(path) or b"" for path in inside}
        if not now or now == seen:
            return _without_hidden(fs, listed, now)
        seen = now  # the listing is valid if the markers are the same before and after it
    raise ChangedMeanwhile("programs write to the folder all the time: try again", file=shown(next(iter(seen or ""))))


def _asked(folders: Folders, ask: Callable[[], Listing], markers: Sequence[str]) -> tuple[Listing, dict[str, bytes]]:
    if not markers:
        return ask(), {}
    asks: list[Callable[[], Any]] = [ask, *(partial(_content, folders, path) for path in markers)]
    listed, *contents = map_requests(lambda one: one(), asks)
    return listed, {path: data for path, data in zip(markers, contents, strict=True) if data is not None}


def _content(folders: Folders, path: str) -> bytes | None:
    try:
        return folders.content(path)
    except PermissionError:  # often a key is valid for one part of a store only
        return None


def _without_hidden(fs: Any, listed: Listing, markers: Mapping[str, bytes]) -> tuple[Listing, tuple[StoreWrite, ...]]:
    writes = []
    for path, data in markers.items():
        target = shown(str(fs.unstrip_protocol(posixpath.dirname(path))))
        marker = Marker.parse(data, posixpath.join(target, MARKER))
        listed = _without(listed, posixpath.dirname(path) + "/", marker)
        writes.append(StoreWrite(target, marker))
    return listed, tuple(writes)


def _without(listed: Listing, root: str, marker: Marker) -> Listing:
    hides, inside = marker.hides(), len(root)
    return {path: info for path, info in listed.items() if not (path.startswith(root) and hides(path[inside:], info))}


def partition_folders(path: str) -> Iterator[str]:
    """The folders above a folder of a partition, as far as they are partitions, and the one that has them."""
    folder = path.rstrip("/")
    while "=" in posixpath.basename(folder):
        folder = posixpath.dirname(folder)
        yield folder
