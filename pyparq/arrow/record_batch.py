"""Record batches: columns of equal length, and how they come from other Arrow libraries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from pyparq.arrow.c_import import ArrowSource
from pyparq.arrow.column import Column, shifted
from pyparq.arrow.exchange import arrays_from_arrow, column_from_nanoarrow, schema_from_arrow, table_schema
from pyparq.errors import DataError
from pyparq.format.types import Schema


class RecordBatch(NamedTuple):
    """Columns of equal length, and how many rows they have. Their names are in the schema that is given with them.

    What is written goes through pyparq as these. :class:`pyparq.Batch`, which users see, has a schema and conversions.
    """

    columns: list[Column]
    num_rows: int


class BatchStream:
    """Batches that come one after another, with their schema."""

    def __init__(self, schema: Schema, batches: Iterator[Any]) -> None:
        self._parts = schema, batches

    def __pyparq_stream__(self) -> tuple[Schema, Iterator[Any]]:
        return self._parts


def batches_from_arrow(obj: Any) -> tuple[Schema, Iterator[RecordBatch]]:
    """Schema and record batches of any object with ``__arrow_c_stream__`` or ``__arrow_c_array__``, zero-copy."""
    source = ArrowSource(obj)
    if source.field is not None:
        schema = table_schema(source.field)
        return schema, _imported_batches(source)
    found, arrays = arrays_from_arrow(source.as_given())
    schema = schema_from_arrow(found)
    return schema, (_batch_from_nanoarrow(array, schema) for array in arrays)


def _imported_batches(source: ArrowSource) -> Iterator[RecordBatch]:
    while (rows := source.next()) is not None:
        if rows.null_count > 0:
            raise DataError(_NULL_ROWS)
        columns = list(rows.children)
        if rows.offset:
            columns = [shifted(c, rows.offset, rows.length) for c in columns]
        yield RecordBatch(columns, rows.length)


_NULL_ROWS = "the record batch has null rows: a row of a table cannot be null"


def _batch_from_nanoarrow(array: Any, schema: Schema) -> RecordBatch:
    if array.null_count > 0:
        raise DataError(_NULL_ROWS)
    columns = [column_from_nanoarrow(array.child(i), f.type) for i, f in enumerate(schema.fields)]
    if array.offset:
        columns = [shifted(c, array.offset, array.length) for c in columns]
    return RecordBatch(columns, array.length)
