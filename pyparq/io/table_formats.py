"""Recognises folders that a table format manages: Delta Lake, Apache Iceberg, Apache Hudi, or a stream of Spark.

A table format keeps a log of the files of its table, and of their sizes. A plain writer would add files that are not in
the log, or remove files that are. A plain reader would see deleted rows.
"""

from __future__ import annotations

import os
import posixpath
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, TypeVar

from pyparq.errors import OptionError
from pyparq.io.file_systems import takes_several
from pyparq.io.folders import Folders
from pyparq.io.url import is_local_system, local_path, open_file_parts, shown
from pyparq.runtime.threads import Task, map_requests, request_pool

DELTA, _HUDI, ICEBERG, SPARK_STREAM = "Delta Lake", "Apache Hudi", "Apache Iceberg", "Spark's structured streaming"
STREAM_LOG = "_spark_metadata"
_BY_FOLDER = {"_delta_log": DELTA, ".hoodie": _HUDI, STREAM_LOG: SPARK_STREAM}
_ASKED_FOR = ("_delta_log", ".hoodie")
"""Those that a store is asked for, one by one. It is asked for the log of a stream where a listing shows it."""
_ICEBERG_FOLDER = "metadata"
_ICEBERG_FILES = (".metadata.json", ".metadata.json.gz")

L = TypeVar("L", bound=Iterable[str])

Managed = tuple[str, str]
"""The name of the format, and the table's folder."""

_CLASSES = {("deltalake", "DeltaTable"): DELTA, ("pyiceberg", "Table"): ICEBERG, ("pyiceberg", "DataScan"): ICEBERG}


def format_of(source: Any) -> str | None:
    """The format of a table that ``deltalake`` or ``pyiceberg`` has opened. ``None`` for any other object. Neither
    package is imported."""
    if isinstance(source, (str, os.PathLike)):
        return None
    names = ((cls.__module__.partition(".")[0], cls.__name__) for cls in type(source).__mro__)
    return next((_CLASSES[name] for name in names if name in _CLASSES), None)


# ---- local folders -------------------------------------------------------------------------------------------------


def managed_by(path: str) -> Managed | None:
    """The table that the local file or folder ``path`` belongs to. ``None`` if there is none. For links, both the link
    and its target are checked.

    It is asked for every file that is written. So the folders above are remembered: they are asked for tables again
    when their entries have changed.
    """
    is_plain = path.startswith("/") and "/." not in path and "//" not in path
    folder = path if is_plain else os.path.abspath(path)
    if not _is_as_seen(folder) or _format_of(folder) is not None:
        found = tables_of((folder, os.path.realpath(folder)))
        if found:
            return found[0]
        _remember(folder)
    return None


_seen: dict[str, list[tuple[str, int, int]]] = {}
"""Folders with the folders above them, none of which is a table, and the inode and time of each."""
_MOST_SEEN = 1000
_TICK_NS = 100_000_000
"""Clocks of file systems: entries that are made so shortly after each other may leave one time."""


def _is_as_seen(folder: str) -> bool:
    above = _seen.get(folder)
    if above is None:
        return False
    try:
        for one, inode, changed in above:
            status = os.stat(one)
            if status.st_mtime_ns != changed or status.st_ino != inode:
                return False
    except OSError:
        return False
    return True


def _remember(folder: str) -> None:
    above: set[str] = set()
    for path in (os.path.dirname(folder), os.path.dirname(os.path.realpath(folder))):
        _first_above(path, above.add, {}, os.path.dirname)
    with suppress(OSError):
        states = [(one, (status := os.stat(one)).st_ino, status.st_mtime_ns) for one in sorted(above)]
        if time.time_ns() - max([changed for _, _, changed in states]) > _TICK_NS:
            if len(_seen) >= _MOST_SEEN:
                _seen.clear()
            _seen[folder] = states


def tables_of(folders: Iterable[str]) -> list[Managed]:
    """The tables that local folders belong to, in the order of their paths. Each folder is looked at once."""
    known: Known = {}
    found = [_first_above(start, _format_of, known, os.path.dirname) for start in sorted(map(os.path.abspath, folders))]
    return [*dict.fromkeys(filter(None, found))]


Known = dict[str, Managed | None]
"""The answers for folders of one file system, by path, so that each is asked for once."""


def _first_above(
    folder: str, look: Callable[[str], str | None], known: Known, parent: Callable[[str], str]
) -> Managed | None:
    """The first table among a folder and those above it."""
    way: list[str] = []
    table = None
    while folder and folder not in way[-1:]:
        if folder in known:
            table = known[folder]
            break
        way.append(folder)
        format_ = look(folder)
        if format_ is not None:
            table = format_, folder
            break
        folder = parent(folder)
    known.update(dict.fromkeys(way, table))
    return table


