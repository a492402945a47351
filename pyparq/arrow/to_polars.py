"""Tables as polars (2.1) takes them: types that it refuses, and values that it would change without a word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import Mask, list_items, slice_column, struct_child
from pyparq.arrow.ingest.cast import cast
from pyparq.arrow.layouts import normal_type, normalize
from pyparq.arrow.record_batch import RecordBatch
from pyparq.arrow.tabular import Part, widen_columns
from pyparq.errors import DataError, UnsupportedError
from pyparq.format.types import DataType, Schema

_MOST_DIGITS = 38
_DAYS = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def unknown_to_polars(schema: Schema) -> dict[str, str]:
    """The columns that polars has no types for, and the types."""
    return {field.name: str(field.type) for field in schema.fields if _is_unknown(field.type)}


def _is_unknown(type_: DataType) -> bool:
    if type_.kind == "decimal":
        return type_.decimal[0] > _MOST_DIGITS
    if type_.dictionary is not None:
        return _is_unknown(type_.dictionary)
    return any(_is_unknown(field.type) for field in type_.children)


def for_polars(schema: Schema, parts: Sequence[Part]) -> tuple[Schema, Sequence[Part]]:
    """The rows of a table in forms that polars takes, at any depth: list views as lists, run ends spelled out,
    intervals as the bytes of Parquet's INTERVAL, seconds as milliseconds.

    Raises :class:`DataError` for what polars has no value for: seconds beyond 64 bits of milliseconds, and times
    outside of a day, 24:00 included. Raises :class:`UnsupportedError` for decimals beyond 38 digits, and for two
    columns of one name.
    """
    for name, type_ in unknown_to_polars(schema).items():
        raise UnsupportedError(f"polars has no type for {type_}: use to_arrow(), or leave the column out", column=name)
    if len(schema.fields) > len(names := {field.name for field in schema.fields}):
        twice = next(name for name in names if sum(field.name == name for field in schema.fields) > 1)
        raise UnsupportedError("polars takes no two columns of one name: use to_arrow()", column=twice)
    fields = [replace(f, type=_for_polars(f.type)) for f in schema.fields]
    others = [k for k, field in enumerate(schema.fields) if fields[k].type != field.type]
    for k, field in enumerate(schema.fields):
        if _has_times(field.type):
            for columns, _ in parts:
                _check_times(columns[k], field.name)
    if not others:
        return schema, parts
    batches = [RecordBatch(list(columns), num_rows) for columns, num_rows in parts]
    for k in others:
        fields[k] = replace(fields[k], type=normal_type(fields[k].type))
        for batch in batches:
            batch.columns[k] = cast(normalize(batch.columns[k], fields[k].name), fields[k].type, fields[k].name)
    return widen_columns(replace(schema, fields=tuple(fields)), batches)


def _for_polars(type_: DataType) -> DataType:
    if type_.dictionary is not None:
        return _for_polars(type_.dictionary) if type_.dictionary.format[:3] in ("tss", "tDs") else type_
    if type_.kind in ("run_end", "interval"):
        return normal_type(type_)
    if type_.kind in ("timestamp", "duration") and type_.unit == "s":
        return replace(type_, format=f"{type_.format[:2]}m{type_.format[3:]}")
    form = type_.format.replace("v", "") if type_.kind == "list_view" else type_.format
    children = tuple(replace(field, type=_for_polars(field.type)) for field in type_.children)
    return replace(type_, format=form, children=children)


def _has_times(type_: DataType) -> bool:
    if type_.dictionary is not None:
        return _has_times(type_.dictionary)
    return type_.kind == "time" or any(_has_times(field.type) for field in type_.children)


def _check_times(column: Column, name: str) -> None:
    for times, present in _times(column, None):
        values = times.values()
        values = values if present is None else values[present]
        beyond = (values < 0) | (values >= _DAYS[times.type.unit])
        if beyond.any():
            raise DataError(
                f"polars has no value for the time {values[int(np.argmax(beyond))]} ({times.type}), because its times "
                "end before 24:00. Use to_arrow(), or leave the column out",
                column=name,
            )


def _times(column: Column, present: Mask | None) -> Iterator[tuple[Column, Mask | None]]:
    """The columns of times in a column, each with its elements that are there: below a null anything may stand."""
    type_, mask = column.type, column.valid_mask()
    if present is not None:
        mask = present if mask is None else mask & present
    if type_.dictionary is not None and column.dictionary is not None:
        codes = column.values() if mask is None else column.values()[mask]
        used = np.zeros(column.dictionary.length, np.bool_)
        used[codes] = True
        yield from _times(column.dictionary, used)
    elif type_.kind == "time":
        yield column, mask
    elif type_.kind in ("list_view", "run_end"):
        yield from _times(normalize(column, ""), present)
    elif type_.kind == "struct":
        for k in range(len(type_.children)):
            yield from _times(struct_child(column, k), mask)
    elif type_.children:
        offsets, items = list_items(column)
        first, last = int(offsets[0]), int(offsets[-1])
        inner = None if mask is None else np.repeat(mask, np.diff(offsets))
        yield from _times(slice_column(items, first, last), inner)
