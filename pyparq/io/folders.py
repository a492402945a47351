"""What lies in folders of a file system: all of it, or an error that names the folder.

fsspec's own ``find`` and ``glob`` take a folder that cannot be listed for an empty one, and its ``exists`` and
``isdir`` take a request that fails for a "no". Files would be lost without a word. So folders are listed here, one
level after the other, unless the file system lists all levels at once (:func:`pyparq.io.file_systems.lists_at_once`).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from pyparq.errors import OptionError
from pyparq.io.file_systems import alone, is_concurrent, is_store, lists_at_once, loops
from pyparq.io.retry import Retry, may_pass
from pyparq.io.s3 import content, is_s3
from pyparq.io.url import cause_of, name_on, plain_errors
from pyparq.runtime.threads import map_requests, patiently

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
        return {path: info for path, info in sorted(found.items()) if fits(_names_below(root, path), names[first:])}

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

        data: bytes = sync(self._fs.loop, content, self._fs, path)[0]  # s3fs lists folders for a missing object
        return data

    def info(self, path: str) -> Info | None:
        """The file system's current information about a path. ``None`` if nothing is there."""
        self._fs.invalidate_cache()
        return self._info(path)

    def is_folder(self, path: str) -> bool:
        """Whether it is a folder. A path that may not be read is none. Raises ``OSError`` if the file system does not
        answer."""
        ask = (lambda: self._fs.isdir(path)) if is_s3(self._fs) else (lambda: self._type_of(path) == "directory")
        try:
            return bool(self._retry.once(lambda: patiently(ask)))
        except Exception as error:
            if not may_pass(error) and _says_no(error):
                return False
            with self._plain_errors(path):
                raise

    def _type_of(self, path: str) -> Any:
        return self._fs.info(path).get("type")

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
            return self._retry.once(lambda: patiently(alone_ask))

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
        if len(folders) > 1 and (is_concurrent(self._fs) or loops(self._fs)):
            return map_requests(self._within, folders)
        return [self._within(folder) for folder in folders]

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


def _says_no(error: BaseException) -> bool:
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


def _names_below(root: str, path: str) -> list[str]:
    return path[len(root) :].strip("/").split("/")


def _path_of(info: Info) -> str:
    return str(info["name"]).rstrip("/")
