"""Decides which rows belong together when several tasks order files: by ranks of values in a sample, or by Z-order.

Each key column gets a rank: its position among bounds, which are values of the sample. In a sort order, the next key
counts only where the value equals a bound: between two bounds there are different values, which must not be mixed. In a
Z-order, the bits of the ranks are interleaved, so that rows that are near in all columns are near in the order. The
result is one number per row, and ranges of numbers become files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyparq.errors import UnsupportedError
from pyparq.option_values import SortKey

if TYPE_CHECKING:
    import pyarrow as pa

Numbers = npt.NDArray[np.int64]

BITS = 60
"""Of a row's number, at most."""
MOST_BITS = 10
"""Of the rank in one column."""


@dataclass(frozen=True)
class Order:
    """How rows are numbered. It is pickled for tasks."""

    keys: tuple[SortKey, ...]
    interleaved: bool
    """Z-order."""
    bounds: tuple[Any, ...]
    """Of each key, sorted."""

    @classmethod
    def of_sample(cls, keys: Sequence[SortKey], interleaved: bool, sample: pa.Table) -> Order:
        """The order whose ranks part the sample's rows evenly."""
        used = tuple(keys) if interleaved else tuple(keys)[: BITS // MOST_BITS]
        bits = _bits(len(used))
        bounds = []
        for key in used:
            values, valid = comparable(sample.column(str(key.name)).combine_chunks(), str(key.name))
            bounds.append(_evenly(np.sort(values[valid]), (1 << (bits - 1)) - 2))
        return cls(used, interleaved, tuple(bounds))

    @property
    def names(self) -> list[str]:
        return [str(key.name) for key in self.keys]

    def numbers(self, rows: pa.RecordBatch | pa.Table) -> Numbers:
        """The number of each row."""
        ranks = [
            self._ranks(key, bounds, rows.column(str(key.name)))
            for key, bounds in zip(self.keys, self.bounds, strict=True)
        ]
        if self.interleaved:
            return _interleaved(ranks)
        found, exact = np.zeros(rows.num_rows, np.int64), np.ones(rows.num_rows, bool)
        for key, rank, bounds in zip(self.keys, ranks, self.bounds, strict=True):
            found = (found << MOST_BITS) | np.where(exact, rank, 0)
            on_bound = (rank % 2 == 0) & (not _is_rounded(rows.schema.field(str(key.name)).type))
            exact &= on_bound | (rank == 0) | (rank == 2 * len(bounds) + 3)
        return found

    def cuts(self, sample: pa.Table, ranges: int) -> Numbers:
        """Numbers where the ranges begin, but for the first, so that each has as many rows of the sample."""
        numbers = np.sort(self.numbers(sample))
        places = (np.arange(1, ranges) * len(numbers)) // ranges
        return np.unique(numbers[places]) if len(numbers) else np.zeros(0, np.int64)

    @staticmethod
    def _ranks(key: SortKey, bounds: Any, column: Any) -> Numbers:
        array = column.combine_chunks() if hasattr(column, "combine_chunks") else column
        values, valid = comparable(array, str(key.name))
        # Odd between two bounds, even on one: 1 is below all of them. Nulls are outside of these.
        ranks = np.searchsorted(bounds, values, side="left").astype(np.int64)
        ranks += np.searchsorted(bounds, values, side="right")
        if key.descending:
            ranks = 2 * len(bounds) - ranks
        return np.where(valid, ranks + 1, 0 if key.nulls_first else 2 * len(bounds) + 3)


def _bits(columns: int) -> int:
    """Of the rank in each of so many columns."""
    return min(MOST_BITS, BITS // columns)


def _evenly(values: Any, count: int) -> Any:
    """At most ``count - 1`` of sorted values, evenly spread, each once."""
    if len(values) == 0:
        return values
    return np.unique(values[np.linspace(0, len(values) - 1, min(count - 1, len(values))).astype(np.int64)])


def _interleaved(ranks: Sequence[Numbers]) -> Numbers:
    """The bits of all ranks in turn, the highest first."""
    bits = _bits(len(ranks))
    found = np.zeros(len(ranks[0]), np.int64)
    for bit in reversed(range(bits)):
        for rank in ranks:
            found = (found << 1) | ((rank >> bit) & 1)
    return found


def _is_rounded(type_: pa.DataType) -> bool:
    """Whether :func:`comparable` gives one number for several values."""
    import pyarrow as pa

    return bool(pa.types.is_decimal(type_)) and type_.precision > 15


def comparable(column: pa.Array, name: str) -> tuple[Any, npt.NDArray[np.bool_]]:
    """Values that numpy compares as the column's, and where there are any.

    Raises :class:`UnsupportedError` for types that have no order.
    """
    import pyarrow as pa

    is_ = pa.types
    type_ = column.type
    if isinstance(type_, pa.BaseExtensionType):
        return comparable(column.storage, name)
    if is_.is_dictionary(type_):
        return comparable(column.cast(type_.value_type), name)
    valid = np.asarray(column.is_valid())
    if is_.is_date32(type_) or is_.is_time32(type_):
        column = column.cast(pa.int32())
    elif is_.is_temporal(type_):
        column = column.cast(pa.int64())
    elif is_.is_decimal(type_):
        column = column.cast(pa.float64())  # rounded: neighbours may get one rank
    elif is_.is_boolean(type_):
        column = column.cast(pa.uint8())
    type_ = column.type
    if is_.is_integer(type_) or is_.is_floating(type_):
        return column.fill_null(0).to_numpy(zero_copy_only=False), valid
    if is_.is_string(type_) or is_.is_large_string(type_) or is_.is_string_view(type_):
        return column.cast(pa.large_string()).fill_null("").to_numpy(zero_copy_only=False), valid
    if (
        is_.is_binary(type_)
        or is_.is_large_binary(type_)
        or is_.is_binary_view(type_)
        or is_.is_fixed_size_binary(type_)
    ):
        return column.cast(pa.large_binary()).fill_null(b"").to_numpy(zero_copy_only=False), valid
    raise UnsupportedError(f"rows cannot be put in order by a column of type {type_}", column=name)
