"""Column chunks from Arrow's buffers: what the buffers may be, and what is refused."""

from __future__ import annotations

import contextlib
import itertools
import zlib
from typing import Any

import numpy as np
import pytest

from pyparq import kernels
from pyparq.kernels import (
    ArraysChunk,
    ColumnRules,
    EncodedChunks,
    FileRules,
    FlatArray,
    KernelError,
    KnownDictionary,
    LeafOrder,
    ValuesChunk,
)

SAME, BITS, INT8, UINT8, INT16, UINT16, OFFSETS32, OFFSETS64, DECIMAL32, DECIMAL64, DECIMAL128 = range(11)
BOOLEAN, INT32, INT64, DOUBLE, BYTE_ARRAY, FIXED = 0, 1, 2, 5, 6, 7
NOT_NATIVE = -1 << 30
MISFIT = 3
RNG = np.random.default_rng(23)
FILE = FileRules(
    1, 20_000, 1 << 20, 1 << 20, 64, 64, 4096, True, True, 256, 0.25, 0.8, "key", kernels.Crc32(zlib.crc32, False), 1
)


def rules(physical: int, width: int, max_def: int = 1, text: bool = False, precision: int = 0) -> ColumnRules:
    order = LeafOrder(0, width, False, False, False)
    return ColumnRules(
        FILE, order, physical, width, max_def, 0, 0, None, NOT_NATIVE, True, False, -1, [], True, text, precision,
        0, ["a"], [],
    )  # fmt: skip


def job(column: ColumnRules, parts: list[Any], rows: int) -> ArraysChunk:
    return ArraysChunk(column, [FlatArray(*part) for part in parts], rows)


def encoded(column: ColumnRules, parts: list[Any], rows: int) -> tuple[Any, bytes]:
    chunks = EncodedChunks()
    refusal = chunks.encode([job(column, parts, rows)], lambda: None)
    return refusal, b"" if refusal else b"".join(part.tobytes() for part in chunks.take())


def from_levels(column: ColumnRules, values: Any, defs: Any, rows: int, offsets: Any = None) -> bytes:
    """The same chunk from levels and values without nulls."""
    chunks = EncodedChunks()
    assert chunks.encode([ValuesChunk(column, offsets, values, defs, None, rows, rows)], lambda: None) is None
    return b"".join(part.tobytes() for part in chunks.take())


def bits(mask: Any, offset: int = 0) -> Any:
    return np.packbits(np.concatenate((np.zeros(offset, np.bool_), mask)), bitorder="little")


@pytest.mark.parametrize("offset", [0, 1, 7, 8, 65])
@pytest.mark.parametrize("rows", [1, 63, 64, 65, 1000])
@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
def test_numbers_are_those_that_are_there(offset: int, rows: int, nulls: float) -> None:
    values = RNG.integers(-(1 << 40), 1 << 40, offset + rows)
    there = RNG.random(rows) >= nulls
    part = (SAME, rows, offset, bits(there, offset), values, None)
    refusal, found = encoded(rules(INT64, 8), [part], rows)
    assert refusal is None
    defs = None if there.all() else there.view(np.uint8)
    assert found == from_levels(rules(INT64, 8), values[offset:][there], defs, rows)


@pytest.mark.parametrize(
    ("form", "dtype"), [(INT8, np.int8), (UINT8, np.uint8), (INT16, np.int16), (UINT16, np.uint16)]
)
def test_small_integers_are_widened(form: int, dtype: Any) -> None:
    values = RNG.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, 777).astype(dtype)
    there = RNG.random(777) < 0.8
    column = rules(INT32, 4)
    refusal, found = encoded(column, [(form, 777, 0, bits(there), values, None)], 777)
    assert refusal is None
    assert found == from_levels(column, values[there].astype(np.int32), there.view(np.uint8), 777)


