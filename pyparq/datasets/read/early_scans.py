"""The scans of files, one after the other. The next remote files are begun while one is read: their indexes are asked,
and their first row groups are requested."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Generic, TypeVar

from pyparq.errors import ParquetError
from pyparq.read.scan import Scan
from pyparq.runtime.threads import Task, request_pool

T = TypeVar("T")

FILES = 8
"""Files that are begun before they are needed, at most."""


class InTurn(Generic[T]):
    """Items with a scan each, begun ahead while the files that are begun have fewer than ``most`` bytes in all."""

    def __init__(
        self, items: Iterable[T], scan_of: Callable[[T], Scan | None], size_of: Callable[[T], int], most: int
    ) -> None:
        self._items = iter(items)
        self._scan_of = scan_of
        self._size_of = size_of
        self._most = most
        self._begun: deque[tuple[T, Scan | None, Task[None] | None]] = deque()

    def __iter__(self) -> Iterator[T]:
        try:
            while True:
                self._begin()
                if not self._begun:
                    return
                item, _, task = self._begun.popleft()
                self._begin()
                if task is not None:
                    with suppress(ParquetError, OSError):  # reading the file meets the error again
                        task.result()
                yield item
        finally:
            if self._begun:  # no call without need: see Scan._by_row_group
                self._stop()

    def _begin(self) -> None:
        """Begin as many scans as the limit allows, and at least one."""
        while not self._begun or (len(self._begun) < FILES and self._size < self._most):
            try:
                item = next(self._items)
            except StopIteration:
                return
            scan = self._scan_of(item)
            task = None if scan is None else Task(scan.begin)
            self._begun.append((item, scan, task))
            if task is not None:
                task.start(request_pool)

    @property
    def _size(self) -> int:
        return sum(self._size_of(item) for item, _, _ in self._begun)

    def _stop(self) -> None:
        for _, scan, task in self._begun:
            if task is not None:
                task.stopped = True
            if scan is not None:
                scan.give_up()
