"""The state of a file at some time, as far as a listing shows it, and the small files that writes make beside data."""

from __future__ import annotations

import errno
import os
import stat

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
