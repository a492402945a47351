"""Reads what a catalog takes from some files: all of them in one process, or a share of them in each task of Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyparq.column_names import ColumnName
from pyparq.datasets.catalog.file_table import MOST_KINDS, SETTLED_NS, age_ns, path_of
from pyparq.datasets.catalog.layout import Place, Segment
from pyparq.datasets.data_files import DataFile
from pyparq.errors import ChangedFileError, ParquetError
from pyparq.maintenance.catalog.file_entries import FileEntries, entries_of
from pyparq.maintenance.catalog.runs import Runs
from pyparq.maintenance.catalog.statistics_rows import StatisticsRows
from pyparq.options import ReadOptions
from pyparq.runtime.threads import REQUESTS, cpu_count, map_requests, map_tasks

AT_A_TIME = 64
"""Files that are read before their entries are taken over."""

Numbered = tuple[int, DataFile]
Progress = Callable[[int, int], Any]


@dataclass
class ShareResult:
    """What was read. It can be pickled."""

    files: list[dict[str, Any]]
    """Rows of the table of files. ``kind`` is a place in ``kinds``."""
    kinds: list[bytes]
    statistics: StatisticsRows
    left_out: list[tuple[str, str]]
    segments: list[Segment]
    """The parts of keys that were written, with whole hashes. They are in no order."""


class ShareReader:
    """Reads files one after the other, many at a time."""

    def __init__(
        self, place: Place, names: Sequence[ColumnName], options: ReadOptions,
        storage_options: Mapping[str, Any] | None,
    ) -> None:  # fmt: skip
        self._place = place
        self._names = names
        self._threads = options.use_threads
        self._options = ReadOptions(limits=options.limits, use_threads=False)
        self._storage_options = storage_options
        self._kinds: dict[Any, int] = {}
        self.runs = [Runs(place, k) for k in range(len(names))]
        self.result = ShareResult([], [], StatisticsRows(), [], [])

    def read(self, files: Sequence[Numbered], progress: Progress | None = None) -> None:
        """Read these files, which come with the numbers that they get."""
        ready = self._settled(files)
        for first in range(0, len(ready), AT_A_TIME):
            part = ready[first : first + AT_A_TIME]
            for (number, file), entries in zip(part, self._each([file for _, file in part]), strict=True):
                self._take(number, file, entries)
            if progress is not None:
                progress(first + len(part), len(ready))

    def written(self) -> ShareResult:
        """What was read, with all keys in files."""
        for runs in self.runs:
            self.result.segments += runs.written()
        return self.result

    def _settled(self, files: Sequence[Numbered]) -> list[Numbered]:
        """The files whose time of change tells their version. Those that are too new are waited for."""
        now = time.time_ns()
        ages = [age_ns(file, now) for _, file in files]
        wait = max((SETTLED_NS - age for age in ages if age is not None and 0 <= age < SETTLED_NS), default=0)
        if wait:
            time.sleep(wait / 1e9)
        ready = []
        for (number, file), age in zip(files, ages, strict=True):
            if age is not None and age < 0:
                self._leave_out(file, "its time of change lies in the future, or is not known")
            else:
                ready.append((number, file))
        return ready

    def _leave_out(self, file: DataFile, reason: str) -> None:
        self.result.left_out.append((file.name, reason))

    def _each(self, files: Sequence[DataFile]) -> list[FileEntries | Exception]:
        def read(file: DataFile) -> FileEntries | Exception:
            try:
                return entries_of(file, self._names, self._options, self._storage_options)
            except (ParquetError, OSError) as error:
                return error

        if not self._place.is_local and self._threads:
            return map_requests(read, files, REQUESTS)
        return map_tasks(read, files, self._threads and cpu_count() > 1)

    def _take(self, number: int, file: DataFile, read: FileEntries | Exception) -> None:
        if isinstance(read, ChangedFileError):
            return self._leave_out(file, "it was changed while it was read")
        if isinstance(read, Exception):
            return self._leave_out(file, str(read))
        kind = self._kind(read)
        if kind is None:
            return self._leave_out(file, f"there are more than {MOST_KINDS:,} kinds of files")
        size, mtime, inode, version = read.state
        self.result.files.append({
            "number": number, "path": path_of(file), "size": size, "mtime_ns": mtime, "inode": inode,
            "version": version, "kind": kind, "rows": sum(read.rows), "row_groups": len(read.rows),
            "footer": read.footer,
        })  # fmt: skip
        self.result.statistics.add(number, read.rows, read.statistics)
        for (column, group), hashes in read.keys.items():
            self.runs[column].add(number, group, hashes)
        return None

    def _kind(self, read: FileEntries) -> int | None:
        known = self._kinds.get(read.kind)
        if known is None and len(self.result.kinds) < MOST_KINDS:
            known = self._kinds[read.kind] = len(self.result.kinds)
            self.result.kinds.append(read.stored_kind())
        return known
