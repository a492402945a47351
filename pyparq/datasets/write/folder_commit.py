"""The steps of a commit to a local folder, and how they are undone and completed.

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

import os
from collections.abc import Container, Iterable
from contextlib import suppress

from pyparq.datasets.kept_files import RECORD, keep, note_kept
from pyparq.datasets.staging import (
    OldFile,
    Record,
    is_abandoned,
    leads_out,
    prepare_record,
    publish_record,
    read_record,
    remove_staging,
    staging_folders,
    stays_inside,
)
from pyparq.errors import ChangedMeanwhile, TargetExistsError, WriteConflictError
from pyparq.io.atomic_write import rename_new, sync_folder, take_over
from pyparq.io.file_lock import Identity, locked_name
from pyparq.runtime.messages import warn_caller


def reached(step: str) -> None:
    """Called after each step of a commit with its name. Does nothing; tests end the process here."""


class FolderCommit:
    """What a record says, done to the folder ``target`` from the staging folder ``folder``."""

    def __init__(self, target: str, folder: str, record: Record) -> None:
        self._target = target
        self._folder = folder
        self._record = record
        self._ours = {source: Identity.at(source) for old, source, _ in self._steps() if old is None}
        """The new files in staging."""

    def carry_out(self, *, only_as_read: bool, fsync: bool) -> None:
        """Put the files into their places; an error undoes it. ``only_as_read``: the new files were made from the old
        ones, so no newer file may be removed. ``fsync``: flush the folders to disk."""
        try:
            if fsync:
                sync_folder(os.path.join(self._folder, "new"))  # a record must not outlive the files that it names
            prepare_record(self._folder, self._record)
            reached("record written")
            publish_record(self._folder)
            reached("recorded")
            self._move(only_as_read=only_as_read)
            if fsync:
                self._sync()
        except BaseException as error:
            self._undo(error)
            raise

    def complete(self) -> None:
        """Carry on where a crash has interrupted it."""
        self._move(completing=True)
        self.end()

    def end(self, keep_old: float = 0) -> None:
        """Finish: all files are in place. The record is removed first, then everything that it needed. ``keep_old``:
        the seconds for which the old files stay (:mod:`pyparq.datasets.kept_files`)."""
        is_kept = bool(keep_old and self._record.old)
        if is_kept:  # before the record goes: readers find the files by either
            note_kept(self._folder, {file.path: file.name for file in self._record.old}, keep_old)
        os.unlink(os.path.join(self._folder, RECORD))
        reached("record removed")
        if is_kept:
            keep(self._folder, self._target)
        remove_staging(self._folder)
        self._remove_emptied(file.path for file in self._record.old)
        reached("ended")

    def _steps(self) -> list[tuple[OldFile | None, str, str]]:
        """The renames: the old file that is moved aside (``None`` for a new file), its path, and its new path."""
        found: list[tuple[OldFile | None, str, str]] = []
        for file in self._record.old:
            found.append((file, os.path.join(self._target, file.path), os.path.join(self._folder, "old", file.name)))
        for name, path in self._record.new:
            found.append((None, os.path.join(self._folder, "new", name), os.path.join(self._target, path)))
        return found

    def _move(self, *, completing: bool = False, only_as_read: bool = False) -> None:
        """Do all renames that are not done yet."""
        aside = {file.path: os.path.join(self._folder, "old", file.name) for file in self._record.old}
        for old, source, place in self._steps():
            # Before each step, because a step may put a link into the way of the next one.
            inner = (place if old is None else source)[len(self._target) :].lstrip(os.sep)
            if not stays_inside(self._target, inner):
                raise leads_out(self._folder, inner)
            if old is None:
                if inner in aside and not os.path.islink(source):
                    take_over(source, aside[inner])
                self._put(source, place, completing)
            elif not _move_aside(old if completing or only_as_read else None, source, place):
                _leave(source, completing, ChangedMeanwhile(
                    "the file has changed since this job read it, so nothing is replaced: run the job again",
                    file=source,
                ))  # fmt: skip
            reached("placed" if old is None else "moved aside")

    def _put(self, source: str, place: str, completing: bool) -> None:
        """Give a new file its name. Another program may have put a file of its own there, or have removed this one."""
        if os.path.islink(source):
            raise leads_out(self._folder, os.path.relpath(source, self._target))
        if os.path.lexists(source):
            os.makedirs(os.path.dirname(place), exist_ok=True)
            if not rename_new(source, place):
                _leave(place, completing, TargetExistsError("a file of this name is there already", file=place))
        elif not os.path.lexists(place):
            text = f"a new file has gone, so the commit cannot be completed. Remove {self._folder} to give it up"
            _leave(place, completing, WriteConflictError(text, file=place))

    def _sync(self) -> None:
        for folder in sorted({os.path.dirname(path) for _, path in self._record.new}):
            while folder:
                sync_folder(os.path.join(self._target, folder))
                folder = os.path.dirname(folder)
        sync_folder(self._target)

    def _undo(self, error: BaseException) -> None:
        """Undo the renames after ``error``.

        If even that fails, the error says what happens to the write. If another program has already worked on a new
        file, undoing would lose its work or leave the file's rows alone. Then the write is completed instead.
        """
        try:
            if self._is_touched():
                self.complete()
                error.add_note(f"The write to {self._target} is committed. Do not repeat it.")
            else:
                self._move_back()
        except BaseException:
            error.add_note(
                f"The write to {self._target} is half done. Do not repeat it: pyparq.recover_dataset() or the next "
                "write to the folder completes it."
            )
            raise

    def _is_touched(self) -> bool:
        """Whether another program has changed or removed a new file that was placed."""
        for old, source, place in self._steps():
            ours = self._ours.get(source)
            if old is None and ours is not None and not os.path.lexists(source) and Identity.at(place) != ours:
                return True
        return False

    def _move_back(self) -> None:
        """Undo the renames that were done, in reverse order, and then remove the record. A file that another program
        has put in their place stays."""
        for old, source, place in reversed(self._steps()):
            if old is not None:
                if os.path.lexists(place):
                    rename_new(place, source)
            elif not os.path.lexists(source):
                with locked_name(place):
                    if self._ours[source] is not None and Identity.at(place) == self._ours[source]:
                        os.rename(place, source)
            reached("moved back")
        self._remove_emptied(path for _, path in self._record.new)
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(self._folder, RECORD))

    def _remove_emptied(self, paths: Iterable[str]) -> None:
        """Remove folders within the target that have become empty."""
        for inner in {os.path.dirname(path) for path in paths}:
            with suppress(OSError):  # not empty
                while inner and stays_inside(self._target, inner):
                    os.rmdir(os.path.join(self._target, inner))
                    inner = os.path.dirname(inner)


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


def _leave(path: str, completing: bool, error: Exception) -> None:
    """Another program has written or removed the file: that is as it should be for a commit that was interrupted, and
    an error for any other."""
    if not completing:
        raise error
    done = "was written after the write that is completed here: it stays"
    if isinstance(error, WriteConflictError):
        done = "was removed after it was written: it stays removed"
    warn_caller(f"{path} {done}")


# ---- after a crash -------------------------------------------------------------------------------------------------


def recovered(target: str) -> list[str]:
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
        FolderCommit(target, folder, record).complete()
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
