"""Takes data in: anything tabular becomes a schema and record batches of plain layout.

See :func:`ingest` for the kinds of data and the rules.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from pyparq import kernels
from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import concat, null_column
from pyparq.arrow.exchange import arrays_from_arrow, column_from_nanoarrow, field_from_nanoarrow
from pyparq.arrow.ingest import from_pandas as frames
from pyparq.arrow.ingest.cast import cast
from pyparq.arrow.ingest.from_iterables import Rows, are_rows, is_run, pieces
from pyparq.arrow.ingest.from_numpy import column_from_numpy
from pyparq.arrow.ingest.from_pandas import pandas_metadata as metadata_of_frame
from pyparq.arrow.ingest.from_python import column_from_list
from pyparq.arrow.layouts import normal_field, normal_schema, normal_type, normalize
from pyparq.arrow.record_batch import RecordBatch, batches_from_arrow
from pyparq.arrow.schema.to_parquet import check_supported
from pyparq.arrow.tabular import Tabular
from pyparq.errors import DataError, ParquetError, UnsupportedError, near_matches
from pyparq.format.types import DataType, Field, Schema
from pyparq.runtime.threads import map_tasks

__all__ = [
    "cast",
    "in_pieces",
    "ingest",
    "ingest_later",
    "normal_type",
    "normalize",
    "opened",
    "speaks_arrow",
    "stays_the_same",
]
# Those of this package's modules are for others to import from here: by the module's name, while another thread is
# loading the package, they would get half of it (pyparq.runtime.lazy_import).

THREADS_FROM = 1 << 16
"""Rows from which on several columns are laid out at a time."""

_ADVICE = "; the first rows decided what the columns are: give schema= to say it yourself"


def ingest(
    data: Any, schema: Schema | None = None, source: list[Schema] | None = None, use_threads: bool = False
) -> tuple[Schema, Iterator[RecordBatch]]:
    """Schema and record batches of ``data``, lazily where ``data`` is a stream.

    ``data`` is one of

    - a :class:`~pyparq.read.scan.Scan` or a :class:`~pyparq.ParquetFile`, row group by row group;
    - anything with ``__arrow_c_stream__`` or ``__arrow_c_array__`` (pyarrow, polars, duckdb, pandas >= 3, nanoarrow),
      a :class:`Table` or a :class:`Batch`: zero-copy; dictionary-encoded columns are decoded and
      string views laid out;
    - a pandas DataFrame: as pandas' own conversion to Arrow has it, or by the rules below (NaN in an object or
      float column is null then) where pyarrow is not installed. A default index is left out, any other becomes
      columns;
    - a dict of column names to numpy arrays, lists, or Arrow arrays; a list of dicts (rows); a structured array;
    - a polars LazyFrame, computed piece by piece;
    - an iterable (a generator, say) of any of these, or of dicts, dataclasses or named tuples as rows, taken piece by
      piece, with one schema (that of the first piece, unless ``schema`` is given). A dict in it is a batch if its
      values are arrays (some may be lists), and a row otherwise; rows gather into pieces of bounded size.

    Without ``schema`` every inferred field is nullable. numpy dtypes map directly (bool, ints, floats,
    ``datetime64[D]`` to date, other units to timestamp, timedelta64 to duration, ``U`` and StringDType to string,
    ``S`` to binary, ``V`` to fixed-size binary); masked entries and NaT are null, NaN is a value. Lists and object
    arrays are inferred: bool < int < float, str, bytes, Decimal, date, datetime (with the zone that all have, or UTC
    for several), timedelta, time, UUID, list, dict or dataclass (struct); ``None`` is null.

    With ``schema`` the columns are matched by name and cast where no value changes, but for float64, which
    is rounded to float32 and float16; the batches then have exactly its
    types, except that a string column beyond 2 GiB comes as the large type. To ``source`` is added the schema of the
    data as they came, with their dictionaries, views and the like. ``use_threads``: lay out several large columns at a
    time.

    Raises :class:`DataError` (columns of unequal length, missing or unknown columns, values that do not fit) and
    :class:`UnsupportedError` (unions and the like), which name the column, the row where there is one, and what to
    do.
    """
    if schema is not None:
        schema = normal_schema(schema)
    if isinstance(data, Tabular):
        return _from_tabular(data, schema, source, use_threads)
    if isinstance(data, Mapping):
        return _from_columns(data, schema, source)
    if isinstance(data, np.ndarray) and data.dtype.names:
        return _from_columns({name: data[name] for name in data.dtype.names}, schema, source)
    if hasattr(data, "__pyparq_stream__"):  # a Scan or a ParquetFile
        found, batches = data.__pyparq_stream__()
        return _conformed(found, batches, schema, source, use_threads)
    if is_pandas(data):
        return _from_pandas(data, schema, source, use_threads)
    if speaks_arrow(data):
        return _from_arrow(data, schema, source, use_threads)
    if are_rows(data):
        return _from_rows(data, schema, source)
    if type(data).__name__ == "LazyFrame" and type(data).__module__.split(".")[0] == "polars":
        return _chained(_frames(data), schema, source, use_threads)
    if is_run(data):
        return _chained(pieces(data, _is_table), schema, source, use_threads)
    raise DataError(
        f"a {type(data).__name__} cannot be read as a table. Give an Arrow table or stream, a DataFrame, "
        "a dict of columns or a list of dicts"
    )


def _from_pandas(
    data: Any, schema: Schema | None, source: list[Schema] | None, use_threads: bool
) -> tuple[Schema, Iterator[RecordBatch]]:
    """By pandas' own conversion to Arrow; by our rules where pyarrow, which that needs, is not installed."""
    stream = frames.stream_from_pandas(data)
    if stream is not None:
        return _from_arrow(stream, schema, source, use_threads)
    found, batches = _from_columns(frames.columns_from_pandas(data), schema, source)
    return replace(found, metadata={**found.metadata, **metadata_of_frame(data, found)}), batches