def test_booleans_of_several_arrays() -> None:
    first, second = RNG.random(70) < 0.5, RNG.random(100) < 0.5
    there = RNG.random(170) < 0.7
    parts = [
        (BITS, 70, 3, bits(there[:70], 3), bits(first, 3), None),
        (BITS, 100, 0, bits(there[70:]), bits(second), None),
    ]
    column = rules(BOOLEAN, 1)
    refusal, found = encoded(column, parts, 170)
    assert refusal is None
    values = np.concatenate((first, second))[there].view(np.uint8)
    assert found == from_levels(column, values, there.view(np.uint8), 170)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("count", [1, 3])
def test_byte_arrays(dtype: Any, hidden: bool, count: int) -> None:
    rows = 400
    there = RNG.random(rows) < 0.6
    lengths = RNG.integers(0, 50, rows)
    if not hidden:
        lengths[~there] = 0  # else bytes lie below nulls
    edges = np.concatenate(([5], 5 + np.cumsum(lengths))).astype(dtype)
    data = RNG.integers(97, 123, int(edges[-1]) + 9).astype(np.uint8)
    form = OFFSETS32 if dtype is np.int32 else OFFSETS64
    cuts = np.linspace(0, rows, count + 1).astype(int)
    parts = [(form, b - a, a, bits(there), edges, data) for a, b in itertools.pairwise(cuts)]
    column = rules(BYTE_ARRAY, 0, text=True)
    refusal, found = encoded(column, parts, rows)
    assert refusal is None
    kept = [data[edges[k] : edges[k + 1]] for k in np.flatnonzero(there)]
    offsets = np.concatenate(([0], np.cumsum([len(v) for v in kept]))).astype(np.int64)
    assert found == from_levels(column, np.concatenate(kept), there.view(np.uint8), rows, offsets)


@pytest.mark.parametrize(("form", "width"), [(DECIMAL32, 4), (DECIMAL64, 8), (DECIMAL128, 16)])
@pytest.mark.parametrize(("physical", "stored"), [(INT32, 4), (INT64, 8), (FIXED, 3), (FIXED, 16), (FIXED, 20)])
def test_decimals(form: int, width: int, physical: int, stored: int) -> None:
    numbers = [0, 1, -1, 99_999, -99_999, 12_345]
    raw = np.frombuffer(b"".join(n.to_bytes(width, "little", signed=True) for n in numbers), np.uint8)
    column = rules(physical, stored, precision=5)
    refusal, found = encoded(column, [(form, 6, 0, None, raw, None)], 6)
    assert refusal is None
    order = "big" if physical == FIXED else "little"
    values = np.frombuffer(b"".join(n.to_bytes(stored, order, signed=True) for n in numbers), np.uint8)
    assert found == from_levels(column, values, None, 6)
    for wrong in (100_000, -100_000):
        bad = np.frombuffer(wrong.to_bytes(width, "little", signed=True) * 2, np.uint8)
        assert encoded(column, [(form, 2, 0, None, bad, None)], 2)[0].code == MISFIT
        below_null = np.frombuffer(wrong.to_bytes(width, "little", signed=True) + bytes(width), np.uint8)
        assert encoded(column, [(form, 2, 0, bits(np.array([False, True])), below_null, None)], 2)[0] is None


def test_a_null_in_a_required_column_and_text_that_is_none_are_misfits() -> None:
    there = np.array([True, False, True])
    assert encoded(rules(INT64, 8, max_def=0), [(SAME, 3, 0, bits(there), np.arange(3), None)], 3)[0].code == MISFIT
    edges, data = np.array([0, 1, 2], np.int32), np.frombuffer("é".encode(), np.uint8)  # cut through the character
    assert encoded(rules(BYTE_ARRAY, 0, text=True), [(OFFSETS32, 2, 0, None, edges, data)], 2)[0].code == MISFIT
    assert encoded(rules(BYTE_ARRAY, 0), [(OFFSETS32, 2, 0, None, edges, data)], 2)[0] is None


