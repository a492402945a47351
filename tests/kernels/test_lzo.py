"""LZO pages: those that liblzo2 made, and damaged ones."""

from __future__ import annotations

import ctypes
import random
from pathlib import Path

import pytest
from handmade import int32
from hostile_pages import data_page, hand_made
from lzo_pages import PAGES, framed

import pyparq
from pyparq.errors import CorruptFileError, OptionError, ParquetError
from pyparq.format import ttypes as tt
from pyparq.kernels._native import probes

FILE = Path(__file__).parents[2] / "testdata" / "lzo.parquet"
LZO = 3


def inflated(data: bytes, size: int) -> bytes | None:
    """``None`` where the data are refused. Bytes behind the end are not touched."""
    out = bytearray(b"\xa5" * (size + 64))
    found = probes.inflate(LZO, data, memoryview(out)[:size])
    assert bytes(out[size:]) == b"\xa5" * 64
    return None if found < 0 else bytes(out[:found])


def test_pages_of_liblzo2() -> None:
    """Three of its compressors: blocks of several sizes in Hadoop's frames, and bare ones."""
    assert pyparq.read_table(FILE).to_pydict()["s"] == [v for values, _, _ in PAGES for v in values]
    with pyparq.ParquetFile(FILE) as file:
        assert file.metadata.row_group(0).column(0).compression == "LZO"
    assert pyparq.verify(FILE).ok


@pytest.mark.parametrize("function", ["lzo1x_1_compress", "lzo1x_999_compress", "lzo1x_1_11_compress"])
def test_blocks_of_liblzo2(function: str) -> None:
    """Random texts of every kind, where the library is installed."""
    try:
        library = ctypes.CDLL("liblzo2.so.2")
    except OSError:
        pytest.skip("liblzo2 is not installed (Debian: liblzo2-2); testdata/lzo.parquet has its blocks")
    rng = random.Random(function)
    room = ctypes.create_string_buffer(1 << 20)
    for k in range(300):
        alphabet = bytes(rng.randrange(256) for _ in range(rng.choice([1, 2, 5, 60, 256])))
        data = b"".join(rng.choices([bytes([c]) for c in alphabet], k=rng.choice([0, 1, 5, 40, 3000])))
        data += data[: rng.randrange(len(data) + 1)] * rng.randrange(3) + bytes(rng.choice([0, 0, 50_000]))
        out, size = ctypes.create_string_buffer(len(data) * 2 + 100), ctypes.c_size_t()
        assert getattr(library, function)(data, ctypes.c_size_t(len(data)), out, ctypes.byref(size), room) == 0, k
        block = out.raw[: size.value]
        assert inflated(block, len(data)) == data
        if data:
            assert inflated(framed(data, len(data), lambda _, b=block: b), len(data)) == data
            assert inflated(block, len(data) - 1) is None  # no room for all


# The description's instructions, one by one: what they mean by hand.
END = b"\x11\0\0"


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (END, b""),
        (b"\x12a" + END, b"a"),  # 18: one literal first
        (b"\x15abcd" + END, b"abcd"),  # 21: four
        (b"\x01abcd" + END, b"abcd"),  # a run of four
        (b"\0\x01" + b"z" * 19 + END, b"z" * 19),  # a longer run
        (b"\0\0\x01" + b"y" * 274 + END, b"y" * 274),  # longer still
        (b"\x13ab\x05\0c" + END, b"ababc"),  # two bytes from 2 back, one literal
        (b"\x15abcd\x4c\0" + END, b"abcd" + b"abc"),  # 64 and more: three bytes from 4 back
        (b"\x12a\x20\x01\0\0" + END, b"a" * 35),  # 32: 34 bytes from 1 back
        (b"\x12a\x3f\x01\0q\x20\0\x01\x04\0" + END, b"a" * 34 + b"q" + b"aq" * 144 + b"a"),
    ],
)
def test_instructions(stream: bytes, expected: bytes) -> None:
    assert inflated(stream, max(len(expected), 1)) == expected


def test_what_is_malformed() -> None:
    for stream in (
        b"", b"\x11", b"\x11\0", END + b"x", b"\x12", b"\x12a", b"\x01abc" + END, b"\x40\0" + END, b"\x12a\x40\1" + END,
        b"\x20\0" * 5, b"\0" * 100, b"\x12a\x18\0\0" + END,
    ):  # fmt: skip
        assert inflated(stream, 100) is None, stream
    assert inflated(b"\x12a\x3f\0\0" + END, 10) is None  # longer than there is room


def test_random_damage_does_no_harm() -> None:
    rng = random.Random(1)
    data = FILE.read_bytes()
    good = data[4:6000]
    for _ in range(3000):
        block = bytearray(good[rng.randrange(5000) :][: rng.randint(1, 900)])
        for _ in range(rng.randint(0, 4)):
            block[rng.randrange(len(block))] = rng.choice([0, 0x11, 0x20, 0xFF, rng.randrange(256)])
        inflated(bytes(block), rng.choice([0, 1, 100, 5000]))
    for _ in range(200):
        whole = bytearray(data)
        for _ in range(3):
            whole[rng.randrange(4, len(data) - 400)] = rng.randrange(256)
        try:
            pyparq.read_table(bytes(whole))
        except ParquetError:
            continue


def test_damage_is_named() -> None:
    element = tt.SchemaElement(name="n", type=1, repetition_type=0)
    body = b"\x15" + int32(7) + END
    assert pyparq.read_table(hand_made(element, 1, [(data_page(1, 0, 4), body)], codec=LZO)).to_pydict() == {"n": [7]}
    bad = hand_made(element, 1, [(data_page(1, 0, 4), body[:-1])], codec=LZO)
    with pytest.raises(CorruptFileError, match=r"LZO data is invalid.*row group 0, column n, page 0"):
        pyparq.read_table(bad)
    with pytest.raises(CorruptFileError, match=r"cannot decompress to 100000 bytes.*column n, page 0"):
        pyparq.read_table(hand_made(element, 1, [(data_page(1, 0, 100_000), body)], codec=LZO))


def test_not_written() -> None:
    with pytest.raises(OptionError, match="LZO is only read"):
        pyparq.write_table({"n": [1]}, "x.parquet", compression="lzo")