def _frames(lazy: Any) -> Iterator[Any]:
    """What a LazyFrame of polars computes, piece by piece where its version can. The first has the schema alone."""
    yield lazy.limit(0).collect()
    if hasattr(lazy, "collect_batches"):
        yield from lazy.collect_batches(maintain_order=True)
    else:
        yield lazy.collect(engine="streaming")


def is_pandas(data: Any) -> bool:
    """Whether this is a DataFrame of pandas, or of a subclass."""
    return isinstance(data, getattr(sys.modules.get("pandas"), "DataFrame", ()))


def speaks_arrow(data: Any) -> bool:
    """Whether the object exports an Arrow stream or array."""
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


def _is_table(data: Any) -> bool:
    """Whether the object is one table, and not an iterable of tables."""
    if isinstance(data, Tabular | Mapping) or is_pandas(data) or speaks_arrow(data) or are_rows(data):
        return True
    return isinstance(data, np.ndarray) and bool(data.dtype.names)


def in_pieces(data: Any) -> Iterator[Any] | None:
    """The items of an iterable of tables, batches or rows, to be ingested one by one. ``None`` for anything else.

    The iterator raises :class:`DataError` for items of another kind, and for a mixture of tables and rows.
    """
    return None if _is_table(data) or not is_run(data) else pieces(data, _is_table)


def stays_the_same(data: Any) -> bool:
    """Whether the memory that was taken from ``data`` cannot change any more: Arrow data, and columns that were made
    here."""
    return isinstance(data, Rows) or (speaks_arrow(data) and not is_pandas(data))


def _from_tabular(
    data: Tabular, schema: Schema | None, source: list[Schema] | None, use_threads: bool
) -> tuple[Schema, Iterator[RecordBatch]]:
    batches = [RecordBatch(columns, num_rows) for columns, num_rows in data._parts()]
    if data.has_schema:  # a Batch may have none
        return _conformed(data.schema, iter(batches), schema, source, use_threads)
    (batch,) = batches
    if schema is None:
        raise DataError("this Batch has no column names. Give a schema, or a Table")
    if len(batch.columns) != len(schema):
        raise DataError(f"the batch has {len(batch.columns)} columns, but the schema has {len(schema)}")
    fields = tuple(Field(f.name, c.type, f.nullable, f.metadata) for f, c in zip(schema, batch.columns, strict=True))
    return _conformed(Schema(fields), iter([batch]), schema, source, use_threads)


def _from_arrow(
    data: Any, schema: Schema | None, source: list[Schema] | None, use_threads: bool
) -> tuple[Schema, Iterator[RecordBatch]]:
    found, batches = opened(data)
    return _conformed(found, batches, schema, source, use_threads)


def opened(data: Any) -> tuple[Schema, Iterator[RecordBatch]]:
    """Schema and batches of an object that exports Arrow data, unchanged. Its errors become :class:`DataError`."""
    refuse_objects(data)
    try:
        found, batches = batches_from_arrow(data)
    except ParquetError:
        raise
    except Exception as error:  # the producer's own errors have no common type
        raise DataError(f"the {type(data).__name__} cannot be read as Arrow data: {error}") from error
    return found, _guarded(batches)


