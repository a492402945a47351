"""Ranges joined: of one read, and of many rows of ranges at once."""

from __future__ import annotations

import numpy as np
import pytest

from pyparq.io.fetch import merge, merge_rows


@pytest.mark.parametrize("tail", [0, 500, 10_000])
@pytest.mark.parametrize("rows", [0, 1, 7])
@pytest.mark.parametrize("gap", [0, 100])
def test_rows_of_ranges_are_joined_as_each_row_is(rows: int, gap: int, tail: int) -> None:
    rng = np.random.default_rng(rows + gap)
    start = rng.integers(0, 1000, (rows, 5))
    end = start + rng.integers(1, 50, (rows, 5))
    begins, ends = merge_rows(start, end, gap, tail)
    expected = [
        (offset, offset + length)
        for row in zip(start.tolist(), end.tolist(), strict=True)
        for offset, length in merge([(a, b - a) for a, b in zip(*row, strict=True) if a < tail], gap)
    ]
    assert list(zip(begins.tolist(), ends.tolist(), strict=True)) == expected
