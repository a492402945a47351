"""Reads for programs with an event loop: they run on the threads that wait for stores."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pyparq.runtime.threads import Task, request_pool

if TYPE_CHECKING:
    from pyparq.arrow.table import Batch

R = TypeVar("R")


async def run_async(function: Callable[..., R], /, *args: Any, **options: Any) -> R:
    """Run ``function(*args, **options)``, which reads with pyparq, without blocking the event loop. Returns its result.

    The function is ordinary code: it may open files and datasets, and call any of their methods. It runs on one of
    pyparq's threads for requests, :func:`pyparq.io_thread_count` at a time in the whole process; others wait for their
    turn.

    The function, and the key retrievers that it leads to, see a copy of the caller's context variables, as with
    ``asyncio.to_thread``. Raises what the function raises. When the caller is cancelled, the function ends before its
    next request or page.

    Example::

        async def number_of(tailnum):
            def ask():
                with pyparq.ParquetFile("flights.parquet") as file:
                    return file.scan(filters=pyparq.col("tailnum") == tailnum).count()

            return await pyparq.run_async(ask)
    """
    return await _result(Task(partial(function, *args, **options)))


async def _result(task: Task[R]) -> R:
    import asyncio

    try:
        return await asyncio.get_running_loop().run_in_executor(request_pool(), copy_context().run, task.result)
    except asyncio.CancelledError:
        task.stopped = True
        raise


async def batches_async(make: Callable[[], Generator[Batch]]) -> AsyncGenerator[Batch]:
    """The batches of a stream, each read when it is asked for. ``make`` makes the stream."""
    batches, under_way = make(), list[bool]()

    def step() -> Batch | None:
        under_way.append(True)
        try:
            return next(batches, None)
        finally:
            under_way.clear()

    try:
        while (batch := await _result(Task(step))) is not None:
            yield batch
    finally:
        if not under_way:  # a step that was cancelled ends the stream itself
            await _result(Task(batches.close))
