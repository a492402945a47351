"""Every kernel against a plain reference, on seeded random and chosen values."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_data import OFFSET_TYPES, binary, values_of, words

from pyparq import kernels
from pyparq.kernels import KernelError
from pyparq.kernels._native import probes

# --- RLE / bit packing ---


def u8_out(n: int) -> Any:
    return np.full(n, 0xAA, np.uint8)


@pytest.mark.parametrize("width", range(1, 9))
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 63, 64, 65, 1000])
def test_rle_decode_u8_literals(width: int, count: int) -> None:
    rng = random.Random(width * 1000 + count)
    values = [rng.randrange(1 << width) for _ in range(count)]
    data = reference.rle_literal(values, width)
    out = u8_out(count + 3)
    assert probes.rle_decode_u8(data + b"tail", width, count, out) == (len(data) if count else 0)
    assert out[:count].tolist() == values
    assert out[count:].tolist() == [0xAA] * 3


@pytest.mark.parametrize("width", range(1, 33))
@pytest.mark.parametrize("count", [1, 8, 31, 32, 33, 64, 999])
def test_rle_decode_i32_literals(width: int, count: int) -> None:
    rng = random.Random(width * 1000 + count)
    top = min(1 << width, 1 << 31)
    values = [rng.randrange(top) for _ in range(count)]
    data = reference.rle_literal(values, width)
    out = np.full(count, -1, np.int32)
    assert probes.rle_decode_i32(data, width, count, out, 1 << 31) == len(data)
    assert out.tolist() == values
    if max(values) > 0:
        with pytest.raises(KernelError, match=str(max(values))):
            probes.rle_decode_i32(data, width, count, out, max(values))


@given(
    st.integers(1, 32),
    st.lists(st.tuples(st.booleans(), st.integers(0, 2**31 - 1), st.integers(1, 40)), max_size=12),
)
@settings(max_examples=150)
def test_rle_decode_mixed_runs(width: int, runs: list[tuple[bool, int, int]]) -> None:
    data, values = b"", []
    for as_run, seed, length in runs:
        if as_run:
            value = seed & ((1 << width) - 1) & (2**31 - 1)
            data += reference.rle_run(value, length, width)
            values += [value] * length
        else:
            rng = random.Random(seed)
            part = [rng.randrange(min(1 << width, 1 << 31)) for _ in range((length + 7) // 8 * 8)]
            data += reference.rle_literal(part, width)
            values += part
    assert reference.rle_decode(data, width, len(values)) == (values, len(data))
    out = np.empty(len(values), np.int32)
    assert probes.rle_decode_i32(data, width, len(values), out, 1 << 31) == len(data)
    assert out.tolist() == values
    if width <= 8:
        small = u8_out(len(values))
        assert probes.rle_decode_u8(data, width, len(values), small) == len(data)
        assert small.tolist() == values


def test_rle_decode_stops_at_count_inside_a_run() -> None:
    out = u8_out(5)
    assert probes.rle_decode_u8(reference.rle_run(1, 60, 1), 1, 5, out) == 2
    assert out.tolist() == [1] * 5
    assert probes.rle_decode_u8(reference.rle_literal([1, 0] * 8, 1), 1, 5, out) == 3
    assert out.tolist() == [1, 0, 1, 0, 1]


def test_rle_decode_width_zero_reads_nothing() -> None:
    out = u8_out(4)
    assert probes.rle_decode_u8(b"\xff\xff", 0, 4, out) == 0
    assert out.tolist() == [0] * 4
    indices = np.full(4, 7, np.int32)
    assert probes.rle_decode_i32(b"", 0, 4, indices, 1) == 0
    assert indices.tolist() == [0] * 4
    with pytest.raises(KernelError):
        probes.rle_decode_i32(b"", 0, 4, indices, 0)


def test_rle_decode_allows_an_unpadded_last_group_only_behind_the_last_value() -> None:
    packed = reference.rle_literal([1, 2, 3, 4, 5, 6, 7, 0], 3)  # header + 3 bytes
    out = u8_out(5)
    assert probes.rle_decode_u8(packed[:3], 3, 5, out) == 3
    assert out.tolist() == [1, 2, 3, 4, 5]
    with pytest.raises(KernelError, match="bit-packed"):
        probes.rle_decode_u8(packed[:2], 3, 5, out)


@pytest.mark.parametrize(
    ("data", "width", "count", "says"),
    [
        (b"", 1, 1, "header"),
        (b"\x80", 1, 1, "header"),
        (b"\xff\xff\xff\xff\xff\x01", 1, 1, "five bytes"),
        (b"\x10", 1, 8, "run value"),
        (b"\x10\x02", 1, 8, "value 2"),
        (b"\x03", 1, 8, "bit-packed"),
        (b"\x10\x01", 9, 8, "bit width"),
        (b"\x10\x01", -1, 8, "bit width"),
        (b"\x10\x01", 1, -1, "negative"),
        (b"\x10\x01", 1, 9, "items"),
    ],
)
def test_rle_decode_refuses(data: bytes, width: int, count: int, says: str) -> None:
    with pytest.raises(KernelError, match=says):
        probes.rle_decode_u8(data, width, count, u8_out(8))


def test_rle_decode_u8_holds_levels_to_their_maximum() -> None:
    for data in (reference.rle_literal([0, 1, 2, 3], 2), reference.rle_run(3, 4, 2)):
        probes.rle_decode_u8(data, 2, 4, u8_out(4), 3)
        with pytest.raises(KernelError, match="3"):
            probes.rle_decode_u8(data, 2, 4, u8_out(4), 2)


@pytest.mark.parametrize("width", range(9))
def test_bit_packed_decode(width: int) -> None:
    rng = random.Random(width)
    values = [rng.randrange(1 << width) for _ in range(77)]
    data = reference.bit_pack_msb(values, width)
    out = u8_out(77)
    assert probes.bit_packed_decode_u8(data, width, 77, out) == len(data)
    assert out.tolist() == values
    if width:
        with pytest.raises(KernelError):
            probes.bit_packed_decode_u8(data[:-1], width, 77, out)


def test_bit_packed_decode_specification_example() -> None:
    out = u8_out(8)  # Encodings.md: 0..7 at three bits
    probes.bit_packed_decode_u8(bytes([0b00000101, 0b00111001, 0b01110111]), 3, 8, out)
    assert out.tolist() == list(range(8))


def runs_and_noise(rng: random.Random, width: int, n: int) -> list[int]:
    values: list[int] = []
    while len(values) < n:
        if rng.random() < 0.5:
            values += [rng.randrange(1 << width)] * rng.choice([1, 3, 8, 9, 15, 16, 17, 100])
        else:
            values += [rng.randrange(1 << width) for _ in range(rng.choice([1, 5, 8, 13, 64]))]
    return values[:n]


@pytest.mark.parametrize("width", [0, 1, 2, 3, 5, 7, 8, 12, 17, 20, 25, 26, 31, 32])
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 64, 2000])
def test_rle_encode(width: int, n: int) -> None:
    values = runs_and_noise(random.Random(width * n), width, n)
    as_i32 = np.array(values, np.uint32).view(np.int32)
    data = probes.rle_encode_i32(as_i32, width)
    if width:
        assert reference.rle_decode(data, width, n) == (values, len(data))
    if width <= 8:
        assert probes.rle_encode_u8(np.array(values, np.uint8), width) == data


def test_rle_encode_is_small() -> None:
    assert len(probes.rle_encode_u8(np.ones(1_000_000, np.uint8), 1)) <= 5
    assert len(probes.rle_encode_i32(np.arange(8000, dtype=np.int32), 13)) <= 13_003
    alternate = np.repeat(np.arange(1000, dtype=np.int32), 64)
    assert len(probes.rle_encode_i32(alternate, 10)) <= 4 * 1000


def test_rle_encode_refuses_what_does_not_fit() -> None:
    with pytest.raises(KernelError, match="does not fit"):
        probes.rle_encode_u8(np.array([0, 2], np.uint8), 1)
    with pytest.raises(KernelError, match="does not fit"):
        probes.rle_encode_i32(np.array([0, -1], np.int32), 31)


# --- fixed width ---


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 8, 12, 16, 33])
@pytest.mark.parametrize("n", [0, 1, 5, 4096, 5000])
def test_gather_fixed(width: int, n: int) -> None:
    rng = np.random.default_rng(width)
    dictionary = rng.integers(0, 256, (50, width)).astype(np.uint8)
    indices = rng.integers(0, 50, n).astype(np.int32)
    out = u8_out(n * width)
    kernels.gather_fixed(dictionary, width, indices, out)
    assert out.tobytes() == dictionary[indices].tobytes()


@pytest.mark.parametrize("bad", [50, -1, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("at", [0, 4999])
def test_gather_fixed_refuses_indices_outside(bad: int, at: int) -> None:
    indices = np.zeros(5000, np.int32)
    indices[at] = bad
    with pytest.raises(KernelError, match=str(bad)):
        kernels.gather_fixed(np.zeros(50, np.int64), 8, indices, np.empty(5000, np.int64))


def test_gather_fixed_refuses_sizes_that_do_not_fit() -> None:
    one = np.zeros(1, np.int32)
    for dictionary, width, out in [
        (b"12345", 4, u8_out(4)),
        (b"1234", 4, u8_out(5)),
        (b"1234", 0, u8_out(4)),
    ]:
        with pytest.raises(KernelError):
            kernels.gather_fixed(dictionary, width, one, out)
    with pytest.raises(KernelError):
        kernels.gather_fixed(b"", 4, one, u8_out(4))


@pytest.mark.parametrize("width", [1, 2, 4, 7, 8, 12, 16])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.99, 1.0])
def test_compact_fixed(width: int, share: float) -> None:
    rng = np.random.default_rng(width)
    valid = (rng.random(1000) < share).astype(np.uint8) * 5
    values = rng.integers(0, 256, (np.count_nonzero(valid), width)).astype(np.uint8)
    slots = np.zeros((1000, width), np.uint8)
    slots[valid != 0] = values
    assert kernels.compact_fixed(slots, width, valid).tobytes() == values.tobytes()


def test_without_validity_everything_is_present() -> None:
    values = np.arange(10, dtype=np.int32)
    assert kernels.compact_fixed(values, 4, None).view(np.int32).tolist() == values.tolist()


# --- byte arrays ---

STRINGS = [b"", b"a", b"ab" * 8, b"abc" * 5, b"x" * 17, b"\x00", b"y" * 300, b"", b"z" * 16]


@pytest.mark.parametrize("dtype", OFFSET_TYPES)
@pytest.mark.parametrize("base", [0, 1000])
@pytest.mark.parametrize("n", [0, 1, len(STRINGS)])
def test_plain_binary_decode(dtype: Any, base: int, n: int) -> None:
    values = STRINGS[:n]
    data = reference.plain_binary(values)
    offsets = np.empty(n + 1, dtype)
    out = u8_out(len(data) - 4 * n)
    assert probes.plain_binary_decode(data + b"more", n, offsets, out, base) == len(data)
    assert values_of(offsets - dtype(base), out) == values


@pytest.mark.parametrize("cut", range(len(reference.plain_binary(STRINGS[:5]))))
def test_plain_binary_decode_refuses_every_truncation(cut: int) -> None:
    data = reference.plain_binary(STRINGS[:5])
    with pytest.raises(KernelError):
        probes.plain_binary_decode(data[:cut], 5, np.empty(6, np.int64), u8_out(1000))


def test_plain_binary_decode_refuses() -> None:
    offsets = np.empty(2, np.int64)
    for data in (b"\xff\xff\xff\xff", b"\x05\x00\x00\x00abcd", b"\x00\x00\x00\x80abcd"):
        with pytest.raises(KernelError, match="declares"):
            probes.plain_binary_decode(data, 1, offsets, u8_out(100))
    with pytest.raises(KernelError, match="too small"):
        probes.plain_binary_decode(b"\x05\x00\x00\x00abcde", 1, offsets, u8_out(4))
    with pytest.raises(KernelError, match="cannot fit"):
        probes.plain_binary_decode(b"", 2**62, offsets, u8_out(4))
    with pytest.raises(KernelError, match="out_offsets"):
        probes.plain_binary_decode(b"\x00" * 8, 2, offsets, u8_out(4))
    with pytest.raises(KernelError, match="32 bits"):
        probes.plain_binary_decode(b"\x01\x00\x00\x00a", 1, np.empty(2, np.int32), u8_out(4), 2**31 - 1)


@pytest.mark.parametrize("dtype", OFFSET_TYPES)
@pytest.mark.parametrize("lead", [b"", b"lead"])
def test_plain_binary_encode(dtype: Any, lead: bytes) -> None:
    rng = random.Random(1)
    values = STRINGS + words(rng, 200)
    offsets, data = binary(values, dtype, lead)
    assert kernels.plain_binary_encode(offsets, data).tobytes() == reference.plain_binary(values)
    assert kernels.plain_binary_encode(offsets[:1], data).size == 0


@pytest.mark.parametrize(
    ("offsets", "size"),
    [
        ([], 0),
        ([-1, 0], 5),
        ([0, 6], 5),
        ([0, 3, 2], 5),
        ([5, 3], 5),
        ([0, 2**62], 5),
        ([2**62, 2**62 + 1], 5),
    ],
)
def test_bad_offsets_are_refused_everywhere(offsets: list[int], size: int) -> None:
    o, data = np.array(offsets, np.int64), np.zeros(size, np.uint8)
    good = np.zeros(1, np.int64)
    some = np.zeros(0, np.int64)
    calls: list[Callable[[], Any]] = [
        lambda: kernels.plain_binary_encode(o, data),
        lambda: kernels.take_binary(o, data, some),
        lambda: kernels.compact_binary(o, data, None),
        lambda: kernels.utf8_validate(o, data),
        lambda: kernels.xxh64_binary(o, data),
        lambda: kernels.dict_encode_binary(o, data, 100),
        lambda: kernels.BytesSet(good, b"").test(o, data),
        lambda: kernels.BytesSet(o, data),
        lambda: kernels.segment_bounds_binary(kernels.LeafOrder(4, 0, False, False, False), o, data, good),
        lambda: kernels.segment_bounds_binary(kernels.LeafOrder(5, 0, False, False, False), o, data, good),
        lambda: kernels.compare_binary(o, data, b""),
        lambda: kernels.compare_binary_decimal(o, data, b""),
        lambda: kernels.gather_binary_bytes(o, data, np.zeros(0, np.int32), u8_out(0)),
    ]
    for call in calls:
        with pytest.raises(KernelError):
            call()


def test_narrow_offsets() -> None:
    offsets = np.array([0, 5, 2**31 - 1], np.int64)
    assert kernels.narrow_offsets(offsets).tolist() == offsets.tolist()
    assert kernels.narrow_offsets(offsets).dtype == np.int32
    with pytest.raises(KernelError):
        kernels.narrow_offsets(offsets + 1)


@pytest.mark.parametrize("dtype", OFFSET_TYPES)
@pytest.mark.parametrize("n", [0, 1, 5000])
def test_gather_binary(dtype: Any, n: int) -> None:
    rng = np.random.default_rng(n)
    offsets, data = binary(STRINGS, dtype, b"junk")
    indices = rng.integers(0, len(STRINGS), n).astype(np.int32)
    expect = [STRINGS[i] for i in indices]
    out_offsets = np.empty(n + 1, dtype)
    total = kernels.gather_binary_offsets(offsets, indices, out_offsets, 77)
    assert total == sum(map(len, expect))
    out = u8_out(total)
    assert kernels.gather_binary_bytes(offsets, data, indices, out) == total
    assert values_of(out_offsets - dtype(77), out) == expect
    if n:
        with pytest.raises(KernelError, match="too small"):
            kernels.gather_binary_bytes(offsets, data, np.full(n, 6, np.int32), u8_out(299))
        for bad in (-1, len(STRINGS)):
            indices[n - 1] = bad
            with pytest.raises(KernelError, match=str(bad)):
                kernels.gather_binary_bytes(offsets, data, indices, u8_out(300 * n))
            with pytest.raises(KernelError, match=str(bad)):
                kernels.gather_binary_offsets(offsets, indices, out_offsets)


def test_gather_binary_offsets_refuses_overflow() -> None:
    offsets = np.array([0, 2**60], np.int64)
    with pytest.raises(KernelError, match="overflow"):
        kernels.gather_binary_offsets(offsets, np.zeros(16, np.int32), np.empty(17, np.int64))
    with pytest.raises(KernelError, match="32 bits"):
        kernels.gather_binary_offsets(np.array([0, 2**30], np.int64), np.zeros(2, np.int32), np.empty(3, np.int32))


@pytest.mark.parametrize("dtype", OFFSET_TYPES)
def test_take_and_compact_binary(dtype: Any) -> None:
    rng = random.Random(5)
    values = words(rng, 500)
    offsets, data = binary(values, dtype, b"lead")
    rows = [rng.randrange(500) for _ in range(300)]
    assert values_of(*kernels.take_binary(offsets, data, np.array(rows, np.int64))) == [values[r] for r in rows]
    valid = [rng.random() < 0.5 for _ in values]
    taken = kernels.compact_binary(offsets, data, np.array(valid))
    assert values_of(*taken) == [v for v, keep in zip(values, valid) if keep]
    assert values_of(*kernels.compact_binary(offsets, data, None)) == values
    for bad in (-1, 500, 2**62):
        with pytest.raises(KernelError, match=str(bad)):
            kernels.take_binary(offsets, data, np.array([0, bad], np.int64))
    with pytest.raises(KernelError):
        kernels.compact_binary(offsets, data, np.ones(499, np.uint8))


UTF8 = [
    b"",
    b"plain",
    "ü".encode(),
    "€".encode(),
    "\U0001f600".encode(),
    b"\xf4\x8f\xbf\xbf",
    b"\xed\x9f\xbf",
]
NOT_UTF8 = [
    b"\x80", b"\xc3", b"\xc0\x80", b"\xe2\x82", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xf0\x80\x80\x80",
    b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xff", b"abcdefgh\xc3", b"\xc3\x28", b"\xf0\x9f\x98",
]  # fmt: skip


@pytest.mark.parametrize("dtype", OFFSET_TYPES)
def test_utf8_validate(dtype: Any) -> None:
    good = UTF8 * 3
    assert kernels.utf8_validate(*binary(good, dtype, b"\xff")) == -1
    assert kernels.utf8_validate(*binary([], dtype)) == -1
    for bad in NOT_UTF8:
        with pytest.raises(UnicodeDecodeError):
            bad.decode()
        for at in (0, 4, len(good)):
            assert kernels.utf8_validate(*binary([*good[:at], bad, *good[at:]], dtype)) == at
    # A character split over two values: valid as a stream, invalid as values.
    assert kernels.utf8_validate(*binary([b"a", b"\xc3", b"\xbc"], dtype)) == 1


@given(st.lists(st.one_of(st.binary(max_size=6), st.text(max_size=6).map(str.encode)), max_size=6))
@settings(max_examples=300)
def test_utf8_validate_agrees_with_python(values: list[bytes]) -> None:
    def valid(v: bytes) -> bool:
        try:
            v.decode()
        except UnicodeDecodeError:
            return False
        return True

    expect = next((i for i, v in enumerate(values) if not valid(v)), -1)
    assert kernels.utf8_validate(*binary(values)) == expect


# --- arguments ---


def test_arguments_that_are_not_the_arrays_asked_for() -> None:
    wrong: list[Callable[[], Any]] = [
        lambda: kernels.gather_fixed(b"1234", 4, np.zeros(1, np.int64), u8_out(4)),
        lambda: kernels.gather_fixed(b"1234", 4, np.zeros(1, np.float32), u8_out(4)),
        lambda: kernels.gather_fixed(b"1234", 4, np.zeros(1, ">i4"), u8_out(4)),
        lambda: kernels.gather_fixed(b"1234", 4, np.zeros(2, np.int32)[::2], bytes(4)),
        lambda: kernels.gather_fixed(np.zeros(8, np.uint8)[::2], 4, np.zeros(1, np.int32), u8_out(4)),
        lambda: probes.rle_decode_u8(b"", 0, 0, np.zeros((2, 2), np.uint8)),
        lambda: kernels.xxh64_binary(np.zeros(1, np.uint64), b""),
        lambda: kernels.xxh64_fixed([1, 2], 8),  # type: ignore[arg-type]
        lambda: kernels.xxh64_fixed(None, 8),  # type: ignore[arg-type]
    ]
    for call in wrong:
        with pytest.raises(TypeError):
            call()


def test_results_are_ordinary_arrays() -> None:
    hashes = kernels.xxh64_fixed(np.arange(1000), 8)
    assert hashes.flags.owndata
    assert hashes.flags.writeable
    digest = hashlib.sha256(hashes.tobytes()).hexdigest()
    del hashes
    assert hashlib.sha256(kernels.xxh64_fixed(np.arange(1000), 8)).hexdigest() == digest


# --- numbers as text ---


def _texts(values: Any) -> list[str]:
    offsets, data = kernels.number_texts(values)
    text = data.tobytes().decode()
    return [text[a:b] for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]


@pytest.mark.parametrize("type_", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_number_texts_of_integers(type_: str) -> None:
    limits = np.iinfo(type_)
    values = np.random.default_rng(1).integers(limits.min, limits.max, 500, dtype=type_, endpoint=True)
    values[:3] = [limits.min, limits.max, 0]
    assert _texts(values) == list(map(str, values.tolist()))
    assert _texts(values[:0]) == []


def test_number_texts_of_floats_are_pythons() -> None:
    rng = np.random.default_rng(2)
    bits = rng.integers(0, 2**64, 20_000, dtype=np.uint64).view(np.float64)
    spread = rng.normal(size=20_000) * 10.0 ** rng.integers(-7, 18, 20_000)
    edges = [
        0.0,
        -0.0,
        1e-4,
        9.99e-5,
        2.0**53 - 1,
        2.0**53,
        1e16,
        5e-324,
        np.nan,
        np.inf,
        -np.inf,
        0.1,
        4503599627370497.5,
    ]
    values = np.concatenate([bits, spread, np.round(spread[:5000], 2), edges])
    found = _texts(values)
    assert [(a, b) for a, b in zip(found, map(repr, values.tolist()), strict=True) if a not in ("", b)] == []
    plain = (np.abs(values) >= 1e-4) & (np.abs(values) < 2.0**53)
    if found[-2] != "":  # the C++ library has shortest texts
        assert [bool(text) for text in found] == (plain | (values == 0)).tolist()
    with np.errstate(all="ignore"):
        narrow = values.astype(np.float32)
    assert [(a, b) for a, b in zip(_texts(narrow), map(str, narrow), strict=True) if a not in ("", b)] == []
    assert _texts(np.array([1.5], np.float16)) == [""]
    with pytest.raises(TypeError):
        kernels.number_texts(np.zeros((2, 2)))
