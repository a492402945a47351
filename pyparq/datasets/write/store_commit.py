"""Writes to a folder on a store: files are put one by one, each complete, and those that they replace go at the end.

A store renames nothing, and has no locks. So a marker tells readers which files count
(:mod:`pyparq.datasets.unfinished_writes`). There is one at a time, so of two writers that begin at once one goes on. A
marker stays after a crash, until :func:`recover_on_store` has ended its write. Appending needs none.

A write by many processes: tasks put objects below a hidden name, and one process places them by copies within the
store. A crash before it leaves nothing but the staging objects, which readers ignore and which
:func:`pyparq.recover_dataset` removes after a day.
"""

from __future__ import annotations

import datetime as dt
import json
import posixpath
import secrets
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

from pyparq.datasets.data_files import SUMMARIES, is_hidden
from pyparq.datasets.kept_files import PREFIX
from pyparq.datasets.staging import QUIET_SECONDS, SUFFIX, new_name
from pyparq.datasets.unfinished_writes import MARKER, Marker, state_of
from pyparq.datasets.write.targets import FILLED, NOT_EMPTY, Sources, StagedFile, Summary, partition_of, tidying
from pyparq.errors import DataError, TargetExistsError, WriteConflictError
from pyparq.io.byte_ranges import Source
from pyparq.io.folders import Changes, Folders, Info, each_on
from pyparq.io.locations import file_system
from pyparq.io.remote_sinks import sink_on
from pyparq.io.sink import Sink
from pyparq.io.source import source_on
from pyparq.io.table_formats import check_folder_on
from pyparq.io.url import shown
from pyparq.runtime.threads import MANY_REQUESTS, map_requests

_ABOUT = "staging.json"


class StoreClaim:
    """The claim of one write to a folder."""

    def __init__(self, fs: Any, root: str, name: str, storage_options: Mapping[str, Any] | None) -> None:
        """``root``: path of the folder on ``fs``. ``name``: what messages call it."""
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
            raise WriteConflictError(self._under_way(), file=self._name)
        self._marker = marker

    def _under_way(self) -> str:
        data = self._changes.content(self._path)
        if data is None:
            return "another program writes to the folder at the same time"
        other = Marker.parse(data, posixpath.join(self._name, MARKER))
        return (
            f'another write with mode="{other.mode}" began here at {other.begun} and has not ended. If its program '
            f"does not run any more, pyparq.recover_dataset({self._name!r}) ends it"
        )

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
        if self._changes.content(self._path) != self._marker.to_bytes():
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


