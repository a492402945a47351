"""Reads for programs with an event loop: many wait at the same time, and give what other reads give."""

from __future__ import annotations

import asyncio
import contextvars
import io
import threading
import zipfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from bad_server import Asked, BadServer, serve
from conftest import require
from slow_store import AsyncStore, LoopingStore, Request

import pyparq
from pyparq import (
    ChangedFileError,
    DecryptionProperties,
    EncryptionKey,
    EncryptionProperties,
    ParquetFile,
    col,
)
from pyparq.io.remote_file import RemoteFile

fsspec = require("fsspec")
require("aiohttp")

ROWS = 20_000
MANY = 100


@lru_cache
def data(k: int = 0) -> bytes:
    sink = io.BytesIO()
    ids = range(k * ROWS, (k + 1) * ROWS)
    table = {"id": list(ids), "key": [i * 7919 % 1_000_003 for i in ids], "text": [f"{i * 7919:09}" for i in ids]}
    pyparq.write_table(table, sink, row_group_size=5_000, max_rows_per_page=1000, bloom_filters=["key"])
    return sink.getvalue()


SMALL_TAIL = {"tail_size": int.from_bytes(data()[-8:-4], "little") + 8}
QUESTIONS: list[Any] = [None, col("key") == 17_000 * 7919 % 1_000_003, col("text") == "000000000", col("id") < 0]


@pytest.fixture
def server() -> Iterator[BadServer]:
    with serve(data()) as running:
        yield running


def sources(server: BadServer, folder: Path) -> list[tuple[Any, dict[str, Any]]]:
    path = folder / "t.parquet"
    path.write_bytes(data())
    stores = [store({"t": data()}).of("t") for store in (AsyncStore, LoopingStore)]
    return [(one, {}) for one in (path, data(), *stores)] + [server.source(k) for k in ("http", "s3", "obstore-s3")]


