"""Kernels that pick few rows of pages, against picking from lists."""

from __future__ import annotations

import itertools
import random
import struct
import sys
import zlib
from typing import Any

import cramjam
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyparq import kernels
from pyparq.buffers import new_arena
from pyparq.format import ttypes as tt
from pyparq.format.codec import serialize
from pyparq.kernels import KernelError

Row = int | None
PAGES = st.lists(
    st.tuples(st.lists(st.none() | st.integers(0, 40), min_size=1, max_size=400), st.randoms()), min_size=1, max_size=4
)


def with_runs(rows: list[Row], rng: random.Random) -> list[Row]:
    """Some of the rows many times: runs, and places far apart."""
    return [row for row in rows for _ in range(rng.choice((1, 1, 1, 9, 70)))]


def chosen(rows: list[Row], rng: random.Random) -> list[int]:
    if rng.random() < 0.3:  # rows that adjoin
        start = rng.randrange(len(rows))
        return list(range(start, rng.randrange(start, len(rows)) + 1))
    return sorted(rng.sample(range(len(rows)), rng.randint(1, min(len(rows), 9))))


NO_ROWS = np.zeros(1, np.int64)
"""The first row of a single page."""


def laid_out(pages: list[tuple[list[Row], list[int]]], before: int = 0) -> tuple[Any, Any, Any]:
    """The wanted rows of all pages, where those of each start, and the number of each page's first row; ``before``
    rows stand before the first page, and as many wanted ones, of which none is."""
    firsts = before + np.cumsum([0] + [len(rows) for rows, _ in pages])
    wanted = [*range(before)] + [first + row for first, (_, rows) in zip(firsts, pages, strict=False) for row in rows]
    starts = before + np.cumsum([0] + [len(rows) for _, rows in pages])
    return np.array(wanted, np.int64), starts.astype(np.int64), firsts[:-1].astype(np.int64)


def levels_of(rows: list[Row], maximum: int) -> bytes:
    """Null rows get any of the lower levels."""
    levels = np.array([maximum if row is not None else k % maximum for k, row in enumerate(rows)], np.uint8)
    return bytes(kernels.rle_encode_u8(levels, maximum.bit_length()))


def index_data(rows: list[Row], width: int = 6) -> bytes:
    present = np.array([row for row in rows if row is not None], np.int32)
    return bytes([width]) + bytes(kernels.rle_encode_i32(present, width))


def fixed_data(rows: list[Row]) -> bytes:
    return b"".join(struct.pack("<i", row) for row in rows if row is not None)


def text(row: int) -> bytes:
    return b"x" * row + bytes([row])


def binary_data(rows: list[Row]) -> bytes:
    return b"".join(struct.pack("<i", len(text(row))) + text(row) for row in rows if row is not None)


@given(PAGES, st.sampled_from((1, 2, 3, 7)), st.integers(0, 3))
@settings(max_examples=150, deadline=None)
def test_rows_of_pages(drawn: Any, maximum: int, before: int) -> None:
    pages = [(rows := with_runs(page, rng), chosen(rows, rng)) for page, rng in drawn]
    rows_of_pages = laid_out(pages, before)
    expected = [rows[k] for rows, picked in pages for k in picked]
    present = [value for value in expected if value is not None]
    levels = [maximum if rows[k] is not None else k % maximum for rows, picked in pages for k in picked]

    def given_pages(encode: Any) -> list[Any]:
        return [(encode(rows), levels_of(rows, maximum), len(rows)) for rows, _ in pages]

    def check(found: Any) -> None:
        assert (levels if found is None else found.tolist()) == levels
        assert (found is None) == (len(present) == len(expected))

    indices, found = kernels.pick_indices(given_pages(index_data), *rows_of_pages, maximum, 41)
    assert indices.tolist() == present
    check(found)
    values, found = kernels.pick_fixed(given_pages(fixed_data), *rows_of_pages, maximum, 4)
    assert values.view(np.int32).tolist() == present
    check(found)
    offsets, data, found = kernels.pick_plain_binary(given_pages(binary_data), *rows_of_pages, maximum)
    assert [data[a:b].tobytes() for a, b in itertools.pairwise(offsets)] == [text(v) for v in present]
    check(found)
    places, found = kernels.pick_places(given_pages(lambda rows: b""), *rows_of_pages, maximum)
    before = [sum(row is not None for row in rows[:k]) for rows, picked in pages for k in picked if rows[k] is not None]
    assert places.tolist() == before
    check(found)


