"""Ranges that are asked for before they are needed: their bytes are on their way while something else is done."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from pyparq.threads import Task, check_stopped, request_pool

Range = tuple[int, int]


class Ahead:
    """Requests for merged ranges of one file, made by threads or, with :meth:`at_once`, in one step."""

    def __init__(self, parts: Sequence[Range], declared: int) -> None:
        """``parts``: sorted, and apart from each other. ``declared``: ranges that were merged into them."""
        self.parts = list(parts)
        self.declared = declared
        self._starts = [start for start, _ in parts]
        self._tasks: list[Task[memoryview]] = []
        self._found: list[memoryview] = []

    @property
    def num_bytes(self) -> int:
        return sum(size for _, size in self.parts)

    def begin(self, read: Callable[[Range], memoryview]) -> None:
        """Have threads make the requests. An error is raised where its bytes are taken."""
        self._tasks = [Task(_unless_stopped, read, part) for part in self.parts]
        for task in self._tasks:
            task.start(request_pool)

    def at_once(self, read: Callable[[Sequence[Range]], list[memoryview]]) -> None:
        """Make them now."""
        self._found = read(self.parts) if self.parts else []

    def give_up(self) -> None:
        """Nobody wants the bytes any more: what has not begun does not begin."""
        for task in self._tasks:
            task.stopped = True

    def place(self, offset: int, end: int) -> int | None:
        """The number of the part that holds the bytes from ``offset`` to ``end``; ``None``: none does."""
        k = bisect_right(self._starts, offset) - 1
        return k if k >= 0 and end <= self._starts[k] + self.parts[k][1] else None

    def take(self, k: int, offset: int, length: int) -> memoryview:
        """Bytes of part ``k``, once they are there."""
        whole = self._tasks[k].result() if self._tasks else self._found[k]
        return whole[offset - self._starts[k] :][:length]


def _unless_stopped(read: Callable[[Range], memoryview], part: Range) -> memoryview:
    check_stopped()
    return read(part)
