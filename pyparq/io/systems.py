"""What fsspec file systems are like: which of them make requests concurrently, and which may not be asked to."""

from __future__ import annotations

from typing import Any

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


def loops(fs: Any) -> bool:
    """Does its ``cat_ranges`` make one request after the other, as that of fsspec's base class does, so that threads of
    ours are faster?"""
    from fsspec.spec import AbstractFileSystem

    fs = within(fs)
    if getattr(fs, "async_impl", False) or hasattr(fs, "fs") or shares_one_reader(fs):
        return False
    own = getattr(fs.cat_ranges, "__func__", None)
    return own is AbstractFileSystem.cat_ranges and protocols(fs).isdisjoint(_IN_MEMORY)
