"""Codecs without Python, against the libraries: the same bytes, and the same streams refused."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable
from typing import Any

import cramjam
import numpy as np
import pytest
import snappy
import zstandard

from pyparq import kernels
from pyparq.format import compression
from pyparq.format.compression import BROTLI, CODEC_NAMES, GZIP, LZ4, LZ4_RAW, LZO, SNAPPY, UNCOMPRESSED, ZSTD
from pyparq.kernels._native import probes

GUARD = 100
"""Bytes behind the room that must stay as they are."""


def lz4_raw_into(data: Any, out: Any) -> int:
    return int(cramjam.lz4.decompress_block_into(data, out, output_len=len(out)))


def lz4_into(data: Any, out: Any) -> int:
    """Codec LZ4 is deprecated and ambiguous: the data are either Hadoop's frames or one raw block."""
    view = memoryview(data)
    try:
        written = hadoop_lz4_into(view, out)
    except Exception:
        written = -1
    return written if written == len(out) else lz4_raw_into(view, out)


def hadoop_lz4_into(view: memoryview, out: Any) -> int:
    """Hadoop's frames: a big-endian uncompressed size, then LZ4 blocks until that many bytes are reached, each behind
    its big-endian stored size. Hadoop cuts data that exceeds its buffer, so one frame of a large page has several
    blocks."""
    at, written = 0, 0
    while at < len(view):
        frame_end = written + int.from_bytes(view[at : at + 4], "big")
        at += 4
        if frame_end > len(out):
            return -1
        while written < frame_end:
            stored = int.from_bytes(view[at : at + 4], "big")
            at += 4
            if not 0 < stored <= len(view) - at:
                return -1
            rest = out[written:frame_end]
            written += int(cramjam.lz4.decompress_block_into(view[at : at + stored], rest, output_len=len(rest)))
            at += stored
    return written


def inflated(codec: int, data: Any, room: int, wanted: int = -1) -> bytes | None:
    """What the kernel makes of it, ``None`` where it refuses."""
    out = np.full(room + GUARD, 0x5A, np.uint8)
    found = probes.inflate(codec, data, out[:room], wanted)
    assert (out[room:] == 0x5A).all()
    assert -1 <= found <= room
    return None if found < 0 else out[:found].tobytes()


def expected(codec: int, data: Any, room: int) -> bytes | None:
    """What the libraries make of it: that fills the room, or nothing does."""
    out = np.empty(room, np.uint8)
    try:
        found = ORACLES[codec](data, out)
    except Exception:
        return None
    return out.tobytes() if found == room else None


ORACLES: dict[int, Callable[[Any, Any], int]] = {
    **{codec: decode for codec in (GZIP, BROTLI, ZSTD) if (decode := compression.library_decoder(codec))},
    SNAPPY: cramjam.snappy.decompress_raw_into,
    LZ4: lz4_into,
    LZ4_RAW: lz4_raw_into,
}


def hadoop(data: bytes, *cuts: int) -> bytes:
    """Codec LZ4: one frame, whose blocks end at the cuts."""
    blocks = [
        bytes(cramjam.lz4.compress_block(data[a:b], store_size=False)) for a, b in zip((0, *cuts), (*cuts, len(data)))
    ]
    return len(data).to_bytes(4, "big") + b"".join(len(block).to_bytes(4, "big") + block for block in blocks)


WRITERS: dict[int, Callable[[bytes], Any]] = {
    SNAPPY: snappy.compress,
    GZIP: lambda data: compression.compress(GZIP, data, 6),
    BROTLI: lambda data: compression.compress(BROTLI, data, 4),
    LZ4: hadoop,
    ZSTD: lambda data: zstandard.ZstdCompressor().compress(data),
    LZ4_RAW: lambda data: bytes(cramjam.lz4.compress_block(data, store_size=False)),
}
CODECS = pytest.mark.parametrize("codec", WRITERS, ids=CODEC_NAMES.__getitem__)


