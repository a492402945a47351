"""A job over files: one task for some files of similar size together, one row of the report for each file."""

from __future__ import annotations

import errno
import os
import pickle
import posixpath
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from typing import Any

from pyparq.datasets.discovery import DataFile, discover
from pyparq.datasets.write.crashed_commits import found_to_change
from pyparq.errors import OptionError, ParquetError
from pyparq.maintenance.index_request import check_columns
from pyparq.read.file import ParquetFile
from pyparq.spark.keys import keys_of
from pyparq.spark.session import is_connect, parallelism
from pyparq.spark.work import ask, over_payloads

REPORT = (
    "path string, ok boolean, error string, rows long, bytes_read long, bytes_decoded long, bytes_copied long, "
    "bytes_written long, seconds double, added string"
)
"""Columns of a report: Spark's text of the schema."""

PER_SLOT = 4
"""Tasks for each slot: one that takes long does not keep the others waiting."""

LOOKED_AT = 8
"""Files, about, whose schemas are looked at before a job."""

Progress = Callable[[int, int], Any]
"""Called with the number of files that are done and the number of files."""


@dataclass(frozen=True)
class FileRow:
    """A row of a report: what was done to one file. Sizes are in bytes."""

    path: str
    ok: bool = True
    error: str | None = None
    rows: int | None = None
    bytes_read: int | None = None
    bytes_decoded: int | None = None
    bytes_copied: int | None = None
    bytes_written: int | None = None
    seconds: float = 0.0
    added: str | None = None


@dataclass(frozen=True)
class FileJob:
    """What every task of a job has to know. It is pickled."""

    work: str
    """``"add_indexes"`` or ``"verify"``."""
    options: dict[str, Any]
    decryption: str | None
    storage_options: Mapping[str, Any] | None


def report_of(spark: Any, source: Any, job: FileJob, progress: Progress | None, target: str | None = None) -> Any:
    """Run ``job`` over all files of ``source`` now, and give the report as a DataFrame.

    ``target``: a folder for the new files. A file that fails is a row of the report; the others go on.
    """
    files = _files(spark, source, job, job.work == "add_indexes" and target is None)
    named = list(zip(files, _places(files, target), strict=True))
    payloads = [pickle.dumps((job, part)) for part in balanced(named, PER_SLOT * parallelism(spark))]
    rows = _collected(spark, payloads, len(files), progress)
    place = {file.name: k for k, file in enumerate(files)}
    rows.sort(key=lambda row: place.get(row[0], len(place)))
    return spark.createDataFrame([tuple(row) for row in rows], REPORT)


def _files(spark: Any, source: Any, job: FileJob, in_place: bool) -> list[DataFile]:
    """The files of a source, listed where they are, and a look at whether they have the columns that are named."""
    if not is_connect(spark):
        return listed(source, job, in_place)
    found: list[DataFile] = ask(spark, "list", source, job, in_place)
    return found


def listed(source: Any, job: FileJob, in_place: bool = False) -> list[DataFile]:
    """The files of a source; ``in_place``: they are about to be changed. Raises ``FileNotFoundError`` where there is
    nothing, and what :func:`_check_columns` does."""
    found = (found_to_change if in_place else discover)(source, job.storage_options)
    for file in found.files:
        if found.is_one_file and "://" not in file.where and not os.path.exists(file.where):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), file.where)
    if job.work == "add_indexes":
        _check_columns(found.files, job)
    return list(found.files)


def _check_columns(files: Sequence[DataFile], job: FileJob) -> None:
    """Raise :class:`ColumnNotFoundError` and the like for what none of some files can have: before the job, not once
    for each file of it. What only some files lack stands in the report."""
    said: ParquetError | None = None
    for file in files[:: max(len(files) // LOOKED_AT, 1)]:
        keys, remote = keys_of(job.decryption), job.storage_options if "://" in str(file.where) else None
        try:
            with ParquetFile(file.where, decryption=keys, storage_options=remote) as parquet:
                tree = parquet.schema
        except (ParquetError, OSError):
            continue  # the report says so
        try:
            check_columns(job.options, tree)
            return
        except ParquetError as error:
            said = error
    if said is not None:
        raise said


def _places(files: Sequence[DataFile], target: str | None) -> list[str | None]:
    """Where the new file of each file goes: to the place in the folder that it has below the source's root."""
    if target is None:
        return [None] * len(files)
    found: dict[str, str] = {}
    for file in files:
        place = posixpath.join(target, *file.folders, posixpath.basename(file.name))
        if place in found:
            raise OptionError(f"{found[place]} and {file.name} would both be written to {place}")
        found[place] = file.name
    return list(found)


def balanced(files: Sequence[tuple[DataFile, Any]], parts: int) -> list[list[tuple[DataFile, Any]]]:
    """At most ``parts`` groups of similar size: the largest file first, each to the group that has least."""
    groups: list[list[tuple[DataFile, Any]]] = [[] for _ in range(max(min(parts, len(files)), 1))]
    sizes = [0] * len(groups)
    for file in sorted(files, key=lambda named: -(named[0].size or 0)):
        least = sizes.index(min(sizes))
        groups[least].append(file)
        sizes[least] += (file[0].size or 0) + (1 << 16)  # a file costs something whatever its size
    return [group for group in groups if group]


def _collected(spark: Any, payloads: Sequence[bytes], total: int, progress: Progress | None) -> list[Any]:
    """The rows of all tasks. With ``progress``, each task is a job of its own: Spark runs as many at a time as it has
    slots, and the end of each can be told. Reading the results of one job one by one would run them one by one."""
    if not payloads:
        return []
    if progress is None:
        return list(over_payloads(spark, "files", payloads, REPORT).collect())
    rows: list[Any] = []
    with ThreadPoolExecutor(parallelism(spark)) as pool:
        jobs = [pool.submit(over_payloads(spark, "files", [payload], REPORT).collect) for payload in payloads]
        for job in as_completed(jobs):
            rows += job.result()
            progress(len(rows), total)
    return rows


def file_rows(job: FileJob, files: Sequence[tuple[DataFile, Any]]) -> Iterator[dict[str, Any]]:
    """What a task does: a row for each of its files."""
    from pyparq.spark.file_work import WORK

    for file, target in files:
        began = time.perf_counter()
        try:
            row = WORK[job.work](file, target, job)
        except (ParquetError, OSError) as error:
            row = FileRow(file.name, False, f"{type(error).__name__}: {error}")
        yield asdict(replace(row, seconds=time.perf_counter() - began))
