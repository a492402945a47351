"""Scans of remote files: the next row groups are on their way while one is decoded, within a bound."""

from __future__ import annotations

import io
import os
import threading
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import require
from slow_store import AsyncStore, LoopingStore, Request

import pyparq
from pyparq import Limits, ParquetFile, col
from pyparq.arrow.table import Batch

require("fsspec")

GROUPS, ROWS = 6, 10_000
STORES = [AsyncStore, LoopingStore]
Store = type[AsyncStore] | type[LoopingStore]


@lru_cache
def table() -> pa.Table:
    rng = np.random.default_rng(8)
    rows = GROUPS * ROWS
    return pa.table({"id": rng.permutation(rows), "x": rng.random(rows), "y": rng.random(rows)})


@lru_cache
def data() -> bytes:
    sink = io.BytesIO()
    pyparq.write_table(table(), sink, row_group_size=ROWS, compression="none", use_dictionary=False)
    return sink.getvalue()


@lru_cache
def starts() -> list[int]:
    """Where the row groups begin, and where the last one ends."""
    metadata = ParquetFile(data()).metadata
    groups = [metadata.row_group(k) for k in range(GROUPS)]
    chunks = [[group.column(c) for c in range(3)] for group in groups]
    last = chunks[-1][-1]
    return [part[0].data_page_offset for part in chunks] + [last.data_page_offset + last.total_compressed_size]


def group_of(request: Request) -> int:
    """The row group that a request for bytes begins in; -1 for the end of the file."""
    return next((k for k in range(GROUPS) if starts()[k] <= request.start < starts()[k + 1]), -1)


def of_groups(requests: list[Request]) -> list[Request]:
    return [r for r in requests if r.kind == "bytes" and group_of(r) >= 0]


def values(batches: list[Batch], column: int = 0) -> list[Any]:
    return [v for batch in batches for v in batch.columns[column].to_pylist()]


@pytest.fixture(name="file_size")
def tail() -> dict[str, Any]:
    """Options by which the first request holds the footer only, so that all row groups are asked for."""
    return {"tail_size": int.from_bytes(data()[-8:-4], "little") + 8}


@pytest.mark.parametrize("store", STORES)
def test_the_next_row_groups_are_asked_for_while_one_is_used(store: Store, file_size: dict[str, Any]) -> None:
    slow = store({"t": data()})
    with ParquetFile(slow.of("t"), **file_size) as file:
        batches = file.scan().iter_batches(None)
        first = next(batches)
        assert slow.log.wait_for(lambda requests: {group_of(r) for r in of_groups(requests)} == set(range(GROUPS)))
        assert values([first, *batches]) == table()["id"].to_pylist()


