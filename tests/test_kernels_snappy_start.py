"""The beginning of a Snappy block, inflated without the rest."""

from __future__ import annotations

import random
from typing import Any

import cramjam
import numpy as np
import pytest
import snappy

from pyparq.buffers import new_arena
from pyparq.kernels import SNAPPY_START_PAYS_FROM, Arena, snappy_start


def inflate_start(block: Any, size: int, wanted: int, out: Any, spare: Arena) -> Any:
    found = snappy_start(cramjam.snappy.decompress_raw_into, block, size, wanted, out, spare)
    return out[:found] if found else None


def samples() -> dict[str, bytes]:
    rng = np.random.default_rng(1)
    return {
        "ascending": rng.integers(1, 2_000_000, 20_000).cumsum().astype(np.int64).tobytes(),
        "few values": rng.integers(0, 4, 150_000).astype(np.uint8).tobytes(),
        "runs": np.repeat(rng.integers(0, 256, 900), rng.integers(1, 900, 900)).astype(np.uint8).tobytes(),
        "words": b" ".join(random.Random(4).choices([b"refund", b"partial", b"manual review", b"late"], k=30_000)),
        "zeros": bytes(200_000),
        "half random": rng.integers(0, 256, 60_000).astype(np.uint8).tobytes() + bytes(60_000),
    }


@pytest.mark.parametrize("name", samples())
def test_beginnings(name: str) -> None:
    data = samples()[name]
    block, spare = snappy.compress(data), new_arena()
    rng, found = random.Random(name), 0
    for wanted in [0, 1, 63, 64, 65, *(rng.randrange(len(data) * 7 // 8) for _ in range(200))]:
        out = np.full(len(data), 0x5A, np.uint8)
        start = inflate_start(memoryview(block), len(data), wanted, out, spare)
        if start is None:
            continue
        found += 1
        assert len(start) >= wanted
        assert start.tobytes() == data[: len(start)]
        assert (out[len(start) + 64 :] == 0x5A).all()  # that much more may have been written, and no further
    assert found >= (100 if name != "half random" else 20)


def test_more_of_a_block_is_given_where_its_beginning_shrinks_less() -> None:
    asked: list[int] = []
    data = samples()["ascending"] + bytes(320_000)

    def decode(block: Any, out: Any) -> int:
        asked.append(len(block))
        return int(cramjam.snappy.decompress_raw_into(block, out))

    block, out = snappy.compress(data), np.empty(len(data), np.uint8)
    found = snappy_start(decode, block, len(data), 100_000, out, new_arena())
    assert out[:found].tobytes() == data[:found]
    assert found >= 100_000
    assert len(asked) == 2
    assert asked[0] < asked[1] < 120_000


def test_where_it_does_not_pay() -> None:
    data, spare = samples()["ascending"], new_arena()
    out = np.empty(len(data), np.uint8)
    block = snappy.compress(data)
    assert inflate_start(block, len(data), len(data) - 10, out, spare) is None
    small = data[: SNAPPY_START_PAYS_FROM - 8]
    assert inflate_start(snappy.compress(small), len(small), 10, out, spare) is None
    noise = np.random.default_rng(2).integers(0, 256, 100_000).astype(np.uint8).tobytes()
    assert inflate_start(snappy.compress(noise), len(noise), 10, np.empty(len(noise), np.uint8), spare) is None


def test_blocks_that_are_none() -> None:
    data, spare = samples()["ascending"], new_arena()
    block, out = snappy.compress(data), np.empty(len(data), np.uint8)
    for bad in (b"", b"\x80", b"\x80" * 9, b"\xff\xff\xff\xff\xff\xff", b"\x05" + block[3:], block[:3], block[:40]):
        assert inflate_start(bad, len(data), 1000, out, spare) is None
    assert inflate_start(block, len(data) + 1, 1000, np.empty(len(data) + 1, np.uint8), spare) is None


def test_damage() -> None:
    """Before the end of what is given it may change that, or is noticed; behind it nobody looks."""
    data, rng, spare = samples()["words"], random.Random(8), new_arena()
    block = snappy.compress(data)
    for _ in range(400):
        damaged = bytearray(block)
        damaged[rng.randrange(len(block))] ^= 1 << rng.randrange(8)
        out = np.empty(len(data), np.uint8)
        start = inflate_start(bytes(damaged), len(data), 5000, out, spare)
        assert start is None or len(start) >= 5000
        try:
            whole = bytes(cramjam.snappy.decompress_raw(bytes(damaged)))
        except cramjam.DecompressionError:
            continue
        if start is not None and len(whole) == len(data):
            assert start.tobytes() == whole[: len(start)]


def test_the_library_says_how_far_it_came() -> None:
    """What all this stands on: an error that counts the bytes that are missing."""
    data = samples()["ascending"]
    block = snappy.compress(data)
    out = np.empty(len(data), np.uint8)
    short = b"\xe8\x07" + block[3:]  # 1,000 bytes
    with pytest.raises(cramjam.DecompressionError, match=r"remaining dst: \d+\)"):
        cramjam.snappy.decompress_raw_into(short, out[:1000])
