"""Coroutines of fsspec's file systems, which run on a thread of fsspec's."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from pyparq.runtime.threads import current_lane

R = TypeVar("R")


def on_loop(loop: Any, function: Callable[..., Coroutine[Any, Any, R]], *args: Any, **options: Any) -> R:
    """The result of a coroutine on fsspec's event loop. A lane goes on with other reads meanwhile."""
    lane = current_lane()
    if lane is None:
        from fsspec.asyn import sync

        found: R = sync(loop, function, *args, **options)
        return found
    import asyncio

    return lane.wait_for(asyncio.run_coroutine_threadsafe(function(*args, **options), loop))
