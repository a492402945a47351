"""The files of a source, each with its target."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyparq.datasets.data_files import DataFile
from pyparq.datasets.discovery import discover
from pyparq.datasets.read.dataset import Dataset, files_of
from pyparq.datasets.several import names_many
from pyparq.datasets.write.crashed_commits import found_to_change
from pyparq.errors import OptionError
from pyparq.io.folders import Changes
from pyparq.io.locations import file_system
from pyparq.io.retry import Retry
from pyparq.io.table_formats import check_streams, format_of
from pyparq.io.url import is_url, local_path, shown
from pyparq.maintenance.file_runs import Job
from pyparq.options import ReadOptions


def jobs_of(
    source: Any,
    target: Any,
    options: ReadOptions,
    storage_options: Mapping[str, Any] | None,
    force: bool,
    fsync: bool,
) -> list[Job]:
    """The files of a source with their targets.

    Raises ``FileNotFoundError`` if there are none, and :class:`OptionError` if two files would get one target.
    """
    source = opened_table(source)
    if not isinstance(source, Dataset) and not names_many(source):
        return [Job(source, target, options, storage_options, force, fsync)]
    if isinstance(source, Dataset):
        if target is not None:
            check_no_table(source)
        own = files_of(source)
        found, storage_options = own.found, own.found.storage_options or storage_options
        if options.decryption is None:
            options = replace(options, decryption=own.options.decryption)
    else:
        retry = Retry(options.retries, options.retry_wait)
        found = (found_to_change if target is None else discover)(source, storage_options, retry)
    files = found.files
    if target is None:
        check_streams(found.streams, force)
    listed, known = isinstance(source, (list, tuple)), dict[str, Any]()
    targets = [None] * len(files) if target is None else _targets(files, target, listed, storage_options)
    return [
        Job(file.where, place, options, storage_options, force, fsync, known)
        for file, place in zip(files, targets, strict=True)
    ]


def opened_table(source: Any) -> Any:
    """A table of Delta Lake or Iceberg as a dataset. Any other source is returned as it is."""
    return Dataset(source) if format_of(source) is not None else source


def check_no_table(source: Dataset) -> None:
    """Raise :class:`OptionError` for the dataset of a table of Delta Lake or Iceberg: copies of its files would bring
    deleted rows back, and lose the table's names and partitions."""
    table = files_of(source).table
    if table is not None:
        raise OptionError(
            f"{source.root} is a table of {table.kind}, and copies of its files would bring deleted rows back: "
            "pyparq.rewrite writes the rows that it has"
        )


def _targets(
    files: tuple[DataFile, ...], target: Any, listed: bool, storage_options: Mapping[str, Any] | None
) -> list[str]:
    """The target of each file in the folder ``target``: the same relative path as below the source's root."""
    if not isinstance(target, (str, os.PathLike)):
        raise OptionError(f"the target of many files must be a folder, not {type(target).__name__}")
    folder = os.fsdecode(os.fspath(target))
    remote = is_url(folder)
    folder = folder if remote else local_path(folder) or folder
    if not remote and os.path.exists(folder) and not os.path.isdir(folder):
        raise OptionError(f"the target of many files must be a folder, and {folder!r} is a file")
    found: dict[str, str] = {}
    for file, inner in zip(files, _inner_paths(files, listed), strict=True):
        if inner in found:
            raise OptionError(f"{found[inner]} and {file.name} would both be written to {inner!r} in the target folder")
        found[inner] = file.name
    if remote:
        return _in_remote_folder(folder.rstrip("/"), list(found), storage_options)
    places = [os.path.join(folder, inner) for inner in found]
    for place in places:
        os.makedirs(os.path.dirname(place), exist_ok=True)
    return places


def _in_remote_folder(folder: str, inner: list[str], storage_options: Mapping[str, Any] | None) -> list[str]:
    """The targets, whose folders are made: some remote file systems have real ones."""
    fs, path = file_system(folder, "writing", "write to", storage_options)
    changes = Changes(fs, storage_options)
    for name in sorted({posixpath.dirname(name) for name in inner}):
        changes.make_folder(posixpath.join(path, name).rstrip("/"), posixpath.join(shown(folder), name))
    return [f"{folder}/{name}" for name in inner]


def _inner_paths(files: tuple[DataFile, ...], listed: bool) -> list[str]:
    """The path of each file below the root. A list has no root of its own; the common folder of all files takes its
    place."""
    if not listed:
        return [posixpath.join(*file.folders, posixpath.basename(file.name)) for file in files]
    paths = [file.name if is_url(file.name) else os.path.abspath(file.name) for file in files]
    root = os.path.commonpath([posixpath.dirname(path) for path in paths]) if paths else ""
    return [posixpath.relpath(path, root) for path in paths]
