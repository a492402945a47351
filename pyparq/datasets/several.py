"""Whether a source can stand for several files. A read of one file loads this, and not what finds many."""

from __future__ import annotations

import os
import posixpath
from typing import Any

from pyparq.datasets.glob_patterns import is_pattern
from pyparq.io.table_formats import format_of
from pyparq.io.url import is_url, local_path

CACHES = ("simplecache::", "filecache::", "blockcache::")
"""Protocols in front of another one, whose folders they show."""


def has_folders(url: str) -> bool:
    """Whether the file system of a URL can list folders. HTTP servers and archives are read file by file."""
    while url.lower().startswith(CACHES):
        url = url.partition("::")[2]
    return "::" not in url and not url.lower().startswith(("http://", "https://"))


def names_many(source: Any) -> bool:
    """Whether a source can stand for several files: a list, a folder, a glob. Costs one look at the file system."""
    if isinstance(source, (list, tuple)) or format_of(source) is not None:
        return True
    if not isinstance(source, (str, os.PathLike)):
        return False
    path = os.fspath(source)
    path = os.fsdecode(path) if isinstance(path, bytes) else path
    if is_url(path):
        if not has_folders(path):
            return False
        return is_pattern(path) or path.endswith("/") or not posixpath.splitext(path)[1]
    path = local_path(path) or path
    return os.path.isdir(path) or (is_pattern(path) and not os.path.lexists(path))