def samples() -> dict[str, bytes]:
    rng = np.random.default_rng(1)
    words = [
        b"refund",
        b"partial",
        b"manual review",
        b"late",
        b"a",
        b"the quick brown fox jumps over the lazy dog again",
    ]
    return {
        "one byte": b"x",
        "ascending": rng.integers(1, 2_000_000, 20_000).cumsum().astype(np.int64).tobytes(),
        "few values": rng.integers(0, 4, 150_000).astype(np.uint8).tobytes(),
        "runs": np.repeat(rng.integers(0, 256, 900), rng.integers(1, 900, 900)).astype(np.uint8).tobytes(),
        "words": b" ".join(random.Random(4).choices(words, k=30_000)),
        "zeros": bytes(200_000),
        "noise": rng.integers(0, 256, 70_000).astype(np.uint8).tobytes(),
        "half noise": rng.integers(0, 256, 60_000).astype(np.uint8).tobytes() + bytes(60_000),
        **{f"period {k}": (rng.integers(0, 256, k).astype(np.uint8).tobytes() * 700)[:1000] for k in range(1, 40)},
        **{
            f"{n} bytes": (b"abcabcabdab" * 30)[:n]
            for n in (2, 5, 12, 13, 14, 16, 17, 31, 32, 33, 63, 64, 65, 80, 129, 300)
        },
    }


def test_what_is_native_here() -> None:
    """The libraries that pyparq depends on have the functions; LZO is our own."""
    assert [codec for codec in range(-1, 10) if probes.codec_is_native(codec)] == [
        UNCOMPRESSED, SNAPPY, GZIP, LZO, BROTLI, LZ4, ZSTD, LZ4_RAW,
    ]  # fmt: skip
    assert probes.inflate(LZO, b"x", bytearray(1)) == -1


