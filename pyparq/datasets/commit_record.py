"""The commit record: the files that a commit removes, and the files that it puts in place.

It is written before the first file is moved, so that a commit can be completed after a crash. Other programs may write
to the folder between the crash and the completion. So the record identifies each old file by its size, its modification
time and its inode. Another file of the same name is not removed.

A folder that comes from elsewhere may hold a record that no commit has written. No record leads out of its folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

from pyparq.datasets.file_state import local_state
from pyparq.datasets.staging import PREFIX, RECORD, own_text, stays_inside
from pyparq.errors import CorruptFileError
from pyparq.io.atomic_write import sync_folder


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
    moved = found.get("folder") not in (None, inode)
    old = tuple(_old_file(entry, path, moved) for entry in _list(found.get("old"), path))
    new = tuple(_new_file(entry, path) for entry in _list(found.get("new"), path))
    record, target = Record(old, new), os.path.dirname(folder) or os.curdir
    if any(os.path.islink(os.path.join(folder, inner)) for inner in ("old", "new")):
        raise _damaged(path)
    for inner in {os.path.dirname(inner): inner for inner in record.paths()}.values():
        if not stays_inside(target, inner):
            raise leads_out(folder, inner)
    return record


def _list(given: Any, path: str) -> list[Any]:
    if not isinstance(given, list) or not all(isinstance(entry, list) for entry in given):
        raise _damaged(path)
    return given


def _old_file(entry: list[Any], path: str, moved: bool) -> OldFile:
    """``moved``: the folder is a copy, in which files have other inodes than in the record."""
    inner, name = _names(entry[:2], path)
    _check(inner, name, path)
    numbers = entry[2:]
    if not numbers:
        return OldFile(inner, name)
    if len(numbers) != 3 or not all(type(number) is int for number in numbers):
        raise _damaged(path)
    size, changed, inode = numbers
    return OldFile(inner, name, (size, changed, None if moved else inode))


def _new_file(entry: list[Any], path: str) -> tuple[str, str]:
    name, inner = _names(entry, path)
    _check(inner, name, path)
    return name, inner


def _names(entry: list[Any], path: str) -> tuple[str, str]:
    if len(entry) != 2 or not all(isinstance(name, str) for name in entry):
        raise _damaged(path)
    return entry[0], entry[1]


def _check(inner: str, name: str, path: str) -> None:
    """Check that both paths stay inside their folders."""
    names = inner.split(os.sep)
    plain = os.path.normpath(inner) == inner and not os.path.isabs(inner) and names[0] not in (os.curdir, os.pardir)
    if not plain or names[0].startswith(PREFIX) or os.path.basename(name) != name or name in ("", ".", ".."):
        raise leads_out(os.path.dirname(path), inner)


def _damaged(path: str) -> CorruptFileError:
    return CorruptFileError("the commit record is damaged", file=path)
