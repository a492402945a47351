"""A folder as an S3 bucket, behind a network that takes a while: every request is answered after a delay.

``python benchmarks/s3_store.py FOLDER --delay 0.03`` serves the folder as the bucket ``lake`` and prints its URL; with
``--rate 80e6`` each answer takes the time of so many bytes a second, too. It knows GET with ranges, HEAD, PUT, uploads
in parts, DELETE and lists of 1,000 objects. Each request is noted, and ``GET /?log`` tells what was asked since the
last time: number, bytes, and the serial trips (the longest chain of requests that each began after the one before had
ended).
"""

from __future__ import annotations

import argparse
import asyncio
import bisect
import hashlib
import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, unescape

from aiohttp import web

PAGE = 1000


@dataclass
class Log:
    """What was asked."""

    spans: list[tuple[int, int]] = field(default_factory=list)
    lists: int = 0
    bytes: int = 0
    clock: int = 0

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def told(self) -> dict[str, int]:
        """Requests, lists among them, bytes, and serial trips; and forget them."""
        trips, free = 0, 0
        for begun, ended in sorted(self.spans, key=lambda span: span[1]):
            if begun > free:
                trips, free = trips + 1, ended
        found = {"requests": len(self.spans), "lists": self.lists, "bytes": self.bytes, "trips": trips}
        self.spans, self.lists, self.bytes = [], 0, 0
        return found


