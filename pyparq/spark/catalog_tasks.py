"""What the processes of a job do that makes a catalog: listing, reading shares of the files, joining the keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pyparq.column_names import ColumnName
from pyparq.datasets.catalog.building import ShareReader, ShareResult, merged_range
from pyparq.datasets.catalog.index_dataset import Build, CatalogReport, new_build
from pyparq.datasets.catalog.key_table import KeyTable
from pyparq.datasets.catalog.layout import Place, Segment
from pyparq.datasets.data_files import DataFile
from pyparq.errors import WriteConflictError
from pyparq.io.file_versions import Stated
from pyparq.options import ReadOptions


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
    names: Sequence[ColumnName]
    before: str
    """The checksum of the catalog before."""
    rows: list[int]
    """Entries of each key column that it has."""
    next_number: int


def todo(job: CatalogJob) -> Todo:
    """The files to read."""
    build = job.begun()
    segments = [] if build.before is None else build.before.head.segments
    rows = [sum(s.part.rows for s in segments if s.column == k) for k in range(len(build.names))]
    files = [(number, file, file.listed) for number, file in build.missing]
    return Todo(files, build.names, build.checksum, rows, build.next_number)


def read_share(job: CatalogJob, names: Sequence[ColumnName], files: Sequence[Listed]) -> ShareResult:
    """Read some of the files. Their keys are written beside the catalog, to be joined."""
    options = ReadOptions(use_threads="://" in job.source)  # Spark has a task for each core
    reader = ShareReader(Place(job.source, job.storage_options), names, options, job.storage_options)
    reader.read([(number, replace(file, listed=listed)) for number, file, listed in files])
    return reader.written()


def join_range(
    job: CatalogJob, column: int, segments: Sequence[Segment], wanted: tuple[int, int, int], next_number: int
) -> list[Segment]:
    """The keys of one range of hashes, out of what all shares have written."""
    place = Place(job.source, job.storage_options)
    tables = [KeyTable(place, segment) for segment in segments]
    return list(merged_range(place, column, tables, np.ones(max(next_number, 1), bool), wanted))


def finish(job: CatalogJob, before: str, shares: Sequence[ShareResult], segments: Sequence[Segment]) -> CatalogReport:
    """Write the catalog. Raises :class:`WriteConflictError` if another one was written meanwhile."""
    build = job.begun()
    if build.checksum != before:
        raise WriteConflictError("another update has written a catalog meanwhile: run index_dataset again")
    for share in shares:
        build.take(replace(share, segments=[]))
    report = build.finished(lambda column, rows, live: [s for s in segments if s.column == column])
    Place(job.source, job.storage_options).remove_all(segment for share in shares for segment in share.segments)
    return report


STEPS: dict[str, Callable[..., Any]] = {"todo": todo, "share": read_share, "join": join_range, "finish": finish}
