"""The committer: puts all files of a write into a folder together, and removes the files that they replace.

A local file system renames one file at a time. So the whole commit is first written down in the commit record
``commit.json`` in the staging folder (:mod:`pyparq.datasets.staging`). After a crash, the commit is completed from the
record:

- A crash before the record: nothing has changed for readers. The next write to the target removes the staging folder.
- A crash after the record: some old and some new files may be in place. The next write to the target, or
  :func:`recover_dataset`, completes the commit.
- An error (a full disk, Ctrl-C) undoes the commit. If even that fails, the record stays, as after a crash.

Each step is a rename. The place of the file tells whether the rename was done. So every step can be repeated.
"""

from __future__ import annotations

import errno
import os
import secrets
import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, Self

from pyparq.datasets.data_files import SourceFiles, is_hidden
from pyparq.datasets.discovery import discover
from pyparq.datasets.file_state import local_state
from pyparq.datasets.staging import (
    RECORD,
    OldFile,
    Record,
    Staging,
    StagingLock,
    is_abandoned,
    leads_out,
    make_staging,
    mode_of,
    new_name,
    prepare_record,
    publish_record,
    read_record,
    remove_staging,
    staging_folders,
    stays_inside,
)
from pyparq.datasets.write.job_sources import Sources
from pyparq.datasets.write.store_commit import recover_on_store
from pyparq.datasets.write.targets import (
    FILLED,
    NOT_EMPTY,
    StagedFile,
    Summary,
    companions,
    data_files,
    is_empty,
    partition_of,
    tidying,
)
from pyparq.errors import (
    ChangedMeanwhile,
    DataError,
    OptionError,
    TargetExistsError,
    UnfinishedWriteWarning,
    WriteConflictError,
)
from pyparq.io.atomic_write import rename_new, sync_folder
from pyparq.io.file_lock import FOLDER_LOCK, Identity, locked_folder, locked_name
from pyparq.io.locations import located as on_system
from pyparq.io.retry import Retry
from pyparq.io.sink import LocalSink, Sink
from pyparq.io.source import LocalFile
from pyparq.io.table_formats import check_folder
from pyparq.io.url import is_url, local_path
from pyparq.runtime.warn import warn_caller

Summaries = Callable[[list[str]], list[StagedFile]]


def reached(step: str) -> None:
    """Called after each step of a commit with its name. Does nothing; tests end the process here."""