EDGES = np.array([0, 2, 5], np.int32)
DATA = np.zeros(5, np.uint8)
BAD: list[tuple[ColumnRules, Any, int]] = [
    (rules(INT64, 8), [(SAME, 4, 0, None, np.zeros(3), None)], 4),  # too few values
    (rules(INT64, 8), [(SAME, 3, 1, None, np.zeros(3), None)], 3),  # because of the offset
    (rules(INT64, 8), [(SAME, 3, 0, np.zeros(0, np.uint8), np.zeros(3), None)], 3),  # no validity bits
    (rules(INT64, 8), [(SAME, 9, 0, np.zeros(1, np.uint8), np.zeros(9), None)], 9),
    (rules(INT64, 8), [(SAME, -1, 0, None, np.zeros(3), None)], 3),
    (rules(INT64, 8), [(SAME, 3, -1, None, np.zeros(3), None)], 3),
    (rules(INT64, 8), [(SAME, (1 << 63) - 1, 0, None, np.zeros(3), None)], (1 << 63) - 1),
    (rules(INT64, 8), [(SAME, 1, (1 << 63) - 1, None, np.zeros(3), None)], 1),
    (rules(INT64, 8), [(SAME, 3, 0, None, None, None)], 3),  # no buffer at all
    (rules(INT64, 8), [(SAME, 3, 0, None, np.zeros(6)[::2], None)], 3),  # not contiguous
    (rules(INT64, 8), [(SAME, 3, 0, None, "text", None)], 3),
    (rules(INT64, 8), [(SAME, 3, 0, None, np.zeros(3), None)], 4),  # rows of nobody
    (rules(INT64, 8), [(SAME, 3, 0, None, np.zeros(3), None)], 2),
    (rules(INT64, 8), [], 3),
    (rules(INT64, 8), [(SAME, 3, 0, None, np.zeros(3), None)], 0),
    (rules(INT64, 8), [(99, 3, 0, None, np.zeros(3), None)], 3),
    (rules(INT64, 8), [(-1, 3, 0, None, np.zeros(3), None)], 3),
    (rules(INT64, 8), [(INT8, 3, 0, None, np.zeros(3), None)], 3),  # not what the leaf holds
    (rules(INT64, 8), [(BITS, 3, 0, None, np.zeros(3), None)], 3),
    (rules(INT64, 8), [(OFFSETS32, 2, 0, None, EDGES, DATA)], 2),
    (rules(BYTE_ARRAY, 0), [(SAME, 2, 0, None, np.zeros(2), None)], 2),
    (rules(BYTE_ARRAY, 0), [(DECIMAL128, 2, 0, None, np.zeros(4), None)], 2),
    (rules(BYTE_ARRAY, 0), [(OFFSETS32, 2, 0, None, EDGES, DATA[:4])], 2),  # beyond the bytes
    (rules(BYTE_ARRAY, 0), [(OFFSETS32, 2, 0, None, EDGES, None)], 2),
    (rules(BYTE_ARRAY, 0), [(OFFSETS32, 3, 0, None, EDGES, DATA)], 3),  # too few offsets
    (rules(BYTE_ARRAY, 0), [(OFFSETS32, 2, 1, None, EDGES, DATA)], 2),
    (rules(BYTE_ARRAY, 0), [(OFFSETS32, 2, 0, None, EDGES[::-1].copy(), DATA)], 2),  # falling
    (rules(BYTE_ARRAY, 0), [(OFFSETS32, 2, 0, None, EDGES - 1, DATA)], 2),  # below 0
    (rules(BYTE_ARRAY, 0), [(OFFSETS64, 2, 0, None, np.array([0, 1 << 62, 5]), DATA)], 2),
    (rules(BYTE_ARRAY, 0), [(OFFSETS32, 2, 0, bits(np.array([True, False])), EDGES - 1, DATA)], 2),
    (rules(BYTE_ARRAY, 0), [(OFFSETS32, 2, 0, None, EDGES, DATA), (OFFSETS64, 2, 0, None, EDGES, DATA)], 4),
]


@pytest.mark.parametrize("case", range(len(BAD)))
def test_buffers_that_do_not_fit_are_refused(case: int) -> None:
    column, parts, rows = BAD[case]
    with pytest.raises(KernelError):
        encoded(column, parts, rows)


