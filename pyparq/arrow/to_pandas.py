"""A table as a pandas DataFrame by our own rules, for where pandas has no pyarrow to convert through."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pyparq.arrow.column import Column
from pyparq.arrow.layouts import normal_type, normalize
from pyparq.arrow.schema.extensions import EXTENSION_METADATA, EXTENSION_NAME
from pyparq.arrow.tabular import Tabular
from pyparq.arrow.to_python import chunks_to_numpy, column_to_pylist, object_array, without_mask
from pyparq.format.types import DataType, Field, Schema

if TYPE_CHECKING:
    import pandas

_WRONG = (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError, SyntaxError, RecursionError,
          MemoryError)  # fmt: skip
"""Errors of pandas, json and literal_eval for invalid input."""
_NULLABLE = re.compile(r"(?:U?Int(?:8|16|32|64)|Float(?:32|64)|boolean)")
_LABEL_TYPES = re.compile(r"(?:u?int(?:8|16|32|64)|float(?:32|64)|datetime64\[(?:s|ms|us|ns)\])")
_MOST_LABEL = 10_000
"""Characters of a column's name that is taken apart into several labels."""


class PandasMetadata:
    """The metadata of a DataFrame. Empty if there are none, or if they are invalid."""

    def __init__(self, stored: bytes | None) -> None:
        self._all: dict[str, Any] = {}
        self._columns: dict[str, dict[str, Any]] = {}
        try:
            found = json.loads(stored or b"{}")
            if isinstance(found, dict):
                self._all = found
                self._columns = {c["field_name"]: c for c in found.get("columns", []) if isinstance(c, dict)}
        except _WRONG:
            pass

    def dtype_of(self, name: str) -> str:
        """The name that pandas gave the type of a column. ``""`` if it is not known."""
        found = self._columns.get(name, {}).get("numpy_type")
        return found if isinstance(found, str) else ""

    def indexed(self, frame: pandas.DataFrame) -> pandas.DataFrame:
        """The frame with its index."""
        try:
            return self._indexed(frame)
        except _WRONG:
            return frame

    def labelled(self, frame: pandas.DataFrame) -> pandas.DataFrame:
        """The frame with the column labels that were no text, and their names."""
        try:
            labels = self._labels(list(frame.columns))
        except _WRONG:
            return frame
        return frame if labels is None else frame.set_axis(labels, axis=1)

    def _indexed(self, frame: pandas.DataFrame) -> pandas.DataFrame:
        import pandas as pd

        levels = self._all["index_columns"]
        if len(levels) == 1 and isinstance(levels[0], dict) and levels[0]["kind"] == "range":
            found = levels[0]
            index = pd.RangeIndex(found["start"], found["stop"], found["step"], name=found["name"])
            return frame.set_axis(index) if len(index) == len(frame) else frame
        if not levels or not all(isinstance(name, str) and list(frame.columns).count(name) == 1 for name in levels):
            return frame
        indexed = frame.set_index(levels)
        indexed.index.names = [self._columns.get(n, {}).get("name", n) if self._names(n) else None for n in levels]
        return indexed

    def _names(self, field: str) -> bool:
        return not field.startswith("__index_level_") or self._columns.get(field, {}).get("name") is not None

    def _labels(self, names: list[str]) -> Any:
        import pandas as pd

        levels = self._all.get("column_indexes") or []
        if len(levels) > 1:
            tuples = [ast.literal_eval(name[:_MOST_LABEL]) for name in names]
            if not all(isinstance(parts, tuple) and len(parts) == len(levels) for parts in tuples):
                return None
            parts = [
                _as_labels(list(part), level) for part, level in zip(zip(*tuples, strict=True), levels, strict=True)
            ]
            return pd.MultiIndex.from_arrays(parts, names=[level["name"] for level in levels])
        return _as_labels(names, levels[0]) if levels else None


def _as_labels(names: list[str], level: dict[str, Any]) -> Any:
    import pandas as pd

    found = pd.Index(names, name=level["name"])
    kind = level["numpy_type"]
    if kind == "object" and level["pandas_type"] not in ("unicode", "string"):
        return found
    return found.astype(kind) if isinstance(kind, str) and _LABEL_TYPES.fullmatch(kind) else found


