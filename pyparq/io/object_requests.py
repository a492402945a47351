"""Single requests to stores of obstore. On a lane, their asynchronous form: the lane goes on with other reads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from pyparq.io.request_bound import free_request
from pyparq.runtime.threads import current_lane

R = TypeVar("R")

_STEP = 0.1
"""Seconds between two looks for Ctrl-C, where the system does not end a wait for it."""


def interruptibly(ask: Callable[[], R]) -> R:
    """The result of a request. obstore does not notice Ctrl-C, so another thread waits for it in the place of the main
    one, and is left behind after Ctrl-C. On a lane, ``ask`` is called as it is."""
    if threading.current_thread() is not threading.main_thread() or current_lane() is not None:
        return ask()
    answers: list[R] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(ask())
        except BaseException as error:
            errors.append(error)

    asking = threading.Thread(target=run, name="pyparq-waits", daemon=True)
    try:
        asking.start()
    except RuntimeError:  # Python ends
        return ask()
    while asking.is_alive():
        asking.join(_STEP)
    if errors:
        raise errors[0]
    return answers[0]


def get_object(store: Any, path: str, options: Mapping[str, Any]) -> tuple[Any, memoryview]:
    """The answer of a store, and the bytes in it."""
    lane = current_lane()
    if lane is not None:
        return lane.wait(_got(store, path, options))
    return interruptibly(lambda: _get(store, path, options))


def _get(store: Any, path: str, options: Mapping[str, Any]) -> tuple[Any, memoryview]:
    answer = store.get(path, options=options)
    return answer, memoryview(answer.bytes())


async def _got(store: Any, path: str, options: Mapping[str, Any]) -> tuple[Any, memoryview]:
    async with free_request():
        answer = await store.get_async(path, options=options)
        return answer, memoryview(await answer.bytes_async())


def head_object(store: Any, path: str) -> Any:
    """What a store says of an object."""
    lane = current_lane()
    return interruptibly(lambda: store.head(path)) if lane is None else lane.wait(_head(store, path))


async def _head(store: Any, path: str) -> Any:
    async with free_request():
        return await store.head_async(path)


def list_objects(store: Any, prefix: str | None, page: int) -> Iterator[Any]:
    """What a store says of each object whose path begins so, ``page`` of them at a time."""
    lane = current_lane()
    found = store.list(prefix, chunk_size=page)
    for part in found if lane is None else lane.wait(_listed(found)):
        yield from part


async def _listed(found: Any) -> list[Any]:
    async with free_request():
        return [part async for part in found]


def list_folder(store: Any, prefix: str | None) -> Any:
    """What lies in one folder of a store, and the folders in it."""
    lane = current_lane()
    return store.list_with_delimiter(prefix) if lane is None else lane.wait(_folder(store, prefix))


async def _folder(store: Any, prefix: str | None) -> Any:
    async with free_request():
        return await store.list_with_delimiter_async(prefix)
