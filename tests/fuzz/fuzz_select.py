"""Row masks, tests of values and comparisons of computed numbers, beside the same in numpy and Python."""

from __future__ import annotations

import operator
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from fuzz_input import Stream, check, number, own, refused, split

from pyparq import kernels

_MOST = 700
_NUMBERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.float32, np.float64)
_OPS = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def select(data: Any) -> None:
    head, stored = split(data)
    stream = Stream(bytes(stored))
    mask = _mask(stream, head[1] % 5)
    (_masks, _keeps, _numbers, _texts, _codes, _fixed)[head[0] % 6](head, stream, mask)


def _mask(stream: Stream, kind: int) -> Any:
    """Bools: none, all, runs, or any bits."""
    if kind < 2:
        return np.full(stream.next() * 3 % _MOST, kind, np.bool_)
    made: list[bool] = []
    for _ in range(1 + stream.next() % 40):
        run = stream.next()
        made += [bool(run & 1)] * (run // 2 if kind == 2 else 1 + run // 2 % 3)
    return np.array(made[:_MOST], np.bool_)


def _words(mask: Any) -> Any:
    """As the kernels take it, in memory of its own."""
    packed = np.packbits(mask, bitorder="little").tobytes()
    return own(packed + bytes(-len(packed) % 8)).view(np.uint64)


def _bools(words: Any, count: int) -> Any:
    bits = np.unpackbits(np.asarray(words).view(np.uint8), bitorder="little").astype(bool)
    check(len(bits) >= count and not bits[count:].any(), "bits behind the end")
    return bits[:count]


def _same(words: Any, wanted: Any, what: str) -> None:
    check(bool((_bools(words, len(wanted)) == wanted).all()), what)


def _ranges(mask: Any) -> tuple[Any, Any]:
    edges = np.flatnonzero(np.diff(np.concatenate(([0], mask.astype(np.int8), [0]))))
    return edges[::2].astype(np.int64), edges[1::2].astype(np.int64)


def _masks(head: bytes, stream: Stream, mask: Any) -> None:
    words, count, (starts, ends) = _words(mask), len(mask), _ranges(mask)
    check(kernels.mask_count(words) == mask.sum() and kernels.mask_runs(words) == len(starts), "another count")
    found = kernels.mask_to_ranges(words, count)
    check(found[0].tolist() == starts.tolist() and found[1].tolist() == ends.tolist(), "other ranges")
    joined, _ = kernels.mask_to_ranges(words, count, head[2] % 9)
    far = starts[1:] - ends[:-1] > head[2] % 9 if len(starts) else np.zeros(0, bool)
    check(len(joined) == min(len(starts), 1) + int(far.sum()), "other joined ranges")
    _same(kernels.mask_from_ranges(starts, ends, count), mask, "another mask of the ranges")
    check(kernels.mask_rows(words).tolist() == np.flatnonzero(mask).tolist(), "other rows")
    most = head[3] * 3
    _same(kernels.mask_head(words, most), mask & (np.cumsum(mask) <= most), "another beginning")
    other = np.resize(_mask(stream, 3) if count else np.zeros(1, bool), count)
    first, last = _ranges(other)
    _same(kernels.mask_within(words, count, first, last), mask[other], "other bits within ranges")
    spread = np.zeros(count, bool)
    spread[other] = mask[other]
    _same(kernels.mask_spread(_words(mask[other]), first, last, count), spread, "bits at other rows")
    offset = head[4] % (count + 1)
    _same(kernels.mask_of_bits(words, offset, count - offset), mask[offset:], "another part of the bits")


def _keeps(head: bytes, stream: Stream, mask: Any) -> None:
    words, count, width = _words(mask), len(mask), 1 + head[2] % 17
    raw = own(np.resize(np.frombuffer(stream.bytes(256), np.uint8), count * width).tobytes())
    out = np.empty(int(mask.sum()) * width, np.uint8)
    kernels.keep_fixed(words, raw, width, out)
    check(out.tobytes() == raw.reshape(count, width)[mask].tobytes(), "other values are kept")
    bits = np.resize(raw & 1, count).astype(bool) if count else mask
    _same(kernels.keep_bits(words, _words(bits), 0, count), bits[mask], "other bits are kept")
    levels = np.resize(raw % 4, count).astype(np.uint8)
    wanted = levels[mask] if head[3] & 1 else levels
    found = kernels.compact_fixed(levels, 1, mask.view(np.uint8) if head[3] & 1 else None)
    check(found.tolist() == wanted.tolist(), "other values are compact")
    level = head[4] % 5
    _same(kernels.mask_slots(words, levels, level), mask[levels >= level], "other slots")
    texts, offsets, joined = _strings(stream, count, head[5] & 1)
    kept = [text for text, there in zip(texts, mask.tolist(), strict=True) if there]
    size = kernels.kept_bytes(words, offsets)
    check(size == sum(map(len, kept)), "another size of texts")
    places, room = np.empty(len(kept) + 1, offsets.dtype), np.empty(size, np.uint8)
    kernels.keep_binary(words, offsets, joined, places, room)
    check([room[a:b].tobytes() for a, b in pairwise(places.tolist())] == kept, "other texts are kept")
    found, rest = kernels.compact_binary(offsets, joined, mask.view(np.uint8))
    check([rest[a:b].tobytes() for a, b in pairwise(found.tolist())] == kept, "other texts are compact")


def _strings(stream: Stream, count: int, wide: int) -> tuple[list[bytes], Any, Any]:
    """Few different texts, many times."""
    few = [stream.bytes(stream.next() % 20) for _ in range(1 + stream.next() % 6)]
    texts = [few[stream.next() % len(few)] for _ in range(count)]
    edges = np.concatenate(([0], np.cumsum([len(t) for t in texts], dtype=np.int64)))
    return texts, edges.astype(np.int64 if wide else np.int32), own(b"".join(texts))


def _within(mask: Any, head: bytes) -> Any:
    return _words(mask) if head[7] & 1 else None


def _numbers(head: bytes, stream: Stream, mask: Any) -> None:
    """NaN is above every number; the zeros are equal."""
    dtype = np.dtype(_NUMBERS[head[2] % len(_NUMBERS)])
    few = np.frombuffer(stream.bytes(8 * dtype.itemsize), dtype)
    values = own(few[np.array([stream.next() % 8 for _ in range(len(mask))], int)].tobytes()).view(dtype)
    rows = mask if head[7] & 1 else np.ones(len(mask), bool)
    is_nan = values != values
    literal = own(few[head[3] % 8 :][:1].tobytes()).view(dtype)
    if literal[0] == literal[0]:
        op = tuple(_OPS)[head[4] % len(_OPS)]
        with np.errstate(invalid="ignore"):
            wanted = np.where(is_nan, op in ("!=", ">", ">="), _OPS[op](values, literal[0]))
        found = kernels.match_numbers(values, op, literal, _within(mask, head))
        _same(found, wanted & rows, f"another answer to {op} {literal[0]!r}")
    if dtype.kind == "f":
        _same(kernels.match_numbers(values, "is_nan", literal, _within(mask, head)), is_nan & rows, "another NaN")
    among = own(few[: 1 + head[5] % 8].tobytes()).view(dtype)
    with np.errstate(invalid="ignore"):
        wanted = np.isin(values, among[among == among])
    _same(kernels.NumberSet(among).test(values, _within(mask, head)), wanted & rows, "another member")


def _texts(head: bytes, stream: Stream, mask: Any) -> None:
    texts, offsets, joined = _strings(stream, len(mask), head[5] & 1)
    literal = (texts or [b""])[head[3] % max(len(texts), 1)][: head[6] % 24]
    op = (*_OPS, "starts_with", "not starts_with")[head[4] % 8]
    if op in _OPS:
        wanted = [_OPS[op](text, literal) for text in texts]
    else:
        wanted = [text.startswith(literal) == (op == "starts_with") for text in texts]
    rows = mask if head[7] & 1 else np.ones(len(mask), bool)
    found = kernels.match_binary(offsets, joined, op, own(literal), _within(mask, head))
    _same(found, np.array(wanted, bool) & rows, f"another answer to {op} {literal!r}")
    few = sorted(set(texts))[: head[2] % 4]
    edges = np.concatenate(([0], np.cumsum([len(t) for t in few], dtype=np.int64)))
    words = kernels.BytesSet(edges, own(b"".join(few))).test(offsets, joined)
    among = np.unpackbits(words.view(np.uint8), bitorder="little")[: len(texts)].astype(bool)
    check(among.tolist() == [text in few for text in texts], "another member")


def _codes(head: bytes, stream: Stream, mask: Any) -> None:
    """Codes beyond the entries match nothing; those of pages are tallied."""
    entries = 1 + head[2] % 60
    beyond = head[3] % 4 == 0
    codes = np.array([stream.next() % (entries + 3 * beyond) for _ in range(len(mask))], np.int32)
    table = np.array([stream.next() & 1 for _ in range(entries)], bool)
    rows = mask if head[7] & 1 else np.ones(len(mask), bool)
    wanted = np.where(codes < entries, table[np.minimum(codes, entries - 1)], False)
    found = kernels.match_codes(codes, _words(table), entries, _within(mask, head))
    _same(found, wanted.astype(bool) & rows, "other codes")
    if beyond:
        return
    cuts = sorted({0, len(codes), *(head[k] * len(codes) // 256 for k in range(8, 12))})
    edges, weights = np.array(cuts, np.int64), np.arange(entries, dtype=np.int32)
    used, places, sums = kernels.tally_codes(codes, edges, entries, weights)
    for k in range(len(edges) - 1):
        page = codes[edges[k] : edges[k + 1]]
        own_codes = used[places[k] : places[k + 1]].tolist()
        check(sorted(own_codes) == sorted(set(page.tolist())) and sums[k] == weights[page].sum(), "another tally")


def _fixed(head: bytes, stream: Stream, mask: Any) -> None:
    """Byte strings of one length, and what a dictionary stands for."""
    width, count = 1 + head[2] % 20, len(mask)
    few = np.frombuffer(stream.bytes(4 * width), np.uint8).reshape(4, width)
    codes = np.array([stream.next() % 4 for _ in range(count)], np.int32)
    out = np.empty(count * width, np.uint8)
    kernels.gather_fixed(own(few.tobytes()), width, codes, out)
    check(out.tobytes() == few[codes].tobytes(), "other values are gathered")
    literal, op = few[head[3] % 4].tobytes(), tuple(_OPS)[head[4] % len(_OPS)]
    wanted = np.array([_OPS[op](row.tobytes(), literal) for row in few[codes]], bool)
    rows = mask if head[7] & 1 else np.ones(count, bool)
    found = kernels.match_fixed(out, width, op, own(literal), _within(mask, head))
    _same(found, wanted & rows, f"another answer to {op} {literal!r}")
    texts, offsets, joined = _strings(stream, 5, head[5] & 1)
    places, size = np.empty(count + 1, np.int64), sum(len(texts[c]) for c in codes.tolist())
    check(kernels.gather_binary_offsets(offsets, codes, places) == size, "another size")
    room = np.empty(size + 64, np.uint8)  # the kernel may scribble behind them
    kernels.gather_binary_bytes(offsets, joined, codes, room)
    check(room[:size].tobytes() == b"".join(texts[c] for c in codes.tolist()), "other texts are gathered")
    picked, data = kernels.take_binary(offsets, joined, codes.astype(np.int64))
    check(picked.tolist() == places.tolist() and data.tobytes() == room[:size].tobytes(), "other texts are taken")


def computed(data: Any) -> None:
    """Steps over columns of numbers: what is computed is what Python computes, and what makes no sense is refused."""
    head, stored = split(data)
    stream = Stream(bytes(stored))
    count, made, rows = number(head, 0) % 1100, list[Any](), list[Any]()
    for _ in range(1 + stream.next() % 6):
        kind = stream.next() % 8
        needed = max(kind - 4, 0) if head[3] % 16 else 0
        _step(stream, kind if len(rows) >= min(needed, 2) else 0, count, made, rows)
    for _ in range(abs(len(rows) - 2) if head[3] % 16 else 0):
        _step(stream, 0 if len(rows) < 2 else 6, count, made, rows)
    op = tuple(_OPS)[head[2] % len(_OPS)]
    with refused:
        found = kernels.compare_computed(made, op, count)
        if found is None or None in rows:
            return
        wanted = [x is not None and y is not None and _OPS[op](x, y) for x, y in zip(*rows, strict=True)]
        _same(found, np.array(wanted, bool), f"another answer to {made!r:.300}")


def _step(stream: Stream, kind: int, count: int, made: list[Any], rows: list[Any]) -> None:
    """``rows``: for each value that is there so far, the values of its rows. ``None``: nothing is expected."""
    if kind < 4:
        made.append(_column(stream, count, rows))
    elif kind == 4:
        value = int.from_bytes(stream.bytes(1 + stream.next() % 17), "little", signed=True)
        made.append(("literal", value, 1 + stream.next() % 3))
        rows.append([Fraction(value, made[-1][2])] * count)
    elif kind == 5:
        made.append(("part", ("year", "quarter", "month", "day", "hour", "minute", "second", "")[stream.next() % 8]))
        rows[-1:] = [None]
    else:
        op = ("+", "-", "*", "/", "%", "rem", "**")[stream.next() % 7]
        made.append((op, False))
        right, left = (rows.pop() if rows else None for _ in range(2))
        rows.append(None if left is None or right is None or op == "**" else list(map(_joined(op), left, right)))


def _column(stream: Stream, count: int, rows: list[Any]) -> Any:
    """Few different numbers. Sizes and codes may be wrong, and then nothing is expected."""
    dtype = np.dtype(_NUMBERS[stream.next() % 8])
    few = np.frombuffer(stream.bytes(8 * dtype.itemsize), dtype)
    choice = np.array([stream.next() % 8 for _ in range(24)], np.int64)
    picks = np.resize(choice, count)
    den, way = 1 + stream.next() % 5, stream.next()
    valid = np.resize(choice != 7, count) if way & 1 else np.ones(count, bool)
    bits = own(np.packbits(valid, bitorder="little").tobytes()) if way & 1 else None
    known = [Fraction(int(few[k]), den) if ok else None for k, ok in zip(picks.tolist(), valid.tolist(), strict=True)]
    if way & 2:
        rows.append(known)
        codes = (own(picks.astype(np.int32).tobytes()).view(np.int32), count, bits, 0)
        return "column", den, False, (own(few.tobytes()).view(dtype), 8, None, 0), codes
    short = way >> 2 & 63 == 9
    rows.append(None if short else known)
    numbers = own(few[picks][: count - short].tobytes()).view(dtype)
    return "column", den, False, (numbers, count, bits, 0), None


def _joined(op: str) -> Any:
    def joined(a: Any, b: Any) -> Any:
        if a is None or b is None or (op in ("/", "%", "rem") and b == 0):
            return None
        if op == "rem":
            return a - b * int(a / b)
        return {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "%": operator.mod}[op](
            a, b
        )

    return joined
