"""Lists folders of stores and matches patterns of URLs."""

from __future__ import annotations

import datetime as dt
import errno
import posixpath
from collections.abc import Mapping
from typing import Any

from pyparq.datasets.catalog.layout import FOLDER, HEAD
from pyparq.datasets.data_files import (
    SUMMARIES,
    DataFile,
    SourceFiles,
    folders_between,
    is_hidden,
    partition_folders_of,
)
from pyparq.datasets.glob_patterns import alternatives, fixed_part, is_pattern
from pyparq.datasets.several import has_folders
from pyparq.datasets.stream_log import files_of_stream
from pyparq.datasets.unfinished_writes import listed_files, partition_folders
from pyparq.io.file_versions import Stated
from pyparq.io.folders import MAGIC, Folders
from pyparq.io.locations import file_system
from pyparq.io.retry import Retry
from pyparq.io.table_formats import STREAM_LOG, managed_in
from pyparq.io.url import shown


def remote_files(url: str, storage_options: Mapping[str, Any] | None, retry: Retry | None) -> SourceFiles:
    fs, path = file_system(url, "reading", "read from", storage_options)
    name = shown(url)
    one = SourceFiles(name, (DataFile(name, url),), True, storage_options)
    if not has_folders(url):
        return one
    folders = Folders(fs, retry)
    if is_pattern(path):
        return _remote_glob(fs, folders, path, name, storage_options)
    if posixpath.splitext(path)[1] and not url.endswith("/"):
        return one  # the name shows that it is a file, which saves a request
    listed, unended = listed_files(fs, folders, lambda: folders.files(path), list(partition_folders(path)))
    if not listed or (list(listed) == [path] and not url.endswith("/")):
        return one
    files = _listed(fs, path, listed)
    log = posixpath.join(path.rstrip("/"), STREAM_LOG, "")
    batches = [found[len(log) :] for found in listed if found.startswith(log)]
    if batches:
        counted = files_of_stream(name, files, batches, lambda batch: folders.content(log + batch))
        return SourceFiles(name, counted, False, storage_options, store_writes=unended, streams=(name,))
    summaries = tuple(
        DataFile(shown(url), url, (), _size(info), _time(info), fs=fs, listed=Stated.of(info, is_listed=True))
        for found, info in listed.items()
        if posixpath.dirname(found) == path.rstrip("/") and _is_summary(found) and not unended
        for url in (fs.unstrip_protocol(found),)
    )
    table = managed_in((found[len(path.rstrip("/")) + 1 :] for found in listed), name)
    tables = () if table is None else (table,)
    has_catalog = posixpath.join(path.rstrip("/"), FOLDER, HEAD) in listed
    catalog = DataFile(name, fs.unstrip_protocol(path), fs=fs) if has_catalog else None
    return SourceFiles(
        name, tuple(files), False, storage_options, summaries, tables, store_writes=unended, catalog=catalog
    )


def _remote_glob(
    fs: Any, folders: Folders, path: str, name: str, storage_options: Mapping[str, Any] | None
) -> SourceFiles:
    root = fixed_part(path)
    beyond = [root, *partition_folders(root)] if root else []
    listed, unended = listed_files(fs, folders, lambda: _matched(folders, path, root), beyond)
    files = _listed(fs, root, listed, partition_folders_of(root))
    if not files:
        raise FileNotFoundError(errno.ENOENT, "no file matches the pattern", name)
    return SourceFiles(name, tuple(files), False, storage_options, store_writes=unended)


def _matched(folders: Folders, pattern: str, root: str) -> dict[str, Mapping[str, Any]]:
    """The files that a pattern matches, and those in the folders that it matches."""
    listed: dict[str, Mapping[str, Any]] = {}
    for found, info in _matching(folders, pattern).items():
        if info.get("type") != "directory":
            listed[found] = info
            continue
        inner = (*folders_between(root, posixpath.dirname(found)), posixpath.basename(found))
        if "**" not in pattern and not any(map(is_hidden, inner)):
            listed |= folders.files(found, is_listed=True)
    return listed


def _matching(folders: Folders, pattern: str) -> dict[str, Mapping[str, Any]]:
    """The matches of a pattern, in the order of the paths."""
    found: dict[str, Mapping[str, Any]] = {}
    for one in alternatives(pattern):
        if MAGIC.search(one):
            found |= folders.matching(one)
        elif (info := folders.info(one)) is not None:
            found[one] = info
    return dict(sorted(found.items()))


def _listed(fs: Any, root: str, listed: Mapping[str, Mapping[str, Any]], above: tuple[str, ...] = ()) -> list[DataFile]:
    files = []
    for path, info in sorted(listed.items()):
        folders = folders_between(root, posixpath.dirname(path))
        if info.get("type") == "directory" or path.endswith("/"):  # an empty object that marks a folder
            continue
        if any(map(is_hidden, (*folders, posixpath.basename(path)))):
            continue
        url = fs.unstrip_protocol(path)
        listing = Stated.of(info, is_listed=True)
        files.append(DataFile(shown(url), url, folders, _size(info), _time(info), above=above, fs=fs, listed=listing))
    return files


def _size(info: Mapping[str, Any]) -> int | None:
    size = info.get("size")
    return None if size is None else int(size)


def _time(info: Mapping[str, Any]) -> int | None:
    """When a remote file was last written, in nanoseconds, if the listing has a time that the store itself sets. Stores
    have different names for it."""
    for name in ("LastModified", "last_modified", "updated", "created"):
        found = info.get(name)
        if isinstance(found, str):
            try:
                found = dt.datetime.fromisoformat(found)
            except ValueError:
                continue
        if isinstance(found, dt.datetime):
            found = (found if found.tzinfo else found.replace(tzinfo=dt.UTC)).timestamp()
        if isinstance(found, (int, float)):
            return int(found * 1_000_000_000)
    return None


def _is_summary(path: str) -> bool:
    return posixpath.basename(path) in SUMMARIES
