"""Files that hold column chunks of another file (``ColumnChunk.file_path``), read as if they lay behind it.

Only local files below the folder of the file are read: a file may not make its reader open what it likes.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence

from pyparq.errors import CorruptFileError, UnsupportedError
from pyparq.io.byte_ranges import Range
from pyparq.io.source import LocalFile
from pyparq.runtime import fork_safety

STEP = 1 << 40
"""Each file has so many offsets of its own."""


class WithExternalFiles:
    """A local file, and the files that its column chunks name. Offsets from ``STEP`` on belong to the first of them,
    and so on. They are opened when bytes of theirs are asked for."""

    is_local = True

    def __init__(self, main: LocalFile, paths: Sequence[str]) -> None:
        """``paths``: as the footer has them, in its order, each once."""
        self.name = main.name
        self.size = STEP * (len(paths) + 1)
        self._main = main
        self._paths = list(paths)
        self._files: dict[int, LocalFile] = {}
        self._after_fork()
        fork_safety.watch(self)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()

    def place(self, path: str) -> tuple[int, int]:
        """Where the bytes of a file begin, and how many there are.

        Raises :class:`UnsupportedError` for a path that leads out of the folder, and :class:`FileNotFoundError`."""
        number = self._paths.index(path)
        return STEP * (number + 1), self._file(number).size

    def read_ranges(self, ranges: Sequence[Range]) -> list[memoryview]:
        of_files: dict[int, list[int]] = {}
        for k, (offset, _) in enumerate(ranges):
            of_files.setdefault(offset // STEP, []).append(k)
        found: list[memoryview] = [memoryview(b"")] * len(ranges)
        for number, places in of_files.items():
            file = self._main if number == 0 else self._file(number - 1)
            parts = file.read_ranges([(ranges[k][0] - STEP * number, ranges[k][1]) for k in places])
            for k, part in zip(places, parts, strict=True):
                found[k] = part
        return found

    def _file(self, number: int) -> LocalFile:
        with self._lock:
            found = self._files.get(number)
            if found is None:
                found = self._files[number] = self._opened(self._paths[number])
            return found

    def _opened(self, path: str) -> LocalFile:
        file = LocalFile(inside(os.path.dirname(os.path.abspath(self.name)), path))
        if file.size >= STEP:
            file.close()
            raise CorruptFileError(f"the file {path!r} has {file.size} bytes")
        file.threads = self._main.threads
        return file

    def close(self) -> None:
        self._main.close()
        with self._lock:
            for file in self._files.values():
                file.close()


def inside(folder: str, path: str) -> str:
    """The file that a relative path names below a folder, links followed. Raises :class:`UnsupportedError` for one that
    is elsewhere."""
    parts = path.replace("\\", "/").split("/")
    if os.path.isabs(path) or parts[0] == "" or ".." in parts or ":" in parts[0] or "\0" in path:
        raise UnsupportedError(
            f"the column chunk is stored in {path!r}: only files below the folder of this one are read"
        )
    root = os.path.realpath(folder)
    found = os.path.realpath(os.path.join(root, path))
    if not found.startswith(os.path.join(root, "")):
        raise UnsupportedError(f"the column chunk is stored in {path!r}, a link out of the folder of this file")
    return found
