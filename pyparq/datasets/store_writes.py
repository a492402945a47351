"""Writes to a folder on a store that have not ended, as readers of the folder see them.

A store renames nothing, so new files appear one by one, and old ones go one by one. A write that replaces files, or
that fills an empty folder, therefore puts a *marker* into the folder first, and takes it away last:

- It begins by telling which files are the new ones. Readers leave these out: they get the files from before.
- When all new files are complete, one request puts another marker in its place, which lists the old files. The write
  counts from here on. Readers leave the old files out, and get the new ones.

So a reader gets one of the two states, also where the write is cut short at any moment.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Self

from pyparq.errors import ChangedMeanwhile, CorruptFileError
from pyparq.io.file_versions import Stated
from pyparq.io.folders import Folders, Info
from pyparq.io.url import shown
from pyparq.runtime.threads import map_requests

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


def settled(
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
