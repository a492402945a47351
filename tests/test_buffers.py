"""Reused memory: never handed out while anybody can still see it, and never more than is allowed."""

from __future__ import annotations

import gc
import io
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import buffers
from pyparq.buffers import HUGE, LARGEST, SMALLEST, BufferPool, empty_results, pool


def address(buffer: np.ndarray) -> int:
    return int(buffer.__array_interface__["data"][0])


def test_memory_is_used_again_when_the_last_view_is_gone() -> None:
    pool = BufferPool(1 << 26)
    first = pool.take(100_000)
    place = address(first)
    view = memoryview(first)[10:20]
    derived = np.frombuffer(view, np.uint8)
    del first, view
    second = pool.take(100_000)
    assert address(second) != place, "a view of the first one is still there"
    del derived
    third = pool.take(99_000)
    assert address(third) == place
    assert len(third) == 99_000


def test_sizes_that_the_allocator_is_left_to() -> None:
    pool = BufferPool(1 << 26)
    assert [len(pool.take(n)) for n in (0, 1, SMALLEST - 1, LARGEST + 1)] == [0, 1, SMALLEST - 1, LARGEST + 1]
    assert pool.total == 0


def test_no_more_is_kept_than_allowed() -> None:
    pool = BufferPool(most=1 << 20)
    held = [pool.take(1 << 18) for _ in range(10)]
    assert pool.total == 1 << 20
    assert len({address(buffer) for buffer in held}) == 10
    del held
    large = pool.take(1 << 20)  # takes the place of the idle ones
    assert pool.total == 1 << 20
    assert len(large) == 1 << 20
    pool.release()
    assert pool.total == 1 << 20, "what is in use stays"
    del large
    pool.release()
    assert pool.total == 0


def test_an_idle_buffer_is_found_among_many_that_are_not() -> None:
    pool = BufferPool(1 << 26)
    held = [pool.take(SMALLEST) for _ in range(30)]
    place = address(held.pop(5))
    held += [pool.take(SMALLEST) for _ in range(10)]
    assert place in {address(buffer) for buffer in held}
    assert len({address(buffer) for buffer in held}) == 39


@pytest.mark.parametrize("counted", [lambda real: real + 5, lambda real: 7, lambda real: max(real - 1, 1)])
def test_other_ways_to_count_references(monkeypatch: pytest.MonkeyPatch, counted: Callable[[int], int]) -> None:
    """What a count includes differs between interpreters: it is found out, not assumed; and where it tells nothing,
    nothing is used again."""
    real = sys.getrefcount
    monkeypatch.setattr(buffers.sys, "getrefcount", lambda thing: counted(real(thing)))
    monkeypatch.setattr(buffers, "_ALONE", buffers._count_alone())
    pool = BufferPool(1 << 26)
    first = pool.take(100_000)
    places = {address(first)}
    for _ in range(20):
        places.add(address(pool.take(100_000)))
    assert address(pool.take(100_000)) != address(first)
    assert len(places) == (2 if buffers._ALONE > 0 else 21)