def test_the_same_rows_from_everywhere(server: BadServer, tmp_path: Path) -> None:
    async def all_at_once() -> list[Any]:
        asked = [(s, q, o | SMALL_TAIL) for s, o in sources(server, tmp_path) for q in QUESTIONS]
        return await asyncio.gather(*(pyparq.read_table_async(s, None, q, **o) for s, q, o in asked))

    expected = [pyparq.read_table(data(), filters=question).to_arrow() for question in QUESTIONS]
    found = [table.to_arrow() for table in asyncio.run(all_at_once())]
    assert found == expected * (len(found) // len(expected))


def test_many_wait_at_the_same_time() -> None:
    """No request is answered before all reads have made one. Each read then makes more."""
    store, before = AsyncStore({"t": data()}), threading.active_count()
    come, seen = list[Request](), list[int]()

    async def answer(request: Request) -> None:
        come.append(request)
        while len({id(r) for r in come if r.kind == "info"}) < MANY:
            await asyncio.sleep(0.01)
        seen.append(threading.active_count())

    original = store._answer

    async def held(request: Request) -> None:
        await answer(request)
        await original(request)

    store._answer = held  # type: ignore[method-assign]

    async def all_at_once() -> list[Any]:
        asked = (pyparq.read_table_async(store.of("t"), ["id"], QUESTIONS[1], **SMALL_TAIL) for _ in range(MANY))
        return await asyncio.gather(*asked)

    assert [table.to_pydict() for table in asyncio.run(all_at_once())] == [{"id": [17_000]}] * MANY
    assert max(seen) <= before + pyparq.io_thread_count() + 2  # pyparq's threads, and those of fsspec


def test_no_more_run_than_may_make_requests() -> None:
    store, before = LoopingStore({"t": data()}, delay=0.01), pyparq.io_thread_count()

    async def all_at_once() -> list[Any]:
        asked = (pyparq.read_table_async(store.of("t"), ["id"], QUESTIONS[1], **SMALL_TAIL) for _ in range(20))
        return await asyncio.gather(*asked)

    pyparq.set_io_thread_count(3)
    try:
        assert [table.num_rows for table in asyncio.run(all_at_once())] == [1] * 20
    finally:
        pyparq.set_io_thread_count(before)
    assert store.log.most_at_once == 3


def test_batches() -> None:
    store = AsyncStore({"t": data(), **{f"lake/{k}": data(k) for k in range(3)}})

    async def numbers(scan: Any) -> list[int]:
        return [number async for batch in scan for number in batch.columns[0].to_pylist()]

    with ParquetFile(store.of("t"), **SMALL_TAIL) as file:
        scan = file.scan(["id"], col("id") >= 7_000)
        assert asyncio.run(numbers(scan)) == list(range(7_000, ROWS))
    dataset = pyparq.dataset([store.of(f"lake/{k}") for k in range(3)])
    assert asyncio.run(numbers(dataset.scan(["id"]))) == list(range(3 * ROWS))


def test_a_stream_that_is_given_up() -> None:
    store = AsyncStore({"t": data()})

    async def first(file: ParquetFile) -> int:
        batches = aiter(file.scan(["id"]))
        batch = await anext(batches)
        await batches.aclose()  # type: ignore[attr-defined]
        return batch.num_rows

    with ParquetFile(store.of("t"), **SMALL_TAIL) as file:
        assert asyncio.run(first(file)) == 5_000
        assert file.read(["id"]).num_rows == ROWS


def test_anything_else() -> None:
    """Many files are asked at the same time."""
    store = AsyncStore({f"lake/{k}": data(k) for k in range(12)}, delay=0.05)

    def ask() -> int:
        dataset = pyparq.dataset([store.of(f"lake/{k}") for k in range(12)])
        return dataset.lookup("key", 17_000 * 7919 % 1_000_003).num_rows

    assert asyncio.run(pyparq.run_async(ask)) == 1
    assert store.log.depth <= 3
    assert store.log.most_at_once >= 12


def test_errors(server: BadServer, tmp_path: Path) -> None:
    source, given = server.source("s3")

    def replaced() -> Any:
        with ParquetFile(source, **given) as file:
            server.replace(data(1))
            return file.read(["text"])

    async def errors() -> list[Any]:
        asked = [
            pyparq.read_table_async(tmp_path / "absent.parquet"),
            pyparq.read_table_async(AsyncStore({"t": data()}).of("absent")),
            pyparq.read_table_async(data(), filters=col("no such column") == 1),
            pyparq.read_table_async(b"not a file"),
            pyparq.run_async(replaced),
            pyparq.run_async(lambda: 1 / 0),
        ]
        return await asyncio.gather(*asked, return_exceptions=True)

    kinds = [
        FileNotFoundError, FileNotFoundError, pyparq.ColumnNotFoundError, pyparq.CorruptFileError, ChangedFileError,
        ZeroDivisionError,
    ]  # fmt: skip
    found = asyncio.run(errors())
    assert [type(error) for error in found] == kinds


def test_a_read_that_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """While it waits for an answer. Others go on, and when the answer comes, it closes its file."""
    store, closed, close = AsyncStore({"t": data(), "u": data()}), list[str](), RemoteFile.close

    def noting(file: RemoteFile) -> None:
        closed.append(file.path)
        close(file)

    monkeypatch.setattr(RemoteFile, "close", noting)
    original = store._answer

    over = threading.Event()

    async def held(request: Request) -> None:
        while request.path == "t" and request.kind == "bytes" and request.start < 100_000 and not over.is_set():
            await asyncio.sleep(0.01)
        await original(request)

    store._answer = held  # type: ignore[method-assign]

    async def cancelled() -> None:
        read = asyncio.create_task(pyparq.read_table_async(store.of("t"), ["id"], **SMALL_TAIL))
        await asyncio.to_thread(store.log.wait_for, lambda rs: any(r.kind == "bytes" and r.start < 100_000 for r in rs))
        read.cancel()
        with pytest.raises(asyncio.CancelledError):
            await read
        assert (await pyparq.read_table_async(store.of("u"), ["id"], **SMALL_TAIL)).num_rows == ROWS
        over.set()
        await until(lambda: "t" in closed)

    try:
        asyncio.run(cancelled())
    finally:
        over.set()


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError


def test_one_reader_at_a_time(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as file:
        file.writestr("t.parquet", data())
    zipped = fsspec.filesystem("zip", fo=tmp_path / "t.zip")

    async def some() -> list[Any]:
        asked = (pyparq.read_table_async("t.parquet", ["id"], filesystem=zipped, **SMALL_TAIL) for _ in range(8))
        return await asyncio.wait_for(asyncio.gather(*asked), 60)

    assert [table.num_rows for table in asyncio.run(some())] == [ROWS] * 8


def test_keys_in_files(tmp_path: Path) -> None:
    """Keys are retrieved by reads of other files, while several reads need them."""
    keys = {"id": EncryptionKey(b"c" * 16, metadata=b"of a column")}
    given = EncryptionProperties(footer_key=b"f" * 16, column_keys=keys, plaintext_footer=True)
    pyparq.write_table({"id": list(range(ROWS))}, tmp_path / "t.parquet", encryption=given)
    sink = io.BytesIO()
    pyparq.write_table({"key": [b"c" * 16]}, sink)
    store = AsyncStore({"key": sink.getvalue()}, delay=0.01)

    def retrieve(metadata: bytes) -> bytes:
        found: bytes = pyparq.read_table(store.of("key"))["key"].to_pylist()[0]
        return found

    async def some() -> list[Any]:
        own = DecryptionProperties(footer_key=b"f" * 16, key_retriever=retrieve)
        with ParquetFile(tmp_path / "t.parquet", decryption=own) as file:
            return await asyncio.wait_for(asyncio.gather(*(pyparq.run_async(file.read) for _ in range(8))), 60)

    assert [table.num_rows for table in asyncio.run(some())] == [ROWS] * 8


REQUEST: contextvars.ContextVar[str] = contextvars.ContextVar("REQUEST", default="none")


def test_context_variables(tmp_path: Path) -> None:
    """The function and a key retriever see those of the coroutine, in every part of a read; as asyncio has it, what
    they set is theirs."""
    given = EncryptionProperties(footer_key=EncryptionKey(b"f" * 16, metadata=b"m"))
    files = {}
    for k in range(4):
        sink = io.BytesIO()
        pyparq.write_table({"id": list(range(ROWS))}, sink, encryption=given)
        files[f"lake/{k}"] = sink.getvalue()
    store = AsyncStore(files, delay=0.01)
    seen: dict[str, set[str]] = {}

    def see(who: str) -> None:
        seen.setdefault(who, set()).add(REQUEST.get())

    def read(name: str) -> None:
        def retrieve(metadata: bytes) -> bytes:
            see(f"{name} retriever")
            return b"f" * 16

        own = DecryptionProperties(key_retriever=retrieve)
        see(name)
        assert pyparq.dataset([store.of(f"lake/{k}") for k in range(4)], decryption=own).read().num_rows == 4 * ROWS

    async def one(name: str) -> None:
        REQUEST.set(name)
        await pyparq.run_async(read, name)
        assert await pyparq.run_async(REQUEST.get) == await asyncio.to_thread(REQUEST.get) == name
        for set_it in (pyparq.run_async, asyncio.to_thread):
            await set_it(REQUEST.set, "set by the function")
            assert REQUEST.get() == name

    async def several() -> None:
        await asyncio.gather(*(one(f"request {k}") for k in range(6)))

    asyncio.run(several())
    names = [f"request {k}" for k in range(6)]
    parts = ("", " retriever")
    assert seen == {name + part: {name} for name in names for part in parts}


def test_batches_by_several_calls() -> None:
    """What one call has requested ahead ends with it. The next one may run on another thread."""
    store = AsyncStore({"t": data()}, delay=0.01)

    async def number_of_rows() -> int:
        file, rows = await pyparq.run_async(ParquetFile, store.of("t"), **SMALL_TAIL), 0
        batches = file.scan().iter_batches()
        while (batch := await pyparq.run_async(next, batches, None)) is not None:
            rows += batch.num_rows
        return rows

    assert asyncio.run(number_of_rows()) == ROWS


def test_a_stream_that_is_cancelled_in_the_middle_of_a_step(server: BadServer) -> None:
    """The step consists of several requests. The stream is closed after it."""
    source, given = server.source("obstore-s3")
    given |= {"coalesce_gap": 0, "prefetch_bytes": 0}
    waits, over = threading.Event(), threading.Event()

    def held(asked: Asked) -> str:
        if asked.number > 1:
            waits.set()
            over.wait(20)
        return ""

    server.script = held

    async def cancelled() -> None:
        with await pyparq.run_async(ParquetFile, source, **given, **SMALL_TAIL) as file:
            batches = aiter(file.scan(["id", "text"]))
            first = asyncio.ensure_future(anext(batches))
            await asyncio.to_thread(waits.wait, 20)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first

    try:
        asyncio.run(cancelled())
    finally:
        over.set()
