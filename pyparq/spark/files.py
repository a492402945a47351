"""A job over files: one task for some files of similar size together, one row of the report for each file."""

from __future__ import annotations

import pickle
import posixpath
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from pyparq.datasets.data_files import DataFile
from pyparq.errors import OptionError
from pyparq.spark.file_jobs import REPORT, FileJob, listed
from pyparq.spark.session import is_connect, parallelism
from pyparq.spark.work import ask, over_payloads

PER_SLOT = 4
"""Tasks for each slot: one that takes long does not keep the others waiting."""

Progress = Callable[[int, int], Any]
"""Called with the number of files that are done and the number of files."""


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
