"""Delta encodings and BYTE_STREAM_SPLIT against plain references and pyarrow's bytes."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_data import OFFSET_TYPES, binary, values_of, words

from pyparq.kernels import KernelError
from pyparq.kernels._native import probes

CASES = [
    (np.int32, 32, probes.delta_decode_i32, probes.delta_encode_i32),
    (np.int64, 64, probes.delta_decode_i64, probes.delta_encode_i64),
]


def numbers(rng: random.Random, bits: int, n: int, spread: int) -> list[int]:
    """Steps of up to `spread` bits, with jumps to the type's ends so that differences wrap."""
    value, out = 0, []
    for _ in range(n):
        value = rng.choice([0, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))]) if rng.random() < 0.01 else value
        value = reference.wrap(value + rng.randrange(-(1 << spread), 1 << spread), bits)
        out.append(value)
    return out


@pytest.mark.parametrize(("dtype", "bits", "decode", "encode"), CASES)
@pytest.mark.parametrize("n", [0, 1, 2, 32, 33, 64, 128, 129, 130, 257, 1000])
@pytest.mark.parametrize("spread", [0, 1, 7, 15, 30])
def test_delta_both_ways(dtype: Any, bits: int, decode: Any, encode: Any, n: int, spread: int) -> None:
    values = numbers(random.Random(n * spread), bits, n, spread)
    data = encode(np.array(values, dtype))
    assert data == reference.delta_encode(values, bits)
    assert reference.delta_decode(data, bits) == (values, len(data))
    out = np.zeros(n + 1, dtype)
    assert decode(data + b"more", out, n) == len(data)
    assert out[:n].tolist() == values
    assert out[n] == 0


@pytest.mark.parametrize(("dtype", "bits", "decode", "encode"), CASES)
@given(data=st.data())
@settings(max_examples=60)
def test_delta_any_values(dtype: Any, bits: int, decode: Any, encode: Any, data: Any) -> None:
    values = data.draw(st.lists(st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1), max_size=200))
    encoded = encode(np.array(values, dtype))
    assert encoded == reference.delta_encode(values, bits)
    out = np.empty(len(values), dtype)
    assert decode(encoded, out, len(values)) == len(encoded)
    assert out.tolist() == values


@pytest.mark.parametrize(("dtype", "bits", "decode", "encode"), CASES)
@pytest.mark.parametrize(("block", "minis"), [(128, 1), (128, 2), (256, 8), (1024, 1), (1280, 5), (4096, 128)])
def test_delta_other_block_shapes(dtype: Any, bits: int, decode: Any, encode: Any, block: int, minis: int) -> None:
    for n in (1, 100, 3000):
        values = numbers(random.Random(n), bits, n, 20)
        data = reference.delta_encode(values, bits, block, minis)
        out = np.empty(n, dtype)
        assert decode(data, out, n) == len(data)
        assert out.tolist() == values


def header(block: int, minis: int, total: int, first: int = 0) -> bytes:
    return b"".join(map(reference.uleb128, (block, minis, total, reference.zigzag(first))))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "number"),
        (header(0, 1, 5), "block size"),
        (header(100, 1, 5), "block size"),
        (header(2**40, 1, 5), "block size"),
        (header(128, 0, 5), "miniblocks"),
        (header(128, 3, 5), "miniblocks"),
        (header(128, 8, 5), "miniblocks"),
        (header(2**31, 2**26, 5) + b"\x00", "bit widths"),
        (header(128, 4, 6), "6 values"),
        (header(128, 4, 2**62), "values"),
        (header(128, 4, 5) + b"\x00\x21\x00\x00\x00" + bytes(200), "bit width 33"),
        (header(128, 4, 5) + b"\x00\xff\x00\x00\x00" + bytes(2000), "bit width 255"),
        (header(128, 4, 5) + b"\x00\x10\x00\x00\x00" + bytes(7), "miniblock"),
        (b"\x80" * 11, "64 bits"),
        (b"\xff" * 9 + b"\x02", "64 bits"),
    ],
)
def test_delta_refuses(data: bytes, says: str) -> None:
    with pytest.raises(KernelError, match=says):
        probes.delta_decode_i32(data, np.empty(5, np.int32), 5)


def test_delta_reader_tolerance() -> None:
    """What the format lets writers do: any width for miniblocks without values, any padding bits."""
    values = [1, 2, 4, 7, 11]
    data = bytearray(reference.delta_encode(values, 32))
    out = np.empty(5, np.int32)
    at = len(header(128, 4, 5, 1)) + 1
    data[at + 1 : at + 4] = b"\xff\xff\xff"
    data[-1] ^= 0xFF
    assert probes.delta_decode_i32(bytes(data), out, 5) == len(data)
    assert out.tolist() == values
    assert probes.delta_decode_i32(b"", out, 0) == 0


