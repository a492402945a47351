"""Reads the end of a remote file and its size at the same time.

A Parquet file is read from its end, but the position of the end is known only with the size. Servers answer a range
request for the last bytes (``Range: bytes=-N``, RFC 9110 section 14.1.2) with these bytes and, in ``Content-Range``,
with the size. fsspec returns only the bytes. So the two file systems whose answers are accessible are asked directly.
Others that run requests concurrently are asked for both at the same time: two requests, but one wait.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyparq.io.file_systems import is_concurrent, loops, within
from pyparq.io.fsspec_loop import on_loop
from pyparq.io.http import Version, is_http
from pyparq.io.http import last_bytes as last_bytes_by_http
from pyparq.io.s3 import is_s3, last_bytes
from pyparq.runtime.threads import map_requests, patiently


@dataclass(frozen=True, slots=True)
class End:
    """The answer of a server about the end of a file."""

    data: Any
    """The last bytes, ``None`` where it did not give them."""
    size: int
    """Of the file."""
    whole: bool = False
    """``data`` is the whole file: the server knows no ranges."""
    etag: str | None = None
    """Entity tag of the bytes, if later requests can be bound to it."""
    version: Version | None = None
    """What a server behind HTTP said of it."""
    info: Mapping[str, Any] | None = None
    """What the file system said of the file."""


def read_end(fs: Any, path: str, length: int) -> End | None:
    """The last ``length`` bytes of a file (all of a shorter one) and its size; ``None`` where the file system has no
    way to ask for both at once, or the server did not answer as it should: then ask for one after the other.

    Raises what the file system raises where the file is not there, or access to it is refused.
    """
    if not is_concurrent(fs):
        return _on_threads(fs, path, length) if loops(fs) and _has_own_reads(fs) else None
    found: End | None = on_loop(fs.loop, _direct(fs) or _from_any, fs, path, length)
    return found


def tells_size(fs: Any) -> bool:
    """Whether one request gives both the end and the size."""
    return is_concurrent(fs) and _direct(fs) is not None


def _direct(fs: Any) -> Callable[[Any, str, int], Coroutine[Any, Any, End | None]] | None:
    """The function that asks for the end, for file systems whose whole answer is accessible."""
    if is_s3(fs):
        return _from_s3
    if is_http(fs):
        return _from_http
    return None


async def _from_s3(fs: Any, path: str, length: int) -> End | None:
    try:
        found = await last_bytes(fs, path, length)
    except (FileNotFoundError, PermissionError):
        raise
    except Exception:  # an empty object has no last bytes; a connection may break, and the next way tries again
        return None
    end = _end(found.data, found.content_range)
    return None if end is None else replace(end, etag=found.etag)


async def _from_http(fs: Any, url: str, length: int) -> End | None:
    version = Version()
    found = await last_bytes_by_http(fs, url, length, version)
    if found is None or version.size is None:
        return None
    data, whole = found
    return End(data, version.size, whole, version=version)


async def _from_any(fs: Any, path: str, length: int) -> End | None:
    import asyncio

    asked = fs._info(path), fs._cat_file(path, start=-length)
    info, data = list[Any](await asyncio.gather(*asked, return_exceptions=True))
    if isinstance(info, BaseException):
        raise info
    return _both(info, data, length)


def _has_own_reads(fs: Any) -> bool:
    """fsspec's own ``cat_file`` opens the file, which asks for the size by itself."""
    from fsspec.spec import AbstractFileSystem

    return getattr(within(fs).cat_file, "__func__", None) is not AbstractFileSystem.cat_file


def _on_threads(fs: Any, path: str, length: int) -> End | None:
    def end() -> Any:
        try:
            return fs.cat_file(path, start=-length)
        except Exception as error:  # for example a missing file: its size is asked for too
            return error

    info, data = map_requests(patiently, [lambda: fs.info(path), end])
    return _both(info, data, length)


def _both(info: Mapping[str, Any], data: Any, length: int) -> End | None:
    if info.get("size") is None:
        return None
    size = int(info["size"])
    if isinstance(data, BaseException) or len(data) not in (min(length, size), size):
        return End(None, size, info=info)
    return End(data[-length:], size, info=info)


def _end(data: bytes, content_range: str | None) -> End | None:
    """The end of the file. ``None`` unless the answer places its bytes at the end of the file."""
    found = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", content_range or "")
    if found is None:
        return None
    first, last, size = map(int, found.groups())
    if last != size - 1 or last - first + 1 != len(data):
        return None
    return End(data, size)
