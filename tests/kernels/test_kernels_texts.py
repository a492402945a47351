"""Tests of texts, and what is computed from texts and dates: against Python itself, asked random questions."""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from pyparq import kernels
from pyparq.filters.computed import text_test
from pyparq.kernels import KernelError, TextTest

LETTERS = "aabbcdkKsSiI _%\n1.é東ſİıK\x00ZüÜßΣ"
ATOMS = (".", r"\d", r"\w", r"\s", r"\W", r"\D", r"\S")
PLACES = ("^", "$", r"\b", r"\B", r"\A", r"\Z")
MEMBERS = ("a-c", "k", "s", "1-3", "é", "İ", "東", r"\d", r"\w", "I", "A-Z", "à-ü")
GROUPS = ("(", "(?:", "(?i:", "(?s:", "(?a:", "(?m:", "(?-i:")


def buffers(values: Sequence[bytes]) -> tuple[Any, Any]:
    return np.cumsum([0, *map(len, values)]), np.frombuffer(b"".join(values), np.uint8)


def bools(words: Any, count: int) -> list[bool]:
    return np.unpackbits(words.view(np.uint8), bitorder="little")[:count].astype(bool).tolist()


def passing(test: TextTest, values: Sequence[bytes], within: Any = None) -> list[bool]:
    return bools(test.test(*buffers(values), within), len(values))


def some_value(draw: random.Random) -> bytes:
    value = bytearray("".join(draw.choices(LETTERS, k=draw.randrange(40))).encode())
    for _ in range(3 if value and draw.random() < 0.2 else 0):
        value[draw.randrange(len(value))] = draw.randrange(256)
    return bytes(value)


def some_regex(draw: random.Random, depth: int = 0) -> str:
    """Without repetitions of repetitions, which may take Python forever."""
    found = ""
    for _ in range(draw.randrange(5)):
        kind = draw.random()
        repeats = draw.choice(["", "", "", "*", "+", "?", "{2}", "{1,3}", "*?", "{0,2}?"])
        if kind < 0.5:
            found += re.escape(draw.choice(LETTERS)) + repeats
        elif kind < 0.6:
            found += draw.choice(ATOMS) + repeats
        elif kind < 0.75:
            found += f"[{draw.choice(['', '^'])}{''.join(draw.choices(MEMBERS, k=draw.randrange(1, 4)))}]" + repeats
        elif kind < 0.85:
            found += draw.choice(PLACES)
        elif kind < 0.95 and depth < 3:
            found += draw.choice(GROUPS) + some_regex(draw, depth + 1) + ")"
        else:
            found += draw.choice([r"(?:(a)\1)?", "(?=a)", "(?!b)", "(?<=a)", "(?:ab)+"])
        found += "|" if draw.random() < 0.1 else ""
    return found


def like_as_regex(pattern: str) -> str:
    return "".join({"%": ".*", "_": "."}.get(char, re.escape(char)) for char in pattern)


def some_question(draw: random.Random, values: Sequence[bytes]) -> tuple[str, Any, bool, Callable[[bytes], bool]]:
    """The kind of a test, its pattern, whether values are text, and whether a value passes by Python."""
    kind = draw.choice(["starts_with", "ends_with", "contains", "like", "ilike", "matches", "matches"])
    is_text = draw.random() < 0.8
    if kind in ("like", "ilike"):
        pattern = "".join(draw.choices("%%__aabkKsSiI1é東", k=draw.randrange(8)))
        return kind, pattern, is_text, by_re(like_as_regex(pattern), is_text, re.S | re.I * (kind == "ilike"), True)
    if kind == "matches":
        pattern = draw.choice(["", "", "(?i)", "(?s)", "(?m)"]) + some_regex(draw)
        return kind, pattern, is_text, by_re(pattern, is_text, 0, False)
    source = draw.choice(values) if values and draw.random() < 0.7 else b"ab"
    start = draw.randrange(len(source) + 1)
    part = source[start : draw.randrange(start, len(source) + 1)]
    own = {"starts_with": bytes.startswith, "ends_with": bytes.endswith, "contains": bytes.__contains__}[kind]
    return kind, part, is_text, lambda value: own(value, part)