def nullable(values: Any, dtype: str) -> Any | None:
    """Numbers as one of pandas' types with a mask; ``None`` where ``dtype`` is none of them or does not fit."""
    import pandas as pd

    if not _NULLABLE.fullmatch(dtype) or values.dtype.kind not in "biuf":
        return None
    missing = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else np.zeros(len(values), np.bool_)
    data = np.ascontiguousarray(np.ma.getdata(values))
    if dtype == "boolean":
        return pd.Series(pd.arrays.BooleanArray(data, missing)) if data.dtype.kind == "b" else None
    wanted = pd.array([], dtype=dtype).dtype.numpy_dtype
    if wanted != data.dtype:
        return None
    kind = pd.arrays.FloatingArray if data.dtype.kind == "f" else pd.arrays.IntegerArray
    return pd.Series(kind(data.copy(), missing))


def of_extension(field: Field, values: Any) -> Any | None:
    """A column of pandas' extension types, which pyarrow stores as integers or structs; ``None`` for others."""
    name = field.metadata.get(EXTENSION_NAME)
    if name not in (b"pandas.period", b"pandas.interval"):
        return None
    import pandas as pd

    try:
        described = json.loads(field.metadata.get(EXTENSION_METADATA, b""))
        if name == b"pandas.period" and field.type.format == "l":
            data = np.ma.getdata(values).astype(np.int64)
            if isinstance(values, np.ma.MaskedArray):
                data[np.ma.getmaskarray(values)] = np.iinfo(np.int64).min  # pandas' NaT
            return pd.Series(pd.PeriodIndex.from_ordinals(data, freq=described["freq"]))
        if name == b"pandas.interval" and field.type.format == "+s":
            dtype = pd.IntervalDtype(described["subtype"], described["closed"])
            pairs = [None if v is None or v["left"] is None else (v["left"], v["right"]) for v in values]
            return pd.Series(pd.arrays.IntervalArray.from_tuples(pairs, dtype=dtype))
    except _WRONG:
        pass
    return None


_EXACT = 1 << 53
_AS_OBJECTS = (
    "date", "time", "list", "list_view", "struct", "map", "string", "binary", "fixed", "decimal", "null", "interval",
)  # fmt: skip


def frame_of(table: Tabular) -> pandas.DataFrame:
    """The DataFrame that pyarrow's ``to_pandas()`` makes, with two exceptions: items of lists are lists, and integers
    are not rounded to float64.

    Integers with nulls become float64 where that is exact, otherwise ``Int64`` or ``UInt64``; booleans with nulls
    objects; dictionaries become categories; times keep their
    unit and zone. ``pandas`` metadata, where the table has it, brings the index, the column labels and pandas' own
    types (``Int64``, ``boolean``, ``string``) back, extension types periods and intervals.
    """
    import pandas as pd

    known = PandasMetadata(table.schema.metadata.get(b"pandas"))
    parts = table._parts()
    columns: dict[int, Any] = {
        k: _series(field, [columns[k] for columns, _ in parts], known.dtype_of(field.name))
        for k, field in enumerate(table.schema.fields)
    }
    frame = pd.DataFrame(columns, index=pd.RangeIndex(table.num_rows))
    frame.columns = pd.Index(table.column_names)
    return known.labelled(known.indexed(frame))


def with_zones(frame: pandas.DataFrame, zones: Mapping[str, str]) -> pandas.DataFrame:
    """The frame of pyarrow with the time zones of categories, which pyarrow (26) shows in UTC and without a zone.

    ``zones``: by column; see :func:`zones_of`.
    """
    for k, label in enumerate(frame.columns) if zones else ():
        zone, column = zones.get(str(label)), frame.iloc[:, k]
        if zone is not None and column.dtype == "category" and getattr(column.cat.categories, "tz", "") is None:
            frame.isetitem(k, column.cat.rename_categories(column.cat.categories.tz_localize("UTC").tz_convert(zone)))
    return frame


def zones_of(schema: Schema) -> dict[str, str]:
    """The columns of categories that are points in time, with their time zones."""
    entries = {field.name: field.type.dictionary for field in schema.fields if field.type.dictionary is not None}
    return {name: type_.timezone for name, type_ in entries.items() if type_.kind == "timestamp" and type_.timezone}


