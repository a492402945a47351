"""An object on S3 that takes the place of the one that it is made from: ranges that stay are copied within the store.

It is a multipart upload (https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpuoverview.html). ``UploadPartCopy``
makes a part of a range of the old object, if that still has the entity tag that was read. All parts but the last need
5 MiB. So a shorter range is read and uploaded with what is beside it, and where less than that waits in front of a
long range, the beginning of the range is read, too.

The requests are those of s3fs, which makes them again where they fail for the moment.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pyparq.errors import UnsupportedError
from pyparq.io.file_objects import ProcessOwned
from pyparq.io.file_systems import is_concurrent, is_store, on_loop
from pyparq.io.http import is_s3, object_on_s3
from pyparq.io.remote_file import RemoteFile
from pyparq.io.url import cause_of, plain_errors

if TYPE_CHECKING:
    import asyncio  # loads slowly, so only where a loop runs

LEAST = 5 << 20
"""Bytes of a part that is not the last."""
MOST = 5 << 30
"""Bytes that one request copies at most."""
MOST_PARTS = 10_000
UPLOADED, COPIED = 8 << 20, 256 << 20
"""Bytes of a part that is uploaded, and that is copied: several are made at a time."""
_UPLOADS, _COPIES = 2, 8
"""Parts that are made at a time. Those that are uploaded are in memory."""
WORTH_LOADING = 64 << 20
"""Bytes of an object that obstore would read, for which s3fs is loaded instead. That takes about a second."""
_NOT_KNOWN = (405, 501)
"""Answers of stores that cannot copy ranges."""


def copying_system(source: RemoteFile) -> Any:
    """The file system of s3fs that copies ranges of an object within the store. ``None`` where there is none, and for
    small objects.

    obstore has no such request. Large objects that it has read are left to s3fs, where that is installed.
    """
    fs, least = source.fs, 2 * LEAST
    if is_store(fs):
        if not (fs.protocol in ("s3", "s3a") and fs.has_fsspec):
            return None
        least = WORTH_LOADING
    if source.tag is None or source.size < least:
        return None
    if is_store(fs):
        try:
            fs = fs.behind_fsspec()
        except UnsupportedError:  # it is not installed
            return None
    if not (is_s3(fs) and is_concurrent(fs)) or "VersionId" in object_on_s3(fs, source.path):
        return None
    secret = any(name.startswith("SSECustomer") for name in getattr(fs, "s3_additional_kwargs", ()))
    return None if secret else fs  # a key of the customer's own would have to be given for the old object as well


class S3CopySink(ProcessOwned):
    """The new object in the place of ``source`` (:class:`pyparq.io.sink.Sink`). Nothing but the object that was read is
    replaced: the store is told its entity tag with the last request."""

    def __init__(self, fs: Any, source: RemoteFile) -> None:
        """``fs``: see :func:`copying_system`."""
        super().__init__(source.name)
        self.position = 0
        self.num_copied = 0
        """Bytes that the store has copied."""
        self._fs = fs
        self._source = source
        self._object = object_on_s3(fs, source.path)
        self._piece = max(UPLOADED, -(-source.size // (MOST_PARTS // 2)))
        self._range = 0, 0
        """Of the old object, to be copied behind what waits."""
        self._waiting = bytearray()
        self._upload: _Parts | None = _Parts(fs, self._object)
        self._can_copy = True

    @property
    def place(self) -> tuple[Any, str]:
        """The file system, and the path on it."""
        return self._fs, self._source.path

    def _plain_errors(self) -> Any:
        return plain_errors(self.name, self._source.path, getattr(self._fs, "storage_options", None))

    def write(self, parts: Sequence[Any]) -> None:
        self._check_process()
        with self._plain_errors():
            self._settle()
            for part in parts:
                view = memoryview(part).cast("B")
                self._add(view)
                self.position += len(view)

    def copies_from(self, source: Any) -> bool:
        """Whether ranges of ``source`` can be copied."""
        return source is self._source

    def take_range(self, start: int, stop: int) -> None:
        """Append bytes ``[start, stop)`` of the old object. Neighbours become one range."""
        self._check_process()
        if start != self._range[1]:
            with self._plain_errors():
                self._settle()
            self._range = start, start
        self._range = self._range[0], stop
        self.position += stop - start

    def _add(self, view: memoryview) -> None:
        for at in range(0, len(view), self._piece):
            self._waiting += view[at : at + self._piece]
            if len(self._waiting) >= self._piece:
                self._send_waiting()

    def _send_waiting(self) -> None:
        if self._waiting:
            data, self._waiting = bytes(self._waiting), bytearray()
            self._begun.add(_UPLOADS, lambda number: self._uploaded(number, data))

    @property
    def _begun(self) -> _Parts:
        assert self._upload is not None
        return self._upload

    def _settle(self) -> None:
        """Make parts of the range that is to be copied."""
        start, stop = self._range
        self._range = 0, 0
        missing = LEAST - len(self._waiting) if 0 < len(self._waiting) < LEAST else 0
        if not self._can_copy or stop - start - missing < LEAST:
            self._read(start, stop)
            return
        self._read(start, start + missing)
        self._send_waiting()
        size = stop - start - missing
        count = -(-size // min(max(COPIED, -(-self._source.size // (MOST_PARTS // 4))), MOST))
        ends = [start + missing + size * k // count for k in range(count + 1)]
        for first, end in pairwise(ends):
            if not self._can_copy or not self._copy(first, end):
                self._read(first, end)

    def _copy(self, start: int, stop: int) -> bool:
        """Have a range copied. ``False`` where the store cannot do that, which the first one tells."""
        is_first = not self.num_copied
        try:
            self._begun.add(_COPIES, lambda number: self._copied(number, start, stop), waits=is_first)
        except Exception as error:
            if not is_first or cause_of(error)[1] not in _NOT_KNOWN:
                raise
            self._begun.drop_last()
            self._can_copy = False
            return False
        self.num_copied += stop - start
        return True

    def _read(self, start: int, stop: int) -> None:
        for at in range(start, stop, self._piece):
            (data,) = self._source.read_ranges([(at, min(self._piece, stop - at))])
            self._add(memoryview(data))

    async def _uploaded(self, number: int, data: bytes) -> dict[str, Any]:
        found = await self._fs._call_s3("upload_part", **self._begun.named(number), Body=data)
        return _part(number, found)

    async def _copied(self, number: int, start: int, stop: int) -> dict[str, Any]:
        found = await self._fs._call_s3(
            "upload_part_copy", **self._begun.named(number), CopySource=dict(self._object),
            CopySourceRange=f"bytes={start}-{stop - 1}", CopySourceIfMatch=self._source.tag,
        )  # fmt: skip
        return _part(number, found["CopyPartResult"])

    def commit(self) -> None:
        self._check_process()
        if self._upload is None:
            return
        try:
            with self._plain_errors():
                self._settle()
                if self._begun.any:
                    self._send_waiting()
                    self._begun.wait()
            if self.before_commit is not None:
                self.before_commit()
            with self._plain_errors():
                self.put()
        except BaseException:
            self.abort()
            raise
        self._upload = None
        self._fs.invalidate_cache(self._source.path)

    def put(self) -> None:
        """Make the object, if the old one is there still."""
        if self._begun.any:
            answer = self._begun.complete(IfMatch=self._source.tag)
        else:
            given = {**self._object, "Body": bytes(self._waiting), "IfMatch": self._source.tag}
            answer = on_loop(self._fs.loop, self._fs._call_s3, "put_object", **given)
        self.new_version = answer.get("VersionId")

    def abort(self) -> None:
        upload, self._upload = self._upload, None
        self._waiting = bytearray()
        if upload is not None:
            with suppress(Exception):
                upload.abort()

    def _let_go(self) -> None:
        self._upload = None  # it is the parent's


class _Parts:
    """The parts of one upload, which is begun with the first of them. Coroutines run on the loop of s3fs."""

    def __init__(self, fs: Any, place: dict[str, Any]) -> None:
        self._fs = fs
        self._object = place
        self._id: str | None = None
        self._tasks: list[asyncio.Task[dict[str, Any]]] = []
        self._free: dict[int, asyncio.Semaphore] = {}
        self._is_given_up = False
        self._beginning: asyncio.Semaphore | None = None

    @property
    def any(self) -> bool:
        return bool(self._tasks)

    def named(self, number: int) -> dict[str, Any]:
        """The parameters of boto that name a part."""
        return {**self._object, "UploadId": self._id, "PartNumber": number}

    def add(
        self, at_most: int, make: Callable[[int], Coroutine[Any, Any, dict[str, Any]]], *, waits: bool = False
    ) -> None:
        """Begin to make the next part, when fewer than ``at_most`` of its kind are being made. ``waits``: until it is
        made. Raises the error in which an earlier part has ended."""
        on_loop(self._fs.loop, self._add, at_most, make, waits)

    async def _add(self, at_most: int, make: Callable[[int], Coroutine[Any, Any, dict[str, Any]]], waits: bool) -> None:
        import asyncio

        for task in self._tasks:
            if task.done():
                task.result()
        self._beginning = self._beginning or asyncio.Semaphore(1)
        async with self._beginning:
            if self._id is None:
                self._id = (await self._fs._call_s3("create_multipart_upload", **self._object))["UploadId"]
        free = self._free.setdefault(at_most, asyncio.Semaphore(at_most))
        await free.acquire()
        if self._is_given_up:
            return
        self._tasks.append(asyncio.create_task(make(len(self._tasks) + 1)))
        self._tasks[-1].add_done_callback(lambda task: free.release())
        if waits:
            await self._tasks[-1]

    def drop_last(self) -> None:
        """Forget the last part, which was not made."""
        self._tasks.pop()

    def wait(self) -> None:
        """Wait until all parts are made."""
        on_loop(self._fs.loop, self._all)

    async def _all(self) -> list[dict[str, Any]]:
        import asyncio

        return list(await asyncio.gather(*self._tasks))

    def complete(self, **condition: Any) -> dict[str, Any]:
        """Make the object of the parts. Returns the answer."""
        return on_loop(self._fs.loop, self._complete, condition)

    async def _complete(self, condition: dict[str, Any]) -> dict[str, Any]:
        parts = {"Parts": await self._all()}
        found: dict[str, Any] = await self._fs._call_s3(
            "complete_multipart_upload", **self._object, UploadId=self._id, MultipartUpload=parts, **condition
        )
        return found

    def abort(self) -> None:
        """Remove the parts, after those that are being made have ended: one that comes later would stay."""
        if self._beginning is not None:
            on_loop(self._fs.loop, self._abort)

    async def _abort(self) -> None:
        import asyncio

        self._is_given_up = True
        assert self._beginning is not None
        async with self._beginning:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            if self._id is not None:
                await self._fs._call_s3("abort_multipart_upload", **self._object, UploadId=self._id)


def _part(number: int, answer: dict[str, Any]) -> dict[str, Any]:
    """A part as the last request names it, with the checksums that the store has told."""
    found = {name: value for name, value in answer.items() if name == "ETag" or name.startswith("Checksum")}
    found.pop("ChecksumType", None)
    return {"PartNumber": number, **found}
