"""Bytes that a scan of a remote file reads before it knows that it needs them, so that it waits for fewer requests.

An index that is asked for and waited for must save more than the wait costs. Where the answer can only save fewer bytes
than a store sends in that time, the column chunks are requested at the same time as the index.
"""

from __future__ import annotations

import threading

from pyparq.runtime import fork_safety

TRIP = 2_400_000
"""Bytes that a store sends while a client waits for one more answer: 30 ms, at 80 MB/s. So many may be read in vain to
save one wait."""


class SpareBytes:
    """What a scan may still read in vain. All files of a dataset's scan share it: they are asked at the same time, so
    that only the first waits count."""

    def __init__(self, most: int = TRIP) -> None:
        self._left = most
        self._after_fork()
        fork_safety.watch(self)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        """Take ``size`` bytes, unless fewer are left. Returns whether they may be read."""
        with self._lock:
            if size > self._left:
                return False
            self._left -= size
            return True

    def give_back(self, size: int) -> None:
        """Rows of these bytes were needed: a wait was saved."""
        with self._lock:
            self._left += size
