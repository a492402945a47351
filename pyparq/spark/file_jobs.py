"""``add_indexes`` and ``verify`` over the files of a dataset as Spark jobs: a task for some files of similar size
together, and a row of the report for each file."""

from __future__ import annotations

import errno
import inspect
import os
import posixpath
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import astuple, dataclass, replace
from typing import Any

from pyparq.datasets.data_files import DataFile
from pyparq.datasets.discovery import discover
from pyparq.errors import OptionError, ParquetError
from pyparq.io.table_formats import IN_PLACE, check_folder
from pyparq.io.url import is_url
from pyparq.maintenance.in_place import found_to_change
from pyparq.maintenance.index_building import check_columns
from pyparq.maintenance.report import CHANGES, IndexedFile
from pyparq.read.file import ParquetFile
from pyparq.spark.job_log import tell_job
from pyparq.spark.options import check_factory, keys_of
from pyparq.spark.session import absolute, check_session, is_connect, parallelism, store_options
from pyparq.spark.tasks import PER_SLOT, Progress, here, in_tasks

REPORT = (
    "path string, ok boolean, error string, rows long, bytes_read long, bytes_decoded long, bytes_copied long, "
    "bytes_written long, seconds double, added string"
)
"""Columns of a report: Spark's text of the schema."""

LOOKED_AT = 8
"""Files, about, whose schemas are looked at before a job."""


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

    indexes: bool
    """Indexes are added; otherwise files are verified."""
    options: dict[str, Any]
    decryption: str | None
    storage_options: Mapping[str, Any] | None

    def opening(self, file: DataFile) -> dict[str, Any]:
        """How a file is opened."""
        remote = self.storage_options if "://" in str(file.where) else None
        return {"decryption": keys_of(self.decryption), "storage_options": remote}


def add_indexes(
    spark: Any,
    source: Any,
    target: Any = None,
    *,
    decryption: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Any:
    """Add Bloom filters and page indexes to the files of a dataset, on Spark's workers.

    ``source`` and ``target``: as in :func:`pyparq.add_indexes`; without a target each file is replaced in its place.
    ``decryption``: the name of a function that makes the keys on each worker (``"module:function"``). ``progress``:
    called with the number of files done and the number of files. ``options``: those of :func:`pyparq.add_indexes`.

    The job runs now. Returns a DataFrame with one row per file: ``path, ok, error, rows, bytes_read, bytes_decoded,
    bytes_copied, bytes_written, seconds, added``. A file that fails is a row with ``ok`` false, and the others go on.
    A second run leaves files alone that have what is asked for.

    Example::

        import pyparq.spark as ps

        ps.add_indexes(spark, "flights/", bloom_filters=["tailnum"]).show()
    """
    return _report(spark, source, target, True, options, decryption, storage_options, progress)


def verify(
    spark: Any,
    source: Any,
    *,
    decryption: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Any:
    """Check every file of a dataset against its own data, on Spark's workers: see :func:`pyparq.verify`.

    The parameters and the report are those of :func:`add_indexes`; ``ok`` is false for files with findings, and
    ``error`` tells the first of them.

    Example::

        import pyparq.spark as ps

        ps.verify(spark, "flights/").where("not ok").show()
    """
    return _report(spark, source, None, False, options, decryption, storage_options, progress)


def _report(
    spark: Any, source: Any, target: Any, indexes: bool, options: dict[str, Any], decryption: str | None,
    storage_options: Any, progress: Progress | None,
) -> Any:  # fmt: skip
    """Run a job over all files of ``source`` now, and give the report as a DataFrame.

    ``target``: as in :func:`add_indexes`. A file that fails is a row of the report; the others go on.
    """
    check_session(spark)
    check_factory(decryption)
    _check_options(indexes, options)
    where = absolute(source, is_connect(spark))
    job = FileJob(indexes, options, decryption, store_options(spark, storage_options, where))
    in_place = indexes and target is None
    for place in (where if isinstance(where, list) else [where]) if in_place else ():
        if isinstance(place, str) and not is_url(place):
            check_folder(place, IN_PLACE, bool(options.get("force")))
    files: list[DataFile] = here(spark, _listed, where, job, in_place)
    folder = None if target is None else absolute(target, is_connect(spark))
    named = list(zip(files, _places(files, folder), strict=True))
    groups = balanced(named, [file.size or 0 for file in files], PER_SLOT * parallelism(spark)) if named else []
    rows = _collected(spark, [(group,) for group in groups], job, len(files), progress)
    order = {file.name: k for k, file in enumerate(files)}
    rows.sort(key=lambda row: order.get(row.path, len(order)))
    what = "add_indexes" if indexes else "verify"
    sizes = sum((row.bytes_written if indexes else row.bytes_read) or 0 for row in rows)
    tell_job(f"{what} ({sum(row.ok for row in rows):,} ok)", source, len(rows), sum(r.rows or 0 for r in rows), sizes)
    return spark.createDataFrame([astuple(row) for row in rows], REPORT)


_OWN = ("source", "target", "on_error", "use_threads", "progress", "decryption", "storage_options")


def _check_options(indexes: bool, options: Mapping[str, Any]) -> None:
    """Raise :class:`OptionError` for an option that the work does not take: before the job, not in each task."""
    from pyparq.maintenance.add_indexes import add_indexes as indexing
    from pyparq.maintenance.verify.verify import verify as verifying

    function: Any = indexing if indexes else verifying
    known = [name for name in inspect.signature(function).parameters if name not in _OWN]
    for name in options:
        if name not in known:
            raise OptionError(
                f"unknown option {name!r} of pyparq.spark.{function.__name__}. It takes {', '.join(known)}"
            )


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


def balanced(files: Sequence[Any], sizes: Sequence[int], parts: int) -> list[list[Any]]:
    """At most ``parts`` groups of similar size: the largest file first, each to the group that has least."""
    groups: list[list[Any]] = [[] for _ in range(max(min(parts, len(files)), 1))]
    totals = [0] * len(groups)
    for k in sorted(range(len(files)), key=lambda k: -sizes[k]):
        least = totals.index(min(totals))
        groups[least].append(files[k])
        totals[least] += sizes[k] + (1 << 16)  # a file costs something whatever its size
    return [group for group in groups if group]


def _collected(
    spark: Any, payloads: Sequence[tuple[Any]], job: FileJob, total: int, progress: Progress | None
) -> list[FileRow]:
    """The rows of all tasks. With ``progress``, each task is a job of its own: Spark runs as many at a time as it has
    slots, and the end of each can be told. Reading the results of one job one by one would run them one by one."""
    if progress is None or not payloads:
        return [row for rows in in_tasks(spark, _file_rows, payloads, job) for row in rows]
    rows = list[FileRow]()
    with ThreadPoolExecutor(parallelism(spark)) as pool:
        jobs = [pool.submit(in_tasks, spark, _file_rows, [payload], job) for payload in payloads]
        for done in as_completed(jobs):
            rows += done.result()[0]
            progress(len(rows), total)
    return rows


# ---- where the files are ---------------------------------------------------------------------------------------------


def _listed(source: Any, job: FileJob, in_place: bool) -> list[DataFile]:
    """The files of a source; ``in_place``: they are about to be changed. Raises ``FileNotFoundError`` where there is
    nothing, and what :func:`_check_columns` does."""
    found = (found_to_change if in_place else discover)(source, job.storage_options)
    for file in found.files:
        if found.is_one_file and "://" not in file.where and not os.path.exists(file.where):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), file.where)
    if job.indexes:
        _check_columns(found.files, job)
    return list(found.files)


