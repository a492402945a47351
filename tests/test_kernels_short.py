"""The padded copy of a dictionary of short strings gives what the plain gather gives, and nothing outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_data import OFFSET_TYPES, binary, values_of

from pyparq import kernels
from pyparq.kernels import KernelError

LONGEST = kernels.SHORT_DICTIONARY_LONGEST


@pytest.mark.parametrize("dtype", OFFSET_TYPES)
@pytest.mark.parametrize("longest", [0, 1, 15, 16, 17, 32, 33, LONGEST])
@pytest.mark.parametrize("n", [0, 1, 5000])
def test_short_dictionary(dtype: Any, longest: int, n: int) -> None:
    rng = np.random.default_rng(n + longest)
    entries = [rng.bytes(k) for k in {0, longest // 2, longest}] + [b"e" * longest]
    short = kernels.ShortDictionary(*binary(entries, dtype, b"lead"))
    indices = rng.integers(0, len(entries), n).astype(np.int32)
    expect = [entries[i] for i in indices]
    room = short.room(n)
    whole = np.full(room + 64, 0x5A, np.uint8)
    offsets = np.empty(n + 1, dtype)
    total = short.gather(indices, offsets, 1000, whole[:room])
    assert total == sum(map(len, expect))
    assert values_of(offsets - dtype(1000), whole) == expect
    assert (whole[room:] == 0x5A).all()
    with pytest.raises(KernelError, match="too small"):
        short.gather(indices, offsets, 0, whole[: room - 1])


def test_short_dictionary_refuses() -> None:
    with pytest.raises(KernelError, match=str(LONGEST)):
        kernels.ShortDictionary(*binary([b"x" * (LONGEST + 1)]))
    for offsets in ([], [0, 5], [2, 1], [-1, 0]):
        with pytest.raises(KernelError):
            kernels.ShortDictionary(np.array(offsets, np.int64), b"four")
    short = kernels.ShortDictionary(*binary([b"ab", b"c"]))
    out = np.empty(1000, np.uint8)
    for bad in (-1, 2, 2**31 - 1):
        with pytest.raises(KernelError, match=str(bad)):
            short.gather(np.array([0, bad], np.int32), np.empty(3, np.int64), 0, out)
    one = np.zeros(1, np.int32)
    with pytest.raises(KernelError, match="out_offsets"):
        short.gather(one, np.empty(1, np.int64), 0, out)
    with pytest.raises(KernelError, match="fit"):
        short.gather(one, np.empty(2, np.int32), 2**31 - 2, out)
    with pytest.raises(KernelError, match="base"):
        short.gather(one, np.empty(2, np.int64), -1, out)
    empty = kernels.ShortDictionary(*binary([]))
    with pytest.raises(KernelError):
        empty.gather(one, np.empty(2, np.int64), 0, out)
