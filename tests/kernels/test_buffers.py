"""Reused memory: never handed out while anybody can still see it, and never more than is allowed."""

from __future__ import annotations

import gc
import io
import sys
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq.kernels import buffers, keep_idle_memory, take_memory
from pyparq.kernels._native import probes
from pyparq.kernels.buffers import SMALLEST, empty_results

HUGE = 2 << 20


def address(buffer: np.ndarray) -> int:
    return int(buffer.__array_interface__["data"][0])


@pytest.fixture(autouse=True)
def nothing_idle() -> Iterator[None]:
    gc.collect()
    pyparq.release_unused()
    yield
    keep_idle_memory(buffers.kept_most())


def test_memory_is_used_again_when_the_last_view_is_gone() -> None:
    first = take_memory(100_000)
    place = address(first)
    view = memoryview(first)[10:20]
    derived = np.frombuffer(view, np.uint8)
    del first, view
    second = take_memory(100_000)
    assert address(second) != place, "a view of the first one is still there"
    del derived
    third = take_memory(99_000)
    assert address(third) == place
    assert len(third) == 99_000


@pytest.mark.sweep(6)
@pytest.mark.parametrize(
    "size", [0, 1, 7, SMALLEST - 1, SMALLEST, 100_000, HUGE - 1, HUGE, HUGE + 1, 5_000_000, 40 << 20]
)
def test_memory_of_any_size(size: int) -> None:
    for _ in range(3):
        found = take_memory(size)
        assert found.shape == (size,)
        assert found.dtype == np.uint8
        assert found.flags.writeable
        assert address(found) % 16 == 0
        if size > HUGE:
            assert address(found) % HUGE == 0  # so that large pages can be had
        found[:] = 7  # all of it is there
        assert (found == 7).all()


def test_no_more_is_kept_than_allowed() -> None:
    keep_idle_memory(1 << 20)
    held = [take_memory(1 << 18) for _ in range(10)]
    assert probes.idle_memory() == 0
    assert len({address(buffer) for buffer in held}) == 10
    del held
    assert probes.idle_memory() == 1 << 20
    large = take_memory(1 << 20)
    del large  # takes the place of the others
    assert probes.idle_memory() == 1 << 20
    take_memory((1 << 20) + 1)
    assert probes.idle_memory() == 1 << 20, "too much is not kept"
    pyparq.release_unused()
    assert probes.idle_memory() == 0


def test_the_oldest_is_let_go_of_first() -> None:
    keep_idle_memory(1 << 20)
    sizes = [1 << 18, 1 << 17, 1 << 18, 1 << 19]
    held = [take_memory(size) for size in sizes]
    places = [address(buffer) for buffer in held]
    while held:
        held.pop(0)
    assert probes.idle_memory() == sum(sizes[1:])
    again = [take_memory(size) for size in sizes[1:]]
    assert [address(buffer) for buffer in again] == places[1:]


def test_large_memory_is_cut_and_joined_again() -> None:
    """So that a read of other sizes than the last one needs no fresh memory."""
    whole = take_memory(40 << 20)
    place = address(whole)
    del whole
    parts = [take_memory(10 << 20) for _ in range(4)]
    assert sorted(map(address, parts)) == [place + k * (10 << 20) for k in range(4)]
    for k in (1, 3, 0, 2):  # beside nothing, beside nothing, before another, between two
        parts[k] = np.empty(0, np.uint8)
    assert probes.idle_memory() == 40 << 20
    assert address(take_memory(40 << 20)) == place


def test_the_smallest_idle_area_that_is_large_enough() -> None:
    held = [take_memory(size << 20) for size in (24, 4, 8, 4, 16)]
    place = address(held[2])
    del held[::2]  # those of 4 MiB lie between the others
    assert address(take_memory(7 << 20)) == place


