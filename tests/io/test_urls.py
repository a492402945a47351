"""Files behind URLs: servers with and without ranges, what goes wrong on the way, options, secrets that stay secret."""

from __future__ import annotations

import http.server
import pickle
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import require
from encryption_tools import kms_file, local_kms

import pyparq
from pyparq import ParquetFile, col
from pyparq.encryption.keytools import CryptoFactory, EncryptionConfiguration
from pyparq.errors import OptionError, ParquetError, UnsupportedError
from pyparq.io import url as urls

fsspec: Any = require("fsspec")
require("aiohttp")

ROWS = 60_000
TABLE = pa.table(
    {
        "n": pa.array(range(ROWS)),
        "x": pa.array(np.random.default_rng(1).random(ROWS)),
        "s": [f"word {n * 7919 % 1009}" for n in range(ROWS)],
    }
)


class Handler(http.server.BaseHTTPRequestHandler):
    """The first part of a path says how the server behaves."""

    data: ClassVar[bytes] = b""
    asked: ClassVar[list[tuple[str, str, str | None]]] = []
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        return None

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, body: bool) -> None:
        how = self.path.split("?")[0].split("/")[1]
        Handler.asked.append((self.command, how, self.headers.get("Range")))
        if how.isdigit():
            self.send_response(int(how))
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if how == "nohead" and not body:
            self.send_error(501)
            return
        if how == "token" and self.headers.get("Authorization") != "Bearer let-me-in":
            self.send_error(401)
            return
        found = re.fullmatch(r"bytes=(\d*)-(\d+)", self.headers.get("Range") or "")
        data, status = self.data, 200
        if found and how == "nosuffix" and not found[1]:
            found = None
        if found and how in ("ranges", "nohead", "drop", "token", "nosuffix"):
            first, last = int(found[1] or max(len(data) - int(found[2]), 0)), min(int(found[2]), len(data) - 1)
            last = last if found[1] else len(data) - 1
            data, status = data[first : last + 1], 206
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(self.data)}")
        if how == "nosuffix":
            self.send_header("Accept-Ranges", "bytes")
        if how == "unknown":  # neither a length nor chunks: the end of the connection is the end of the file
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if body:
            with suppress(ConnectionError):  # nobody has to read what was not asked for
                self.wfile.write(data[: len(data) // 2] if how == "drop" else data)
        self.close_connection = how in ("drop", "unknown")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """``http://127.0.0.1:port``, of a server of one file."""
    path = tmp_path_factory.mktemp("http") / "t.parquet"
    pq.write_table(TABLE, path, row_group_size=20_000, write_page_index=True, compression="none", store_schema=False)
    Handler.data = path.read_bytes()
    assert len(Handler.data) > 200_000, "or the first request already holds all of it"
    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.daemon_threads = True
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{running.server_port}"
    running.shutdown()
    thread.join()
    running.server_close()


@pytest.fixture(autouse=True)
def fresh() -> None:
    Handler.asked.clear()


def gets() -> list[tuple[str, str, str | None]]:
    return [asked for asked in Handler.asked if asked[0] == "GET"]


# ---- servers


@pytest.mark.parametrize("how", ["ranges", "nohead", "nosuffix", "plain", "unknown"])
@pytest.mark.parametrize("use_threads", [True, False])
def test_any_server(server: str, how: str, use_threads: bool) -> None:
    assert pyparq.read_table(f"{server}/{how}/t.parquet", use_threads=use_threads).to_arrow() == TABLE


def test_only_what_is_needed_is_asked_for(server: str) -> None:
    found = pyparq.read_table(f"{server}/ranges/t.parquet", ["n"], col("n") == 30_000, coalesce_gap=0)
    assert found.to_pydict() == {"n": [30_000]}
    assert gets()
    assert all(asked[2] is not None for asked in gets())


@pytest.mark.parametrize("how", ["ranges", "nohead"])
def test_the_end_and_the_size_are_one_request(server: str, how: str) -> None:
    assert pyparq.read_metadata(f"{server}/{how}/t.parquet").num_rows == ROWS
    assert [(method, part) for method, _, part in Handler.asked] == [("GET", "bytes=-131072")]


def test_a_server_that_knows_no_ranges_from_the_end(server: str) -> None:
    """It says that it knows ranges, so what it sends instead, the whole file, is not waited for."""
    assert pyparq.read_metadata(f"{server}/nosuffix/t.parquet").num_rows == ROWS
    size = len(Handler.data)
    assert [part for _, _, part in Handler.asked] == ["bytes=-131072", f"bytes={size - 131072}-{size - 1}"]


@pytest.mark.parametrize("how", ["plain", "unknown"])
def test_a_server_without_ranges_sends_the_file_once(server: str, how: str) -> None:
    """One whole read for all that is asked then."""
    with ParquetFile(f"{server}/{how}/t.parquet") as file:
        for k in range(3):
            assert file.read_row_group(k).num_rows == 20_000
        assert file.read(filters=col("n") == 30_000).num_rows == 1
    assert len(Handler.asked) == 1


def test_a_server_that_answers_with_something_else(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the range nor the file: that is said, not read."""
    monkeypatch.setattr(Handler, "data", Handler.data)
    with ParquetFile(f"{server}/plain/t.parquet") as file:
        monkeypatch.setattr(Handler, "data", Handler.data[:-1])
        assert file.read().num_rows == ROWS, "what came when the file was opened is still the file"
    fs = fsspec.filesystem("memory")
    fs.pipe_file("/other.parquet", Handler.data)
    monkeypatch.setattr(type(fs), "cat_file", lambda *args, **kw: b"x" * 77)
    with pytest.raises(ConnectionError, match="77 bytes instead of"):
        pyparq.read_table("memory://other.parquet", retry_wait=0.001)


# ---- what goes wrong


@pytest.mark.parametrize(
    ("status", "kind", "told"),
    [
        (404, FileNotFoundError, "No such file"),
        (410, FileNotFoundError, "No such file"),
        (403, PermissionError, "403 Forbidden"),
        (401, PermissionError, "401 Unauthorized"),
        (500, OSError, "500 Internal Server Error"),
        (503, OSError, "503 Service Unavailable"),
    ],
)
def test_answers_that_are_errors(server: str, status: int, kind: type[OSError], told: str) -> None:
    for read in (pyparq.read_table, pyparq.read_metadata, pyparq.read_schema):
        with pytest.raises(OSError, match=told) as caught:
            read(f"{server}/{status}/t.parquet", retry_wait=0.001)
        assert type(caught.value) is kind
        assert caught.value.filename == f"{server}/{status}/t.parquet"


def test_an_error_after_opening(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is there, its bytes are not given out."""
    real = Handler.answer

    def refuse(self: Handler, body: bool) -> None:
        if body:
            self.send_error(403)
        else:
            real(self, body)

    monkeypatch.setattr(Handler, "answer", refuse)
    with pytest.raises(PermissionError, match="403 Forbidden"):
        pyparq.read_table(f"{server}/ranges/t.parquet")


def test_no_server() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/t.parquet"
        with pytest.raises(ConnectionError) as caught:
            pyparq.read_table(url, retry_wait=0.001)
    assert caught.value.filename == url


def test_no_such_host() -> None:
    with pytest.raises(OSError, match=r"nowhere\.invalid") as caught:
        pyparq.read_table("http://nowhere.invalid/t.parquet", retry_wait=0.001)
    assert not isinstance(caught.value, FileNotFoundError)


def test_a_connection_that_ends_in_the_middle(server: str) -> None:
    with pytest.raises(ConnectionError) as caught:
        pyparq.read_table(f"{server}/drop/t.parquet", retry_wait=0.001)
    assert caught.value.filename == f"{server}/drop/t.parquet"


def test_a_server_that_does_not_answer(server: str) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        aiohttp: Any = require("aiohttp")
        options = {"client_kwargs": {"timeout": aiohttp.ClientTimeout(total=0.2)}}
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/t.parquet"
        with pytest.raises(TimeoutError):
            pyparq.read_table(url, storage_options=options, retry_wait=0.001)


def test_a_place_that_cannot_be_written_to(server: str) -> None:
    with pytest.raises(UnsupportedError, match=r"ranges/new\.parquet"):
        pyparq.write_table(TABLE, f"{server}/ranges/new.parquet")


# ---- secrets

SECRET = "do-not-show-this"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:do-not-show-this@host/a/b.parquet", "https://host/a/b.parquet"),
        ("https://do-not-show-this@host:8080/b.parquet?x=1#y", "https://host:8080/b.parquet"),
        ("ftp://user:do-not-show-this@tail@host/b.parquet", "ftp://host/b.parquet"),
        ("https://host/b.parquet?X-Amz-Signature=do-not-show-this", "https://host/b.parquet"),
        ("https://host?sig=do-not-show-this/x@y", "https://host"),
        ("simplecache::https://u:do-not-show-this@host/b.parquet?sig=1", "simplecache::https://host/b.parquet"),
        ("zip://a.parquet::ftp://u:do-not-show-this@host/b.zip", "zip://a.parquet::ftp://host/b.zip"),
        ("s3://bucket/what?.parquet", "s3://bucket/what?.parquet"),
        ("abfs://container@account/a@b.parquet", "abfs://container@account/a@b.parquet"),
        ("memory://a/b.parquet", "memory://a/b.parquet"),
    ],
)
def test_what_is_shown_of_a_url(url: str, shown: str) -> None:
    assert urls.shown(url) == shown


@pytest.mark.parametrize("how", ["403", "404", "500", "drop", "closed"])
def test_no_error_shows_a_secret(server: str, how: str, capsys: pytest.CaptureFixture[str]) -> None:
    host = server.removeprefix("http://") if how != "closed" else "127.0.0.1:1"
    url = f"http://user:{SECRET}@{host}/{how}/t.parquet?sig={SECRET}"
    with pytest.raises((OSError, ParquetError)) as caught:
        pyparq.read_table(url, retry_wait=0.001)
    assert_hidden(caught)
    with pytest.raises((OSError, ParquetError)) as caught:
        pyparq.write_table(TABLE, url)
    assert_hidden(caught)


def assert_hidden(caught: pytest.ExceptionInfo[BaseException]) -> None:
    import traceback

    # The last frames hold this test's own text.
    text = "".join(traceback.format_exception_only(caught.value)) + repr(caught.value) + repr(caught.value.args)
    assert SECRET not in text
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_an_unknown_protocol_shows_no_secret() -> None:
    for use in (pyparq.read_table, lambda url: pyparq.write_table(TABLE, url)):
        with pytest.raises(OptionError) as caught:
            use(f"nothing://user:{SECRET}@host/t.parquet")
        assert SECRET not in str(caught.value)


def test_no_name_and_no_plan_holds_a_secret(server: str) -> None:
    url = f"{server}/ranges/t.parquet?sig={SECRET}"
    headers = {"headers": {"X-Token": SECRET}}
    with ParquetFile(url, storage_options=headers) as file:
        scan = file.scan(["n"], col("n") < 10)
        plan = scan.plan()
        for text in (repr(file), repr(scan), str(scan.explain()), repr(plan), repr(file.metadata)):
            assert SECRET not in text
        assert SECRET.encode() not in pickle.dumps(plan)
        assert plan.source == f"{server}/ranges/t.parquet"
        again = pickle.loads(pickle.dumps(plan))
    with ParquetFile(url, storage_options=headers) as elsewhere:
        assert elsewhere.execute(again).num_rows == 10


def test_options_that_are_secret_are_not_in_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    fs = type(fsspec.filesystem("memory"))

    def fail(self: Any, path: str, **kw: Any) -> int:
        raise RuntimeError(f"bad key {SECRET} for {path}")

    monkeypatch.setattr(fs, "info", fail)
    with pytest.raises(OSError, match="RuntimeError: bad key") as caught:
        pyparq.read_table("memory://x.parquet", storage_options={"secret_key": SECRET})
    assert SECRET not in str(caught.value)


# ---- storage_options and fsspec's objects


def test_storage_options_reach_the_file_system(server: str) -> None:
    url, options = f"{server}/token/t.parquet", {"headers": {"Authorization": "Bearer let-me-in"}}
    with pytest.raises(PermissionError):
        pyparq.read_table(url)
    assert pyparq.read_table(url, storage_options=options).to_arrow() == TABLE
    assert pyparq.read_schema(url, storage_options=options).names == TABLE.column_names
    assert pyparq.read_metadata(url, storage_options=options).num_rows == ROWS
    with ParquetFile(url, storage_options=options) as file:
        assert file.read_row_group(1).num_rows == 20_000


def test_writing_with_storage_options() -> None:
    """Handed to the file system: a folder of its own here (fsspec's dirfs)."""
    memory = fsspec.filesystem("memory")
    options = {"target_protocol": "memory", "path": "/below"}
    pyparq.write_table(TABLE, "dir://a.parquet", storage_options=options | {"fo": None})
    with pyparq.ParquetWriter("dir://b.parquet", storage_options=options) as writer:
        writer.write(TABLE)
    for name in "ab":
        assert pq.read_table(memory.open(f"/below/{name}.parquet")).equals(TABLE)
        assert pyparq.read_table(f"dir://{name}.parquet", storage_options=options).to_arrow() == TABLE


def test_storage_options_of_local_files_are_harmless(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(TABLE, path)
    options = {"key": SECRET}
    for where in (path, str(path), path.as_uri(), path.read_bytes(), open(path, "rb"), tmp_path):  # noqa: SIM115
        assert pyparq.read_table(where, storage_options=options).num_rows == ROWS
    pyparq.write_table(TABLE, tmp_path / "new.parquet", storage_options=options)
    assert pyparq.dataset(tmp_path, storage_options=options).count() == 2 * ROWS
    with pytest.raises(OptionError, match="must be a dict"):
        pyparq.read_table("memory://x", storage_options=[SECRET])  # type: ignore[arg-type]
    assert pyparq.read_table(path, storage_options={}).num_rows == ROWS


Opened = Callable[[str, str], Any]
OPENED: dict[str, Opened] = {
    "fsspec.open": lambda url, mode: fsspec.open(url, mode),
    "an open file": lambda url, mode: fsspec.open(url, mode).open(),
    "filesystem.open": lambda url, mode: fsspec.core.url_to_fs(url)[0].open(url, mode),
}


@pytest.mark.parametrize("kind", OPENED)
@pytest.mark.parametrize("local", [True, False])
def test_what_fsspec_opens(kind: str, local: bool, tmp_path: Path) -> None:
    url = f"file://{tmp_path}/t.parquet" if local else f"memory://{tmp_path.name}/t.parquet"
    target = OPENED[kind](url, "wb")
    pyparq.write_table(TABLE, target)
    if hasattr(target, "seek"):
        target.close()
    with fsspec.open(url, "rb") as file:
        assert pq.read_table(file).equals(TABLE)
    source = OPENED[kind](url, "rb")
    assert pyparq.read_table(source).to_arrow() == TABLE
    assert pyparq.read_metadata(source).num_rows == ROWS


def test_what_fsspec_opens_over_http(server: str) -> None:
    source = fsspec.open(f"{server}/plain/t.parquet", "rb", headers={"X-Token": SECRET})
    assert pyparq.read_table(source).to_arrow() == TABLE
    with ParquetFile(source) as file:
        assert SECRET not in repr(file)
    with fsspec.open(f"{server}/ranges/t.parquet", "rb") as opened:
        assert pyparq.read_table(opened).to_arrow() == TABLE


def test_what_fsspec_opens_otherwise(tmp_path: Path) -> None:
    for mode, kw in (("rt", {}), ("rb", {"compression": "gzip"})):
        with pytest.raises(OptionError, match="binary and without compression"):
            pyparq.read_table(fsspec.open(f"{tmp_path}/t.parquet", mode, **kw))
    with pytest.raises(OptionError, match="with mode 'wb'"):
        pyparq.write_table(TABLE, fsspec.open(f"{tmp_path}/t.parquet", "rb"))


def test_key_material_beside_a_url_takes_its_options(tmp_path: Path) -> None:
    """External key material is read and written by the file system of the file itself."""
    factory = CryptoFactory(lambda config: local_kms(kms_file(tmp_path / "kms.json")))
    external = EncryptionConfiguration("kf", uniform_encryption=True, internal_key_material=False)
    keys = factory.file_encryption_properties(None, external)
    options = {"target_protocol": "memory", "path": f"/{tmp_path.name}"}
    pyparq.write_table(TABLE, "dir://sub/a.parquet", storage_options=options, encryption=keys)
    names = fsspec.filesystem("memory").ls(f"/{tmp_path.name}/sub", detail=False)
    assert sorted(n.rpartition("/")[2] for n in names) == ["_KEY_MATERIAL_FOR_a.parquet.json", "a.parquet"]
    found = pyparq.read_table(
        "dir://sub/a.parquet", storage_options=options, decryption=factory.file_decryption_properties()
    )
    assert found.to_arrow() == TABLE
