"""Sources that people write in other ways: protocols in capitals, caches in front of a store, open files."""

from __future__ import annotations

import functools
import http.server
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import require
from s3_server import BUCKET, S3, serve

import pyparq
from pyparq import ChangedFileError, CorruptFileError, OptionError, col

fsspec: Any = require("fsspec")


@pytest.fixture
def memory() -> Iterator[Any]:
    fs = fsspec.filesystem("memory")
    for k in range(3):
        pyparq.write_table({"id": [k, k + 10]}, f"memory://odd/part={k}/{k}.parquet")
    yield fs
    fs.rm("/odd", recursive=True)


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with serve() as running:
        yield running


def test_protocols_in_capitals(memory: Any) -> None:
    assert pyparq.read_table("MEMORY://odd/part=1/1.parquet")["id"].to_pylist() == [1, 11]
    assert pyparq.dataset("Memory://odd/").count() == 6
    pyparq.write_table({"id": [1]}, "MEMORY://odd/part=1/new.parquet")
    assert memory.exists("/odd/part=1/new.parquet")


@pytest.mark.parametrize("cache", ["simplecache", "filecache"])
def test_folders_behind_a_cache(memory: Any, tmp_path: Path, cache: str) -> None:
    options = {cache: {"cache_storage": str(tmp_path)}}
    ds = pyparq.dataset(f"{cache}::memory://odd/", storage_options=options)
    assert ds.read(filters=col("part") == 2).to_pydict() == {"id": [2, 12], "part": [2, 2]}
    assert list(tmp_path.iterdir()), "the cache keeps the file"
    assert pyparq.dataset(f"{cache}::memory://odd/*/*.parquet", storage_options=options).count() == 6


def test_open_files_are_read_through_their_file_system(s3: S3) -> None:
    """A file object of fsspec reads 5 MB ahead for each small read."""
    rows = 400_000
    table = {"id": np.arange(rows), "noise": np.random.default_rng(0).random(rows)}
    pyparq.write_table(table, f"s3://{BUCKET}/open.parquet", compression="none", storage_options=s3.options)
    fs = s3.fs()
    s3.asked.clear()
    with fs.open(f"{BUCKET}/open.parquet", "rb") as file, pyparq.ParquetFile(file) as parquet:
        assert parquet.read(["id"], filters=col("id") == 77).num_rows == 1
        ranges = [part for method, _, part in s3.asked if method == "GET" and part]
        sizes = [int(b) - int(a or 0) if a else int(b) for a, b in (p[6:].split("-") for p in ranges)]
        assert sum(sizes) < 1_000_000
    with fs.open(f"{BUCKET}/open.parquet", "rb") as file:
        parquet = pyparq.ParquetFile(file)
    with pytest.raises(OptionError, match="closed"):
        parquet.read()


def test_an_open_file_that_was_replaced(s3: S3) -> None:
    pyparq.write_table({"id": [1, 2, 3]}, f"s3://{BUCKET}/mine.parquet", storage_options=s3.options)
    with s3.fs().open(f"{BUCKET}/mine.parquet", "rb") as file:
        pyparq.write_table({"id": [4, 5, 6]}, f"s3://{BUCKET}/mine.parquet", storage_options=s3.options)
        with pytest.raises(ChangedFileError):
            pyparq.read_table(file)


def test_in_place_replaces_only_what_was_read(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program writes right before the new file is put: its file stays."""
    from pyparq.io.remote_sinks import FsspecSink

    monkeypatch.setenv("PYPARQ_FILESYSTEM", "fsspec")

    url = f"s3://{BUCKET}/mine.parquet"
    pyparq.write_table({"id": [1, 2, 3]}, url, storage_options=s3.options)
    commit = FsspecSink.commit
    others = []

    def late(self: FsspecSink) -> None:
        if not others:
            others.append(1)
            pyparq.write_table({"id": [7, 8, 9]}, url, storage_options=s3.options)
        commit(self)

    monkeypatch.setattr(FsspecSink, "commit", late)
    with pytest.raises(ChangedFileError):
        pyparq.add_indexes(url, bloom_filters=["id"], storage_options=s3.options)
    monkeypatch.undo()
    assert pyparq.read_table(url, storage_options=s3.options)["id"].to_pylist() == [7, 8, 9]
    assert pyparq.add_indexes(url, bloom_filters=["id"], storage_options=s3.options).ok
    assert pyparq.edit_metadata(url, update={"a": "b"}, storage_options=s3.options) == 1
    assert pyparq.read_table(url, storage_options=s3.options)["id"].to_pylist() == [7, 8, 9]


class Refusal(Exception):
    """As botocore raises it."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.response = {
            "ResponseMetadata": {"HTTPStatusCode": status}, "Error": {"Code": code, "Message": message},
        }  # fmt: skip


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [(400, "ExpiredToken", PermissionError), (403, "AccessDenied", PermissionError),
     (400, "InvalidToken", PermissionError), (400, "InvalidRequest", OSError),
     (409, "ConditionalRequestConflict", ChangedFileError)],
)  # fmt: skip
def test_errors_keep_the_code_and_the_message(status: int, code: str, kind: type[Exception]) -> None:
    from pyparq.io.url import plain_errors

    with pytest.raises(kind) as raised, plain_errors("s3://a/b", "a/b"):
        raise Refusal(status, code, "The provided token has expired.")
    if kind is not ChangedFileError:
        assert f"{status} {code}: The provided token has expired." in str(raised.value)
        assert isinstance(raised.value, PermissionError) == (kind is PermissionError)


def test_errors_of_obstore_keep_them_too() -> None:
    from pyparq.io.object_requests import plain_error

    class GenericError(Exception):
        pass

    body = "<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"
    error = plain_error(GenericError(f"Generic S3 error: status code: 400 Bad Request: {body}"), "s3://a/b")
    assert isinstance(error, PermissionError)
    assert "ExpiredToken: The provided token has expired." in str(error)


@pytest.fixture
def web(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A web server of a folder, which shows pages of links for folders."""
    folder = tmp_path / "web"
    for day in (1, 2):
        (folder / "d" / f"day={day}").mkdir(parents=True)
        pyparq.write_table({"id": [day]}, folder / "d" / f"day={day}" / "a b.parquet")
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}", folder
        running.shutdown()
        thread.join()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        return None


def test_folders_of_a_web_server(web: tuple[str, Path]) -> None:
    """They are pages of links, which are not followed: the message says what to give."""
    assert pyparq.read_table(f"{web[0]}/d/day=1/a%20b.parquet").to_pydict() == {"id": [1]}
    for read in (pyparq.read_table, pyparq.dataset):
        with pytest.raises(CorruptFileError, match=r"a web page.*give the URLs of the files"):
            read(f"{web[0]}/d/").schema  # noqa: B018


def test_files_of_archives(web: tuple[str, Path], memory: Any) -> None:
    archive = web[1] / "z.zip"
    with zipfile.ZipFile(archive, "w") as made:
        for path in sorted((web[1] / "d").rglob("*.parquet")):
            made.write(path, path.relative_to(web[1]).as_posix())
    memory.pipe_file("/z.zip", archive.read_bytes())
    for where in (archive, "memory://z.zip"):
        assert pyparq.read_table(f"zip://d/day=1/a b.parquet::{where}").to_pydict() == {"id": [1]}
        urls = [f"zip://d/day={day}/a b.parquet::{where}" for day in (1, 2)]
        assert pyparq.dataset(urls).count(col("id") == 2) == 1
