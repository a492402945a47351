"""What fsspec file systems are like: which of them make requests concurrently, and which may not be asked to."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from pyparq.runtime import fork_safety

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
    """The file system that the requests of ``fs`` reach: another one's where it only adds a folder to paths."""
    while "dir" in protocols(fs) and hasattr(fs, "fs"):
        fs = fs.fs
    return fs


def is_concurrent(fs: Any) -> bool:
    """Does it make several requests at a time by itself? What caches another file system has ways of its own."""
    fs = within(fs)
    return bool(getattr(fs, "async_impl", False)) and not getattr(fs, "asynchronous", False) and not hasattr(fs, "fs")


def shares_one_reader(fs: Any) -> bool:
    """May only one thread at a time read from it?"""
    return not protocols(within(fs)).isdisjoint(_SHARES_ONE_READER)


def takes_generations(fs: Any) -> bool:
    """Can reads be bound to a generation of an object, as those of gcsfs can?"""
    import inspect

    return hasattr(fs, "url") and "generation" in inspect.signature(fs.url).parameters


def alone(fs: Any) -> AbstractContextManager[Any]:
    """With no other thread, where the file system needs that."""
    return _one_at_a_time if shares_one_reader(fs) else nullcontext()


def lists_at_once(fs: Any) -> bool:
    """Does its ``find`` list all that is below a folder in a way of its own, as object stores do? That of fsspec's base
    classes goes from folder to folder, and takes one that cannot be listed for an empty one."""
    from fsspec.asyn import AsyncFileSystem
    from fsspec.spec import AbstractFileSystem

    fs = within(fs)
    find = fs._find if getattr(fs, "async_impl", False) and hasattr(fs, "_find") else fs.find
    return getattr(find, "__func__", None) not in (AbstractFileSystem.find, AsyncFileSystem._find)


def loops(fs: Any) -> bool:
    """Does its ``cat_ranges`` make one request after the other, as that of fsspec's base class does, so that threads of
    ours are faster?"""
    from fsspec.spec import AbstractFileSystem

    fs = within(fs)
    if getattr(fs, "async_impl", False) or hasattr(fs, "fs") or shares_one_reader(fs):
        return False
    own = getattr(fs.cat_ranges, "__func__", None)
    return own is AbstractFileSystem.cat_ranges and protocols(fs).isdisjoint(_IN_MEMORY)