class Store:
    """The bucket."""

    def __init__(self, folder: Path, delay: float, rate: float = 0) -> None:
        """``rate``: bytes a second of one answer; 0: as many as there may be."""
        self._folder = folder
        self._delay = delay
        self._rate = rate
        self._log = Log()
        self._keys: list[str] = []
        self._facts: dict[str, tuple[int, str]] = {}
        self._uploads: dict[str, dict[int, bytes]] = {}
        for inner, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(inner, name)
                self._note(os.path.relpath(path, folder), path)
        self._keys = sorted(self._facts)

    def _note(self, key: str, path: str) -> None:
        status = os.stat(path)
        tag = hashlib.md5(f"{key} {status.st_size} {status.st_mtime_ns} {status.st_ino}".encode()).hexdigest()
        self._facts[key] = status.st_size, f'"{tag}"'

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.query_string == "log":
            return web.json_response(self._log.told())
        begun = self._log.tick()
        await asyncio.sleep(self._delay)
        try:
            answer = await self._answered(request)
            if self._rate and isinstance(answer, web.Response) and answer.body is not None:
                await asyncio.sleep(len(answer.body) / self._rate)  # type: ignore[arg-type]
            return answer
        finally:
            self._log.spans.append((begun, self._log.tick()))

    async def _answered(self, request: web.Request) -> web.StreamResponse:
        _, _, key = request.path.lstrip("/").partition("/")
        if not key and request.method == "POST":
            return self._removed(await request.text())
        if not key:
            return self._listed(request.query)
        if request.method == "POST" or "uploadId" in request.query:
            return await self._in_parts(key, request)
        if request.method == "PUT":
            return await self._put(key, await request.read())
        if key not in self._facts:
            body = "" if request.method == "HEAD" else "<Error><Code>NoSuchKey</Code><Message>no</Message></Error>"
            return web.Response(status=404, text=body, content_type="application/xml")
        if request.method == "DELETE":
            self._remove(key)
            return web.Response(status=204)
        return self._object(request, key)

    def _remove(self, key: str) -> None:
        if key in self._facts:
            os.unlink(self._folder / key)
            del self._facts[key]
            self._keys.remove(key)

    def _removed(self, text: str) -> web.Response:
        """Many objects at once."""
        for key in re.findall("<Key>(.*?)</Key>", text):
            self._remove(unescape(key))
        return _xml("DeleteResult", "")

    async def _in_parts(self, key: str, request: web.Request) -> web.Response:
        """Begin an upload, take one of its parts, complete it, or give it up."""
        upload = request.query.get("uploadId") or f"upload-{len(self._uploads)}"
        if request.method == "PUT":
            self._uploads[upload][int(request.query["partNumber"])] = await request.read()
            return web.Response(headers={"ETag": f'"{request.query["partNumber"]}"'})
        if request.method == "DELETE":
            self._uploads[upload] = {}
            return web.Response(status=204)
        if "uploadId" not in request.query:
            self._uploads[upload] = {}
            told = f"<UploadId>{upload}</UploadId>"
            return _xml("InitiateMultipartUploadResult", f"<Bucket>lake</Bucket><Key>{escape(key)}</Key>{told}")
        parts, self._uploads[upload] = self._uploads[upload], {}
        put = await self._put(key, b"".join(parts[number] for number in sorted(parts)))
        tag = f"<ETag>{escape(put.headers['ETag'])}</ETag>"
        return _xml("CompleteMultipartUploadResult", f"<Bucket>lake</Bucket><Key>{escape(key)}</Key>{tag}")

    async def _put(self, key: str, data: bytes) -> web.Response:
        if key.endswith("/"):  # a mark of a folder
            return web.Response(headers={"ETag": '"folder"'})
        path = self._folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        if key not in self._facts:
            bisect.insort(self._keys, key)
        self._note(key, str(path))
        return web.Response(headers={"ETag": self._facts[key][1]})

    def _object(self, request: web.Request, key: str) -> web.Response:
        size, tag = self._facts[key]
        headers = {"ETag": tag, "Accept-Ranges": "bytes", "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}
        if request.headers.get("If-Match", tag) != tag:
            return web.Response(status=412)
        if request.method == "HEAD":
            return web.Response(headers=headers | {"Content-Length": str(size)})
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", request.headers.get("Range", ""))
        first, last = 0, size
        if wanted:
            first = max(size - int(wanted[2]), 0) if not wanted[1] else int(wanted[1])
            last = size if not wanted[1] or not wanted[2] else min(int(wanted[2]) + 1, size)
            headers["Content-Range"] = f"bytes {first}-{last - 1}/{size}"
        with open(self._folder / key, "rb") as file:
            file.seek(first)
            data = file.read(last - first)
        self._log.bytes += len(data)
        return web.Response(status=206 if wanted else 200, body=data, headers=headers)

    def _listed(self, query: Any) -> web.Response:
        self._log.lists += 1
        prefix, most = query.get("prefix", ""), min(int(query.get("max-keys", PAGE)), PAGE)
        after = query.get("continuation-token") or query.get("start-after", "")
        at = max(bisect.bisect_left(self._keys, prefix), bisect.bisect_right(self._keys, after) if after else 0)
        found, common = [], dict[str, None]()
        delimiter = query.get("delimiter", "")
        while at < len(self._keys) and self._keys[at].startswith(prefix) and len(found) + len(common) < most:
            key = self._keys[at]
            inner = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
            if inner[1]:
                common[prefix + inner[0] + delimiter] = None
            else:
                found.append(key)
            at += 1
        more = at < len(self._keys) and self._keys[at].startswith(prefix)
        parts = [
            f"<Contents><Key>{escape(key)}</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified>"
            f"<ETag>{escape(self._facts[key][1])}</ETag><Size>{self._facts[key][0]}</Size></Contents>"
            for key in found
        ]
        parts += [f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in common]
        token = f"<NextContinuationToken>{escape(self._keys[at - 1])}</NextContinuationToken>" if more else ""
        body = (
            '<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>lake</Name>'
            f"<Prefix>{escape(prefix)}</Prefix><KeyCount>{len(parts)}</KeyCount><MaxKeys>{most}</MaxKeys>"
            f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}{''.join(parts)}</ListBucketResult>"
        )
        return web.Response(text=body, content_type="application/xml")


def _xml(name: str, content: str) -> web.Response:
    body = f'<?xml version="1.0"?><{name} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{content}</{name}>'
    return web.Response(text=body, content_type="application/xml")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--delay", type=float, default=0.03)
    parser.add_argument("--rate", type=float, default=0)
    parser.add_argument("--port", type=int, default=0)
    given = parser.parse_args()

    async def serve() -> None:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{tail:.*}", Store(given.folder, given.delay, given.rate).answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", given.port, backlog=1024)
        await site.start()
        address = site._server.sockets[0].getsockname()  # type: ignore[union-attr]
        print(json.dumps({"url": f"http://127.0.0.1:{address[1]}"}), flush=True)
        await asyncio.Event().wait()

    asyncio.run(serve())


if __name__ == "__main__":
    main()
