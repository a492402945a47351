"""Row ranges against Python's sets."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pyparq.index.row_ranges import RowRanges

ROWS = 40
SETS = st.sets(st.integers(0, ROWS - 1)) | st.builds(
    lambda a, b: set(range(min(a, b), max(a, b))), st.integers(0, ROWS), st.integers(0, ROWS)
)
FIRST_ROWS = st.sets(st.integers(1, ROWS - 1)).map(lambda found: np.array(sorted({0, *found}), np.int64))


def ranges(rows: set[int]) -> RowRanges:
    return RowRanges.from_rows(np.array(sorted(rows), np.int64), ROWS)


def rows(found: RowRanges) -> set[int]:
    """The rows, after checking that the ranges are as they must be and that all ways of asking agree."""
    edges = [edge for pair in found for edge in pair]
    assert edges == sorted(set(edges)), "ranges that touch, overlap or are empty"
    listed = [row for start, end in found for row in range(start, end)]
    assert found.rows().tolist() == listed
    assert found.count == len(listed)
    assert bool(found) == bool(listed)
    assert found.is_all == (len(listed) == ROWS)
    assert found == RowRanges.of(list(found), ROWS)
    return set(listed)


@given(a=SETS, b=SETS)
def test_sets(a: set[int], b: set[int]) -> None:
    assert rows(ranges(a)) == a
    assert rows(ranges(a) & ranges(b)) == a & b
    assert rows(ranges(a) | ranges(b)) == a | b
    assert rows(~ranges(a)) == set(range(ROWS)) - a
    assert (ranges(a) == ranges(b)) == (a == b)


@given(a=SETS, first_rows=FIRST_ROWS)
def test_pages(a: set[int], first_rows: np.ndarray) -> None:
    bounds = [*first_rows.tolist(), ROWS]
    expected = [k for k in range(len(first_rows)) if a & set(range(bounds[k], bounds[k + 1]))]
    pages = ranges(a).pages(first_rows)
    assert pages.tolist() == expected
    held = {row for k in expected for row in range(bounds[k], bounds[k + 1])}
    assert rows(RowRanges.from_pages(first_rows, pages, ROWS)) == held


@given(a=SETS, mask=st.lists(st.booleans(), min_size=ROWS, max_size=ROWS), count=st.integers(0, ROWS))
def test_parts(a: set[int], mask: list[bool], count: int) -> None:
    outer, listed = ranges(a), sorted(a)
    kept = [row for row, keep in zip(listed, mask, strict=False) if keep]
    inner = outer.select(np.array(mask[: len(listed)], bool))
    assert rows(inner) == set(kept)
    assert inner.positions_in(outer).tolist() == [listed.index(row) for row in kept]
    assert rows(outer.head(count)) == set(listed[:count])


def test_no_rows_at_all() -> None:
    assert list(RowRanges.all(0)) == []
    assert RowRanges.all(0).is_all
    assert list(RowRanges.one(3, 3, 10)) == []
