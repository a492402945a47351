"""Table, Batch and Column: the one in-memory currency, in Arrow layout over numpy buffers.

A :class:`Table` is a schema and a list of record batches. Nothing is deferred behind its back: every buffer holds
decoded data. Exchange with other libraries is zero-copy through the Arrow C data interface (nanoarrow builds the
structures); pandas, polars and pyarrow are imported only by the methods named after them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyparq.errors import DataError, OptionError, SchemaError, UnsupportedError
from pyparq.schema.types import DataType, Field, Schema

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

Buffer = npt.NDArray[Any]


class Column:
    """One contiguous Arrow array.

    ``validity`` is a packed little-endian bitmap (uint8) or ``None`` when nothing is null. ``buffers`` are the
    type's other buffers in Arrow order: ``(values,)`` for fixed width (a packed bitmap for bool), ``(offsets,
    data)`` for strings and binary, ``(offsets,)`` for lists and maps, ``(offsets, sizes)`` for list views, ``()`` for
    structs. ``offset`` counts leading elements to pass over in all of them (arrays from elsewhere may be slices).
    """

    __slots__ = ("buffers", "children", "dictionary", "length", "null_count", "offset", "type", "validity")

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

    def valid_mask(self) -> npt.NDArray[np.bool_] | None:
        """bool array, one per element, ``True`` where a value is present; ``None`` when all are."""
        if self.validity is None or self.null_count == 0:
            return None
        bits = np.unpackbits(self.validity.view(np.uint8), count=self.offset + self.length, bitorder="little")
        return bits[self.offset :].view(np.bool_)

    def values(self) -> Buffer:
        """The values buffer of a fixed-width column as a typed array (bool unpacked); nulls hold anything."""
        if self.type.format == "b":
            bits = np.unpackbits(self.buffers[0].view(np.uint8), count=self.offset + self.length, bitorder="little")
            return bits[self.offset :].view(np.bool_)
        width = self.type.byte_width
        raw = self.buffers[0].view(np.uint8)[self.offset * width : (self.offset + self.length) * width]
        if self.type.format[0] in "wd" or self.type.kind == "interval":
            return raw.reshape(self.length, width)
        return raw.view(self.type.numpy_dtype)

    def offsets(self) -> Buffer:
        """int32 or int64 offsets (``length + 1``) of a string, binary, list or map column."""
        dtype = np.int64 if self.type.format in ("U", "Z", "+L") else np.int32
        if len(self.buffers[0]) == 0:  # Arrow lets an empty array leave its offsets out
            return np.zeros(1, dtype)
        return self.buffers[0].view(dtype)[self.offset : self.offset + self.length + 1]


class Batch:
    """Columns of equal length: one Arrow record batch.

    ``schema`` is there on batches that come out of a scan: they speak Arrow by themselves
    (``pyarrow.record_batch(b)``), and :meth:`to_table` gives them the methods of a table.
    """

    __slots__ = ("columns", "num_rows", "schema")

    def __init__(self, columns: list[Column], num_rows: int, schema: Schema | None = None) -> None:
        self.columns = columns
        self.num_rows = num_rows
        self.schema = schema

    def __len__(self) -> int:
        return self.num_rows

    def __repr__(self) -> str:
        return f"<Batch: {self.num_rows} rows, {len(self.columns)} columns>"

    def to_table(self) -> Table:
        """A table of this one batch, over the same buffers."""
        return Table(self._known_schema(), [self])

    def __arrow_c_schema__(self) -> object:
        return schema_to_nanoarrow(self._known_schema()).__arrow_c_schema__()

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        from pyparq.cdata import array_capsule

        schema = schema_to_nanoarrow(self._known_schema())
        return schema.__arrow_c_schema__(), array_capsule(batch_to_nanoarrow(self, schema))

    def _known_schema(self) -> Schema:
        if self.schema is None:
            raise SchemaError("this batch has no schema of its own: put it into a Table with one")
        return self.schema

    def slice(self, start: int, length: int) -> Batch:
        """Rows ``start`` to ``start + length``, sharing all buffers."""
        if start == 0 and length == self.num_rows:
            return self
        return Batch([_shifted(c, start, length) for c in self.columns], length, self.schema)


class Table:
    """Decoded rows: ``schema`` and record ``batches``.

    Anything that speaks the Arrow PyCapsule interface takes a table as it is
    (``pyarrow.table(t)``, ``polars.DataFrame(t)``, ``duckdb.sql("from t")``).
    """

    __slots__ = ("batches", "schema")

    def __init__(self, schema: Schema, batches: list[Batch]) -> None:
        self.schema = schema
        self.batches = batches

    @property
    def num_rows(self) -> int:
        return sum(b.num_rows for b in self.batches)

    @property
    def num_columns(self) -> int:
        return len(self.schema)

    @property
    def column_names(self) -> list[str]:
        return self.schema.names

    @property
    def shape(self) -> tuple[int, int]:
        return self.num_rows, self.num_columns

    @property
    def nbytes(self) -> int:
        """Bytes held by all buffers."""
        return sum(_nbytes(c) for b in self.batches for c in b.columns)

    def __len__(self) -> int:
        return self.num_rows

    def __repr__(self) -> str:
        return f"pyparq.Table ({self.num_rows} rows)\n{self.schema}"

    def chunks(self, name: str) -> list[Column]:
        """The column called ``name``, one :class:`Column` per batch."""
        index = self.schema.index(name)
        return [b.columns[index] for b in self.batches]

    def slice(self, start: int, length: int | None = None) -> Table:
        """Rows ``start`` to ``start + length`` (to the end when ``None``), sharing all buffers."""
        if start < 0 or (length is not None and length < 0):
            raise OptionError(f"a slice starts at a row from 0 on and has a length, not {start} and {length}")
        stop = self.num_rows if length is None else min(start + length, self.num_rows)
        kept, before = [], 0
        for batch in self.batches:
            first, last = max(start - before, 0), min(stop - before, batch.num_rows)
            if first < last:
                kept.append(batch.slice(first, last - first))
            before += batch.num_rows
        return Table(self.schema, kept)

    def select(self, names: Sequence[str]) -> Table:
        """The named columns, in that order, sharing all buffers."""
        if isinstance(names, str):
            raise OptionError(f"select() takes a list of names; did you mean [{names!r}]?")
        indices = [self.schema.index(n) for n in names]
        schema = self.schema.select(list(names))
        return Table(schema, [Batch([b.columns[i] for i in indices], b.num_rows, schema) for b in self.batches])

    def __arrow_c_schema__(self) -> object:
        return schema_to_nanoarrow(self.schema).__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        from nanoarrow.c_array_stream import CArrayStream
        from nanoarrow.c_schema import c_schema

        schema = schema_to_nanoarrow(self.schema)
        arrays = [batch_to_nanoarrow(b, schema) for b in self.batches]
        # Moved, not copied: nanoarrow 0.9 copies arrays of string views wrongly (memory corruption). The schema moves
        # too, so it is another one than that which the arrays refer to.
        other = c_schema(schema.__arrow_c_schema__())
        return CArrayStream.from_c_arrays(arrays, other, move=True).__arrow_c_stream__(None)

    def to_arrow(self) -> pyarrow.Table:
        """A ``pyarrow.Table`` over the same buffers; :class:`UnsupportedError` where pyarrow is not installed."""
        try:
            import pyarrow as pa
        except ImportError:
            raise UnsupportedError("to_arrow() needs pyarrow: pip install 'pyparq[pyarrow]'") from None

        return pa.table(self)

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """A pandas DataFrame; :class:`UnsupportedError` where pandas is not installed.

        Converted by pyarrow, as pandas itself does it, or by the same rules (:mod:`pyparq.frame`) without pyarrow and
        for types that it does not convert (lists of string views).
        ``pandas`` metadata, where the table has it, brings the index back; where it makes no sense it is ignored.
        ``options`` are those of ``pyarrow.Table.to_pandas`` and need pyarrow.
        """
        if find_spec("pandas") is None:
            raise UnsupportedError("to_pandas() needs pandas: pip install 'pyparq[pandas]'")
        from pyparq.frame import frame_of

        if not options and find_spec("pyarrow") is None:
            return frame_of(self)
        try:
            return self._to_pandas_by_pyarrow(options)
        except NotImplementedError:  # pyarrow's own error is one
            if options:
                raise
            return frame_of(self)

    def _to_pandas_by_pyarrow(self, options: dict[str, Any]) -> pandas.DataFrame:
        table = self.to_arrow()
        if b"pandas" not in self.schema.metadata or options.get("ignore_metadata"):
            return table.to_pandas(**options)
        try:
            return table.to_pandas(**options)
        except Exception:  # whatever pandas and pyarrow make of outside bytes; without them it must work
            rest = {k: v for k, v in self.schema.metadata.items() if k != b"pandas"}
            return table.replace_schema_metadata(rest).to_pandas(**options)

    def to_polars(self) -> polars.DataFrame:
        """A polars DataFrame over the same buffers (but for list views, which polars cannot take);
        :class:`UnsupportedError` where polars is not installed."""
        try:
            import polars as pl
        except ImportError:
            raise UnsupportedError("to_polars() needs polars: pip install 'pyparq[polars]'") from None

        from pyparq.convert import for_polars

        return pl.DataFrame(for_polars(self))

    def to_numpy(self, name: str) -> npt.NDArray[Any]:
        """One column as a numpy array.

        Numbers without nulls share memory when the table has one batch. Columns with nulls come as masked arrays,
        times as datetime64/timedelta64, strings, binary and decimals as object arrays.
        """
        from pyparq.convert import chunks_to_numpy

        return chunks_to_numpy(self.schema.field(name).type, self.chunks(name))

    def to_pydict(self) -> dict[str, list[Any]]:
        """Column name to list of Python objects; :class:`ColumnNotFoundError` where a name stands for several."""
        from pyparq.convert import column_to_pylist

        return {
            name: [value for batch in self.batches for value in column_to_pylist(batch.columns[k])]
            for k, name in enumerate(self._unique_names())
        }

    def to_pylist(self) -> list[dict[str, Any]]:
        """One dict per row; :class:`ColumnNotFoundError` where a name stands for several columns."""
        from pyparq.convert import column_to_pylist

        names = self._unique_names()
        rows: list[dict[str, Any]] = []
        for batch in self.batches:
            if not names:
                rows.extend({} for _ in range(batch.num_rows))
                continue
            lists = [column_to_pylist(c) for c in batch.columns]
            rows.extend(dict(zip(names, values, strict=True)) for values in zip(*lists, strict=True))
        return rows

    def _unique_names(self) -> list[str]:
        names = self.column_names
        if len(set(names)) != len(names):
            for name in names:
                self.schema.index(name)  # raises for the first that stands twice
        return names


def _nbytes(column: Column) -> int:
    total = sum(b.nbytes for b in column.buffers) + (0 if column.validity is None else column.validity.nbytes)
    total += sum(_nbytes(c) for c in column.children)
    return total + (_nbytes(column.dictionary) if column.dictionary is not None else 0)


_LARGE = {"u": "U", "z": "Z", "+l": "+L", "+vl": "+vL"}


def widen_columns(schema: Schema, batches: list[Batch]) -> tuple[Schema, list[Batch]]:
    """Make columns of one type over all batches, at any depth: where one has int64 offsets, all get them."""
    fields = list(schema.fields)
    for i, field in enumerate(fields):
        types = [b.columns[i].type for b in batches]
        if all(type_ == field.type for type_ in types):
            continue
        widest = _widest([field.type, *types])
        fields[i] = replace(field, type=widest)
        for batch in batches:
            batch.columns[i] = _widened(batch.columns[i], widest)
    return replace(schema, fields=tuple(fields)), batches


def _widest(types: Sequence[DataType]) -> DataType:
    """The first type, with int64 offsets wherever any of the others has them."""
    first = types[0]
    large = _LARGE.get(first.format)
    form = large if large is not None and any(t.format == large for t in types) else first.format
    same = [t for t in types if len(t.children) == len(first.children)]
    children = tuple(replace(f, type=_widest([t.children[k].type for t in same])) for k, f in enumerate(first.children))
    return replace(first, format=form, children=children)


def _widened(column: Column, type_: DataType) -> Column:
    """The column with the offsets of ``type_``; its own type where that differs in more than offsets."""
    have = column.type
    if have == type_ or len(have.children) != len(type_.children):
        return column
    buffers, form = column.buffers, have.format
    if _LARGE.get(form) == type_.format:
        offsets = 2 if form == "+vl" else 1  # a list view's lengths are as wide as its offsets
        wide = (buffer.view(np.int32).astype(np.int64) for buffer in buffers[:offsets])
        buffers, form = (*wide, *buffers[offsets:]), type_.format
    children = tuple(_widened(c, f.type) for c, f in zip(column.children, type_.children, strict=True))
    fields = tuple(replace(f, type=c.type) for f, c in zip(have.children, children, strict=True))
    made = replace(have, format=form, children=fields)
    return Column(
        made, column.length, column.validity, buffers, column.null_count, children, column.dictionary, column.offset
    )


# ---- out: to nanoarrow -------------------------------------------------------------------------------------------


def schema_to_nanoarrow(schema: Schema) -> Any:
    """A struct CSchema with one child per field."""
    root = Field("", DataType("+s", schema.fields), nullable=False, metadata=schema.metadata)
    return _field_to_nanoarrow(root)


def _field_to_nanoarrow(field: Field) -> Any:
    from nanoarrow._schema import CSchemaBuilder

    builder = CSchemaBuilder.allocate()
    builder.set_format(field.type.format)
    builder.set_name(field.name)
    builder.allocate_children(len(field.type.children))
    for i, child in enumerate(field.type.children):
        builder.set_child(i, child.name, _field_to_nanoarrow(child))
    if field.type.dictionary is not None:
        builder.set_dictionary(_field_to_nanoarrow(Field("", field.type.dictionary)))
        builder.set_dictionary_ordered(field.type.ordered)
    builder.set_nullable(field.nullable)
    if field.metadata:
        builder.append_metadata(dict(field.metadata))
    return builder.finish()


def batch_to_nanoarrow(batch: Batch, schema: Any) -> Any:
    """A struct CArray of ``schema`` (a CSchema) over the batch's buffers."""
    from nanoarrow.c_array import c_array_from_buffers

    # Everything made here is moved into place: copies would be one more struct each to hold and release.
    children = [_column_to_nanoarrow(c, schema.child(i)) for i, c in enumerate(batch.columns)]
    return c_array_from_buffers(
        schema, batch.num_rows, [None], null_count=0, children=children, validation_level="none", move=True
    )


