"""Which rows of which row groups a caller means by row numbers, a slice or a limit."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.errors import OptionError
from pyparq.index.row_ranges import RowRanges

Int64Array = npt.NDArray[np.int64]


def row_numbers(rows: Any, num_rows: int) -> slice | Int64Array:
    """``rows`` checked against a file of ``num_rows`` rows. Returns a slice of step 1, or int64 row numbers in the
    given order.

    A slice follows Python's rules (negative ends count from the back). Row numbers must exist. Raises
    :class:`OptionError`.
    """
    if isinstance(rows, slice):
        try:
            start, stop, step = rows.indices(num_rows)
        except (TypeError, ValueError) as error:
            raise OptionError(f"rows has an invalid slice {rows!r}: {error}") from None
        return slice(start, max(stop, start)) if step == 1 else np.arange(start, stop, step, dtype=np.int64)
    if isinstance(rows, range) and rows.step == 1 and len(rows) and rows.start >= 0 and rows.stop <= num_rows:
        return slice(rows.start, rows.stop)
    try:
        numbers = np.asarray(rows)
    except (TypeError, ValueError) as error:
        raise OptionError(f"rows must be a slice or a list of row numbers: {error}") from None
    if numbers.ndim != 1 or (numbers.dtype.kind not in "iu" and len(numbers)):
        raise OptionError(f"rows must be a slice or a list of row numbers, not {_shown(rows)}")
    for bad in (int(numbers.min()), int(numbers.max())) if len(numbers) else ():
        if not 0 <= bad < num_rows:
            raise OptionError(f"row {bad} does not exist: the file has {num_rows} rows, numbered from 0")
    return numbers.astype(np.int64)


def random_rows(count: int, num_rows: int, seed: int | None) -> Int64Array:
    """Numbers of ``count`` of ``num_rows`` rows (all, if there are fewer), chosen at random, rising. Every choice is
    equally likely. The same seed gives the same rows."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise OptionError(f"num_rows must be a whole number of at least 0, not {count!r}")
    chosen = Random(seed).sample(range(num_rows), min(count, num_rows))
    return np.sort(np.array(chosen, np.int64))


def _shown(rows: Any) -> str:
    text = repr(rows)
    return text if len(text) <= 60 else f"{text[:57]}..."


def ranges_by_group(rows: slice | Int64Array, counts: Sequence[int]) -> dict[int, RowRanges]:
    """The rows of each row group. Row group ``k`` has ``counts[k]`` rows. Row groups without any of the rows are left
    out. Row numbers must rise."""
    ends = np.cumsum(counts, dtype=np.int64)
    found: dict[int, RowRanges] = {}
    for k, (count, end) in enumerate(zip(counts, ends.tolist(), strict=True)):
        first = end - count
        if isinstance(rows, slice):
            start, stop = max(rows.start - first, 0), min(rows.stop - first, count)
            inside = RowRanges.of([(start, stop)] if start < stop else [], count)
        else:
            a, b = np.searchsorted(rows, (first, end))
            inside = RowRanges.from_rows(rows[a:b] - first, count)
        if inside:
            found[k] = inside
    return found
