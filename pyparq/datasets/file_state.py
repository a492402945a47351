"""The state of a file at some time, as far as a listing shows it."""

from __future__ import annotations

import os

State = tuple[int | None, int | None, int | None, int | None]
"""Size, mtime, inode and ctime, as far as a listing has them."""


def local_state(path: str) -> State | None:
    """The state of a local file, as a listing has it."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino, status.st_ctime_ns
