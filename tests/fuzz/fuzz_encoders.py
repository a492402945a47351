"""Encoders: values that the bytes of an input make come back, and slow decoders see them too."""

from __future__ import annotations

from typing import Any

import numpy as np
from fuzz_input import Stream, check, own, split
from reference import delta_decode, rle_decode

from pyparq.kernels import dict_encode_binary, dict_encode_fixed, plain_binary_encode
from pyparq.kernels._native import probes

_MOST = 700


def _series(stream: Stream, bits: int) -> Any:
    """Runs, steps and any bits: what encoders treat in different ways."""
    made: list[int] = []
    while stream.left and len(made) < _MOST:
        kind, count = stream.next() % 5, 1 + stream.next() % 80
        start = int.from_bytes(stream.bytes(1 + stream.next() % (bits // 8)), "little", signed=True)
        step = (0, stream.next() - 128, 1 << bits - 1, 1, start)[kind] if kind else 0
        made += [start + k * step for k in range(count if kind < 4 else 1)]
    masked = [(n + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1) for n in made]
    return np.array(masked, {32: np.int32, 64: np.int64}[bits])


def encoders(data: Any) -> None:
    head, stored = split(data)
    stream = Stream(bytes(stored))
    (_rle, _delta, _texts, _fixed)[head[0] % 4](head, stream)


def _rle(head: bytes, stream: Stream) -> None:
    wide = head[1] & 1
    width = 1 + head[2] % (31 if wide else 8)
    values = (_series(stream, 64) & ((1 << width) - 1)).astype(np.int32 if wide else np.uint8)
    again: Any = np.empty(len(values), values.dtype)
    if wide:
        made = own(probes.rle_encode_i32(values, width))
        used = probes.rle_decode_i32(made, width, len(values), again, 1 << 31)
    else:
        made = own(probes.rle_encode_u8(values, width))
        used = probes.rle_decode_u8(made, width, len(values), again)
    check(used == len(made) and bool((again == values).all()), "values do not come back")
    slow = rle_decode(made.tobytes(), width, len(values))[0] if len(values) else []
    check(slow == values.tolist(), "another decoder sees others")


def _delta(head: bytes, stream: Stream) -> None:
    bits = 64 if head[1] & 1 else 32
    values = _series(stream, bits)
    again: Any = np.empty(len(values), values.dtype)
    if bits == 64:
        made = own(probes.delta_encode_i64(values))
        used = probes.delta_decode_i64(made, again, len(values))
    else:
        made = own(probes.delta_encode_i32(values))
        used = probes.delta_decode_i32(made, again, len(values))
    check(used == len(made) and bool((again == values).all()), "values do not come back")
    if len(values):
        check(delta_decode(made.tobytes(), bits)[0] == values.tolist(), "another decoder sees others")


def _texts(head: bytes, stream: Stream) -> None:
    """Texts that share beginnings, by three encodings and by a dictionary."""
    texts: list[bytes] = []
    while stream.left and len(texts) < _MOST:
        shared = stream.next()
        before = texts[-1][: shared % 32] if texts and shared & 32 else b""
        texts += [before + stream.bytes(stream.next() % 30)] * (1 + shared // 64 * 9)
    edges = np.concatenate(([0], np.cumsum([len(t) for t in texts], dtype=np.int64)))
    edges = edges.astype(np.int64 if head[1] & 1 else np.int32)
    values = own(b"".join(texts))
    count, kind = len(texts), head[1] // 2 % 4
    if kind == 3:
        return _dictionary_of_texts(edges, values, texts, 1 << head[2] % 20)
    made = own((plain_binary_encode, probes.delta_length_encode, probes.delta_byte_array_encode)[kind](edges, values))
    offsets: Any = np.empty(count + 1, np.int64)
    if kind == 2:
        offsets, out, _ = probes.delta_byte_array_decode(made, count, len(values))
    else:
        out = np.empty(len(values), np.uint8)
        (probes.plain_binary_decode, probes.delta_length_decode)[kind](made, count, offsets, out)
    check(offsets.tolist() == edges.tolist() and bytes(out) == values.tobytes(), "texts do not come back")
    return None


def _dictionary_of_texts(edges: Any, values: Any, texts: list[bytes], room: int) -> None:
    codes, first = dict_encode_binary(edges, values, room)
    _same(codes, first, texts)
    kept = [texts[k] for k in first.tolist()]
    size = sum(map(len, kept)) + 4 * len(kept)
    check(size <= room, "the dictionary is too large")
    if len(codes) < len(texts):
        more = texts[len(codes)]
        check(more not in kept and size + 4 + len(more) > room, "another entry would fit")


def _same(codes: Any, first: Any, values: list[bytes]) -> None:
    """Each code stands for the first of the values that are equal."""
    check(len(set(values[: len(codes)])) == len(first), "another number of entries")
    places = first.tolist()
    check([values[places[c]] for c in codes.tolist()] == values[: len(codes)], "a dictionary of others")


def _fixed(head: bytes, stream: Stream) -> None:
    """BYTE_STREAM_SPLIT, and a dictionary of values of one width."""
    width = 1 + head[1] % 20
    raw = _series(stream, 64).astype("<i8").view(np.uint8)
    raw = own(np.resize(raw, len(raw) // width * width).tobytes())
    out = np.empty(len(raw), np.uint8)
    probes.byte_stream_split_decode(own(probes.byte_stream_split_encode(raw, width)), width, out)
    check(bool((out == raw).all()), "bytes do not come back")
    rows = [raw[k : k + width].tobytes() for k in range(0, len(raw), width)]
    codes, first = dict_encode_fixed(raw, width, 1 + head[2])
    _same(codes, first, rows)
    check(len(first) <= 1 + head[2], "the dictionary is too large")
    if len(codes) < len(rows):
        check(len(first) == 1 + head[2] and len(set(rows[: len(codes) + 1])) > len(first), "another entry would fit")