def would_round(table: Tabular) -> bool:
    """Has the table integers that float64 rounds, in columns where pyarrow takes float64 because there are nulls?"""
    suspects = [k for k, field in enumerate(table.schema.fields) if _has_wide_integers(field.type)]
    return any(_rounds(columns[k]) for columns, _ in table._parts() for k in suspects)


def _has_wide_integers(type_: DataType) -> bool:
    if type_.dictionary is not None:
        return False  # pyarrow keeps the entries as they are
    return type_.format in ("l", "L") or any(_has_wide_integers(field.type) for field in type_.children)


def _rounds(column: Column) -> bool:
    if column.type.dictionary is not None or column.type.format not in ("l", "L"):
        return any(_rounds(child) for child in column.children)
    if not column.null_count or not _is_wide(column.values()):  # under nulls there are zeros, mostly
        return False
    present = column.valid_mask()
    return present is not None and _is_wide(column.values()[present])


def _is_wide(values: Any) -> bool:
    """Are there integers beyond those that float64 holds one by one?"""
    return len(values) > 0 and bool(values.max() > _EXACT or (values.dtype.kind == "i" and values.min() < -_EXACT))


def _series(field: Field, chunks: list[Column], dtype: str) -> Any:
    """One column; ``dtype`` is what pandas called its type, as far as the metadata say."""
    import pandas as pd

    type_ = field.type
    if type_.format == "+r":
        type_, chunks = normal_type(type_), [normalize(chunk, field.name) for chunk in chunks]
    if type_.dictionary is not None:
        return _categories(type_.dictionary, type_.ordered, chunks)
    if type_.kind in _AS_OBJECTS:
        values = [value for chunk in chunks for value in column_to_pylist(chunk)]
        found = of_extension(field, values) if type_.format == "+s" else None
        if found is not None:
            return found
        if type_.kind == "string" and dtype == "string":
            return pd.Series(object_array(values), dtype="string")
        return pd.Series(object_array(values)) if type_.kind != "string" else _strings(values)
    array = chunks_to_numpy(type_, chunks)
    found = of_extension(field, array)
    if found is None:
        found = nullable(array, dtype)
    has_nulls = type_.format in ("l", "L") and isinstance(array, np.ma.MaskedArray)
    if found is None and has_nulls and _is_wide(np.ma.getdata(array)[~np.ma.getmaskarray(array)]):
        found = nullable(array, "Int64" if type_.format == "l" else "UInt64")
    return _flat(type_, array) if found is None else found


def _categories(type_: DataType, ordered: bool, chunks: list[Column]) -> Any:
    import pandas as pd

    values = [value for chunk in chunks for value in column_to_pylist(chunk)]
    # In the dictionaries' order, which may mean something.
    entries = (e for chunk in chunks if chunk.dictionary for e in column_to_pylist(chunk.dictionary))
    known = list(dict.fromkeys(e for e in entries if e is not None))
    if type_.kind == "string":
        categories = _strings(known)
    elif type_.kind in _AS_OBJECTS:
        categories = pd.Index(object_array(known))
    else:  # with the type that the values would have
        plain = [chunk.dictionary for chunk in chunks if chunk.dictionary is not None]
        categories = pd.Index(_flat(type_, chunks_to_numpy(type_, plain)).drop_duplicates().dropna())
        places = {value: k for k, value in enumerate(known)}
        codes = np.array([-1 if value is None else places[value] for value in values], np.int64)
        return pd.Series(pd.Categorical.from_codes(codes, categories, ordered=ordered))
    return pd.Series(pd.Categorical(values, categories, ordered=ordered))


def _strings(values: list[Any]) -> Any:
    """Of the type that this pandas gives strings."""
    import pandas as pd

    return pd.Series(object_array(values), dtype=pd.Series(["x"]).dtype)


def _flat(type_: DataType, values: Any) -> Any:
    """Numbers, booleans, timestamps and durations, with pandas' own marks for what is missing."""
    import pandas as pd

    series = pd.Series(without_mask(values))
    if type_.kind == "timestamp" and type_.timezone:
        return series.dt.tz_localize("UTC").dt.tz_convert(type_.timezone)
    return series
