"""Single encodings: what decodes is encoded again and decodes to the same."""

from __future__ import annotations

from typing import Any

import alp_reference
import numpy as np
from fuzz_input import check, number, own, refused, split
from reference import delta_decode, rle_decode

from pyparq.kernels import plain_binary_encode
from pyparq.kernels._native import probes

_MOST = 512


def rle(data: Any) -> None:
    """The RLE and bit-packed hybrid, beside a slow decoder."""
    head, stored = split(data)
    count = number(head, 1) % _MOST
    if head[0] & 64:
        return _bit_packed(head, stored, count)
    wide = head[0] & 1
    width = head[3] % (33 if wide else 9)
    out = np.zeros(count, np.int32 if wide else np.uint8)
    with refused:
        if wide:
            used = probes.rle_decode_i32(stored, width, count, out, 1 << 31)
        else:
            used = probes.rle_decode_u8(stored, width, count, out)
        check(0 <= used <= len(stored), "bytes beyond the data")
        if width:  # without bits no byte is read
            check(out.tolist() == rle_decode(bytes(stored) + bytes(64), width, count)[0], "values are others")
        again = np.zeros(count, out.dtype)
        if wide:
            probes.rle_decode_i32(probes.rle_encode_i32(out, width), width, count, again, 1 << 31)
        else:
            probes.rle_decode_u8(probes.rle_encode_u8(out, width), width, count, again)
        check(bool((out == again).all()), "values do not come back")


def _bit_packed(head: bytes, stored: Any, count: int) -> None:
    with refused:
        probes.bit_packed_decode_u8(stored, head[3] % 9, count, np.empty(count, np.uint8))


def delta(data: Any) -> None:
    """DELTA_BINARY_PACKED and BYTE_STREAM_SPLIT."""
    head, stored = split(data)
    if head[0] & 2:
        return _streams(head, stored)
    bits = 64 if head[0] & 1 else 32
    decode, encode, dtype = (
        (probes.delta_decode_i64, probes.delta_encode_i64, np.int64) if bits == 64
        else (probes.delta_decode_i32, probes.delta_encode_i32, np.int32)
    )  # fmt: skip
    count = number(head, 1) % _MOST
    out: Any = np.zeros(count, dtype)
    with refused:
        used = decode(stored, out, count)
        check(0 <= used <= len(stored), "bytes beyond the data")
        if count and head[4] & 1:
            check(out.tolist() == delta_decode(bytes(stored) + bytes(256), bits)[0], "values are others")
        again: Any = np.zeros(count, dtype)
        made = encode(out)
        check(decode(own(made), again, count) == len(made), "not all is read")
        check(bool((out == again).all()), "values do not come back")
    return None


def _streams(head: bytes, stored: Any) -> None:
    width = 1 + head[1] % 20
    values = own(stored[: len(stored) // width * width])
    out = np.empty(len(values), np.uint8)
    probes.byte_stream_split_decode(values, width, out)
    check(bool((probes.byte_stream_split_encode(out, width) == values).all()), "bytes do not come back")


def alp(data: Any) -> None:
    """ALP, beside a slow decoder, and back to the same bits."""
    head, stored = split(data)
    width, count = 8 if head[0] & 1 else 4, number(head, 1) % _MOST
    form = "<u8" if width == 8 else "<u4"
    out = np.zeros(count * width, np.uint8)
    with refused:
        probes.alp_decode(stored, width, count, out)
        bits = out.view(form).tolist()
        if count and head[3] & 3 == 0:
            check(bits == alp_reference.decode(bytes(stored), width), "values are others")
        again = np.zeros(count * width, np.uint8)
        probes.alp_decode(own(probes.alp_encode(out, width)), width, count, again)
        check(bits == again.view(form).tolist(), "values do not come back")


def alp_values(data: Any) -> None:
    """Any bits of floats and doubles, there and back."""
    head, stored = split(data)
    width = 8 if head[0] & 1 else 4
    values = own(bytes(stored[: len(stored) // width * width]) * (1 + head[1] % 40))
    made, again = own(probes.alp_encode(values, width)), np.zeros(len(values), np.uint8)
    probes.alp_decode(made, width, len(values) // width, again)
    check(again.tobytes() == values.tobytes(), "bits do not come back")


def byte_arrays(data: Any) -> None:
    """PLAIN, DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY."""
    head, stored = split(data)
    count, kind = number(head, 1) % _MOST, head[0] % 3
    with refused:
        offsets, values = _byte_arrays(kind, stored, count, np.int64 if head[0] & 16 else np.int32)
        encode = (plain_binary_encode, probes.delta_length_encode, probes.delta_byte_array_encode)[kind]
        made = own(encode(offsets, values))
        again, same = _byte_arrays(kind, made, count, np.int64)
        check(offsets.tolist() == again.tolist(), "lengths do not come back")
        check(values.tobytes() == same.tobytes(), "bytes do not come back")


def _byte_arrays(kind: int, stored: Any, count: int, dtype: Any) -> tuple[Any, Any]:
    if kind == 2:
        offsets, values, used = probes.delta_byte_array_decode(stored, count, 1 << 14)
        check(used <= len(stored), "bytes beyond the data")
        return offsets, values
    places = np.zeros(count + 1, dtype)
    # As much room as always suffices. PLAIN has its lengths between the values.
    room = np.empty(max(len(stored) - (4 * count if kind == 0 else 0), 0), np.uint8)
    decode = probes.plain_binary_decode if kind == 0 else probes.delta_length_decode
    used = decode(stored, count, places, room)
    check(used <= len(stored), "bytes beyond the data")
    return places, own(room[: int(places[-1])])
