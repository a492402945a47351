"""Snappy blocks that the kernels write, against cramjam's: they hold the same bytes, and are the same bytes."""

from __future__ import annotations

import cramjam
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyparq.format.compression import SNAPPY
from pyparq.kernels._native import probes


def deflated(data: bytes) -> bytes:
    out = np.empty(probes.deflate_bound(SNAPPY, len(data)), np.uint8)
    size = probes.deflate(SNAPPY, 0, data, out)
    assert size >= 0
    return out[:size].tobytes()


def check(data: bytes) -> None:
    stored = deflated(data)
    assert bytes(cramjam.snappy.decompress_raw(stored)) == data
    assert stored == bytes(cramjam.snappy.compress_raw(data))


@pytest.mark.parametrize("size", [0, 1, 14, 15, 16, 17, 18, 59, 60, 61, 255, 256, 257, 65535, 65536, 65537, 200_000])
@pytest.mark.parametrize("letters", [1, 2, 5, 256])
def test_blocks_of_any_size(size: int, letters: int) -> None:
    check(np.random.default_rng(size).integers(0, letters, size).astype(np.uint8).tobytes())


@pytest.mark.parametrize("period", [1, 2, 3, 8, 63, 64, 65, 68, 2047, 2048, 40_000])
def test_what_repeats(period: int) -> None:
    check((np.random.default_rng(period).bytes(period) * (300_000 // period))[:150_001])


@settings(max_examples=200)
@given(st.lists(st.tuples(st.binary(max_size=80), st.integers(1, 40)), max_size=30))
def test_pieces_that_come_again(pieces: list[tuple[bytes, int]]) -> None:
    check(b"".join(piece * times for piece, times in pieces))


def test_numbers_and_text() -> None:
    check(np.arange(50_000, dtype=np.int64).tobytes())
    check(b"".join(b"2026-11-23 12:%02d ERROR disk %d is full\n" % (k % 60, k * 7 % 13) for k in range(5000)))


def test_too_little_room_is_refused() -> None:
    assert probes.deflate(SNAPPY, 0, bytes(1000), np.empty(100, np.uint8)) == -1
