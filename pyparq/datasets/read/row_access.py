"""Rows of a dataset by their numbers, counted over all files."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.arrow import pandas_key
from pyparq.arrow.column_operations import concat, take
from pyparq.arrow.table import Batch, Table
from pyparq.datasets.read.dataset_files import DatasetFiles
from pyparq.read.projection import row_numbers


def count_rows(files: DatasetFiles) -> int:
    """Number of rows of all files, from their footers."""
    return sum(_counts(files))


def rows_by_file(files: DatasetFiles, rows: Any) -> Iterator[tuple[int, Any]]:
    """The files that hold any of these rows, each with its rows: a slice, or row numbers that rise.

    ``rows``: a slice, or row numbers that rise, counted over all files. Raises :class:`OptionError` for a row that does
    not exist.
    """
    counts = _counts(files)
    chosen = row_numbers(rows, sum(counts))
    for k, (count, end) in enumerate(zip(counts, accumulate(counts), strict=True)):
        first = end - count
        if isinstance(chosen, slice):
            start, stop = max(chosen.start - first, 0), min(chosen.stop - first, count)
            if start < stop:
                yield k, slice(start, stop)
        else:
            a, b = np.searchsorted(chosen, (first, end))
            if a < b:
                yield k, chosen[a:b] - first


def at_places(table: Table, places: npt.NDArray[np.int64]) -> Table:
    """The rows of ``table`` with these numbers, in this order. Numbers may repeat."""
    batches = table.batches
    if not batches:
        return table
    whole = [concat([batch.columns[k] for batch in batches]) for k in range(len(table.schema.fields))]
    taken = Batch([take(column, places) for column in whole], len(places))
    return Table(pandas_key.at_places(table.schema, places), [taken])


def _counts(files: DatasetFiles) -> list[int]:
    numbers = range(len(files.found.files))
    files.know_rows(numbers)
    return [files.num_rows_of(k) for k in numbers]
