"""A local HTTP server that misbehaves by a script: what it does is decided request by request.

It answers GET, HEAD and ranges as object stores do, so fsspec's HTTP, s3fs and obstore read from it alike.
"""

from __future__ import annotations

import gzip
import http.server
import re
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from conftest import require


@dataclass(frozen=True)
class Asked:
    """One request."""

    number: int
    """From 1."""
    method: str
    headers: Any

    @property
    def range(self) -> str | None:
        found: str | None = self.headers.get("Range")
        return found


@dataclass
class BadServer:
    """What it serves at any path, and how."""

    data: bytes
    etag: str | None = '"one"'
    modified: str | None = "Mon, 05 Jan 2026 10:00:00 GMT"
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    ignores_conditions: bool = False
    ranges: bool = True
    script: Callable[[Asked], str] = lambda asked: ""
    """What to do wrong with a request: ``""`` (nothing), a status (and a space with a body behind it), ``"reset"``,
    ``"short"``, ``"unfinished"`` (short, in a chunked answer that ends well), ``"long"``, ``"gzip"``, ``"whole"``,
    ``"elsewhere"`` (another range) or ``"star"`` (the size of the file is not stated)."""
    wait: str = ""
    """``Retry-After`` of answers that are a status."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def replace(self, data: bytes, etag: str | None = '"two"', modified: str | None = None) -> None:
        """Another version from now on, a day younger unless ``modified`` says."""
        self.data, self.etag = data, self.etag and etag
        self.modified = self.modified and (modified or "Tue, 06 Jan 2026 10:00:00 GMT")

    def replace_after(self, number: int, data: bytes) -> None:
        """Another version after this many answers."""
        old = self.script

        def script(asked: Asked) -> str:
            if asked.number == number + 1:
                self.replace(data)
            return old(asked)

        self.script = script

    def clear(self) -> None:
        self.asked.clear()
        self.script = lambda asked: ""

    def source(self, kind: str) -> tuple[Any, dict[str, Any]]:
        """What pyparq takes, and the options with it: ``"http"``, ``"s3"``, ``"obstore"`` or ``"obstore-s3"``."""
        import pyparq

        if kind == "http":
            return f"{self.url}/t.parquet", {"storage_options": {"skip_instance_cache": True}}
        if kind == "s3":
            require("s3fs")
            options: dict[str, Any] = {"key": "some-key", "secret": "some-secret", "endpoint_url": self.url}
            options["config_kwargs"] = {"retries": {"max_attempts": 0}}
            return "s3://bucket/t.parquet", {"storage_options": options | {"skip_instance_cache": True}}
        stores: Any = require("obstore.store")
        plain: dict[str, Any] = {"client_options": {"allow_http": True}, "retry_config": {"max_retries": 0}}
        if kind == "obstore":
            return pyparq.ObjectFile(stores.HTTPStore.from_url(self.url, **plain), "t.parquet"), {}
        store = stores.S3Store(
            "bucket", access_key_id="some-key", secret_access_key="some-secret", endpoint=self.url,
            region="us-east-1", virtual_hosted_style_request=False, **plain,
        )  # fmt: skip
        return pyparq.ObjectFile(store, "t.parquet"), {}


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    serves: BadServer

    def log_message(self, *args: Any) -> None:
        return None

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        serves = self.serves
        with serves.lock:
            asked = Asked(len(serves.asked) + 1, self.command, self.headers)
            serves.asked.append(asked)
            wrong = serves.script(asked)
            data, etag, modified = serves.data, serves.etag, serves.modified
        if wrong == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
            return
        status, _, body = wrong.partition(" ")
        if status.isdigit():
            self._send(int(status), body.encode(), {"Retry-After": serves.wait or None})
            return
        headers = {"ETag": etag, "Last-Modified": modified}
        if not serves.ignores_conditions and self._refused(etag, modified):
            self._send(412, b"", headers)
            return
        self._send_part(data, headers, wrong)

    def _refused(self, etag: str | None, modified: str | None) -> bool:
        wanted, since = self.headers.get("If-Match"), self.headers.get("If-Unmodified-Since")
        if wanted is not None:
            return wanted != etag or etag.startswith("W/")
        return since is not None and modified is not None and _date(modified) > _date(since)

    def _send_part(self, data: bytes, headers: dict[str, str | None], wrong: str) -> None:
        found = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range") or "")
        if found is None or not self.serves.ranges or wrong == "whole":
            self._send(200, data, headers, wrong)
            return
        size = len(data)
        first = int(found[1]) if found[1] else max(size - int(found[2]), 0)
        last = min(int(found[2]), size - 1) if found[1] and found[2] else size - 1
        if wrong == "elsewhere":
            first, last = first - 1, last - 1
        if first > last:
            self._send(416, b"", headers | {"Content-Range": f"bytes */{size}"})
            return
        stated = f"bytes {first}-{last}/{'*' if wrong == 'star' else size}"
        self._send(206, data[first : last + 1], headers | {"Content-Range": stated}, wrong)

    def _send(self, status: int, body: bytes, headers: dict[str, str | None], wrong: str = "") -> None:
        self.send_response(status)
        for name, value in headers.items():
            if value is not None:
                self.send_header(name, value)
        wrong = wrong if self.command == "GET" else ""
        promised, chunked = len(body), wrong == "unfinished"
        if wrong == "gzip":
            body = gzip.compress(body)
            promised = len(body)
            self.send_header("Content-Encoding", "gzip")
        if wrong in ("short", "unfinished"):
            body = body[: len(body) // 2]
        if wrong == "long":
            body += b"more"
            promised = len(body)
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
            body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        else:
            self.send_header("Content-Length", str(promised))
        self.end_headers()
        if self.command == "GET":
            with suppress(ConnectionError):
                self.wfile.write(body)
        self.close_connection = wrong == "short"


def _date(text: str) -> Any:
    from email.utils import parsedate_to_datetime

    return parsedate_to_datetime(text)


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients go away: nothing is printed."""


@contextmanager
def serve(data: bytes, tls: ssl.SSLContext | None = None, **how: Any) -> Iterator[BadServer]:
    """Run one on localhost. ``tls``: with its certificate, by HTTPS."""
    serves = BadServer(data, **how)
    handler = type("Handler", (_Handler,), {"serves": serves})
    running = _Server(("127.0.0.1", 0), handler)
    running.daemon_threads = True
    if tls is not None:
        running.socket = tls.wrap_socket(running.socket, server_side=True)
    serves.url = f"http{'s' * (tls is not None)}://127.0.0.1:{running.server_port}"
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield serves
    finally:
        running.shutdown()
        thread.join()
        running.server_close()
