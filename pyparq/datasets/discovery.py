"""Finds the files of a dataset, in a defined order, from a folder, a glob, a list or a URL.

No file is opened here. The names in a folder are read once, with the sizes and times of the listing.
"""

from __future__ import annotations

import errno
import os
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pyparq.datasets import unfinished_writes as writes
from pyparq.datasets.data_files import DataFile, SourceFiles, partition_folders_of
from pyparq.datasets.local_files import local_files
from pyparq.datasets.remote_files import remote_files
from pyparq.errors import ManagedTableWarning, OptionError, UnfinishedWriteWarning
from pyparq.io.retry import Retry
from pyparq.io.table_formats import SPARK_STREAM, format_of, tables_of, warning_of
from pyparq.io.url import check_storage_options, is_local_system, is_url, local_path, name_on, open_file_parts
from pyparq.runtime.warn import warn_caller


def discover(source: Any, storage_options: Mapping[str, Any] | None = None, retry: Retry | None = None) -> SourceFiles:
    """The files that ``source`` stands for. ``retry``: how listings that fail for the moment are made again.

    ``source`` is a file or folder (a path, ``os.PathLike`` or URL), a glob (``*``, ``?``, ``[...]``, ``{a,b}``, and
    ``**`` for any number of folders), what ``fsspec.open`` gives, bytes, a file object, or a list or tuple of these.
    The files of a folder and of its subfolders come in the order of their paths; those of a list in the order of the
    list. A file that is named twice in a list counts twice. Within folders, names that begin with ``_`` or ``.`` are
    passed over, except partition folders such as ``_a=1``. Everything else counts as a file of the dataset, whatever
    its suffix.

    Warns with :class:`pyparq.ManagedTableWarning` where a table format manages the files. Raises ``FileNotFoundError``
    where a path does not exist or a glob matches nothing, ``OSError`` where a folder cannot be listed, and
    :class:`pyparq.OptionError` for what is no source.
    """
    if isinstance(source, (list, tuple)):
        parts = [_one(item, storage_options, retry) for item in source]
        named = [part.root for part in parts]
        root = named[0] if len(named) == 1 else f"{len(named)} sources, the first of them {named[0]}" if named else "[]"
        tables = tuple(table for part in parts for table in part.tables)
        commits = tuple(commit for part in parts for commit in part.unfinished)
        files = tuple(file for part in parts for file in _with_folders(part))
        remote = tuple(write for part in parts for write in part.store_writes)
        streams = tuple(stream for part in parts for stream in part.streams)
        found = SourceFiles(
            root, files, False, storage_options, tables=tables, unfinished=commits, store_writes=remote, streams=streams
        )
    else:
        found = _one(source, storage_options, retry)
    _warn_if_managed(found)
    told = (*map(writes.warning_of, found.unfinished), *(write.warning() for write in found.store_writes))
    for text in dict.fromkeys(told):
        warn_caller(text, UnfinishedWriteWarning)
    return found


def _with_folders(part: SourceFiles) -> Iterator[DataFile]:
    """The files of one source of a list, with the partition folders on its path: nothing else names their values."""
    above = partition_folders_of(posixpath.dirname(part.root) if part.is_one_file else part.root)
    return (replace(file, above=file.above or above) for file in part.files) if above else iter(part.files)


def _one(source: Any, storage_options: Mapping[str, Any] | None, retry: Retry | None) -> SourceFiles:
    opened = open_file_parts(source)
    if opened is not None and not is_local_system(opened[0]):
        return SourceFiles(name_on(opened[0], opened[1]), (DataFile(name_on(opened[0], opened[1]), source),), True)
    if opened is not None:
        source = opened[1]
    if not isinstance(source, (str, os.PathLike)):
        return _object(source)
    path = os.fspath(source)
    path = os.fsdecode(path) if isinstance(path, bytes) else path
    if not path:
        raise FileNotFoundError(errno.ENOENT, "the path is empty", path)
    check_storage_options(storage_options)
    if is_url(path):
        return remote_files(path, storage_options, retry)
    return local_files(local_path(path) or path)


def _object(source: Any) -> SourceFiles:
    """Bytes or a file object: one file."""
    format_ = format_of(source)
    if format_ is not None:
        raise OptionError(f"a table of {format_} is no file, and cannot be one of a list: give pyparq.dataset(table)")
    if isinstance(source, (dict, set, frozenset)):
        raise OptionError(f"a {type(source).__name__} is not a source: give a path, a glob, a URL or a list of these")
    name = getattr(source, "name", None)
    name = name if isinstance(name, str) else f"<{type(source).__name__}>"
    return SourceFiles(name, (DataFile(name, source),), True)


def _warn_if_managed(found: SourceFiles) -> None:
    """Warn once for each table."""
    paths = [file.where for file in found.files if isinstance(file.where, str) and "://" not in file.where]
    if os.sep == "/":  # each folder once: dirname() of 10,000 files takes 10 ms
        paths = list({path[: path.rfind("/") + 1] for path in paths})
    folders = set(map(os.path.dirname, paths))
    if not found.is_one_file and os.path.isdir(found.root):
        folders.add(found.root)
    taken = {(SPARK_STREAM, os.path.abspath(stream)) for stream in found.streams}
    for table in dict.fromkeys((*found.tables, *tables_of(folders))):
        if table in taken:
            continue
        warn_caller(warning_of(table), ManagedTableWarning)
