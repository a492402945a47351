"""Ranges joined: of one read, and of many rows of ranges at once."""

from __future__ import annotations

import numpy as np
import pytest

from pyparq.errors import CorruptFileError
from pyparq.io.fetch import Fetcher, merge, merge_rows
from pyparq.io.kept_files import KeptFile
from pyparq.io.source import BytesSource


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


@pytest.mark.parametrize("tail", [0, 1, 700, 5_000, 20_000])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 3), (2, 5), (20, 7), (100, 1)])
def test_stretches_hold_what_groups_give_by_the_same_requests(rows: int, columns: int, tail: int) -> None:
    rng = np.random.default_rng(rows * columns + tail)
    data = rng.integers(0, 256, 20_000, np.uint8).tobytes()
    edges = np.sort(rng.choice(len(data), 2 * rows * columns, replace=False)).reshape(rows, columns, 2)
    edges = edges[:, rng.permutation(columns)]
    start, size = np.ascontiguousarray(edges[:, :, 0]), edges[:, :, 1] - edges[:, :, 0]
    fetchers = [Fetcher(BytesSource(data), gap) for gap in (50, 50)]
    for fetcher in fetchers:
        if tail:
            fetcher.read_tail(tail)
    groups = [list(zip(a, b, strict=True)) for a, b in zip(start.tolist(), size.tolist(), strict=True)]
    expected = [bytes(view) for views in fetchers[0].fetch_groups(groups) for view in views]
    stretches = fetchers[1].fetch_stretches(start, size)
    found = []
    for offset, length in (r for ranges in groups for r in ranges):
        place, view = next((p, v) for p, v in stretches if p <= offset and offset + length <= p + len(v))
        found.append(bytes(view[offset - place :][:length]))
    assert found == expected
    assert fetchers[1].counts == fetchers[0].counts


@pytest.mark.parametrize(("offset", "length"), [(-1, 5), (0, -5), (19_999, 2), (1 << 40, 1)])
@pytest.mark.parametrize("columns", [1, 50])
def test_stretches_outside_of_the_file_are_refused(offset: int, length: int, columns: int) -> None:
    start = np.arange(columns, dtype=np.int64)[None, :] * 10
    size = np.full((1, columns), 5, np.int64)
    start[0, -1], size[0, -1] = offset, length
    with pytest.raises(CorruptFileError, match="outside the file"):
        Fetcher(BytesSource(bytes(20_000))).fetch_stretches(start, size)


def test_what_is_kept_may_end_in_the_tail() -> None:
    """A longer range from the same place continues there."""
    data = np.random.default_rng(1).bytes(5000)
    fetcher = Fetcher(BytesSource(data))
    fetcher.read_tail(1000)
    fetcher.kept = KeptFile(5000, '"tag"', data[-100:])
    for length in (20, 200):
        assert fetcher.fetch_indexes([(3990, length)]) == [data[3990 : 3990 + length]]