def decode_lengths(data: bytes, n: int, dtype: Any = np.int64, base: int = 0) -> tuple[list[bytes], int]:
    offsets = np.empty(n + 1, dtype)
    out = np.empty(len(data), np.uint8)
    used = probes.delta_length_decode(data, n, offsets, out, base)
    return values_of(offsets - dtype(base), out), used


@pytest.mark.parametrize("dtype", OFFSET_TYPES)
@pytest.mark.parametrize("n", [0, 1, 2, 129, 1000])
def test_delta_length_and_byte_array(dtype: Any, n: int) -> None:
    rng = random.Random(n)
    values = words(rng, n)
    for chosen in (values, sorted(values), [b""] * n, [b"same"] * n):
        offsets, raw = binary(chosen, dtype, b"lead")
        data = probes.delta_length_encode(offsets, raw)
        assert data == reference.delta_length_encode(chosen)
        assert decode_lengths(data, n, dtype, 1000) == (chosen, len(data))
        data = probes.delta_byte_array_encode(offsets, raw)
        assert data == reference.delta_byte_array_encode(chosen)
        size = sum(map(len, chosen))
        got = probes.delta_byte_array_decode(data + b"more", n, size)
        assert values_of(got[0], got[1]) == chosen
        assert got[2] == len(data)
        if size:
            with pytest.raises(KernelError, match="allowed"):
                probes.delta_byte_array_decode(data, n, size - 1)


def test_delta_specification_examples() -> None:
    words_ = [b"Hello", b"World", b"Foobar", b"ABCDEF"]
    data = reference.delta_encode([5, 5, 6, 6], 32) + b"HelloWorldFoobarABCDEF"
    assert probes.delta_length_encode(*binary(words_)) == data
    words_ = [b"axis", b"axle", b"babble", b"babyhood"]
    data = reference.delta_encode([0, 2, 0, 3], 32) + reference.delta_encode([4, 2, 6, 5], 32)
    assert probes.delta_byte_array_encode(*binary(words_)) == data + b"axislebabbleyhood"


def test_delta_byte_arrays_refuse() -> None:
    lengths = reference.delta_encode
    with pytest.raises(KernelError, match="negative"):
        decode_lengths(lengths([3, -1], 32) + b"abc", 2)
    with pytest.raises(KernelError, match="declare 7 bytes"):
        decode_lengths(lengths([3, 4], 32) + b"abcdef", 2)
    with pytest.raises(KernelError, match="from one of 1"):
        probes.delta_byte_array_decode(lengths([0, 2], 32) + lengths([1, 1], 32) + b"ab", 2, 100)
    with pytest.raises(KernelError, match="from one of 0"):
        probes.delta_byte_array_decode(lengths([1], 32) + lengths([1], 32) + b"ab", 1, 100)
    with pytest.raises(KernelError, match="declare 3 bytes"):
        probes.delta_byte_array_decode(lengths([0, 1], 32) + lengths([1, 2], 32) + b"ab", 2, 100)
    with pytest.raises(KernelError, match="1 values, but the page needs 1099511627776"):
        probes.delta_byte_array_decode(lengths([0], 32) + lengths([1], 32) + b"a", 2**40, 100)
    with pytest.raises(KernelError, match="32 bits"):
        decode_lengths(lengths([3], 32) + b"abc", 1, np.int32, 2**31 - 2)


def test_delta_byte_array_bomb_is_refused_before_it_grows() -> None:
    n = 100_000  # every value repeats its predecessor and adds nothing
    data = reference.delta_encode([0] + [1000] * (n - 1), 32) + reference.delta_encode([1000] + [0] * (n - 1), 32)
    with pytest.raises(KernelError, match="allowed"):
        probes.delta_byte_array_decode(data + b"x" * 1000, n, 10_000_000)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 7, 8, 12, 16])
@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 300, 1000])
def test_byte_stream_split(width: int, n: int) -> None:
    values = random.Random(n).randbytes(n * width)
    data = probes.byte_stream_split_encode(values, width)
    assert data.tobytes() == reference.byte_stream_split(values, width)
    out = np.empty(n * width, np.uint8)
    probes.byte_stream_split_decode(data, width, out)
    assert out.tobytes() == values


def test_byte_stream_split_refuses() -> None:
    with pytest.raises(KernelError):
        probes.byte_stream_split_decode(bytes(7), 4, np.empty(7, np.uint8))
    with pytest.raises(KernelError):
        probes.byte_stream_split_decode(bytes(8), 4, np.empty(7, np.uint8))
    with pytest.raises(KernelError):
        probes.byte_stream_split_encode(bytes(8), 0)
