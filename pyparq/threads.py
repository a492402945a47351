"""One pool of threads for column chunks, sized to the machine. Kernels and codecs release the GIL."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Generic, TypeVar

from pyparq import forks

T = TypeVar("T")
R = TypeVar("R")

_pool: ThreadPoolExecutor | None = None
_lock = threading.Lock()


def cpu_count() -> int:
    """CPUs that this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every platform
        return os.cpu_count() or 1


def pool() -> ThreadPoolExecutor:
    """The shared pool, made on first use."""
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(cpu_count(), thread_name_prefix="pyparq")
        return _pool


@forks.in_child
def _forget_pool() -> None:
    """A forked child has none of its parent's threads."""
    global _pool, _lock
    _pool = None
    _lock = threading.Lock()


def map_tasks(function: Callable[[T], R], items: Sequence[T], use_threads: bool) -> list[R]:
    """``[function(item) for item in items]``, on the pool when that can help. The first error is raised, after all
    tasks that had begun are done.

    The caller takes part: where all workers have to be woken, a scheduler may put two on one processor for a while.

    Give the largest items first: half of the workers take from the front, half from the end. Small items are mostly
    Python, which only one thread can run at a time; large ones are mostly kernels and codecs, which run beside it.
    """
    workers = min(cpu_count(), len(items))
    if not use_threads or workers < 2:
        return [function(item) for item in items]
    shared = _Shared(function, items)
    futures: list[Future[None]] = []
    try:
        for k in range(1, workers):
            futures.append(pool().submit(shared.work, k % 2 == 1))
        shared.work(from_the_end=False)
        for future in futures:
            future.result()
    except BaseException:  # the caller was interrupted: tasks catch their own errors
        shared.stop()
        wait(futures)
        raise
    return shared.results()


class _Shared(Generic[T, R]):
    """Items that several workers take from both ends."""

    def __init__(self, function: Callable[[T], R], items: Sequence[T]) -> None:
        self._function = function
        self._items = items
        self._left = deque(range(len(items)))
        self._done: dict[int, R] = {}
        self._errors: dict[int, BaseException] = {}

    def work(self, from_the_end: bool) -> None:
        """Take items until none is left, or one has failed."""
        take = self._left.pop if from_the_end else self._left.popleft
        while not self._errors:
            try:
                k = take()
            except IndexError:
                return
            try:
                self._done[k] = self._function(self._items[k])
            except BaseException as error:
                self._errors[k] = error

    def stop(self) -> None:
        """Begin no further item."""
        self._left.clear()

    def results(self) -> list[R]:
        """In the order of the items; raises the error of the first that failed."""
        if self._errors:
            raise self._errors[min(self._errors)]
        return [self._done[k] for k in range(len(self._items))]
