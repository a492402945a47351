"""Replaces a file by a new one that was made from it.

Other programs can write while a file is worked on. So the new file replaces the file that was read, and no other
(:mod:`pyparq.io.atomic_write`). If two runs change a file at once, the later one notices, and starts again with the new
file. Files beside it that become stale are removed afterwards.
"""

from __future__ import annotations

import os
import stat
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any

from pyparq.datasets.data_files import DataFile, SourceFiles
from pyparq.datasets.discovery import discover
from pyparq.datasets.write.commit import recover_dataset
from pyparq.datasets.write.folder_commit import complete_crashed
from pyparq.errors import ChangedFileError, ChangedMeanwhile, OptionError, ParquetError, UnfinishedWriteWarning
from pyparq.io.atomic_write import Expected
from pyparq.io.byte_ranges import Source
from pyparq.io.file_lock import Identity, has_locks, locked_folder, locked_name
from pyparq.io.object_file import ObjectFile
from pyparq.io.remote_file import RemoteFile
from pyparq.io.retry import Retry
from pyparq.io.sink import LocalSink, replace_only
from pyparq.io.source import LocalFile
from pyparq.io.table_formats import Known, managed_by, managed_on, managed_on_each
from pyparq.io.url import is_url, local_path, shown
from pyparq.options import ReadOptions
from pyparq.read.footers.open_file import OpenFile, open_file

SUMMARY = "_metadata"


def remove_stale(path: str) -> list[str]:
    """Remove files beside ``path`` that are wrong now that it was replaced.

    Returns notes about what was removed and what could not be removed. The new file is in place, so a failure here is
    no error.
    """
    real = os.path.realpath(path)
    notes = []
    for remove, paths in ((remove_checksums, (path, real)), (remove_summaries, (real,))):
        try:
            notes += remove(*paths)
        except OSError as error:
            notes.append(f"could not remove {error.filename}, which is of the old file ({error.strerror}): remove it")
    return notes


def remove_checksums(*paths: str) -> list[str]:
    """Remove Hadoop's ``.NAME.crc`` beside each of these files: with the old checksum, Spark refuses the new file.
    Returns notes about it."""
    notes = []
    for path in dict.fromkeys(paths):
        folder, name = os.path.split(path)
        stale = os.path.join(folder, f".{name}.crc")
        with suppress(FileNotFoundError):
            os.unlink(stale)
            notes.append(f"removed {stale}, the checksum of the old file")
    return notes


def remove_summaries(path: str) -> list[str]:
    """Remove ``_metadata`` files with a copy of the file's old footer, from its folder and the folders above it that
    are partitions. Returns notes about it."""
    notes = []
    folder = os.path.dirname(os.path.abspath(path))
    while True:
        summary = os.path.join(folder, SUMMARY)
        if os.path.isfile(summary) and os.path.basename(path) != SUMMARY and _names(summary, folder, path):
            os.unlink(summary)
            notes.append(f"removed {summary}, which held the old footer")
        if "=" not in os.path.basename(folder):
            return notes
        folder = os.path.dirname(folder)


def _names(summary: str, folder: str, path: str) -> bool:
    """Whether a summary describes the file. An unreadable one does not."""
    try:
        file = open_file(summary, ReadOptions())
    except (ParquetError, OSError):
        return False
    try:
        return any(_is(file, k, folder, path) for k in range(file.num_row_groups))
    finally:
        file.close()


def _is(file: OpenFile, row_group: int, folder: str, path: str) -> bool:
    try:
        named = file.raw_chunk(row_group, file.tree.leaves[0]).file_path if file.tree.leaves else None
    except ParquetError:
        return False
    if not named:
        return False
    with suppress(OSError, ValueError):
        return os.path.samefile(os.path.join(folder, named), path)
    return False


