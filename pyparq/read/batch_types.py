"""The types of the batches that a read returns: hinted types are restored, and all batches of a stream have the same
types.

A row group may need wider types than the batches before it: more text or list items than int32 offsets reach, or more
dictionary entries than the indices can number. It is then cut into several batches. The cut copies no bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import (
    MOST_OFFSET,
    binary_column,
    fixed_column,
    holding,
    list_column,
    list_items,
    slice_column,
    struct_child,
    struct_column,
    take,
)
from pyparq.arrow.table import Batch
from pyparq.arrow.tabular import widen_columns
from pyparq.errors import CorruptFileError, LimitError, located
from pyparq.format.types import DataType, Schema
from pyparq.read.decode.memory_account import Account
from pyparq.read.footers.schemas import Output
from pyparq.read.hinted_types import (
    HintMismatch,
    added_bytes,
    restore_all,
    too_many,
    with_int32_indices,
    with_true_notes,
)

_SMALL = {"U": "u", "Z": "z", "+L": "+l"}
_LARGE_VIEWS = {"+L": "+vL"}


class _TooMuch(Exception):
    """A column needs more than int32 offsets reach, or more dictionary entries than its indices can number."""


def restore_batches(
    batches: Sequence[Batch], outputs: Sequence[Output], wanted: Schema, most: int, account: Account
) -> Schema:
    """Give the columns of the batches the types of ``wanted``. Returns the resulting schema.

    A hint that the data contradict is dropped for the whole column. ``most`` is the maximum size of a column in bytes.
    ``account`` counts the bytes that are added.
    """
    pairs = enumerate(zip(outputs, wanted.fields, strict=True))
    changed = [
        (k, field)
        for k, (output, field) in pairs
        if field.type is not output.stored.type and field.type != output.stored.type
    ]
    if not batches or not changed:
        return wanted
    fields = list(wanted.fields)
    for k, field in changed:
        columns = [batch.columns[k] for batch in batches]
        account.take(sum(added_bytes(column, field.type) for column in columns))
        with suppress(HintMismatch), located(column=field.name):
            columns = restore_all(columns, field.type, most)
        # What they came out as: a hint may be dropped, or strings may have become large.
        fields[k] = with_true_notes(replace(field, type=columns[0].type), columns)
        for batch, column in zip(batches, columns, strict=True):
            batch.columns[k] = column
    return replace(wanted, fields=tuple(fields))


class Stream:
    """Converts each batch of a stream to the schema of the first one."""

    def __init__(self, outputs: Sequence[Output], schema: Schema, most: int, account: Account) -> None:
        self._outputs = outputs
        self._wanted = schema
        self._most = most
        self._account = account
        self._begun = False

    def fit(self, batches: list[Batch]) -> None:
        """Give the batches their types and schema; the list may get longer.

        Raises :class:`CorruptFileError` where the data contradict a hint that those before agreed with.
        """
        types = [field.type for field in self._wanted.fields]
        if not self._begun:  # an index type that is too narrow for the first batch is a wrong hint
            types = [with_int32_indices(type_) for type_ in types]
        batches[:] = [piece for batch in batches for piece in cut_to_fit(batch, types)]
        for batch in batches:
            found = restore_batches([batch], self._outputs, self._wanted, self._most, self._account)
            batch.schema = widen_columns(found, [batch])[0]
            if self._begun:
                self._check(batch.schema)
            self._wanted, self._begun = batch.schema, True

    def _check(self, found: Schema) -> None:
        for field, due in zip(found.fields, self._wanted.fields, strict=True):
            if field.type != due.type:
                raise CorruptFileError(
                    f"a type in the file's ARROW:schema metadata does not fit the data: this batch has {field.type}, "
                    f"earlier ones {due.type}. Use to_table(), which reads all rows as one type, "
                    "or use_arrow_schema=False, which ignores ARROW:schema",
                    column=field.name,
                )


def cut_to_fit(batch: Batch, types: Sequence[DataType]) -> list[Batch]:
    """The batch, or several parts of it that fit ``types``: offsets are int64 only where ``types`` has them, and no
    dictionary has more entries than its index type in ``types`` can number. Raises :class:`LimitError` when one row
    alone does not fit."""
    if not any(_is_wide(c, t) for c, t in zip(batch.columns, types, strict=True)):
        return [batch]
    try:
        columns = [_narrowed(c, t) for c, t in zip(batch.columns, types, strict=True)]
        return [Batch(columns, batch.num_rows)]
    except _TooMuch:
        if batch.num_rows == 1:
            raise LimitError(
                "a single row is too large for a batch: it exceeds 32-bit offsets or the indices of a dictionary: "
                "read it with to_table()"
            ) from None
    half = batch.num_rows // 2
    parts = [batch.slice(0, half), batch.slice(half, batch.num_rows - half)]
    return [piece for part in parts for piece in cut_to_fit(part, types)]


def _is_wide(column: Column, wanted: DataType) -> bool:
    """Whether a column has int64 offsets where ``wanted`` has int32, or a dictionary too large for the indices of
    ``wanted``."""
    have = column.type.format
    if have in _SMALL and wanted.format not in (have, _LARGE_VIEWS.get(have)):
        return True
    if too_many(column, wanted):
        return True
    return any(_is_wide(child, field.type) for child, field in zip(column.children, wanted.children, strict=False))


def _narrowed(column: Column, wanted: DataType) -> Column:
    have = column.type
    if not _is_wide(column, wanted):
        return column
    if column.dictionary is not None:
        return _with_used_entries(column, column.dictionary, wanted)
    small, mask = DataType(_SMALL.get(have.format, have.format), have.children), column.valid_mask()
    if have.is_binary_like:
        offsets, data = column.offsets(), column.buffers[1].view(np.uint8)
        first, last = _span(offsets)
        return binary_column(small, offsets - first, data[first:last], mask)
    if have.format == "+s":
        fields = [_narrowed(struct_child(column, k), f.type) for k, f in enumerate(wanted.children)]
        return struct_column(holding(small, fields), fields, column.length, mask)
    offsets, items = list_items(column)
    first, last = _span(offsets)
    items = _narrowed(slice_column(items, first, last), wanted.children[0].type)
    if have.format == "+L" and wanted.format in ("+L", "+vL"):
        small = have
    return list_column(holding(small, [items]), offsets - first, items, mask)


def _with_used_entries(column: Column, values: Column, wanted: DataType) -> Column:
    """The same column with only the dictionary entries that it uses."""
    mask, indices = column.valid_mask(), column.values()
    used = np.unique(indices if mask is None else indices[mask])
    places = np.searchsorted(used, indices).astype(np.int32)
    if mask is not None:
        places[~mask] = 0
    kept = take(values, used.astype(np.int64))
    packed = fixed_column(DataType("i"), places, mask)
    type_ = replace(column.type, dictionary=kept.type)
    made = Column(type_, packed.length, packed.validity, packed.buffers, packed.null_count, (), kept)
    if too_many(made, wanted):
        raise _TooMuch
    return made


def _span(offsets: npt.NDArray[Any]) -> tuple[int, int]:
    first, last = int(offsets[0]), int(offsets[-1])
    if last - first > MOST_OFFSET:
        raise _TooMuch
    return first, last
