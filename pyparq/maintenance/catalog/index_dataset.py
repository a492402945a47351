"""``index_dataset``: makes the catalog beside a dataset, or brings it up to date."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pyparq.column_names import ColumnName
from pyparq.datasets.catalog.bounds_table import schema_for
from pyparq.datasets.catalog.catalog import Catalog, open_catalog
from pyparq.datasets.catalog.file_table import SCHEMA, SETTLED_NS, FileTable, age_ns, path_of
from pyparq.datasets.catalog.key_table import KeyTable, asked_at_once, bits_for, merged
from pyparq.datasets.catalog.kinds import MOST, check_key
from pyparq.datasets.catalog.layout import Head, Part, Segment
from pyparq.datasets.catalog.place import Place
from pyparq.datasets.discovery import DataFile, Found, discover
from pyparq.datasets.partitions import partitions_of
from pyparq.datasets.read.open_files import open_listed
from pyparq.errors import ChangedFileError, OptionError, ParquetError
from pyparq.io.retry import Retry
from pyparq.limits import DEFAULT_LIMITS, Limits
from pyparq.maintenance.catalog.file_entries import FileEntries, entries_of
from pyparq.maintenance.catalog.report import CatalogReport
from pyparq.maintenance.catalog.runs import SEGMENT_ROWS, Runs
from pyparq.maintenance.catalog.statistics_rows import StatisticsRows
from pyparq.options import ReadOptions
from pyparq.runtime.threads import REQUESTS, cpu_count, map_requests, map_tasks

if TYPE_CHECKING:
    from pyparq.column_names import Names

AT_A_TIME = 64
"""Files that are read before their entries are taken over."""
MOST_SEGMENTS = 8
"""Segments that may have one key. With more, an update joins them."""
MOST_GONE = 1 / 3
"""Share of the files that may be gone before an update removes their entries."""
MOST_VALUES = 30_000_000
"""Statistics of a catalog: row groups times leaf columns. With more, it has none."""
LOOKED_AT = 8
"""Files, about, whose schemas are looked at before all are read."""


def index_dataset(
    source: Any,
    columns: Names | None = None,
    *,
    rebuild: bool = False,
    progress: Callable[[int, int], Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
    use_threads: bool = True,
) -> CatalogReport:
    """Make a catalog of the keys in a dataset, or bring it up to date. Lookups then open only files that have the key.

    ``source``: a folder, or the URL of one. The catalog goes into its folder ``_pyparq_catalog``, which readers of
    datasets pass over. ``columns``: the key columns; each must be one leaf column, as Bloom filters can have.
    ``None``: those of the catalog that is there. A catalog of these columns is updated: only files are read that are
    new or have changed. ``rebuild``: make it anew.

    Queries of the dataset use the catalog by themselves, and their results do not depend on it: files that the
    catalog does not know in the listed state are read as if there were none (docs/catalog.md). Encrypted and unreadable
    files are left out of it. A file that was changed less than two seconds ago is waited for.

    ``progress``: called with the number of files read and the number of files to read. ``storage_options``: options for
    the file system of a URL. ``limits``, ``use_threads``: as in :class:`pyparq.ReadOptions`.

    Returns a :class:`pyparq.CatalogReport`. Raises :class:`pyparq.OptionError` for a source that is no folder and for
    columns that cannot be keys, :class:`pyparq.ColumnNotFoundError`, and ``OSError``. The old catalog then stays.
    """
    options = ReadOptions(limits=limits or DEFAULT_LIMITS, use_threads=use_threads)
    found = discover(source, storage_options, Retry(options.retries, options.retry_wait))
    if found.is_one_file or not isinstance(source, (str, os.PathLike)):
        raise OptionError("a catalog is made of a folder or the URL of a folder", file=found.root)
    place = place_of(source, found, storage_options)
    before = None if rebuild else _before(place, columns)
    names = tuple(_path(name) for name in _names(columns, before, place))
    build = Build(place, found, names, before, options, progress)
    build.read()
    return build.finished()


def place_of(source: Any, found: Found, storage_options: Mapping[str, Any] | None) -> Place:
    """Where the catalog of a folder lies."""
    fs = next((file.fs for file in found.files), None)
    return Place(os.fsdecode(source), storage_options, fs)


def _before(place: Place, columns: Names | None) -> Catalog | None:
    """The catalog that is updated. One that is damaged or of another version is made anew."""
    try:
        return open_catalog(place)
    except ParquetError:
        if columns is None:
            raise
        return None


def _names(columns: Names | None, before: Catalog | None, place: Place) -> list[Any]:
    if columns is not None:
        names = [columns] if isinstance(columns, str) else list(columns)
        if not names:
            raise OptionError("columns names no column: give the key columns", file=place.name)
        return names
    if before is None:
        raise OptionError("there is no catalog to update: give columns=, the key columns", file=place.name)
    return list(before.head.columns)


def _path(name: Any) -> tuple[str, ...]:
    return (name,) if isinstance(name, str) else tuple(name)


class Build:
    """One run of :func:`index_dataset`."""

    def __init__(
        self, place: Place, found: Found, names: Sequence[ColumnName], before: Catalog | None, options: ReadOptions,
        progress: Callable[[int, int], Any] | None,
    ) -> None:  # fmt: skip
        self._place = place
        self._found = found
        self._names = names
        self._options = options
        self._progress = progress
        if before is not None and [_path(c) for c in before.head.columns] != [_path(c) for c in names]:
            before = None
        self._before = before
        self._table = FileTable.none() if before is None else before.files
        self._kept = self._table.places_of(found.files)
        self._kinds: dict[Any, int] = {}
        self._stored_kinds: list[bytes] = [] if before is None else list(before.head.kinds)
        self._next = 0 if before is None else before.head.next_number
        self._runs = [Runs(place, k) for k in range(len(names))]
        self._files: list[dict[str, Any]] = []
        self._statistics = StatisticsRows()
        self._left_out: list[tuple[str, str]] = []

    # ---- reading

    def read(self) -> None:
        """Read the files that are new or have changed."""
        missing = [file for k, file in zip(self._kept.tolist(), self._found.files, strict=True) if k < 0]
        if self._before is None:
            check_keys(missing, self._names, self._options, self._found.storage_options)
        self._place.begin()
        ready = self._settled(missing)
        for done in range(0, len(ready), AT_A_TIME):
            part = ready[done : done + AT_A_TIME]
            for file, entries in zip(part, self._each(part), strict=True):
                self._take(file, entries)
            if self._progress is not None:
                self._progress(min(done + AT_A_TIME, len(ready)), len(ready))

    def _settled(self, files: Sequence[DataFile]) -> list[DataFile]:
        """The files whose time of change tells their version. Those that are too new are waited for."""
        ready, now = [], time.time_ns()
        ages = {id(file): age_ns(file, now) for file in files}
        wait = max((SETTLED_NS - age for age in ages.values() if age is not None and 0 <= age < SETTLED_NS), default=0)
        if wait:
            time.sleep(wait / 1e9)
        for file in files:
            age = ages[id(file)]
            if age is not None and age < 0:
                self._left_out.append((file.name, "its time of change lies in the future, or is not known"))
            else:
                ready.append(file)
        return ready

    def _each(self, files: Sequence[DataFile]) -> list[FileEntries | Exception]:
        is_remote = not self._place.is_local
        options = ReadOptions(limits=self._options.limits, use_threads=False)

        def read(file: DataFile) -> FileEntries | Exception:
            try:
                return entries_of(file, self._names, options, self._found.storage_options)
            except (ParquetError, OSError) as error:
                return error

        if is_remote and self._options.use_threads:
            return map_requests(read, files, REQUESTS)
        return map_tasks(read, files, self._options.use_threads and cpu_count() > 1)

    def _take(self, file: DataFile, read: FileEntries | Exception) -> None:
        if isinstance(read, ChangedFileError):
            self._left_out.append((file.name, "it was changed while it was read"))
            return
        if isinstance(read, Exception):
            self._left_out.append((file.name, str(read)))
            return
        kind = self._kind(read)
        if kind is None:
            self._left_out.append((file.name, f"there are more than {MOST:,} kinds of files"))
            return
        number, self._next = self._next, self._next + 1
        size, mtime, inode, version = read.state
        self._files.append({
            "number": number, "path": path_of(file), "size": size, "mtime_ns": mtime, "inode": inode,
            "version": version, "kind": kind, "rows": sum(read.rows), "row_groups": len(read.rows),
            "footer": read.footer,
        })  # fmt: skip
        self._statistics.add(number, read.rows, read.statistics)
        for (column, group), hashes in read.keys.items():
            self._runs[column].add(number, group, hashes)

    def _kind(self, read: FileEntries) -> int | None:
        known = self._kinds.get(read.kind)
        if known is None:
            if read.stored_kind in self._stored_kinds:
                known = self._stored_kinds.index(read.stored_kind)
            elif len(self._stored_kinds) < MOST:
                known = len(self._stored_kinds)
                self._stored_kinds.append(read.stored_kind)
            else:
                return None
            self._kinds[read.kind] = known
        return known

    # ---- writing

    def finished(self) -> CatalogReport:
        """Write the new parts, and then ``catalog.json``. Where nothing has changed, nothing is written."""
        places = np.unique(self._kept[self._kept >= 0])
        removed = len(self._table.numbers) - len(places)
        before = self._before
        if before is not None and not removed and not self._files:
            return self._report(before.head, 0, changed=False)
        live = np.zeros(max(self._next, 1), bool)
        live[self._table.numbers[places]] = True
        live[[file["number"] for file in self._files]] = True
        segments = [segment for k in range(len(self._names)) for segment in self._segments(k, live)]
        head = Head(
            tuple(_path(name) for name in self._names), tuple(self._stored_kinds), self._file_part(places),
            self._bounds_part(live), tuple(segments), len(places) + len(self._files), self._next,
            partition_types(self._found.files), self._kind_order(), not self._left_out,
            () if before is None else tuple(part.name for part in before.head.parts),
        )  # fmt: skip
        self._place.put(head, () if before is None else before.head.previous)
        return self._report(head, removed, changed=True)

    def _segments(self, column: int, live: Any) -> list[Segment]:
        """The segments of a key column: the old ones with those of the new files, or joined ones."""
        old = [] if self._before is None else [s for s in self._before.head.segments if s.column == column]
        new = self._runs[column].segments(sum(s.part.rows for s in old), live)
        found = [*old, *new]
        total = sum(segment.part.rows for segment in found)
        gone = 1 - live[self._table.numbers].mean() if len(self._table.numbers) else 0.0
        if old and gone > MOST_GONE:
            joined, kept = found, list[Segment]()
        elif asked_at_once(found) > MOST_SEGMENTS:
            joined = [s for s in found if 4 * s.part.rows <= total]
            joined = joined if len(joined) > 1 else found
            kept = [s for s in found if s not in joined]
        else:
            return found
        tables = [KeyTable(self._place, segment) for segment in joined]
        kept += merged(self._place, column, tables, live, SEGMENT_ROWS, bits_for(total))
        for segment in new:
            if segment in joined:
                self._place.remove(segment.part.name)
        return kept

    def _kind_order(self) -> tuple[int, ...]:
        new = {file["path"]: file["kind"] for file in self._files}
        old = zip(self._kept.tolist(), self._found.files, strict=True)
        kinds = [int(self._table.kinds[at]) if at >= 0 else new.get(path_of(file)) for at, file in old]
        return tuple(dict.fromkeys(kind for kind in kinds if kind is not None))

    def _file_part(self, places: Any) -> Part:
        new = {name: [file[name] for file in self._files] for name in SCHEMA.names}
        return self._place.write("files", SCHEMA, [self._table.columns(places), new])

    def _bounds_part(self, live: Any) -> Part | None:
        old = None if self._before is None else self._before.bounds
        if old is None and self._before is not None:
            return None  # there were too many
        keys = list(dict.fromkeys([*(old.keys if old is not None else ()), *self._statistics.keys]))
        tables = [self._statistics.columns(keys)]
        if old is not None:
            tables.insert(0, old.columns(keys, np.flatnonzero(live[old.units[0]])))
        if sum(len(table["file"]) for table in tables) * len(keys) > MOST_VALUES:
            return None
        return self._place.write("bounds", schema_for(keys), tables)

    def _report(self, head: Head, removed: int, changed: bool) -> CatalogReport:
        return CatalogReport(
            self._found.root, tuple(".".join(_path(name)) for name in self._names), head.num_files, len(self._files),
            removed, tuple(self._left_out), sum(segment.part.rows for segment in head.segments),
            sum(part.size for part in head.parts) + len(head.to_bytes()), changed,
        )  # fmt: skip


def partition_types(files: Sequence[DataFile]) -> dict[str, str] | None:
    """The partition columns of folders called ``name=value``. ``None`` if the folders do not agree."""
    try:
        return {field.name: str(field.type) for field in partitions_of(files, "hive").fields}
    except ParquetError:
        return None


def check_keys(
    files: Sequence[DataFile], names: Sequence[ColumnName], options: ReadOptions,
    storage_options: Mapping[str, Any] | None,
) -> None:  # fmt: skip
    """Raise :class:`ColumnNotFoundError` or :class:`OptionError` for names that are key columns in none of some
    files: before all files are read."""
    said: ParquetError | None = None
    for file in files[:: max(len(files) // LOOKED_AT, 1)]:
        try:
            tree = open_listed(file, options, storage_options).tree
        except (ParquetError, OSError):
            continue
        try:
            for name in names:
                check_key(tree, name)
            return
        except ParquetError as error:
            said = error
    if said is not None:
        raise said
