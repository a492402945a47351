"""Files on remote file systems: of fsspec, and stores of obstore."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from typing import Any, TypeVar

from pyparq.errors import ChangedFileError, CorruptFileError, OptionError, ParquetError, UnsupportedError, located
from pyparq.io.byte_ranges import Range
from pyparq.io.file_systems import (
    alone,
    has_own_reads,
    is_concurrent,
    is_store,
    loops,
    on_loop,
    shares_one_reader,
    takes_generations,
)
from pyparq.io.file_versions import Stated, Unchanged
from pyparq.io.http import Version, head_on_s3, is_http, is_s3, last_bytes, ranges_of, tells_version
from pyparq.io.kept_files import Identity, digest_of
from pyparq.io.object_requests import are_lost, get_object, head_object, note_use, plainly
from pyparq.io.retry import Retry, tried
from pyparq.io.url import plain_errors
from pyparq.runtime import fork_safety
from pyparq.runtime.threads import MANY_REQUESTS, REQUESTS, Task, map_requests, request_pool

R = TypeVar("R")

SCHEMES = {"S3Store": ("s3", "bucket"), "GCSStore": ("gs", "bucket"), "AzureStore": ("az", "container_name")}
"""Stores that their options tell apart: the protocol of their URLs, and where the name of the bucket stands."""


class RemoteFile:
    """A file on a remote file system: ranges of one step go out together.

    Making one asks nothing of the server. The first request, :meth:`read_end`, also tells the size where the file
    system can do both at once. A server that knows no ranges, or not how large the file is, sends the whole file: it is
    then kept, and read once. fsspec reads on what obstore cannot: in a forked child, where the key has an odd name, and
    where the server knows no ranges.
    """

    is_local = False
    retry = Retry()
    """How requests that fail for the moment are made again."""
    at_a_time: int | None = None
    """Requests of one step that are made at a time. ``None``: as many as suit the file system."""

    def __init__(self, fs: Any, path: str, name: str, listed: Stated | None = None) -> None:
        """``listed``: what a listing of the folder says of the file."""
        self.fs = fs
        self.path = path
        self.name = name
        self._listed = listed
        self._size: int | None = None
        self._version: Version | None = None
        """Of a file behind HTTP, on S3 or in a store of obstore, to which requests are bound."""
        self._unchanged: Unchanged | None = None
        """Of one on a file system whose requests cannot be bound to a version."""
        self._bound: dict[str, Any] = {}
        """What binds a request of another file system to a version."""
        if listed is not None:
            self._state(listed)
        self._is_odd = is_store(fs) and fs.is_odd(path)
        self._has_ranges = False
        """A store of obstore has served one."""
        self._early: Task[memoryview] | None = None
        self._closed = False
        self._identity: Identity | None = None
        self._whole: memoryview | None = None
        self._inherited = False
        fork_safety.watch(self)

    def _after_fork(self) -> None:
        self._inherited = True

    @property
    def road(self) -> str:
        """The library that makes the requests."""
        return "obstore" if is_store(self.fs) and not self._is_odd and not are_lost() else "fsspec"

    @property
    def place(self) -> tuple[Any, str]:
        """The file system, and the path on it."""
        return self.fs, self.path

    @property
    def size(self) -> int:
        """Size in bytes. Asks the server, unless it is known already."""
        if self._size is None:
            self._check_usable()
            with self._plain_errors():
                size = self._retry().once(self._asked_size)
                if size is None:
                    self._keep(self._retry().once(lambda: self.fs.cat_file(self.path)))
                else:
                    self._size = size
        assert self._size is not None
        return self._size

    def _asked_size(self) -> int | None:
        if is_store(self.fs):
            with plainly(self.name):
                self._learn(head_object(self.fs.store, self.fs.key(self.path)))
            return self._size
        if is_s3(self.fs) and is_concurrent(self.fs):
            self._version = on_loop(self.fs.loop, head_on_s3, self.fs, self.path)
            return self._version.size
        found = self._alone(lambda: self.fs.info(self.path))
        if found.get("size") is None:
            self._state(Stated.of(found))
            return None
        if tells_version(self.fs):
            self._version = Version()
            self._version.check(int(found["size"]), found.get("ETag"), found.get("Last-Modified"))
        self._state(Stated.of(found))
        return int(found["size"])

    def _state(self, stated: Stated) -> None:
        """The version of the file. The first one that the server states must stay."""
        if self._unchanged is None and not (is_store(self.fs) or is_s3(self.fs) or is_http(self.fs)):
            self._unchanged = Unchanged(self.fs, self.path, stated)
            if stated.generation is not None and takes_generations(self.fs):
                self._bound = {"generation": stated.generation}

    @property
    def etag(self) -> str | None:
        """The entity tag of the object on S3 that was opened, if it can be stated in requests."""
        return self.tag if is_s3(self.fs) else None

    @property
    def identity(self) -> Identity | None:
        """What the file is known by in this process; ``None`` where no request can be bound to its version."""
        if self._identity is None and is_store(self.fs):
            self._identity = _identity_in_store(self.fs.store, self.fs.key(self.path))
        elif self._identity is None and tells_version(self.fs):
            options = digest_of(self.fs.storage_options)  # once: boto changes some of them when it is used
            self._identity = None if options is None else (type(self.fs), options, self.path)
        return self._identity

    @property
    def tag(self) -> str | None:
        """The strong entity tag of the file that was opened, once an answer has told it."""
        return None if self._version is None else self._version.tag

    @property
    def _listed_tag(self) -> str | None:
        name = self.fs.tag if is_store(self.fs) else "ETag" if is_s3(self.fs) else ""
        return None if self._listed is None else dict(self._listed.tags).get(name)

    def is_listed_as(self, size: int, tag: str) -> bool:
        """Whether a listing of the folder says that the file has this size and entity tag."""
        return self._listed is not None and (self._listed.size, self._listed_tag) == (size, tag.strip('"'))

    def go_on(self, size: int, etag: str | None) -> None:
        """Read a file whose size and entity tag another reader has learnt."""
        self._size = size
        if is_store(self.fs) or is_s3(self.fs) or is_http(self.fs):
            self._version = Version(size, etag)
        else:
            self._state(Stated(size, () if etag is None else (("e_tag", etag),), ()))

    def check_now(self) -> None:
        """Ask whether the file is still the one that was read. Raises :class:`ChangedFileError` if it is not."""
        self._check_usable()
        if self._unchanged is not None:
            self._unchanged.check_now(self.fs, self.name, self.retry)
        elif is_store(self.fs):
            with located(file=self.name), self._plain_errors():
                self._retry().once(self._check_head)
        elif self._version is not None and is_s3(self.fs):
            asked = RemoteFile(self.fs, self.path, self.name)
            if asked.size != self._size or asked.tag != self.tag:
                raise ChangedFileError("the file has changed since it was opened: open it again", file=self.name)
            self._version.generation = asked.version_id

    @property
    def version_id(self) -> str | None:
        """The name of this version of the file, in a store that keeps versions, once an answer has told it."""
        return None if self._version is None else self._version.generation

    @property
    def stated_version(self) -> dict[str, str]:
        """What tells the object in a store of obstore from others of its name, as obstore's updates take it."""
        found = {} if self._version is None else {"e_tag": self._version.etag, "version": self._version.generation}
        return {name: value for name, value in found.items() if value is not None}

    def _check_head(self) -> None:
        with plainly(self.name):
            self._learn(head_object(self.fs.store, self.fs.key(self.path)))

    def _learn(self, meta: Any) -> None:
        """Take the size and version from what a store says of the object, or compare them with what it said before."""
        if self._version is None:
            self._version = Version()
        self._version.check(int(meta["size"]), meta.get("e_tag") or None, str(meta.get("last_modified") or ""))
        self._version.generation = self._version.generation or meta.get("version") or None
        self._size = self._version.size

    def begin(self) -> None:
        """Begin a new question to an open file: it may have been replaced since the last one."""
        if self._unchanged is not None:
            self._unchanged.begin()

    def begin_end(self, length: int) -> None:
        """Begin to read the last ``length`` bytes. The next :meth:`read_end` has them."""
        if self.road == "obstore":
            self._early = Task(self._end, length)
            self._early.start(request_pool)

    def read_end(self, length: int) -> memoryview:
        """The last ``length`` bytes, all of a shorter file; and the size with them, where that is one request."""
        early, self._early = self._early, None
        return self._end(length) if early is None or are_lost() else early.result()

    def _end(self, length: int) -> memoryview:
        self._check_usable()
        tells_size = self.fs.ends_by_length if is_store(self.fs) else tells_version(self.fs)
        if self._size is None and not tells_size and self._listed is not None and self._listed.size is not None:
            self._size = self._listed.size
        if self._size is None:
            with self._plain_errors():
                end = self._retry().once(lambda: self._read_end(length))
            self._check_listed()
            if end is not None:
                return memoryview(end)
        start = max(self.size - length, 0)
        if start == self.size:
            return memoryview(b"")
        try:
            found = self.read_ranges([(start, self.size - start)])[0]
        except (FileNotFoundError, PermissionError):
            raise
        except (OSError, ParquetError):
            if is_store(self.fs) and self._listed is not None:  # a shorter file has no such range
                self._size = self._version = None
                assert self.size >= 0  # asked anew
                self._check_listed()
            raise
        self._check_listed()
        return found

    def _check_listed(self) -> None:
        size = self._size if self._version is None else self._version.size
        if size is not None and self._listed is not None:
            etag = None if self._version is None else self._version.etag
            self._listed.check_opened(size, etag, self._listed_tag, self.name)

    def _read_end(self, length: int) -> Any:
        """The end of the file, and with it the size. ``None`` where the server does not answer as it should, or where
        there is no way to ask for both at once: then they are asked for one after the other."""
        if is_store(self.fs):
            return self._store_end(length)
        if tells_version(self.fs):
            version = Version()
            end = on_loop(self.fs.loop, last_bytes, self.fs, self.path, length, version)
            if end is None or version.size is None:
                return None
            self._size, self._version = version.size, version
            if end.whole:
                self._keep(end.data)
            return None if end.whole else end.data
        if is_concurrent(self.fs):
            info, data = on_loop(self.fs.loop, _info_and_end, self.fs, self.path, length)
        elif loops(self.fs) and has_own_reads(self.fs):
            ask = [lambda: self.fs.info(self.path), lambda: tried(lambda: self.fs.cat_file(self.path, start=-length))]
            info, data = map_requests(lambda one: one(), ask)
        else:
            return None
        return self._checked_end(info, data, length)

    def _store_end(self, length: int) -> memoryview | None:
        try:
            with plainly(self.name):
                answer, data = get_object(self.fs.store, self.fs.key(self.path), {"range": {"suffix": length}})
        except (FileNotFoundError, PermissionError):
            raise
        except Exception:  # the object is empty, the server knows no such ranges, or the connection breaks
            return None
        size = int(answer.meta["size"])
        if len(data) != min(length, size) or tuple(answer.range) != (size - len(data), size):
            return None
        self._learn(answer.meta)
        self._has_ranges = True
        return data

    def _checked_end(self, info: Mapping[str, Any], data: Any, length: int) -> Any:
        if info.get("size") is None:
            return None
        size = self._size = int(info["size"])
        self._state(Stated.of(info))
        is_wrong = isinstance(data, BaseException) or len(data) not in (min(length, size), size)
        return None if is_wrong else data[-length:]

    def read_ranges(self, ranges: Sequence[Range]) -> list[memoryview]:
        self._check_usable()
        if self._whole is None:
            try:
                parts = self._answers(ranges)
            except UnsupportedError:
                if not is_store(self.fs) or self._has_ranges or not self.fs.has_fsspec:
                    raise
                self._go_by_fsspec()  # the server knows no ranges
                return self.read_ranges(ranges)
            sizes = [n for _, n in ranges]
            whole = next((p for p, n in zip(parts, sizes, strict=True) if len(p) > n and len(p) == self.size), None)
            if whole is None:
                return [self._exactly(p, o, n) for p, (o, n) in zip(parts, ranges, strict=True)]
            self._keep(whole)
        assert self._whole is not None
        return [self._exactly(self._whole[o : o + n], o, n) for o, n in ranges]

    def _answers(self, ranges: Sequence[Range]) -> list[Any]:
        """The bytes of each range, of the file that was opened; all of the file where the server sends that."""
        with located(file=self.name):
            try:
                with self._plain_errors():
                    parts = self._retry().each(self._requested, ranges, self._is_wrong)
            except FileNotFoundError:
                if self._unchanged is not None and self._bound:  # this version does not exist any more
                    self._unchanged.check_now(self.fs, self.name, self.retry)
                raise
            if self._unchanged is not None:
                if any(map(self._is_wrong, ranges, parts)):  # the file may be shorter by now
                    self._unchanged.check_now(self.fs, self.name, self.retry)
                self._unchanged.check(self.fs, self.name, self.retry)
        return parts

    def _keep(self, whole: Any) -> None:
        self._whole = memoryview(whole)
        self._size = len(self._whole)

    def _retry(self) -> Retry:
        """The retries for this file system. s3fs, and a user's own store, repeat most requests by themselves."""
        return self.retry.at_most(1) if is_s3(self.fs) or getattr(self.fs, "repeats", False) is True else self.retry

    def _is_wrong(self, wanted: Range, found: Any) -> bool:
        """Whether the answer is neither the requested range nor the whole file."""
        return len(found) not in (wanted[1], self._size)

    def _exactly(self, data: Any, offset: int, length: int) -> memoryview:
        """Raises :class:`CorruptFileError` for a range outside of the file, and ``ConnectionError`` where the server
        sends other than it was asked for: nothing is wrong with the file then."""
        if len(data) == length:
            return memoryview(data)
        if offset + length > self.size:
            raise CorruptFileError(
                f"the file ends within the range of {length} bytes at offset {offset}", file=self.name
            )
        raise ConnectionError(errno.EIO, f"the server sends {len(data)} bytes instead of {length}", self.name)

    def _requested(self, ranges: Sequence[Range]) -> list[Any]:
        """The bytes of each range, or the exception that it ended in."""
        if is_store(self.fs):
            if len(ranges) == 1:
                return [self._from_store(ranges[0])]
            return map_requests(self._from_store, ranges, self.at_a_time or MANY_REQUESTS)
        if self._version is not None:
            same: list[Any] = on_loop(
                self.fs.loop, ranges_of, self.fs, self.path, ranges, self._version, self.at_a_time
            )
            return same
        if len(ranges) > 1 and loops(self.fs):
            return map_requests(lambda part: tried(lambda: self._cat(part)), ranges, self.at_a_time or REQUESTS)
        if len(ranges) == 1 or shares_one_reader(self.fs):
            return [tried(lambda part=part: self._cat(part)) for part in ranges]  # type: ignore[misc]
        starts = [offset for offset, _ in ranges]
        ends = [offset + length for offset, length in ranges]
        bound = {"on_error": "return"} | self._bound
        if self.at_a_time is not None and is_concurrent(self.fs):
            bound["batch_size"] = self.at_a_time
        paths = [self.path] * len(ranges)
        try:
            return list(self.fs.cat_ranges(paths, starts, ends, **bound))
        except Exception as error:  # for file systems that raise although told not to
            return [error] * len(ranges)

    def _from_store(self, part: Range) -> Any:
        """The bytes of a range of the object of this version, or the exception that the request ended in."""
        offset, length = part
        options: dict[str, Any] = {"range": (offset, offset + length)}
        if self.tag is not None:
            options["if_match"] = self.tag
        try:
            with plainly(self.name):
                answer, data = get_object(self.fs.store, self.fs.key(self.path), options)
            self._learn(answer.meta)
        except UnsupportedError as error:
            if not self._has_ranges:
                return error
            return ConnectionError(errno.EIO, "the server answers with other than the range asked for", self.name)
        except Exception as error:
            return error
        self._has_ranges = self._has_ranges or len(data) == length
        return data

    def _cat(self, part: Range) -> Any:
        offset, length = part
        wanted = {"start": offset, "end": offset + length, **self._bound}
        return self._alone(lambda: self.fs.cat_file(self.path, **wanted))

    def _alone(self, ask: Callable[[], R]) -> R:
        """The result of a request. Where a file system has one reader, threads take turns."""
        with alone(self.fs):
            return ask()

    def _check_usable(self) -> None:
        if self._closed:
            raise OptionError("the file is closed", file=self.name)
        if is_store(self.fs):
            if self._is_odd or are_lost():
                self._go_by_fsspec()
            note_use()
        elif self._inherited:  # its connections, and the thread that serves them, are the parent's
            self.fs, self._inherited = copy(self.fs), False

    def _go_by_fsspec(self) -> None:
        """Let fsspec read on. Raises :class:`OptionError` for a store that only obstore knows."""
        version, self._version = self._version, None
        self.fs, self._is_odd, self._inherited = self.fs.behind_fsspec(), False, False
        self._identity = None
        if self._size is not None:
            self.go_on(self._size, None if version is None else version.etag)
        elif self._listed is not None:
            self._state(self._listed)

    def _plain_errors(self) -> AbstractContextManager[None]:
        return plain_errors(self.name, self.path, getattr(self.fs, "storage_options", None))

    def close(self) -> None:
        self._closed = True
        self._whole = None


async def _info_and_end(fs: Any, path: str, length: int) -> tuple[Any, Any]:
    """What the file system says of a file, and its end: two requests, but one wait."""
    import asyncio

    asked = fs._info(path), fs._cat_file(path, start=-length)
    info, data = list[Any](await asyncio.gather(*asked, return_exceptions=True))
    if isinstance(info, BaseException):
        raise info
    return info, data


def _identity_in_store(store: Any, key: str) -> Identity | None:
    """What an object is known by in this process; ``None`` where that does not tell stores apart."""
    if type(store).__name__ not in SCHEMES:
        return None
    try:
        hash(store.credential_provider)  # a tuple, or a frozen dataclass, may hold what has none
    except TypeError:
        return None
    options = digest_of({"config": dict(store.config), "client": dict(store.client_options or {})})
    return None if options is None else (type(store), options, str(store.prefix or ""), store.credential_provider, key)
