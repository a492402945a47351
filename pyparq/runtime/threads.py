"""Two pools of threads.

One is for column chunks and sized to the machine, because kernels and codecs release the GIL. The other is for requests
to servers, which mostly wait. A :class:`Task` whose result is no longer needed ends at its next :func:`check_stopped`,
between two pages. So Ctrl-C waits for one page of each thread, and no thread goes on with memory that the caller then
frees.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pyparq.runtime import fork_safety

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor  # loads slowly, so only when threads are needed

T = TypeVar("T")
R = TypeVar("R")

REQUESTS = 16
"""Requests of one step that threads of ours wait for at a time."""
MANY_REQUESTS = 64
"""The same for stores whose requests take the client little time."""

_io_threads = 128

_pool: ThreadPoolExecutor | None = None
_request_pool: ThreadPoolExecutor | None = None
_lock = threading.Lock()


@cache
def cpu_count() -> int:
    """Number of CPUs that this process may run on, when it was asked first."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every platform
        return os.cpu_count() or 1


fork_safety.in_child(cpu_count.cache_clear)


def pool() -> ThreadPoolExecutor:
    """The shared pool, made on first use."""
    global _pool
    with _lock:
        if _pool is None:
            _pool = _executor(cpu_count(), thread_name_prefix="pyparq")
        return _pool


def request_pool() -> ThreadPoolExecutor:
    """The pool for requests, made on first use."""
    global _request_pool
    with _lock:
        if _request_pool is None:
            _request_pool = _executor(_io_threads, thread_name_prefix="pyparq-request")
        return _request_pool


def most_requests() -> int:
    """Maximum number of requests that threads of this process make at the same time."""
    return _io_threads


def bound_requests(count: int) -> None:
    """Set it. Requests that are under way end as they are."""
    global _io_threads, _request_pool
    with _lock:
        given_up, _request_pool, _io_threads = _request_pool, None, count
    if given_up is not None:
        given_up.shutdown(wait=False)


def _executor(threads: int, thread_name_prefix: str) -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(threads, thread_name_prefix=thread_name_prefix)


@fork_safety.in_child
def _forget_pools() -> None:
    """A forked child has none of its parent's threads."""
    global _pool, _request_pool, _lock
    _pool = _request_pool = None
    _lock = threading.Lock()


def give_up_pools() -> None:
    """End the pools' threads once their tasks are done. The next task gets a new pool."""
    global _pool, _request_pool
    with _lock:
        given_up, _pool, _request_pool = (_pool, _request_pool), None, None
    for executor in given_up:
        if executor is not None:
            executor.shutdown(wait=False)


# ---- one task ------------------------------------------------------------------------------------------------------


class Stopped(BaseException):
    """Ends a task whose result is no longer needed. It never leaves the task."""


_running = threading.local()
_POLL = 0.1
"""Seconds after which a waiting thread looks around: where a wait cannot be interrupted (Windows), Ctrl-C is noticed
then."""


def check_stopped() -> None:
    """Called between two pages: ends the task here if its result is no longer needed."""
    task: Task[Any] | None = getattr(_running, "task", None)
    while task is not None:
        if task.stopped:
            raise Stopped
        task = task.parent


def within_task() -> bool:
    """Whether this thread runs the call of a :class:`Task`."""
    return getattr(_running, "task", None) is not None


class Task(Generic[R]):
    """One call, made by a thread of the pool or by the thread that needs its result, whichever comes first.

    So tasks may wait for tasks: if all threads of the pool wait, each makes the calls that it waits for.
    """

    def __init__(self, function: Callable[..., R], *arguments: Any) -> None:
        self.parent: Task[Any] | None = getattr(_running, "task", None)
        """The task that this one is a part of."""
        self.stopped = False
        """The result is no longer needed."""
        self._call: tuple[Callable[..., R], tuple[Any, ...]] | None = (function, arguments)
        self._owner: dict[str, int] = {}  # setdefault() claims the call in one operation, without a lock
        self._finished = False
        self._unfinished = threading.Lock()
        self._unfinished.acquire()
        self._results: list[R] = []
        self._error: BaseException | None = None

    def start(self, where: Callable[[], ThreadPoolExecutor] = pool) -> None:
        """Give the task to a pool. If no thread can be started (while Python shuts down, say), the thread that needs
        the result makes the call. It sees the context variables of the code that starts it."""
        try:
            where().submit(copy_context().run, self._run)
        except RuntimeError:
            return
        except BaseException:  # interrupted while a thread was starting: the pool may not know of it
            give_up_pools()
            raise

    @property
    def has_started(self) -> bool:
        """Whether a thread makes the call, or has made it."""
        return bool(self._owner)

    def ended(self, within: float) -> bool:
        """Whether the call is finished, now or within this many seconds."""
        if not self._finished and self._unfinished.acquire(timeout=within):
            self._unfinished.release()
        return self._finished

    def result(self) -> R:
        """The result of the call, or its error."""
        self._run()
        while not self._finished:
            if self._unfinished.acquire(timeout=_POLL):
                self._unfinished.release()  # other threads may wait too
        if self._error is not None:
            raise self._error
        return self._results[0]

    def wait_for_end(self) -> None:
        """Wait until no other thread runs the call, and prevent that one begins it.

        A further Ctrl-C is ignored here: the first one is being raised already.
        """
        while self._owner.setdefault("thread", threading.get_ident()) != threading.get_ident() and not self._finished:
            with suppress(KeyboardInterrupt):
                self._unfinished.acquire(timeout=_POLL)
        self._call = None

    def _run(self) -> None:
        """Make the call, unless a thread has begun it. Claiming it is one operation, which no signal can interrupt."""
        if self._owner.setdefault("thread", threading.get_ident()) != threading.get_ident():
            return
        call, self._call = self._call, None  # the references of the call are dropped with it
        if call is None:
            return
        outer = getattr(_running, "task", None)
        try:
            _running.task = self
            self._results.append(call[0](*call[1]))
        except BaseException as error:
            self._error = error
        finally:
            _running.task = outer
            del call
            self._finished = True
            self._unfinished.release()


