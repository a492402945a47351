"""A dataset whose catalog is trusted: the folder is not listed.

The catalog says which files there are. A question about keys then opens the files that have them, and needs no list of
the others. The user promises that the folder is as it was when the catalog was made.
"""

from __future__ import annotations

import json
import os
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyparq.arrow.table import Table
from pyparq.datasets.catalog.answers import by_keys
from pyparq.datasets.catalog.catalog import Catalog, files_of, open_catalog
from pyparq.datasets.catalog.file_table import FileTable
from pyparq.datasets.catalog.place import Place
from pyparq.datasets.data_files import DataFile, SourceFiles
from pyparq.datasets.partitions import partitions_of
from pyparq.datasets.read.column_matching import Matching
from pyparq.datasets.read.dataset_files import DatasetFiles, Progress
from pyparq.datasets.read.evolution import marked
from pyparq.datasets.read.filename_column import with_filenames
from pyparq.datasets.read.filter import FilterParts
from pyparq.datasets.read.known_files import KnownFiles
from pyparq.datasets.read.projection import Projection
from pyparq.errors import OptionError
from pyparq.filters.bind import bind
from pyparq.filters.expression import Expression, Known
from pyparq.filters.given import as_expression
from pyparq.format.types import Schema
from pyparq.io.file_versions import Stated
from pyparq.io.retry import Retry
from pyparq.io.url import shown
from pyparq.options import ReadOptions

MOST_FILES = 10_000
"""If keys leave more files than this, the list of all files is read."""


@dataclass
class Asked:
    """How a dataset is read, but for its files."""

    source: Any
    storage_options: Mapping[str, Any] | None
    declared: Schema | None
    partitioning: Any
    filename: str | None
    options: ReadOptions
    by: str
    on_error: str
    progress: Progress | None


def trusted_catalog(asked: Asked) -> TrustedCatalog | None:
    """The files of a folder by its catalog. ``None`` if the catalog does not have all files of the folder.

    Raises :class:`OptionError` where there is no catalog, and what reading it raises.
    """
    retry = Retry(asked.options.retries, asked.options.retry_wait)
    place = Place(asked.source, asked.storage_options, retry=retry)
    catalog = open_catalog(place)
    if catalog is None:
        raise OptionError(
            'there is no catalog to trust: make one with pyparq.index_dataset, or leave out catalog="trust"',
            file=shown(asked.source),
        )
    types = catalog.head.partitions
    return TrustedCatalog(place, catalog, asked) if catalog.head.is_complete and types is not None else None


class TrustedCatalog:
    """Makes the files of a dataset from its catalog: all, or those that a filter needs."""

    def __init__(self, place: Place, catalog: Catalog, asked: Asked) -> None:
        self._place = place
        self._catalog = catalog
        self._asked = asked
        self._all: DatasetFiles | None = None

    def all_files(self) -> DatasetFiles:
        """All files. Reads the list of them."""
        if self._all is None:
            self._all = self._files(self._catalog.files)
        return self._all

    def files_for(self, filters: Any) -> DatasetFiles:
        """The files that keys leave, or all where keys say nothing."""
        numbers = None if filters is None or self._all is not None else self._left(filters)
        if numbers is None:
            return self.all_files()
        return self._files(self._catalog.files_with(numbers))

    def _left(self, filters: Any) -> Any:
        """The numbers of the files that keys leave. ``None``: keys say nothing, or leave many."""
        none = self._files(FileTable.none())
        case_sensitive = none.matching.case_sensitive
        expression = as_expression(filters, lambda: none.tree, lambda: Table(none.schema, []))
        if expression is None:
            return None
        parts = FilterParts(expression, none.partition_values, case_sensitive)
        if parts.asks_partitions:
            return None
        self._catalog.begin(all_files=False)
        fields = none.partition_values.fields
        projection = Projection(none.schema, None, expression, fields, case_sensitive)
        return self._numbers(expression, parts, projection, none.matching)

    def _numbers(self, expression: Expression, parts: FilterParts, projection: Projection, by: Matching) -> Any:
        found = [np.zeros(0, np.int64)]
        kinds = self._catalog.kinds(self._asked.options)
        for k in self._catalog.head.kind_order:
            model = kinds[k].model
            question = parts.for_file(expression, projection, model, by)
            if isinstance(question, Known):
                if question.value is True:
                    return None
                continue
            units = by_keys(self._catalog, kinds[k], bind(question, model.tree, model.fields.shown))
            if units is None:
                return None
            found.append(files_of(units))
        numbers = np.unique(np.concatenate(found))
        return numbers if len(numbers) <= MOST_FILES else None

    def _files(self, table: FileTable) -> DatasetFiles:
        asked = self._asked
        order = sorted(range(len(table.paths)), key=lambda k: self._sort_key(table.paths[k]))
        listed = tuple(self._file(table, k) for k in order)
        found = SourceFiles(self._place.root_name, listed, False, asked.storage_options)
        types = self._catalog.head.partitions
        own = dict(types) if asked.partitioning == "hive" and types is not None else asked.partitioning
        case_sensitive = asked.options.case_sensitive
        partitions = partitions_of(listed, (own or None) if asked.partitioning == "hive" else own, case_sensitive)
        if asked.declared is not None and not case_sensitive:
            partitions = partitions.spelled(asked.declared.names)
        if asked.filename is not None:
            partitions = with_filenames(partitions, listed, asked.filename, case_sensitive)
        made = DatasetFiles(found, partitions, asked.declared, asked.options, asked.by, asked.on_error, asked.progress)
        known = KnownFiles(self._catalog, table, np.array(order, np.int64), asked.options)
        made.believe(known, self._schemas(), self._catalog.head.num_files)
        return made

    def _schemas(self) -> list[tuple[str, Schema]]:
        kinds = self._catalog.kinds(self._asked.options)
        models = [kinds[k].model for k in self._catalog.head.kind_order]
        return [(self._place.root_name, marked(model.fields.schema, model.tree)) for model in models]

    def _sort_key(self, path: str) -> Any:
        """Local folders are listed name by name, stores by whole paths."""
        return path.split("/") if self._place.is_local else path

    def _file(self, table: FileTable, k: int) -> DataFile:
        path, size = table.paths[k], int(table.sizes[k])
        folders = tuple(path.split("/")[:-1])
        if self._place.is_local:
            where = os.path.join(self._place.root, *path.split("/"))
            inode = int(table.inodes[k]) & ((1 << 64) - 1)
            ctime = dict(json.loads(table.versions[k] or "[]")).get("ctime_ns")
            return DataFile(where, where, folders, size, int(table.mtimes[k]), inode, ctime_ns=ctime)
        url = self._place.fs.unstrip_protocol(posixpath.join(self._place.root, path))
        # A catalog that was made on a disk, and copied to a store with its files, has no versions.
        said = tuple((str(name), value) for name, value in json.loads(table.versions[k] or "[]"))
        is_tag = all(isinstance(value, str) for _, value in said) and table.mtimes[k] == 0
        stated = Stated(size, said if is_tag else (), () if is_tag else said, is_listed=True)
        return DataFile(shown(url), url, folders, size, int(table.mtimes[k]) or None, fs=self._place.fs, listed=stated)
