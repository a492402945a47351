"""The size of a split block Bloom filter for a false-positive rate, and the rate of a size.

The rate follows from the load of the blocks. ``n`` values fall on ``z`` blocks like balls into bins, nearly by a
Poisson distribution of mean ``n / z``. A block that took ``i`` values answers "maybe" to an absent value with
probability ``(1 - (31/32)**i)**8``: one bit in each of its eight words is tested. (The formula of the older
specification assumes that every block has the mean load. It misses its target by 1.5 times at 1 % and 3 times at 0.01
%.)
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

BLOCK_BYTES = 32
MIN_BYTES = BLOCK_BYTES
MAX_BYTES = 128 << 20
"""The largest bitset that every implementation takes."""


def false_positive_rate(num_blocks: int, ndv: int) -> float:
    """Expected rate of "maybe" for absent values, after ``ndv`` distinct values went into ``num_blocks`` blocks."""
    if num_blocks <= 0 or ndv < 0:
        raise ValueError(f"{num_blocks} blocks and {ndv} values")
    return rate_of_load(ndv / num_blocks)


def rate_of_load(load: float) -> float:
    """The expected rate when a block holds ``load`` values on average."""
    if load <= 0:
        return 0.0
    spread = 12 * math.sqrt(load) + 24
    first, last = max(0, int(load - spread)), int(load + spread)
    counts = np.arange(first, last + 1, dtype=np.float64)
    # ln of the Poisson weights; ln(i!) as a running sum, started by lgamma.
    log_factorial = math.lgamma(first + 1) + np.concatenate(([0.0], np.cumsum(np.log(counts[1:]))))
    weights = np.exp(counts * math.log(load) - load - log_factorial)
    return float(min(1.0, (weights * (1.0 - (31 / 32) ** counts) ** 8).sum()))


@lru_cache(maxsize=256)
def load_for_rate(fpp: float) -> float:
    """The largest mean load of a block that keeps the expected rate at ``fpp`` or below."""
    if not 0.0 < fpp < 1.0:
        raise ValueError(f"the false-positive rate must be between 0 and 1, not {fpp}")
    low, high = 0.0, 1.0
    while rate_of_load(high) <= fpp:
        low, high = high, high * 2
    for _ in range(60):
        middle = (low + high) / 2
        if rate_of_load(middle) <= fpp:
            low = middle
        else:
            high = middle
    return max(low, 2.0**-60)  # rates below any that a filter can reach


def bytes_for(ndv: int, fpp: float, power_of_two: bool = True, cap: int = MAX_BYTES) -> int:
    """Bytes of the smallest bitset that keeps ``ndv`` distinct values at the rate ``fpp``, and at most ``cap``.

    ``power_of_two``: only such sizes, because Arrow C++ refuses others; otherwise any multiple of 32. With a ``cap``
    the rate may be missed. Raises ValueError for a rate outside (0, 1) or a cap below one block.
    """
    if cap < MIN_BYTES:
        raise ValueError(f"a Bloom filter needs at least {MIN_BYTES} bytes, but the cap is {cap}")
    if ndv < 0:
        raise ValueError(f"{ndv} distinct values")
    blocks = max(1, math.ceil(ndv / load_for_rate(fpp)))
    return fit_bytes(blocks * BLOCK_BYTES, power_of_two, cap)


def fit_bytes(wanted: int, power_of_two: bool = True, cap: int = MAX_BYTES) -> int:
    """``wanted`` rounded up to a legal size, then down to the largest legal size within ``cap``."""
    cap = min(cap, MAX_BYTES)
    if power_of_two:
        return min(max(MIN_BYTES, 1 << (max(wanted, 1) - 1).bit_length()), 1 << (cap.bit_length() - 1))
    return min(max(MIN_BYTES, -(-wanted // BLOCK_BYTES) * BLOCK_BYTES), cap // BLOCK_BYTES * BLOCK_BYTES)