def _column_to_nanoarrow(column: Column, schema: Any) -> Any:
    from nanoarrow.c_array import c_array_from_buffers

    children = [_column_to_nanoarrow(c, schema.child(i)) for i, c in enumerate(column.children)]
    buffers: list[Any] = [None if column.type.format == "n" else column.validity, *column.buffers]
    if column.type.format in ("n", "+r"):
        buffers = []
    elif column.type.format in ("vu", "vz"):
        buffers[-1] = None  # nanoarrow makes the list of sizes itself, and would write beyond its own by setting it
    array = c_array_from_buffers(
        schema,
        column.length,
        buffers,
        null_count=column.null_count,
        offset=column.offset,
        children=children,
        validation_level="none",
        move=True,
    )
    if column.dictionary is not None:
        from pyparq.cdata import move_dictionary

        move_dictionary(array, _column_to_nanoarrow(column.dictionary, schema.dictionary))
    return array


# ---- in: from anything that speaks Arrow --------------------------------------------------------------------------


def schema_from_arrow(obj: Any) -> Schema:
    """The schema of any object with ``__arrow_c_schema__`` (or a nanoarrow CSchema of a struct)."""
    from nanoarrow.c_schema import c_schema

    root = c_schema(obj)
    field = field_from_nanoarrow(root)
    if field.type.format != "+s":
        raise SchemaError(f"a table's schema must be a struct, not {field.type}")
    return Schema(field.type.children, field.metadata)


