"""Schemas and columns on the way out to nanoarrow's structures and in from them, zero-copy.

nanoarrow builds the structures of the Arrow C data interface and reads them; it loads with the first exchange.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from pyparq.errors import SchemaError
from pyparq.later import load
from pyparq.schemas.types import DataType, Field, Schema
from pyparq.tables.arrow_c_data import array_capsule, move_dictionary, raw_buffer
from pyparq.tables.column import Column

# ---- out ---------------------------------------------------------------------------------------------------------


_WITH_OFFSETS = ("u", "U", "z", "Z", "+l", "+L", "+m")
_NO_OFFSETS = np.zeros(1, np.int64)
_KEPT = 16
_kept: dict[tuple[Any, ...], tuple[tuple[Field, ...], Any]] = {}
"""The last few schemas made. Their fields are kept too, so that the ids they are known by stay theirs."""


def schema_to_nanoarrow(schema: Schema) -> Any:
    """A struct CSchema with one child per field. Not to be moved: others may have it too."""
    key = tuple(map(id, schema.fields)), tuple(schema.metadata.items())
    known = _kept.get(key)
    if known is None:
        root = Field("", DataType("+s", schema.fields), nullable=False, metadata=schema.metadata)
        known = schema.fields, _field_to_nanoarrow(root)
        if len(_kept) >= _KEPT:
            _kept.clear()
        _kept[key] = known
    return known[1]


def _field_to_nanoarrow(field: Field) -> Any:
    builder = load("nanoarrow._schema").CSchemaBuilder.allocate()
    builder.set_format(field.type.format)
    builder.set_name(field.name)
    builder.allocate_children(len(field.type.children))
    for i, child in enumerate(field.type.children):
        builder.set_child(i, child.name, _field_to_nanoarrow(child))
    if field.type.dictionary is not None:
        builder.set_dictionary(_field_to_nanoarrow(Field("", field.type.dictionary)))
        builder.set_dictionary_ordered(field.type.ordered)
    if field.type.format == "+m":
        builder.set_map_keys_sorted(field.type.ordered)
    builder.set_nullable(field.nullable)
    if field.metadata:
        builder.append_metadata(dict(field.metadata))
    return builder.finish()


def batch_to_nanoarrow(columns: list[Column], num_rows: int, schema: Any) -> Any:
    """A struct CArray of ``schema`` (a CSchema) over the buffers of these columns."""
    children = [_column_to_nanoarrow(c, schema.child(i)) for i, c in enumerate(columns)]
    return _array(schema, num_rows, 0, 0, [], children)


def column_to_capsules(column: Column) -> tuple[object, object]:
    """The schema and array capsules of one column by itself, over its buffers."""
    schema = _field_to_nanoarrow(Field("", column.type))
    return schema.__arrow_c_schema__(), array_capsule(_column_to_nanoarrow(column, schema))


def column_schema(field: Field) -> object:
    """The schema capsule of a column."""
    return _field_to_nanoarrow(field).__arrow_c_schema__()


def chunks_to_stream(field: Field, chunks: Sequence[Column]) -> object:
    """A stream capsule of one column in chunks, over their buffers."""
    schema = _field_to_nanoarrow(field)
    return _stream(schema, [_column_to_nanoarrow(chunk, schema) for chunk in chunks])


def batches_to_stream(schema: Schema, batches: Sequence[tuple[list[Column], int]]) -> object:
    """A stream capsule of record batches (their columns and numbers of rows), over their buffers."""
    root = schema_to_nanoarrow(schema)
    return _stream(root, [batch_to_nanoarrow(columns, num_rows, root) for columns, num_rows in batches])


def _stream(schema: Any, arrays: list[Any]) -> object:
    # Moved, not copied: nanoarrow 0.9 copies arrays of string views wrongly (memory corruption). The schema moves
    # too, so it is another one than that which the arrays refer to.
    other = load("nanoarrow.c_schema").c_schema(schema.__arrow_c_schema__())
    stream = load("nanoarrow.c_array_stream").CArrayStream.from_c_arrays(arrays, other, move=True, validate=False)
    return stream.__arrow_c_stream__(None)


def _column_to_nanoarrow(column: Column, schema: Any) -> Any:
    children = [_column_to_nanoarrow(c, schema.child(i)) for i, c in enumerate(column.children)]
    buffers: list[Any] = [None if column.type.format == "n" else column.validity, *column.buffers]
    if column.type.format in ("n", "+r"):
        buffers = []
    elif column.type.format in ("vu", "vz"):
        buffers[-1] = None  # nanoarrow makes the list of sizes itself, and would write beyond its own by setting it
    elif column.type.format in _WITH_OFFSETS and not len(column.buffers[0]):
        buffers[1] = _NO_OFFSETS  # Arrow lets an empty array leave its offsets out, but many read the first of them
    array = _array(schema, column.length, column.offset, column.null_count, buffers, children)
    if column.type.dictionary is not None and column.dictionary is not None:
        move_dictionary(array, _column_to_nanoarrow(column.dictionary, schema.dictionary))
    return array


def _array(schema: Any, length: int, offset: int, null_count: int, buffers: list[Any], children: list[Any]) -> Any:
    """A CArray, as ``nanoarrow.c_array_from_buffers`` makes it of known parts. Everything is moved into place: copies
    would be one more struct each to hold and release."""
    allocate, cpu, buffer_of = _builders()
    builder = allocate(cpu)
    builder.init_from_schema(schema)
    builder.ensure_buffers(len(buffers))  # string views have any number
    for i, buffer in enumerate(buffers):
        if buffer is not None:
            builder.set_buffer(i, buffer_of(buffer), move=True)
    for i, child in enumerate(children):
        builder.set_child(i, child, move=True)
    builder.set_length(length)
    builder.set_offset(offset)
    builder.set_null_count(null_count)
    builder.resolve_null_count()
    return builder.finish(validation_level="none")


@cache
def _builders() -> tuple[Any, Any, Any]:
    """What a CArray is made by. Looked up once: to import takes as long as to make one."""
    allocate = load("nanoarrow._array").CArrayBuilder.allocate
    return allocate, load("nanoarrow.device").DEVICE_CPU, load("nanoarrow._buffer").CBuffer.from_pybuffer


# ---- in ----------------------------------------------------------------------------------------------------------


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
    root = load("nanoarrow.c_schema").c_schema(obj)
    return table_schema(field_from_nanoarrow(root))


def table_schema(field: Field) -> Schema:
    """The schema of a table whose rows are values of ``field``."""
    if field.type.format != "+s":
        raise SchemaError(f"the schema of a table must be a struct, not {field.type}")
    return Schema(field.type.children, field.metadata)


def field_from_nanoarrow(schema: Any) -> Field:
    """The field that a nanoarrow CSchema describes."""
    children = tuple(field_from_nanoarrow(schema.child(i)) for i in range(schema.n_children))
    dictionary = None if schema.dictionary is None else field_from_nanoarrow(schema.dictionary).type
    metadata = dict(schema.metadata.items()) if schema.metadata is not None else {}
    ordered = bool(schema.flags & 1) if dictionary is not None else schema.format == "+m" and bool(schema.flags & 4)
    type_ = DataType(schema.format, children, dictionary, ordered)
    return Field(schema.name or "", type_, bool(schema.flags & 2), metadata)


def _as_integers(array: Any, type_: DataType) -> Any:
    """nanoarrow cannot show the buffers of decimals of 32 and 64 bits: take these as the integers they are."""
    if type_.dictionary is not None or type_.kind != "decimal" or type_.decimal[2] > 64:
        return array
    nanoarrow = load("nanoarrow")
    integers = nanoarrow.int32() if type_.decimal[2] == 32 else nanoarrow.int64()
    return load("nanoarrow._array").CArray(array, array._addr(), nanoarrow.c_schema(integers))


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
