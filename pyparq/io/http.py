"""Files behind HTTP: ranges of one version of a file, on the session of fsspec's file system.

A file may be replaced while it is read. What the first answer says of its version is kept. Later requests are bound to
it (``If-Match`` with a strong entity tag, else ``If-Unmodified-Since``; RFC 9110 section 13.1), and every answer is
compared with it, because servers may take no notice of conditions. Bytes are asked for as they are stored
(``Accept-Encoding: identity``): a range of compressed bytes is of no use.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from pyparq.errors import ChangedFileError
from pyparq.io.request_bound import free_request

AT_A_TIME = 128
"""Requests of one step that run at a time, as fsspec has it."""

_NO_SUCH_RANGE = (400, 405, 416, 501)
"""Answers where a range from the end is not served, or the file is empty: the size is then asked for by itself."""


class Version:
    """The version of a file by the answers of its server. Each fact comes from the first answer that states it."""

    def __init__(self) -> None:
        self.size: int | None = None
        self.etag: str | None = None
        self.modified: str | None = None

    def conditions(self) -> dict[str, str]:
        """Headers that bind a request to this version, as far as it is known."""
        if self.etag is not None and self.etag.startswith('"'):  # a weak tag matches nothing
            return {"If-Match": self.etag}
        return {} if self.modified is None else {"If-Unmodified-Since": self.modified}

    def check(self, size: int | None, etag: str | None, modified: str | None) -> None:
        """Raises :class:`ChangedFileError` for the answer of another version.

        Tags decide. Where one of the two answers has none, the dates of the last change do. A tag may become weak on
        its way through a proxy.
        """
        mine, other = (self.etag, etag) if self.etag and etag else (self.modified, modified)
        same = not mine or not other or mine.removeprefix("W/") == other.removeprefix("W/")
        if not same or (size is not None and self.size not in (None, size)):
            raise ChangedFileError("the file has changed since it was opened: open it again")
        self.size = size if self.size is None else self.size
        self.etag, self.modified = self.etag or etag or None, self.modified or modified or None


def is_http(fs: Any) -> bool:
    """Whether it is fsspec's HTTP file system, or derived from it."""
    return hasattr(fs, "set_session") and hasattr(fs, "encode_url")


async def last_bytes(fs: Any, url: str, length: int, version: Version) -> tuple[bytes | None, bool] | None:
    """The last ``length`` bytes of a file, all of a shorter one, and whether they are all of it. ``version`` learns
    from the answer. Bytes are ``None`` where only the size was told; all is ``None`` where not even that.

    Raises what the session raises, and ``ConnectionError`` for a body that is not as long as promised.
    """
    async with _answer(fs, url, f"bytes=-{length}", version) as answer:
        if answer.status in _NO_SUCH_RANGE:
            return None
        answer.raise_for_status()
        if answer.status == 206:
            placed = _place(answer)
            if placed is None or placed[1] != placed[2]:
                return None
            first, stop, size = placed
            version.check(size, *_validators(answer))
            data = await _body(answer, stop - first)
            return (data, False) if len(data) == min(length, size) else (None, False)
        if answer.status != 200:
            return None
        stated = _stated_size(answer)
        if "bytes" in answer.headers.get("Accept-Ranges", ""):  # it knows ranges, but not this kind
            if stated is None:
                return None
            version.check(stated, *_validators(answer))
            return None, False
        data = await _body(answer, stated)
        version.check(len(data), *_validators(answer))
        return data, True


async def ranges_of(
    fs: Any, url: str, ranges: Sequence[tuple[int, int]], version: Version, most: int | None = None
) -> list[Any]:
    """Ranges (offset, length) of the file of this version; all of the file for a range that the server sends all for;
    an exception for a request that failed. At most ``most`` of them are asked for at a time.

    These are what the session raises: an answer of status 412 for another version, or :class:`ChangedFileError` where
    the server takes no notice of the condition.
    """
    import asyncio

    free = asyncio.Semaphore(most or AT_A_TIME)

    async def one(offset: int, length: int) -> bytes:
        if length == 0:
            return b""
        async with free, free_request(), _answer(fs, url, f"bytes={offset}-{offset + length - 1}", version) as answer:
            return await _range(answer, offset, length, version)

    return list(await asyncio.gather(*(one(*part) for part in ranges), return_exceptions=True))


async def _range(answer: Any, offset: int, length: int, version: Version) -> bytes:
    if answer.status == 416:  # the range is within the file that was opened
        found = re.fullmatch(r"bytes \*/(\d+)", answer.headers.get("Content-Range", ""))
        version.check(int(found[1]) if found else None, *_validators(answer))
    answer.raise_for_status()
    if answer.status == 200:
        stated = _stated_size(answer)
        version.check(stated, *_validators(answer))
        data = await _body(answer, stated)
        version.check(len(data), None, None)
        return data
    placed = _place(answer)
    if answer.status != 206 or placed is None:
        raise OSError("the server does not answer with the range that was asked for")
    first, stop, size = placed
    version.check(size, *_validators(answer))
    if first != offset or stop > offset + length:
        raise OSError("the server answers with another range than the one that was asked for")
    data = await _body(answer, stop - first)
    if stop < offset + length:
        raise ConnectionError(f"the server sends {len(data)} of {length} bytes")
    return data


@asynccontextmanager
async def _answer(fs: Any, url: str, part: str, version: Version) -> AsyncIterator[Any]:
    options = dict(fs.kwargs)
    wanted = {"Range": part, "Accept-Encoding": "identity"} | version.conditions()
    options["headers"] = {**options.get("headers", {}), **wanted}
    session = await fs.set_session()
    async with session.get(fs.encode_url(url), **options) as answer:
        yield answer


async def _body(answer: Any, length: int | None) -> bytes:
    """The body, which the server promised to have this length."""
    data: bytes = await answer.read()
    if length is not None and len(data) != length:
        raise ConnectionError(f"the server sends {len(data)} bytes, but promised {length}")
    return data


def _validators(answer: Any) -> tuple[str | None, str | None]:
    return answer.headers.get("ETag"), answer.headers.get("Last-Modified")


def _is_plain(answer: Any) -> bool:
    return answer.headers.get("Content-Encoding", "identity") in ("identity", "")


def _stated_size(answer: Any) -> int | None:
    """Of a whole file."""
    size = answer.headers.get("Content-Length", "")
    return int(size) if size.isdigit() and _is_plain(answer) else None


def _place(answer: Any) -> tuple[int, int, int] | None:
    """Where the bytes of an answer begin and end, and the size of the file; ``None`` where it does not say so."""
    if not _is_plain(answer):
        raise OSError("the server compresses ranges of the file, though it is asked not to")
    found = re.fullmatch(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})", answer.headers.get("Content-Range", ""))
    if found is None:
        return None
    first, last, size = map(int, found.groups())
    return (first, last + 1, size) if first <= last < size else None
