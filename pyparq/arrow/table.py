"""Table and Batch: the one in-memory currency, :class:`Column` values of equal length under a schema.

A :class:`Table` is a schema and a list of record batches. Every buffer holds decoded data: no work is left
for later. Exchange with other libraries is zero-copy through the Arrow C data interface; pandas, polars and pyarrow
are imported only by the methods named after them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from inspect import signature
from typing import TYPE_CHECKING, Any, Self

from pyparq.arrow import from_any, to_pandas, to_polars
from pyparq.arrow.chunked_array import ChunkedArray, parts_of
from pyparq.arrow.column import Column, batch_capsule, batches_to_stream, schema_capsule, shifted
from pyparq.arrow.column_operations import concat, null_column, trimmed
from pyparq.arrow.tabular import Part, Tabular, check_columns, for_anybody, joined_schema, widen_columns
from pyparq.errors import DataError, OptionError, SchemaError, UnsupportedError
from pyparq.format.types import Schema
from pyparq.option_checks import NOT_FOR_READING, keywords, methods_told, refuse_unknown
from pyparq.runtime.messages import requirement

if TYPE_CHECKING:
    import pandas
    import polars


@methods_told
class _FromOtherData(Tabular):
    """Tables and batches made of other data."""

    __slots__ = ()

    @classmethod
    def from_arrow(cls, data: Any, schema: Any = None) -> Self:
        """Make one from Arrow data (pyarrow, polars, DuckDB, nanoarrow, ...), sharing its buffers.

        ``schema``, as in :func:`pyparq.write_table`, matches columns by name and casts them as :meth:`cast` does.
        Types without a plain layout, such as dictionaries, are then decoded. Raises :class:`DataError` for data that
        cannot be read.
        """
        return cls._of(*from_any.from_arrow(data, schema))

    @classmethod
    def from_pandas(cls, frame: Any, schema: Any = None, *, index: bool | None = None) -> Self:
        """Make one from a pandas DataFrame. An index other than the default one becomes columns; not with ``False``."""
        return cls._of(*from_any.from_pandas(frame.reset_index(drop=True) if index is False else frame, schema))

    @classmethod
    def from_arrays(cls, arrays: Sequence[Any], names: Sequence[str] | None = None, schema: Any = None) -> Self:
        """Make one from a list of columns, whose names are ``names`` or those of ``schema``."""
        found = from_any.as_schema(schema).names if names is None else names
        if not isinstance(found, (list, tuple)) or not all(isinstance(name, str) for name in found):
            raise OptionError(f"names must be a list or tuple of texts, not {names!r}")
        if not len(found) == len(arrays) == len(set(found)):
            raise DataError(f"{len(arrays)} columns need as many names, each once, not {list(found)}")
        return cls.from_pydict(dict(zip(found, arrays, strict=True)), schema)

    @classmethod
    def from_polars(cls, frame: Any, schema: Any = None) -> Self:
        """Make one from a polars DataFrame, sharing its buffers."""
        return cls.from_arrow(frame, schema)

    @classmethod
    def from_pydict(cls, columns: Mapping[str, Any], schema: Any = None) -> Self:
        """Make one from a dict of column names to lists, numpy arrays or Arrow arrays. Without ``schema``, types are
        inferred."""
        return cls._of(*from_any.from_columns(columns, schema))

    @classmethod
    def from_pylist(cls, rows: Sequence[Mapping[str, Any]], schema: Any = None) -> Self:
        """Make one from a list of dicts, one per row. A missing key is a null. Without ``schema``, types are
        inferred."""
        return cls._of(*from_any.from_rows(rows, schema))

    def cast(self, types: Any) -> Self:
        """The same rows with some columns in other types: a dict of names to types, or whatever else
        :func:`pyparq.schema` takes. The other columns stay as they are, and whether a column may have nulls too.

        float64 is rounded to float32 and float16. No other value changes: raises :class:`DataError`, which names the
        column and the row, for one that does not fit, and for text that would have to be parsed.

        Example::

            table = pyparq.Table.from_pydict({"id": [1, 2], "price": [0.5, 2.5]})
            print(table.cast({"id": "int16", "price": "float32"}).schema)
        """
        wanted = {self._place(field.name): field for field in from_any.as_schema(types)}
        nullable = (replace(f, nullable=self.schema.fields[k].nullable) for k, f in wanted.items())
        made, cast = from_any.from_arrow(self.select(list(wanted)), Schema(tuple(nullable)))
        fields, parts = list(self.schema.fields), [(list(columns), rows) for columns, rows in self._parts()]
        for n, k in enumerate(wanted):
            fields[k] = made.fields[n]
            for (columns, _), (found, _) in zip(parts, cast, strict=True):
                columns[k] = found[n]
        return self._of(replace(self.schema, fields=tuple(fields)), parts)

    @classmethod
    def from_batches(cls, batches: Iterable[Any], schema: Any = None) -> Self:
        """The rows of record batches (pyparq's, or others that support the Arrow interface): a table shares their
        buffers.

        All must have the same schema: ``schema``, or that of the first batch. Metadata comes from the first. Raises
        :class:`SchemaError`, which names the column, if they differ, and :class:`DataError` if there are no batches and
        no schema.
        """
        given = [b if isinstance(b, Tabular) else Table._of(*from_any.from_arrow(b, None)) for b in batches]
        return cls._joined(given, None if schema is None else from_any.as_schema(schema), "batch")

    @classmethod
    def concat(cls, tables: Iterable[Tabular]) -> Self:
        """The rows of several tables or batches, one after another, sharing their buffers.

        All must have the same columns in the same order, with the same types. If one has 64-bit offsets for its text or
        lists, all get them. Raises :class:`SchemaError`, which names the column, if they differ, and
        :class:`DataError` if the list is empty.
        """
        if isinstance(tables, Tabular) or not isinstance(tables, Iterable):
            raise OptionError("concat() takes a list of tables or batches")
        given = list(tables)
        for one in given:
            if not isinstance(one, Tabular):
                raise OptionError(f"concat() takes tables and batches, not a {type(one).__name__}. Use from_arrow()")
        return cls._joined(given, None, "table")

    @classmethod
    def _joined(cls, given: list[Tabular], schema: Schema | None, what: str) -> Self:
        if not given and schema is None:
            raise DataError("there are no tables or batches to join and no schema, so the columns are not known")
        joined = joined_schema(schema, [one.schema for one in given], what)
        batches = [Batch(list(columns), rows) for one in given for columns, rows in one._parts()]
        joined, batches = widen_columns(joined, batches)
        return cls._of(joined, [(batch.columns, batch.num_rows) for batch in batches])

    def to_arrow(self) -> Any:
        """A ``pyarrow.Table``, or ``RecordBatch``, over the same buffers. Raises :class:`UnsupportedError` without
        pyarrow."""
        return _in_pyarrow("record_batch" if isinstance(self, Batch) else "table", self)

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """A pandas DataFrame. Raises :class:`UnsupportedError` without pandas.

        pyarrow converts the table if it is installed. Otherwise, and for values that pyarrow cannot convert (lists of
        string views; dates and times outside the range of Python's), pyparq converts it by the same rules.
        If the table has ``pandas`` metadata, the index is restored from it. Invalid metadata is ignored.
        ``options`` are those of ``pyarrow.Table.to_pandas`` and need pyarrow.

        Integers with nulls are float64, as pandas has them. Where that would round one (beyond 2^53), they are pandas'
        nullable ``Int64`` or ``UInt64``, and pyparq converts the table. The smallest number of a timestamp or duration
        is NaT, as in numpy.
        """
        if find_spec("pandas") is None:
            raise UnsupportedError(f"to_pandas() needs pandas: pip install {requirement('pandas')}")
        if not options and (find_spec("pyarrow") is None or to_pandas.would_round(self)):
            return to_pandas.frame_of(self)
        try:
            return to_pandas.with_zones(self._to_pandas_by_pyarrow(options), to_pandas.zones_of(self.schema))
        except (NotImplementedError, ValueError):  # pyarrow's own errors are such; times beyond a day give the second
            if options:
                raise
            return to_pandas.frame_of(self)

    def _to_pandas_by_pyarrow(self, options: dict[str, Any]) -> pandas.DataFrame:
        options = options and refuse_unknown(options, signature(self.to_arrow().to_pandas).parameters, NOT_FOR_READING)
        if b"pandas" not in self.schema.metadata or options.get("ignore_metadata"):
            return self.to_arrow().to_pandas(**options)
        try:
            return self.to_arrow().to_pandas(**options)
        except Exception:  # the pandas metadata are outside bytes, and may make it fail in any way: try without them
            rest = {k: v for k, v in self.schema.metadata.items() if k != b"pandas"}
            # Of a new table: after self_destruct=True the first one must not be touched.
            return self.to_arrow().replace_schema_metadata(rest).to_pandas(**options)

    def to_polars(self) -> polars.DataFrame:
        """A polars DataFrame over the same buffers. List views are copied, as polars does not support them.

        polars counts seconds in milliseconds, and its times end before 24:00. Raises :class:`DataError` for values that
        do not fit, where ``polars.DataFrame(table)`` wraps them around or makes them null, and
        :class:`UnsupportedError` for a column of a type that polars does not have, or without polars.
        """
        try:
            import polars as pl
        except ImportError:
            raise UnsupportedError(f"to_polars() needs polars: pip install {requirement('polars')}") from None
        try:
            return pl.DataFrame(Table._of(*to_polars.for_polars(self.schema, self._parts())))
        except pl.exceptions.PanicException as error:  # it is no Exception
            raise UnsupportedError(f"polars does not take the table: {error}") from None


@methods_told
class Batch(_FromOtherData):
    """Columns of equal length: one Arrow record batch, with what a :class:`Table` has.

    It speaks Arrow by itself (``pyarrow.record_batch(b)``). ``columns`` are its :class:`Column` values.

    Example::

        with pyparq.ParquetFile("flights.parquet") as file:
            for batch in file.iter_batches(500, columns=["flight"]):
                print(batch.num_rows, batch["flight"][0])
    """

    __slots__ = ("_schema", "columns", "num_rows")

    def __init__(self, columns: list[Column], num_rows: int, schema: Schema | None = None) -> None:
        self.columns = columns
        self.num_rows = num_rows  # type: ignore[misc]
        self._schema = schema

    @property
    def schema(self) -> Schema:
        """Names and types of the columns. Raises :class:`SchemaError` for a batch that was made without a schema."""
        if self._schema is None:
            raise SchemaError("this batch has no schema. Put it into a Table that has one")
        return self._schema

    @schema.setter
    def schema(self, schema: Schema) -> None:
        self._schema = schema

    @property
    def has_schema(self) -> bool:  # type: ignore[override]
        """``False`` for a batch that was made without a schema."""
        return self._schema is not None

    def _parts(self) -> list[Part]:
        return [(self.columns, self.num_rows)]

    @classmethod
    def _of(cls, schema: Schema, parts: Sequence[Part]) -> Batch:
        if len(parts) == 1:
            columns, num_rows = parts[0]
            check_columns(schema, columns)
            return Batch(columns, num_rows, schema)
        if not parts:
            return Batch([null_column(field.type, 0) for field in schema], 0, schema)
        joined = [concat([columns[k] for columns, _ in parts]) for k in range(len(schema))]
        fields = tuple(replace(field, type=column.type) for field, column in zip(schema, joined, strict=True))
        return Batch(joined, sum(rows for _, rows in parts), replace(schema, fields=fields))

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        schema, ((columns, num_rows),) = for_anybody(self.schema, self._parts())
        return _array_capsules(schema, columns, num_rows)

    def slice(self, offset: int = 0, length: int | None = None) -> Batch:
        """``length`` rows from ``offset`` on (to the end when ``None``), sharing all buffers.

        Raises :class:`OptionError` for an ``offset`` or ``length`` below 0.
        """
        whole = isinstance(offset, int) and isinstance(length, int)
        if not whole or length is None or not 0 <= offset <= offset + length <= self.num_rows:
            kept = list(parts_of([self.num_rows], offset, length))
            _, offset, length = kept[0] if kept else (0, 0, 0)
        if offset == 0 and length == self.num_rows:
            return self
        return Batch([shifted(c, offset, length) for c in self.columns], length, self._schema)

    def to_batches(self, max_chunksize: int | None = None) -> list[Batch]:
        """The rows in batches of at most ``max_chunksize`` rows, sharing all buffers."""
        return self.to_table().to_batches(max_chunksize)

    def to_table(self) -> Table:
        """A table of this one batch, over the same buffers."""
        return Table(self.schema, [self])

    def __reduce__(self) -> tuple[Any, ...]:
        return Batch, ([trimmed(column) for column in self.columns], self.num_rows, self._schema)


@methods_told
class Table(_FromOtherData):
    """Decoded rows: a ``schema`` and record ``batches``.

    Libraries that support the Arrow PyCapsule interface take a table directly: ``pyarrow.table(t)``,
    ``polars.DataFrame(t)``, ``duckdb.sql("from t")``. Raises :class:`SchemaError` for a batch with more or fewer
    columns than the schema.

    Example::

        table = pyparq.Table.from_pydict({"city": ["Lima", "Kyoto"], "price": [0.5, 2.5]})
        print(table.num_rows, table["price"].to_pylist(), table[0:1].to_pydict())
        frame = table.to_polars()
    """

    __slots__ = ("batches", "schema")
    schema: Schema

    def __init__(self, schema: Schema, batches: Iterable[Batch] = ()) -> None:
        if not isinstance(schema, Schema):
            raise OptionError(f"Table() takes a Schema, not a {type(schema).__name__}. Use pyparq.table(data)")
        given = list(batches)
        for batch in given:
            if not isinstance(batch, Batch):
                raise OptionError(f"Table() takes batches, not a {type(batch).__name__}. Use Table.from_batches()")
            if len(batch.columns) != len(schema.fields):
                check_columns(schema, batch.columns)
        self.schema = schema
        self.batches = [b if b._schema is schema else Batch(b.columns, b.num_rows, schema) for b in given]

    @property
    def num_rows(self) -> int:
        return sum(b.num_rows for b in self.batches)

    def _parts(self) -> list[Part]:
        return [(b.columns, b.num_rows) for b in self.batches]

    @classmethod
    def _of(cls, schema: Schema, parts: Sequence[Part]) -> Table:
        return Table(schema, [Batch(columns, rows, schema) for columns, rows in parts])

    def chunks(self, name: str) -> list[Column]:
        """The column called ``name``, one :class:`Column` per batch."""
        return self.column(name).chunks

    @property
    def columns(self) -> list[ChunkedArray]:
        """All columns, in order."""
        return list(self)

    def to_batches(self, max_chunksize: int | None = None) -> list[Batch]:
        """The rows in batches of at most ``max_chunksize`` rows, sharing all buffers. ``None`` gives
        :attr:`batches`."""
        if max_chunksize is None:
            return list(self.batches)
        if isinstance(max_chunksize, bool) or not isinstance(max_chunksize, int) or max_chunksize < 1:
            raise OptionError(f"max_chunksize must be a whole number of at least 1, not {max_chunksize!r}")
        return [
            batch.slice(start, min(max_chunksize, batch.num_rows - start))
            for batch in self.batches
            for start in range(0, batch.num_rows, max_chunksize)
        ]

    def __reduce__(self) -> tuple[Any, ...]:
        return Table, (self.schema, self.batches)


@keywords
def table(data: Any, schema: Any = None, *, names: Sequence[str] | None = None) -> Table:
    """A table in memory of anything that :func:`pyparq.write_table` takes: Arrow data and polars' (whose buffers it
    shares), a pandas DataFrame, a dict of lists or numpy arrays, a list of dicts. ``schema``: as in
    :func:`write_table`. ``names``: of the columns, if ``data`` is a list of columns.

    Example::

        table = pyparq.table({"city": ["Lima", "Kyoto"], "price": [0.5, 2.5]})
        print(table.column_names, table["price"].to_numpy())
    """
    return Table._of(*from_any.from_data(data, schema)) if names is None else Table.from_arrays(data, names, schema)


def _in_pyarrow(kind: str, data: Tabular) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise UnsupportedError(f"to_arrow() needs pyarrow: pip install {requirement('pyarrow')}") from None
    try:
        return getattr(pyarrow, kind)(_AsItIs(data))
    except pyarrow.ArrowInvalid as error:  # 128-bit integers of polars; storage that an extension type refuses
        raise UnsupportedError(f"pyarrow does not take the {kind}: {error}") from None


class _AsItIs:
    """A table or batch for those that know every type of Arrow's."""

    def __init__(self, data: Tabular) -> None:
        self._of = data.schema, data._parts()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return batches_to_stream(*self._of)

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        schema, ((columns, num_rows),) = self._of
        return _array_capsules(schema, columns, num_rows)


def _array_capsules(schema: Schema, columns: list[Column], num_rows: int) -> tuple[object, object]:
    return schema_capsule(schema), batch_capsule(columns, num_rows)
