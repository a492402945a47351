"""One pool of threads for column chunks, sized to the machine. Kernels and codecs release the GIL."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

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


def _forget_pool() -> None:
    """A forked child has none of its parent's threads."""
    global _pool, _lock
    _pool = None
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def map_tasks(function: Callable[[T], R], items: Sequence[T], use_threads: bool) -> list[R]:
    """``[function(item) for item in items]``, on the pool when that can help. The first error is raised, after all
    tasks that had begun are done."""
    if not use_threads or len(items) < 2 or cpu_count() < 2:
        return [function(item) for item in items]
    futures = [pool().submit(function, item) for item in items]
    return list(_results(futures))


def _results(futures: list[Future[R]]) -> Iterator[R]:
    try:
        for future in futures:
            yield future.result()
    except BaseException:
        for future in futures:
            future.cancel()
        for future in futures:
            if not future.cancelled():
                future.exception()
        raise
