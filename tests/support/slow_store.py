"""File systems in memory that behave like a store behind a network: they note every request, which of them ran at the
same time, and can delay or fail them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fsspec.asyn import AsyncFileSystem
from fsspec.core import OpenFile
from fsspec.spec import AbstractFileSystem


@dataclass
class Request:
    """One request; ``begun`` and ``ended`` are places in the order of all beginnings and ends."""

    kind: str
    """``"info"``, ``"list"`` or ``"bytes"``."""
    path: str
    start: int = 0
    end: int = 0
    begun: int = 0
    ended: int = 1 << 60

    @property
    def size(self) -> int:
        return self.end - self.start


@dataclass
class Log:
    """What was asked of a store."""

    requests: list[Request] = field(default_factory=list)
    clock: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)

    def begin(self, request: Request) -> Request:
        with self.changed:
            self.clock += 1
            request.begun = self.clock
            self.requests.append(request)
            self.changed.notify_all()
        return request

    def end(self, request: Request) -> None:
        with self.changed:
            self.clock += 1
            request.ended = self.clock
            self.changed.notify_all()

    def clear(self) -> None:
        with self.changed:
            self.requests.clear()

    def of(self, kind: str) -> list[Request]:
        return [r for r in self.requests if r.kind == kind]

    @property
    def num_bytes(self) -> int:
        return sum(r.size for r in self.of("bytes"))

    @property
    def depth(self) -> int:
        """Serial round trips: the longest chain of requests, each begun after the one before had ended."""
        chain, free_from = 0, 0
        for request in sorted(self.requests, key=lambda r: r.ended):
            if request.begun > free_from:
                chain, free_from = chain + 1, request.ended
        return chain

    @property
    def most_at_once(self) -> int:
        points = sorted([(r.begun, 1) for r in self.requests] + [(r.ended, -1) for r in self.requests])
        most = now = 0
        for _, step in points:
            now += step
            most = max(most, now)
        return most

    def wait_for(self, condition: Callable[[list[Request]], bool], seconds: float = 20) -> bool:
        """Whether ``condition`` becomes true of the requests. (Generous: it only lasts that long where it fails.)"""
        with self.changed:
            return self.changed.wait_for(lambda: condition(self.requests), seconds)


class _Store:
    """What both kinds of store share."""

    protocol: Any = "slow"
    cachable = False
    files: dict[str, bytes]
    log: Log
    delay: float
    fail: Callable[[Request], Exception | None]

    def _set_up(self, files: Mapping[str, bytes], delay: float) -> None:
        self.files = dict(files)
        self.log = Log()
        self.delay = delay
        self.fail = lambda request: None

    def fail_the(self, n: int, error: Exception) -> None:
        """Have the n-th request for bytes from now on fail, counted from 1."""
        seen = [0]

        def fail(request: Request) -> Exception | None:
            seen[0] += request.kind == "bytes"
            return error if request.kind == "bytes" and seen[0] == n else None

        self.fail = fail

    def of(self, path: str) -> OpenFile:
        """What pyparq takes as a source: a file on this very file system."""
        return OpenFile(self, path)

    def _name(self, path: str) -> str:
        name = path.removeprefix("slow://").strip("/")
        if name not in self.files:
            raise FileNotFoundError(path)
        return name

    def _begin_bytes(self, path: str, start: int | None, end: int | None) -> tuple[Request, bytes]:
        data = self.files[self._name(path)]
        first, last, _ = slice(start, end).indices(len(data))
        return self.log.begin(Request("bytes", path, first, last)), data[first:last]

    def _details(self, path: str) -> dict[str, Any]:
        name = self._name(path)
        return {"name": name, "size": len(self.files[name]), "type": "file"}

    def _listed(self, path: str) -> dict[str, Any]:
        below = path.removeprefix("slow://").strip("/")
        return {
            name: {"name": name, "size": len(data), "type": "file"}
            for name, data in sorted(self.files.items())
            if name == below or name.startswith(below + "/" if below else "")
        }

    def _entries(self, path: str) -> list[dict[str, Any]]:
        below = path.removeprefix("slow://").strip("/")
        found: dict[str, dict[str, Any]] = {}
        for name, info in self._listed(path).items():
            if name == below:
                return [info]
            first = name[len(below) :].strip("/").partition("/")
            full = f"{below}/{first[0]}".strip("/")
            found[full] = info if not first[1] else {"name": full, "size": 0, "type": "directory"}
        if not found:
            raise FileNotFoundError(path)
        return list(found.values())


class LoopingStore(_Store, AbstractFileSystem):
    """It has no requests of several ranges, as most file systems of fsspec."""

    def __init__(self, files: Mapping[str, bytes], delay: float = 0) -> None:
        super().__init__()
        self._set_up(files, delay)
        self.before: Callable[[Request], None] = lambda request: None
        """Called within every request, before it is answered."""

    def _answer(self, request: Request) -> None:
        try:
            self.before(request)
            time.sleep(self.delay)
            error = self.fail(request)
            if error is not None:
                raise error
        finally:
            self.log.end(request)

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        self._answer(self.log.begin(Request("info", path)))
        return self._details(path)

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> Any:
        self._answer(self.log.begin(Request("list", path)))
        found = self._entries(path)
        return found if detail else [info["name"] for info in found]

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any) -> bytes:
        request, data = self._begin_bytes(path, start, end)
        self._answer(request)
        return data


class AsyncStore(_Store, AsyncFileSystem):
    """It makes requests concurrently, as s3fs and gcsfs do."""

    def __init__(self, files: Mapping[str, bytes], delay: float = 0) -> None:
        super().__init__()
        self._set_up(files, delay)

    async def _answer(self, request: Request) -> None:
        try:
            await asyncio.sleep(self.delay)
            error = self.fail(request)
            if error is not None:
                raise error
        finally:
            self.log.end(request)

    async def _info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        await self._answer(self.log.begin(Request("info", path)))
        return self._details(path)

    async def _ls(self, path: str, detail: bool = True, **kwargs: Any) -> Any:
        await self._answer(self.log.begin(Request("list", path)))
        found = self._entries(path)
        return found if detail else [info["name"] for info in found]

    async def _find(self, path: str, maxdepth: int | None = None, withdirs: bool = False, **kwargs: Any) -> Any:
        """In one request, as object stores list all keys of a prefix."""
        await self._answer(self.log.begin(Request("list", path)))
        root = path.removeprefix("slow://").strip("/")
        found = dict(self._listed(path))
        for name in list(found) if withdirs else ():
            while (name := name.rpartition("/")[0]) and len(name) > len(root):
                found[name] = {"name": name, "size": 0, "type": "directory"}
        depth = root.count("/") + maxdepth if maxdepth else 1000
        found = {name: info for name, info in sorted(found.items()) if name.count("/") <= depth}
        return found if kwargs.get("detail") else list(found)

    async def _cat_file(self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any) -> bytes:
        request, data = self._begin_bytes(path, start, end)
        await self._answer(request)
        return data
