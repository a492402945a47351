"""pandas DataFrames: through pandas' own Arrow conversion, or by our rules where pyarrow is not installed."""

from __future__ import annotations

import datetime as dt
import importlib.util
import json
from typing import Any

import numpy as np

from pyparq._version import __version__
from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import fixed_column, pack_mask
from pyparq.arrow.ingest.from_numpy import column_from_numpy
from pyparq.arrow.ingest.from_python import column_from_list
from pyparq.errors import DataError, UnsupportedError
from pyparq.format.types import DataType, Schema
from pyparq.runtime.lazy_import import load


def pandas_metadata(frame: Any, schema: Schema) -> dict[bytes, bytes]:
    """The metadata of a frame that becomes a table of ``schema``: its columns, then the levels of its index."""
    import pandas

    labels = [text_of(label) for label in frame.columns]
    levels = schema.names[len(labels) :]
    index: list[Any] = list(levels)
    if not levels:
        span = frame.index
        name = None if span.name is None else text_of(span.name)
        index = [{"kind": "range", "name": name, "start": span.start, "stop": span.stop, "step": span.step}]
    names = [*labels, *(None if name is None else text_of(name) for name in frame.index.names)]
    dtypes = [*frame.dtypes, *(frame.index.get_level_values(k).dtype for k in range(len(levels)))]
    described = {
        "index_columns": index,
        "column_indexes": [_level(frame.columns.get_level_values(k)) for k in range(frame.columns.nlevels)],
        "columns": [
            {"name": name, "field_name": field.name, **_type_entry(field.type, dtype)}
            for name, field, dtype in zip(names, schema, dtypes, strict=False)
        ],
        "creator": {"library": "pyparq", "version": __version__},
        "pandas_version": pandas.__version__,
    }
    return {b"pandas": json.dumps(described).encode()}


def text_of(label: Any) -> str:
    """The name of a column in the file: pyarrow's text of the label, which readers convert back."""
    if isinstance(label, tuple):
        return str(tuple(text_of(part) for part in label))
    return label if isinstance(label, str) else str(label)


def zone_name(zone: Any) -> str:
    """The name of a time zone, or its offset from UTC."""
    name = getattr(zone, "key", None) or getattr(zone, "zone", None)
    if name:
        return str(name)
    offset = zone.utcoffset(None)
    if not offset:
        return "UTC"
    minutes = int(offset / dt.timedelta(minutes=1))
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def _level(labels: Any) -> dict[str, Any]:
    """One level of the column labels."""
    numpy_type, is_text = str(labels.dtype), labels.inferred_type in ("string", "empty")
    return {
        "name": labels.name, "field_name": labels.name, "pandas_type": "unicode" if is_text else numpy_type,
        "numpy_type": numpy_type, "metadata": {"encoding": "UTF-8"} if is_text else None,
    }  # fmt: skip


def _type_entry(type_: DataType, dtype: Any) -> dict[str, Any]:
    """The description of the column's pandas type."""
    numpy_type = str(dtype)
    metadata: dict[str, Any] | None = None
    if type(dtype).__name__ == "CategoricalDtype":
        # The type that pandas has for the codes.
        codes = np.min_scalar_type(-max(len(dtype.categories), 1))
        metadata = {"num_categories": len(dtype.categories), "ordered": bool(dtype.ordered)}
        return {"pandas_type": "categorical", "numpy_type": str(codes), "metadata": metadata}
    if hasattr(dtype, "tz"):
        numpy_type, metadata = f"datetime64[{dtype.unit}]", {"timezone": zone_name(dtype.tz)}
    return {"pandas_type": _pandas_type(type_), "numpy_type": numpy_type, "metadata": metadata}


def _pandas_type(type_: DataType) -> str:
    kind = type_.kind
    if kind == "timestamp":
        return "datetimetz" if type_.timezone else "datetime"
    simple = {"string": "unicode", "binary": "bytes", "date": "date", "time": "time", "list": "list", "null": "empty"}
    return simple.get(kind) or (str(type_) if kind in ("bool", "int", "uint", "float") else "object")


