"""Ranges that are asked for before they are needed: their bytes are on their way while something else is done."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from pyparq.runtime.threads import Task, check_stopped, request_pool

Range = tuple[int, int]


class Ahead:
    """Requests for merged ranges of one file, made in one step: by another thread or, with :meth:`at_once`, by this."""

    def __init__(self, parts: Sequence[Range], declared: int) -> None:
        """``parts``: sorted, and apart from each other. ``declared``: ranges that were merged into them."""
        self.parts = list(parts)
        self.declared = declared
        self._starts = [start for start, _ in parts]
        self._task: Task[list[memoryview]] | None = None
        self._found: list[memoryview] = []

    @property
    def num_bytes(self) -> int:
        return sum(size for _, size in self.parts)

    def begin(self, read: Callable[[Sequence[Range]], list[memoryview]]) -> None:
        """Have a thread make them. An error is raised where the bytes are taken."""
        if self.parts:
            self._task = Task(_unless_stopped, read, self.parts)
            self._task.start(request_pool)

    def at_once(self, read: Callable[[Sequence[Range]], list[memoryview]]) -> None:
        """Make them now."""
        self._found = read(self.parts) if self.parts else []

    def give_up(self) -> None:
        """Nobody wants the bytes any more: what has not begun does not begin."""
        if self._task is not None:
            self._task.stopped = True

    def place(self, offset: int, end: int) -> int | None:
        """The number of the part that holds the bytes from ``offset`` to ``end``; ``None``: none does."""
        k = bisect_right(self._starts, offset) - 1
        return k if k >= 0 and end <= self._starts[k] + self.parts[k][1] else None

    def take(self, k: int, offset: int, length: int) -> memoryview:
        """Bytes of part ``k``, once they are there."""
        found = self._found if self._task is None else self._task.result()
        return found[k][offset - self._starts[k] :][:length]


def _unless_stopped(read: Callable[[Sequence[Range]], list[memoryview]], parts: list[Range]) -> list[memoryview]:
    check_stopped()
    return read(parts)
