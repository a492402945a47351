"""A job over files: what its tasks have to know, the files that it lists, and the columns of its report."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyparq.datasets.data_files import DataFile
from pyparq.datasets.discovery import discover
from pyparq.errors import ParquetError
from pyparq.maintenance.in_place import found_to_change
from pyparq.maintenance.index_building import check_columns
from pyparq.read.file import ParquetFile
from pyparq.spark.keys import keys_of

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
