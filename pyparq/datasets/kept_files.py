"""Replaced files that stay for a time, for readers that have listed the folder before a commit.

A folder of files has no versions. Where a new reader must not see a file, the file cannot stay under its name. So a
commit that keeps its old files moves them to ``_pyparq_replaced-<id>`` in the target, a name that readers pass over,
and notes their paths and the time until which they stay in ``kept.json`` there. A reader of pyparq that finds a file
gone looks for it there. Its listing, or its plan, tells whether it is the same file. Readers of other libraries do not
look.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
from collections.abc import Iterable
from contextlib import suppress

from pyparq.datasets.staging import OldFile, own_text, read_record, staging_folders

KEPT = "_pyparq_replaced-"
_LIST = "kept.json"
MOST_LEVELS = 16
"""Folders above a file that are looked at."""


def keep(folder: str, target: str, files: Iterable[OldFile], seconds: float) -> None:
    """Keep the files that a commit has moved to the staging ``folder``."""
    old = os.path.join(folder, "old")
    listed = {file.path: file.name for file in files}
    with open(os.path.join(old, _LIST), "w", encoding="ascii") as out:
        json.dump({"until": time.time() + seconds, "files": listed}, out)
    os.rename(old, os.path.join(target, KEPT + secrets.token_hex(8)))


def kept_file(path: str) -> str | None:
    """Where a file is that a commit has taken from ``path``: kept, or moved aside by a commit that has not ended."""
    folder = os.path.dirname(path)
    for _ in range(MOST_LEVELS):
        inner = os.path.relpath(path, folder)
        with suppress(OSError):
            for place in _kept_folders(folder):
                name = _files(place).get(inner)
                if name is not None and os.path.basename(name) == name:
                    return os.path.join(place, name)
            for staging in staging_folders(folder):
                found = _aside(staging, inner)
                if found is not None:
                    return found
        above = os.path.dirname(folder)
        if above == folder:
            break
        folder = above
    return None


def _aside(staging: str, inner: str) -> str | None:
    record = None
    with suppress(ValueError):  # a damaged record is the business of those who write
        record = read_record(staging)
    for old in record.old if record is not None else ():
        place = os.path.join(staging, "old", old.name)
        if old.path == inner and os.path.lexists(place):
            return place
    return None


def remove_expired(target: str) -> None:
    """Remove the kept files whose time is over. What cannot be removed stays."""
    with suppress(OSError):
        for place in _kept_folders(target):
            if _until(place) < time.time():
                shutil.rmtree(place, ignore_errors=True)


def _kept_folders(folder: str) -> list[str]:
    with os.scandir(folder) as entries:
        return [e.path for e in entries if e.name.startswith(KEPT) and e.is_dir(follow_symlinks=False)]


def _stated(place: str) -> dict[str, object]:
    try:
        found = json.loads(own_text(os.path.join(place, _LIST)))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _files(place: str) -> dict[str, str]:
    found = _stated(place).get("files")
    return {k: v for k, v in found.items() if isinstance(v, str)} if isinstance(found, dict) else {}


def _until(place: str) -> float:
    """0 where the list is damaged: nobody can use the files."""
    found = _stated(place).get("until")
    return float(found) if isinstance(found, (int, float)) else 0.0
