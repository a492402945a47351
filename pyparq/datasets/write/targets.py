"""Where the files of a write go: a local folder through the committer, or a folder on a remote file system."""

from __future__ import annotations

import os
import posixpath
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from pyparq.datasets.discovery import SUMMARIES, is_hidden
from pyparq.datasets.staging import PREFIX, Staging
from pyparq.datasets.table_formats import check_folder_on
from pyparq.datasets.write.commit import NOT_EMPTY, Committer, StagedFile, plain_names, tidying
from pyparq.datasets.write.job_sources import Sources
from pyparq.datasets.write.replaced_files import data_files, partition_of
from pyparq.errors import TargetExistsError
from pyparq.io.byte_ranges import Source
from pyparq.io.folders import Folders
from pyparq.io.remote import FsspecFile
from pyparq.io.remote_changes import Changes
from pyparq.io.sink import FsspecSink, LocalSink, Sink
from pyparq.io.source import LocalFile
from pyparq.io.url import file_system, shown

Kept = Sequence[tuple[str, Callable[[], Source]]]
"""The files that stay: their paths, and what opens them."""
Summary = Callable[[Kept], Mapping[str, bytes]]
"""More files, by path."""


class Target(Protocol):
    """A folder that a write puts its files into."""

    name: str
    sources: Sources | None
    """The files that the write replaces; ``None``: those that its mode says."""

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
    """A folder on a file system of fsspec's. Nothing can be renamed at once there: files appear one by one, as each is
    complete, and those that they replace are removed at the end. A crash leaves some of both."""

    def __init__(self, url: str, mode: str, storage_options: Mapping[str, Any] | None, force: bool) -> None:
        self.name = shown(url)
        self.sources: Sources | None = None
        self._url = url
        self._mode = mode
        self._options = storage_options
        self._fs, path = file_system(url, "writing", "write to", storage_options)
        self._changes = Changes(self._fs, storage_options)
        self._root = path.rstrip("/")
        self._written: list[str] = []
        self._old = self._listed()
        check_folder_on(self._fs, self._root, self._old, mode, force)
        if mode == "error" and self._old:
            raise TargetExistsError(NOT_EMPTY, file=self.name)

    def _listed(self) -> list[str]:
        """Paths of all files below the folder, relative to it, but for those of writes that are under way."""
        found = (path[len(self._root) :].lstrip("/") for path in Folders(self._fs).files(self._root))
        return sorted(path for path in found if not path.startswith(PREFIX))

    def sink(self, path: str, fsync: bool) -> Sink:
        full = posixpath.join(self._root, path)
        self._begin(path, full)
        return FsspecSink(self._fs, full, posixpath.join(self.name, path))

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
        replaced: list[str] = []
        if self.sources is not None:
            replaced = self.sources.replaced(Sources.listed(self._url, self._options).states.get, self.name)
        elif self._mode == "overwrite":
            replaced = data
        elif self._mode == "overwrite_partitions":
            wanted = {partition_of(path.split("/")[:-1]) for path in paths}
            replaced = [path for path in data if partition_of(path.split("/")[:-1]) in wanted]
        stale = [name for name in SUMMARIES if name in self._old] if paths or replaced else []
        if summary is not None:
            self._summarize([path for path in data if path not in replaced], summary)
            stale = []
        self._written = []  # from here on the new files are all that there is: an error must not remove them
        try:
            self._remove(replaced)
        except BaseException as error:
            error.add_note(f"The new files are in {self.name}, but not all of the old ones are gone: write again.")
            raise
        with tidying(self.name):
            self._remove(stale)
        return replaced

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
        return FsspecFile(self._fs, posixpath.join(self._root, path), posixpath.join(self.name, path))

    def abort(self) -> None:
        with suppress(ConnectionError, TimeoutError):  # a store that is not reached is not asked for each file
            for path in self._written:
                try:
                    self._changes.remove(posixpath.join(self._root, path), self.name)
                except (ConnectionError, TimeoutError):
                    raise
                except Exception:  # most were never complete
                    continue