def test_the_libraries_are_found_without_importing_them() -> None:
    code = """
import sys
from pyparq.kernels._native import probes
before = set(sys.modules)
data = bytes.fromhex("28b52ffd2003190000796573")
out = bytearray(3)
assert probes.inflate(6, data, out) == 3 and out == b"yes"
assert not {"zstandard", "cramjam"} & (set(sys.modules) - before)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@CODECS
def test_whole_streams(codec: int) -> None:
    for name, data in samples().items():
        stream = WRITERS[codec](data)
        assert inflated(codec, stream, len(data)) == data, name
        assert inflated(codec, stream, len(data) - 1) is None, name
        if codec != LZ4:  # whose framing is guessed from the size
            assert inflated(codec, stream, len(data) + 100) == data, name


@CODECS
def test_beginnings(codec: int) -> None:
    rng = random.Random(codec)
    for name, data in samples().items():
        stream = WRITERS[codec](data)
        for wanted in (0, 1, len(data) // 2, len(data), *(rng.randrange(len(data)) for _ in range(20))):
            found = inflated(codec, stream, len(data), wanted)
            assert found is not None, name
            assert len(found) >= wanted
            assert found == data[: len(found)], (name, wanted)


@pytest.mark.parametrize("codec", [SNAPPY, LZ4_RAW, ZSTD, GZIP], ids=CODEC_NAMES.__getitem__)
def test_a_beginning_is_less_than_all(codec: int) -> None:
    """What follows is not even looked at."""
    data = samples()["words"] * 4
    stream = bytearray(WRITERS[codec](data))
    stream[-len(stream) // 4 :] = bytes(len(stream) // 4)
    found = inflated(codec, bytes(stream), len(data), 1000)
    assert found is not None
    assert 1000 <= len(found) < len(data)
    assert found == data[: len(found)]


@pytest.mark.parametrize("codec", [SNAPPY, LZ4_RAW, ZSTD, GZIP], ids=CODEC_NAMES.__getitem__)
def test_a_beginning_of_what_is_truncated(codec: int) -> None:
    data = samples()["words"]
    stream = bytes(WRITERS[codec](data))[: len(WRITERS[codec](data)) // 2]
    assert inflated(codec, stream, len(data), len(data) * 9 // 10) is None


def test_uncompressed() -> None:
    assert inflated(UNCOMPRESSED, b"abc", 3) == b"abc"
    assert inflated(UNCOMPRESSED, b"abc", 5) == b"abc"
    assert inflated(UNCOMPRESSED, b"abc", 2) is None
    assert inflated(UNCOMPRESSED, b"", 2) == b""


LIBDEFLATE = "libdeflate" in kernels.library_report()[0][2]


def same_as_the_library(codec: int, data: bytes, room: int) -> None:
    found, wanted = inflated(codec, data, room), expected(codec, data, room)
    if found is not None and len(found) < room:
        found = None  # another number of bytes than are due: the caller refuses it
    if wanted is None and found is not None and codec == GZIP and LIBDEFLATE:
        # libdeflate takes two codes that DEFLATE forbids for the one below them. What comes out then has the right CRC.
        assert struct.unpack("<II", data[-8:]) == (zlib.crc32(found), len(found)), (codec, data, room)
        return
    assert found == wanted, (codec, data, room)


@CODECS
def test_truncated(codec: int) -> None:
    for name in ("words", "runs", "period 7", "300 bytes", "one byte", "ascending"):
        data = samples()[name][:4000]
        stream = bytes(WRITERS[codec](data))
        for end in range(len(stream)) if len(stream) < 400 else random.Random(1).sample(range(len(stream)), 200):
            same_as_the_library(codec, stream[:end], len(data))


@CODECS
def test_damaged(codec: int) -> None:
    rng = random.Random(3)
    for name in ("words", "runs", "period 3", "period 17", "300 bytes", "few values"):
        data = samples()[name][:3000]
        stream = bytes(WRITERS[codec](data))
        for _ in range(300):
            damaged = bytearray(stream)
            for _ in range(rng.choice((1, 1, 1, 2, 5))):
                damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
            if codec not in (LZ4, LZ4_RAW) or not looks_at_itself(codec, bytes(damaged)):
                same_as_the_library(codec, bytes(damaged), len(data))


def looks_at_itself(codec: int, stream: bytes) -> bool:
    """Whether a match in an LZ4 stream has offset 0, which the format forbids and its library takes for zeros."""
    pieces, at = [stream], 4
    while codec == LZ4 and at < len(stream):
        stored = int.from_bytes(stream[at : at + 4], "big")
        pieces.append(stream[at + 4 : at + 4 + stored])
        at += 4 + stored
    return any(_zero_offset(piece) for piece in pieces)


def _zero_offset(block: bytes) -> bool:
    def number(value: int, at: int) -> tuple[int, int]:
        while value >= 15 and at < len(block):
            value, at = value + block[at], at + 1
            if block[at - 1] != 255:
                break
        return value, at

    at = 0
    while at < len(block):
        token = block[at]
        literals, at = number(token >> 4, at + 1)
        at += literals
        if at + 2 <= len(block) and block[at : at + 2] == b"\0\0":
            return True
        _, at = number(token & 15, at + 2)
    return False


@CODECS
def test_noise(codec: int) -> None:
    rng = random.Random(9)
    for _ in range(2000):
        noise, room = rng.randbytes(rng.choice((0, 1, 2, 3, 5, 8, 20, 100))), rng.choice((1, 2, 10, 100, 300))
        if codec == SNAPPY and rng.random() < 0.7:
            noise = bytes([room & 127 | 128, room >> 7]) + noise
        if codec not in (LZ4, LZ4_RAW) or not looks_at_itself(codec, noise):
            same_as_the_library(codec, noise, room)


def test_snappy_elements() -> None:
    """Each kind of element at the edges of what its parts can say, made by hand."""

    def literal(data: bytes, wide: int = 0) -> bytes:
        return (
            bytes([(59 + wide) << 2]) + (len(data) - 1).to_bytes(wide, "little")
            if wide
            else bytes([(len(data) - 1) << 2])
        ) + data

    text = bytes(range(200)) * 3
    cases = [literal(text[:60]), *(literal(text[:n], wide) for wide in (1, 2, 3, 4) for n in (1, 60, 61, 200))]
    for length, offset in [(4, 1), (11, 3), (11, 59), (4, 60)]:
        cases.append(literal(text[:60]) + bytes([1 | (length - 4) << 2 | offset >> 8 << 5, offset & 255]))
    for length, offset, wide in [(1, 1, 2), (64, 1, 2), (64, 60, 2), (64, 7, 4), (1, 60, 4), (33, 32, 4)]:
        cases.append(
            literal(text[:60]) + bytes([{2: 2, 4: 3}[wide] | (length - 1) << 2]) + offset.to_bytes(wide, "little")
        )
    for body in cases:
        for behind in (literal(text[:60]), literal(text[:200], 1)):  # the library wants four bytes behind any length
            sizes = [n for n in range(1, 500) if expected(SNAPPY, varint(n) + body + behind, n) is not None]
            assert len(sizes) == 1, (body, behind)
            for size in (sizes[0] - 1, sizes[0], sizes[0] + 1):
                same_as_the_library(SNAPPY, varint(size) + body + behind, size)
    for wide in range(5):
        assert inflated(SNAPPY, varint(3) + literal(b"end", wide), 3) == b"end"
    for bad in (0, 61, 1 << 16, 1 << 31, (1 << 32) - 1):  # an offset of nothing, or to before the beginning
        for wide in (2, 4):
            if bad < 1 << 8 * wide:
                tag = {2: 2, 4: 3}[wide] | 9 << 2
                assert (
                    inflated(SNAPPY, varint(70) + literal(text[:60]) + bytes([tag]) + bad.to_bytes(wide, "little"), 70)
                    is None
                )


def varint(n: int) -> bytes:
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)


def test_huge_sizes_are_not_believed() -> None:
    for stated in (1 << 20, (1 << 32) - 1, 1 << 32, 1 << 40, 1 << 63):
        assert inflated(SNAPPY, varint(stated) + b"\0a", 100) is None
    for frames in (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff\0\0\0\1\0", b"\0\0\0\x64\xff\xff\xff\xff\0\0"):
        assert inflated(LZ4, frames, 100) is None
    assert inflated(LZ4_RAW, b"\xf0" + b"\xff" * 1000, 100) is None
    assert inflated(LZ4_RAW, b"\x1fa\x01\x00" + b"\xff" * 1000, 100) is None


def test_hadoop_frames() -> None:
    data = samples()["words"]
    for stream in (hadoop(data, 10_000, 70_000), hadoop(data[:5000]) + hadoop(data[5000:]), hadoop(data) + bytes(4)):
        assert inflated(LZ4, stream, len(data)) == data
        same_as_the_library(LZ4, stream[:-1], len(data))
        same_as_the_library(LZ4, stream + b"\0\0\1", len(data))
    bare = WRITERS[LZ4_RAW](data)
    assert inflated(LZ4, bare, len(data)) == data


def test_members_of_gzip() -> None:
    """Whatever was read before: both wrappers, several members, and nobody looks behind the last byte."""
    data = samples()["words"]
    one, two = WRITERS[GZIP](data[:1000]), WRITERS[GZIP](data[1000:])
    empty = WRITERS[GZIP](b"")
    for stream in (one + two, one + zlib.compress(data[1000:]), zlib.compress(data), empty + one + empty + two + empty):
        assert inflated(GZIP, stream, len(data)) == data
        for changed in (
            stream + b"behind",
            stream[:-3],
            stream[:-9],
            stream[:-1] + b"!",
            stream[:-5] + b"!" + stream[-4:],
        ):
            same_as_the_library(GZIP, changed, len(data))
            same_as_the_library(GZIP, changed, 1000)
    for stream in (one + b"behind" + two, one + b"\0" + two, one[:-8] + two, zlib.compress(data)[2:-4]):
        same_as_the_library(GZIP, stream, len(data))


def test_frames_of_zstd() -> None:
    data = samples()["words"]
    write = zstandard.ZstdCompressor
    plain = write().compress(data)
    sized = write(write_content_size=False).compress(data)
    checked = write(write_checksum=True).compress(data)
    skipped = b"\x50\x2a\x4d\x18\3\0\0\0abc"
    for stream in (
        sized,
        checked,
        skipped + plain,
        plain + skipped,
        write().compress(data[:500]) + write().compress(data[500:]),
    ):
        assert inflated(ZSTD, stream, len(data)) == data
        found = inflated(ZSTD, stream, len(data), 700)
        assert found is not None
        assert len(found) >= 700
        assert found == data[: len(found)]
        for changed in (stream + b"behind", stream[:-1], stream[:-1] + b"!"):
            same_as_the_library(ZSTD, changed, len(data))


def read_by_library(codec: int, stream: bytes, size: int) -> bytes:
    decode = compression.library_decoder(codec)
    if decode is None:
        assert codec == UNCOMPRESSED
        return stream
    out = np.empty(size, np.uint8)
    assert decode(stream, out) == size
    return out.tobytes()


@pytest.mark.sweep(3)
@pytest.mark.parametrize("codec", [UNCOMPRESSED, GZIP, BROTLI, ZSTD], ids=CODEC_NAMES.__getitem__)
def test_what_is_compressed_is_what_the_libraries_read(codec: int) -> None:
    assert kernels.codec_writes_native(codec)
    levels = {GZIP: (0, 1, 6, 9), BROTLI: (0, 1, 4, 6), ZSTD: (-5, 1, 3, 10, 19)}.get(codec, (0,))
    for name, data in {**samples(), "nothing": b""}.items():
        for level in levels:
            out = np.empty(probes.deflate_bound(codec, len(data)), np.uint8)
            size = probes.deflate(codec, level, data, out)
            assert 0 <= size <= len(out), name
            stream = out[:size].tobytes()
            if data:
                assert read_by_library(codec, stream, len(data)) == data, name
            for room in (size - 1, size // 2, 0) if size else ():
                fits = probes.deflate(codec, level, data, out[:room])  # zstd may find something shorter then
                assert fits <= room
                if fits >= 0:
                    assert inflated(codec, out[:fits].tobytes(), len(data)) == data, (name, room)


def test_no_codec_writes_what_it_does_not_know() -> None:
    for codec in (-1, LZO, LZ4, 8):
        assert not kernels.codec_writes_native(codec)
        assert probes.deflate(codec, 0, b"abc", bytearray(100)) == -1


def test_threads_of_their_own() -> None:
    """Contexts are kept for each thread: none sees another's."""
    data = samples()["words"]
    streams = {codec: WRITERS[codec](data) for codec in WRITERS}
    wrong: list[int] = []

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(60):
            codec = rng.choice(list(streams))
            if inflated(codec, streams[codec], len(data)) != data:
                wrong.append(codec)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def snappy_element(rng: random.Random, made: bytearray, known: int) -> bytes:
    """Some element, whose bytes go to `made`; copies look back as far as `known` bytes at most."""
    kind = rng.choice((0, 1, 1, 2, 2, 3)) if made else 0
    if kind == 0:
        size = rng.choice((1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 59, 60, 61, 70))
        text = rng.randbytes(size)
        made += text
        return (bytes([size - 1 << 2]) if size <= 60 else bytes([60 << 2, size - 1])) + text
    length = rng.randint(4, 11) if kind == 1 else rng.choice((1, 3, 4, 8, 15, 16, 17, 32, 33, 63, 64))
    most = min(len(made), known, (1 << 11) - 1 if kind == 1 else 1 << 15)
    offset = min(
        rng.choice((1, 2, 3, 5, 7, 8, 9, 12, 15, 16, 17, 20, length, length + 1, most, rng.randint(1, most))), most
    )
    for _ in range(length):
        made.append(made[-offset])
    if kind == 1:
        return bytes([1 | length - 4 << 2 | offset >> 8 << 5, offset & 255])
    return bytes([kind | length - 1 << 2]) + offset.to_bytes(2 * kind - 2, "little")


def test_snappy_elements_in_any_order() -> None:
    """Literals and copies of all kinds behind each other, which the decoder takes two at a time."""
    rng = random.Random(11)
    for _ in range(400):
        made, elements, behind = bytearray(), bytearray(), []
        for _ in range(rng.choice((3, 10, 60, 200))):
            behind.append(len(elements))
            elements += snappy_element(rng, made, rng.choice((20, 300, 1 << 20)))
        block = varint(len(made)) + elements
        assert snappy.decompress(bytes(block)) == made
        assert inflated(SNAPPY, bytes(block), len(made)) == made
        wanted = rng.randint(1, len(made))
        assert (inflated(SNAPPY, bytes(block), len(made), wanted) or b"")[:wanted] == made[:wanted]
        for _ in range(20):
            damaged = bytearray(block)
            place = len(block) - len(elements) + rng.choice(behind)  # a tag, or what stands behind it
            damaged[min(place + rng.choice((0, 0, 1, 2)), len(damaged) - 1)] = rng.randrange(256)
            same_as_the_library(SNAPPY, bytes(damaged), len(made))
        same_as_the_library(SNAPPY, bytes(block[: rng.randrange(len(block))]), len(made))
