"""Ranges that are requested before they are needed. Their bytes arrive while other work is done."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from pyparq.runtime.threads import Task, check_stopped, request_pool

Range = tuple[int, int]


class EarlyRequests:
    """Requests for merged ranges of one file, made in one step: by another thread or, with :meth:`at_once`, by this
    one."""

    def __init__(self, parts: Sequence[Range], declared: int) -> None:
        """``parts``: sorted, disjoint ranges. ``declared``: the ranges that were merged into them."""
        self.parts = list(parts)
        self.declared = declared
        self._starts = [start for start, _ in parts]
        self._task: Task[list[memoryview]] | None = None
        self._found: list[memoryview] = []

    @property
    def num_bytes(self) -> int:
        return sum(size for _, size in self.parts)

    def begin(self, read: Callable[[Sequence[Range]], list[memoryview]]) -> None:
        """Start the requests on a thread. An error is raised when the bytes are taken."""
        if self.parts:
            self._task = Task(_unless_stopped, read, self.parts)
            self._task.start(request_pool)

    def at_once(self, read: Callable[[Sequence[Range]], list[memoryview]]) -> None:
        """Make them now."""
        self._found = read(self.parts) if self.parts else []

    def give_up(self) -> None:
        """Drop the requests: those that have not begun do not begin."""
        if self._task is not None:
            self._task.stopped = True

    def place(self, offset: int, end: int) -> int | None:
        """The number of the part that holds the bytes from ``offset`` to ``end``. ``None`` if no part does."""
        k = bisect_right(self._starts, offset) - 1
        return k if k >= 0 and end <= self._starts[k] + self.parts[k][1] else None

    def take(self, k: int, offset: int, length: int) -> memoryview:
        """The bytes of part ``k``. Waits for them."""
        found = self._found if self._task is None else self._task.result()
        return found[k][offset - self._starts[k] :][:length]


def _unless_stopped(read: Callable[[Sequence[Range]], list[memoryview]], parts: list[Range]) -> list[memoryview]:
    check_stopped()
    return read(parts)
