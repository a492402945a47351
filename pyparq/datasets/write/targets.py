"""Where the files of a write go: a local folder through the committer, or a folder on a remote file system."""

from __future__ import annotations

import os
import posixpath
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from pyparq.datasets.data_files import SUMMARIES, is_hidden
from pyparq.datasets.staging import PREFIX, Staging
from pyparq.datasets.store_writes import MARKER
from pyparq.datasets.write.commit import FILLED, NOT_EMPTY, Committer, StagedFile, plain_names, tidying
from pyparq.datasets.write.job_sources import Sources
from pyparq.datasets.write.replaced_files import data_files, partition_of
from pyparq.datasets.write.store_claim import StoreClaim
from pyparq.errors import TargetExistsError, WriteConflictError
from pyparq.io.byte_ranges import Source
from pyparq.io.folders import Changes, Folders, Info
from pyparq.io.locations import file_system
from pyparq.io.remote_sinks import sink_on
from pyparq.io.sink import LocalSink, Sink
from pyparq.io.source import LocalFile, source_on
from pyparq.io.table_formats import check_folder_on
from pyparq.io.url import shown

Kept = Sequence[tuple[str, Callable[[], Source]]]
"""The files that stay: their paths, and what opens them."""
Summary = Callable[[Kept], Mapping[str, bytes]]
"""More files, by path."""


class Target(Protocol):
    """A folder that a write puts its files into."""

    name: str
    sources: Sources | None
    """The files that the write replaces; ``None``: those that its mode says."""

    def begin(self, template: str) -> None:
        """Called once, before the first file. ``template``: how the files are called, with ``{i}`` for a number."""

    def sink(self, path: str, fsync: bool) -> Sink:
        """A new file, which will be called ``path``, relative to the folder."""

    def has_data(self) -> bool:
        """Whether there are data files already."""

    def commit(self, paths: Sequence[str], fsync: bool, summary: Summary | None) -> list[str]:
        """Make the files visible, and remove those that they replace; the paths of these."""

    def abort(self) -> None:
        """Remove what was written."""


class _StagedSink(LocalSink):
    """A file in the staging folder, under the name that it will have."""

    in_staging = True


class StagedFiles:
    """What one task writes for a local folder: files in staging. Another process commits them."""

    def __init__(self, staging: Staging, attempt: str) -> None:
        self.name = staging.target
        self._staging = staging
        self._attempt = attempt
        self._staged: dict[str, str] = {}

    def sink(self, path: str, fsync: bool) -> Sink:
        staged = self._staging.place(self._attempt, len(self._staged))
        with plain_names(self.name):
            sink = _StagedSink(staged, fsync)
        sink.name = os.path.join(self.name, path)
        self._staged[path] = staged
        return sink

    def has_data(self) -> bool:
        return bool(data_files(self._staging.target))

    def staged(self, path: str) -> StagedFile:
        """The complete file, as the committer wants it."""
        return StagedFile(self._staged[path], path)


class LocalTarget(StagedFiles):
    """A local folder."""

    def __init__(self, path: str, mode: str, force: bool) -> None:
        with plain_names(path):
            self._committer = Committer.start(path, mode, force=force)
        super().__init__(self._committer.staging, secrets.token_hex(4))
        self.name = path
        self.sources: Sources | None = None

    def begin(self, template: str) -> None:
        return None

    def commit(self, paths: Sequence[str], fsync: bool, summary: Summary | None) -> list[str]:
        files = [self.staged(path) for path in paths]
        with plain_names(self.name):
            return self._committer.commit(
                files,
                fsync=fsync,
                summaries=None if summary is None else lambda kept: self._summaries(kept, summary),
                sources=self.sources,
            )

    def _summaries(self, kept: list[str], summary: Summary) -> list[StagedFile]:
        sources = [(path, partial(LocalFile, os.path.join(self.name, path))) for path in kept]
        made = []
        for path, data in summary(sources).items():
            sink = self.sink(path, fsync=False)
            sink.write([data])
            sink.commit()
            made.append(self.staged(path))
        return made

    def abort(self) -> None:
        self._committer.abort()


class RemoteTarget:
    """A folder on a remote file system. Nothing can be renamed at once there: files appear one by one, as each is
    complete, and those that they replace are removed at the end. A marker tells readers which of them count
    (:mod:`pyparq.datasets.store_writes`). Appending needs none."""

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
        self._old = self._listed()
        check_folder_on(self._fs, self._root, self._old, mode, force)
        self._check_empty(NOT_EMPTY)

    def _check_empty(self, message: str) -> None:
        if self._mode == "error" and self._old:
            raise TargetExistsError(message, file=self.name)

    def _listed(self) -> dict[str, Info]:
        """All files below the folder, by path relative to it, but for those of writes that are under way."""
        inside, listed = len(self._root), sorted(Folders(self._fs).files(self._root).items())
        found = {path[inside:].lstrip("/"): info for path, info in listed}
        return {path: info for path, info in found.items() if not path.startswith(PREFIX) and path != MARKER}

    def begin(self, template: str, new: Sequence[str] = ()) -> None:
        """As :meth:`Target.begin`. ``new``: the paths of the files, if they are known.

        Raises :class:`WriteConflictError` where another program writes to the folder, and :class:`TargetExistsError`
        where it has filled it meanwhile.
        """
        if self._mode == "append":
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
        if path in self._old and path not in SUMMARIES:
            raise TargetExistsError("a file of this name is there already", file=posixpath.join(self.name, path))
        self._written.append(path)
        self._changes.make_folder(posixpath.dirname(full), self.name)

    def has_data(self) -> bool:
        return bool(self._data())

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
            return [path for path in data if partition_of(path.split("/")[:-1]) in wanted]
        return []

    def _remove(self, paths: Sequence[str]) -> None:
        for path in paths:
            self._changes.remove(posixpath.join(self._root, path), posixpath.join(self.name, path))

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