class Committer:
    """One write to a local folder: :meth:`start`, then :meth:`commit` or :meth:`abort`.

    Tasks, in this process or in others, get :attr:`staging`, write their files to the places that it gives, and return
    a :class:`StagedFile` for each. Only the committer makes and removes the staging folder.
    """

    def __init__(self, staging: Staging, lock: StagingLock | None) -> None:
        self.staging = staging
        self._lock = lock

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
        for folder in _recovered(target):
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
    ) -> list[str]:
        """Put the files into their places, and take away those that they replace, whose paths are returned.

        All of the new files become visible, or none (see the module's text). ``fsync``: flush the folders to disk, so
        that the commit is still there after a power cut. ``summaries`` is told the paths of the files that stay, and
        makes more files: no other write changes the folder meanwhile. ``sources``: the files to replace,
        instead of the ones that the mode names.

        Raises :class:`TargetExistsError` where a file has a new one's name or, for mode ``"error"``, where the folder
        has been filled meanwhile, :class:`ChangedFileError` where one of the ``sources`` has changed.
        """
        staging = self.staging
        reached("staged")
        with locked_folder(staging.target):
            if not os.path.isdir(os.path.join(staging.folder, "new")):
                raise staging.gone()
            if self._lock is None:
                self._lock = StagingLock(staging.folder)
            _recovered(staging.target)  # another write that was half done is completed first
            record = self._planned(files, summaries, sources)
            staged = [os.path.join(staging.folder, "new", name) for name, _ in record.new]
            ours = {path: Identity.at(path) for path in staged}
            try:
                prepare_record(staging.folder, record)
                reached("record written")
                publish_record(staging.folder)
                reached("recorded")
                _move(staging.target, staging.folder, record, only_as_read=sources is not None)
                if fsync:
                    _sync_folders(staging.target, record)
            except BaseException as error:
                _undo(staging.target, staging.folder, record, ours, error)
                raise
            try:
                with tidying(staging.target):
                    _end(staging.target, staging.folder, record)
            finally:
                self._release()
        return [file.path for file in record.old if not is_hidden(os.path.basename(file.path))]

    def has_data(self) -> bool:
        """Whether the folder has data files already."""
        return bool(data_files(self.staging.target))

    def note_success(self, name: str) -> None:
        """An empty file that tells other tools that the folder is complete."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        with tidying(self.staging.target):
            os.close(os.open(os.path.join(self.staging.target, name), flags, 0o666))

    def abort(self) -> None:
        """Give the write up: its files are removed, and nothing else has changed. It does nothing after a commit or
        when called again."""
        staging = self.staging
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
            old = data_files(target, {partition_of(os.path.dirname(file.path).split(os.sep)) for file in files})
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
            tuple(OldFile.of(target, path, str(k)) for k, path in enumerate(old)),
            tuple((os.path.basename(file.staged), file.path) for file in files),
        )


def recover_dataset(path: Any, *, storage_options: Mapping[str, Any] | None = None, filesystem: Any = None) -> int:
    """Clean up after writes to the folder ``path`` (a path or URL) that crashed; returns how many there were.

    A write that had reached its commit record is completed, any other is undone. Writes that are under way are left
    alone. The next :func:`pyparq.write_dataset` to a local folder does the same.

    On a store it cannot be seen whether a write is under way. There the write that has left its marker is ended, so
    call this when no program writes to the folder. A program that still does raises :class:`WriteConflictError` at its
    end, and its files do not count. Staging folders of Spark jobs go when nothing in them has changed for a day.
    ``storage_options``: options for the file system of a URL. ``filesystem``: a file system of fsspec or pyarrow or a
    store of obstore, on which paths are; or ``"obstore"`` or ``"fsspec"``, by which URLs are opened (docs/urls.md).

    Raises ``OSError`` as the operating system does, :class:`CorruptFileError` for a commit record or marker that is
    damaged, or leads out of the folder, and :class:`WriteConflictError` where a program on a store ends its write at
    this moment, or another one keeps the lock of the folder.

    Example::

        print(pyparq.recover_dataset("flights"))      # 0: no write has crashed
    """
    path, storage_options = on_system(path, filesystem, storage_options)
    where = os.fsdecode(path)
    if is_url(where):
        return recover_on_store(where, storage_options)
    target = os.path.realpath(local_path(where) or where)
    if not staging_folders(target) and not os.path.lexists(os.path.join(target, FOLDER_LOCK)):
        return 0  # in a folder that cannot be written to, too
    with locked_folder(target):
        return len(staging_folders(target)) - len(_recovered(target))


def complete_writes(path: Any) -> None:
    """As :func:`recover_dataset`, for a job that is about to replace files of the folder ``path``, if it is local."""
    where = os.fsdecode(path)
    if not is_url(where) and os.path.isdir(local_path(where) or where):
        recover_dataset(local_path(where) or where)


def _recovered(target: str) -> list[str]:
    """Complete or remove crashed writes. Returns the staging folders of writes that are under way."""
    alive = []
    for folder in staging_folders(target):
        if is_abandoned(folder):
            _complete(target, folder, read_record(folder))
        else:
            alive.append(folder)
    return alive


def _complete(target: str, folder: str, record: Record | None) -> None:
    """Complete a crashed commit, or remove the rest of a write that had not begun to commit."""
    if record is not None:
        _move(target, folder, record, completing=True)
        _end(target, folder, record)
    remove_staging(folder)


def complete_crashed(target: str, paths: Container[str], has_lock: bool) -> None:
    """Complete commits to the folder ``target`` that have crashed and take away one of the files ``paths``.

    ``has_lock``: the caller has the lock of the folder. Otherwise another program may be completing them. Raises
    :class:`ChangedMeanwhile` then, and where such a commit is under way, :class:`CorruptFileError` for a record that is
    damaged.
    """
    for folder in staging_folders(target):
        record = read_record(folder)
        for old in record.old if record is not None else ():
            path = os.path.join(target, old.path)
            if path in paths and old.is_at(path):
                if not has_lock or not is_abandoned(folder):
                    raise ChangedMeanwhile("a write to its folder takes the file away just now: try again", file=path)
                _complete(target, folder, record)
                break


# ---- moving files --------------------------------------------------------------------------------------------------


def _steps(target: str, folder: str, record: Record) -> Iterator[tuple[OldFile | None, str, str]]:
    """The renames of a commit: the old file that is moved aside (``None`` for a new file), its path, and its new
    path."""
    for file in record.old:
        yield file, os.path.join(target, file.path), os.path.join(folder, "old", file.name)
    for name, path in record.new:
        yield None, os.path.join(folder, "new", name), os.path.join(target, path)


def _move(target: str, folder: str, record: Record, *, completing: bool = False, only_as_read: bool = False) -> None:
    """Do all renames that are not done yet. ``completing``: the commit was interrupted by a crash. ``only_as_read``:
    the new files were made from the old ones, so no newer file may be removed."""
    for old, source, place in _steps(target, folder, record):
        _check_step(target, folder, source if old is not None else place)
        if old is not None:
            if not _move_aside(old if completing or only_as_read else None, source, place):
                _is_another(source, completing)
        elif os.path.islink(source):
            raise leads_out(folder, os.path.relpath(source, target))
        elif os.path.lexists(source):
            os.makedirs(os.path.dirname(place), exist_ok=True)
            if not rename_new(source, place):
                _taken(place, completing)
        elif not os.path.lexists(place):
            _missing(folder, place, completing)
        reached("placed" if old is None else "moved aside")


def _check_step(target: str, folder: str, path: str) -> None:
    """Before each step, because a step may put a link into the way of the next one."""
    inner = os.path.relpath(path, target)
    if not stays_inside(target, inner):
        raise leads_out(folder, inner)


def _move_aside(expected: OldFile | None, source: str, place: str) -> bool:
    """Move an old file aside, under its lock. A program that is about to replace it then finds that it is gone.

    ``expected``: the only file that may be moved. ``False`` if another file has the name; it stays.
    """
    if os.path.lexists(place):
        return True  # done before the crash; a file with its name is a new one
    with locked_name(source):
        if not os.path.lexists(source):
            return True
        if expected is not None and not expected.is_at(source):
            return False
        os.rename(source, place)
        # Programs without locks may have been faster.
        return expected is None or expected.was_moved_to(place) or not rename_new(place, source)


def _is_another(path: str, completing: bool) -> None:
    """Another program has written to an old file, or has put another file in its place."""
    if not completing:
        raise ChangedMeanwhile(
            "the file has changed since this job read it, so nothing is replaced: run the job again", file=path
        )
    warn_caller(f"{path} was written after the write that is completed here: it stays")


def _taken(place: str, completing: bool) -> None:
    """Another program has put a file of its own under a new file's name."""
    if not completing:
        raise TargetExistsError("a file of this name is there already", file=place)
    warn_caller(f"{place} was written after the write that is completed here: it stays")


