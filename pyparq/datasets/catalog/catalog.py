"""A catalog that is open: its parts are read when they are asked for, and kept while the catalog stays the same."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from pyparq.datasets.catalog.bounds_table import BoundsTable
from pyparq.datasets.catalog.file_table import FileTable, Int64Array, Kind
from pyparq.datasets.catalog.key_table import FILE_SHIFT, KeyTable, UInt64Array, rows_near
from pyparq.datasets.catalog.layout import Head, Place
from pyparq.datasets.catalog.puffin import PuffinPlace
from pyparq.datasets.data_files import SourceFiles, data_file
from pyparq.errors import CatalogWarning, ParquetError
from pyparq.io.retry import Retry
from pyparq.options import ReadOptions
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.scan import Scan
from pyparq.runtime import fork_safety
from pyparq.runtime.messages import warn_caller
from pyparq.runtime.threads import map_requests, map_tasks

MOST_OPEN = 4
"""Catalogs that stay in memory, those used last."""
MOST_BEGUN = 15
"""Key tables whose ends are read before it is known that they are asked."""

_open: OrderedDict[tuple[str, str], Catalog] = OrderedDict()
_lock = threading.Lock()


@fork_safety.in_child
def _forget() -> None:
    global _lock
    _lock = threading.Lock()
    _open.clear()


def open_catalog(place: Place) -> Catalog | None:
    """The catalog in a folder; ``None`` where there is none.

    ``catalog.json`` is read each time, everything else once. Raises :class:`pyparq.CorruptFileError`,
    :class:`pyparq.UnsupportedError` for another version, and ``OSError``.
    """
    head = place.head()
    if head is None:
        return None
    key = place.name, head.checksum
    with _lock:
        found = _open.get(key)
        if found is None:
            found = _open[key] = Catalog(place, head)
        found.place.retry = place.retry
        _open.move_to_end(key)
        while len(_open) > MOST_OPEN:
            _open.popitem(last=False)
    return found


class Catalog:
    """Statistics and hashes of the files of a dataset."""

    def __init__(self, place: Place, head: Head) -> None:
        self.place = place
        self.head = head
        self.bounds = None if head.bounds is None else BoundsTable(place, head.bounds)
        self.keys = [KeyTable(place, segment) for segment in head.segments]
        self._files: FileTable | None = None
        self._files_opened: OpenFile | None = None

    def __reduce__(self) -> tuple[type[Catalog], tuple[Place, Head]]:
        """Another process opens its tables anew."""
        return Catalog, (self.place, self.head)

    def begin(self, all_files: bool) -> None:
        """Read at the same time what a question needs first: the list of files, or the end of it, and the ends of the
        key tables."""
        if self.place.is_local:
            return
        opened: list[Callable[[], object]] = [table.opened for table in self.keys[:MOST_BEGUN]]
        opened.append((lambda: self.files) if all_files else self._opened_files)
        map_requests(lambda open_it: open_it(), opened)

    @property
    def files(self) -> FileTable:
        """All known files."""
        if self._files is None:
            self._files = FileTable.of(Scan(self.place.opened(self.head.files, whole=True)).to_table())
        return self._files

    def _opened_files(self) -> OpenFile:
        if self._files_opened is None:
            self._files_opened = self.place.opened(self.head.files)
        return self._files_opened

    def files_with(self, numbers: Int64Array) -> FileTable:
        """The files with these numbers, which rise, without reading the others."""
        if not len(numbers):
            return FileTable.none()
        return FileTable.of(rows_near(self._opened_files(), "number", numbers)).among(numbers)

    def kinds(self, options: ReadOptions) -> list[Kind]:
        """The kinds of files, to be asked with these options."""
        return [Kind(stored, self.head.columns, options) for stored in self.head.kinds]

    def units(self, column: int, hashes: UInt64Array) -> UInt64Array:
        """The row groups that may have keys with these hashes: see :func:`pyparq.datasets.catalog.key_table.units_of`.

        The segments that may have them are asked at the same time.
        """
        asked = [table for table in self.keys if table.segment.column == column and len(table.wanted(hashes))]
        if self.place.is_local:
            found = map_tasks(lambda table: table.units(hashes), asked, len(asked) > 1)
        else:
            found = map_requests(lambda table: table.units(hashes), asked)
        return np.unique(np.concatenate(found)) if found else np.zeros(0, np.uint64)


def files_of(units: UInt64Array) -> Int64Array:
    """The numbers of the files of row groups."""
    return (units >> np.uint64(FILE_SHIFT)).astype(np.int64)


# ---- the files of a dataset that a catalog knows


def known_files(found: SourceFiles, options: ReadOptions) -> KnownFiles | None:
    """The files that the catalog of ``found`` knows; ``None`` where it cannot be used."""
    try:
        catalog = open_catalog(place_in(found, Retry(options.retries, options.retry_wait)))
        if catalog is None:
            return None
        catalog.begin(all_files=True)
        return KnownFiles(catalog, catalog.files, catalog.files.places_of(found.files), options)
    except (ParquetError, OSError) as error:
        if found.version is None or not isinstance(error, PermissionError):  # so some stores say that nothing is there
            pass_over(found.root, error)
        return None


def place_in(found: SourceFiles, retry: Retry | None = None) -> Place:
    """Where the catalog lies that ``found.catalog`` names. Raises :class:`CorruptFileError` for a Puffin file elsewhere
    than the table."""
    at = found.catalog
    assert at is not None
    if at.size is not None:
        data_file(at.name, at.size, found.root)
        return PuffinPlace(str(at.where), at.size, found.storage_options, retry)
    return Place(str(at.where), found.storage_options, at.fs, retry)


def pass_over(root: str, error: Exception) -> None:
    warn_caller(f"the catalog of {root} is not used: {error}", CatalogWarning)


class KnownFiles:
    """The known files of a dataset. Numbers are those of the files in the dataset."""

    def __init__(self, catalog: Catalog, table: FileTable, place_of: Int64Array, options: ReadOptions) -> None:
        """``table``: of the files, as far as they are needed. ``place_of``: for each file of the dataset its place in
        the table, -1 for one that is not known."""
        self.catalog = catalog
        self.options = options
        self.table, self.place_of = table, place_of
        self.kinds = catalog.kinds(options)
        self.is_usable = True

    def has(self, k: int) -> bool:
        return bool(self.place_of[k] >= 0)

    @property
    def are_all(self) -> bool:
        """Whether all files of the dataset are known."""
        return bool((self.place_of >= 0).all())

    def rows(self, k: int) -> int:
        return int(self.table.rows[self.place_of[k]])

    def one_of_each(self, numbers: Sequence[int]) -> Iterator[tuple[int, Kind]]:
        """The first file of each kind among the known files with these numbers."""
        asked = np.asarray(numbers, np.int64)
        asked = asked[self.place_of[asked] >= 0]
        kinds, firsts = np.unique(self.table.kinds[self.place_of[asked]], return_index=True)
        for kind, first in sorted(zip(kinds.tolist(), firsts.tolist(), strict=True), key=lambda pair: pair[1]):
            yield int(asked[first]), self.kinds[kind]
