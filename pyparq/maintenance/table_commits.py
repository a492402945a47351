"""Puts new files in the place of a table's data files, by a commit of the table's own library.

A table of Delta Lake or Iceberg records the sizes of its files, so they cannot change in place. Each new file is
written beside the old one. One commit then names the new files instead of the old ones. Older versions of the table
keep theirs.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any

from pyparq.datasets.files import DatasetFiles
from pyparq.errors import CommitUnknownError, ParquetError
from pyparq.io.locations import file_system
from pyparq.io.source import open_source
from pyparq.io.table_formats import DELTA, format_of
from pyparq.io.url import is_url, plain_errors, shown
from pyparq.maintenance.delta_commits import commit_delta
from pyparq.maintenance.iceberg_commits import commit_iceberg
from pyparq.maintenance.report import IndexedFile
from pyparq.maintenance.table_change import NewFile, TableChange
from pyparq.maintenance.table_features import check_table

Make = Callable[[str, str, Mapping[str, Any] | None], IndexedFile]
"""Makes the file at the second path from the file at the first, with these ``storage_options``."""

HAS_DELETED = "the file holds deleted rows: compact the table first"
ELSEWHERE = "the file lies outside the table's folder, so it may belong to another table"


def replace_files(
    table: Any, files: DatasetFiles, make: Make, progress: Callable[[int, int], Any] | None = None
) -> list[IndexedFile]:
    """Make a new file for each data file of ``table``, and commit those that changed. ``files``: its dataset.

    Files with deleted rows stay as they are: the deletions are bound to the file. Raises :class:`WriteConflictError` if
    another writer has changed these files meanwhile. The table is then as that writer left it, and the new files are
    gone.
    """
    check_table(table)
    storage_options = files.found.storage_options  # the table's own, where none are given
    made: dict[int, str] = {}
    try:
        reports = list(_reports(files, make, made, progress))
        pairs = {files.found.files[k].where: sized(path, storage_options) for k, path in made.items()}
        if pairs:
            commit(table, TableChange(pairs))
    except CommitUnknownError:
        raise
    except BaseException:
        remove_files(made.values(), storage_options)
        raise
    return reports


def _reports(
    files: DatasetFiles, make: Make, made: dict[int, str], progress: Callable[[int, int], Any] | None
) -> Iterator[IndexedFile]:
    """Make the new files, and note in ``made`` those that changed."""
    assert files.table is not None
    for k, file in enumerate(files.found.files):
        if files.has_deleted(k):
            yield IndexedFile(file.name, file.name, notes=(HAS_DELETED,))
        elif not file.where.startswith(files.table.folder + "/"):
            yield IndexedFile(file.name, file.name, notes=(ELSEWHERE,))
        else:
            made[k] = beside(file.where)
            report = make(file.where, made[k], files.found.storage_options)
            if not any(column.changed for column in report.columns):
                remove_files([made.pop(k)], files.found.storage_options)
                report = replace(report, target=file.name, written=False)
            yield report
        if progress is not None:
            progress(k + 1, len(files.found.files))


def remove_files(paths: Iterable[str], storage_options: Mapping[str, Any] | None) -> None:
    """Remove new files that no commit has named."""
    for path in paths:
        with suppress(FileNotFoundError):
            if is_url(path):
                fs, name = file_system(path, "removing", "remove", storage_options)
                with plain_errors(shown(path), path, storage_options):
                    fs.rm_file(name)
            else:
                os.unlink(path)


def sized(path: str, storage_options: Mapping[str, Any] | None) -> NewFile:
    """The file at a path or URL, with its size."""
    with closing(open_source(path, storage_options if is_url(path) else None)) as source:
        return NewFile(path, source.size)


def beside(path: str) -> str:
    """A new name in the folder of ``path``."""
    return f"{path.rpartition('/')[0]}/{uuid.uuid4()}-pyparq.parquet"


def commit(table: Any, change: TableChange) -> None:
    """Commit a change. Raises :class:`CommitUnknownError` where it may have taken place all the same."""
    try:
        (commit_delta if format_of(table) == DELTA else commit_iceberg)(table, change)
    except ParquetError:
        raise
    except Exception as error:
        raise CommitUnknownError(
            f"the commit failed, and may have taken place: {error}. The new files stay where they are. If the table "
            "does not name them, its own clean-up removes them"
        ) from error