def test_threads_never_share_a_buffer() -> None:
    pool, wrong = BufferPool(1 << 26), []

    def work(number: int) -> None:
        for _ in range(500):
            buffer = pool.take(SMALLEST)
            buffer[:] = number
            if not (buffer == number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_results_do_not_change_under_later_reads(tmp_path: Path) -> None:
    """Uncompressed dictionaries and plain pages are where a result could show memory that was read into."""
    tables = []
    for k in range(4):
        words = [f"{k} {n % 9000:0200d}" for n in range(20_000)]
        table = pa.table(
            {"word": words, "number": pa.array(range(k, k + 20_000)), "half": pa.array(np.arange(20_000.0))}
        )
        pq.write_table(table, tmp_path / f"{k}", compression="NONE", use_dictionary=["word"], write_page_index=True)
        tables.append(table)
    read = [pyparq.read_table(tmp_path / f"{k}", read_dictionary=["word"] if k % 2 else []) for k in range(4)]
    for k in range(4):
        pyparq.read_table(tmp_path / f"{k}")
    gc.collect()
    for found, table in zip(read, tables, strict=True):
        assert pa.table(found).cast(table.schema) == table


def test_results_come_back_when_they_are_let_go(tmp_path: Path) -> None:
    """Through pyarrow's hands too; and a part of a result keeps what it shows."""
    pyparq.release_unused()
    path = tmp_path / "file.parquet"
    numbers = np.random.default_rng(1).integers(0, 1 << 60, 300_000)
    pq.write_table(pa.table({"x": numbers}), path)
    first = pa.table(pyparq.read_table(path))
    place = first["x"].chunk(0).buffers()[1].address
    tail = first["x"].chunk(0).slice(299_990)
    del first
    second = pa.table(pyparq.read_table(path))
    assert second["x"].chunk(0).buffers()[1].address != place
    assert tail.to_pylist() == numbers[-10:].tolist()
    del tail
    third = pa.table(pyparq.read_table(path))
    assert third["x"].chunk(0).buffers()[1].address == place
    assert third["x"].to_pylist() == second["x"].to_pylist() == numbers.tolist()


def test_everything_idle_can_be_given_back(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    pq.write_table(pa.table({"x": range(300_000)}), path)
    gc.collect()
    pyparq.release_unused()
    before = pool.total + buffers._results.total  # what other tests hold on to
    pyparq.read_table(path)
    assert pool.total + buffers._results.total > before
    gc.collect()
    pyparq.release_unused()
    assert pool.total + buffers._results.total == before


@pytest.mark.parametrize("size", [0, 1, 1000, (3 << 20) - 8, 3 << 20, 4_000_004, 9 << 20])
def test_memory_for_results(size: int) -> None:
    for dtype, shape in ((np.uint8, (size,)), (np.dtype("<i4"), (size // 4,)), (np.uint8, (size // 12, 12))):
        found = empty_results(shape, dtype)
        assert (found.shape, found.dtype) == (shape, np.dtype(dtype))
        assert found.flags.c_contiguous
        assert found.flags.writeable
        if found.nbytes >= 3 << 20:
            assert found.ctypes.data % HUGE == 0
        found[...] = 1  # all of it is there


def everything(column: pyparq.table.Column) -> list[object]:
    """Every byte of a column's buffers, those of null slots too."""
    found: list[object] = [b.tobytes() for b in column.buffers]
    found.append(None if column.validity is None else column.validity.tobytes())
    inner = [*column.children, *([] if column.dictionary is None else [column.dictionary])]
    return found + [everything(child) for child in inner]


@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_what_was_in_the_memory_before_does_not_show(dictionary: bool, version: str) -> None:
    count = 60_000
    null = np.random.default_rng(2).random(count) < 0.3
    numbers = np.arange(count)
    texts = [None if m else f"x{k % 100}" for k, m in enumerate(null)]
    table = pa.table({
        "int64": pa.array(numbers % 50, mask=null), "double": pa.array(numbers / 3, mask=null),
        "int8": pa.array((numbers % 50).astype(np.int8), mask=null), "bool": pa.array(numbers % 2 == 0, mask=null),
        "text": texts, "fixed": pa.array([None if m else b"12345678" for m in null], pa.binary(8)),
        "decimal": pa.array(numbers, mask=null).cast(pa.decimal128(20, 0)),
        "list": pa.array([None if m else [k, None] for k, m in enumerate(null)]),
        "struct": pa.array([None if m else {"a": k, "b": text} for k, (m, text) in enumerate(zip(null, texts))]),
    })  # fmt: skip
    sink = io.BytesIO()
    pq.write_table(table, sink, use_dictionary=dictionary, data_page_version=version)
    seen = []
    for byte in (0, 0xAB, 0x5C):
        held = []
        for size in range(SMALLEST, 1 << 20, SMALLEST):
            for kept in (pool, buffers._results):
                held.append(kept.take(size))
                held[-1][:] = byte
        del held
        found = pyparq.read_table(sink.getvalue())
        assert pa.table(found) == table
        seen.append([everything(column) for batch in found.batches for column in batch.columns])
    assert seen[0] == seen[1] == seen[2]


def test_the_share_of_memory_that_results_may_keep() -> None:
    assert buffers.memory_size() >= 1 << 28  # every machine that runs this
    assert buffers.MOST <= buffers._results._most <= buffers.MOST_RESULTS
