"""``tally_codes``, held against plain Python: which dictionary entries each page uses, and what they weigh together."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from pyparq import kernels
from pyparq.kernels import KernelError


def plain(codes: Any, edges: list[int], weights: Any) -> tuple[list[int], list[int], list[int]]:
    used: list[int] = []
    used_edges, sums = [0], []
    for first, end in pairwise(edges):
        page = codes[first:end].tolist()
        used += list(dict.fromkeys(page))
        used_edges.append(len(used))
        sums.append(0 if weights is None else sum(int(weights[code]) for code in page))
    return used, used_edges, sums


@pytest.mark.parametrize("weighed", [True, False])
@pytest.mark.parametrize(("entries", "pages", "size"), [(1, 1, 5), (7, 40, 30), (5000, 3, 400), (3, 700, 4), (9, 5, 0)])
def test_tally_codes(entries: int, pages: int, size: int, weighed: bool) -> None:
    rng = np.random.default_rng(entries + pages)
    edges = np.cumsum([0, *rng.integers(0, size + 1, pages)])
    codes = rng.integers(0, entries, int(edges[-1]), np.int32)
    weights = rng.integers(0, 1 << 31, entries, np.int32) if weighed else None
    found = kernels.tally_codes(codes, edges, entries, weights)
    assert [part.dtype for part in found] == [np.int32, np.int64, np.int64]
    assert tuple(part.tolist() for part in found) == plain(codes, edges.tolist(), weights)


def test_tally_codes_of_nothing() -> None:
    nothing = np.empty(0, np.int32)
    used, used_edges, sums = kernels.tally_codes(nothing, np.zeros(1, np.int64), 0, None)
    assert (used.tolist(), used_edges.tolist(), sums.tolist()) == ([], [0], [])
    assert kernels.tally_codes(nothing, np.zeros(3, np.int64), 4, None)[1].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("codes", "edges", "entries", "weights", "says"),
    [
        ([0, 3], [0, 2], 3, None, "code 3 of 3 entries"),
        ([0, -1], [0, 2], 3, None, "of 3 entries"),
        ([0], [0, 1], 0, None, "of 0 entries"),
        ([0, 1], [0, 3], 3, None, "edges outside"),
        ([0, 1], [1, 0], 3, None, "edges outside"),
        ([0, 1], [-1, 1], 3, None, "edges outside"),
        ([0, 1], [], 3, None, "edges are one more"),
        ([0, 1], [0, 2], -3, None, "negative"),
        ([0, 1], [0, 2], 3, [1, 2], "a weight for each entry"),
    ],
)
def test_tally_codes_refuses(codes: list[int], edges: list[int], entries: int, weights: Any, says: str) -> None:
    given = None if weights is None else np.array(weights, np.int32)
    with pytest.raises(KernelError, match=says):
        kernels.tally_codes(np.array(codes, np.int32), np.array(edges, np.int64), entries, given)
