"""The work on one file of a job. It uses one thread, because Spark runs as many tasks at a time as there are cores."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from pyparq.datasets.data_files import DataFile
from pyparq.errors import ParquetError
from pyparq.maintenance.add_indexes import add_indexes
from pyparq.maintenance.report import CHANGES, IndexedFile
from pyparq.maintenance.verify.verify import verify
from pyparq.read.file import ParquetFile
from pyparq.spark.file_jobs import FileJob, FileRow
from pyparq.spark.keys import keys_of

SHOWN = 3
"""Findings of a file that its row tells."""


def file_rows(job: FileJob, files: Sequence[tuple[DataFile, Any]]) -> Iterator[dict[str, Any]]:
    """What a task does: a row for each of its files."""
    for file, target in files:
        began = time.perf_counter()
        try:
            row = WORK[job.work](file, target, job)
        except (ParquetError, OSError) as error:
            row = FileRow(file.name, False, f"{type(error).__name__}: {error}")
        yield asdict(replace(row, seconds=time.perf_counter() - began))


def _add_indexes(file: DataFile, target: Any, job: FileJob) -> FileRow:
    if target is not None and "://" not in target:
        os.makedirs(os.path.dirname(target), exist_ok=True)
    keys = keys_of(job.decryption)
    report = add_indexes(
        file.where, target, use_threads=False, decryption=keys, storage_options=_remote(file, job),
        on_error="skip", **job.options,
    )  # fmt: skip
    (done,) = report.files
    if done.error is not None:
        return FileRow(file.name, False, f"{type(done.error).__name__}: {done.error}")
    with ParquetFile(file.where, decryption=keys, storage_options=_remote(file, job)) as parquet:
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


def _verify(file: DataFile, target: Any, job: FileJob) -> FileRow:
    report = verify(
        file.where, use_threads=False, decryption=keys_of(job.decryption), storage_options=_remote(file, job),
        **job.options,
    )  # fmt: skip
    (checked,) = report.files
    said = [str(finding) for finding in checked.findings[:SHOWN]]
    if len(checked.findings) > SHOWN:
        said.append(f"{len(checked.findings) - SHOWN:,} more")
    return FileRow(file.name, checked.ok, "; ".join(said) or None, checked.num_rows, file.size, file.size, 0, 0)


def _remote(file: DataFile, job: FileJob) -> Any:
    return job.storage_options if "://" in str(file.where) else None


WORK: dict[str, Callable[[DataFile, Any, FileJob], FileRow]] = {"add_indexes": _add_indexes, "verify": _verify}
