"""Finds the files of a dataset: by the listing of a source, by the log of a table, or by a catalog that is trusted.

A trusted catalog says which files there are, so the folder is not listed. A question about keys then opens the files
that have them, and needs no list of the others. The user promises that the folder is as it was when the catalog was
made.
"""

from __future__ import annotations

import json
import os
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pyparq.datasets.catalog.answers import by_keys
from pyparq.datasets.catalog.catalog import Catalog, KnownFiles, files_of, open_catalog
from pyparq.datasets.catalog.file_table import FileTable
from pyparq.datasets.catalog.layout import Place
from pyparq.datasets.common_schema import marked
from pyparq.datasets.data_files import DataFile, SourceFiles
from pyparq.datasets.delta import open_delta
from pyparq.datasets.discovery import discover
from pyparq.datasets.files import DatasetFiles, Progress
from pyparq.datasets.iceberg import open_iceberg
from pyparq.datasets.partitions import Partitions, partitions_of, with_filenames
from pyparq.datasets.query import Query
from pyparq.datasets.tables import foreign_metadata, store_options_of
from pyparq.errors import OptionError
from pyparq.filters.bind import bind
from pyparq.filters.expression import Known
from pyparq.format.types import Schema
from pyparq.io.file_versions import Stated
from pyparq.io.retry import Retry
from pyparq.io.table_formats import DELTA, format_of
from pyparq.io.url import shown
from pyparq.options import ReadOptions
from pyparq.read.file import needs_microseconds

MOST_FILES = 10_000
"""If keys leave more files than this, the list of all files is read."""


@dataclass
class Opening:
    """How a dataset is opened."""

    source: Any
    storage_options: Mapping[str, Any] | None
    declared: Schema | None
    partitioning: Any
    filename: str | None
    options: ReadOptions
    by: str
    on_error: str
    progress: Progress | None

    def listed_files(self, *, use_catalog: bool) -> DatasetFiles:
        """The files that the source stands for."""
        found = discover(self.source, self.storage_options, self._retry)
        found = found if use_catalog else replace(found, catalog=None)
        files = self._files(found, self._partitions(found.files, self.partitioning))
        files.tells_left_out = self.declared is not None
        return _with_one_unit(files)

    def table_files(self, *, use_catalog: bool) -> DatasetFiles | None:
        """The files of a table of Delta Lake or Iceberg, at the version that it has loaded. ``None`` for any other
        source. The table's package is not imported: the name of its class tells it."""
        format_ = format_of(self.source)
        if format_ is None:
            return None
        for name, given in (
            ("schema", self.declared is not None), ("partitioning", self.partitioning != "hive"),
            ("by", self.by != "name"),
        ):  # fmt: skip
            if given:
                raise OptionError(f"{name} is not an option for a table of Delta Lake or Iceberg: its log says it")
        with foreign_metadata(self.source):
            table = open_delta(self.source) if format_ == DELTA else open_iceberg(self.source)
        given = store_options_of(self.source) if self.storage_options is None else self.storage_options
        by = table.matching._replace(case_sensitive=self.options.case_sensitive)
        catalog = table.catalog if use_catalog else None
        found = SourceFiles(table.root, table.files, False, given, catalog=catalog, version=table.version)
        files = DatasetFiles(
            found, self._with_filenames(table.partitions, table.files), table.schema, self.options, by, self.on_error,
            self.progress, table.known,
        )  # fmt: skip
        return _with_one_unit(files)

    def trusted_catalog(self) -> TrustedCatalog | None:
        """The files of a folder by its catalog. ``None`` if the catalog does not have all files of the folder.

        Raises :class:`OptionError` where there is no catalog, and what reading it raises.
        """
        if self.options.coerce_int96_timestamp_unit == "auto":
            raise OptionError(
                'coerce_int96_timestamp_unit="auto" looks into all files, which catalog="trust" does not: '
                'give "us" or "ns"'
            )
        if not isinstance(self.source, (str, os.PathLike)):
            raise OptionError('catalog="trust" takes a folder or the URL of one')
        place = Place(os.fsdecode(self.source), self.storage_options, retry=self._retry)
        catalog = open_catalog(place)
        if catalog is None:
            raise OptionError(
                'there is no catalog to trust: make one with pyparq.index_dataset, or leave out catalog="trust"',
                file=shown(place.root_name),
            )
        is_usable = catalog.head.is_complete and catalog.head.partitions is not None and catalog.head.table is None
        return TrustedCatalog(place, catalog, self) if is_usable else None

    @property
    def _retry(self) -> Retry:
        return Retry(self.options.retries, self.options.retry_wait)

    def _files(self, found: SourceFiles, partitions: Partitions) -> DatasetFiles:
        return DatasetFiles(found, partitions, self.declared, self.options, self.by, self.on_error, self.progress)

    def _partitions(self, files: Sequence[DataFile], partitioning: Any) -> Partitions:
        """The partition columns, and the column of file names if it is asked for."""
        partitions = partitions_of(files, partitioning, self.options.case_sensitive)
        if self.declared is not None and not self.options.case_sensitive:
            partitions = partitions.spelled(self.declared.names)
        return self._with_filenames(partitions, files)

    def _with_filenames(self, partitions: Partitions, files: Sequence[DataFile]) -> Partitions:
        if self.filename is None:
            return partitions
        return with_filenames(partitions, files, self.filename, self.options.case_sensitive)

    def catalog_files(self, catalog: Catalog, place: Place, table: FileTable) -> DatasetFiles:
        """These files of a catalog. Their schema is that of all files in it."""
        head, paths = catalog.head, table.paths
        # Local folders are listed name by name, stores by whole paths.
        order = sorted(range(len(paths)), key=lambda k: paths[k].split("/") if place.is_local else paths[k])
        listed = tuple(_data_file(place, table, k) for k in order)
        own = self.partitioning if self.partitioning != "hive" else dict(head.partitions or {}) or None
        found = SourceFiles(place.root_name, listed, False, self.storage_options)
        made = self._files(found, self._partitions(listed, own))
        models = [kind.model for k in head.kind_order for kind in (catalog.kinds(self.options)[k],)]
        schemas = [(place.root_name, marked(model.fields.schema, model.tree)) for model in models]
        made.believe(KnownFiles(catalog, table, np.array(order, np.int64), self.options), schemas, head.num_files)
        return made