class RemoteTarget:
    """A folder on a remote file system. Nothing can be renamed at once there: files appear one by one, as each is
    complete, and those that they replace are removed at the end. A marker tells readers which of them count
    (:mod:`pyparq.datasets.unfinished_writes`). Appending needs none."""

    def __init__(self, url: str, mode: str, storage_options: Mapping[str, Any] | None, force: bool) -> None:
        self.name = shown(url)
        self.sources: Sources | None = None
        self._url = url
        self._mode = mode
        self._options = storage_options
        self._fs, path = file_system(url, "writing", "write to", storage_options)
        self._changes = Changes(self._fs, storage_options)
        self._root = path.rstrip("/")
        self._claim = StoreClaim(self._fs, self._root, self.name, storage_options)
        self._written: list[str] = []
        self._old = check_folder_on(self._fs, self._root, self._listed, mode, force)
        self._check_empty(NOT_EMPTY)

    def _check_empty(self, message: str) -> None:
        if self._mode == "error" and self._old:
            raise TargetExistsError(message, file=self.name)

    def _listed(self) -> dict[str, Info]:
        """All files below the folder, by path relative to it, but for those of writes that are under way."""
        inside, listed = len(self._root), sorted(self._changes.files(self._root).items())
        found = {path[inside:].lstrip("/"): info for path, info in listed}
        return {path: info for path, info in found.items() if not path.startswith(PREFIX) and path != MARKER}

    def begin(self, template: str, new: Sequence[str] = ()) -> None:
        """As :meth:`Target.begin`. ``new``: the paths of the files, if they are known.

        Raises :class:`WriteConflictError` where another program writes to the folder, and :class:`TargetExistsError`
        where it has filled it meanwhile.
        """
        if self._mode in ("append", "overwrite_files"):
            return
        self._claim.take(self._mode, template, new)
        self._old = self._listed()
        self._check_empty(FILLED)
        self._claim.keep(self._old)

    def sink(self, path: str, fsync: bool) -> Sink:
        full = posixpath.join(self._root, path)
        self._begin(path, full)
        return sink_on(self._fs, full, posixpath.join(self.name, path))

    def place(self, staged: str, path: str) -> None:
        """Make a file of an object that lies elsewhere in the store: by a copy within the store."""
        full = posixpath.join(self._root, path)
        self._begin(path, full)
        self._changes.copy(staged, full, posixpath.join(self.name, path))

    def _begin(self, path: str, full: str) -> None:
        if path in self._old and path not in SUMMARIES and self._mode != "overwrite_files":
            raise TargetExistsError("a file of this name is there already", file=posixpath.join(self.name, path))
        if self._mode != "overwrite_files" or path not in self._old:  # an object that was replaced cannot be had back
            self._written.append(path)
        self._changes.make_folder(posixpath.dirname(full), self.name)

    def data_file(self) -> str | None:
        return next((path for path in self._data() if path.endswith(".parquet")), None)

    def _data(self) -> list[str]:
        return [path for path in self._old if not any(map(is_hidden, path.split("/")))]

    def commit(self, paths: Sequence[str], fsync: bool, summary: Summary | None) -> list[str]:
        data = self._data()
        replaced = self._replaced(paths, data)
        stale = [name for name in SUMMARIES if name in self._old] if paths or replaced else []
        if summary is not None:
            self._summarize([path for path in data if path not in replaced], summary)
            stale = []
        if replaced:
            self._claim.count({path: self._old[path] for path in replaced})
        else:
            self._claim.release()
        self._written = []  # from here on the new files count: an error must not remove them
        try:
            self._remove(replaced)
        except BaseException as error:
            error.add_note(
                f"The new files are in {self.name}, but not all of the old ones are gone. Readers leave those out. "
                f"pyparq.recover_dataset({self.name!r}) removes them."
            )
            raise
        with tidying(self.name):
            self._remove(stale)
            self._claim.release()
        return replaced

    def _replaced(self, paths: Sequence[str], data: list[str]) -> list[str]:
        """The paths of the files that go. ``data``: those of all data files."""
        if self.sources is not None:
            return self.sources.replaced(Sources.listed(self._url, self._options).states.get, self.name)
        if self._mode == "overwrite":
            return data
        if self._mode == "overwrite_partitions":
            wanted = {partition_of(path.split("/")[:-1]) for path in paths}
            found = {path: partition_of(path.split("/")[:-1]) for path in data}  # what lies deeper goes too
            return [path for path in data if any(found[path][: len(values)] == values for values in wanted)]
        return []

    def _remove(self, paths: Sequence[str]) -> None:
        def remove(path: str) -> None:
            self._changes.remove(posixpath.join(self._root, path), posixpath.join(self.name, path))

        each_on(self._fs, remove, paths, MANY_REQUESTS)

    def _summarize(self, kept: list[str], summary: Summary) -> None:
        sources = [(path, partial(self._opened, path)) for path in kept]
        for path, data in summary(sources).items():
            sink = self.sink(path, False)
            sink.write([data])
            sink.commit()

    def _opened(self, path: str) -> Source:
        return source_on(self._fs, posixpath.join(self._root, path), posixpath.join(self.name, path))

    def abort(self) -> None:
        """As :meth:`Target.abort`. The marker stays where a file of this write may have stayed."""
        if self._claim.may_count:
            return  # the marker stays, and readers get either the old files or the new ones
        with suppress(OSError, WriteConflictError):  # a store that is not reached is not asked for each file
            removed = [self._is_removed(path) for path in self._written]
            if all(removed) and not self._claim.counts:
                self._claim.release()

    def _is_removed(self, path: str) -> bool:
        try:
            self._changes.remove(posixpath.join(self._root, path), self.name)
        except (ConnectionError, TimeoutError):
            raise
        except FileNotFoundError:  # most were never complete
            return True
        except Exception:
            return False
        return True


# ---- many processes ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StoreStaging:
    """A write to a store that is under way. It can be pickled, and holds no credentials."""

    target: str
    """URL of the folder that is written to."""
    folder: str
    """URL of the staging folder."""
    mode: str

    def check(self, fs: Any, folder: str) -> None:
        """Raise :class:`WriteConflictError` where the write has ended. ``folder``: the staging folder on ``fs``."""
        if Folders(fs).info(posixpath.join(folder, _ABOUT)) is None:
            raise WriteConflictError(
                "the staging folder of this write is gone: the write was given up or has ended", file=shown(self.target)
            )


class StagedObjects:
    """What one task writes for a store: objects in staging, one for each file. Another process places them."""

    def __init__(self, staging: StoreStaging, attempt: str, storage_options: Mapping[str, Any] | None) -> None:
        self.name = shown(staging.target)
        self._staging = staging
        self._attempt = attempt
        self._fs, self._folder = file_system(staging.folder, "writing", "write to", storage_options)
        self._staged: dict[str, str] = {}

    def sink(self, path: str, fsync: bool) -> Sink:
        """A new object, which will be the file ``path``. Raises :class:`WriteConflictError` after the write's end."""
        self._staging.check(self._fs, self._folder)
        staged = posixpath.join(self._folder, f"{self._attempt}-{len(self._staged):05d}{SUFFIX}")
        self._staged[path] = staged
        sink = sink_on(self._fs, staged, posixpath.join(self.name, path))
        sink.in_staging = True
        return sink

    def staged(self, path: str) -> StagedFile:
        """The complete file, as the committer wants it."""
        return StagedFile(self._staged[path], path)