def _check_columns(files: Sequence[DataFile], job: FileJob) -> None:
    """Raise :class:`ColumnNotFoundError` and the like for what none of some files can have: before the job, not once
    for each file of it. What only some files lack stands in the report."""
    said: ParquetError | None = None
    for file in files[:: max(len(files) // LOOKED_AT, 1)]:
        try:
            with ParquetFile(file.where, **job.opening(file)) as parquet:
                tree = parquet.tree
        except (ParquetError, OSError):
            continue  # the report says so
        try:
            check_columns(job.options, tree)
            return
        except ParquetError as error:
            said = error
    if said is not None:
        raise said


def _file_rows(files: Sequence[tuple[DataFile, Any]], job: FileJob) -> list[FileRow]:
    """What a task does: a row for each of its files. It uses one thread, because Spark runs as many tasks at a time as
    there are cores."""
    rows = []
    for file, target in files:
        began = time.perf_counter()
        try:
            row = _indexed(file, target, job) if job.indexes else _verified(file, job)
        except (ParquetError, OSError) as error:
            row = FileRow(file.name, False, f"{type(error).__name__}: {error}")
        rows.append(replace(row, seconds=time.perf_counter() - began))
    return rows


def _indexed(file: DataFile, target: Any, job: FileJob) -> FileRow:
    from pyparq.maintenance.add_indexes import add_indexes as indexing

    if target is not None and "://" not in target:
        os.makedirs(os.path.dirname(target), exist_ok=True)
    opening = job.opening(file)
    (done,) = indexing(file.where, target, use_threads=False, on_error="skip", **opening, **job.options).files
    if done.error is not None:
        return FileRow(file.name, False, f"{type(done.error).__name__}: {done.error}")
    with ParquetFile(file.where, **opening) as parquet:
        rows = parquet.metadata.num_rows
    return FileRow(
        file.name, rows=rows,
        bytes_read=done.bytes_decoded + (done.bytes_copied if done.written else 0), bytes_decoded=done.bytes_decoded,
        bytes_copied=done.bytes_copied, bytes_written=done.bytes_written, added=_added(done) or None,
    )  # fmt: skip


def _added(done: IndexedFile) -> str:
    """``bloom_filter: id, name; column_index: id``"""
    kinds = []
    for kind in ("bloom_filter", "column_index", "offset_index"):
        names = [c.name for c in done.columns if any(getattr(c, kind).get(change) for change in CHANGES)]
        if names:
            kinds.append(f"{kind}: {', '.join(names)}")
    return "; ".join(kinds)


SHOWN = 3
"""Findings of a file that its row tells."""


def _verified(file: DataFile, job: FileJob) -> FileRow:
    from pyparq.maintenance.verify.verify import verify as verifying

    (checked,) = verifying(file.where, use_threads=False, **job.opening(file), **job.options).files
    said = [str(finding) for finding in checked.findings[:SHOWN]]
    if len(checked.findings) > SHOWN:
        said.append(f"{len(checked.findings) - SHOWN:,} more")
    return FileRow(file.name, checked.ok, "; ".join(said) or None, checked.num_rows, file.size, file.size, 0, 0)
