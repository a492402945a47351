"""The ``from_*`` methods of Table and Batch: whole tables from other data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyparq.arrow.column import count_nulls
from pyparq.arrow.ingest import ingest, is_pandas, opened, speaks_arrow
from pyparq.arrow.ingest.from_iterables import Rows, first_other
from pyparq.arrow.ingest.from_pandas import stream_from_pandas
from pyparq.arrow.ingest.python_values import as_dict
from pyparq.arrow.record_batch import RecordBatch
from pyparq.arrow.schema.from_text import schema
from pyparq.arrow.tabular import Part, Tabular, widen_columns
from pyparq.errors import DataError
from pyparq.format.types import Schema

Made = tuple[Schema, Sequence[Part]]
as_schema = schema
"""A schema from whatever :func:`pyparq.schema` takes."""


def from_arrow(data: Any, schema: Any) -> Made:
    """Of anything that speaks Arrow; without ``schema`` the types stay as they are."""
    if schema is not None:
        _check_speaks(data)
        return _ingested(data, schema)
    if isinstance(data, Tabular):
        return data.schema, data._parts()
    _check_speaks(data)
    return _made(*opened(data))


def _check_speaks(data: Any) -> None:
    if not speaks_arrow(data):
        raise DataError(
            f"a {type(data).__name__} has no Arrow interface. Use from_pydict() for a dict of columns, from_pylist() "
            "for rows, from_batches() for several tables"
        )


def from_data(data: Any, schema: Any) -> Made:
    """Of anything that can be written."""
    if type(data).__module__.startswith("pandas.") or not speaks_arrow(data):
        return _ingested(data, schema)
    return from_arrow(data, schema)


def from_pandas(frame: Any, schema: Any) -> Made:
    """Of a DataFrame, through pandas' own conversion to Arrow where that is there."""
    if not is_pandas(frame):
        raise DataError(f"from_pandas() takes a DataFrame, not a {type(frame).__name__}")
    stream = stream_from_pandas(frame) if schema is None else None
    return _ingested(frame, schema) if stream is None else _made(*opened(stream))


def from_columns(columns: Mapping[str, Any], schema: Any) -> Made:
    """Of a dict of column names to values."""
    if not isinstance(columns, Mapping):
        raise DataError(f"from_pydict() takes a dict of column names to values, not a {type(columns).__name__}")
    return _ingested(columns, schema)


def from_rows(rows: Sequence[Mapping[str, Any]], schema: Any) -> Made:
    """Of dicts, one per row."""
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
        raise DataError(f"from_pylist() takes a list of dicts, not a {type(rows).__name__}")
    given = Rows(rows)
    wrong = first_other(given)
    if wrong is not None:
        given = Rows(map(as_dict, given))
        wrong = first_other(given)
    if wrong is not None:
        raise DataError(f"row {wrong} is a {type(given[wrong]).__name__}, not a dict of column names to values")
    return _ingested(given, schema)


def _ingested(data: Any, schema: Any) -> Made:
    found, parts = _made(*ingest(data, None if schema is None else as_schema(schema)))
    for k, field in enumerate(found):
        nulls = 0 if field.nullable else sum(count_nulls(columns[k]) for columns, _ in parts)
        if nulls:
            raise DataError(
                f"the column has {nulls} nulls, but the schema says that it is not nullable", column=field.name
            )
    return found, parts


def _made(schema: Schema, batches: Iterator[RecordBatch]) -> Made:
    # A column beyond 2 GiB comes with wider offsets than the schema has.
    schema, given = widen_columns(schema, [RecordBatch(list(b.columns), b.num_rows) for b in batches])
    return schema, given
