"""How many requests to stores a process makes at the same time: by its threads, and by the event loop of fsspec."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from pyparq.errors import OptionError
from pyparq.runtime.threads import bound_requests, current_lane, most_requests

if TYPE_CHECKING:
    import asyncio  # loads slowly, so only where a loop runs

_free: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[int, asyncio.Semaphore]] = weakref.WeakKeyDictionary()


def io_thread_count() -> int:
    """Maximum number of requests to stores that pyparq makes at the same time, in the whole process: 128 unless
    :func:`set_io_thread_count` has changed it. Threads that read add one each.

    Example::

        print(pyparq.io_thread_count())      # 128
    """
    return most_requests()


def set_io_thread_count(count: int) -> None:
    """Set the maximum number of requests to stores at the same time, for the whole process.

    It bounds all reads together. What one read may do at a time is the option ``max_requests``. Requests that are under
    way end as they are. Raises :class:`pyparq.OptionError` for anything but a whole number of at least 1.

    Example::

        pyparq.set_io_thread_count(256)
    """
    if type(count) is not int or count < 1:
        raise OptionError(f"count must be a whole number of at least 1, not {count!r}")
    bound_requests(count)


def free_request() -> asyncio.Semaphore:
    """What a request of the running event loop must hold. At most :func:`io_thread_count` hold it at a time, on all
    lanes together."""
    import asyncio

    loop, lane, count = asyncio.get_running_loop(), current_lane(), most_requests()
    if lane is not None:
        count = max(count // lane.count, 1)
    known = _free.get(loop)
    if known is None or known[0] != count:
        known = _free[loop] = count, asyncio.Semaphore(count)
    return known[1]
