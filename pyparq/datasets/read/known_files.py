"""The files of a dataset that its catalog knows in the state in which they were listed.

Their rows, schemas and candidates for a filter come from the catalog. Files that it does not know, or knows in another
state, are asked as if there were none. A catalog that cannot be read is passed over with a warning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.datasets.catalog.answers import Units, by_bounds, by_keys
from pyparq.datasets.catalog.catalog import Catalog, files_of, open_catalog
from pyparq.datasets.catalog.file_table import FileTable
from pyparq.datasets.catalog.key_table import FILE_SHIFT
from pyparq.datasets.catalog.kinds import Kind
from pyparq.datasets.catalog.place import Place
from pyparq.datasets.data_files import SourceFiles
from pyparq.datasets.partitions import Partitions
from pyparq.datasets.read.column_matching import Matching
from pyparq.datasets.read.filter import FilterParts
from pyparq.datasets.read.projection import Projection
from pyparq.errors import CatalogWarning, ParquetError
from pyparq.filters.bind import bind
from pyparq.filters.expression import Expression, Known
from pyparq.io.retry import Retry
from pyparq.options import ReadOptions
from pyparq.runtime.messages import warn_caller

Int64Array = npt.NDArray[np.int64]

FEW_FILES = 64
"""If keys leave at most this many files, statistics are not asked: the files have them."""


@dataclass(slots=True)
class Narrowed:
    """The files that are left for a filter."""

    numbers: list[int]
    groups: dict[int, list[int]] = field(default_factory=dict)
    """The row groups that can match, of those files that the catalog has said something about."""
    by_keys: set[int] = field(default_factory=set)
    """The files of whose row groups the keys are known. Their Bloom filters say nothing more."""
    known: int = 0
    """Files that the catalog was asked about."""
    ruled_out: int = 0
    """Of these, the ones that are not left."""


def known_files(found: SourceFiles, options: ReadOptions) -> KnownFiles | None:
    """The files that a catalog knows; ``None`` where there is none that can be used."""
    if found.catalog is None:
        return None
    try:
        retry = Retry(options.retries, options.retry_wait)
        place = Place(str(found.catalog.where), found.storage_options, found.catalog.fs, retry)
        catalog = open_catalog(place)
        if catalog is None:
            return None
        catalog.begin(all_files=True)
        return KnownFiles(catalog, catalog.files, catalog.files.places_of(found.files), options)
    except (ParquetError, OSError) as error:
        _pass_over(found.root, error)
        return None


def _pass_over(root: str, error: Exception) -> None:
    warn_caller(f"the catalog of {root} is not used: {error}", CatalogWarning)


class KnownFiles:
    """The known files of a dataset. Numbers are those of the files in the dataset."""

    def __init__(self, catalog: Catalog, table: FileTable, place_of: Int64Array, options: ReadOptions) -> None:
        """``table``: of the files, as far as they are needed. ``place_of``: for each file of the dataset its place in
        the table, -1 for one that is not known."""
        self.catalog = catalog
        self._table = table
        self._place_of = place_of
        self._options = options
        self._kinds = catalog.kinds(options)
        self.is_usable = True

    def has(self, k: int) -> bool:
        return bool(self._place_of[k] >= 0)

    @property
    def are_all(self) -> bool:
        """Whether all files of the dataset are known."""
        return bool((self._place_of >= 0).all())

    def rows(self, k: int) -> int:
        return int(self._table.rows[self._place_of[k]])

    def one_of_each(self, numbers: Sequence[int]) -> Iterator[tuple[int, Kind]]:
        """The first file of each kind among the known files with these numbers."""
        asked = np.asarray(numbers, np.int64)
        asked = asked[self._place_of[asked] >= 0]
        kinds, firsts = np.unique(self._table.kinds[self._place_of[asked]], return_index=True)
        for kind, first in sorted(zip(kinds.tolist(), firsts.tolist(), strict=True), key=lambda pair: pair[1]):
            yield int(asked[first]), self._kinds[kind]

    def narrowed(
        self, numbers: Iterable[int], parts: FilterParts, projection: Projection, partitions: Partitions, by: Matching
    ) -> Narrowed:
        """The files of ``numbers`` that can have a row for which the filter is true."""
        given = list(numbers)
        if parts.expression is None or not given or not self.is_usable:
            return Narrowed(given)
        try:
            return self._narrowed(np.asarray(given, np.int64), parts, projection, partitions, by)
        except (ParquetError, OSError) as error:
            self.is_usable = False
            _pass_over(self.catalog.place.name, error)
            return Narrowed(given)

    def _narrowed(
        self, numbers: Int64Array, parts: FilterParts, projection: Projection, partitions: Partitions, by: Matching
    ) -> Narrowed:
        known = numbers[self._place_of[numbers] >= 0]
        left = dict.fromkeys(numbers[self._place_of[numbers] < 0].tolist())
        found = Narrowed([], known=len(known))
        for kind, rest, members in self._alike(known, parts, partitions):
            units, asked_keys = self._asked(kind, rest, members, parts, projection, by)
            if units is None:
                left |= dict.fromkeys(members.tolist())
                continue
            for number, groups in self._by_file(units, members):
                left[number], found.groups[number] = None, groups
                if asked_keys:
                    found.by_keys.add(number)
        found.numbers = sorted(left)
        found.ruled_out = len(numbers) - len(left)
        return found

    def _alike(
        self, known: Int64Array, parts: FilterParts, partitions: Partitions
    ) -> Iterator[tuple[Kind, Expression, Int64Array]]:
        """The known files, those together that are of one kind and whose partitions leave the same of the filter."""
        kinds, combinations = self._table.kinds[self._place_of[known]], partitions.of_file[known]
        rests = {int(c): parts.rest(int(c)) for c in np.unique(combinations)}
        same: dict[Any, int] = {}
        group_of = {c: same.setdefault(_key(rest), len(same)) for c, rest in rests.items()}
        groups = np.array([group_of[c] for c in sorted(group_of)], np.int64)
        of_file = groups[np.searchsorted(sorted(group_of), combinations)] if len(groups) else combinations
        for pair in np.unique(kinds.astype(np.int64) * (len(same) + 1) + of_file):
            kind, group = divmod(int(pair), len(same) + 1)
            rest = next(rest for c, rest in rests.items() if group_of[c] == group)
            yield self._kinds[kind], rest, known[(kinds == kind) & (of_file == group)]

    def _asked(
        self,
        kind: Kind,
        rest: Expression,
        members: Int64Array,
        parts: FilterParts,
        projection: Projection,
        by: Matching,
    ) -> tuple[Units, bool]:
        """The row groups of these files that can match, and whether keys have said so."""
        model = kind.model
        question = parts.for_file(rest, projection, model, by)
        if isinstance(question, Known):
            return (None if question.value is True else np.zeros(0, np.uint64)), False
        predicate = bind(question, model.tree, model.fields.shown)
        units = by_keys(self.catalog, kind, predicate)
        if self.catalog.bounds is None or not self._options.use_statistics:
            return units, units is not None
        files = np.sort(self._table.numbers[self._place_of[members]])
        if units is not None:
            files = np.intersect1d(files, files_of(units))
            if len(files) <= FEW_FILES:
                return units, True
        bounded = by_bounds(self.catalog.bounds, kind, predicate, files)
        if bounded is None or units is None:
            return (units if bounded is None else bounded), units is not None
        return np.intersect1d(units, bounded), True

    def _by_file(self, units: Any, members: Int64Array) -> Iterator[tuple[int, list[int]]]:
        """The row groups of each of the files ``members`` that have any."""
        files, groups = files_of(units), (units & np.uint64((1 << FILE_SHIFT) - 1)).astype(np.int64)
        own = self._table.numbers[self._place_of[members]]
        order = np.argsort(own)
        at = np.searchsorted(own[order], files)
        there = at < len(own)
        there[there] = own[order][at[there]] == files[there]
        for place in np.unique(at[there]).tolist():
            yield int(members[order[place]]), groups[there & (at == place)].tolist()


def _key(rest: Expression) -> Any:
    return rest.value if isinstance(rest, Known) else id(rest)
