"""``index_dataset`` as Spark jobs: tasks read the keys of shares of the files, and others join them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pyparq.datasets.catalog.building import ShareReader, ShareResult, merged_range
from pyparq.datasets.catalog.index_dataset import Build, CatalogReport, new_build
from pyparq.datasets.catalog.index_dataset import index_dataset as of_table
from pyparq.datasets.catalog.key_table import KeyTable, bits_for
from pyparq.datasets.catalog.layout import Key, Place, Segment
from pyparq.datasets.data_files import DataFile
from pyparq.errors import WriteConflictError
from pyparq.io.file_versions import Stated
from pyparq.io.table_formats import format_of
from pyparq.options import ReadOptions
from pyparq.spark.session import absolute, check_session, is_connect, parallelism, store_options
from pyparq.spark.tasks import PER_SLOT, here, in_tasks

if TYPE_CHECKING:
    from pyparq.column_names import Names

JOINED_ROWS = 8_000_000
"""Entries that one task joins: 400 MB of memory."""
FEWEST = 16
"""Files of a share, if there are so many."""


def index_dataset(
    spark: Any,
    source: Any,
    columns: Names | None = None,
    *,
    rebuild: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> CatalogReport:
    """Make a catalog of the keys in a dataset, or bring it up to date, on Spark's workers.

    The parameters and the report are those of :func:`pyparq.index_dataset`. Tasks read shares of the files that are new
    or have changed; others join the keys, each a range of the hashes. The catalog appears when all is done. The folder
    must be one that all workers see: in a store, or on a disk that they share. A table of Delta Lake or Iceberg is
    indexed in this process.

    Example::

        import pyparq.spark as ps

        ps.index_dataset(spark, "flights/", ["tailnum"])
    """
    check_session(spark)
    if format_of(source) is not None:  # its own library has opened it here
        return of_table(source, columns, rebuild=rebuild, storage_options=storage_options)
    where = absolute(source, is_connect(spark))
    job = CatalogJob(where, columns, rebuild, store_options(spark, storage_options, where))
    todo: Todo = here(spark, _todo, job)
    count = max(min(PER_SLOT * parallelism(spark), -(-len(todo.files) // FEWEST)), 1)
    parts = [(todo.files[k::count],) for k in range(count)] if todo.files else []
    shares = in_tasks(spark, _read_share, parts, todo.names, job)
    of_columns = [[s for share in shares for s in share.segments if s.column == k] for k in range(len(todo.rows))]
    joins = [
        (column, segments, wanted, todo.next_number)
        for column, (segments, before) in enumerate(zip(of_columns, todo.rows, strict=True))
        for wanted in _ranges(segments, before)
    ]
    joined = [segment for found in in_tasks(spark, _join_range, joins, job) for segment in found]
    report: CatalogReport = here(spark, _finish, job, todo.before, shares, joined)
    return report


def _ranges(segments: list[Any], before: int) -> list[tuple[int, int, int]]:
    """The ranges of hashes that tasks join: from, to, and the bits of the hashes that are stored."""
    rows = sum(segment.part.rows for segment in segments)
    bits, count = bits_for(rows + before), -(-rows // JOINED_ROWS)
    ends = [(k << bits) // count for k in range(count + 1)] if count else []
    return [(low, high - 1, bits) for low, high in itertools.pairwise(ends)]


# ---- steps: where the files are --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CatalogJob:
    """What each process of the job has to know. It can be pickled."""

    source: str
    columns: Any
    rebuild: bool
    storage_options: Any

    def begun(self) -> Build:
        return new_build(self.source, self.columns, self.rebuild, self.storage_options, ReadOptions())


Listed = tuple[int, DataFile, Stated | None]
"""The number of a file, the file, and what its store says of it: a file that is pickled does not take this along."""


@dataclass(frozen=True)
class Todo:
    """What there is to do."""

    files: list[Listed]
    names: Sequence[Key]
    before: str
    """The checksum of the catalog before."""
    rows: list[int]
    """Entries of each key column that it has."""
    next_number: int


def _todo(job: CatalogJob) -> Todo:
    """The files to read."""
    build = job.begun()
    segments = [] if build.before is None else build.before.head.segments
    rows = [sum(s.part.rows for s in segments if s.column == k) for k in range(len(build.names))]
    files = [(number, file, file.listed) for number, file in build.missing]
    return Todo(files, build.names, build.checksum, rows, build.next_number)


def _read_share(files: Sequence[Listed], names: Sequence[Key], job: CatalogJob) -> ShareResult:
    """Read some of the files. Their keys are written beside the catalog, to be joined."""
    options = ReadOptions(use_threads="://" in job.source)  # Spark has a task for each core
    reader = ShareReader(Place(job.source, job.storage_options), names, options, job.storage_options)
    reader.read([(number, replace(file, listed=listed)) for number, file, listed in files])
    return reader.written()


def _join_range(
    column: int, segments: Sequence[Segment], wanted: tuple[int, int, int], next_number: int, job: CatalogJob
) -> list[Segment]:
    """The keys of one range of hashes, out of what all shares have written."""
    place = Place(job.source, job.storage_options)
    tables = [KeyTable(place, segment) for segment in segments]
    return list(merged_range(place, column, tables, np.ones(max(next_number, 1), bool), wanted))


def _finish(job: CatalogJob, before: str, shares: Sequence[ShareResult], segments: Sequence[Segment]) -> CatalogReport:
    """Write the catalog. Raises :class:`WriteConflictError` if another one was written meanwhile."""
    build = job.begun()
    if build.checksum != before:
        raise WriteConflictError("another update has written a catalog meanwhile: run index_dataset again")
    for share in shares:
        build.take(replace(share, segments=[]))
    report = build.finished(lambda column, rows, live: [s for s in segments if s.column == column])
    Place(job.source, job.storage_options).remove_all(segment for share in shares for segment in share.segments)
    return report
