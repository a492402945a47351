"""The files that a catalog knows, each in the state in which it was read.

A file is *known* if the listing of the dataset shows it in that state: of the same size and entity tag in a store, or
of the same size, times of change and inode on a local disk. Any other file is asked as if there were no catalog.
"""

from __future__ import annotations

import itertools
import json
import posixpath
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.arrow.schema.from_text import schema as parse_schema
from pyparq.arrow.table import Table
from pyparq.datasets.data_files import DataFile

SCHEMA = parse_schema({
    "number": "int64", "path": "string", "size": "int64", "mtime_ns": "int64", "inode": "int64", "version": "string",
    "kind": "int32", "rows": "int64", "row_groups": "int32", "footer": "int64",
})  # fmt: skip
"""``number`` is unique and rises. ``path`` is relative to the dataset's folder. ``version`` is what the store says of
it, and of a local file its ctime. ``footer``: bytes of the footer."""

SETTLED_NS = 2_000_000_000
"""A file that was changed within this time before it was read may change again without a new time of change."""

Int64Array = npt.NDArray[np.int64]
State = tuple[int, int, int, str]
"""Size, time of change, inode, and what the store says."""


def path_of(file: DataFile) -> str:
    """The path of a file below the dataset's folder."""
    return "/".join((*file.folders, posixpath.basename(str(file.where))))


def state_of(file: DataFile) -> State | None:
    """The listed state of a file. ``None`` if the listing cannot tell one version of it from another."""
    if file.size is None:
        return None
    if file.listed is None:
        local = file.mtime_ns is not None and file.inode is not None and "://" not in str(file.where)
        ctime = json.dumps([["ctime_ns", file.ctime_ns]])
        return (file.size, file.mtime_ns or 0, _signed(file.inode or 0), ctime) if local else None
    if file.listed.tags:
        return file.size, 0, 0, json.dumps(file.listed.tags)
    return (file.size, file.mtime_ns or 0, 0, json.dumps(file.listed.dates)) if file.listed.dates else None


def _signed(inode: int) -> int:
    return inode - (1 << 64) if inode >= 1 << 63 else inode


def age_ns(file: DataFile, now: int | None = None) -> int | None:
    """How long ago a file was changed, by its time of change. ``None`` where an entity tag tells its version."""
    if file.listed is not None and file.listed.tags:
        return None
    at = file.mtime_ns
    if at is None and file.listed is not None:
        seconds = [date for _, date in file.listed.dates if isinstance(date, float)]
        at = int(max(seconds) * 1e9) if seconds else None
    return -1 if at is None else (time.time_ns() if now is None else now) - at


@dataclass(frozen=True)
class FileTable:
    """The known files, in the order of their numbers."""

    numbers: Int64Array
    paths: list[str]
    sizes: Int64Array
    mtimes: Int64Array
    inodes: Int64Array
    versions: list[str]
    kinds: npt.NDArray[np.int32]
    rows: Int64Array
    row_groups: npt.NDArray[np.int32]
    footers: Int64Array

    @classmethod
    def of(cls, table: Table) -> FileTable:
        texts = {name: table.column(name).to_pylist() for name in ("path", "version")}
        array = table.to_numpy
        return cls(
            array("number"), texts["path"], array("size"), array("mtime_ns"), array("inode"), texts["version"],
            array("kind"), array("rows"), array("row_groups"), array("footer"),
        )  # fmt: skip

    @classmethod
    def none(cls) -> FileTable:
        return cls.of(Table(SCHEMA, []))

    def among(self, numbers: Int64Array) -> FileTable:
        """The files with these numbers."""
        kept = np.isin(self.numbers, numbers)
        paths, versions = (list(itertools.compress(texts, kept)) for texts in (self.paths, self.versions))
        return FileTable(
            self.numbers[kept], paths, self.sizes[kept], self.mtimes[kept], self.inodes[kept], versions,
            self.kinds[kept], self.rows[kept], self.row_groups[kept], self.footers[kept],
        )  # fmt: skip

    def columns(self, places: Any = slice(None)) -> dict[str, Any]:
        """The rows at these places, as they are written."""
        chosen = np.arange(len(self.numbers))[places].tolist()
        return {
            "number": self.numbers[places], "path": [self.paths[k] for k in chosen], "size": self.sizes[places],
            "mtime_ns": self.mtimes[places], "inode": self.inodes[places],
            "version": [self.versions[k] for k in chosen], "kind": self.kinds[places], "rows": self.rows[places],
            "row_groups": self.row_groups[places], "footer": self.footers[places],
        }  # fmt: skip

    def places_of(self, files: Sequence[DataFile]) -> Int64Array:
        """For each listed file its place in this table; -1 for a file that is not known in the listed state."""
        place = {path: k for k, path in enumerate(self.paths)}
        states = list(zip(self.sizes.tolist(), self.mtimes.tolist(), self.inodes.tolist(), self.versions, strict=True))
        found = np.full(len(files), -1, np.int64)
        for k, file in enumerate(files):
            at = place.get(path_of(file))
            if at is not None and states[at] == state_of(file):
                found[k] = at
        return found
