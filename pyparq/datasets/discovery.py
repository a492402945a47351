"""Finds the files of a dataset, in a defined order, from a folder, a glob, a list or a URL.

No file is opened here. The names in a folder are read once, with the sizes and times of the listing.
"""

from __future__ import annotations

import datetime as dt
import errno
import os
import posixpath
import stat
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from pyparq.datasets import unfinished_commits as writes
from pyparq.datasets.brace_patterns import alternatives, has_braces
from pyparq.datasets.catalog.layout import FOLDER, HEAD
from pyparq.datasets.staging import PREFIX, staging_folders
from pyparq.datasets.store_writes import StoreWrite, partition_folders, settled
from pyparq.datasets.table_formats import Managed, format_of, managed_in, tables_of, warning_of
from pyparq.datasets.tables.table_files import TableFiles
from pyparq.datasets.unfinished_commits import Names, Place, Unfinished
from pyparq.errors import ManagedTableWarning, OptionError, UnfinishedWriteWarning
from pyparq.io.file_versions import Stated
from pyparq.io.folders import MAGIC, Folders, fits
from pyparq.io.retry import Retry
from pyparq.io.url import (
    check_storage_options,
    file_system,
    is_local_system,
    is_url,
    local_path,
    name_on,
    open_file_parts,
    shown,
)

SUMMARIES = ("_metadata", "_common_metadata")


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file of a dataset. It can be pickled if ``where`` can."""

    name: str
    """As messages and the ``filename`` column show it."""
    where: Any
    """What :func:`pyparq.io.source.open_source` opens: a path, a URL, bytes or a file object."""
    folders: tuple[str, ...] = ()
    """Names of the folders between the dataset's root and the file."""
    size: int | None = None
    """Bytes, where the listing says so."""
    mtime_ns: int | None = None
    inode: int | None = None
    fs: Any = field(default=None, compare=False, repr=False)
    """The fsspec file system that listed it. It may hold credentials, so it is not pickled."""
    listed: Stated | None = field(default=None, compare=False, repr=False)
    """What that file system says of its version."""

    def is_as_listed(self, size: int, mtime_ns: int) -> bool:
        """Whether a local file still has the size and time that were listed. A table's log lists the size alone."""
        return self.size is None or (size == self.size and self.mtime_ns in (None, mtime_ns))

    def __reduce__(self) -> tuple[Any, ...]:
        return DataFile, (self.name, self.where, self.folders, self.size, self.mtime_ns, self.inode)


@dataclass(frozen=True, slots=True)
class Found:
    """The files of a source."""

    root: str
    """What the source is called."""
    files: tuple[DataFile, ...]
    is_one_file: bool = False
    """Whether the source names one file, and cannot stand for several."""
    storage_options: Mapping[str, Any] | None = None
    summaries: tuple[DataFile, ...] = field(default=())
    """``_metadata`` and ``_common_metadata`` files in the root folder of a URL."""
    tables: tuple[Managed, ...] = ()
    """Tables of a table format, as far as the listing of a URL shows them."""
    table: TableFiles | None = None
    """What the log of a table says of the files, for a source that is a table of Delta Lake or Iceberg."""
    unfinished: tuple[Unfinished, ...] = ()
    """Commits that have begun and not ended. The files are the ones from before these commits."""
    store_writes: tuple[StoreWrite, ...] = ()
    """Writes to a store that have not ended. The files are the ones from before them or, where they count, after."""
    catalog: DataFile | None = None
    """The folder itself, if it has a catalog."""


def discover(source: Any, storage_options: Mapping[str, Any] | None = None, retry: Retry | None = None) -> Found:
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
        files = tuple(file for part in parts for file in part.files)
        remote = tuple(write for part in parts for write in part.store_writes)
        found = Found(root, files, False, storage_options, tables=tables, unfinished=commits, store_writes=remote)
    else:
        found = _one(source, storage_options, retry)
    _warn_if_managed(found)
    told = (*map(writes.warning_of, found.unfinished), *(write.warning() for write in found.store_writes))
    for text in dict.fromkeys(told):
        warnings.warn(text, UnfinishedWriteWarning, stacklevel=3)
    return found


def _one(source: Any, storage_options: Mapping[str, Any] | None, retry: Retry | None) -> Found:
    opened = open_file_parts(source)
    if opened is not None and not is_local_system(opened[0]):
        return Found(name_on(opened[0], opened[1]), (DataFile(name_on(opened[0], opened[1]), source),), True)
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
        return _remote(path, storage_options, retry)
    return _local(local_path(path) or path)