def by_re(pattern: str, is_text: bool, flags: int, whole: bool) -> Callable[[bytes], bool]:
    one: Any = re.compile(pattern if is_text else pattern.encode(), flags)
    find = one.fullmatch if whole else one.search
    return lambda value: find(value.decode("utf-8", "surrogateescape") if is_text else value) is not None


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("seed", range(8))
def test_texts_pass_as_in_python(seed: int) -> None:
    draw, asked = random.Random(seed), 0
    while asked < 150:
        values = [some_value(draw) for _ in range(draw.choice([0, 1, 5, 63, 64, 65, 130]))]
        try:
            kind, pattern, is_text, passes = some_question(draw, values)
        except (re.error, UnicodeEncodeError):
            continue
        asked += 1
        expected = [passes(value) for value in values]
        found = passing(text_test(kind, pattern, "", is_text), values)
        assert found == expected, (kind, pattern, is_text)
        wanted = np.random.default_rng(asked).random(len(values)) < draw.choice([0.02, 0.3, 0.9])
        bits = np.zeros((len(values) + 63) // 64 * 8, np.uint8)
        bits[: (len(values) + 7) // 8] = np.packbits(wanted, bitorder="little")
        some = passing(text_test(kind, pattern, "", is_text), values, bits.view(np.uint64))
        assert [x for x, w in zip(some, wanted, strict=True) if w] == [
            x for x, w in zip(expected, wanted, strict=True) if w
        ]


def test_regular_languages_are_not_asked_of_python() -> None:
    """Of ASCII texts, and of others where no rule of Unicode decides."""

    def fails(value: Any) -> object:
        raise AssertionError(value)

    values = ["error 404 at noon", "größe 12\n", "東京", "", "ab" * 50]
    for pattern in (
        r"error \d+",
        "^[^x]*$",
        "größ.",
        r"(a|b)+$",
        "(?i)ERROR",
        "京$",
        r"[0-9]{2}$",
        "(?m)^.{2}$",
        "o{2,}",
    ):
        rows = [value.encode() for value in values if value.isascii() or "\\d" not in pattern]
        found = passing(TextTest("matches", pattern, True, fails), rows)
        assert found == [re.search(pattern, row.decode()) is not None for row in rows], pattern
    with pytest.raises(AssertionError, match="1a"):  # what is no regular language is
        TextTest("matches", r"(.)a\1", True, fails).test(*buffers([b"1a1"]))


@pytest.mark.parametrize(
    "part", [b"a" * 400 + b"b", b"b" + b"a" * 400, b"ab" * 200 + b"c", b"\0" * 300, b"a" * (1 << 20)]
)
def test_parts_that_nearly_stand_everywhere(part: bytes) -> None:
    """The work is linear: some of these take minutes where each place is compared."""
    repeated = part[:2] * (1 << 20)
    values = [repeated, repeated + part, part + repeated, part, part[1:], b"", repeated[:-1] + part[:-1]]
    for kind in ("contains", "like"):
        pattern: Any = part if kind == "contains" else [None, part.decode(), None]
        assert passing(TextTest(kind, pattern, True, None), values) == [part in value for value in values]


def test_a_part_across_two_values_is_in_neither() -> None:
    assert passing(TextTest("contains", b"needle", True, None), [b"nee", b"dle", b"needle", b"n", b"eedle"]) == [
        False, False, True, False, False,
    ]  # fmt: skip


def test_texts_in_other_cases_lengths_and_order() -> None:
    draw = random.Random(5)
    values = [some_value(draw) for _ in range(3000)] + ["ΑΣ".encode(), "ΑΣ\0Σ".encode(), b"\0", b""]
    offsets, data = buffers(values)
    texts = [value.decode("utf-8", "surrogateescape") for value in values]
    assert kernels.count_characters(offsets, data).tolist() == list(map(len, texts))
    for upper in (False, True):
        ends, changed = kernels.change_case(offsets, data, upper)
        made = [changed[a:b].tobytes() for a, b in pairwise(ends)]
        expected = [text.upper() if upper else text.lower() for text in texts]
        assert made == [text.encode("utf-8", "surrogateescape") for text in expected]
    codes = np.random.default_rng(5).integers(0, len(values), len(values))
    sign = kernels.compare_texts(offsets, data, None, offsets.astype(np.int32), data, codes).tolist()
    assert sign == [(a > values[k]) - (a < values[k]) for a, k in zip(values, codes.tolist(), strict=True)]
    one = kernels.compare_texts(offsets, data, codes, *buffers([b"kK"]), None)
    assert one.tolist() == [(values[k] > b"kK") - (values[k] < b"kK") for k in codes.tolist()]


@pytest.mark.parametrize("upper", [False, True])
def test_every_character_in_another_case(upper: bool) -> None:
    """Alone, among letters, and beside others of its kind: capital sigma looks at its neighbours."""
    characters = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    texts = [*characters, *(f"aB{c}{d}Σ" for c, d in zip(characters[::7], characters[3::7], strict=False))]
    ends, changed = kernels.change_case(*buffers([text.encode() for text in texts]), upper)
    expected = [(text.upper() if upper else text.lower()).encode() for text in texts]
    assert changed.tobytes() == b"".join(expected)
    assert np.diff(ends).tolist() == list(map(len, expected))


def test_parts_of_dates() -> None:
    start = dt.datetime(1970, 1, 1)
    ticks = np.random.default_rng(6).integers(-(10**16) * 6, 2 * 10**17, 5000)
    moments = [start + dt.timedelta(microseconds=int(t)) for t in ticks]
    for name in ("year", "month", "day", "hour", "minute", "second"):
        found = kernels.part_of_dates(ticks, 86_400_000_000, name).tolist()
        assert found == [getattr(moment, name) for moment in moments], name
    quarters = kernels.part_of_dates(ticks, 86_400_000_000, "quarter").tolist()
    assert quarters == [(moment.month + 2) // 3 for moment in moments]
    edges = np.array([1 - (1 << 63), (1 << 63) - 1])
    years = edges.astype("M8[us]").astype("M8[Y]").astype(np.int64) + 1970
    assert kernels.part_of_dates(edges, 86_400_000_000, "year").tolist() == years.tolist()
    assert len(kernels.part_of_dates(edges, 1, "day")) == 2
    assert kernels.part_of_dates(np.array([25, 47]), 24, "minute").tolist() == [0, 0]


def test_what_does_not_fit_together_is_refused() -> None:
    test, data = TextTest("contains", b"a", True, None), np.zeros(4, np.uint8)
    for offsets in ([], [-1, 2], [3, 1], [0, 5], [0, 1 << 62]):
        for call in (test.test, kernels.count_characters, lambda o, d: kernels.change_case(o, d, False)):
            with pytest.raises(KernelError):
                call(np.array(offsets, np.int64), data)  # type: ignore[operator]
    with pytest.raises(KernelError):
        test.test(np.array([0, 1]), data, np.zeros(2, np.uint64))
    with pytest.raises(KernelError, match="code 2 is not below 2"):
        kernels.compare_texts(np.array([0, 1, 2]), data, np.array([0, 2]), np.array([0, 1]), data, None)
    with pytest.raises(KernelError, match="2 texts beside 3"):
        kernels.compare_texts(np.array([0, 1, 2]), data, None, np.array([0, 1, 1, 1]), data, None)
    with pytest.raises(KernelError, match="there is no test"):
        TextTest("sounds like", b"a", True, None)
    with pytest.raises(KernelError):
        kernels.part_of_dates(np.array([1]), 0, "year")
    with pytest.raises(KernelError, match="no century"):
        kernels.part_of_dates(np.array([1]), 1, "century")
    with pytest.raises(ZeroDivisionError):
        TextTest("matches", r"(.)\1", True, lambda value: 1 // 0).test(*buffers([b"aa"]))


@pytest.mark.parametrize("pattern", ["a[ab]{13}c", "(?i)b[ab]{12}A$", r"\b[^é]{2}a[ab]{11}é", "^[ab]+$", "c", "[0-9]x"])
def test_more_states_than_are_kept(pattern: str) -> None:
    """States are forgotten while several texts are looked at, and texts in which nothing begins are passed over."""
    draw = random.Random(pattern)
    values = ["".join(draw.choices("aab" if k % 3 else "abcé. 1x", k=draw.choice([0, 3, 40, 300]))) for k in range(400)]
    values += ["-" * draw.randrange(200) + draw.choice(["c", "7x", "é", ""]) for _ in range(400)]
    rows = [value.encode() for value in values]
    assert passing(text_test("matches", pattern, "", True), rows) == [re.search(pattern, v) is not None for v in values]
    of_bytes = pattern.encode()
    assert passing(text_test("matches", pattern, "", False), rows) == [re.search(of_bytes, v) is not None for v in rows]


@pytest.mark.parametrize("pattern", [r"\s", r"\S", r"^\s$", r"[^\s]", r"a\sb", r"[\sé]x?$"])
def test_spaces_of_every_kind(pattern: str) -> None:
    """Python's own spaces, which all of Unicode has, are known: nobody is asked."""

    def fails(value: Any) -> object:
        raise AssertionError(value)

    values = [chr(c) for c in range(0x3100) if not 0xD800 <= c < 0xE000] + [f"a{chr(c)}b" for c in range(0x3100)]
    found = passing(TextTest("matches", pattern, True, fails), [value.encode() for value in values])
    assert found == [re.search(pattern, value) is not None for value in values]


@pytest.mark.parametrize("count", [0, 1, 2, 700, 5000])
def test_distinct_values_in_order(count: int) -> None:
    draw = random.Random(count)
    for start in (b"", b"name ", b"\0"):
        values = [start + draw.randbytes(draw.choice([0, 1, 7, 8, 9, 20])) for _ in range(count)]
        values += draw.choices(values, k=count // 3) + [start * k for k in range(min(count, 3))]
        expected = sorted(set(values))
        ends, data = kernels.distinct_binary(*buffers(values))
        assert [data[a:b].tobytes() for a, b in pairwise(ends)] == expected
    rng = np.random.default_rng(count)
    for numbers in (
        rng.integers(-(1 << 63), (1 << 63) - 1, count),
        rng.integers(-70_000, 3, count),
        rng.integers(-count - 1, 15 * count + 1, count),
        rng.integers((1 << 64) - 2 * count - 2, (1 << 64) - 1, count, np.uint64, endpoint=True),
        rng.integers(0, (1 << 64) - 1, count, np.uint64),
        np.concatenate([rng.normal(size=count), [np.inf, -np.inf, 0.0, 5e-324]]),
    ):
        found = kernels.distinct_numbers(np.concatenate([numbers, numbers[: count // 2]]))
        assert found.view(numbers.dtype).tolist() == np.unique(numbers).tolist()
    with pytest.raises(KernelError, match="no numbers of 64 bits"):
        kernels.distinct_numbers(np.zeros(3, np.int32))
