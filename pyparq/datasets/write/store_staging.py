"""A write by many processes to a folder on a store: tasks put objects below a hidden name, one process places them.

A store renames nothing, and has no locks. So the new files are placed one by one, each complete, by copies within the
store, and those that they replace are removed when all are there. A marker tells readers which of them count at that
time (:mod:`pyparq.datasets.store_writes`). A crash before it leaves nothing but the staging objects, which readers
ignore and which :func:`pyparq.recover_dataset` removes after a day. One write at a time may replace files.
"""

from __future__ import annotations

import json
import posixpath
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

from pyparq.datasets.staging import SUFFIX, new_name
from pyparq.datasets.write.commit import StagedFile, tidying
from pyparq.datasets.write.job_sources import Sources
from pyparq.datasets.write.targets import RemoteTarget
from pyparq.errors import DataError, WriteConflictError
from pyparq.io.folders import Changes, Folders
from pyparq.io.locations import file_system
from pyparq.io.remote_sinks import sink_on
from pyparq.io.sink import Sink
from pyparq.io.url import shown
from pyparq.runtime.threads import map_requests

_ABOUT = "staging.json"


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

    def has_data(self) -> bool:
        """Whether the folder has data files already."""
        return RemoteTarget(self.staging.target, "append", self._options, True).has_data()

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
