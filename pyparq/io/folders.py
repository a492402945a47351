"""What lies in folders of a file system, and changes to it: all of it, or an error that names the folder.

fsspec's own ``find`` and ``glob`` take a folder that cannot be listed for an empty one, and its ``exists`` and
``isdir`` take a request that fails for a "no". Files would be lost without a word. So folders are listed here, one
level after the other, unless the file system lists all levels at once (:func:`pyparq.io.file_systems.lists_at_once`).

If the answer to a change is lost, it is unknown whether that was carried out. So each request here has the same result
when it is made twice: whole files under names of pyparq's own, copies, folders that may exist already, removals, and
renames of files that only pyparq knows.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from pyparq.errors import ChangedFileError, OptionError
from pyparq.io.file_systems import (
    alone,
    creates_at_once,
    is_concurrent,
    is_store,
    lists_at_once,
    takes_modes,
    takes_several,
)
from pyparq.io.http import content_on_s3, is_s3, replace_on_s3
from pyparq.io.retry import Retry, may_pass
from pyparq.io.url import cause_of, name_on, plain_errors
from pyparq.runtime.threads import REQUESTS, map_requests

A = TypeVar("A")
T = TypeVar("T")

Info = Mapping[str, Any]
"""What a file system says of one file or folder."""

MAGIC = re.compile(r"[*?\[]")
MOST_LEVELS = 200
"""Folders within each other."""


class Folders:
    """The folders of one file system. Paths are those of the file system, without its protocol.

    Listings are made anew, not taken from the file system's memory. A request that fails for the moment is made again
    (``retry``). One that fails for good raises an ``OSError`` about the folder, as :func:`plain_errors` has it.
    """

    def __init__(self, fs: Any, retry: Retry | None = None) -> None:
        self._fs = fs
        retry = retry or Retry()
        self._retry = retry.at_most(1) if is_s3(fs) or getattr(fs, "repeats", False) is True else retry

    def files(self, path: str, *, is_listed: bool = False) -> dict[str, Info]:
        """All files below a folder, by path; the file itself where ``path`` is one; none where nothing is there.

        ``is_listed``: the folder was seen in a listing.
        """
        self._fs.invalidate_cache()
        if lists_at_once(self._fs):
            try:
                found = self._asked(path, lambda: self._fs.find(path, detail=True))
            except FileNotFoundError:
                return {}
            return dict(found) if isinstance(found, Mapping) else {name: {} for name in found}
        if is_listed:
            return self._rest([self._within((posixpath.dirname(path), path))], path)
        found = self._below(path)
        if found is None:
            info = self._info(path)
            return {} if info is None or info.get("type") == "directory" else {path: info}
        return found

    def matching(self, pattern: str) -> dict[str, Info]:
        """The files and folders that a pattern matches, by path, in order. ``**`` stands for any number of folders."""
        self._fs.invalidate_cache()
        any_depth = "**" in pattern.split("/")
        by_level = is_store(self._fs) or (is_s3(self._fs) and not any_depth)  # s3fs else goes from folder to folder
        if lists_at_once(self._fs) and not by_level:
            return dict(self._asked(pattern, lambda: self._fs.glob(pattern, detail=True)))
        names = pattern.split("/")
        first = next((k for k, name in enumerate(names) if MAGIC.search(name)), len(names))
        root = "/".join(names[:first]) or ("/" if pattern.startswith("/") else "")
        if not any_depth:
            return dict(sorted(self._by_level(root, names[first:]).items()))
        found = self.files(root) if is_store(self._fs) else self._below(root) or {}
        below = {path: path[len(root) :].strip("/").split("/") for path in found}
        return {path: info for path, info in sorted(found.items()) if fits(below[path], names[first:])}

    def entries(self, path: str) -> list[Info]:
        """What lies in one folder. Raises ``FileNotFoundError`` where it is not there."""
        return self._asked(path, lambda: list(self._fs.ls(path, detail=True)))

    def content(self, path: str) -> bytes | None:
        """All bytes of a small file. ``None`` if it is not there."""
        try:
            return self._asked(path, lambda: self._all_of(path))
        except FileNotFoundError:
            return None

    def _all_of(self, path: str) -> bytes:
        if not (is_s3(self._fs) and is_concurrent(self._fs)):
            return bytes(self._fs.cat_file(path))
        from fsspec.asyn import sync

        data: bytes = sync(self._fs.loop, content_on_s3, self._fs, path)[0]  # s3fs lists folders for a missing object
        return data

    def info(self, path: str) -> Info | None:
        """The file system's current information about a path. ``None`` if nothing is there."""
        self._fs.invalidate_cache()
        return self._info(path)

    def is_folder(self, path: str) -> bool:
        """Whether it is a folder. A path that may not be read is none. Raises ``OSError`` if the file system does not
        answer."""
        ask = (
            (lambda: self._fs.isdir(path))
            if is_s3(self._fs) or is_store(self._fs)
            else (lambda: self._fs.info(path).get("type") == "directory")
        )
        try:
            return bool(self._retry.once(ask))
        except Exception as error:
            if not may_pass(error) and _is_answer(error):
                return False
            with self._plain_errors(path):
                raise

    def _info(self, path: str) -> Info | None:
        try:
            found: Info = self._asked(path, lambda: self._fs.info(path))
        except FileNotFoundError:
            return None
        return found

    def _asked(self, path: str, ask: Callable[[], T]) -> T:
        def alone_ask() -> T:
            with alone(self._fs):
                return ask()

        with self._plain_errors(path):
            return self._retry.once(alone_ask)

    def _plain_errors(self, path: str) -> Any:
        return plain_errors(name_on(self._fs, path), path, getattr(self._fs, "storage_options", None))

    # ---- level by level ----

    def _below(self, root: str) -> dict[str, Info] | None:
        """The files below a folder; ``None`` where ``root`` is no folder."""
        try:
            first = self.entries(root)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return self._rest([(root, first)], root)

    def _rest(self, level: list[tuple[str, list[Info]]], root: str) -> dict[str, Info]:
        """The files on a level, and on those below it."""
        found: dict[str, Info] = {}
        seen = {root.rstrip("/")}
        for _ in range(MOST_LEVELS):
            folders: list[tuple[str, str]] = []
            for folder, entries in level:
                for info in entries:
                    path = _path_of(info)
                    if info.get("type") != "directory":
                        found[path] = info
                    elif path not in seen:
                        seen.add(path)
                        folders.append((folder, path))
            if not folders:
                return found
            level = self._each(folders)
        raise OptionError(
            f"folders lie within each other on more than {MOST_LEVELS} levels", file=name_on(self._fs, root)
        )

    def _by_level(self, root: str, wanted: Sequence[str]) -> dict[str, Info]:
        """The files and folders whose names fit, level by level, below ``root``."""
        if not wanted:
            info = self._info(root)
            return {} if info is None else {root: info}
        try:
            level = [(root, self._first_level(root, wanted[0]))]
        except (FileNotFoundError, NotADirectoryError):
            return {}
        for name in wanted[:-1]:
            folders = [
                (folder, path) for folder, path, info in _fitting(level, name) if info.get("type") == "directory"
            ]
            level = self._each(folders)
        return {path: info for _, path, info in _fitting(level, wanted[-1])}

    def _first_level(self, root: str, wanted: str) -> list[Info]:
        """What lies in ``root``; of S3 only what begins as the pattern does."""
        stem = MAGIC.split(wanted, maxsplit=1)[0]
        if not (stem and root and is_s3(self._fs)):
            return self.entries(root)
        ask = {"maxdepth": 1, "withdirs": True, "detail": True, "prefix": stem}
        return list(self._asked(root, lambda: self._fs.find(root, **ask)).values())

    def _each(self, folders: Sequence[tuple[str, str]]) -> list[tuple[str, list[Info]]]:
        """What lies in each of the folders, which are given with those that they lie in."""
        return each_on(self._fs, self._within, folders)

    def _within(self, place: tuple[str, str]) -> tuple[str, list[Info]]:
        above, folder = place
        try:
            return folder, self.entries(folder)
        except FileNotFoundError:
            # It was listed a moment ago. If it has been removed since, the folder above says so too.
            self._fs.invalidate_cache()
            if any(_path_of(info) == folder for info in self.entries(above)):
                raise
            return folder, []


