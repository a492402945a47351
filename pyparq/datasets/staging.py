"""The staging folder of a write: where new files wait until the whole set is complete.

It lies in the target folder and is called ``_pyparq_staging-<id>``, a name that readers of datasets pass over. Its
files end in ``.inprogress``, so that globs for ``*.parquet`` do not take them for data either. Contents::

    staging.json     what the write is (:class:`Staging`)
    lock             locked (``flock``) as long as the writing process lives
    new/             new files, complete or not
    old/             replaced files, between the commit and its end
    commit.json      the commit record: from here on the write counts (:mod:`pyparq.datasets.write.commit`)

The record says which files a commit removes, and which it puts in place. It is written before the first file is moved,
so that a commit can be completed after a crash. Other programs may write to the folder between the crash and the
completion. So the record identifies each old file by its size, its modification time and its inode. Another file of the
same name is not removed. A folder that comes from elsewhere may hold a record that no commit has written. No record
leads out of its folder.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Self

from pyparq.datasets.kept_files import OWN, PREFIX, RECORD, local_state, own_text
from pyparq.errors import CorruptFileError, WriteConflictError
from pyparq.io.atomic_write import sync_folder
from pyparq.io.file_lock import HeldLock, has_locks, lock

SUFFIX = ".inprogress"
_ABOUT = "staging.json"
_LOCK = "lock"
QUIET_SECONDS = 24 * 3600
"""Without locks, a staging folder in which nothing has changed for this long is abandoned."""


@dataclass(frozen=True, slots=True)
class Staging:
    """A write that is under way. It can be pickled, so that tasks in other processes can write their files."""

    target: str
    """The folder that is written to."""
    folder: str
    """The staging folder."""
    mode: str
    """``"error"``, ``"append"``, ``"overwrite"``, ``"overwrite_partitions"`` or ``"overwrite_files"``."""
    made: tuple[str, ...] = ()
    """Folders that this write has made, innermost first. They are removed if the write is given up."""
    detached: bool = False
    """Whether no process holds the lock before the commit, because the job starts and commits in different processes.
    Until then, the folder counts as abandoned if nothing in it has changed for a day."""

    def place(self, attempt: str, number: int) -> str:
        """The place where a task writes its file ``number``. ``attempt`` must differ between tasks and between their
        attempts.

        Raises :class:`WriteConflictError` if the staging folder is gone: the write was given up or has ended. Tasks
        never make the folder themselves.
        """
        folder = os.path.join(self.folder, "new")
        if not os.path.isdir(folder):
            raise self.gone()
        return os.path.join(folder, f"{attempt}-{number:05d}{SUFFIX}")

    def gone(self) -> WriteConflictError:
        return WriteConflictError(
            "the staging folder of this write is gone: the write was given up, or the folder was removed",
            file=self.target,
        )


def make_staging(staging: Staging) -> None:
    """Make the folder with its description, without the lock. A failure leaves nothing behind."""
    os.mkdir(staging.folder)
    try:
        for inner in ("new", "old"):
            os.mkdir(os.path.join(staging.folder, inner))
        about = {name: value for name, value in asdict(staging).items() if name != "folder"}
        with open(os.path.join(staging.folder, _ABOUT), "w", encoding="ascii") as file:
            json.dump(about, file)
    except BaseException:
        remove_staging(staging.folder)
        raise


def remove_staging(folder: str) -> None:
    """Remove the staging folder. Anything that cannot be removed stays, and the next write tries again."""
    shutil.rmtree(folder, ignore_errors=True)


def new_name() -> str:
    return PREFIX + secrets.token_hex(8)


def staging_folders(target: str) -> list[str]:
    """Paths of all staging folders in ``target``."""
    with os.scandir(target) as entries:
        return sorted(e.path for e in entries if e.name.startswith(PREFIX) and e.is_dir(follow_symlinks=False))


def mode_of(folder: str) -> str:
    """The mode of the write that a staging folder belongs to. Empty if it is not known."""
    return str(_about(folder).get("mode", ""))


def _about(folder: str) -> dict[str, Any]:
    try:
        found = json.loads(own_text(os.path.join(folder, _ABOUT)))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def stays_inside(target: str, path: str) -> bool:
    """Whether no folder on the way from ``target`` to ``path``, which is relative to it, is a link."""
    folders = path.split(os.sep)[:-1]
    found = (os.path.join(target, *folders[: k + 1]) for k in range(len(folders)))
    return not (os.path.isabs(path) or os.pardir in folders or any(map(os.path.islink, found)))


# ---- locks ---------------------------------------------------------------------------------------------------------


class StagingLock(HeldLock):
    """The lock of a staging folder. Raises :class:`WriteConflictError` where another process has it."""

    def __init__(self, folder: str) -> None:
        self.means_something = False
        """``False`` on systems without locks. Whether another process works on the folder is then unknown."""
        if not has_locks():
            os.stat(folder)  # raises the error that opening the file in it would raise
            return
        flags = os.O_RDWR | os.O_CREAT | OWN
        super().__init__(os.open(os.path.join(folder, _LOCK), flags, 0o666))
        try:
            self.means_something = lock(self._fd, wait=False)
        except BlockingIOError:
            self.release()
            raise WriteConflictError("another process works on this write", file=folder) from None


def is_abandoned(folder: str) -> bool:
    """Whether no process works on the write of a staging folder any more."""
    try:
        held = StagingLock(folder)
    except (WriteConflictError, PermissionError):
        return False
    except FileNotFoundError:  # removed in the meantime
        return True
    held.release()
    # During its commit, a detached write has a process that holds the lock, too.
    attached = not _about(folder).get("detached") or os.path.exists(os.path.join(folder, RECORD))
    if held.means_something and attached:
        return True
    return time.time() - _last_change(folder) > QUIET_SECONDS


def _last_change(folder: str) -> float:
    latest = 0.0
    for path in (os.path.join(folder, _ABOUT), os.path.join(folder, "new")):
        with suppress(OSError):
            latest = max(latest, os.stat(path).st_mtime)
    return latest


# ---- the commit record ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OldFile:
    """A file that a commit removes."""

    path: str
    """Relative to the target."""
    name: str
    """In the staging folder ``old/``."""
    state: tuple[int | None, int | None, int | None] | None = None
    """Size, mtime and inode when the commit began. Not the ctime: the renames of a commit that is undone change it.
    ``None`` in records of older versions."""

    @classmethod
    def of(cls, target: str, path: str, name: str) -> Self:
        found = local_state(os.path.join(target, path))
        return cls(path, name, None if found is None else found[:3])

    def is_at(self, path: str) -> bool:
        """Whether ``path`` is this file, unchanged."""
        now = local_state(path)
        return now is not None and (self.state is None or _same(now, self.state))

    def was_moved_to(self, path: str) -> bool:
        """Whether a rename has moved this file to ``path``.

        Some file systems give a renamed file another inode. A relative link no longer leads to its target there, but
        links are never written to.
        """
        now = None if os.path.islink(path) else local_state(path)
        return now is None or self.state is None or _same(now, (*self.state[:2], None))


@dataclass(frozen=True, slots=True)
class Record:
    """What a commit does: names in the staging folder, and paths relative to the target."""

    old: tuple[OldFile, ...]
    new: tuple[tuple[str, str], ...]
    """Name in ``new/``, and path."""

    def paths(self) -> Iterator[str]:
        """Of all files, relative to the target."""
        yield from (file.path for file in self.old)
        yield from (path for _, path in self.new)


def leads_out(folder: str, inner: str) -> CorruptFileError:
    """The error for a record of the staging ``folder`` that names the path ``inner``."""
    return CorruptFileError(
        f"the commit record names a file outside of the folder: {inner!r}. Remove {folder} to give the write up",
        file=os.path.join(folder, RECORD),
    )


def _same(now: Iterable[int | None], then: Iterable[int | None]) -> bool:
    return all(b is None or a == b for a, b in zip(now, then, strict=False))


def prepare_record(folder: str, record: Record) -> None:
    """Write the record to the staging ``folder`` under a name that does not count yet."""
    old = [[file.path, file.name, *(file.state or ())] for file in record.old]
    with open(os.path.join(folder, RECORD + ".new"), "w", encoding="ascii") as file:
        json.dump({"old": old, "new": record.new, "folder": os.stat(folder).st_ino}, file)
        file.flush()
        os.fsync(file.fileno())


def publish_record(folder: str) -> None:
    """Give the prepared record its final name, which survives a power cut. From here on the commit counts."""
    path = os.path.join(folder, RECORD)
    os.replace(path + ".new", path)
    sync_folder(folder)


def read_record(folder: str) -> Record | None:
    """The record of a staging folder. ``None`` if the commit had not come that far. Raises :class:`CorruptFileError`
    for a damaged record."""
    path = os.path.join(folder, RECORD)
    try:
        found = json.loads(own_text(path))
        inode = os.stat(folder).st_ino
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise _damaged(path)
    moved = found.get("folder") not in (None, inode)  # a copy, in which files have other inodes than in the record
    try:
        old = tuple(_old_file(*entry, moved=moved) for entry in found["old"])
        new = tuple((name, inner) for name, inner in found["new"])
    except (KeyError, TypeError, ValueError):
        raise _damaged(path) from None
    pairs = [*((file.name, file.path) for file in old), *new]
    if not all(isinstance(name, str) for pair in pairs for name in pair):
        raise _damaged(path)
    record, target = Record(old, new), os.path.dirname(folder) or os.curdir
    if any(os.path.islink(os.path.join(folder, inner)) for inner in ("old", "new")):
        raise _damaged(path)
    for name, inner in pairs:
        _check_inside(inner, name, folder)
    for inner in {os.path.dirname(inner): inner for inner in record.paths()}.values():
        if not stays_inside(target, inner):
            raise leads_out(folder, inner)
    return record


def _old_file(inner: str, name: str, *numbers: int, moved: bool) -> OldFile:
    """Raises ``ValueError`` for what no record holds."""
    if len(numbers) not in (0, 3) or any(type(number) is not int for number in numbers):
        raise ValueError(numbers)
    state = None if not numbers else (numbers[0], numbers[1], None if moved else numbers[2])
    return OldFile(inner, name, state)


def _check_inside(inner: str, name: str, folder: str) -> None:
    """Check that both paths of a file stay inside their folders."""
    names = inner.split(os.sep)
    plain = os.path.normpath(inner) == inner and not os.path.isabs(inner) and names[0] not in (os.curdir, os.pardir)
    if not plain or names[0].startswith(PREFIX) or os.path.basename(name) != name or name in ("", ".", ".."):
        raise leads_out(folder, inner)


def _damaged(path: str) -> CorruptFileError:
    return CorruptFileError("the commit record is damaged", file=path)
