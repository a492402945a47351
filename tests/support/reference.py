"""Plain implementations of what the kernels do, as slow and as obvious as possible."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence


def uleb128(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_uleb128(data: bytes, pos: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, pos


def bit_pack(values: Sequence[int], width: int) -> bytes:
    """Little-endian bit packing, padded to whole bytes."""
    total = sum(v << (i * width) for i, v in enumerate(values))
    return total.to_bytes((len(values) * width + 7) // 8, "little")


def bit_unpack(data: bytes, width: int, count: int) -> list[int]:
    total = int.from_bytes(data, "little")
    return [total >> (i * width) & ((1 << width) - 1) for i in range(count)]


def bit_pack_msb(values: Sequence[int], width: int) -> bytes:
    """The deprecated BIT_PACKED encoding."""
    text = "".join(format(v, f"0{width}b") for v in values) if width else ""
    text += "0" * (-len(text) % 8)
    return bytes(int(text[i : i + 8], 2) for i in range(0, len(text), 8))


def rle_run(value: int, length: int, width: int) -> bytes:
    return uleb128(length << 1) + value.to_bytes((width + 7) // 8, "little")


def rle_literal(values: Sequence[int], width: int) -> bytes:
    groups = (len(values) + 7) // 8
    padded = list(values) + [0] * (groups * 8 - len(values))
    return uleb128(groups << 1 | 1) + bit_pack(padded, width)


def rle_decode(data: bytes, width: int, count: int) -> tuple[list[int], int]:
    """Values and bytes used."""
    out: list[int] = []
    pos = 0
    size = (width + 7) // 8
    while len(out) < count:
        header, pos = read_uleb128(data, pos)
        wanted = count - len(out)  # a run may claim 2 ** 31 values
        if header & 1:
            n = (header >> 1) * width
            out += bit_unpack(data[pos : pos + n], width, min((header >> 1) * 8, wanted))
            pos += n
        else:
            out += [int.from_bytes(data[pos : pos + size], "little")] * min(header >> 1, wanted)
            pos += size
    return out, pos


def plain_binary(values: Sequence[bytes]) -> bytes:
    return b"".join(struct.pack("<I", len(v)) + v for v in values)


SALT = (0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31)


class BloomFilter:
    """A split block filter, word by word as the specification has it."""

    def __init__(self, blocks: int) -> None:
        self.words = [[0] * 8 for _ in range(blocks)]

    def _place(self, hash_: int) -> tuple[list[int], list[int]]:
        block = self.words[((hash_ >> 32) * len(self.words)) >> 32]
        x = hash_ & 0xFFFFFFFF
        return block, [1 << ((x * salt & 0xFFFFFFFF) >> 27) for salt in SALT]

    def insert(self, hash_: int) -> None:
        block, mask = self._place(hash_)
        for i in range(8):
            block[i] |= mask[i]

    def check(self, hash_: int) -> bool:
        block, mask = self._place(hash_)
        return all(block[i] & mask[i] for i in range(8))

    def tobytes(self) -> bytes:
        return b"".join(struct.pack("<8I", *block) for block in self.words)


def twos_complement(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


def zigzag(value: int) -> int:
    return value << 1 if value >= 0 else ((-value - 1) << 1) | 1


def unzigzag(value: int) -> int:
    return value >> 1 if value & 1 == 0 else -((value + 1) >> 1)


def wrap(value: int, bits: int) -> int:
    """To a signed number of that many bits."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def delta_decode(data: bytes, bits: int) -> tuple[list[int], int]:
    """DELTA_BINARY_PACKED: values and bytes used."""
    block, pos = read_uleb128(data, 0)
    minis, pos = read_uleb128(data, pos)
    total, pos = read_uleb128(data, pos)
    first, pos = read_uleb128(data, pos)
    out = [wrap(unzigzag(first), bits)] if total else []
    per_mini = block // minis
    while len(out) < total:
        smallest, pos = read_uleb128(data, pos)
        widths = data[pos : pos + minis]
        pos += minis
        for width in widths:
            if len(out) >= total:
                break
            n = per_mini * width // 8
            # The last miniblock may be said to hold more values than there are.
            for delta in bit_unpack(data[pos : pos + n], width, min(per_mini, total - len(out))):
                out.append(wrap(out[-1] + unzigzag(smallest) + delta, bits))
            pos += n
    return out, pos


def delta_encode(values: Sequence[int], bits: int, block: int = 128, minis: int = 4) -> bytes:
    out = uleb128(block) + uleb128(minis) + uleb128(len(values))
    out += uleb128(zigzag(values[0]) if values else 0)
    deltas = [wrap(b - a, bits) for a, b in itertools.pairwise(values)]
    per_mini = block // minis
    for start in range(0, len(deltas), block):
        part = deltas[start : start + block]
        smallest = min(part)
        over = [(d - smallest) & ((1 << bits) - 1) for d in part]
        groups = [over[i : i + per_mini] for i in range(0, block, per_mini)]
        widths = [max(g).bit_length() if g else 0 for g in groups]
        out += uleb128(zigzag(smallest)) + bytes(widths)
        for group, width in zip(groups, widths):
            if group:
                out += bit_pack(group + [0] * (per_mini - len(group)), width)
    return out


def delta_length_encode(values: Sequence[bytes]) -> bytes:
    return delta_encode([len(v) for v in values], 32) + b"".join(values)


def delta_byte_array_encode(values: Sequence[bytes]) -> bytes:
    prefixes, suffixes = [], []
    last = b""
    for v in values:
        n = 0
        while n < min(len(v), len(last)) and v[n] == last[n]:
            n += 1
        prefixes.append(n)
        suffixes.append(v[n:])
        last = v
    return delta_encode(prefixes, 32) + delta_length_encode(suffixes)


def byte_stream_split(values: bytes, width: int) -> bytes:
    return b"".join(values[k::width] for k in range(width))
