"""Table and Batch: the one in-memory currency, :class:`Column` values of equal length under a schema.

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

from pyparq.cdata import array_capsule
from pyparq.column import Column, bytes_held, shifted
from pyparq.errors import DataError, OptionError, SchemaError, UnsupportedError
from pyparq.exchange import (
    arrays_from_arrow,
    batch_to_nanoarrow,
    column_from_nanoarrow,
    schema_from_arrow,
    schema_to_nanoarrow,
)
from pyparq.schemas.types import DataType, Schema

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

__all__ = [
    "Batch",
    "Column",
    "Table",
    "batches_from_arrow",
    "schema_from_arrow",
    "schema_to_nanoarrow",
    "widen_columns",
]


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
        return _for_anybody(self.to_table().slice(0, 0)).schema.__arrow_c_schema__()

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        table = _for_anybody(self.to_table())
        (batch,), schema = table.batches, schema_to_nanoarrow(table.schema)
        return schema.__arrow_c_schema__(), array_capsule(batch_to_nanoarrow(batch.columns, batch.num_rows, schema))

    def _known_schema(self) -> Schema:
        if self.schema is None:
            raise SchemaError("this batch has no schema of its own: put it into a Table with one")
        return self.schema

    def slice(self, start: int, length: int) -> Batch:
        """Rows ``start`` to ``start + length``, sharing all buffers."""
        if start == 0 and length == self.num_rows:
            return self
        return Batch([shifted(c, start, length) for c in self.columns], length, self.schema)


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
        return sum(bytes_held(c) for b in self.batches for c in b.columns)

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
        return _for_anybody(self.slice(0, 0)).schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return _for_anybody(self)._stream()

    def _stream(self) -> object:
        from nanoarrow.c_array_stream import CArrayStream
        from nanoarrow.c_schema import c_schema

        schema = schema_to_nanoarrow(self.schema)
        arrays = [batch_to_nanoarrow(b.columns, b.num_rows, schema) for b in self.batches]
        # Moved, not copied: nanoarrow 0.9 copies arrays of string views wrongly (memory corruption). The schema moves
        # too, so it is another one than that which the arrays refer to.
        other = c_schema(schema.__arrow_c_schema__())
        return CArrayStream.from_c_arrays(arrays, other, move=True, validate=False).__arrow_c_stream__(None)

    def to_arrow(self) -> pyarrow.Table:
        """A ``pyarrow.Table`` over the same buffers; :class:`UnsupportedError` where pyarrow is not installed."""
        try:
            import pyarrow as pa
        except ImportError:
            raise UnsupportedError("to_arrow() needs pyarrow: pip install 'pyparq[pyarrow]'") from None

        return pa.table(_AsItIs(self))

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """A pandas DataFrame; :class:`UnsupportedError` where pandas is not installed.

        Converted by pyarrow, as pandas itself does it, or by the same rules (:mod:`pyparq.frame`) without pyarrow and
        for what it does not convert (lists of string views; dates and times that Python's cannot be).
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
        except (NotImplementedError, ValueError):  # pyarrow's own errors are such; times beyond a day give the second
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


def batches_from_arrow(obj: Any) -> tuple[Schema, Iterator[Batch]]:
    """Schema and record batches of any object with ``__arrow_c_stream__`` or ``__arrow_c_array__``, zero-copy."""
    found, arrays = arrays_from_arrow(obj)
    schema = schema_from_arrow(found)
    return schema, (_batch_from_nanoarrow(array, schema) for array in arrays)


def _batch_from_nanoarrow(array: Any, schema: Schema) -> Batch:
    if array.null_count > 0:
        raise DataError("a record batch with null rows")
    columns = [column_from_nanoarrow(array.child(i), f.type) for i, f in enumerate(schema.fields)]
    if array.offset:
        columns = [shifted(c, array.offset, array.length) for c in columns]
    return Batch(columns, array.length)


class _AsItIs:
    """A table for those that know every type of Arrow's."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table._stream()


def _for_anybody(table: Table) -> Table:
    """The table as anybody may take it: decimals in 128 bits, or in 256 beyond 38 digits. polars (2.1) takes narrower
    ones in an Arrow stream for wide ones, and so shows other values without a word; and wider ones not at all."""
    if not any(_has_odd_decimals(field.type) for field in table.schema.fields):
        return table
    from pyparq.convert import with_usual_decimals

    return with_usual_decimals(table)


def _has_odd_decimals(type_: DataType) -> bool:
    f = type_.format
    if f[0] == "d":
        precision, _, bits = type_.decimal
        return bits != (128 if precision <= 38 else 256)
    if type_.dictionary is not None:
        return _has_odd_decimals(type_.dictionary)
    return any(_has_odd_decimals(field.type) for field in type_.children)


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
