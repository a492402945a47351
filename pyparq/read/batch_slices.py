"""Batches cut to the size that a consumer asks for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pyparq.arrow.column_operations import take
from pyparq.arrow.table import Batch


def set_last_apart(batches: list[Batch], size: int) -> None:
    """Copy the last rows (``size`` at most) into a batch with its own memory.

    A consumer may keep the last batch of one row group while the next row group is decoded. Without the copy it would
    keep the whole row group in memory.
    """
    if not batches or batches[-1].num_rows <= size:
        return
    batch = batches.pop()
    first = (batch.num_rows - 1) // size * size
    last = np.arange(first, batch.num_rows)
    batches += [batch.slice(0, first), Batch([take(column, last) for column in batch.columns], len(last))]


def slices(batches: list[Batch], size: int | None) -> Iterator[Batch]:
    """The batches cut to ``size`` rows. The list is emptied on the way, so that memory is released early."""
    while batches:
        batch = batches.pop(0)
        step = size or max(batch.num_rows, 1)
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, min(step, batch.num_rows - start))
