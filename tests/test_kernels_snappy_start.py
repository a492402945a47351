"""The beginning of a Snappy block, inflated without the rest."""

from __future__ import annotations

import random
from typing import Any

import cramjam
import numpy as np
import pytest
import snappy

from pyparq.buffers import new_arena
from pyparq.format import ttypes as tt
from pyparq.format.codec import serialize
from pyparq.kernels import SNAPPY_START_PAYS_FROM, Arena, Inflater, open_run, snappy_start


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


def opened(block: bytes, size: int) -> tuple[bytes | None, int]:
    """The page of ``size`` bytes whose body is ``block`` (``None`` where the loop leaves it alone), and how often the
    library was called for it."""
    inner = tt.DataPageHeader(num_values=1, encoding=0, definition_level_encoding=3, repetition_level_encoding=3)
    header = tt.PageHeader(type=0, uncompressed_page_size=size, compressed_page_size=len(block), data_page_header=inner)
    calls = []

    def decode(stored: Any, out: Any) -> int:
        calls.append(bytes(stored))
        return int(cramjam.snappy.decompress_raw_into(stored, out))

    terms = (0, 0, 1 << 30, 1 << 30, 1 << 20, 1 << 20, 1 << 20)
    inflater = Inflater(decode, True, new_arena(), new_arena(), None)
    found, *_ = open_run(memoryview(serialize(header) + block), 0, 0, 1, terms, 1 << 30, 1 << 40, inflater, None)
    return (bytes(found[0][-1]) if found else None), len(calls)


@pytest.mark.parametrize("size", [1, 2, 59, 60, 61, 255, 256, 257, 1000, 65_535, 65_536])
def test_one_literal_is_opened_without_the_library(size: int) -> None:
    data = random.Random(size).randbytes(size)
    block = snappy.compress(data)
    assert opened(block, size) == (data, 0)
    for wrong in (block[:-1], block + b"\0", block[:1], b"", b"\xff" * 9):
        assert opened(wrong, size)[0] is None
    for other in (size - 1, size + 1):
        assert opened(block, other)[0] is None


def test_literals_of_any_length_of_length() -> None:
    data = random.Random(5).randbytes(70)
    for tag in (
        bytes([60 << 2, 69]),
        bytes([61 << 2, 69, 0]),
        bytes([62 << 2, 69, 0, 0]),
        bytes([63 << 2, 69, 0, 0, 0]),
    ):
        assert opened(bytes([70]) + tag + data, 70) == (data, 0)
        for shorter in range(1, len(tag) + 1):
            assert opened(bytes([70]) + tag[:shorter], 70) == (None, 1)
    for byte in range(1, 4):  # a copy
        assert opened(bytes([70, 60 << 2 | byte, 69]) + data, 70) == (None, 1)
    assert opened(bytes([70, 63 << 2, 69, 0, 0, 128]) + data, 70) == (None, 1)


def test_other_blocks_go_to_the_library() -> None:
    for data in (bytes(1000), random.Random(6).randbytes(65_537), b"ab" * 40):
        assert opened(snappy.compress(data), len(data)) == (data, 1)