def each_on(fs: Any, function: Callable[[A], T], items: Sequence[A], most: int = REQUESTS) -> list[T]:
    """``[function(item) for item in items]``: up to ``most`` at a time where the file system takes several requests."""
    if len(items) > 1 and takes_several(fs):
        return map_requests(function, items, most)
    return [function(item) for item in items]


def _is_answer(error: BaseException) -> bool:
    """Whether the error is a real answer, rather than a failed request."""
    cause, status = cause_of(error)
    if status is not None:
        return status < 500
    return isinstance(cause, (FileNotFoundError, PermissionError, NotADirectoryError)) or not isinstance(cause, OSError)


def fits(names: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether a path fits a pattern, name by name; ``**`` stands for any number of names."""
    # Each step keeps the places of the pattern where the path may be, so that no pattern takes long.
    places = _passed({0}, wanted)
    for name in names:
        stepped = {k for k in places if k < len(wanted) and wanted[k] == "**"}
        stepped |= {k + 1 for k in places if k < len(wanted) and wanted[k] != "**" and fnmatchcase(name, wanted[k])}
        places = _passed(stepped, wanted)
    return len(wanted) in places


def _passed(places: set[int], wanted: Sequence[str]) -> set[int]:
    """With the places behind any ``**``, which may stand for no name at all."""
    found = set(places)
    for k in sorted(places):
        while k < len(wanted) and wanted[k] == "**":
            k += 1
            found.add(k)
    return found


def _fitting(level: Sequence[tuple[str, Sequence[Info]]], wanted: str) -> list[tuple[str, str, Info]]:
    """Folder, path and info of the entries that have a name which fits."""
    paths = [(folder, _path_of(info), info) for folder, entries in level for info in entries]
    return [
        (folder, path, info)
        for folder, path, info in paths
        if path != folder.rstrip("/") and fnmatchcase(posixpath.basename(path), wanted)
    ]


def _path_of(info: Info) -> str:
    return str(info["name"]).rstrip("/")


# ---- changes ---------------------------------------------------------------------------------------------------------


class Changes(Folders):
    """Folders that are changed. ``name`` is what messages call the file."""

    def __init__(self, fs: Any, storage_options: Mapping[str, Any] | None = None) -> None:
        super().__init__(fs)
        self._options = storage_options or getattr(fs, "storage_options", None)
        self._of_changes = self._retry.at_most(1) if is_store(fs) else self._retry

    def put(self, path: str, data: bytes, name: str) -> None:
        """A small file with these bytes."""
        self._changed(path, name, lambda: self._fs.pipe_file(path, data), in_folder=True)

    def create(self, path: str, data: bytes, name: str) -> bool:
        """A new small file with these bytes, which no other program writes. ``False`` if there is one already.

        One request decides where the store knows conditional writes. Other stores are asked before and after.
        """
        if not creates_at_once(self._fs) and self.content(path) is not None:
            return False
        options = {"mode": "create"} if takes_modes(self._fs) else {}
        # Where there is one, it may be our own: the answer to the first try may have been lost.
        with suppress(FileExistsError, ChangedFileError):
            self._changed(path, name, lambda: self._fs.pipe_file(path, data, **options), in_folder=True)
            if creates_at_once(self._fs):
                return True  # one that another program has put since is seen before this write counts
        return self.content(path) == data

    def replace(self, path: str, before: bytes, data: bytes, name: str) -> bool:
        """Put other bytes into a small file that holds ``before``. ``False`` if it holds others.

        One request decides on S3, and by obstore. Other stores are asked before and after.
        """
        if is_store(self._fs) and self._fs.is_odd(path):
            return Changes(self._fs.behind_fsspec(), self._options).replace(path, before, data, name)
        with suppress(FileNotFoundError, ChangedFileError):  # the first try may have done it
            if is_s3(self._fs):
                self._changed(path, name, lambda: self._replaced_on_s3(path, before, data))
            elif is_store(self._fs):
                self._changed(path, name, lambda: self._fs.replace_content(path, before, data))
            elif self.content(path) == before:
                self._changed(path, name, lambda: self._fs.pipe_file(path, data))
        return self.content(path) == data

    def _replaced_on_s3(self, path: str, before: bytes, data: bytes) -> None:
        from fsspec.asyn import sync

        sync(self._fs.loop, replace_on_s3, self._fs, path, before, data)
        self._fs.invalidate_cache(path)

    def opened(self, path: str, name: str) -> Any:
        """A new file, open to be written to."""
        return self._changed(path, name, lambda: self._fs.open(path, "wb"))

    def copy(self, path: str, target: str, name: str) -> None:
        self._changed(target, name, lambda: self._fs.cp_file(path, target))

    def make_folder(self, path: str, name: str) -> None:
        """With those above it, where they are missing."""
        self._changed(path, name, lambda: self._fs.makedirs(path, exist_ok=True))

    def remove(self, path: str, name: str) -> None:
        """Remove a file. Raises ``FileNotFoundError`` where it was not there."""
        asked = 0

        def remove() -> None:
            nonlocal asked
            asked += 1
            try:
                self._fs.rm_file(path)
            except FileNotFoundError:
                if asked == 1:
                    raise

        self._changed(path, name, remove)

    def remove_folder(self, path: str, name: str) -> None:
        """Remove a folder with all that is in it, if it is there."""

        def remove() -> None:
            self._fs.invalidate_cache()
            with suppress(FileNotFoundError):
                self._fs.rm(path, recursive=True)

        self._changed(path, name, remove)

    def rename(self, path: str, target: str, name: str) -> None:
        """Give a file that only we know the name ``target``, whatever has it now."""
        from fsspec.spec import AbstractFileSystem

        if getattr(self._fs.mv, "__func__", None) is AbstractFileSystem.mv:
            # It copies, after questions whose failures it takes for answers.
            self.copy(path, target, name)
            with suppress(Exception):  # the file is complete under its name
                self.remove(path, name)
            return
        asked = 0

        def rename() -> None:
            nonlocal asked
            asked += 1
            if asked == 1 or self._info(path) is not None:
                self._fs.mv(path, target)

        self._changed(target, name, rename)

    def _changed(self, path: str, name: str, make: Callable[[], T], in_folder: bool = False) -> T:
        """The result of ``make``. ``in_folder``: where it fails because the folder is not there yet, that is made."""
        try:
            with plain_errors(name, path, self._options):
                return self._of_changes.once(make)
        except FileNotFoundError:
            if not in_folder or lists_at_once(self._fs):  # a store has no folders, and the bucket is not ours to make
                raise
        self.make_folder(posixpath.dirname(path), name)
        return self._changed(path, name, make)