class StoreCommitter:
    """One write to a store: :meth:`start`, then, in any process, :meth:`commit` or :meth:`abort`."""

    def __init__(self, staging: StoreStaging, storage_options: Mapping[str, Any] | None) -> None:
        self.staging = staging
        self._options = storage_options
        self._fs, self._folder = file_system(staging.folder, "writing", "write to", storage_options)
        self._changes = Changes(self._fs, storage_options)

    @classmethod
    def start(cls, url: str, mode: str, storage_options: Mapping[str, Any] | None, *, force: bool = False) -> Self:
        """Begin a write to the folder ``url``. Raises :class:`TargetExistsError` in mode ``"error"`` where there is
        something, and :class:`OptionError` for a table of Delta Lake, Iceberg or Hudi, unless ``force``."""
        target = url.rstrip("/")
        RemoteTarget(target, mode, storage_options, force)
        staging = StoreStaging(target, posixpath.join(target, new_name()), mode)
        made = cls(staging, storage_options)
        about = json.dumps({"mode": mode, "id": secrets.token_hex(8)}).encode()
        made._changes.put(posixpath.join(made._folder, _ABOUT), about, shown(target))
        return made

    def data_file(self) -> str | None:
        """A data file that is in the folder already."""
        return RemoteTarget(self.staging.target, "append", self._options, True).data_file()

    def commit(self, files: Sequence[StagedFile], *, fsync: bool = False, sources: Sources | None = None) -> list[str]:
        """Place the files, and remove those that they replace, whose paths are returned; then the staging objects.

        Raises :class:`TargetExistsError` where a file has a new one's name or, for mode ``"error"``, where the folder
        has been filled meanwhile; :class:`ChangedFileError` where one of the ``sources``, which are replaced instead of
        those that the mode says, has changed. An error takes away what has been placed, as long as nothing has been
        removed.
        """
        if len({file.path for file in files}) < len(files):
            raise DataError("two new files have the same name", file=shown(self.staging.target))
        self.staging.check(self._fs, self._folder)
        target = RemoteTarget(self.staging.target, self.staging.mode, self._options, True)
        target.sources = sources
        try:
            target.begin("", [file.path for file in files])
            map_requests(lambda file: target.place(file.staged, file.path), files)
            replaced = target.commit([file.path for file in files], fsync, None)
        except BaseException:
            target.abort()
            raise
        self.abort()
        return replaced

    def note_success(self, name: str) -> None:
        """An empty file that tells other tools that the folder is complete."""
        target = shown(self.staging.target)
        with tidying(target):
            self._changes.put(posixpath.join(posixpath.dirname(self._folder), name), b"", target)

    def abort(self) -> None:
        """Remove the staging objects. After a commit, and again, there are none."""
        with suppress(Exception):  # what stays is hidden
            self._changes.remove_folder(self._folder, shown(self.staging.target))


# ---- after a crash -------------------------------------------------------------------------------------------------


def recover_on_store(url: str, storage_options: Mapping[str, Any] | None) -> int:
    """:func:`pyparq.recover_dataset` for a folder on a store."""
    fs, path = file_system(url, "writing", "write to", storage_options)
    root, name = path.rstrip("/"), shown(url)
    changes = Changes(fs, storage_options)
    ended = int(_marker_recovered(changes, root, name))
    for folder in _abandoned(changes.files(root), root):
        changes.remove_folder(folder, name)
        ended += 1
    return ended


def _marker_recovered(changes: Changes, root: str, name: str) -> bool:
    """End the write that has a marker in the folder. Returns whether there was one."""
    path = posixpath.join(root, MARKER)
    data = changes.content(path)
    if data is None:
        return False
    marker = Marker.parse(data, posixpath.join(name, MARKER))
    # With another id, so that its program notices, if it still runs.
    own = replace(marker, id=secrets.token_hex(8))
    if not changes.replace(path, data, own.to_bytes(), name):
        raise WriteConflictError("the write goes on: its program still runs", file=name)
    hidden, inside = marker.hides(), len(root) + 1
    gone = [file for file, info in changes.files(root).items() if hidden(file[inside:], info)]
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
    return [posixpath.join(root, folder) for folder, at in latest.items() if time.time() - at > QUIET_SECONDS]


def _changed(info: Info) -> float:
    """When a file was written, as the store says; now, if it does not say so."""
    found = next((info[key] for key in ("LastModified", "last_modified", "updated", "created") if info.get(key)), None)
    return found.timestamp() if isinstance(found, dt.datetime) else time.time()