def stream_from_pandas(frame: Any) -> Any | None:
    """The frame as an Arrow stream made by pandas, or ``None`` when pandas cannot (no pyarrow, or too old)."""
    if not hasattr(frame, "__arrow_c_stream__") or importlib.util.find_spec("pyarrow") is None:
        return None
    try:
        return load("nanoarrow.c_array_stream").c_array_stream(frame)
    except NotImplementedError as error:
        raise UnsupportedError(f"pandas cannot convert the DataFrame to Arrow: {error}") from error
    except Exception as error:  # pyarrow's errors have no common type that could be named without importing it
        raise DataError(f"pandas cannot convert the DataFrame to Arrow: {error}") from error


def columns_from_pandas(frame: Any) -> dict[str, Any]:
    """Column name to values. An index other than a range comes last, as one column per level."""
    columns: dict[str, Any] = {}
    for k, label in enumerate(frame.columns):
        name = text_of(label)
        if name in columns:
            raise DataError(f"two columns have the name {name!r}. Rename one", column=name)
        columns[name] = column_values(frame.iloc[:, k], name)
    index = frame.index
    if type(index).__name__ == "RangeIndex":
        return columns  # the metadata has it
    for level in range(index.nlevels):
        values = index.get_level_values(level)
        name = f"__index_level_{level}__" if values.name is None else text_of(values.name)
        if name in columns:
            raise DataError(f"an index level and a column are both called {name!r}. Rename one", column=name)
        columns[name] = column_values(values.to_series(), name)
    return columns


def column_values(series: Any, name: str) -> Any:
    """A Series, Index or extension array as a numpy array (masked where values are missing), a list, or a column."""
    if type(series).__module__.split(".")[0] == "pandas" and type(series).__name__ != "Series":
        import pandas  # it is there: an Index or one of its extension arrays was given

        series = pandas.Series(series)
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        values = series.to_numpy()
        if dtype.kind == "f":
            return _masked(values, np.isnan(values))
        return _objects(series) if dtype.kind == "O" else values
    kind = type(dtype).__name__
    if kind == "DatetimeTZDtype":
        naive = series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
        missing = np.isnat(naive)
        numbers = np.ascontiguousarray(naive).view(np.int64)
        zone = zone_name(dtype.tz)
        return fixed_column(DataType(f"ts{dtype.unit[0]}:{zone}"), numbers, ~missing if missing.any() else None)
    if kind == "CategoricalDtype":
        return _categories(series, name)
    if kind == "StringDtype":
        return column_from_list(_objects(series), name, DataType("u"))
    if kind in ("PeriodDtype", "IntervalDtype", "SparseDtype"):
        raise UnsupportedError(
            f"a pandas {dtype} column cannot be stored. Convert it to another type first", column=name
        )
    plain = getattr(dtype, "numpy_dtype", None)
    if isinstance(plain, np.dtype) and plain.kind in "biuf":  # pandas' nullable numbers
        missing = series.isna().to_numpy(bool)
        filled = series.fillna(plain.type(0)).to_numpy(plain)
        if plain.kind == "f":
            missing = missing | np.isnan(filled)
        return _masked(filled, missing)
    return _objects(series)


def _categories(series: Any, name: str) -> Column:
    """A dictionary column with all categories, used or not, in their order."""
    categories = column_values(series.cat.categories.to_series(), name)
    if isinstance(categories, np.ndarray):
        categories = column_from_numpy(categories, name, column_from_list)
    elif not isinstance(categories, Column):
        categories = column_from_list(categories, name)
    codes = series.cat.codes.to_numpy()
    indices = column_from_numpy(np.ascontiguousarray(codes), name, column_from_list)
    present = codes >= 0
    validity, nulls = pack_mask(None if present.all() else present)
    type_ = DataType(indices.type.format, (), categories.type, bool(series.cat.ordered))
    return Column(type_, len(codes), validity, indices.buffers, nulls, (), categories)


def _masked(values: Any, missing: Any) -> Any:
    return np.ma.masked_array(values, missing) if missing.any() else values


def _objects(series: Any) -> list[Any]:
    """Python objects; whatever pandas calls missing is ``None``."""
    missing = series.isna().to_numpy(bool)
    values: list[Any] = series.to_numpy(object).tolist()
    return [None if gone else value for value, gone in zip(values, missing.tolist(), strict=True)]