class InPlace:
    """The local file at ``path``, opened to be replaced. ``path`` may be a symbolic link; the link stays."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.real = os.path.realpath(path)
        self.source = LocalFile(path)
        status = os.fstat(self.source.fileno())
        if not stat.S_ISREG(status.st_mode):
            self.close()
            raise OptionError("only a regular file can be replaced in place: give a target", file=path)
        self.identity = Identity.of(status)
        self.other_names = status.st_nlink - 1
        """Hard links beside this name: they keep the old file."""

    def commit(self, sink: LocalSink) -> list[str]:
        """Replace the file by the contents of ``sink``. Returns notes about other files that were removed.

        Raises :class:`ChangedMeanwhile` if the file is no longer the one that was read.
        """
        self.check()
        if not has_locks():  # Windows, which replaces no file that is open
            self.close()
        replace_only(sink, expected_file(self.identity, self.path))
        sink.commit()
        notes = remove_stale(self.path)
        if self.other_names:
            names = "1 other name" if self.other_names == 1 else f"{self.other_names} other names"
            notes.append(f"the old file has {names} (hard links), which keep it as it was")
        return notes

    def remove(self) -> list[str]:
        """Remove the file. Returns notes about other files that were removed.

        Raises :class:`ChangedMeanwhile` if the file is no longer the one that was read.
        """
        with without_crashed_commits(self.path), locked_name(self.real):
            self.check()
            os.unlink(self.real)
        return remove_stale(self.path)

    def check(self) -> None:
        """Raise :class:`ChangedMeanwhile` unless the name still refers to the opened file, unchanged."""
        self.identity.check(self.real)

    def close(self) -> None:
        self.source.close()


def expected_file(identity: Identity, path: str) -> Expected:
    """Allow to replace the file at ``path`` only if it is still this file, and no crashed write is about to remove
    it."""
    return Expected(identity, partial(without_crashed_commits, path))


def identity_of(target: Any) -> Identity | None:
    """The identity of an existing local file. ``None`` for any other target."""
    path = local_file(target)
    try:
        return None if path is None else Identity.at(path)
    except OSError:
        return None


def is_same_file(source: Any, target: Any) -> bool:
    """Whether both are local paths of one file. If one file is gone, its path decides."""
    path, other = local_file(source), local_file(target)
    if path is None or other is None:
        return False
    try:
        return os.path.samefile(path, other)
    except OSError:
        return os.path.realpath(path) == os.path.realpath(other)


def is_same_object(file: DataFile, target: Any) -> bool:
    """Whether a file of a dataset is the object in a store that ``target`` names."""
    where = file.where
    if isinstance(target, ObjectFile) and isinstance(where, ObjectFile):
        return (where.path, where.name) == (target.path, target.name)
    return is_url(target) and file.name == shown(target)


def replaced_source(own: Identity | None, target: Any) -> Expected:
    """Check ``own``, the state of ``target`` before its rows were read: only this file may be replaced by the result.

    Raises :class:`ChangedMeanwhile` if there was no file then: which one was read is not known.
    """
    if own is None:
        raise ChangedMeanwhile("the file was made while it was read. Nothing was written: try again", file=str(target))
    return expected_file(own, local_file(target) or str(target))


def local_file(source: Any) -> str | None:
    """The path of a local file; ``None`` for anything else."""
    if not isinstance(source, (str, os.PathLike)):
        return None
    path = os.fsdecode(os.fspath(source))
    return None if is_url(path) else local_path(path) or path


_INSTEAD = "Give a target to write a copy"


def check_not_managed(path: str, force: bool, instead: str = _INSTEAD) -> None:
    """Raise :class:`OptionError` for a file of a table format, unless ``force``. ``instead``: what to do, for the
    message."""
    if force:
        return
    managed = managed_by(os.path.dirname(os.path.realpath(path)) or ".")
    if managed is not None:
        raise _refusal(path, *managed, instead)


def check_not_managed_remotely(file: RemoteFile, force: bool, known: Known) -> None:
    """The same for a file on another file system. ``known``: what its folders have been asked for."""
    if force:
        return
    fs, path = file.place
    managed = managed_on(fs, path.rpartition("/")[0], known)
    if managed is not None:
        raise _refusal(file.name, *managed)


def ask_whether_managed(places: Iterable[tuple[Any, str]], known: Known) -> None:
    """Ask for the folders of many files at once. ``places``: their file systems and paths. ``known`` then has the
    answers."""
    folders = dict[int, tuple[Any, dict[str, None]]]()
    for fs, path in places:
        folders.setdefault(id(fs), (fs, {}))[1][path.rpartition("/")[0]] = None
    for fs, paths in folders.values():
        managed_on_each(fs, paths, known)


def _refusal(path: str, format_: str, table: str, instead: str = _INSTEAD) -> OptionError:
    return OptionError(
        f"the file belongs to a table of {format_} ({table}), whose log records the sizes of its files. "
        f"{instead.format(table=table)}, or force=True to replace it all the same",
        file=path,
    )


def state_of(source: Source) -> tuple[Any, ...]:
    """The state of a local file, which changes with its contents as far as can be known."""
    if not isinstance(source, LocalFile):
        return ()
    status = os.fstat(source.fileno())
    return status.st_size, status.st_mtime_ns, status.st_ino, status.st_ctime_ns


def check_unchanged(source: Source, before: tuple[Any, ...]) -> None:
    """Raise :class:`ChangedFileError` for a file that has changed since its state was ``before``, or it was opened."""
    if isinstance(source, RemoteFile):
        source.check_now()
    elif state_of(source) != before:
        raise ChangedFileError("the file was written to while it was read: try again")


# ---- crashed commits: one that is about to remove a file is completed before the file is changed


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