def _missing(folder: str, place: str, completing: bool) -> None:
    """A new file is neither in staging nor in its place."""
    if not completing:
        raise WriteConflictError(
            f"a new file has gone, so the commit cannot be completed. Remove {folder} to give it up", file=place
        )
    warn_caller(f"{place} was removed after it was written: it stays removed")


def _undo(target: str, folder: str, record: Record, ours: Mapping[str, Identity | None], error: BaseException) -> None:
    """Undo the renames after ``error``.

    If even that fails, the error says what happens to the write. If another program has already worked on a new file,
    undoing would lose its work or leave the file's rows alone. Then the write is completed instead.
    """
    try:
        if _touched(target, folder, record, ours):
            _move(target, folder, record, completing=True)
            _end(target, folder, record)
            error.add_note(f"The write to {target} is committed. Do not repeat it.")
        else:
            _move_back(target, folder, record, ours)
    except BaseException:
        error.add_note(
            f"The write to {target} is half done. Do not repeat it: pyparq.recover_dataset() or the next write to the "
            "folder completes it."
        )
        raise


def _touched(target: str, folder: str, record: Record, ours: Mapping[str, Identity | None]) -> bool:
    """Whether another program has changed or removed a new file that was placed."""
    for old, source, place in _steps(target, folder, record):
        placed = old is None and ours[source] is not None and not os.path.lexists(source)
        if placed and Identity.at(place) != ours[source]:
            return True
    return False


