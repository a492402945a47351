"""Recognises folders that a table format manages: Delta Lake, Apache Iceberg, Apache Hudi.

A table format keeps a log of the files of its table, and of their sizes. A plain writer would add files that are not in
the log, or remove files that are. A plain reader would see deleted rows.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from pyparq.errors import OptionError
from pyparq.io.folders import Folders
from pyparq.io.object_stores import ObjectFile
from pyparq.io.url import shown

DELTA, _HUDI, ICEBERG = "Delta Lake", "Apache Hudi", "Apache Iceberg"
_BY_FOLDER = {"_delta_log": DELTA, ".hoodie": _HUDI}
_ICEBERG_FOLDER = "metadata"
_ICEBERG_FILES = (".metadata.json", ".metadata.json.gz")

Managed = tuple[str, str]
"""The name of the format, and the table's folder."""


_CLASSES = {("deltalake", "DeltaTable"): DELTA, ("pyiceberg", "Table"): ICEBERG, ("pyiceberg", "DataScan"): ICEBERG}


def format_of(source: Any) -> str | None:
    """The format of a table that ``deltalake`` or ``pyiceberg`` has opened. ``None`` for any other object. Neither
    package is imported."""
    names = ((cls.__module__.partition(".")[0], cls.__name__) for cls in type(source).__mro__)
    return next((_CLASSES[name] for name in names if name in _CLASSES), None)


# ---- local folders -------------------------------------------------------------------------------------------------


def managed_by(path: str) -> Managed | None:
    """The table that the local file or folder ``path`` belongs to. ``None`` if there is none. For links, both the link
    and its target are checked."""
    return next(iter(tables_of((path, os.path.realpath(path)))), None)


def tables_of(folders: Iterable[str]) -> list[Managed]:
    """The tables that local folders belong to, in the order of their paths. Each folder is looked at once."""
    known: dict[str, Managed | None] = {}
    found: dict[Managed, None] = {}
    for start in sorted(map(os.path.abspath, folders)):
        way: list[str] = []
        folder, table = start, None
        while folder not in known:
            way.append(folder)
            format_ = _format_of(folder)
            above = os.path.dirname(folder)
            known[folder] = None if format_ is None else (format_, folder)
            if format_ is not None or above == folder:
                break
            folder = above
        table = known[folder]
        known.update(dict.fromkeys(way, table))
        if table is not None:
            found[table] = None
    return list(found)


def _format_of(folder: str) -> str | None:
    for name, format_ in _BY_FOLDER.items():
        if os.path.isdir(os.path.join(folder, name)):
            return format_
    try:
        with os.scandir(os.path.join(folder, _ICEBERG_FOLDER)) as entries:
            return ICEBERG if any(entry.name.endswith(_ICEBERG_FILES) for entry in entries) else None
    except OSError:  # it does not exist, or may not be read
        return None


def _tables_below(folder: str) -> Iterator[Managed]:
    """The tables in the folders below a local folder. Links are not followed: writers do not follow them either."""
    for inner, names, _ in os.walk(folder):
        found = next((_BY_FOLDER[name] for name in names if name in _BY_FOLDER), None)
        if found is None and _ICEBERG_FOLDER in names:
            found = _format_of(inner)
        if found is not None:
            yield found, inner


def check_folder(path: str, mode: str, force: bool) -> None:
    """Raise :class:`OptionError` if a write to a local folder would touch a table of a table format, unless
    ``force``."""
    if force:
        return
    found = managed_by(path)
    if found is None and mode == "overwrite":
        found = next(_tables_below(path), None)
    if found is not None:
        raise _refusal(*found)


# ---- other file systems --------------------------------------------------------------------------------------------


def managed_on(fs: Any, path: str) -> Managed | None:
    """As :func:`managed_by`, for a folder on an fsspec file system.

    It takes some requests for each folder above. Folders that may not be read count as plain: often a key is valid for
    one part of a store only. Raises ``OSError`` if the store does not answer.
    """
    folders, folder = Folders(fs), path.rstrip("/")
    while folder:
        for name, format_ in _BY_FOLDER.items():
            if folders.is_folder(f"{folder}/{name}"):
                return format_, folder
        if folders.is_folder(f"{folder}/{_ICEBERG_FOLDER}"):
            with suppress(PermissionError, FileNotFoundError):
                listed = folders.entries(f"{folder}/{_ICEBERG_FOLDER}")
                if any(str(info["name"]).endswith(_ICEBERG_FILES) for info in listed):
                    return ICEBERG, folder
        folder = folder.rpartition("/")[0]
    return None


def managed_in_store(file: ObjectFile, folder: str) -> Managed | None:
    """As :func:`managed_by`, for a folder in the store of an object."""
    while folder:
        for name, format_ in _BY_FOLDER.items():
            if any(True for _ in file.neighbours(f"{folder}/{name}")):
                return format_, folder
        if any(name.endswith(_ICEBERG_FILES) for name in file.neighbours(f"{folder}/{_ICEBERG_FOLDER}")):
            return ICEBERG, folder
        folder = folder.rpartition("/")[0]
    return None


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


def check_folder_on(fs: Any, root: str, listed: Iterable[str], mode: str, force: bool) -> None:
    """As :func:`check_folder`, for a folder on an fsspec file system. ``listed``: paths of all files below it, relative
    to it."""
    if force:
        return
    found = managed_in(listed, root)
    if found is not None and mode != "overwrite" and found[1].rstrip("/") != root.rstrip("/"):
        found = None  # files beside a table harm nothing
    found = found or managed_on(fs, root)
    if found is not None:
        raise _refusal(*found)


# ---- messages ------------------------------------------------------------------------------------------------------


def _refusal(format_: str, table: str) -> OptionError:
    return OptionError(
        f"{shown(table)} is a table of {format_}, which would not know of files written or removed here. Write with "
        f"{format_}, or give force=True"
    )


def warning_of(found: Managed) -> str:
    """The warning for a reader of plain files."""
    format_, table = found
    opened = {DELTA: f'DeltaTable("{shown(table)}")', ICEBERG: 'catalog.load_table("name")'}.get(format_)
    rightly = f"Use a reader for {format_}" if opened is None else f"Give pyparq.dataset({opened})"
    return (
        f"{shown(table)} is a table of {format_}. Its files may hold rows that were deleted or replaced since, and "
        f"these rows are read too. {rightly} to read the table as it is now (docs/delta-and-iceberg.md)"
    )
