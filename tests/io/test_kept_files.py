"""Footers and indexes of remote files stay in memory: the next open asks for less, and never gives an older version."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pytest
from bad_server import BadServer
from bad_server import serve as serve_badly
from conftest import require
from s3_server import BUCKET, S3, serve

import pyparq
from pyparq import ChangedFileError, DecryptionProperties, EncryptionProperties, OptionError, ParquetFile, col
from pyparq.io import kept_files
from pyparq.io.remote_file import RemoteFile
from pyparq.io.source import opened_early

require("fsspec")
require("aiohttp")

KINDS = ["http", "s3", "obstore-s3"]
ROWS, STEP = 40_000, 7919


@lru_cache
def data(version: int = 1, encrypted: bool = False) -> bytes:
    """Versions differ in a column and in length."""
    sink, ids = io.BytesIO(), range(ROWS)
    table = {
        "id": list(ids), "key": [i * STEP % 1_000_003 for i in ids], "text": [f"{i * STEP:09} {version}" for i in ids],
        "version": [version] * ROWS,
    }  # fmt: skip
    more: dict[str, Any] = {"encryption": EncryptionProperties(footer_key=b"k" * 16)} if encrypted else {}
    pyparq.write_table(table, sink, row_group_size=10_000, max_rows_per_page=1000, bloom_filters=["key"], **more)
    return sink.getvalue()


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    kept_files.forget_files()
    yield
    pyparq.set_remote_cache_size(64 << 20)
    kept_files.forget_files()


@pytest.fixture
def server() -> Iterator[BadServer]:
    with serve_badly(data()) as running:
        yield running


def key(i: int) -> Any:
    return col("key") == i * STEP % 1_000_003


def read(server: BadServer, kind: str, filters: Any = None, **options: Any) -> dict[str, Any]:
    """Some columns of the rows, read anew from the place."""
    source, given = server.source(kind)
    return pyparq.read_table(source, ["id", "version"], filters, **given, **options).to_pydict()


def asked(server: BadServer) -> list[int]:
    """The bytes of each request since the last time."""
    sizes = []
    for request in server.asked:
        first, last = (request.range or "bytes=0-0").removeprefix("bytes=").split("-")
        sizes.append(int(last) - int(first) + 1 if first else int(last))
    server.asked.clear()
    return sizes


@pytest.mark.parametrize("kind", KINDS)
def test_the_second_open_asks_for_less(server: BadServer, kind: str) -> None:
    """The first asks for the end, the indexes and the rows; the second for the rows."""
    answer = {"id": [17_000], "version": [1]}
    assert read(server, kind, key(17_000), tail_size=1000) == answer
    first = asked(server)
    assert read(server, kind, key(17_000), tail_size=1000) == answer
    wanted = [request.headers.get("If-Match") for request in server.asked]
    second = asked(server)
    assert set(wanted) == {'"one"'}
    assert len(second) < len(first) - 2
    assert sum(second) < sum(first)


@pytest.mark.parametrize("kind", KINDS)
def test_other_keys_are_looked_up_by_the_same_filters(server: BadServer, kind: str) -> None:
    """The second question reads the filters whole, the third asks for the rows alone."""
    for i in (17_000, 3, 25_000):
        asked(server)
        assert read(server, kind, key(i), tail_size=1000)["id"] == [i]
    rows = [request.range for request in server.asked]
    assert len(rows) <= 3  # three columns
    filters = ParquetFile(data()).metadata.row_group(0).column("key").bloom_filter_offset
    assert all(int((part or "").removeprefix("bytes=").partition("-")[0]) < filters for part in rows)
    asked(server)
    assert read(server, kind, col("key") == 6)["id"] == []
    assert asked(server) == [1]


@pytest.mark.sweep(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ignores_conditions", [False, True])
def test_a_file_that_was_replaced_is_read_as_new(server: BadServer, kind: str, ignores_conditions: bool) -> None:
    server.ignores_conditions = ignores_conditions
    for question in (key(17_000), None, key(2), col("id") > 39_990):
        server.replace(data(), '"one"')
        old = read(server, kind, question)
        assert read(server, kind, question) == old
        server.replace(data(2), '"two"')
        found = read(server, kind, question)
        assert found["id"] == old["id"]
        assert set(found["version"]) <= {2}


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_without_rows_is_as_new(server: BadServer, kind: str) -> None:
    """The kept indexes rule out everything. One request tells whether they are those of the file."""
    absent = col("key") == 5
    assert read(server, kind, absent)["id"] == []
    asked(server)
    assert read(server, kind, absent)["id"] == []
    assert asked(server) == [1]
    sink = io.BytesIO()
    pyparq.write_table({"id": [3], "key": [5], "version": [2]}, sink, bloom_filters=["key"])
    server.replace(sink.getvalue())
    assert read(server, kind, absent) == {"id": [3], "version": [2]}


@pytest.mark.parametrize("kind", KINDS)
def test_an_open_file_was_asked_for(server: BadServer, kind: str) -> None:
    """A file that is open shows nothing old, and is one version."""
    source, given = server.source(kind)
    for version in (1, 1, 2, 2, 1):
        server.replace(data(version), f'"{version}"')
        with ParquetFile(source, **given) as file:
            assert file.read(["version"], key(9)).to_pydict() == {"version": [version]}
            assert file.metadata.row_group(0).column("version").bounds.mins[0] == version
    asked(server)
    with ParquetFile(source, **given) as file:
        assert asked(server) == [8]
        server.replace(data(2))
        with pytest.raises(ChangedFileError, match="open it again"):
            file.read(["version"], key(11))
    with ParquetFile(source, **given) as file:
        assert file.read(["version"], key(11)).to_pydict() == {"version": [2]}


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_replaced_after_the_first_answer(server: BadServer, kind: str) -> None:
    """Bytes of two versions are not put together."""
    question = col("text") == f"{17_000 * STEP:09} 1"
    given = {"prefetch_bytes": 0}  # filter columns first, then the others
    assert read(server, kind, question, **given)["id"] == [17_000]
    asked(server)
    assert read(server, kind, question, **given)["id"] == [17_000]
    assert len(asked(server)) >= 2
    server.replace_after(1, data(2))
    with pytest.raises(ChangedFileError):
        read(server, kind, question, **given)
    server.script = lambda asked: ""
    assert read(server, kind, question, **given)["id"] == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("etag", [None, 'W/"one"'])
def test_without_strong_tags_nothing_is_kept(server: BadServer, kind: str, etag: str | None) -> None:
    server.etag = etag
    read(server, kind, key(17_000))
    first = asked(server)
    read(server, kind, key(17_000))
    assert asked(server) == first


@pytest.mark.parametrize("size", [0, 2000])
def test_the_size_is_a_bound(server: BadServer, size: int) -> None:
    """Too little for the footer, or nothing at all."""
    pyparq.set_remote_cache_size(size)
    read(server, "s3", key(17_000))
    first = asked(server)
    read(server, "s3", key(17_000))
    assert asked(server) == first
    assert kept_files._size == 0


def test_what_was_used_last_stays() -> None:
    files = [kept_files.KeptFile(10_000, '"a"', bytes(1000)) for _ in range(9)]
    pyparq.set_remote_cache_size(5 * (1000 + kept_files.OVERHEAD))
    for k in range(5):
        kept_files.keep_file((k,), files[k])
    assert kept_files.kept_file((0,)) is files[0]
    kept_files.keep_file((5,), files[5])
    assert [k for k in range(6) if kept_files.kept_file((k,)) is not None] == [0, 2, 3, 4, 5]
    files[2].keep([((0, 50), memoryview(bytes(50)))])
    assert kept_files.kept_file((0,)) is None  # the least recently used made room
    assert files[2].place(0, 50) == 0
    assert files[2].place(0, 51) is None
    files[0].keep([((0, 50), memoryview(bytes(50)))])  # is read on, but not kept
    assert files[0].place(0, 50) is None
    pyparq.set_remote_cache_size(0)
    assert kept_files._size == 0
    with pytest.raises(OptionError, match="size must be"):
        pyparq.set_remote_cache_size(-1)


def test_other_credentials_ask_anew(server: BadServer) -> None:
    source, given = server.source("s3")
    pyparq.read_table(source, filters=key(9), **given)
    first = asked(server)
    other = {"storage_options": given["storage_options"] | {"key": "other-key"}}
    pyparq.read_table(source, filters=key(9), **other)
    assert asked(server) == first


@dataclass(frozen=True)
class Credentials:
    """They have a hash function, which fails."""

    found: dict[str, Any] = field(default_factory=lambda: {"access_key_id": "key", "secret_access_key": "secret"})

    def __call__(self) -> dict[str, Any]:
        return {**self.found, "token": None, "expires_at": None}


def test_credentials_without_a_hash(server: BadServer) -> None:
    store = require("obstore.store").S3Store(
        "bucket", endpoint=server.url, region="us-east-1", credential_provider=Credentials(),
        client_options={"allow_http": True},
    )  # fmt: skip
    for _ in range(2):
        assert pyparq.read_table(pyparq.ObjectFile(store, "t.parquet"), ["id"]).num_rows == ROWS


def test_keys_are_asked_for_every_time(server: BadServer) -> None:
    """An encrypted footer is kept as it is stored."""
    server.replace(data(1, encrypted=True))
    source, given = server.source("s3")
    right, wrong = (DecryptionProperties(footer_key=k * 16) for k in (b"k", b"w"))
    for _ in range(2):
        assert pyparq.read_table(source, ["id"], key(9), decryption=right, **given).num_rows == 1
    for keys in (wrong, None):
        with pytest.raises(pyparq.EncryptionError):
            pyparq.read_table(source, ["id"], key(9), decryption=keys, **given)


def test_threads(server: BadServer) -> None:
    """Versions come and go while many threads read: each answer is one version."""
    wrong: list[Any] = []

    def ask() -> None:
        for i in range(6):
            try:
                found = read(server, "obstore-s3", key(17_000 + i % 2))
            except ChangedFileError:
                continue
            if found["id"] != [17_000 + i % 2] or found["version"][0] not in (1, 2):
                wrong.append(found)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for k in range(20):
        server.replace(data(1 + k % 2), f'"{k % 2}"')
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
def test_a_forked_child_has_a_lock_of_its_own() -> None:
    with kept_files._lock:
        child = os.fork()
        if child == 0:
            try:
                pyparq.set_remote_cache_size(1000)
                os._exit(0)
            finally:
                os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with serve() as running:
        yield running


def test_filters_of_many_files_are_kept(s3: S3) -> None:
    """They came with the footers, and rule out all files."""
    url, fs = f"s3://{BUCKET}/many", s3.fs()
    for k in range(4):
        fs.pipe_file(f"{url}/{k}.parquet", data(1))
    for i in (6, 8):
        s3.asked.clear()
        dataset = pyparq.dataset(url, storage_options=s3.options, tail_size=128 << 10)
        assert dataset.read(["id"], col("key") == i).num_rows == 0
    assert not [part for _, _, part in s3.asked if part is not None]


def test_a_listing_tells_which_files_are_the_same(s3: S3) -> None:
    """A dataset that is made anew lists its files and asks for no footer."""
    url, fs = f"s3://{BUCKET}/lake", s3.fs()
    for k in range(4):
        fs.pipe_file(f"{url}/{k}.parquet", data(1))

    def versions() -> list[int]:
        found = pyparq.dataset(url, storage_options=s3.options).read(["version"], key(9)).to_pydict()["version"]
        return sorted(found)

    assert versions() == [1] * 4
    s3.asked.clear()
    assert versions() == [1] * 4
    gets = [part for method, path, part in s3.asked if method == "GET" and part is not None]
    assert len(gets) <= 8  # two columns of each file
    assert all(int(part.partition("=")[2].partition("-")[0]) < 100_000 for part in gets)  # far from the end
    fs.pipe_file(f"{url}/2.parquet", data(2))
    assert versions() == [1, 1, 1, 2]


def other_file(**options: Any) -> bytes:
    """A shorter file with other columns and another type."""
    sink = io.BytesIO()
    pyparq.write_table({"key": ["a", "b"], "new": [1, 2]}, sink, **options)
    return sink.getvalue()


@pytest.mark.sweep(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ignores_conditions", [False, True])
def test_what_only_the_new_version_has(server: BadServer, kind: str, ignores_conditions: bool) -> None:
    """What is wrong with a question by the older footer may be right by the new one."""
    server.ignores_conditions = ignores_conditions
    source, given = server.source(kind)
    for options in ({"columns": ["new"]}, {"filters": col("key") == "b"}, {"columns": iter(["new"])}, {}):
        server.replace(data(), '"one"')
        read(server, kind, tail_size=1000)
        server.replace(other_file(), '"two"')
        found = pyparq.read_table(source, **options, **given).to_pydict()
        assert found["new"] == ([2] if "filters" in options else [1, 2])
    with pytest.raises(pyparq.ColumnNotFoundError):
        pyparq.read_table(source, ["id"], **given)


@pytest.mark.parametrize("kind", KINDS)
def test_a_footer_that_cannot_be_read_any_more(server: BadServer, kind: str) -> None:
    """A new upload mends a file, and may have another key."""
    source, given = server.source(kind)
    keys = [{}, *({"decryption": DecryptionProperties(footer_key=key * 16)} for key in (b"k", b"j"))]
    files = [other_file(), *(other_file(encryption=EncryptionProperties(footer_key=key * 16)) for key in (b"k", b"j"))]
    server.replace(files[0][:-20] + b"\xff" * 8 + files[0][-12:], '"broken"')
    with pytest.raises(pyparq.CorruptFileError):
        pyparq.read_table(source, **given)
    for k, file in enumerate(files):
        server.replace(file, f'"{k}"')
        assert pyparq.read_table(source, ["new"], **keys[k], **given).num_rows == 2


def test_the_end_is_not_asked_for_where_the_footer_is_kept(s3: S3) -> None:
    url, options = f"s3://{BUCKET}/first/t.parquet", pyparq.ReadOptions()
    s3.fs().pipe_file(url, other_file())
    first = opened_early(url, s3.options, options, "not loaded")
    assert isinstance(first, RemoteFile)
    pyparq.read_table(first, ["new"])
    assert opened_early(url, s3.options, options, "not loaded") is url