def _move_back(target: str, folder: str, record: Record, ours: Mapping[str, Identity | None]) -> None:
    """Undo the renames that were done, in reverse order, and then remove the record. ``ours``: the new files by their
    names in staging. A file that another program has put in their place stays."""
    for old, source, place in reversed(list(_steps(target, folder, record))):
        if old is not None:
            if os.path.lexists(place):
                rename_new(place, source)
        elif not os.path.lexists(source):
            with locked_name(place):
                if ours[source] is not None and Identity.at(place) == ours[source]:
                    os.rename(place, source)
        reached("moved back")
    _remove_emptied(target, [path for _, path in record.new])
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, RECORD))


def _end(target: str, folder: str, record: Record) -> None:
    """Finish: all files are in place. The record is removed first, then everything that it needed."""
    os.unlink(os.path.join(folder, RECORD))
    reached("record removed")
    remove_staging(folder)
    _remove_emptied(target, [file.path for file in record.old])
    reached("ended")


def _remove_emptied(target: str, paths: Iterable[str]) -> None:
    """Remove folders within ``target`` that have become empty."""
    for folder in {os.path.dirname(path) for path in paths}:
        inner = folder
        with suppress(OSError):  # not empty
            while inner and stays_inside(target, inner):
                os.rmdir(os.path.join(target, inner))
                inner = os.path.dirname(inner)


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


def _sync_folders(target: str, record: Record) -> None:
    for folder in sorted({os.path.dirname(path) for _, path in record.new}):
        while folder:
            sync_folder(os.path.join(target, folder))
            folder = os.path.dirname(folder)
    sync_folder(target)


@contextmanager
def plain_names(target: str) -> Iterator[None]:
    """``OSError`` names the target folder and not the temporary one."""
    try:
        yield
    except OSError as error:
        if isinstance(error.filename, str) and "_pyparq_staging-" in error.filename:
            error.filename = target
            del error.filename2
        raise


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


# ---- changes in place ------------------------------------------------------------------------------------------------


@contextmanager
def without_crashed_commits(path: str) -> Iterator[None]:
    """Hold the locks of the folders whose commits may remove the local file ``path``, and complete crashed commits
    there.

    These are the file's folder and the folders above it, as far as they are partitions. Raises
    :class:`ChangedMeanwhile` if such a commit is under way, :class:`CorruptFileError` for a damaged commit record, and
    ``OSError`` as the operating system does.
    """
    paths = {os.path.abspath(path), os.path.realpath(path)}
    with ExitStack() as held:
        for folder in dict.fromkeys(folder for name in sorted(paths) for folder in _folders(name)):
            try:
                has_lock = held.enter_context(locked_folder(folder, patient=False))
            except OSError:  # not readable, so this user cannot commit there either
                continue
            complete_crashed(folder, paths, has_lock)
        yield


def _folders(path: str) -> Iterator[str]:
    folder = os.path.dirname(path)
    yield folder
    while "=" in os.path.basename(folder):
        folder = os.path.dirname(folder)
        yield folder


def found_to_change(
    source: Any, storage_options: Mapping[str, Any] | None = None, retry: Retry | None = None
) -> SourceFiles:
    """The files of a source that are about to be changed in place. Crashed writes there are completed first, because
    the old files of a commit must not be changed.

    Raises :class:`ChangedMeanwhile` while a program commits a write there, and the errors of
    :func:`pyparq.datasets.discovery.discover`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnfinishedWriteWarning)
        found = discover(source, storage_options, retry)
        if found.store_writes:
            target = found.store_writes[0].target
            raise ChangedMeanwhile(
                f"a write to the folder has not ended. If no program writes there, pyparq.recover_dataset({target!r}) "
                "ends it",
                file=target,
            )
        if not found.unfinished:
            return found
        for folder in {commit.target for commit in found.unfinished}:
            recover_dataset(folder)
        found = discover(source, storage_options, retry)
    if found.unfinished:
        raise ChangedMeanwhile(
            "another program is putting new files into their places: try again", file=found.unfinished[0].target
        )
    return found