class TrustedCatalog:
    """Makes the files of a dataset from its catalog: all, or those that a filter needs."""

    def __init__(self, place: Place, catalog: Catalog, opening: Opening) -> None:
        self._place = place
        self._catalog = catalog
        self._opening = opening
        self._all: DatasetFiles | None = None

    def all_files(self) -> DatasetFiles:
        """All files. Reads the list of them."""
        if self._all is None:
            self._all = self._files(self._catalog.files)
        return self._all

    def files_for(self, filters: Any) -> DatasetFiles:
        """The files that keys leave, or all where keys say nothing."""
        numbers = None if filters is None or self._all is not None else self._left(filters)
        return self.all_files() if numbers is None else self._files(self._catalog.files_with(numbers))

    def _files(self, table: FileTable) -> DatasetFiles:
        return self._opening.catalog_files(self._catalog, self._place, table)

    def _left(self, filters: Any) -> Any:
        """The numbers of the files that keys leave. ``None``: keys say nothing, or leave many."""
        query = Query(self._files(FileTable.none()), None, filters)
        if query.expression is None or query.filter.asks_partitions:
            return None
        self._catalog.begin(all_files=False)
        found, kinds = [np.zeros(0, np.int64)], self._catalog.kinds(self._opening.options)
        for kind in (kinds[k] for k in self._catalog.head.kind_order):
            model = kind.model
            question = query.in_file(query.expression, model)
            if isinstance(question, Known):
                if question.value is True:
                    return None
                continue
            units = by_keys(self._catalog, kind, bind(question, model.tree, model.fields.shown))
            if units is None:
                return None
            found.append(files_of(units))
        numbers = np.unique(np.concatenate(found))
        return numbers if len(numbers) <= MOST_FILES else None


def _data_file(place: Place, table: FileTable, k: int) -> DataFile:
    """A file of a catalog in the state that it knows."""
    path, size = table.paths[k], int(table.sizes[k])
    folders = tuple(path.split("/")[:-1])
    version = json.loads(table.versions[k] or "[]")
    if place.is_local:
        where = os.path.join(place.root, *path.split("/"))
        inode = int(table.inodes[k]) & ((1 << 64) - 1)
        return DataFile(
            where, where, folders, size, int(table.mtimes[k]), inode, ctime_ns=dict(version).get("ctime_ns")
        )
    url = place.fs.unstrip_protocol(posixpath.join(place.root, path))
    # A catalog that was made on a disk, and copied to a store with its files, has no versions.
    said = tuple((str(name), value) for name, value in version)
    is_tag = all(isinstance(value, str) for _, value in said) and table.mtimes[k] == 0
    stated = Stated(size, said if is_tag else (), () if is_tag else said, is_listed=True)
    return DataFile(shown(url), url, folders, size, int(table.mtimes[k]) or None, fs=place.fs, listed=stated)


def _with_one_unit(files: DatasetFiles) -> DatasetFiles:
    """The files with one unit for all of them in place of ``coerce_int96_timestamp_unit="auto"``."""
    options = files.options
    if options.coerce_int96_timestamp_unit != "auto":
        return files
    opened = [file for _, file in files.open_all(range(len(files.found.files)))]
    coarse = any(files.map_files(needs_microseconds, opened))
    return files.with_options(replace(options, coerce_int96_timestamp_unit="us" if coarse else "ns"), files.declared)
