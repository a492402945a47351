"""The bytes of the next reads of a remote file, on their way while those before them are decoded.

A read is a list of ranges that are fetched in one step: a large column chunk, or all small ones of a row group. Reads
wait in a queue in the order in which they are needed. They are begun while those that are begun and not yet fetched
have less than a number of bytes in all.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from pyparq.errors import ParquetError
from pyparq.io.byte_ranges import Range
from pyparq.io.early_requests import Ahead
from pyparq.io.fetch import Fetcher
from pyparq.runtime import fork_safety

Ranges = Sequence[Range]


class Prefetch:
    """The reads of one scan that are to come. May be used from several threads."""

    def __init__(self, fetcher: Fetcher, most: int) -> None:
        """``most``: bytes that are asked for before they are needed."""
        self._fetcher = fetcher
        self._most = most
        self._queue: deque[Ranges] = deque()
        self._later: Iterator[Ranges] = iter(())
        self._begun: dict[Range, Ahead] = {}
        self._size = 0
        self._after_fork()
        fork_safety.watch(self)

    def _after_fork(self) -> None:
        self._lock = threading.RLock()
        self._planning = False

    def follow(self, reads: Iterator[Ranges]) -> None:
        """``reads`` come next, planned as they are begun. An error while planning ends that: whoever needs the reads
        meets it again."""
        self._later = reads
        self._begin()

    def expect(self, reads: Iterable[Ranges]) -> None:
        """These are needed now, before all others."""
        with self._lock:
            new = [ranges for ranges in reads if ranges and ranges[0] not in self._begun]
            known = {ranges[0] for ranges in new}
            self._queue = deque([*new, *(ranges for ranges in self._queue if ranges[0] not in known)])
        self._begin()

    def fetch(self, reads: Sequence[Ranges]) -> list[list[memoryview]]:
        """The bytes of some reads, in one step, as far as they are not on their way. Begins the next ones.

        Raises what went wrong with their requests.
        """
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
        """Nothing more is needed."""
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
        """Begin as many as there is room for, or one."""
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
                        with suppress(ParquetError):  # outside the file: whoever needs it says so
                            self._begun[ranges[0]] = ahead = self._fetcher.begin(ranges)
                            self._size += ahead.num_bytes
                    continue
            if not self._plan_next():
                return

    def _plan_next(self) -> bool:
        """Queue the next of those that follow; whether there is one, and nobody else does so."""
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
