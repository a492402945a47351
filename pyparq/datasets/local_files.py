"""Lists local folders and matches local patterns."""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pyparq.datasets import unfinished_writes as writes
from pyparq.datasets.catalog.layout import FOLDER, HEAD
from pyparq.datasets.data_files import DataFile, SourceFiles, folders_between, is_hidden, partition_folders_of
from pyparq.datasets.glob_patterns import alternatives, fixed_part, is_pattern
from pyparq.datasets.staging import PREFIX, staging_folders
from pyparq.datasets.stream_log import files_of_stream
from pyparq.datasets.unfinished_writes import Names, Place, Unfinished
from pyparq.errors import OptionError
from pyparq.io.folders import fits
from pyparq.io.table_formats import STREAM_LOG


def local_files(path: str) -> SourceFiles:
    if os.path.isdir(path):
        return _folder(path)
    if os.path.lexists(path) or not is_pattern(path):
        return SourceFiles(path, (DataFile(path, path),), True)
    return _local_glob(path)


def _folder(path: str) -> SourceFiles:
    def listed(seen: list[Place]) -> list[DataFile]:
        return list(_walk(path, (), seen))

    files, commits = _before_commits(path, listed)
    log = os.path.join(path, STREAM_LOG)
    if os.path.isdir(log):
        counted = files_of_stream(path, files, os.listdir(log), lambda name: Path(log, name).read_bytes())
        return SourceFiles(path, counted, unfinished=tuple(commits), streams=(path,))
    catalog = DataFile(path, path) if os.path.exists(os.path.join(path, FOLDER, HEAD)) else None
    return SourceFiles(path, tuple(files), unfinished=tuple(commits), catalog=catalog)


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
            kept.append(_file(name, where, names[:-1], status))
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
    return _file(entry.path, entry.path, folders, status)


def _file(name: str, where: str, folders: tuple[str, ...], status: os.stat_result) -> DataFile:
    return DataFile(
        name, where, folders, status.st_size, status.st_mtime_ns, status.st_ino, ctime_ns=status.st_ctime_ns
    )


def _local_glob(pattern: str) -> SourceFiles:
    root = fixed_part(pattern)
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
    above = partition_folders_of(root)
    files = [replace(file, above=above) for file in files] if above else files
    return SourceFiles(pattern, tuple(files), unfinished=tuple(commits))


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
            files.append(_file(path, path, folders, status))
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
