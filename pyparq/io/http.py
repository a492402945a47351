"""Files behind HTTP and on S3: ranges of one version of a file, on the sessions of fsspec's file systems.

A file may be replaced while it is read. What the first answer says of its version is kept. Later requests are bound to
it (``If-Match`` with a strong entity tag, else ``If-Unmodified-Since``; RFC 9110 section 13.1), and every answer is
compared with it, because servers may take no notice of conditions. Bytes are asked for as they are stored
(``Accept-Encoding: identity``): a range of compressed bytes is of no use.

A Parquet file is read from its end, but the position of the end is known only with the size. Servers answer a range
request for the last bytes (``Range: bytes=-N``, RFC 9110 section 14.1.2) with these bytes and, in ``Content-Range``,
with the size. fsspec returns only the bytes, so the two file systems whose answers are accessible are asked directly.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyparq.errors import ChangedFileError
from pyparq.io.file_systems import is_concurrent
from pyparq.io.retry import free_request
from pyparq.io.url import stated

AT_A_TIME = 128
"""Requests of one step that run at a time, as fsspec has it."""

_NO_SUCH_RANGE = (400, 405, 416, 501)
"""Answers where a range from the end is not served, or the file is empty: the size is then asked for by itself."""


class Version:
    """The version of a file by the answers of its server. Each fact comes from the first answer that states it."""

    def __init__(self, size: int | None = None, etag: str | None = None) -> None:
        self.size = size
        self.etag = etag
        self.modified: str | None = None
        self.generation: str | None = None
        """What S3, and a store of obstore, has beside a tag, where the bucket keeps versions."""

    @property
    def tag(self) -> str | None:
        """The entity tag, if it can be stated in requests: a weak one matches nothing."""
        return self.etag if self.etag is not None and self.etag.startswith('"') else None

    def conditions(self) -> dict[str, str]:
        """Headers that bind a request to this version, as far as it is known."""
        if self.tag is not None:
            return {"If-Match": self.tag}
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


class End(NamedTuple):
    """The answer of a server about the end of a file."""

    data: Any
    """The last bytes; ``None`` where only the size was told."""
    whole: bool
    """``data`` is the whole file: the server knows no ranges."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer whose body has not been read yet."""

    status: int
    content_range: str
    length: int | None
    """Of the body, as far as it is stated."""
    etag: str | None
    modified: str | None
    has_ranges: bool
    """The server says that it knows ranges."""
    body: Callable[[], Any]
    raise_for_status: Callable[[], None]
    is_plain: bool = True
    """It is not compressed on its way."""

    async def read(self, length: int | None) -> bytes:
        """The body, which the server promised to have this length."""
        data: bytes = await self.body()
        if length is not None and len(data) != length:
            raise ConnectionError(f"the server sends {len(data)} bytes, but promised {length}")
        return data

    def place(self) -> tuple[int, int, int | None] | None:
        """Where the bytes begin and end, and the size of the file, which a server may leave out (``*``). ``None`` where
        the answer does not say so."""
        if not self.is_plain:
            raise OSError("the server compresses ranges of the file, though it is asked not to")
        found = re.fullmatch(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)", self.content_range)
        if found is None:
            return None
        first, last, size = int(found[1]), int(found[2]), None if found[3] == "*" else int(found[3])
        return (first, last + 1, size) if first <= last and (size is None or last < size) else None


# ---- the two kinds of file systems ---------------------------------------------------------------------------------


def is_http(fs: Any) -> bool:
    """Whether it is fsspec's HTTP file system, or derived from it."""
    return hasattr(fs, "set_session") and hasattr(fs, "encode_url")


def is_s3(fs: Any) -> bool:
    """Whether it is s3fs, or derived from it."""
    return hasattr(fs, "_call_s3") and hasattr(fs, "split_path") and hasattr(type(fs), "_cat_file")


def tells_version(fs: Any) -> bool:
    """Whether requests can be bound to a version of a file, and tell its size with its end."""
    return (is_s3(fs) or is_http(fs)) and is_concurrent(fs)


@asynccontextmanager
async def _from_http(fs: Any, url: str, part: str, version: Version) -> AsyncIterator[_Answer]:
    options = dict(fs.kwargs)
    wanted = {"Range": part, "Accept-Encoding": "identity"} | version.conditions()
    options["headers"] = {**options.get("headers", {}), **wanted}
    session = await fs.set_session()
    async with session.get(fs.encode_url(url), **options) as answer:
        headers = answer.headers
        is_plain = headers.get("Content-Encoding", "identity") in ("identity", "")
        length = headers.get("Content-Length", "")
        if answer.status >= 400:  # a store behind a signed link says why
            answer.reason = stated((await answer.content.read(4096)).decode("utf-8", "replace"))[1] or answer.reason
        yield _Answer(
            answer.status, headers.get("Content-Range", ""), int(length) if length.isdigit() and is_plain else None,
            headers.get("ETag"), headers.get("Last-Modified"), "bytes" in headers.get("Accept-Ranges", ""),
            answer.read, answer.raise_for_status, is_plain,
        )  # fmt: skip


@asynccontextmanager
async def _from_s3(fs: Any, path: str, part: str, version: Version) -> AsyncIterator[_Answer]:
    bound = {} if version.tag is None else {"IfMatch": version.tag}
    answer = await fs._call_s3("get_object", **object_on_s3(fs, path), Range=part, **bound)
    version.generation = version.generation or answer.get("VersionId")
    async with answer["Body"] as body:
        content_range = answer.get("ContentRange") or ""
        yield _Answer(
            206 if content_range else 200, content_range, answer.get("ContentLength"), answer.get("ETag") or None, None,
            False, body.read, lambda: None,
        )  # fmt: skip