NO_ARRAYS: list[Any] = [()]


@pytest.mark.parametrize("none", [(), None, FILE, ArraysChunk(rules(INT64, 8), NO_ARRAYS, 1)])
def test_jobs_that_are_none_are_refused(none: Any) -> None:
    with pytest.raises((KernelError, RuntimeError, TypeError)):
        EncodedChunks().encode([none], lambda: None)


LEVELS = np.ones(3, np.uint8)
WRONG_LEVELS: list[Any] = [
    (None, np.arange(3), LEVELS[:2], None, 3, 3),  # too few levels
    (None, np.arange(3), LEVELS + 1, None, 3, 3),  # a level too high
    (None, np.arange(2), LEVELS, None, 3, 3),  # too few values
    (None, np.arange(4), LEVELS, None, 3, 3),
    (None, np.arange(3), LEVELS, LEVELS, 3, 3),  # repeated, though it is not
    (None, np.arange(3), LEVELS, None, 2, 3),
    (None, np.arange(3), None, None, 3, 4),
    (None, np.zeros(5, np.uint8), LEVELS, None, 3, 3),  # no whole values
    (None, np.arange(3), np.ones(3), None, 3, 3),  # levels of another type
]


@pytest.mark.parametrize("case", range(len(WRONG_LEVELS)))
def test_levels_that_do_not_fit_are_refused(case: int) -> None:
    with pytest.raises(KernelError):
        EncodedChunks().encode([ValuesChunk(rules(INT64, 8), *WRONG_LEVELS[case])], lambda: None)


@pytest.mark.parametrize("indices", [[0, 1, 2], [0, -1, 1], [0, 1]])
def test_indices_outside_of_a_known_dictionary_are_refused(indices: list[int]) -> None:
    known = KnownDictionary(np.arange(2).tobytes(), 2, np.array(indices, np.int32), 2)
    with pytest.raises(KernelError):
        EncodedChunks().encode(
            [ValuesChunk(rules(INT64, 8), None, np.arange(3), None, None, 3, 3, known)], lambda: None
        )


def test_the_chunk_at_fault_has_its_number() -> None:
    good = job(rules(INT64, 8), [(SAME, 3, 0, None, np.zeros(3), None)], 3)
    bad = job(rules(INT64, 8), [(SAME, 3, 0, None, np.zeros(2), None)], 3)
    none = job(rules(INT64, 8), [(SAME, 3, 0, None, 5, None)], 3)
    for wrong, done in ((bad, 2), (none, 0)):  # one is looked at without the GIL, after those before it
        chunks = EncodedChunks()
        with pytest.raises(KernelError):
            chunks.encode([good, good, wrong, good], lambda: None)
        assert chunks.at_fault == 2
        assert chunks.count == done


def test_random_bytes_as_buffers() -> None:
    """Nothing but a refusal or a chunk comes of it, whatever the numbers are."""
    columns = [rules(INT64, 8), rules(INT32, 4), rules(BOOLEAN, 1), rules(BYTE_ARRAY, 0, text=True), rules(FIXED, 5)]
    columns += [rules(FIXED, 9, precision=20), rules(INT64, 8, max_def=0, precision=18)]
    for _ in range(4000):
        column = columns[RNG.integers(len(columns))]
        parts, rows = [], 0
        for _ in range(RNG.integers(1, 4)):
            length, offset = int(RNG.integers(0, 40)), int(RNG.integers(0, 20))
            buffers = [
                None
                if RNG.random() < 0.2
                else RNG.integers(0, RNG.choice([2, 40, 256]), RNG.integers(0, 400)).astype(np.uint8)
                for _ in range(3)
            ]
            if buffers[1] is not None and RNG.random() < 0.5:  # offsets that may be right
                buffers[1] = np.sort(RNG.integers(0, 60, 70)).astype(np.int32).view(np.uint8)
            parts.append((int(RNG.integers(0, 11)), length, offset, *buffers))
            rows += length
        with contextlib.suppress(KernelError):
            encoded(column, parts, rows)
