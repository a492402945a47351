"""Bitmaps of rows: every kernel against Python, over densities and lengths, and with arguments that do not fit."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from kernel_data import binary

from pyparq import kernels
from pyparq.kernels import KernelError

LENGTHS = (0, 1, 7, 63, 64, 65, 127, 128, 129, 200, 1000)
DENSITIES = (0.0, 0.02, 0.5, 0.9, 0.99, 1.0)
RNG = random.Random(7)


def packed(bits: Any) -> Any:
    """Words of 64 bits, zeros behind the last."""
    raw = np.zeros((len(bits) + 63) // 64 * 8, np.uint8)
    raw[: (len(bits) + 7) // 8] = np.packbits(np.array(bits, bool), bitorder="little")
    return raw.view(np.uint64)


def bools(words: Any, count: int) -> list[bool]:
    """The bits again; those behind the last must be zeros."""
    found = np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool).tolist()
    assert len(found) == (count + 63) // 64 * 64
    assert not any(found[count:])
    return found[:count]


def masks() -> Any:
    for n in LENGTHS:
        for density in DENSITIES:
            yield [RNG.random() < density for _ in range(n)]
    for n in (130, 300):  # long runs
        yield [(i // 70) % 2 == 0 for i in range(n)]
        yield [(i // 70) % 2 == 1 for i in range(n)]


MASKS = list(masks())


def edges(bits: list[bool], join: int = 0) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for i, bit in enumerate(bits):
        if bit and found and i - found[-1][1] <= join:
            found[-1] = (found[-1][0], i + 1)
        elif bit:
            found.append((i, i + 1))
    return found


def test_counts_runs_and_ranges() -> None:
    for bits in MASKS:
        words, n = packed(bits), len(bits)
        assert kernels.mask_count(words) == sum(bits)
        assert kernels.mask_runs(words) == len(edges(bits))
        places = np.unique([0, len(bits) // 3, len(bits) // 2, max(len(bits) - 1, 0), len(bits)])
        assert kernels.mask_ranks(words, places).tolist() == [sum(bits[:k]) for k in places]
        assert kernels.mask_rows(words).tolist() == [i for i, bit in enumerate(bits) if bit]
        for join in (0, 1, 5, 64):
            starts, ends = kernels.mask_to_ranges(words, n, join)
            assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == edges(bits, join)
        starts, ends = kernels.mask_to_ranges(words, n)
        assert bools(kernels.mask_from_ranges(starts, ends, n), n) == bits
        for count in (0, 1, 5, sum(bits) // 2, sum(bits), sum(bits) + 3):
            before, kept = 0, []
            for bit in bits:
                kept.append(bit and before < count)
                before += bit
            assert bools(kernels.mask_head(words, count), n) == kept


def test_within_and_spread() -> None:
    for bits in MASKS:
        for density in (0.0, 0.3, 0.97, 1.0):
            outer = [RNG.random() < density for _ in bits]
            starts, ends = kernels.mask_to_ranges(packed(outer), len(bits))
            inside = [bit for bit, held in zip(bits, outer, strict=True) if held]
            words = kernels.mask_within(packed(bits), len(bits), starts, ends)
            assert bools(words, len(inside)) == inside
            both = [bit and held for bit, held in zip(bits, outer, strict=True)]
            assert bools(kernels.mask_spread(words, starts, ends, len(bits)), len(bits)) == both


def test_bits_of_other_bitmaps() -> None:
    for bits in MASKS:
        for offset in (0, 1, 8, 13):
            raw = np.packbits(np.array([True] * offset + bits + [True] * 5, bool), bitorder="little")
            assert bools(kernels.mask_of_bits(raw, offset, len(bits)), len(bits)) == bits
            mask = [RNG.random() < 0.6 for _ in bits]
            kept = [bit for bit, keep in zip(bits, mask, strict=True) if keep]
            assert bools(kernels.keep_bits(packed(mask), raw, offset, len(bits)), len(kept)) == kept


@pytest.mark.parametrize("width", [1, 2, 3, 4, 8, 12, 16, 32])
def test_fixed_values(width: int) -> None:
    for bits in MASKS:
        values = np.random.default_rng(1).integers(0, 256, (len(bits), width), np.uint8)
        wanted = values[np.array(bits, bool)]
        fence = np.full(wanted.size + 128, 0x5A, np.uint8)
        kernels.keep_fixed(packed(bits), values, width, fence[64 : 64 + wanted.size])
        assert np.array_equal(fence[64 : 64 + wanted.size].reshape(-1, width), wanted)
        assert (fence[:64] == 0x5A).all()
        assert (fence[64 + wanted.size :] == 0x5A).all()


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_strings(dtype: Any) -> None:
    for bits in MASKS:
        values = [RNG.randbytes(RNG.choice((0, 1, 3, 9, 31, 33, 70))) for _ in bits]
        offsets, data = binary([b"before", *values, b"after"], dtype)
        offsets = offsets[1 : len(values) + 2]
        kept = [value for value, bit in zip(values, bits, strict=True) if bit]
        size = kernels.kept_bytes(packed(bits), offsets)
        assert size == sum(map(len, kept))
        out, fence = np.full(len(kept) + 1, 77, dtype), np.full(size + 128, 0x5A, np.uint8)
        kernels.keep_binary(packed(bits), offsets, data, out, fence[64 : 64 + size])
        got = [bytes(fence[64 + a : 64 + b]) for a, b in zip(out[:-1].tolist(), out[1:].tolist(), strict=True)]
        assert got == kept
        assert out[0] == 0
        assert (fence[:64] == 0x5A).all()
        assert (fence[64 + size :] == 0x5A).all()


def test_entries_and_slots_of_lists() -> None:
    for bits in MASKS:
        lengths = [RNG.choice((1, 1, 2, 5, 90)) for _ in bits]
        reps = np.array([int(k > 0) for n in lengths for k in range(n)], np.uint8)
        defs = np.array([RNG.randrange(4) for _ in reps], np.uint8)
        held = [bit for bit, n in zip(bits, lengths, strict=True) for _ in range(n)]
        words = kernels.mask_entries(packed(bits), len(bits), reps)
        assert bools(words, len(reps)) == held
        for level in (0, 2, 4):
            slots = [bit for bit, level_of in zip(held, defs.tolist(), strict=True) if level_of >= level]
            assert bools(kernels.mask_slots(words, defs, level), len(slots)) == slots


def refused(call: Any) -> None:
    with pytest.raises(KernelError):
        call()


def test_what_does_not_fit_is_refused() -> None:
    words, ones = packed([True] * 70), packed([True] * 64)
    stray = np.array([2**64 - 1, 2**64 - 1], np.uint64)  # bits behind row 70
    a, b = np.array([3, 60], np.int64), np.array([5, 70], np.int64)
    raw, out = np.zeros(70, np.uint8), np.zeros(70, np.uint8)
    o32, data = binary([b"x"] * 70, np.int32)
    for bad in (stray, ones, words[:0]):
        refused(lambda bad=bad: kernels.mask_to_ranges(bad, 70))
        refused(lambda bad=bad: kernels.mask_within(bad, 70, a, b))
        refused(lambda bad=bad: kernels.keep_fixed(bad, raw, 1, out))
        refused(lambda bad=bad: kernels.keep_bits(bad, raw, 0, 70))
        refused(lambda bad=bad: kernels.kept_bytes(bad, o32))
        refused(lambda bad=bad: kernels.keep_binary(bad, o32, data, np.zeros(71, np.int32), out))
        refused(lambda bad=bad: kernels.mask_entries(bad, 70, raw))
        refused(lambda bad=bad: kernels.mask_slots(bad, raw, 1))
    for starts, ends in (
        ([3], [5, 7]), ([5, 3], [6, 4]), ([-1], [3]), ([4], [3]), ([3, 4], [5, 6]), ([60], [71]),
        ([2**62], [2**62 + 1]), ([-(2**63)], [2**63 - 1]),
    ):  # fmt: skip
        first, last = np.array(starts, np.int64), np.array(ends, np.int64)
        refused(lambda first=first, last=last: kernels.mask_from_ranges(first, last, 70))
        refused(lambda first=first, last=last: kernels.mask_within(words, 70, first, last))
        refused(lambda first=first, last=last: kernels.mask_spread(words, first, last, 70))
    refused(lambda: kernels.mask_spread(words, a, b, 70))  # the ranges hold 12 rows
    for rows in (-1, 2**62):
        refused(lambda rows=rows: kernels.mask_from_ranges(a, b, rows))
        refused(lambda rows=rows: kernels.mask_to_ranges(words, rows))
        refused(lambda rows=rows: kernels.mask_entries(words, rows, raw))
    refused(lambda: kernels.mask_head(words, -1))
    for offset, length in ((-1, 3), (0, -1), (8, 553), (561, 0), (2**62, 8), (0, 2**62)):
        refused(lambda offset=offset, length=length: kernels.mask_of_bits(raw, offset, length))
        refused(lambda offset=offset, length=length: kernels.keep_bits(words, raw, offset, length))
    for width, size in ((0, 70), (-1, 70), (3, 70), (1, 69), (1, 71)):
        refused(lambda width=width, size=size: kernels.keep_fixed(words, raw, width, np.zeros(size, np.uint8)))
    for offsets in (np.empty(0, np.int32), np.flip(o32).copy(), o32 - 5):
        refused(lambda offsets=offsets: kernels.kept_bytes(words, offsets))
        refused(lambda offsets=offsets: kernels.keep_binary(words, offsets, data, np.zeros(71, np.int32), out))
    for edges_out, bytes_out, source in (
        (np.zeros(70, np.int32), out, data), (np.zeros(71, np.int64), out, data),
        (np.zeros(71, np.int32), out[:69], data), (np.zeros(71, np.int32), np.zeros(71, np.uint8), data),
        (np.zeros(71, np.int32), out, data[:69]),
    ):  # fmt: skip
        refused(lambda e=edges_out, t=bytes_out, s=source: kernels.keep_binary(words, o32, s, e, t))
    refused(lambda: kernels.mask_entries(words, 70, np.zeros(69, np.uint8)))
    refused(lambda: kernels.mask_entries(words, 70, np.zeros(71, np.uint8)))
    refused(lambda: kernels.mask_entries(words, 70, np.ones(70, np.uint8)))
    for level in (-1, 256):
        refused(lambda level=level: kernels.mask_slots(words, raw, level))


# ---- tests of values -------------------------------------------------------------------------------------------------

OPS: dict[str, Any] = {
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip
NUMBERS = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")


def numbers(dtype: str, n: int) -> Any:
    """The ends of the type, the zeros and NaN among others."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        pool = [0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan, 65504.0, 6e-8]
    else:
        info = np.iinfo(kind)
        pool = [info.min, info.min + 1, 0, 1, 5, info.max - 1, info.max]
    return np.array([RNG.choice(pool) for _ in range(n)], kind)