def _format_of(folder: str) -> str | None:
    inside = folder.rstrip(os.sep) + os.sep
    for name, format_ in _BY_FOLDER.items():
        if os.access(inside + name, os.F_OK) and os.path.isdir(inside + name):
            return format_
    if not os.access(inside + _ICEBERG_FOLDER, os.F_OK):
        return None
    try:
        with os.scandir(inside + _ICEBERG_FOLDER) as entries:
            return ICEBERG if any(entry.name.endswith(_ICEBERG_FILES) for entry in entries) else None
    except OSError:  # it is no folder, or may not be read
        return None


def _tables_below(folder: str) -> Iterator[Managed]:
    """The tables in the folders below a local folder. Links are not followed: writers do not follow them either."""
    for inner, names, _ in os.walk(folder):
        found = next((_BY_FOLDER[name] for name in names if name in _BY_FOLDER), None)
        if found is None and _ICEBERG_FOLDER in names:
            found = _format_of(inner)
        if found is not None:
            yield found, inner


IN_PLACE = "in place"
"""For :func:`check_folder`: files get other bytes, and keep their names and rows."""


def check_folder(path: str, mode: str, force: bool) -> None:
    """Raise :class:`OptionError` if a write to a local folder would touch a table of a table format, or add files to a
    bucketed table of Spark, unless ``force``."""
    if force:
        return
    found = managed_by(path)
    if found is None and mode == "overwrite":
        found = next(_tables_below(path), None)
    if found is not None:
        raise _refusal(*found)
    if mode != IN_PLACE and _has_buckets(path):
        raise _bucket_refusal(path)


_BUCKET = re.compile(r"part-\d+-.*_\d{5}\.c\d{3}(\..*)?")
"""Files of a bucketed table of Spark: their names end with the number of the bucket."""
_DATA = ".parquet"
_LOOKED_AT = 64
"""Names of a folder that a write of one file looks at: it must cost little."""


def _has_buckets(path: str) -> bool:
    """Whether a local folder, or one of the partitions below or beside it, has files of a bucketed table: all of its
    files are, so the first one is asked."""
    while "=" in os.path.basename(path):
        path = os.path.dirname(path)
    partitions = []
    with suppress(OSError), os.scandir(path) as entries:
        for entry in entries:
            if entry.name.endswith(_DATA):
                return _BUCKET.fullmatch(entry.name) is not None
            if "=" in entry.name:
                partitions.append(entry.path)
    for partition in partitions:
        for _, _, names in os.walk(partition):
            found = next((name for name in names if name.endswith(_DATA)), None)
            if found is not None:
                return _BUCKET.fullmatch(found) is not None
    return False


def check_target(where: Any, force: bool) -> None:
    """Raise :class:`OptionError` for a new file in the folder of a table, unless ``force``. Nothing is asked of
    stores."""
    if force:
        return
    if not isinstance(where, str):
        opened = open_file_parts(where)
        if opened is not None:
            where = opened[1] if is_local_system(opened[0]) else None
        if not isinstance(where, (str, os.PathLike)) or hasattr(where, "write"):
            return
    path = os.fsdecode(where)
    path = (local_path(path) or "") if "://" in path or path.startswith("~") else path
    if not path:
        return
    folder = os.path.dirname(os.path.realpath(path) if os.path.islink(path) else path) or "."
    found = managed_by(folder)
    if found is not None:
        raise _refusal(*found)
    with suppress(OSError), os.scandir(folder) as entries:  # a look at the first data file of a usual folder
        name = next((entry.name for entry in islice(entries, _LOOKED_AT) if entry.name.endswith(_DATA)), "")
        if _BUCKET.fullmatch(name):
            raise _bucket_refusal(folder)


# ---- other file systems --------------------------------------------------------------------------------------------


def managed_on(fs: Any, path: str, known: Known | None = None) -> Managed | None:
    """As :func:`managed_by`, for a folder on an fsspec file system. Raises as :func:`managed_on_each`."""
    return managed_on_each(fs, [path], {} if known is None else known)[0]


