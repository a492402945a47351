"""One column out of anything that exports an Arrow array or a stream of arrays."""

from __future__ import annotations

from typing import Any

from pyparq.arrow.column import Column
from pyparq.arrow.exchange import arrays_from_arrow, column_from_nanoarrow, field_from_nanoarrow
from pyparq.errors import DataError
from pyparq.format.types import Field


def chunks_from_arrow(values: Any, name: str) -> tuple[Field, list[Column]]:
    """The field and the chunks, zero-copy. Raises :class:`DataError` for what cannot be read."""
    try:
        schema, arrays = arrays_from_arrow(values)
        field = field_from_nanoarrow(schema)
        return field, [column_from_nanoarrow(array, field.type) for array in arrays]
    except Exception as error:
        raise DataError(f"the {type(values).__name__} cannot be read as Arrow data: {error}", column=name) from error