def rank(value: Any) -> Any:
    """NaN above every number, the zeros equal."""
    return (1, 0) if value != value else (0, value)


def wanted_bits(n: int) -> tuple[Any, list[bool]]:
    bits = [RNG.random() < RNG.choice((0.02, 0.9)) and (i // 64) % 3 != 1 for i in range(n)]
    return packed(bits), bits


@pytest.mark.parametrize("dtype", NUMBERS)
def test_numbers_against_a_literal(dtype: str) -> None:
    for n in (0, 1, 64, 100, 333):
        values = numbers(dtype, n)
        within, bits = wanted_bits(n)
        for literal in {x for x in numbers(dtype, 12).tolist() if x == x}:
            one = np.array([literal], dtype)
            for op, python in OPS.items():
                wanted = [python(rank(v), rank(literal)) for v in values.tolist()]
                assert bools(kernels.match_numbers(values, op, one), n) == wanted, (op, literal)
                found = bools(kernels.match_numbers(values, op, one, within), n)
                assert found == [w and bit for w, bit in zip(wanted, bits, strict=True)]
        for op, nan in (("is_nan", True), ("is_not_nan", False)):
            found = bools(kernels.match_numbers(values, op, np.zeros(1, dtype)), n)
            assert found == [(v != v) is nan for v in values.tolist()]


@pytest.mark.parametrize("dtype", NUMBERS)
def test_numbers_in_a_set(dtype: str) -> None:
    for size in (0, 1, 5, 300):
        members = numbers(dtype, size)
        if np.dtype(dtype).itemsize > 2 and size > 5:  # far apart: hashed
            members = np.concatenate((members, np.arange(size).astype(dtype) * (2**24)))
        found = kernels.NumberSet(members)
        known = {rank(v) for v in members.tolist() if v == v}
        for n in (0, 70, 500):
            values = np.concatenate((numbers(dtype, n), members[:50]))
            within, bits = wanted_bits(len(values))
            wanted = [rank(v) in known for v in values.tolist()]
            assert bools(found.test(values), len(values)) == wanted
            both = [w and bit for w, bit in zip(wanted, bits, strict=True)]
            assert bools(found.test(values, within), len(values)) == both


def test_random_integers_in_sets_of_any_size() -> None:
    rng = np.random.default_rng(2)
    for span in (10, 10_000, 2**40, 2**63 - 1):
        for size in (3, 1_000, 50_000):
            members = rng.integers(-span, span, size)
            values = np.concatenate((rng.integers(-span, span, 20_000), members[:1_000]))
            found = np.unpackbits(kernels.NumberSet(members).test(values).view(np.uint8), bitorder="little")
            assert np.array_equal(found[: len(values)].astype(bool), np.isin(values, members))


@pytest.mark.parametrize("width", [8, 16, 32])
def test_wide_integers(width: int) -> None:
    top = 1 << (8 * width - 1)
    pool = [0, 1, -1, top - 1, -top, *(x for k in (63, 64, 100) for x in (2**k, -(2**k), 2**k - 1))]
    pool = [x for x in pool if -top <= x < top]
    values = [RNG.choice(pool) for _ in range(150)]
    data = b"".join(v.to_bytes(width, "little", signed=True) for v in values)
    within, bits = wanted_bits(len(values))
    for literal in pool:
        raw = literal.to_bytes(width, "little", signed=True)
        for op, python in OPS.items():
            wanted = [python(v, literal) for v in values]
            assert bools(kernels.match_limbs(data, width, op, raw), len(values)) == wanted
            found = bools(kernels.match_limbs(data, width, op, raw, within), len(values))
            assert found == [w and bit for w, bit in zip(wanted, bits, strict=True)]


WORDS_POOL = [b"", b"\0", b"a", b"a\0", b"abcdefg", b"abcdefgh", b"abcdefghi", b"abcdefgh\0", b"\xff" * 9, b"b" * 40]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_byte_strings(dtype: Any) -> None:
    for n in (0, 1, 64, 200):
        values = [RNG.choice(WORDS_POOL) for _ in range(n)]
        offsets, data = binary(values, dtype)
        within, bits = wanted_bits(n)
        for literal in WORDS_POOL:
            tests = {op: [python(v, literal) for v in values] for op, python in OPS.items()}
            tests["starts_with"] = [v.startswith(literal) for v in values]
            tests["not starts_with"] = [not v.startswith(literal) for v in values]
            for op, wanted in tests.items():
                assert bools(kernels.match_binary(offsets, data, op, literal), n) == wanted, (op, literal)
                found = bools(kernels.match_binary(offsets, data, op, literal, within), n)
                assert found == [w and bit for w, bit in zip(wanted, bits, strict=True)]


@pytest.mark.parametrize("width", [1, 5, 8, 12])
def test_byte_strings_of_one_length(width: int) -> None:
    pool = [RNG.randbytes(width) for _ in range(5)] + [b"\0" * width, b"\xff" * width]
    values = [RNG.choice(pool) for _ in range(100)]
    for literal in [*pool, b"", pool[0][:1], pool[0] + b"x"]:
        tests = {op: [python(v, literal) for v in values] for op, python in OPS.items()}
        tests["starts_with"] = [v.startswith(literal) for v in values]
        for op, wanted in tests.items():
            assert bools(kernels.match_fixed(b"".join(values), width, op, literal), 100) == wanted


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "i4", "u4", "i8", "u8"])
def test_indices_into_a_table(dtype: str) -> None:
    table = [RNG.random() < 0.5 for _ in range(70)]
    codes = np.concatenate((np.arange(70), [0, 69, 70, 100])).astype(dtype)
    codes = np.concatenate((codes, numbers(dtype, 100)))  # what stands under nulls
    within, bits = wanted_bits(len(codes))
    wanted = [0 <= code < 70 and table[code] for code in codes.tolist()]
    assert bools(kernels.match_codes(codes, packed(table), 70), len(codes)) == wanted
    found = bools(kernels.match_codes(codes, packed(table), 70, within), len(codes))
    assert found == [w and bit for w, bit in zip(wanted, bits, strict=True)]
    assert not any(bools(kernels.match_codes(codes, packed([]), 0), len(codes)))


