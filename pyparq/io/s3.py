"""Objects on S3 through s3fs: the parts of an answer that s3fs does not return, and reads of one version of an object.

An object may be replaced while it is read. Every range request after the first therefore states the entity tag of the
first answer (``If-Match``, RFC 9110 section 13.1.1), and S3 refuses to send bytes of another object.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from pyparq.errors import ChangedFileError
from pyparq.io.request_bound import free_request

AT_A_TIME = 128
"""Requests of one step that run at a time, as fsspec has it."""


class LastBytes(NamedTuple):
    """The end of an object, with the other parts of the answer."""

    data: bytes
    content_range: str | None
    etag: str | None
    """Of the object that the bytes come from."""


def is_s3(fs: Any) -> bool:
    """Whether it is s3fs, or derived from it."""
    return hasattr(fs, "_call_s3") and hasattr(fs, "split_path") and hasattr(type(fs), "_cat_file")


def _which(fs: Any, path: str) -> dict[str, Any]:
    bucket, key, version = fs.split_path(path)
    return {"Bucket": bucket, "Key": key} | ({"VersionId": version} if version else {})


async def last_bytes(fs: Any, path: str, length: int) -> LastBytes:
    """The last ``length`` bytes of an object, all of a shorter one. Raises what s3fs raises."""
    answer = await fs._call_s3("get_object", **_which(fs, path), Range=f"bytes=-{length}")
    async with answer["Body"] as body:
        data = await body.read()
    return LastBytes(data, answer.get("ContentRange"), answer.get("ETag") or None)


async def head(fs: Any, path: str) -> tuple[int, str | None]:
    """Size and entity tag of an object, as the server has them now: s3fs itself may answer from an old listing.

    Raises what s3fs raises.
    """
    answer = await fs._call_s3("head_object", **_which(fs, path))
    return int(answer["ContentLength"]), answer.get("ETag") or None


async def content(fs: Any, path: str) -> tuple[bytes, str | None]:
    """All bytes of an object, and its entity tag. Raises what s3fs raises, for a missing object at once."""
    answer = await fs._call_s3("get_object", **_which(fs, path))
    async with answer["Body"] as body:
        return await body.read(), answer.get("ETag")


async def replace_content(fs: Any, path: str, before: bytes, data: bytes) -> None:
    """Put ``data`` into an object that holds ``before``. An object that holds anything else stays as it is.

    Raises what s3fs raises; for another object an answer of status 412, where it was replaced at the last moment.
    """
    found, etag = await content(fs, path)
    if found == before:
        bound = {} if etag is None else {"IfMatch": etag}
        await fs._call_s3("put_object", **_which(fs, path), Body=data, **bound)


async def unchanged_ranges(
    fs: Any, path: str, ranges: Sequence[tuple[int, int]], etag: str, most: int | None = None
) -> list[Any]:
    """Ranges (offset, length) of the object that has this entity tag, by s3fs's own way, with its retries; an exception
    for a request that failed. At most ``most`` of them are asked for at a time.

    These are what s3fs raises: for another object an answer of status 412, or :class:`ChangedFileError` where the
    server takes no notice of the condition.
    """
    import asyncio

    asking, free = _Asking(fs, etag), asyncio.Semaphore(most or AT_A_TIME)

    async def one(offset: int, length: int) -> bytes:
        async with free, free_request():
            found: bytes = await type(fs)._cat_file(asking, path, start=offset, end=offset + length)
            return found

    return list(await asyncio.gather(*(one(*part) for part in ranges), return_exceptions=True))


class _Asking:
    """The file system, but that it asks for an object with one entity tag, and looks at which bytes come."""

    def __init__(self, fs: Any, etag: str) -> None:
        self._fs = fs
        self._etag = etag

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fs, name)

    async def _call_s3(self, method: str, *args: Any, **options: Any) -> Any:
        if self._etag.startswith('"'):  # a weak tag matches nothing
            options["IfMatch"] = self._etag
        answer = await self._fs._call_s3(method, *args, **options)
        wanted = re.fullmatch(r"bytes=(\d+)-\d+", options.get("Range", ""))
        found = re.match(r"bytes (\d+)-", answer.get("ContentRange") or "")
        if wanted and found and found[1] != wanted[1]:
            answer["Body"].close()
            raise OSError("the server answers with another range than the one that was asked for")
        if answer.get("ETag") not in (None, self._etag):
            answer["Body"].close()
            raise ChangedFileError("the file has changed since it was opened: open it again")
        return answer
