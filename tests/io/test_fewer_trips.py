"""A read of a remote file waits for few requests, and what it reads in vain for that has a bound in bytes."""

from __future__ import annotations

import io
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from conftest import require
from slow_store import AsyncStore, Request

import pyparq
from pyparq import ParquetFile, col
from pyparq.read.plan.ahead import TRIP, SpareBytes

require("fsspec")

GROUPS, ROWS = 6, 5_000
STEP = 7919
DELAY = 0.15
"""Seconds, so long that requests of one step run at the same time on a busy machine too."""


def row_group(k: int) -> dict[str, Any]:
    ids, draw = np.arange(k * ROWS, (k + 1) * ROWS), np.random.default_rng(k)
    return {
        "id": ids, "key": ids * STEP % 1_000_003, "user": [f"user {n}" for n in draw.integers(0, 50, ROWS)],
        "amount": draw.random(ROWS), "price": draw.random(ROWS),
    }  # fmt: skip


@lru_cache
def data() -> bytes:
    sink = io.BytesIO()
    schema = pyparq.schema({"id": "int64", "key": "int64", "user": "string", "amount": "double", "price": "double"})
    with pyparq.ParquetWriter(sink, schema, row_group_size=ROWS, max_rows_per_page=1000, bloom_filters=["key"]) as file:
        for k in range(GROUPS):
            file.write(row_group(k))
    return sink.getvalue()


def footer_size(whole: bytes) -> int:
    return int.from_bytes(whole[-8:-4], "little") + 8


PRESENT = 17_000 * STEP % 1_000_003
QUESTIONS: list[Any] = [
    pytest.param(["id", "amount"], col("key") == 2 * STEP + 1, 2, id="a key that is absent"),
    pytest.param(["id", "amount"], col("key") == PRESENT, 3, id="a key that is there"),
    pytest.param(["id", "user", "amount"], col("id") == 17_777, 2, id="a point on the sort column"),
    pytest.param(["id", "user", "amount"], col("id").between(12_100, 12_300), 2, id="a range"),
    pytest.param(["price"], (col("user") == "user 7") & (col("id") < 9_000), 2, id="two row groups"),
]


def asked(columns: list[str], question: Any, delay: float = 0.0) -> AsyncStore:
    """The store, after a read from a file of which nothing but the footer came with the first request."""
    store = AsyncStore({"t": data()}, delay=delay)
    with ParquetFile(store.of("t"), tail_size=footer_size(data())) as file:
        scan = file.scan(columns, question)
        found = scan.to_table().to_arrow()
        assert not scan.file.fetcher.ahead
    assert found == pyparq.read_table(data(), columns, question).to_arrow()
    return store


def ends_of(requests: list[Request]) -> list[tuple[int, int]]:
    return sorted((r.start, r.end) for r in requests if r.kind == "bytes")


@pytest.mark.parametrize(("columns", "question", "trips"), QUESTIONS)
def test_serial_trips(columns: list[str], question: Any, trips: int) -> None:
    """The end of the file; indexes and what they may save; the rows, where they are more bytes."""
    store = asked(columns, question, DELAY)
    assert store.log.depth == trips
    places = ends_of(store.log.requests)
    assert all(end <= start for (_, end), (start, _) in pairwise(places)), "read twice"


@pytest.mark.parametrize(("columns", "question", "trips"), QUESTIONS)
def test_bytes(columns: list[str], question: Any, trips: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many more than by waiting for each answer, at most. Nothing more where a wait would save more."""
    early = asked(columns, question).log
    monkeypatch.setattr("pyparq.read.column_reads.TRIP", 0)
    late = asked(columns, question).log
    assert early.num_bytes <= late.num_bytes + TRIP
    assert len(early.requests) <= len(late.requests)
    monkeypatch.setattr("pyparq.read.column_reads.TRIP", 100)
    assert asked(columns, question).log.num_bytes == late.num_bytes


def test_a_count_takes_two() -> None:
    store = AsyncStore({"t": data()}, delay=DELAY)
    with ParquetFile(store.of("t"), tail_size=footer_size(data())) as file:
        assert file.scan(filters=col("user") == "user 7").count() > 0
    assert store.log.depth == 2
    assert len(store.log.of("bytes")) == 1 + 1 + GROUPS  # the end, the page indexes, the column


@pytest.mark.parametrize("files", [1, 4])
def test_reads_in_vain_are_bounded_for_all_row_groups_and_files(files: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No index sees that no row matches. One row group's worth is read before the filter is, and then no more."""
    question = (col("amount") > 0.5) & (col("amount") < col("amount"))
    group = 60_000  # bytes of the other columns that are read, by row group
    seen = []
    for most in (0, group):
        monkeypatch.setattr("pyparq.read.column_reads.TRIP", most)
        store = AsyncStore({f"lake/{k}": data() for k in range(files)})
        given = {"tail_size": footer_size(data()), "use_bloom_filters": False}
        dataset = pyparq.dataset([store.of(f"lake/{k}") for k in range(files)], **given)
        assert sum(batch.num_rows for batch in dataset.scan(["price"], question).iter_batches(None)) == 0
        seen.append(store.log.num_bytes)
    assert seen[0] <= seen[1] <= seen[0] + group


def test_what_was_needed_is_not_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row group has a row: each saves a wait, though all of them together are many bytes."""
    monkeypatch.setattr("pyparq.read.column_reads.TRIP", 60_000)
    store = AsyncStore({"t": data()}, delay=0.02)
    with ParquetFile(store.of("t"), tail_size=footer_size(data())) as file:
        batches = list(file.scan(["price"], col("amount") < 0.01).iter_batches(None))
    assert len(batches) == GROUPS
    prices = [r for r in store.log.of("bytes") if r.size > 30_000]
    assert sum(r.size for r in prices) > 2 * 60_000


def test_a_plan_reads_no_rows() -> None:
    store = AsyncStore({"t": data()})
    with ParquetFile(store.of("t"), tail_size=footer_size(data())) as file:
        file.scan(["id", "amount"], col("id") == 17_777).plan()
        file.scan(["id", "amount"], col("id") == 17_777).explain(execute=False)
    assert store.log.num_bytes < 20_000


def test_the_bound() -> None:
    spare = SpareBytes(100)
    assert [spare.take(60), spare.take(60), spare.take(40), spare.take(1)] == [True, False, True, False]
    spare.give_back(60)
    assert spare.take(60)
    assert not spare.take(1)
