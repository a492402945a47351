"""Finds the files of a dataset, in a defined order, from a folder, a glob, a list or a URL.

No file is opened here, but for the log of a stream of Spark. The names in a folder are read once, with the sizes and
times of the listing.
"""

from __future__ import annotations

import datetime as dt
import errno
import json
import os
import posixpath
import re
import stat
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pyparq.datasets import unfinished_writes as writes
from pyparq.datasets.catalog.layout import FOLDER, HEAD
from pyparq.datasets.data_files import DataFile, SourceFiles, folders_between, is_hidden, partition_folders_of
from pyparq.datasets.kept_files import PREFIX
from pyparq.datasets.staging import staging_folders
from pyparq.datasets.unfinished_writes import Names, Place, Unfinished, listed_files, partition_folders
from pyparq.errors import CorruptFileError, ManagedTableWarning, OptionError, UnfinishedWriteWarning, UnsupportedError
from pyparq.io.file_versions import Stated
from pyparq.io.folders import MAGIC, Folders, fits
from pyparq.io.locations import file_system
from pyparq.io.retry import Retry
from pyparq.io.source import alternatives, fixed_part, has_folders, is_pattern, shows_file
from pyparq.io.table_formats import SPARK_STREAM, STREAM_LOG, format_of, managed_in, tables_of, warning_of
from pyparq.io.url import check_storage_options, is_local_system, is_url, local_path, name_on, open_file_parts, shown
from pyparq.runtime.messages import warn_caller

_BATCH = re.compile(r"(\d+)(\.compact)?")
_VERSION = "v1"


def files_of_stream(
    root: str, files: Iterable[DataFile], batches: Iterable[str], content: Callable[[str], bytes | None]
) -> tuple[DataFile, ...]:
    """Those of the files below ``root`` that the log names.

    ``batches``: the names of files in the log, and ``content`` reads one. Raises ``FileNotFoundError`` for a file that
    the log names and that is gone, and :class:`CorruptFileError` for a log that cannot be read.
    """
    named = dict[str, bool]()
    for batch in _newest(batches):
        named |= _log_entries(f"{root}/{STREAM_LOG}/{batch}", content(batch))
    by_path = {"/".join((*file.folders, os.path.basename(file.name))): file for file in files}
    kept = set[str]()
    for path in (path for path, counts in named.items() if counts):
        found = _file_named(path, by_path)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, f"the log in {STREAM_LOG} names the file, and it is gone", path)
        kept.add(found.name)
    return tuple(file for file in by_path.values() if file.name in kept)


def _newest(batches: Iterable[str]) -> list[str]:
    """The batches to read, in their order: the last compact one, and those behind it."""
    found = [(int(match[1]), bool(match[2]), name) for name in batches if (match := _BATCH.fullmatch(name))]
    last = max((number for number, is_compact, _ in found if is_compact), default=-1)
    return [name for number, is_compact, name in sorted(found) if number > last or (is_compact and number == last)]


def _log_entries(name: str, data: bytes | None) -> dict[str, bool]:
    """The paths in the log of a batch, and whether the file counts from then on."""
    lines = (data or b"").decode("utf-8", "replace").splitlines()
    if not lines:
        return {}
    if lines[0] != _VERSION:
        raise UnsupportedError(
            f"the log of Spark's stream has the version {lines[0][:20]!r}, not {_VERSION}", file=name
        )
    try:
        found = [json.loads(line) for line in lines[1:]]
        return {unquote(str(entry["path"])): entry.get("action", "add") != "delete" for entry in found}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptFileError(f"the log of Spark's stream cannot be read: {error}", file=name) from error


def _file_named(path: str, by_path: dict[str, DataFile]) -> DataFile | None:
    """The file that the log calls ``path``. The folder may have been moved since."""
    names = path.split("/")
    return next((by_path[rest] for k in range(len(names)) if (rest := "/".join(names[k:])) in by_path), None)


def local_files(path: str) -> SourceFiles:
    if os.path.isdir(path):
        return _local_folder(path)
    if os.path.lexists(path) or not is_pattern(path):
        return SourceFiles(path, (DataFile(path, path),), True)
    return _local_glob(path)


def _local_folder(path: str) -> SourceFiles:
    def listed(seen: _Seen) -> list[DataFile]:
        return list(_walk(path, (), seen))

    files, commits = _before_commits(path, listed)
    log = os.path.join(path, STREAM_LOG)
    if os.path.isdir(log):
        counted = files_of_stream(path, files, os.listdir(log), lambda name: Path(log, name).read_bytes())
        return SourceFiles(path, counted, unfinished=tuple(commits), streams=(path,))
    catalog = DataFile(path, path) if os.path.exists(os.path.join(path, FOLDER, HEAD)) else None
    return SourceFiles(path, tuple(files), unfinished=tuple(commits), catalog=catalog)


LISTINGS, SECONDS = 3, 1.0
"""If commits begin or end while a folder is listed, it is listed again: so often, and more often within this time."""


class _Seen(list[Place]):
    """The writes that a listing sees, and when the folders were changed last that it looks into."""

    def __init__(self) -> None:
        self.times: dict[str, int] = {}