def managed_on_each(fs: Any, paths: Iterable[str], known: Known) -> list[Managed | None]:
    """As :func:`managed_by`, for folders on an fsspec file system. ``known``: what folders have been asked for.

    It takes some requests for each folder above, which are made at the same time where the file system can do that.
    Folders that may not be read count as plain: often a key is valid for one part of a store only. Raises ``OSError``
    if the store does not answer.
    """
    folders, places = Folders(fs), [path.rstrip("/") for path in paths]
    answers = dict[str, bool]()
    if takes_several(fs):
        ways = dict.fromkeys(folder for place in places for folder in _way(place, known))
        asked = [f"{folder}/{name}" for folder in ways for name in (*_ASKED_FOR, _ICEBERG_FOLDER)]
        answers = dict(zip(asked, map_requests(folders.is_folder, asked), strict=True))

    def is_folder(path: str) -> bool:
        return answers[path] if path in answers else folders.is_folder(path)

    def look(folder: str) -> str | None:
        for name in _ASKED_FOR:
            if is_folder(f"{folder}/{name}"):
                return _BY_FOLDER[name]
        if is_folder(f"{folder}/{_ICEBERG_FOLDER}"):
            with suppress(PermissionError, FileNotFoundError):
                listed = folders.entries(f"{folder}/{_ICEBERG_FOLDER}")
                if any(str(info["name"]).endswith(_ICEBERG_FILES) for info in listed):
                    return ICEBERG
        return None

    return [_first_above(place, look, known, lambda one: one.rpartition("/")[0]) for place in places]


def _way(folder: str, known: Known) -> Iterator[str]:
    """A folder and those above it that nothing is known of."""
    while folder and folder not in known:
        yield folder
        folder = folder.rpartition("/")[0]


def managed_in(paths: Iterable[str], root: str) -> Managed | None:
    """The first table among the paths of files, which are relative to ``root``."""
    for path in paths:
        folders = path.split("/")[:-1]
        for k, name in enumerate(folders):
            format_ = _BY_FOLDER.get(name)
            if format_ is None and name == _ICEBERG_FOLDER and k == len(folders) - 1:
                format_ = ICEBERG if path.endswith(_ICEBERG_FILES) else None
            if format_ is not None:
                return format_, posixpath.join(root, *folders[:k])
    return None


def check_folder_on(fs: Any, root: str, files: Callable[[], L], mode: str, force: bool) -> L:
    """As :func:`check_folder`, for a folder on an fsspec file system. ``files``: lists all files below it, by their
    paths relative to it. Returns that listing.

    The listing shows a table in the folder itself. The folders above are asked for at the same time."""
    if force:
        return files()
    above = Task(managed_on, fs, root.rpartition("/")[0])
    if takes_several(fs):
        above.start(request_pool)
    try:
        listed = files()
        found = managed_in(listed, root)
        if found is not None and mode != "overwrite" and found[1].rstrip("/") != root.rstrip("/"):
            found = None  # files beside a table harm nothing
        found = found or above.result()
    finally:
        above.stopped = True
    if found is not None:
        raise _refusal(*found)
    ways = (path.split("/") for path in listed)
    if any(_BUCKET.fullmatch(names[-1]) and all("=" in name for name in names[:-1]) for names in ways):
        raise _bucket_refusal(root)
    return listed


def check_streams(folders: Iterable[str], force: bool) -> None:
    """Raise :class:`OptionError` for folders in which a listing has shown the log of a stream of Spark, unless
    ``force``."""
    for folder in () if force else folders:
        raise _refusal(SPARK_STREAM, folder)


def check_buckets(files: Iterable[str], force: bool) -> None:
    """Raise :class:`OptionError` for files of a bucketed table of Spark whose rows would get other values, unless
    ``force``."""
    for name in () if force else files:
        if _BUCKET.fullmatch(name.rpartition("/")[2]):
            raise OptionError(
                f"{shown(name)} belongs to a bucketed table of Spark: rows with other values may belong to another "
                "bucket, and Spark's joins would fail. Write with Spark, or give force=True"
            )


# ---- messages ------------------------------------------------------------------------------------------------------


def _refusal(format_: str, table: str) -> OptionError:
    return OptionError(
        f"{shown(table)} is a table of {format_}, which would not know of files written or removed here. Write with "
        f"{format_}, or give force=True"
    )


def _bucket_refusal(folder: str) -> OptionError:
    return OptionError(
        f"{shown(folder)} is a bucketed table of Spark, whose files have the numbers of their buckets in their names. "
        "Files that are written here have none, and Spark's joins would fail. Write with Spark, or give force=True"
    )


def warning_of(found: Managed) -> str:
    """The warning for a reader of plain files."""
    format_, table = found
    if format_ == SPARK_STREAM:
        return (
            f"{shown(table)} is written by {format_}, whose log ({STREAM_LOG}) says which files count. Files of a "
            "batch that has failed are read too here: give the whole folder"
        )
    opened = {DELTA: f'DeltaTable("{shown(table)}")', ICEBERG: 'catalog.load_table("name")'}.get(format_)
    rightly = f"Use a reader for {format_}" if opened is None else f"Give pyparq.dataset({opened})"
    return (
        f"{shown(table)} is a table of {format_}. Its files may hold rows that were deleted or replaced since, and "
        f"these rows are read too. {rightly} to read the table as it is now (docs/delta-and-iceberg.md)"
    )
