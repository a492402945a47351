"""Level kernels against lists shredded and put together one value at a time."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyparq import kernels
from pyparq.kernels import KernelError

# optional list of optional list of optional value: definition levels 0 null, 1 empty, 2 inner null, 3 inner
# empty, 4 value null, 5 value.
Inner = list[int | None] | None
Rows = list[list[Inner] | None]

INNER = st.none() | st.lists(st.none() | st.integers(0, 9), max_size=4)
ROWS = st.lists(st.none() | st.lists(INNER, max_size=4), max_size=12)


def shred(rows: Rows) -> tuple[Any, Any]:
    """Definition and repetition levels, the way the Dremel paper tells it."""
    pairs: list[tuple[int, int]] = []
    for row in rows:
        if not row:
            pairs.append((0 if row is None else 1, 0))
            continue
        for i, inner in enumerate(row):
            rep = 0 if i == 0 else 1
            if not inner:
                pairs.append((2 if inner is None else 3, rep))
                continue
            for j, value in enumerate(inner):
                pairs.append((4 if value is None else 5, rep if j == 0 else 2))
    levels = np.array(pairs, np.uint8).reshape(-1, 2)
    return np.ascontiguousarray(levels[:, 0]), np.ascontiguousarray(levels[:, 1])


def offsets_of(lists: list[Any]) -> list[int]:
    return [0, *np.cumsum([len(x or []) for x in lists]).tolist()]


def test_levels_that_are_not_there() -> None:
    reps = np.array([0, 1, 0, 1, 1], np.uint8)
    offsets, valid = kernels.list_slots(None, reps, 5, 2, 0, 0, 1, 1, 0)
    assert offsets.tolist() == [0, 2, 5]
    assert valid.tolist() == [True, True]
    defs = np.array([0, 1, 1], np.uint8)
    assert kernels.slot_validity(defs, None, 3, 3, 0, 0, 1).tolist() == [False, True, True]
    assert kernels.slot_validity(None, None, 3, 3, 0, 0, 1).tolist() == [True] * 3


@given(ROWS)
@settings(max_examples=200)
def test_lists_to_levels(rows: Rows) -> None:
    defs, reps = shred(rows)
    inner = [x for row in rows for x in row or []]

    def step(lists: list[Any], slots: int, r: Any, d: Any, null_def: int, item_rep: int) -> Any:
        """Nulls end their slots, then lists are expanded."""
        full = np.array([x is not None for x in lists], np.bool_)
        d = kernels.settle_slots(slots, d, full, null_def, kernels.LIVE_SLOT)
        starts = np.array(offsets_of(lists)[:-1], np.int64)[full]
        lengths = np.array([len(x) for x in lists if x is not None], np.int64)
        total = sum(len(x or []) for x in lists)
        r, d, live, elements, first = kernels.expand_lists(slots, r, d, starts, lengths, total, item_rep, null_def + 1)
        assert live == total
        assert elements is None  # they follow each other
        assert first == 0
        assert d is not None or len(r) == live
        return r, d

    r, d = step(rows, len(rows), None, None, 0, 1)
    r, d = step(inner, len(r), r, d, 2, 2)
    values = [v for x in inner for v in x or []]
    got = kernels.settle_slots(len(r), d, np.array([v is not None for v in values], np.bool_), 4, 5)
    assert r.tolist() == reps.tolist()
    assert got.tolist() == defs.tolist()


def test_expand_lists_that_jump() -> None:
    starts, lengths = np.array([5, 3, 0], np.int64), np.array([2, 0, 1], np.int64)
    reps, defs, live, elements, first = kernels.expand_lists(3, None, None, starts, lengths, 7, 1, 0)
    live_, ended = kernels.LIVE_SLOT, 0
    assert (reps.tolist(), defs.tolist(), live) == ([0, 1, 0, 0], [live_, live_, ended, live_], 3)
    assert (elements.tolist(), first) == ([5, 6, 0], 5)
    reps, defs, live, elements, first = kernels.expand_lists(
        2, None, None, starts[:1].repeat(2), np.array([1, 1]), 7, 1, 0
    )
    assert (reps.tolist(), defs, live, elements.tolist()) == ([0, 0], None, 2, [5, 5])
    reps, defs, live, elements, first = kernels.expand_lists(2, None, None, np.array([4, 5]), np.array([1, 2]), 7, 1, 0)
    assert (reps.tolist(), defs, live, elements, first) == ([0, 0, 1], None, 3, None, 4)


def test_settled_slots() -> None:
    live = kernels.LIVE_SLOT
    defs = np.array([live, 3, live, live], np.uint8)
    assert kernels.settle_slots(4, defs, np.array([1, 0, 1], np.uint8), 5, 6).tolist() == [6, 3, 5, 6]
    assert kernels.settle_slots(4, defs, None, 5, 6).tolist() == [6, 3, 6, 6]
    assert kernels.settle_slots(2, None, np.array([False, True]), 0, live).tolist() == [0, live]
    assert kernels.settle_slots(0, None, None, 0, 1).tolist() == []
    for slots, stated, present, absent in [
        (4, defs, np.ones(4, np.uint8), 0),
        (3, defs, None, 0),
        (2, None, np.ones(3, np.uint8), 0),
        (-1, None, None, 0),
        (2, None, None, 256),
        (2, None, None, -1),
    ]:
        with pytest.raises(KernelError):
            kernels.settle_slots(slots, stated, present, absent, 1)


def test_level_kernels_refuse() -> None:
    levels = np.zeros(4, np.uint8)
    for entries, slots, rep in [(5, 4, 0), (3, 3, 0), (4, 5, 0), (4, -1, 0), (-1, 0, 0), (4, 4, 256), (4, 4, -1)]:
        with pytest.raises(KernelError):
            kernels.list_slots(levels, levels, entries, slots, rep, 0, 1, 1, 1)
        with pytest.raises(KernelError):
            kernels.slot_validity(levels, levels, entries, slots, rep, 0, 1)
    one, zero = np.ones(1, np.int64), np.zeros(1, np.int64)
    defs = np.array([kernels.LIVE_SLOT, 0], np.uint8)
    refused: list[tuple[Any, ...]] = [
        (1, None, None, zero, -one, 9),
        (1, None, None, -one, one, 9),
        (1, None, None, zero, one, 0),
        (1, None, None, zero, one * 2**62, 2**61),
        (2, None, None, zero, one, 9),
        (2, None, defs, one.repeat(2), one.repeat(2), 9),
        (2, None, defs, zero, one.repeat(2), 9),
        (2, None, defs[:1], zero, one, 9),
        (2, levels[:1], defs, zero, one, 9),
        (2, None, levels[:2], zero, one, 9),
        (-1, None, None, zero, one, 9),
    ]
    for arguments in refused:
        with pytest.raises(KernelError):
            kernels.expand_lists(*arguments, 1, 0)


@pytest.mark.fuzz
def test_random_levels() -> None:
    """Levels that no writer makes: a result whose offsets rise, or a KernelError."""
    rng = random.Random(3)
    good = 0
    for _ in range(2000):
        n = rng.randrange(20)
        defs = np.array([rng.randrange(6) for _ in range(n)], np.uint8)
        reps = np.array([rng.randrange(3) for _ in range(n)], np.uint8)
        slots = int(((reps <= 1) & (defs >= 2)).sum()) + rng.choice([0, 0, 0, 1, -1])
        try:
            offsets, valid = kernels.list_slots(defs, reps, n, slots, 1, 2, 2, 4, 3)
        except KernelError:
            continue
        good += 1
        assert (np.diff(offsets) >= 0).all()
        assert len(valid) == slots
        assert offsets[-1] == ((reps <= 2) & (defs >= 4)).sum()
        assert not (np.diff(offsets)[~valid] > 0).any()
    assert good > 100


def lists_by_hand(defs: list[int], reps: list[int]) -> tuple[list[int], list[bool]] | None:
    """Lists within lists (items of the outer ones from definition level 2 on, of the inner from 4), entry by entry;
    ``None`` where an item has no list, or a list that has items goes on with none."""
    lengths: list[int] = []
    valid: list[bool] = []
    filled = False  # the inner list that the entries are in has items
    for d, r in zip(defs, reps, strict=True):
        if r <= 1:
            filled = d >= 4
            if d >= 2:
                lengths.append(0)
                valid.append(d >= 3)
        elif (d >= 4) != filled:
            return None
        if d >= 4:
            lengths[-1] += 1
    return np.cumsum([0, *lengths]).tolist(), valid


@given(st.lists(st.tuples(st.sampled_from([0, 1, 2, 3, 4, 5, 5]), st.sampled_from([0, 1, 2, 2])), max_size=9))
@settings(max_examples=200)
def test_lists_against_one_pass_in_python(entries: list[tuple[int, int]]) -> None:
    defs, reps = [d for d, _ in entries], [r for _, r in entries]
    slots = sum(r <= 1 and d >= 2 for d, r in entries)
    levels = np.array(defs, np.uint8), np.array(reps, np.uint8)
    expected = lists_by_hand(defs, reps)
    if expected is None:
        with pytest.raises(KernelError, match="null, empty or missing"):
            kernels.list_slots(*levels, len(entries), slots, 1, 2, 2, 4, 3)
        return
    offsets, valid = kernels.list_slots(*levels, len(entries), slots, 1, 2, 2, 4, 3)
    assert (offsets.tolist(), valid.tolist()) == expected


LEVELS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=12)


@given(LEVELS, LEVELS, st.booleans(), st.integers(0, 2), st.integers(0, 3))
@settings(max_examples=500)
def test_levels_agree(a: list[tuple[int, int]], b: list[tuple[int, int]], alike: bool, rep: int, level: int) -> None:
    """Against one pass in Python. ``alike``: the second is the first but for what lies deeper."""
    if alike:
        b = [e for d, r in a for e in ([(d, r)] if d < level else [(level, r), (level, rep + 1)])]

    def shared(entries: list[tuple[int, int]]) -> list[tuple[int, int]]:
        return [(min(d, level), r) for d, r in entries if r <= rep]

    def of(entries: list[tuple[int, int]]) -> tuple[Any, Any, int]:
        levels = np.array(entries, np.uint8).reshape(-1, 2)
        return np.ascontiguousarray(levels[:, 0]), np.ascontiguousarray(levels[:, 1]), len(entries)

    agree = kernels.levels_agree(*of(a), *of(b), rep, level)
    assert agree == (shared(a) == shared(b)) == kernels.levels_agree(*of(b), *of(a), rep, level)
    assert agree or not alike


def test_levels_agree_that_are_not_there() -> None:
    ones, zeros = np.ones(3, np.uint8), np.zeros(3, np.uint8)
    assert kernels.levels_agree(None, None, 3, ones, zeros, 3, 0, 1)
    assert kernels.levels_agree(None, None, 3, np.full(3, 2, np.uint8), None, 3, 0, 1)
    assert not kernels.levels_agree(None, None, 3, np.array([1, 0, 1], np.uint8), zeros, 3, 0, 1)
    assert not kernels.levels_agree(None, None, 3, None, None, 2, 0, 1)
    assert kernels.levels_agree(None, None, 2, None, np.array([0, 1, 0], np.uint8), 3, 0, 1)
    for wrong in [(2, 0, 1), (-1, 0, 1), (3, 256, 1), (3, 0, -1)]:
        entries, rep, level = wrong
        with pytest.raises(KernelError):
            kernels.levels_agree(ones, zeros, entries, ones, zeros, 3, rep, level)
        with pytest.raises(KernelError):
            kernels.levels_agree(ones, zeros, 3, ones, zeros, entries, rep, level)


@pytest.mark.parametrize(
    ("defs", "reps"),
    [([0, 5], [0, 1]), ([1, 5], [0, 1]), ([5, 1], [1, 0])],
    ids=["null", "empty", "before the first"],
)
def test_items_without_a_list(defs: list[int], reps: list[int]) -> None:
    d, r = np.array(defs, np.uint8), np.array(reps, np.uint8)
    with pytest.raises(KernelError, match="null, empty or missing"):
        kernels.list_slots(d, r, 2, 1, 0, 0, 1, 2, 1)
