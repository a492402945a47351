"""What pyarrow takes as a source or a target, as pyparq takes it."""

from __future__ import annotations

import os
from typing import Any

from pyparq.io.locations import StorageOptions
from pyparq.io.locations import located as on_system


def located(where: Any, filesystem: Any) -> tuple[Any, Any]:
    """A path, URL or file, and the storage options for it. ``filesystem``: ``None``, or what
    :func:`pyparq.io.locations.located` takes.
    """
    if filesystem is None:
        return [_plain(one) for one in where] if isinstance(where, (list, tuple)) else _plain(where), None
    if isinstance(filesystem, StorageOptions):
        return where, filesystem
    if hasattr(where, "read") or hasattr(where, "write"):
        raise ValueError("filesystem passed but specified path is file-like, so there is nothing to open")
    place, options = on_system(where, filesystem)
    return _plain(place) if isinstance(filesystem, str) else place, options


def _plain(where: Any) -> Any:
    """A source as pyparq takes it: Buffers become memory, paths have ``~`` expanded."""
    if isinstance(where, str) or hasattr(where, "__fspath__"):
        path = os.fspath(where)
        if isinstance(path, str):
            path = path.removeprefix("fsspec+")
        if isinstance(path, str) and path.startswith("file://"):
            return path
        return os.path.expanduser(path) if isinstance(path, str) else path
    if hasattr(where, "to_pybytes") and not hasattr(where, "read"):
        return memoryview(where)
    return where


def check_source(source: Any, buffer_size: int = 0) -> None:
    """Raise :class:`TypeError` for what is no source, and :class:`ValueError` for a buffer of negative size."""
    if source is None or isinstance(source, (int, float)):
        raise TypeError(f"a source must be a path, a buffer or a file, not {type(source).__name__}")
    if buffer_size < 0:
        raise ValueError("Buffer size must be larger than zero")


def is_folder(where: Any) -> bool:
    return isinstance(where, (str, bytes)) and os.path.isdir(where)
