"""Schemas and columns of other libraries on the way in, zero-copy.

nanoarrow reads the structs of the Arrow C data interface; it loads with the first exchange. ``c_export.py`` is the
way out.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.arrow.column import Column
from pyparq.arrow.schema.extensions import check_entries
from pyparq.errors import SchemaError
from pyparq.format.types import DataType, Field, Schema
from pyparq.runtime.lazy_import import load


class _ArrowArray(ctypes.Structure):
    """``struct ArrowArray`` of the C data interface."""


_Release = ctypes.CFUNCTYPE(None, ctypes.POINTER(_ArrowArray))
_ArrowArray._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.c_void_p),
    ("dictionary", ctypes.c_void_p),
    ("release", _Release),
    ("private_data", ctypes.c_void_p),
]


class _Memory(ctypes.Array):  # type: ignore[type-arg]
    """Bytes that belong to an Arrow array: keeps it alive."""

    _type_ = ctypes.c_uint8
    _length_ = 0


def raw_buffer(array: Any, index: int, size: int) -> npt.NDArray[np.uint8]:
    """``size`` bytes of a buffer of a nanoarrow CArray, zero-copy, for layouts that nanoarrow cannot view.

    The caller knows how large the buffer must be by the specification; the producer is trusted to follow it.
    """
    found = _ArrowArray.from_address(array._addr())
    if not 0 <= index < found.n_buffers:
        raise ValueError(f"buffer {index} was asked for, but the array has {found.n_buffers} buffers")
    address = found.buffers[index]
    if not address or size <= 0:
        return np.empty(0, np.uint8)
    sized: Any = type("_Memory", (_Memory,), {"_length_": size, "_type_": ctypes.c_uint8})
    memory = sized.from_address(address)
    memory.owner = array
    return np.frombuffer(memory, np.uint8)


def arrays_from_arrow(obj: Any) -> tuple[Any, Iterator[Any]]:
    """The CSchema and the CArrays of anything with ``__arrow_c_stream__`` or ``__arrow_c_array__``."""
    if hasattr(obj, "__arrow_c_stream__"):
        stream = load("nanoarrow.c_array_stream").c_array_stream(obj)
        return stream.get_schema(), iter(stream)
    # Not by way of a stream: nanoarrow 0.9 would copy the array, wrongly if it holds string views (memory corruption).
    array = load("nanoarrow.c_array").c_array(obj)
    return array.schema, iter([array])


def schema_from_arrow(obj: Any) -> Schema:
    """The schema of any object with ``__arrow_c_schema__`` (or a nanoarrow CSchema of a struct)."""
    return table_schema(field_from_arrow(obj))


def field_from_arrow(obj: Any) -> Field:
    """The field that an object with ``__arrow_c_schema__`` describes: a field or type of another library."""
    return field_from_nanoarrow(load("nanoarrow.c_schema").c_schema(obj))


def table_schema(field: Field) -> Schema:
    """The schema of a table whose rows are values of ``field``."""
    if field.type.format != "+s":
        raise SchemaError(f"the schema of a table must be a struct, not {field.type}")
    return Schema(field.type.children, field.metadata)


def field_from_nanoarrow(schema: Any) -> Field:
    """The field that a nanoarrow CSchema describes."""
    children = tuple(field_from_nanoarrow(schema.child(i)) for i in range(schema.n_children))
    entries = None if schema.dictionary is None else field_from_nanoarrow(schema.dictionary)
    if entries is not None:
        check_entries(schema.name or "", entries.metadata)
    dictionary = None if entries is None else entries.type
    metadata = dict(schema.metadata.items()) if schema.metadata is not None else {}
    ordered = bool(schema.flags & 1) if dictionary is not None else schema.format == "+m" and bool(schema.flags & 4)
    type_ = DataType(schema.format, children, dictionary, ordered)
    return Field(schema.name or "", type_, bool(schema.flags & 2), metadata)


def _as_integers(array: Any, type_: DataType) -> Any:
    """nanoarrow shows no buffers of decimals of 32 and 64 bits, nor integers of 128: take their numbers or bytes."""
    is_small = type_.kind == "decimal" and type_.decimal[2] <= 64
    if type_.dictionary is not None or not (is_small or type_.kind == "int128"):
        return array
    nanoarrow = load("nanoarrow")
    plain = {4: nanoarrow.int32(), 8: nanoarrow.int64()}.get(type_.byte_width) or nanoarrow.fixed_size_binary(16)
    return load("nanoarrow._array").CArray(array, array._addr(), nanoarrow.c_schema(plain))


def column_from_nanoarrow(array: Any, type_: DataType) -> Column:
    """One array (a nanoarrow CArray) of ``type_``, zero-copy."""
    if type_.format == "n":  # polars gives these a buffer, which nanoarrow's view refuses
        return Column(type_, array.length, None, (), array.length)
    if type_.format.startswith("+v"):
        return _list_view_from_nanoarrow(array, type_)
    if type_.format[:2] in ("+s", "+l", "+L", "+m", "+w") and _holds_nulls(type_):
        return _nested_from_nanoarrow(array, type_)
    # A view of each array by itself: the buffers of a view's child do not keep the parent's memory alive.
    view = _as_integers(array, type_).view()
    buffers = [np.frombuffer(b, np.uint8) if b.size_bytes else np.empty(0, np.uint8) for b in view.buffers]
    children = tuple(column_from_nanoarrow(array.child(i), f.type) for i, f in enumerate(type_.children))
    dictionary = None if type_.dictionary is None else column_from_nanoarrow(array.dictionary, type_.dictionary)
    has_validity = type_.format not in ("n", "+r") and len(buffers) > 0
    validity = buffers.pop(0) if has_validity else None
    if validity is not None and len(validity) == 0:
        validity = None
    nulls = 0 if has_validity and validity is None else view.null_count
    return Column(type_, view.length, validity, tuple(buffers), nulls, children, dictionary, view.offset)


def _holds_nulls(type_: DataType) -> bool:
    """A struct or list of null columns, however deep."""
    return any(f.type.format == "n" or _holds_nulls(f.type) for f in type_.children)


def _nested_from_nanoarrow(array: Any, type_: DataType) -> Column:
    """A struct or list buffer by buffer: a view of it would be one of its null columns too."""
    count = array.offset + array.length
    validity: Any = raw_buffer(array, 0, (count + 7) // 8)
    width = {"+l": 4, "+m": 4, "+L": 8}.get(type_.format, 0)
    buffers = (raw_buffer(array, 1, (count + 1) * width),) if width else ()
    children = tuple(column_from_nanoarrow(array.child(i), f.type) for i, f in enumerate(type_.children))
    validity, nulls = (validity, array.null_count) if len(validity) else (None, 0)
    return Column(type_, array.length, validity, buffers, nulls, children, None, array.offset)


def _list_view_from_nanoarrow(array: Any, type_: DataType) -> Column:
    """Buffers (offsets, sizes); nanoarrow knows the type but not how large its buffers are."""
    count = array.offset + array.length
    width = 8 if type_.format == "+vL" else 4
    validity = raw_buffer(array, 0, (count + 7) // 8)
    buffers = tuple(raw_buffer(array, k, count * width) for k in (1, 2))
    child = column_from_nanoarrow(array.child(0), type_.children[0].type)
    if len(validity) == 0:
        return Column(type_, array.length, None, buffers, 0, (child,), None, array.offset)
    return Column(type_, array.length, validity, buffers, array.null_count, (child,), None, array.offset)
