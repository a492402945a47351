"""What a job over files does where the files are: it lists them, and works on each.

A task works on one thread: Spark has as many tasks at a time as there are cores.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from pyparq.datasets.discovery import DataFile, discover
from pyparq.datasets.write.crashed_commits import found_to_change
from pyparq.errors import ParquetError
from pyparq.maintenance.add_indexes import add_indexes
from pyparq.maintenance.index_request import check_columns
from pyparq.maintenance.report import CHANGES, IndexedFile
from pyparq.maintenance.verify.verify import verify
from pyparq.read.file import ParquetFile
from pyparq.spark.keys import keys_of

REPORT = (
    "path string, ok boolean, error string, rows long, bytes_read long, bytes_decoded long, bytes_copied long, "
    "bytes_written long, seconds double, added string"
)
"""Columns of a report: Spark's text of the schema."""

LOOKED_AT = 8
"""Files, about, whose schemas are looked at before a job."""

SHOWN = 3
"""Findings of a file that its row tells."""


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
