"""Requests the bytes of the next reads of a remote file while the reads before them are decoded.

A read is a list of ranges that are fetched in one step: one large column chunk, or all small ones of a row group. Reads
wait in a queue, in the order in which they are needed. A read begins when the reads that began before it, and whose
bytes were not taken yet, hold fewer bytes than the limit.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from pyparq.errors import ParquetError
from pyparq.io.byte_ranges import Range
from pyparq.io.fetch import EarlyRequests, Fetcher
from pyparq.runtime import fork_safety

Ranges = Sequence[Range]


class Prefetch:
    """The future reads of one scan. Several threads may use it."""

    def __init__(self, fetcher: Fetcher, most: int) -> None:
        """``most``: maximum number of bytes that are requested before they are needed."""
        self._fetcher = fetcher
        self._most = most
        self._queue: deque[Ranges] = deque()
        self._later: Iterator[Ranges] = iter(())
        self._begun: dict[Range, EarlyRequests] = {}
        self._size = 0
        self._after_fork()
        fork_safety.watch(self)

    def _after_fork(self) -> None:
        self._lock = threading.RLock()
        self._planning = False

    def follow(self, reads: Iterator[Ranges]) -> None:
        """Add ``reads`` to the queue. They are planned when they begin. An error while planning ends the queue; the
        code that needs those reads meets the error again."""
        self._later = reads
        self._begin()

    def expect(self, reads: Iterable[Ranges]) -> None:
        """Put these reads before all others: they are needed now."""
        with self._lock:
            new = [ranges for ranges in reads if ranges and ranges[0] not in self._begun]
            known = {ranges[0] for ranges in new}
            self._queue = deque([*new, *(ranges for ranges in self._queue if ranges[0] not in known)])
        self._begin()

    def fetch(self, reads: Sequence[Ranges]) -> list[list[memoryview]]:
        """The bytes of some reads, in one step. Bytes that were requested before are not requested again. Begins the
        next reads, and raises the errors of the requests."""
        with self._lock:
            firsts = {ranges[0] for ranges in reads if ranges}
            self._queue = deque(ranges for ranges in self._queue if ranges[0] not in firsts)
        try:
            return self._fetcher.fetch_groups(reads)
        finally:
            for first in firsts:
                self._forget(first)
            self._begin()

    def stop(self) -> None:
        """End: no more bytes are needed."""
        with self._lock:
            self._queue.clear()
            self._later = iter(())
            for first in list(self._begun):
                self._forget(first)

    def _forget(self, first: Range) -> None:
        with self._lock:
            ahead = self._begun.pop(first, None)
            if ahead is not None:
                self._size -= ahead.num_bytes
        if ahead is not None:
            self._fetcher.forget(ahead)

    def _begin(self) -> None:
        """Begin as many reads as the limit allows, and at least one."""
        while True:
            with self._lock:
                if self._size >= self._most:
                    return
                ranges = self._queue.popleft() if self._queue else None
                if ranges is not None:
                    if self._begun and self._size + sum(length for _, length in ranges) > self._most:
                        self._queue.appendleft(ranges)
                        return
                    if ranges[0] not in self._begun:
                        with suppress(ParquetError):  # outside the file: the code that needs these bytes raises it
                            self._begun[ranges[0]] = ahead = self._fetcher.begin(ranges)
                            self._size += ahead.num_bytes
                    continue
            if not self._plan_next():
                return

    def _plan_next(self) -> bool:
        """Plan and queue the next read. Returns whether there was one. Only one thread plans at a time."""
        with self._lock:
            if self._planning:
                return False
            self._planning = True
        try:
            ranges = next(self._later, None)
        except ParquetError:
            ranges = None
        finally:
            self._planning = False
        if ranges is None:
            return False
        with self._lock:
            if ranges:
                self._queue.append(ranges)
        return True