def stop_all(tasks: Iterable[Task[Any]]) -> None:
    """End the tasks, and return when no thread works on them any more."""
    tasks = list(tasks)
    for task in tasks:
        task.stopped = True
    for task in tasks:
        task.wait_for_end()


# ---- a call for each item ------------------------------------------------------------------------------------------


def runs_within(items: Sequence[T], *limits: tuple[Sequence[int], int]) -> Iterator[list[T]]:
    """Neighbouring items, as many together as stay within each limit: the size of each item, and the most of a run.
    An item that is larger comes alone."""
    run, totals = list[T](), [0] * len(limits)
    for k, item in enumerate(items):
        totals = [total + sizes[k] for total, (sizes, _) in zip(totals, limits, strict=True)]
        if run and any(total > most for total, (_, most) in zip(totals, limits, strict=True)):
            yield run
            run, totals = [], [sizes[k] for sizes, _ in limits]
        run.append(item)
    if run:
        yield run


def map_tasks(function: Callable[[T], R], items: Sequence[T], use_threads: bool, in_order: bool = False) -> list[R]:
    """``[function(item) for item in items]``, on the pool when that can help. The first error is raised, after all
    tasks that had begun are done.

    The caller takes part: where all workers have to be woken, a scheduler may put two on one processor for a while. And
    a function may call this again: it makes all calls itself if no other thread has time.

    Give the largest items first: half of the workers take from the front, half from the end. Small items are mostly
    Python, which only one thread can run at a time; large ones are mostly kernels and codecs, which run beside it.
    With ``in_order`` all take from the front: what the items need is then fetched ahead in that order.
    """
    workers = min(cpu_count(), len(items))
    if not use_threads or workers < 2:
        return [function(item) for item in items]
    shared = _Shared(function, items)
    helpers = [Task(shared.work, k % 2 == 1 and not in_order) for k in range(1, workers)]
    try:
        for helper in helpers:
            helper.start()
        shared.work(from_the_end=False)
        for helper in helpers:
            helper.result()
    except BaseException:  # the caller was interrupted; items keep their own errors
        stop_all(helpers)
        raise
    return shared.results()


def map_requests(function: Callable[[T], R], items: Sequence[T], most: int = REQUESTS) -> list[R]:
    """``[function(item) for item in items]`` for functions that wait for a server: up to ``most`` at a time, as far as
    the process may (:func:`most_requests`).

    The first error is raised. After Ctrl-C, running requests are not waited for, and no others begin.
    """
    shared = _Shared(function, items)
    # One fewer than the limit, because the caller makes requests too.
    helpers = [Task(shared.work, False) for _ in range(min(most, len(items)) - 1)]
    try:
        for helper in helpers:
            helper.start(request_pool)
        shared.work(from_the_end=False)
        for helper in helpers:
            if helper.has_started:  # the other items are done
                helper.result()
    finally:
        for helper in helpers:
            helper.stopped = True
    return shared.results()


class _Shared(Generic[T, R]):
    """Items that several workers take from both ends."""

    def __init__(self, function: Callable[[T], R], items: Sequence[T]) -> None:
        self._function = function
        self._items = items
        self._left = deque(range(len(items)))
        self._done: dict[int, R] = {}
        self._errors: dict[int, Exception] = {}

    def work(self, from_the_end: bool) -> None:
        """Take items until none is left, or until one has failed."""
        take = self._left.pop if from_the_end else self._left.popleft
        while not self._errors:
            check_stopped()
            try:
                k = take()
            except IndexError:
                return
            try:
                self._done[k] = self._function(self._items[k])
            except Exception as error:
                self._errors[k] = error

    def results(self) -> list[R]:
        """The results in the order of the items. Raises the error of the first item that failed."""
        if self._errors:
            raise self._errors[min(self._errors)]
        return [self._done[k] for k in range(len(self._items))]