def _object(source: Any) -> Found:
    """Bytes or a file object: one file."""
    format_ = format_of(source)
    if format_ is not None:
        raise OptionError(f"a table of {format_} is no file, and cannot be one of a list: give pyparq.dataset(table)")
    if isinstance(source, (dict, set, frozenset)):
        raise OptionError(f"a {type(source).__name__} is not a source: give a path, a glob, a URL or a list of these")
    name = getattr(source, "name", None)
    name = name if isinstance(name, str) else f"<{type(source).__name__}>"
    return Found(name, (DataFile(name, source),), True)


def names_many(source: Any) -> bool:
    """Whether a source can stand for several files: a list, a folder, a glob. Costs one look at the file system."""
    if isinstance(source, (list, tuple)) or format_of(source) is not None:
        return True
    if not isinstance(source, (str, os.PathLike)):
        return False
    path = os.fspath(source)
    path = os.fsdecode(path) if isinstance(path, bytes) else path
    if is_url(path):
        if not _has_folders(path):
            return False
        return _is_pattern(path) or path.endswith("/") or not posixpath.splitext(path)[1]
    path = local_path(path) or path
    return os.path.isdir(path) or (_is_pattern(path) and not os.path.lexists(path))


CACHES = ("simplecache::", "filecache::", "blockcache::")
"""Protocols in front of another one, whose folders they show."""


def _has_folders(url: str) -> bool:
    """Whether the file system of a URL can list folders. HTTP servers and archives are read file by file."""
    while url.lower().startswith(CACHES):
        url = url.partition("::")[2]
    return "::" not in url and not url.lower().startswith(("http://", "https://"))


def _is_pattern(path: str) -> bool:
    return MAGIC.search(path) is not None or has_braces(path)


# ---- local folders -------------------------------------------------------------------------------------------------


def _local(path: str) -> Found:
    if os.path.isdir(path):
        return _folder(path)
    if os.path.lexists(path) or not _is_pattern(path):
        return Found(path, (DataFile(path, path),), True)
    return _local_glob(path)


def _folder(path: str) -> Found:
    def listed(seen: list[Place]) -> list[DataFile]:
        return list(_walk(path, (), seen))

    files, commits = _before_commits(path, listed)
    catalog = DataFile(path, path) if os.path.exists(os.path.join(path, FOLDER, HEAD)) else None
    return Found(path, tuple(files), unfinished=tuple(commits), catalog=catalog)


LISTINGS = 3
"""Maximum number of times that a folder is listed, if commits end in the meantime."""


def _before_commits(
    root: str, listed: Callable[[list[Place]], list[DataFile]], wanted: Callable[[Names], bool] = lambda names: True
) -> tuple[list[DataFile], list[Unfinished]]:
    """The files that ``listed`` gives, as they were before the commits that have not ended; and these commits.

    ``listed`` adds the writes that it sees to a list. ``wanted``: whether a file at a path below ``root`` belongs to
    the source.
    """
    for _ in range(LISTINGS):
        seen: list[Place] = []
        files = listed(seen)
        seen += writes.writes_above(root)
        commits = writes.unfinished(seen) if seen else []
        for commit in commits:
            files = _as_before(files, root, commit, wanted)
        if writes.is_as_found(seen, commits):
            break
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
            kept.append(DataFile(name, where, names[:-1], status.st_size, status.st_mtime_ns, status.st_ino))
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
        self.entries = iter(sorted((e for e in found if not is_hidden(e.name)), key=lambda e: e.name))
        self.writes = [Place(e.path, folders) for e in found if e.name.startswith(PREFIX) and e.is_dir()]


