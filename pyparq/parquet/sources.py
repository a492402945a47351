"""What pyarrow takes as a source or a target, as pyparq takes it."""

from __future__ import annotations

import os
from typing import Any

from pyparq.errors import OptionError, UnsupportedError


def located(where: Any, filesystem: Any) -> tuple[Any, dict[str, Any] | None]:
    """A path, URL or file, and the storage options for it.

    ``filesystem``: ``None``, or one of pyarrow's or fsspec's. Raises :class:`UnsupportedError` for pyarrow's own remote
    file systems.
    """
    if isinstance(where, (list, tuple)):
        pairs = [located(one, filesystem) for one in where]
        return [place for place, _ in pairs], next((options for _, options in pairs if options), None)
    if filesystem is None:
        return _plain(where), None
    if hasattr(where, "read") or hasattr(where, "write"):
        raise ValueError("filesystem passed but specified path is file-like, so there is nothing to open")
    if isinstance(filesystem, str):
        return _plain(f"{filesystem.rstrip('/')}/{os.fspath(where)}"), None
    if hasattr(filesystem, "unstrip_protocol"):
        protocol = filesystem.protocol if isinstance(filesystem.protocol, str) else filesystem.protocol[0]
        path = os.fspath(where)
        if protocol in ("file", "local"):
            return path, None
        return path if "://" in path else f"{protocol}://{path.lstrip('/')}", dict(filesystem.storage_options)
    return _of_pyarrow(os.fspath(where), filesystem), None


def _of_pyarrow(path: str, filesystem: Any) -> str:
    kind = getattr(filesystem, "type_name", None)
    if kind == "local":
        return path
    if kind == "subtree":
        return _of_pyarrow(os.path.join(filesystem.base_path, path.lstrip("/")), filesystem.base_fs)
    handler = getattr(filesystem, "handler", None)
    if kind is not None and kind.startswith("py::fsspec") and handler is not None:
        place, options = located(path, handler.fs)
        if options is None:
            return str(place)
    if kind is None:
        raise OptionError(f"filesystem must be one of pyarrow's or fsspec's, not {type(filesystem).__name__}")
    raise UnsupportedError(
        f"pyarrow's file system {kind!r} is not used: give a URL (s3://, gs://, abfs://), with storage_options in "
        "pyparq.read_table, or a file system of fsspec"
    )


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
