"""Which sources stand for several files: folders, lists, and patterns of paths (``*``, ``?``, ``[...]``, and ``{a,b}``
as in Hadoop and shells). A read of one file loads this, and not what finds many."""

from __future__ import annotations

import os
import re
from typing import Any

from pyparq.errors import OptionError
from pyparq.io.folders import MAGIC
from pyparq.io.table_formats import format_of
from pyparq.io.url import is_chain, is_url, local_path

MOST_PATTERNS = 10_000
"""Maximum number of patterns from one: several braces multiply."""

_INNERMOST = re.compile(r"\{([^{}]*,[^{}]*)\}")


def is_pattern(path: str) -> bool:
    return MAGIC.search(path) is not None or has_braces(path)


def fixed_part(pattern: str) -> str:
    """The folders of a pattern in front of the first name with a wildcard or braces."""
    parts, braces = pattern.split("/"), has_braces(pattern)
    first = next(k for k, part in enumerate(parts) if MAGIC.search(part) or (braces and "{" in part))
    return "/".join(parts[:first])


def has_braces(pattern: str) -> bool:
    """Whether the pattern has alternatives. Braces without a comma are ordinary letters."""
    return _INNERMOST.search(pattern) is not None


def alternatives(pattern: str) -> list[str]:
    """The patterns without alternatives, each once, in order. Raises :class:`pyparq.OptionError` for more than
    :data:`MOST_PATTERNS`."""
    found = [pattern]
    while any(map(has_braces, found)):
        found = list(dict.fromkeys(spelled for one in found for spelled in _first_of(one)))
        if len(found) > MOST_PATTERNS:
            raise OptionError(f"the pattern {pattern[:100]!r} stands for more than {MOST_PATTERNS:,} paths")
    return found


def _first_of(pattern: str) -> list[str]:
    """The patterns for its first innermost braces."""
    braces = _INNERMOST.search(pattern)
    if braces is None:
        return [pattern]
    return [pattern[: braces.start()] + one + pattern[braces.end() :] for one in braces[1].split(",")]


CACHES = ("simplecache::", "filecache::", "blockcache::")
"""Protocols in front of another one, whose folders they show."""


def has_folders(url: str) -> bool:
    """Whether the file system of a URL can list folders. HTTP servers and archives are read file by file."""
    while url.lower().startswith(CACHES):
        url = url.partition("::")[2]
    return not is_chain(url) and not url.lower().startswith(("http://", "https://"))


def shows_file(url: str) -> bool:
    """Whether the name of a URL shows that it is a file. A folder may have such a name, too: Spark's often do."""
    return url.lower().endswith((".parquet", ".parq", ".pq"))


def names_many(source: Any) -> bool:
    """Whether a source can stand for several files: a list, a folder, a glob. Costs one look at the file system."""
    if not isinstance(source, (str, os.PathLike)):
        return isinstance(source, (list, tuple)) or format_of(source) is not None
    path = os.fspath(source)
    path = os.fsdecode(path) if isinstance(path, bytes) else path
    if "://" in path or path.startswith("~"):
        if is_url(path):
            return has_folders(path) and (is_pattern(path) or not shows_file(path))
        path = local_path(path) or path
    return os.path.isdir(path) or (not os.path.lexists(path) and is_pattern(path))
