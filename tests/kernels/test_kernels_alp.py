"""ALP pages: the specification's example, a slow reference in both directions, its limits, and damaged pages."""

from __future__ import annotations

import random
import struct
from typing import Any

import alp_reference as reference
import numpy as np
import pytest

from pyparq.kernels import KernelError
from pyparq.kernels._native import probes

UINT = {4: np.uint32, 8: np.uint64}
FLOAT = {4: np.float32, 8: np.float64}


def decoded(page: bytes, width: int, count: int) -> list[int]:
    out = np.full(count, 0xA5, UINT[width])
    probes.alp_decode(page, width, count, out)
    return list(map(int, out))


def test_the_example_of_the_specification() -> None:
    """AlpEncoding.md, "Worked Example": 31 bytes, written down here from its tables."""
    nan = 0x7FF8_0000_DEAD_BEEF
    packed = 11665 | 11665 << 15 | 21665 << 30
    vector = bytes([4, 3, 1, 0]) + (3335).to_bytes(8, "little") + bytes([15]) + packed.to_bytes(8, "little")
    vector += bytes([1, 0]) + nan.to_bytes(8, "little")
    assert len(vector) == 31
    page = bytes([0, 0, 10, 4, 0, 0, 0]) + bytes([4, 0, 0, 0]) + vector
    expected = [struct.unpack("<Q", struct.pack("<d", v))[0] for v in (1500.0, 0.0, 2500.0, 333.5)]
    expected[1] = nan
    assert decoded(page, 8, 4) == expected == reference.decode(page, 8)


def test_the_example_of_bit_packing() -> None:
    """AlpEncoding.md, "Frame of Reference and Bit-Packing": [123, 456, 789, 12] take ten bits each."""
    vector = reference.vector([123, 456, 789, 12], 0, 0, 8)
    assert vector[12] == 10
    assert vector[13:] == (111 | 444 << 10 | 777 << 20).to_bytes(5, "little")
    out = np.empty(4)
    probes.alp_decode(reference.page([vector], 4, 3), 8, 4, out)
    assert out.tolist() == [123, 456, 789, 12]


def hard_values(width: int) -> list[Any]:
    """Values that have no integer, or hardly one."""
    kind = FLOAT[width]
    info = np.finfo(kind)
    nans = [0x7FC0_0001, 0xFFC0_0000, 0x7F80_0001] if width == 4 else [2**63 - 1, 0xFFF8 << 48, (0x7FF0 << 48) + 1]
    values = [kind(0.0), kind(-0.0), kind("inf"), kind("-inf"), info.max, info.min, info.tiny, info.smallest_subnormal]
    values += [-info.smallest_subnormal, kind(1) / kind(3), kind(0.1), kind(-0.3), kind(2**31), kind(-(2**31))]
    values += [kind(2**24), kind(2**24 - 1), kind(2**22 + 0.5), kind(2**23), kind(2**63), kind(-(2**63)), kind(1e10)]
    values += [kind(2**52 - 0.5), kind(2**53 - 1), kind(2**51 + 0.25), kind(9007199254740993), kind(1e18), kind(1e-10)]
    return list(np.array(values, kind)) + list(np.array(nans, UINT[width]).view(kind))