def field_from_nanoarrow(schema: Any) -> Field:
    """The field that a nanoarrow CSchema describes."""
    children = tuple(field_from_nanoarrow(schema.child(i)) for i in range(schema.n_children))
    dictionary = None if schema.dictionary is None else field_from_nanoarrow(schema.dictionary).type
    metadata = dict(schema.metadata.items()) if schema.metadata is not None else {}
    ordered = dictionary is not None and bool(schema.flags & 1)
    type_ = DataType(schema.format, children, dictionary, ordered)
    return Field(schema.name or "", type_, bool(schema.flags & 2), metadata)


def batches_from_arrow(obj: Any) -> tuple[Schema, Iterator[Batch]]:
    """Schema and record batches of any object with ``__arrow_c_stream__`` or ``__arrow_c_array__``, zero-copy."""
    from nanoarrow.c_array_stream import c_array_stream

    stream = c_array_stream(obj)
    schema = schema_from_arrow(stream.get_schema())
    return schema, (_batch_from_nanoarrow(array, schema) for array in stream)


def _batch_from_nanoarrow(array: Any, schema: Schema) -> Batch:
    if array.null_count > 0:
        raise DataError("a record batch with null rows")
    columns = [column_from_nanoarrow(array.child(i), f.type) for i, f in enumerate(schema.fields)]
    if array.offset:
        columns = [_shifted(c, array.offset, array.length) for c in columns]
    return Batch(columns, array.length)


