"""``filesystem=``: file systems of fsspec and pyarrow, stores of obstore, and the names of roads.

pyarrow is recognised by the names of its modules, and never imported here.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping
from typing import Any

from pyparq.errors import OptionError, UnsupportedError
from pyparq.io.object_system import ObjectSystem
from pyparq.io.roads import ROADS, Chosen
from pyparq.io.url import is_local_system
from pyparq.runtime.messages import requirement

_SCHEMES = {"S3Store": ("s3", "bucket"), "GCSStore": ("gs", "bucket"), "AzureStore": ("az", "container_name")}

Options = Mapping[str, Any] | None


def located(where: Any, filesystem: Any, storage_options: Options = None) -> tuple[Any, Options]:
    """A path on the file system as a local path or URL, and the storage options with the choice of it.

    ``filesystem``: ``None``; a file system of fsspec or pyarrow; a store of obstore; ``"obstore"`` or ``"fsspec"``, by
    which URLs are opened then; or the URL of a folder that paths are relative to. A list of paths stays a list.

    Raises :class:`OptionError` for what is no file system, and for sources that are no paths.
    """
    if filesystem is None:
        return where, storage_options
    if isinstance(filesystem, str) and filesystem in ROADS:
        return where, Chosen(storage_options, filesystem)
    if isinstance(where, (list, tuple)):
        pairs = [located(one, filesystem, storage_options) for one in where]
        return [place for place, _ in pairs], next((options for _, options in pairs), storage_options)
    if not isinstance(where, (str, os.PathLike)):
        raise OptionError("filesystem is for paths, and the source or target is none: leave it out")
    return _on(os.fsdecode(where), filesystem, storage_options)


def both_located(
    source: Any, target: Any, filesystem: Any, storage_options: Options
) -> tuple[Any, Any, Options]:  # fmt: skip
    """As :func:`located`, for a source and a target, of which one may be no path."""
    paths = [isinstance(where, (str, os.PathLike, list, tuple)) for where in (source, target)]
    options = storage_options
    if paths[0] or not paths[1]:
        source, options = located(source, filesystem, storage_options)
    if paths[1]:
        target, options = located(target, filesystem, storage_options)
    return source, target, options


def _on(path: str, filesystem: Any, storage_options: Options) -> tuple[str, Options]:
    if isinstance(filesystem, str):
        if "://" not in filesystem:
            raise OptionError(f"filesystem must be a file system, a URL, 'obstore' or 'fsspec', not {filesystem!r}")
        return filesystem + "/" * (not filesystem.endswith("/")) + path, storage_options
    packages = {cls.__module__.partition(".")[0] for cls in type(filesystem).__mro__}
    if "fsspec" in packages:
        return _on_fsspec(path, filesystem, storage_options)
    if "pyarrow" in packages:
        return _on_pyarrow(path, filesystem, storage_options)
    if "obstore" in packages:
        return _on_store(path, filesystem, storage_options)
    raise OptionError(f"filesystem must be one of fsspec, pyarrow or obstore, not {type(filesystem).__name__}")


def _on_fsspec(path: str, fs: Any, storage_options: Options) -> tuple[str, Options]:
    if is_local_system(fs):
        return str(fs._strip_protocol(path)) if "://" in path else path, storage_options
    return str(fs.unstrip_protocol(path)), Chosen(storage_options, fs=fs)


def _on_pyarrow(path: str, fs: Any, storage_options: Options) -> tuple[str, Options]:
    kind = str(fs.type_name)
    if kind == "local":
        return path, storage_options
    if kind == "subtree":
        return _on_pyarrow(posixpath.join(fs.base_path, path.lstrip("/")), fs.base_fs, storage_options)
    behind = getattr(getattr(fs, "handler", None), "fs", None)
    if kind.startswith("py::fsspec") and behind is not None:
        return _on_fsspec(path, behind, storage_options)
    try:
        from pyparq.io.pyarrow_system import PyarrowSystem
    except ImportError:
        raise UnsupportedError(f"file systems of pyarrow need fsspec: pip install {requirement('fsspec')}") from None
    return _on_fsspec(path, PyarrowSystem(fs, skip_instance_cache=True), storage_options)


def _on_store(path: str, store: Any, storage_options: Options) -> tuple[str, Options]:
    kind = type(store).__name__
    if kind == "LocalStore":
        return os.path.join(str(store.prefix or "/"), path.lstrip("/")), storage_options
    scheme, place = _SCHEMES.get(kind, (kind.lower(), ""))
    prefix = str(getattr(store, "prefix", None) or "").strip("/")
    root = "/".join(part for part in (str(store.config[place]) if place else "", prefix) if part)
    url = str(store.url).rstrip("/") + "/" if hasattr(store, "url") else f"{scheme}://{root}"
    system = ObjectSystem(store, url, root)
    own = path if path.startswith(url) else system.unstrip_protocol(posixpath.join(root, path.lstrip("/")))
    return own, Chosen(storage_options, fs=system)