@pytest.mark.parametrize("size", [1, 4])
def test_what_was_given_last_stays(size: int) -> None:
    """Else each read that needs more than lies idle takes fresh memory, and loses it again."""
    keep_idle_memory(64 << 20)
    held = [take_memory(size << 20) for _ in range(128 // size - 1)]
    del held[::2]  # the others lie between them
    assert probes.idle_memory() == 64 << 20
    places = []
    for _ in range(3):
        large, other = take_memory(40 << 20), take_memory(8 << 20)
        places.append((address(large), address(other)))
        del large
        del other
        assert probes.idle_memory() == 64 << 20
    assert places[0] == places[1] == places[2]


@pytest.mark.skipif(sys.platform != "linux", reason="pages are moved on Linux")
def test_pages_of_small_areas_become_a_large_one() -> None:
    held = [take_memory(4 << 20) for _ in range(31)]
    for k, buffer in enumerate(held):
        buffer[:] = k
    del held[::2], buffer
    assert probes.idle_memory() == 64 << 20
    large = take_memory(40 << 20)
    assert probes.idle_memory() == 24 << 20
    large[:] = 77
    larger = take_memory(40 << 20)  # of which 16 MiB are fresh
    assert probes.idle_memory() == 0
    larger[:] = 78
    assert (large == 77).all()
    assert all((buffer == 2 * k + 1).all() for k, buffer in enumerate(held))


def test_idle_areas_of_any_sizes_never_overlap() -> None:
    rng, held, most = np.random.default_rng(5), dict[int, np.ndarray](), buffers.kept_most()
    for step in range(600):
        if held and rng.random() < 0.5:
            gone = held.pop(list(held)[int(rng.integers(len(held)))])
            del gone
        elif len(held) < 12:
            size = int(rng.integers(2 << 20, 24 << 20))
            buffer = take_memory(size)
            buffer[:8] = buffer[-8:] = step % 251
            held[step] = buffer
        spans = sorted((address(buffer), buffer.nbytes) for buffer in held.values())
        assert all(a + size <= b for (a, size), (b, _) in pairwise(spans))
        assert probes.idle_memory() <= most
    assert all((b[:8] == k % 251).all() and (b[-8:] == k % 251).all() for k, b in held.items())


def test_of_large_memory_as_much_is_kept_as_allowed() -> None:
    keep_idle_memory(20 << 20)
    held = [take_memory(16 << 20), take_memory(16 << 20)]
    del held
    assert probes.idle_memory() == 20 << 20
    keep_idle_memory(5 << 20)
    assert probes.idle_memory() == 4 << 20  # whole large pages are let go of
    small = [take_memory(1 << 20) for _ in range(6)]
    del small
    assert 4 << 20 <= probes.idle_memory() <= 5 << 20
    take_memory(2 << 20)[:] = 1


def test_sizes_that_are_not_there() -> None:
    for size in (1 << 62, (1 << 63) - 1):
        with pytest.raises(MemoryError):
            take_memory(size)
    with pytest.raises(ValueError, match="negative"):
        take_memory(-1)


def test_threads_never_share_memory() -> None:
    wrong = []

    def work(number: int) -> None:
        for _ in range(500):
            buffer = take_memory(SMALLEST)
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
    numbers = np.random.default_rng(1).integers(0, 1000, 300_000)  # the file is smaller than the result
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


@pytest.mark.sweep(4)
@pytest.mark.parametrize("kind", ["repeated", "distinct", "filtered", "nulls"])
def test_text_that_is_read_again_takes_the_memory_of_the_first_read(tmp_path: Path, kind: str) -> None:
    """How much text a chunk holds is a guess until it is decoded: memory is made for the guess, and fits again."""
    path, rng = tmp_path / "text.parquet", np.random.default_rng(3)
    count = 600_000
    numbers = rng.integers(0, 1000 if kind in ("repeated", "nulls") else 1 << 40, count)
    absent = rng.random(count) < 0.6 if kind == "nulls" else None
    text = pa.array(np.array([f"number {n:x}" for n in numbers.tolist()], object), pa.string(), mask=absent)
    pq.write_table(pa.table({"t": text, "k": rng.random(count)}), path, row_group_size=count)
    filters = pyparq.col("k") < 0.9 if kind == "filtered" else None
    held = []
    for _ in range(4):
        table = pyparq.read_table(path, columns=["t"], filters=filters, use_threads=False)
        assert table.num_rows > count // 2
        del table
        gc.collect()
        held.append(probes.idle_memory())
    assert held[1] == held[2] == held[3]
    # An area of the text itself is among what is idle, and not several of different sizes.
    assert held[3] < 4 * count * 24


@pytest.mark.slow
def test_chunks_that_are_written_again_grow_in_the_memory_of_the_first_ones(tmp_path: Path) -> None:
    """Chunks of different sizes, each of which grows step by step while it is encoded: into what lies behind it."""
    rng, held = np.random.default_rng(8), []
    count = 400_000
    table = pa.table({f"c{k}": rng.integers(0, 1 << (8 * k + 7), count) for k in range(7)} | {"d": rng.random(count)})
    for _ in range(6):
        pyparq.write_table(table, tmp_path / "t.parquet", compression="none", use_threads=False)
        gc.collect()
        held.append(probes.idle_memory())
    assert held[2] == held[3] == held[4] == held[5]


def test_everything_idle_can_be_given_back(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    pq.write_table(pa.table({"x": range(300_000)}), path)
    pyparq.read_table(path)
    gc.collect()
    assert probes.idle_memory() > 0
    pyparq.release_unused()
    assert probes.idle_memory() == 0


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


def everything(column: pyparq.arrow.column.Column) -> list[object]:
    """Every byte of a column's buffers, those of null slots too."""
    found: list[object] = [b.tobytes() for b in column.buffers]
    found.append(None if column.validity is None else column.validity.tobytes())
    inner = [*column.children, *([] if column.dictionary is None else [column.dictionary])]
    return found + [everything(child) for child in inner]


@pytest.mark.sweep(3)
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
            for _ in range(2):
                held.append(take_memory(size))
                held[-1][:] = byte
        del held
        found = pyparq.read_table(sink.getvalue())
        assert pa.table(found) == table
        seen.append([everything(column) for batch in found.batches for column in batch.columns])
    assert seen[0] == seen[1] == seen[2]


def test_the_share_of_memory_that_results_may_keep() -> None:
    assert buffers.memory_size() >= 1 << 28  # every machine that runs this
    assert buffers.LEAST_KEPT <= buffers.kept_most() <= buffers.MOST_KEPT
