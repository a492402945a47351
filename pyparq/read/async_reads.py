"""Reads for programs with an event loop: waiting for a store holds no thread."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pyparq.errors import UnsupportedError
from pyparq.runtime.messages import requirement

if TYPE_CHECKING:
    from pyparq.arrow.table import Batch
    from pyparq.runtime.lanes import Lane

R = TypeVar("R")


async def run_async(function: Callable[..., R], /, *args: Any, **options: Any) -> R:
    """The result of ``function(*args, **options)``, which reads with pyparq, for a program with an event loop.

    The function is ordinary code: it may open files and datasets, and call any of their methods. It runs on one of up
    to four threads of pyparq (one for each processor) together with others. While it waits for S3, HTTP, another
    asynchronous file system of fsspec or obstore, its thread goes on with the others. So any number of reads wait at
    the same time. A function that waits for anything else holds up others.

    Columns are decoded on that thread. The function, and the key retrievers that it leads to, see a copy of the
    caller's context variables, as with ``asyncio.to_thread``. Raises what the function raises. When the caller is
    cancelled, so is the function at its next request. Needs the package greenlet: ``pip install 'pyparq[async]'``.

    Example::

        async def number_of(tailnum):
            def ask():
                with pyparq.ParquetFile("flights.parquet") as file:
                    return file.scan(filters=pyparq.col("tailnum") == tailnum).count()

            return await pyparq.run_async(ask)
    """
    return await _lane().run(partial(function, *args, **options))


async def batches_async(make: Callable[[], Generator[Batch]]) -> AsyncGenerator[Batch]:
    """The batches of a stream, each read when it is asked for. ``make`` makes the stream."""
    lane, batches = _lane(), make()
    group = lane.group()
    try:
        while (batch := await lane.run(partial(next, batches, None), group)) is not None:
            yield batch
    finally:
        await lane.run(batches.close, group)
        lane.end(group)


def _lane() -> Lane:
    try:
        from pyparq.runtime.lanes import next_lane
    except ImportError as error:
        if error.name != "greenlet":
            raise
        raise UnsupportedError(f"asynchronous reads need greenlet: pip install {requirement('async')}") from None
    return next_lane()