@pytest.mark.parametrize("store", STORES)
def test_nothing_is_asked_for_early_without(store: Store, file_size: dict[str, Any]) -> None:
    slow = store({"t": data()})
    with ParquetFile(slow.of("t"), prefetch_bytes=0, **file_size) as file:
        batches = file.scan().iter_batches(None)
        for k in range(GROUPS):
            next(batches)
            assert {group_of(r) for r in of_groups(slow.log.requests)} == set(range(k + 1))


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("question", [None, col("x") < 0.01, (col("x") < 0.5) & (col("id") > 1000)], ids=str)
@pytest.mark.parametrize("columns", [None, ["y"], ["id", "x"]], ids=str)
def test_every_byte_is_asked_for_once(
    store: Store, question: Any, columns: list[str] | None, file_size: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same requests with and without, and the same rows, where nothing is read in vain."""
    monkeypatch.setattr("pyparq.read.column_reads.TRIP", 0)
    seen = []
    for size in (0, 300_000, 64 << 20):
        slow = store({"t": data()})
        with ParquetFile(slow.of("t"), prefetch_bytes=size, **file_size) as file:
            scan = file.scan(columns, question)
            found = list(scan.iter_batches(None))
            told = scan.explain()
        requests = sorted((r.start, r.size) for r in slow.log.of("bytes"))
        assert len(set(requests)) == len(requests)
        assert (told.requests, told.bytes_fetched) == (len(requests), sum(length for _, length in requests))
        seen.append((requests, values(found)))
    assert seen[0] == seen[1] == seen[2]
    assert seen[0][1] == pyparq.read_table(data(), columns, question).to_arrow().column(0).to_pylist()


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("by", ["prefetch_bytes", "max_memory"])
def test_the_bound_holds(store: Store, by: str, file_size: dict[str, Any]) -> None:
    """Two row groups' worth of bytes: they are asked for, the fourth is not before the second is used."""
    group = starts()[1] - starts()[0]
    bound = 2 * group + group // 2
    option: dict[str, Any] = {by: bound} if by == "prefetch_bytes" else {"limits": Limits(max_memory=8 * bound)}
    slow = store({"t": data()})
    with ParquetFile(slow.of("t"), **option, **file_size) as file:
        batches = file.scan().iter_batches(None)
        for k in range(GROUPS):
            next(batches)
            expected = set(range(min(k + 3, GROUPS)))
            assert slow.log.wait_for(lambda rs, e=expected: {group_of(r) for r in of_groups(rs)} == e)  # type: ignore[misc]
        slow.log.wait_for(lambda rs: len(of_groups(rs)) > GROUPS, seconds=0.05)
        assert len(of_groups(slow.log.requests)) == GROUPS


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("bad", [0, 3, 5])
def test_an_error_comes_with_its_row_group(store: Store, bad: int, file_size: dict[str, Any]) -> None:
    slow = store({"folder/t": data()})
    slow.fail = lambda r: ConnectionResetError("gone") if r.kind == "bytes" and group_of(r) == bad else None
    with ParquetFile(slow.of("folder/t"), **file_size) as file:
        batches = file.scan().iter_batches(None)
        found = [next(batches) for _ in range(bad)]
        assert values(found) == table()["id"].to_pylist()[: bad * ROWS]
        with pytest.raises(ConnectionError) as caught:
            next(batches)
        assert str(caught.value.filename).endswith("folder/t")
        slow.fail = lambda request: None
        assert file.read().to_arrow() == table()


def test_a_stream_that_is_given_up_asks_for_nothing_more(file_size: dict[str, Any]) -> None:
    """It does not wait for what is on its way either."""
    slow = LoopingStore({"t": data()})
    answer = threading.Event()

    def later(request: Request) -> None:
        if request.kind == "bytes" and group_of(request) > 0:
            answer.wait(20)

    slow.before = later
    group = starts()[1] - starts()[0]
    with ParquetFile(slow.of("t"), prefetch_bytes=2 * group + 10, **file_size) as file:
        scan = file.scan()
        batches = scan.iter_batches(None)
        next(batches)
        assert slow.log.wait_for(lambda rs: len(of_groups(rs)) == 3)
        batches.close()
        assert not any(r.ended < 1 << 60 for r in of_groups(slow.log.requests) if group_of(r) > 0)
        answer.set()
        assert slow.log.wait_for(lambda rs: all(r.ended < 1 << 60 for r in rs))
        assert len(of_groups(slow.log.requests)) == 3
        assert not scan.file.fetcher.ahead


def test_a_count_asks_for_all_row_groups_at_once(file_size: dict[str, Any]) -> None:
    """Each request waits for those of the other row groups."""
    slow, meeting = LoopingStore({"t": data()}), threading.Barrier(GROUPS)
    with ParquetFile(slow.of("t"), **file_size) as file:
        slow.before = lambda request: group_of(request) >= 0 and meeting.wait(20) and None
        scan = file.scan(filters=col("x") < 0.5)
        assert scan.count() == int((table()["x"].to_numpy() < 0.5).sum())
        assert not scan.file.fetcher.ahead
        assert len(of_groups(slow.log.requests)) == GROUPS
        slow.before = lambda request: None


def test_rows_that_may_not_be_needed_are_not_asked_for(file_size: dict[str, Any]) -> None:
    """A limit on the rows that match: nobody knows how many row groups it takes."""
    slow = AsyncStore({"t": data()})
    with ParquetFile(slow.of("t"), **file_size) as file:
        assert sum(b.num_rows for b in file.scan(filters=col("x") < 0.5, limit=10).iter_batches()) == 10
    assert {group_of(r) for r in of_groups(slow.log.requests)} == {0}


def test_large_column_chunks_are_on_their_way_together() -> None:
    """More of them than the machine has processors: each request waits for the others."""
    wide = pa.table({f"c{k}": np.random.default_rng(k).random(160_000) for k in range(5)})
    sink = io.BytesIO()
    pyparq.write_table(wide, sink, compression="none", use_dictionary=False)
    slow = LoopingStore({"t": sink.getvalue()})
    meeting = threading.Barrier(5)
    with ParquetFile(slow.of("t")) as file:
        slow.before = lambda request: meeting.wait(20) and None
        assert file.read().to_arrow() == wide
    assert len(slow.log.of("bytes")) == 6


def test_without_threads_there_are_none(file_size: dict[str, Any]) -> None:
    slow = AsyncStore({"t": data()})
    with ParquetFile(slow.of("t"), use_threads=False, **file_size) as file:
        next(file.scan().iter_batches(None))
    assert {group_of(r) for r in of_groups(slow.log.requests)} == {0}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_asks_again(file_size: dict[str, Any]) -> None:
    slow = LoopingStore({"t": data()})
    group = starts()[1] - starts()[0]
    with ParquetFile(slow.of("t"), prefetch_bytes=2 * group + 10, **file_size) as file:
        batches = file.scan().iter_batches(None)
        first = next(batches)
        assert slow.log.wait_for(lambda rs: len(of_groups(rs)) == 3 and all(r.ended < 1 << 60 for r in rs))
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = 0 if values([first, *batches]) == table()["id"].to_pylist() else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert values([first, *batches]) == table()["id"].to_pylist()
