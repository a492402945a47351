"""Threads on which many reads wait for stores at the same time.

A lane is a thread with an event loop. A read runs there as ordinary code, in a greenlet. Where it waits for a store,
the lane goes on with other reads. So waiting holds no thread, and the code is the same as that of reads on the caller's
thread. Needs the package greenlet.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

from greenlet import getcurrent, greenlet

from pyparq.runtime import fork_safety
from pyparq.runtime.threads import cpu_count, enter_lane, request_pool, swap_task

T = TypeVar("T")
R = TypeVar("R")

MOST = 4
"""Lanes of a process, at most one for each processor. Decoding runs on them too."""

_lanes: list[Lane] = []
_lock = threading.Lock()
_turns = itertools.count()


@fork_safety.in_child
def _forget_lanes() -> None:
    global _lock
    _lock = threading.Lock()
    _lanes.clear()


def next_lane() -> Lane:
    """The lanes in turn. They are made on first use."""
    count = min(MOST, cpu_count())
    turn = next(_turns) % count
    with _lock:
        while len(_lanes) <= turn:
            _lanes.append(Lane(len(_lanes), count))
        return _lanes[turn]


class TaskGroup(set["asyncio.Task[Any]"]):
    """What a read has begun beside it, and not waited for yet."""

    def __init__(self) -> None:
        super().__init__()
        self.turn = asyncio.Lock()
        """Held by the call that runs, of a read that comes in several."""


class _Code(greenlet):  # type: ignore[misc]
    """Code of a read that may wait."""

    group: TaskGroup


class Lane:
    """One thread with its event loop."""

    cancelled: type[BaseException] = asyncio.CancelledError

    def __init__(self, number: int, count: int) -> None:
        """``count``: the lanes of the process."""
        self.count = count
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._serve, daemon=True, name=f"pyparq-async-{number}").start()

    def _serve(self) -> None:
        enter_lane(self)
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def run(self, function: Callable[[], R], group: TaskGroup | None = None) -> R:
        """The result of ``function``, for a caller on another event loop. If the caller is cancelled, so is what the
        function waits for. ``group``: of a read that comes in several calls, which ends with :meth:`end`."""
        read = self._read(function) if group is None else self._in_turn(function, group)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(read, self._loop))

    @staticmethod
    def group() -> TaskGroup:
        """For a read that comes in several calls."""
        return TaskGroup()

    def end(self, group: TaskGroup) -> None:
        """Cancel what a read has begun beside it, from another thread."""
        self._loop.call_soon_threadsafe(_cancel, group)

    async def _read(self, function: Callable[[], R]) -> R:
        group = TaskGroup()
        try:
            return await self._awaited(function, group)
        finally:
            _cancel(group)

    async def _in_turn(self, function: Callable[[], R], group: TaskGroup) -> R:
        """Begins when the call before has ended: a cancelled one still waits for what it ends."""
        async with group.turn:
            return await self._awaited(function, group)

    async def _awaited(self, function: Callable[[], R], group: TaskGroup) -> R:
        code = _Code(function)
        code.group = group
        code.gr_context = copy_context()  # the caller's variables; what the function sets is its own
        wanted = code.switch()
        while not code.dead:
            try:
                found = await wanted
            except BaseException as error:
                wanted = code.throw(error)
            else:
                wanted = code.switch(found)
        result: R = wanted
        return result

    # ---- for code that runs in the lane

    def wait(self, wanted: Awaitable[R]) -> R:
        """The result of ``wanted``. Other reads go on meanwhile."""
        task = swap_task(None)
        try:
            found: R = getcurrent().parent.switch(wanted)
            return found
        finally:
            swap_task(task)

    def wait_for(self, future: Future[R]) -> R:
        """The result of work that another thread does."""
        return self.wait(asyncio.wrap_future(future, loop=self._loop))

    def in_thread(self, function: Callable[[], R]) -> R:
        """The result of a function that waits by itself. A thread of the pool for requests waits."""
        return self.wait_for(request_pool().submit(copy_context().run, function))

    def begin(self, function: Callable[[], None]) -> Callable[[], None]:
        """Run ``function`` beside the code that calls this. The result waits for its end."""
        group = getcurrent().group
        task = self._loop.create_task(self._awaited(function, group))
        group.add(task)
        task.add_done_callback(group.discard)
        return lambda: self._wait_for_end(task)

    def _wait_for_end(self, task: asyncio.Task[None]) -> None:
        """Also of a task that is cancelled: its read may have ended."""
        self.wait(asyncio.wait([task]))

    def map(self, function: Callable[[T], R], items: Sequence[T], most: int) -> list[R]:
        """``function`` of each item, up to ``most`` at a time."""
        group = getcurrent().group

        async def each() -> list[R]:
            free = asyncio.Semaphore(most)

            async def one(item: T) -> R:
                async with free:
                    return await self._awaited(partial(function, item), group)

            tasks = [self._loop.create_task(one(item)) for item in items]
            try:
                return list(await asyncio.gather(*tasks))
            except BaseException:
                for task in tasks:
                    task.cancel()
                raise

        return self.wait(each())


def _cancel(group: TaskGroup) -> None:
    for task in list(group):
        task.cancel()
