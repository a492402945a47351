"""Splits the rows of a batch into partitions, by the distinct values of its partition columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import take
from pyparq.arrow.record_batch import RecordBatch
from pyparq.datasets.partition_texts import check_partition_type, folder_name, texts_of
from pyparq.errors import DataError, OptionError, near_matches
from pyparq.format.types import Schema
from pyparq.kernels import dict_encode_binary, dict_encode_fixed

Codes = npt.NDArray[np.int64]
_ALL = 1 << 62
"""No limit on the size of a dictionary."""


class Splitter:
    """Splits batches of ``schema`` by the columns ``names``, which are removed from the data.

    Raises :class:`OptionError` for names that are no columns, :class:`UnsupportedError` for types whose values cannot
    name folders, and :class:`DataError` if no other column is left.
    """

    def __init__(self, schema: Schema, names: Sequence[str]) -> None:
        for name in names:
            if name not in schema.names:
                near = near_matches(name, schema.names)
                raise OptionError(f"the partition column {name!r} is not in the data{near}", column=name)
            if schema.names.count(name) > 1:
                raise OptionError(
                    f"{schema.names.count(name)} columns have the name {name!r}: rename all but the partition column",
                    column=name,
                )
        self._names = list(names)
        self._places = [schema.names.index(name) for name in names]
        self._kept = [k for k in range(len(schema.fields)) if k not in self._places]
        for name, place in zip(names, self._places, strict=True):
            check_partition_type(name, schema.fields[place].type)
        if names and not self._kept:
            raise DataError("every column is a partition column, so nothing is left to write to the files")
        self.schema = replace(schema, fields=tuple(schema.fields[k] for k in self._kept))
        """Of the files: without the partition columns."""

    def split(self, batch: RecordBatch) -> Iterator[tuple[tuple[str, ...], RecordBatch]]:
        """The folders of each partition in the batch, and its rows in their order."""
        columns = [batch.columns[k] for k in self._kept]
        if batch.num_rows == 0:
            return
        if not self._names:
            yield (), RecordBatch(columns, batch.num_rows)
            return
        codes, texts = [], []
        for name, place in zip(self._names, self._places, strict=True):
            code, text = _codes(batch.columns[place], name)
            codes.append(code)
            texts.append(text)
        for rows in _groups(codes):
            first = int(rows[0])
            folders = tuple(
                folder_name(name, text[int(code[first])])
                for name, code, text in zip(self._names, codes, texts, strict=True)
            )
            whole = len(rows) == batch.num_rows
            yield folders, RecordBatch(columns if whole else [take(c, rows) for c in columns], len(rows))


def _groups(codes: Sequence[Codes]) -> Iterator[Codes]:
    """The rows of each combination of codes, in their order."""
    combined = codes[0]
    for code in codes[1:]:
        combined = np.unique(combined * (int(code.max()) + 1) + code, return_inverse=True)[1]
    order = np.argsort(combined, kind="stable")
    edges = np.flatnonzero(np.diff(combined[order])) + 1
    yield from np.split(order, edges)


def _codes(column: Column, name: str) -> tuple[Codes, list[str | None]]:
    """A number for each row, and the text of each number. Values with the same text have the same number."""
    mask = column.valid_mask()
    present = np.arange(column.length) if mask is None else np.flatnonzero(mask)
    if column.type.kind == "null" or not len(present):
        return np.zeros(column.length, np.int64), [None]
    some = column if mask is None else take(column, present)
    indices, firsts = _distinct(some)
    numbers: dict[str | None, int] = {None: 0}
    own = [numbers.setdefault(text, len(numbers)) for text in texts_of(take(some, firsts), name)]
    codes = np.zeros(column.length, np.int64)
    codes[present] = np.array(own, np.int64)[indices]
    return codes, list(numbers)


def _distinct(column: Column) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """For each value the number of its distinct value, and the first position of each distinct value."""
    if column.type.is_binary_like:
        return dict_encode_binary(column.offsets().astype(np.int64), column.buffers[1].view(np.uint8), _ALL)
    values = np.ascontiguousarray(column.values())
    width = values.nbytes // len(values)
    return dict_encode_fixed(values.reshape(-1).view(np.uint8), width, len(values))
