"""How many requests are made at the same time: by one read, and by the process."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from slow_store import LoopingStore

import pyparq
from pyparq import ObjectFile, OptionError, col
from pyparq.io.retry import free_request

FILES = 40


def file_bytes() -> bytes:
    sink = io.BytesIO()
    pyparq.write_table({"id": [1, 2, 3]}, sink)
    return sink.getvalue()


@pytest.fixture
def slow() -> LoopingStore:
    return LoopingStore({f"{k}.parquet": file_bytes() for k in range(FILES)}, delay=0.002)


@pytest.fixture(autouse=True)
def bound() -> Iterator[None]:
    yield
    pyparq.set_io_thread_count(128)


def files(slow: LoopingStore) -> list[Any]:
    return [slow.of(name) for name in slow.files]


class MeetingStore:
    """As a store of obstore, whose requests wait until ``parties`` of them have come."""

    def __init__(self, parties: int) -> None:
        self.data, self.meeting = file_bytes(), threading.Barrier(parties)

    def head(self, path: str) -> dict[str, Any]:
        return {"size": len(self.data), "e_tag": '"one"', "last_modified": None}

    def get(self, path: str, options: dict[str, Any]) -> Any:
        self.meeting.wait(20)
        first = max(len(self.data) - options["range"]["suffix"], 0)
        return SimpleNamespace(
            meta=self.head(path), range=(first, len(self.data)), bytes=lambda: self.data[first:]
        )  # fmt: skip


def test_one_read_makes_as_many_as_suit_the_store(slow: LoopingStore) -> None:
    assert pyparq.dataset(files(slow)).count() == 3 * FILES
    assert slow.log.most_at_once <= 16 * 2  # size and end of a file are asked for at once
    store = MeetingStore(FILES)
    assert pyparq.dataset([ObjectFile(store, f"{k}.parquet") for k in range(FILES)]).count() == 3 * FILES


def test_one_read_makes_as_many_as_it_may(slow: LoopingStore) -> None:
    assert pyparq.dataset(files(slow), max_requests=2).count(col("id") > 1) == 2 * FILES
    assert 0 < slow.log.most_at_once <= 2 * 2
    slow.log.clear()
    meeting = threading.Barrier(FILES)
    slow.delay, slow.before = 0, lambda request: request.kind == "bytes" and meeting.wait(20) and None
    assert pyparq.dataset(files(slow), max_requests=FILES).count() == 3 * FILES


def test_the_process_has_one_bound(slow: LoopingStore) -> None:
    pyparq.set_io_thread_count(3)
    assert pyparq.io_thread_count() == 3
    counts: list[int] = []
    reads = [
        threading.Thread(target=lambda: counts.append(pyparq.dataset(files(slow), max_requests=30).count()))
        for _ in range(2)
    ]
    for read in reads:
        read.start()
    for read in reads:
        read.join()
    assert counts == [3 * FILES] * 2
    assert slow.log.most_at_once <= 3 + len(reads)


def test_a_loop_keeps_to_the_bound() -> None:
    now, most = 0, 0

    async def request() -> None:
        nonlocal now, most
        async with free_request():
            now += 1
            most = max(most, now)
            await asyncio.sleep(0)
            now -= 1

    async def all_of_them() -> None:
        await asyncio.gather(*(request() for _ in range(10)))

    pyparq.set_io_thread_count(4)
    asyncio.run(all_of_them())
    assert most == 4


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "8", None])
def test_bounds_that_are_none(wrong: Any) -> None:
    with pytest.raises(OptionError, match="at least 1"):
        pyparq.set_io_thread_count(wrong)
    if wrong is not None:
        with pytest.raises(OptionError, match="max_requests"):
            pyparq.ReadOptions(max_requests=wrong)
