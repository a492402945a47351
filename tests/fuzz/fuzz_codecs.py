"""Our Snappy and LZ4, beside slow ones, and every codec there and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from fuzz_input import check, number, own, split

from pyparq.kernels._native import probes

_SNAPPY, _GZIP, _LZO, _LZ4, _ZSTD, _LZ4_RAW = 1, 2, 3, 5, 6, 7
_ROOM = 1 << 13


def snappy(data: Any) -> None:
    head, stored = split(data)
    _inflate(_SNAPPY, stored, head, _slow_snappy(stored))


def lz4(data: Any) -> None:
    head, stored = split(data)
    if head[0] & 1:
        _inflate(_LZ4, stored, head, None)
    else:
        _inflate(_LZ4_RAW, stored, head, _slow_lz4(stored))


def lzo(data: Any) -> None:
    """A block in a frame of Hadoop's, or any bytes. What was in the room before does not show."""
    head, stored = split(data)
    size = number(head, 1) % _ROOM
    if not head[0] & 1:
        stored = own(size.to_bytes(4, "big") + len(stored).to_bytes(4, "big") + bytes(stored))
    rooms = np.zeros(size, np.uint8), np.full(size, 255, np.uint8)
    found = [probes.inflate(_LZO, stored, room) for room in rooms]
    check(found[0] == found[1] and -1 <= found[0] <= size, "another size")
    check(rooms[0][: max(found[0], 0)].tobytes() == rooms[1][: max(found[0], 0)].tobytes(), "bytes that are not there")


def compress(data: Any) -> None:
    """What is compressed comes back."""
    head, plain = split(data)
    codec = (_SNAPPY, _LZ4_RAW, _ZSTD, _GZIP)[head[0] % 4]
    if not probes.codec_is_native(codec) or not _writes(codec):
        return
    plain = own(bytes(plain) * (1 + head[1] % 16))
    stored = np.empty(probes.deflate_bound(codec, len(plain)), np.uint8)
    size = probes.deflate(codec, 1 + head[2] % 3, plain, stored)
    check(size >= 0, "it does not fit its bound")
    back = np.empty(len(plain), np.uint8)
    check(probes.inflate(codec, own(stored[:size]), back) == len(plain), "the size is another")
    check(bytes(back) == bytes(plain), "the bytes are others")


def _writes(codec: int) -> bool:
    return codec in (_SNAPPY,)


def _inflate(codec: int, stored: Any, head: bytes, expected: bytes | None) -> None:
    """Whole, into too little room, and as much as is wanted."""
    out = np.empty(_ROOM, np.uint8)
    size = probes.inflate(codec, stored, out)
    check(-1 <= size <= _ROOM, "a size beyond the room")
    if codec == _SNAPPY:
        check((size < 0) == (expected is None), "one refuses it")
    if codec != _LZ4 and size >= 0:  # LZ4 refuses a block that does not end as its rules say
        check(expected == out[:size].tobytes(), "the bytes are others")
    if size <= 0 or codec == _LZ4:  # what LZ4 without a name means depends on the room
        return
    exact = np.empty(size, np.uint8)
    again = probes.inflate(codec, stored, exact)
    if codec == _LZ4_RAW and again < 0:
        return  # a match may not reach into the last five bytes of the room
    check(again == size, "it does not fit its own size")
    check(exact.tobytes() == out[:size].tobytes(), "the bytes are others in exact room")
    wanted = head[2] % (size + 1)
    got = probes.inflate(codec, stored, exact, wanted)
    check(got >= wanted and exact[:wanted].tobytes() == out[:wanted].tobytes(), "a part is another")
    small = np.empty(head[3] % size, np.uint8)
    check(probes.inflate(codec, stored, small) < 0, "it fits less room than it takes")


def _copy(out: bytearray, offset: int, length: int) -> bool:
    if not 0 < offset <= len(out) or len(out) + length > _ROOM:
        return False
    for _ in range(length):
        out.append(out[-offset])
    return True


def _slow_snappy(data: Any) -> bytes | None:
    """Snappy by its format description, byte by byte. ``None`` for what is malformed or too large."""
    size = shift = at = 0
    while True:
        if at >= len(data) or shift > 28:
            return None
        size |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            break
    out = bytearray()
    if size > _ROOM:
        return None
    while at < len(data):
        tag, kind = data[at] >> 2, data[at] & 3
        at += 1
        extra = (max(tag - 59, 0), 1, 2, 4)[kind]
        if at + extra > len(data):
            return None
        value = int.from_bytes(data[at : at + extra], "little")
        at += extra
        if kind == 0:
            length = (value if extra else tag) + 1
            if at + length > len(data) or len(out) + length > size:
                return None
            out += data[at : at + length]
            at += length
        else:
            offset, length = (value | tag >> 3 << 8, (tag & 7) + 4) if kind == 1 else (value, tag + 1)
            if len(out) + length > size or not _copy(out, offset, length):
                return None
    return bytes(out) if len(out) == size else None


def _slow_lz4(data: Any) -> bytes | None:
    """A block of LZ4 by its format description."""
    out, at = bytearray(), 0
    if not len(data):
        return None

    def length(value: int) -> int:
        nonlocal at
        while value >= 15 and at < len(data):
            value += data[at]
            at += 1
            if data[at - 1] != 255:
                return value
        return value if value < 15 else -1

    while at < len(data):
        token = data[at]
        at += 1
        literals = length(token >> 4)
        if literals < 0 or at + literals > len(data) or len(out) + literals > _ROOM:
            return None
        out += data[at : at + literals]
        at += literals
        if at == len(data):
            return bytes(out)
        if at + 2 > len(data):
            return None
        offset = data[at] | data[at + 1] << 8
        at += 2
        matched = length(token & 15)
        if matched < 0 or not _copy(out, offset, matched + 4):
            return None
    return None