def _walk(root: str, folders: tuple[str, ...], seen: list[Place]) -> Iterator[DataFile]:
    """The files below ``root`` in the order of their paths.

    Links to folders are followed, except links that lead back to a folder around them. Writes that are under way are
    added to ``seen``. Raises :class:`pyparq.OptionError` if links make too many paths from few folders.
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
    return DataFile(entry.path, entry.path, folders, status.st_size, status.st_mtime_ns, status.st_ino)


def is_hidden(name: str) -> bool:
    """Whether readers of datasets ignore a file or folder with this name."""
    return name.startswith((".", "_")) and "=" not in name


def _local_glob(pattern: str) -> Found:
    root = _fixed_part(pattern)
    patterns = alternatives(pattern)
    inner = [_below(one, root) for one in patterns]

    def listed(seen: list[Place]) -> list[DataFile]:
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
    return Found(pattern, tuple(files), unfinished=tuple(commits))


def _below(pattern: str, root: str) -> Names:
    """The names of a pattern below its fixed part."""
    return tuple(pattern.split("/")[root.count("/") + 1 if root or pattern.startswith("/") else 0 :])


def _by_level(pattern: str, root: str, seen: list[Place]) -> list[DataFile]:
    """The files for a pattern without ``**``, below the folder ``root``."""
    import glob  # not needed to read one file

    files: list[DataFile] = []
    with suppress(OSError):
        seen += map(Place, staging_folders(root or ("/" if pattern.startswith("/") else os.curdir)))
    for path in sorted(glob.glob(pattern, recursive=True)):
        folders = _folders_between(root, os.path.dirname(path))
        if any(is_hidden(name) for name in folders):
            continue
        if os.path.isdir(path):
            name = os.path.basename(path)
            if not is_hidden(name):
                files += _walk(path, (*folders, name), seen)
            continue
        status = os.stat(path)
        if not is_hidden(os.path.basename(path)):
            files.append(DataFile(path, path, folders, status.st_size, status.st_mtime_ns, status.st_ino))
    return files


def _any_depth(pattern: str, root: str, seen: list[Place]) -> list[DataFile]:
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


def _fixed_part(pattern: str) -> str:
    """The folders of a pattern in front of the first name with a wildcard or braces."""
    parts, braces = pattern.split("/"), has_braces(pattern)
    first = next(k for k, part in enumerate(parts) if MAGIC.search(part) or (braces and "{" in part))
    return "/".join(parts[:first])


def _folders_between(root: str, folder: str) -> tuple[str, ...]:
    inner = folder[len(root) :].strip("/") if folder.startswith(root) else ""
    return tuple(inner.split("/")) if inner else ()


# ---- URLs ----------------------------------------------------------------------------------------------------------


def _remote(url: str, storage_options: Mapping[str, Any] | None, retry: Retry | None) -> Found:
    fs, path = file_system(url, "reading", "read from", storage_options)
    name = shown(url)
    one = Found(name, (DataFile(name, url),), True, storage_options)
    if not _has_folders(url):
        return one
    folders = Folders(fs, retry)
    if _is_pattern(path):
        return _remote_glob(fs, folders, path, name, storage_options)
    if posixpath.splitext(path)[1] and not url.endswith("/"):
        return one  # the name shows that it is a file, which saves a request
    listed, unended = settled(fs, folders, lambda: folders.files(path), list(partition_folders(path)))
    if not listed or (list(listed) == [path] and not url.endswith("/")):
        return one
    files = _listed(fs, path, listed)
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
    return Found(name, tuple(files), False, storage_options, summaries, tables, store_writes=unended, catalog=catalog)


def _remote_glob(fs: Any, folders: Folders, path: str, name: str, storage_options: Mapping[str, Any] | None) -> Found:
    root = _fixed_part(path)
    beyond = [root, *partition_folders(root)] if root else []
    listed, unended = settled(fs, folders, lambda: _matched(folders, path, root), beyond)
    files = _listed(fs, root, listed)
    if not files:
        raise FileNotFoundError(errno.ENOENT, "no file matches the pattern", name)
    return Found(name, tuple(files), False, storage_options, store_writes=unended)


def _matched(folders: Folders, pattern: str, root: str) -> dict[str, Mapping[str, Any]]:
    """The files that a pattern matches, and those in the folders that it matches."""
    listed: dict[str, Mapping[str, Any]] = {}
    for found, info in _matching(folders, pattern).items():
        if info.get("type") != "directory":
            listed[found] = info
            continue
        inner = (*_folders_between(root, posixpath.dirname(found)), posixpath.basename(found))
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


def _listed(fs: Any, root: str, listed: Mapping[str, Mapping[str, Any]]) -> list[DataFile]:
    files = []
    for path, info in sorted(listed.items()):
        folders = _folders_between(root, posixpath.dirname(path))
        if info.get("type") == "directory" or any(map(is_hidden, (*folders, posixpath.basename(path)))):
            continue
        url = fs.unstrip_protocol(path)
        listing = Stated.of(info, is_listed=True)
        files.append(DataFile(shown(url), url, folders, _size(info), _time(info), fs=fs, listed=listing))
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


# ---- folders that a table format manages ---------------------------------------------------------------------------


def _warn_if_managed(found: Found) -> None:
    """Warn once for each table."""
    paths = [file.where for file in found.files if isinstance(file.where, str) and "://" not in file.where]
    if os.sep == "/":  # each folder once: dirname() of 10,000 files takes 10 ms
        paths = list({path[: path.rfind("/") + 1] for path in paths})
    folders = set(map(os.path.dirname, paths))
    if not found.is_one_file and os.path.isdir(found.root):
        folders.add(found.root)
    for table in dict.fromkeys((*found.tables, *tables_of(folders))):
        warnings.warn(warning_of(table), ManagedTableWarning, stacklevel=4)
