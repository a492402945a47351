"""Damaged and invented bytes: a kernel gives a result or a KernelError, and never reads or writes outside.

What these tests cannot see in an ordinary build, `tests/support/sanitize.py` makes visible.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import reference
from kernel_data import binary, values_of, words

from pyparq import kernels
from pyparq.kernels import KernelError
from pyparq.kernels._native import probes

RNG = random.Random(20)
N = 200
STRINGS = words(RNG, N)
INTS = [RNG.randrange(-(2**31), 2**31) for _ in range(N)]
LEVELS = [RNG.randrange(8) for _ in range(N)]
TWO_OF_THREE = np.array([1, 0, 1] * (N // 3), np.uint8)


def look_up(offsets: Any, data: Any, set_offsets: Any, set_data: Any) -> Any:
    return kernels.BytesSet(set_offsets, set_data).test(offsets, data)


def fenced(n: int, dtype: Any = np.uint8) -> tuple[Any, Any]:
    """An array in the middle of a larger one, and the larger one's margins."""
    margin = 64
    whole = np.full(n + 2 * margin, 0x5A, dtype)
    return whole[margin : margin + n], (whole[:margin], whole[margin + n :])


def untouched(margins: Any) -> bool:
    return all((m == 0x5A).all() for m in margins)


Run = Callable[[bytes], list[Any]]


def decoder(call: Callable[[bytes, Any, Any], Any], items: int, dtype: Any, octets: int) -> Run:
    """Runs a decoder with fenced outputs: one of items, one of bytes; gives the items."""

    def run(data: bytes) -> list[Any]:
        out, margins = fenced(items, dtype)
        raw, raw_margins = fenced(octets)
        try:
            call(data, out, raw)
        finally:
            assert untouched(margins)
            assert untouched(raw_margins)
        values: list[Any] = out.tolist()
        return values

    return run


def byte_arrays(data: bytes) -> list[Any]:
    offsets, raw, _ = probes.delta_byte_array_decode(data, N, 100_000)
    return values_of(offsets, raw)


