"""The log of a folder that a stream of Spark writes (``_spark_metadata``): the files that count.

A batch that fails leaves files behind, and the next attempt writes them again. So Spark reads what the log names, and
nothing else. The log has a file for each batch. Now and then a file ``<number>.compact`` holds all batches up to it.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable, Iterable
from urllib.parse import unquote

from pyparq.datasets.data_files import DataFile
from pyparq.errors import CorruptFileError, UnsupportedError
from pyparq.io.table_formats import STREAM_LOG

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
        named |= _entries(f"{root}/{STREAM_LOG}/{batch}", content(batch))
    there = {"/".join((*file.folders, os.path.basename(file.name))): file for file in files}
    kept = set[str]()
    for path in (path for path, counts in named.items() if counts):
        found = _found(path, there)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, f"the log in {STREAM_LOG} names the file, and it is gone", path)
        kept.add(found.name)
    return tuple(file for file in there.values() if file.name in kept)


def _newest(batches: Iterable[str]) -> list[str]:
    """The batches to read, in their order: the last compact one, and those behind it."""
    found = [(int(match[1]), bool(match[2]), name) for name in batches if (match := _BATCH.fullmatch(name))]
    last = max((number for number, is_compact, _ in found if is_compact), default=-1)
    return [name for number, is_compact, name in sorted(found) if number > last or (is_compact and number == last)]


def _entries(name: str, data: bytes | None) -> dict[str, bool]:
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


def _found(path: str, there: dict[str, DataFile]) -> DataFile | None:
    """The file that the log calls ``path``. The folder may have been moved since."""
    names = path.split("/")
    return next((there[rest] for k in range(len(names)) if (rest := "/".join(names[k:])) in there), None)
