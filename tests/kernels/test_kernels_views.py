"""String views, against a plain reading of Arrow's layout."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_data import OFFSET_TYPES, binary

from pyparq import kernels
from pyparq.kernels import KernelError

MOST = 2**31 - 1


def views_of(offsets: Any, data: Any, valid: list[bool] | None = None, most: int = MOST, first_bit: int = 0) -> Any:
    """(views, starts of the buffers), with room around the result that must stay as it is."""
    n = len(offsets) - 1
    bits = None if valid is None else np.packbits(np.array([True] * first_bit + valid, np.bool_), bitorder="little")
    whole = np.full(16 * n + 64, 0x5A, np.uint8)
    starts = kernels.string_views(offsets, data, bits, first_bit, most, whole[32 : 32 + 16 * n])
    assert (whole[:32] == 0x5A).all()
    assert (whole[32 + 16 * n :] == 0x5A).all()
    return whole[32 : 32 + 16 * n].tobytes(), starts


def followed(views: bytes, starts: list[int], data: bytes) -> list[bytes]:
    """The values that the views stand for; what Arrow asks of the bytes that carry none is checked."""
    buffers = [data[a:b] for a, b in zip(starts, [*starts[1:], len(data)], strict=False)]
    found = []
    for at in range(0, len(views), 16):
        (length,) = struct.unpack_from("<i", views, at)
        if length <= 12:
            assert views[at + 4 + length : at + 16] == bytes(12 - length)
            found.append(views[at + 4 : at + 4 + length])
            continue
        prefix, buffer, offset = struct.unpack_from("<4sii", views, at + 4)
        assert 0 <= offset <= offset + length <= len(buffers[buffer])
        found.append(buffers[buffer][offset : offset + length])
        assert found[-1][:4] == prefix
    return found


@pytest.mark.parametrize("dtype", OFFSET_TYPES)
@given(
    values=st.lists(st.binary(max_size=40) | st.sampled_from([b"x" * 11, b"y" * 12, b"z" * 13, b"w" * 16])),
    holes=st.sets(st.integers(0, 20)),
    first_bit=st.integers(0, 17),
    lead=st.binary(max_size=20),
    most=st.sampled_from([40, 41, 100, MOST]),
)
def test_views(dtype: Any, values: list[bytes], holes: set[int], first_bit: int, lead: bytes, most: int) -> None:
    offsets, data = binary(values, dtype, lead)
    views, starts = views_of(offsets, data, most=most)
    assert followed(views, starts, bytes(data)) == values
    assert bool(starts) == any(len(v) > 12 for v in values)
    assert starts == sorted(set(starts))
    if starts and most < MOST and len(lead) + sum(map(len, values)) > 3 * most:
        assert len(starts) > 1
    valid = [k not in holes for k in range(len(values))]
    views, starts = views_of(offsets, data, valid, most, first_bit)
    assert followed(views, starts, bytes(data)) == [v if ok else b"" for v, ok in zip(values, valid, strict=True)]


@pytest.mark.parametrize("size", [0, 1, 11, 12, 13, 15, 16, 17, 31])
def test_the_last_values_of_the_data(size: int) -> None:
    """Nothing behind the data is read: the last values are the whole of it."""
    data = bytes(range(65, 65 + size))
    for cut in range(size + 1):
        views, starts = views_of(np.array([0, cut, size], np.int32), data)
        assert followed(views, starts, data) == [data[:cut], data[cut:]]


def test_no_values() -> None:
    assert views_of(np.zeros(1, np.int32), b"") == (b"", [])
    assert views_of(np.zeros(1, np.int64), b"some data", []) == (b"", [])


@pytest.mark.parametrize("dtype", OFFSET_TYPES)
@pytest.mark.parametrize("offsets", [[], [0, 5], [2, 1], [-1, 0], [0, 3, 2, 4], [0, 2**31 - 1]])
def test_bad_offsets(dtype: Any, offsets: list[int]) -> None:
    with pytest.raises(KernelError):
        kernels.string_views(np.array(offsets, dtype), b"four", None, 0, MOST, bytearray(16 * max(len(offsets) - 1, 0)))


def test_arguments_that_do_not_fit() -> None:
    offsets, data = binary([b"a", b"b" * 20], np.int32)
    bits, out = bytes([3]), bytearray(32)
    for arguments in (
        (offsets, data, None, 0, MOST, bytearray(31)),
        (offsets, data, None, 0, MOST, bytearray(48)),
        (offsets, data, bits, 7, MOST, out),
        (offsets, data, bits, -1, MOST, out),
        (offsets, data, bits, 2**62, MOST, out),
        (offsets, data, b"", 0, MOST, out),
        (offsets, data, None, 0, 0, out),
        (offsets, data, None, 0, 2**31, out),
        (offsets, data, None, 0, 19, out),
    ):
        with pytest.raises(KernelError):
            kernels.string_views(*arguments)
    kernels.string_views(offsets, data, bits, 6, 20, out)
