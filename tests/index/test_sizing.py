"""Sizes and rates of split block Bloom filters against the specification's figures and against simulation."""

from __future__ import annotations

import numpy as np
import pytest

from pyparq.index.bloom_filter import (
    MAX_BYTES,
    BloomFilter,
    bytes_for,
    false_positive_rate,
    fit_bytes,
    load_for_rate,
    rate_of_load,
)

# BloomFilter.md, "Sizing an SBBF": bits of space per insert, and the rate they give.
TABLE = [(6.0, 0.1), (10.5, 0.01), (16.9, 0.001), (26.4, 0.0001), (41, 0.00001)]


@pytest.mark.parametrize(("bits", "rate"), TABLE)
def test_the_specifications_table(bits: float, rate: float) -> None:
    assert 256 / load_for_rate(rate) == pytest.approx(bits, rel=0.005)  # bits of a block, values in it


@pytest.mark.parametrize(("values", "rate"), [(26_214, 0.0126), (52_428, 0.18), (13_107, 0.0004)])
def test_the_specifications_example(values: int, rate: float) -> None:
    assert false_positive_rate(1024, values) == pytest.approx(rate, rel=0.06)


@pytest.mark.parametrize(("bits", "rate"), TABLE[:3])
def test_measured_rates_meet_the_table(bits: float, rate: float) -> None:
    rng = np.random.default_rng(5)
    blocks = 4096
    values = int(blocks * 256 / bits)
    built = BloomFilter.empty(blocks * 32)
    built.insert_hashes(rng.integers(0, 2**64, values, np.uint64))
    absent = rng.integers(0, 2**64, 2_000_000, np.uint64)
    measured = float(built.check_hash(absent).mean())
    assert measured == pytest.approx(rate, rel=0.1)
    assert measured == pytest.approx(false_positive_rate(blocks, values), rel=0.06)
    # The rate read off the bits is exact for this very filter; only the sample of absent hashes is left to chance.
    assert measured == pytest.approx(built.false_positive_rate(), rel=0.05)


def test_rate_of_load_is_a_rate() -> None:
    loads = [0.0, 1e-9, 0.1, 1, 10, 24, 100, 1000, 1e5]
    rates = [rate_of_load(load) for load in loads]
    assert rates[0] == 0.0
    assert all(0 <= r <= 1 for r in rates)
    assert rates == sorted(rates)
    assert rates[-1] == pytest.approx(1)


@pytest.mark.parametrize("ndv", [0, 1, 2, 100, 12_345, 1_000_000, 30_000_000])
@pytest.mark.parametrize("fpp", [0.5, 0.05, 0.01, 1e-4])
def test_sizes_meet_the_rate(ndv: int, fpp: float) -> None:
    exact = bytes_for(ndv, fpp, power_of_two=False)
    rounded = bytes_for(ndv, fpp)
    assert exact % 32 == 0
    assert rounded & (rounded - 1) == 0
    assert 32 <= exact <= rounded < 2 * max(exact, 32)
    assert false_positive_rate(exact // 32, ndv) <= fpp
    if exact > 32:  # and one block less would miss it
        assert false_positive_rate(exact // 32 - 1, ndv) > fpp


def test_a_million_values_at_one_percent() -> None:
    assert bytes_for(1_000_000, 0.01, power_of_two=False) == pytest.approx(1.316e6, rel=0.001)
    assert bytes_for(1_000_000, 0.01) == 2 << 20


def test_caps() -> None:
    assert bytes_for(10**9, 0.01) == MAX_BYTES
    assert bytes_for(1_000_000, 0.01, cap=1_000_000) == 1 << 19
    assert bytes_for(1_000_000, 0.01, power_of_two=False, cap=1_000_000) == 1_000_000 // 32 * 32
    assert bytes_for(1_000_000, 0.01, cap=32) == 32
    for bad in (0, 31):
        with pytest.raises(ValueError, match="at least 32"):
            bytes_for(1, 0.01, cap=bad)


def test_fit_bytes() -> None:
    assert [fit_bytes(n) for n in (0, 1, 32, 33, 64, 65)] == [32, 32, 32, 64, 64, 128]
    assert [fit_bytes(n, power_of_two=False) for n in (0, 32, 33, 96, 97)] == [32, 32, 64, 96, 128]


@pytest.mark.parametrize("fpp", [0.0, 1.0, -0.1, 2.0])
def test_impossible_rates(fpp: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        load_for_rate(fpp)
