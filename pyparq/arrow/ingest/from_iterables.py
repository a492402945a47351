"""Iterables of tables, batches or rows: taken one piece at a time, rows gathered into pieces."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, Sequence, Set, ValuesView
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from pyparq import kernels
from pyparq.arrow.ingest.python_values import as_dict
from pyparq.errors import DataError

MOST_ROWS = 1 << 15
"""Rows gathered into one piece."""
MOST_BYTES = 8 << 20
"""About so many bytes of values, where these are large."""
SMALL_TYPES = (
    datetime, date, time, timedelta, Decimal,
    np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.float32, np.float64,
)  # fmt: skip
"""Types of small values, beside Python's own of numbers."""
_NO_RUNS = (str, bytes, bytearray, memoryview, np.ndarray, Mapping, Set, KeysView, ValuesView, ItemsView)


class Rows(list[Mapping[Any, Any]]):
    """Rows that were gathered: dicts of one value per column."""


def is_run(data: Any) -> bool:
    """Whether ``data`` is an iterable that may give tables, batches or rows, and is not one of these itself."""
    return isinstance(data, Iterable) and not isinstance(data, _NO_RUNS)


def are_rows(data: Any) -> bool:
    """A list of dicts, one per row, rather than one of dicts of arrays, each of which is a batch."""
    if isinstance(data, Rows):
        return True
    if not isinstance(data, Sequence) or not data or first_other(data) is not None:
        return False
    return not are_columns(data[0])


def first_other(rows: Sequence[Any]) -> int | None:
    """The first of the rows that is no mapping. ``None`` if all are."""
    if isinstance(rows, list) and kernels.first_other(rows, dict) is None:
        return None
    return next((n for n, row in enumerate(rows) if not isinstance(row, Mapping)), None)


def are_columns(data: Mapping[Any, Any]) -> bool:
    """Whether a dict among others is a batch, and no row: every value is an array or a list, and one at least an
    array (numpy's, or one that speaks Arrow)."""
    arrays = [is_array(value) for value in data.values()]
    if not any(arrays):
        return False
    return all(known or isinstance(v, list) for known, v in zip(arrays, data.values(), strict=True))


def is_array(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return hasattr(value, "__arrow_c_array__") or hasattr(value, "__arrow_c_stream__")


def pieces(items: Iterable[Any], is_table: Callable[[Any], bool]) -> Iterator[Any]:
    """The items of the iterable, each ready to be ingested. Rows are collected into :class:`Rows` of bounded size.

    Raises :class:`DataError` for an item that is neither table nor row, and for an iterable with both.
    """
    source, rows, size, seen, ended = iter(items), Rows(), 0, 0, False
    while not ended:
        before = len(rows)
        size, others, ended = kernels.gather_rows(source, rows, size, MOST_ROWS, MOST_BYTES, SMALL_TYPES)
        seen += len(rows) - before
        for item in (other if is_table(other) else as_dict(other) for other in others):
            if not _is_row(item):
                _check_table(item, seen, is_table)
                if seen:
                    raise _mixed(seen, "tables", "rows")
                yield item
                yield from _tables(source, is_table)
                return
            rows.append(item)
            size += sum(map(_weight, item.values()))
            seen += 1
        if len(rows) >= MOST_ROWS or size >= MOST_BYTES or (ended and rows):
            full, rows, size = [rows], Rows(), 0
            yield full.pop()  # nothing here keeps them


def _tables(items: Iterator[Any], is_table: Callable[[Any], bool]) -> Iterator[Any]:
    """The items behind a first one that is a table."""
    for n, item in enumerate(items, 1):
        if _is_row(item):
            raise _mixed(n, "rows", "tables")
        _check_table(item, n, is_table)
        yield item


def _is_row(item: Any) -> bool:
    return isinstance(item, Mapping) and not are_columns(item)


def _check_table(item: Any, n: int, is_table: Callable[[Any], bool]) -> None:
    if not is_table(item):
        raise DataError(
            f"item {n} is a {type(item).__name__}. An iterable must give tables, batches, or rows as dicts of "
            "column names to values, dataclasses or named tuples"
        )


def _mixed(n: int, found: str, kind: str) -> DataError:
    return DataError(f"item {n} is one of {found}, but earlier items are {kind}. An iterable must give one kind")


def _weight(value: Any) -> int:
    """About how many bytes a value has."""
    if isinstance(value, str | bytes | bytearray):
        return len(value)
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, Mapping):
        return sum(map(_weight, value.values()))
    if isinstance(value, list | tuple):
        small = not value or isinstance(value[0], int | float)
        return 8 * len(value) if small else sum(map(_weight, value))
    return 16
