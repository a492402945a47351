"""``index_dataset``: makes the catalog beside a dataset, or brings it up to date."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyparq.column_names import ColumnName
from pyparq.datasets.catalog.bounds_table import StatisticsRows, schema_for
from pyparq.datasets.catalog.building import (
    SEGMENT_ROWS,
    Numbered,
    ShareReader,
    ShareResult,
    asked_at_once,
    merged,
    write_part,
)
from pyparq.datasets.catalog.catalog import Catalog, open_catalog, place_in
from pyparq.datasets.catalog.file_table import SCHEMA, FileTable, check_key, path_of
from pyparq.datasets.catalog.key_table import KeyTable, bits_for
from pyparq.datasets.catalog.layout import Head, Key, Part, Place, Segment
from pyparq.datasets.catalog.puffin import NewPuffin, PuffinPlace
from pyparq.datasets.data_files import DataFile, SourceFiles
from pyparq.datasets.discovery import discover
from pyparq.datasets.files import DatasetFiles
from pyparq.datasets.footers import open_listed
from pyparq.datasets.opening import Opening
from pyparq.datasets.partitions import partitions_of
from pyparq.errors import OptionError, ParquetError
from pyparq.format.schema_node import Node
from pyparq.io.locations import located as on_system
from pyparq.io.retry import Retry
from pyparq.limits import DEFAULT_LIMITS, Limits
from pyparq.option_checks import keywords
from pyparq.options import ReadOptions
from pyparq.runtime.text import printable

if TYPE_CHECKING:
    from pyparq.column_names import Names


@dataclass(frozen=True, slots=True, repr=False)
class CatalogReport:
    """What :func:`pyparq.index_dataset` has done to the catalog of a dataset.

    Example::

        report = pyparq.index_dataset("flights/", ["tailnum"])
        print(report.files, report.files_read, report.left_out)
    """

    source: str
    columns: tuple[str, ...]
    """The key columns."""
    files: int
    """Files that the catalog has now."""
    files_read: int
    """Files that were read for it: new ones, and those that have changed."""
    files_removed: int
    """Files that it had before, and that are gone or have changed."""
    left_out: tuple[tuple[str, str], ...]
    """Files that it does not have, with the reasons. Queries read them as if there were no catalog."""
    entries: int
    """Keys in all row groups, each once per row group."""
    bytes: int
    """Size of the catalog."""
    changed: bool
    """Whether a new catalog was written."""

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values (for JSON)."""
        return asdict(self)

    @printable
    def __repr__(self) -> str:
        left = f", {len(self.left_out):,} left out" if self.left_out else ""
        return (
            f"<CatalogReport of {self.source}: {self.files:,} files, {self.files_read:,} read, {self.files_removed:,} "
            f"removed{left}; {self.entries:,} entries, {self.bytes:,} bytes>"
        )


MOST_SEGMENTS = 8
"""Segments that may have one key. With more, an update joins them."""
MOST_GONE = 1 / 3
"""Share of the files that may be gone before an update removes their entries."""
MOST_VALUES = 30_000_000
"""Statistics of a catalog: row groups times leaf columns. With more, it has none."""
LOOKED_AT = 8
"""Files, about, whose schemas are looked at before all are read."""