def _guarded(batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
    while True:
        try:
            batch = next(batches)
        except StopIteration:
            return
        except DataError:
            raise
        except Exception as error:
            raise DataError(f"the Arrow stream failed: {error}") from error
        yield batch


def _conformed(
    found: Schema,
    batches: Iterator[RecordBatch],
    schema: Schema | None,
    source: list[Schema] | None,
    use_threads: bool,
) -> tuple[Schema, Iterator[RecordBatch]]:
    """Columns of plain layout, in the order and of the types of ``schema`` when there is one."""
    if source is not None:
        source.append(found)
    plain = normal_schema(found)
    for field in plain:
        check_supported(field)
    if schema is None:
        schema, order = plain, list(range(len(found)))
    else:
        order = _order(found.names, schema)
    return schema, (_conform(batch, schema, order, use_threads) for batch in batches)


def _conform(batch: RecordBatch, schema: Schema, order: list[int], use_threads: bool) -> RecordBatch:
    columns = [batch.columns[index] for index in order]
    to_change = [
        (k, field)
        for k, (field, column) in enumerate(zip(schema.fields, columns, strict=True))
        if column.type is not field.type or normal_type(column.type) is not column.type
    ]

    def changed(place: tuple[int, Field]) -> Column:
        k, field = place
        return cast(normalize(columns[k], field.name), field.type, field.name)

    if to_change:
        made = map_tasks(changed, to_change, use_threads and batch.num_rows >= THREADS_FROM)
        for (k, _), column in zip(to_change, made, strict=True):
            columns[k] = column
    return RecordBatch(columns, batch.num_rows)


def _check_names(names: Sequence[str]) -> None:
    if len(set(names)) != len(names):
        twice = next(n for i, n in enumerate(names) if n in names[:i])
        raise DataError(
            f"two columns have the name {twice!r}, so they cannot be matched with the schema. Rename one, or give the "
            "schema in the order of the data",
            column=twice,
        )


def _order(names: Sequence[str], schema: Schema) -> list[int]:
    """Where each of the schema's columns stands among ``names``; neither may have more. Columns of one name have no
    other place than their own."""
    if schema.names == list(names):
        return list(range(len(names)))
    _check_names(names)
    places = {name: i for i, name in enumerate(names)}
    for field in schema:
        if field.name not in places:
            near = near_matches(field.name, names)
            raise DataError(f"the schema's column {field.name!r} is not in the data{near}", column=field.name)
    for name in names:
        if name not in schema.names:
            near = near_matches(name, schema.names)
            raise DataError(f"the data has a column {name!r} that is not in the schema{near}", column=name)
    return [places[name] for name in schema.names]


# ---- dicts of columns, rows, iterables -----------------------------------------------------------------------------


def _from_columns(
    data: Mapping[Any, Any], schema: Schema | None, source: list[Schema] | None
) -> tuple[Schema, Iterator[RecordBatch]]:
    names = list(data)
    for name in names:
        if not isinstance(name, str):
            raise DataError(f"column names must be strings, not {name!r}")
    if schema is not None:
        names = [names[i] for i in _order(names, schema)]
    targets = [None] * len(names) if schema is None else [f.type for f in schema]
    found = [_column(data[name], name, target) for name, target in zip(names, targets, strict=True)]
    columns, given = [column for column, _ in found], Schema(tuple(field for _, field in found))
    lengths = {len(column) for column in columns}
    if len(lengths) > 1:
        told = ", ".join(f"{name!r} {len(column)}" for name, column in zip(names[:20], columns, strict=False))
        raise DataError(f"the columns have different lengths: {told}")
    if source is not None:
        source.append(given)
    if schema is None:
        plain = normal_schema(given)
        pairs = zip(plain, columns, strict=True)  # strings may have come out with wider offsets
        schema = Schema(tuple(replace(field, type=column.type) for field, column in pairs))
    return schema, iter([RecordBatch(columns, lengths.pop() if lengths else 0)])


def _from_rows(
    rows: Sequence[Mapping[Any, Any]], schema: Schema | None, source: list[Schema] | None
) -> tuple[Schema, Iterator[RecordBatch]]:
    split = kernels.split_dicts(rows) if isinstance(rows, list) else None
    if split is not None and split[2] is None:
        by_name: dict[Any, Any] = dict(zip(split[0], split[1], strict=True))
    else:
        names = dict.fromkeys(name for row in rows for name in row)
        by_name = {name: [row.get(name) for row in rows] for name in names}
    if schema is not None:  # a key that no row has is a column of nulls
        by_name |= {name: [None] * len(rows) for name in schema.names if name not in by_name}
    if not by_name:
        if source is not None:
            source.append(Schema(()))
        return Schema(()), iter([RecordBatch([], len(rows))])
    return _from_columns(by_name, schema, source)


def _column(values: Any, name: str, target: DataType | None) -> tuple[Column, Field]:
    """The column in its plain layout, and its original field."""
    if speaks_arrow(values):
        made, given = _column_from_arrow(values, name)
    elif isinstance(values, Column):
        made, given = normalize(values, name), Field(name, values.type)
    else:
        made = _column_of_values(values, name, target)
        return made, Field(name, made.type)
    return made if target is None else cast(made, target, name), given


def _column_of_values(values: Any, name: str, target: DataType | None) -> Column:
    if isinstance(values, np.ndarray):
        # Object arrays are converted to the target at once, because the target tells more than the values.
        made = column_from_numpy(values, name, lambda items, where: column_from_list(items, where, target))
        if target is not None and values.dtype.kind == "M" and target.kind == "timestamp" and target.timezone:
            # numpy's datetimes carry no zone and are UTC by convention: a schema may say so.
            made.type = DataType(f"{made.type.format}UTC")
        return made if target is None else cast(made, target, name)
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise DataError(f"a {type(values).__name__} is not a column. Give a list or an array", column=name)
    if not isinstance(values, Sequence) and hasattr(values, "to_numpy"):  # pandas Series and the like
        return _column(frames.column_values(values, name), name, target)[0]
    return column_from_list(values if isinstance(values, list) else list(values), name, target)


def _column_from_arrow(values: Any, name: str) -> tuple[Column, Field]:
    """A column of an Arrow array or a chunked one, and its field (always nullable, as all that is inferred)."""
    refuse_objects(values, name)
    field, chunks = chunks_from_arrow(values, name)
    given = Field(name, field.type, metadata=field.metadata)
    check_supported(normal_field(given))
    if not chunks:
        return null_column(normal_type(field.type), 0), given
    return concat([normalize(chunk, name) for chunk in chunks]), given


def _chained(
    items: Iterator[Any], schema: Schema | None, source: list[Schema] | None, use_threads: bool
) -> tuple[Schema, Iterator[RecordBatch]]:
    try:
        first = next(items)
    except StopIteration:
        if schema is None:
            raise DataError("there is no data and no schema, so the columns are not known. Give schema=") from None
        return schema, iter([])
    found, batches = ingest(first, schema, source, use_threads)
    later = (ingest_later(item, found, schema is not None, use_threads) for item in items)
    return found, chain(batches, chain.from_iterable(later))


def ingest_later(data: Any, schema: Schema, told: bool, use_threads: bool = False) -> Iterator[RecordBatch]:
    """The following batches of data, under the schema of the first.

    If the caller did not give the schema (``told`` is false), an error explains where it comes from and what to do.
    """
    with _Fitting(told):
        batches = ingest(data, schema, None, use_threads)[1]
    return _fitted(batches, told)


def _fitted(batches: Iterator[RecordBatch], told: bool) -> Iterator[RecordBatch]:
    with _Fitting(told):
        yield from batches


class _Fitting:
    """Adds the advice to an error."""

    def __init__(self, told: bool) -> None:
        self._told = told

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, DataError) and not self._told and _ADVICE not in error.message:
            error.message += _ADVICE