def test_what_is_behind_the_rows_may_be_missing() -> None:
    rows: list[Row] = list(range(40)) * 30
    data, wanted, starts = index_data(rows), np.array([3, 100], np.int64), np.array([0, 2], np.int64)
    for size in range(len(data)):
        page = [(data[:size], None, len(rows))]
        if size <= 100 * 6 // 8:
            with pytest.raises(KernelError, match=r"end inside|no data"):
                kernels.pick_indices(page, wanted, starts, NO_ROWS, 0, 40)
        elif size > 102 * 6 // 8 + 3:
            assert kernels.pick_indices(page, wanted, starts, NO_ROWS, 0, 40)[0].tolist() == [3, 20]
    with pytest.raises(KernelError, match=r"value 100"):
        kernels.pick_fixed([(fixed_data(rows)[:400], None, len(rows))], wanted, starts, NO_ROWS, 0, 4)
    with pytest.raises(KernelError, match=r"declares|inside"):
        kernels.pick_plain_binary([(binary_data(rows)[:400], None, len(rows))], wanted, starts, NO_ROWS, 0)


@pytest.mark.parametrize(
    ("rows", "starts", "says"),
    [
        ([3, 3], [0, 2], "ascend"),
        ([-1], [0, 1], "ascend"),
        ([10], [0, 1], "row 10 of a page of 10"),
        ([1], [0, 0], "without rows"),
        ([1], [0, 2], "outside"),
        ([1], [0], "needs a start and a first row"),
        ([1], [-1, 1], "outside"),
        ([1], [1, 0], "outside"),
    ],
)
def test_rows_that_do_not_fit(rows: list[int], starts: list[int], says: str) -> None:
    page = (fixed_data(list(range(10))), None, 10)
    with pytest.raises(KernelError, match=says):
        kernels.pick_fixed([page], np.array(rows, np.int64), np.array(starts, np.int64), NO_ROWS, 0, 4)


@pytest.mark.parametrize("limit", [0, 30])
def test_indices_beyond_the_dictionary(limit: int) -> None:
    page = (index_data([31, 31, 31, 31, 31, 31, 31, 31]), None, 8)
    with pytest.raises(KernelError, match=r"beyond|without entries"):
        kernels.pick_indices([page], np.array([2], np.int64), np.array([0, 1], np.int64), NO_ROWS, 0, limit)


def test_any_bytes() -> None:
    """Invented levels and values end in an error or in values, whatever they are."""
    rng = random.Random(5)
    for _ in range(3000):
        page = (rng.randbytes(rng.randrange(40)), rng.randbytes(rng.randrange(12)), rng.randrange(1, 300))
        rows = np.array(sorted(rng.sample(range(page[2]), min(page[2], 3))), np.int64)
        starts = np.array([0, len(rows)], np.int64)
        for kernel, last in ((kernels.pick_fixed, 3), (kernels.pick_indices, 9)):
            try:
                values, levels = kernel([page], rows, starts, NO_ROWS, rng.randrange(256), last)
            except KernelError:
                continue
            assert len(values) <= len(rows) * last
            assert levels is None or len(levels) == len(rows)


# ---- pages opened one after another


TERMS = (1, 0, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 22)


def body_v1(rows: list[Row]) -> bytes:
    levels = levels_of(rows, 1)
    return struct.pack("<i", len(levels)) + levels + fixed_data(rows)


def page_v1(rows: list[Row], **changes: Any) -> bytes:
    body = body_v1(rows)
    stored = bytes(cramjam.snappy.compress_raw(body))
    inner = tt.DataPageHeader(
        num_values=len(rows), encoding=0, definition_level_encoding=3, repetition_level_encoding=3
    )
    fields = {"type": 0, "uncompressed_page_size": len(body), "compressed_page_size": len(stored)} | changes
    return serialize(tt.PageHeader(data_page_header=inner, **fields)) + stored


def inflater(decode: Any = cramjam.snappy.decompress_raw_into) -> Any:
    return kernels.Inflater(decode, True, new_arena(), new_arena(), None)


def opened(pages: list[bytes], firsts: list[int], counts: list[int], window: int = 1 << 20) -> list[Any]:
    ordinals, wanted, rows = np.arange(len(pages)), np.array(firsts, np.int64), np.array(counts, np.int64)
    return kernels.open_pages(pages, 0, ordinals, wanted, rows, TERMS, window, 1 << 40, inflater(), None)[0]


