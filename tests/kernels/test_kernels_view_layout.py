"""String views laid out as offsets and bytes."""

from __future__ import annotations

import contextlib
import itertools
import struct
from typing import Any

import numpy as np
import pytest

from pyparq.kernels import KernelError, lay_out_views

RNG = np.random.default_rng(31)


def short(text: bytes) -> bytes:
    return struct.pack("<i12s", len(text), text)


def long(length: int, buffer: int, offset: int) -> bytes:
    return struct.pack("<i4sii", length, b"pref", buffer, offset)


def laid_out(views: list[bytes], buffers: list[bytes], valid: Any = None) -> list[bytes]:
    offsets, data = lay_out_views(b"".join(views), valid, buffers)
    raw = data.tobytes()
    return [raw[a:b] for a, b in itertools.pairwise(offsets)]


def test_values_lie_in_views_and_in_buffers_in_any_order() -> None:
    buffers = [RNG.bytes(500), b"", RNG.bytes(80)]
    views, expected = [], []
    for _ in range(1000):
        length = int(RNG.integers(0, 40))
        if length <= 12:
            expected.append(RNG.bytes(length))
            views.append(short(expected[-1]))
            continue
        buffer = int(RNG.choice([0, 2]))
        offset = int(RNG.integers(0, len(buffers[buffer]) - length + 1))
        expected.append(buffers[buffer][offset : offset + length])
        views.append(long(length, buffer, offset))
    assert laid_out(views, buffers) == expected
    valid = (RNG.random(1000) < 0.7).astype(np.uint8)
    assert laid_out(views, buffers, valid) == [v if there else b"" for v, there in zip(expected, valid, strict=True)]
    assert laid_out([], []) == []


@pytest.mark.parametrize(
    "view",
    [long(-1, 0, 0), long(13, 1, 0), long(13, -1, 0), long(13, 0, -1), long(13, 0, 8), long(2**31 - 1, 0, 0),
     long(13, 0, 2**31 - 1)],
)  # fmt: skip
def test_views_that_point_nowhere_are_refused_but_below_a_null(view: bytes) -> None:
    with pytest.raises(KernelError, match="string view"):
        lay_out_views(view, None, [bytes(20)])
    assert laid_out([view], [bytes(20)], np.zeros(1, np.uint8)) == [b""]


def test_views_of_other_sizes_are_refused() -> None:
    with pytest.raises(KernelError):
        lay_out_views(bytes(17), None, [])
    with pytest.raises(KernelError):
        lay_out_views(bytes(32), np.ones(1, np.uint8), [])


def test_random_views() -> None:
    for _ in range(2000):
        views = RNG.integers(0, RNG.choice([2, 30, 256]), 16 * RNG.integers(0, 20)).astype(np.uint8)
        views[1::16] = views[2::16] = views[3::16] = 0  # lengths that memory has room for
        buffers = [RNG.bytes(int(RNG.integers(0, 300))) for _ in range(RNG.integers(0, 3))]
        with contextlib.suppress(KernelError):
            lay_out_views(views, None, buffers)
