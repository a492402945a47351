"""Snappy blocks of one literal, which need no library."""

from __future__ import annotations

import random
from typing import Any

import cramjam
import pytest
import snappy

from pyparq.format import ttypes as tt
from pyparq.format.thrift_codec import serialize
from pyparq.kernels import Inflater, open_run
from pyparq.kernels.buffers import new_arena


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
    inflater = Inflater(decode, True, new_arena(), None)
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
