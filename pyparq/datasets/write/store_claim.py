"""The marker of a write in its folder on a store (:mod:`pyparq.datasets.store_writes`): put, changed and taken away.

There is one at a time, so of two writers that begin at once one goes on. A marker stays after a crash, until
:func:`recover_on_store` has ended its write.
"""

from __future__ import annotations

import datetime as dt
import posixpath
import secrets
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pyparq.datasets.data_files import SUMMARIES
from pyparq.datasets.staging import PREFIX
from pyparq.datasets.store_writes import MARKER, Marker, state_of
from pyparq.errors import WriteConflictError
from pyparq.io.folders import Changes, Folders, Info
from pyparq.io.locations import file_system
from pyparq.io.url import shown

_QUIET_SECONDS = 24 * 3600
"""A staging folder in which nothing has changed for this long is abandoned."""


class StoreClaim:
    """The claim of one write to a folder."""

    def __init__(self, fs: Any, root: str, name: str, storage_options: Mapping[str, Any] | None) -> None:
        """``root``: path of the folder on ``fs``. ``name``: what messages call it."""
        self._fs = fs
        self._path = posixpath.join(root, MARKER)
        self._name = name
        self._changes = Changes(fs, storage_options)
        self._marker: Marker | None = None
        self.may_count = False
        """It is not known whether the marker in the store lets the write count: the store has not answered."""

    @property
    def counts(self) -> bool:
        """Whether the write counts, and has not ended."""
        return self._marker is not None and self._marker.old is not None

    def take(self, mode: str, template: str, new: Sequence[str]) -> None:
        """Begin a write: put the marker. Raises :class:`WriteConflictError` where another write has put one."""
        begun = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        marker = Marker(secrets.token_hex(8), mode, begun, template, tuple(new))
        if not self._changes.create(self._path, marker.to_bytes(), self._name):
            raise WriteConflictError(_under_way(self._fs, self._path, self._name), file=self._name)
        self._marker = marker

    def keep(self, paths: Iterable[str]) -> None:
        """Note which of the files that are there are called as new ones."""
        assert self._marker is not None
        is_new = self._marker.is_new()
        kept = tuple(path for path in paths if is_new(path))
        if kept:
            self._change(replace(self._marker, kept=kept))

    def count(self, old: Mapping[str, Info]) -> None:
        """The write counts from here on: readers leave out these files, and get the new ones.

        Raises :class:`WriteConflictError` where another program has ended this write."""
        assert self._marker is not None
        states = tuple((path, state_of(info)) for path, info in sorted(old.items()))
        try:
            self._change(replace(self._marker, old=states, new=(), template="", kept=()))
        except WriteConflictError:
            raise
        except BaseException:
            self.may_count = True
            raise

    def _change(self, marker: Marker) -> None:
        assert self._marker is not None
        if not self._changes.replace(self._path, self._marker.to_bytes(), marker.to_bytes(), self._name):
            self._lost()
        self._marker = marker

    def release(self) -> None:
        """Take the marker away: the write has ended. Raises :class:`WriteConflictError` where another program has ended
        this write, unless it counts already."""
        if self._marker is None:
            return
        if Folders(self._fs).content(self._path) != self._marker.to_bytes():
            if not self.counts:
                self._lost()
            self._marker = None
            return
        with suppress(FileNotFoundError):
            self._changes.remove(self._path, self._name)
        self._marker = None

    def _lost(self) -> None:
        self._marker = None
        raise WriteConflictError(
            "another program has ended this write, or writes to the folder at the same time", file=self._name
        )


def _under_way(fs: Any, path: str, name: str) -> str:
    data = Folders(fs).content(path)
    if data is None:
        return "another program writes to the folder at the same time"
    other = Marker.parse(data, posixpath.join(name, MARKER))
    return (
        f'another write with mode="{other.mode}" began here at {other.begun} and has not ended. If its program does '
        f"not run any more, pyparq.recover_dataset({name!r}) ends it"
    )


# ---- after a crash -------------------------------------------------------------------------------------------------


def recover_on_store(url: str, storage_options: Mapping[str, Any] | None) -> int:
    """:func:`pyparq.recover_dataset` for a folder on a store."""
    fs, path = file_system(url, "writing", "write to", storage_options)
    root, name = path.rstrip("/"), shown(url)
    changes, folders = Changes(fs, storage_options), Folders(fs)
    ended = int(_marker_recovered(folders, changes, root, name))
    for folder in _abandoned(folders.files(root), root):
        changes.remove_folder(folder, name)
        ended += 1
    return ended


def _marker_recovered(folders: Folders, changes: Changes, root: str, name: str) -> bool:
    """End the write that has a marker in the folder. Returns whether there was one."""
    path = posixpath.join(root, MARKER)
    data = folders.content(path)
    if data is None:
        return False
    marker = Marker.parse(data, posixpath.join(name, MARKER))
    # With another id, so that its program notices, if it still runs.
    own = replace(marker, id=secrets.token_hex(8))
    if not changes.replace(path, data, own.to_bytes(), name):
        raise WriteConflictError("the write goes on: its program still runs", file=name)
    hidden, inside = marker.hides(), len(root) + 1
    gone = [file for file, info in folders.files(root).items() if hidden(file[inside:], info)]
    for file in [*gone, *(posixpath.join(root, summary) for summary in SUMMARIES), path]:
        with suppress(FileNotFoundError):
            changes.remove(file, posixpath.join(name, file[inside:]))
    return True


def _abandoned(listed: Mapping[str, Info], root: str) -> Collection[str]:
    """Staging folders of jobs in which nothing has changed for a day."""
    latest: dict[str, float] = {}
    for path, info in listed.items():
        folder = path[len(root) + 1 :].partition("/")[0]
        if folder.startswith(PREFIX):
            latest[folder] = max(latest.get(folder, 0.0), _changed(info))
    return [posixpath.join(root, folder) for folder, at in latest.items() if time.time() - at > _QUIET_SECONDS]


def _changed(info: Info) -> float:
    """When a file was written, as the store says; now, if it does not say so."""
    found = next((info[key] for key in ("LastModified", "last_modified", "updated", "created") if info.get(key)), None)
    return found.timestamp() if isinstance(found, dt.datetime) else time.time()