def _shifted(column: Column, offset: int, length: int) -> Column:
    """A slice; the null count is unknown then (-1) unless there are none."""
    nulls = 0 if column.null_count == 0 else -1
    return Column(
        column.type, length, column.validity, column.buffers, nulls, column.children, column.dictionary,
        column.offset + offset,
    )  # fmt: skip


def _as_integers(array: Any, type_: DataType) -> Any:
    """nanoarrow cannot show the buffers of decimals of 32 and 64 bits: take these as the integers they are."""
    if type_.dictionary is not None or type_.kind != "decimal" or type_.decimal[2] > 64:
        return array
    import nanoarrow
    from nanoarrow._array import CArray

    integers = nanoarrow.int32() if type_.decimal[2] == 32 else nanoarrow.int64()
    return CArray(array, array._addr(), nanoarrow.c_schema(integers))


def column_from_nanoarrow(array: Any, type_: DataType) -> Column:
    """One array (a nanoarrow CArray) of ``type_``, zero-copy."""
    if type_.format == "n":  # polars gives these a buffer, which nanoarrow's view refuses
        return Column(type_, array.length, None, (), array.length)
    if type_.format.startswith("+v"):
        return _list_view_from_nanoarrow(array, type_)
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


def _list_view_from_nanoarrow(array: Any, type_: DataType) -> Column:
    """Buffers (offsets, sizes); nanoarrow knows the type but not how large its buffers are."""
    from pyparq.cdata import raw_buffer

    count = array.offset + array.length
    width = 8 if type_.format == "+vL" else 4
    validity = raw_buffer(array, 0, (count + 7) // 8)
    buffers = tuple(raw_buffer(array, k, count * width) for k in (1, 2))
    child = column_from_nanoarrow(array.child(0), type_.children[0].type)
    if len(validity) == 0:
        return Column(type_, array.length, None, buffers, 0, (child,), None, array.offset)
    return Column(type_, array.length, validity, buffers, array.null_count, (child,), None, array.offset)