def some_values(width: int, n: int, seed: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    hard = hard_values(width)
    made = np.round(rng.normal(0, 10.0 ** rng.integers(0, 6), n), int(rng.integers(0, 4))).astype(FLOAT[width])
    for _ in range(n // 20):
        made[rng.integers(n)] = hard[rng.integers(len(hard))]
    return made


@pytest.mark.parametrize("width", [4, 8])
def test_what_is_written_is_what_the_reference_reads(width: int) -> None:
    counts = [0, 1, 7, 8, 9, 1023, 1024, 1025, 2500]
    given = [some_values(width, n, n) for n in counts]
    given += [np.array(hard_values(width)), np.array(hard_values(width) * 40), np.zeros(3000, FLOAT[width])]
    given += [np.random.default_rng(1).bytes(width * 1500)]  # any bits at all
    given = [np.frombuffer(v, UINT[width]) if isinstance(v, bytes) else v.view(UINT[width]) for v in given]
    for values in given:
        page = probes.alp_encode(values, width)
        assert reference.decode(page, width) == values.tolist()
        assert decoded(page, width, len(values)) == values.tolist()


@pytest.mark.parametrize("log", [3, 4, 10, 15])
@pytest.mark.parametrize("width", [4, 8])
def test_pages_of_the_reference(width: int, log: int) -> None:
    most = reference.KINDS[width].most_exponent
    pairs = [(2, 0), (most, most), (most, 0), (0, 0), (5, 3)]
    for n in (1, 8, 13, 700, 2**log + 1 if log < 15 else 33_000):
        values = some_values(width, n, n + log)
        page = reference.encode(list(values), width, log, pairs)
        assert decoded(page, width, n) == values.view(UINT[width]).tolist()


@pytest.mark.parametrize("width", [4, 8])
def test_integers_of_every_width(width: int) -> None:
    """Up to all bits of the type, from every kind of smallest integer; the page ends right behind them."""
    rng = random.Random(width)
    low = -(2 ** (8 * width - 1))
    for bits in range(8 * width + 1):
        for base in (low, 0, -5, 2 ** (8 * width - 1) - 2**bits):
            if base + 2**bits > 2 ** (8 * width - 1):
                continue
            n = rng.choice([8, 15, 16, 37])
            integers = [base, base + 2**bits - 1, *(base + rng.randrange(2**bits) for _ in range(n - 2))]
            page = reference.page([reference.vector(integers, 3, 1, width)], n, 6)
            assert decoded(page, width, n) == reference.decode(page, width), (bits, base)


def test_a_sum_wraps_around() -> None:
    """A delta that leads beyond the largest integer comes back from the smallest, as unsigned arithmetic says."""
    for width in (4, 8):
        vector = bytearray(reference.vector([0, 1, 2, 3, 4, 5, 6, 7], 0, 0, width))
        vector[4 : 4 + width] = (2 ** (8 * width - 1) - 4).to_bytes(width, "little")
        page = reference.page([bytes(vector)], 8, 3)
        assert decoded(page, width, 8) == reference.decode(page, width)


def test_the_best_pair_is_found() -> None:
    """Prices in cents take the bits of the cents; one constant takes none."""
    cents = np.random.default_rng(2).integers(0, 100_000, 20_000)
    vectors = 20
    page = probes.alp_encode(cents / 100, 8)
    assert len(page) <= 7 + vectors * (4 + 13 + 17 * 128)
    assert len(probes.alp_encode(np.full(20_000, 12.34), 8)) == 7 + vectors * (4 + 13)


def test_values_without_integers_cost_their_place_at_most() -> None:
    noise = np.random.default_rng(3).random(4096) * 1e-200
    assert len(probes.alp_encode(noise, 8)) == 7 + 4 * (4 + 13) + 4096 * 10


GOOD = reference.encode([1.25, 2.5, float("nan"), 3.75] * 5, 8, 3, [(2, 0)])


@pytest.mark.parametrize(
    ("at", "byte", "said"),
    [
        (0, 1, "compression mode 1"),
        (1, 1, "integer encoding 1"),
        (2, 2, r"vectors of 2\^2"),
        (2, 16, r"vectors of 2\^16"),
        (3, 21, "says 21 values, the page has 20"),
        (6, 0x80, "says -"),
        (7, 13, "first vector starts at 13"),
        (11, 1, "vector 0 lies from 12 to 1"),
        (12, 0xFF, "vector 0 lies from 12 to"),
        (19, 19, "exponent 19"),
        (20, 3, "factor 3"),
        (21, 9, "9 exceptions in 8 values"),
        (21, 3, "but its header says"),
        (31, 65, "65 bits"),
        (31, 7, "but its header says"),
        (40, 9, "exception 0 is at 9"),
    ],
)
def test_damaged_pages_are_refused(at: int, byte: int, said: str) -> None:
    page = bytearray(GOOD)
    page[at] = byte
    with pytest.raises(KernelError, match=said):
        decoded(bytes(page), 8, 20)


def test_pages_that_end_early_are_refused() -> None:
    for size in range(len(GOOD)):
        with pytest.raises(KernelError):
            decoded(GOOD[:size], 8, 20)
    assert decoded(GOOD + b"padding", 8, 20) == decoded(GOOD, 8, 20)
    assert decoded(b"", 8, 0) == []
    with pytest.raises(KernelError, match="takes 7 bytes"):
        decoded(b"", 8, 1)


def test_random_damage_is_refused_or_decodes() -> None:
    rng = random.Random(4)
    refused = 0
    for _ in range(4000):
        page = bytearray(GOOD)
        for _ in range(rng.randint(1, 4)):
            page[rng.randrange(len(page))] = rng.choice([0, 1, 0x7F, 0xFF, rng.randrange(256)])
        del page[rng.randint(len(page) - 9, len(page)) :]
        try:
            decoded(bytes(page), 8, 20)
        except KernelError:
            refused += 1
    assert 1000 < refused < 4000


def test_other_widths_are_refused() -> None:
    with pytest.raises(KernelError, match="not of 2"):
        probes.alp_encode(bytes(8), 2)
    with pytest.raises(KernelError, match="out has 7 bytes"):
        probes.alp_decode(GOOD, 8, 20, np.empty(7, np.uint8))
