"""Requests that change a file system, repeated where they fail for the moment.

If an answer is lost, it is unknown whether the request was carried out. So each request here has the same result when
it is made twice: whole files under names of pyparq's own, copies, folders that may exist already, removals, and renames
of files that only pyparq knows.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from pyparq.errors import ChangedFileError
from pyparq.io.file_systems import creates_at_once, is_store, lists_at_once, takes_modes
from pyparq.io.folders import Folders
from pyparq.io.retry import Retry
from pyparq.io.s3 import is_s3, replace_content
from pyparq.io.url import plain_errors

T = TypeVar("T")


class Changes:
    """Changes to one file system. Paths are its own. ``name`` is what messages call the file.

    Raises ``OSError``, as :func:`plain_errors` has it.
    """

    def __init__(self, fs: Any, storage_options: Mapping[str, Any] | None = None) -> None:
        self._fs = fs
        self._options = storage_options or getattr(fs, "storage_options", None)
        self._retry = Retry().at_most(1) if is_s3(fs) or is_store(fs) else Retry()

    def put(self, path: str, data: bytes, name: str) -> None:
        """A small file with these bytes."""
        self._made(path, name, lambda: self._fs.pipe_file(path, data), in_folder=True)

    def create(self, path: str, data: bytes, name: str) -> bool:
        """A new small file with these bytes, which no other program writes. ``False`` if there is one already.

        One request decides where the store knows conditional writes. Other stores are asked before and after.
        """
        folders = Folders(self._fs)
        if not creates_at_once(self._fs) and folders.content(path) is not None:
            return False
        options = {"mode": "create"} if takes_modes(self._fs) else {}
        # Where there is one, it may be our own: the answer to the first try may have been lost.
        with suppress(FileExistsError, ChangedFileError):
            self._made(path, name, lambda: self._fs.pipe_file(path, data, **options), in_folder=True)
        return folders.content(path) == data

    def replace(self, path: str, before: bytes, data: bytes, name: str) -> bool:
        """Put other bytes into a small file that holds ``before``. ``False`` if it holds others.

        One request decides on S3, and by obstore. Other stores are asked before and after.
        """
        if is_store(self._fs) and self._fs.is_odd(path):
            return Changes(self._fs.behind_fsspec(), self._options).replace(path, before, data, name)
        folders = Folders(self._fs)
        with suppress(FileNotFoundError, ChangedFileError):  # the first try may have done it
            if is_s3(self._fs):
                self._made(path, name, lambda: self._replaced_on_s3(path, before, data))
            elif is_store(self._fs):
                self._made(path, name, lambda: self._fs.replace_content(path, before, data))
            elif folders.content(path) == before:
                self._made(path, name, lambda: self._fs.pipe_file(path, data))
        return folders.content(path) == data

    def _replaced_on_s3(self, path: str, before: bytes, data: bytes) -> None:
        from fsspec.asyn import sync

        sync(self._fs.loop, replace_content, self._fs, path, before, data)
        self._fs.invalidate_cache(path)

    def opened(self, path: str, name: str) -> Any:
        """A new file, open to be written to."""
        return self._made(path, name, lambda: self._fs.open(path, "wb"))

    def copy(self, path: str, target: str, name: str) -> None:
        self._made(target, name, lambda: self._fs.cp_file(path, target))

    def make_folder(self, path: str, name: str) -> None:
        """With those above it, where they are missing."""
        self._made(path, name, lambda: self._fs.makedirs(path, exist_ok=True))

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

        self._made(path, name, remove)

    def remove_folder(self, path: str, name: str) -> None:
        """Remove a folder with all that is in it, if it is there."""

        def remove() -> None:
            self._fs.invalidate_cache()
            with suppress(FileNotFoundError):
                self._fs.rm(path, recursive=True)

        self._made(path, name, remove)

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
            if asked == 1 or self._is_there(path):
                self._fs.mv(path, target)

        self._made(target, name, rename)

    def _is_there(self, path: str) -> bool:
        try:
            self._fs.info(path)
        except FileNotFoundError:
            return False
        return True

    def _made(self, path: str, name: str, make: Callable[[], T], in_folder: bool = False) -> T:
        """The result of ``make``. ``in_folder``: where it fails because the folder is not there yet, that is made."""
        try:
            with plain_errors(name, path, self._options):
                return self._retry.once(make)
        except FileNotFoundError:
            if not in_folder or lists_at_once(self._fs):  # a store has no folders, and the bucket is not ours to make
                raise
        self.make_folder(posixpath.dirname(path), name)
        return self._made(path, name, make)
