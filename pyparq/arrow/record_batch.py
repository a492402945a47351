"""Record batches: columns of equal length, and how they come from other Arrow libraries, zero-copy: one native call for
each batch."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from pyparq.arrow.column import Column, shifted
from pyparq.arrow.exchange import arrays_from_arrow, column_from_nanoarrow, schema_from_arrow, table_schema
from pyparq.arrow.schema.extensions import check_entries
from pyparq.errors import DataError
from pyparq.format.types import DataType, Field, Schema
from pyparq.kernels import ArrowImport, ImportedArray

_BYTES = np.dtype(np.uint8)


class ArrowSource:
    """Arrays of one type, from anything with ``__arrow_c_stream__`` or ``__arrow_c_array__``."""

    def __init__(self, obj: Any) -> None:
        if hasattr(obj, "__arrow_c_stream__"):
            self._capsules = None, obj.__arrow_c_stream__()
        else:
            self._capsules = obj.__arrow_c_array__()
        self._native = ArrowImport(*self._capsules)
        described = self._native.schema()
        self.field = None if described is None else _field(described)
        """``None`` if the kernels do not know a type. :meth:`as_given` then returns the original object."""

    def as_given(self) -> Any:
        """The original object, from which nothing has been taken, for libraries that know more types."""
        schema, arrays = self._capsules
        return _Stream(arrays) if schema is None else _Array(schema, arrays)

    def next(self) -> Column | None:
        """The next array; ``None`` at the end. Raises :class:`~pyparq.kernels.KernelError` for arrays that do not fit
        their type, and with what the other library says if it fails."""
        assert self.field is not None
        made = self._native.next()
        return None if made is None else _column(made, self.field.type)


class _Stream:
    def __init__(self, arrays: Any) -> None:
        self._arrays = arrays

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self._arrays


class _Array:
    def __init__(self, schema: Any, array: Any) -> None:
        self._capsules = schema, array

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self._capsules


@lru_cache(maxsize=512)
def _simple(format: str) -> DataType:
    return DataType(format)


def _field(described: tuple[Any, ...]) -> Field:
    format, name, metadata, flags, children, dictionary = described
    if dictionary is not None:
        values = _field(dictionary)
        check_entries(name or "", values.metadata)
        type_ = DataType(format, (), values.type, bool(flags & 1))
    elif children:
        type_ = DataType(format, tuple(map(_field, children)), None, format == "+m" and bool(flags & 4))
    else:
        type_ = _simple(format)
    return Field(name or "", type_, bool(flags & 2), metadata or {})


def _column(made: Any, type_: DataType) -> Column:
    if isinstance(made, ImportedArray):
        return ImportedColumn(type_, made)
    length, offset, nulls, validity, buffers, children, dictionary = made
    arrays = tuple(np.frombuffer(buffer, _BYTES) for buffer in buffers)
    if children:
        children = tuple(_column(child, f.type) for child, f in zip(children, type_.children, strict=True))
    if dictionary is not None:
        dictionary = _column(dictionary, type_.dictionary)  # type: ignore[arg-type]
    bits = None if validity is None else np.frombuffer(validity, _BYTES)
    return Column(type_, length, bits, arrays, nulls, children, dictionary, offset)


class ImportedColumn(Column):
    """A column of fixed width, or of strings or binary, in memory of another library.

    The writer takes it directly. numpy arrays over its memory are made when ``validity`` or ``buffers`` are accessed.
    """

    __slots__ = ("imported",)

    def __init__(self, type: DataType, imported: ImportedArray) -> None:
        self.type = type
        self.length = imported.length
        self.null_count = imported.null_count
        self.children = ()
        self.dictionary = None
        self.offset = imported.offset
        self.imported = imported

    def __getattr__(self, name: str) -> Any:
        if name == "validity":
            bits = self.imported.validity
            self.validity = None if bits is None else np.frombuffer(bits, _BYTES)
        elif name == "buffers":
            self.buffers = tuple(np.frombuffer(buffer, _BYTES) for buffer in self.imported.buffers)
        else:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        return getattr(self, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Column, (
            self.type, self.length, self.validity, self.buffers, self.null_count, (), None, self.offset
        )  # fmt: skip


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
