"""A local S3 server (moto) that notes the requests which it answers."""

from __future__ import annotations

import io
import socket
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from conftest import require
from service_models import keep_models

BUCKET = "bucket"


@dataclass
class S3:
    """A running server with an empty bucket."""

    url: str
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Method, path and query, range of each request."""
    refuse: Callable[[str, str], bool] = lambda method, path: False
    """Whether a request (method, path and query) is answered by "access denied"."""
    script: Callable[[str, str], str] = lambda method, path: ""
    """What to do wrong with a request: ``""`` (nothing), a status, ``"lost"`` (carried out, the answer is lost) or
    ``"short"`` (half of the body)."""
    copies: Callable[[str], str] = lambda path: ""
    """The status by which a part that is to be copied is answered; ``""``: it is copied."""
    ignores_conditions: bool = False
    """Whether it takes no notice of ``If-Match`` and ``If-None-Match``, as old servers do."""

    delay: float = 0.0
    """Seconds before each answer."""
    spans: list[tuple[float, float]] = field(default_factory=list)
    """When each request came, and when its answer was there."""

    @property
    def trips(self) -> int:
        """The longest chain of requests that each came after the one before had been answered."""
        trips, free = 0, 0.0
        for came, answered in sorted(self.spans, key=lambda span: span[1]):
            if came > free:
                trips, free = trips + 1, answered
        return trips

    @property
    def options(self) -> dict[str, Any]:
        """``storage_options`` for it."""
        return {
            "key": "some-key", "secret": "some-secret", "endpoint_url": self.url, "skip_instance_cache": True,
        }  # fmt: skip

    def fs(self) -> Any:
        """An s3fs file system that knows nothing of the bucket yet."""
        s3fs: Any = require("s3fs")
        return s3fs.S3FileSystem(**self.options)


def _wrongly(wrong: str, application: Any, environ: dict[str, Any], start_response: Any) -> Any:
    body: Any = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))  # else the connection is of no use
    environ["wsgi.input"] = io.BytesIO(body)
    if wrong.isdigit():
        start_response(f"{wrong} Not Now", [("Content-Type", "application/xml")])
        return [b"<Error><Code>InternalError</Code><Message>Try again</Message></Error>"]
    answer = application(environ, start_response if wrong == "short" else lambda *args: None)
    whole = b"".join(answer)
    if wrong == "short":
        return [whole[: len(whole) // 2]]
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    raise ConnectionAbortedError


def _condition_fails(environ: dict[str, Any]) -> bool:
    """Whether S3 refuses a part that is copied, or the end of an upload, by its condition. moto does not look at it."""
    tag, place = environ.get("HTTP_X_AMZ_COPY_SOURCE_IF_MATCH"), environ.get("HTTP_X_AMZ_COPY_SOURCE", "")
    if tag is None and environ["REQUEST_METHOD"] == "POST" and "uploadId=" in environ.get("QUERY_STRING", ""):
        tag, place = environ.get("HTTP_IF_MATCH"), environ["PATH_INFO"]
    if tag is None:
        return False
    bucket, _, key = urllib.parse.unquote(place).lstrip("/").partition("/")
    models: Any = require("moto.s3.models")
    stored = models.s3_backends["123456789012"]["aws"].get_object(bucket, key)
    return stored is None or stored.etag.strip('"') != tag.strip('"')


@contextmanager
def serve() -> Iterator[S3]:
    """Run a server on localhost."""
    require("s3fs")
    require("moto")
    keep_models()
    server_module: Any = require("moto.server")
    serving: Any = require("werkzeug.serving")
    found = S3("")
    application = server_module.DomainDispatcherApplication(server_module.create_backend_app)

    def timed(environ: dict[str, Any], start_response: Any) -> Any:
        came = time.monotonic()
        time.sleep(found.delay)
        try:
            return noting(environ, start_response)
        finally:
            found.spans.append((came, time.monotonic()))

    def noting(environ: dict[str, Any], start_response: Any) -> Any:
        query = environ.get("QUERY_STRING", "")
        path = environ["PATH_INFO"] + (f"?{query}" if query else "")
        found.asked.append((environ["REQUEST_METHOD"], path, environ.get("HTTP_RANGE")))
        if found.refuse(environ["REQUEST_METHOD"], path):
            start_response("403 Forbidden", [("Content-Type", "application/xml")])
            return [b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"]
        if found.ignores_conditions:
            for header in ("HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH"):
                environ.pop(header, None)
        if _condition_fails(environ):
            start_response("412 Precondition Failed", [("Content-Type", "application/xml")])
            return [b"<Error><Code>PreconditionFailed</Code><Message>It has changed</Message></Error>"]
        wrong = found.script(environ["REQUEST_METHOD"], path)
        if not wrong and "HTTP_X_AMZ_COPY_SOURCE" in environ and "uploadId=" in query:
            wrong = found.copies(path)
        if not wrong:
            return application(environ, start_response)
        return _wrongly(wrong, application, environ, start_response)

    class Quiet(serving.WSGIRequestHandler):  # type: ignore[misc]
        protocol_version = "HTTP/1.1"

        def log(self, type: str, message: str, *args: Any) -> None:
            return None

    running = serving.make_server("127.0.0.1", 0, timed, threaded=True, request_handler=Quiet)
    running.daemon_threads = True
    found.url = f"http://127.0.0.1:{running.server_port}"
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        # What was stored by another server of this process would still be there.
        urllib.request.urlopen(f"{found.url}/moto-api/reset", data=b"").close()
        found.fs().mkdir(BUCKET)
        found.asked.clear()
        yield found
    finally:
        running.shutdown()
        thread.join()
        running.server_close()