def test_pages_are_opened_up_to_the_first_odd_one() -> None:
    rows: list[Row] = [k % 40 if k % 3 else None for k in range(3000)]
    good = page_v1(rows)
    found = opened([good, good], [5, 3000], [3000, 3000])
    assert [page[2:] for page in found] == [(3000, 0, None)] * 2
    assert bytes(found[0][0]) == fixed_data(rows)
    assert bytes(found[0][1]) == levels_of(rows, 1)
    assert len(opened([good, good, good], [5] * 3, [3000] * 3, window=1)) == 1
    odd = [
        page_v1(rows, type=2), page_v1(rows, uncompressed_page_size=1 << 21), page_v1(rows, compressed_page_size=-1),
        page_v1(rows, compressed_page_size=1 << 20), good[:20], b"",
        page_v1(rows, uncompressed_page_size=-5), page_v1([]),
    ]  # fmt: skip
    for bad in odd:
        assert len(opened([good, bad, good], [5, 5, 5], [3000] * 3)) == 1
    assert opened([good], [5], [2999]) == []


def test_checksums_are_compared() -> None:
    rows: list[Row] = list(range(40))
    pages = [page_v1(rows, crc=7), page_v1(rows, crc=-1)]
    ones = np.array([40, 40], np.int64)

    def run(crc: int) -> int:
        check = kernels.Crc32(lambda data: crc, "")
        return len(kernels.open_pages(pages, 0, ones, ones, ones, TERMS, 1 << 20, 1 << 40, inflater(), check)[0])

    assert run(7) == 1
    assert run(8) == 0


@pytest.mark.parametrize("module", [getattr(zlib, "__file__", ""), "", "/nowhere/zlib.so", __file__])
@pytest.mark.parametrize("count", [40, 20_000])  # with the GIL and without
def test_checksums_by_zlib(module: str, count: int) -> None:
    """By the library itself where it can be found, by Python's module elsewhere."""
    rows: list[Row] = [k * k for k in range(count)]
    crc = zlib.crc32(cramjam.snappy.compress_raw(body_v1(rows)))
    good, bad, none = (page_v1(rows, crc=number) for number in (crc - (crc >> 31 << 32), crc // 2, None))
    asked: list[int] = []

    def function(data: Any) -> int:
        asked.append(len(data))
        return zlib.crc32(data)

    check, counts = kernels.Crc32(function, module), np.full(5, count)
    for pages, fine in (([good, none, good, bad, good], 3), ([bad], 0), ([], 0)):
        of = counts[: len(pages)]
        assert len(kernels.open_pages(pages, 0, of, of, of, TERMS, 1 << 30, 1 << 40, inflater(), check)[0]) == fine
    assert check.native is not bool(asked)
    assert check.native or module != getattr(zlib, "__file__", None) or sys.platform != "linux"


def test_what_a_codec_makes_of_a_page() -> None:
    def run(result: Any) -> list[Any]:
        def decode(data: Any, out: Any) -> int:
            if isinstance(result, type):
                raise result("stop")
            return len(out) + int(result)

        return kernels.open_pages([page], 0, ones, ones, ones, TERMS, 1 << 20, 1 << 40, inflater(decode), None)[0]

    page, ones = page_v1(list(range(40))), np.array([40], np.int64)
    assert run(1) == run(-1) == run(OSError) == []
    for interrupt in (KeyboardInterrupt, SystemExit):
        with pytest.raises(interrupt):
            run(interrupt)


def test_damaged_pages() -> None:
    """Every flipped byte of a header, and many of a body, is a page that is opened or one that is not."""
    rows: list[Row] = [k % 40 if k % 3 else None for k in range(300)]
    good, rng = page_v1(rows), random.Random(3)
    for at in [*range(60), *(rng.randrange(len(good)) for _ in range(300))]:
        damaged = bytearray(good)
        damaged[at] ^= 1 << rng.randrange(8)
        found = opened([bytes(damaged)], [5], [300])
        for data, levels, count, _, _ in found:
            assert count == 300
            wanted, starts = np.array([7, 299], np.int64), np.array([0, 2], np.int64)
            try:
                kernels.pick_fixed([(data, levels, count)], wanted, starts, NO_ROWS, 1, 4)
            except KernelError:
                continue
