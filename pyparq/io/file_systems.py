"""Properties of file systems: which ones make requests concurrently, and which ones must not be asked to. Coroutines of
fsspec's file systems run on a thread of fsspec's (:func:`on_loop`)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from pyparq.runtime import fork_safety

R = TypeVar("R")

_one_at_a_time = threading.Lock()
"""Held while a file system is asked that allows one reader."""


@fork_safety.in_child
def _new_lock() -> None:
    global _one_at_a_time
    _one_at_a_time = threading.Lock()


_SHARES_ONE_READER = {"ftp", "zip", "tar", "libarchive"}
"""One connection, or one open file, for all reads."""
_IN_MEMORY = {"memory"}


def protocols(fs: Any) -> set[str]:
    """The protocols that a file system goes by."""
    protocol = getattr(fs, "protocol", ())
    return {protocol} if isinstance(protocol, str) else set(protocol)


def within(fs: Any) -> Any:
    """The file system that the requests of ``fs`` reach, if ``fs`` only adds a folder to paths."""
    while "dir" in protocols(fs) and hasattr(fs, "fs"):
        fs = fs.fs
    return fs


def is_concurrent(fs: Any) -> bool:
    """Whether it makes several requests at a time by itself. Caching file systems have ways of their own."""
    fs = within(fs)
    return bool(getattr(fs, "async_impl", False)) and not getattr(fs, "asynchronous", False) and not hasattr(fs, "fs")


def shares_one_reader(fs: Any) -> bool:
    """Whether only one thread at a time may read from it."""
    return not protocols(within(fs)).isdisjoint(_SHARES_ONE_READER)


def is_store(fs: Any) -> bool:
    """Whether it is a store of obstore (:class:`pyparq.io.object_store.ObjectSystem`), and none of fsspec's."""
    return getattr(fs, "is_object_store", False) is True


def is_of_pyarrow(fs: Any) -> bool:
    """Whether it is a file system of pyarrow, behind fsspec's face."""
    return any(cls.__module__ == "fsspec.implementations.arrow" for cls in type(fs).__mro__)


def takes_generations(fs: Any) -> bool:
    """Whether reads can be bound to a generation of an object, as in gcsfs."""
    import inspect

    return hasattr(fs, "url") and "generation" in inspect.signature(fs.url).parameters


_CREATES = {"s3", "s3a", "gs", "gcs", "abfs", "az", "abfss", "memory"}


def takes_modes(fs: Any) -> bool:
    """Whether it can be told to write a file only where there is none."""
    if is_store(fs):
        return True
    import inspect

    fs = within(fs)
    writes = fs._pipe_file if getattr(fs, "async_impl", False) else fs.pipe_file
    return "mode" in inspect.signature(writes).parameters


def creates_at_once(fs: Any) -> bool:
    """Whether one request makes a file only where there is none. Others are asked first, and may be too late."""
    if is_of_pyarrow(fs):
        return False
    return is_store(fs) or (not protocols(within(fs)).isdisjoint(_CREATES) and takes_modes(fs))


def alone(fs: Any) -> AbstractContextManager[Any]:
    """A context without other threads, if the file system needs that."""
    return _one_at_a_time if shares_one_reader(fs) else nullcontext()


def lists_at_once(fs: Any) -> bool:
    """Whether its ``find`` lists all files below a folder at once, as object stores do.

    The ``find`` of fsspec's base classes goes from folder to folder, and takes a folder that cannot be listed for an
    empty one.
    """
    if is_store(fs):
        return True
    from fsspec.asyn import AsyncFileSystem
    from fsspec.spec import AbstractFileSystem

    fs = within(fs)
    find = fs._find if getattr(fs, "async_impl", False) and hasattr(fs, "_find") else fs.find
    return getattr(find, "__func__", None) not in (AbstractFileSystem.find, AsyncFileSystem._find)


def takes_several(fs: Any) -> bool:
    """Whether several threads may make requests to it at the same time, and gain by it."""
    return is_concurrent(fs) or loops(fs)


def loops(fs: Any) -> bool:
    """Whether its requests are made one after the other, as by ``cat_ranges`` of fsspec's base class. pyparq's threads
    are then faster."""
    if is_store(fs) or is_of_pyarrow(fs):
        return True
    from fsspec.spec import AbstractFileSystem

    fs = within(fs)
    if getattr(fs, "async_impl", False) or hasattr(fs, "fs") or shares_one_reader(fs):
        return False
    own = getattr(fs.cat_ranges, "__func__", None)
    return own is AbstractFileSystem.cat_ranges and protocols(fs).isdisjoint(_IN_MEMORY)


def has_own_reads(fs: Any) -> bool:
    """Whether it reads a range by itself. fsspec's own ``cat_file`` opens the file, which asks for the size first."""
    from fsspec.spec import AbstractFileSystem

    return getattr(within(fs).cat_file, "__func__", None) is not AbstractFileSystem.cat_file


def on_loop(loop: Any, function: Callable[..., Coroutine[Any, Any, R]], *args: Any, **options: Any) -> R:
    """The result of a coroutine on fsspec's event loop."""
    from fsspec.asyn import sync

    found: R = sync(loop, function, *args, **options)
    return found
