"""The committer: puts all files of a write into a local folder together, and removes the files that they replace.

The files wait in a staging folder (:mod:`pyparq.datasets.staging`) until all of them are complete. Then they get their
names (:mod:`pyparq.datasets.write.folder_commit`).
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Self

from pyparq.datasets.data_files import is_hidden
from pyparq.datasets.kept_files import RECORD, local_state, remove_expired
from pyparq.datasets.staging import (
    OldFile,
    Record,
    Staging,
    StagingLock,
    make_staging,
    mode_of,
    new_name,
    remove_staging,
    staging_folders,
    stays_inside,
)
from pyparq.datasets.write import folder_commit
from pyparq.datasets.write.store_commit import recover_on_store
from pyparq.datasets.write.targets import (
    FILLED,
    NOT_EMPTY,
    Sources,
    StagedFile,
    Summary,
    companions,
    data_files,
    is_empty,
    partition_of,
    tidying,
)
from pyparq.errors import DataError, OptionError, TargetExistsError, WriteConflictError
from pyparq.io.file_lock import FOLDER_LOCK, locked_folder
from pyparq.io.file_objects import not_its_own
from pyparq.io.locations import located as on_system
from pyparq.io.sink import LocalSink, Sink
from pyparq.io.source import LocalFile
from pyparq.io.table_formats import check_folder
from pyparq.io.url import is_url, local_path
from pyparq.option_checks import keywords

Summaries = Callable[[list[str]], list[StagedFile]]


class Committer:
    """One write to a local folder: :meth:`start`, then :meth:`commit` or :meth:`abort`.

    Tasks, in this process or in others, get :attr:`staging`, write their files to the places that it gives, and return
    a :class:`StagedFile` for each. Only the committer makes and removes the staging folder.
    """

    def __init__(self, staging: Staging, lock: StagingLock | None) -> None:
        self.staging = staging
        self._lock = lock
        self._process = os.getpid()

    @classmethod
    def start(cls, path: str, mode: str, *, detached: bool = False, force: bool = False) -> Self:
        """Begin a write to the folder ``path``, which is made if it does not exist. Completes or removes what writes
        left behind that crashed.

        ``detached``: another process will :meth:`resume` and commit. ``force``: even in a table of Delta Lake, Iceberg
        or Hudi, which is an :class:`OptionError` otherwise. Raises :class:`TargetExistsError` for mode
        ``"error"`` where the folder is not empty, :class:`WriteConflictError` where another write replaces files
        there, and ``OSError`` as the operating system does.
        """
        check_folder(path, mode, force)
        target = os.path.realpath(path)
        while True:
            made = _made_folders(target)
            try:
                with locked_folder(target):
                    return cls._started(target, mode, made, detached)
            except FileNotFoundError:
                if os.path.isdir(target):
                    raise
            except BaseException:
                _remove_empty(made)
                raise
            # Another write was given up and has removed the folder that it had made. Try again.

    @classmethod
    def _started(cls, target: str, mode: str, made: tuple[str, ...], detached: bool) -> Self:
        for folder in folder_commit.recovered(target):
            other = mode_of(folder)
            if mode.startswith("overwrite") and other.startswith("overwrite"):
                raise WriteConflictError(f'another write with mode="{other}" is under way in {folder}', file=target)
        if mode == "error" and not is_empty(target):
            raise TargetExistsError(NOT_EMPTY, file=target)
        staging = Staging(target, os.path.join(target, new_name()), mode, made, detached)
        make_staging(staging)
        try:
            return cls(staging, None if detached else StagingLock(staging.folder))
        except BaseException:
            remove_staging(staging.folder)
            raise

    @classmethod
    def resume(cls, staging: Staging) -> Self:
        """The committer of a write that another process has started ``detached``.

        Raises :class:`WriteConflictError` where it has been given up, or another process commits it.
        """
        try:
            # a program that checks whether the write is abandoned holds the lock for a moment
            with locked_folder(staging.target):
                return cls(staging, StagingLock(staging.folder))
        except FileNotFoundError:
            raise staging.gone() from None

    def commit(
        self,
        files: Sequence[StagedFile],
        *,
        fsync: bool = False,
        summaries: Summaries | None = None,
        sources: Sources | None = None,
        keep_old: float = 0,
    ) -> list[str]:
        """Put the files into their places, and take away those that they replace, whose paths are returned.

        All of the new files become visible, or none (see the module's text). ``fsync``: flush the folders to disk, so
        that the commit is still there after a power cut. ``summaries`` is told the paths of the files that stay, and
        makes more files: no other write changes the folder meanwhile. ``sources``: the files to replace,
        instead of the ones that the mode names. ``keep_old``: the seconds for which replaced files stay for readers
        that have listed them before.

        Raises :class:`TargetExistsError` where a file has a new one's name or, for mode ``"error"``, where the folder
        has been filled meanwhile, :class:`ChangedFileError` where one of the ``sources`` has changed.
        """
        staging = self.staging
        if self._process != os.getpid():
            raise not_its_own(staging.target)
        folder_commit.reached("staged")
        with locked_folder(staging.target):
            if not os.path.isdir(os.path.join(staging.folder, "new")):
                raise staging.gone()
            if self._lock is None:
                self._lock = StagingLock(staging.folder)
            folder_commit.recovered(staging.target)  # another write that was half done is completed first
            record = self._planned(files, summaries, sources)
            commit = folder_commit.FolderCommit(staging.target, staging.folder, record)
            commit.carry_out(only_as_read=sources is not None, fsync=fsync)
            try:
                with tidying(staging.target):
                    commit.end(keep_old)
            finally:
                self._release()
        return [file.path for file in record.old if not is_hidden(os.path.basename(file.path))]

    def data_file(self) -> str | None:
        """A data file that is in the folder already."""
        return next(iter(data_files(self.staging.target)), None)

    def note_success(self, name: str) -> None:
        """An empty file that tells other tools that the folder is complete."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        with tidying(self.staging.target):
            os.close(os.open(os.path.join(self.staging.target, name), flags, 0o666))

    def abort(self) -> None:
        """Give the write up: its files are removed, and nothing else has changed. It does nothing after a commit or
        when called again."""
        staging = self.staging
        if self._process != os.getpid():  # a forked child leaves all to its parent
            return
        self._release()
        if not os.path.isdir(staging.folder) or os.path.exists(os.path.join(staging.folder, RECORD)):
            return
        try:
            with locked_folder(staging.target, patient=False):  # a check of the write's lock would make a new lock file
                remove_staging(staging.folder)
        except OSError:  # no lock could be taken
            remove_staging(staging.folder)
        _remove_empty(staging.made)

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()

    def _planned(self, files: Sequence[StagedFile], summaries: Summaries | None, sources: Sources | None) -> Record:
        """The plan of the commit. Nothing is done yet."""
        target, mode = self.staging.target, self.staging.mode
        if mode == "error" and not is_empty(target):
            raise TargetExistsError(FILLED, file=target)
        old: list[str] = []
        if sources is not None:
            old = sources.replaced(lambda path: local_state(os.path.join(target, path)), target)
        elif mode == "overwrite":
            old = data_files(target)
        elif mode == "overwrite_partitions":
            old = data_files(target, {partition_of(file.path.split(os.sep)[:-1]) for file in files})
        elif mode == "overwrite_files":
            old = [file.path for file in files if os.path.lexists(os.path.join(target, file.path))]
        if summaries is not None:
            files = [*files, *summaries([path for path in data_files(target) if path not in set(old)])]
        if files or old:
            old += companions(target, old)
        replaced = set(old)
        for file in files:
            if not stays_inside(target, file.path):
                raise OptionError(
                    f"{os.path.dirname(file.path)} is a link to another folder. Files are not put there: remove the "
                    "link first",
                    file=target,
                )
            if file.path not in replaced and os.path.lexists(os.path.join(target, file.path)):
                raise TargetExistsError("a file of this name is there already", file=os.path.join(target, file.path))
        if len({file.path for file in files}) < len(files):
            raise DataError("two new files have the same name", file=target)
        return Record(
            tuple([OldFile.of(target, path, str(k)) for k, path in enumerate(old)]),
            tuple([(os.path.basename(file.staged), file.path) for file in files]),
        )


@keywords
def recover_dataset(source: Any, *, storage_options: Mapping[str, Any] | None = None, filesystem: Any = None) -> int:
    """Clean up after writes to the folder ``source`` (a path or URL) that crashed; returns how many there were.

    A write that had reached its commit record is completed, any other is undone. Writes that are under way are left
    alone. The next :func:`pyparq.write_dataset` to a local folder does the same.

    On a store it cannot be seen whether a write is under way. There the write that has left its marker is ended, so
    call this when no program writes to the folder. A program that still does raises :class:`WriteConflictError` at its
    end, and its files do not count. Staging folders of Spark jobs go when nothing in them has changed for a day.
    ``storage_options``, ``filesystem``: for a URL, as in :func:`pyparq.read_table`.

    Raises ``OSError`` as the operating system does, :class:`CorruptFileError` for a commit record or marker that is
    damaged, or leads out of the folder, and :class:`WriteConflictError` where a program on a store ends its write at
    this moment, or another one keeps the lock of the folder.

    Example::

        print(pyparq.recover_dataset("flights"))      # 0: no write has crashed
    """
    source, storage_options = on_system(source, filesystem, storage_options)
    where = os.fsdecode(source)
    if is_url(where):
        return recover_on_store(where, storage_options)
    target = os.path.realpath(local_path(where) or where)
    if not staging_folders(target) and not os.path.lexists(os.path.join(target, FOLDER_LOCK)):
        return 0  # in a folder that cannot be written to, too
    with locked_folder(target):
        return len(staging_folders(target)) - len(folder_commit.recovered(target))


def complete_writes(path: Any) -> None:
    """As :func:`recover_dataset`, for a job that is about to replace files of the folder ``path``, if it is local.
    Replaced files go too whose time is over."""
    where = os.fsdecode(path)
    if not is_url(where) and os.path.isdir(local_path(where) or where):
        recover_dataset(local_path(where) or where)
        remove_expired(os.path.realpath(local_path(where) or where))


def _made_folders(target: str) -> tuple[str, ...]:
    """Make ``target`` and its parent folders. Returns the new ones, innermost first."""
    if os.path.lexists(target) and not os.path.isdir(target):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), target)
    missing, folder = [], target
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    os.makedirs(target, exist_ok=True)
    return tuple(missing)


def _remove_empty(folders: Iterable[str]) -> None:
    with suppress(OSError):
        for folder in folders:
            os.rmdir(folder)


@contextmanager
def plain_names(target: str) -> Iterator[None]:
    """``OSError`` names the target folder and not the temporary one."""
    try:
        yield
    except OSError as error:
        _name_plainly(error, target)
        raise


def _name_plainly(error: OSError, target: str) -> None:
    if isinstance(error.filename, str) and "_pyparq_staging-" in error.filename:
        error.filename = target
        del error.filename2


class StagedFiles:
    """What one task writes for a local folder: files in staging. Another process commits them."""

    def __init__(self, staging: Staging, attempt: str) -> None:
        self.name = staging.target
        self._staging = staging
        self._attempt = attempt
        self._staged: dict[str, str] = {}

    def sink(self, path: str, fsync: bool) -> Sink:
        staged = self._staging.place(self._attempt, len(self._staged))
        try:
            sink = LocalSink(staged, fsync, in_staging=True)
        except OSError as error:
            _name_plainly(error, self.name)
            raise
        sink.name = os.path.join(self.name, path)
        self._staged[path] = staged
        return sink

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
        self.data_file = self._committer.data_file
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