def _changed_at(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return -1


def _before_commits(
    root: str, listed: Callable[[_Seen], list[DataFile]], wanted: Callable[[Names], bool] = lambda names: True
) -> tuple[list[DataFile], list[Unfinished]]:
    """The files that ``listed`` gives, as they were before the commits that have not ended; and these commits.

    ``listed`` notes the writes that it sees. ``wanted``: whether a file at a path below ``root`` belongs to the source.
    A write that begins and ends meanwhile is not seen, but has changed its folder.
    """
    begun, listings = time.monotonic(), 0
    while True:
        seen = _Seen()
        files, listings = listed(seen), listings + 1
        seen += writes.writes_above(root)
        commits = writes.unfinished(seen) if seen else []
        for commit in commits:
            files = _as_before(files, root, commit, wanted)
        as_found = writes.is_as_found(seen, commits) and [*map(_changed_at, seen.times)] == [*seen.times.values()]
        if as_found or (listings >= LISTINGS and time.monotonic() - begun > SECONDS):
            return files, commits


def _as_before(files: list[DataFile], root: str, commit: Unfinished, wanted: Callable[[Names], bool]) -> list[DataFile]:
    """The files of a listing, without the new files of the commit, and with the old ones that it has moved away."""
    out, aside = commit.changes()
    kept = [file for file in files if _names(file) not in out]
    for names, where in aside.items():
        if any(map(is_hidden, names)) or not wanted(names):
            continue
        name = os.path.join(root, *names)
        with suppress(FileNotFoundError):  # the commit has ended in the meantime
            status = os.stat(where)
            kept.append(_local_file(name, where, names[:-1], status))
    return sorted(kept, key=_names)


def _names(file: DataFile) -> Names:
    return (*file.folders, posixpath.basename(file.name))


MOST_WAYS = 64
"""Paths by which links may lead to one folder."""


class _Level:
    """A folder on the path from the root to the current position of a walk."""

    def __init__(self, folder: str, folders: tuple[str, ...], place: tuple[int, int]) -> None:
        self.folders = folders
        self.place = place
        with os.scandir(folder) as entries:
            found = list(entries)
        shown = [e for e in found if e.name[0] not in "._" or not is_hidden(e.name)]
        self.entries = iter(sorted(shown, key=attrgetter("name")))
        self.writes = [Place(e.path, folders) for e in found if e.name.startswith(PREFIX) and e.is_dir()]


def _walk(root: str, folders: tuple[str, ...], seen: _Seen) -> Iterator[DataFile]:
    """The files below ``root`` in the order of their paths.

    Links to folders are followed, except links that lead back to a folder around them. Writes that are under way are
    noted in ``seen``. Raises :class:`pyparq.OptionError` if links make too many paths from few folders.
    """
    ways: Counter[tuple[int, int]] = Counter()
    above: list[_Level] = []
    on_the_way: set[tuple[int, int]] = set()

    def enter(folder: str, folders: tuple[str, ...]) -> None:
        status = os.stat(folder)
        place = status.st_dev, status.st_ino
        if place in on_the_way:
            return
        ways[place] += 1
        if ways[place] > MOST_WAYS:
            raise OptionError(
                f"links lead to the folder {folder} by more than {MOST_WAYS} paths. Give a folder without such links",
                file=root,
            )
        seen.times[folder] = status.st_mtime_ns
        above.append(_Level(folder, folders, place))
        on_the_way.add(place)
        seen.extend(above[-1].writes)

    enter(root, folders)
    while above:
        level = above[-1]
        entry = next(level.entries, None)
        if entry is None:
            on_the_way.remove(level.place)
            above.pop()
        elif entry.is_dir():
            try:
                enter(entry.path, (*level.folders, entry.name))
            except FileNotFoundError:  # a partition that was removed just now
                if entry.is_symlink():
                    raise
        else:
            file = _data_file(entry, level.folders)
            if file is not None:
                yield file


def _data_file(entry: os.DirEntry[str], folders: tuple[str, ...]) -> DataFile | None:
    """A data file. ``None`` if it is not a file."""
    try:
        status = entry.stat()
    except FileNotFoundError:  # a link to nowhere, or a file that was removed just now
        if not entry.is_symlink():
            return None
        raise
    if not stat.S_ISREG(status.st_mode):
        return None
    return _local_file(entry.path, entry.path, folders, status)


def _local_file(name: str, where: str, folders: tuple[str, ...], status: os.stat_result) -> DataFile:
    return DataFile(
        name, where, folders, status.st_size, status.st_mtime_ns, status.st_ino, ctime_ns=status.st_ctime_ns
    )


def _local_glob(pattern: str) -> SourceFiles:
    root = fixed_part(pattern)
    patterns = alternatives(pattern)
    inner = [_below(one, root) for one in patterns]

    def listed(seen: _Seen) -> list[DataFile]:
        files: list[DataFile] = []
        for one in patterns:
            files += _any_depth(one, root, seen) if "**" in one.split("/") else _by_level(one, root, seen)
        if len(patterns) > 1:  # two alternatives may match one file
            files = sorted({file.name: file for file in files}.values(), key=lambda file: file.name)
        return files

    def wanted(names: Names) -> bool:
        return any(fits(names[:k], one) for one in inner for k in range(1, len(names) + 1))

    files, commits = _before_commits(root or os.curdir, listed, wanted)
    if not files:
        raise FileNotFoundError(errno.ENOENT, "no file matches the pattern", pattern)
    above = partition_folders_of(root)
    files = [replace(file, above=above) for file in files] if above else files
    return SourceFiles(pattern, tuple(files), unfinished=tuple(commits))


def _below(pattern: str, root: str) -> Names:
    """The names of a pattern below its fixed part."""
    return tuple(pattern.split("/")[root.count("/") + 1 if root or pattern.startswith("/") else 0 :])


def _by_level(pattern: str, root: str, seen: _Seen) -> list[DataFile]:
    """The files for a pattern without ``**``, below the folder ``root``."""
    import glob  # not needed to read one file

    files: list[DataFile] = []
    start = root or ("/" if pattern.startswith("/") else os.curdir)
    with suppress(OSError):
        seen.times[start] = _changed_at(start)
        seen += map(Place, staging_folders(start))
    for path in sorted(glob.glob(pattern, recursive=True)):
        folders = folders_between(root, os.path.dirname(path))
        if any(is_hidden(name) for name in folders):
            continue
        if os.path.isdir(path):
            name = os.path.basename(path)
            if not is_hidden(name):
                files += _walk(path, (*folders, name), seen)
            continue
        status = os.stat(path)
        if not is_hidden(os.path.basename(path)):
            files.append(_local_file(path, path, folders, status))
    return files


def _any_depth(pattern: str, root: str, seen: _Seen) -> list[DataFile]:
    """The files for a pattern with ``**``. Python's glob would follow links that lead back, 40 times."""
    wanted = _below(pattern, root)
    start = root or ("/" if pattern.startswith("/") else os.curdir)
    files: list[DataFile] = []
    for file in _walk(start, (), seen) if os.path.isdir(start) else ():
        names = (*file.folders, posixpath.basename(file.name))
        if fits(names, wanted):
            path = "/".join((root, *names)) if root or pattern.startswith("/") else "/".join(names)
            files.append(replace(file, name=path, where=path))
    return sorted(files, key=lambda file: file.name)


def remote_files(url: str, storage_options: Mapping[str, Any] | None, retry: Retry | None) -> SourceFiles:
    fs, path = file_system(url, "reading", "read from", storage_options)
    name = shown(url)
    one = SourceFiles(name, (DataFile(name, url),), True, storage_options)
    if not has_folders(url):
        return one
    folders = Folders(fs, retry)
    if is_pattern(path):
        try:
            return _remote_glob(fs, folders, path, name, storage_options)
        except FileNotFoundError:
            if not folders.files(path):  # nothing has the pattern itself as its name
                raise
    try:
        listed, unended = listed_files(fs, folders, lambda: folders.files(path), list(partition_folders(path)))
    except PermissionError:
        if not shows_file(url):
            raise
        return one  # a key that may read a file need not be one that may list
    if not listed or (list(listed) == [path] and not url.endswith("/")):
        return one
    files = _listed(fs, path, listed)
    log = posixpath.join(path.rstrip("/"), STREAM_LOG, "")
    batches = [found[len(log) :] for found in listed if found.startswith(log)]
    if batches:
        counted = files_of_stream(name, files, batches, lambda batch: folders.content(log + batch))
        return SourceFiles(name, counted, False, storage_options, store_writes=unended, streams=(name,))
    table = managed_in((found[len(path.rstrip("/")) + 1 :] for found in listed), name)
    tables = () if table is None else (table,)
    has_catalog = posixpath.join(path.rstrip("/"), FOLDER, HEAD) in listed
    catalog = DataFile(name, fs.unstrip_protocol(path), fs=fs) if has_catalog else None
    return SourceFiles(name, tuple(files), False, storage_options, tables, store_writes=unended, catalog=catalog)


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
    files, paths = [], sorted(listed)
    for path in paths:
        info, folders = listed[path], folders_between(root, posixpath.dirname(path))
        if info.get("type") == "directory" or _marks_folder(path, info, paths):
            continue
        if any(map(is_hidden, (*folders, posixpath.basename(path)))):
            continue
        url = fs.unstrip_protocol(path)
        listing = Stated.of(info, is_listed=True)
        files.append(DataFile(shown(url), url, folders, _size(info), _time(info), above=above, fs=fs, listed=listing))
    return files


def _marks_folder(path: str, info: Mapping[str, Any], paths: Sequence[str]) -> bool:
    """Whether an object stands for a folder: an empty one with the folder's name, in one of the ways of Hadoop."""
    if path.endswith("/"):
        return True
    if _size(info) != 0:
        return False
    following = bisect_left(paths, path + "/")
    return path.endswith("_$folder$") or (following < len(paths) and paths[following].startswith(path + "/"))


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
    warnings = (*map(writes.warning_of, found.unfinished), *(write.warning() for write in found.store_writes))
    for text in dict.fromkeys(warnings):
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