@keywords
def index_dataset(
    source: Any,
    columns: Names | None = None,
    *,
    rebuild: bool = False,
    progress: Callable[[int, int], Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    limits: Limits | None = None,
    use_threads: bool = True,
) -> CatalogReport:
    """Make a catalog of the keys in a dataset, or bring it up to date. Lookups then open only files that have the key.

    ``source``: a folder, or the URL of one. The catalog goes into its folder ``_pyparq_catalog``, which readers skip.
    Or a table as ``deltalake`` or ``pyiceberg`` opens it: for Delta Lake it goes there too, for Iceberg into a Puffin
    file that the table's metadata names from then on. ``columns``: the key columns; each must be one leaf column of a
    type that Bloom filters can have. By default those of the existing catalog. An existing catalog of these columns is
    updated: only new and changed files are read. ``rebuild``: make it anew.

    Queries of the dataset use the catalog by themselves, and their results do not depend on it: files that have changed
    since are read as if there were none (docs/catalog.md). Encrypted and unreadable files are left out of it. It waits
    for files that were changed less than two seconds ago.

    ``progress``: called with the number of files read and the number of files to read. ``storage_options``,
    ``filesystem``: for a URL, as in :func:`pyparq.read_table`. ``limits``, ``use_threads``: as in
    :class:`pyparq.ReadOptions`.

    Returns a :class:`pyparq.CatalogReport`. Raises :class:`pyparq.OptionError` for a source that is no folder and for
    columns that cannot be keys, :class:`pyparq.ColumnNotFoundError`, and ``OSError``. The old catalog then stays.

    Example::

        pyparq.index_dataset("flights/", ["tailnum"])
        pyparq.dataset("flights/").lookup("tailnum", "N14228")      # opens only files that have it
    """
    options = ReadOptions(limits=limits or DEFAULT_LIMITS, use_threads=use_threads)
    source, storage_options = on_system(source, filesystem, storage_options)
    build = new_build(source, columns, rebuild, storage_options, options)
    reader = ShareReader(build.place, build.names, options, build.storage_options)
    reader.read(build.missing, progress)
    build.take(reader.result)
    return build.finished(lambda column, rows, live: reader.runs[column].segments(rows, live))


def new_build(
    source: Any, columns: Names | None, rebuild: bool, storage_options: Mapping[str, Any] | None, options: ReadOptions
) -> Build:
    """List the files, and find out which of them are to be read. Raises as :func:`index_dataset` does."""
    opening = Opening(source, storage_options, None, "hive", None, options, "name", "raise", None)
    if (files := opening.table_files(use_catalog=True)) is not None:
        return _table_build(source, files, columns, rebuild)
    found = discover(source, storage_options, Retry(options.retries, options.retry_wait))
    if found.is_one_file or not isinstance(source, (str, os.PathLike)):
        raise OptionError("a catalog is made of a folder or the URL of a folder", file=found.root)
    place = Place(os.fsdecode(source), storage_options, next((file.fs for file in found.files), None))
    before = None if rebuild else _before(place, columns)
    names = [_path(name) for name in _names(columns, before, place.name)]
    build = Build(place, found, names, before, {})
    if build.before is None:
        check_keys([file for _, file in build.missing], names, options, storage_options)
    place.begin()
    return build


def _table_build(table: Any, files: DatasetFiles, columns: Names | None, rebuild: bool) -> Build:
    """As :func:`new_build`, for a table. Names are those of the table."""
    found = files.found
    if found.version is None:
        raise OptionError("the table has no snapshot yet: write rows first", file=found.root)
    place = None if found.catalog is None else place_in(found)
    before = None if rebuild or place is None else _before(place, columns)
    if before is not None and (before.head.table or ("",))[0] != found.version[0]:  # of the plain folder
        before = None
    names, keys = _names(columns, before, found.root), {leaf.path: _key(leaf, files) for leaf in files.tree.leaves}
    if columns is not None:
        paths = [check_key(files.tree, name).path for name in names]
        for path in paths:
            if path[0] in files.partition_values.names:
                raise OptionError(f"the table is partitioned by the column {path[0]!r}: its log finds the files")
        names = [keys[path] for path in paths]
    if place is None or isinstance(place, PuffinPlace):
        place = NewPuffin(table, place, names, found.storage_options)
    place.begin()
    return Build(place, found, names, before, {key: ".".join(path) for path, key in keys.items()})


def _key(leaf: Node, files: DatasetFiles) -> Key:
    """What files call a column of a table: the field id where columns are found by it."""
    if files.matching.by == "field_id" and leaf.element.field_id is not None:
        return (leaf.element.field_id,)
    way = [files.tree.find(leaf.path[: k + 1]) for k in range(len(leaf.path))]
    stored = files.matching.stored
    return tuple(stored.get(str(node.element.field_id).encode(), (node.path[-1],))[0] for node in way)


def _before(place: Place, columns: Names | None) -> Catalog | None:
    """The catalog that is updated. One that is damaged or of another version is made anew."""
    try:
        return open_catalog(place)
    except ParquetError:
        if columns is None:
            raise
        return None


def _names(columns: Names | None, before: Catalog | None, name: str) -> list[Any]:
    if columns is not None:
        names = [columns] if isinstance(columns, str) else list(columns)
        if not names:
            raise OptionError("columns names no column: give the key columns", file=name)
        return names
    if before is None:
        raise OptionError("there is no catalog to update: give columns=, the key columns", file=name)
    return list(before.head.columns)


def _path(name: Any) -> tuple[str, ...]:
    return (name,) if isinstance(name, str) else tuple(name)


NewSegments = Callable[[int, int, Any], list[Segment]]
"""The segments of the new files, of a key column: called with its number, the entries that it has already, and a mask
of the numbers of the files that there are."""


class Build:
    """A catalog while it is made: the kept part of the old one, and what was read."""

    def __init__(
        self, place: Place, found: SourceFiles, names: Sequence[Key], before: Catalog | None, shown: Mapping[Key, str]
    ) -> None:
        """``shown``: how a table calls key columns."""
        self.place, self._shown = place, shown
        self._found = found
        self.storage_options = found.storage_options  # the table's own, where none are given
        self.names = names
        if before is not None and list(before.head.columns) != list(names):
            before = None
        self.before = before
        self._table = FileTable.none() if before is None else before.files
        self._kept = self._table.places_of(found.files)
        self._stored_kinds: list[bytes] = [] if before is None else list(before.head.kinds)
        self.next_number = 0 if before is None else before.head.next_number
        new = [file for k, file in zip(self._kept.tolist(), found.files, strict=True) if k < 0]
        self.missing: list[Numbered] = list(enumerate(new, self.next_number))
        """The files that are new or have changed, with the numbers that they get."""
        self.next_number += len(new)
        self._files: list[dict[str, Any]] = []
        self._statistics = StatisticsRows()
        self._left_out: list[tuple[str, str]] = []

    @property
    def checksum(self) -> str:
        """Of the catalog before."""
        return "" if self.before is None else self.before.head.checksum

    def take(self, share: ShareResult) -> None:
        """Take over the entries that were read from some of the missing files."""
        places = {kind: k for k, kind in enumerate(self._stored_kinds)}
        for kind in share.kinds:
            if places.setdefault(kind, len(places)) == len(self._stored_kinds):
                self._stored_kinds.append(kind)
        for file in share.files:
            self._files.append(file | {"kind": places[share.kinds[file["kind"]]]})
        self._statistics.extend(share.statistics)
        self._left_out += share.left_out

    # ---- writing

    def finished(self, new_segments: NewSegments) -> CatalogReport:
        """Write the new parts, and then ``catalog.json``. Where nothing has changed, nothing is written."""
        places = np.unique(self._kept[self._kept >= 0])
        removed = len(self._table.numbers) - len(places)
        before = self.before
        if before is not None and not removed and not self._files:
            return self._report(before.head, 0, changed=False)
        live = np.zeros(max(self.next_number, 1), bool)
        live[self._table.numbers[places]] = True
        live[[file["number"] for file in self._files]] = True
        segments = [segment for k in range(len(self.names)) for segment in self._segments(k, live, new_segments)]
        head = Head(
            tuple(self.names), tuple(self._stored_kinds), self._file_part(places),
            self._bounds_part(live), tuple(segments), len(places) + len(self._files), self.next_number,
            partition_types(self._found.files), self._kind_order(), self._is_complete(),
            () if before is None else tuple(part.name for part in before.head.parts), self._found.version,
        )  # fmt: skip
        self.place.put(head, () if before is None else before.head.previous)
        return self._report(head, removed, changed=True)

    def _segments(self, column: int, live: Any, new_segments: NewSegments) -> list[Segment]:
        """The segments of a key column: the old ones with those of the new files, or joined ones."""
        old = [] if self.before is None else [s for s in self.before.head.segments if s.column == column]
        new = new_segments(column, sum(s.part.rows for s in old), live)
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
        tables = [KeyTable(self.place, segment) for segment in joined]
        kept += merged(self.place, column, tables, live, SEGMENT_ROWS, bits_for(total))
        self.place.remove_all(segment for segment in new if segment in joined)
        return kept

    def _is_complete(self) -> bool:
        new = {file["path"] for file in self._files}
        listed = zip(self._kept.tolist(), self._found.files, strict=True)
        return not self._left_out and all(at >= 0 or path_of(file) in new for at, file in listed)

    def _kind_order(self) -> tuple[int, ...]:
        new = {file["path"]: file["kind"] for file in self._files}
        old = zip(self._kept.tolist(), self._found.files, strict=True)
        kinds = [int(self._table.kinds[at]) if at >= 0 else new.get(path_of(file)) for at, file in old]
        return tuple(dict.fromkeys(kind for kind in kinds if kind is not None))

    def _file_part(self, places: Any) -> Part:
        new = {name: [file[name] for file in self._files] for name in SCHEMA.names}
        rows = len(places) + len(self._files)
        return write_part(self.place, "files", SCHEMA, [self._table.columns(places), new], rows)

    def _bounds_part(self, live: Any) -> Part | None:
        old = None if self.before is None else self.before.bounds
        if old is None and self.before is not None:
            return None  # there were too many
        keys = list(dict.fromkeys([*(old.keys if old is not None else ()), *self._statistics.keys]))
        tables = [self._statistics.columns(keys)]
        if old is not None:
            tables.insert(0, old.columns(keys, np.flatnonzero(live[old.units[0]])))
        rows = sum(len(table["file"]) for table in tables)
        if rows * len(keys) > MOST_VALUES:
            return None
        return write_part(self.place, "bounds", schema_for(keys), tables, rows)

    def _report(self, head: Head, removed: int, changed: bool) -> CatalogReport:
        names = tuple(self._shown.get(key) or ".".join(map(str, key)) for key in self.names)
        return CatalogReport(
            self._found.root, names, head.num_files, len(self._files), removed, tuple(self._left_out),
            sum(segment.part.rows for segment in head.segments),
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
