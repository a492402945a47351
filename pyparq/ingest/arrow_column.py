"""One column out of anything that exports an Arrow array or a stream of arrays."""

from __future__ import annotations

from typing import Any

from pyparq.column import Column
from pyparq.errors import DataError
from pyparq.exchange import column_from_nanoarrow, field_from_nanoarrow
from pyparq.later import load
from pyparq.schemas.types import DataType


def chunks_from_arrow(values: Any, name: str) -> tuple[DataType, list[Column]]:
    """The type and the chunks, zero-copy. Raises :class:`DataError` for what cannot be read."""
    try:
        stream = load("nanoarrow.c_array_stream").c_array_stream(values)
        field = field_from_nanoarrow(stream.get_schema())
        return field.type, [column_from_nanoarrow(array, field.type) for array in stream]
    except Exception as error:
        raise DataError(f"the {type(values).__name__} cannot be read as Arrow data: {error}", column=name) from error