DECODERS: dict[str, tuple[Run, bytes]] = {
    "rle_decode_u8": (
        decoder(lambda d, out, _: probes.rle_decode_u8(d, 3, N, out), N, np.uint8, 0),
        probes.rle_encode_u8(np.array(LEVELS * 3, np.uint8)[: N // 2], 3)
        + reference.rle_run(5, 40, 3)
        + reference.rle_literal(LEVELS, 3),
    ),
    "rle_decode_i32": (
        decoder(lambda d, out, _: probes.rle_decode_i32(d, 11, N, out, 1500), N, np.int32, 0),
        reference.rle_literal([v % 1500 for v in INTS], 11),
    ),
    "rle_decode_i32 wide": (
        decoder(lambda d, out, _: probes.rle_decode_i32(d, 30, N, out, 2**31), N, np.int32, 0),
        reference.rle_run(77, 50, 30) + reference.rle_literal([v % 2**30 for v in INTS], 30),
    ),
    "bit_packed_decode_u8": (
        decoder(lambda d, out, _: probes.bit_packed_decode_u8(d, 3, N, out), N, np.uint8, 0),
        reference.bit_pack_msb(LEVELS, 3),
    ),
    "plain_binary_decode": (
        decoder(lambda d, out, raw: probes.plain_binary_decode(d, N, out, raw), N + 1, np.int64, 2000),
        reference.plain_binary(STRINGS),
    ),
    "plain_binary_decode 32": (
        decoder(lambda d, out, raw: probes.plain_binary_decode(d, N, out, raw, 9), N + 1, np.int32, 5000),
        reference.plain_binary(STRINGS),
    ),
    "delta_decode_i32": (
        decoder(lambda d, out, _: probes.delta_decode_i32(d, out, N), N, np.int32, 0),
        reference.delta_encode(INTS, 32),
    ),
    "delta_decode_i64": (
        decoder(lambda d, out, _: probes.delta_decode_i64(d, out, N), N, np.int64, 0),
        reference.delta_encode([v << 30 for v in INTS], 64),
    ),
    "delta_length_decode": (
        decoder(lambda d, out, raw: probes.delta_length_decode(d, N, out, raw), N + 1, np.int64, 2000),
        reference.delta_length_encode(STRINGS),
    ),
    "delta_byte_array_decode": (
        byte_arrays,
        reference.delta_byte_array_encode(sorted(STRINGS)),
    ),
}
NAMES = sorted(DECODERS)


def attempt(run: Run, data: bytes) -> list[Any] | None:
    """What it decoded, or None for a KernelError; anything else fails the test."""
    try:
        return run(data)
    except KernelError:
        return None


@pytest.mark.parametrize("name", NAMES)
def test_every_truncation_is_refused_or_harmless(name: str) -> None:
    run, data = DECODERS[name]
    whole = run(data)
    refused = 0
    for cut in range(len(data)):
        got = attempt(run, data[:cut])
        # Only padding and what lies behind the last value may be missing.
        assert got is None or got == whole
        refused += got is None
    assert refused >= len(data) // 4


@pytest.mark.fuzz
@pytest.mark.parametrize("name", NAMES)
def test_flipped_bytes(name: str) -> None:
    run, data = DECODERS[name]
    rng = random.Random(name)
    for _ in range(600):
        damaged = bytearray(data)
        for _ in range(rng.choice([1, 1, 2, 8])):
            damaged[rng.randrange(min(len(damaged), rng.choice([8, 64, 10**6])))] = rng.randrange(256)
        attempt(run, bytes(damaged))


@pytest.mark.fuzz
@pytest.mark.parametrize("name", NAMES)
def test_random_bytes(name: str) -> None:
    run, _ = DECODERS[name]
    rng = random.Random(name)
    for _ in range(600):
        attempt(run, rng.randbytes(rng.choice([0, 1, 5, 20, 300])))
    for byte in (b"\x00", b"\xff", b"\x80", b"\x7f", b"\x01"):
        for n in (1, 4, 10, 1000):
            attempt(run, byte * n)


@pytest.mark.fuzz
def test_random_offsets() -> None:
    """Every kernel that follows offsets, with offsets that rise, fall, repeat and overshoot."""
    rng = random.Random(1)
    data = np.frombuffer(rng.randbytes(300), np.uint8)
    refused = 0
    for round_ in range(400):
        n = rng.randrange(12)
        bound = rng.choice([300, 300, 301, 10**6, 2**31 - 1])
        raw = [rng.randrange(-1 if round_ % 3 == 0 else 0, bound + 1) for _ in range(n + 1)]
        offsets = np.array(sorted(raw) if round_ % 5 else raw, rng.choice([np.int32, np.int64]))
        bounds = np.array(sorted(rng.randrange(n + 2) for _ in range(4)), np.int64)
        rows = np.array([rng.randrange(-1, n + 1) for _ in range(6)], np.int64)
        indices = rows.astype(np.int32)
        valid = np.array([rng.randrange(2) for _ in range(n)], np.uint8)
        out, margins = fenced(500)
        out_offsets, o_margins = fenced(7, np.int64)
        set_offsets, set_data = binary([b"ab", b""])
        calls: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
            (
                kernels.plain_binary_encode,
                (
                    offsets,
                    data,
                ),
            ),
            (
                probes.delta_length_encode,
                (
                    offsets,
                    data,
                ),
            ),
            (
                probes.delta_byte_array_encode,
                (
                    offsets,
                    data,
                ),
            ),
            (
                kernels.take_binary,
                (
                    offsets,
                    data,
                    rows,
                ),
            ),
            (
                kernels.compact_binary,
                (
                    offsets,
                    data,
                    valid,
                ),
            ),
            (
                kernels.gather_binary_offsets,
                (
                    offsets,
                    indices,
                    out_offsets,
                ),
            ),
            (
                kernels.gather_binary_bytes,
                (
                    offsets,
                    data,
                    indices,
                    out,
                ),
            ),
            (
                kernels.utf8_validate,
                (
                    offsets,
                    data,
                ),
            ),
            (
                kernels.dict_encode_binary,
                (
                    offsets,
                    data,
                    100,
                ),
            ),
            (
                look_up,
                (
                    offsets,
                    data,
                    set_offsets,
                    set_data,
                ),
            ),
            (
                look_up,
                (
                    set_offsets,
                    set_data,
                    offsets,
                    data,
                ),
            ),
            (
                kernels.xxh64_binary,
                (
                    offsets,
                    data,
                ),
            ),
            (
                kernels.segment_bounds_binary,
                (
                    kernels.LeafOrder(4, 0, False, False, False),
                    offsets,
                    data,
                    bounds,
                ),
            ),
            (
                kernels.segment_bounds_binary,
                (
                    kernels.LeafOrder(5, 0, False, False, False),
                    offsets,
                    data,
                    bounds,
                ),
            ),
            (
                kernels.compare_binary,
                (
                    offsets,
                    data,
                    data[:9],
                ),
            ),
        ]
        for call, arguments in calls:
            try:
                call(*arguments)
            except KernelError:
                refused += 1
        assert untouched(margins)
        assert untouched(o_margins)
    assert 1000 < refused < 400 * 17


@pytest.mark.fuzz
def test_random_fixed_arguments() -> None:
    rng = random.Random(2)
    for _ in range(600):
        width = rng.choice([-1, 0, 1, 2, 3, 4, 8, 12, 16, 2**31, 2**62])
        values = rng.randbytes(rng.choice([0, 1, 8, 16, 24, 48, 100]))
        count = max(1, len(values) // max(1, min(width, 100)))
        valid = np.array([rng.randrange(2) for _ in range(count)], np.uint8)
        indices = np.array([rng.randrange(-1, count + 1) for _ in range(4)], np.int32)
        bounds = np.array(sorted(rng.randrange(count + 2) for _ in range(3)), np.int64)
        out, margins = fenced(rng.choice([0, len(values), 4 * max(0, min(width, 50)), 64]))
        calls: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
            (
                kernels.gather_fixed,
                (
                    values,
                    width,
                    indices,
                    out,
                ),
            ),
            (
                kernels.compact_fixed,
                (
                    values,
                    width,
                    valid,
                ),
            ),
            (
                kernels.dict_encode_fixed,
                (
                    values,
                    width,
                    3,
                ),
            ),
            (
                kernels.xxh64_fixed,
                (
                    values,
                    width,
                ),
            ),
            (
                kernels.segment_bounds_fixed,
                (
                    kernels.LeafOrder(5, max(width, 0), False, False, False),
                    values,
                    bounds,
                ),
            ),
            (
                kernels.compare_flba,
                (
                    values,
                    width,
                    True,
                    values[:3],
                ),
            ),
            (
                probes.byte_stream_split_decode,
                (
                    values,
                    width,
                    out,
                ),
            ),
            (
                probes.byte_stream_split_encode,
                (
                    values,
                    width,
                ),
            ),
        ]
        for call, arguments in calls:
            with contextlib.suppress(KernelError):
                call(*arguments)
        assert untouched(margins)


@pytest.mark.parametrize("huge", [2**31, 2**40, 2**62, 2**63 - 1])
def test_huge_counts_allocate_nothing(huge: int) -> None:
    small, offsets = np.empty(4, np.uint8), np.empty(5, np.int64)
    calls: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
        (
            probes.rle_decode_u8,
            (
                b"\x02\x01",
                1,
                huge,
                small,
            ),
        ),
        (
            probes.rle_decode_i32,
            (
                b"\x02\x01",
                1,
                huge,
                np.empty(4, np.int32),
                2,
            ),
        ),
        (
            probes.bit_packed_decode_u8,
            (
                b"\x02\x01",
                1,
                huge,
                small,
            ),
        ),
        (
            probes.plain_binary_decode,
            (
                b"\x00" * 8,
                huge,
                offsets,
                small,
            ),
        ),
        (
            probes.delta_decode_i32,
            (
                b"\x00" * 8,
                np.empty(4, np.int32),
                huge,
            ),
        ),
        (
            probes.delta_length_decode,
            (
                b"\x00" * 8,
                huge,
                offsets,
                small,
            ),
        ),
        (
            probes.delta_byte_array_decode,
            (
                b"\x00" * 8,
                huge,
                100,
            ),
        ),
    ]
    for call, arguments in calls:
        with pytest.raises(KernelError):
            call(*arguments)
    for beyond in (2**63, -(2**63) - 1):
        with pytest.raises(TypeError):
            probes.rle_decode_u8(b"\x02\x01", 1, beyond, small)