def chunks_from_arrow(values: Any, name: str) -> tuple[Field, list[Column]]:
    """The field and the chunks, zero-copy. Raises :class:`DataError` for what cannot be read."""
    try:
        schema, arrays = arrays_from_arrow(values)
        field = field_from_nanoarrow(schema)
        return field, [column_from_nanoarrow(array, field.type) for array in arrays]
    except Exception as error:
        raise DataError(f"the {type(values).__name__} cannot be read as Arrow data: {error}", column=name) from error


def refuse_objects(data: Any, name: str | None = None) -> None:
    """Raise :class:`UnsupportedError` for a column of polars' type Object. ``data`` may be anything; ``name`` is for a
    Series, which a frame's columns have themselves.

    polars exports such a column as binary, but its values are addresses of Python objects.
    """
    if type(data).__module__.split(".")[0] != "polars":
        return
    schema = getattr(data, "schema", None)
    dtypes = dict(schema) if schema is not None else {name: getattr(data, "dtype", None)}
    for column, dtype in dtypes.items():
        if _holds_objects(dtype):
            raise UnsupportedError(
                "a polars Object column holds Python objects, and Arrow would get only their addresses. "
                "Convert it to another polars type first (map_elements(..., return_dtype=...))",
                column=column,
            )


def _holds_objects(dtype: Any) -> bool:
    if str(dtype) == "Object":
        return True
    if getattr(dtype, "inner", None) is not None:
        return _holds_objects(dtype.inner)
    fields = getattr(dtype, "fields", None)
    return isinstance(fields, list) and any(_holds_objects(getattr(field, "dtype", None)) for field in fields)