@pytest.mark.parametrize("entries", [1, 63, 64, 65, 255, 256, 257, 1000, 70_000])
def test_indices_into_tables_of_every_size(entries: int) -> None:
    rng = np.random.default_rng(entries)
    table = rng.random(entries) < 0.5
    codes = rng.integers(0, entries, 64 * 9 + 17, np.int32)
    odd = rng.random(len(codes)) < 0.1
    codes[odd] = rng.integers(-(1 << 31), (1 << 31) - 1, np.count_nonzero(odd), np.int32)
    known = (codes >= 0) & (codes < entries)
    wanted = known & table[np.where(known, codes, 0)]
    assert bools(kernels.match_codes(codes, packed(table.tolist()), entries), len(codes)) == wanted.tolist()
    within, bits = wanted_bits(len(codes))
    found = bools(kernels.match_codes(codes, packed(table.tolist()), entries, within), len(codes))
    assert found == (wanted & bits).tolist()


def test_tests_that_do_not_fit_are_refused() -> None:
    values, one = np.arange(70), np.zeros(1, np.int64)
    short = np.zeros(1, np.uint64)
    offsets, data = binary([b"x"] * 70, np.int32)
    refused(lambda: kernels.match_numbers(values, "~", one))
    refused(lambda: kernels.match_numbers(values, "starts_with", one))
    refused(lambda: kernels.match_numbers(values, "<", one[:0]))
    refused(lambda: kernels.match_numbers(values, "<", np.zeros(1, np.int32)))
    refused(lambda: kernels.match_numbers(values, "<", one, short))
    refused(lambda: kernels.match_limbs(values, 12, "<", bytes(12)))
    refused(lambda: kernels.match_limbs(values, 16, "<", bytes(8)))
    refused(lambda: kernels.match_limbs(values, 0, "<", b""))
    refused(lambda: kernels.match_limbs(values, 8, "is_nan", bytes(8)))
    refused(lambda: kernels.match_limbs(values, 8, "<", bytes(8), short))
    refused(lambda: kernels.match_binary(offsets, data, "is_nan", b""))
    refused(lambda: kernels.match_binary(offsets, data, "<", b"", short))
    refused(lambda: kernels.match_fixed(data, 3, "<", b""))
    refused(lambda: kernels.match_fixed(data, 1, "<", b"", short))
    for bad in (offsets[:0], np.flip(offsets).copy(), offsets - 3, offsets + 3):
        for op in ("==", "<", "starts_with"):
            refused(lambda bad=bad, op=op: kernels.match_binary(bad, data, op, b"x"))
    refused(lambda: kernels.match_codes(values, short, 65))
    refused(lambda: kernels.match_codes(values, short, -1))
    refused(lambda: kernels.match_codes(values, np.array([2], np.uint64), 1))
    refused(lambda: kernels.match_codes(values.astype(np.float64), short, 64))
    refused(lambda: kernels.match_codes(values, short, 64, short))
    refused(lambda: kernels.NumberSet(values).test(values.astype(np.int32)))
    refused(lambda: kernels.NumberSet(values).test(values.astype(np.float64)))
    refused(lambda: kernels.NumberSet(values).test(values, short))
