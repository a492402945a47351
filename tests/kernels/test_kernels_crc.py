"""CRC-32 by the processor against zlib's."""

from __future__ import annotations

import random
import zlib

import numpy as np
import pytest

from pyparq.kernels import Crc32

BY_PAGES = Crc32(zlib.crc32)
WITHOUT_LIBRARY = Crc32(zlib.crc32, use_library=False)


@pytest.mark.parametrize("crc", [BY_PAGES, WITHOUT_LIBRARY], ids=["zlib found", "zlib by Python"])
def test_any_length_at_any_address(crc: Crc32) -> None:
    rng = random.Random(1)
    data = rng.randbytes(1 << 17)
    for size in [*range(300), 1000, 4095, 4096, 4097, 65_535, 100_003]:
        for at in (0, 1, 7, 16, 63):
            # Memory of its own, that ends where the bytes end.
            part = np.frombuffer(data[at : at + size], np.uint8).copy()
            before = rng.getrandbits(32)
            assert crc.of(part) == zlib.crc32(part)
            assert crc.of(part, before) == zlib.crc32(part, before)


@pytest.mark.parametrize("byte", [0, 1, 0x80, 0xFF])
def test_runs_of_one_byte(byte: int) -> None:
    for size in (64, 80, 127, 128, 1 << 16, (1 << 20) + 5):
        data = bytes([byte]) * size
        for before in (0, 1, 0xFFFFFFFF, 0xDEADBEEF):
            assert BY_PAGES.of(data, before) == zlib.crc32(data, before)


def test_in_steps() -> None:
    rng = random.Random(3)
    data = rng.randbytes(200_000)
    for _ in range(50):
        found, at = 0, 0
        while at < len(data):
            end = at + rng.choice([1, 15, 16, 63, 64, 65, 1000, 70_000])
            found, at = BY_PAGES.of(data[at:end], found), end
        assert found == zlib.crc32(data)
