"""Replaced files that stay for a time, for readers that have listed the folder before a commit.

A folder of files has no versions. Where a new reader must not see a file, the file cannot stay under its name. So a
commit that keeps its old files moves them to ``_pyparq_replaced-<id>`` in the target, a name that readers pass over,
and notes their paths and the time until which they stay in ``kept.json`` there. A reader of pyparq that finds a file
gone looks for it there. Its listing, or its plan, tells whether it is the same file. Readers of other libraries do not
look. While a commit goes on, the file is in the staging folder, whose record or ``old/kept.json`` names it. Here is
also the state of a file, as far as a listing shows it, and how the small files of commits are read.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
import stat
import time
from collections.abc import Mapping
from contextlib import suppress

State = tuple[int | None, int | None, int | None, int | None]
"""Size, mtime, inode and ctime, as far as a listing has them."""


def local_state(path: str) -> State | None:
    """The state of a local file, as a listing has it."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino, status.st_ctime_ns


PREFIX = "_pyparq_staging-"
"""Begins the name of a staging folder."""
RECORD = "commit.json"
"""The commit record in it."""
OWN = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


def own_text(path: str) -> str:
    """The text of a file that a write has made. Raises ``ValueError`` for what no write makes: links, pipes, other
    text. A folder that comes from elsewhere may hold them."""
    flags = os.O_RDONLY | OWN | getattr(os, "O_NONBLOCK", 0)
    try:
        with open(os.open(path, flags), "rb") as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return file.read().decode("ascii")
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
    raise ValueError(f"{path} is not a file")


KEPT = "_pyparq_replaced-"
_LIST = "kept.json"
MOST_LEVELS = 16
"""Folders above a file that are looked at."""


def note_kept(folder: str, files: Mapping[str, str], seconds: float) -> None:
    """Note the files that a commit has moved to the staging ``folder``, to be kept: their paths, and names there."""
    with open(os.path.join(folder, "old", _LIST), "w", encoding="ascii") as out:
        json.dump({"until": time.time() + seconds, "files": dict(files)}, out)


def keep(folder: str, target: str) -> None:
    """Keep the noted files."""
    os.rename(os.path.join(folder, "old"), os.path.join(target, KEPT + secrets.token_hex(8)))


def kept_file(path: str) -> str | None:
    """Where a file is that a commit has taken from ``path``: moved aside by a commit that has not ended, or kept. It is
    looked for in the order in which it moves. It may move on after that."""
    folder = os.path.dirname(path)
    for _ in range(MOST_LEVELS):
        inner = os.path.relpath(path, folder)
        with suppress(OSError):
            for staging in _folders(folder, PREFIX):
                name = _aside(staging).get(inner) or _files(os.path.join(staging, "old")).get(inner, "")
                if os.path.isfile(place := os.path.join(staging, "old", name)):
                    return place
            for kept in _folders(folder, KEPT):
                if os.path.isfile(place := os.path.join(kept, _files(kept).get(inner, ""))):
                    return place
        above = os.path.dirname(folder)
        if above == folder:
            break
        folder = above
    return None


def _aside(staging: str) -> dict[str, str]:
    """The files that the commit of a staging folder moves aside. Its record is read as a hint alone."""
    found = _stated(os.path.join(staging, RECORD)).get("old")
    pairs = (entry[:2] for entry in found if isinstance(entry, list)) if isinstance(found, list) else ()
    named = {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and all(isinstance(part, str) for part in pair)}
    return {path: name for path, name in named.items() if os.path.basename(name) == name}


def remove_expired(target: str) -> None:
    """Remove the kept files whose time is over. What cannot be removed stays."""
    with suppress(OSError):
        for place in _folders(target, KEPT):
            if _until(place) < time.time():
                shutil.rmtree(place, ignore_errors=True)


def _folders(folder: str, prefix: str) -> list[str]:
    with os.scandir(folder) as entries:
        return [e.path for e in entries if e.name.startswith(prefix) and e.is_dir(follow_symlinks=False)]


def _stated(path: str) -> dict[str, object]:
    """What a file of JSON says. A folder that comes from elsewhere may hold anything."""
    try:
        found = json.loads(own_text(path))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _files(place: str) -> dict[str, str]:
    found = _stated(os.path.join(place, _LIST)).get("files")
    named = found.items() if isinstance(found, dict) else ()
    return {path: name for path, name in named if isinstance(name, str) and os.path.basename(name) == name}


def _until(place: str) -> float:
    """0 where the list is damaged: nobody can use the files."""
    found = _stated(os.path.join(place, _LIST)).get("until")
    return float(found) if isinstance(found, (int, float)) else 0.0