def _answer(fs: Any, path: str, part: str, version: Version) -> AbstractAsyncContextManager[_Answer]:
    return (_from_s3 if is_s3(fs) else _from_http)(fs, path, part, version)


# ---- requests ------------------------------------------------------------------------------------------------------


async def last_bytes(fs: Any, path: str, length: int, version: Version) -> End | None:
    """The last ``length`` bytes of a file, all of a shorter one. ``version`` learns from the answer. ``None`` where not
    even the size was told: then ask for one after the other.

    Raises what the file system raises, and ``ConnectionError`` for a body that is not as long as promised.
    """
    if not is_s3(fs):
        return await _last_bytes(fs, path, length, version)
    try:
        return await _last_bytes(fs, path, length, version)
    except (FileNotFoundError, PermissionError):
        raise
    except Exception:  # an empty object has no last bytes; a connection may break, and the next way tries again
        return None


async def _last_bytes(fs: Any, path: str, length: int, version: Version) -> End | None:
    async with _answer(fs, path, f"bytes=-{length}", version) as answer:
        if answer.status in _NO_SUCH_RANGE:
            return None
        answer.raise_for_status()
        if answer.status == 206:
            placed = answer.place()
            if placed is None or placed[1] != placed[2]:
                return None
            first, size, _ = placed
            data = await answer.read(size - first)
            version.check(size, answer.etag, answer.modified)
            return End(data if len(data) == min(length, size) else None, False)
        if answer.status != 200:
            return None
        if answer.has_ranges:  # but not this kind
            if answer.length is None:
                return None
            version.check(answer.length, answer.etag, answer.modified)
            return End(None, False)
        data = await answer.read(answer.length)
        version.check(len(data), answer.etag, answer.modified)
        return End(data, True)


async def ranges_of(
    fs: Any, path: str, ranges: Sequence[tuple[int, int]], version: Version, most: int | None = None
) -> list[Any]:
    """Ranges (offset, length) of the file of this version; all of the file for a range that the server sends all for;
    an exception for a request that failed. At most ``most`` of them are asked for at a time.

    These are what the file system raises: an answer of status 412 for another version, or :class:`ChangedFileError`
    where the server takes no notice of the condition.
    """
    import asyncio

    free = asyncio.Semaphore(most or AT_A_TIME)

    async def one(offset: int, length: int) -> bytes:
        if length == 0:
            return b""
        async with free, free_request(), _answer(fs, path, f"bytes={offset}-{offset + length - 1}", version) as answer:
            return await _range(answer, offset, length, version)

    return list(await asyncio.gather(*(one(*part) for part in ranges), return_exceptions=True))


async def _range(answer: _Answer, offset: int, length: int, version: Version) -> bytes:
    if answer.status == 416:  # the range is within the file that was opened
        found = re.fullmatch(r"bytes \*/(\d+)", answer.content_range)
        version.check(int(found[1]) if found else None, answer.etag, answer.modified)
    answer.raise_for_status()
    if answer.status == 200:
        version.check(answer.length, answer.etag, answer.modified)
        data = await answer.read(answer.length)
        version.check(len(data), None, None)
        return data
    placed = answer.place()
    if answer.status != 206 or placed is None:
        raise OSError("the server does not answer with the range that was asked for")
    first, stop, size = placed
    version.check(size, answer.etag, answer.modified)
    if first != offset or stop > offset + length:
        raise OSError("the server answers with another range than the one that was asked for")
    data = await answer.read(stop - first)
    if stop < offset + length:
        raise ConnectionError(f"the server sends {len(data)} of {length} bytes")
    return data


# ---- objects on S3 -------------------------------------------------------------------------------------------------


def object_on_s3(fs: Any, path: str) -> dict[str, Any]:
    """The parameters of boto that name an object."""
    bucket, key, version = fs.split_path(path)
    return {"Bucket": bucket, "Key": key} | ({"VersionId": version} if version else {})


async def head_on_s3(fs: Any, path: str) -> Version:
    """Size and entity tag of an object, as the server has them now: s3fs itself may answer from an old listing.

    Raises what s3fs raises.
    """
    answer = await fs._call_s3("head_object", **object_on_s3(fs, path))
    version = Version(int(answer["ContentLength"]), answer.get("ETag") or None)
    version.generation = answer.get("VersionId")
    return version


async def content_on_s3(fs: Any, path: str) -> tuple[bytes, str | None]:
    """All bytes of an object, and its entity tag. Raises what s3fs raises, for a missing object at once."""
    answer = await fs._call_s3("get_object", **object_on_s3(fs, path))
    async with answer["Body"] as body:
        return await body.read(), answer.get("ETag")


async def replace_on_s3(fs: Any, path: str, before: bytes, data: bytes) -> None:
    """Put ``data`` into an object that holds ``before``. An object that holds anything else stays as it is.

    Raises what s3fs raises; for another object an answer of status 412, where it was replaced at the last moment.
    """
    found, etag = await content_on_s3(fs, path)
    if found == before:
        bound = {} if etag is None else {"IfMatch": etag}
        await fs._call_s3("put_object", **object_on_s3(fs, path), Body=data, **bound)
