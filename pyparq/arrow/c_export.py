"""Schemas and columns on the way out: capsules of the Arrow C data interface over the buffers of columns, zero-copy.

The structs are made natively (``kernels/src/arrow/export.cpp``), those of a whole table in one call.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyparq.arrow.column import Column
from pyparq.format.types import Field, Schema, native_struct
from pyparq.kernels import ArrowField, arrow_array, arrow_arrays


def schema_capsule(schema: Schema) -> object:
    """A struct with one child per field."""
    return native_struct(schema).capsule()


def field_capsule(field: Field) -> object:
    """The schema of a column."""
    return ArrowField(field).capsule()


def batch_capsule(columns: Sequence[Column], num_rows: int) -> object:
    """A struct array with one child per column."""
    return arrow_array((columns, num_rows))


def chunks_to_stream(field: Field, chunks: Sequence[Column]) -> object:
    """A stream of one column in chunks."""
    return arrow_arrays(ArrowField(field), chunks)


def batches_to_stream(schema: Schema, batches: Sequence[tuple[list[Column], int]]) -> object:
    """A stream of record batches (their columns and numbers of rows)."""
    return arrow_arrays(native_struct(schema), batches)
