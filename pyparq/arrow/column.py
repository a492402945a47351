"""Column: one contiguous array in Arrow layout over numpy buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from pyparq.format.types import DataType, Field, Schema, native_struct
from pyparq.kernels import ArrowField, DecodedColumn, arrow_array, arrow_arrays
from pyparq.runtime.lazy_import import provided
from pyparq.runtime.text import printable

Buffer = npt.NDArray[Any]


class Column:
    """One contiguous Arrow array.

    ``validity`` is a packed little-endian bitmap (uint8) or ``None`` when nothing is null. ``buffers`` are the
    type's other buffers in Arrow order: ``(values,)`` for fixed width (a packed bitmap for bool), ``(offsets,
    data)`` for strings and binary, ``(offsets,)`` for lists and maps, ``(offsets, sizes)`` for list views, ``()`` for
    structs. ``offset`` counts leading elements to pass over in all of them (arrays from elsewhere may be slices).
    ``dictionary`` holds the entries of a dictionary-encoded column, or (where the type is not that of one) those of the
    dictionary that it was spelled out from.
    """

    __slots__ = ("buffers", "children", "dictionary", "length", "null_count", "offset", "type", "validity")

    native: ClassVar[DecodedColumn | None] = None
    """Where the buffers are, if the decoder still has them: see :class:`NativeColumn`."""

    codes: ClassVar[npt.NDArray[np.int32] | None] = None
    """Which entries of the dictionary the values are, where that is known: see ``dictionary_column.py``."""

    validity: Buffer | None
    buffers: tuple[Buffer, ...]

    def __init__(
        self,
        type: DataType,
        length: int,
        validity: Buffer | None,
        buffers: tuple[Buffer, ...],
        null_count: int,
        children: tuple[Column, ...] = (),
        dictionary: Column | None = None,
        offset: int = 0,
    ) -> None:
        self.type = type
        self.length = length
        self.validity = validity
        self.buffers = buffers
        self.null_count = null_count
        self.children = children
        self.dictionary = dictionary
        self.offset = offset

    def __len__(self) -> int:
        return self.length

    @printable
    def __repr__(self) -> str:
        return f"<Column: {self.length} values of {self.type}>"

    def __arrow_c_schema__(self) -> object:
        return ArrowField(Field("", self.type)).capsule()

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self.__arrow_c_schema__(), arrow_array(self)

    def to_pylist(self) -> list[Any]:
        """One Python object per value, as :func:`pyparq.arrow.to_python.column_to_pylist` makes them."""
        made: list[Any] = provided("conversions of columns").column_to_pylist(self)
        return made

    def to_numpy(self) -> Buffer:
        """The values as a numpy array, as :func:`pyparq.arrow.to_python.chunks_to_numpy` makes it."""
        made: Buffer = provided("conversions of columns").chunks_to_numpy(self.type, [self])
        return made

    def valid_mask(self) -> npt.NDArray[np.bool_] | None:
        """bool array, one per element, ``True`` where a value is present; ``None`` when all are."""
        if self.validity is None or self.null_count == 0:
            return None
        return unpacked(self.validity, self.offset, self.length)

    def values(self) -> Buffer:
        """The values buffer of a fixed-width column as a typed array (bool unpacked); nulls hold anything."""
        if self.type.format == "b":
            return unpacked(self.buffers[0], self.offset, self.length)
        width = self.type.byte_width
        raw = self.buffers[0].view(np.uint8)[self.offset * width : (self.offset + self.length) * width]
        if self.type.format[0] in "wd_" or self.type.kind == "interval":
            return raw.reshape(self.length, width)
        return raw.view(self.type.numpy_dtype)

    def offsets(self) -> Buffer:
        """int32 or int64 offsets (``length + 1``) of a string, binary, list or map column."""
        dtype = np.int64 if self.type.format in ("U", "Z", "+L") else np.int32
        if len(self.buffers[0]) == 0:  # Arrow lets an empty array leave its offsets out
            return np.zeros(1, dtype)
        return self.buffers[0].view(dtype)[self.offset : self.offset + self.length + 1]


class NativeColumn(Column):
    """A column of fixed width, or of strings or binary, with the buffers of the decoder.

    Arrow takes them directly. numpy arrays over them are made when ``validity`` or ``buffers`` are accessed.
    """

    __slots__ = ("native",)

    native: DecodedColumn  # type: ignore[misc]

    def __init__(self, type: DataType, native: DecodedColumn) -> None:
        self.type = type
        self.length = native.length
        self.null_count = native.null_count
        self.children = ()
        self.dictionary = None
        self.offset = 0
        self.native = native

    def __getattr__(self, name: str) -> Any:
        if name == "validity":
            self.validity = self.native.validity
        elif name == "buffers":
            self.buffers = self._arrays()
        else:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        return getattr(self, name)

    def _arrays(self) -> tuple[Buffer, ...]:
        native = self.native
        if native.is_binary:
            return native.offsets, native.values
        values = native.values
        return (values if self.type.format[0] in _AS_BYTES else values.view(self.type.numpy_dtype),)

    def __reduce__(self) -> tuple[Any, ...]:
        return Column, (self.type, self.length, self.validity, self.buffers, self.null_count)


_AS_BYTES = "bdwe_"
"""Formats whose buffer is an array of bytes: booleans, decimals, bytes of a fixed size, halves, 128-bit integers."""


def unpacked(bitmap: Buffer, offset: int, length: int) -> npt.NDArray[np.bool_]:
    """``length`` bits of a packed bitmap from bit ``offset`` on, a bool each. Looks at no others."""
    skipped = offset % 8
    bits = np.unpackbits(bitmap.view(np.uint8)[offset // 8 :], count=skipped + length, bitorder="little")
    return bits[skipped:].view(np.bool_)


def shifted(column: Column, offset: int, length: int) -> Column:
    """A slice; the null count is unknown then (-1) unless there are none."""
    nulls = 0 if column.null_count == 0 else -1
    return Column(
        column.type, length, column.validity, column.buffers, nulls, column.children, column.dictionary,
        column.offset + offset,
    )  # fmt: skip


def count_nulls(column: Column) -> int:
    """How many values are null; counted where the column does not say. Nulls in a dictionary count too."""
    if column.type.format == "n":
        return column.length
    if column.dictionary is not None and column.dictionary.null_count:
        return _nulls_through_dictionary(column, column.dictionary)
    if column.null_count >= 0:
        return column.null_count
    mask = column.valid_mask()
    return 0 if mask is None else column.length - int(np.count_nonzero(mask))


def _nulls_through_dictionary(column: Column, entries: Column) -> int:
    mask, present = column.valid_mask(), entries.valid_mask()
    indices = Column(
        DataType(column.type.format), column.length, None, column.buffers, 0, offset=column.offset
    ).values()
    used = indices if mask is None else indices[mask]
    return column.length - int(np.count_nonzero(used if present is None else present[used]))


def bytes_held(column: Column) -> int:
    """Bytes of all buffers, those of a dictionary included; a slice counts the buffers it shares as a whole."""
    if column.native is not None:
        return column.native.buffer_size
    total = sum([b.nbytes for b in column.buffers]) + (0 if column.validity is None else column.validity.nbytes)
    total += sum(map(bytes_held, column.children))
    return total + (bytes_held(column.dictionary) if column.dictionary is not None else 0)


# ---- on the way out: capsules of the Arrow C data interface over the buffers of columns, zero-copy
#
# The structs are made natively (``kernels/src/arrow/export.cpp``), those of a whole table in one call.


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
