"""Stored footers of local files."""

from __future__ import annotations

from typing import NamedTuple

from pyparq.datasets.read.open_files import FileStatus
from pyparq.options import ReadOptions
from pyparq.read.footers.footer_read import LOCAL_TAIL

SETTLED_NS = 2_000_000_000
"""A file that was changed within this time before it was read may change again without a new time or size."""
AT_A_TIME = 64
"""Files of one native call: between two, Ctrl-C is noticed."""


class StoredFooter(NamedTuple):
    """The stored bytes of a footer."""

    status: FileStatus
    encrypted: bool
    data: bytes
    requests: int
    bytes: int
    """What reading it cost."""


def tail_of(options: ReadOptions) -> int:
    """Number of bytes at the end of a local file that are read first."""
    return min(max(options.tail_size or LOCAL_TAIL, 8), 1 << 20)
