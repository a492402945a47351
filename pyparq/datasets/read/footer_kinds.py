"""Finds the kinds of footers among many local files. The common schema needs one footer of each kind.

Footers of one kind are equal except for rows and row groups. Native calls read and compare them, and only the first of
each kind is kept, so the others cost no Python object. The results for the last few listings (paths with sizes,
modification times and inodes) are kept.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.datasets.data_files import DataFile
from pyparq.datasets.read.open_files import FileStatus
from pyparq.datasets.read.stored_footer import AT_A_TIME, SETTLED_NS, StoredFooter, tail_of
from pyparq.options import ReadOptions
from pyparq.runtime import fork_safety
from pyparq.runtime.threads import map_tasks

MOST_LISTINGS = 4
MOST_BYTES = 16 << 20
"""Of the listings that are remembered."""

_Part = tuple[npt.NDArray[np.int64], list[tuple[int, int, int, int, bool, bytes, int, int]], npt.NDArray[np.int64]]
_Key = tuple[bytes, bytes, int, int, str]


class Kinds(NamedTuple):
    """The kinds of footers among files. Files are given by their positions in a list."""

    firsts: tuple[tuple[int, StoredFooter], ...]
    """The first file of each kind."""
    odd: tuple[int, ...]
    """Files whose kind cannot be told without opening them."""


class _Listing(NamedTuple):
    """Local files as listed."""

    paths: bytes
    """Separated by zero bytes."""
    statuses: npt.NDArray[np.int64]
    """Size, mtime, inode and ctime of each."""


_known: OrderedDict[_Key, Kinds] = OrderedDict()
_lock = threading.Lock()


@fork_safety.in_child
def forget_kinds() -> None:
    global _lock
    _lock = threading.Lock()
    _known.clear()


def kinds_of(files: Sequence[DataFile], options: ReadOptions) -> Kinds | None:
    """The kinds of footers of all ``files``. ``None`` if each file has to be opened: some are not local, their state is
    not in the listing, or they need keys."""
    listing = _listing_of(files) if kernels.footer_kinds is not None and options.decryption is None else None
    if listing is None:
        return None
    folder = "" if all(path.startswith(b"/") for path in listing.paths.split(b"\0")) else os.getcwd()
    key = listing.paths, listing.statuses.tobytes(), tail_of(options), options.limits.max_footer, folder
    with _lock:
        known = _known.get(key)
        if known is not None:
            _known.move_to_end(key)
            return known
    now = time.time_ns()
    found = _read(listing, options)
    if now - int(listing.statuses[:, 1].max(initial=0)) >= SETTLED_NS:
        _remember(key, found)
    return found


def _remember(key: _Key, found: Kinds) -> None:
    with _lock:
        _known[key] = found
        while len(_known) > MOST_LISTINGS or sum(len(paths) + len(rest) for paths, rest, *_ in _known) > MOST_BYTES:
            _known.popitem(last=False)


def _listing_of(files: Sequence[DataFile]) -> _Listing | None:
    wheres = [file.where for file in files]
    if not wheres or not all(isinstance(where, str) for where in wheres):
        return None
    paths = os.fsencode("\0".join(wheres))
    if b"://" in paths or paths.count(b"\0") != len(wheres) - 1:
        return None
    statuses = np.empty((len(files), 4), np.int64)
    try:
        statuses[:, 0] = [file.size for file in files]  # type: ignore[assignment]
        statuses[:, 1] = [file.mtime_ns for file in files]  # type: ignore[assignment]
        statuses[:, 2] = np.array([file.inode for file in files], np.uint64).view(np.int64)
        statuses[:, 3] = [file.ctime_ns for file in files]  # type: ignore[assignment]
    except TypeError:  # None: a file that was named, not listed
        return None
    return _Listing(paths, statuses)


def _read(listing: _Listing, options: ReadOptions) -> Kinds:
    paths = listing.paths.split(b"\0")
    tail, most = tail_of(options), options.limits.max_footer

    def of_part(first: int) -> _Part:
        assert kernels.footer_kinds is not None
        last = first + AT_A_TIME
        return kernels.footer_kinds(paths[first:last], listing.statuses[first:last].reshape(-1), tail, most)

    starts = range(0, len(paths), AT_A_TIME)
    firsts: list[tuple[int, StoredFooter]] = []
    odd: list[int] = []
    for start, (places, footers, strange) in zip(starts, map_tasks(of_part, starts, options.use_threads), strict=True):
        stored = (StoredFooter(FileStatus(*end[:4]), *end[4:]) for end in footers)
        firsts += zip((places + start).tolist(), stored, strict=True)
        odd += (strange + start).tolist()
    frames, _ = kernels.footer_frames([footer.data for _, footer in firsts])
    kept = [found for k, found in enumerate(firsts) if frames[k] == k]
    return Kinds(tuple(kept), tuple(odd))
